/* Random programs as several processes: what is found does not depend on how many there are of a kind, nor on
   whether two loops are in one process or in two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain_help.h"
#include "folder_help.h"

#define PROCESSES 8u
#define WINDOW (2000 * MS)
#define ROUNDS 24u
#define LOCK 0x77

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

/* A thread of its own loop that serves several clients: now and then it sleeps in one function or waits for
   a lock in another, and others are ready meanwhile. */
static void put_thread(struct trace *m, uint32_t thread, uint32_t loop, uint64_t seed)
{
	uint64_t at = 5 * MS;

	random_state = seed * 0x9e3779b97f4a7c15ull + 1;
	trace_stream(m, thread, 0);
	PUT(m, 0, PARK, loop);
	while (at < WINDOW - 100 * MS) {
		uint64_t ns = (3 + draw(60)) * MS, what = draw(3);

		PUT(m, at, UNPARK, 3);
		if (what == 1) {
			PUT(m, at + 1000 + ns, CALL, NAME, 0, ns, UINT64_MAX, CODE + 0x1000);
		} else if (what == 2) {
			PUT(m, at + 1000, LOCK_WAIT, PLACE, LOCK);
			PUT(m, at + 1000 + ns, LOCK_WAITED, 1, LOCK);
		}
		at += 2000 + (what ? ns : MS / 2);
		PUT(m, at, PARK, loop);
		at += (5 + draw(80)) * MS;
	}
	PUT(m, WINDOW, UNPARK, 0);
}

struct reported {
	struct trace traces[PROCESSES];
	struct tacho_reader *reader;
	struct tacho__explanation *e;
};

static void save(struct trace *m, const char *path)
{
	FILE *f = fopen(path, "wb");

	trace_close(m);
	tb_end(&m->t, 1);
	assert_non_null(f);
	assert_int_equal(fwrite(m->t.data, 1, m->t.size, f), m->t.size);
	assert_int_equal(fclose(f), 0);
}

/* What is found in these processes, each of which has threads of two seeds, or of one. */
static struct reported *report(const uint64_t (*seeds)[2], uint32_t count)
{
	struct reported *r = calloc(1, sizeof(*r));
	char names[PROCESSES][16], message[256];
	const char *paths[PROCESSES];
	int error;

	assert_non_null(r);
	assert_int_equal(folder_enter("split"), 0);
	for (uint32_t i = 0; i < count; i++) {
		begin_process(&r->traces[i], 2, 100 + i);
		put_thread(&r->traces[i], 1, LOOP_1, seeds[i][0]);
		if (seeds[i][1])
			put_thread(&r->traces[i], 2, OTHER, seeds[i][1]);
		snprintf(names[i], sizeof(names[i]), "%u.tacho", i);
		save(&r->traces[i], names[i]);
		paths[i] = names[i];
	}
	error = tacho_read_open_all(&r->reader, paths, count, NULL, message, sizeof(message));
	if (error)
		fail_msg("%s", message);
	r->e = tacho__explain(r->reader, NULL, &error);
	assert_non_null(r->e);
	for (uint32_t i = 0; i < r->e->count; i++)
		print_message("%s %s: %s\n", tacho__severity_name(r->e->findings[i].severity),
			      tacho__rules[r->e->findings[i].rule].id, r->e->findings[i].summary);
	assert_int_equal(folder_leave(NULL), 0);
	return r;
}

static void forget(struct reported *r)
{
	tacho__explanation_free(r->e);
	tacho_read_close(r->reader);
	for (uint32_t i = 0; i < PROCESSES; i++)
		tb_free(&r->traces[i].t);
	free(r);
}

/* The alarm of the same cause. */
static const struct tacho__finding *same(const struct reported *r, const struct tacho__finding *f)
{
	for (uint32_t i = 0; i < r->e->count; i++) {
		const struct tacho__finding *g = &r->e->findings[i];

		if (g->rule == f->rule && g->where_count == f->where_count &&
		    (!f->where_count || g->where[0].offset == f->where[0].offset))
			return g;
	}
	return NULL;
}

static int is_near(double a, double b)
{
	return a > b ? a - b <= 1 : b - a <= 1;
}

/* All alarms of one are in the other, `times` as large, and in `times` as many processes. */
static void compare(const struct reported *a, const struct reported *b, uint32_t times,
		    uint32_t processes)
{
	uint32_t alarms = 0;

	for (uint32_t i = 0; i < a->e->count; i++) {
		const struct tacho__finding *f = &a->e->findings[i], *g = same(b, f);

		if (f->severity < TACHO__SEVERITY_WARNING)
			continue;
		alarms++;
		assert_non_null(g);
		assert_true(g->severity >= f->severity);
		assert_true(is_near(g->cost_ns, times * f->cost_ns));
		assert_true(is_near(g->waiting_ns, times * f->waiting_ns));
		assert_int_equal(g->measure.count, times * f->measure.count);
		assert_int_equal(g->measure.longest_ns, f->measure.longest_ns);
		assert_int_equal(g->spread.processes, processes * f->spread.processes);
	}
	assert_true(alarms >= 2);
}

static void duplicating_processes_multiplies_the_numbers(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed += 2) {
		const uint64_t twice[4][2] = {{seed}, {seed + 1}, {seed}, {seed + 1}};
		struct reported *a = report(twice, 2), *b = report(twice, 4);

		compare(a, b, 2, 2);
		assert_int_equal(a->e->count, b->e->count);
		forget(a);
		forget(b);
	}
}

static void splitting_a_process_changes_no_sum(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed += 2) {
		const uint64_t one[1][2] = {{seed, seed + 1}}, two[2][2] = {{seed}, {seed + 1}};
		struct reported *a = report(one, 1), *b = report(two, 2);

		compare(a, b, 1, 2);
		forget(a);
		forget(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(duplicating_processes_multiplies_the_numbers),
		cmocka_unit_test(splitting_a_process_changes_no_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
