/* Traces in which one number is just what a rule asks for, or just not. Include after cmocka.h. */
#ifndef TESTS_JUDGEMENT_HELP_H
#define TESTS_JUDGEMENT_HELP_H

#include "explain_help.h"

/* Definitions beside those of explain_help.h. */
enum { TIMER = 110, QUOTA, REQUEST };

/* What follows is recorded by thread 1. */
static inline void draw(struct explained *x)
{
	uint8_t payload[64];
	struct tb p = {0};

	begin(&x->m, TACHO_STATE_RECORDING);
	tb_definition(&p, TIMER, TACHO_DEF_KIND, payload,
		      bb_name(payload, "uv_timer", "", 0, 0, 0, ""));
	tb_definition(&p, QUOTA, TACHO_DEF_COUNTER, payload,
		      bb_name(payload, "cgroup throttled", "", 0, 0, 1, "us"));
	tb_definition(&p, REQUEST, TACHO_DEF_TEXT, payload,
		      bb_name(payload, "a request", "", 0, 0, 0, ""));
	tb_plain(&x->m.t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
	trace_stream(&x->m, 1, 0);
}

/* A stretch of records holds some thousand events. */
static inline void again(struct trace *m, uint64_t i)
{
	if (i % 100 == 99)
		trace_stream(m, m->thread, m->stream);
}

/* Whether the rule has a finding; the drawing is done with. */
static inline int finds(struct explained *x, enum tacho__rule_id rule)
{
	int is;

	explain(x);
	is = found(x->e, tacho__rules[rule].id, 0) != NULL;
	end(x);
	return is;
}

#endif
