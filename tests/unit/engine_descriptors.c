/* How many descriptors the engine keeps free for looking around, saving windows and segments. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/engine.h"

/* The first limit at which the next descriptor, and `free` behind it, are all there are. */
static void is_crowded_at(const struct tacho__engine *e, unsigned free)
{
	struct rlimit before, limit;
	int lowest = fcntl(e->poke, F_DUPFD_CLOEXEC, 0);

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)lowest + free;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(tacho__engine_crowded(e));
	limit.rlim_cur++;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(tacho__engine_crowded(e));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* All below `count` are in use. */
static void use(int count, int *used)
{
	while ((*used = dup(STDIN_FILENO)) >= 0 && *used < count)
		;
	assert_int_equal(*used, count);
	close(*used);
}

static void release(int poke, int until)
{
	for (int fd = poke + 1; fd < until; fd++)
		close(fd);
}

static void some_stay_free_for_looking_around(void **state)
{
	/* Nobody looks into what is followed. */
	struct tacho__followed boxes[] = {
		{.follow = (void *)1}, {.done = true}, {.follow = (void *)1}};
	struct tacho__engine e = {.poke = eventfd(0, EFD_CLOEXEC), .boxes = boxes, .count = 3};
	int used;

	(void)state;
	assert_true(e.poke >= 0);
	use(128, &used);
	is_crowded_at(&e, 32);
	e.segments = (void *)1;
	is_crowded_at(&e, 32 + 2 * 3);
	e.segments = NULL;
	release(e.poke, used);
	/* A quarter, where there are few. */
	use(60, &used);
	is_crowded_at(&e, 20);
	release(e.poke, used);
	close(e.poke);
}

static void the_first_is_followed_anyway(void **state)
{
	struct tacho__followed boxes[] = {{.done = true}};
	struct tacho__engine e = {.poke = eventfd(0, EFD_CLOEXEC), .boxes = boxes, .count = 1};
	struct rlimit before, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)e.poke + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(tacho__engine_crowded(&e));
	boxes[0].follow = (void *)1;
	assert_true(tacho__engine_crowded(&e));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(e.poke);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(some_stay_free_for_looking_around),
		cmocka_unit_test(the_first_is_followed_anyway),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
