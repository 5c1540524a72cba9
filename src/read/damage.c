#include "read/damage.h"

#include <string.h>

#include "read/reader.h"

/* Problems in which something of the input is lost. All others are of its clock, of names, or of the
   begin of a window. */
static const struct kind {
	const char *name;
	int has_records; /* that are lost, or may be */
} kinds[] = {
	{"damaged-block", 1},	 {"missing-block", 1},	 {"cut", 1},
	{"bad-chunk", 1},	 {"bad-record", 1},	 {"bad-region", 1},
	{"unreadable-part", 1},	 {"unreadable-file", 1}, {"too-many-parts", 1},
	{"too-much-at-once", 1}, {"more-problems", 1},	 {"bad-definition", 0},
	{"bad-meta", 0},	 {"no-meta", 0},	 {"bad-gap", 0},
};

/* NULL: nothing is lost. */
static const struct kind *kind_of(const struct tacho_problem *p)
{
	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(p->name, kinds[i].name) == 0)
			return &kinds[i];
	return NULL;
}

static const struct tacho__source *source_of(const struct tacho_reader *r,
					     const struct tacho_problem *p)
{
	for (uint32_t i = 0; i < r->source_count; i++) {
		const struct tacho__input *in = r->sources[i].input;

		if (in->path == p->path && p->offset >= in->begin &&
		    p->offset - in->begin <= in->size)
			return &r->sources[i];
	}
	return NULL;
}

enum held { RECORDS, FACTS, UNKNOWN };

/* What a place held. An index that can be read lists all blocks of records, and how many each held. */
static enum held held_by(const struct tacho_reader *r, const struct tacho_problem *p)
{
	const struct tacho__source *s = source_of(r, p);
	int is_listed = 0;

	if (!kind_of(p)->has_records)
		return FACTS;
	if (!s || !p->size || strcmp(p->name, "damaged-block") != 0)
		return UNKNOWN;
	for (uint32_t i = 0; i < r->stretch_count; i++) {
		const struct tacho__stretch_info *k = &r->stretches[i];

		if (&r->sources[k->source] != s || !k->listed)
			continue;
		if (k->bad && s->input->begin + k->offset == p->offset)
			return RECORDS;
		is_listed = 1;
	}
	return is_listed ? FACTS : UNKNOWN;
}

static int same_stream(const struct tacho__stretch *a, const struct tacho__stretch *b)
{
	return a->process == b->process && a->thread == b->thread && a->stream == b->stream;
}

/* Of one stream, before the first stretch that can be read and after the last. */
static uint64_t lost_at_ends(const struct tacho__stretch_info *s, uint32_t count)
{
	uint64_t before = 0, after = 0;
	uint32_t i = 0, k = count;

	for (; i < count && s[i].bad; i++)
		before += s[i].count;
	for (; k > i && s[k - 1].bad; k--)
		after += s[k - 1].count;
	return before + after;
}

static uint64_t lost_records(const struct tacho_reader *r, uint32_t process)
{
	uint64_t lost = 0;
	uint32_t end;

	for (uint32_t i = 0; i < r->stretch_count; i = end) {
		for (end = i + 1; end < r->stretch_count &&
				  same_stream(&r->stretches[i].pub, &r->stretches[end].pub);
		     end++)
			;
		if (process == UINT32_MAX || r->stretches[i].pub.process == process)
			lost += lost_at_ends(&r->stretches[i], end - i);
	}
	return lost;
}

static int is_of(const struct tacho_reader *r, uint32_t process, uint32_t whose)
{
	return process == UINT32_MAX || whose == process ||
	       (whose == UINT32_MAX && r->process_count == 1);
}

void tacho__read_damage(const struct tacho_reader *r, uint32_t process, struct tacho__damage *out)
{
	*out = (struct tacho__damage){.lost = lost_records(r, process)};
	for (uint32_t i = 0; i < r->process_count; i++)
		if (is_of(r, process, i))
			out->dropped += r->processes[i]->dropped_at_end;
	for (uint32_t i = 0; i < r->source_count; i++) {
		if (!is_of(r, process, r->sources[i].process))
			continue;
		out->bytes += r->sources[i].input->size;
		out->is_box |= tacho__is_box(r->sources[i].input) != 0;
	}
	for (uint32_t i = 0; i < r->problem_count; i++) {
		const struct tacho_problem *p = r->problems[i];
		enum held held;

		if (!is_of(r, process, p->process) || !kind_of(p))
			continue;
		out->places++;
		out->lost_bytes += p->size;
		out->is_cut |= strcmp(p->name, "cut") == 0;
		held = held_by(r, p);
		out->is_uncounted |= held == UNKNOWN;
		out->lacks_facts |= held != RECORDS;
	}
	if (out->lost_bytes > out->bytes)
		out->lost_bytes = out->bytes;
}
