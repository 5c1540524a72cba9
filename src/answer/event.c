/*
 * One event as members of a JSON object. tacho-cat(1) lists them.
 */
#include <inttypes.h>
#include <string.h>

#include "answer/describe.h"
#include "answer/event.h"
#include "text/names.h"

/* What the functions below need. */
struct members {
	struct json *j;
	const struct tacho_reader *reader;
	const struct tacho_event *event;
};

static void put_id(const struct members *m, const char *key, uint32_t id)
{
	json_key(m->j, key);
	describe_id_json(m->j, m->reader, m->event->process, id, m->event->ns);
}

static const struct tacho_definition *of_argument(const struct members *m)
{
	return tacho_read_definition(m->reader, m->event->process, m->event->arg);
}

static void put_counter_value(const struct members *m, const char *key, uint64_t bits)
{
	const struct tacho_field_value v = event_value(of_argument(m), bits);

	json_key(m->j, key);
	if (v.type)
		json_field_value(m->j, &v);
	else
		json_address(m->j, bits);
}

static void put_trace_id(const struct members *m, const struct tacho_event_field *f)
{
	const uint64_t *half = m->event->word + f->word;
	char text[33];

	snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64, half[0], half[1]);
	json_put_string(m->j, f->name, text);
}

static void put_text(const struct members *m, const char *key)
{
	const char *text;
	size_t size;
	int cut = 0;

	json_key(m->j, key);
	if (tacho_read_text(m->event, &text, &size, &cut) < 0)
		json_null(m->j);
	else
		json_string_n(m->j, text, size);
	json_put_bool(m->j, "cut", cut != 0);
}

/* Absent optional fields are left out: absent is not null. */
static void put_fields(const struct members *m, const char *key)
{
	const struct tacho_definition *d = of_argument(m);

	json_put_object(m->j, key);
	for (uint32_t i = 0; d && d->def_class == TACHO_DEF_SCHEMA && i < d->count; i++) {
		struct tacho_field_value value = {.size = sizeof(value)};
		int present = tacho_read_field(m->reader, m->event, i, &value);

		if (present == 0)
			continue;
		json_key(m->j, d->fields[i].name);
		if (present > 0)
			json_field_value(m->j, &value);
		else
			json_null(m->j);
	}
	json_object_end(m->j);
}

static void put_buckets(const struct members *m, const struct tacho_event_field *f)
{
	json_put_array(m->j, f->name);
	for (uint32_t i = (uint32_t)f->word; i < m->event->words; i++) {
		json_object(m->j);
		json_put_u64(m->j, "from_ns", event_bucket_ns(m->event->word[i]));
		json_put_u64(m->j, "count", tacho_bucket_count(m->event->word[i]));
		json_object_end(m->j);
	}
	json_array_end(m->j);
}

static void put_ready_data(const struct members *m, const char *key, uint64_t word)
{
	json_put_address_if(m->j, key, word & EVENT_READY_IS_DATA, word & ~EVENT_READY_IS_DATA);
}

static void put_ready_events(const struct members *m, const char *key, uint64_t left)
{
	json_put_array(m->j, key);
	for (unsigned bit = 0; bit < 24; bit++) {
		if (!(left >> bit & 1) || !name_ready(bit))
			continue;
		json_string(m->j, name_ready(bit));
		left &= ~(UINT64_C(1) << bit);
	}
	if (left)
		json_address(m->j, left);
	json_array_end(m->j);
}

/* As if the stack had been defined; its frames of the kernel say so. */
static void put_frames(const struct members *m, const char *key)
{
	struct tacho_frames stack = {.size = sizeof(stack)};

	tacho_read_frames(m->event, &stack);
	json_put_object(m->j, key);
	json_key(m->j, "id");
	json_null(m->j);
	json_put_string(m->j, "class", "stack");
	json_put_array(m->j, "frames");
	for (uint32_t i = 0; i < stack.count; i++)
		describe_frame_json(m->j, m->reader, m->event->process, stack.frames[i],
				    m->event->ns, i > 0 && i != stack.kernel, i < stack.kernel);
	json_array_end(m->j);
	if (stack.cut)
		json_put_bool(m->j, "cut", true);
	json_object_end(m->j);
}

static void put_kernel_frames(const struct members *m, const char *key)
{
	struct tacho_frames stack = {.size = sizeof(stack)};

	tacho_read_frames(m->event, &stack);
	json_put_u64(m->j, key, stack.kernel);
}

/* Roles that hold more than a number. */
static void put_other(const struct members *m, const struct tacho_event_field *f, uint64_t value)
{
	switch (f->role) {
	case TACHO_ROLE_VALUE:
		put_counter_value(m, f->name, value);
		break;
	case TACHO_ROLE_TRIGGER:
		describe_trigger_json(m->j, describe_trigger(m->reader, m->event->process, value));
		break;
	case TACHO_ROLE_TRACE_ID:
		put_trace_id(m, f);
		break;
	case TACHO_ROLE_READY_DATA:
		put_ready_data(m, f->name, value);
		break;
	case TACHO_ROLE_READY_EVENTS:
		put_ready_events(m, f->name, value);
		break;
	case TACHO_ROLE_TEXT:
		put_text(m, f->name);
		break;
	case TACHO_ROLE_FIELDS:
		put_fields(m, f->name);
		break;
	case TACHO_ROLE_BUCKETS:
		put_buckets(m, f);
		break;
	case TACHO_ROLE_BUCKETS_SUM:
		json_put_u64(m->j, f->name, event_bucket_sum(m->event, (uint32_t)f->word));
		break;
	case TACHO_ROLE_KERNEL_FRAMES:
		put_kernel_frames(m, f->name);
		break;
	case TACHO_ROLE_FRAMES:
		put_frames(m, f->name);
		break;
	default: /* TACHO_ROLE_CUT, part of the frames; TACHO_ROLE_SLOT */
		break;
	}
}

static void put_member(const struct members *m, const struct tacho_event_field *f)
{
	uint64_t value = tacho_read_value(m->event, f);

	switch (f->role) {
	case TACHO_ROLE_NUMBER:
	case TACHO_ROLE_NS:
	case TACHO_ROLE_OBJECT:
	case TACHO_ROLE_LOCK:
	case TACHO_ROLE_SPAN:
		json_put_u64(m->j, f->name, value);
		break;
	case TACHO_ROLE_TIME:
	case TACHO_ROLE_TASK:
	case TACHO_ROLE_RESOURCE:
	case TACHO_ROLE_WORK:
	case TACHO_ROLE_SPAN_OR_NONE:
	case TACHO_ROLE_ERRNO:
		json_put_not_zero(m->j, f->name, value);
		break;
	case TACHO_ROLE_READY_FD:
		json_put_u64_if(m->j, f->name, !(value & EVENT_READY_IS_DATA), value);
		break;
	case TACHO_ROLE_ON:
		json_put_u64_if(m->j, f->name, value != EVENT_ON_NOTHING, value);
		break;
	case TACHO_ROLE_BOOL:
		json_put_bool(m->j, f->name, value != 0);
		break;
	case TACHO_ROLE_ID:
	case TACHO_ROLE_KIND:
		put_id(m, f->name, event_id(value));
		break;
	case TACHO_ROLE_RESULT:
		json_put_known(m->j, f->name, name_result((unsigned)value));
		break;
	case TACHO_ROLE_SUBJECT:
		json_put_known(m->j, f->name, name_subject((unsigned)value));
		break;
	case TACHO_ROLE_FD_KIND:
		json_put_known(m->j, f->name, name_descriptor((unsigned)value));
		break;
	case TACHO_ROLE_ERROR:
		json_put_known(m->j, f->name, value ? strerror((int)value) : "");
		break;
	default:
		put_other(m, f, value);
		break;
	}
}

static void put_resume(const struct members *m)
{
	const struct tacho_resume_info *r = m->event->resume;

	json_put_bool(m->j, "first", r->first != 0);
	json_put_u64(m->j, "missing", r->missing);
	json_put_u64(m->j, "dropped", r->dropped);
	put_id(m, "loop", r->loop);
	json_put_bool(m->j, "parked", r->parked != 0);
	if (r->parked)
		json_put_not_zero(m->j, "parked_ns", r->parked_ns);
	json_put_u64(m->j, "open_count", r->open_count);
	json_put_array(m->j, "open");
	for (uint32_t i = 0; i < r->open_listed && i < TACHO_OPEN_MAX; i++) {
		const struct tacho_open_item *o = &r->open[i];
		bool span = o->what == TACHO_EV_SPAN_BEGIN;

		json_object(m->j);
		put_id(m, span ? "span" : "kind", o->id);
		if (!span)
			json_put_not_zero(m->j, "task", o->task);
		json_put_not_zero(m->j, "since_ns", o->since_ns);
		json_object_end(m->j);
	}
	json_array_end(m->j);
}

static void put_unknown(const struct members *m)
{
	json_put_u64(m->j, "type_number", m->event->type);
	json_put_u64(m->j, "arg", m->event->arg);
	json_put_array(m->j, "words");
	for (uint32_t i = 0; i < m->event->words; i++)
		json_u64(m->j, m->event->word[i]);
	json_array_end(m->j);
}

void event_put_json(struct json *j, const struct tacho_reader *reader,
		    const struct tacho_event *event)
{
	const struct tacho_event_info *info = tacho_read_event_info(event->type);
	const struct members m = {j, reader, event};

	if (event->type == TACHO_EV_RESUME)
		put_resume(&m);
	else if (!info)
		put_unknown(&m);
	for (uint32_t i = 0; info && i < info->field_count; i++)
		put_member(&m, &info->fields[i]);
}
