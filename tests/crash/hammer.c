/*
 * Reads a box over and over while three threads record into it as fast as they can and
 * other threads come and go: no record is ever corrupted, sequences go on without a
 * gap, and where one has a hole the reader says exactly how many are missing.
 *
 *	hammer SECONDS
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "format/box.h"
#include "pattern.h"
#include "tacho.h"
#include "verify.h"
#include "victim.h"

#define WRITERS 3u

static struct victim_folder folder;

static void *write_for_ever(void *arg)
{
	static uint32_t started;
	struct truth *truth = arg;
	uint32_t sequence = 3 * __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);

	for (;;)
		truth_put(truth, sequence);
	return NULL;
}

static int victim(struct truth *truth, void *arg)
{
	pthread_t thread;

	alarm(0); /* the reader ends it, or its death does */
	victim_record(truth, *(uint32_t *)arg, 0);
	for (unsigned i = 0; i < WRITERS; i++)
		truth_take(truth, 0);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_create(&thread, NULL, write_for_ever, truth);
	/* Threads that record little get small chunks. */
	for (unsigned i = 0;; i++) {
		struct victim_thread t;

		victim_thread_start(&t, truth, i % 7 * 100);
		victim_thread_join(&t);
		usleep(4000);
	}
	return 0;
}

struct shapes {
	uint64_t whole, split;
};

static void count_shapes(const char *path, struct shapes *shapes)
{
	struct tacho_box_super super;
	struct tacho_box_slot slot;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || pread(fd, &super, sizeof(super), 0) != sizeof(super))
		memset(&super, 0, sizeof(super));
	for (uint32_t i = 0; i < super.slots_used; i++) {
		uint64_t at = super.regions[TACHO_REGION_SLOTS].offset + i * sizeof(slot);

		if (pread(fd, &slot, sizeof(slot), (off_t)at) != sizeof(slot))
			break;
		shapes->whole += TACHO_SLOT_SHAPE(slot.state) == TACHO_SLOT_WHOLE;
		shapes->split += TACHO_SLOT_SHAPE(slot.state) == TACHO_SLOT_SPLIT;
	}
	if (fd >= 0)
		close(fd);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int writers_began(const struct truth *truth)
{
	for (unsigned i = 0; i < WRITERS; i++)
		if (!truth->sequence[3 * i].done)
			return 0;
	return 1;
}

/* `seconds` of reading a box of `bytes`. */
static void hammer(struct truth *truth, uint32_t bytes, uint64_t seconds)
{
	struct verify v = {.truth = truth, .end = TRUTH_SEQUENCES, .flags = VERIFY_LIVE};
	uint64_t reads = 0, events = 0, holes = 0, torn = 0, recorded = 0, end;
	struct shapes shapes = {0, 0};
	char why[600] = "", name[120];
	int result = 0;
	pid_t pid;

	truth_clear(truth);
	victim_folder_make(&folder);
	pid = victim_start(victim, truth, &bytes);
	for (int i = 0; i < 10000 && !writers_began(truth); i++)
		usleep(1000);
	end = now_ns() + seconds * 1000000000;
	while (!result && now_ns() < end) {
		result = verify_file(&v, truth->box[0].path);
		reads++;
		events += v.events;
		holes += v.holes;
		torn += v.torn;
		count_shapes(truth->box[0].path, &shapes);
	}
	if (result)
		snprintf(why, sizeof(why), "in read %llu: %s", (unsigned long long)reads, v.why);
	kill(pid, SIGKILL);
	result = victim_wait(pid);
	for (unsigned i = 0; i < WRITERS; i++)
		recorded += truth->sequence[3 * i].done;
	victim_folder_remove(&folder);
	if (!why[0] && (!WIFSIGNALED(result) || WTERMSIG(result) != SIGKILL))
		snprintf(why, sizeof(why), "the victim ended before it was killed");
	/* Else the test would not test what it says. */
	if (!why[0] && (shapes.whole < reads || !shapes.split))
		snprintf(why, sizeof(why), "not both, whole and small chunks, were there");
	if (!why[0] && (recorded / 100000 < seconds || !reads || !events))
		snprintf(why, sizeof(why), "too little was recorded or read");
	snprintf(name, sizeof(name), "a box of %u MiB read for %llu s at full writing speed",
		 bytes >> 20, (unsigned long long)seconds);
	report(name, why[0] ? why : NULL);
	printf("%llu records written; %llu reads, %llu events, %llu holes, %llu times overwritten "
	       "while read; %llu whole and %llu split slots\n",
	       (unsigned long long)recorded, (unsigned long long)reads, (unsigned long long)events,
	       (unsigned long long)holes, (unsigned long long)torn,
	       (unsigned long long)shapes.whole, (unsigned long long)shapes.split);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 30;
	struct truth *truth = truth_map();

	pattern_init(400);
	/* One that keeps up with its writers, and one that is overwritten while it is read. */
	hammer(truth, 8u << 20, seconds - seconds / 2);
	hammer(truth, 1u << 20, seconds / 2);
	return report_status();
}
