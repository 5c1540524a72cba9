/* What an agent adds: gaps in what it delivered, the sentinels that it set, and who was not
   recorded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/reader.h"
#include "read/records.h"

#define UNKNOWN "unknown"

/* --------------------------------------------------------------- sentinels */

static const char *const sentinels[TACHO_SENTINEL_COUNT] = {
	[TACHO_SENTINEL_POLL] = "poll",	  [TACHO_SENTINEL_WAKE] = "wake",
	[TACHO_SENTINEL_LAG] = "lag",	  [TACHO_SENTINEL_SCHED] = "sched",
	[TACHO_SENTINEL_QUEUE] = "queue",
};

const char *tacho__sentinel_name(uint32_t sentinel)
{
	if (!sentinel)
		return "";
	return sentinel <= TACHO_SENTINEL_COUNT ? sentinels[sentinel - 1] : UNKNOWN;
}

uint32_t tacho__sentinel_number(const char *name)
{
	for (uint32_t i = 0; i < TACHO_SENTINEL_COUNT; i++)
		if (!strcmp(name, sentinels[i]))
			return i + 1;
	return name[0] ? 0xff : 0;
}

uint32_t tacho_read_sentinel_count(const struct tacho_reader *reader)
{
	(void)reader;
	return TACHO_SENTINEL_COUNT;
}

int tacho_read_sentinel(const struct tacho_reader *reader, uint32_t process, uint32_t index,
			struct tacho_sentinel_info *info)
{
	struct tacho_sentinel_info answer = {0};

	if (process >= reader->process_count || index >= TACHO_SENTINEL_COUNT)
		return -EINVAL;
	answer.name = sentinels[index];
	answer.limit = reader->processes[process]->limits[index];
	return TACHO__ANSWER(info, &answer, limit);
}

/* -------------------------------------------------------------------- gaps */

static const struct {
	const char *name, *text;
} reasons[] = {
	[0] = {UNKNOWN, "a newer tacho names a reason that this one does not know"},
	[TACHO_GAP_NO_AGENT] = {"no-agent",
				"no agent ran, and the process overwrote what none took"},
	[TACHO_GAP_NO_SPACE] = {"no-space", "the disk, or the cap on what may be kept, was full"},
	[TACHO_GAP_UNWRITABLE] = {"unwritable",
				  "the folder of the segments could not be written to"},
	[TACHO_GAP_TOO_FAST] = {"too-fast",
				"the process overwrote records before the agent had copied them"},
	[TACHO_GAP_KERNEL] = {"kernel", "the kernel dropped samples or context switches"},
	[TACHO_GAP_IMPORT] = {"import", "what this was imported from is damaged, or lacks it"},
};
#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

uint32_t tacho__gap_reason(const char *name)
{
	for (uint32_t i = 1; i < REASONS; i++)
		if (!strcmp(name, reasons[i].name))
			return i;
	return UINT32_MAX;
}

int tacho__gaps_add(struct tacho_reader *r, uint32_t source, const struct tacho__array *gaps)
{
	uint32_t bad = 0;

	if ((uint64_t)r->gap_count + gaps->count > r->arena.limit / sizeof(*r->gaps) ||
	    TACHO__GROW(r->gaps, r->gap_capacity, r->gap_count + gaps->count))
		return -ENOMEM;
	for (uint32_t i = 0; i < gaps->count; i++) {
		struct tacho_trace_gap g;
		uint32_t reason;

		tacho__array_get(gaps, i, &g, sizeof(g));
		reason = g.reason < REASONS ? g.reason : 0;
		if (g.to_ns < g.from_ns) {
			bad++;
			continue;
		}
		r->gaps[r->gap_count++] = (struct tacho_gap){
			.process = r->sources[source].process,
			.from_ns = g.from_ns,
			.to_ns = g.to_ns,
			.records = g.records,
			.reason = reasons[reason].name,
			.text = reasons[reason].text,
			.error = g.error,
		};
	}
	if (bad)
		tacho__problem(r, source, "bad-gap", 0, 0,
			       "%u gaps end before they begin and were left out", bad);
	return 0;
}

static int compare_gaps(const void *va, const void *vb)
{
	const struct tacho_gap *a = va, *b = vb;
	int c;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	c = strcmp(a->reason, b->reason);
	if (c)
		return c;
	/* The one that goes on longest first: it was written last. */
	return a->to_ns > b->to_ns ? -1 : a->to_ns < b->to_ns;
}

static int same_gap(const struct tacho_gap *a, const struct tacho_gap *b)
{
	return a->process == b->process && a->from_ns == b->from_ns &&
	       !strcmp(a->reason, b->reason);
}

void tacho__gaps_settle(struct tacho_reader *r)
{
	uint32_t kept = 0;

	TACHO__SORT(r->gaps, r->gap_count, compare_gaps);
	for (uint32_t i = 0; i < r->gap_count; i++)
		if (!kept || !same_gap(&r->gaps[kept - 1], &r->gaps[i]))
			r->gaps[kept++] = r->gaps[i];
		else if (r->gaps[i].records > r->gaps[kept - 1].records)
			r->gaps[kept - 1].records = r->gaps[i].records;
	r->gap_count = kept;
}

uint32_t tacho_read_gap_count(const struct tacho_reader *reader)
{
	return reader->gap_count;
}

const struct tacho_gap *tacho_read_gap(const struct tacho_reader *reader, uint32_t index)
{
	return index < reader->gap_count ? &reader->gaps[index] : NULL;
}

/* ------------------------------------------------------------ not recorded */

static const struct {
	const char *name, *text;
	int hindered;
} absences[] = {
	[0] = {UNKNOWN, "a newer tacho names a reason that this one does not know", 1},
	[TACHO_ABSENT_RIGHTS] = {"rights",
				 "rights that differ from those of what started it (AT_SECURE)", 1},
	[TACHO_ABSENT_STATIC] = {"static", "linked statically", 1},
	[TACHO_ABSENT_MACHINE] = {"machine", "made for another architecture", 1},
	[TACHO_ABSENT_LIBC] = {"libc", "made for another C library", 1},
	[TACHO_ABSENT_ENVIRONMENT] = {"environment",
				      "started without LD_PRELOAD in its environment", 1},
	[TACHO_ABSENT_LIBRARY] = {"library", "the library that records could not be loaded there",
				  1},
	[TACHO_ABSENT_EXCLUDED] = {"excluded", "excluded", 0},
	[TACHO_ABSENT_IDLE] = {"idle", "never waited for anything that is recorded", 0},
	[TACHO_ABSENT_REFUSED] = {"refused", "recording could not begin", 1},
	[TACHO_ABSENT_HIDDEN] = {"hidden", "cannot be looked into", 1},
};
#define ABSENCES (sizeof(absences) / sizeof(absences[0]))

static const char *text_in(struct tacho_reader *r, const char *text, size_t size)
{
	return tacho__arena_text(&r->arena, text, strnlen(text, size));
}

void tacho__absent_tell(struct tacho_absent *out, const struct tacho_trace_absent *a)
{
	uint32_t reason = a->reason < ABSENCES ? a->reason : 0;

	*out = (struct tacho_absent){
		.pid = a->pid,
		.parent_pid = a->parent_pid,
		.seen_ns = a->seen_ns,
		.comm = a->comm,
		.exe = a->exe,
		.reason = absences[reason].name,
		.text = absences[reason].text,
		.said = a->said,
		.error = a->error,
		.hindered = absences[reason].hindered,
	};
}

uint32_t tacho__absent_reason(const char *name)
{
	for (uint32_t i = 1; i < ABSENCES; i++)
		if (!strcmp(name, absences[i].name))
			return i;
	return UINT32_MAX;
}

int tacho__absent_add(struct tacho_reader *r, const struct tacho__array *absent)
{
	if ((uint64_t)r->absent_count + absent->count > r->arena.limit / sizeof(*r->absent) ||
	    TACHO__GROW(r->absent, r->absent_capacity, r->absent_count + absent->count))
		return -ENOMEM;
	for (uint32_t i = 0; i < absent->count; i++) {
		struct tacho_absent *out = &r->absent[r->absent_count];
		struct tacho_trace_absent a;

		tacho__array_get(absent, i, &a, sizeof(a));
		tacho__absent_tell(out, &a);
		out->comm = text_in(r, a.comm, sizeof(a.comm));
		out->exe = text_in(r, a.exe, sizeof(a.exe));
		out->said = text_in(r, a.said, sizeof(a.said));
		if (!out->comm || !out->exe || !out->said)
			return -ENOMEM;
		r->absent_count++;
	}
	return 0;
}

static int compare_absent(const void *va, const void *vb)
{
	const struct tacho_absent *a = va, *b = vb;

	if (a->seen_ns != b->seen_ns)
		return a->seen_ns < b->seen_ns ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

void tacho__absent_settle(struct tacho_reader *r)
{
	uint32_t kept = 0;

	TACHO__SORT(r->absent, r->absent_count, compare_absent);
	for (uint32_t i = 0; i < r->absent_count; i++)
		if (!kept || compare_absent(&r->absent[kept - 1], &r->absent[i]) != 0)
			r->absent[kept++] = r->absent[i];
	r->absent_count = kept;
}

uint32_t tacho_read_absent_count(const struct tacho_reader *reader)
{
	return reader->absent_count;
}

const struct tacho_absent *tacho_read_absent(const struct tacho_reader *reader, uint32_t index)
{
	return index < reader->absent_count ? &reader->absent[index] : NULL;
}
