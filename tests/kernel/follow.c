/*
 * Follows one process with src/agent/kernel.h until it ends, and writes its box and what the
 * kernel told as a trace.
 *
 *     follow possible HZ SWITCHES             0, or -errno and the sentence
 *     follow trace PID BOX FILE HZ SWITCHES MAX_BYTES
 *
 * TEST_SECCOMP=errno: perf_event_open fails with it. TEST_STALL=1: the rings are not read before
 * the end. TEST_WINDOW_MS: no more is wanted than this reaches back. TEST_DELIVER=often: what is
 * new is taken whenever there is something, and every third time it cannot all be delivered; ends:
 * it is taken at first and at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/kernel.h"
#include "write/trace_write.h"
#include "format/trace.h"
#include "read/records.h"
#include "tacho_read.h"

static void deny(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(99);
}

static uint32_t number_of(void *arg, uint32_t tid)
{
	struct tacho_reader *r = arg;

	for (uint32_t i = 0; i < tacho_read_thread_count(r); i++)
		if (tacho_read_thread(r, i)->tid == tid)
			return tacho_read_thread(r, i)->number;
	return 0;
}

static int write_trace(struct tacho__kernel *k, const char *box, const char *file, int *err)
{
	struct tacho_read_options read = {.size = sizeof(read)};
	struct tacho__trace_options options = {.taken_by = TACHO_TAKEN_DUMP};
	struct tacho__trace_result result;
	struct tacho_reader *reader;
	char message[512] = "";
	uint64_t lost = 0;
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600), reason = 0;

	*err = tacho_read_open(&reader, box, &read, message, sizeof(message));
	if (*err || fd < 0) {
		fprintf(stderr, "%s: %s\n", box, message);
		return 1;
	}
	/* Twice: what was taken stays kept. */
	*err = tacho__kernel_take(k, number_of, reader, &options.kernel, &options.kernel_count,
				  &lost);
	if (!*err)
		*err = tacho__kernel_take(k, number_of, reader, &options.kernel,
					  &options.kernel_count, &lost);
	if (!*err)
		*err = tacho__trace_write(reader, fd, &options, &result, message, sizeof(message));
	if (*err)
		fprintf(stderr, "%s: %s\n", file, message);
	printf("stretches %u lost %lu missed %u\n", options.kernel_count, lost,
	       tacho__kernel_missed(k, &reason));
	tacho_read_close(reader);
	close(fd);
	return *err != 0;
}

static uint64_t window_begin(void *arg)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec - *(uint64_t *)arg * 1000000u;
}

static uint32_t same_number(void *arg, uint32_t tid)
{
	(void)arg;
	(void)tid;
	return 1;
}

/* Of the one thread that there is: each record once, in order of number and time. */
static struct {
	uint64_t records, next, last_ns, lost;
	unsigned rounds, disorder;
} delivered;

static void deliver(struct tacho__kernel *k)
{
	const struct tacho__records *r;
	uint32_t count, done = 0;

	if (tacho__kernel_take_new(k, same_number, NULL, &r, &count, &delivered.lost))
		exit(98);
	/* Of two stretches one may find room on a disk, and the other not. */
	if (++delivered.rounds % 3)
		done = count;
	else if (count > 1)
		done = 1;
	for (uint32_t i = 0; i < done; i++) {
		delivered.disorder += r[i].head.prior_records != delivered.next ||
				      r[i].head.first_ns < delivered.last_ns;
		delivered.next = r[i].head.prior_records + r[i].head.count;
		delivered.last_ns = r[i].head.last_ns;
		delivered.records += r[i].head.count;
	}
	tacho__kernel_delivered(k, done);
}

static void follow(struct tacho__kernel *k, int pidfd)
{
	struct pollfd fds[2] = {{.fd = pidfd, .events = POLLIN},
				{.fd = tacho__kernel_fd(k), .events = POLLIN}};
	const char *how = getenv("TEST_DELIVER") ? getenv("TEST_DELIVER") : "";
	bool often = !strcmp(how, "often"), ends = !strcmp(how, "ends");
	struct rusage used;
	unsigned wakes = 0;

	if (getenv("TEST_STALL"))
		fds[1].fd = -1;
	while (ends && !delivered.records && poll(fds, 1, 1) == 0)
		deliver(k);
	while (poll(fds, 2, -1) >= 0 && !fds[0].revents) {
		wakes++;
		tacho__kernel_drain(k);
		if (often)
			deliver(k);
	}
	for (int i = 0; i < 3 && (often || ends); i++)
		deliver(k);
	printf("delivered %lu disorder %u undelivered %lu\n", delivered.records, delivered.disorder,
	       delivered.lost);
	getrusage(RUSAGE_SELF, &used);
	printf("wakes %u cpu_us %ld\n", wakes,
	       (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec +
		       used.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
	struct tacho__kernel_options options = {0};
	struct tacho__kernel *k;
	uint64_t window;
	char message[512] = "";
	int pidfd, err;

	if (getenv("TEST_SECCOMP"))
		deny(atoi(getenv("TEST_SECCOMP")));
	if (argc == 4 && !strcmp(argv[1], "possible")) {
		options = (struct tacho__kernel_options){.sample_hz = atoi(argv[2]),
							 .switches = atoi(argv[3]),
							 .max_bytes = 1 << 20};
		printf("%d %s\n", tacho__kernel_possible(&options, message, sizeof(message)),
		       message);
		return 0;
	}
	if (argc != 8)
		return 2;
	options = (struct tacho__kernel_options){.sample_hz = atoi(argv[5]),
						 .switches = atoi(argv[6]),
						 .max_bytes = strtoull(argv[7], NULL, 10)};
	if (getenv("TEST_WINDOW_MS")) {
		window = strtoull(getenv("TEST_WINDOW_MS"), NULL, 10);
		options.since = window_begin;
		options.arg = &window;
	}
	pidfd = (int)syscall(SYS_pidfd_open, atoi(argv[2]), 0);
	k = tacho__kernel_new((uint32_t)atoi(argv[2]), &options, message, sizeof(message));
	if (!k) {
		printf("refused %s\n", message);
		return 3;
	}
	printf("attached\n");
	fflush(stdout);
	follow(k, pidfd);
	write_trace(k, argv[3], argv[4], &err);
	tacho__kernel_free(k);
	close(pidfd);
	return err != 0;
}
