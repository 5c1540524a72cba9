/* Sizes, times and lines for people, where one form gives way to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "text/text.h"

#define S UINT64_C(1000000000)

static void durations_change_their_unit(void **state)
{
	char out[TEXT_SMALL];

	(void)state;
	assert_string_equal(text_duration(out, 999), "999 ns");
	assert_string_equal(text_duration(out, 1000), "1.000 us");
	assert_string_equal(text_duration(out, 999999), "999.999 us");
	assert_string_equal(text_duration(out, 1000000), "1.000 ms");
	assert_string_equal(text_duration(out, S - 1), "999.999 ms");
	assert_string_equal(text_duration(out, S), "1.000 s");
	assert_string_equal(text_duration(out, 120 * S - 1), "119.999 s");
	assert_string_equal(text_duration(out, 120 * S), "2 m 0 s");
	assert_string_equal(text_duration(out, 7200 * S - 1), "119 m 59 s");
	assert_string_equal(text_duration(out, 7200 * S), "2 h 0 m");
}

static void sizes_change_their_unit(void **state)
{
	char out[TEXT_SMALL];

	(void)state;
	assert_string_equal(text_bytes(out, 1023), "1023 B");
	assert_string_equal(text_bytes(out, 1024), "1.0 KiB");
	/* 1023.94 and 1023.96 KiB. */
	assert_string_equal(text_bytes(out, 1048514), "1023.9 KiB");
	assert_string_equal(text_bytes(out, 1048535), "1.0 MiB");
	assert_string_equal(text_bytes(out, UINT64_MAX), "16.0 EiB");
	assert_string_equal(text_id(out, UINT32_MAX), "4294967295");
	assert_string_equal(text_id(out, 1ull << 32), "0x100000000");
	assert_string_equal(text_seconds(out, 5), "0.000000005");
}

static void broken(size_t columns, const char *expected)
{
	char *made;
	size_t size;
	FILE *out = open_memstream(&made, &size);

	assert_non_null(out);
	text_put_broken(out, "one two \x1b\xc3\xa9", 0, 2, columns);
	fclose(out);
	assert_string_equal(made, expected);
	free(made);
}

/* "one two" has 7 columns, what is behind it 5: four for a byte that is escaped, one for a letter. */
static void lines_are_broken_where_they_no_longer_fit(void **state)
{
	(void)state;
	broken(13, "one two \\x1b\xc3\xa9");
	broken(12, "one two\n  \\x1b\xc3\xa9");
	broken(7, "one two\n  \\x1b\xc3\xa9");
	broken(6, "one\n  two\n  \\x1b\xc3\xa9");
	broken(0, "one two \\x1b\xc3\xa9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_change_their_unit),
		cmocka_unit_test(sizes_change_their_unit),
		cmocka_unit_test(lines_are_broken_where_they_no_longer_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
