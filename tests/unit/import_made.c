/* A trace that is made of another's events reads as any other. */
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

#include "base/clock.h"
#include "format/record.h"
#include "import/made.h"
#include "read/records.h"

#define BEGIN_NS 5000000000ull

struct opened {
	struct tacho_reader *reader;
	int fd;
};

static struct opened open_made(struct tacho__made *m)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct opened o = {.fd = memfd_create("made", MFD_CLOEXEC)};
	char message[512], path[64];

	assert_true(o.fd >= 0);
	assert_int_equal(tacho__made_write(m, o.fd, NULL, message, sizeof(message)), 0);
	tacho__made_free(m);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", o.fd);
	assert_int_equal(tacho_read_open(&o.reader, path, &options, message, sizeof(message)), 0);
	return o;
}

static void close_made(struct opened *o)
{
	assert_int_equal(tacho_read_problem_count(o->reader), 0);
	tacho_read_close(o->reader);
	close(o->fd);
}

static const struct tacho_event *next(struct opened *o, unsigned type)
{
	const struct tacho_event *e;

	do
		assert_int_equal(tacho_read_next(o->reader, &e), 1);
	while (e->type == TACHO_EV_RESUME && type != TACHO_EV_RESUME);
	assert_int_equal(e->type, type);
	return e;
}

static void events_are_sorted_and_keep_what_they_say(void **state)
{
	struct tacho__made *m = tacho__made_new();
	struct tacho__made_about about = {.imported = "a test", .name = "gopher"};
	uint64_t task = 7, words[3] = {0, 7, 0};
	uint64_t frames[2];
	uint32_t a, b, kind, stack;
	const struct tacho_definition *d;
	const struct tacho_process *p;
	const struct tacho_event *e;
	struct opened o;

	(void)state;
	tacho__made_about(m, &about);
	tacho__made_anchor(m, BEGIN_NS, 1700000000000000000ull);
	a = tacho__made_thread(m, 11, "a");
	b = tacho__made_thread(m, 12, "b");
	kind = tacho__made_place(m, TACHO_DEF_KIND, "main.work", "main.go", 12);
	assert_int_equal(kind, tacho__made_place(m, TACHO_DEF_KIND, "main.work", "main.go", 12));
	assert_int_not_equal(kind,
			     tacho__made_place(m, TACHO_DEF_KIND, "main.work", "main.go", 13));
	frames[0] = tacho__made_frame(m, "main.lock", "lock.go", 3);
	frames[1] = tacho__made_frame(m, "main.main", "main.go", 40);
	assert_true(frames[0] == tacho__made_frame(m, "main.lock", "lock.go", 3));
	stack = tacho__made_stack(m, frames, 2, 0);
	words[0] = (uint64_t)stack << 16;
	tacho__made_put(m, a, BEGIN_NS + 30, TACHO_REC_POLL_END, 1, NULL, 0);
	tacho__made_put(m, b, BEGIN_NS + 10, TACHO_REC_WAKE, 0, &task, 1);
	tacho__made_put(m, a, BEGIN_NS + 20, TACHO_REC_POLL_BEGIN, kind, &task, 1);
	tacho__made_put(m, a, BEGIN_NS + 25, TACHO_REC_TASK_WAITS,
			tacho__made_name(m, TACHO_DEF_TEXT, "sync"), words, 3);
	tacho__made_log(m, b, BEGIN_NS + 40, 2, "hello");
	o = open_made(m);
	e = next(&o, TACHO_EV_WAKE);
	assert_int_equal(e->ns, BEGIN_NS + 10);
	e = next(&o, TACHO_EV_POLL_BEGIN);
	d = tacho_read_definition(o.reader, 0, e->arg);
	assert_string_equal(d->name, "main.work");
	assert_string_equal(d->file, "main.go");
	assert_int_equal(d->line, 12);
	e = next(&o, TACHO_EV_TASK_WAITS);
	d = tacho_read_definition(o.reader, 0, (uint32_t)(e->word[0] >> 16));
	assert_int_equal(d->count, 2);
	assert_string_equal(tacho_read_symbol(o.reader, 0, d->frames[0] - 1, e->ns, 0)->function,
			    "main.lock");
	assert_int_equal(tacho_read_symbol(o.reader, 0, d->frames[1] - 1, e->ns, 0)->line, 40);
	next(&o, TACHO_EV_POLL_END);
	next(&o, TACHO_EV_LOG);
	p = tacho_read_process(o.reader, 0);
	assert_string_equal(p->imported, "a test");
	assert_string_equal(p->comm, "gopher");
	assert_int_equal(tacho_read_real_ns(o.reader, 0, BEGIN_NS + 40), 1700000000000000040ull);
	close_made(&o);
}

static void events_of_one_time_stay_in_their_order(void **state)
{
	static const uint64_t tasks[] = {1, 2, 3, 4, 5};
	static const uint64_t at[] = {10, 20, 10, 20, 10}, order[] = {1, 3, 5, 2, 4};
	struct tacho__made *m = tacho__made_new();
	uint32_t thread = tacho__made_thread(m, 11, "a");
	struct opened o;

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		tacho__made_put(m, thread, BEGIN_NS + at[i], TACHO_REC_WAKE, 0, &tasks[i], 1);
	o = open_made(m);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(next(&o, TACHO_EV_WAKE)->word[0], order[i]);
	close_made(&o);
}

static void what_is_no_record_is_counted_as_lost(void **state)
{
	struct tacho__made *m = tacho__made_new();
	uint64_t words[200] = {0};
	char long_name[600];
	const struct tacho_definition *d;
	struct opened o;
	uint32_t t;

	(void)state;
	t = tacho__made_thread(m, 1, NULL);
	tacho__made_put(m, t, BEGIN_NS, TACHO_REC_TIME, 0, words, 1);
	tacho__made_put(m, t, BEGIN_NS, TACHO_REC_WAKE, 0, words, 2);
	tacho__made_put(m, t, BEGIN_NS, TACHO_REC_LOG, 0, words, 200);
	tacho__made_put(m, t, BEGIN_NS, TACHO_REC_LOOP, TACHO_ARG_MAX + 1, NULL, 0);
	tacho__made_put(m, t + 1, BEGIN_NS, TACHO_REC_LOOP, 0, NULL, 0);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	tacho__made_put(m, t, BEGIN_NS, TACHO_REC_LOOP,
			tacho__made_name(m, TACHO_DEF_LOOP, long_name), NULL, 0);
	tacho__made_say(m, "the file is cut");
	tacho__made_lost(m, BEGIN_NS + 1, BEGIN_NS + 2, 3);
	o = open_made(m);
	d = tacho_read_definition(o.reader, 0, next(&o, TACHO_EV_LOOP)->arg);
	assert_int_equal(strlen(d->name), TACHO_NAME_MAX);
	assert_true(d->cut);
	assert_string_equal(tacho_read_process(o.reader, 0)->reason,
			    "the file is cut; 5 events could not be taken over");
	assert_int_equal(tacho_read_gap_count(o.reader), 1);
	assert_string_equal(tacho_read_gap(o.reader, 0)->reason, "import");
	close_made(&o);
}

static void a_trace_of_nothing_opens(void **state)
{
	struct opened o;

	(void)state;
	o = open_made(tacho__made_new());
	close_made(&o);
}

static void many_events_keep_their_order_across_blocks(void **state)
{
	const uint32_t count =
		getenv("TACHO_MADE_EVENTS") ? (uint32_t)atol(getenv("TACHO_MADE_EVENTS")) : 200000;
	struct tacho__made *m = tacho__made_new();
	const struct tacho_event *e;
	uint64_t begun = tacho__clock_ns(CLOCK_MONOTONIC), seen = 0, last = 0;
	struct opened o;
	uint32_t kind, threads[2];

	(void)state;
	threads[0] = tacho__made_thread(m, 1, "one");
	threads[1] = tacho__made_thread(m, 2, "two");
	kind = tacho__made_name(m, TACHO_DEF_KIND, "k");
	/* The second thread backwards. */
	for (uint32_t i = 0; i < count; i++) {
		uint64_t task = i % 1000 + 1, at = i & 2 ? count - i : i;

		tacho__made_put(m, threads[i >> 1 & 1], BEGIN_NS + at * 100,
				i & 1 ? TACHO_REC_POLL_END : TACHO_REC_POLL_BEGIN, i & 1 ? 1 : kind,
				&task, !(i & 1));
	}
	o = open_made(m);
	print_message("made in %llu ms\n",
		      (unsigned long long)(tacho__clock_ns(CLOCK_MONOTONIC) - begun) / 1000000);
	while (tacho_read_next(o.reader, &e) == 1) {
		assert_true(e->ns >= last);
		last = e->ns;
		seen += e->type != TACHO_EV_RESUME;
	}
	assert_int_equal(seen, count);
	close_made(&o);
}

/* 100 bytes, from which gzip unpacks events without end. */
static void no_more_events_than_its_bytes_can_hold(void **state)
{
	const uint64_t most = TACHO__EVENTS_FREE + 100 * TACHO__EVENTS_PER_BYTE;
	struct tacho__made *m = tacho__made_new();
	uint32_t thread = tacho__made_thread(m, 11, "a");

	(void)state;
	tacho__made_bytes(m, 100);
	for (uint64_t i = 0; i < most + 1000; i++)
		tacho__made_put(m, thread, BEGIN_NS + i, TACHO_REC_UNPARK, 1, NULL, 0);
	assert_int_equal(tacho__made_events(m), most);
	/* More bytes hold more. */
	tacho__made_bytes(m, 1);
	for (uint64_t i = 0; i < 1000; i++)
		tacho__made_put(m, thread, BEGIN_NS + most, TACHO_REC_UNPARK, 1, NULL, 0);
	assert_int_equal(tacho__made_events(m), most + TACHO__EVENTS_PER_BYTE);
	tacho__made_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_sorted_and_keep_what_they_say),
		cmocka_unit_test(events_of_one_time_stay_in_their_order),
		cmocka_unit_test(what_is_no_record_is_counted_as_lost),
		cmocka_unit_test(a_trace_of_nothing_opens),
		cmocka_unit_test(many_events_keep_their_order_across_blocks),
		cmocka_unit_test(no_more_events_than_its_bytes_can_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
