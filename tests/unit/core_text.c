/* Numbers, sizes and durations as people write them; text in a buffer that may be too small. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

struct known {
	const char *text;
	uint64_t value;
};

static void check_good(int (*parse)(const char *, uint64_t *), const struct known *k, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = 77;

		if (parse(k[i].text, &v) || v != k[i].value)
			fail_msg("'%s' became %llu", k[i].text, (unsigned long long)v);
	}
}

static void check_bad(int (*parse)(const char *, uint64_t *), const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = 77;

		if (parse(texts[i], &v) != -EINVAL || v != 77)
			fail_msg("'%s' was taken for %llu", texts[i], (unsigned long long)v);
	}
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void test_u64(void **state)
{
	static const struct known good[] = {
		{"0", 0}, {"007", 7}, {"18446744073709551615", UINT64_MAX}};
	static const char *const bad[] = {"",
					  " 1",
					  "1 ",
					  "+1",
					  "-1",
					  "0x1",
					  "1.0",
					  "18446744073709551616",
					  "99999999999999999999"};

	(void)state;
	check_good(tacho__parse_u64, good, COUNT(good));
	check_bad(tacho__parse_u64, bad, COUNT(bad));
}

static void test_bytes(void **state)
{
	static const struct known good[] = {
		{"0", 0},	  {"4096", 4096},
		{"1K", 1024},	  {"1k", 1024},
		{"2M", 2u << 20}, {"3G", 3ull << 30},
		{"1KiB", 1024},	  {"17179869183G", 17179869183ull << 30}};
	static const char *const bad[] = {"",	 "K",	"1KB", "1T",  "1 K", "1.5K",
					  "-1K", "1Ki", "1iB", "1KK", "1@",  "17179869184G"};

	(void)state;
	check_good(tacho__parse_bytes, good, COUNT(good));
	check_bad(tacho__parse_bytes, bad, COUNT(bad));
}

static void test_durations(void **state)
{
	static const struct known good[] = {{"0", 0},
					    {"0.0", 0},
					    {"0s", 0},
					    {"1ns", 1},
					    {"50us", 50000},
					    {"1.5ms", 1500000},
					    {".5s", 500000000},
					    {"0.000000001s", 1},
					    {"2m", 120000000000ull},
					    {"1h", 3600000000000ull},
					    {"0.5ns", 0}};
	static const char *const bad[] = {
		"",   "10",   "s",	"1.s",		 ".s", "-1s",	       "1 s", "1sec",
		"1S", "1e3s", "1.5.5s", "1.0000000001s", "1d", "99999999999h", "1ss"};

	(void)state;
	check_good(tacho__parse_duration, good, COUNT(good));
	check_bad(tacho__parse_duration, bad, COUNT(bad));
}

static void test_text(void **state)
{
	char buf[9];
	struct tacho__text t;

	(void)state;
	memset(buf, 'x', sizeof(buf));
	tacho__text_init(&t, buf, 8);
	tacho__text_put(&t, "abc");
	tacho__text_put_u64(&t, 4096);
	assert_string_equal(buf, "abc4096");
	assert_false(t.cut);
	tacho__text_put_n(&t, "z", 1);
	assert_string_equal(buf, "abc4096");
	assert_true(t.cut);
	assert_int_equal(buf[8], 'x');
	tacho__text_init(&t, buf, 0);
	tacho__text_put(&t, "abc");
	assert_string_equal(buf, "abc4096");
	tacho__text_init(&t, buf, sizeof(buf));
	tacho__text_put_u64(&t, UINT64_MAX);
	assert_string_equal(buf, "18446744");
}

static void test_errno_text(void **state)
{
	char buf[80];
	struct tacho__text t;

	(void)state;
	tacho__text_init(&t, buf, sizeof(buf));
	tacho__text_put_errno(&t, ENOSPC);
	assert_non_null(strstr(buf, "ENOSPC"));
	tacho__text_init(&t, buf, sizeof(buf));
	tacho__text_put_errno(&t, 4711);
	assert_string_equal(buf, "error 4711");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),	   cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_durations),  cmocka_unit_test(test_text),
		cmocka_unit_test(test_errno_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
