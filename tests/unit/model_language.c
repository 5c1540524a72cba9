/* Interpreters: which waits are for their lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model/language.h"

/* A stack, innermost first, as FILE:FUNCTION with spaces between. */
static int is_for_lock(const char *stack)
{
	struct tacho__place places[8];
	char text[256], modules[8][64], *at = text;
	uint32_t n = 0;

	memset(places, 0, sizeof(places));
	snprintf(text, sizeof(text), "%s", stack);
	for (char *frame = strsep(&at, " "); frame; frame = strsep(&at, " "), n++) {
		char *file = strsep(&frame, ":");

		snprintf(modules[n], sizeof(modules[n]), "/usr/bin/%s", file);
		places[n].module = modules[n];
		places[n].function = frame;
	}
	return tacho__places_of_interpreter_lock(places, n);
}

static void waits_for_pythons_lock_are_known(void **state)
{
	(void)state;
	assert_true(
		is_for_lock("libtacho-preload.so.0:pthread_cond_timedwait python3:PyCOND_TIMEDWAIT "
			    "python3:take_gil python3:PyEval_RestoreThread"));
	/* Stripped. */
	assert_true(is_for_lock("libc.so.6:pthread_cond_timedwait python3: python3: "
				"python3:PyEval_RestoreThread python3:"));
	assert_true(is_for_lock(
		"libc.so.6:pthread_cond_timedwait python3: python3:_PyEval_EvalFrameDefault"));
	assert_true(is_for_lock(
		"libc.so.6:pthread_cond_timedwait python3: python3:PyGILState_Ensure x.so:f"));
}

static void other_waits_of_python_are_none(void **state)
{
	(void)state;
	assert_false(is_for_lock("libc.so.6:sem_wait python3:PyThread_acquire_lock_timed python3: "
				 "python3:_PyEval_EvalFrameDefault"));
	/* A module's, with and without names. */
	assert_false(is_for_lock(
		"libc.so.6:pthread_cond_wait x.so:f python3: python3:_PyEval_EvalFrameDefault"));
	assert_false(is_for_lock(
		"libc.so.6:pthread_cond_wait x.so: python3: python3:_PyEval_EvalFrameDefault"));
	assert_false(is_for_lock(
		"libc.so.6:pthread_cond_wait python3:semlock python3:_PyEval_EvalFrameDefault"));
	assert_false(is_for_lock("libc.so.6:pthread_cond_wait server:wait_for_work server:worker"));
	assert_false(is_for_lock("libc.so.6:pthread_cond_wait"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_pythons_lock_are_known),
		cmocka_unit_test(other_waits_of_python_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
