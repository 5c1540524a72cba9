/*
 * bench-record REPEATS: what a record costs, beside the clock alone.
 *
 * Prints the blocks (blocks.h) and then, for the one who checks that all this was
 * recorded:
 *
 *   fresh NS          cost of a record while the box takes its memory
 *   made N            records in all
 *   overwritten N     of these, made room for newer ones
 *   dropped N         of these, never found room
 *   box PATH
 *
 * and waits for the end of its standard input, so that the box can be read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "blocks.h"
#include "tacho.h"

#define TASKS 1024u

static struct tacho_name loop_name = TACHO_LOOP("bench");
static struct tacho_name kind = TACHO_KIND("bench_task");
TACHO_EVENT(two_numbers, (i64, first), (i64, second))

static void empty(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		BENCH_BARRIER();
}

static void counter(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		(void)tacho__counter();
		BENCH_BARRIER();
	}
}

static void monotonic(uint64_t n)
{
	struct timespec t;

	for (uint64_t i = 0; i < n; i++) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		BENCH_BARRIER();
	}
}

static void park_pair(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		tacho_park(&loop_name);
		BENCH_BARRIER();
		tacho_unpark(&loop_name, (uint32_t)i & 15);
		BENCH_BARRIER();
	}
}

static void poll_pair(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		tacho_poll_begin(&kind, 1 + i % TASKS);
		BENCH_BARRIER();
		tacho_poll_end(TACHO_PENDING);
		BENCH_BARRIER();
	}
}

static void poll_switch(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		tacho_poll_switch(&kind, 1 + i % TASKS);
		BENCH_BARRIER();
	}
}

/* Two readings of the clock for four events. */
static void turn(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		tacho_unpark_poll(&loop_name, 1, &kind, 1 + i % TASKS);
		BENCH_BARRIER();
		tacho_poll_end_park(TACHO_PENDING, &loop_name);
		BENCH_BARRIER();
	}
}

static void wake(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		tacho_wake(1 + i % TASKS);
		BENCH_BARRIER();
	}
}

static void spawn(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		tacho_task_spawn(i, &kind, 1, NULL);
		BENCH_BARRIER();
	}
}

static void event(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		tacho_event_two_numbers((int64_t)i, 7);
		BENCH_BARRIER();
	}
}

/* pause and resume are records of the main thread, one each. */
static uint64_t pauses;

static void off(void)
{
	tacho_pause();
	pauses++;
}

static void on(void)
{
	tacho_resume();
	pauses++;
}

/* What is measured while recording rests makes no records. */
#define FIRST_RECORDING 6
static const struct bench_case cases[] = {
	{"empty", empty, 4000000, 1, NULL, NULL},
	{"counter", counter, 250000, 1, NULL, NULL},
	{"clock_gettime", monotonic, 100000, 1, NULL, NULL},
	{"off_poll", poll_pair, 2000000, 2, off, on},
	{"off_wake", wake, 4000000, 1, off, on},
	{"off_event", event, 4000000, 1, off, on},
	{"park", park_pair, 125000, 2, NULL, NULL},
	{"poll", poll_pair, 125000, 2, NULL, NULL},
	{"poll_switch", poll_switch, 250000, 1, NULL, NULL},
	{"turn", turn, 62500, 4, NULL, NULL},
	{"wake", wake, 250000, 1, NULL, NULL},
	{"spawn", spawn, 200000, 1, NULL, NULL},
	{"event", event, 200000, 1, NULL, NULL},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

/* One record after the other until the box is full, its memory being taken on the way. */
static uint64_t fill(uint64_t box_bytes)
{
	uint64_t records = box_bytes / 16;
	struct timespec a, b;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	wake(records);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	printf("fresh %.4f\n",
	       ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
		       (double)records);
	return records;
}

static int report(uint64_t made)
{
	struct tacho_status_info st = {.size = sizeof(st)};
	char byte;

	if (tacho_status(&st) || st.state != TACHO_STATE_RECORDING) {
		fprintf(stderr, "bench-record: recording stopped on the way: %s\n", st.reason);
		return 1;
	}
	printf("made %llu\noverwritten %llu\ndropped %llu\nbox %s\n", (unsigned long long)made,
	       (unsigned long long)st.overwritten_records, (unsigned long long)st.dropped_records,
	       st.box);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	unsigned repeats = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	struct tacho_status_info st = {.size = sizeof(st)};
	uint64_t made[CASES] = {0};
	uint64_t all;
	int err;

	if (!repeats) {
		fprintf(stderr, "usage: bench-record REPEATS\n");
		return 2;
	}
	alarm(300);
	err = tacho_start(NULL);
	tacho_status(&st);
	if (err) {
		fprintf(stderr, "bench-record: cannot record: %s (%s)\n", st.reason,
			strerror(-err));
		return 1;
	}
	all = fill(st.max_bytes);
	err = bench_blocks(cases, CASES, repeats, made);
	if (err) {
		fprintf(stderr, "bench-record: cannot start threads: %s\n", strerror(-err));
		return 1;
	}
	for (unsigned i = FIRST_RECORDING; i < CASES; i++)
		all += made[i];
	return report(all + pauses);
}
