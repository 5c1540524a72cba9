/* What rules say of traces that are made record by record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "explain_help.h"

static void two_causes_on_one_loop_are_two_findings(void **state)
{
	struct explained x;
	const struct tacho__finding *f;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	PUT(&x.m, 1 * MS, UNPARK, 1);
	sampled(&x.m, 1 * MS, 300 * MS, 0x1000, 0x5000);
	PUT(&x.m, 300 * MS, PARK, LOOP_1);
	for (uint64_t i = 0; i < 3; i++) {
		PUT(&x.m, (400 + 300 * i) * MS, UNPARK, 1);
		sampled(&x.m, (400 + 300 * i) * MS, (600 + 300 * i) * MS, 0x2000, 0x6000);
		PUT(&x.m, (600 + 300 * i) * MS, PARK, LOOP_1);
	}
	explain(&x);
	f = found(x.e, "long-callback", 0);
	assert_non_null(f);
	assert_int_equal(f->where[0].address, CODE + 0x6000);
	assert_int_equal(f->where[1].address, CODE + 0x9000);
	assert_true(says(f, "up to 200 ms of 300 ms, in server+0x6000"));
	assert_true(shows(f, "3 times, 600 ms in all"));
	f = found(x.e, "long-callback", 1);
	assert_non_null(f);
	assert_int_equal(f->where[0].address, CODE + 0x5000);
	assert_true(says(f, "up to 299 ms"));
	assert_null(found(x.e, "long-callback", 2));
	end(&x);
}

static void what_took_most_of_a_long_turn_is_named_not_what_came_last(void **state)
{
	struct explained x;
	const struct tacho__finding *f;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	PUT(&x.m, 1 * MS, UNPARK, 1);
	sampled(&x.m, 1 * MS, 4001 * MS, 0x1000, 0x5000);
	sampled(&x.m, 4001 * MS, 5001 * MS, 0x2000, 0x6000);
	PUT(&x.m, 5001 * MS, PARK, LOOP_1);
	explain(&x);
	f = found(x.e, "long-callback", 0);
	assert_non_null(f);
	assert_int_equal(f->where[0].address, CODE + 0x5000);
	assert_true(says(f, "up to 5.00 s"));
	end(&x);
}

static const struct tacho__considered *considered(const struct tacho__explanation *e,
						  const char *what)
{
	for (uint32_t i = 0; i < e->considered_count; i++)
		if (strstr(e->considered[i].what, what))
			return &e->considered[i];
	return NULL;
}

/* A call of 12 ms that nobody waits for, in a window of ten seconds. */
static void what_is_too_small_for_a_finding_is_listed_with_the_reason(void **state)
{
	struct explained x;
	const struct tacho__considered *c;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 1; i < 100; i++) {
		PUT(&x.m, i * 100 * MS, UNPARK, 1);
		if (i == 50)
			PUT(&x.m, i * 100 * MS + 12 * MS, CALL, NAME, 0, 12 * MS, UINT64_MAX, 0);
		PUT(&x.m, i * 100 * MS + (i == 50 ? 12 * MS : MS / 10), PARK, LOOP_1);
	}
	explain(&x);
	for (uint32_t i = 0; i < x.e->considered_count; i++)
		print_message("%s: %s: %s\n", tacho__rules[x.e->considered[i].rule].id,
			      x.e->considered[i].what, x.e->considered[i].reason);
	assert_null(found(x.e, "blocking-call", 0));
	c = considered(x.e, "call ");
	assert_non_null(c);
	assert_int_equal(c->rule, TACHO__RULE_BLOCKING_CALL);
	assert_true(c->cost_ns > 11.9 * MS && c->cost_ns < 12.1 * MS);
	assert_non_null(strstr(c->reason, "lost.share 2"));
	for (uint32_t i = 1; i < x.e->considered_count; i++)
		assert_true(x.e->considered[i - 1].waiting_ns > x.e->considered[i].waiting_ns ||
			    (x.e->considered[i - 1].waiting_ns == x.e->considered[i].waiting_ns &&
			     x.e->considered[i - 1].cost_ns >= x.e->considered[i].cost_ns));
	end(&x);
}

static void many_waits_in_one_turn_are_summed_up(void **state)
{
	struct explained x;
	const struct tacho__finding *f;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	PUT(&x.m, 1 * MS, UNPARK, 1);
	/* A condition, with a time-out of 5 ms; the last one is signalled. */
	for (uint64_t i = 0; i < 100; i++) {
		PUT(&x.m, (2 + 5 * i) * MS, LOCK_WAIT, PLACE, 0x77);
		PUT(&x.m, (2 + 5 * i + 5) * MS - 1000, LOCK_WAITED, i == 99 ? 3 : 2, 0x77);
	}
	PUT(&x.m, 503 * MS, PARK, LOOP_1);
	turn(&x.m, 700 * MS, 701 * MS);
	trace_stream(&x.m, 2, 0);
	PUT(&x.m, 502 * MS - 2000, LOCK_RELEASE, PLACE, 0x77, 1);
	explain(&x);
	f = found(x.e, "blocking-call", 0);
	assert_non_null(f);
	assert_true(says(f, "for up to 5.00 ms"));
	assert_true(shows(f, "100 times, 500 ms in all"));
	end(&x);
}

/* Descriptors 4 to 7 are ready, the first of them far more often than the others; turns for it, and
   for the others, take so long. */
static void ready_for(struct trace *m, uint64_t often_ns, uint64_t rest_ns)
{
	uint64_t at = 0;

	PUT(m, at, PARK, LOOP_1);
	for (uint32_t i = 0; i < 1320; i++) {
		uint64_t fd = i % 11 ? 4 : 5 + i / 11 % 3, ns = fd == 4 ? often_ns : rest_ns;

		PUT(m, at + 1000, UNPARK, 1);
		PUT(m, at + 1000, READY, 1, fd);
		PUT(m, at + 1000 + ns, PARK, LOOP_1);
		at += 1000 + ns;
	}
}

static void a_descriptor_that_is_often_ready_for_nothing_is_no_flood(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	ready_for(&x.m, 2000, 3 * MS);
	explain(&x);
	assert_null(found(x.e, "fd-flood", 0));
	end(&x);
}

static void a_descriptor_that_takes_the_time_of_its_loop_is_a_flood(void **state)
{
	struct explained x;
	const struct tacho__finding *f;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	ready_for(&x.m, MS, MS);
	explain(&x);
	f = found(x.e, "fd-flood", 0);
	assert_non_null(f);
	/* 1200 of 1320 ms */
	assert_true(says(f, "descriptor 4, one of 4, takes 91 %"));
	assert_true(shows(f, "ready 1200 times, for 1.20 s in all; the next one took 40.0 ms"));
	end(&x);
}

/* The same descriptor, by which the program itself wakes its loop; then all of them are such. */
static void what_a_program_wakes_its_loop_with_is_no_flood(void **state)
{
	(void)state;
	for (uint64_t last = 4; last <= 7; last += 3) {
		struct explained x;
		uint8_t payload[64];
		struct tb p = {0};

		begin(&x.m, 2);
		for (uint64_t fd = 4; fd <= last; fd++)
			tb_definition(&p, OTHER + fd, TACHO_DEF_DESCRIPTOR, payload,
				      bb_name(payload, "eventfd", "", 0, fd, 0, ""));
		tb_plain(&x.m.t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
		free(p.data);
		trace_stream(&x.m, 1, 0);
		ready_for(&x.m, MS, MS);
		explain(&x);
		assert_null(found(x.e, "fd-flood", 0));
		end(&x);
	}
}

/* A wake of the task, and its poll so many ns after it. */
static void wake(struct trace *m, uint64_t task, uint64_t at, uint64_t ns)
{
	PUT(m, at, WAKE, 0, task);
	PUT(m, at + ns, POLL_BEGIN, KIND_A, task);
	PUT(m, at + ns + 1000, POLL_END, 0);
}

static void wakes_that_were_late_at_one_time_are_no_latency(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 8; i++)
		PUT(&x.m, 1000 * (i + 1), WAKE, 0, i + 1);
	for (uint64_t i = 0; i < 8; i++) {
		PUT(&x.m, 30 * MS + 2000 * i, POLL_BEGIN, KIND_A, i + 1);
		PUT(&x.m, 30 * MS + 2000 * i + 1000, POLL_END, 0);
	}
	for (uint64_t i = 8; i < 60; i++)
		wake(&x.m, i + 1, 50 * i * MS, 10000);
	explain(&x);
	assert_null(found(x.e, "wake-latency", 0));
	assert_string_equal(x.e->verdict.category, "none");
	end(&x);
}

static void wakes_that_are_late_again_and_again_are_latency(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 60; i++)
		wake(&x.m, i + 1, 50 * i * MS, i < 8 ? 30 * MS : 10000);
	explain(&x);
	assert_non_null(found(x.e, "wake-latency", 0));
	end(&x);
}

static void loops_that_idle_are_said_to_be_fine(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	turn(&x.m, 1000 * MS, 1001 * MS);
	turn(&x.m, 2000 * MS, 2001 * MS);
	explain(&x);
	assert_string_equal(x.e->verdict.category, "none");
	assert_non_null(strstr(x.e->verdict.summary, "almost nothing to do"));
	end(&x);
}

static void a_few_records_of_a_busy_loop_tell_nothing(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 5; i++)
		turn(&x.m, (10 + 200 * i) * MS, (19 + 200 * i) * MS);
	explain(&x);
	assert_string_equal(x.e->verdict.category, "not-enough-data");
	end(&x);
}

/* As node does when it ends: the thread leaves its loop, joins others, and looks at another one. */
static void leave_loop(struct trace *m, uint64_t state, uint32_t threads)
{
	begin(m, state);
	for (uint32_t t = 1; t <= threads; t++) {
		trace_stream(m, t, 0);
		PUT(m, 0, PARK, LOOP_1);
		for (uint64_t i = 1; i < 60; i++)
			turn(m, 20 * i * MS, (20 * i + (i == 30 && t == 1 ? 12 : 1)) * MS);
		PUT(m, 1300 * MS, UNPARK, 1);
		PUT(m, 1900 * MS, PARK, LOOP_2);
		PUT(m, 1901 * MS, UNPARK, 0);
	}
}

static void what_a_thread_does_after_its_loop_keeps_no_loop(void **state)
{
	struct explained x;

	(void)state;
	leave_loop(&x.m, 4, 1);
	explain(&x);
	assert_string_equal(x.e->verdict.category, "none");
	end(&x);
	leave_loop(&x.m, 2, 1);
	explain(&x);
	assert_non_null(found(x.e, "long-callback", 0));
	end(&x);
}

/* More of them than are remembered of each cause. */
static void threads_that_all_leave_their_loops_keep_none(void **state)
{
	struct explained x;

	(void)state;
	leave_loop(&x.m, 4, TACHO__WORST + 4);
	explain(&x);
	assert_string_equal(x.e->verdict.category, "none");
	end(&x);
}

/* Waits in which the thread was runnable for `delay` before it ran, and turns that take `busy`. */
static void delayed(struct trace *m, uint32_t waits, uint64_t delay, uint64_t parked, uint64_t busy)
{
	uint64_t at = 0;

	begin(m, 2);
	trace_stream(m, 1, 0);
	PUT(m, at, PARK, LOOP_1);
	for (uint32_t i = 0; i < waits; i++) {
		at += parked;
		PUT(m, at, UNPARK, 1);
		PUT(m, at + 1000, SCHED, 0, delay, 0);
		at += busy;
		PUT(m, at, PARK, LOOP_1);
	}
}

static void a_loop_that_gets_its_cpu_late_is_told_from_one_that_idles(void **state)
{
	struct explained x;
	const struct tacho__finding *f;

	(void)state;
	delayed(&x.m, 60, 30 * MS, 40 * MS, MS / 10);
	explain(&x);
	f = found(x.e, "kernel-scheduling-delay", 0);
	assert_non_null(f);
	assert_true(says(f, "1.80 s in all, 60 times, up to 30.0 ms"));
	end(&x);
	delayed(&x.m, 2, 300 * MS, 1000 * MS, MS / 10);
	explain(&x);
	assert_string_equal(x.e->verdict.category, "scheduling");
	end(&x);
	delayed(&x.m, 60, MS / 2, 40 * MS, MS / 10);
	explain(&x);
	assert_string_equal(x.e->verdict.category, "none");
	end(&x);
}

/* Half loaded, and late for each thing that it does. */
static void a_busy_loop_that_gets_its_cpu_late_is_told_as_well(void **state)
{
	struct explained x;

	(void)state;
	delayed(&x.m, 60, 12 * MS, 12 * MS, 5 * MS);
	explain(&x);
	assert_string_equal(x.e->verdict.category, "scheduling");
	end(&x);
}

/* Of the turns of one client: 40 of 8 ms, 4 of which are the kernel's, and as many of little. */
static void what_is_being_served_waits_for_a_cpu_as_well(void **state)
{
	const struct tacho__finding *f;
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	for (uint64_t i = 0; i < 40; i++) {
		PUT(&x.m, (50 * i) * MS, PARK, LOOP_1);
		PUT(&x.m, (50 * i + 20) * MS, UNPARK, 1);
		PUT(&x.m, (50 * i + 28) * MS, PARK, LOOP_1);
		PUT(&x.m, (50 * i + 28) * MS, SCHED, 1, 4 * MS, 0);
		PUT(&x.m, (50 * i + 40) * MS, UNPARK, 1);
		PUT(&x.m, (50 * i + 41) * MS, PARK, LOOP_1);
		PUT(&x.m, (50 * i + 41) * MS, SCHED, 1, MS / 2, 0);
		PUT(&x.m, (50 * i + 48) * MS, UNPARK, 1);
	}
	PUT(&x.m, 2000 * MS, PARK, LOOP_1);
	explain(&x);
	f = found(x.e, "kernel-scheduling-delay", 0);
	assert_non_null(f);
	/* Short ones are told with them. */
	assert_true(says(f, "180 ms in all, 80 times, up to 4.00 ms in one iteration or wait"));
	end(&x);
}

/* A lock that is had for 8 of 10 ms, of which `off` are the kernel's. */
static void want(struct trace *m, uint64_t off, int goes_on)
{
	begin(m, 2);
	trace_stream(m, 1, 0);
	for (uint64_t i = 0; i < 40; i++) {
		PUT(m, (50 * i) * MS, PARK, LOOP_3);
		PUT(m, (50 * i + 20) * MS, UNPARK, 4);
		PUT(m, (50 * i + 21) * MS, LOCK_WAIT, PLACE, 0x1000);
		PUT(m, (50 * i + 28) * MS, LOCK_WAITED, 1, 0x1000);
		if (goes_on)
			PUT(m, (50 * i + 28) * MS + 1000, LOCK_RELEASE, PLACE, 0x2000, 1);
	}
	PUT(m, 2000 * MS, PARK, LOOP_3);
	trace_stream(m, 2, 0);
	for (uint64_t i = 0; i < 40; i++) {
		PUT(m, (50 * i) * MS, PARK, LOOP_1);
		PUT(m, (50 * i + 20) * MS, UNPARK, 1);
		PUT(m, (50 * i + 28) * MS - 1000, LOCK_RELEASE, PLACE, 0x1000, 1);
		PUT(m, (50 * i + 30) * MS, PARK, LOOP_1);
		PUT(m, (50 * i + 30) * MS, SCHED, 1, off, 0);
		PUT(m, (50 * i + 40) * MS, UNPARK, 1);
	}
	PUT(m, 2000 * MS, PARK, LOOP_1);
}

static void a_lock_whose_holder_does_not_run_is_not_the_cause(void **state)
{
	struct explained x;

	(void)state;
	/* What is told of the lock comes before or after what is told of its holder. */
	for (int goes_on = 0; goes_on < 2; goes_on++) {
		want(&x.m, 8 * MS, goes_on);
		explain(&x);
		assert_non_null(found(x.e, "kernel-scheduling-delay", 0));
		assert_null(found(x.e, "lock-contention", 0));
		end(&x);
	}
	want(&x.m, 1 * MS, 1);
	explain(&x);
	assert_non_null(found(x.e, "lock-contention", 0));
	end(&x);
}

/* A loop that has so many things to do and works for that long in 5 ms, beside two that work for this
   long. */
static const struct tacho__finding *imbalance(struct explained *x, uint32_t ready, uint64_t ns,
					      uint64_t others_ns)
{
	begin(&x->m, 2);
	for (uint32_t t = 1; t <= 3; t++) {
		trace_stream(&x->m, t, 0);
		PUT(&x->m, 0, PARK, LOOP_1);
		for (uint64_t i = 0; i < 200; i++) {
			PUT(&x->m, (5 * i + 1) * MS, UNPARK, t == 1 ? ready : 1);
			PUT(&x->m, (5 * i + 1) * MS + (t == 1 ? ns : others_ns), PARK, LOOP_1);
		}
	}
	explain(x);
	return found(x->e, "worker-imbalance", 0);
}

static void an_imbalance_names_the_loop_and_its_thread(void **state)
{
	struct explained x;
	const struct tacho__finding *f;

	(void)state;
	f = imbalance(&x, 8, 4 * MS, 1000);
	assert_non_null(f);
	assert_true(says(f, "loop loop 1 on thread "));
	assert_true(shows(f, "times as busy as the median of its peers"));
	end(&x);
	/* What it does is all that there is to do. */
	assert_null(imbalance(&x, 1, 4 * MS, 1000));
	end(&x);
}

static void peers_that_serve_nothing_do_not_explain_a_loop_that_is_full(void **state)
{
	struct explained x;

	(void)state;
	assert_null(imbalance(&x, 8, 5 * MS - 1000, 1000));
	assert_non_null(found(x.e, "loop-saturated", 0));
	end(&x);
	assert_non_null(imbalance(&x, 8, 5 * MS - 1000, MS / 10));
	end(&x);
}

/* How the process of a trace ended, after what is in it. */
static void end_process(struct trace *m, uint64_t how, uint64_t status, uint64_t flags, uint64_t ns)
{
	struct tb p = {0};

	trace_close(m);
	tb_meta_u64(&p, TACHO_META_END_HOW, how);
	tb_meta_u64(&p, TACHO_META_END_STATUS, status);
	tb_meta_u64(&p, TACHO_META_END_FLAGS, flags);
	tb_meta_u64(&p, TACHO_META_END_MONO, ns);
	tb_plain(&m->t, TACHO_BLOCK_META, p.data, p.size);
	free(p.data);
}

/* Turns of 1 ms in each of 10, then one with a callback that does not end. */
static void get_stuck(struct trace *m)
{
	begin(m, TACHO_STATE_RECORDING);
	trace_stream(m, 1, 0);
	PUT(m, 0, PARK, LOOP_1);
	for (uint64_t i = 1; i <= 100; i++)
		turn(m, 10 * i * MS, (10 * i + 1) * MS);
	PUT(m, 1500 * MS, UNPARK, 1);
	PUT(m, 1500 * MS, POLL_BEGIN, KIND_A, 7);
}

static void what_is_stuck_is_so_until_the_process_is_killed(void **state)
{
	struct explained x;

	(void)state;
	get_stuck(&x.m);
	end_process(&x.m, TACHO_END_KILLED, 9, 0, T0 + 4000 * MS);
	explain(&x);
	assert_true(says(found(x.e, "hang", 0), "has not come back for 2.50 s"));
	assert_string_equal(x.e->verdict.category, "hang");
	assert_int_equal(x.e->processes[0].last_ns, T0 + 4000 * MS);
	assert_int_equal(found(x.e, "end", 0)->severity, TACHO__SEVERITY_INFO);
	assert_true(shows(found(x.e, "end", 0), "was in kind a, for 2.50 s"));
	end(&x);
	/* It came back, and exited. */
	get_stuck(&x.m);
	end_process(&x.m, TACHO_END_EXITED, 0, 0, T0 + 4000 * MS);
	explain(&x);
	assert_null(found(x.e, "hang", 0));
	assert_null(found(x.e, "end", 0));
	end(&x);
}

static void a_signal_of_a_fault_is_a_crash_where_a_callback_was_open(void **state)
{
	static const struct {
		uint64_t signal, flags;
		const char *rule;
		enum tacho__severity severity;
	} cases[] = {
		{11, 0, "crash", TACHO__SEVERITY_CRITICAL},
		{6, TACHO_END_CORE, "crash", TACHO__SEVERITY_CRITICAL},
		{9, TACHO_END_NO_MEMORY, "out-of-memory", TACHO__SEVERITY_CRITICAL},
		{9, 0, "end", TACHO__SEVERITY_INFO},
		{31, 0, "end", TACHO__SEVERITY_INFO},
	};
	static const uint64_t ordinary[] = {1, 2, 13, 15};
	struct explained x;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		get_stuck(&x.m);
		end_process(&x.m, TACHO_END_KILLED, cases[i].signal, cases[i].flags,
			    T0 + 1501 * MS);
		explain(&x);
		assert_true(says(found(x.e, cases[i].rule, 0), "while in kind a"));
		assert_int_equal(found(x.e, cases[i].rule, 0)->severity, cases[i].severity);
		assert_int_equal(strcmp(x.e->verdict.category, "none") == 0,
				 cases[i].severity == TACHO__SEVERITY_INFO);
		end(&x);
	}
	for (size_t i = 0; i < sizeof(ordinary) / sizeof(ordinary[0]); i++) {
		get_stuck(&x.m);
		end_process(&x.m, TACHO_END_KILLED, ordinary[i], 0, T0 + 1501 * MS);
		explain(&x);
		assert_null(found(x.e, "end", 0));
		assert_null(found(x.e, "crash", 0));
		end(&x);
	}
}

/* A crash 500 ms after the begin of a process that something else killed so many ms later. */
static int survives(uint64_t ms)
{
	struct tacho_box_crash crash = {.state = TACHO_CRASH_STACK_DONE,
					.tid = 1001,
					.signal = 11,
					.ticks = T0 + 500 * MS,
					.thread_name = "main"};
	struct explained x;
	int is;

	begin(&x.m, TACHO_STATE_RECORDING);
	tb_array(&x.m.t, TACHO_BLOCK_CRASHES, &crash, sizeof(crash), 1);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 1; i <= 50; i++)
		turn(&x.m, 10 * i * MS, (10 * i + 1) * MS);
	end_process(&x.m, TACHO_END_KILLED, 9, 0, T0 + (500 + ms) * MS);
	explain(&x);
	is = says(found(x.e, "crash", 0), "survived");
	end(&x);
	return is;
}

static void who_records_on_after_a_crash_survived_it(void **state)
{
	(void)state;
	assert_true(survives(1030));
	assert_false(survives(970));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_causes_on_one_loop_are_two_findings),
		cmocka_unit_test(what_took_most_of_a_long_turn_is_named_not_what_came_last),
		cmocka_unit_test(what_is_too_small_for_a_finding_is_listed_with_the_reason),
		cmocka_unit_test(many_waits_in_one_turn_are_summed_up),
		cmocka_unit_test(a_descriptor_that_is_often_ready_for_nothing_is_no_flood),
		cmocka_unit_test(a_descriptor_that_takes_the_time_of_its_loop_is_a_flood),
		cmocka_unit_test(what_a_program_wakes_its_loop_with_is_no_flood),
		cmocka_unit_test(wakes_that_were_late_at_one_time_are_no_latency),
		cmocka_unit_test(wakes_that_are_late_again_and_again_are_latency),
		cmocka_unit_test(loops_that_idle_are_said_to_be_fine),
		cmocka_unit_test(a_few_records_of_a_busy_loop_tell_nothing),
		cmocka_unit_test(what_a_thread_does_after_its_loop_keeps_no_loop),
		cmocka_unit_test(threads_that_all_leave_their_loops_keep_none),
		cmocka_unit_test(a_loop_that_gets_its_cpu_late_is_told_from_one_that_idles),
		cmocka_unit_test(a_busy_loop_that_gets_its_cpu_late_is_told_as_well),
		cmocka_unit_test(a_lock_whose_holder_does_not_run_is_not_the_cause),
		cmocka_unit_test(what_is_being_served_waits_for_a_cpu_as_well),
		cmocka_unit_test(an_imbalance_names_the_loop_and_its_thread),
		cmocka_unit_test(peers_that_serve_nothing_do_not_explain_a_loop_that_is_full),
		cmocka_unit_test(what_is_stuck_is_so_until_the_process_is_killed),
		cmocka_unit_test(a_signal_of_a_fault_is_a_crash_where_a_callback_was_open),
		cmocka_unit_test(who_records_on_after_a_crash_survived_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
