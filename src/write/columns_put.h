/* The parts that an EVENTS payload is made of: bytes, columns, and where to cut. */
#ifndef TACHO_WRITE_COLUMNS_PUT_H
#define TACHO_WRITE_COLUMNS_PUT_H

#include <stddef.h>
#include <stdint.h>

#include "write/columns_encode.h"

/* What fails sets e->error to -EFBIG or -ENOMEM; nothing is put after it. */

/* Room for `size` more bytes at e->data + e->size; returns e->error. */
int tacho__put_room(struct tacho__encoder *e, size_t size);
void tacho__put_raw(struct tacho__encoder *e, const void *bytes, size_t size);

/* Says that `size` bytes of one kind follow, and cuts when that is worth it. */
void tacho__put_cut(struct tacho__encoder *e, size_t size);

/* A column of values as they are to be stored; `list` is for DICT. */
void tacho__put_column(struct tacho__encoder *e, enum tacho_transform transform, uint8_t list,
		       const uint64_t *v, uint32_t count);
/* A column PLAIN of width 1. */
void tacho__put_bytes(struct tacho__encoder *e, const uint64_t *v, uint32_t count);
/* A column PLAIN or DELTA, whichever is cheaper. Destroys the values. */
void tacho__put_simple(struct tacho__encoder *e, uint64_t *v, uint32_t count);
/* The head of a column WORDS, whose `count` values follow. */
void tacho__put_words_head(struct tacho__encoder *e, uint32_t count);

#endif
