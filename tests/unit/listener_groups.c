/* More boxes are listened to than one thread can wait for. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_few_and_end),
	};

	return cmocka_run_group_tests(tests, make_file, NULL);
}
