/* Which names say that what follows is a credential (redact.h). */
#ifndef TACHO_BASE_REDACT_NAMES_H
#define TACHO_BASE_REDACT_NAMES_H

#include <stddef.h>

enum {
	TACHO__SECRET = 1,  /* its value is one */
	TACHO__KEY = 2,	    /* ... unless it is the path of a file */
	TACHO__MANY = 4,    /* ... unless it is a number: --max-tokens=4096 */
	TACHO__HEADER = 8,  /* its value has blanks */
	TACHO__SWITCH = 16, /* as an option it takes no value: --ask-password */
};

/* What a name of letters, digits, '-', '_' and '.' says: of these, 0: nothing. `queried`: it stands in
   the query of an address. */
int tacho__redact_name(const char *name, size_t size, int queried);

/* Whether a word is a token by its own form. */
int tacho__redact_is_token(const char *word, size_t size);

/* Whether a text begins with a path that is no secret: in a folder of the system, or of a file with a
   known ending. */
int tacho__redact_is_path(const char *text, size_t size);

#endif
