/* Ledgers of traces that are made record by record. Include after cmocka.h. */
#ifndef TESTS_LEDGER_HELP_H
#define TESTS_LEDGER_HELP_H

#include "base/crc32c.h"
#include "explain/ledger.h"
#include "model_help.h"

/* Definitions beside those of model_help.h. */
enum {
	SET_A = 20, /* two names of one epoll set */
	SET_B = 21,
	QUOTA = 22,
	ACCEPT = 23,
	SLEEP = 24,
	TIMER = 25,
	CLIENTS = 26, /* the loop of threads that serve one each */
	CPUS = 27,
	RECORDER = 30, /* modules */
	SERVER = 31,
};
#define TACHO_CODE 0x300000ull
#define SERVER_CODE 0x400000ull

struct booked {
	struct trace m;
	struct tacho_reader *reader;
	struct tacho__ledger *l;
};

static inline void put_module(struct tb *p, uint32_t id, uint64_t from, const char *path)
{
	uint8_t module[TACHO_MODULE_HEAD + 64] = {0};
	const uint64_t range[4] = {from, from + 0x10000, 0, 1};
	uint16_t size = (uint16_t)strlen(path);

	memcpy(module, range, sizeof(range));
	memcpy(module + 34, &size, 2);
	memcpy(module + TACHO_MODULE_HEAD, path, size);
	tb_definition(p, id, TACHO_DEF_MODULE, module, TACHO_MODULE_HEAD + size);
}

/* All threads get CPU samples. */
static inline void book_begin(struct booked *b)
{
	struct tacho_box_source sources[TACHO_SOURCE_CPU_SAMPLES + 1] = {{0}};
	uint8_t payload[256];
	struct tb p = {0};

	trace_begin(&b->m);
	sources[TACHO_SOURCE_CPU_SAMPLES].state = TACHO_SOURCE_ON;
	tb_array(&b->m.t, TACHO_BLOCK_SOURCES, sources, sizeof(sources[0]),
		 TACHO_SOURCE_CPU_SAMPLES + 1);
	tb_definition(&p, SET_A, TACHO_DEF_LOOP, payload,
		      bb_name(payload, "front epoll 5", "", 0, 5, TACHO_LEVEL_WAITS, ""));
	tb_definition(&p, SET_B, TACHO_DEF_LOOP, payload,
		      bb_name(payload, "back epoll 5", "", 0, 5, TACHO_LEVEL_WAITS, ""));
	tb_definition(&p, QUOTA, TACHO_DEF_COUNTER, payload,
		      bb_name(payload, "cgroup throttled", "", 0, 0, 1, "us"));
	tb_definition(&p, ACCEPT, TACHO_DEF_TEXT, payload,
		      bb_name(payload, "accept", "", 0, 0, 0, ""));
	tb_definition(&p, SLEEP, TACHO_DEF_TEXT, payload,
		      bb_name(payload, "nanosleep", "", 0, 0, 0, ""));
	tb_definition(&p, TIMER, TACHO_DEF_KIND, payload,
		      bb_name(payload, "uv_timer", "", 0, 0, 0, ""));
	tb_definition(&p, CLIENTS, TACHO_DEF_LOOP, payload,
		      bb_name(payload, "connections", "", 0, 0, TACHO_LEVEL_WAITS, ""));
	tb_definition(&p, CPUS, TACHO_DEF_GAUGE, payload,
		      bb_name(payload, TACHO_GAUGE_CPUS, "", 0, 0, 1, ""));
	put_module(&p, RECORDER, TACHO_CODE, "/usr/lib/libtacho-preload.so.0");
	put_module(&p, SERVER, SERVER_CODE, "/bin/server");
	tb_plain(&b->m.t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
}

/* A part of a recording, of a process of its own. */
static inline void part_begin(struct trace *m, uint32_t part)
{
	struct tacho_trace_file *file;

	memset(m, 0, sizeof(*m));
	tb_init(&m->t);
	m->t.tag = TB_TAG + part;
	file = (struct tacho_trace_file *)m->t.data;
	file->tag = m->t.tag;
	file->crc = tacho__crc32c(0, file, 60);
	tb_meta(&m->t, 100 + part, 9000 + part);
	trace_definitions(m);
	trace_stream(m, 1, 0);
}

/* What must hold of every ledger. */
static inline void book_check(const struct tacho__ledger *l)
{
	uint64_t cost = l->unserved_ns, lines = l->unserved_ns;

	for (uint32_t i = 0; i < l->owner_count; i++)
		cost += l->owners[i].waiting_ns;
	for (uint32_t t = 0; t < l->thread_count; t++) {
		uint64_t ns = 0, idle = 0;

		for (uint32_t i = 0; i < l->line_count; i++)
			if (l->lines[i].thread == t) {
				ns += l->lines[i].ns;
				idle += l->lines[i].owns == TACHO__OWNS_IDLE ? l->lines[i].ns : 0;
				lines += l->lines[i].waiting_ns;
				assert_true(l->lines[i].estimated_ns <= l->lines[i].waiting_ns);
			}
		assert_int_equal(ns, l->threads[t].last_ns - l->threads[t].first_ns);
		assert_int_equal(idle, l->threads[t].idle_ns);
	}
	assert_int_equal(lines, l->waiting_ns);
	assert_int_equal(cost, l->waiting_ns);
}

static inline void book_make_silently(struct booked *b)
{
	int error;

	b->reader = trace_reader(&b->m);
	b->l = tacho__ledger_make(b->reader, &error);
	assert_non_null(b->l);
	assert_int_equal(tacho_read_problem_count(b->reader), 0);
	book_check(b->l);
}

static inline void book_make(struct booked *b)
{
	book_make_silently(b);
	for (uint32_t i = 0; i < b->l->line_count; i++) {
		const struct tacho__ledger_line *x = &b->l->lines[i];
		char key[128];

		print_message("thread %u: %s %s: %d us, %d times, waiting %d us\n",
			      b->l->threads[x->thread].thread, tacho__owns_name(x->owns),
			      tacho__ledger_key(b->l, x, key, sizeof(key)), (int)(x->ns / 1000),
			      (int)x->count, (int)(x->waiting_ns / 1000));
	}
}

static inline void book_end(struct booked *b)
{
	tacho__ledger_free(b->l);
	tacho_read_close(b->reader);
	tb_free(&b->m.t);
}

/* What an owner had of the time of a thread, all its keys or reasons together. */
struct had {
	uint64_t ns, waiting, estimated, count;
};
static inline struct had had(const struct booked *b, uint32_t thread, enum tacho__owns owns)
{
	struct had sum = {0, 0, 0, 0};

	for (uint32_t i = 0; i < b->l->line_count; i++) {
		const struct tacho__ledger_line *x = &b->l->lines[i];

		if (b->l->threads[x->thread].thread != thread || x->owns != owns)
			continue;
		sum.ns += x->ns;
		sum.waiting += x->waiting_ns;
		sum.estimated += x->estimated_ns;
		sum.count += x->count;
	}
	return sum;
}

/* The most costly line of an owner. */
static inline const struct tacho__ledger_line *line_of(const struct booked *b,
						       enum tacho__owns owns)
{
	const struct tacho__ledger_line *best = NULL;

	for (uint32_t i = 0; i < b->l->line_count; i++)
		if (b->l->lines[i].owns == owns &&
		    (!best || b->l->lines[i].waiting_ns > best->waiting_ns))
			best = &b->l->lines[i];
	assert_non_null(best);
	return best;
}

#define ALL_MS(b, thread, owner, ms) \
	assert_int_equal(had(b, thread, TACHO__OWNS_##owner).ns, (uint64_t)((ms) * (double)MS))
#define COST_MS(b, thread, owner, ms) \
	assert_int_equal(had(b, thread, TACHO__OWNS_##owner).waiting, (uint64_t)((ms) * (double)MS))

/* A call of 1000 `ms` before `at` that just returned. */
static inline void put_call(struct trace *m, uint64_t at, uint32_t name, uint64_t took)
{
	PUT(m, at, CALL, name, 0, took, UINT64_MAX, 0);
}

#endif
