/* The numbers that `tacho diff` decides by, against values that were calculated elsewhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "explain/diff_test.h"

#define COUNT(a) (uint32_t)(sizeof(a) / sizeof((a)[0]))

static void is_near(double value, double wanted)
{
	assert_true(fabs(value - wanted) <= 1e-6 * fabs(wanted) + 1e-12);
}

static void quantiles_lie_between_values(void **state)
{
	double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};

	(void)state;
	is_near(tacho__quantile(odd, 3, 0.5), 3);
	is_near(tacho__quantile(even, 4, 0.5), 2.5);
	is_near(tacho__quantile(even, 4, 0.25), 1.75);
	is_near(tacho__quantile(even, 4, 1), 4);
	is_near(tacho__quantile(one, 1, 0.25), 7);
	is_near(tacho__quantile(NULL, 0, 0.5), 0);
}

/* Calculated apart, by the formula with corrections for ties and for continuity. */
static void mann_whitney_is_that_of_the_books(void **state)
{
	static const double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
	static const double tied_a[] = {1, 2, 2, 3}, tied_b[] = {2, 3, 3, 4};
	static const double same[] = {9, 9, 9, 9};

	(void)state;
	is_near(tacho__mann_whitney(a, 4, b, 4), 0.03038282197657751);
	is_near(tacho__mann_whitney(b, 4, a, 4), 0.03038282197657751);
	is_near(tacho__mann_whitney(tied_a, 4, tied_b, 4), 0.17203370892182296);
	is_near(tacho__mann_whitney(a, 4, a, 4), 1);
	is_near(tacho__mann_whitney(same, 4, same, 4), 1);
	is_near(tacho__mann_whitney(a, 4, b, 0), 1);
	is_near(tacho__mann_whitney_least(4, 4), 0.03038282197657751);
	is_near(tacho__mann_whitney_least(24, 24), 3.063664233673191e-09);
	is_near(tacho__mann_whitney_least(0, 24), 1);
}

static void what_most_have_in_common_is_found(void **state)
{
	double none[] = {1.01, 0.99, 1.0, 1.2};
	double slow[] = {1.31, 1.3, 1.29, 1.56, 1.3};
	double half[] = {1.0, 1.2, 1.0, 1.2};
	double apart[] = {0.5, 1.1, 2.0};

	(void)state;
	is_near(tacho__common_factor(none, COUNT(none)), 1.0);
	is_near(tacho__common_factor(slow, COUNT(slow)), 1.3);
	/* Half of them changed: the other half is the machine. */
	is_near(tacho__common_factor(half, COUNT(half)), 1.0);
	is_near(tacho__common_factor(apart, COUNT(apart)), 1.1);
	is_near(tacho__common_factor(NULL, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_lie_between_values),
		cmocka_unit_test(mann_whitney_is_that_of_the_books),
		cmocka_unit_test(what_most_have_in_common_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
