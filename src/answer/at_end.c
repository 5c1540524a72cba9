#include "answer/answer.h"
#include "answer/describe.h"

static void put_place(struct json *j, const char *key, const struct tacho__place *p)
{
	json_key(j, key);
	if (!p->function[0] && !p->address) {
		json_null(j);
		return;
	}
	json_object(j);
	describe_place_json(j, p);
	json_object_end(j);
}

static void put_name(struct json *j, const char *key, const struct tacho__at_ends *list,
		     const struct tacho__at_end *e, uint32_t id)
{
	char name[TACHO__AT_END_TEXT];

	tacho__name_of(name, sizeof(name), list->reader, e->process, id, e->end_ns);
	json_put_known(j, key, name);
}

void answer_at_end(struct json *j, const struct tacho__at_ends *list, uint32_t process)
{
	struct tacho__at_end_part p = tacho__at_end_part(list, process);
	char text[TACHO__AT_END_TEXT];

	if (!p.count)
		return;
	json_put_array(j, "threads_at_end");
	for (uint32_t i = 0; i < p.count; i++) {
		const struct tacho__at_end *e = &p.at[i];
		bool waits = e->in != TACHO__IN_NOTHING, inside = e->kind || e->in_turn;

		json_object(j);
		json_put_u64(j, "tid", e->tid);
		json_put_known(j, "name", e->name);
		json_put_not_zero(j, "signal", e->crashed);
		json_put_known(j, "inside", tacho__at_end_inside(e));
		put_name(j, "kind", list, e, e->kind);
		put_place(j, "inside_at", &e->place);
		json_put_u64_if(j, "inside_ns", inside, e->kind_ns);
		json_put_known(j, "waits", tacho__at_end_waits(e));
		json_put_u64_if(j, "waits_ns", waits && e->known, e->ns);
		json_put_bool(j, "at_most", e->at_most != 0);
		put_name(j, "call", list, e, e->call);
		json_put_u64_if(j, "on", e->on >= 0, (uint64_t)e->on);
		put_place(j, "waits_at", &e->at);
		json_put_address_if(j, "lock", e->lock != 0, e->lock);
		json_put_not_zero(j, "owner", e->owner);
		put_name(j, "loop", list, e, e->loop);
		json_put_bool(j, "idle", tacho__at_end_idles(e));
		json_put_string(j, "text", tacho__at_end_text(text, list->reader, e));
		json_object_end(j);
	}
	json_array_end(j);
}
