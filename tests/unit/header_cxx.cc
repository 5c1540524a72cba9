// tacho.h from C++17: every call, spans and polls by the life of objects, values read back.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <type_traits>

extern "C" {
#include <cmocka.h>
}

// Before tacho.h, so that each of the two meets what the other declared.
#include "tacho_read.h"

#include "header_calls.h"

static void test_values(void **)
{
	assert_int_equal(tacho_start(nullptr), 0);
	record_all();
	assert_int_equal(read_all(), 0);
	assert_true(no_more());
	tacho_stop();
}

static struct tacho_name work = TACHO_SPAN_NAME("work");
static struct tacho_name step = TACHO_KIND("step");

static void throws()
{
	tacho::poll poll(step, 11);
	tacho::span span(work);
	span.trace_id(21, 22);
	throw std::runtime_error("out");
}

static void finishes()
{
	tacho::poll poll(step, 12);
	TACHO_SPAN("scope in C++");
	poll.done();
}

// They end with the scope, also when it is left by an exception.
static void test_objects(void **)
{
	struct tacho_status_info st = {};
	struct tacho_options options = TACHO_OPTIONS_INIT;

	static_assert(!std::is_copy_constructible<tacho::span>::value, "a span has one end");
	static_assert(!std::is_copy_constructible<tacho::poll>::value, "a poll has one end");
	mistakes = 0;
	options.service = "in C++";
	assert_int_equal(tacho_start(&options), 0);
	try {
		throws();
	} catch (const std::runtime_error &) {
		tacho_wake(13);
	}
	finishes();
	st.size = sizeof(st);
	tacho_status(&st);
	assert_int_equal(tacho_read_open(&reader, st.box, nullptr, nullptr, 0), 0);
	assert_string_equal(tacho_read_process(reader, 0)->service, "in C++");
	next_is(TACHO_EV_POLL_BEGIN);
	EXPECT(is_named(event->arg, TACHO_DEF_KIND, "step") && word(0) == 11);
	next_is(TACHO_EV_SPAN_BEGIN);
	EXPECT(is_named(event->arg, TACHO_DEF_SPAN, "work"));
	next_is(TACHO_EV_TRACE_ID);
	EXPECT(word(2) == 21 && word(3) == 22);
	next_is(TACHO_EV_SPAN_END);
	next_is(TACHO_EV_POLL_END);
	EXPECT(event->arg == TACHO_PENDING);
	next_is(TACHO_EV_WAKE);
	next_is(TACHO_EV_POLL_BEGIN);
	next_is(TACHO_EV_SPAN_BEGIN);
	EXPECT(is_named(event->arg, TACHO_DEF_SPAN, "scope in C++"));
	next_is(TACHO_EV_SPAN_END);
	next_is(TACHO_EV_POLL_END);
	EXPECT(event->arg == TACHO_DONE);
	assert_true(no_more());
	assert_int_equal(mistakes, 0);
	tacho_stop();
}

// Records when its thread ends.
struct recorder_at_end {
	~recorder_at_end()
	{
		tacho_wake(number);
		tacho_poll_end(TACHO_DONE);
	}
	uint64_t number = 0;
};

static thread_local recorder_at_end at_end;

// Destructors of thread_local objects run before, or after, those of the recorder.
static void test_thread_local(void **)
{
	struct tacho_status_info st = {};
	uint64_t seen = 0;

	assert_int_equal(tacho_start(nullptr), 0);
	for (uint64_t i = 1; i <= 100; i++)
		std::thread([i] {
			if (i % 2)
				tacho_poll_begin(&step, i);
			at_end.number = i;
			if (i % 2 == 0)
				tacho_poll_begin(&step, i);
		}).join();
	st.size = sizeof(st);
	tacho_status(&st);
	assert_int_equal(st.threads, 100);
	assert_int_equal(tacho_read_open(&reader, st.box, nullptr, nullptr, 0), 0);
	while (tacho_read_next(reader, &event) > 0)
		if (event->type == TACHO_EV_WAKE)
			assert_int_equal(word(0), ++seen);
	assert_int_equal(seen, 100);
	tacho_read_close(reader);
	tacho_stop();
}

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_thread_local),
	};

	return cmocka_run_group_tests(tests, nullptr, nullptr);
}
