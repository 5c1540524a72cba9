/*
 * What storing a record does not do: call the kernel, allocate, touch errno, read the
 * clock twice. This program has its own malloc and clock_gettime to count them, and
 * looks into the recorder to know how much room its chunk has.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "core/recorder.h"
#include "core/sentinel.h"
#include "lib.h"

/* --------------------------------------------------------- interposed */

static volatile uint64_t mallocs, clock_reads;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

void *malloc(size_t size)
{
	__atomic_fetch_add(&mallocs, 1, __ATOMIC_RELAXED);
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	__atomic_fetch_add(&mallocs, 1, __ATOMIC_RELAXED);
	return __libc_calloc(n, size);
}

void *realloc(void *at, size_t size)
{
	__atomic_fetch_add(&mallocs, 1, __ATOMIC_RELAXED);
	return __libc_realloc(at, size);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	__atomic_fetch_add(&clock_reads, 1, __ATOMIC_RELAXED);
	return (int)syscall(SYS_clock_gettime, id, t);
}

/* ------------------------------------------------------- system calls */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* From here on, any system call but the end of the process is its end by SIGSYS. */
static int forbid_system_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

static uint64_t room(void)
{
	const struct tacho__stream *s = &tacho__self->stream[0];

	return s->chunk ? (uint64_t)(s->limit - s->cur) : 0;
}

/* All names are defined, and the thread is at the beginning of a whole chunk. */
static void warm_up(void)
{
	for (uint64_t i = 0; i < 1000 || room() < 60000; i++)
		call_all(i);
}

static void silent_body(void *arg)
{
	uint64_t rounds;

	start();
	warm_up();
	rounds = (room() - 2000) / 2000; /* a round takes less than 1 KiB */
	shared()[0] = rounds * ROUND_RECORDS;
	if (forbid_system_calls())
		_exit(77);
	for (uint64_t i = 0; i < rounds; i++)
		call_all(i);
	if (arg)
		syscall(SYS_getpid); /* to see that the trap works */
	syscall(SYS_exit_group, 0);
}

static void test_no_system_call(void)
{
	int status;

	if (emulated())
		return skip("qemu-user has no seccomp filters");
	status = subject_wait(subject_start(silent_body, "and one call"));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return skip("seccomp filters are not permitted");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "the trap does not work");
	subject(silent_body, NULL);
	CHECK(shared()[0] > 500, "only %llu records were tried", (unsigned long long)shared()[0]);
}

/* When recording is off, or paused, there are none either. */
static void paused_body(void *arg)
{
	if (arg) {
		start();
		call_all(0);
		tacho_pause();
	}
	if (forbid_system_calls())
		_exit(77);
	for (uint64_t i = 0; i < 1000; i++)
		call_all(i);
	syscall(SYS_exit_group, 0);
}

static void test_no_system_call_off(void)
{
	int status;

	if (emulated())
		return skip("qemu-user has no seccomp filters");
	status = subject_wait(subject_start(paused_body, NULL));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return skip("seccomp filters are not permitted");
	check_exit(status, 0);
	subject(paused_body, "paused");
}

/* ------------------------------------------------------------ malloc */

static void *first_in_thread(void *arg)
{
	uint64_t before = __atomic_load_n(&mallocs, __ATOMIC_RELAXED);

	for (uint64_t i = 0; i < 200; i++)
		call_all(i);
	*(uint64_t *)arg = __atomic_load_n(&mallocs, __ATOMIC_RELAXED) - before;
	return NULL;
}

static void malloc_body(void *arg)
{
	uint64_t before, in_thread = 1;
	void *volatile one;
	pthread_t t;

	(void)arg;
	start();
	before = mallocs;
	one = malloc(1);
	free(one);
	if (!CHECK(mallocs == before + 1, "malloc is not counted"))
		return;
	before = mallocs;
	/* Names are defined, the first chunk is taken, many others follow. */
	for (uint64_t i = 0; i < 20000; i++)
		call_all(i);
	CHECK(tacho_trigger("reason") == 1, "no trigger");
	CHECK(mallocs == before, "recording allocated %llu times",
	      (unsigned long long)(mallocs - before));
	pthread_create(&t, NULL, first_in_thread, &in_thread);
	pthread_join(t, NULL);
	CHECK(!in_thread, "the first records of a thread allocated %llu times",
	      (unsigned long long)in_thread);
}

static void test_no_malloc(void)
{
	subject(malloc_body, NULL);
}

/* ------------------------------------------------------------- clock */

static void clock_body(void *arg)
{
	static struct tacho_name loop = TACHO_LOOP("loop");
	uint64_t before, reads;

	(void)arg;
	setenv("TACHO_CLOCK", "monotonic", 1);
	start();
	warm_up();
	tacho_loop(&loop);
	before = clock_reads;
	for (uint32_t i = 0; i < 100000; i++)
		mark(0, i);
	reads = clock_reads - before;
	/* 25 chunk changes and a few reads for each. */
	CHECK(reads >= 100000 && reads < 101000, "%llu reads of the clock for 100000 records",
	      (unsigned long long)reads);
	before = clock_reads;
	for (uint32_t i = 0; i < 10000; i++)
		tacho_poll_switch(&loop, i);
	reads = clock_reads - before;
	CHECK(reads >= 10000 && reads < 10200, "%llu reads of the clock for 10000 switches",
	      (unsigned long long)reads);
	/* Calls that read the counter themselves where it is the clock. Its ticks would not be found
	   here: mostly they are too far from the last ones, and the slow path reads again. */
	CHECK(tacho__watching == TACHO__WATCH_CLOCK, "watching %#x", tacho__watching);
	before = clock_reads;
	for (uint32_t i = 0; i < 1000; i++) {
		tacho_unpark(&loop, 1);
		tacho_poll_begin(&loop, i);
		tacho_wake(i + 1);
		tacho_poll_end(TACHO_PENDING);
		tacho_park(&loop);
	}
	reads = clock_reads - before;
	CHECK(reads >= 5000 && reads < 5100, "%llu reads of the clock for 5000 records of tasks",
	      (unsigned long long)reads);
	before = clock_reads;
	tacho_pause();
	reads = clock_reads;
	for (uint32_t i = 0; i < 1000; i++)
		mark(0, i);
	CHECK(clock_reads == reads, "the clock is read while recording is paused");
}

static void test_one_clock_read(void)
{
	subject(clock_body, NULL);
}

static void round_body(void *arg)
{
	(void)arg;
	start();
	for (uint64_t i = 0; i < 100; i++)
		call_all(i);
	die();
}

/* That the number above, and so what the other tests take for granted, is right. */
static void test_round(void)
{
	const struct tally *t;

	subject(round_body, NULL);
	t = tally(the_box());
	CHECK(t->events == 100 * ROUND_RECORDS, "%llu records for 100 rounds, not %u",
	      (unsigned long long)t->events, 100 * ROUND_RECORDS);
}

/* ------------------------------------------------------------- errno */

#define ODD 12345
#define KEEPS_ERRNO(call)                                                  \
	do {                                                               \
		errno = ODD;                                               \
		call;                                                      \
		CHECK(errno == ODD, "errno is %d after %s", errno, #call); \
	} while (0)

static void errno_body(void *arg)
{
	struct tacho_options bad = TACHO_OPTIONS_INIT;
	struct tacho_status_info st = {.size = sizeof(st)};
	char file[300];

	(void)arg;
	KEEPS_ERRNO(call_all(1));
	bad.clock = 7;
	KEEPS_ERRNO(CHECK(tacho_start(&bad) == -EINVAL, "a bad option was taken"));
	setenv("TACHO_BOX_DIR", "/no/such/folder", 1);
	KEEPS_ERRNO(CHECK(tacho_start(NULL) < 0, "a folder that is not there was taken"));
	setenv("TACHO_BOX_DIR", box_dir(), 1);
	KEEPS_ERRNO(CHECK(!tacho_start(NULL), "tacho_start"));
	KEEPS_ERRNO(CHECK(tacho_start(NULL) == -EALREADY, "started twice"));
	/* Over many changes of the chunk, and the first of everything. */
	for (uint64_t i = 0; i < 3000; i++)
		KEEPS_ERRNO(call_all(i));
	KEEPS_ERRNO(tacho_task_waits(1, NULL, 0, TACHO_WITH_STACK));
	KEEPS_ERRNO(tacho_trigger("reason"));
	KEEPS_ERRNO(tacho_status(&st));
	KEEPS_ERRNO(CHECK(tacho_snapshot(-1) == -EBADF, "snapshot to no file"));
	KEEPS_ERRNO(tacho_modules_changed());
	KEEPS_ERRNO(tacho_stacks_prepare());
	snprintf(file, sizeof(file), "%s/crash.tacho", box_dir());
	KEEPS_ERRNO(tacho_crash_handler(file));
	KEEPS_ERRNO(tacho_crash_stack());
	KEEPS_ERRNO(tacho_pause());
	KEEPS_ERRNO(call_all(1));
	KEEPS_ERRNO(tacho_resume());
	KEEPS_ERRNO(tacho_stop());
	KEEPS_ERRNO(call_all(1));
}

static void test_errno(void)
{
	subject(errno_body, NULL);
}

static const struct test tests[] = {
	{"a round of all calls is the records that it should be", test_round},
	{"no system call between two chunk changes", test_no_system_call},
	{"no system call while recording is off or paused", test_no_system_call_off},
	{"no allocation, not even for names, chunks and threads", test_no_malloc},
	{"one read of the clock for each record", test_one_clock_read},
	{"no call changes errno", test_errno},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
