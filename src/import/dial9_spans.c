/*
 * Spans of the program: of `tracing` and of dial9 itself, entered and left in many polls and then
 * closed; and events that say themselves that they are a span.
 *
 * A span lasts from its first enter until it is closed; what it did in between, polls tell. Its
 * number is used again after that, and steps of it may be in batches of several threads, so that
 * pairs are only found when all are in the order of time.
 */
#include <stdio.h>

#include "import/dial9_making.h"

/* Fields of the steps of a span that are none of the program's. */
static const char *const own_fields[] = {
	"worker_id", "dial9.tokio.task_id", "span_id",	      "span_instance_id",
	"tid",	     "span_name",	    "parent_span_id", "location",
	NULL};

#define SINGLE_IDS (UINT64_C(1) << 62) /* dial9's own have bit 63, those of tracing neither */

static int begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

void tacho__dial9_span_know(struct tacho__dial9_known *k, const struct tacho__dial9_schema *s)
{
	static const char *const names[] = {"SpanEnter", "SpanExit", "SpanClose"};
	static const char *const slots[] = {"span_id", "span_instance_id", "parent_span_id",
					    "span_name", "start_timestamp_ns"};

	for (uint8_t step = 0; step < 3; step++) {
		const char *rest = s->name + strlen(names[step]);

		if (!begins(s->name, names[step]))
			continue;
		if (*rest == ':' || begins(rest, "__") || !strcmp(rest, "Event"))
			k->is_span = (uint8_t)(step + 1);
	}
	for (uint8_t n = 0; k->is_span && n < 5; n++)
		for (uint32_t i = 0; i < s->field_count && i < TACHO__DIAL9_VALUES; i++)
			if (!strcmp(s->fields[i].name, slots[n]))
				k->slot[n] = (uint8_t)i;
}

/* "SpanEnter:{target}::{name}:{file}:{line}": the place in the code. */
static void place_in(const char *name, char *file, size_t size, uint32_t *line)
{
	const char *end = strrchr(name, ':'), *begin = end;

	*line = 0;
	file[0] = 0;
	while (begin && begin > name && begin[-1] != ':')
		begin--;
	if (!begin || begin <= name || begin == end || end[1] < '1' || end[1] > '9')
		return;
	*line = (uint32_t)strtoul(end + 1, NULL, 10);
	snprintf(file, size, "%.*s", (int)(end - begin), begin);
}

static uint32_t define_span(struct tacho__dial9 *d, const char *schema, const char *name)
{
	char file[256];
	uint32_t line;

	place_in(schema, file, sizeof(file), &line);
	return tacho__made_place(d->made, TACHO_DEF_SPAN, name, file, line);
}

/* Its definition; spans that are named while the program runs share a schema. */
static uint32_t span_of(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			struct tacho__dial9_known *k)
{
	const struct tacho__dial9_value *v = tacho__dial9_get(e, k, 3);
	uint64_t hash = v && v->bytes ? tacho__hash_bytes(v->bytes, v->size, 0) : 0;
	char name[TACHO_NAME_MAX + 2];

	if (k->span && k->span_hash == hash)
		return k->span;
	if (v)
		tacho__dial9_text(&d->wire, v, name, sizeof(name));
	k->span = define_span(d, e->schema->name, v ? name : "span");
	k->span_hash = hash;
	return k->span;
}

/* What the program says of a span, once in a batch. */
static uint32_t attributes_of(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			      struct tacho__dial9_known *k, uint64_t id)
{
	uint64_t words[TACHO_RECORD_MAX_WORDS], *kept;
	char name[TACHO_NAME_MAX + 2];
	uint32_t count;

	if (tacho__map_get(&d->entered, id))
		return 0;
	if (tacho__map_put(&d->entered, id, 1))
		d->error = -ENOMEM;
	count = tacho__dial9_event_words(d, e, own_fields, words);
	if (count < 2)
		return 0;
	if (!k->id) {
		snprintf(name, sizeof(name), "span %.200s", e->schema->name + strlen("SpanEnter:"));
		k->id = tacho__dial9_event_schema(d, e->schema, name, own_fields);
	}
	kept = tacho__dial9_words(d, count + 2);
	if (!kept)
		return 0;
	kept[0] = k->id;
	kept[1] = count;
	memcpy(kept + 2, words, count * sizeof(*words));
	return (uint32_t)(kept - d->words) + 1;
}

void tacho__dial9_span_put(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			   struct tacho__dial9_known *k)
{
	uint64_t id = tacho__dial9_number(e, k, 1, 0);
	struct tacho__dial9_span_event s = {.ns = e->ns, .step = k->is_span - 1u}, *to;

	s.id = id ? id : tacho__dial9_number(e, k, 0, 0);
	s.parent = tacho__dial9_number(e, k, s.step == TACHO__DIAL9_CLOSE ? 4 : 2, 0);
	s.thread = tacho__dial9_here(d);
	if (s.step != TACHO__DIAL9_CLOSE || tacho__dial9_get(e, k, 3))
		s.span = span_of(d, e, k);
	if (s.step == TACHO__DIAL9_ENTER)
		s.attributes = attributes_of(d, e, k, s.id);
	if (s.step == TACHO__DIAL9_CLOSE && tacho__map_put(&d->entered, s.id, 0))
		d->error = -ENOMEM;
	to = TACHO__DIAL9_ROOM(d, spans, span_count, span_capacity);
	if (to)
		*to = s;
}

/* ------------------------------------------------------------ single events */

static const char *annotation(const struct tacho__dial9_schema *s, uint32_t field, const char *key)
{
	for (const struct tacho__dial9_annotation *a = s->annotations; a; a = a->next)
		if (a->field == field && !strcmp(a->key, key))
			return a->value;
	return NULL;
}

/* The field that has a role; UINT32_MAX: none. */
static uint32_t with_role(const struct tacho__dial9_event *e, const char *role)
{
	for (const struct tacho__dial9_annotation *a = e->schema->annotations; a; a = a->next)
		if (!strcmp(a->key, "dial9.role") && !strcmp(a->value, role) && a->field < e->count)
			return a->field;
	return UINT32_MAX;
}

/* A time in ns; 0: there is none. */
static int time_of(const struct tacho__dial9_event *e, uint32_t field, uint64_t *ns)
{
	static const struct {
		const char *name[2];
		uint64_t ns;
	} units[] = {{{"ns", "nanoseconds"}, 1},
		     {{"us", "microseconds"}, 1000},
		     {{"ms", "milliseconds"}, 1000000},
		     {{"s", "seconds"}, 1000000000}};
	const char *unit;

	if (field == UINT32_MAX || !e->values[field].there ||
	    !tacho__dial9_is_number(e->values[field].type))
		return 0;
	unit = annotation(e->schema, field, "unit")
		       ?: annotation(e->schema, field, "metrique.unit");
	for (unsigned i = 0; i < 4; i++)
		if (unit ? !strcmp(unit, units[i].name[0]) || !strcmp(unit, units[i].name[1]) : !i)
			return !__builtin_mul_overflow(e->values[field].number, units[i].ns, ns);
	return 0;
}

/* From any two of begin, duration and end, which is the time of the event. */
static int span_times(const struct tacho__dial9_event *e, uint64_t *begin, uint64_t *end)
{
	uint64_t duration = 0;
	int has_begin = time_of(e, with_role(e, "span.start"), begin);
	int has_duration = time_of(e, with_role(e, "span.duration"), &duration);

	*end = e->ns;
	if (!e->schema->has_time)
		return has_begin && has_duration && !__builtin_add_overflow(*begin, duration, end);
	if (!has_begin)
		*begin = *end > duration ? *end - duration : 0;
	return (has_begin || has_duration) && *begin <= *end;
}

int tacho__dial9_span_single(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			     struct tacho__dial9_known *k)
{
	uint32_t field = with_role(e, "span.name"), tid = with_role(e, "thread_id");
	uint32_t thread = tacho__dial9_here(d), span;
	uint64_t begin, end, words[2];
	char name[TACHO_NAME_MAX + 2] = "";

	if (with_role(e, "span.start") == UINT32_MAX &&
	    with_role(e, "span.duration") == UINT32_MAX) {
		k->plain = 1;
		return 0;
	}
	if (!span_times(e, &begin, &end))
		return 0;
	if (tid != UINT32_MAX && e->values[tid].there && e->values[tid].number)
		thread = tacho__dial9_by_tid(d, (uint32_t)e->values[tid].number);
	if (field != UINT32_MAX && e->values[field].there)
		tacho__dial9_text(&d->wire, &e->values[field], name, sizeof(name));
	span = tacho__made_name(d->made, TACHO_DEF_SPAN, name[0] ? name : e->schema->name);
	words[0] = SINGLE_IDS | ++d->single;
	words[1] = 0;
	tacho__made_put(d->made, thread, begin, TACHO_REC_ASYNC_BEGIN, span, words, 2);
	tacho__made_put(d->made, thread, end, TACHO_REC_ASYNC_END, span, words, 1);
	return 1;
}

/* ---------------------------------------------------------------------- end */

/* A span between its first enter and its end. */
struct live {
	uint32_t first;	 /* enter, of d->spans */
	uint32_t inside; /* entered and not left */
	uint32_t thread;
	uint64_t last_ns; /* left */
};

static int by_time(const void *a, const void *b)
{
	const struct tacho__dial9_span_event *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

static void put_begin(struct tacho__dial9 *d, const struct tacho__dial9_span_event *s)
{
	uint64_t words[2] = {s->id, s->parent};

	tacho__made_put(d->made, s->thread, s->ns, TACHO_REC_ASYNC_BEGIN, s->span, words, 2);
	if (s->attributes) {
		const uint64_t *kept = &d->words[s->attributes - 1];

		tacho__made_put(d->made, s->thread, s->ns, TACHO_REC_EVENT, (uint32_t)kept[0],
				kept + 2, (uint32_t)kept[1]);
	}
}

static void put_end(struct tacho__dial9 *d, const struct live *l, uint32_t thread, uint64_t ns)
{
	const struct tacho__dial9_span_event *s = &d->spans[l->first];

	tacho__made_put(d->made, thread, ns, TACHO_REC_ASYNC_END, s->span, &s->id, 1);
}

/* A close that says all by itself. */
static void put_whole(struct tacho__dial9 *d, const struct tacho__dial9_span_event *s)
{
	uint64_t words[2] = {s->id, 0};

	if (!s->parent || s->parent > s->ns || !s->span)
		return;
	tacho__made_put(d->made, s->thread, s->parent, TACHO_REC_ASYNC_BEGIN, s->span, words, 2);
	tacho__made_put(d->made, s->thread, s->ns, TACHO_REC_ASYNC_END, s->span, words, 1);
}

static void step(struct tacho__dial9 *d, uint32_t i, struct live *l, struct tacho__map *at,
		 uint32_t *used)
{
	const struct tacho__dial9_span_event *s = &d->spans[i];
	uint32_t n = tacho__map_get(at, s->id);

	if (!n && s->step == TACHO__DIAL9_ENTER) {
		l[*used] = (struct live){.first = i, .inside = 1};
		put_begin(d, s);
		if (tacho__map_put(at, s->id, ++*used))
			d->error = -ENOMEM;
	} else if (!n) {
		if (s->step == TACHO__DIAL9_CLOSE)
			put_whole(d, s);
	} else if (s->step == TACHO__DIAL9_CLOSE) {
		put_end(d, &l[n - 1], s->thread, s->ns);
		l[n - 1].first = UINT32_MAX;
		if (tacho__map_put(at, s->id, 0))
			d->error = -ENOMEM;
	} else {
		l[n - 1].inside = s->step == TACHO__DIAL9_ENTER;
		l[n - 1].last_ns = s->ns;
		l[n - 1].thread = s->thread;
	}
}

void tacho__dial9_spans_end(struct tacho__dial9 *d)
{
	struct live *l = calloc((size_t)d->span_count + 1, sizeof(*l));
	struct tacho__map at = {0};
	uint32_t used = 0, closes = 0;

	if (!l) {
		d->error = -ENOMEM;
		return;
	}
	TACHO__SORT(d->spans, d->span_count, by_time);
	for (uint32_t i = 0; i < d->span_count && !d->error; i++) {
		closes += d->spans[i].step == TACHO__DIAL9_CLOSE;
		step(d, i, l, &at, &used);
	}
	/* Versions that never say that a span is closed: it ends where it was left last. */
	for (uint32_t i = 0; i < used && !closes && !d->error; i++)
		if (l[i].first != UINT32_MAX && !l[i].inside)
			put_end(d, &l[i], l[i].thread, l[i].last_ns);
	tacho__map_free(&at);
	free(l);
}
