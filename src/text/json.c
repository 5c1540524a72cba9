/*
 * A small JSON writer.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "text/json.h"
#include "tacho_read.h"
#include "text/text.h"

#define EXACT_MAX ((1ull << 53) - 1) /* above, doubles leave out integers */

void json_begin(struct json *j, FILE *out, bool pretty)
{
	memset(j, 0, sizeof(*j));
	j->out = out;
	j->pretty = pretty;
}

static void new_line(struct json *j)
{
	if (!j->pretty)
		return;
	fputc('\n', j->out);
	for (unsigned i = 0; i < j->depth; i++)
		fputs("  ", j->out);
}

/* What has to stand before a value or a key. */
static void separate(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (j->filled[j->depth])
		fputc(',', j->out);
	if (j->depth > 0)
		new_line(j);
	j->filled[j->depth] = true;
}

void json_end_line(struct json *j)
{
	fputc('\n', j->out);
	j->filled[0] = false;
}

static void open_level(struct json *j, char bracket)
{
	separate(j);
	fputc(bracket, j->out);
	if (j->depth < JSON_DEPTH)
		j->depth++;
	j->filled[j->depth] = false;
}

static void close_level(struct json *j, char bracket)
{
	bool filled = j->filled[j->depth];

	if (j->depth > 0)
		j->depth--;
	if (filled)
		new_line(j);
	fputc(bracket, j->out);
}

void json_object(struct json *j)
{
	open_level(j, '{');
}

void json_object_end(struct json *j)
{
	close_level(j, '}');
}

void json_array(struct json *j)
{
	open_level(j, '[');
}

void json_array_end(struct json *j)
{
	close_level(j, ']');
}

static void put_quoted(FILE *out, const char *text, size_t size)
{
	size_t at = 0;

	fputc('"', out);
	while (at < size) {
		int32_t code;
		size_t length = tacho__character(text + at, size - at, &code);

		if (code < 0)
			fprintf(out, "\\\\x%02x", (unsigned char)text[at]);
		else if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (char)code);
		else if (code == '\n')
			fputs("\\n", out);
		else if (code == '\t')
			fputs("\\t", out);
		else if (tacho__is_hostile(code))
			fprintf(out, "\\u%04x", (unsigned)code);
		else
			fwrite(text + at, 1, length, out);
		at += length;
	}
	fputc('"', out);
}

void json_key(struct json *j, const char *key)
{
	separate(j);
	put_quoted(j->out, key, strlen(key));
	fputs(j->pretty ? ": " : ":", j->out);
	j->after_key = true;
}

void json_null(struct json *j)
{
	separate(j);
	fputs("null", j->out);
}

void json_bool(struct json *j, bool value)
{
	separate(j);
	fputs(value ? "true" : "false", j->out);
}

void json_u64(struct json *j, uint64_t value)
{
	separate(j);
	fprintf(j->out, value <= EXACT_MAX ? "%" PRIu64 : "\"%" PRIu64 "\"", value);
}

void json_i64(struct json *j, int64_t value)
{
	uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	separate(j);
	fprintf(j->out, magnitude <= EXACT_MAX ? "%" PRId64 : "\"%" PRId64 "\"", value);
}

void json_f64(struct json *j, double value)
{
	separate(j);
	if (isnan(value))
		fputs("\"NaN\"", j->out);
	else if (isinf(value))
		fputs(value < 0 ? "\"-Infinity\"" : "\"Infinity\"", j->out);
	else
		fprintf(j->out, "%.17g", value);
}

void json_address(struct json *j, uint64_t value)
{
	separate(j);
	fprintf(j->out, "\"0x%" PRIx64 "\"", value);
}

void json_string_n(struct json *j, const char *text, size_t size)
{
	separate(j);
	put_quoted(j->out, text, size);
}

void json_string(struct json *j, const char *text)
{
	json_string_n(j, text, strlen(text));
}

void json_field_value(struct json *j, const struct tacho_field_value *v)
{
	switch (v->type) {
	case TACHO_FIELD_U64:
		json_u64(j, v->number.u64);
		break;
	case TACHO_FIELD_I64:
		json_i64(j, v->number.i64);
		break;
	case TACHO_FIELD_F64:
		json_f64(j, v->number.f64);
		break;
	case TACHO_FIELD_BOOL:
		json_bool(j, v->number.u64 != 0);
		break;
	case TACHO_FIELD_STRING:
		json_string_n(j, v->text, v->text_size);
		break;
	default:
		json_null(j);
		break;
	}
}

void json_put_u64(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

void json_put_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}

void json_put_string(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

void json_put_known(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	if (text && text[0])
		json_string(j, text);
	else
		json_null(j);
}

void json_put_address(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_address(j, value);
}

void json_put_address_if(struct json *j, const char *key, bool known, uint64_t value)
{
	json_key(j, key);
	if (known)
		json_address(j, value);
	else
		json_null(j);
}

void json_put_f64(struct json *j, const char *key, double value)
{
	json_key(j, key);
	json_f64(j, value);
}

void json_put_u64_if(struct json *j, const char *key, bool known, uint64_t value)
{
	json_key(j, key);
	if (known)
		json_u64(j, value);
	else
		json_null(j);
}

void json_put_f64_if(struct json *j, const char *key, bool known, double value)
{
	json_key(j, key);
	if (known)
		json_f64(j, value);
	else
		json_null(j);
}

void json_put_not_zero(struct json *j, const char *key, uint64_t value)
{
	json_put_u64_if(j, key, value != 0, value);
}

void json_put_array(struct json *j, const char *key)
{
	json_key(j, key);
	json_array(j);
}

void json_put_object(struct json *j, const char *key)
{
	json_key(j, key);
	json_object(j);
}

void json_put_time(struct json *j, const char *key, uint64_t real_ns)
{
	char text[TEXT_SMALL];

	text_utc(text, real_ns);
	json_put_known(j, key, text[0] == '-' ? "" : text);
}
