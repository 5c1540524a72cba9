/* More boxes are listened to than one thread can wait for. */
#include <dirent.h>
#include <linux/futex.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/listener.h"

#define COUNT 300u /* three threads: one waits for 127 */
#define THREADS 3u

static struct tacho__heard heard[COUNT];
static uint32_t *futexes;
static int file = -1, poke = -1;

static unsigned threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static int make_file(void **state)
{
	(void)state;
	file = memfd_create("boxes", MFD_CLOEXEC);
	poke = eventfd(0, EFD_CLOEXEC);
	if (file < 0 || poke < 0 || ftruncate(file, COUNT * sizeof(*futexes)))
		return 1;
	futexes = mmap(NULL, COUNT * sizeof(*futexes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	return futexes == MAP_FAILED;
}

static void add_all(struct tacho__listener *l)
{
	for (unsigned i = 0; i < COUNT; i++) {
		heard[i] = (struct tacho__heard){.fd = file,
						 .at = (off_t)(i * sizeof(*futexes)),
						 .futex = &futexes[i],
						 .poke = poke};
		assert_int_equal(tacho__listener_add(l, &heard[i]), 0);
	}
}

static void threads_are_few_and_end(void **state)
{
	struct tacho__listener *l = tacho__listener_new();
	unsigned before = threads();

	(void)state;
	assert_non_null(l);
	add_all(l);
	assert_int_equal(threads(), before + THREADS);
	/* Whose place is free is taken again. */
	for (unsigned i = 0; i < COUNT; i++)
		tacho__listener_remove(&heard[i]);
	add_all(l);
	assert_int_equal(threads(), before + THREADS);
	for (unsigned i = 0; i < COUNT; i++)
		tacho__listener_remove(&heard[i]);
	tacho__listener_free(l);
	/* The kernel lists a thread for a moment after it was joined. */
	for (int i = 0; i < 10000 && threads() > before; i++)
		usleep(1000);
	assert_int_equal(threads(), before);
}

/* As a recorder does that has something to say. */
static void call(unsigned i)
{
	__atomic_add_fetch(&futexes[i], 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &futexes[i], FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void whoever_calls_is_heard(void **state)
{
	static const unsigned callers[] = {0, 126, 127, 254, COUNT - 1};
	struct tacho__listener *l = tacho__listener_new();

	(void)state;
	assert_non_null(l);
	add_all(l);
	for (unsigned i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
		struct pollfd p = {.fd = poke, .events = POLLIN};
		uint64_t times;

		call(callers[i]);
		assert_int_equal(poll(&p, 1, 60000), 1);
		assert_int_equal(read(poke, &times, sizeof(times)), sizeof(times));
		for (unsigned k = 0; k < COUNT; k++)
			assert_int_equal(heard[k].poked, k == callers[i]);
		heard[callers[i]].poked = false;
	}
	for (unsigned i = 0; i < COUNT; i++)
		tacho__listener_remove(&heard[i]);
	tacho__listener_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_few_and_end),
		cmocka_unit_test(whoever_calls_is_heard),
	};

	return cmocka_run_group_tests(tests, make_file, NULL);
}
