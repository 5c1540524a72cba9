#include "read/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct memory_input {
	struct tacho__input base;
	const uint8_t *data;
};

int tacho__input_read(struct tacho__input *in, uint64_t offset, void *to, size_t size)
{
	if (offset > in->size || size > in->size - offset)
		return -ENODATA;
	return size ? in->read_at(in, offset, to, size) : 0;
}

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
