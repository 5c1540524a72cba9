/* The stretches of records of all inputs: their order, duplicates, limits, loading. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/columns.h"
#include "read/reader.h"

#define STATES_NEAR 64u	  /* stretches that a state is compared with */
#define OVERLAP_MAX 1024u /* a block of a dump may hold what an agent delivered in hundreds */

int tacho__stretch_add(struct tacho_reader *r, const struct tacho__stretch_info *s)
{
	if (TACHO__GROW(r->stretches, r->stretch_capacity, r->stretch_count + 1))
		return -ENOMEM;
	r->stretches[r->stretch_count] = *s;
	r->stretches[r->stretch_count].first_ns = s->pub.first_ns;
	r->stretches[r->stretch_count].last_ns = s->pub.last_ns;
	r->stretches[r->stretch_count++].pub.process = r->sources[s->source].process;
	return 0;
}

/* ----------------------------------------------------------------- loading */

static int is_damaged(const struct tacho__stretch_info *s, const struct tacho__records *out)
{
	const struct tacho_trace_events *h = &out->head;

	if (h->thread != s->pub.thread || h->stream != s->pub.stream ||
	    h->first_ns != s->first_ns || h->last_ns != s->last_ns)
		return 1;
	for (uint32_t i = 0; i < h->count; i++) {
		unsigned type = tacho_record_type(out->type_arg[i]);

		/* Those of fixed size have their words, or would not have been decoded. */
		if ((TACHO_EV_IS_VARIABLE(type) || type == TACHO_EV_RESUME) &&
		    tacho__record_is_bad(type, out->word_at[i + 1] - out->word_at[i]))
			return 1;
	}
	return 0;
}

static int has_count(const uint8_t *data, uint32_t size, uint32_t count)
{
	struct tacho_trace_events head;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	return head.count == count;
}

static int load_events(struct tacho_reader *r, struct tacho__stretch_info *s,
		       struct tacho__records *out)
{
	const uint8_t *data;
	uint32_t size;
	int err = tacho__block_load(r, s->source, s->offset, s->size, TACHO_BLOCK_EVENTS, &data,
				    &size);

	if (err)
		return err;
	/* Not after it is decoded: an index may list a large one with few events. */
	if (!has_count(data, size, s->count))
		err = -EBADMSG;
	else
		err = tacho__columns_decode(data, size, out);
	if (!err && is_damaged(s, out))
		err = -EBADMSG;
	if (err == -EBADMSG)
		tacho__problem(r, s->source, "damaged-block", s->offset, s->size,
			       "an EVENTS block does not hold what it says; %u records are lost",
			       s->count);
	if (err)
		return err;
	if (out->head.open_listed > out->head.open_count)
		out->head.open_listed = out->head.open_count;
	s->pub.sequence = out->head.sequence;
	s->prior = out->head.prior_records;
	s->known = 1;
	return 0;
}

static void put_tails(const struct tacho__source *source, const struct tacho__stretch_info *s,
		      struct tacho__records *out)
{
	for (uint32_t i = 0; i < s->tail_count; i++) {
		const struct tacho__tail *t = &source->tails[s->tail_first + i];

		if (!out->head.count)
			out->head.first_ns = t->ns;
		tacho__records_put(out, t->ns, t->type_arg, t->word, t->words);
		out->head.last_ns = t->ns;
	}
}

static uint32_t tail_words(const struct tacho__source *source, const struct tacho__stretch_info *s)
{
	uint32_t words = 0;

	for (uint32_t i = 0; i < s->tail_count; i++)
		words += source->tails[s->tail_first + i].words;
	return words;
}

static int load_chunk(struct tacho_reader *r, struct tacho__stretch_info *s,
		      struct tacho__records *out)
{
	const struct tacho__source *source = &r->sources[s->source];
	uint32_t words = tail_words(source, s);
	const uint8_t *data = s->copy;
	uint32_t size = s->size;
	int err = 0;

	if (s->kind == TACHO__STRETCH_TAIL) {
		if (tacho__records_reserve(out, s->tail_count, words))
			return -ENOMEM;
		out->head = (struct tacho_trace_events){
			.size = sizeof(out->head),
			.thread = s->pub.thread,
			.first_ns = s->pub.first_ns,
			.last_ns = s->pub.last_ns,
		};
		out->word_at[0] = 0;
		put_tails(source, s, out);
		return 0;
	}
	if (s->kind == TACHO__STRETCH_CHUNK)
		err = tacho__block_load(r, s->source, s->offset, s->size, TACHO_BLOCK_CHUNK, &data,
					&size);
	if (!err)
		err = tacho__chunk_decode(data, size, &source->timebase, s->tail_count, words, out);
	if (!err)
		put_tails(source, s, out);
	return err;
}

uint32_t tacho__stretch_count(const struct tacho_reader *reader)
{
	return reader->stretch_count;
}

const struct tacho__stretch *tacho__stretch_at(const struct tacho_reader *reader, uint32_t index)
{
	return index < reader->stretch_count ? &reader->stretches[index].pub : NULL;
}

int tacho__stretch_load(struct tacho_reader *reader, uint32_t index, struct tacho__records *out)
{
	struct tacho__stretch_info *s;
	int err;

	if (index >= reader->stretch_count)
		return -EINVAL;
	s = &reader->stretches[index];
	out->head.count = 0;
	if (s->bad)
		return -EBADMSG;
	if (s->kind == TACHO__STRETCH_EVENTS)
		err = load_events(reader, s, out);
	else
		err = load_chunk(reader, s, out);
	if (err) {
		out->head.count = 0;
		s->bad = err == -EBADMSG;
		return err;
	}
	if (s->kept && s->kept < out->head.count)
		tacho__records_keep(out, s->kept);
	tacho__records_cut(out, reader->from_ns, reader->to_ns);
	return 0;
}

/* ------------------------------------------------------------------- order */

static int compare_streams(const struct tacho__stretch_info *a, const struct tacho__stretch_info *b)
{
	if (a->pub.process != b->pub.process)
		return a->pub.process < b->pub.process ? -1 : 1;
	if (a->pub.thread != b->pub.thread)
		return a->pub.thread < b->pub.thread ? -1 : 1;
	return (int)a->pub.stream - (int)b->pub.stream;
}

/* Of one stream by time, which is the order of its sequence, but is always known. */
static int compare(const void *va, const void *vb)
{
	const struct tacho__stretch_info *a = va, *b = vb;
	int c = a->hidden - b->hidden;

	if (!c)
		c = compare_streams(a, b);
	if (c)
		return c;
	if (a->pub.first_ns != b->pub.first_ns)
		return a->pub.first_ns < b->pub.first_ns ? -1 : 1;
	if (a->pub.last_ns != b->pub.last_ns)
		return a->pub.last_ns < b->pub.last_ns ? -1 : 1;
	if (a->pub.sequence != b->pub.sequence)
		return a->pub.sequence < b->pub.sequence ? -1 : 1;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static void drop(struct tacho__stretch_info *s)
{
	free(s->copy);
	s->copy = NULL;
	s->bad = 1;
}

/* Those that are hidden come last. */
static void order(struct tacho_reader *r)
{
	uint32_t all = r->stretch_count + r->stretch_hidden;

	TACHO__SORT(r->stretches, all, compare);
	for (r->stretch_hidden = 0; r->stretch_hidden < all; r->stretch_hidden++)
		if (!r->stretches[all - r->stretch_hidden - 1].hidden)
			break;
	r->stretch_count = all - r->stretch_hidden;
}

static void sort(struct tacho_reader *r)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < r->stretch_count; i++) {
		if (r->stretches[i].bad)
			drop(&r->stretches[i]);
		else
			r->stretches[kept++] = r->stretches[i];
	}
	r->stretch_count = kept;
	order(r);
}

/* Of one stream: whether `b` was delivered after `a`. */
static int is_later(const struct tacho_reader *r, const struct tacho__stretch_info *b,
		    const struct tacho__stretch_info *a)
{
	if (a->source == b->source)
		return b->offset > a->offset;
	return r->sources[b->source].segment > r->sources[a->source].segment;
}

/*
 * A stretch without records says what a thread was doing when a segment began, before all that
 * is in this and later ones. On a machine that is busy enough a record is stored long after its
 * time was taken: then the state, which was taken in between, must not come after it.
 */
static void place_states(struct tacho_reader *r)
{
	int moved = 0;

	for (uint32_t i = 0; i < r->stretch_count; i++) {
		struct tacho__stretch_info *s = &r->stretches[i];

		if (s->kind != TACHO__STRETCH_EVENTS || s->count)
			continue;
		for (uint32_t k = i; k && i - k < STATES_NEAR; k--) {
			const struct tacho__stretch_info *p = &r->stretches[k - 1];

			if (compare_streams(p, s))
				break;
			if (!is_later(r, p, s) || p->pub.first_ns >= s->pub.first_ns)
				continue;
			s->pub.first_ns = s->pub.last_ns = p->pub.first_ns;
			moved = 1;
		}
	}
	if (moved)
		sort(r);
}

/* Sequence and numbers of a stretch of which only the index was read. */
static int learn(struct tacho_reader *r, struct tacho__stretch_info *s)
{
	struct tacho_trace_events head;
	const uint8_t *data;
	uint32_t size;
	int err;

	if (s->known || s->bad)
		return 0;
	err = tacho__block_load(r, s->source, s->offset, s->size, TACHO_BLOCK_EVENTS, &data, &size);
	if (err == -EBADMSG || (!err && size < sizeof(head))) {
		drop(s);
		return 0;
	}
	if (err)
		return err;
	memcpy(&head, data, sizeof(head));
	s->pub.sequence = head.sequence;
	s->prior = head.prior_records;
	s->known = 1;
	return 0;
}

/*
 * Two stretches of one stream that hold (some of) the same records, or of which one has none and
 * tells of a moment within the other: of those that are in both one stays. In two files a block
 * may begin with different chunks, so that the sequence says nothing; a file has a record once.
 */
static void part(struct tacho__stretch_info *a, struct tacho__stretch_info *b)
{
	int same = a->pub.sequence == b->pub.sequence, empty = !a->count || !b->count;
	struct tacho__stretch_info *first = b->prior < a->prior ? b : a;
	struct tacho__stretch_info *second = first == a ? b : a;
	uint64_t before = second->prior - first->prior; /* records that only the first has */

	if (!a->known || !b->known || a->bad || b->bad || (!same && a->source == b->source))
		return;
	if (empty ? !same && before > first->count : before >= first->count)
		return;
	if (empty || !before || second->count <= first->count - before)
		drop(b->count > a->count ? a : b);
	else if (!first->kept || before < first->kept)
		first->kept = (uint32_t)before;
}

static int near(const struct tacho__stretch_info *a, const struct tacho__stretch_info *b)
{
	return b->pub.first_ns <= a->pub.last_ns ||
	       b->pub.first_ns - a->pub.last_ns <= TACHO__SAME_NS;
}

/*
 * Stretches that are there twice lie next to each other in time, so each is compared with those
 * that begin before it ends; a hostile input that makes all of them overlap is compared with the
 * next OVERLAP_MAX only.
 */
static int drop_duplicates(struct tacho_reader *r)
{
	for (uint32_t i = 0; i < r->stretch_count; i++) {
		struct tacho__stretch_info *a = &r->stretches[i];

		for (uint32_t k = i + 1; k < r->stretch_count && k <= i + OVERLAP_MAX && !a->bad;
		     k++) {
			struct tacho__stretch_info *b = &r->stretches[k];
			int err;

			if (compare_streams(a, b) || !near(a, b))
				break;
			/* An index lists a block once. */
			if (b->bad || (a->source == b->source && !a->known && !b->known))
				continue;
			err = learn(r, a);
			if (!err)
				err = learn(r, b);
			if (err)
				return err;
			part(a, b);
		}
	}
	sort(r);
	return 0;
}

/* ------------------------------------------------------------------ limits */

/* A stream without records in the window still tells what its thread was doing then:
   `index` is its last stretch before. */
static int keep_state(struct tacho_reader *r, uint32_t index, int goes_on, int *keep)
{
	struct tacho__stretch_info *s = &r->stretches[index];
	const struct tacho_thread *t;
	struct tacho__records records = {0};
	int err;

	*keep = 0;
	t = tacho_read_thread_by_number(r, s->pub.process, s->pub.thread);
	if (!t || (!t->live && !goes_on) || s->pub.stream)
		return 0;
	err = tacho__stretch_load(r, index, &records);
	if (!err)
		*keep = records.head.open_count || (records.head.flags & TACHO_CHUNK_PARKED);
	tacho__records_free(&records);
	return err == -EBADMSG ? 0 : err;
}

static void become_state(struct tacho__stretch_info *s, uint64_t ns)
{
	s->is_state = 1;
	s->state_first_ns = s->pub.first_ns;
	s->state_last_ns = s->pub.last_ns;
	s->pub.first_ns = s->pub.last_ns = ns;
}

static int hide_outside(struct tacho_reader *r)
{
	for (uint32_t i = 0; i < r->stretch_count; i++) {
		struct tacho__stretch_info *s = &r->stretches[i];
		int goes_on = i + 1 < r->stretch_count && !compare_streams(s, s + 1);
		int last = !goes_on || s[1].pub.first_ns > r->to_ns;
		int keep = 0;

		if (s->pub.first_ns > r->to_ns) {
			s->hidden = 1;
		} else if (s->pub.last_ns < r->from_ns) {
			int err = last ? keep_state(r, i, goes_on, &keep) : 0;

			if (err)
				return err;
			if (keep)
				become_state(s, r->from_ns);
			else
				s->hidden = 1;
		}
	}
	order(r);
	return 0;
}

static void choose_limits(struct tacho_reader *r)
{
	uint64_t last;

	r->from_ns = r->options.from_ns;
	r->to_ns = UINT64_MAX;
	last = tacho__read_last_ns(r);
	if (r->options.to_ns)
		r->to_ns = r->options.to_ns;
	if (r->options.last_ns && last > r->options.last_ns &&
	    last - r->options.last_ns > r->from_ns)
		r->from_ns = last - r->options.last_ns;
}

static int apply_limits(struct tacho_reader *r)
{
	choose_limits(r);
	return r->from_ns || r->to_ns != UINT64_MAX ? hide_outside(r) : 0;
}

int tacho__read_limit(struct tacho_reader *r, uint64_t from_ns, uint64_t to_ns)
{
	tacho__merge_free(r);
	r->options.from_ns = from_ns;
	r->options.to_ns = to_ns;
	r->options.last_ns = 0;
	for (uint32_t i = 0; i < r->stretch_count + r->stretch_hidden; i++) {
		struct tacho__stretch_info *s = &r->stretches[i];

		s->hidden = 0;
		if (s->is_state) {
			s->is_state = 0;
			s->pub.first_ns = s->state_first_ns;
			s->pub.last_ns = s->state_last_ns;
		}
	}
	order(r);
	return apply_limits(r);
}

int tacho__read_goes_on(const struct tacho_reader *r, uint32_t process, uint32_t thread)
{
	uint32_t count = r->to_ns == UINT64_MAX ? 0 : r->stretch_count + r->stretch_hidden;

	for (uint32_t i = 0; i < count; i++) {
		const struct tacho__stretch *s = &r->stretches[i].pub;

		if (s->process == process && (!thread || s->thread == thread) &&
		    s->last_ns > r->to_ns)
			return 1;
	}
	return 0;
}

/* Threads whose entry in the table was taken by another, or is damaged. What the table says
   is settled, and newer than what the newest stretch says. */
static int add_threads(struct tacho_reader *r)
{
	const struct tacho__stretch_info *done = NULL;
	uint32_t known = r->thread_count, at = 0;

	for (uint32_t i = 0; i < r->stretch_count; i++) {
		const struct tacho__stretch_info *s = &r->stretches[i];
		struct tacho_thread t = {.process = s->pub.process, .number = s->pub.thread};
		char name[sizeof(s->name) + 1] = "";

		if ((i + 1 < r->stretch_count && !compare_streams(s, s + 1)) ||
		    (done && done->pub.process == t.process && done->pub.thread == t.number))
			continue;
		done = s;
		while (at < known && (r->threads[at]->process < t.process ||
				      (r->threads[at]->process == t.process &&
				       r->threads[at]->number < t.number)))
			at++;
		if (at < known && r->threads[at]->process == t.process &&
		    r->threads[at]->number == t.number && r->threads[at]->tid)
			continue;
		memcpy(name, s->name, sizeof(s->name));
		t.tid = s->tid;
		t.name = name;
		if (tacho__thread_add(r, &t))
			return -ENOMEM;
	}
	return 0;
}

int tacho__stretches_settle(struct tacho_reader *r)
{
	int err;

	sort(r);
	place_states(r);
	err = tacho__facts_settle(r);
	if (!err)
		err = add_threads(r);
	if (!err)
		err = tacho__facts_settle(r);
	if (!err)
		err = drop_duplicates(r);
	return err ? err : apply_limits(r);
}
