/*
 * The plan of a switchback. A block has one interval of each server and kind, in an order that
 * dice give: they are neighbours, so what drifts meets all of them alike. Lengths are random too,
 * so that nothing that a server does regularly keeps step with them.
 *
 * Everything that is measured is read by the probe, inside the server and at one moment: here is
 * only said when. The first milliseconds after a change belong to no interval, because caches
 * and queues are not those of its kind yet. The first block is short and not measured.
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
#define WARM_MS 30u /* an interval of the first block */
#define SETTLE_MS 5u
#define SHORTEST_MS 50u
#define LONGEST_MS 200u
#define PATIENCE_MS 10000u
#define SERVERS_MAX 4
#define LATENCIES_MAX (1u << 20) /* of each server and kind */

enum kind { PAUSED, RECORDING, KINDS };

/* One kind of interval of one server. */
struct part {
	int server;
	enum kind kind;
	size_t latencies;
	uint32_t *latency;
};

struct server {
	struct probe *probe;
	pid_t pid;
	uint64_t orders; /* given */
	uint64_t overwritten;
};

enum phase { SETTLING, MEASURING, ENDING };

struct switchback {
	struct server servers[SERVERS_MAX];
	int count;
	struct part *parts[SERVERS_MAX * KINDS]; /* in the order of the block */
	uint64_t seed;
	unsigned blocks, block;
	int at; /* in parts */
	enum phase phase;
	uint64_t next_ns;		     /* end of the phase */
	uint64_t answered, cpu_ns, began_ns; /* when the interval began */
	unsigned state;
};

static const char *const kind_names[KINDS] = {"paused", "recording"};

static void fail(const char *what, int error)
{
	fprintf(stderr, "bench-daemons_client: %s: %s\n", what, strerror(error));
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

/* --------------------------------------------------------------- servers */

static void give_order(struct server *server, enum probe_order order)
{
	server->orders++;
	__atomic_store_n(&server->probe->order, order, __ATOMIC_RELEASE);
	if (kill(server->pid, PROBE_SIGNAL))
		fail("the server is gone", errno);
}

static int was_obeyed(const struct server *server)
{
	return __atomic_load_n(&server->probe->obeyed, __ATOMIC_ACQUIRE) == server->orders;
}

struct switchback *switchback_new(unsigned blocks, uint64_t seed)
{
	struct switchback *s = calloc(1, sizeof(*s));

	if (!s)
		fail("cannot begin", errno);
	s->blocks = blocks;
	s->seed = seed;
	return s;
}

static struct part *part_new(int server, enum kind kind)
{
	struct part *part = malloc(sizeof(*part));
	uint32_t *latency = malloc(LATENCIES_MAX * sizeof(*latency));

	if (!part || !latency)
		fail("cannot begin", ENOMEM);
	*part = (struct part){.server = server, .kind = kind, .latency = latency};
	return part;
}

void switchback_add(struct switchback *s, pid_t pid, const char *file)
{
	struct server *server = &s->servers[s->count];
	int fd = open(file, O_RDWR | O_CLOEXEC);

	if (fd < 0 || s->count == SERVERS_MAX)
		fail(file, fd < 0 ? errno : E2BIG);
	server->pid = pid;
	server->probe =
		mmap(NULL, sizeof(*server->probe), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (server->probe == MAP_FAILED)
		fail(file, errno);
	close(fd);
	for (int kind = 0; kind < KINDS; kind++)
		s->parts[s->count * KINDS + kind] = part_new(s->count, kind);
	s->count++;
	server->orders = server->probe->obeyed;
	give_order(server, PROBE_FILL);
	for (unsigned ms = 0; !was_obeyed(server); ms++) {
		if (ms > PATIENCE_MS)
			fail("the probe in the server does not answer", ETIMEDOUT);
		usleep(1000);
	}
	server->overwritten = server->probe->overwritten;
}

/* -------------------------------------------------------------- the plan */

static void shuffle(struct switchback *s)
{
	for (int i = s->count * KINDS - 1; i > 0; i--) {
		int other = (int)(dice(s) % (unsigned)(i + 1));
		struct part *part = s->parts[i];

		s->parts[i] = s->parts[other];
		s->parts[other] = part;
	}
}

static uint64_t interval_ms(struct switchback *s)
{
	return SHORTEST_MS + dice(s) % (LONGEST_MS - SHORTEST_MS + 1);
}

static void change(struct switchback *s, uint64_t now)
{
	const struct part *part;

	if (!s->at)
		shuffle(s);
	part = s->parts[s->at];
	give_order(&s->servers[part->server], part->kind == RECORDING ? PROBE_RESUME : PROBE_PAUSE);
	s->phase = SETTLING;
	s->next_ns = now + SETTLE_MS * MS;
}

int switchback_begin(struct switchback *s, uint64_t now_ns)
{
	change(s, now_ns);
	return s->parts[s->at]->server;
}

static void print_interval(const struct switchback *s, uint64_t now)
{
	const struct part *part = s->parts[s->at];
	const struct probe *probe = s->servers[part->server].probe;

	printf("interval %u %d %s %lu %lu %lu %u\n", s->block, part->server, kind_names[part->kind],
	       probe->at_answered - s->answered, probe->cpu_ns - s->cpu_ns, now - s->began_ns,
	       s->state);
}

/* The end of a phase; its order was obeyed. */
static void take_step(struct switchback *s, uint64_t now)
{
	struct server *server = &s->servers[s->parts[s->at]->server];

	switch (s->phase) {
	case SETTLING:
		s->state = server->probe->state;
		s->began_ns = now;
		give_order(server, PROBE_READ);
		s->phase = MEASURING;
		s->next_ns = now + (s->block ? interval_ms(s) : WARM_MS) * MS;
		break;
	case MEASURING:
		s->answered = server->probe->at_answered;
		s->cpu_ns = server->probe->cpu_ns;
		give_order(server, PROBE_READ);
		s->phase = ENDING;
		break;
	case ENDING:
		if (s->block)
			print_interval(s, now);
		s->at = (s->at + 1) % (s->count * KINDS);
		s->block += s->at == 0;
		change(s, now);
	}
}

int switchback_answer(struct switchback *s, int number, uint64_t now_ns, uint64_t sent_ns)
{
	struct part *part = s->parts[s->at];
	struct probe *probe = s->servers[number].probe;

	__atomic_store_n(&probe->answered, probe->answered + 1, __ATOMIC_RELEASE);
	if (s->block && s->phase == MEASURING && number == part->server &&
	    part->latencies < LATENCIES_MAX)
		part->latency[part->latencies++] = (uint32_t)(now_ns - sent_ns);
	if (now_ns >= s->next_ns) {
		if (was_obeyed(&s->servers[part->server]))
			take_step(s, now_ns);
		else if (now_ns > s->next_ns + PATIENCE_MS * MS)
			fail("the probe in the server does not answer", ETIMEDOUT);
	}
	return s->block > s->blocks ? -1 : s->parts[s->at]->server;
}

/* --------------------------------------------------------------- results */

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void switchback_report(struct switchback *s)
{
	if (s->block <= s->blocks)
		fail("the server is gone", ECONNRESET);
	for (int i = 0; i < s->count * KINDS; i++) {
		struct part *part = s->parts[i];

		qsort(part->latency, part->latencies, sizeof(*part->latency), by_size);
		if (part->latencies)
			printf("p99_ns %d %s %u\n", part->server, kind_names[part->kind],
			       part->latency[part->latencies * 99 / 100]);
	}
	for (int i = 0; i < s->count; i++)
		printf("overwritten %d %lu\n", i,
		       s->servers[i].probe->overwritten - s->servers[i].overwritten);
}
