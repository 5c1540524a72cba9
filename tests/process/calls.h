/* Every call that records, once, with names that are defined after the first round. */
#ifndef TESTS_PROCESS_CALLS_H
#define TESTS_PROCESS_CALLS_H

#include "tacho.h"

TACHO_EVENT(all_types, (u64, a), (i64, b), (f64, c), (bool, d), (string, e), (opt_u64, f),
	    (opt_i64, g), (opt_f64, h), (opt_bool, i), (opt_string, j))

/* Records that one round leaves behind. */
#define ROUND_RECORDS 28u

static inline void call_all(uint64_t n)
{
	static struct tacho_name loop = TACHO_LOOP("loop"), other = TACHO_LOOP("other");
	static struct tacho_name kind = TACHO_KIND("kind"), what = TACHO_TEXT("what");
	static struct tacho_name place = TACHO_PLACE("place"), span = TACHO_SPAN_NAME("span");
	static struct tacho_name async = TACHO_SPAN_NAME("async");
	static struct tacho_name counter = TACHO_COUNTER("counter", "items");
	static struct tacho_name gauge = TACHO_GAUGE("gauge", "C");
	uint64_t u = n;
	int64_t i = -1;
	double d = 0.5;
	bool b = true;

	tacho_loop(&loop);
	tacho_park(&loop);
	tacho_unpark(&loop, 3);
	tacho_queue_depth(&loop, n);
	tacho_steal(&loop, &other, n);
	tacho_task_spawn(n, &kind, 0, &place);
	tacho_poll_begin(&kind, n);
	tacho_poll_switch(&kind, n + 1);
	tacho_wake(n);
	tacho_task_waits(n, &what, 7, 0);
	tacho_lock_wait(&u, &place);
	tacho_lock_waited(&u, 1);
	tacho_lock_release(&u, 2, &place);
	tacho_span_begin(&span);
	tacho_span_trace_id(0, 1, 2);
	tacho_span_end(&span);
	tacho_async_begin(&async, n, 0);
	tacho_async_end(&async, n);
	tacho_log(3, "a line of text");
	tacho_log_n(4, "without terminator", 7);
	tacho_counter(&counter, (int64_t)n);
	tacho_gauge(&gauge, 0.25);
	tacho_event_all_types(n, -1, 2.5, true, "text", &u, &i, &d, &b, "opt");
	tacho_event_all_types(n, -1, 2.5, false, NULL, NULL, NULL, NULL, NULL, NULL);
	{
		TACHO_SPAN("scope");
		(void)tacho_task_new();
	}
	tacho_poll_end(TACHO_PENDING);
	tacho_task_end(n);
}

#endif
