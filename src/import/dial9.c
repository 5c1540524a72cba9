/*
 * dial9's traces: the files of one process, each of them batches of events (dial9_wire.h).
 *
 * A file is read whole, unpacked, and then twice: first each batch until it says whose it is, so
 * that workers have their threads and runtimes their names from the first event on; then all of it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "import/dial9_making.h"
#include "import/stream.h"

#define UNPACKED_MIN (64u << 20) /* a file may unpack to as much, or to 64 times its size */
#define UNPACKED_TIMES 64u
#define UNPACKED_MAX (8ull << 30)
#define ARENA_MAX (1ull << 32)

/* ------------------------------------------------------------------- fields */

int tacho__dial9_is_number(unsigned type)
{
	switch (type) {
	case TACHO__DIAL9_I64:
	case TACHO__DIAL9_BOOL:
	case TACHO__DIAL9_VARINT:
	case TACHO__DIAL9_U8:
	case TACHO__DIAL9_U16:
	case TACHO__DIAL9_U32:
		return 1;
	default:
		return 0;
	}
}

const struct tacho__dial9_value *tacho__dial9_get(const struct tacho__dial9_event *e,
						  const struct tacho__dial9_known *k, unsigned slot)
{
	uint8_t at = k->slot[slot];

	return at < e->count && e->values[at].there ? &e->values[at] : NULL;
}

uint64_t tacho__dial9_number(const struct tacho__dial9_event *e, const struct tacho__dial9_known *k,
			     unsigned slot, uint64_t otherwise)
{
	const struct tacho__dial9_value *v = tacho__dial9_get(e, k, slot);

	return v && tacho__dial9_is_number(v->type) ? v->number : otherwise;
}

uint64_t *tacho__dial9_words(struct tacho__dial9 *d, uint32_t count)
{
	uint64_t *at;

	if (count > UINT32_MAX / 2 - d->word_count ||
	    TACHO__GROW(d->words, d->word_capacity, d->word_count + count + 1)) {
		d->error = -ENOMEM;
		return NULL;
	}
	at = d->words + d->word_count;
	d->word_count += count;
	return at;
}

/* ------------------------------------------------------------------ schemas */

static const struct tacho__dial9_kind *find_kind(const char *name)
{
	static const struct tacho__dial9_kind *const tables[] = {
		tacho__dial9_tokio, tacho__dial9_stacks, tacho__dial9_events};

	for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct tacho__dial9_kind *k = tables[i]; k->name; k++)
			if (!strcmp(k->name, name))
				return k;
	return NULL;
}

static struct tacho__dial9_known *known(struct tacho__dial9 *d, struct tacho__dial9_schema *s)
{
	struct tacho__dial9_known *k = s->of;

	if (k)
		return k;
	k = s->of = tacho__arena_get(&d->arena, sizeof(*k));
	if (!k)
		return NULL;
	k->kind = find_kind(s->name);
	memset(k->slot, TACHO__DIAL9_NO_SLOT, sizeof(k->slot));
	for (unsigned n = 0; k->kind && n < TACHO__DIAL9_SLOTS && k->kind->fields[n]; n++)
		for (uint32_t i = 0; i < s->field_count && i < TACHO__DIAL9_VALUES; i++)
			if (!strcmp(s->fields[i].name, k->kind->fields[n]))
				k->slot[n] = (uint8_t)i;
	if (!k->kind)
		tacho__dial9_span_know(k, s);
	return k;
}

int tacho__dial9_take_event(void *arg, const struct tacho__dial9_event *e)
{
	struct tacho__dial9 *d = arg;
	struct tacho__dial9_known *k = known(d, e->schema);

	if (!k)
		return d->error = -ENOMEM;
	if (d->look) {
		if (k->kind)
			k->kind->put(d, e, k);
		return d->error || (d->look->tid && !d->look->whole);
	}
	if (e->ns && e->ns < d->first_ns)
		d->first_ns = e->ns;
	if (k->kind && !(e->schema->annotations && !k->plain && tacho__dial9_span_single(d, e, k)))
		k->kind->put(d, e, k);
	else if (k->is_span)
		tacho__dial9_span_put(d, e, k);
	else {
		if (e->schema->annotations && !k->plain)
			tacho__dial9_span_single(d, e, k);
		tacho__dial9_event_put(d, e, k);
	}
	return d->error;
}

/* ------------------------------------------------------------------ batches */

static const char *end_text(enum tacho__dial9_end end)
{
	switch (end) {
	case TACHO__DIAL9_TAG:
		return "a frame of the unknown kind";
	case TACHO__DIAL9_TYPE:
		return "an event of a type that was not described,";
	case TACHO__DIAL9_FIELD:
		return "a field of the unknown type";
	case TACHO__DIAL9_NEWER:
		return "the unknown version";
	default:
		return "values nested too deep,";
	}
}

/* Where a batch could not be read any further: what is missing until the next one. */
static void skip(struct tacho__dial9 *d, const char *name, enum tacho__dial9_end end)
{
	struct tacho__dial9_wire *w = &d->wire;
	size_t from = w->at, next;

	if (end == TACHO__DIAL9_CUT) {
		/* The length of something damaged may reach beyond the end. */
		w->at++;
		next = tacho__dial9_next(w);
		w->at = from;
		if (next == w->size)
			tacho__made_say(d->made,
					"%.60s is cut: its last %zu bytes are no whole event", name,
					w->size - from);
		else
			tacho__made_say(d->made, "%.60s is damaged at byte %zu", name, from);
	} else {
		w->at += end != TACHO__DIAL9_NEWER;
		next = tacho__dial9_next(w);
		tacho__made_say(d->made, "%.60s has %s %u at byte %zu: %zu bytes are left out",
				name, end_text(end), w->detail, from, next - from);
	}
	w->at = next;
	if (w->ns)
		d->last_ns = w->ns;
	if (d->last_ns)
		tacho__made_lost(d->made, d->last_ns, d->last_ns, 0);
}

static void read_batches(struct tacho__dial9 *d, const char *name)
{
	struct tacho__dial9_wire *w = &d->wire;

	while (w->at < w->size && !d->error) {
		enum tacho__dial9_end end;

		if (w->ns)
			d->last_ns = w->ns;
		d->owner = tacho__map_get(&d->owners, w->at);
		d->owner_seen = 0;
		tacho__map_clear(&d->entered);
		end = tacho__dial9_batch(w, tacho__dial9_take_event, d);
		if (end == TACHO__DIAL9_MEMORY)
			d->error = -ENOMEM;
		else if (end != TACHO__DIAL9_WHOLE && end != TACHO__DIAL9_STOP)
			skip(d, name, end);
	}
}

/* -------------------------------------------------------------------- files */

/* The whole file, unpacked, or as much of it as is wanted. */
static uint8_t *read_file(struct tacho__dial9 *d, struct tacho__stream *s, const char *name,
			  size_t *size)
{
	uint64_t done, total, most;
	size_t capacity = 1u << 20;
	uint8_t *data = malloc(capacity);

	tacho__stream_progress(s, &done, &total);
	most = total > UNPACKED_MAX / UNPACKED_TIMES ? UNPACKED_MAX : total * UNPACKED_TIMES;
	if (most < UNPACKED_MIN)
		most = UNPACKED_MIN;
	for (*size = 0; data;) {
		size_t n = tacho__stream_read(s, data + *size, capacity - *size);
		uint8_t *more;

		*size += n;
		if (*size < capacity)
			break;
		if (*size >= most) {
			tacho__made_say(d->made,
					"%.60s unpacks to more than %" PRIu64 " MiB: the rest "
					"is left out",
					name, most >> 20);
			break;
		}
		capacity = 2 * capacity < most ? 2 * capacity : (size_t)most;
		more = realloc(data, capacity);
		if (!more)
			free(data);
		data = more;
	}
	if (tacho__stream_problem(s))
		tacho__made_say(d->made, "of %.60s not all could be unpacked: %s", name,
				tacho__stream_problem(s));
	return data;
}

/* 0, or a negative errno that concerns this file alone. */
static int import_file(struct tacho__dial9 *d, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int err;
	struct tacho__stream *s = tacho__stream_open(path, &err);
	uint8_t *data;
	size_t size;

	if (!s)
		return err;
	tacho__made_bytes(d->made, tacho__stream_size(s));
	data = read_file(d, s, name, &size);
	tacho__stream_close(s);
	if (!data)
		return d->error = -ENOMEM;
	d->wire.data = data;
	d->wire.size = size;
	tacho__dial9_look(d);
	d->wire.at = 0;
	if (!tacho__dial9_header(data, size)) {
		d->wire.at = tacho__dial9_next(&d->wire);
		tacho__made_say(d->made, "the first %zu bytes of %.60s are no part of a trace",
				d->wire.at, name);
	}
	read_batches(d, name);
	d->wire.data = NULL;
	free(data);
	return 0;
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* While dial9 packs a segment there are both; then what is packed may not be whole. */
static int is_packed_again(const char *path, const char *before)
{
	size_t size = strlen(before);

	return !strncmp(path, before, size) && !strcmp(path + size, ".gz");
}

static int import_files(struct tacho__dial9 *d, const struct tacho__importing *i)
{
	const char **paths = calloc(i->path_count + 1u, sizeof(*paths));
	int err = 0;

	if (!paths)
		return -ENOMEM;
	memcpy(paths, i->paths, i->path_count * sizeof(*paths));
	TACHO__SORT(paths, i->path_count, by_version);
	for (uint32_t n = 0; n < i->path_count && !d->error; n++) {
		if (n && is_packed_again(paths[n], paths[n - 1]))
			continue;
		err = import_file(d, paths[n]);
		if (err)
			tacho__made_say(d->made, "%.60s cannot be read: %s", paths[n],
					strerror(-err));
		if (i->progress)
			i->progress(i->progress_arg, n + 1, i->path_count);
	}
	free(paths);
	return d->error;
}

/* ---------------------------------------------------------------------- end */

static void tell_about(struct tacho__dial9 *d)
{
	char imported[64];

	snprintf(imported, sizeof(imported), "a dial9%s%s trace", d->version[0] ? " " : "",
		 d->version);
	tacho__made_about(d->made, &(struct tacho__made_about){.imported = imported,
							       .name = d->service,
							       .service = d->service,
							       .host = d->host});
	if (!d->anchored && d->legacy_real_ns && d->first_ns != UINT64_MAX)
		tacho__made_anchor(d->made, d->first_ns, d->legacy_real_ns);
	tacho__made_source(d->made, TACHO_SOURCE_API);
}

/* What is not in it, and what of it is not what it seems. */
static void tell_lacks(struct tacho__dial9 *d)
{
	struct tacho__made *m = d->made;

	if (d->spawns_only)
		tacho__made_say(m, "dial9 saw polls only of tasks spawned through it");
	if (d->bare)
		tacho__made_say(m,
				"%" PRIu64 " of %" PRIu64 " tasks were not spawned through dial9: "
				"their wakes were not observed",
				d->bare, d->spawned);
	if (d->unended)
		tacho__made_say(m, "polls whose end was not recorded: %" PRIu64, d->unended);
	if (d->moved)
		tacho__made_say(m,
				"moves of workers to another thread (block_in_place), the time of "
				"which is not known: %" PRIu64,
				d->moved);
	if (d->incomplete)
		tacho__made_say(m, "segments that dial9 itself calls incomplete: %" PRIu64,
				d->incomplete);
	if (d->dropped_allocs || d->dropped_frees)
		tacho__made_say(m, "dial9 lost %" PRIu64 " allocations and %" PRIu64 " frees",
				d->dropped_allocs, d->dropped_frees);
}

static void close_all(struct tacho__dial9 *d)
{
	struct tacho__map *maps[] = {&d->by_tid,  &d->worker_at, &d->owners,
				     &d->entered, &d->symbol_at, &d->texts};

	for (unsigned i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		tacho__map_free(maps[i]);
	tacho__dial9_wire_close(&d->wire);
	tacho__arena_free(&d->arena);
	free(d->threads);
	free(d->workers);
	free(d->batches);
	free(d->seen);
	free(d->spans);
	free(d->stacked);
	free(d->words);
	free(d->symbols);
}

static int import_all(struct tacho__dial9 *d, struct tacho__importing *i)
{
	int err = tacho__dial9_wire_open(&d->wire);

	if (!err)
		err = import_files(d, i);
	if (err)
		return err;
	tacho__dial9_tokio_end(d);
	tacho__dial9_spans_end(d);
	tacho__dial9_stacks_end(d);
	tell_about(d);
	tell_lacks(d);
	if (!d->error && !tacho__made_events(d->made)) {
		snprintf(i->message, i->message_size,
			 "this is a dial9 trace without any event that can be read");
		return -EBADMSG;
	}
	return d->error;
}

static int import_dial9(struct tacho__importing *i)
{
	struct tacho__dial9 d = {.made = i->made, .first_ns = UINT64_MAX};
	int err;

	d.arena.limit = ARENA_MAX;
	err = import_all(&d, i);
	close_all(&d);
	return err;
}

static int recognises(const uint8_t *head, size_t size)
{
	return tacho__dial9_header(head, size);
}

const struct tacho__importer tacho__import_dial9 = {
	.recognises = recognises,
	.import = import_dial9,
	.folders = 1,
};
