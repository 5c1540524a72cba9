/* Processes that could not be recorded: how many of them are remembered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/absent.h"
#include "format/box.h"

#define MOST 3u
#define GONE 4194300u /* numbers that no process has */

static void refuse(struct tacho__absent *a, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct tacho_box_super note = {
			.pid = GONE + i, .comm = "server", .reason = "no room"};

		tacho__absent_refused(a, &note);
	}
}

static void the_last_ones_are_kept(void **state)
{
	struct tacho__absent a = {.most = MOST};

	(void)state;
	refuse(&a, MOST);
	assert_int_equal(a.count, MOST);
	assert_int_equal(a.list[0].pid, GONE);
	tacho__absent_free(&a);
	a = (struct tacho__absent){.most = MOST};
	refuse(&a, MOST + 2);
	assert_int_equal(a.count, MOST);
	for (uint32_t i = 0; i < MOST; i++)
		assert_int_equal(a.list[i].pid, GONE + 2 + i);
	assert_string_equal(a.list[0].comm, "server");
	assert_string_equal(a.list[0].said, "no room");
	assert_int_equal(a.list[0].reason, TACHO_ABSENT_REFUSED);
	tacho__absent_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_ones_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
