/* What is said of loops that others take the CPU of, and of the code that serves one descriptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "judgement_help.h"

#define TURN 5u /* ms from one to the next */

/*
 * A loop with turns of 1 ms. Before each it waits for 4 ms, and was ready to run for so many of these. `ready`
 * is a descriptor of four.
 */
static void contended(struct explained *x, uint64_t ready_ms, uint64_t turns)
{
	draw(x);
	PUT(&x->m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < turns; i++) {
		uint64_t at = (TURN * i + 4) * MS;

		again(&x->m, i);
		PUT(&x->m, at, UNPARK, 1);
		PUT(&x->m, at, READY, 1, i < 3 ? 5 + i : 4);
		PUT(&x->m, at, SCHED, 1, ready_ms * MS, 0);
		PUT(&x->m, at + MS, PARK, LOOP_1);
	}
	explain(x);
}

static void a_busy_loop_that_gets_little_of_a_cpu_is_full(void **state)
{
	const struct tacho__finding *f;
	struct explained x;

	(void)state;
	contended(&x, 4, 400);
	f = found(x.e, "loop-saturated", 0);
	/* Or what fills it is told. */
	assert_non_null(found(x.e, "kernel-scheduling-delay", 0));
	assert_true(says(f, "busy 100 % of the time that it has a CPU"));
	assert_true(shows(f, "others had its CPU"));
	end(&x);
}

static void a_loop_that_waits_for_a_cpu_and_rests_is_not_full(void **state)
{
	struct explained x;
	int is = 0;

	(void)state;
	contended(&x, 3, 400);
	assert_non_null(found(x.e, "kernel-scheduling-delay", 0));
	assert_null(found(x.e, "loop-saturated", 0));
	for (uint32_t i = 0; i < x.e->considered_count; i++)
		is |= x.e->considered[i].rule == TACHO__RULE_LOOP_SATURATED;
	assert_true(is);
	end(&x);
}

/* In all of its time it would have been served 5 times as often. */
static void how_often_is_of_the_time_that_a_full_loop_had(void **state)
{
	struct explained x;

	(void)state;
	contended(&x, 4, 210);
	assert_non_null(found(x.e, "fd-flood", 0));
	end(&x);
	contended(&x, 4, 190);
	assert_null(found(x.e, "fd-flood", 0));
	end(&x);
	/* It is not served more often by one that rests. */
	contended(&x, 3, 400);
	assert_null(found(x.e, "fd-flood", 0));
	end(&x);
}

/* -------------------------------------------------- who dispatches to unknown handlers */

/* A sample in a turn: the function, what called it, and the loop. */
static void sample(struct explained *x, uint64_t ns, uint64_t at, uint64_t caller)
{
	PUT(&x->m, ns, SAMPLE_FRAMES, 0, 0, MS, CODE + at, CODE + caller, CODE + 0x9000);
}

/*
 * One descriptor has most turns to itself; its handler at 0x5000 calls two functions in turn. The others come
 * together, and what is done for them takes more samples.
 */
static void the_code_that_serves_one_descriptor_is_told(void **state)
{
	struct explained x;
	const struct tacho__finding *f;

	(void)state;
	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 1500; i++) {
		uint64_t at = i * MS, others = i % 10 == 9;

		again(&x.m, i);
		PUT(&x.m, at + 1000, UNPARK, others ? 4 : 1);
		PUT(&x.m, at + 1000, READY, 1, 4);
		for (uint64_t fd = 5; others && fd < 8; fd++)
			PUT(&x.m, at + 1000, READY, 1, fd);
		if (others)
			for (uint64_t k = 1; k < 9; k++)
				sample(&x, at + k * MS / 10, 0x3000, 0x6000);
		else if (i % 5 == 0)
			sample(&x, at + MS / 2, i % 2 ? 0x1000 : 0x2000, 0x5000);
		PUT(&x.m, at + MS, PARK, LOOP_1);
		/* Asking is not serving. */
		if (!others)
			sample(&x, at + MS + 500, 0x8000, 0x8800);
	}
	/* What it does in one long turn is not what it does most of the time. */
	PUT(&x.m, 1500 * MS + 1000, UNPARK, 1);
	PUT(&x.m, 1500 * MS + 1000, READY, 1, 4);
	for (uint64_t k = 0; k < 400; k++)
		sample(&x, 1500 * MS + 2000 + k * MS / 10, 0x4000, 0x7000);
	PUT(&x.m, 1541 * MS, PARK, LOOP_1);
	explain(&x);
	f = found(x.e, "fd-flood", 0);
	assert_non_null(f);
	assert_int_equal(f->where[0].address - CODE, 0x5000);
	end(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_busy_loop_that_gets_little_of_a_cpu_is_full),
		cmocka_unit_test(a_loop_that_waits_for_a_cpu_and_rests_is_not_full),
		cmocka_unit_test(how_often_is_of_the_time_that_a_full_loop_had),
		cmocka_unit_test(the_code_that_serves_one_descriptor_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
