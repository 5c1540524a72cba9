/*
 * Values on the command line. Each parser says itself what is wrong, pointing at
 * the place, and returns false; the command then ends with CLI_USAGE.
 */
#ifndef TACHO_CLI_PARSE_H
#define TACHO_CLI_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An instant in the window: after its first event, or before its last. */
struct parse_instant {
	bool given;
	bool from_end;
	uint64_t ns;
};

/* The text, and on the line below it a mark under the character at `at`. */
void parse_point_at(const char *text, size_t at);
/* "OPTION: 'TEXT' WHY." before that. Returns false. */
bool parse_complain(const char *option, const char *text, size_t at, const char *why);

/* A number with decimals and a unit: ns us ms s m h. More than nought. */
bool parse_duration(const char *option, const char *text, uint64_t *ns);
/* A duration, nought allowed; with a minus: before the end. */
bool parse_instant(const char *option, const char *text, struct parse_instant *out);
/* Its time in a window from `first` to `last`, not outside of it; 0: it was not given. */
uint64_t parse_instant_ns(const struct parse_instant *i, uint64_t first, uint64_t last);
bool parse_count(const char *option, const char *text, uint64_t *out);
/* The number of a task, as `tacho cat` shows it. */
bool parse_task(const char *option, const char *text, uint64_t *task);
/* All digits and of a size that a process id can have; says nothing. */
bool parse_pid(const char *text, uint32_t *pid);
/* "poll,wake": names of types, or what stands before their dash. types has 256 entries. */
bool parse_types(const char *option, const char *text, bool *types);

#endif
