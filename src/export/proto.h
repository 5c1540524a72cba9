/*
 * Writing protocol buffers: fields into a buffer, in the order in which they are put.
 *
 * A message inside of another is put between tacho__proto_begin and _end. Without memory the
 * buffer turns bad and takes nothing more; whoever writes it out looks at `bad` once.
 */
#ifndef TACHO_EXPORT_PROTO_H
#define TACHO_EXPORT_PROTO_H

#include <stddef.h>
#include <stdint.h>

struct tacho__proto {
	uint8_t *data;
	size_t size, room;
	int bad;
};

/* Where an export goes; 0 or a negative errno. */
struct tacho__sink {
	int (*write)(void *arg, const void *data, size_t size);
	void *arg;
};

void tacho__proto_free(struct tacho__proto *p);
void tacho__proto_raw(struct tacho__proto *p, const void *data, size_t size);
void tacho__proto_varint(struct tacho__proto *p, uint64_t value);

void tacho__proto_u64(struct tacho__proto *p, uint32_t field, uint64_t value);
void tacho__proto_fixed64(struct tacho__proto *p, uint32_t field, uint64_t value);
void tacho__proto_double(struct tacho__proto *p, uint32_t field, double value);
void tacho__proto_bytes(struct tacho__proto *p, uint32_t field, const void *data, size_t size);
/* Made valid UTF-8 (text.h), as a field of type string has to be. */
void tacho__proto_text(struct tacho__proto *p, uint32_t field, const char *text);

size_t tacho__proto_begin(struct tacho__proto *p, uint32_t field);
void tacho__proto_end(struct tacho__proto *p, size_t begin);

#endif
