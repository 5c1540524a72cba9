/* All about one thing, and about all things of its kind. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "engine.h"
#include "model/place.h"
#include "text/names.h"
#include "text/text.h"
#include "known.h"
#include "things.h"

#define LONGEST 50u
#define NEAR 10000u /* things of a row that are looked at for one by its time */
#define BUCKETS 64u /* of lengths: powers of the root of two from 64 ns on */

/* The subject of a thing: a poll from its wake on, if so; else what its thread did meanwhile. */
static struct tacho__subject subject_of(struct known *t, int from_wake)
{
	struct tacho__subject s = {
		.type = t->type == TACHO__TRACK_POLLS	? TACHO__SUBJECT_POLL
			: t->type == TACHO__TRACK_SPANS ? TACHO__SUBJECT_SPAN
			: t->type == TACHO__TRACK_TASKS ? TACHO__SUBJECT_TASK
							: TACHO__SUBJECT_STRETCH,
		.from_ns = t->from_ns,
		.to_ns = t->to_ns,
		.process = t->process,
		.thread = t->holder ? t->holder : t->thread,
		.kind = t->what,
		.name = t->what,
		.task = t->task,
	};
	bool looks = t->type == TACHO__TRACK_SPANS || t->type == TACHO__TRACK_TASKS ||
		     (from_wake && t->type == TACHO__TRACK_POLLS);

	if (!looks || known_look(t) || !t->found)
		return s;
	if (t->type == TACHO__TRACK_SPANS) {
		s.thread = t->fact.span.at.thread;
		s.task = t->fact.span.at.task;
		s.span = t->fact.span.id;
	} else if (t->type == TACHO__TRACK_TASKS) {
		s.task = t->fact.task.task;
	} else if (t->fact.poll.wake_ns && t->fact.poll.wake_ns < s.from_ns) {
		s.type = TACHO__SUBJECT_WAKE;
		s.from_ns = t->fact.poll.wake_ns;
	}
	return s;
}

/* Whether it is of the time of one thread or task, and not of several. */
static int has_thread(const struct known *t)
{
	return t->type == TACHO__TRACK_SPANS || t->type == TACHO__TRACK_TASKS || t->thread ||
	       t->holder;
}

/* What the time of a thing went to, as `tacho blame --json` has it; null: there is none. */
EXPORT(page_blame)
const char *page_blame(uint32_t lane, uint32_t row, uint32_t index, uint32_t from_wake)
{
	static struct known t;
	struct tacho__blame *b = NULL;
	struct json j;
	int error = 0;

	if (known_at(&t, lane, row, index) && t.to_ns > t.from_ns && known_is_short(&t) &&
	    has_thread(&t)) {
		struct tacho__subject s = subject_of(&t, from_wake != 0);
		uint64_t before = known_before_ns(TACHO__BLAME_BEFORE_NS);
		struct tacho_reader *reader =
			page_again(s.from_ns > before ? s.from_ns - before : 0,
				   s.to_ns + TACHO__BLAME_AFTER_NS);

		b = reader ? tacho__blame_make(reader, &s, &error) : NULL;
	}
	answer_begin(&j);
	if (b)
		answer_blame(&j, page.reader, b);
	else
		json_null(&j);
	tacho__blame_free(b);
	return answer_end(&j);
}

/* Where a process crashed. */
EXPORT(page_crash) const char *page_crash(uint32_t index)
{
	const struct tacho_crash_info *c = tacho_read_crash(page.reader, index);
	struct tacho__place places[TACHO__PLACES_MAX];
	char signal[TEXT_SMALL];
	struct json j;

	answer_begin(&j);
	if (!c) {
		json_null(&j);
		return answer_end(&j);
	}
	json_object(&j);
	json_put_string(&j, "signal", name_signal(signal, c->signal));
	json_put_u64(&j, "tid", c->tid);
	json_put_known(&j, "thread_name", c->thread_name);
	json_put_address(&j, "address", c->address);
	json_put_known(&j, "said", c->said);
	json_put_bool(&j, "survived", c->survived != 0);
	json_put_u64(&j, "real_ns", tacho_read_real_ns(page.reader, c->process, c->ns));
	put_places(&j, "stack", places,
		   tacho__places_of_frames(page.reader, c->process, c->frames, c->frame_count, 1,
					   c->ns, places, TACHO__PLACES_MAX),
		   0);
	json_object_end(&j);
	return answer_end(&j);
}

/* ------------------------------------------------------------------- of a kind */

struct kind {
	uint64_t count, sum, buckets[BUCKETS];
	struct thing longest[LONGEST]; /* the longest first */
	uint32_t found;
};

static void add(struct kind *k, const struct thing *f)
{
	double at = f->ns > 64 ? 2 * log2((double)f->ns / 64) : 0;
	uint32_t i = k->found;

	k->count++;
	k->sum += f->ns;
	k->buckets[at < BUCKETS ? (uint32_t)at : BUCKETS - 1]++;
	if (i == LONGEST && f->ns <= k->longest[LONGEST - 1].ns)
		return;
	i = i == LONGEST ? LONGEST - 1 : k->found++;
	for (; i && k->longest[i - 1].ns < f->ns; i--)
		k->longest[i] = k->longest[i - 1];
	k->longest[i] = *f;
}

static void look_for(struct kind *k, uint32_t process, uint32_t type, uint32_t what)
{
	for (const struct tacho__lane *l = NULL; (l = tacho__table_next(&page.view.lanes, l));) {
		if (l->process != process)
			continue;
		for (uint32_t r = 0; r < l->row_count; r++) {
			const struct tacho__track *track = &l->rows[r].track;

			for (uint32_t i = 0; l->rows[r].type == type && i < track->count; i++) {
				struct tacho__thing t = tacho__track_at(track, i);
				struct thing f = {l->entry.index, r, i, t.begin_ns, t.ns};

				if (t.what == what)
					add(k, &f);
			}
		}
	}
}

/* All things of that type and name: how many, how long, and where the longest are. */
EXPORT(page_kind) const char *page_kind(uint32_t process, uint32_t type, uint32_t what)
{
	struct kind *k = calloc(1, sizeof(*k));
	struct json j;

	if (!k)
		abort();
	look_for(k, process, type, what);
	answer_begin(&j);
	json_object(&j);
	json_put_u64(&j, "count", k->count);
	json_put_u64(&j, "sum", k->sum);
	json_put_array(&j, "buckets");
	for (uint32_t i = 0; i < BUCKETS; i++)
		json_u64(&j, k->buckets[i]);
	json_array_end(&j);
	json_put_array(&j, "longest");
	for (uint32_t i = 0; i < k->found; i++)
		put_thing(&j, &k->longest[i]);
	json_array_end(&j);
	json_object_end(&j);
	free(k);
	return answer_end(&j);
}

/* ------------------------------------------------------------------- by its time */

/* How far a thing is from being from..to: 0 is exact. Of an instant: from beginning there. */
static uint64_t distance(const struct tacho__thing *t, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t end = t->begin_ns + t->ns;

	if (from_ns == to_ns)
		return t->begin_ns <= from_ns && end >= from_ns ? from_ns - t->begin_ns
								: UINT64_MAX;
	return (t->begin_ns > from_ns ? t->begin_ns - from_ns : from_ns - t->begin_ns) +
	       (end > to_ns ? end - to_ns : to_ns - end);
}

static void look_in(const struct tacho__lane *l, uint32_t row, uint64_t from_ns, uint64_t to_ns,
		    struct thing *best, uint64_t *least)
{
	const struct tacho__track *track = &l->rows[row].track;
	uint32_t i = tacho__track_after(track, from_ns);

	i = i ? i - 1 : 0;
	for (uint32_t k = 0; i < track->count && k < NEAR; i++, k++) {
		struct tacho__thing t = tacho__track_at(track, i);
		uint64_t d = distance(&t, from_ns, to_ns);

		if (t.begin_ns > to_ns)
			break;
		if (d < *least) {
			*least = d;
			*best = (struct thing){l->entry.index, row, i, t.begin_ns, t.ns};
		}
	}
}

/* The thing of a lane that is from..to, or is nearest to that and lasts at least as long as it is off;
   of an instant, the one around it that began last. null: there is none. */
EXPORT(page_find) const char *page_find(uint32_t lane, double from, double to)
{
	const struct tacho__lane *l =
		lane < page.view.lanes.used ? tacho__table_at(&page.view.lanes, lane) : NULL;
	uint64_t from_ns = at_time(from), to_ns = at_time(to), least = UINT64_MAX;
	struct thing best = {0};
	struct json j;

	for (uint32_t row = 0; l && row < l->row_count; row++)
		if ((l->rows[row].type < TACHO__TRACK_SAMPLES &&
		     l->rows[row].type != TACHO__TRACK_OFF) ||
		    l->rows[row].type == TACHO__TRACK_STOPPED)
			look_in(l, row, from_ns, to_ns, &best, &least);
	answer_begin(&j);
	if (least == UINT64_MAX || (least > best.ns && to_ns > from_ns))
		json_null(&j);
	else
		put_thing(&j, &best);
	return answer_end(&j);
}

/* The thing before or after one of a row; null: there is none. */
EXPORT(page_beside)
const char *page_beside(uint32_t lane, uint32_t row, uint32_t index, int by)
{
	const struct tacho__row *r = tacho__view_row(&page.view, lane, row);
	uint32_t at = index + (uint32_t)by;
	struct json j;

	answer_begin(&j);
	if (r && at < r->track.count) {
		struct tacho__thing t = tacho__track_at(&r->track, at);
		struct thing found = {lane, row, at, t.begin_ns, t.ns};

		put_thing(&j, &found);
	} else
		json_null(&j);
	return answer_end(&j);
}
