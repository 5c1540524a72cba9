/* tacho.h from C11: every call, and its values read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "header_calls.h"

static void scoped(int early)
{
	TACHO_SPAN("outer scope");
	TACHO_SPAN("inner scope");
	if (early)
		return;
	tacho_wake(2);
}

static void test_values(void **state)
{
	(void)state;
	assert_int_equal(tacho_start(NULL), 0);
	record_all();
	assert_int_equal(read_all(), 0);
	assert_true(no_more());
	tacho_stop();
}

static void span_is(enum tacho_event_type type, const char *name)
{
	next_is(type);
	EXPECT(is_named(event->arg, TACHO_DEF_SPAN, name));
}

/* Spans by scope end in reverse, also where a function returns early. */
static void test_scopes(void **state)
{
	struct tacho_status_info st = {.size = sizeof(st)};

	(void)state;
	mistakes = 0;
	assert_int_equal(tacho_start(NULL), 0);
	scoped(0);
	scoped(1);
	tacho_status(&st);
	assert_int_equal(tacho_read_open(&reader, st.box, NULL, NULL, 0), 0);
	for (int early = 0; early < 2; early++) {
		span_is(TACHO_EV_SPAN_BEGIN, "outer scope");
		span_is(TACHO_EV_SPAN_BEGIN, "inner scope");
		if (!early)
			next_is(TACHO_EV_WAKE);
		span_is(TACHO_EV_SPAN_END, "inner scope");
		span_is(TACHO_EV_SPAN_END, "outer scope");
	}
	assert_true(no_more());
	assert_int_equal(mistakes, 0);
	tacho_stop();
}

/* A name is cut at 255 bytes, and says so; names of one text and place are one. */
static void test_names(void **state)
{
	static struct tacho_name twice[2] = {TACHO_KIND("same"), TACHO_KIND("same")};
	static struct tacho_name same_loops[2] = {TACHO_LOOP("same"), TACHO_LOOP("same")};
	struct tacho_status_info st = {.size = sizeof(st)};
	static struct tacho_name name = TACHO_KIND(long_text);
	const struct tacho_definition *d;
	uint32_t first;

	(void)state;
	mistakes = 0;
	assert_int_equal(tacho_start(NULL), 0);
	memset(long_text, 'n', sizeof(long_text) - 1);
	tacho_poll_begin(&name, 1);
	tacho_poll_begin(&twice[0], 2);
	tacho_poll_begin(&twice[1], 3);
	tacho_park(&same_loops[0]);
	tacho_park(&same_loops[1]);
	tacho_status(&st);
	assert_int_equal(tacho_read_open(&reader, st.box, NULL, NULL, 0), 0);
	next_is(TACHO_EV_POLL_BEGIN);
	d = tacho_read_definition(reader, 0, event->arg);
	assert_non_null(d);
	assert_int_equal(strlen(d->name), 255);
	assert_true(d->cut);
	next_is(TACHO_EV_POLL_BEGIN);
	first = event->arg;
	next_is(TACHO_EV_POLL_BEGIN);
	assert_int_equal(event->arg, first);
	next_is(TACHO_EV_PARK);
	first = event->arg;
	next_is(TACHO_EV_PARK);
	assert_int_not_equal(event->arg, first);
	assert_true(no_more());
	assert_int_equal(mistakes, 0);
	tacho_stop();
}

/* Everything works as a branch when recording never began. */
static void test_off(void **state)
{
	(void)state;
	record_all();
	scoped(0);
	assert_int_equal(trigger_number, 0);
	assert_int_equal(loop_a.id, 0);
	assert_true(tacho_task_new() != tacho_task_new());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
