/*
 * Events in the order of time. Each stream is a cursor that has at most one stretch
 * loaded; a heap holds the cursors by the time of their next event. A stretch is
 * loaded when the time of the merge reaches its beginning and freed when its last
 * event was handed out, so memory is that of the stretches at one instant.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/reader.h"

/* What hostile input can make us hold at once beyond 64 times its own size. */
#define LOADED_MAX (256ull << 20)
#define SPARE_MAX 4u

struct loaded {
	struct tacho__records records;
	struct loaded *next; /* in the list of spare ones */
};

struct cursor {
	uint64_t key;	  /* time of the next event, or a bound of it */
	uint64_t last_ns; /* of the event before: time never runs back */
	struct loaded *loaded;
	uint32_t at;	    /* record in it */
	uint32_t next, end; /* stretches */
	uint32_t sequence;  /* of the stretch before */
	uint64_t expected;  /* records of the stream up to its end */
	uint64_t missing;
	uint8_t begun;	/* there was a stretch before */
	uint8_t resume; /* the next event is RESUME */
	uint8_t first;
};

struct tacho__merge {
	struct cursor *cursors;
	uint32_t cursor_count;
	uint32_t *heap;
	uint32_t heap_count;
	uint64_t rival;		/* the least key but that of the top */
	struct cursor *current; /* whose event was handed out, or NULL; it is at the top */
	uint64_t from_ns;	/* where the merge begins */
	uint64_t loaded_bytes;
	struct loaded *spare;
	uint32_t spare_count;
	struct tacho_resume_info resume;
};

/* -------------------------------------------------------------------- heap */

static int before(const struct tacho__merge *m, uint32_t a, uint32_t b)
{
	uint64_t ka = m->cursors[a].key, kb = m->cursors[b].key;

	/* Cursors are in the order of processes, threads and streams. */
	return ka != kb ? ka < kb : a < b;
}

static void sift_down(struct tacho__merge *m, uint32_t at)
{
	uint32_t moved = m->heap[at];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= m->heap_count)
			break;
		if (child + 1 < m->heap_count && before(m, m->heap[child + 1], m->heap[child]))
			child++;
		if (before(m, moved, m->heap[child]))
			break;
		m->heap[at] = m->heap[child];
		at = child;
	}
	m->heap[at] = moved;
}

/* After the top has got another key. */
static void sift_top(struct tacho__merge *m)
{
	if (m->heap_count)
		sift_down(m, 0);
	m->rival = UINT64_MAX;
	for (uint32_t i = 1; i < 3 && i < m->heap_count; i++)
		if (m->cursors[m->heap[i]].key < m->rival)
			m->rival = m->cursors[m->heap[i]].key;
}

static void remove_top(struct tacho__merge *m)
{
	m->heap[0] = m->heap[--m->heap_count];
	sift_top(m);
}

/* ----------------------------------------------------------------- cursors */

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t bytes_of(const struct loaded *l)
{
	return (uint64_t)l->records.capacity * 16 + (uint64_t)l->records.words_capacity * 8;
}

static struct loaded *take_spare(struct tacho__merge *m)
{
	struct loaded *l = m->spare;

	if (!l)
		return calloc(1, sizeof(*l));
	m->spare = l->next;
	m->spare_count--;
	m->loaded_bytes -= bytes_of(l);
	return l;
}

/* The bytes of a loaded stretch are counted, those of spare ones too. */
static void give_back(struct tacho__merge *m, struct loaded *l)
{
	if (m->spare_count < SPARE_MAX) {
		l->next = m->spare;
		m->spare = l;
		m->spare_count++;
		return;
	}
	m->loaded_bytes -= bytes_of(l);
	tacho__records_free(&l->records);
	free(l);
}

/* Compares the stretch just loaded with the one before it in its stream. */
static void find_hole(const struct tacho_reader *r, struct cursor *c,
		      const struct tacho_trace_events *head)
{
	const struct tacho__stretch_info *s = &r->stretches[c->next];
	int follows;

	c->missing = 0;
	c->first = !c->begun;
	c->resume = 1;
	if (c->begun) {
		if (head->prior_records > c->expected)
			c->missing = head->prior_records - c->expected;
		/* Two files need not begin their blocks with the same chunks. */
		follows = head->sequence == c->sequence + 1 ||
			  ((head->sequence == c->sequence || s->source != s[-1].source) &&
			   head->prior_records == c->expected);
		c->resume = c->missing || head->drops || !follows;
	}
	c->begun = 1;
	c->sequence = head->sequence;
	c->expected = head->prior_records + head->count;
}

/* Whether the stretch was recorded before the one that comes before it by its time. */
static int begins_before(const struct cursor *c, const struct tacho_trace_events *head,
			 const struct tacho__stretch_info *s)
{
	return head->sequence <= c->sequence && head->prior_records < c->expected &&
	       s->first_ns >= TACHO__SAME_NS && s[-1].first_ns <= s->first_ns - TACHO__SAME_NS;
}

/* Whether the stretch goes on from the one before it, from a time before the end of that. */
static int overlaps(const struct cursor *c, const struct tacho_trace_events *head,
		    const struct tacho__stretch_info *s)
{
	return head->sequence == c->sequence && head->prior_records == c->expected &&
	       s->source == s[-1].source && !s[-1].kept && s->count && s[-1].count &&
	       s[-1].last_ns > TACHO__SAME_NS && s->first_ns < s[-1].last_ns - TACHO__SAME_NS;
}

/*
 * Stretches of a stream are read in the order of their times. That this is not the order in which
 * they were recorded is told once. Clocks of two files may be apart by SAME_NS.
 */
static void look_at_clock(struct tacho_reader *r, const struct cursor *c,
			  const struct tacho_trace_events *head)
{
	const struct tacho__stretch_info *s = &r->stretches[c->next];
	struct tacho__process *p = r->processes[s->pub.process];

	if (p->clock_back || !c->begun || !(begins_before(c, head, s) || overlaps(c, head, s)))
		return;
	p->clock_back = 1;
	tacho__problem(r, s->source, "clock-back", s->offset, s->size,
		       "records of thread %u that were made later have earlier times: the clock "
		       "went back, and what lies between two times may be wrong",
		       s->pub.thread);
}

/* The next stretch of the cursor, or the end of it: 1 and its key, or 0. */
static int go_to_next(struct tacho_reader *r, struct cursor *c)
{
	c->at = 0;
	if (++c->next >= c->end)
		return 0;
	c->key = later(c->last_ns, r->stretches[c->next].pub.first_ns);
	return 1;
}

/* Time of the event at the cursor, whose stretch is loaded. */
static uint64_t event_ns(const struct tacho_reader *r, const struct cursor *c)
{
	const struct tacho__records *records = &c->loaded->records;
	uint64_t ns = r->stretches[c->next].pub.first_ns;

	if (!c->resume)
		ns = records->ns[c->at];
	else if (ns < r->merge->from_ns)
		ns = r->merge->from_ns;
	else if (records->head.count)
		ns = records->head.first_ns;
	return later(c->last_ns, ns);
}

static int load_bounded(struct tacho_reader *r, uint32_t index, struct loaded *l)
{
	struct tacho__merge *m = r->merge;
	struct tacho__stretch_info *s = &r->stretches[index];
	int err = tacho__stretch_load(r, index, &l->records);

	m->loaded_bytes += bytes_of(l);
	if (!err && m->loaded_bytes > LOADED_MAX + 64 * r->input_bytes) {
		tacho__problem(r, s->source, "too-much-at-once", s->offset, s->size,
			       "so many records of one instant are not held at once; %u records "
			       "were left out",
			       s->count);
		s->bad = 1;
		err = -EBADMSG;
	}
	return err;
}

/* 1: loaded, the key is that of its first event; 0: nothing to hand out in it. */
static int load(struct tacho_reader *r, struct cursor *c)
{
	struct tacho__merge *m = r->merge;
	struct loaded *l = take_spare(m);
	int cut = r->stretches[c->next].pub.first_ns < m->from_ns;
	struct tacho_trace_events *head;
	int err;

	if (!l)
		return -ENOMEM;
	err = load_bounded(r, c->next, l);
	if (err) {
		give_back(m, l);
		return err == -ENOMEM ? err : 0;
	}
	tacho__records_cut(&l->records, m->from_ns, UINT64_MAX);
	head = &l->records.head;
	look_at_clock(r, c, head);
	find_hole(r, c, head);
	/* Left out altogether by a cut: only what was open then is worth telling. */
	if (!head->count && cut)
		c->resume = head->open_count || (head->flags & TACHO_CHUNK_PARKED);
	if (!head->count && !c->resume) {
		give_back(m, l);
		return 0;
	}
	c->loaded = l;
	c->key = event_ns(r, c);
	return 1;
}

/* Moves the cursor whose event was handed out, which is at the top, to its next. */
static void advance(struct tacho_reader *r)
{
	struct tacho__merge *m = r->merge;
	struct cursor *c = m->current;

	m->current = NULL;
	if (c->resume)
		c->resume = 0;
	else
		c->at++;
	if (c->at < c->loaded->records.head.count) {
		c->key = event_ns(r, c);
	} else {
		give_back(m, c->loaded);
		c->loaded = NULL;
		if (!go_to_next(r, c)) {
			remove_top(m);
			return;
		}
	}
	sift_top(m);
}

/* ------------------------------------------------------------------ begin */

static int has_state_then(const struct tacho_reader *r, const struct tacho__stretch_info *s)
{
	const struct tacho_thread *t;

	t = tacho_read_thread_by_number(r, s->pub.process, s->pub.thread);
	return !s->pub.stream && t && t->live;
}

/* The cursor over stretches [first, end); 0 when it has nothing at or after `ns`. */
static int begin_cursor(const struct tacho_reader *r, struct cursor *c, uint32_t first,
			uint32_t end, uint64_t ns)
{
	*c = (struct cursor){.next = first, .end = end};
	while (c->next < end && r->stretches[c->next].pub.last_ns < ns)
		c->next++;
	if (c->next == end) {
		if (!has_state_then(r, &r->stretches[end - 1]))
			return 0;
		c->next = end - 1;
	}
	c->key = later(r->stretches[c->next].pub.first_ns, ns);
	return 1;
}

static int same_stream(const struct tacho__stretch *a, const struct tacho__stretch *b)
{
	return a->process == b->process && a->thread == b->thread && a->stream == b->stream;
}

static int is_left_out(const struct tacho_reader *r, const struct tacho__stretch *s)
{
	return r->only != UINT32_MAX && s->process != r->only;
}

void tacho__read_only(struct tacho_reader *r, uint32_t process)
{
	tacho__merge_free(r);
	r->only = process;
}

static int begin(struct tacho_reader *r, uint64_t ns)
{
	struct tacho__merge *m = calloc(1, sizeof(*m));
	uint32_t streams = 0, end;

	if (!m)
		return -ENOMEM;
	tacho__merge_free(r);
	r->merge = m;
	m->from_ns = later(ns, r->from_ns);
	for (uint32_t i = 0; i < r->stretch_count; i++)
		if (!i || !same_stream(&r->stretches[i - 1].pub, &r->stretches[i].pub))
			streams++;
	m->cursors = calloc((size_t)streams + 1, sizeof(*m->cursors));
	m->heap = calloc((size_t)streams + 1, sizeof(*m->heap));
	if (!m->cursors || !m->heap) {
		tacho__merge_free(r);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < r->stretch_count; i = end) {
		for (end = i + 1; end < r->stretch_count &&
				  same_stream(&r->stretches[i].pub, &r->stretches[end].pub);
		     end++)
			;
		if (is_left_out(r, &r->stretches[i].pub))
			continue;
		if (begin_cursor(r, &m->cursors[m->cursor_count], i, end, m->from_ns))
			m->heap[m->heap_count++] = m->cursor_count++;
	}
	for (uint32_t i = m->heap_count / 2; i-- > 0;)
		sift_down(m, i);
	sift_top(m);
	return 0;
}

void tacho__merge_free(struct tacho_reader *r)
{
	struct tacho__merge *m = r->merge;

	if (!m)
		return;
	for (uint32_t i = 0; i < m->cursor_count; i++) {
		if (m->cursors[i].loaded) {
			tacho__records_free(&m->cursors[i].loaded->records);
			free(m->cursors[i].loaded);
		}
	}
	while (m->spare) {
		struct loaded *next = m->spare->next;

		tacho__records_free(&m->spare->records);
		free(m->spare);
		m->spare = next;
	}
	free(m->cursors);
	free(m->heap);
	free(m);
	r->merge = NULL;
}

/* -------------------------------------------------------------------- next */

static void fill_resume(struct tacho_resume_info *to, const struct cursor *c)
{
	const struct tacho__records *records = &c->loaded->records;
	const struct tacho_trace_events *head = &records->head;

	*to = (struct tacho_resume_info){
		.missing = c->missing,
		.dropped = head->drops,
		.first = c->first,
		.loop = head->loop,
		.parked = (head->flags & TACHO_CHUNK_PARKED) != 0,
		.open_count = head->open_count,
		.open_listed = head->open_listed,
	};
	if (to->parked)
		to->parked_ns = head->park_ns;
	for (uint32_t i = 0; i < head->open_listed && i < TACHO_OPEN_MAX; i++)
		to->open[i] =
			(struct tacho_open_item){records->open[i].id, records->open[i].what,
						 records->open[i].task, records->open[i].since};
}

/* What differs between two events of a stream. */
static inline void fill_record(struct tacho_event *event, const struct cursor *c)
{
	const struct tacho__records *records = &c->loaded->records;
	uint32_t type_arg = records->type_arg[c->at], word = records->word_at[c->at];

	event->ns = c->key;
	event->type = (uint8_t)type_arg;
	event->arg = type_arg >> 8;
	event->words = records->word_at[c->at + 1] - word;
	event->word = event->words ? records->words + word : NULL;
}

/* The event at the cursor. */
static void fill_event(struct tacho_reader *r, struct cursor *c)
{
	const struct tacho__stretch *s = &r->stretches[c->next].pub;

	c->last_ns = c->key;
	r->event = (struct tacho_event){
		.ns = c->key,
		.process = s->process,
		.thread = s->thread,
		.stream = s->stream,
	};
	if (c->resume) {
		fill_resume(&r->merge->resume, c);
		r->event.type = TACHO_EV_RESUME;
		r->event.resume = &r->merge->resume;
	} else {
		fill_record(&r->event, c);
	}
}

/* Most often the stream of the event before goes on; else 0. */
static inline int goes_on(struct tacho_reader *r)
{
	const struct tacho__merge *m = r->merge;
	struct cursor *c = m->current;
	const struct tacho__records *records = &c->loaded->records;
	uint64_t ns;

	if (c->resume || c->at + 1 >= records->head.count)
		return 0;
	ns = later(c->last_ns, records->ns[c->at + 1]);
	if (ns >= m->rival)
		return 0;
	c->at++;
	c->key = c->last_ns = ns;
	fill_record(&r->event, c);
	return 1;
}

/* Kept apart from goes_on, which most events need nothing but. */
static __attribute__((noinline)) int next(struct tacho_reader *reader,
					  const struct tacho_event **event)
{
	int error = reader->merge ? 0 : begin(reader, 0);
	struct tacho__merge *m = reader->merge;

	*event = NULL;
	if (error)
		return error;
	if (m->current)
		advance(reader);
	while (m->heap_count) {
		struct cursor *c = &m->cursors[m->heap[0]];
		int loaded;

		if (c->loaded) {
			m->current = c;
			fill_event(reader, c);
			*event = &reader->event;
			return 1;
		}
		loaded = load(reader, c);
		if (loaded < 0)
			return loaded;
		if (!loaded && !go_to_next(reader, c))
			remove_top(m);
		else
			sift_top(m);
	}
	return 0;
}

int tacho_read_next(struct tacho_reader *reader, const struct tacho_event **event)
{
	if (!reader->merge || !reader->merge->current || !goes_on(reader))
		return next(reader, event);
	*event = &reader->event;
	return 1;
}

int tacho_read_seek(struct tacho_reader *reader, uint64_t ns)
{
	return begin(reader, ns);
}

struct tacho__rights tacho__read_rights(const struct tacho_reader *reader, uint32_t process,
					const char **path)
{
	const struct tacho_process *p = &reader->processes[process]->pub;
	/* A trace of root's tells of processes of users, and names their files. */
	struct tacho__rights user = {p->uid, TACHO__NOBODY, UINT64_MAX}, r = {0, 0, UINT64_MAX};

	*path = NULL;
	for (uint32_t i = 0; i < reader->source_count; i++)
		if (reader->sources[i].process == process) {
			tacho__rights_lower(&r, &reader->sources[i].input->rights);
			if (p->taken_by == TACHO_TAKEN_BOX)
				*path = reader->sources[i].input->path;
		}
	tacho__rights_lower(&r, &user);
	return r;
}

void tacho__read_lower(struct tacho_reader *reader, const struct tacho__rights *rights)
{
	for (uint32_t i = 0; i < reader->source_count; i++)
		tacho__rights_lower(&reader->sources[i].input->rights, rights);
}

uint64_t tacho__read_last_ns(const struct tacho_reader *reader)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < reader->stretch_count; i++)
		if (!is_left_out(reader, &reader->stretches[i].pub))
			last = later(last, reader->stretches[i].pub.last_ns);
	return last < reader->to_ns ? last : reader->to_ns;
}

int tacho_read_window(struct tacho_reader *reader, uint64_t *first_ns, uint64_t *last_ns)
{
	uint64_t first = UINT64_MAX, last = tacho__read_last_ns(reader);

	for (uint32_t i = 0; i < reader->stretch_count; i++) {
		const struct tacho__stretch *s = &reader->stretches[i].pub;

		if (is_left_out(reader, s))
			continue;
		if (s->first_ns < first)
			first = s->first_ns;
		last = later(last, reader->processes[s->process]->pub.until_ns);
	}
	if (first == UINT64_MAX)
		return -ENODATA;
	*first_ns = later(first, reader->from_ns);
	*last_ns = last < reader->to_ns ? last : reader->to_ns;
	return 0;
}
