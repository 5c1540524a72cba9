/* One block of a trace file: its header, its checksum, its encoding. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/crc32c.h"
#include "read/reader.h"

int tacho__block_check(const struct tacho_trace_block *head, const uint32_t *tag)
{
	uint32_t crc;

	if (head->magic != TACHO_BLOCK_MAGIC || (tag && head->tag != *tag) ||
	    head->stored_size > TACHO_BLOCK_MAX || head->raw_size > TACHO_BLOCK_MAX)
		return 0;
	crc = tacho__crc32c(0, head, offsetof(struct tacho_trace_block, crc));
	return !TACHO__CRC_FAILS(crc, head->crc);
}

static uint32_t padded(uint32_t size)
{
	return (size + 7u) & ~7u;
}

uint64_t tacho__block_size(const struct tacho_trace_block *head)
{
	return sizeof(*head) + (uint64_t)padded(head->stored_size);
}

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

/* NULL, or why the payload cannot be decoded. */
static const char *decompress(struct tacho_reader *r, const struct tacho_trace_block *head,
			      int *err)
{
	size_t got;

	*err = -EBADMSG;
	/* The frame must own up to its size before memory is taken for it. */
	if (ZSTD_getFrameContentSize(r->stored, head->stored_size) != head->raw_size ||
	    ZSTD_findFrameCompressedSize(r->stored, head->stored_size) != head->stored_size)
		return "is not the one zstd frame that its header announces";
	*err = -ENOMEM;
	if (!r->zstd)
		r->zstd = ZSTD_createDCtx();
	if (!r->zstd || make_room(&r->raw, &r->raw_size, (size_t)head->raw_size + 8))
		return "needs more memory than there is";
	*err = -EBADMSG;
	got = ZSTD_decompressDCtx(r->zstd, r->raw, head->raw_size, r->stored, head->stored_size);
	if (ZSTD_isError(got) || got != head->raw_size)
		return "cannot be decompressed";
	*err = 0;
	return NULL;
}

/* NULL, or what is wrong with the block. */
static const char *load(struct tacho_reader *r, struct tacho__source *s, uint64_t offset,
			uint64_t size, uint16_t type, struct tacho_trace_block *head, int *err)
{
	*err = tacho__input_read(s->input, offset, head, sizeof(*head));
	if (*err)
		return "cannot be read";
	*err = -EBADMSG;
	if (!tacho__block_check(head, &s->tag) || tacho__block_size(head) != size)
		return "has a damaged header";
	if (head->type != type)
		return "is not of the type that the index says";
	*err = make_room(&r->stored, &r->stored_size, padded(head->stored_size) + 8u);
	if (*err)
		return "needs more memory than there is";
	*err = tacho__input_read(s->input, offset + sizeof(*head), r->stored,
				 padded(head->stored_size));
	if (*err)
		return "cannot be read";
	*err = -EBADMSG;
	if (TACHO__CRC_FAILS(tacho__crc32c(0, r->stored, padded(head->stored_size)),
			     head->payload_crc))
		return "fails its checksum";
	switch (head->encoding) {
	case TACHO_ENCODING_PLAIN:
		if (head->raw_size != head->stored_size)
			return "contradicts itself about its size";
		*err = 0;
		return NULL;
	case TACHO_ENCODING_ZSTD:
		return decompress(r, head, err);
	default:
		return "has an encoding that this tacho does not know";
	}
}

static const char *type_name(uint16_t type)
{
	static const char *const names[] = {
		[TACHO_BLOCK_META] = "META",
		[TACHO_BLOCK_CLOCK] = "CLOCK",
		[TACHO_BLOCK_THREADS] = "THREADS",
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

int tacho__block_load(struct tacho_reader *r, uint32_t source, uint64_t offset, uint64_t size,
		      uint16_t type, const uint8_t **data, uint32_t *data_size)
{
	struct tacho_trace_block head = {0};
	const char *wrong;
	int err;

	wrong = load(r, &r->sources[source], offset, size, type, &head, &err);
	if (err == -ENOMEM)
		return err;
	if (wrong) {
		tacho__problem(r, source, "damaged-block", offset, size,
			       "a block of type %s %s; what it held is lost", type_name(type),
			       wrong);
		return -EBADMSG;
	}
	*data = head.encoding == TACHO_ENCODING_ZSTD ? r->raw : r->stored;
	*data_size = head.raw_size;
	return 0;
}
