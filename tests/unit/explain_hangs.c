/* What is said of a callback that does not come back: what it is in, where, and what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/explain.h"
#include "model_help.h"

#define LOCK 0x50ull
#define CODE 0x4711ull

enum inside { NOTHING, IN_CALL, IN_CALL_BEFORE, IN_LOCK, IN_LOCK_AND_CALL, RUNS };

struct hung {
	struct trace m;
	struct tacho_reader *reader;
	struct tacho__explanation *e;
};

/* A hundred turns, then one that begins a callback 2 s before the end. */
static const struct tacho__finding *hang(struct hung *h, enum inside in, const char *rule)
{
	struct trace *m = &h->m;
	int error;

	trace_begin(m);
	trace_stream(m, 1, 0);
	PUT(m, 0, PARK, LOOP_1);
	for (uint64_t i = 1; i < 100; i++) {
		PUT(m, i * MS, UNPARK, 1);
		PUT(m, i * MS + 1000, PARK, LOOP_1);
	}
	PUT(m, 100 * MS, UNPARK, 1);
	if (in == IN_CALL_BEFORE)
		PUT(m, 101 * MS, CALL, NAME, CODE, MS / 2, 5, 0);
	PUT(m, 102 * MS, POLL_BEGIN, KIND_A, 7);
	if (in == IN_LOCK || in == IN_LOCK_AND_CALL)
		PUT(m, 103 * MS, LOCK_WAIT, PLACE, LOCK);
	if (in == IN_CALL || in == IN_LOCK_AND_CALL)
		PUT(m, 104 * MS, CALL_OPEN, NAME, 0, T0 + 104 * MS, 5, CODE);
	for (uint64_t i = 1; in == RUNS && i < 200; i++)
		PUT(m, (102 + 10 * i) * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, 0x1000, 0x2000, 0x3000);
	trace_stream(m, 2, 0);
	PUT(m, 2102 * MS, WAKE, 0, 9);
	h->reader = trace_reader(m);
	h->e = tacho__explain(h->reader, NULL, &error);
	assert_non_null(h->e);
	for (uint32_t i = 0; i < h->e->count; i++) {
		print_message("%s: %s\n", tacho__rules[h->e->findings[i].rule].id,
			      h->e->findings[i].summary);
		if (strcmp(tacho__rules[h->e->findings[i].rule].id, rule) == 0)
			return &h->e->findings[i];
	}
	fail();
	return NULL;
}

static void hang_end(struct hung *h)
{
	tacho__explanation_free(h->e);
	tacho_read_close(h->reader);
	tb_free(&h->m.t);
}

static void a_call_that_does_not_return_is_named(void **state)
{
	const struct tacho__finding *f;
	struct hung h;

	(void)state;
	f = hang(&h, IN_CALL, "hang");
	assert_non_null(strstr(f->summary, "kind a has not come back for 2.00 s"));
	assert_non_null(strstr(f->summary, "it is blocked in read, called in "));
	assert_non_null(strstr(f->advice, "time-out, or make the descriptor non-blocking"));
	assert_int_equal(f->where[0].address, CODE);
	hang_end(&h);
}

/* One that has returned explains nothing. */
static void a_call_before_it_is_not_named(void **state)
{
	const struct tacho__finding *f;
	struct hung h;

	(void)state;
	f = hang(&h, IN_CALL_BEFORE, "hang");
	assert_non_null(strstr(f->summary, "it is blocked in kind a"));
	hang_end(&h);
	f = hang(&h, NOTHING, "hang");
	assert_non_null(strstr(f->summary, "it is blocked in kind a"));
	hang_end(&h);
}

static void a_lock_comes_before_the_call_that_waits_for_it(void **state)
{
	const struct tacho__finding *f;
	struct hung h;

	(void)state;
	f = hang(&h, IN_LOCK, "hang");
	assert_non_null(strstr(f->summary, "it waits for a lock in here"));
	hang_end(&h);
	f = hang(&h, IN_LOCK_AND_CALL, "hang");
	assert_non_null(strstr(f->summary, "it waits for a lock in here"));
	hang_end(&h);
}

static void what_runs_does_not_yield(void **state)
{
	const struct tacho__finding *f;
	struct hung h;

	(void)state;
	f = hang(&h, RUNS, "never-yields");
	assert_non_null(strstr(f->summary, "it still runs in "));
	assert_non_null(strstr(f->advice, "Let it yield"));
	hang_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_does_not_return_is_named),
		cmocka_unit_test(a_call_before_it_is_not_named),
		cmocka_unit_test(a_lock_comes_before_the_call_that_waits_for_it),
		cmocka_unit_test(what_runs_does_not_yield),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
