/* What there is: processes, lanes, and what happened once. */
#include <inttypes.h>
#include <string.h>

#include "engine.h"
#include "answer/answer.h"
#include "model/place.h"
#include "text/end.h"
#include "things.h"

static void put_process(struct json *j, uint32_t index)
{
	const struct tacho_process *p = tacho_read_process(page.reader, index);
	const struct tacho__explained *e = page.explanation
						   ? &page.explanation->processes[index]
						   : NULL;
	char end[TEXT_END];

	json_object(j);
	json_put_u64(j, "pid", p->pid);
	json_put_known(j, "comm", p->comm);
	json_put_known(j, "exe", p->exe);
	json_put_known(j, "service", p->service);
	json_put_known(j, "host", p->host);
	json_put_known(j, "why", p->why);
	json_put_known(j, "end", text_end(end, p));
	json_put_known(j, "imported", p->imported);
	json_put_f64(j, "taken_ms", (double)(p->taken_real_ns / 1000000));
	json_put_f64(j, "real_ms",
		     (double)tacho_read_real_ns(page.reader, index, page.first_ns) / 1e6);
	if (e) {
		json_put_f64(j, "from", since(e->first_ns));
		json_put_f64(j, "to", since(e->last_ns));
		json_put_u64(j, "events", e->events);
	}
	json_object_end(j);
}

static void put_row_name(struct json *j, const struct tacho__lane *l, const struct tacho__row *r)
{
	char name[TACHO__TEXT] = "";

	if (r->type == TACHO__TRACK_HELD)
		snprintf(name, sizeof(name), "lock 0x%" PRIx64,
			 tacho__view_lock(&page.view, r->name));
	else
		tacho__name_of(name, sizeof(name), page.reader, l->process, r->name, page.last_ns);
	json_put_known(j, "name", name);
}

static void put_lane(struct json *j, const struct tacho__lane *l)
{
	const struct tacho_thread *t =
		tacho_read_thread_by_number(page.reader, l->process, l->thread);
	const struct tacho_process *p = tacho_read_process(page.reader, l->process);
	char name[TACHO__TEXT];

	json_object(j);
	json_put_u64(j, "lane", l->entry.index);
	json_put_u64(j, "process", l->process);
	json_put_u64(j, "thread", l->thread);
	json_put_u64(j, "tid", t ? t->tid : 0);
	/* The Ps of Go are not the threads that run them, and have no numbers of the kernel. */
	json_put_bool(j, "numbered", strncmp(p->imported, "a Go ", 5) != 0);
	json_put_known(j, "name", t ? t->name : "");
	tacho__name_of(name, sizeof(name), page.reader, l->process, l->loop, page.last_ns);
	json_put_known(j, "loop", name);
	json_put_array(j, "rows");
	for (uint32_t i = 0; i < l->row_count; i++) {
		const struct tacho__row *r = &l->rows[i];

		json_object(j);
		json_put_u64(j, "type", r->type);
		json_put_u64(j, "row", r->row);
		json_put_u64(j, "count", r->track.count);
		if (r->type == TACHO__TRACK_POLLS)
			json_put_u64(j, "unnamed", r->track.unnamed);
		if (r->curve)
			json_put_f64(j, "most", (double)r->curve->most);
		put_row_name(j, l, r);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void put_marks(struct json *j)
{
	json_put_array(j, "marks");
	for (uint32_t i = 0; i < tacho_read_trigger_count(page.reader); i++) {
		const struct tacho_trigger_info *t = tacho_read_trigger(page.reader, i);

		json_object(j);
		json_put_string(j, "type", "trigger");
		json_put_f64(j, "at", since(t->ns));
		json_put_u64(j, "process", t->process);
		json_put_u64(j, "tid", t->tid);
		json_put_known(j, "text", t->reason);
		json_object_end(j);
	}
	for (uint32_t i = 0; i < tacho_read_crash_count(page.reader); i++) {
		const struct tacho_crash_info *c = tacho_read_crash(page.reader, i);

		json_object(j);
		json_put_string(j, "type", "crash");
		json_put_f64(j, "at", since(c->ns));
		json_put_u64(j, "process", c->process);
		json_put_u64(j, "tid", c->tid);
		json_put_u64(j, "signal", (uint64_t)c->signal);
		json_put_known(j, "text", c->said);
		json_object_end(j);
	}
	json_array_end(j);
	json_put_array(j, "gaps");
	for (uint32_t i = 0; i < tacho_read_gap_count(page.reader); i++) {
		const struct tacho_gap *g = tacho_read_gap(page.reader, i);

		json_object(j);
		json_put_u64(j, "process", g->process);
		json_put_f64(j, "from", since(g->from_ns));
		json_put_f64(j, "to", since(g->to_ns));
		json_put_string(j, "text", g->text);
		json_object_end(j);
	}
	json_array_end(j);
}

EXPORT(page_overview) const char *page_overview(void)
{
	struct json j;

	answer_begin(&j);
	json_object(&j);
	json_put_f64(&j, "window", since(page.last_ns));
	json_put_f64(&j, "stopped", page.stopped);
	json_put_u64(&j, "things", page.view.things);
	json_put_u64(&j, "dropped", page.view.dropped);
	json_put_u64(&j, "crowded", page.view.crowded);
	json_put_u64(&j, "thinned", page.view.thinned);
	json_put_u64(&j, "thin_ns", page.view.thin_ns);
	json_put_array(&j, "processes");
	for (uint32_t i = 0; i < tacho_read_process_count(page.reader); i++)
		put_process(&j, i);
	json_array_end(&j);
	json_put_array(&j, "lanes");
	for (const struct tacho__lane *l = NULL; (l = tacho__table_next(&page.view.lanes, l));)
		put_lane(&j, l);
	json_array_end(&j);
	put_marks(&j);
	json_put_array(&j, "problems");
	for (uint32_t i = 0; i < tacho_read_problem_count(page.reader) && i < 20; i++)
		json_string(&j, tacho_read_problem(page.reader, i)->text);
	json_array_end(&j);
	json_object_end(&j);
	return answer_end(&j);
}

/* What a definition is called, as JSON; stacks and places without a name by their code. */
EXPORT(page_name) const char *page_name(uint32_t process, uint32_t id)
{
	char name[NAME_BYTES];
	struct json j;

	called(name, process, id);
	answer_begin(&j);
	json_string(&j, name);
	return answer_end(&j);
}

/* As `tacho report --json --ledger`, byte for byte but for the spaces. */
EXPORT(page_report) const char *page_report(void)
{
	struct json j;

	answer_begin(&j);
	answer_report(&j, page.reader, page.explanation, true);
	return answer_end(&j);
}
