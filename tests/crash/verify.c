#include "verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/box.h"
#include "pattern.h"

#define STREAMS 3u
#define NO_SEQUENCE UINT32_MAX

struct stream {
	uint32_t sequence; /* NO_SEQUENCE: not known yet */
	uint8_t known;	   /* which record comes next is known */
	uint8_t met;	   /* there was a stretch before */
	uint32_t held;	   /* records since the last hole that do not tell their number */
	uint64_t next;	   /* number of the next record */
	uint64_t lowest;   /* after a hole: the number of the next record is between these */
	uint64_t highest;
	uint64_t handler_next[2]; /* lowest number that may come */
	struct {
		uint8_t type;
		uint32_t arg;
	} hold[PATTERN_HELD];
};

struct found {
	uint64_t count, first, last;
	uint32_t thread; /* main sequences: that recorded it */
};

struct work {
	struct verify *v;
	struct tacho_reader *reader;
	struct stream *streams; /* by thread number and stream */
	uint32_t stream_count;
	struct found *found; /* by sequence */
};

__attribute__((format(printf, 2, 3))) static int wrong(struct verify *v, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(v->why, sizeof(v->why), format, args);
	va_end(args);
	return 1;
}

static struct stream *stream_of(struct work *w, const struct tacho_event *e)
{
	uint64_t at = (uint64_t)e->thread * STREAMS + e->stream;

	if (e->stream >= STREAMS || e->thread > 1u << 20)
		return NULL;
	if (at >= w->stream_count) {
		uint32_t count = (uint32_t)(at + 1) * 2;

		w->streams = realloc(w->streams, count * sizeof(*w->streams));
		if (!w->streams)
			abort();
		memset(w->streams + w->stream_count, 0,
		       (count - w->stream_count) * sizeof(*w->streams));
		for (uint32_t i = w->stream_count; i < count; i++)
			w->streams[i].sequence = NO_SEQUENCE;
		w->stream_count = count;
	}
	return &w->streams[at];
}

/* ------------------------------------------------------------------ events */

static int take_resume(struct work *w, struct stream *s, const struct tacho_event *e)
{
	const struct tacho_resume_info *r = e->resume;

	if (r->dropped)
		return wrong(w->v, "%u records of thread %u were dropped", r->dropped, e->thread);
	if (!!r->first == !!s->met)
		return wrong(w->v, "RESUME of thread %u says first %u at the wrong time", e->thread,
			     r->first);
	w->v->holes += !r->first;
	w->v->missing += r->missing;
	s->met = 1;
	s->held = 0;
	s->lowest = s->next;
	s->highest = r->first ? UINT64_MAX : s->next + r->missing;
	/* What handlers recorded in between is missing too, and not known. */
	if (!(w->v->flags & VERIFY_SIGNALS))
		s->lowest = r->first ? 0 : s->highest;
	s->known = 0;
	return 0;
}

static int take_handler(struct work *w, struct stream *s, const struct tacho_event *e,
			uint32_t sequence, uint64_t n)
{
	uint64_t *next = &s->handler_next[sequence % 3 - 1];
	const char *why = pattern_differs(w->reader, e, sequence, n, 1);

	if (why)
		return wrong(w->v, "record %llu of handler sequence %u is %s",
			     (unsigned long long)n, sequence, why);
	if (n < *next)
		return wrong(w->v, "record %llu of handler sequence %u comes twice or late",
			     (unsigned long long)n, sequence);
	*next = n + 1;
	w->found[sequence].count++;
	if (n + 1 > w->found[sequence].last)
		w->found[sequence].last = n + 1;
	w->v->events++;
	w->v->nested += e->stream >= TACHO_STREAM_SIGNAL;
	return 0;
}

/* The first record after a hole that tells its number: those before it follow from that. */
static int settle(struct work *w, struct stream *s, const struct tacho_event *e, uint32_t sequence,
		  uint64_t n)
{
	struct found *f = &w->found[sequence];
	uint64_t from = n - s->held;

	if (n < s->held)
		return wrong(w->v, "%u records before record %llu of sequence %u", s->held,
			     (unsigned long long)n, sequence);
	if (s->sequence != NO_SEQUENCE && s->sequence != sequence)
		return wrong(w->v, "thread %u has records of sequences %u and %u", e->thread,
			     s->sequence, sequence);
	if (f->thread && f->thread != e->thread)
		return wrong(w->v, "sequence %u is in threads %u and %u", sequence, f->thread,
			     e->thread);
	if (from < s->lowest || from > s->highest)
		return wrong(
			w->v,
			"sequence %u goes on with record %llu after a hole, expected %llu to %llu",
			sequence, (unsigned long long)from, (unsigned long long)s->lowest,
			(unsigned long long)s->highest);
	s->sequence = sequence;
	f->thread = e->thread;
	s->next = from;
	s->known = 1;
	if (!f->count)
		f->first = from;
	for (uint32_t i = 0; i < s->held; i++) {
		struct tacho_event held = {
			.process = e->process, .type = s->hold[i].type, .arg = s->hold[i].arg};
		const char *why = pattern_differs(w->reader, &held, sequence, s->next++,
						  !(w->v->flags & VERIFY_CUT));

		if (why)
			return wrong(w->v, "record %llu of sequence %u is %s",
				     (unsigned long long)s->next - 1, sequence, why);
		f->count++;
		w->v->events++;
	}
	return 0;
}

static int take_main(struct work *w, struct stream *s, const struct tacho_event *e)
{
	struct found *f = &w->found[s->sequence];
	const char *why =
		pattern_differs(w->reader, e, s->sequence, s->next, !(w->v->flags & VERIFY_CUT));

	if (why)
		return wrong(w->v, "record %llu of sequence %u (thread %u) is %s",
			     (unsigned long long)s->next, s->sequence, e->thread, why);
	s->next++;
	f->count++;
	f->last = s->next;
	w->v->events++;
	return 0;
}

static int take_hist(struct work *w, const struct tacho_event *e)
{
	for (uint32_t i = 4; i < e->words; i++)
		w->v->polls_counted += e->word[i] & 0xffffffffffffu;
	return 0;
}

static int take_event(struct work *w, const struct tacho_event *e)
{
	struct stream *s = stream_of(w, e);
	uint32_t sequence;
	uint64_t n;
	int tells;

	if (!s)
		return wrong(w->v, "an event of thread %u, stream %u", e->thread, e->stream);
	if (e->type == TACHO_EV_RESUME)
		return take_resume(w, s, e);
	if (e->type == TACHO_EV_POLL_HIST)
		return take_hist(w, e);
	if (e->type == TACHO_EV_TRIGGER)
		return 0;
	tells = pattern_tells(w->reader, e, &sequence, &n);
	if (w->v->flags & VERIFY_OTHERS &&
	    (!tells || sequence < w->v->first || sequence >= w->v->end)) {
		w->v->polls_recorded += e->type == TACHO_EV_POLL_BEGIN;
		w->v->polls_open += e->type == TACHO_EV_POLL_BEGIN;
		w->v->polls_open -= e->type == TACHO_EV_POLL_END;
		return 0;
	}
	if (tells &&
	    (sequence < w->v->first || sequence >= w->v->end || sequence >= TRUTH_SEQUENCES))
		return wrong(w->v, "a record of sequence %u, which was never recorded here",
			     sequence);
	if (tells && !PATTERN_IS_MAIN(sequence))
		return take_handler(w, s, e, sequence, n);
	if (e->stream)
		return wrong(w->v, "a record of no handler in stream %u", e->stream);
	if (!s->met)
		return wrong(w->v, "thread %u begins without RESUME", e->thread);
	if (!s->known && tells && settle(w, s, e, sequence, n))
		return 1;
	if (s->known)
		return take_main(w, s, e);
	if (s->held == PATTERN_HELD)
		return wrong(w->v, "too many records of thread %u without a number", e->thread);
	s->hold[s->held].type = e->type;
	s->hold[s->held++].arg = e->arg;
	return 0;
}

/* ------------------------------------------------------------------ the end */

static uint64_t loss(const struct tacho_reader *reader, const char *name)
{
	struct tacho_loss_info info = {.size = sizeof(info)};

	for (uint32_t i = 0; !tacho_read_loss(reader, 0, i, &info); i++)
		if (!strcmp(info.name, name))
			return info.count;
	return 0;
}

static int check_losses(struct work *w)
{
	static const char *const none[] = {"no_chunk", "no_thread", "nesting",	"record_big",
					   "grow",     "abandoned", "defs_full"};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (loss(w->reader, none[i]))
			return wrong(w->v, "%llu times %s",
				     (unsigned long long)loss(w->reader, none[i]), none[i]);
	w->v->overwritten = loss(w->reader, "overwritten_chunks");
	return 0;
}

static int check_problems(struct work *w)
{
	for (uint32_t i = 0; i < tacho_read_problem_count(w->reader); i++) {
		const struct tacho_problem *p = tacho_read_problem(w->reader, i);

		if (w->v->flags & VERIFY_CUT &&
		    (!strcmp(p->name, "cut") || !strcmp(p->name, "no-definition")))
			continue;
		/* The victim lived for a few milliseconds. */
		if (!strcmp(p->name, "clock-rough"))
			continue;
		if (w->v->flags & VERIFY_LIVE && !strcmp(p->name, "overwritten-while-read")) {
			w->v->torn = 1;
			continue;
		}
		return wrong(w->v, "the reader reports %s: %s", p->name, p->text);
	}
	return 0;
}

/* One whose payload was not there when it was published has no name, or another one. */
static int check_definitions(struct work *w)
{
	uint32_t limit = tacho_read_definition_limit(w->reader, 0);

	for (uint32_t id = 1; id < limit; id++) {
		const struct tacho_definition *d = tacho_read_definition(w->reader, 0, id);

		if (d && d->def_class != TACHO_DEF_STACK && !d->name[0])
			return wrong(w->v, "definition %u of class %u has no name", id,
				     d->def_class);
	}
	return 0;
}

/* Victims that ask for a window say in its reason which of theirs it is. */
static int check_triggers(struct work *w)
{
	char reason[32];

	for (uint32_t i = 0; i < tacho_read_trigger_count(w->reader); i++) {
		const struct tacho_trigger_info *t = tacho_read_trigger(w->reader, i);

		snprintf(reason, sizeof(reason), TRUTH_REASON, t->number);
		if (strcmp(t->reason, reason))
			return wrong(w->v, "trigger %u has the reason %s", t->number, t->reason);
	}
	return 0;
}

/* Every slot of the box has been used: the next chunk takes the place of an old one, which may be
   gone before it is counted as overwritten. */
static int is_full(const char *path)
{
	struct tacho_box_super super;
	FILE *file = fopen(path, "rb");
	int full = file && fread(&super, sizeof(super), 1, file) == 1 &&
		   !memcmp(super.magic, TACHO_BOX_MAGIC, sizeof(super.magic)) &&
		   super.slots_used >= super.regions[TACHO_REGION_POOL].count;

	if (file)
		fclose(file);
	return full;
}

/* Sequence `i` against what is known of it. */
static int check_sequence(struct work *w, uint32_t i)
{
	const struct truth_sequence *t = &w->v->truth->sequence[i];
	const struct found *f = &w->found[i];
	uint64_t begun = __atomic_load_n(&t->begun, __ATOMIC_SEQ_CST);
	uint64_t done = __atomic_load_n(&t->done, __ATOMIC_SEQ_CST);

	if (f->last > begun)
		return wrong(w->v, "sequence %u has record %llu, and only %llu were begun", i,
			     (unsigned long long)f->last - 1, (unsigned long long)begun);
	if (w->v->flags & (VERIFY_LIVE | VERIFY_CUT))
		return 0;
	if (!w->v->overwritten) {
		/* A few records that tell no number may be all that there is of a sequence. */
		if (f->count ? f->first != 0 : done > PATTERN_HELD)
			return wrong(w->v, "the first record of sequence %u is missing", i);
		if (f->count && (f->count < done || (PATTERN_IS_MAIN(i) && f->count != f->last)))
			return wrong(w->v, "sequence %u has %llu records, %llu were committed", i,
				     (unsigned long long)f->count, (unsigned long long)done);
		return 0;
	}
	if (t->ended == TRUTH_ENDED_LATELY && f->count != done)
		return wrong(w->v, "of %llu young records of sequence %u there are %llu",
			     (unsigned long long)done, i, (unsigned long long)f->count);
	/* Old records made room; those of a thread that still records are young. */
	if (PATTERN_IS_MAIN(i) && !t->ended && (f->count || done > PATTERN_HELD) && f->last < done)
		return wrong(w->v, "sequence %u ends with record %llu, %llu were committed", i,
			     (unsigned long long)f->last, (unsigned long long)done);
	return 0;
}

/*
 * The window is as large as the box: of all that was recorded, no more is missing than
 * the recorder says it wrote over. What a thread was doing to one slot when it was
 * killed may be counted and still there, or the other way round.
 */
static int check_sum(struct work *w, uint32_t used)
{
	uint64_t begun = 0, done = 0, there = w->v->events, live = 0;
	uint64_t gone = loss(w->reader, "overwritten_records");
	uint64_t slack;

	for (uint32_t i = w->v->first; i < used; i++) {
		begun += w->v->truth->sequence[i].begun;
		done += w->v->truth->sequence[i].done;
		live += PATTERN_IS_MAIN(i) && !w->v->truth->sequence[i].ended;
		there += w->found[i].count ? 0 : PATTERN_HELD;
	}
	slack = (live + 1) * 65536 / 8;
	if (there + gone + slack < done || w->v->events + gone > begun + slack)
		return wrong(w->v, "%llu records are there and %llu overwritten, of %llu to %llu",
			     (unsigned long long)w->v->events, (unsigned long long)gone,
			     (unsigned long long)done, (unsigned long long)begun);
	return 0;
}

static int check_all(struct work *w, const char *path)
{
	uint32_t used = w->v->truth->used;

	if (used > w->v->end)
		used = w->v->end;
	if (check_problems(w) || check_definitions(w) || check_triggers(w) ||
	    (!(w->v->flags & VERIFY_CUT) && check_losses(w)))
		return 1;
	w->v->overwritten += is_full(path);
	for (uint32_t i = w->v->first; i < used; i++)
		if (check_sequence(w, i))
			return 1;
	if (w->v->flags & (VERIFY_LIVE | VERIFY_CUT | VERIFY_OTHERS))
		return 0;
	return check_sum(w, used);
}

int verify_file(struct verify *v, const char *path)
{
	struct work w = {.v = v};
	const struct tacho_event *event;
	char message[400] = "";
	int result;

	v->events = v->missing = v->holes = v->overwritten = v->nested = v->torn = 0;
	v->polls_counted = v->polls_recorded = v->polls_open = 0;
	v->why[0] = 0;
	result = tacho_read_open(&w.reader, path, NULL, message, sizeof(message));
	if (result) {
		wrong(v, "%s", message);
		return message[0] ? result
				  : wrong(v, "it cannot be opened and no message says why");
	}
	w.found = calloc(TRUTH_SEQUENCES, sizeof(*w.found));
	if (!w.found)
		abort();
	while (!result) {
		int more = tacho_read_next(w.reader, &event);

		if (more < 0)
			result = wrong(v, "tacho_read_next: %s", strerror(-more));
		if (more <= 0)
			break;
		result = take_event(&w, event);
	}
	if (!result)
		result = check_all(&w, path);
	v->crashes = tacho_read_crash_count(w.reader);
	tacho_read_close(w.reader);
	free(w.streams);
	free(w.found);
	return result;
}
