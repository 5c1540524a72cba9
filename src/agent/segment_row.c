/* The box of a row and its segment: reading the one, beginning and ending the other. */
#include "agent/segment_row.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/absent.h"
#include "base/clock.h"
#include "read/news.h"
#include "read/records.h"
#include "tacho_read.h"

/* This goes on all the time, beside the program: half the time of the default for two in a
   hundred more bytes (trace_output.c). */
#define LEVEL 1
#define ANCHOR_NS 50000000u /* between two comparisons of the clocks */

/* -------------------------------------------------------------------- the box */

int tacho__row_open(struct tacho__row *row)
{
	if (row->fd < 0)
		row->fd =
			open(row->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	return row->fd < 0 ? -errno : 0;
}

/* When there is no more room, every second one is dropped. */
void tacho__row_compare(struct tacho__row *row)
{
	struct tacho_anchor *a = row->anchors;
	uint32_t n = row->anchor_count;
	uint64_t ticks, ns;

	if (!row->known)
		return;
	tacho__clock_pair(row->clock != TACHO_CLOCK_MONOTONIC, &ticks, &ns);
	if (n && ns - a[n - 1].mono_ns < ANCHOR_NS)
		return;
	if (n == TACHO__ROW_ANCHORS) {
		for (uint32_t i = 1; i < n / 2; i++)
			a[i] = a[2 * i];
		n /= 2;
	}
	a[n] = (struct tacho_anchor){ticks, ns, 0};
	row->anchor_count = n + 1;
}

int tacho__row_read(struct tacho__row *row, struct tacho__news *news, struct tacho_reader **out)
{
	int err;

	news->anchors = row->anchors;
	news->anchor_count = row->anchor_count;
	err = tacho__read_news(out, row->fd, row->path, news, NULL, 0);
	if (!err)
		tacho__read_lower(*out, &row->rights);
	return err;
}

static int skip_all(void *arg, const struct tacho_chunk *head)
{
	(void)arg;
	(void)head;
	return 1;
}

static int skip_none(void *arg, uint32_t id)
{
	(void)arg;
	(void)id;
	return 0;
}

int tacho__row_facts(struct tacho__row *row, struct tacho_reader **out)
{
	struct tacho__news news = {.skip_chunk = skip_all, .skip_definition = skip_none};

	return tacho__row_read(row, &news, out);
}

struct tacho__trace_options tacho__row_options(const struct tacho__row *row)
{
	const struct tacho__absent *absent = row->segments->absent;
	const char *name = strrchr(row->path, '/');

	return (struct tacho__trace_options){
		.taken_by = TACHO_TAKEN_SEGMENT,
		.level = LEVEL,
		.box_name = name ? name + 1 : row->path,
		.no_symbols = row->segments->options.no_symbols,
		.segment = row->number,
		.agent_cpu_ns = tacho__clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		.end = row->end.how ? &row->end : NULL,
		.command_line = row->command_line,
		.absent = absent ? absent->list : NULL,
		.absent_count = absent ? absent->count : 0,
	};
}

/* ----------------------------------------------------------------- segment */

bool tacho__row_defines(const struct tacho__row *row, uint32_t id)
{
	return id / 64 < row->defined_words && row->defined[id / 64] >> (id % 64) & 1;
}

int tacho__row_define(struct tacho__row *row, const struct tacho_reader *reader)
{
	uint32_t limit = tacho_read_definition_limit(reader, 0);
	uint32_t words = limit / 64 + 1;

	if (words > row->defined_words) {
		uint64_t *p = realloc(row->defined, words * sizeof(*p));

		if (!p)
			return -ENOMEM;
		memset(p + row->defined_words, 0, (words - row->defined_words) * sizeof(*p));
		row->defined = p;
		row->defined_words = words;
	}
	for (uint32_t id = 1; id < limit; id++)
		if (tacho_read_definition(reader, 0, id))
			row->defined[id / 64] |= 1ull << (id % 64);
	return 0;
}

int tacho__row_gap(struct tacho__row *row)
{
	struct tacho_trace_gap *gap = &row->gap;
	int err;

	if (!gap->records)
		return 0;
	/* Two gaps of one beginning would be taken for one. */
	if (gap->from_ns <= row->gap_ns)
		gap->from_ns = row->gap_ns + 1;
	if (gap->to_ns < gap->from_ns)
		gap->to_ns = gap->from_ns;
	err = tacho__segment_gap(&row->segment, gap);
	if (!err) {
		row->gap_ns = gap->from_ns;
		*gap = (struct tacho_trace_gap){0};
	}
	return err;
}

int tacho__row_finish(struct tacho__row *row)
{
	struct tacho__segment *g = &row->segment;
	struct tacho__trace_options options;
	struct tacho_reader *facts = NULL;
	int err;

	if (!g->open)
		return 0;
	row->finish = true;
	err = tacho__row_gap(row);
	if (err)
		return err;
	options = tacho__row_options(row);
	if (tacho__row_facts(row, &facts))
		facts = NULL;
	err = tacho__segment_finish(g, facts, row->before, &options);
	if (!err) {
		memcpy(row->before, g->name, sizeof(row->before));
		row->crashes = facts ? tacho_read_crash_count(facts) : row->crashes;
		row->finish = false;
		tacho__segment_close(g);
		tacho__segments_finished(row->segments, row->before);
	}
	tacho_read_close(facts);
	return err;
}

uint64_t tacho__row_limit(const struct tacho__segments *s)
{
	uint64_t limit = s->options.segment_bytes ? s->options.segment_bytes : UINT64_MAX;
	struct rlimit r;

	/* The cap can only be kept if there is something else to delete than what is written. */
	if (s->folder.max_bytes && limit > s->folder.max_bytes / 4)
		limit = s->folder.max_bytes / 4;
	if (!getrlimit(RLIMIT_FSIZE, &r) && r.rlim_cur != RLIM_INFINITY &&
	    limit > r.rlim_cur / 4 * 3)
		limit = r.rlim_cur / 4 * 3;
	return limit;
}

bool tacho__row_is_due(const struct tacho__row *row, uint64_t now_ns)
{
	uint64_t length = row->segments->options.segment_ns;

	return length && row->segment.open && row->segment.first_ns < now_ns &&
	       now_ns - row->segment.first_ns >= length;
}
