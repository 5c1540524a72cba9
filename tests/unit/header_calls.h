/*
 * Every call of tacho.h with values that are told apart, and what a reader must find of
 * them. C11 and C++17: header_c.c and header_cxx.cc both are this.
 */
#ifndef TESTS_UNIT_HEADER_CALLS_H
#define TESTS_UNIT_HEADER_CALLS_H

#include <float.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tacho.h"
#include "tacho_read.h"

/* clang-format off */
TACHO_EVENT(every_type, (u64, count), (i64, change), (f64, ratio), (bool, yes), (string, name),
	    (opt_u64, maybe_count), (opt_i64, maybe_change), (opt_f64, maybe_ratio),
	    (opt_bool, maybe_yes), (opt_string, maybe_name))
TACHO_EVENT(one_field, (bool, alone))
TACHO_EVENT(sixteen, (u64, f1), (u64, f2), (u64, f3), (u64, f4), (u64, f5), (u64, f6), (u64, f7),
	    (u64, f8), (u64, f9), (u64, f10), (u64, f11), (u64, f12), (u64, f13), (u64, f14),
	    (u64, f15), (opt_u64, f16))
TACHO_EVENT(three_texts, (string, first), (string, second), (string, third), (u64, last))
/* clang-format on */

static struct tacho_name loop_a = TACHO_LOOP("loop a"), loop_b = TACHO_LOOP("loop b");
static struct tacho_name kind_plain = TACHO_KIND("plain kind");
static struct tacho_name kind_of = TACHO_KIND_OF("kind of a function", getpid);
static struct tacho_name text_wait = TACHO_TEXT("the answer");
static struct tacho_name place_lock = TACHO_PLACE("where it locks");
static struct tacho_name span_sync = TACHO_SPAN_NAME("synchronous");
static struct tacho_name span_async = TACHO_SPAN_NAME("asynchronous");
static struct tacho_name counter_bytes = TACHO_COUNTER("bytes so far", "B");
static struct tacho_name gauge_heat = TACHO_GAUGE("heat", "C");

#define TASK 0x1122334455667788ull
#define PARENT 0x99aabbccddeeff00ull
static int a_lock;
static char long_text[1200];
static const char *here_function;
static int here_line;

static void record_loops(void)
{
	tacho_loop(&loop_a);
	tacho_park(&loop_a);
	tacho_unpark(&loop_a, 7);
	tacho_unpark(&loop_a, UINT32_MAX);
	tacho_queue_depth(&loop_a, 123456789012ull);
	tacho_steal(&loop_b, &loop_a, 5);
	tacho_loop(NULL);
	tacho_unpark(&loop_b, 0); /* on another loop than the thread ran so far: says so first */
}

static void record_tasks(void)
{
	here_function = __func__;
	/* clang-format off */
	here_line = __LINE__; tacho_task_spawn(TASK, &kind_of, PARENT, TACHO_HERE);
	/* clang-format on */
	tacho_task_spawn(TASK + 1, &kind_plain, 0, NULL);
	tacho_poll_begin(&kind_of, TASK);
	tacho_poll_switch(&kind_plain, TASK + 1);
	tacho_poll_end_park(TACHO_PENDING, &loop_b);
	tacho_unpark_poll(&loop_b, 6, &kind_plain, 5);
	tacho_wake(UINT64_MAX);
	tacho_wake(0xffffff);
	tacho_wake(0x1000000);
	tacho_task_waits(TASK, &text_wait, 42, 0);
	tacho_task_waits(TASK, NULL, 0, TACHO_WITH_STACK);
	tacho_poll_end(TACHO_PENDING);
	tacho_poll_end(TACHO_DONE);
	tacho_poll_end(TACHO_UNKNOWN);
	tacho_task_end(TASK);
	tacho_task_end(5);
}

static void record_locks_and_spans(void)
{
	tacho_lock_wait(&a_lock, &place_lock);
	tacho_lock_waited(&a_lock, 77);
	tacho_lock_waited(&a_lock, 0);
	tacho_lock_release(&a_lock, 3, NULL);
	tacho_span_begin(&span_sync);
	tacho_span_trace_id(0, 0x0123456789abcdefull, 0xfedcba9876543210ull);
	tacho_span_end(&span_sync);
	tacho_async_begin(&span_async, 900, 899);
	tacho_span_trace_id(900, 1, 2);
	tacho_async_end(&span_async, 900);
}

static void record_values(void)
{
	tacho_log(5, "a line");
	tacho_log(255, "");
	tacho_log_n(6, "no terminator here", 13);
	tacho_log(7, long_text);
	tacho_counter(&counter_bytes, INT64_MIN);
	tacho_gauge(&gauge_heat, -273.15);
	tacho_gauge(&gauge_heat, DBL_MAX);
}

static void record_events(void)
{
	uint64_t u = UINT64_MAX;
	int64_t i = INT64_MIN;
	double d = DBL_MIN;
	bool no = false;

	tacho_event_every_type(1, -2, 3.5, true, "four", &u, &i, &d, &no, "five");
	tacho_event_every_type(0, 0, 0.0, false, NULL, NULL, NULL, NULL, NULL, NULL);
	tacho_event_one_field(true);
	tacho_event_sixteen(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, &u);
	tacho_event_three_texts(long_text, long_text, "end", 99);
}

static uint32_t trigger_number;

static void record_all(void)
{
	memset(long_text, 'l', sizeof(long_text) - 1);
	record_loops();
	record_tasks();
	record_locks_and_spans();
	record_values();
	record_events();
	trigger_number = tacho_trigger("for a reason");
	tacho_pause();
	tacho_wake(1); /* not recorded */
	tacho_resume();
}

/* --------------------------------------------------------- what is read */

static struct tacho_reader *reader;
static struct tacho_event no_event;
static const struct tacho_event *event;
static int mistakes;

#define EXPECT(good)                                                                       \
	do {                                                                               \
		if (!(good)) {                                                             \
			mistakes++;                                                        \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #good); \
		}                                                                          \
	} while (0)

/* The next event, which must be of this type. */
static void next_is(enum tacho_event_type type)
{
	do {
		if (tacho_read_next(reader, &event) != 1) {
			mistakes++;
			fprintf(stderr, "no more events where type %#x should come\n", type);
			event = &no_event;
			return;
		}
	} while (event->type == TACHO_EV_RESUME);
	if (event->type != type) {
		mistakes++;
		fprintf(stderr, "type %#x where %#x should come\n", event->type, type);
	}
}

/* Word `i`; an event with fewer has what no test expects. */
static uint64_t word(uint32_t i)
{
	return i < event->words ? event->word[i] : 0xdeaddeaddeaddeadull;
}

static int is_named(uint64_t id, enum tacho_definition_class def_class, const char *name)
{
	const struct tacho_definition *d = tacho_read_definition(reader, 0, (uint32_t)id);

	return d && d->def_class == def_class && !strcmp(d->name, name);
}

static int is_loop(uint64_t id, const struct tacho_name *loop)
{
	const struct tacho_definition *d = tacho_read_definition(reader, 0, (uint32_t)id);

	return is_named(id, TACHO_DEF_LOOP, loop->text) && d->level == TACHO_LEVEL_API &&
	       d->line == loop->line && strstr(d->file, "header_calls.h");
}

static void read_loops(void)
{
	next_is(TACHO_EV_LOOP);
	EXPECT(is_loop(event->arg, &loop_a));
	next_is(TACHO_EV_PARK);
	EXPECT(is_loop(event->arg, &loop_a));
	next_is(TACHO_EV_UNPARK);
	EXPECT(event->arg == 7);
	next_is(TACHO_EV_UNPARK);
	EXPECT(event->arg == 0xffffff);
	next_is(TACHO_EV_QUEUE_DEPTH);
	EXPECT(is_loop(event->arg, &loop_a) && word(0) == 123456789012ull);
	next_is(TACHO_EV_STEAL);
	EXPECT(is_loop(event->arg, &loop_b) && is_loop(word(0), &loop_a) && word(1) == 5);
	next_is(TACHO_EV_LOOP);
	EXPECT(event->arg == 0);
	next_is(TACHO_EV_LOOP);
	EXPECT(is_loop(event->arg, &loop_b));
	next_is(TACHO_EV_UNPARK);
	EXPECT(event->arg == 0);
}

static void read_tasks(void)
{
	const struct tacho_definition *d;
	uint64_t at;

	next_is(TACHO_EV_SPAWN);
	EXPECT(is_named(event->arg, TACHO_DEF_KIND, "kind of a function"));
	d = tacho_read_definition(reader, 0, event->arg);
	EXPECT(d && d->value == (uint64_t)(uintptr_t)getpid);
	EXPECT(is_named(word(0) >> 16, TACHO_DEF_PLACE, here_function));
	d = tacho_read_definition(reader, 0, (uint32_t)(word(0) >> 16));
	EXPECT(d && (int)d->line == here_line && strstr(d->file, "header_calls.h"));
	EXPECT(word(1) == TASK && word(2) == PARENT);
	next_is(TACHO_EV_SPAWN);
	EXPECT(is_named(event->arg, TACHO_DEF_KIND, "plain kind") && word(0) >> 16 == 0);
	EXPECT(word(1) == TASK + 1 && word(2) == 0);
	next_is(TACHO_EV_POLL_BEGIN);
	EXPECT(is_named(event->arg, TACHO_DEF_KIND, "kind of a function") && word(0) == TASK);
	next_is(TACHO_EV_POLL_SWITCH);
	EXPECT(is_named(event->arg, TACHO_DEF_KIND, "plain kind") && word(0) == TASK + 1);
	next_is(TACHO_EV_POLL_END);
	EXPECT(event->arg == TACHO_PENDING);
	at = event->ns;
	next_is(TACHO_EV_PARK);
	EXPECT(is_loop(event->arg, &loop_b) && event->ns == at);
	next_is(TACHO_EV_UNPARK);
	EXPECT(event->arg == 6);
	at = event->ns;
	next_is(TACHO_EV_POLL_BEGIN);
	EXPECT(is_named(event->arg, TACHO_DEF_KIND, "plain kind") && word(0) == 5);
	EXPECT(event->ns == at);
	next_is(TACHO_EV_WAKE);
	EXPECT(word(0) == UINT64_MAX);
	next_is(TACHO_EV_WAKE);
	EXPECT(word(0) == 0xffffff);
	next_is(TACHO_EV_WAKE);
	EXPECT(word(0) == 0x1000000);
	next_is(TACHO_EV_TASK_WAITS);
	EXPECT(is_named(event->arg, TACHO_DEF_TEXT, "the answer") && word(0) >> 16 == 0);
	EXPECT(word(1) == TASK && word(2) == 42);
	next_is(TACHO_EV_TASK_WAITS);
	d = tacho_read_definition(reader, 0, (uint32_t)(word(0) >> 16));
	EXPECT(event->arg == 0 && d && d->def_class == TACHO_DEF_STACK && d->count > 0);
	next_is(TACHO_EV_POLL_END);
	EXPECT(event->arg == TACHO_PENDING);
	next_is(TACHO_EV_POLL_END);
	EXPECT(event->arg == TACHO_DONE);
	next_is(TACHO_EV_POLL_END);
	EXPECT(event->arg == TACHO_UNKNOWN);
	next_is(TACHO_EV_TASK_END);
	EXPECT(word(0) == TASK);
	next_is(TACHO_EV_TASK_END);
	EXPECT(word(0) == 5);
}

static void read_locks_and_spans(void)
{
	uint64_t lock = (uint64_t)(uintptr_t)&a_lock;

	next_is(TACHO_EV_LOCK_WAIT);
	EXPECT(is_named(event->arg, TACHO_DEF_PLACE, "where it locks") && word(0) == lock);
	next_is(TACHO_EV_LOCK_WAITED);
	EXPECT(event->arg == TACHO_WAITED_GOT && word(0) == lock);
	next_is(TACHO_EV_LOCK_WAITED);
	EXPECT(event->arg == 0 && word(0) == lock);
	next_is(TACHO_EV_LOCK_RELEASE);
	EXPECT(event->arg == 0 && word(0) == lock && word(1) == 3);
	next_is(TACHO_EV_SPAN_BEGIN);
	EXPECT(is_named(event->arg, TACHO_DEF_SPAN, "synchronous"));
	next_is(TACHO_EV_TRACE_ID);
	EXPECT(word(1) == 0 && word(2) == 0x0123456789abcdefull &&
	       word(3) == 0xfedcba9876543210ull);
	next_is(TACHO_EV_SPAN_END);
	EXPECT(is_named(event->arg, TACHO_DEF_SPAN, "synchronous"));
	next_is(TACHO_EV_ASYNC_BEGIN);
	EXPECT(is_named(event->arg, TACHO_DEF_SPAN, "asynchronous") && word(0) == 900 &&
	       word(1) == 899);
	next_is(TACHO_EV_TRACE_ID);
	EXPECT(word(1) == 900 && word(2) == 1 && word(3) == 2);
	next_is(TACHO_EV_ASYNC_END);
	EXPECT(is_named(event->arg, TACHO_DEF_SPAN, "asynchronous") && word(0) == 900);
}

static void log_is(uint32_t level, const char *text, size_t size, int cut)
{
	const char *found = "";
	size_t found_size = 0;
	int found_cut = -1;

	next_is(TACHO_EV_LOG);
	EXPECT(event->arg == level);
	EXPECT(tacho_read_text(event, &found, &found_size, &found_cut) >= 0);
	EXPECT(found_size == size && !memcmp(found, text, size) && !found_cut == !cut);
}

static void read_values(void)
{
	const struct tacho_definition *d;
	double value;
	uint64_t bits;

	log_is(5, "a line", 6, 0);
	log_is(255, "", 0, 0);
	log_is(6, "no terminator", 13, 0);
	log_is(7, long_text, 512, 1);
	next_is(TACHO_EV_COUNTER);
	d = tacho_read_definition(reader, 0, event->arg);
	EXPECT(is_named(event->arg, TACHO_DEF_COUNTER, "bytes so far") && d &&
	       !strcmp(d->unit, "B") && d->value_type == TACHO_VALUE_I64);
	EXPECT((int64_t)word(0) == INT64_MIN);
	next_is(TACHO_EV_COUNTER);
	d = tacho_read_definition(reader, 0, event->arg);
	EXPECT(is_named(event->arg, TACHO_DEF_GAUGE, "heat") && d && !strcmp(d->unit, "C") &&
	       d->value_type == TACHO_VALUE_F64);
	bits = word(0);
	memcpy(&value, &bits, sizeof(value));
	EXPECT(value == -273.15);
	next_is(TACHO_EV_COUNTER);
	bits = word(0);
	memcpy(&value, &bits, sizeof(value));
	EXPECT(value == DBL_MAX);
}

/* The value of field `i`, which must be present and have this type and name. */
static struct tacho_field_value field(uint32_t i, uint8_t type, int optional, const char *name)
{
	const struct tacho_definition *d = tacho_read_definition(reader, 0, event->arg);
	struct tacho_field_value v;

	memset(&v, 0, sizeof(v));
	v.size = sizeof(v);
	EXPECT(d && i < d->count && d->fields[i].type == type &&
	       !d->fields[i].optional == !optional && !strcmp(d->fields[i].name, name));
	EXPECT(tacho_read_field(reader, event, i, &v) == 1);
	EXPECT(v.type == type);
	return v;
}

static int field_text(struct tacho_field_value v, const char *text)
{
	return v.text_size == strlen(text) && !memcmp(v.text, text, v.text_size) && !v.cut;
}

static void schema_is(const char *name, uint32_t fields)
{
	const struct tacho_definition *d;

	next_is(TACHO_EV_EVENT);
	d = tacho_read_definition(reader, 0, event->arg);
	EXPECT(d && d->def_class == TACHO_DEF_SCHEMA && !strcmp(d->name, name) &&
	       d->count == fields);
}

static void read_every_type(void)
{
	struct tacho_field_value v;

	v.size = sizeof(v);
	schema_is("every_type", 10);
	EXPECT(field(0, TACHO_FIELD_U64, 0, "count").number.u64 == 1);
	EXPECT(field(1, TACHO_FIELD_I64, 0, "change").number.i64 == -2);
	EXPECT(field(2, TACHO_FIELD_F64, 0, "ratio").number.f64 == 3.5);
	EXPECT(field(3, TACHO_FIELD_BOOL, 0, "yes").number.u64 == 1);
	EXPECT(field_text(field(4, TACHO_FIELD_STRING, 0, "name"), "four"));
	EXPECT(field(5, TACHO_FIELD_U64, 1, "maybe_count").number.u64 == UINT64_MAX);
	EXPECT(field(6, TACHO_FIELD_I64, 1, "maybe_change").number.i64 == INT64_MIN);
	EXPECT(field(7, TACHO_FIELD_F64, 1, "maybe_ratio").number.f64 == DBL_MIN);
	EXPECT(field(8, TACHO_FIELD_BOOL, 1, "maybe_yes").number.u64 == 0);
	EXPECT(field_text(field(9, TACHO_FIELD_STRING, 1, "maybe_name"), "five"));
	schema_is("every_type", 10);
	EXPECT(field(0, TACHO_FIELD_U64, 0, "count").number.u64 == 0);
	EXPECT(field(3, TACHO_FIELD_BOOL, 0, "yes").number.u64 == 0);
	for (uint32_t i = 4; i < 10; i++)
		EXPECT(tacho_read_field(reader, event, i, &v) == 0);
	EXPECT(tacho_read_field(reader, event, 10, &v) < 0);
}

static void read_events(void)
{
	struct tacho_field_value v;
	char name[8];

	read_every_type();
	schema_is("one_field", 1);
	EXPECT(field(0, TACHO_FIELD_BOOL, 0, "alone").number.u64 == 1);
	schema_is("sixteen", 16);
	for (uint32_t i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "f%u", i + 1);
		EXPECT(field(i, TACHO_FIELD_U64, i == 15, name).number.u64 ==
		       (i < 15 ? i + 1 : UINT64_MAX));
	}
	schema_is("three_texts", 4);
	v = field(0, TACHO_FIELD_STRING, 0, "first");
	EXPECT(v.text_size == 512 && v.cut && !memcmp(v.text, long_text, v.text_size));
	/* What is left of the kibibyte, with a word for each field that may still come. */
	v = field(1, TACHO_FIELD_STRING, 0, "second");
	EXPECT(v.text_size > 300 && v.text_size < 512 && v.cut &&
	       !memcmp(v.text, long_text, v.text_size));
	v = field(2, TACHO_FIELD_STRING, 0, "third");
	EXPECT(v.text_size < 3 && v.cut && !memcmp(v.text, "end", v.text_size));
	EXPECT(field(3, TACHO_FIELD_U64, 0, "last").number.u64 == 99);
}

static void read_rest(void)
{
	const struct tacho_trigger_info *t = tacho_read_trigger(reader, 0);

	next_is(TACHO_EV_TRIGGER);
	EXPECT(is_named(event->arg, TACHO_DEF_TEXT, "for a reason") && word(0) == 1 &&
	       trigger_number == 1);
	EXPECT(tacho_read_trigger_count(reader) == 1 && t && t->number == 1 &&
	       !strcmp(t->reason, "for a reason") && t->ns == event->ns);
	next_is(TACHO_EV_PAUSE);
	EXPECT(event->arg == 1);
	next_is(TACHO_EV_PAUSE);
	EXPECT(event->arg == 0);
}

/* Reads what record_all() recorded from the box that this process has now. */
static int read_all(void)
{
	struct tacho_status_info st;
	char message[256];

	memset(&st, 0, sizeof(st));
	st.size = sizeof(st);
	EXPECT(tacho_status(&st) == 0 && st.state == TACHO_STATE_RECORDING);
	if (tacho_read_open(&reader, st.box, NULL, message, sizeof(message)) < 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	read_loops();
	read_tasks();
	read_locks_and_spans();
	read_values();
	read_events();
	read_rest();
	return mistakes;
}

/* The reader is left open for what a test wants to see beyond that. */
static int no_more(void)
{
	int more;

	do {
		more = tacho_read_next(reader, &event);
	} while (more == 1 && event->type == TACHO_EV_RESUME);
	tacho_read_close(reader);
	return !more;
}

#endif
