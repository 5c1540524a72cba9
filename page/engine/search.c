/*
 * Search: words, all of which a name must have, and lengths: "on_guess >5ms". A name is that of a
 * definition with its function and file, a thread's, or a task's number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/place.h"
#include "text/text.h"
#include "things.h"

#define WORDS 8u
#define SHOWN 12u	 /* of a group */
#define KINDS (1u << 18) /* that are told apart */
#define FRAMES 24u	 /* of a stack that are looked at */

struct wanted {
	char *words[WORDS];
	uint32_t count;
	uint64_t least, most;
	bool by_length;
};

/* What is called so, of one type in one process. */
struct hit {
	struct tacho__entry entry; /* key: process << 8 | type, what */
	uint64_t count;
	struct thing longest;
};

struct search {
	struct wanted wanted;
	uint8_t **known; /* of a process: of each definition whether it is called so */
	uint32_t processes;
	struct tacho__table hits;
	uint64_t others; /* that found no room */
};

/* -------------------------------------------------------------------- words */

/* ">5ms", "<1.5s": 0 is no length. */
static uint64_t length_of(const char *text)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != text && strcmp(end, units[i].unit) == 0 && value > 0 &&
		    value * units[i].ns < 1e18)
			return (uint64_t)(value * units[i].ns);
	return 0;
}

static void take_words(struct wanted *w, char *text)
{
	char *rest = text;

	w->most = UINT64_MAX;
	for (char *word; (word = strsep(&rest, " "));) {
		uint64_t length = word[0] == '>' || word[0] == '<' ? length_of(word + 1) : 0;

		if (length && word[0] == '>')
			w->least = length;
		else if (length)
			w->most = length;
		else if (word[0] && w->count < WORDS)
			w->words[w->count++] = word;
		w->by_length = w->by_length || length;
	}
}

/* All words are in one of the texts, or in the other. */
static bool is_called(const struct wanted *w, const char *a, const char *b)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (!strcasestr(a, w->words[i]) && !strcasestr(b, w->words[i]))
			return false;
	return true;
}

static bool is_long(const struct wanted *w, uint64_t ns)
{
	return ns >= w->least && ns <= w->most;
}

/* -------------------------------------------------------------- definitions */

static bool is_wanted(const struct search *s, uint32_t process, uint32_t id)
{
	const struct tacho_definition *d = tacho_read_definition(page.reader, process, id);
	struct tacho__place places[FRAMES];
	char name[NAME_BYTES];
	uint32_t n;

	if (!d || d->def_class == TACHO_DEF_MODULE || d->def_class == TACHO_DEF_SCHEMA)
		return false;
	name_of(name, process, id);
	if (is_called(&s->wanted, name, d->file))
		return true;
	n = tacho__places_of_id(page.reader, process, id, page.last_ns, places, FRAMES);
	for (uint32_t i = 0; i < n; i++)
		if (is_called(&s->wanted, places[i].function, places[i].file))
			return true;
	return false;
}

static int find_definitions(struct search *s)
{
	s->processes = tacho_read_process_count(page.reader);
	s->known = calloc(s->processes + 1, sizeof(*s->known));
	for (uint32_t p = 0; s->known && p < s->processes; p++) {
		uint32_t limit = tacho_read_definition_limit(page.reader, p);

		s->known[p] = calloc(limit + 1, 1);
		if (!s->known[p])
			return -ENOMEM;
		s->known[p][0] = is_called(&s->wanted, "turn of the loop", "");
		for (uint32_t id = 1; id < limit; id++)
			s->known[p][id] = is_wanted(s, p, id);
	}
	return s->known ? 0 : -ENOMEM;
}

static bool is_known(const struct search *s, uint32_t process, uint32_t id)
{
	return process < s->processes &&
	       id < tacho_read_definition_limit(page.reader, process) + (id == 0) &&
	       s->known[process][id];
}

/* ------------------------------------------------------------------- tracks */

/* A name is what it is of these. */
static bool has_names(enum tacho__track_type type)
{
	return type <= TACHO__TRACK_SIGNALS || type == TACHO__TRACK_WORK ||
	       type == TACHO__TRACK_SPANS || type == TACHO__TRACK_SAMPLES;
}

static void note(struct search *s, uint32_t process, enum tacho__track_type type, uint32_t what,
		 const struct thing *t)
{
	int error;
	struct hit *h = tacho__table_get(&s->hits, (uint64_t)process << 8 | type, what, &error);

	if (!h) {
		s->others++;
		return;
	}
	if (!h->count++ || t->ns > h->longest.ns)
		h->longest = *t;
}

static void search_lane(struct search *s, const struct tacho__lane *l)
{
	for (uint32_t r = 0; r < l->row_count; r++) {
		const struct tacho__row *row = &l->rows[r];

		for (uint32_t i = 0; has_names(row->type) && i < row->track.count; i++) {
			struct tacho__thing t = tacho__track_at(&row->track, i);
			struct thing found = {l->entry.index, r, i, t.begin_ns, t.ns};

			/* What has no name is none of these, but for turns. */
			if ((t.what || row->type == TACHO__TRACK_POLLS) &&
			    is_long(&s->wanted, t.ns) && is_known(s, l->process, t.what))
				note(s, l->process, row->type, t.what, &found);
		}
	}
}

static int by_length(const void *a, const void *b)
{
	const struct hit *x = *(const struct hit *const *)a, *y = *(const struct hit *const *)b;

	if (x->longest.ns != y->longest.ns)
		return x->longest.ns > y->longest.ns ? -1 : 1;
	return x->count > y->count ? -1 : x->count < y->count;
}

static void put_hit(struct json *j, const struct hit *h)
{
	uint32_t process = (uint32_t)(h->entry.key[0] >> 8), what = (uint32_t)h->entry.key[1];
	const struct tacho_definition *d = tacho_read_definition(page.reader, process, what);
	char name[NAME_BYTES], place[NAME_BYTES];

	place_of(place, process, what);
	name_of(name, process, what);
	json_object(j);
	/* Stacks and places without a name are called by their code. */
	json_put_string(j, "name",
			!what			       ? "turn of the loop"
			: d && !d->name[0] && place[0] ? place
						       : name);
	json_put_known(j, "place", place);
	json_put_u64(j, "process", process);
	json_put_u64(j, "type", h->entry.key[0] & 0xff);
	json_put_u64(j, "what", what);
	json_put_u64(j, "count", h->count);
	json_key(j, "longest");
	put_thing(j, &h->longest);
	json_object_end(j);
}

static void put_hits(struct json *j, const struct search *s)
{
	const struct hit **all = calloc(s->hits.used + 1, sizeof(struct hit *));
	uint32_t count = 0, shown[TACHO__TRACK_TYPES] = {0};

	json_put_array(j, "things");
	for (const struct hit *h = NULL; all && (h = tacho__table_next(&s->hits, h));)
		all[count++] = h;
	if (count)
		qsort(all, count, sizeof(struct hit *), by_length);
	for (uint32_t i = 0; i < count; i++)
		if (shown[all[i]->entry.key[0] & 0xff]++ < SHOWN)
			put_hit(j, all[i]);
	json_array_end(j);
	json_put_u64(j, "kinds", count + s->others);
	free(all);
}

/* --------------------------------------------------------- tasks and threads */

static bool is_number_of(const struct tacho__view_task *t, const char *word)
{
	char text[TEXT_SMALL], *end;

	return strcasecmp(word, text_id(text, t->entry.key[0])) == 0 ||
	       (strtoull(word, &end, 0) == t->entry.key[0] && !*end);
}

/* "39", "task 39", "serve 39": its number, as it is written or in decimals, and words of its kind. */
static bool is_numbered(const struct wanted *w, const struct tacho__view_task *t)
{
	char kind[NAME_BYTES];
	uint32_t number = 0;

	while (number < w->count && !is_number_of(t, w->words[number]))
		number++;
	if (number == w->count)
		return false;
	name_of(kind, (uint32_t)t->entry.key[1], t->kind);
	for (uint32_t i = 0; i < w->count; i++)
		if (i != number && strcasecmp(w->words[i], "task") != 0 &&
		    !strcasestr(kind, w->words[i]))
			return false;
	return true;
}

/* Its number, its kind, or where it was spawned. */
static bool is_task(const struct search *s, const struct tacho__view_task *t)
{
	const struct wanted *w = &s->wanted;
	uint32_t process = (uint32_t)t->entry.key[1];

	if (w->by_length && !is_long(w, t->end_ns > t->spawn_ns ? t->end_ns - t->spawn_ns : 0))
		return false;
	if ((t->kind && is_known(s, process, t->kind)) ||
	    (t->place && is_known(s, process, t->place)))
		return true;
	return is_numbered(w, t);
}

static void put_tasks(struct json *j, const struct search *s)
{
	const struct tacho__view_task *best[SHOWN];
	uint32_t shown = 0;
	uint64_t count = 0;

	for (const struct tacho__view_task *t = NULL;
	     (t = tacho__table_next(&page.view.tasks, t));) {
		uint32_t i;

		if (!is_task(s, t))
			continue;
		count++;
		/* Those that waited longest are in front. */
		for (i = shown; i && best[i - 1]->waited_ns < t->waited_ns; i--)
			if (i < SHOWN)
				best[i] = best[i - 1];
		if (i < SHOWN)
			best[i] = t;
		shown += shown < SHOWN;
	}
	json_put_array(j, "tasks");
	for (uint32_t i = 0; i < shown; i++)
		put_task_line(j, best[i]);
	json_array_end(j);
	json_put_u64(j, "task_count", count);
}

static void put_threads(struct json *j, const struct search *s)
{
	uint32_t count = 0;

	json_put_array(j, "threads");
	for (const struct tacho__lane *l = NULL; (l = tacho__table_next(&page.view.lanes, l));) {
		const struct tacho_thread *t =
			tacho_read_thread_by_number(page.reader, l->process, l->thread);
		char name[NAME_BYTES], tid[TEXT_SMALL];

		if (!t || s->wanted.by_length)
			continue;
		snprintf(tid, sizeof(tid), "%u", t->tid);
		name_of(name, l->process, l->loop);
		if ((is_called(&s->wanted, t->name, tid) || is_called(&s->wanted, name, tid)) &&
		    count++ < SHOWN)
			json_u64(j, l->entry.index);
	}
	json_array_end(j);
	json_put_u64(j, "thread_count", count);
}

/* What is called as the words say and is as long, the longest of each type first. */
EXPORT(page_search) const char *page_search(char *text)
{
	struct search s = {0};
	struct json j;

	take_words(&s.wanted, text);
	tacho__table_init(&s.hits, sizeof(struct hit), KINDS);
	if (find_definitions(&s))
		abort();
	if (s.wanted.count || s.wanted.by_length)
		for (const struct tacho__lane *l = NULL;
		     (l = tacho__table_next(&page.view.lanes, l));)
			search_lane(&s, l);
	answer_begin(&j);
	json_object(&j);
	json_put_f64(&j, "least", (double)s.wanted.least);
	json_put_f64_if(&j, "most", s.wanted.most != UINT64_MAX, (double)s.wanted.most);
	put_hits(&j, &s);
	put_tasks(&j, &s);
	put_threads(&j, &s);
	json_object_end(&j);
	tacho__table_free(&s.hits);
	for (uint32_t p = 0; p < s.processes; p++)
		free(s.known[p]);
	free(s.known);
	return answer_end(&j);
}

/* -------------------------------------------------------------- occurrences */

static bool is_before(const struct thing *a, const struct thing *b)
{
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns;
	return a->lane != b->lane ? a->lane < b->lane : a->row < b->row;
}

/* The one of this row that is next to `at` and so long; false: there is none. */
static bool next_in(const struct tacho__lane *l, uint32_t row, uint32_t what,
		    const struct wanted *w, const struct thing *at, int by, struct thing *out)
{
	const struct tacho__track *track = &l->rows[row].track;
	int64_t i = (int64_t)tacho__track_from(track, at->begin_ns) - (by < 0 ? 0 : 1);

	/* Those that begin at the same time may be on either side of it. */
	for (i = i < 0 ? 0 : i; i >= 0 && i <= track->count; i += by) {
		struct tacho__thing t;

		if (i == track->count) {
			if (by < 0)
				continue;
			break;
		}
		t = tacho__track_at(track, (uint32_t)i);
		*out = (struct thing){l->entry.index, row, (uint32_t)i, t.begin_ns, t.ns};
		if (t.what == what && is_long(w, t.ns) &&
		    (by > 0 ? is_before(at, out) : is_before(out, at)))
			return true;
	}
	return false;
}

/* The thing of that type and name next to the one that begins at `at` in a row; null: none. */
EXPORT(page_next)
const char *page_next(uint32_t process, uint32_t type, uint32_t what, double at, uint32_t lane,
		      uint32_t row, int by, double least, double most)
{
	struct thing here = {lane, row, 0, page.first_ns + (uint64_t)(int64_t)at, 0}, best;
	struct wanted w = {.least = (uint64_t)least,
			   .most = most > 0 ? (uint64_t)most : UINT64_MAX};
	bool found = false;
	struct json j;

	for (const struct tacho__lane *l = NULL; (l = tacho__table_next(&page.view.lanes, l));)
		for (uint32_t r = 0; l->process == process && r < l->row_count; r++) {
			struct thing t;

			if (l->rows[r].type != type || !next_in(l, r, what, &w, &here, by, &t) ||
			    (found && is_before(by > 0 ? &best : &t, by > 0 ? &t : &best)))
				continue;
			best = t;
			found = true;
		}
	answer_begin(&j);
	put_thing(&j, found ? &best : NULL);
	return answer_end(&j);
}
