/* The bytes of a file, unpacked where it is gzipped, also of several members in a row. */
#ifndef TACHO_IMPORT_STREAM_H
#define TACHO_IMPORT_STREAM_H

#include <stddef.h>
#include <stdint.h>

#define TACHO__STREAM_MAX (16ull << 30) /* bytes unpacked: what is longer ends there */

struct tacho__stream;

/* Regular files only. NULL with a negative errno in *error. */
struct tacho__stream *tacho__stream_open(const char *path, int *error);
void tacho__stream_close(struct tacho__stream *s);

/* How many bytes there were, at most `size`: fewer at the end, or where no more can be read. */
size_t tacho__stream_read(struct tacho__stream *s, void *to, size_t size);
/* Why no more could be read; NULL: the file ended. */
const char *tacho__stream_problem(const struct tacho__stream *s);
/* Bytes of the file as it lies on the disk. */
uint64_t tacho__stream_size(const struct tacho__stream *s);
/* How far reading came, and of how much, both as the file lies on the disk. */
void tacho__stream_progress(const struct tacho__stream *s, uint64_t *done, uint64_t *total);

#endif
