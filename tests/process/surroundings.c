/* What the program around the recorder keeps and may do: descriptors, threads, libraries. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "lib.h"

static void marks(uint32_t writer, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		mark(writer, i);
}

/* ---------------------------------------------- descriptors and threads */

static void traceless_body(void *arg)
{
	unsigned fds = count_entries("/proc/self/fd"), tasks = count_entries("/proc/self/task");
	sigset_t mask, after;

	(void)arg;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	start();
	for (uint64_t i = 0; i < 20000; i++)
		call_all(i);
	tacho_trigger("reason");
	CHECK(count_entries("/proc/self/fd") == fds, "%u descriptors instead of %u",
	      count_entries("/proc/self/fd") - 2, fds - 2);
	CHECK(count_entries("/proc/self/task") == tasks, "%u threads instead of %u",
	      count_entries("/proc/self/task") - 2, tasks - 2);
	sigprocmask(SIG_BLOCK, NULL, &after);
	CHECK(!memcmp(&mask, &after, 8), "the signal mask has changed");
	tacho_stop();
	start();
	CHECK(count_entries("/proc/self/fd") == fds, "descriptors are left by start and stop");
}

static void test_traceless(void)
{
	subject(traceless_body, NULL);
}

static void close_range_body(void *arg)
{
	(void)arg;
	start();
	marks(0, 0, 1000);
	if (syscall(SYS_close_range, 3u, ~0u, 0u) && errno != ENOSYS)
		CHECK(0, "close_range: %s", strerror(errno));
	marks(0, 1000, 200000);
	die();
}

static void test_close_range(void)
{
	subject(close_range_body, NULL);
	check_writer(tally_whole(the_box(), 200000), 0, 200000);
}

static int stop_closing;

static void *close_all(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop_closing, __ATOMIC_RELAXED))
		for (int fd = 0; fd < 1024; fd++)
			close(fd);
	return NULL;
}

static void *records(void *arg)
{
	marks((uint32_t)(uintptr_t)arg, 0, 50);
	return NULL;
}

/* Every descriptor is closed all the time, also while new threads and chunks are made. */
static void close_loop_body(void *arg)
{
	pthread_t closer, t;

	(void)arg;
	start();
	pthread_create(&closer, NULL, close_all, NULL);
	for (uintptr_t i = 1; i <= 50; i++) {
		pthread_create(&t, NULL, records, (void *)i);
		marks(0, (uint32_t)(i - 1) * 4000, (uint32_t)i * 4000);
		pthread_join(t, NULL);
	}
	__atomic_store_n(&stop_closing, 1, __ATOMIC_RELAXED);
	pthread_join(closer, NULL);
	die();
}

static void test_close_loop(void)
{
	const struct tally *t;

	subject(close_loop_body, NULL);
	t = tally_whole(the_box(), 200000 + 50 * 50);
	check_writer(t, 0, 200000);
	for (uint32_t i = 1; i <= 50; i++)
		check_writer(t, i, 50);
}

/* The program uses numbers of descriptors that it knows: the box must not be among them. */
static void reuse_body(void *arg)
{
	char file[300], zeros[4096] = "";
	int fd;

	(void)arg;
	close(0);
	close(3);
	start();
	fd = open("/dev/null", O_RDONLY);
	CHECK(fd == 0, "the lowest descriptor is %d, not the one that was closed", fd);
	snprintf(file, sizeof(file), "%s/of-the-program", box_dir());
	fd = open(file, O_RDWR | O_CREAT, 0600);
	marks(0, 0, 100);
	CHECK(write(fd, zeros, sizeof(zeros)) == sizeof(zeros), "write");
	marks(0, 100, 1000);
	die();
}

static void test_reuse(void)
{
	subject(reuse_body, NULL);
	check_writer(tally_whole(the_box(), 1000), 0, 1000);
}

/* ------------------------------------------------------------ libraries */

static const char *library(void)
{
	static char path[600];
	const char *build = getenv("TACHO_BUILD");

	snprintf(path, sizeof(path), "%s/src/core/libtacho.so", build ? build : "build");
	return access(path, R_OK) ? NULL : path;
}

static void stranger_body(void *arg)
{
	char self[500], program[600];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		_exit(1);
	self[n] = 0;
	*strrchr(self, '/') = 0;
	snprintf(program, sizeof(program), "%s/process-stranger", self);
	execl(program, program, arg, NULL);
	_exit(2);
}

static void test_dlopen(void)
{
	const struct tally *t;

	if (emulated() || !library())
		return skip("there is no libtacho.so that this machine can load (TACHO_BUILD)");
	subject(stranger_body, (void *)library());
	t = tally_whole(the_box(), 6 * 1000);
	for (uint32_t i = 0; i < 6; i++)
		check_writer(t, i, 1000);
	CHECK(!t->mixed, "threads that are older than the library share a place");
}

static const struct test tests[] = {
	{"no descriptor, thread or blocked signal is added", test_traceless},
	{"close_range over all descriptors", test_close_range},
	{"descriptors closed in a loop while threads and chunks are made", test_close_loop},
	{"descriptors get the numbers that they would have", test_reuse},
	{"libtacho.so loaded by a running program with threads, and never unloaded", test_dlopen},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
