#include "agent/segment_blocks.h"

#include <errno.h>
#include <string.h>

int tacho__blocks_open(struct tacho__blocks *b, int fd)
{
	struct tacho_trace_file file;
	int err;

	*b = (struct tacho__blocks){0};
	err = tacho__input_fd(&b->file, fd);
	if (!err)
		err = tacho__input_read(&b->file.base, 0, &file, sizeof(file));
	if (err)
		return err == -ENODATA ? -EBADMSG : err;
	if (tacho__file_check(&file) || file.header_size > b->file.base.size)
		return -EBADMSG;
	b->tag = file.tag;
	b->next = file.header_size;
	return 0;
}

static bool is_end(const struct tacho__blocks *b)
{
	struct tacho_trace_end end;

	memcpy(&end, &b->head, sizeof(end));
	return tacho__end_check(&end) && end.blocks == b->number &&
	       b->next + sizeof(end) == b->file.base.size;
}

int tacho__blocks_next(struct tacho__blocks *b)
{
	int err;

	if (b->ended)
		return 0;
	err = tacho__input_read(&b->file.base, b->next, &b->head, sizeof(b->head));
	if (err)
		return err == -ENODATA ? 0 : err;
	b->ended = is_end(b);
	if (b->ended || !tacho__block_check(&b->head, &b->tag) || b->head.number != b->number ||
	    tacho__block_size(&b->head) > b->file.base.size - b->next)
		return 0;
	b->offset = b->next;
	b->next += tacho__block_size(&b->head);
	b->number++;
	return 1;
}

int tacho__blocks_load(struct tacho__blocks *b, uint32_t wanted, const uint8_t **data,
		       uint32_t *size)
{
	const char *wrong;
	int err;

	*size = wanted;
	err = tacho__block_decode(&b->room, &b->file.base, b->offset, &b->head, data, size, &wrong);
	return err == -ENODATA ? -EBADMSG : err;
}

void tacho__blocks_free(struct tacho__blocks *b)
{
	tacho__block_room_free(&b->room);
}

/* --------------------------------------------------------------- identity */

bool tacho__identity_same(const struct tacho__identity *a, const struct tacho__identity *b)
{
	return a->pid == b->pid && a->start_time == b->start_time &&
	       a->created_mono_ns == b->created_mono_ns &&
	       !memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id));
}

void tacho__identity_parse(struct tacho__identity *identity, const uint8_t *data, uint32_t size)
{
	struct tacho__meta e = {.data = data, .size = size};

	while (tacho__meta_next(&e) > 0) {
		switch (e.key) {
		case TACHO_META_PID:
			identity->pid = (uint32_t)e.number;
			break;
		case TACHO_META_START_TIME:
			identity->start_time = e.number;
			break;
		case TACHO_META_CREATED_MONO:
			identity->created_mono_ns = e.number;
			break;
		case TACHO_META_BOOT_ID:
			memcpy(identity->boot_id, e.value, e.bytes < 16 ? e.bytes : 16);
			break;
		case TACHO_META_SEGMENT:
			identity->segment = e.number;
			break;
		case TACHO_META_TAKEN_BY:
			identity->taken_by = (uint32_t)e.number;
			break;
		case TACHO_META_PAST:
			identity->past = e.number;
			identity->past_known = true;
			break;
		default:
			break;
		}
	}
}

int tacho__identity_read(struct tacho__identity *identity, int fd)
{
	struct tacho__blocks b;
	const uint8_t *data;
	uint32_t size;
	int more = tacho__blocks_open(&b, fd);

	*identity = (struct tacho__identity){0};
	while (!more && !identity->taken_by) {
		more = tacho__blocks_next(&b);
		if (more == 0)
			more = -ENODATA;
		if (more < 0)
			break;
		more = 0;
		if (b.head.type == TACHO_BLOCK_META)
			more = tacho__blocks_load(&b, UINT32_MAX, &data, &size);
		if (!more && b.head.type == TACHO_BLOCK_META)
			tacho__identity_parse(identity, data, size);
	}
	tacho__blocks_free(&b);
	return more;
}
