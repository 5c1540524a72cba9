/*
 * bench-model FILE: reads a trace into the model and sums it up, as every analysis does. Prints
 *
 *   events N   all that the reader gave
 *   polls N    of these, facts that were made of them
 *   wakes N
 *   missed N   facts that found no room
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/summary.h"
#include "tacho_read.h"

static uint64_t polls_of(const struct tacho__summary *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->kinds.used; i++) {
		const struct tacho__kind_sum *k = tacho__table_at(&s->kinds, i);

		n += k ? k->ns.count + k->cut : 0;
	}
	return n;
}

static uint64_t wakes_of(const struct tacho__summary *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->processes; i++)
		n += s->process[i].wakes.count;
	return n;
}

int main(int argc, char **argv)
{
	struct tacho__summary *s = NULL;
	struct tacho_reader *r;
	char message[512];
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: bench-model FILE\n");
		return 2;
	}
	alarm(600);
	err = tacho_read_open(&r, argv[1], NULL, message, sizeof(message));
	if (err) {
		fprintf(stderr, "bench-model: %s\n", message);
		return 1;
	}
	s = tacho__summary_make(r, NULL, 0, NULL, NULL, &err);
	if (!s) {
		fprintf(stderr, "bench-model: %s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	printf("events %" PRIu64 "\npolls %" PRIu64 "\nwakes %" PRIu64 "\n", s->events, polls_of(s),
	       wakes_of(s));
	printf("missed %" PRIu64 "\n", s->missed.tasks + s->missed.locks + s->missed.works +
					       s->missed.spans + s->missed.threads +
					       s->missed.depth);
	tacho__summary_free(s);
	tacho_read_close(r);
	return 0;
}
