/* Tasks: which there are, the life of one of them in phases, and its polls. */
#include <stdlib.h>
#include <string.h>

#include "task.h"
#include "text/text.h"
#include "things.h"

#define LISTED 100u
#define PLACES 12u

static struct life life; /* of the task that was asked for last */
static bool known;

/* -------------------------------------------------------------------- lists */

enum order { BY_WAITED, BY_BUSY, BY_POLLS, BY_SPAWN };

static uint64_t rank(const struct tacho__view_task *t, uint32_t order)
{
	return order == BY_BUSY	   ? t->busy_ns
	       : order == BY_POLLS ? t->polls
	       : order == BY_SPAWN ? UINT64_MAX - t->spawn_ns
				   : t->waited_ns;
}

/* The first hundred in an order, and how many there are. */
EXPORT(page_tasks) const char *page_tasks(uint32_t order)
{
	const struct tacho__view_task *best[LISTED];
	uint32_t shown = 0;
	struct json j;

	for (const struct tacho__view_task *t = NULL;
	     (t = tacho__table_next(&page.view.tasks, t));) {
		uint32_t i;

		if (shown == LISTED && rank(best[LISTED - 1], order) >= rank(t, order))
			continue;
		shown += shown < LISTED;
		for (i = shown - 1; i && rank(best[i - 1], order) < rank(t, order); i--)
			best[i] = best[i - 1];
		best[i] = t;
	}
	answer_begin(&j);
	json_object(&j);
	json_put_u64(&j, "count", page.view.tasks.count);
	json_put_u64(&j, "missed", page.view.tasks.missed);
	json_put_array(&j, "tasks");
	for (uint32_t i = 0; i < shown; i++)
		put_task_line(&j, best[i]);
	json_array_end(&j);
	json_object_end(&j);
	return answer_end(&j);
}

/* The task of a thing, as page_task wants it; null: it is of none. */
EXPORT(page_task_of) const char *page_task_of(uint32_t lane, uint32_t row, uint32_t index)
{
	const struct tacho__row *r = tacho__view_row(&page.view, lane, row);
	uint64_t task =
		r && index < r->track.count &&
				(r->type == TACHO__TRACK_POLLS || r->type == TACHO__TRACK_TASKS)
			? tacho__view_task(&page.view, tacho__track_at(&r->track, index).task)
			: 0;
	char text[TEXT_SMALL];
	struct json j;

	answer_begin(&j);
	if (task)
		json_string(&j, text_id(text, task));
	else
		json_null(&j);
	return answer_end(&j);
}

/* --------------------------------------------------------------------- life */

struct place {
	uint32_t what, stack;
	uint64_t count, ns, longest;
};

/* Where it went idle, the longest in sum first. */
static void put_places(struct json *j, const struct life *l)
{
	struct place *at = calloc(256, sizeof(*at));
	uint32_t count = 0;

	for (uint32_t i = 0; at && i < l->visit_count; i++) {
		const struct visit *v = &l->visits[i];
		uint32_t k = 0;

		if (!v->idle_ns)
			continue;
		while (k < count && (at[k].what != v->waits_for || at[k].stack != v->waits_stack))
			k++;
		/* The last takes what has no place of its own. */
		k = k < 255 ? k : 255;
		if (k == count)
			at[count++] = (struct place){v->waits_for, v->waits_stack, 0, 0, 0};
		at[k].count++;
		at[k].ns += v->idle_ns;
		at[k].longest = v->idle_ns > at[k].longest ? v->idle_ns : at[k].longest;
	}
	json_put_array(j, "idle");
	for (uint32_t shown = 0; shown < PLACES && shown < count; shown++) {
		uint32_t most = shown;
		char text[NAME_BYTES];

		for (uint32_t k = shown; k < count; k++)
			most = at[k].ns > at[most].ns ? k : most;
		struct place p = at[most];

		at[most] = at[shown];
		json_object(j);
		json_put_known(j, "what", name_of(text, l->process, p.what));
		json_put_known(j, "place", place_of(text, l->process, p.stack));
		json_put_u64(j, "count", p.count);
		json_put_u64(j, "ns", p.ns);
		json_put_u64(j, "longest", p.longest);
		json_object_end(j);
	}
	json_array_end(j);
	free(at);
}

static void put_life(struct json *j, const struct life *l)
{
	static const char *const names[] = {"running", "ready", "idle", "gone", "unseen"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == PHASES, "each has a name");
	const struct lived *last = l->life_count ? &l->lives[l->life_count - 1] : NULL;
	uint32_t kind = last ? last->kind : l->visit_count ? l->visits[0].kind : 0;
	char text[NAME_BYTES];

	json_object(j);
	json_put_u64(j, "process", l->process);
	json_put_string(j, "id", text_id(text, l->task));
	json_put_known(j, "kind", name_of(text, l->process, kind));
	json_put_known(j, "place", place_of(text, l->process, kind));
	json_put_known(j, "spawned_in", place_of(text, l->process, last ? last->place : 0));
	json_put_known(j, "parent", last && last->parent ? text_id(text, last->parent) : "");
	json_put_u64(j, "lives", l->life_count);
	json_put_bool(j, "spawn_seen", l->life_count && l->lives[0].spawn_ns);
	json_put_bool(j, "end_seen", last && last->end_ns);
	json_put_bool(j, "woken_at_end", last && last->woken_ns && !last->end_ns && !last->lost);
	json_put_f64(j, "from", since(l->from_ns));
	json_put_f64(j, "to", since(l->to_ns));
	json_put_bool(j, "cut", l->cut_ns != 0);
	json_put_u64(j, "polls", l->visit_count);
	json_put_object(j, "phases");
	for (uint32_t i = 0; i < PHASES; i++)
		json_put_u64(j, names[i], l->sums[i]);
	json_object_end(j);
	put_places(j, l);
	json_object_end(j);
}

/* All about a task, whose number is a text because it may have 64 bits; null: there is no such. */
EXPORT(page_task) const char *page_task(uint32_t process, const char *task)
{
	struct json j;

	life_free(&life);
	known = process < tacho_read_process_count(page.reader) &&
		life_read(&life, process, strtoull(task, NULL, 0));
	answer_begin(&j);
	if (known)
		put_life(&j, &life);
	else
		json_null(&j);
	return answer_end(&j);
}

/* --------------------------------------------------------------------- line */

struct columns {
	uint32_t count;
	double ns; /* of one */
	double (*shares)[PHASES];
};

static void add_to_columns(void *arg, enum phase phase, uint64_t from_ns, uint64_t to_ns,
			   uint32_t visit)
{
	struct columns *c = arg;
	double from = (double)(from_ns - life.from_ns), to = (double)(to_ns - life.from_ns);

	(void)visit;
	for (uint32_t i = (uint32_t)(from / c->ns); i < c->count && i * c->ns < to; i++) {
		double left = from > i * c->ns ? from : i * c->ns;
		double right = to < (i + 1) * c->ns ? to : (i + 1) * c->ns;

		c->shares[i][phase] += right > left ? (right - left) / c->ns : 0;
	}
}

/* The life of that task in columns of equal time: how much of each the phases have. */
EXPORT(page_task_line) const char *page_task_line(uint32_t columns)
{
	struct columns c = {.count = columns ? columns : 1};
	struct json j;

	c.ns = (double)(life.to_ns - life.from_ns) / c.count;
	c.ns = c.ns > 0 ? c.ns : 1;
	c.shares = calloc(c.count, sizeof(*c.shares));
	if (!c.shares)
		abort();
	if (known)
		life_walk(&life, add_to_columns, &c);
	answer_begin(&j);
	json_array(&j);
	for (uint32_t i = 0; i < c.count; i++)
		for (uint32_t p = 0; p < PHASES; p++)
			json_u64(&j, (uint64_t)(1000 * c.shares[i][p] + 0.5)); /* thousandths */
	json_array_end(&j);
	free(c.shares);
	return answer_end(&j);
}

/* -------------------------------------------------------------------- polls */

static int by_run(const void *a, const void *b)
{
	const struct visit *x = &life.visits[*(const uint32_t *)a];
	const struct visit *y = &life.visits[*(const uint32_t *)b];
	uint64_t m = x->end_ns - x->begin_ns, n = y->end_ns - y->begin_ns;

	return m > n ? -1 : m < n;
}

static int by_ready(const void *a, const void *b)
{
	uint64_t m = life.visits[*(const uint32_t *)a].ready_ns;
	uint64_t n = life.visits[*(const uint32_t *)b].ready_ns;

	return m > n ? -1 : m < n;
}

static void put_waker(struct json *j, const struct visit *v)
{
	const struct tacho_thread *t =
		tacho_read_thread_by_number(page.reader, life.process, v->waker);
	char text[NAME_BYTES];
	struct thing thing;

	json_key(j, "woken_by");
	if (!v->wake_ns) {
		json_null(j);
		return;
	}
	json_object(j);
	json_put_f64(j, "at", since(v->wake_ns));
	json_put_u64(j, "tid", t ? t->tid : 0);
	json_put_known(j, "kind", name_of(text, life.process, v->waker_kind));
	json_put_known(j, "task", v->waker_task ? text_id(text, v->waker_task) : "");
	json_key(j, "thing");
	put_thing(j, v->waker_poll_ns && thing_of(&thing, life.process, v->waker,
						  TACHO__TRACK_POLLS, v->waker_poll_ns)
			     ? &thing
			     : NULL);
	json_object_end(j);
}

static void put_visit(struct json *j, const struct visit *v)
{
	const struct tacho_thread *t =
		tacho_read_thread_by_number(page.reader, life.process, v->thread);
	char text[NAME_BYTES];
	struct thing thing;

	json_object(j);
	json_put_f64(j, "begin", since(v->begin_ns));
	json_put_u64(j, "ns", v->end_ns - v->begin_ns);
	json_put_u64(j, "ready", v->ready_ns);
	json_put_u64(j, "idle", v->idle_ns);
	json_put_known(j, "kind", name_of(text, life.process, v->kind));
	json_put_u64(j, "tid", t ? t->tid : 0);
	json_put_known(j, "waits_for", name_of(text, life.process, v->waits_for));
	json_put_known(j, "waits_in", place_of(text, life.process, v->waits_stack));
	json_key(j, "thing");
	put_thing(j, thing_of(&thing, life.process, v->thread, TACHO__TRACK_POLLS, v->begin_ns)
			     ? &thing
			     : NULL);
	put_waker(j, v);
	json_object_end(j);
}

/* Some polls of that task; order 0: of time, 1: the longest, 2: those that were ready longest. */
EXPORT(page_task_polls)
const char *page_task_polls(uint32_t order, uint32_t from, uint32_t count)
{
	uint32_t *index = malloc((life.visit_count + 1) * sizeof(*index));
	struct json j;

	if (!index)
		abort();
	for (uint32_t i = 0; i < life.visit_count; i++)
		index[i] = i;
	if (order && life.visit_count)
		qsort(index, life.visit_count, sizeof(*index), order == 1 ? by_run : by_ready);
	answer_begin(&j);
	json_array(&j);
	for (uint32_t i = from; i < life.visit_count && i - from < count; i++)
		put_visit(&j, &life.visits[index[i]]);
	json_array_end(&j);
	free(index);
	return answer_end(&j);
}
