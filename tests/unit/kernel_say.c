/* What is said when the kernel does not tell: each reason has its own remedy. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/kernel_say.h"

static const struct tacho__kernel_options switches = {.switches = 1};
static const struct tacho__kernel_options samples = {.sample_hz = 99};
static const struct tacho__kernel_options both = {.sample_hz = 99, .switches = 1};

static const char *said(const struct tacho__kernel_options *o, enum tacho__perf_step step, int err)
{
	static char message[400];

	memset(message, 0, sizeof(message));
	tacho__kernel_say(o, 4711, step, err, message, sizeof(message));
	return message;
}

#define SAYS(text, words) assert_non_null(strstr(text, words))

static void each_reason_has_its_remedy(void **state)
{
	(void)state;
	SAYS(said(&both, TACHO__PERF_OPEN, -ESRCH), "no such process");
	SAYS(said(&both, TACHO__PERF_OPEN, -ESRCH), "4711");
	SAYS(said(&both, TACHO__PERF_OPEN, -EMFILE), "ulimit -n");
	SAYS(said(&both, TACHO__PERF_RING, -ENFILE), "ulimit -n");
	SAYS(said(&both, TACHO__PERF_RING, -EPERM), "ulimit -l");
	SAYS(said(&both, TACHO__PERF_RING, -ENOMEM), "ulimit -l");
	SAYS(said(&both, TACHO__PERF_OPEN, -ENOSYS), "has no perf_event_open");
	SAYS(said(&both, TACHO__PERF_OPEN, -EPERM), "is refused");
	/* Not for want of locked memory, nor by a filter. */
	assert_string_equal(said(&both, TACHO__PERF_OPEN, -ENOMEM),
			    "cannot get context switches and samples with frames of the kernel "
			    "from the kernel: Cannot allocate memory");
	assert_string_equal(said(&switches, TACHO__PERF_RING, -EACCES),
			    "cannot get context switches from the kernel: Permission denied");
}

static void what_is_missing_is_named(void **state)
{
	(void)state;
	SAYS(said(&switches, TACHO__PERF_OPEN, -EINVAL), "cannot get context switches from");
	SAYS(said(&samples, TACHO__PERF_OPEN, -EINVAL), "cannot get samples with");
	SAYS(said(&both, TACHO__PERF_OPEN, -EINVAL), "cannot get context switches and samples");
	tacho__kernel_say(&both, 1, TACHO__PERF_OPEN, -EINVAL, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_reason_has_its_remedy),
		cmocka_unit_test(what_is_missing_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
