/* Explanations of traces that are made record by record. Include after cmocka.h. */
#ifndef TESTS_EXPLAIN_HELP_H
#define TESTS_EXPLAIN_HELP_H

#include "explain/explain.h"
#include "model_help.h"

#define MODULE 100u
#define OTHER 101u	 /* a loop of which waits are seen */
#define CODE 0x400000ull /* where "/bin/server" is mapped; its functions have no names */

struct explained {
	struct tacho_reader *reader;
	struct tacho__explanation *e;
	struct trace m;
};

/* In the state `state`: 2 it records, 4 it has ended in order. */
static inline void begin_process(struct trace *m, uint64_t state, uint32_t pid)
{
	static const uint8_t boot[16] = {9, 9, 9};
	static const char path[] = "/bin/server";
	uint8_t module[TACHO_MODULE_HEAD + sizeof(path) - 1] = {0};
	const uint64_t range[4] = {CODE, CODE + 0x100000, 0, 1};
	uint16_t size = sizeof(path) - 1;
	uint8_t payload[64];
	struct tb p = {0};

	memset(m, 0, sizeof(*m));
	tb_init(&m->t);
	tb_meta_u64(&p, TACHO_META_PID, pid);
	tb_meta_u64(&p, TACHO_META_START_TIME, 5);
	tb_meta_put(&p, TACHO_META_BOOT_ID, boot, 16);
	tb_meta_u64(&p, TACHO_META_CREATED_MONO, 500);
	tb_meta_u64(&p, TACHO_META_TAKEN_MONO, 2);
	tb_meta_u64(&p, TACHO_META_CLOCK, TACHO_CLOCK_TSC);
	tb_meta_u64(&p, TACHO_META_STATE, state);
	tb_plain(&m->t, TACHO_BLOCK_META, p.data, p.size);
	free(p.data);
	trace_definitions(m);
	memset(&p, 0, sizeof(p));
	memcpy(module, range, sizeof(range));
	memcpy(module + 34, &size, 2);
	memcpy(module + TACHO_MODULE_HEAD, path, size);
	tb_definition(&p, MODULE, TACHO_DEF_MODULE, module, sizeof(module));
	tb_definition(&p, OTHER, TACHO_DEF_LOOP, payload,
		      bb_name(payload, "other loop", "", 0, 0, TACHO_LEVEL_WAITS, ""));
	tb_plain(&m->t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
}

static inline void begin(struct trace *m, uint64_t state)
{
	begin_process(m, state, 1);
}

static inline struct tacho__explanation *explain(struct explained *x)
{
	int error;

	x->reader = trace_reader(&x->m);
	x->e = tacho__explain(x->reader, NULL, &error);
	assert_non_null(x->e);
	assert_int_equal(tacho_read_problem_count(x->reader), 0);
	for (uint32_t i = 0; i < x->e->count; i++)
		print_message("%s: %s\n", tacho__rules[x->e->findings[i].rule].id,
			      x->e->findings[i].summary);
	print_message("%s: %s\n", x->e->verdict.category, x->e->verdict.summary);
	return x->e;
}

static inline void end(struct explained *x)
{
	tacho__explanation_free(x->e);
	tacho_read_close(x->reader);
	tb_free(&x->m.t);
}

/* The n-th finding of a rule, from 0; NULL: there are not so many. */
static inline const struct tacho__finding *found(const struct tacho__explanation *e,
						 const char *rule, uint32_t n)
{
	for (uint32_t i = 0; i < e->count; i++)
		if (strcmp(tacho__rules[e->findings[i].rule].id, rule) == 0 && !n--)
			return &e->findings[i];
	return NULL;
}

static inline int says(const struct tacho__finding *f, const char *text)
{
	return f && strstr(f->summary, text);
}

static inline int shows(const struct tacho__finding *f, const char *text)
{
	for (uint32_t i = 0; f && i < f->evidence_count; i++)
		if (strstr(f->evidence[i].text, text))
			return 1;
	return 0;
}

/* A turn of LOOP_1 without anything in it. */
static inline void turn(struct trace *m, uint64_t from, uint64_t to)
{
	PUT(m, from, UNPARK, 1);
	PUT(m, to, PARK, LOOP_1);
}

/* Samples each 10 ms in the code at `at`, of which no two are of the same instruction, called by
   `caller`, which is called from the loop. */
static inline void sampled(struct trace *m, uint64_t from, uint64_t to, uint64_t at,
			   uint64_t caller)
{
	for (uint64_t ns = from + 5 * MS; ns < to; ns += 10 * MS)
		PUT(m, ns, SAMPLE_FRAMES, 0, 0, 10 * MS, CODE + at + ns / MS % 997, CODE + caller,
		    CODE + 0x9000);
}

#endif
