/*
 * Text for people: escaping of foreign bytes, sizes, times.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "text/text.h"

#define NS_PER_S UINT64_C(1000000000)

void text_put_n(FILE *out, const char *text, size_t size)
{
	size_t at = 0;

	while (at < size) {
		int32_t code;
		size_t length = tacho__character(text + at, size - at, &code);

		if (!tacho__is_hostile(code)) {
			fwrite(text + at, 1, length, out);
		} else {
			for (size_t i = 0; i < length; i++)
				fprintf(out, "\\x%02x", (unsigned char)text[at + i]);
		}
		at += length;
	}
}

void text_put(FILE *out, const char *text)
{
	text_put_n(out, text, strlen(text));
}

static size_t width_of(const char *text, size_t size)
{
	size_t at = 0, width = 0;

	while (at < size) {
		int32_t code;
		size_t length = tacho__character(text + at, size - at, &code);

		width += !tacho__is_hostile(code) ? 1 : 4 * length;
		at += length;
	}
	return width;
}

size_t text_width(const char *text)
{
	return width_of(text, strlen(text));
}

void text_put_broken(FILE *out, const char *text, size_t at, size_t indent, size_t columns)
{
	while (*text) {
		size_t blanks = strspn(text, " "), size = strcspn(text + blanks, " ");
		size_t width = width_of(text + blanks, size);

		if (columns && at > indent && at + blanks + width > columns) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else {
			fprintf(out, "%*s", (int)blanks, "");
			at += blanks;
		}
		text_put_n(out, text + blanks, size);
		at += width;
		text += blanks + size;
	}
}

void text_put_wide(FILE *out, const char *text, size_t width)
{
	text_put(out, text);
	for (size_t w = text_width(text); w < width; w++)
		fputc(' ', out);
}

const char *text_bytes(char *out, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned unit = 0;

	/* 1023.95 would be shown as 1024.0 of the smaller unit. */
	while (value >= 1023.95 && unit < 6) {
		value /= 1024;
		unit++;
	}
	if (unit == 0)
		snprintf(out, TEXT_SMALL, "%" PRIu64 " B", bytes);
	else
		snprintf(out, TEXT_SMALL, "%.1f %s", value, units[unit]);
	return out;
}

const char *text_duration(char *out, uint64_t ns)
{
	uint64_t s = ns / NS_PER_S;

	if (ns < 1000)
		snprintf(out, TEXT_SMALL, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(out, TEXT_SMALL, "%" PRIu64 ".%03" PRIu64 " us", ns / 1000, ns % 1000);
	else if (ns < NS_PER_S)
		snprintf(out, TEXT_SMALL, "%" PRIu64 ".%03" PRIu64 " ms", ns / 1000000,
			 ns / 1000 % 1000);
	else if (s < 120)
		snprintf(out, TEXT_SMALL, "%" PRIu64 ".%03" PRIu64 " s", s, ns / 1000000 % 1000);
	else if (s < 7200)
		snprintf(out, TEXT_SMALL, "%" PRIu64 " m %" PRIu64 " s", s / 60, s % 60);
	else
		snprintf(out, TEXT_SMALL, "%" PRIu64 " h %" PRIu64 " m", s / 3600, s / 60 % 60);
	return out;
}

const char *text_seconds(char *out, uint64_t ns)
{
	snprintf(out, TEXT_SMALL, "%" PRIu64 ".%09" PRIu64, ns / NS_PER_S, ns % NS_PER_S);
	return out;
}

const char *text_id(char *out, uint64_t id)
{
	snprintf(out, TEXT_SMALL, id >> 32 ? "0x%" PRIx64 : "%" PRIu64, id);
	return out;
}

static const char *format_time(char *out, uint64_t real_ns, const char *format, int local)
{
	time_t seconds = (time_t)(real_ns / NS_PER_S);
	struct tm tm;

	if (real_ns == 0 || !(local ? localtime_r(&seconds, &tm) : gmtime_r(&seconds, &tm)) ||
	    strftime(out, TEXT_SMALL, format, &tm) == 0)
		snprintf(out, TEXT_SMALL, "-");
	return out;
}

const char *text_utc(char *out, uint64_t real_ns)
{
	size_t used;

	format_time(out, real_ns, "%Y-%m-%dT%H:%M:%S", 0);
	used = strlen(out);
	if (used > 1)
		snprintf(out + used, TEXT_SMALL - used, ".%09" PRIu64 "Z", real_ns % NS_PER_S);
	return out;
}

const char *text_local(char *out, uint64_t real_ns)
{
	return format_time(out, real_ns, "%Y-%m-%d %H:%M:%S", 1);
}

const char *text_stamp(char *out, uint64_t real_ns)
{
	return format_time(out, real_ns, "%Y%m%dT%H%M%SZ", 0);
}

const char *text_hex(char *out, const uint8_t *bytes, size_t size)
{
	out[0] = 0;
	for (size_t i = 0; i < size; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return out;
}
