/* Processes, threads, losses, triggers and crashes: what is not events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/reader.h"

#define CRASH_LASTS_NS UINT64_C(1000000000) /* from a crash to the end of the process, at most */

/* --------------------------------------------------------------- processes */

static int same_process(const struct tacho_process *a, const struct tacho_process *b)
{
	return a->pid == b->pid && a->start_time == b->start_time &&
	       a->created_mono_ns == b->created_mono_ns &&
	       !memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id));
}

static void no_nulls(struct tacho_process *p)
{
	const char **texts[] = {&p->exe,    &p->comm, &p->service,	&p->host,    &p->version,
				&p->reason, &p->why,  &p->command_line, &p->imported};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!*texts[i])
			*texts[i] = "";
}

/* How much is known of an end: the more, the higher. */
static int end_rank(const struct tacho_process *p)
{
	switch (p->end_how) {
	case TACHO_END_EXITED:
	case TACHO_END_KILLED:
	case TACHO_END_EXEC:
		return 3;
	case TACHO_END_GONE:
		return 2;
	case TACHO_END_RUNNING:
		return 1;
	default:
		return 0;
	}
}

static void copy_end(struct tacho_process *to, const struct tacho_process *from)
{
	to->end_how = from->end_how;
	to->end_status = from->end_status;
	to->end_flags = from->end_flags;
	to->end_ns = from->end_ns;
}

/* Of two files of one process the newer one tells, of its end the one that knows more. Why somebody wanted one of them is a
   fact of its own, and stays when the other was merely next. */
static void take_newer(struct tacho_process *old, const struct tacho_process *p)
{
	const char *why = p->why && p->why[0] ? p->why : NULL;
	const struct tacho_process was = *old;
	int newer = p->taken_mono_ns >= old->taken_mono_ns;

	if (newer) {
		*old = *p;
		no_nulls(old);
		if (!why) {
			old->why = was.why;
			old->why_mono_ns = was.why_mono_ns;
		}
	} else if (why && !old->why[0]) {
		old->why = why;
		old->why_mono_ns = p->why_mono_ns;
	}
	if (newer ? end_rank(&was) > end_rank(p) : end_rank(p) > end_rank(&was))
		copy_end(old, newer ? &was : p);
}

int tacho__process_add(struct tacho_reader *r, const struct tacho_process *p, int known,
		       uint32_t *index)
{
	struct tacho__process *fresh;

	for (uint32_t i = 0; known && i < r->process_count; i++) {
		struct tacho__process *old = r->processes[i];

		if (!old->known || !same_process(&old->pub, p))
			continue;
		take_newer(&old->pub, p);
		*index = i;
		return 0;
	}
	if (TACHO__GROW(r->processes, r->process_capacity, r->process_count + 1))
		return -ENOMEM;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	fresh->pub = *p;
	fresh->known = known;
	no_nulls(&fresh->pub);
	*index = r->process_count;
	r->processes[r->process_count++] = fresh;
	return 0;
}

int tacho__process_wall(struct tacho__process *p, uint64_t mono_ns, uint64_t real_ns)
{
	if (!mono_ns || !real_ns)
		return 0;
	if (TACHO__GROW(p->walls, p->wall_capacity, p->wall_count + 1))
		return -ENOMEM;
	p->walls[p->wall_count++] = (struct tacho__wall){mono_ns, real_ns};
	return 0;
}

static int compare_walls(const void *va, const void *vb)
{
	const struct tacho__wall *a = va, *b = vb;

	if (a->mono_ns != b->mono_ns)
		return a->mono_ns < b->mono_ns ? -1 : 1;
	return a->real_ns < b->real_ns ? -1 : a->real_ns > b->real_ns;
}

uint32_t tacho_read_process_count(const struct tacho_reader *reader)
{
	return reader->process_count;
}

const struct tacho_process *tacho_read_process(const struct tacho_reader *reader, uint32_t process)
{
	return process < reader->process_count ? &reader->processes[process]->pub : NULL;
}

uint64_t tacho_read_real_ns(const struct tacho_reader *reader, uint32_t process, uint64_t ns)
{
	const struct tacho__process *p;
	uint32_t low = 0, high;

	if (process >= reader->process_count || !reader->processes[process]->wall_count)
		return 0;
	p = reader->processes[process];
	/* CLOCK_REALTIME may be set at any moment: the last comparison before counts. */
	high = p->wall_count;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (p->walls[mid].mono_ns <= ns)
			low = mid;
		else
			high = mid;
	}
	return p->walls[low].real_ns + (ns - p->walls[low].mono_ns);
}

/* ----------------------------------------------------------------- threads */

static int compare_threads(const void *va, const void *vb)
{
	const struct tacho_thread *a = *(const struct tacho_thread *const *)va;
	const struct tacho_thread *b = *(const struct tacho_thread *const *)vb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

int tacho__thread_add(struct tacho_reader *r, const struct tacho_thread *t)
{
	struct tacho_thread *copy = tacho__arena_get(&r->arena, sizeof(*copy));

	if (!copy || TACHO__GROW(r->threads, r->thread_capacity, r->thread_count + 1))
		return -ENOMEM;
	*copy = *t;
	copy->name = tacho__arena_text(&r->arena, t->name, strlen(t->name));
	if (!copy->name)
		return -ENOMEM;
	r->threads[r->thread_count++] = copy;
	return 0;
}

/* Two entries of one thread, from two files or from the table and a chunk. */
static void join_threads(struct tacho_thread *to, const struct tacho_thread *from)
{
	if (!to->tid)
		to->tid = from->tid;
	/* The table, which alone knows the start, has the newest name. */
	if (from->name[0] && (from->start_ns || !to->start_ns || !to->name[0]))
		to->name = from->name;
	if (from->start_ns && (!to->start_ns || from->start_ns < to->start_ns))
		to->start_ns = from->start_ns;
	to->live |= from->live;
}

static void settle_threads(struct tacho_reader *r)
{
	uint32_t kept = 0;

	if (!r->thread_count)
		return;
	TACHO__SORT(r->threads, r->thread_count, compare_threads);
	for (uint32_t i = 0; i < r->thread_count; i++) {
		if (kept && !compare_threads(&r->threads[kept - 1], &r->threads[i]))
			join_threads(r->threads[kept - 1], r->threads[i]);
		else
			r->threads[kept++] = r->threads[i];
	}
	r->thread_count = kept;
}

uint32_t tacho_read_thread_count(const struct tacho_reader *reader)
{
	return reader->thread_count;
}

const struct tacho_thread *tacho_read_thread(const struct tacho_reader *reader, uint32_t index)
{
	return index < reader->thread_count ? reader->threads[index] : NULL;
}

const struct tacho_thread *tacho_read_thread_by_number(const struct tacho_reader *reader,
						       uint32_t process, uint32_t number)
{
	struct tacho_thread key = {.process = process, .number = number};
	struct tacho_thread *at = &key, **found;

	if (!reader->thread_count)
		return NULL;
	found = bsearch(&at, reader->threads, reader->thread_count, sizeof(*reader->threads),
			compare_threads);
	return found ? *found : NULL;
}

/* --------------------------------------------------- triggers and crashes */

static int compare_triggers(const void *va, const void *vb)
{
	const struct tacho_trigger_info *a = *(const struct tacho_trigger_info *const *)va;
	const struct tacho_trigger_info *b = *(const struct tacho_trigger_info *const *)vb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static int compare_crashes(const void *va, const void *vb)
{
	const struct tacho_crash_info *a = *(const struct tacho_crash_info *const *)va;
	const struct tacho_crash_info *b = *(const struct tacho_crash_info *const *)vb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->signal != b->signal)
		return a->signal < b->signal ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* Those that were survived behind the others, and each in the order of time. */
static int compare_moments(const void *va, const void *vb)
{
	const struct tacho_crash_info *a = *(const struct tacho_crash_info *const *)va;
	const struct tacho_crash_info *b = *(const struct tacho_crash_info *const *)vb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->survived != b->survived)
		return a->survived - b->survived;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return compare_crashes(va, vb);
}

/* Several files of one process tell of the same incident: one of them is enough, of
   crashes the one that knows most. */
static void settle_incidents(struct tacho_reader *r)
{
	uint32_t kept = 0;

	TACHO__SORT(r->triggers, r->trigger_count, compare_triggers);
	for (uint32_t i = 0; i < r->trigger_count; i++)
		if (!kept || compare_triggers(&r->triggers[kept - 1], &r->triggers[i]))
			r->triggers[kept++] = r->triggers[i];
	r->trigger_count = kept;
	kept = 0;
	TACHO__SORT(r->crashes, r->crash_count, compare_crashes);
	for (uint32_t i = 0; i < r->crash_count; i++) {
		int survived;

		if (!kept || compare_crashes(&r->crashes[kept - 1], &r->crashes[i])) {
			r->crashes[kept++] = r->crashes[i];
			continue;
		}
		survived = r->crashes[i]->survived | r->crashes[kept - 1]->survived;
		if (r->crashes[i]->frame_count > r->crashes[kept - 1]->frame_count)
			r->crashes[kept - 1] = r->crashes[i];
		r->crashes[kept - 1]->survived = survived;
	}
	r->crash_count = kept;
	TACHO__SORT(r->crashes, kept, compare_moments);
}

/* Counters of a newer recorder have no name here; what they count is not to be taken for
   nothing, nor for something else. */
static int settle_losses(struct tacho_reader *r)
{
	char name[] = "unknown_00";

	r->loss_count = TACHO_LOSS_COUNT;
	for (uint32_t i = TACHO_LOSS_COUNT; i < TACHO_LOSS_MAX; i++) {
		for (uint32_t p = 0; p < r->process_count; p++)
			if (r->processes[p]->losses[i])
				r->loss_count = i + 1;
		name[sizeof(name) - 3] = (char)('0' + i / 10);
		name[sizeof(name) - 2] = (char)('0' + i % 10);
		r->unknown_losses[i] = tacho__arena_text(&r->arena, name, strlen(name));
		if (!r->unknown_losses[i])
			return -ENOMEM;
	}
	return 0;
}

/* -------------------------------------------------------------------- ends */

/*
 * A crash record is the last that a process tells, unless its own handler went on. A handler that
 * crashes makes another one, which counts then. Returns the crash that ended the process, `before`
 * where this one did not.
 */
static const struct tacho_crash_info *end_by_crash(const struct tacho_reader *r,
						   const struct tacho_crash_info *c,
						   const struct tacho_crash_info *before)
{
	struct tacho_process *p = &r->processes[c->process]->pub;
	int again = before && before->process == c->process && before->tid == c->tid;

	if (c->survived || (p->end_how != TACHO_END_GONE && !again &&
			    (p->end_how != TACHO_END_RUNNING || p->taken_by != TACHO_TAKEN_CRASH)))
		return before;
	if (r->processes[c->process]->last_ns > c->ns + CRASH_LASTS_NS)
		return before;
	p->end_how = TACHO_END_KILLED;
	p->end_status = (uint32_t)c->signal;
	p->end_flags &= ~TACHO_END_EARLIER_BOOT;
	if (!p->end_ns || again || p->taken_by == TACHO_TAKEN_CRASH)
		p->end_ns = c->ns;
	return c;
}

/* A recorder that is paused, or was stopped, tells nothing of what comes after. */
static void settle_ends(struct tacho_reader *r)
{
	const struct tacho_crash_info *crash = NULL;

	for (uint32_t i = 0; i < r->stretch_count; i++) {
		const struct tacho__stretch *s = &r->stretches[i].pub;

		if (s->process < r->process_count && s->last_ns > r->processes[s->process]->last_ns)
			r->processes[s->process]->last_ns = s->last_ns;
	}
	for (uint32_t i = 0; i < r->crash_count; i++)
		crash = end_by_crash(r, r->crashes[i], crash);
	for (uint32_t i = 0; i < r->process_count; i++) {
		struct tacho_process *p = &r->processes[i]->pub;

		if (p->end_how > TACHO_END_EXEC)
			p->end_how = TACHO_END_UNTOLD; /* of a newer tacho */
		p->until_ns = p->end_how != TACHO_END_UNTOLD && p->end_how != TACHO_END_EXEC &&
					      p->state == TACHO_STATE_RECORDING
				      ? p->end_ns
				      : 0;
	}
}

int tacho__facts_settle(struct tacho_reader *r)
{
	settle_threads(r);
	settle_incidents(r);
	settle_ends(r);
	tacho__gaps_settle(r);
	tacho__absent_settle(r);
	for (uint32_t i = 0; i < r->process_count; i++) {
		struct tacho__process *p = r->processes[i];

		tacho__definitions_settle(&p->definitions);
		tacho__symbols_settle(p);
		TACHO__SORT(p->walls, p->wall_count, compare_walls);
	}
	return settle_losses(r);
}

uint32_t tacho_read_trigger_count(const struct tacho_reader *reader)
{
	return reader->trigger_count;
}

const struct tacho_trigger_info *tacho_read_trigger(const struct tacho_reader *reader,
						    uint32_t index)
{
	return index < reader->trigger_count ? reader->triggers[index] : NULL;
}

uint32_t tacho_read_crash_count(const struct tacho_reader *reader)
{
	return reader->crash_count;
}

const struct tacho_crash_info *tacho_read_crash(const struct tacho_reader *reader, uint32_t index)
{
	return index < reader->crash_count ? reader->crashes[index] : NULL;
}

/* ------------------------------------------------------ sources and losses */

uint32_t tacho_read_source_count(const struct tacho_reader *reader)
{
	(void)reader;
	return TACHO_SOURCE_COUNT;
}

int tacho_read_source(const struct tacho_reader *reader, uint32_t process, uint32_t index,
		      struct tacho_source_info *info)
{
	static const char *const names[TACHO_SOURCE_COUNT] = {
		[TACHO_SOURCE_API] = "api",
		[TACHO_SOURCE_CRASH_HANDLER] = "crash_handler",
		[TACHO_SOURCE_WAITS] = "waits",
		[TACHO_SOURCE_THREADS] = "threads",
		[TACHO_SOURCE_LOCKS] = "locks",
		[TACHO_SOURCE_CALLS] = "calls",
		[TACHO_SOURCE_LIBUV] = "libuv",
		[TACHO_SOURCE_LIBEVENT] = "libevent",
		[TACHO_SOURCE_CPU_SAMPLES] = "cpu_samples",
		[TACHO_SOURCE_SCHED] = "sched",
	};

	struct tacho_source_info answer = {0};

	if (process >= reader->process_count || index >= TACHO_SOURCE_COUNT)
		return -EINVAL;
	answer.name = names[index];
	answer.state = reader->processes[process]->sources[index].state;
	answer.error = reader->processes[process]->sources[index].error;
	return TACHO__ANSWER(info, &answer, state);
}

static const struct {
	const char *name, *text;
	int lossy;
} losses[TACHO_LOSS_COUNT] = {
	[TACHO_LOSS_NO_CHUNK] = {"no_chunk",
				 "records were dropped because every chunk of the box was in use",
				 1},
	[TACHO_LOSS_NO_THREAD] =
		{"no_thread",
		 "records were dropped because their thread had no place: the table "
		 "was full, or the box was just being made",
		 1},
	[TACHO_LOSS_NESTING] = {"nesting",
				"records were dropped because signal handlers nested too deeply",
				1},
	[TACHO_LOSS_DEFS_FULL] = {"defs_full",
				  "names became \"(names full)\" because no more of them fit", 1},
	[TACHO_LOSS_TEXT_CUT] = {"text_cut", "names or texts were too long and were cut", 1},
	[TACHO_LOSS_STACK_CUT] = {"stack_cut", "stacks were too deep and were cut", 1},
	[TACHO_LOSS_OVERWRITTEN_RECORDS] = {"overwritten_records",
					    "records made room for newer ones, as intended", 0},
	[TACHO_LOSS_OVERWRITTEN_CHUNKS] = {"overwritten_chunks",
					   "chunks made room for newer ones, as intended", 0},
	[TACHO_LOSS_MIN_AGE] = {"min_age",
				"chunks were overwritten although they were younger than min_age",
				1},
	[TACHO_LOSS_GROW] = {"grow", "parts of the box found no memory on its file system", 1},
	[TACHO_LOSS_CLOCK_BACK] = {"clock_back",
				   "clock reads were before the last one and were taken as equal",
				   0},
	[TACHO_LOSS_MODULES] = {"modules", "modules could not be read or kept", 1},
	[TACHO_LOSS_HIST_FULL] = {"hist_full",
				  "short polls were recorded in full because no histogram was left",
				  0},
	[TACHO_LOSS_RECORD_BIG] = {"record_big",
				   "records were dropped because they were larger than allowed", 1},
	[TACHO_LOSS_ABANDONED] = {"abandoned",
				  "streams were left in the middle of a record (longjmp, cancel)",
				  1},
	[TACHO_LOSS_UNWIND] = {"unwind", "stacks were asked for and could not be taken", 1},
	[TACHO_LOSS_NOT_SAMPLED] = {"not_sampled",
				    "threads were not sampled because they got no timer", 1},
};

uint32_t tacho_read_loss_count(const struct tacho_reader *reader)
{
	return reader->loss_count;
}

int tacho_read_loss(const struct tacho_reader *reader, uint32_t process, uint32_t index,
		    struct tacho_loss_info *info)
{
	struct tacho_loss_info answer = {0};

	if (process >= reader->process_count || index >= reader->loss_count ||
	    index >= TACHO_LOSS_MAX)
		return -EINVAL;
	answer.count = reader->processes[process]->losses[index];
	if (index < TACHO_LOSS_COUNT) {
		answer.name = losses[index].name;
		answer.text = losses[index].text;
		answer.lossy = losses[index].lossy;
	} else {
		answer.name = reader->unknown_losses[index];
		answer.text = "counted by a newer tacho: this one does not know what it means";
		answer.lossy = 1;
	}
	return TACHO__ANSWER(info, &answer, text);
}

/* ------------------------------------------------------------- definitions */

const struct tacho_definition *tacho_read_definition(const struct tacho_reader *reader,
						     uint32_t process, uint32_t id)
{
	if (process >= reader->process_count)
		return NULL;
	return tacho__definitions_get(&reader->processes[process]->definitions, id);
}

uint32_t tacho_read_definition_limit(const struct tacho_reader *reader, uint32_t process)
{
	if (process >= reader->process_count)
		return 0;
	return reader->processes[process]->definitions.limit;
}

const struct tacho_definition *tacho_read_module_at(const struct tacho_reader *reader,
						    uint32_t process, uint64_t address, uint64_t ns)
{
	if (process >= reader->process_count)
		return NULL;
	return tacho__definitions_module(&reader->processes[process]->definitions, address, ns);
}
