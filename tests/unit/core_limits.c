/* What the recorder keeps of a thread, at its limit; which signals may come while it does. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/sys.h"
#include "format/underway.h"

static void a_poll_that_is_too_deep_to_be_listed_ends_alone(void **state)
{
	struct {
		struct tacho_underway now;
		struct tacho_open beyond; /* nobody may look at it */
	} s;

	(void)state;
	memset(&s, 0, sizeof(s));
	s.beyond.what = TACHO_REC_SPAN_BEGIN;
	tacho_underway_push(&s.now, TACHO_REC_POLL_BEGIN, 1, 1, 1);
	while (s.now.depth < TACHO_OPEN_MAX)
		tacho_underway_push(&s.now, TACHO_REC_SPAN_BEGIN, 2, 0, 2);
	assert_ptr_equal(tacho_underway_poll(&s.now), &s.now.open[0]);
	tacho_underway_push(&s.now, TACHO_REC_POLL_BEGIN, 3, 3, 3);
	assert_null(tacho_underway_poll(&s.now));
	tacho_underway_pop_poll(&s.now);
	assert_int_equal(s.now.depth, TACHO_OPEN_MAX);
	/* The spans that are listed end with the poll that they are in. */
	tacho_underway_pop_poll(&s.now);
	assert_int_equal(s.now.depth, 0);
	assert_int_equal(s.beyond.what, TACHO_REC_SPAN_BEGIN);
}

static volatile sig_atomic_t came;

static void on_signal(int number)
{
	came = number;
}

/* Whether it comes at once. */
static int comes(int number)
{
	came = 0;
	raise(number);
	return came == number;
}

static void faults_come_and_nothing_else(void **state)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};
	static const int others[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2,   SIGPIPE,
				     SIGALRM, SIGTERM, SIGCHLD, SIGPROF, SIGVTALRM, SIGIO};
	struct sigaction action = {.sa_handler = on_signal}, before[NSIG];
	sigset_t pending;
	uint64_t mask;

	(void)state;
	for (int i = 1; i < 32; i++)
		if (i != SIGKILL && i != SIGSTOP)
			sigaction(i, &action, &before[i]);
	mask = tacho__signals_hold();
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		assert_true(comes(faults[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(comes(others[i]));
	sigpending(&pending);
	tacho__signals_release(mask);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_true(sigismember(&pending, others[i]));
		assert_true(comes(others[i]));
	}
	for (int i = 1; i < 32; i++)
		if (i != SIGKILL && i != SIGSTOP)
			sigaction(i, &before[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poll_that_is_too_deep_to_be_listed_ends_alone),
		cmocka_unit_test(faults_come_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
