#include "export/proto.h"

#include <stdlib.h>
#include <string.h>

#include "export/text.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_SIZED = 2 };

#define VARINT_MAX 10u

void tacho__proto_free(struct tacho__proto *p)
{
	free(p->data);
	memset(p, 0, sizeof(*p));
}

static int reserve(struct tacho__proto *p, size_t more)
{
	size_t room = p->room ? p->room : 256;
	uint8_t *data;

	if (p->bad)
		return 0;
	if (p->room - p->size >= more)
		return 1;
	while (room - p->size < more)
		room *= 2;
	data = realloc(p->data, room);
	if (!data) {
		p->bad = 1;
		return 0;
	}
	p->data = data;
	p->room = room;
	return 1;
}

void tacho__proto_raw(struct tacho__proto *p, const void *data, size_t size)
{
	if (!size || !reserve(p, size))
		return;
	memcpy(p->data + p->size, data, size);
	p->size += size;
}

static size_t encode(uint8_t *out, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		out[n++] = (uint8_t)(value | 0x80);
	out[n++] = (uint8_t)value;
	return n;
}

void tacho__proto_varint(struct tacho__proto *p, uint64_t value)
{
	if (reserve(p, VARINT_MAX))
		p->size += encode(p->data + p->size, value);
}

static void tag(struct tacho__proto *p, uint32_t field, enum wire wire)
{
	tacho__proto_varint(p, (uint64_t)field << 3 | wire);
}

void tacho__proto_u64(struct tacho__proto *p, uint32_t field, uint64_t value)
{
	tag(p, field, WIRE_VARINT);
	tacho__proto_varint(p, value);
}

void tacho__proto_fixed64(struct tacho__proto *p, uint32_t field, uint64_t value)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	tag(p, field, WIRE_FIXED64);
	tacho__proto_raw(p, bytes, sizeof(bytes));
}

void tacho__proto_double(struct tacho__proto *p, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	tacho__proto_fixed64(p, field, bits);
}

void tacho__proto_bytes(struct tacho__proto *p, uint32_t field, const void *data, size_t size)
{
	tag(p, field, WIRE_SIZED);
	tacho__proto_varint(p, size);
	tacho__proto_raw(p, data, size);
}

void tacho__proto_text(struct tacho__proto *p, uint32_t field, const char *text)
{
	char clean[TACHO__CLEAN_MAX];

	tacho__clean(clean, sizeof(clean), text);
	tacho__proto_bytes(p, field, clean, strlen(clean));
}

size_t tacho__proto_begin(struct tacho__proto *p, uint32_t field)
{
	tag(p, field, WIRE_SIZED);
	return p->size;
}

/* The length stands before the message and is known only now. */
void tacho__proto_end(struct tacho__proto *p, size_t begin)
{
	uint8_t length[VARINT_MAX];
	size_t size = p->size - begin, n = encode(length, size);

	if (p->bad || !reserve(p, n))
		return;
	memmove(p->data + begin + n, p->data + begin, size);
	memcpy(p->data + begin, length, n);
	p->size += n;
}
