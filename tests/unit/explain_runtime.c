/* What tasks wait for: a lock is its first holder's, however often it is handed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "explain/explain.h"
#include "format/record.h"
#include "import/made.h"

#define MS 1000000ull
#define BEGIN_NS (5000 * MS)

enum { HOLDER = 1, FIRST = 2, WAITERS = 4 };

struct made {
	struct tacho__made *m;
	uint32_t thread, loop, holds, serves, mutex, sleep, unlock, hand_on, sleeps;
	uint64_t ns;
};

static void begin(struct made *t)
{
	uint64_t frame;

	t->m = tacho__made_new();
	tacho__made_about(t->m, &(struct tacho__made_about){.imported = "a Go 1.26 test"});
	t->ns = BEGIN_NS;
	t->thread = tacho__made_thread(t->m, 1, "P0");
	t->loop = tacho__made_define(t->m, &(struct tacho_definition){.def_class = TACHO_DEF_LOOP,
								      .name = "P0",
								      .value = 1,
								      .level = TACHO_LEVEL_API});
	t->holds = tacho__made_name(t->m, TACHO_DEF_KIND, "holds");
	t->serves = tacho__made_name(t->m, TACHO_DEF_KIND, "serves");
	t->mutex = tacho__made_name(t->m, TACHO_DEF_TEXT, "sync.Mutex");
	t->sleep = tacho__made_name(t->m, TACHO_DEF_TEXT, "sleep");
	frame = tacho__made_frame(t->m, "main.unlock", "main.go", 30);
	t->unlock = tacho__made_stack(t->m, &frame, 1, 0);
	frame = tacho__made_frame(t->m, "main.next", "main.go", 40);
	t->hand_on = tacho__made_stack(t->m, &frame, 1, 0);
	frame = tacho__made_frame(t->m, "main.slow", "main.go", 20);
	t->sleeps = tacho__made_stack(t->m, &frame, 1, 0);
	tacho__made_put(t->m, t->thread, t->ns, TACHO_REC_LOOP, t->loop, NULL, 0);
}

static void put(struct made *t, unsigned type, uint32_t arg, uint64_t task)
{
	tacho__made_put(t->m, t->thread, t->ns += 1000, type, arg, &task,
			TACHO_REC_CLASS(type) == 1);
}

static void poll_until_wait(struct made *t, uint32_t kind, uint64_t task, uint32_t what,
			    uint32_t stack)
{
	const uint64_t words[] = {(uint64_t)stack << 16, task, 0};

	put(t, TACHO_REC_POLL_BEGIN, kind, task);
	tacho__made_put(t->m, t->thread, t->ns += 1000, TACHO_REC_TASK_WAITS, what, words, 3);
	put(t, TACHO_REC_POLL_END, TACHO_PENDING, 0);
}

static void wake(struct made *t, uint64_t task, uint32_t stack)
{
	put(t, TACHO_REC_WAKE, 0, task);
	tacho__made_put(t->m, t->thread, t->ns, TACHO_REC_STACK, stack, &task, 1);
}

/* A task sleeps with the lock; others come, wait for it, and hand it on to each other. */
static void hold(struct made *t)
{
	poll_until_wait(t, t->holds, HOLDER, t->sleep, t->sleeps);
	for (uint64_t i = 0; i < WAITERS; i++)
		poll_until_wait(t, t->serves, FIRST + i, t->mutex, t->hand_on);
	put(t, TACHO_REC_PARK, t->loop, 0);
	t->ns += 200 * MS;
	put(t, TACHO_REC_UNPARK, 1, 0);
	put(t, TACHO_REC_WAKE, 0, HOLDER);
	put(t, TACHO_REC_POLL_BEGIN, t->holds, HOLDER);
	wake(t, FIRST, t->unlock);
	put(t, TACHO_REC_POLL_END, TACHO_PENDING, 0);
	for (uint64_t i = 0; i < WAITERS; i++) {
		put(t, TACHO_REC_POLL_BEGIN, t->serves, FIRST + i);
		if (i + 1 < WAITERS)
			wake(t, FIRST + i + 1, t->hand_on);
		put(t, TACHO_REC_POLL_END, TACHO_PENDING, 0);
	}
}

static struct tacho__explanation *explain(struct made *t, struct tacho_reader **reader)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho__explanation *e;
	int fd = memfd_create("made", MFD_CLOEXEC), error;
	char path[64], message[256];

	assert_int_equal(tacho__made_write(t->m, fd, NULL, message, sizeof(message)), 0);
	tacho__made_free(t->m);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(tacho_read_open(reader, path, &options, NULL, 0), 0);
	close(fd);
	e = tacho__explain(*reader, NULL, &error);
	assert_non_null(e);
	return e;
}

static const struct tacho__finding *found(const struct tacho__explanation *e, const char *rule)
{
	for (uint32_t i = 0; i < e->count; i++)
		if (strcmp(tacho__rules[e->findings[i].rule].id, rule) == 0)
			return &e->findings[i];
	return NULL;
}

static void a_lock_that_is_handed_on_is_its_holders(void **state)
{
	struct tacho__explanation *e;
	const struct tacho__finding *f;
	struct tacho_reader *reader;
	struct made t;

	(void)state;
	begin(&t);
	for (int i = 0; i < 4; i++)
		hold(&t);
	e = explain(&t, &reader);
	f = found(e, "lock-contention");
	assert_non_null(f);
	assert_int_equal(f->task, HOLDER);
	assert_int_equal(f->severity, TACHO__SEVERITY_CRITICAL);
	assert_string_equal(f->where[0].function, "main.slow");
	assert_int_equal(f->where[0].line, 20);
	assert_string_equal(f->where[1].function, "main.unlock");
	assert_non_null(strstr(f->summary, "16 times"));
	assert_string_equal(e->verdict.category, "lock");
	tacho__explanation_free(e);
	tacho_read_close(reader);
}

/* Tasks wait for a lock, with nothing but a stack that says so, until another kind lets go of it. */
static void hold_unnamed(struct made *t, uint32_t kind, uint32_t stack, uint64_t ns)
{
	for (uint64_t i = 0; i < WAITERS; i++)
		poll_until_wait(t, t->serves, FIRST + i, 0, stack);
	put(t, TACHO_REC_PARK, t->loop, 0);
	t->ns += ns;
	put(t, TACHO_REC_UNPARK, 1, 0);
	put(t, TACHO_REC_WAKE, 0, HOLDER);
	put(t, TACHO_REC_POLL_BEGIN, kind, HOLDER);
	for (uint64_t i = 0; i < WAITERS; i++)
		put(t, TACHO_REC_WAKE, 0, FIRST + i);
	put(t, TACHO_REC_POLL_END, TACHO_PENDING, 0);
	for (uint64_t i = 0; i < WAITERS; i++) {
		put(t, TACHO_REC_POLL_BEGIN, t->serves, FIRST + i);
		put(t, TACHO_REC_POLL_END, TACHO_PENDING, 0);
	}
}

static void who_holds_a_lock_of_tasks_for_most_of_the_time_is_named(void **state)
{
	static const uint64_t others_ms[] = {20, 20, 30}, mostly_ms[] = {50, 50, 10};
	struct tacho__explanation *e;
	const struct tacho__finding *f;
	struct tacho_reader *reader;
	uint64_t frames[2];
	uint32_t stack, mostly, others;
	struct made t;

	(void)state;
	begin(&t);
	frames[0] = tacho__made_frame(t.m, "tokio::sync::mutex::Mutex<T>::lock", "mutex.rs", 1);
	frames[1] = tacho__made_frame(t.m, "shop::reserve", "shop.rs", 7);
	stack = tacho__made_stack(t.m, frames, 2, 0);
	others = tacho__made_place(t.m, TACHO_DEF_KIND, "shop::others", "shop.rs", 50);
	mostly = tacho__made_place(t.m, TACHO_DEF_KIND, "shop::mostly", "shop.rs", 60);
	for (unsigned i = 0; i < 3; i++) {
		hold_unnamed(&t, mostly, stack, mostly_ms[i] * MS);
		hold_unnamed(&t, others, stack, others_ms[i] * MS);
	}
	e = explain(&t, &reader);
	f = found(e, "lock-contention");
	assert_non_null(f);
	assert_string_equal(f->where[0].function, "shop::mostly");
	assert_string_equal(f->where[1].function, "shop::reserve");
	assert_non_null(strstr(f->summary, "in shop::reserve for a lock that shop::mostly"));
	tacho__explanation_free(e);
	tacho_read_close(reader);
}

/* Whether threads without a loop that wait again and again in this function are a finding. */
static int wait_in(const char *function)
{
	static const uint64_t lock = 0x77;
	struct tacho__explanation *e;
	struct tacho_reader *reader;
	uint32_t place, thread;
	struct made t;
	int is_found;

	begin(&t);
	place = tacho__made_place(t.m, TACHO_DEF_PLACE, function, "pool.c", 3);
	for (uint32_t i = 0; i < 3; i++) {
		thread = tacho__made_thread(t.m, 10 + i, "worker");
		for (uint64_t n = 0; n < 20; n++) {
			uint64_t at = BEGIN_NS + n * 50 * MS;

			tacho__made_put(t.m, thread, at, TACHO_REC_LOCK_WAIT, place, &lock, 1);
			tacho__made_put(t.m, thread, at + 40 * MS, TACHO_REC_LOCK_WAITED, 0, &lock,
					1);
		}
	}
	e = explain(&t, &reader);
	is_found = found(e, "lock-contention") != NULL;
	tacho__explanation_free(e);
	tacho_read_close(reader);
	return is_found;
}

static void threads_of_a_pool_idle_in_functions_with_such_names(void **state)
{
	(void)state;
	assert_true(wait_in("cache_lock"));
	assert_false(wait_in("uv_cond_wait"));
	assert_false(wait_in("pthread_cond_timedwait@GLIBC_2.3.2"));
	assert_false(wait_in("uv_sem_wait"));
}

static void span(struct made *t, const char *name, uint64_t id, uint64_t ns)
{
	uint32_t span = tacho__made_name(t->m, TACHO_DEF_SPAN, name);
	const uint64_t words[] = {id, 0};

	tacho__made_put(t->m, t->thread, t->ns, TACHO_REC_ASYNC_BEGIN, span, words, 2);
	t->ns += ns;
	tacho__made_put(t->m, t->thread, t->ns, TACHO_REC_ASYNC_END, span, words, 1);
}

/* A program that is busy for a second, a part of which the runtime takes. */
static struct tacho__explanation *busy(struct tacho_reader **reader, const char *name, uint64_t ns,
				       uint64_t once_ns)
{
	struct made t;

	begin(&t);
	for (uint64_t i = 0; i < 100; i++) {
		put(&t, TACHO_REC_UNPARK, 1, 0);
		put(&t, TACHO_REC_WAKE, 0, FIRST);
		put(&t, TACHO_REC_POLL_BEGIN, t.serves, FIRST);
		span(&t, name, i + 1, i == 50 ? ns + once_ns : ns);
		t.ns += 5 * MS;
		put(&t, TACHO_REC_POLL_END, TACHO_PENDING, 0);
		put(&t, TACHO_REC_PARK, t.loop, 0);
		t.ns += 5 * MS;
	}
	return explain(&t, reader);
}

static void check_busy(const char *name, uint64_t ns, uint64_t once_ns, const char *rule, int is)
{
	struct tacho_reader *reader;
	struct tacho__explanation *e = busy(&reader, name, ns, once_ns);

	assert_int_equal(found(e, rule) != NULL, is);
	tacho__explanation_free(e);
	tacho_read_close(reader);
}

static void what_the_collector_takes_is_told(void **state)
{
	(void)state;
	check_busy("GC assist", MS, 0, "gc-assist", 1);
	check_busy("GC assist", MS / 10, 0, "gc-assist", 0);
	check_busy("stop the world: GC mark termination", MS, 0, "stop-the-world", 1);
	check_busy("stop the world: GC mark termination", MS / 20, 0, "stop-the-world", 0);
	/* One that is long may be the kernel's doing; that Go begins to trace is not the program's. */
	check_busy("stop the world: GC mark termination", MS / 20, 60 * MS, "stop-the-world", 0);
	check_busy("stop the world: start trace", MS, 0, "stop-the-world", 0);
	check_busy("stop the world: stop trace", MS, 0, "stop-the-world", 0);
}

/* Stops of so many ms, three in ten seconds. */
static int stops(uint64_t ms)
{
	struct tacho__explanation *e;
	struct tacho_reader *reader;
	struct made t;
	int is;

	begin(&t);
	for (uint64_t i = 0; i < 100; i++) {
		put(&t, TACHO_REC_UNPARK, 1, 0);
		if (i % 33 == 1)
			span(&t, "stop the world: GC mark termination", i + 1, ms * MS);
		put(&t, TACHO_REC_PARK, t.loop, 0);
		t.ns += 100 * MS;
	}
	e = explain(&t, &reader);
	is = found(e, "stop-the-world") != NULL;
	tacho__explanation_free(e);
	tacho_read_close(reader);
	return is;
}

static void a_few_stops_that_are_felt_are_told(void **state)
{
	(void)state;
	assert_true(stops(52));
	assert_false(stops(48));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_that_is_handed_on_is_its_holders),
		cmocka_unit_test(threads_of_a_pool_idle_in_functions_with_such_names),
		cmocka_unit_test(who_holds_a_lock_of_tasks_for_most_of_the_time_is_named),
		cmocka_unit_test(what_the_collector_takes_is_told),
		cmocka_unit_test(a_few_stops_that_are_felt_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
