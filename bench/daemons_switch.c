/*
 * The plan of a switchback. Intervals come in pairs of neighbours, one of each kind, in an order
 * that a coin gives: what drifts meets both kinds alike. Their lengths are random too, so that
 * nothing that the server does regularly keeps step with them.
 *
 * Everything that is measured is read by the probe, inside the server and at one instant: here is
 * only said when. The first milliseconds after a change belong to no interval, because caches
 * and the queue of requests are still those of the other kind.
 */
#include "daemons_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemons_probe.h"

#define MS 1000000ull
#define WARM_MS 150u
#define SETTLE_MS 4u
#define SHORTEST_MS 50u
#define LONGEST_MS 200u
#define PATIENCE_MS 10000u
#define LATENCIES_MAX (1u << 21) /* of each kind */

enum phase { WARM, SETTLE, INTERVAL };

struct switchback {
	struct probe *probe;
	pid_t pid;
	uint64_t seed;
	unsigned intervals; /* wanted */
	unsigned begun;
	enum phase phase;
	uint64_t next_ns;  /* end of the phase; 0: not known yet */
	uint64_t orders;   /* given */
	int kind;	   /* ordered last */
	int measured;	   /* kind of the interval that ended last */
	unsigned state;	   /* of the recorder, in that interval */
	uint64_t answered, cpu_ns; /* when it began */
	uint64_t overwritten;	   /* when the load began */
	uint64_t began_ns, ended_ns;
	uint32_t *latency[PROBE_KINDS];
	size_t latencies[PROBE_KINDS];
};

static const char *const kind_names[PROBE_KINDS] = {"paused", "recording"};

static void fail(const char *what)
{
	fprintf(stderr, "bench-daemons_client: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* splitmix64 */
static uint64_t dice(struct switchback *s)
{
	uint64_t z = s->seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* ---------------------------------------------------------------- orders */

static void give_order(struct switchback *s, enum probe_order order)
{
	s->orders++;
	__atomic_store_n(&s->probe->order, order, __ATOMIC_RELEASE);
	if (kill(s->pid, PROBE_SIGNAL))
		fail("the server is gone");
}

static int was_obeyed(const struct switchback *s)
{
	return __atomic_load_n(&s->probe->obeyed, __ATOMIC_ACQUIRE) == s->orders;
}

static void not_obeyed(void)
{
	errno = ETIMEDOUT;
	fail("the probe in the server does not answer");
}

/* The second of a pair is what the first was not. */
static void change_kind(struct switchback *s)
{
	s->kind = s->begun % 2 ? !s->kind : (int)(dice(s) >> 63);
	give_order(s, s->kind == PROBE_RECORDING ? PROBE_ON : PROBE_OFF);
}

/* -------------------------------------------------------------- the plan */

struct switchback *switchback_begin(unsigned pairs, pid_t pid, const char *file, uint64_t seed)
{
	struct switchback *s = calloc(1, sizeof(*s));
	int fd = open(file, O_RDWR | O_CLOEXEC);

	if (!s || fd < 0)
		fail(file);
	*s = (struct switchback){.pid = pid, .seed = seed, .intervals = 2 * pairs};
	for (int kind = 0; kind < PROBE_KINDS; kind++)
		s->latency[kind] = malloc(LATENCIES_MAX * sizeof(*s->latency[kind]));
	s->probe = mmap(NULL, sizeof(*s->probe), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s->probe == MAP_FAILED || !s->latency[0] || !s->latency[1])
		fail(file);
	close(fd);
	s->orders = s->probe->obeyed;
	give_order(s, PROBE_FILL);
	for (unsigned ms = 0; !was_obeyed(s); ms++) {
		if (ms > PATIENCE_MS)
			not_obeyed();
		usleep(1000);
	}
	s->overwritten = s->probe->overwritten;
	return s;
}

static void print_interval(const struct switchback *s)
{
	printf("interval %s %lu %lu %u\n", kind_names[s->measured],
	       s->probe->at_answered - s->answered, s->probe->cpu_ns - s->cpu_ns, s->state);
}

/* The end of a phase; the order that it began with was obeyed. 1: the end of all. */
static int take_step(struct switchback *s, uint64_t now)
{
	uint64_t ms = SETTLE_MS;

	switch (s->phase) {
	case WARM:
		s->began_ns = now;
		change_kind(s);
		s->phase = SETTLE;
		break;
	case SETTLE:
		if (s->begun)
			print_interval(s); /* the change ended it */
		s->ended_ns = now;
		if (s->begun == s->intervals)
			return 1;
		s->state = s->probe->state;
		s->begun++;
		give_order(s, PROBE_BEGIN);
		ms = SHORTEST_MS + dice(s) % (LONGEST_MS - SHORTEST_MS + 1);
		s->phase = INTERVAL;
		break;
	case INTERVAL:
		s->answered = s->probe->at_answered;
		s->cpu_ns = s->probe->cpu_ns;
		s->measured = s->kind;
		change_kind(s);
		s->phase = SETTLE;
	}
	s->next_ns = now + ms * MS;
	return 0;
}

int switchback_answer(struct switchback *s, uint64_t now_ns, uint64_t sent_ns)
{
	int kind = __atomic_load_n(&s->probe->kind, __ATOMIC_RELAXED);

	__atomic_store_n(&s->probe->answered, s->probe->answered + 1, __ATOMIC_RELAXED);
	if (kind != PROBE_NONE && s->latencies[kind] < LATENCIES_MAX)
		s->latency[kind][s->latencies[kind]++] = (uint32_t)(now_ns - sent_ns);
	if (!s->next_ns)
		s->next_ns = now_ns + WARM_MS * MS;
	if (now_ns < s->next_ns)
		return 0;
	if (was_obeyed(s))
		return take_step(s, now_ns);
	if (now_ns > s->next_ns + PATIENCE_MS * MS)
		not_obeyed();
	return 0;
}

/* --------------------------------------------------------------- results */

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void switchback_report(struct switchback *s)
{
	if (s->begun < s->intervals || s->phase != SETTLE) {
		errno = ECONNRESET;
		fail("the server is gone");
	}
	for (int kind = 0; kind < PROBE_KINDS; kind++) {
		uint32_t *latency = s->latency[kind];
		size_t n = s->latencies[kind];

		qsort(latency, n, sizeof(*latency), by_size);
		if (n)
			printf("latency %s %u %u\n", kind_names[kind], latency[n / 2],
			       latency[n * 99 / 100]);
	}
	printf("overwritten %lu\nwall_ns %lu\n", s->probe->overwritten - s->overwritten,
	       s->ended_ns - s->began_ns);
}
