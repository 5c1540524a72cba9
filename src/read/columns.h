/*
 * The columns of an EVENTS block (format/trace.h), decoded. The encoder is in
 * src/write/columns_encode.h; both follow the description there.
 */
#ifndef TACHO_READ_COLUMNS_H
#define TACHO_READ_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "read/records.h"

/*
 * Decodes the raw (decompressed) payload of an EVENTS block into `out`, whose
 * arrays are grown as needed. Hostile input: returns 0, -EBADMSG or -ENOMEM;
 * never reads beyond `size`, never allocates more than a small multiple of it
 * (and at most for TACHO_BLOCK_EVENTS_MAX records).
 */
int tacho__columns_decode(const uint8_t *data, size_t size, struct tacho__records *out);

#endif
