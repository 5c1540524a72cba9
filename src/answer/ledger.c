#include "answer/answer.h"
#include "answer/describe.h"

#define KEY_MAX 256u

static void line_json(struct json *j, const struct tacho__ledger *l,
		      const struct tacho__ledger_line *line)
{
	struct tacho__place place;
	char key[KEY_MAX];

	json_put_string(j, "owner", tacho__owns_name(line->owns));
	json_put_known(j, "key", tacho__ledger_key(l, line, key, sizeof(key)));
	json_key(j, "place");
	if (tacho__ledger_place(l, line, &place)) {
		json_object(j);
		describe_place_json(j, &place);
		json_object_end(j);
	} else {
		json_null(j);
	}
}

static void sums_json(struct json *j, uint64_t ns, uint64_t count, uint64_t longest,
		      uint64_t waiting, uint64_t estimated)
{
	json_put_u64(j, "ns", ns);
	json_put_u64(j, "count", count);
	json_put_u64(j, "longest_ns", longest);
	json_put_u64(j, "waiting_ns", waiting);
	json_put_u64(j, "estimated_ns", estimated);
}

static void thread_json(struct json *j, const struct tacho_reader *reader,
			const struct tacho__ledger *l, uint32_t thread, uint32_t line)
{
	const struct tacho__ledger_thread *t = &l->threads[thread];
	const struct tacho_process *p = tacho_read_process(reader, t->process);
	const struct tacho_definition *loop =
		t->loop ? tacho_read_definition(reader, t->process, t->loop) : NULL;

	json_object(j);
	json_put_u64(j, "pid", p ? p->pid : 0);
	describe_thread_json(j, "tid", tacho_read_thread_by_number(reader, t->process, t->thread));
	json_put_known(j, "loop", loop ? loop->name : "");
	json_put_bool(j, "pool", t->is_pool);
	json_put_u64(j, "from_ns", t->first_ns);
	json_put_u64(j, "to_ns", t->last_ns);
	json_put_u64(j, "waiting_ns", t->waiting_ns);
	json_put_array(j, "owners");
	for (; line < l->line_count && l->lines[line].thread == thread; line++) {
		const struct tacho__ledger_line *x = &l->lines[line];

		json_object(j);
		line_json(j, l, x);
		sums_json(j, x->ns, x->count, x->longest_ns, x->waiting_ns, x->estimated_ns);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

void answer_ledger(struct json *j, const struct tacho_reader *reader, const struct tacho__ledger *l)
{
	uint32_t line = 0;

	json_put_object(j, "ledger");
	json_put_u64(j, "waiting_ns", l->waiting_ns);
	json_put_u64(j, "unserved_ns", l->unserved_ns);
	json_put_array(j, "threads");
	for (uint32_t i = 0; i < l->thread_count; i++) {
		if (tacho__is_of_interest(&l->threads[i]))
			thread_json(j, reader, l, i, line);
		while (line < l->line_count && l->lines[line].thread == i)
			line++;
	}
	json_array_end(j);
	json_put_array(j, "owners");
	for (uint32_t i = 0; i < l->owner_count; i++) {
		const struct tacho__ledger_owner *o = &l->owners[i];
		const struct tacho_process *p = tacho_read_process(reader, o->process);

		json_object(j);
		json_put_u64(j, "pid", p ? p->pid : 0);
		line_json(j, l, &l->lines[o->line]);
		json_put_u64(j, "threads", o->threads);
		sums_json(j, o->ns, o->count, o->longest_ns, o->waiting_ns, o->estimated_ns);
		json_put_u64(j, "lost_ns", o->lost_ns);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}
