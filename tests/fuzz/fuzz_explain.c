/*
 * What is made of events: summary, findings, ledger, blame and diff. Input that begins like a trace file
 * is taken for one as it is; else it says which records a trace holds, so that all that follows
 * decoding is reached as well.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "explain/blame.h"
#include "explain/diff.h"
#include "explain/explain.h"
#include "format/record.h"
#include "fuzz_read.h"
#include "read/records.h"
#include "../unit/box_builder.h"

/* Few bytes can stand for very many records; inputs with more are left to fuzz_trace. */
#define EVENTS_MAX 50000
#define CHUNKS_MAX 64u
#define CHUNK_BYTES 32768u
#define IDS 24u /* definitions 1 .. 23 are there, those above are not */

/* ------------------------------------------------------------ what is looked at */

/* Pieces add up to their subject. */
static void check_pieces(const struct tacho__blame *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->count; i++) {
		FUZZ_CHECK(b->pieces[i].from_ns <= b->pieces[i].to_ns);
		FUZZ_CHECK(b->pieces[i].where_count <= 4);
		sum += b->pieces[i].depth ? 0 : b->pieces[i].ns;
		fuzz_bytes(b->pieces[i].text, strlen(b->pieces[i].text));
		fuzz_sink += (uintptr_t)tacho__owner_name(b->pieces[i].owner);
	}
	FUZZ_CHECK(sum == b->subject.to_ns - b->subject.from_ns);
}

static void blame(struct tacho_reader *r, const struct tacho__subject_filter *filter)
{
	struct tacho__subject found[4];
	int n, err;

	FUZZ_CHECK(!tacho_read_seek(r, 0));
	n = tacho__blame_find(r, filter, found, 4);
	FUZZ_CHECK(n <= 4);
	for (int i = 0; i < n; i++) {
		struct tacho__blame *b;

		FUZZ_CHECK(found[i].from_ns <= found[i].to_ns);
		FUZZ_CHECK(!tacho_read_seek(r, found[i].from_ns));
		b = tacho__blame_make(r, &found[i], &err);
		FUZZ_CHECK((b != NULL) == (err == 0));
		if (b)
			check_pieces(b);
		tacho__blame_free(b);
	}
}

static void blame_all(struct tacho_reader *r)
{
	static const struct tacho__subject_filter filters[] = {
		{.type = 0},
		{.type = TACHO__SUBJECT_SPAN},
		{.task = 1},
		{.type = TACHO__SUBJECT_TASK, .task = 2},
		{.trace_high = 1, .trace_low = 1},
		{.span = "work"},
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		blame(r, &filters[i]);
}

/* Owners of a thread add up to its span, and what they cost to all that waited. */
static void check_ledger(const struct tacho__ledger *l)
{
	uint64_t lines = l->unserved_ns, owners = l->unserved_ns, *ns;
	char key[128];
	struct tacho__place place;

	ns = calloc(l->thread_count + 1u, sizeof(*ns));
	FUZZ_CHECK(ns);
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct tacho__ledger_line *x = &l->lines[i];
		const struct tacho__ledger_thread *t = &l->threads[x->thread];

		FUZZ_CHECK(x->thread < l->thread_count && t->first_ns <= t->last_ns);
		FUZZ_CHECK(x->ns <= t->last_ns - t->first_ns - ns[x->thread]);
		FUZZ_CHECK(x->estimated_ns <= x->waiting_ns);
		ns[x->thread] += x->ns;
		lines += x->waiting_ns;
		tacho__ledger_key(l, x, key, sizeof(key));
		fuzz_bytes(key, strlen(key));
		fuzz_sink += (uintptr_t)tacho__ledger_place(l, x, &place);
	}
	for (uint32_t i = 0; i < l->thread_count; i++)
		FUZZ_CHECK(ns[i] == l->threads[i].last_ns - l->threads[i].first_ns);
	for (uint32_t i = 0; i < l->owner_count; i++)
		owners += l->owners[i].waiting_ns;
	/* What a trace can say to have waited has no bound, what is summed up has. */
	if (l->waiting_ns < UINT64_C(1) << 60)
		FUZZ_CHECK(lines == l->waiting_ns && owners == l->waiting_ns);
	free(ns);
}

/* All processes at once: the queues of each are its own as well. */
static void ledger(struct tacho_reader *r)
{
	struct tacho__ledger *l;
	int err;

	FUZZ_CHECK(!tacho_read_seek(r, 0));
	l = tacho__ledger_make(r, &err);
	FUZZ_CHECK((l != NULL) == (err == 0));
	if (l)
		check_ledger(l);
	tacho__ledger_free(l);
}

static void explain(struct tacho_reader *r)
{
	struct tacho__explanation *e;
	int err;

	FUZZ_CHECK(!tacho_read_seek(r, 0));
	e = tacho__explain(r, NULL, &err);
	FUZZ_CHECK((e != NULL) == (err == 0));
	if (!e)
		return;
	fuzz_bytes(e->verdict.summary, strlen(e->verdict.summary));
	fuzz_bytes(e->verdict.category, strlen(e->verdict.category));
	for (uint32_t i = 0; i < e->count; i++) {
		const struct tacho__finding *f = &e->findings[i];

		FUZZ_CHECK(f->where_count <= TACHO__WHERE && f->evidence_count <= TACHO__EVIDENCE);
		FUZZ_CHECK(f->folded_into < (int32_t)e->count);
		FUZZ_CHECK(f->cost_ns >= 0 && f->waiting_ns >= 0 && f->severity);
		FUZZ_CHECK(f->part_count <= TACHO__PARTS && f->spread.count <= TACHO__INSTANCES);
		FUZZ_CHECK(f->spread.processes == f->spread.count + f->spread.left_out);
		/* A critical finding never stands below a warning, nor that below a note. */
		FUZZ_CHECK(!i || f->folded_into >= 0 || f->severity <= e->findings[i - 1].severity);
		for (uint32_t k = 0; k < f->part_count; k++)
			fuzz_bytes(f->parts[k].place.function, strlen(f->parts[k].place.function));
		fuzz_bytes(f->summary, strlen(f->summary));
		for (uint32_t k = 0; k < f->where_count; k++)
			fuzz_bytes(f->where[k].function, strlen(f->where[k].function));
		for (uint32_t k = 0; k < f->evidence_count; k++) {
			FUZZ_CHECK(f->evidence[k].from_ns <= f->evidence[k].to_ns);
			fuzz_bytes(f->evidence[k].text, strlen(f->evidence[k].text));
		}
	}
	check_ledger(e->ledger);
	tacho__explanation_free(e);
}

/* Nothing changed between a trace and itself. */
static void diff(struct tacho_reader *r, const void *data, size_t size)
{
	struct tacho_reader *other;
	struct tacho__diff *d;
	char message[128];
	int err;

	if (tacho_read_open_memory(&other, data, size, NULL, message, sizeof(message)))
		return;
	FUZZ_CHECK(!tacho_read_seek(r, 0));
	d = tacho__diff_make(r, other, NULL, &err);
	FUZZ_CHECK((d != NULL) == (err == 0));
	if (d)
		FUZZ_CHECK(!d->changed);
	tacho__diff_free(d);
	tacho_read_close(other);
}

static int count(struct tacho_reader *r)
{
	const struct tacho_event *e;
	int n = 0;

	while (n < EVENTS_MAX && tacho_read_next(r, &e) > 0)
		n++;
	return n;
}

/* Limits leave out, and give back all that they left out. */
static void limit(struct tacho_reader *r, int events)
{
	uint64_t first, last;

	if (tacho_read_window(r, &first, &last))
		return;
	FUZZ_CHECK(!tacho__read_limit(r, first + (last - first) / 2, last));
	fuzz_events(r);
	FUZZ_CHECK(!tacho__read_limit(r, 0, 0));
	FUZZ_CHECK(count(r) == events);
}

static void all(const void *data, size_t size)
{
	struct tacho_reader *r;
	char message[128];
	int events;

	if (tacho_read_open_memory(&r, data, size, NULL, message, sizeof(message)))
		return;
	events = count(r);
	if (events < EVENTS_MAX) {
		limit(r, events);
		explain(r);
		ledger(r);
		blame_all(r);
		diff(r, data, size);
	}
	tacho_read_close(r);
}

/* -------------------------------------------------------- records from the input */

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t byte(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

/* A small number, a large one, or one that looks like an error of its own. */
static uint64_t word(struct input *in)
{
	uint8_t b = byte(in);

	if (b < 0xf0)
		return b < 0xc0 ? b % 8 : (uint64_t)1 << (b - 0xc0);
	return b == 0xff ? UINT64_MAX : (uint64_t)byte(in) << (b & 15) * 4;
}

static uint64_t pause_of(struct input *in)
{
	static const uint64_t steps[] = {0, 1, 1000, 100000, 1000000, 20000000, 2000000000};
	uint8_t b = byte(in);

	return b < 0xf8 ? steps[b % 7] * (1u + b / 64) : (uint64_t)1 << (b & 7) * 8;
}

static void definitions(struct tb *t)
{
	static const uint8_t classes[IDS] = {
		0,
		TACHO_DEF_KIND,
		TACHO_DEF_KIND,
		TACHO_DEF_LOOP,
		TACHO_DEF_LOOP,
		TACHO_DEF_LOOP,
		TACHO_DEF_SPAN,
		TACHO_DEF_COUNTER,
		TACHO_DEF_GAUGE,
		TACHO_DEF_COUNTER,
		TACHO_DEF_TEXT,
		TACHO_DEF_PLACE,
		TACHO_DEF_STACK,
		TACHO_DEF_KIND,
		TACHO_DEF_GAUGE,
		TACHO_DEF_KIND,
	};
	static const char *const names[IDS] = {
		"",	 "connection", "timer", "loop 1", "loop 2", "loop 3",  "work", "count",
		"bytes", "float",      "read",	"place",  "",	    "uv_work", "rss",  "uv_timer",
	};
	uint8_t payload[256];
	struct tb p = {0};

	for (uint32_t id = 1; id < IDS; id++) {
		uint64_t frames[3] = {0x1000, 0x2000, 0x3000 + id};
		uint8_t detail = (uint8_t)(id >= 3 && id <= 5 ? id - 2 : id == 9 ? 2 : 1);

		if (classes[id] == TACHO_DEF_STACK)
			tb_definition(&p, id, classes[id], frames, sizeof(frames));
		else if (classes[id])
			tb_definition(&p, id, classes[id], payload,
				      bb_name(payload, names[id], id == 1 ? "a.c" : "", id,
					      id == 13 ? 0x1000 : 0, detail, ""));
	}
	tb_plain(t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
}

/* clang-format off */
#define TYPE(name, number, ...) number,
static const uint8_t types[] = {TACHO_EVENTS(TYPE, TACHO__NO_FIELD) TACHO_PACKED(TYPE)};
#undef TYPE
/* clang-format on */

/* { u8 type, u8 pause, u8 arg, words }; a type beyond the list ends the chunk. */
static int record(struct input *in, struct tacho_chunk *c, uint64_t *now)
{
	uint8_t type = byte(in);
	uint32_t arg, n = type < sizeof(types) ? TACHO_REC_CLASS(types[type]) : 0;
	uint64_t words[6];

	if (type >= sizeof(types) || c->commit + 128 > CHUNK_BYTES)
		return 0;
	*now += pause_of(in);
	arg = byte(in);
	if (n == TACHO_REC_CLASS_VARIABLE) {
		n = 1 + byte(in) % 6;
		words[0] = n | (uint64_t)(byte(in) % 32) << 16;
		for (uint32_t i = 1; i < n; i++)
			words[i] = word(in);
	} else {
		for (uint32_t i = 0; i < n; i++)
			words[i] = word(in);
	}
	bb_record(c, *now, types[type], arg < 0xf0 ? arg % 32 : arg << 16, words, n);
	return 1;
}

/* What a chunk's head says: { u8 thread, u8 stream, u8 hole, u8 flags, u8 open, ... } */
static void chunk(struct input *in, struct tb *t, uint64_t *now, uint32_t *sequence)
{
	union {
		struct tacho_chunk head;
		uint8_t bytes[CHUNK_BYTES + 256];
	} *u = calloc(1, sizeof(*u));
	static const uint16_t streams[] = {0, 0, 0, 1, 2, TACHO_STREAM_KERNEL};
	struct tacho_chunk *c = &u->head;
	uint8_t hole, flags;

	FUZZ_CHECK(u);
	c->commit = TACHO_CHUNK_HEAD;
	c->magic = TACHO_CHUNK_MAGIC;
	c->size = CHUNK_BYTES;
	c->thread = 1u + byte(in) % 4;
	c->tid = 1000 + c->thread;
	c->stream = streams[byte(in) % 6];
	hole = byte(in);
	flags = byte(in);
	c->sequence = (*sequence += 1u + hole % 3);
	c->prior_records = *sequence * 100ull + hole;
	c->drops = hole >> 6;
	*now += pause_of(in);
	c->anchor.ticks = c->anchor.mono_ns = c->last_ticks = *now;
	c->flags = flags & 1 ? TACHO_CHUNK_PARKED : 0;
	c->park_ticks = *now - (flags >> 1) * 1000u;
	c->loop = 2u + flags % 6;
	c->open_count = flags >> 5;
	for (uint32_t i = 0; i < c->open_count && i < TACHO_OPEN_MAX; i++) {
		uint8_t b = byte(in);

		c->open[i] = (struct tacho_open){
			b % 16u, b & 16 ? TACHO_REC_SPAN_BEGIN : TACHO_REC_POLL_BEGIN, b % 3u,
			b & 32	 ? *now - b * 1000u
			: b & 64 ? *now + b
				 : 0};
	}
	while (in->left && record(in, c, now))
		;
	tb_plain(t, TACHO_BLOCK_CHUNK, c, (size_t)c->commit);
	free(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tacho_box_thread threads[4] = {{0}};
	struct tacho_anchor anchor = {1000000000, 1000000000, 1700000000000000000ull};
	struct input in = {data, size};
	uint64_t now = 1000000000;
	uint32_t sequence = 0;
	struct tb t;

	if (size >= 8 && !memcmp(data, TACHO_TRACE_MAGIC, 8)) {
		all(data, size);
		return 0;
	}
	tb_init(&t);
	tb_meta(&t, 1, 2);
	tb_array(&t, TACHO_BLOCK_CLOCK, &anchor, sizeof(anchor), 1);
	definitions(&t);
	for (uint32_t i = 0; i < 4; i++)
		threads[i] = (struct tacho_box_thread){.state = TACHO_THREAD_LIVE, .number = i + 1};
	tb_array(&t, TACHO_BLOCK_THREADS, threads, sizeof(threads[0]), 4);
	for (uint32_t i = 0; i < CHUNKS_MAX && in.left; i++)
		chunk(&in, &t, &now, &sequence);
	tb_end(&t, 0);
	all(t.data, t.size);
	tb_free(&t);
	return 0;
}
