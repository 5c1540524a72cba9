/*
 * What the client and the probe inside the server share: a small file on tmpfs that both map.
 * The client writes an order and sends PROBE_SIGNAL; the probe obeys it in its handler, and
 * counts it as the last thing.
 */
#ifndef BENCH_DAEMONS_PROBE_H
#define BENCH_DAEMONS_PROBE_H

#include <signal.h>
#include <stdint.h>

#define PROBE_FILE "BENCH_PROBE_FILE" /* variable of the environment: path of the file */
#define PROBE_SIGNAL (SIGRTMIN + 3)   /* samples take the highest that is free */

enum probe_order {
	PROBE_FILL,  /* make records until the oldest are overwritten */
	PROBE_OFF,   /* end the interval, pause */
	PROBE_ON,    /* end the interval, resume */
	PROBE_BEGIN, /* begin an interval of the kind that was ordered last */
};

enum probe_kind { PROBE_NONE = -1, PROBE_PAUSED, PROBE_RECORDING, PROBE_KINDS };

struct probe {
	/* The client's; on a cache line of their own, so that counting disturbs no one. */
	_Alignas(64) uint64_t answered; /* requests so far */
	uint32_t order;			/* enum probe_order */
	/* The probe's. */
	_Alignas(64) uint64_t obeyed; /* orders so far */
	int32_t kind;		      /* enum probe_kind: of the interval under way */
	uint32_t state;		      /* enum tacho_state after the order; NEVER without hooks */
	uint64_t overwritten;	      /* records, after the order */
	/* What stood at the beginning of the order. */
	uint64_t at_answered;
	uint64_t cpu_ns; /* all threads of the server */
};

#endif
