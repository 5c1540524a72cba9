/*
 * bench-count PATH: reads a box or a trace file to its end and prints
 *
 *   events N          without those that the reader makes itself
 *   span_ns N         from the first to the last
 *   clock N           enum tacho_clock
 *   problems N        each named on standard error
 *   type HEX N        by type
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tacho_read.h"

struct tally {
	uint64_t events;
	uint64_t by_type[256];
	uint64_t first_ns, last_ns;
};

static void add(struct tally *t, const struct tacho_event *e)
{
	if (e->type == TACHO_EV_RESUME)
		return;
	if (!t->events)
		t->first_ns = e->ns;
	t->last_ns = e->ns;
	t->events++;
	t->by_type[e->type]++;
}

static void print(struct tacho_reader *r, const struct tally *t)
{
	const struct tacho_process *p = tacho_read_process(r, 0);

	printf("events %" PRIu64 "\nspan_ns %" PRIu64 "\n", t->events, t->last_ns - t->first_ns);
	printf("clock %u\nproblems %u\n", p ? p->clock : 0, tacho_read_problem_count(r));
	for (uint32_t i = 0; i < tacho_read_problem_count(r); i++)
		fprintf(stderr, "bench-count: %s\n", tacho_read_problem(r, i)->text);
	for (unsigned i = 0; i < 256; i++)
		if (t->by_type[i])
			printf("type %02x %" PRIu64 "\n", i, t->by_type[i]);
}

int main(int argc, char **argv)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	static struct tally t;
	struct tacho_reader *r;
	const struct tacho_event *e;
	char message[512];
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: bench-count BOX|FILE\n");
		return 2;
	}
	alarm(120);
	err = tacho_read_open(&r, argv[1], &options, message, sizeof(message));
	if (err) {
		fprintf(stderr, "bench-count: %s\n", message);
		return 1;
	}
	while ((err = tacho_read_next(r, &e)) > 0)
		add(&t, e);
	if (err < 0)
		fprintf(stderr, "bench-count: reading %s: %s\n", argv[1], strerror(-err));
	else
		print(r, &t);
	tacho_read_close(r);
	return err < 0;
}
