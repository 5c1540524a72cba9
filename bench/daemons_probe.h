/*
 * What the client and the probe inside a server share: a small file on tmpfs that both map.
 * The client writes an order and sends PROBE_SIGNAL; the probe obeys in its handler, and counts
 * the order as the last thing.
 */
#ifndef BENCH_DAEMONS_PROBE_H
#define BENCH_DAEMONS_PROBE_H

#include <signal.h>
#include <stdint.h>

#define PROBE_FILE "BENCH_PROBE_FILE" /* variable of the environment: path of the file */
#define PROBE_SIGNAL (SIGRTMIN + 3)   /* samples take the highest that is free */

enum probe_order {
	PROBE_FILL,  /* make records until the oldest are overwritten */
	PROBE_PAUSE, /* recording, where there are hooks */
	PROBE_RESUME,
	PROBE_READ, /* where do count and CPU time stand? */
};

struct probe {
	/* The client's; on a cache line of its own, so that counting disturbs no one. */
	_Alignas(64) uint64_t answered; /* requests so far */
	uint32_t order;			/* enum probe_order */
	/* The probe's. */
	_Alignas(64) uint64_t obeyed; /* orders so far */
	uint64_t at_answered;	      /* when it came to the last order */
	uint64_t cpu_ns;	      /* of all threads of the server, at the same moment */
	uint64_t overwritten;	      /* records, after the order */
	uint32_t state;		      /* enum tacho_state after the order; NEVER without hooks */
};

#endif
