#include "read/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tacho__input_read(struct tacho__input *in, uint64_t offset, void *to, size_t size)
{
	if (offset > in->size || size > in->size - offset)
		return -ENODATA;
	return size ? in->read_at(in, offset, to, size) : 0;
}

/* ------------------------------------------------------------------- parts */

struct part_input {
	struct tacho__input base;
	struct tacho__input *whole;
};

void tacho__input_hold(struct tacho__input *whole)
{
	whole->holders++;
}

void tacho__input_release(struct tacho__input *whole)
{
	if (--whole->holders == 0)
		whole->close(whole);
}

static int part_read(struct tacho__input *in, uint64_t offset, void *to, size_t size)
{
	return tacho__input_read(((struct part_input *)in)->whole, in->begin + offset, to, size);
}

static void part_close(struct tacho__input *in)
{
	tacho__input_release(((struct part_input *)in)->whole);
	free(in);
}

struct tacho__input *tacho__input_part(struct tacho__input *whole, uint64_t from, uint64_t size)
{
	struct part_input *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->base = (struct tacho__input){
		.path = whole->path,
		.begin = from,
		.size = size,
		/* Its share: all parts together are not backed by more than the whole. */
		.backed = (uint64_t)((double)whole->backed * (double)size / (double)whole->size),
		.uid = whole->uid,
		.rights = whole->rights,
		.read_at = part_read,
		.close = part_close,
	};
	p->whole = whole;
	tacho__input_hold(whole);
	return &p->base;
}

/* ------------------------------------------------------------------ memory */

struct memory_input {
	struct tacho__input base;
	const uint8_t *data;
};

static int memory_read(struct tacho__input *in, uint64_t offset, void *to, size_t size)
{
	memcpy(to, ((struct memory_input *)in)->data + offset, size);
	return 0;
}

static void memory_close(struct tacho__input *in)
{
	free(in);
}

struct tacho__input *tacho__input_memory(const void *data, size_t size)
{
	struct memory_input *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->base.path = "";
	m->base.size = size;
	m->base.backed = size;
	m->base.read_at = memory_read;
	m->base.close = memory_close;
	m->data = data;
	return &m->base;
}
