#include "cli/facts_json.h"

#include "answer/fact.h"

struct out {
	const struct tacho_reader *reader;
	FILE *file;
};

/* clang-format off */
#define FACT(fact, name, type, ...) \
	static void take_##fact(void *arg, const struct type *x) \
	{ \
		struct out *out = arg; \
		struct json j; \
		json_begin(&j, out->file, false); \
		fact_put_##fact(&j, out->reader, x); \
		json_end_line(&j); \
	}
#define MEMBERS FACT
#include "model/facts.def"
/* clang-format on */

static void take_value(void *arg, const struct tacho__counter *c)
{
	if (c->depth)
		take_queue_depth(arg, c);
	else
		take_counter(arg, c);
}

static void take_other(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct out *out = arg;
	struct json j;

	json_begin(&j, out->file, false);
	fact_put_other(&j, out->reader, at, e);
	json_end_line(&j);
}

int facts_put_json(FILE *out, struct tacho_reader *reader, struct tacho__tracker_limits *missed)
{
	struct out arg = {reader, out};
	const struct tacho__facts facts = {
		.arg = &arg,
		.poll = take_poll,
		.turn = take_turn,
		.wake = take_wake,
		.lock = take_lock,
		.call = take_call,
		.work = take_work,
		.span = take_span,
		.sample = take_sample,
		.off_cpu = take_off_cpu,
		.task = take_task,
		.counter = take_value,
		.ready = take_ready,
		.hole = take_hole,
		.other = take_other,
	};

	return tacho__model_run(reader, &facts, NULL, NULL, missed);
}
