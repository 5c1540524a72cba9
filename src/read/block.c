#include "read/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/crc32c.h"
#include "read/reader.h"

#ifdef TACHO_FUZZING
/* Fuzzers cannot guess checksums. */
#define CRC_FAILS(computed, stored) ((void)(computed), (void)(stored), 0)
#else
#define CRC_FAILS(computed, stored) ((computed) != (stored))
#endif

static uint32_t padded(uint32_t size)
{
	return (size + 7u) & ~7u;
}

/* ----------------------------------------------------------------- headers */

int tacho__file_check(const struct tacho_trace_file *file)
{
	uint32_t crc = tacho__crc32c(0, file, offsetof(struct tacho_trace_file, crc));

	if (memcmp(file->magic, TACHO_TRACE_MAGIC, sizeof(file->magic)) ||
	    CRC_FAILS(crc, file->crc))
		return -EBADMSG;
	if (file->major > TACHO_TRACE_MAJOR)
		return -ENOTSUP;
	if (file->header_size < sizeof(*file) || file->header_size % 8 || file->header_size > 65536)
		return -EINVAL;
	return 0;
}

int tacho__block_check(const struct tacho_trace_block *head, const uint32_t *tag)
{
	if (head->magic != TACHO_BLOCK_MAGIC || (tag && head->tag != *tag) ||
	    head->stored_size > TACHO_BLOCK_MAX || head->raw_size > TACHO_BLOCK_MAX)
		return 0;
	return !CRC_FAILS(tacho__crc32c(0, head, offsetof(struct tacho_trace_block, crc)),
			  head->crc);
}

int tacho__end_check(const struct tacho_trace_end *end)
{
	uint32_t crc;

	if (memcmp(end->magic, TACHO_TRACE_END_MAGIC, sizeof(end->magic)))
		return 0;
	crc = tacho__crc32c(0, end, offsetof(struct tacho_trace_end, crc));
	crc = tacho__crc32c(crc, end->magic, sizeof(end->magic));
	return !CRC_FAILS(crc, end->crc);
}

uint64_t tacho__block_size(const struct tacho_trace_block *head)
{
	return sizeof(*head) + (uint64_t)padded(head->stored_size);
}

/* ----------------------------------------------------------------- payload */

static int make_room(uint8_t **buffer, size_t *capacity, size_t need)
{
	uint8_t *p;

	if (need <= *capacity)
		return 0;
	p = malloc(need);
	if (!p)
		return -ENOMEM;
	free(*buffer);
	*buffer = p;
	*capacity = need;
	return 0;
}

static int decompress(struct tacho__block_room *room, const struct tacho_trace_block *head,
		      uint32_t wanted, const char **wrong)
{
	ZSTD_inBuffer in = {room->stored, head->stored_size, 0};
	ZSTD_outBuffer out = {NULL, wanted, 0};
	size_t left = 0, before;

	/* The frame must own up to its size before memory is taken for it. */
	*wrong = "is not the one zstd frame that its header announces";
	if (ZSTD_getFrameContentSize(room->stored, head->stored_size) != head->raw_size ||
	    ZSTD_findFrameCompressedSize(room->stored, head->stored_size) != head->stored_size)
		return -EBADMSG;
	*wrong = "needs more memory than there is";
	if (!room->zstd)
		room->zstd = ZSTD_createDCtx();
	if (!room->zstd || make_room(&room->raw, &room->raw_size, (size_t)wanted + 8))
		return -ENOMEM;
	*wrong = "cannot be decompressed";
	out.dst = room->raw;
	ZSTD_DCtx_reset(room->zstd, ZSTD_reset_session_only);
	while (out.pos < out.size) {
		before = in.pos + out.pos;
		left = ZSTD_decompressStream(room->zstd, &out, &in);
		if (ZSTD_isError(left) || in.pos + out.pos == before)
			return -EBADMSG;
	}
	/* Its end has to be there as well, when all of it is wanted. */
	return wanted == head->raw_size && left ? -EBADMSG : 0;
}

int tacho__block_decode(struct tacho__block_room *room, struct tacho__input *in, uint64_t offset,
			const struct tacho_trace_block *head, const uint8_t **data, uint32_t *size,
			const char **wrong)
{
	uint32_t stored = padded(head->stored_size);
	int err = make_room(&room->stored, &room->stored_size, stored + 8u);

	*wrong = "needs more memory than there is";
	if (err)
		return err;
	*wrong = "cannot be read";
	err = tacho__input_read(in, offset + sizeof(*head), room->stored, stored);
	if (err)
		return err;
	*wrong = "fails its checksum";
	if (CRC_FAILS(tacho__crc32c(0, room->stored, stored), head->payload_crc))
		return -EBADMSG;
	if (*size > head->raw_size)
		*size = head->raw_size;
	switch (head->encoding) {
	case TACHO_ENCODING_PLAIN:
		*wrong = "contradicts itself about its size";
		*data = room->stored;
		return head->raw_size == head->stored_size ? 0 : -EBADMSG;
	case TACHO_ENCODING_ZSTD:
		err = decompress(room, head, *size, wrong);
		*data = room->raw;
		return err;
	default:
		*wrong = "has an encoding that this tacho does not know";
		return -EBADMSG;
	}
}

void tacho__block_room_free(struct tacho__block_room *room)
{
	free(room->stored);
	free(room->raw);
	ZSTD_freeDCtx(room->zstd);
	*room = (struct tacho__block_room){0};
}

/* --------------------------------------------------------- META and arrays */

int tacho__meta_next(struct tacho__meta *m)
{
	struct tacho_trace_meta head;
	uint32_t step;

	if (m->size - m->at < sizeof(head))
		return 0;
	memcpy(&head, m->data + m->at, sizeof(head));
	m->at += (uint32_t)sizeof(head);
	if (head.size > m->size - m->at)
		return -EBADMSG;
	m->key = head.key;
	m->bytes = head.size;
	m->value = m->data + m->at;
	m->number = 0;
	memcpy(&m->number, m->value, head.size < sizeof(m->number) ? head.size : sizeof(m->number));
	step = padded(head.size);
	m->at = step < m->size - m->at ? m->at + step : m->size;
	return 1;
}

int tacho__array_open(struct tacho__array *a, const uint8_t *data, uint32_t size, size_t least)
{
	struct tacho_trace_array head;

	*a = (struct tacho__array){0};
	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	if (head.entry_size == 0 || head.entry_size < least ||
	    head.count > (size - sizeof(head)) / head.entry_size)
		return -EBADMSG;
	*a = (struct tacho__array){data + sizeof(head), head.entry_size, head.count};
	return 0;
}

void tacho__array_get(const struct tacho__array *a, uint32_t index, void *to, size_t size)
{
	size_t part = a->entry_size < size ? a->entry_size : size;

	memset((uint8_t *)to + part, 0, size - part);
	memcpy(to, a->entries + (size_t)index * a->entry_size, part);
}

/* --------------------------------------------------------- of an open reader */

static const char *type_name(uint16_t type)
{
	static const char *const names[] = {
		[TACHO_BLOCK_META] = "META",
		[TACHO_BLOCK_CLOCK] = "CLOCK",
		[TACHO_BLOCK_THREADS] = "THREADS",
		[TACHO_BLOCK_UNDERWAY] = "UNDERWAY",
		[TACHO_BLOCK_DEFINITIONS] = "DEFINITIONS",
		[TACHO_BLOCK_EVENTS] = "EVENTS",
		[TACHO_BLOCK_CHUNK] = "CHUNK",
		[TACHO_BLOCK_HISTOGRAMS] = "HISTOGRAMS",
		[TACHO_BLOCK_LOSSES] = "LOSSES",
		[TACHO_BLOCK_TRIGGERS] = "TRIGGERS",
		[TACHO_BLOCK_CRASHES] = "CRASHES",
		[TACHO_BLOCK_SOURCES] = "SOURCES",
		[TACHO_BLOCK_INDEX] = "INDEX",
		[TACHO_BLOCK_SYMBOLS] = "SYMBOLS",
		[TACHO_BLOCK_GAPS] = "GAPS",
	};
	const char *name = type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;

	return name ? name : "unknown";
}

/* Checks the header before the payload. */
static int load(struct tacho_reader *r, const struct tacho__source *s, uint64_t offset,
		uint64_t size, uint16_t type, const uint8_t **data, uint32_t *data_size,
		const char **wrong)
{
	struct tacho_trace_block head;

	*wrong = "cannot be read";
	if (tacho__input_read(s->input, offset, &head, sizeof(head)))
		return -EBADMSG;
	*wrong = "has a damaged header";
	if (!tacho__block_check(&head, &s->tag) || tacho__block_size(&head) != size)
		return -EBADMSG;
	*wrong = "is not of the type that the index says";
	if (head.type != type)
		return -EBADMSG;
	*data_size = UINT32_MAX;
	return tacho__block_decode(&r->room, s->input, offset, &head, data, data_size, wrong);
}

int tacho__block_load(struct tacho_reader *r, uint32_t source, uint64_t offset, uint64_t size,
		      uint16_t type, const uint8_t **data, uint32_t *data_size)
{
	const char *wrong;
	int err = load(r, &r->sources[source], offset, size, type, data, data_size, &wrong);

	if (!err || err == -ENOMEM)
		return err;
	tacho__problem(r, source, "damaged-block", offset, size,
		       "a block of type %s %s; what it held is lost", type_name(type), wrong);
	return -EBADMSG;
}
