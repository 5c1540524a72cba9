/*
 * bench-lttng REPEATS: what LTTng-UST takes for the same fields as tacho's records.
 *
 * To be started in a session that records tacho_bench:* except tacho_bench:unused.
 * Prints the blocks (blocks.h) and `made N`, the events of all types. It is linked
 * with LTTng-UST and with nothing of tacho.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_tp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blocks.h"

#define TASKS 1024u

static void park_pair(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		lttng_ust_tracepoint(tacho_bench, park, 1);
		BENCH_BARRIER();
		lttng_ust_tracepoint(tacho_bench, unpark, (uint32_t)i & 15);
		BENCH_BARRIER();
	}
}

static void poll_pair(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		lttng_ust_tracepoint(tacho_bench, poll_begin, 2, 1 + i % TASKS);
		BENCH_BARRIER();
		lttng_ust_tracepoint(tacho_bench, poll_end, 1);
		BENCH_BARRIER();
	}
}

static void wake(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		lttng_ust_tracepoint(tacho_bench, wake, 1 + i % TASKS);
		BENCH_BARRIER();
	}
}

static void event(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		lttng_ust_tracepoint(tacho_bench, two_numbers, (int64_t)i, 7);
		BENCH_BARRIER();
	}
}

static void unused(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		lttng_ust_tracepoint(tacho_bench, unused, 1 + i % TASKS);
		BENCH_BARRIER();
	}
}

static const struct bench_case cases[] = {
	{"lttng_park", park_pair, 15000, 2, NULL, NULL},
	{"lttng_poll", poll_pair, 15000, 2, NULL, NULL},
	{"lttng_wake", wake, 30000, 1, NULL, NULL},
	{"lttng_event", event, 30000, 1, NULL, NULL},
	{"lttng_off", unused, 4000000, 1, NULL, NULL},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

/* That the cases measure what they say. */
static int enabled(void)
{
	return lttng_ust_tracepoint_enabled(tacho_bench, park) &&
	       lttng_ust_tracepoint_enabled(tacho_bench, unpark) &&
	       lttng_ust_tracepoint_enabled(tacho_bench, poll_begin) &&
	       lttng_ust_tracepoint_enabled(tacho_bench, poll_end) &&
	       lttng_ust_tracepoint_enabled(tacho_bench, wake) &&
	       lttng_ust_tracepoint_enabled(tacho_bench, two_numbers) &&
	       !lttng_ust_tracepoint_enabled(tacho_bench, unused);
}

int main(int argc, char **argv)
{
	unsigned repeats = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	uint64_t made[CASES] = {0};
	uint64_t all = 0;
	int err;

	if (!repeats) {
		fprintf(stderr, "usage: bench-lttng REPEATS\n");
		return 2;
	}
	alarm(300);
	if (!enabled()) {
		fprintf(stderr,
			"bench-lttng: the tracepoints are not as wanted: tacho_bench:* must be "
			"enabled and tacho_bench:unused not.\n");
		return 1;
	}
	err = bench_blocks(cases, CASES, repeats, made);
	if (err) {
		fprintf(stderr, "bench-lttng: cannot start threads: %s\n", strerror(-err));
		return 1;
	}
	if (!enabled()) {
		fprintf(stderr, "bench-lttng: the session stopped recording on the way.\n");
		return 1;
	}
	for (unsigned i = 0; i + 1 < CASES; i++)
		all += made[i];
	printf("made %llu\n", (unsigned long long)all);
	return 0;
}
