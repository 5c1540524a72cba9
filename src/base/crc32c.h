/* CRC-32C (Castagnoli): reflected, initial and final value ~0. */
#ifndef TACHO_BASE_CRC32C_H
#define TACHO_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Checksum of `size` bytes at `data`, going on from `crc` (0 to begin), so that
 * crc(crc(0, a), b) == crc(0, a followed by b). Async-signal-safe.
 */
uint32_t tacho__crc32c(uint32_t crc, const void *data, size_t size);

#endif
