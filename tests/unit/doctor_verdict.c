/* What tacho doctor says in the end, for each combination of what its checks found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "doctor/doctor.h"

void __wrap_tacho__doctor_machine(struct tacho__checks *c);
void __wrap_tacho__doctor_program(struct tacho__checks *c, const char *name);
void __wrap_tacho__doctor_self(struct tacho__checks *c, struct tacho__self *self);

static enum tacho__check_state machine, program, self;

void __wrap_tacho__doctor_machine(struct tacho__checks *c)
{
	tacho__check_add(c, "first", TACHO__CHECK_OK);
	tacho__check_add(c, "machine", machine);
}

void __wrap_tacho__doctor_program(struct tacho__checks *c, const char *name)
{
	assert_string_equal(name, "server");
	tacho__check_add(c, "program", program);
}

void __wrap_tacho__doctor_self(struct tacho__checks *c, struct tacho__self *ran)
{
	(void)ran;
	tacho__check_add(c, "self", self);
}

static void is(enum tacho__verdict verdict, unsigned warnings, const char *summary)
{
	struct tacho__doctor d;

	assert_int_equal(tacho__doctor(&d, "server"), 0);
	assert_int_equal(d.verdict, verdict);
	assert_int_equal(d.warnings, warnings);
	assert_string_equal(d.summary, summary);
	tacho__doctor_free(&d);
}

static void one_that_cannot_is_enough(void **state)
{
	static const char none[] = "Recording does not work here.";

	(void)state;
	machine = TACHO__CHECK_CANNOT;
	program = self = TACHO__CHECK_OK;
	is(TACHO__VERDICT_CANNOT, 0, none);
	machine = TACHO__CHECK_OK;
	self = TACHO__CHECK_CANNOT;
	is(TACHO__VERDICT_CANNOT, 0, none);
	machine = program = TACHO__CHECK_CANNOT;
	is(TACHO__VERDICT_CANNOT, 0, none);
	machine = self = TACHO__CHECK_OK;
	is(TACHO__VERDICT_CANNOT, 0, "Recording works here, but not for server.");
}

static void what_could_be_better_is_counted(void **state)
{
	(void)state;
	machine = program = self = TACHO__CHECK_OK;
	is(TACHO__VERDICT_OK, 0,
	   "Recording works here, also for server, with everything that tacho can record.");
	machine = TACHO__CHECK_UNKNOWN;
	is(TACHO__VERDICT_OK, 0,
	   "Recording works here, also for server, with everything that tacho can record.");
	machine = TACHO__CHECK_WARNING;
	is(TACHO__VERDICT_DEGRADED, 1,
	   "Recording works here, also for server; one thing could be better.");
	program = TACHO__CHECK_WARNING;
	is(TACHO__VERDICT_DEGRADED, 2,
	   "Recording works here, also for server; some things could be better.");
	self = TACHO__CHECK_WARNING;
	is(TACHO__VERDICT_DEGRADED, 3,
	   "Recording works here, also for server; some things could be better.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_cannot_is_enough),
		cmocka_unit_test(what_could_be_better_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
