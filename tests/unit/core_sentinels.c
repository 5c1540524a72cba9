/*
 * Sentinels as many threads meet them: all of them hold, all the time, while an agent sets, arms
 * and takes back. What ThreadSanitizer finds in it is the point; and that every trigger is one
 * that was armed for.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/box.h"
#include "tacho.h"

#define THREADS 4u
#define ROUNDS 200u

static struct tacho_name loop = TACHO_LOOP("loop");
static struct tacho_name kind = TACHO_KIND("kind");
static int stop;

static void *records(void *arg)
{
	uint64_t task = (uint64_t)(uintptr_t)arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		tacho_park(&loop);
		tacho_unpark(&loop, 1);
		tacho_queue_depth(&loop, 100);
		tacho_wake(task);
		tacho_wake(task + 1);
		tacho_poll_begin(&kind, task);
		tacho_poll_switch(&kind, task + 1);
		tacho_task_spawn(task, &kind, 0, NULL);
		tacho_poll_end(TACHO_DONE);
		tacho_task_end(task);
	}
	return NULL;
}

static int fd;
static uint64_t control_at;

static void put(size_t at, const void *from, size_t size)
{
	assert_int_equal(pwrite(fd, from, size, (off_t)(control_at + at)), size);
}

static struct tacho_box_control control(void)
{
	struct tacho_box_control c;

	assert_int_equal(pread(fd, &c, sizeof(c), (off_t)control_at), sizeof(c));
	return c;
}

static struct tacho_box_super super(void)
{
	struct tacho_box_super s;

	assert_int_equal(pread(fd, &s, sizeof(s), 0), sizeof(s));
	return s;
}

static uint32_t armed_in_all, config;

/* Every limit becomes `limit`, every sentinel is armed. */
static void ask(uint64_t limit)
{
	uint64_t limits[TACHO_SENTINEL_MAX] = {0};
	struct tacho_box_control c = control();

	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++) {
		limits[i] = limit;
		c.armed[i]++;
		armed_in_all++;
	}
	config++;
	put(offsetof(struct tacho_box_control, limit), limits, sizeof(limits));
	put(offsetof(struct tacho_box_control, armed), c.armed, sizeof(c.armed));
	put(offsetof(struct tacho_box_control, config), &config, sizeof(config));
}

static uint32_t fired_in_all(void)
{
	return super().trigger_count;
}

static void wait_for_more(uint32_t than)
{
	/* Programs of other tests may come before this one for long. */
	for (int i = 0; i < 120000 && fired_in_all() <= than; i++)
		usleep(1000);
	assert_true(fired_in_all() > than);
}

/* The hooks alone look at how threads are scheduled. */
static int is_seen_here(unsigned sentinel)
{
	return sentinel != TACHO_SENTINEL_SCHED;
}

static int each_was_seen(void)
{
	struct tacho_box_control c = control();

	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++)
		if (is_seen_here(i) && (!c.fired[i] || !c.suppressed[i]))
			return 0;
	return 1;
}

static void wait_for_each(void)
{
	for (int i = 0; i < 120000 && !each_was_seen(); i++)
		usleep(1000);
	assert_true(each_was_seen());
}

static void all_at_once(const char *threshold)
{
	struct tacho_status_info st = {.size = sizeof(st)};
	struct tacho_box_control c;
	pthread_t t[THREADS];

	setenv("TACHO_POLL_THRESHOLD", threshold, 1);
	stop = 0;
	armed_in_all = config = 0;
	assert_int_equal(tacho_start(NULL), 0);
	tacho_status(&st);
	fd = open(st.box, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	control_at = super().regions[TACHO_REGION_CONTROL].offset;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, records, (void *)(i * 1000 + 1)), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t before = fired_in_all();

		ask(i % 4 == 3 ? 0 : 1);
		if (i % 8 == 0) {
			wait_for_more(before);
			ask(1);
		}
	}
	ask(1);
	wait_for_each();
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	c = control();
	assert_true(fired_in_all() <= armed_in_all);
	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++)
		assert_true(is_seen_here(i) ? c.fired[i] <= c.armed[i] : !c.fired[i]);
	close(fd);
	tacho_stop();
}

static void test_at_once(void **state)
{
	(void)state;
	all_at_once("0");
}

static void test_with_threshold(void **state)
{
	(void)state;
	all_at_once("20us");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_with_threshold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
