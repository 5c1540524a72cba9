/* Traces of dial9: what becomes of their events, and of bytes that are none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "dial9_builder.h"
#include "import/import.h"

#define T 5000000000ull

/* ------------------------------------------------------------------ opening */

struct opened {
	struct tacho_reader *reader;
	int fd;
	int err; /* why it could not be imported */
	char message[512];
};

static int memory_file(const void *data, size_t size)
{
	int fd = memfd_create("dial9", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	return fd;
}

static struct opened open_paths(char *const *paths, uint32_t count)
{
	const struct tacho__found found = {&tacho__import_dial9, (char **)paths, count};
	const struct tacho__import_options options = {.once = 1};
	struct tacho_read_options reading = {.size = sizeof(reading)};
	struct opened o = {.fd = memfd_create("made", MFD_CLOEXEC)};
	char path[64];

	assert_true(o.fd >= 0);
	o.err = tacho__import(&found, o.fd, &options, NULL, o.message, sizeof(o.message));
	if (o.err)
		return o;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", o.fd);
	assert_int_equal(tacho_read_open(&o.reader, path, &reading, o.message, sizeof(o.message)),
			 0);
	return o;
}

static struct opened open_bytes(const void *data, size_t size)
{
	int fd = memory_file(data, size);
	char path[64], *paths[] = {path};
	struct opened o;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	o = open_paths(paths, 1);
	close(fd);
	return o;
}

static struct opened open_wire(const struct wire *w)
{
	struct opened o = open_bytes(w->bytes, w->size);

	assert_int_equal(o.err, 0);
	return o;
}

static void close_opened(struct opened *o)
{
	if (o->reader)
		assert_int_equal(tacho_read_problem_count(o->reader), 0);
	tacho_read_close(o->reader);
	close(o->fd);
}

static const struct tacho_event *next(struct opened *o, unsigned type)
{
	const struct tacho_event *e;

	do
		assert_int_equal(tacho_read_next(o->reader, &e), 1);
	while (e->type != type);
	return e;
}

static uint32_t count(struct opened *o, unsigned type)
{
	const struct tacho_event *e;
	uint32_t n = 0;

	assert_int_equal(tacho_read_seek(o->reader, 0), 0);
	while (tacho_read_next(o->reader, &e) == 1)
		n += e->type == type;
	assert_int_equal(tacho_read_seek(o->reader, 0), 0);
	return n;
}

static uint32_t tid_of(struct opened *o, const struct tacho_event *e)
{
	return tacho_read_thread_by_number(o->reader, 0, e->thread)->tid;
}

static const struct tacho_definition *definition(struct opened *o, uint64_t id)
{
	return tacho_read_definition(o->reader, 0, (uint32_t)id);
}

static void says(struct opened *o, const char *what)
{
	const char *said = tacho_read_process(o->reader, 0)->reason;

	if (!strstr(said, what))
		fail_msg("'%s' does not say '%s'", said, what);
}

/* --------------------------------------------------------------------- Tokio */

static void polls_wakes_and_parks_are_on_the_thread_of_their_batch(void **state)
{
	static struct wire w;
	const struct tacho_event *e;
	struct opened o;

	(void)state;
	w.size = 0;
	wire_header(&w);
	wire_unpark(&w, T, 3, 77);
	wire_poll(&w, T + 10, 3, 5, "src/main.rs:75:21");
	wire_numbers(&w, "WakeEventEvent", T + 11,
		     WIRE_NAMES("waker_task_id", "woken_task_id", "target_worker"),
		     WIRE_VALUES(5, 6, 3));
	wire_numbers(&w, "TaskSpawnEvent", T + 12, WIRE_NAMES("task_id", "instrumented"),
		     WIRE_VALUES(9, 0));
	wire_poll_end(&w, T + 13, 3);
	wire_poll(&w, T + 20, 3, 5, "/home/me/.cargo/registry/x/src/main.rs:80:1");
	wire_numbers(&w, "TaskTerminateEvent", T + 21, WIRE_NAMES("task_id"), WIRE_VALUES(5));
	wire_poll_end(&w, T + 22, 3);
	wire_park(&w, T + 30, 3, 77);
	o = open_wire(&w);

	e = next(&o, TACHO_EV_POLL_BEGIN);
	assert_int_equal(e->ns, T + 10);
	assert_int_equal(tid_of(&o, e), 77);
	assert_int_equal(TACHO_GET(e, POLL_BEGIN, task), 5);
	assert_string_equal(definition(&o, TACHO_GET(e, POLL_BEGIN, kind))->name, "src/main.rs:75");
	e = next(&o, TACHO_EV_WAKE);
	assert_int_equal(tid_of(&o, e), 77);
	assert_int_equal(TACHO_GET(e, WAKE, task), 6);
	e = next(&o, TACHO_EV_SPAWN);
	assert_int_equal(TACHO_GET(e, SPAWN, parent), 5);
	e = next(&o, TACHO_EV_POLL_END);
	assert_int_equal(TACHO_GET(e, POLL_END, result), TACHO_PENDING);
	e = next(&o, TACHO_EV_POLL_BEGIN);
	assert_int_equal(definition(&o, TACHO_GET(e, POLL_BEGIN, kind))->line, 80);
	e = next(&o, TACHO_EV_POLL_END);
	assert_int_equal(TACHO_GET(e, POLL_END, result), TACHO_DONE);
	e = next(&o, TACHO_EV_TASK_END);
	e = next(&o, TACHO_EV_PARK);
	assert_int_equal(definition(&o, TACHO_GET(e, PARK, loop))->def_class, TACHO_DEF_LOOP);
	says(&o, "1 of 1 tasks were not spawned through dial9");
	close_opened(&o);
}

/* Of the wait until `ns`; begin 0: not known. */
static void expect_wait(struct opened *o, uint64_t ns, uint64_t runnable, uint64_t begin)
{
	const struct tacho_event *e = next(o, TACHO_EV_SCHED_INTERVAL);

	assert_int_equal(e->ns, ns);
	assert_int_equal(TACHO_GET(e, SCHED_INTERVAL, subject), TACHO_SCHED_WAIT);
	assert_int_equal(TACHO_GET(e, SCHED_INTERVAL, runnable_ns), runnable);
	assert_int_equal(TACHO_GET(e, SCHED_INTERVAL, begin_ns), begin);
}

/* Delays are kept until they are 100 us, CPU time is told each 10 ms. */
static void delays_and_cpu_time_of_workers_are_told_now_and_then(void **state)
{
	static const uint64_t waits[] = {60000, 50000, 99999, 1, 40000, 300000};
	static const uint64_t parks[] = {1000000, 10999999, 11000000, 20000000, 21000000, 21500000};
	static struct wire w;
	const struct tacho_event *e;
	struct opened o;

	(void)state;
	w.size = 0;
	wire_header(&w);
	for (uint64_t i = 0; i < 6; i++) {
		wire_numbers(&w, "WorkerUnparkEvent", T + parks[i] - 100,
			     WIRE_NAMES("worker_id", "tid", "sched_wait_ns"),
			     WIRE_VALUES(3, 77, waits[i]));
		wire_numbers(&w, "WorkerParkEvent", T + parks[i],
			     WIRE_NAMES("worker_id", "tid", "cpu_time_ns"),
			     WIRE_VALUES(3, 77, 1000 * (i + 1)));
	}
	o = open_wire(&w);
	assert_int_equal(count(&o, TACHO_EV_SCHED_INTERVAL), 3);
	expect_wait(&o, T + parks[1] - 100, 110000, 0);
	expect_wait(&o, T + parks[3] - 100, 100000, T + parks[1]);
	/* A large one has its own interval, without the small one before. */
	expect_wait(&o, T + parks[5] - 100, 300000, T + parks[4]);
	assert_int_equal(count(&o, TACHO_EV_COUNTER), 3);
	for (uint64_t i = 0; i < 5; i += 2) {
		e = next(&o, TACHO_EV_COUNTER);
		assert_int_equal(e->ns, T + parks[i]);
		assert_int_equal(TACHO_GET(e, COUNTER, value), 1000 * (i + 1));
		assert_string_equal(definition(&o, TACHO_GET(e, COUNTER, counter))->name,
				    "CPU time of worker 3");
	}
	close_opened(&o);
}

/* block_in_place: the thread that is in the long poll never says its tid, and the worker goes on
   elsewhere meanwhile. */
static void a_worker_on_two_threads_at_once_is_two_threads(void **state)
{
	static struct wire w;
	const struct tacho_event *e;
	struct opened o;
	uint32_t first;

	(void)state;
	w.size = 0;
	wire_header(&w);
	wire_poll(&w, T, 0, 1, "a.rs:1:1");
	wire_poll_end(&w, T + 100, 0);
	wire_header(&w);
	wire_unpark(&w, T + 20, 0, 78);
	wire_poll(&w, T + 30, 0, 2, "a.rs:2:1");
	wire_poll_end(&w, T + 40, 0);
	wire_park(&w, T + 50, 0, 78);
	o = open_wire(&w);
	e = next(&o, TACHO_EV_POLL_BEGIN);
	first = e->thread;
	assert_int_equal(tid_of(&o, e), 0);
	e = next(&o, TACHO_EV_POLL_BEGIN);
	assert_int_equal(tid_of(&o, e), 78);
	do
		e = next(&o, TACHO_EV_POLL_END);
	while (e->ns != T + 100);
	assert_int_equal(e->thread, first);
	says(&o, "(block_in_place), the time of which is not known: 1");
	close_opened(&o);
}

/* A worker that never parks in a batch is still on its thread. */
static void a_batch_without_tid_is_of_the_thread_that_is_free(void **state)
{
	static struct wire w;
	const struct tacho_event *e;
	struct opened o;

	(void)state;
	w.size = 0;
	wire_header(&w);
	wire_unpark(&w, T, 0, 78);
	wire_poll(&w, T + 10, 0, 1, "a.rs:1:1");
	wire_header(&w);
	wire_poll_end(&w, T + 20, 0);
	wire_poll(&w, T + 30, 0, 2, "a.rs:1:1");
	wire_poll_end(&w, T + 40, 0);
	o = open_wire(&w);
	for (int i = 0; i < 2; i++) {
		e = next(&o, TACHO_EV_POLL_END);
		assert_int_equal(tid_of(&o, e), 78);
	}
	close_opened(&o);
}

static void a_poll_without_end_ends_where_its_worker_parks(void **state)
{
	static struct wire w;
	struct opened o;

	(void)state;
	w.size = 0;
	wire_header(&w);
	wire_unpark(&w, T, 0, 78);
	wire_poll(&w, T + 10, 0, 1, "a.rs:1:1");
	wire_park(&w, T + 20, 0, 78);
	o = open_wire(&w);
	assert_int_equal(next(&o, TACHO_EV_POLL_END)->ns, T + 20);
	says(&o, "polls whose end was not recorded: 1");
	close_opened(&o);
}

/* --------------------------------------------------------------------- spans */

static void steps_of_a_span_are_paired_in_the_order_of_time(void **state)
{
	static struct wire w;
	const struct tacho_event *e;
	struct opened o;

	(void)state;
	w.size = 0;
	/* The later batch in time is the first in the file, and the number is used twice. */
	wire_header(&w);
	wire_span(&w, "SpanExit:a::request:src/a.rs:7", T + 50, 1);
	wire_span(&w, "SpanCloseEvent", T + 60, 1);
	wire_span(&w, "SpanEnter:a::request:src/a.rs:7", T + 70, 1);
	wire_header(&w);
	wire_span(&w, "SpanEnter:a::request:src/a.rs:7", T + 10, 1);
	wire_span(&w, "SpanExit:a::request:src/a.rs:7", T + 20, 1);
	wire_span(&w, "SpanEnter:a::request:src/a.rs:7", T + 30, 1);
	o = open_wire(&w);
	assert_int_equal(count(&o, TACHO_EV_ASYNC_BEGIN), 2);
	assert_int_equal(count(&o, TACHO_EV_ASYNC_END), 1);
	e = next(&o, TACHO_EV_ASYNC_BEGIN);
	assert_int_equal(e->ns, T + 10);
	assert_string_equal(definition(&o, e->arg)->name, "request");
	assert_string_equal(definition(&o, e->arg)->file, "src/a.rs");
	assert_int_equal(definition(&o, e->arg)->line, 7);
	assert_int_equal(next(&o, TACHO_EV_ASYNC_END)->ns, T + 60);
	close_opened(&o);
}

static void an_event_that_says_it_is_a_span_is_one(void **state)
{
	static const struct wire_field fields[] = {{"took", WIRE_VARINT}, {"what", 4}, {NULL, 0}};
	static struct wire w;
	const struct tacho_event *e;
	struct opened o;
	uint16_t type;

	(void)state;
	w.size = 0;
	wire_header(&w);
	type = wire_schema(&w, "Query", fields);
	wire_annotate(&w, type, 0, "dial9.role", "span.duration");
	wire_annotate(&w, type, 0, "unit", "us");
	wire_annotate(&w, type, 1, "dial9.role", "span.name");
	wire_event(&w, type, T + 9000);
	wire_varint(&w, 4);
	wire_text(&w, "select", 4);
	o = open_wire(&w);
	e = next(&o, TACHO_EV_ASYNC_BEGIN);
	assert_int_equal(e->ns, T + 5000);
	assert_string_equal(definition(&o, e->arg)->name, "select");
	assert_int_equal(next(&o, TACHO_EV_ASYNC_END)->ns, T + 9000);
	assert_int_equal(count(&o, TACHO_EV_EVENT), 1);
	close_opened(&o);
}

/* ------------------------------------------------------------------ metadata */

static void what_segments_say_of_themselves_is_known_from_the_first_event_on(void **state)
{
	static const struct wire_field fields[] = {{"entries", 10}, {NULL, 0}};
	static const char *const entries[][2] = {{"runtime.io", "0,254"},
						 {"service", "shop"},
						 {"tokio.poll_coverage", "dial9-spawns-only"},
						 {"dial9.dial9-tokio-telemetry.version", "9.8.7"},
						 {"segment.complete", "false"}};
	static struct wire w;
	const struct tacho_definition *loop;
	const struct tacho_process *p;
	struct opened o;
	uint16_t type;

	(void)state;
	w.size = 0;
	wire_header(&w);
	wire_unpark(&w, T, 0, 7);
	wire_park(&w, T + 10, 0, 7);
	wire_park(&w, T + 20, 254, 8);
	wire_header(&w);
	wire_numbers(&w, "ClockSyncEvent", T, WIRE_NAMES("realtime_ns"),
		     WIRE_VALUES(1700000000000000000));
	type = wire_schema(&w, "SegmentMetadataEvent", fields);
	wire_event(&w, type, T + 30);
	wire_number(&w, 5, 4);
	for (int i = 0; i < 5; i++) {
		wire_text(&w, entries[i][0], 4);
		wire_text(&w, entries[i][1], 4);
	}
	o = open_wire(&w);
	loop = definition(&o, next(&o, TACHO_EV_PARK)->arg);
	assert_string_equal(loop->name, "io worker 0");
	assert_int_equal(loop->level, TACHO_LEVEL_WAITS);
	/* A number that stands for no worker, unless a runtime says that it is one. */
	loop = definition(&o, next(&o, TACHO_EV_PARK)->arg);
	assert_string_equal(loop->name, "io worker 254");
	p = tacho_read_process(o.reader, 0);
	assert_string_equal(p->service, "shop");
	assert_string_equal(p->imported, "a dial9 9.8.7 trace");
	assert_true(tacho_read_real_ns(o.reader, 0, T + 10) == 1700000000000000010);
	says(&o, "polls only of tasks spawned through it");
	says(&o, "segments that dial9 itself calls incomplete: 1");
	close_opened(&o);
}

static void before_there_was_an_event_for_clocks_metadata_had_the_time_of_the_wall(void **state)
{
	static const struct wire_field fields[] = {{"entries", 10}, {NULL, 0}};
	const uint64_t wall = 1700000000000000000;
	static struct wire w;
	struct opened o;

	(void)state;
	w.size = 0;
	wire_header(&w);
	wire_unpark(&w, T, 0, 7);
	wire_park(&w, T + 10, 0, 7);
	wire_header(&w);
	wire_event(&w, wire_schema(&w, "SegmentMetadataEvent", fields), wall);
	wire_number(&w, 0, 4);
	o = open_wire(&w);
	assert_true(tacho_read_real_ns(o.reader, 0, T + 10) == wall + 10);
	close_opened(&o);
}

/* -------------------------------------------------------------------- stacks */

static void samples_and_dumps_have_the_names_that_follow_them(void **state)
{
	static const struct wire_field sample[] = {
		{"tid", WIRE_U32}, {"source", WIRE_U8}, {"callchain", 6}, {NULL, 0}};
	static const struct wire_field symbol[] = {{"addr", WIRE_VARINT},
						   {"symbol_name", 7},
						   {"inline_depth", WIRE_VARINT},
						   {"source_line", WIRE_VARINT},
						   {NULL, 0}};
	static struct wire w;
	const uint64_t frames[] = {0x1000, 0x2000};
	const struct tacho_definition *stack;
	const struct tacho_event *e;
	struct opened o;
	uint16_t type;
	uint32_t id;

	(void)state;
	w.size = 0;
	wire_header(&w);
	type = wire_schema(&w, "CpuSampleEvent", sample);
	id = wire_stack(&w, frames, 2);
	wire_event(&w, type, T);
	wire_number(&w, 42, 4);
	wire_number(&w, 0, 1);
	wire_number(&w, id, 4);
	type = wire_schema(&w, "SymbolTableEntry", symbol);
	for (uint64_t depth = 0; depth < 2; depth++) {
		uint32_t name = wire_string(&w, depth ? "inner" : "outer");

		wire_event(&w, type, 0);
		wire_varint(&w, 0x1000);
		wire_number(&w, name, 4);
		wire_varint(&w, depth);
		wire_varint(&w, 10 + depth);
	}
	o = open_wire(&w);
	e = next(&o, TACHO_EV_SAMPLE);
	assert_int_equal(tid_of(&o, e), 42);
	stack = definition(&o, e->arg);
	assert_int_equal(stack->count, 3);
	assert_string_equal(
		tacho_read_symbol(o.reader, 0, stack->frames[0] - 1, e->ns, 0)->function, "inner");
	assert_string_equal(
		tacho_read_symbol(o.reader, 0, stack->frames[1] - 1, e->ns, 0)->function, "outer");
	assert_string_equal(
		tacho_read_symbol(o.reader, 0, stack->frames[2] - 1, e->ns, 0)->function, "0x2000");
	says(&o, "99 times a second");
	close_opened(&o);
}

/* ---------------------------------------------------------------- own events */

static void events_of_the_program_keep_their_fields(void **state)
{
	static const struct wire_field fields[] = {{"number", WIRE_VARINT},
						   {"signed", 1},
						   {"yes", 3},
						   {"text", 4},
						   {"absent", WIRE_OPTIONAL | 4},
						   {"there", WIRE_OPTIONAL | WIRE_U8},
						   {"list", 14},
						   {"unresolved", 7},
						   {NULL, 0}};
	static struct wire w;
	struct tacho_field_value v = {.size = sizeof(v)};
	const struct tacho_event *e;
	struct opened o;
	uint16_t type;

	(void)state;
	w.size = 0;
	wire_header(&w);
	type = wire_schema(&w, "OfTheFuture", fields);
	wire_event(&w, type, T);
	wire_varint(&w, UINT64_MAX);
	wire_number(&w, (uint64_t)-5, 8);
	wire_number(&w, 7, 1);
	wire_text(&w, "hello", 4);
	wire_number(&w, 0, 1);
	wire_number(&w, 1, 1);
	wire_number(&w, 200, 1);
	wire_number(&w, 3, 4); /* [8, "x", absent] */
	wire_number(&w, WIRE_U8, 1);
	wire_number(&w, 8, 1);
	wire_number(&w, 4, 1);
	wire_text(&w, "x", 4);
	wire_number(&w, 0, 1);
	wire_number(&w, 0, 1);
	wire_number(&w, 12345, 4);
	o = open_wire(&w);
	e = next(&o, TACHO_EV_EVENT);
	assert_string_equal(definition(&o, e->arg)->name, "OfTheFuture");
	assert_int_equal(tacho_read_field(o.reader, e, 0, &v), 1);
	assert_true(v.number.u64 == UINT64_MAX);
	assert_int_equal(tacho_read_field(o.reader, e, 1, &v), 1);
	assert_true(v.number.i64 == -5);
	assert_int_equal(tacho_read_field(o.reader, e, 2, &v), 1);
	assert_int_equal(v.number.u64, 1);
	assert_int_equal(tacho_read_field(o.reader, e, 3, &v), 1);
	assert_memory_equal(v.text, "hello", 5);
	assert_int_equal(tacho_read_field(o.reader, e, 4, &v), 0);
	assert_int_equal(tacho_read_field(o.reader, e, 5, &v), 1);
	assert_int_equal(v.number.u64, 200);
	assert_int_equal(tacho_read_field(o.reader, e, 6, &v), 1);
	assert_int_equal(v.text_size, strlen("[8, x, null]"));
	assert_memory_equal(v.text, "[8, x, null]", v.text_size);
	assert_int_equal(tacho_read_field(o.reader, e, 7, &v), 0);
	close_opened(&o);
}

/* ------------------------------------------------------------------- hostile */

/* A poll, `size` bytes, and another batch with a poll. */
static struct opened open_around(const void *bytes, size_t size)
{
	static struct wire w;

	w.size = 0;
	wire_header(&w);
	wire_poll(&w, T, 0, 1, "a.rs:1:1");
	wire_put(&w, bytes, size);
	wire_header(&w);
	wire_poll(&w, T + 10, 0, 2, "a.rs:1:1");
	return open_wire(&w);
}

static void what_is_not_known_is_said_and_the_next_batch_is_read(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *said;
	} cases[] = {
		{"\x63junk", 5, "a frame of the unknown kind 99 at byte "},
		{"\x02\x99\x00", 3, "an event of a type that was not described, 153"},
		{"\x03\x01\0\0\0\x01\0\0\0\xff\xff\xff\xff", 13, "is damaged at byte "},
		{"\x04\xff\xff\xff\xff\x01\0\0\0\xff\xff\xff\x7f", 13, "is damaged at byte "},
		{"TRC\0\2later", 10, "the unknown version 2"},
		{"TRC\0\2", 5, "the unknown version 2"},
		/* A schema with a field of type 77, and an event of it. */
		{"\x01\x99\x00\x01\x00X\x00\x01\x00\x01\x00y\x4d\x02\x99\x00", 16,
		 "a field of the unknown type 77"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct opened o = open_around(cases[i].bytes, cases[i].size);

		says(&o, cases[i].said);
		assert_int_equal(count(&o, TACHO_EV_POLL_BEGIN), 2);
		assert_int_equal(tacho_read_gap_count(o.reader), 1);
		close_opened(&o);
	}
}

/* The second uses the number of a text that only the first one has. */
static void texts_of_a_batch_are_not_those_of_the_next(void **state)
{
	static const uint32_t first = 1;
	static struct wire w;
	const struct tacho_event *e;
	struct opened o;

	(void)state;
	w.size = 0;
	wire_header(&w);
	wire_poll(&w, T, 0, 1, "first.rs:1:1");
	wire_header(&w);
	w.strings = 10;
	wire_poll(&w, T + 10, 0, 2, "second.rs:2:2");
	memcpy(w.bytes + w.size - sizeof(first), &first, sizeof(first));
	o = open_wire(&w);
	e = next(&o, TACHO_EV_POLL_BEGIN);
	assert_string_equal(definition(&o, TACHO_GET(e, POLL_BEGIN, kind))->name, "first.rs:1");
	e = next(&o, TACHO_EV_POLL_BEGIN);
	assert_null(strstr(definition(&o, TACHO_GET(e, POLL_BEGIN, kind))->name, "first.rs"));
	close_opened(&o);
}

static void lists_in_lists_end_somewhere(void **state)
{
	static struct wire w;
	static const struct wire_field fields[] = {{"list", 14}, {NULL, 0}};
	struct opened o;
	uint16_t type;

	(void)state;
	w.size = 0;
	wire_header(&w);
	wire_poll(&w, T, 0, 1, "a.rs:1:1");
	type = wire_schema(&w, "Deep", fields);
	wire_event(&w, type, T + 1);
	for (int i = 0; i < 5000; i++)
		wire_put(&w, "\1\0\0\0\x0e", 5);
	o = open_wire(&w);
	says(&o, "values nested too deep");
	close_opened(&o);
}

static void a_file_cut_anywhere_is_read_until_there(void **state)
{
	static struct wire w;
	uint32_t most = 0;

	(void)state;
	w.size = 0;
	wire_header(&w);
	for (uint64_t i = 0; i < 3; i++) {
		wire_unpark(&w, T + 100 * i, 0, 7);
		wire_poll(&w, T + 100 * i + 1, 0, i, "a.rs:1:1");
		wire_poll_end(&w, T + 100 * i + 2, 0);
		wire_park(&w, T + 100 * i + 3, 0, 7);
	}
	for (size_t size = 5; size <= w.size; size++) {
		struct opened o = open_bytes(w.bytes, size);

		if (!o.err) {
			uint32_t n = count(&o, TACHO_EV_POLL_BEGIN);

			assert_true(n >= most);
			most = n;
		} else {
			assert_int_equal(o.err, -EBADMSG);
			assert_int_equal(most, 0);
		}
		close_opened(&o);
	}
	assert_int_equal(most, 3);
}

/* --------------------------------------------------------------------- files */

static size_t pack(const void *data, size_t size, uint8_t *to, size_t room)
{
	z_stream z = {.next_in = (uint8_t *)data, .avail_in = (unsigned)size};

	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = to;
	z.avail_out = (unsigned)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	size = z.total_out;
	deflateEnd(&z);
	return size;
}

static void gzip_in_members_is_unpacked_and_a_bomb_is_bounded(void **state)
{
	static uint8_t packed[1 << 20];
	static struct wire w;
	size_t size, zeros = 100u << 20;
	uint8_t *bomb = calloc(1, zeros);
	struct opened o;

	(void)state;
	assert_non_null(bomb);
	w.size = 0;
	wire_header(&w);
	wire_poll(&w, T, 0, 1, "a.rs:1:1");
	size = pack(w.bytes, w.size, packed, sizeof(packed));
	size += pack(w.bytes, w.size, packed + size, sizeof(packed) - size);
	o = open_bytes(packed, size);
	assert_int_equal(count(&o, TACHO_EV_POLL_BEGIN), 2);
	close_opened(&o);

	memcpy(bomb, w.bytes, w.size);
	size = pack(bomb, zeros, packed, sizeof(packed));
	o = open_bytes(packed, size);
	assert_int_equal(count(&o, TACHO_EV_POLL_BEGIN), 1);
	says(&o, "unpacks to more than 64 MiB");
	close_opened(&o);

	memset(bomb, 0, 4096);
	size = pack(bomb, zeros, packed, sizeof(packed));
	o = open_bytes(packed, size);
	assert_int_equal(o.err, -EBADMSG);
	close_opened(&o);
	free(bomb);
}

static void write_wire(const char *folder, const char *name, const struct wire *w)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(w->bytes, 1, w->size, f), w->size);
	fclose(f);
}

static void segments_of_a_folder_are_one_trace(void **state)
{
	char folder[200], path[256];
	const char *const names[] = {"trace.9.bin", "trace.10.bin", "trace.10.bin.gz",
				     "trace.11.bin.active"};
	static struct wire w;
	struct tacho__found found;
	struct opened o;

	(void)state;
	snprintf(folder, sizeof(folder), "%.150s/dial9-XXXXXX", getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(folder));
	for (uint64_t i = 0; i < 4; i++) {
		w.size = 0;
		wire_header(&w);
		wire_unpark(&w, T + 100 * i, 0, 7);
		if (i)
			wire_poll_end(&w, T + 100 * i + 1, 0);
		wire_poll(&w, T + 100 * i + 2, 0, i, "a.rs:1:1");
		write_wire(folder, names[i], &w);
	}
	assert_int_equal(tacho__import_find(&found, folder), 1);
	assert_ptr_equal(found.importer, &tacho__import_dial9);
	o = open_paths(found.paths, found.path_count);
	assert_int_equal(o.err, 0);
	/* What dial9 is just packing is not read twice. */
	assert_int_equal(count(&o, TACHO_EV_POLL_BEGIN), 3);
	assert_int_equal(count(&o, TACHO_EV_POLL_END), 2);
	close_opened(&o);
	tacho__found_free(&found);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_wakes_and_parks_are_on_the_thread_of_their_batch),
		cmocka_unit_test(delays_and_cpu_time_of_workers_are_told_now_and_then),
		cmocka_unit_test(a_worker_on_two_threads_at_once_is_two_threads),
		cmocka_unit_test(a_batch_without_tid_is_of_the_thread_that_is_free),
		cmocka_unit_test(a_poll_without_end_ends_where_its_worker_parks),
		cmocka_unit_test(what_segments_say_of_themselves_is_known_from_the_first_event_on),
		cmocka_unit_test(
			before_there_was_an_event_for_clocks_metadata_had_the_time_of_the_wall),
		cmocka_unit_test(steps_of_a_span_are_paired_in_the_order_of_time),
		cmocka_unit_test(an_event_that_says_it_is_a_span_is_one),
		cmocka_unit_test(samples_and_dumps_have_the_names_that_follow_them),
		cmocka_unit_test(events_of_the_program_keep_their_fields),
		cmocka_unit_test(what_is_not_known_is_said_and_the_next_batch_is_read),
		cmocka_unit_test(texts_of_a_batch_are_not_those_of_the_next),
		cmocka_unit_test(lists_in_lists_end_somewhere),
		cmocka_unit_test(a_file_cut_anywhere_is_read_until_there),
		cmocka_unit_test(gzip_in_members_is_unpacked_and_a_bomb_is_bounded),
		cmocka_unit_test(segments_of_a_folder_are_one_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
