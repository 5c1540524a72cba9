/*
 * Putting text together and taking it apart, without stdio, locale or malloc:
 * inside the recorded process and in signal handlers.
 */
#ifndef TACHO_BASE_TEXT_H
#define TACHO_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* A text being built in a buffer of fixed size; always zero-terminated. What does not
   fit is left out and `cut` says so. */
struct tacho__text {
	char *at;
	size_t room; /* with the terminator */
	size_t size;
	int cut;
};

void tacho__text_init(struct tacho__text *t, char *buf, size_t room);
void tacho__text_put(struct tacho__text *t, const char *s);
void tacho__text_put_n(struct tacho__text *t, const char *s, size_t n);
void tacho__text_put_u64(struct tacho__text *t, uint64_t v);
/* "Permission denied (EACCES)" for errors that people meet here, else "error 123". */
void tacho__text_put_errno(struct tacho__text *t, int error);

/*
 * Whole-string parsers; 0 or -EINVAL. Bytes: a number with an optional K, M or G
 * (powers of 1024; also KiB, MiB, GiB). Durations: a number, decimals allowed, with
 * ns, us, ms, s, m or h, which must be given unless the number is 0.
 */
int tacho__parse_u64(const char *s, uint64_t *out);
int tacho__parse_bytes(const char *s, uint64_t *out);
int tacho__parse_duration(const char *s, uint64_t *out_ns);
/* Nanoseconds of the unit that `s` names, 0 if it names none. */
uint64_t tacho__duration_unit(const char *s);

/* The arguments of a process as /proc has them, `size` bytes and room for one more, become one line
   with spaces between them. */
void tacho__join_arguments(char *line, size_t size);

#endif
