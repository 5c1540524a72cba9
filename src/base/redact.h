/*
 * Command lines without the credentials that people put there.
 *
 * A value is replaced by *** when its name says that it is a credential (--db-password=x, API_KEY=x,
 * "Authorization: Bearer x", {"token": "x"}, ?key=x), when it stands before @ in an address
 * (scheme://user:x@host), or when it has the form of a token that is known (ghp_..., AKIA...). Names
 * are compared word by word, so that --tokenizer, --keyring and --password-file are none. In doubt a
 * value is replaced: that costs less than a secret in a file.
 *
 * Runs inside the recorded process: no allocation, no locale, time that the size bounds.
 */
#ifndef TACHO_BASE_REDACT_H
#define TACHO_BASE_REDACT_H

#include <stddef.h>

#define TACHO__REDACTED "***"

/*
 * Copies the arguments of a process as /proc has them, with a zero byte after each, and replaces
 * credentials. `cut`: there are more of them than `size`, so that the last one may be a part. How many
 * bytes were written, at most `room`; the rest is left out.
 */
size_t tacho__redact(char *to, size_t room, const char *from, size_t size, int cut);

/* The same as one line that ends with a zero byte, with spaces between the arguments; as they are if
   `keep`. `room` is at least 1. */
void tacho__command_line(char *line, size_t room, const char *arguments, size_t size, int cut,
			 int keep);

#endif
