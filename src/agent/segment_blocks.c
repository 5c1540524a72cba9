#include "agent/segment_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "base/crc32c.h"

/* All of it: 0; -ENODATA: the file is shorter; or what pread(2) says. */
static int read_at(int fd, uint64_t offset, void *to, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = pread(fd, (char *)to + got, size - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		got += (size_t)n;
	}
	return 0;
}

static int make_room(uint8_t **p, size_t *capacity, size_t size)
{
	if (size <= *capacity)
		return 0;
	free(*p);
	*p = malloc(size);
	*capacity = *p ? size : 0;
	return *p ? 0 : -ENOMEM;
}

int tacho__blocks_open(struct tacho__blocks *b, int fd)
{
	struct tacho_trace_file file;
	struct stat st;
	int err;

	*b = (struct tacho__blocks){.fd = fd};
	if (fstat(fd, &st))
		return -errno;
	b->size = (uint64_t)st.st_size;
	err = read_at(fd, 0, &file, sizeof(file));
	if (err)
		return err == -ENODATA ? -EBADMSG : err;
	if (memcmp(file.magic, TACHO_TRACE_MAGIC, sizeof(file.magic)) ||
	    file.crc != tacho__crc32c(0, &file, offsetof(struct tacho_trace_file, crc)) ||
	    file.major > TACHO_TRACE_MAJOR || file.header_size < sizeof(file) ||
	    file.header_size % 8 || file.header_size > 65536 || file.header_size > b->size)
		return -EBADMSG;
	b->tag = file.tag;
	b->next = file.header_size;
	return 0;
}

static uint64_t padded(uint32_t size)
{
	return ((uint64_t)size + 7) & ~7ull;
}

static bool is_end(const struct tacho__blocks *b, const void *bytes)
{
	struct tacho_trace_end end;
	uint32_t crc;

	memcpy(&end, bytes, sizeof(end));
	crc = tacho__crc32c(0, &end, offsetof(struct tacho_trace_end, crc));
	crc = tacho__crc32c(crc, end.magic, sizeof(end.magic));
	return !memcmp(end.magic, TACHO_TRACE_END_MAGIC, sizeof(end.magic)) && crc == end.crc &&
	       end.blocks == b->number && b->next + sizeof(end) == b->size;
}

int tacho__blocks_next(struct tacho__blocks *b)
{
	struct tacho_trace_block *h = &b->head;
	int err;

	if (b->ended || b->size - b->next < sizeof(*h))
		return 0;
	err = read_at(b->fd, b->next, h, sizeof(*h));
	if (err)
		return err == -ENODATA ? 0 : err;
	if (is_end(b, h)) {
		b->ended = true;
		return 0;
	}
	if (h->magic != TACHO_BLOCK_MAGIC || h->tag != b->tag || h->number != b->number ||
	    h->crc != tacho__crc32c(0, h, offsetof(struct tacho_trace_block, crc)) ||
	    h->stored_size > TACHO_BLOCK_MAX || h->raw_size > TACHO_BLOCK_MAX ||
	    padded(h->stored_size) > b->size - b->next - sizeof(*h))
		return 0;
	b->offset = b->next;
	b->next += sizeof(*h) + padded(h->stored_size);
	b->number++;
	return 1;
}

/* The first `wanted` bytes of the frame. */
static int decompress(struct tacho__blocks *b, size_t wanted)
{
	ZSTD_DStream *zstd = ZSTD_createDStream();
	ZSTD_inBuffer in = {b->stored, b->head.stored_size, 0};
	ZSTD_outBuffer out = {b->raw, wanted, 0};
	int err = zstd ? 0 : -ENOMEM;

	while (!err && out.pos < out.size) {
		size_t before = in.pos, done = out.pos;
		size_t left = ZSTD_decompressStream(zstd, &out, &in);

		if (ZSTD_isError(left) || (in.pos == before && out.pos == done))
			err = -EBADMSG;
		else if (left == 0 && out.pos < out.size)
			err = -EBADMSG;
	}
	ZSTD_freeDStream(zstd);
	return err;
}

int tacho__blocks_load(struct tacho__blocks *b, size_t wanted, const uint8_t **data, size_t *size)
{
	size_t whole = (size_t)padded(b->head.stored_size);
	int err = make_room(&b->stored, &b->stored_capacity, whole + 1);

	if (!err)
		err = read_at(b->fd, b->offset + sizeof(b->head), b->stored, whole);
	if (err == -ENODATA || (!err && tacho__crc32c(0, b->stored, whole) != b->head.payload_crc))
		err = -EBADMSG;
	if (err)
		return err;
	if (wanted > b->head.raw_size)
		wanted = b->head.raw_size;
	*data = b->stored;
	*size = wanted;
	if (b->head.encoding == TACHO_ENCODING_PLAIN)
		return b->head.raw_size == b->head.stored_size ? 0 : -EBADMSG;
	if (b->head.encoding != TACHO_ENCODING_ZSTD)
		return -EBADMSG;
	err = make_room(&b->raw, &b->raw_capacity, wanted + 1);
	*data = b->raw;
	return err ? err : decompress(b, wanted);
}

void tacho__blocks_free(struct tacho__blocks *b)
{
	free(b->stored);
	free(b->raw);
	b->stored = b->raw = NULL;
	b->stored_capacity = b->raw_capacity = 0;
}

/* --------------------------------------------------------------- identity */

bool tacho__identity_same(const struct tacho__identity *a, const struct tacho__identity *b)
{
	return a->pid == b->pid && a->start_time == b->start_time &&
	       a->created_mono_ns == b->created_mono_ns &&
	       !memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id));
}

static void take_key(struct tacho__identity *identity, unsigned key, const uint8_t *value,
		     size_t size)
{
	uint64_t n = 0;

	memcpy(&n, value, size < sizeof(n) ? size : sizeof(n));
	switch (key) {
	case TACHO_META_PID:
		identity->pid = (uint32_t)n;
		break;
	case TACHO_META_START_TIME:
		identity->start_time = n;
		break;
	case TACHO_META_CREATED_MONO:
		identity->created_mono_ns = n;
		break;
	case TACHO_META_BOOT_ID:
		memcpy(identity->boot_id, value, size < 16 ? size : 16);
		break;
	case TACHO_META_SEGMENT:
		identity->segment = n;
		break;
	case TACHO_META_TAKEN_BY:
		identity->taken_by = (uint32_t)n;
		break;
	case TACHO_META_PAST:
		identity->past = n;
		identity->past_known = true;
		break;
	default:
		break;
	}
}

void tacho__identity_parse(struct tacho__identity *identity, const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (size - at >= 8) {
		uint16_t key;
		uint32_t bytes;
		size_t step;

		memcpy(&key, data + at, sizeof(key));
		memcpy(&bytes, data + at + 4, sizeof(bytes));
		at += 8;
		if (bytes > size - at)
			return;
		take_key(identity, key, data + at, bytes);
		step = (size_t)padded(bytes);
		at = step < size - at ? at + step : size;
	}
}

int tacho__identity_read(struct tacho__identity *identity, int fd)
{
	struct tacho__blocks b;
	const uint8_t *data;
	size_t size;
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
			more = tacho__blocks_load(&b, SIZE_MAX, &data, &size);
		if (!more && b.head.type == TACHO_BLOCK_META)
			tacho__identity_parse(identity, data, size);
	}
	tacho__blocks_free(&b);
	return more;
}
