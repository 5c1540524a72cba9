#include "answer/answer.h"

#include "answer/describe.h"
#include "text/end.h"

static void put_place_json(struct json *j, const struct tacho__finding *f, uint32_t index)
{
	json_object(j);
	describe_place_json(j, &f->where[index]);
	json_put_bool(j, "called_the_one_before", index && !(f->where_other >> index & 1));
	json_object_end(j);
}

static void put_process_json(struct json *j, const struct tacho_reader *reader, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(reader, process);

	json_put_u64(j, "pid", p ? p->pid : 0);
	json_put_known(j, "program", p ? p->comm : "");
}

static void put_measure_json(struct json *j, const struct tacho__measure *m)
{
	json_key(j, "measure");
	if (!m->count) {
		json_null(j);
		return;
	}
	json_object(j);
	json_put_u64(j, "count", m->count);
	json_put_u64(j, "longest_ns", m->longest_ns);
	json_put_u64(j, "total_ns", m->total_ns);
	json_put_u64(j, "threads", m->threads);
	json_put_bool(j, "is_sum", m->is_sum);
	json_object_end(j);
}

/* The processes that it was in; what each of them adds to its sums. */
static void put_instances_json(struct json *j, const struct tacho_reader *reader,
			       const struct tacho__spread *s)
{
	json_put_u64(j, "processes", s->processes);
	json_put_u64(j, "processes_in_all", s->processes_in_all);
	json_put_u64(j, "threads", s->threads);
	json_put_u64(j, "threads_in_all", s->threads_in_all);
	json_put_array(j, "instances");
	for (uint32_t i = 0; i < s->count; i++) {
		const struct tacho__instance *n = &s->at[i];

		json_object(j);
		put_process_json(j, reader, n->process);
		describe_thread_json(j, "tid",
				     tacho_read_thread_by_number(reader, n->process, n->thread));
		json_put_u64(j, "threads", n->threads);
		json_put_f64(j, "cost_ns", n->cost_ns);
		json_put_f64(j, "waiting_ns", n->waiting_ns);
		json_put_u64(j, "count", n->count);
		json_put_u64(j, "longest_ns", n->longest_ns);
		json_object_end(j);
	}
	json_array_end(j);
	json_put_u64(j, "instances_left_out", s->left_out);
}

static void put_parts_json(struct json *j, const struct tacho_reader *reader,
			   const struct tacho__finding *f)
{
	json_put_array(j, "parts");
	for (uint32_t i = 0; i < f->part_count; i++) {
		const struct tacho__part *p = &f->parts[i];

		json_object(j);
		json_put_string(j, "role", tacho__role_name(p->role));
		describe_thread_json(j, "tid",
				     tacho_read_thread_by_number(reader, f->process, p->thread));
		json_put_u64_if(j, "task", p->task != 0, p->task);
		json_put_known(j, "what", p->what);
		json_put_object(j, "place");
		describe_place_json(j, &p->place);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_finding_json(struct json *j, const struct tacho_reader *reader,
			     const struct tacho__finding *f)
{
	json_object(j);
	json_put_string(j, "rule", tacho__rules[f->rule].id);
	json_put_string(j, "severity", tacho__severity_name(f->severity));
	put_process_json(j, reader, f->process);
	json_put_string(j, "summary", f->summary);
	json_put_array(j, "where");
	for (uint32_t i = 0; i < f->where_count; i++)
		put_place_json(j, f, i);
	json_array_end(j);
	json_put_array(j, "evidence");
	for (uint32_t i = 0; i < f->evidence_count; i++) {
		const struct tacho__evidence *v = &f->evidence[i];

		json_object(j);
		json_put_u64(j, "from_ns", v->from_ns);
		json_put_u64(j, "to_ns", v->to_ns);
		describe_thread_json(j, "tid",
				     tacho_read_thread_by_number(reader, v->process, v->thread));
		json_put_u64_if(j, "task", v->task != 0, v->task);
		json_put_f64(j, "value", v->value);
		json_put_known(j, "unit", v->unit);
		json_put_string(j, "text", v->text);
		json_object_end(j);
	}
	json_array_end(j);
	put_parts_json(j, reader, f);
	json_put_string(j, "advice", f->advice);
	json_put_known(j, "names", f->names);
	json_put_known(j, "loop", f->loop_name);
	put_measure_json(j, &f->measure);
	json_put_f64(j, "cost_ns", f->cost_ns);
	json_put_f64(j, "waiting_ns", f->waiting_ns);
	json_put_bool(j, "condition", tacho__is_condition(f));
	put_instances_json(j, reader, &f->spread);
	json_put_u64_if(j, "explained_by", f->folded_into >= 0, (uint64_t)f->folded_into);
	json_object_end(j);
}

static void put_considered(struct json *j, const struct tacho_reader *reader,
			   const struct tacho__considered *c)
{
	json_object(j);
	json_put_string(j, "rule", tacho__rules[c->rule].id);
	put_process_json(j, reader, c->process);
	json_put_string(j, "what", c->what);
	json_put_f64(j, "cost_ns", c->cost_ns);
	json_put_f64(j, "waiting_ns", c->waiting_ns);
	json_put_string(j, "reason", c->reason);
	json_object_end(j);
}

static void put_trace_json(struct json *j, const struct tacho_reader *reader,
			   const struct tacho__explanation *e)
{
	const struct tacho_process *p = tacho_read_process(reader, e->process);
	uint64_t events = 0, last_ns, first_ns = tacho__explained_window(e, &last_ns);

	for (uint32_t i = 0; i < e->process_count; i++)
		events += e->processes[i].events;
	json_put_object(j, "trace");
	json_put_u64(j, "events", events);
	json_put_u64(j, "from_ns", first_ns);
	json_put_u64(j, "to_ns", last_ns);
	json_put_u64(j, "processes", e->process_count);
	if (!p || p->pid || !p->imported[0])
		json_put_u64(j, "pid", p ? p->pid : 0);
	json_put_known(j, "comm", p ? p->comm : "");
	json_put_known(j, "service", p ? p->service : "");
	json_put_known(j, "why", p && p->why ? p->why : "");
	if (p && p->imported[0])
		json_put_string(j, "imported", p->imported);
	if (p)
		text_end_json(j, p);
	json_object_end(j);
}

/* How much of it can be read. */
static void put_readable_json(struct json *j, const struct tacho__readable *r)
{
	json_put_object(j, "readable");
	json_put_bool(j, "damaged", r->is_damaged);
	json_put_bool(j, "cut", r->is_cut);
	json_put_f64(j, "share", r->share);
	json_put_bool(j, "share_is_bound", r->is_uncounted);
	json_put_u64(j, "records", r->records);
	json_put_u64(j, "lost_records", r->lost);
	json_put_known(j, "text", r->text);
	json_object_end(j);
}

static void put_verdict_json(struct json *j, const struct tacho_reader *reader,
			     const struct tacho__explanation *e)
{
	const struct tacho__verdict *v = &e->verdict;

	json_put_object(j, "verdict");
	json_put_string(j, "category", v->category);
	put_process_json(j, reader, e->process);
	json_put_string(j, "summary", v->summary);
	json_put_u64(j, "judged_loops", v->loops);
	json_put_u64(j, "other_threads", v->others);
	json_put_f64_if(j, "other_cpus", v->others_cpus >= 0, v->others_cpus);
	put_readable_json(j, &e->readable);
	json_object_end(j);
}

static void put_processes_json(struct json *j, const struct tacho_reader *reader,
			       const struct tacho__explanation *e)
{
	json_key(j, "processes");
	json_array(j);
	for (uint32_t i = 0; i < e->process_count; i++) {
		const struct tacho__explained *p = &e->processes[i];

		json_object(j);
		put_process_json(j, reader, i);
		json_put_u64(j, "events", p->events);
		json_put_u64(j, "from_ns", p->first_ns);
		json_put_u64(j, "to_ns", p->last_ns);
		answer_at_end(j, &e->at_ends, i);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_losses_json(struct json *j, const struct tacho_reader *reader,
			    const struct tacho__explanation *e)
{
	uint64_t missing = 0, dropped = 0;

	for (uint32_t i = 0; i < e->process_count; i++) {
		missing += e->processes[i].missing;
		dropped += e->processes[i].dropped;
	}
	json_put_object(j, "losses");
	json_put_u64(j, "missing_records", missing);
	json_put_u64(j, "dropped_records", dropped);
	json_put_u64(j, "problems", tacho_read_problem_count(reader));
	json_object_end(j);
}

void answer_report(struct json *j, const struct tacho_reader *reader,
		   const struct tacho__explanation *e, bool ledger)
{
	json_object(j);
	json_put_u64(j, "version", 2);
	put_trace_json(j, reader, e);
	put_processes_json(j, reader, e);
	put_verdict_json(j, reader, e);
	json_put_array(j, "findings");
	for (uint32_t i = 0; i < e->count; i++)
		put_finding_json(j, reader, &e->findings[i]);
	json_array_end(j);
	json_put_array(j, "considered");
	for (uint32_t i = 0; i < e->considered_count; i++)
		put_considered(j, reader, &e->considered[i]);
	json_array_end(j);
	json_put_object(j, "coverage");
	for (uint32_t i = 0; i < TACHO__RULE_COUNT; i++) {
		if (!e->coverage[i].is_known)
			continue;
		json_put_object(j, tacho__rules[i].id);
		json_put_bool(j, "checked", e->coverage[i].checked);
		json_put_known(j, "why", e->coverage[i].why);
		json_object_end(j);
	}
	json_object_end(j);
	if (ledger)
		answer_ledger(j, reader, e->ledger);
	answer_absent(j, reader);
	put_losses_json(j, reader, e);
	json_object_end(j);
}
