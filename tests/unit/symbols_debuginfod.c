/*
 * Which servers are asked for debug information, how often, and how long that took. The library that
 * asks them is one of the test's own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbols/debuginfod.h"

#define MS UINT64_C(1000000)

static const uint8_t build_id[20] = {1, 2, 3};
static unsigned asked;
static unsigned takes_ms;
static int answers;
static uint64_t last_done, ends; /* what the progress said */

void *__wrap_dlopen(const char *name, int flags);
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *handle, const char *name);
void *__real_dlsym(void *handle, const char *name);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_clock_gettime(clockid_t clock, struct timespec *now);

static uint64_t clock_ns = UINT64_MAX; /* what the clock shows; UINT64_MAX: what it should */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock_ns == UINT64_MAX)
		return __real_clock_gettime(clock, now);
	*now = (struct timespec){(time_t)(clock_ns / 1000000000u), (long)(clock_ns % 1000000000u)};
	return 0;
}

static int library; /* its address is the handle */

static void *begin(void)
{
	return &library;
}

static int (*on_progress)(void *client, long a, long b);

static void set_progress(void *client, int (*function)(void *, long, long))
{
	assert_ptr_equal(client, &library);
	on_progress = function;
}

static int find(void *client, const unsigned char *id, int size, char **path)
{
	assert_ptr_equal(client, &library);
	assert_int_equal(size, sizeof(build_id));
	assert_memory_equal(id, build_id, sizeof(build_id));
	assert_null(path);
	asked++;
	assert_int_equal(on_progress(client, 7, 9), 0);
	usleep(takes_ms * 1000);
	return answers;
}

void *__wrap_dlopen(const char *name, int flags)
{
	if (!name || strcmp(name, "libdebuginfod.so.1") != 0)
		return __real_dlopen(name, flags);
	return &library;
}

void *__wrap_dlsym(void *handle, const char *name)
{
	/* Sanitizers look for functions of libc by it. */
	if (handle != &library)
		return __real_dlsym(handle, name);
	if (!strcmp(name, "debuginfod_begin"))
		return (void *)begin;
	if (!strcmp(name, "debuginfod_set_progressfn"))
		return (void *)set_progress;
	return (void *)find;
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	assert_ptr_equal(arg, &asked);
	if (done == UINT64_MAX)
		ends++;
	else
		last_done = 100 * done + total;
}

static int ask(void)
{
	return tacho__debuginfod_find(TACHO__DEBUGINFOD_DEBUG, build_id, sizeof(build_id));
}

static void without_servers_none_is_asked(void **state)
{
	char message[200] = "";

	(void)state;
	unsetenv("DEBUGINFOD_URLS");
	assert_int_equal(tacho__debuginfod_allow(NULL, NULL, message, sizeof(message)),
			 -EDESTADDRREQ);
	assert_non_null(strstr(message, "DEBUGINFOD_URLS"));
	message[0] = 0;
	setenv("DEBUGINFOD_URLS", "", 1);
	assert_int_equal(tacho__debuginfod_allow(NULL, NULL, message, sizeof(message)),
			 -EDESTADDRREQ);
	assert_non_null(strstr(message, "DEBUGINFOD_URLS"));
	assert_false(tacho__debuginfod_is_allowed());
	assert_int_equal(ask(), -EPERM);
	assert_int_equal(asked, 0);
}

/* Asks when a download has taken so long; 0: it goes on. */
static int after(uint64_t ns)
{
	clock_ns = ns;
	return on_progress(&library, 0, 0);
}

/* Whether it goes on until just before so many seconds and not beyond. In a process of its own: the
   variable counts when servers are allowed, once. */
static int is_limit(const char *text, uint64_t seconds)
{
	char message[200];
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (text)
			setenv("DEBUGINFOD_TIMEOUT", text, 1);
		else
			unsetenv("DEBUGINFOD_TIMEOUT");
		setenv("DEBUGINFOD_URLS", "http://[100::]", 1);
		clock_ns = 0;
		_exit(tacho__debuginfod_allow(NULL, NULL, message, sizeof(message)) ||
		      after(1000 * MS * seconds - 1) || !after(1000 * MS * seconds));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static void a_download_ends_when_its_time_is_over(void **state)
{
	(void)state;
	assert_true(is_limit(NULL, 10));
	assert_true(is_limit("1", 1));
	assert_true(is_limit("3600", 3600));
	/* What is no number of seconds up to an hour is none that was wanted. */
	assert_true(is_limit("3601", 10));
	assert_true(is_limit("0", 10));
	assert_true(is_limit("", 10));
	assert_true(is_limit("60s", 10));
}

static void the_time_of_all_files_is_added_up(void **state)
{
	char message[200];

	(void)state;
	setenv("DEBUGINFOD_URLS", "http://[100::]", 1);
	assert_int_equal(tacho__debuginfod_allow(progress, &asked, message, sizeof(message)), 0);
	assert_true(tacho__debuginfod_is_allowed());
	assert_int_equal(tacho__debuginfod_spent_ns(), 0);
	answers = -ENOENT;
	takes_ms = 100;
	assert_int_equal(ask(), -ENOENT);
	takes_ms = 1;
	answers = 5;
	assert_int_equal(ask(), 5);
	assert_int_equal(asked, 2);
	assert_true(tacho__debuginfod_spent_ns() >= 101 * MS);
	assert_int_equal(last_done, 709);
	assert_int_equal(ends, 2);
	assert_int_equal(tacho__debuginfod_find(TACHO__DEBUGINFOD_DEBUG, build_id, 0), -EINVAL);
}

static void nobody_is_asked_again_where_nobody_answers(void **state)
{
	(void)state;
	asked = 0;
	answers = -ECONNREFUSED;
	assert_int_equal(ask(), -ECONNREFUSED);
	assert_int_equal(ask(), -ETIMEDOUT);
	assert_int_equal(asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_servers_none_is_asked),
		cmocka_unit_test(a_download_ends_when_its_time_is_over),
		cmocka_unit_test(the_time_of_all_files_is_added_up),
		cmocka_unit_test(nobody_is_asked_again_where_nobody_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
