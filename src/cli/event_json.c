/*
 * One event as members of a JSON object. tacho-cat(1) lists them.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/describe.h"
#include "cli/event.h"
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

/* A number that is 0 when there is none. */
static void put_optional(const struct members *m, const char *key, uint64_t value)
{
	json_key(m->j, key);
	if (value)
		json_u64(m->j, value);
	else
		json_null(m->j);
}

static void put_task(const struct members *m, uint32_t word)
{
	put_optional(m, "task", event_word(m->event, word));
}

static void put_counter(const struct members *m)
{
	const struct tacho_definition *d =
		tacho_read_definition(m->reader, m->event->process, m->event->arg);
	uint64_t bits = event_word(m->event, 0);

	put_id(m, "counter", m->event->arg);
	json_key(m->j, "value");
	if (d && d->value_type == TACHO_VALUE_F64)
		json_f64(m->j, event_f64(bits));
	else if (d && d->value_type == TACHO_VALUE_I64)
		json_i64(m->j, (int64_t)bits);
	else
		json_address(m->j, bits);
}

static void put_lock(const struct members *m)
{
	const struct tacho_event *e = m->event;

	json_put_u64(m->j, "lock", event_word(e, 0));
	if (e->type == TACHO_EV_LOCK_WAITED) {
		json_put_bool(m->j, "taken", e->arg & TACHO_WAITED_GOT);
		json_put_bool(m->j, "signal", e->arg & TACHO_WAITED_SIGNAL);
		return;
	}
	if (e->type == TACHO_EV_LOCK_RELEASE)
		json_put_u64(m->j, "waiters", event_word(e, 1));
	put_id(m, "at", e->arg);
}

static void put_waits(const struct members *m)
{
	put_task(m, 1);
	put_id(m, "for", m->event->arg);
	put_optional(m, "resource", event_word(m->event, 2));
	put_id(m, "at", event_id(event_data(m->event)));
}

static void put_spawn(const struct members *m)
{
	put_id(m, "kind", m->event->arg);
	put_task(m, 1);
	put_optional(m, "parent", event_word(m->event, 2));
	put_id(m, "at", event_id(event_data(m->event)));
}

static void put_trace_id(const struct members *m)
{
	char text[33];

	snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64, event_word(m->event, 2),
		 event_word(m->event, 3));
	json_put_string(m->j, "trace_id", text);
	put_optional(m, "span_id", event_word(m->event, 1));
}

static void put_log(const struct members *m)
{
	const char *text;
	size_t size;
	int cut = 0;

	json_put_u64(m->j, "level", m->event->arg);
	json_key(m->j, "text");
	if (tacho_read_text(m->event, &text, &size, &cut) < 0)
		json_null(m->j);
	else
		json_string_n(m->j, text, size);
	json_put_bool(m->j, "cut", cut != 0);
}

static void put_field(struct json *j, const struct tacho_field_value *v)
{
	switch (v->type) {
	case TACHO_FIELD_U64:
		json_u64(j, v->number.u64);
		break;
	case TACHO_FIELD_I64:
		json_i64(j, v->number.i64);
		break;
	case TACHO_FIELD_F64:
		json_f64(j, v->number.f64);
		break;
	case TACHO_FIELD_BOOL:
		json_bool(j, v->number.u64 != 0);
		break;
	case TACHO_FIELD_STRING:
		json_string_n(j, v->text, v->text_size);
		break;
	default:
		json_null(j);
		break;
	}
}

/* Absent optional fields are left out: absent is not null. */
static void put_event(const struct members *m)
{
	const struct tacho_definition *d =
		tacho_read_definition(m->reader, m->event->process, m->event->arg);

	put_id(m, "event", m->event->arg);
	json_key(m->j, "fields");
	json_object(m->j);
	for (uint32_t i = 0; d && d->def_class == TACHO_DEF_SCHEMA && i < d->count; i++) {
		struct tacho_field_value value = {.size = sizeof(value)};
		int present = tacho_read_field(m->reader, m->event, i, &value);

		if (present == 0)
			continue;
		json_key(m->j, d->fields[i].name);
		if (present > 0)
			put_field(m->j, &value);
		else
			json_null(m->j);
	}
	json_object_end(m->j);
}

static void put_hist(const struct members *m)
{
	uint64_t count = 0;

	put_id(m, "kind", m->event->arg);
	put_id(m, "loop", event_id(event_data(m->event)));
	put_optional(m, "since_ns", event_word(m->event, 2));
	json_put_u64(m->j, "total_ns", event_word(m->event, 3));
	json_key(m->j, "buckets");
	json_array(m->j);
	for (uint32_t i = EVENT_HIST_FIRST; i < m->event->words; i++) {
		uint64_t word = m->event->word[i];

		count += event_hist_count(word);
		json_object(m->j);
		json_put_u64(m->j, "from_ns", event_hist_ns(event_hist_bucket(word)));
		json_put_u64(m->j, "count", event_hist_count(word));
		json_object_end(m->j);
	}
	json_array_end(m->j);
	json_put_u64(m->j, "count", count);
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
		put_optional(m, "parked_ns", r->parked_ns);
	json_put_u64(m->j, "open_count", r->open_count);
	json_key(m->j, "open");
	json_array(m->j);
	for (uint32_t i = 0; i < r->open_listed && i < 5; i++) {
		bool span = r->open[i].what == TACHO_EV_SPAN_BEGIN;

		json_object(m->j);
		put_id(m, span ? "span" : "kind", r->open[i].id);
		if (!span)
			put_optional(m, "task", r->open[i].task);
		put_optional(m, "since_ns", r->open[i].since_ns);
		json_object_end(m->j);
	}
	json_array_end(m->j);
}

static void put_unknown(const struct members *m)
{
	json_put_u64(m->j, "type_number", m->event->type);
	json_put_u64(m->j, "arg", m->event->arg);
	json_key(m->j, "words");
	json_array(m->j);
	for (uint32_t i = 0; i < m->event->words; i++)
		json_u64(m->j, m->event->word[i]);
	json_array_end(m->j);
}

static void put_async(const struct members *m)
{
	put_id(m, "span", m->event->arg);
	json_put_u64(m->j, "span_id", event_word(m->event, 0));
	if (m->event->type == TACHO_EV_ASYNC_BEGIN)
		put_optional(m, "parent", event_word(m->event, 1));
}

static void put_steal(const struct members *m)
{
	put_id(m, "thief", m->event->arg);
	put_id(m, "victim", event_id(event_word(m->event, 0)));
	json_put_u64(m->j, "tasks", event_word(m->event, 1));
}

static void put_work(const struct members *m)
{
	if (m->event->type != TACHO_EV_WORK_END)
		put_id(m, "kind", m->event->arg);
	put_optional(m, "work", event_word(m->event, 0));
}

static void put_ready(const struct members *m)
{
	uint64_t word = event_word(m->event, 0);
	uint32_t left = m->event->arg;
	bool data = event_ready_is_data(word);

	json_key(m->j, "fd");
	if (data)
		json_null(m->j);
	else
		json_u64(m->j, word);
	json_key(m->j, "data");
	if (data)
		json_address(m->j, word & ~(UINT64_C(1) << 63));
	else
		json_null(m->j);
	json_key(m->j, "events");
	json_array(m->j);
	for (unsigned bit = 0; bit < 24; bit++) {
		if (!(left >> bit & 1) || !name_ready(bit))
			continue;
		json_string(m->j, name_ready(bit));
		left &= ~(1u << bit);
	}
	if (left)
		json_address(m->j, left);
	json_array_end(m->j);
}

/* As if the stack had been defined. */
static void put_frames(const struct members *m)
{
	struct describe_stack stack = event_stack(m->event);

	json_put_u64(m->j, "cpu_ns", event_word(m->event, 1));
	json_key(m->j, "at");
	json_object(m->j);
	json_key(m->j, "id");
	json_null(m->j);
	json_put_string(m->j, "class", "stack");
	describe_stack_json(m->j, m->reader, m->event->process, &stack, m->event->ns);
	if (stack.cut)
		json_put_bool(m->j, "cut", true);
	json_object_end(m->j);
}

/* As a stack; its frames of the kernel say so. */
static void put_kernel_sample(const struct members *m)
{
	struct describe_stack stack = event_stack(m->event);
	uint32_t kernel = event_kernel_frames(m->event);

	json_put_u64(m->j, "cpu_ns", event_word(m->event, 1));
	json_put_u64(m->j, "kernel_frames", kernel);
	json_key(m->j, "at");
	json_object(m->j);
	json_key(m->j, "id");
	json_null(m->j);
	json_put_string(m->j, "class", "stack");
	json_key(m->j, "frames");
	json_array(m->j);
	for (uint32_t i = 0; i < stack.count; i++)
		describe_frame_json(m->j, m->reader, m->event->process, stack.frames[i],
				    m->event->ns, i > 0 && i != kernel, i < kernel);
	json_array_end(m->j);
	if (stack.cut)
		json_put_bool(m->j, "cut", true);
	json_object_end(m->j);
}

static void put_sched(const struct members *m)
{
	uint64_t faults = event_word(m->event, 1);

	json_put_u64(m->j, "runnable_ns", event_word(m->event, 0));
	json_put_u64(m->j, "involuntary_switches", m->event->arg);
	json_put_u64(m->j, "minor_faults", event_minor_faults(faults));
	json_put_u64(m->j, "major_faults", event_major_faults(faults));
}

static void put_call(const struct members *m)
{
	uint64_t fd = event_word(m->event, 2), more = event_word(m->event, 3);
	const char *kind = name_descriptor(event_call_kind(more));
	int error = event_call_errno(more);

	put_id(m, "call", m->event->arg);
	json_put_u64(m->j, "duration_ns", event_word(m->event, 1));
	json_key(m->j, "on");
	if (fd != EVENT_NO_DESCRIPTOR)
		json_u64(m->j, fd);
	else
		json_null(m->j);
	json_put_known(m->j, "fd_kind", kind ? kind : "");
	put_id(m, "path", event_id(event_call_path(more)));
	put_optional(m, "errno", (uint64_t)error);
	json_put_known(m->j, "error", error ? strerror(error) : "");
	put_id(m, "at", event_id(event_data(m->event)));
}

/* What hooks and the kernel's part record. False: not one of theirs. */
static bool put_observed(const struct members *m)
{
	switch (m->event->type) {
	case TACHO_EV_WORK_SUBMIT:
	case TACHO_EV_WORK_BEGIN:
	case TACHO_EV_WORK_END:
		put_work(m);
		return true;
	case TACHO_EV_READY:
		put_ready(m);
		return true;
	case TACHO_EV_LATE:
		json_put_u64(m->j, "late_ns", event_word(m->event, 0));
		return true;
	case TACHO_EV_STACK:
		json_put_u64(m->j, "of", event_word(m->event, 0));
		put_id(m, "at", m->event->arg);
		return true;
	case TACHO_EV_SAMPLE:
		json_put_u64(m->j, "cpu_ns", event_word(m->event, 0));
		put_id(m, "at", m->event->arg);
		return true;
	case TACHO_EV_SAMPLE_FRAMES:
		put_frames(m);
		return true;
	case TACHO_EV_KERNEL_SAMPLE:
		put_kernel_sample(m);
		return true;
	case TACHO_EV_SWITCH_OUT:
		json_put_bool(m->j, "preempted", m->event->arg != 0);
		return true;
	case TACHO_EV_SWITCH_IN:
		json_put_u64(m->j, "cpu", m->event->arg);
		return true;
	case TACHO_EV_SCHED:
		put_sched(m);
		return true;
	case TACHO_EV_CALL:
		put_call(m);
		return true;
	default:
		return false;
	}
}

void event_put_json(struct json *j, const struct tacho_reader *reader,
		    const struct tacho_event *event)
{
	struct members m = {j, reader, event};

	switch (event->type) {
	case TACHO_EV_PARK:
	case TACHO_EV_LOOP:
		put_id(&m, "loop", event->arg);
		break;
	case TACHO_EV_UNPARK:
		json_put_u64(j, "ready", event->arg);
		break;
	case TACHO_EV_POLL_END:
		json_put_known(j, "result", name_result(event->arg));
		break;
	case TACHO_EV_SPAN_BEGIN:
	case TACHO_EV_SPAN_END:
		put_id(&m, "span", event->arg);
		break;
	case TACHO_EV_PAUSE:
		json_put_bool(j, "paused", event->arg != 0);
		break;
	case TACHO_EV_RESUME:
		put_resume(&m);
		break;
	case TACHO_EV_POLL_BEGIN:
	case TACHO_EV_POLL_SWITCH:
		put_id(&m, "kind", event->arg);
		put_task(&m, 0);
		break;
	case TACHO_EV_WAKE:
	case TACHO_EV_TASK_END:
		put_task(&m, 0);
		break;
	case TACHO_EV_LOCK_WAIT:
	case TACHO_EV_LOCK_WAITED:
	case TACHO_EV_LOCK_RELEASE:
		put_lock(&m);
		break;
	case TACHO_EV_QUEUE_DEPTH:
		put_id(&m, "loop", event->arg);
		json_put_u64(j, "depth", event_word(event, 0));
		break;
	case TACHO_EV_COUNTER:
		put_counter(&m);
		break;
	case TACHO_EV_ASYNC_BEGIN:
	case TACHO_EV_ASYNC_END:
		put_async(&m);
		break;
	case TACHO_EV_TRIGGER:
		put_id(&m, "reason", event->arg);
		json_put_u64(j, "number", event_word(event, 0));
		describe_trigger_json(
			j, describe_trigger(reader, event->process, event_word(event, 0)));
		break;
	case TACHO_EV_STEAL:
		put_steal(&m);
		break;
	case TACHO_EV_SPAWN:
		put_spawn(&m);
		break;
	case TACHO_EV_TASK_WAITS:
		put_waits(&m);
		break;
	case TACHO_EV_TRACE_ID:
		put_trace_id(&m);
		break;
	case TACHO_EV_LOG:
		put_log(&m);
		break;
	case TACHO_EV_EVENT:
		put_event(&m);
		break;
	case TACHO_EV_POLL_HIST:
		put_hist(&m);
		break;
	default:
		if (!put_observed(&m))
			put_unknown(&m);
		break;
	}
}
