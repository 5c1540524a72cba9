/* What the JSON writer escapes, and numbers at the limit of what doubles hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/json.h"

static char *made;
static size_t made_size;

static struct json begin(bool pretty)
{
	struct json j;

	json_begin(&j, open_memstream(&made, &made_size), pretty);
	assert_non_null(j.out);
	return j;
}

static void is(struct json *j, const char *expected)
{
	fclose(j->out);
	assert_string_equal(made, expected);
	free(made);
}

#define STRING(text, expected)                             \
	do {                                               \
		struct json j = begin(false);              \
                                                           \
		json_string_n(&j, text, sizeof(text) - 1); \
		is(&j, expected);                          \
	} while (0)

static void what_would_end_or_hide_a_string_is_escaped(void **state)
{
	(void)state;
	STRING("a\"b\\c", "\"a\\\"b\\\\c\"");
	STRING("a\tb\nc", "\"a\\tb\\nc\"");
	STRING("\0\1\b\f\r\x1f ", "\"\\u0000\\u0001\\u0008\\u000c\\u000d\\u001f \"");
	/* DEL and the controls behind it, up to the first that is none. */
	STRING("~\x7f", "\"~\\u007f\"");
	STRING("\xc2\x80\xc2\x9f\xc2\xa0", "\"\\u0080\\u009f\xc2\xa0\"");
	/* Marks that turn the direction of text, and separators of lines. */
	STRING("\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6", "\"\\u202e\\u2028\\u2066\"");
}

static void text_stays_and_what_is_none_is_told_by_byte(void **state)
{
	(void)state;
	STRING("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf",
	       "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf\"");
	/* A lone byte, a cut character, one that is too long, a surrogate, and beyond the last. */
	STRING("\xff", "\"\\\\xff\"");
	STRING("\xe2\x82", "\"\\\\xe2\\\\x82\"");
	STRING("\xc1\x81", "\"\\\\xc1\\\\x81\"");
	STRING("\xe0\x80\xaf", "\"\\\\xe0\\\\x80\\\\xaf\"");
	STRING("\xed\xa0\x80", "\"\\\\xed\\\\xa0\\\\x80\"");
	STRING("\xf4\x90\x80\x80", "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"");
}

static void numbers_that_doubles_leave_out_are_strings(void **state)
{
	struct json j = begin(false);

	(void)state;
	json_array(&j);
	json_u64(&j, (1ull << 53) - 1);
	json_u64(&j, 1ull << 53);
	json_u64(&j, UINT64_MAX);
	json_i64(&j, -1);
	json_i64(&j, 1 - (1ll << 53));
	json_i64(&j, -(1ll << 53));
	json_i64(&j, INT64_MIN);
	json_f64(&j, 0.5);
	json_f64(&j, -1.0 / 0.0);
	json_array_end(&j);
	is(&j, "[9007199254740991,\"9007199254740992\",\"18446744073709551615\",-1,"
	       "-9007199254740991,\"-9007199254740992\",\"-9223372036854775808\",0.5,"
	       "\"-Infinity\"]");
}

static void absent_is_null(void **state)
{
	struct json j = begin(false);

	(void)state;
	json_object(&j);
	json_put_not_zero(&j, "a", 0);
	json_put_not_zero(&j, "b", 1);
	json_put_known(&j, "c", "");
	json_put_known(&j, "d", "x");
	json_put_string(&j, "e", "");
	json_put_address_if(&j, "f", false, 1);
	json_put_address_if(&j, "g", true, 0);
	json_put_bool(&j, "h\t", false);
	json_object_end(&j);
	is(&j, "{\"a\":null,\"b\":1,\"c\":null,\"d\":\"x\",\"e\":\"\",\"f\":null,\"g\":\"0x0\","
	       "\"h\\t\":false}");
}

static void pretty_has_a_line_for_each(void **state)
{
	struct json j = begin(true);

	(void)state;
	json_object(&j);
	json_put_u64(&j, "a", 1);
	json_put_array(&j, "b");
	json_array_end(&j);
	json_put_array(&j, "c");
	json_null(&j);
	json_array_end(&j);
	json_object_end(&j);
	json_end_line(&j);
	json_bool(&j, true);
	is(&j, "{\n  \"a\": 1,\n  \"b\": [],\n  \"c\": [\n    null\n  ]\n}\ntrue");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_would_end_or_hide_a_string_is_escaped),
		cmocka_unit_test(text_stays_and_what_is_none_is_told_by_byte),
		cmocka_unit_test(numbers_that_doubles_leave_out_are_strings),
		cmocka_unit_test(absent_is_null),
		cmocka_unit_test(pretty_has_a_line_for_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
