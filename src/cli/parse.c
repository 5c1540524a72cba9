/*
 * Values on the command line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "text/names.h"
#include "cli/parse.h"
#include "text/text.h"

void parse_point_at(const char *text, size_t at)
{
	char before[1024];
	size_t size = at < sizeof(before) - 1 ? at : sizeof(before) - 1;

	memcpy(before, text, size);
	before[size] = 0;
	fputs("  ", stderr);
	text_put(stderr, text);
	fputs("\n  ", stderr);
	for (size_t i = text_width(before); i > 0; i--)
		fputc(' ', stderr);
	fputs("^\n", stderr);
}

bool parse_complain(const char *option, const char *text, size_t at, const char *why)
{
	cli_error("%s: '%s' %s.", option, text, why);
	parse_point_at(text, at);
	return false;
}

/* Parses text + start; positions in messages count from the start of text. */
static bool read_duration(const char *option, const char *text, size_t start, uint64_t *ns)
{
	const char *number = text + start;
	size_t digits = strspn(number, "0123456789");
	size_t used = digits;

	if (!tacho__parse_duration(number, ns) && *ns <= INT64_MAX)
		return true;
	if (number[digits] == '.') {
		used += 1 + strspn(number + digits + 1, "0123456789");
		digits = used - 1;
	}
	if (digits == 0)
		return parse_complain(option, text, start,
				      "is not a duration: write a number and a unit, such as 1.5s");
	if (!number[used])
		return parse_complain(option, text, start + used,
				      "has no unit: add one of ns, us, ms, s, m, h");
	if (tacho__duration_unit(number + used) == 0)
		return parse_complain(option, text, start + used,
				      "has a unit that is none of ns, us, ms, s, m, h");
	return parse_complain(option, text, start,
			      "is not a duration: give one to nine digits after the point, and "
			      "less than 292 years");
}

bool parse_duration(const char *option, const char *text, uint64_t *ns)
{
	if (!read_duration(option, text, 0, ns))
		return false;
	if (*ns == 0)
		return parse_complain(option, text, 0, "is 0: give a longer time");
	return true;
}

bool parse_instant(const char *option, const char *text, struct parse_instant *out)
{
	out->given = true;
	out->from_end = text[0] == '-';
	return read_duration(option, text, text[0] == '-' || text[0] == '+', &out->ns);
}

bool parse_count(const char *option, const char *text, uint64_t *out)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || text[digits])
		return parse_complain(option, text, digits, "is not a whole number");
	if (tacho__parse_u64(text, out))
		return parse_complain(option, text, 0, "is too large a number");
	return true;
}

bool parse_task(const char *option, const char *text, uint64_t *task)
{
	char *end;

	errno = 0;
	*task = strtoull(text, &end, 0);
	if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && *task)
		return true;
	cli_usage("%s: '%s' is no task; give its number as 'tacho cat' shows it.", option, text);
	return false;
}

bool parse_pid(const char *text, uint32_t *pid)
{
	uint64_t value;

	if (tacho__parse_u64(text, &value) || value == 0 || value > INT32_MAX)
		return false;
	*pid = (uint32_t)value;
	return true;
}

/* Whether `word` is the name of a type or the part of it before a dash. */
static bool type_matches(const char *name, const char *word, size_t size)
{
	return strncmp(name, word, size) == 0 && (name[size] == 0 || name[size] == '-');
}

bool parse_types(const char *option, const char *text, bool *types)
{
	size_t at = 0;

	memset(types, 0, 256 * sizeof(types[0]));
	for (;;) {
		size_t size = strcspn(text + at, ",");
		bool found = false;

		for (unsigned t = 0; t < 256 && size > 0; t++) {
			const char *name = name_type(t);

			if (name && type_matches(name, text + at, size))
				types[t] = found = true;
		}
		if (!found)
			return parse_complain(option, text, at,
					      "names no type of event: see EVENTS in tacho-cat(1)");
		at += size;
		if (!text[at])
			return true;
		at++;
	}
}

uint64_t parse_instant_ns(const struct parse_instant *i, uint64_t first, uint64_t last)
{
	uint64_t length = last - first;

	if (!i->given)
		return 0;
	if (i->from_end)
		return i->ns < length ? last - i->ns : first;
	return i->ns < length ? first + i->ns : last;
}
