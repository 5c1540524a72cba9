#include <stdio.h>

#include "answer/answer.h"
#include "answer/describe.h"

const char *answer_subject_type(enum tacho__subject_type type)
{
	static const char *const names[] = {"", "poll", "wake", "span", "task", "stretch"};

	return names[type];
}

void answer_subject_name(const struct tacho_reader *reader, const struct tacho__subject *s,
			 char *out, size_t size)
{
	uint32_t id = s->type == TACHO__SUBJECT_SPAN ? s->name : s->kind;

	tacho__name_of(out, size, reader, s->process, id, s->to_ns);
	if (!out[0])
		snprintf(out, size, "a turn of the loop");
}

static void put_piece_json(struct json *j, const struct tacho_reader *reader,
			   const struct tacho__piece *p)
{
	char name[160];

	json_object(j);
	json_put_string(j, "owner", tacho__owner_name(p->owner));
	json_put_u64(j, "depth", p->depth);
	json_put_u64(j, "ns", p->ns);
	json_put_u64(j, "parts", p->parts);
	json_put_u64(j, "from_ns", p->from_ns);
	json_put_u64(j, "to_ns", p->to_ns);
	describe_thread_json(j, "tid", tacho_read_thread_by_number(reader, p->process, p->thread));
	json_put_bool(j, "own", p->own);
	json_key(j, "callback");
	if (p->kind) {
		tacho__name_of(name, sizeof(name), reader, p->process, p->kind, p->to_ns);
		json_string(j, name);
	} else {
		json_null(j);
	}
	json_put_u64(j, "task", p->task);
	json_put_address_if(j, "lock", p->lock, p->lock);
	json_put_known(j, "text", p->text);
	json_put_array(j, "where");
	for (uint32_t i = 0; i < p->where_count; i++) {
		json_object(j);
		describe_place_json(j, &p->where[i]);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

void answer_blame(struct json *j, const struct tacho_reader *reader, const struct tacho__blame *b)
{
	const struct tacho__subject *s = &b->subject;
	const struct tacho_process *p = tacho_read_process(reader, s->process);
	char name[160];

	answer_subject_name(reader, s, name, sizeof(name));
	json_object(j);
	json_put_string(j, "type", answer_subject_type(s->type));
	json_put_string(j, "name", name);
	json_put_u64(j, "pid", p ? p->pid : 0);
	json_put_known(j, "program", p ? p->comm : "");
	json_put_u64(j, "task", s->task);
	json_put_u64(j, "from_ns", s->from_ns);
	json_put_u64(j, "to_ns", s->to_ns);
	json_put_u64(j, "ns", s->to_ns - s->from_ns);
	json_put_bool(j, "cut", s->cut != 0);
	json_put_u64(j, "not_observed_ns", b->not_observed_ns);
	json_put_array(j, "pieces");
	for (uint32_t i = 0; i < b->count; i++)
		put_piece_json(j, reader, &b->pieces[i]);
	json_array_end(j);
	json_object_end(j);
}
