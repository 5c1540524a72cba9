/* Files of the page as they go out: packed to who takes that, plain to all others. */
#ifndef TACHO_SERVE_ASSET_H
#define TACHO_SERVE_ASSET_H

#include <stdbool.h>

#include "serve/site.h"

/* The file as it was before it was packed, by malloc(3); NULL: no memory. */
char *tacho__asset_unpack(const struct tacho__asset *a, size_t *size);

/* What the values of Accept-Encoding say of gzip, one header after the other. */
struct tacho__encodings {
	int gzip, other; /* 1: taken, 0: not said, -1: refused; other: by an asterisk */
};
void tacho__encodings_take(struct tacho__encodings *e, const char *value);
bool tacho__encodings_gzip(const struct tacho__encodings *e);

#endif
