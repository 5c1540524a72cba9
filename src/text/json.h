/*
 * A small JSON writer.
 *
 * Integers are exact: those whose magnitude is below 2^53 are JSON numbers, all
 * others strings of decimal digits, because most parsers read numbers as
 * doubles. Control characters and those that change the direction of text are
 * written as \uNNNN; a byte that is not UTF-8 becomes the four characters \xNN.
 * So the output is valid UTF-8 and safe on a terminal whatever the input was.
 */
#ifndef TACHO_TEXT_JSON_H
#define TACHO_TEXT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH 16u

struct json {
	FILE *out;
	bool pretty; /* on several lines */
	bool after_key;
	unsigned depth;
	bool filled[JSON_DEPTH + 1]; /* something stands already at this depth */
};

void json_begin(struct json *j, FILE *out, bool pretty);
void json_end_line(struct json *j); /* after a whole value: newline, ready for the next */

void json_object(struct json *j);
void json_object_end(struct json *j);
void json_array(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);

void json_null(struct json *j);
void json_bool(struct json *j, bool value);
void json_u64(struct json *j, uint64_t value);
void json_i64(struct json *j, int64_t value);
void json_f64(struct json *j, double value);	   /* NaN and infinities: as strings */
void json_address(struct json *j, uint64_t value); /* "0x..." */
void json_string(struct json *j, const char *text);
void json_string_n(struct json *j, const char *text, size_t size);
/* Of an event of the program's own. */
struct tacho_field_value;
void json_field_value(struct json *j, const struct tacho_field_value *v);

/* key and value; of text, "" means not known and is written as null. */
void json_put_u64(struct json *j, const char *key, uint64_t value);
void json_put_bool(struct json *j, const char *key, bool value);
void json_put_string(struct json *j, const char *key, const char *text);
void json_put_known(struct json *j, const char *key, const char *text);
void json_put_address(struct json *j, const char *key, uint64_t value);
void json_put_f64(struct json *j, const char *key, double value);
void json_put_u64_if(struct json *j, const char *key, bool known, uint64_t value); /* or null */
void json_put_address_if(struct json *j, const char *key, bool known, uint64_t value);
void json_put_f64_if(struct json *j, const char *key, bool known, double value);
void json_put_not_zero(struct json *j, const char *key, uint64_t value); /* 0: null */
void json_put_array(struct json *j, const char *key);			 /* begins it */
void json_put_object(struct json *j, const char *key);
void json_put_time(struct json *j, const char *key, uint64_t real_ns); /* UTC, 0: null */

#endif
