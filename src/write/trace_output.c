#include "write/trace_output.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "read/memory.h"

/*
 * What the columns leave is mostly noise, in which short matches cost more than they
 * save; entropy coding does the work. Measured on two loops with 1,000 tasks, bytes
 * and nanoseconds per event: level 1 2.52 and 25, level 3 2.52 and 29, level 9 2.48 and
 * 57, level 12 2.48 and 100. A match from another column is one by chance: the window is that
 * of a column or two, and with it the compressor's memory.
 */
#define DEFAULT_LEVEL 9
#define EVENTS_MIN_MATCH 6
#define EVENTS_WINDOW_LOG 16

static size_t padded(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

int tacho__output_fail(struct tacho__output *o, int err, const char *format, ...)
{
	va_list args;

	if (o->error)
		return o->error;
	o->error = err;
	if (!o->message || !o->message_size)
		return err;
	va_start(args, format);
	vsnprintf(o->message, o->message_size, format, args);
	va_end(args);
	return err;
}

int tacho__output_no_memory(struct tacho__output *o)
{
	return tacho__output_fail(o, -ENOMEM,
				  "cannot write the trace: out of memory; free some and try again");
}

/* ------------------------------------------------------------------- bytes */

int tacho__bytes_put(struct tacho__bytes *b, const void *data, size_t size)
{
	size_t capacity = b->capacity ? b->capacity : 4096;
	uint8_t *p;

	if (b->error)
		return b->error;
	if (size > SIZE_MAX / 4 - b->size)
		return b->error = -ENOMEM;
	while (capacity < b->size + size)
		capacity *= 2;
	if (capacity > b->capacity) {
		p = realloc(b->data, capacity);
		if (!p)
			return b->error = -ENOMEM;
		b->data = p;
		b->capacity = capacity;
	}
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
	return 0;
}

int tacho__bytes_pad(struct tacho__bytes *b)
{
	static const uint8_t zeros[8];

	return tacho__bytes_put(b, zeros, padded(b->size) - b->size);
}

void tacho__bytes_free(struct tacho__bytes *b)
{
	free(b->data);
	*b = (struct tacho__bytes){0};
}

/* ----------------------------------------------------------------- writing */

static void write_failed(struct tacho__output *o, int error)
{
	unsigned long long done = o->offset;

	switch (error) {
	case ENOSPC:
	case EDQUOT:
		tacho__output_fail(o, -error,
				   "cannot write the trace: no space left after %llu bytes; "
				   "free some or write it elsewhere",
				   done);
		break;
	case EPIPE:
		tacho__output_fail(o, -error,
				   "cannot write the trace: its reader went away after "
				   "%llu bytes",
				   done);
		break;
	case EFBIG:
		tacho__output_fail(o, -error,
				   "cannot write the trace: the limit for the size of a file "
				   "was reached after %llu bytes; raise it (ulimit -f) or "
				   "take a shorter stretch of time",
				   done);
		break;
	default:
		tacho__output_fail(o, -error, "cannot write the trace after %llu bytes: %s", done,
				   strerror(error));
		break;
	}
}

static int write_all(struct tacho__output *o, const uint8_t *data, size_t size)
{
	while (size && !o->error) {
		ssize_t n = write(o->fd, data, size);

		if (n > 0) {
			data += n;
			size -= (size_t)n;
			o->offset += (uint64_t)n;
		} else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			struct pollfd p = {.fd = o->fd, .events = POLLOUT};

			if (poll(&p, 1, -1) < 0 && errno != EINTR)
				write_failed(o, errno);
		} else if (n == 0 || errno != EINTR) {
			write_failed(o, n == 0 ? EIO : errno);
		}
	}
	return o->error;
}

static uint32_t make_tag(void)
{
	uint32_t tag = 0;

	/* The tag only has to differ from that of other files on the same disk. */
	if (getrandom(&tag, sizeof(tag), GRND_NONBLOCK) != sizeof(tag))
		tag = (uint32_t)tacho__clock_ns(CLOCK_REALTIME) ^ (uint32_t)getpid() << 16;
	return tag ? tag : 1;
}

int tacho__output_begin(struct tacho__output *o)
{
	struct tacho_trace_file head = {
		.major = TACHO_TRACE_MAJOR,
		.minor = TACHO_TRACE_MINOR,
		.header_size = sizeof(head),
	};

	o->zstd = ZSTD_createCCtx();
	if (!o->zstd)
		return tacho__output_no_memory(o);
	o->tag = make_tag();
	memcpy(head.magic, TACHO_TRACE_MAGIC, sizeof(head.magic));
	head.tag = o->tag;
	head.created_real_ns = tacho__clock_ns(CLOCK_REALTIME);
	head.crc = tacho__crc32c(0, &head, offsetof(struct tacho_trace_file, crc));
	return write_all(o, (const uint8_t *)&head, sizeof(head));
}

/* ------------------------------------------------------------------ blocks */

static void set_parameters(struct tacho__output *o, enum tacho_block_type type, size_t size)
{
	int events = type == TACHO_BLOCK_EVENTS;

	/* None of these fails but for values out of range, which zstd puts in range. */
	ZSTD_CCtx_reset(o->zstd, ZSTD_reset_session_only);
	ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_compressionLevel,
			       o->level ? o->level : DEFAULT_LEVEL);
	ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_minMatch, events ? EVENTS_MIN_MATCH : 0);
	ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_windowLog, events ? EVENTS_WINDOW_LOG : 0);
	ZSTD_CCtx_setPledgedSrcSize(o->zstd, size);
}

/* One zstd frame into `out`; its size, or 0 when it is no smaller than the payload. */
static size_t compress(struct tacho__output *o, uint8_t *out, const uint8_t *payload, size_t size,
		       const struct tacho__cuts *cuts)
{
	ZSTD_outBuffer to = {out, size, 0};
	uint32_t next = 0;
	size_t at = 0;
	size_t left;

	do {
		size_t end = cuts && next < cuts->count ? cuts->at[next++] : size;
		ZSTD_inBuffer from = {payload + at, end - at, 0};

		do {
			left = ZSTD_compressStream2(o->zstd, &to, &from,
						    end == size ? ZSTD_e_end : ZSTD_e_flush);
			if (ZSTD_isError(left) || (left && to.pos == to.size))
				return 0;
		} while (left || from.pos < from.size);
		at = end;
	} while (at < size);
	return to.pos < size ? to.pos : 0;
}

struct tacho_trace_index tacho__index_entry(uint64_t offset, uint32_t size, uint16_t type,
					    const struct tacho_trace_events *events)
{
	struct tacho_trace_index entry = {.offset = offset, .size = size, .type = type};

	if (events) {
		entry.stream = events->stream;
		entry.thread = events->thread;
		entry.count = events->count;
		entry.first_ns = events->first_ns;
		entry.last_ns = events->last_ns;
	}
	return entry;
}

static void note_in_index(struct tacho__output *o, enum tacho_block_type type, uint64_t size,
			  const struct tacho_trace_events *events)
{
	if (TACHO__GROW(o->index, o->index_capacity, o->index_count + 1)) {
		tacho__output_no_memory(o);
		return;
	}
	o->index[o->index_count++] =
		tacho__index_entry(o->offset, (uint32_t)size, (uint16_t)type, events);
}

int tacho__output_block(struct tacho__output *o, enum tacho_block_type type, const void *payload,
			size_t size, const struct tacho__cuts *cuts,
			const struct tacho_trace_events *events)
{
	struct tacho_trace_block head = {.magic = TACHO_BLOCK_MAGIC, .type = (uint16_t)type};
	size_t stored, need = sizeof(head) + padded(size);
	uint8_t *body;

	if (o->error)
		return o->error;
	if (size > TACHO_BLOCK_MAX)
		return tacho__output_fail(o, -EFBIG,
					  "cannot write the trace: a block of type %d "
					  "would be larger than %u bytes",
					  (int)type, TACHO_BLOCK_MAX);
	if (need > o->capacity) {
		free(o->buffer);
		o->buffer = malloc(need);
		o->capacity = o->buffer ? need : 0;
		if (!o->buffer)
			return tacho__output_no_memory(o);
	}
	body = o->buffer + sizeof(head);
	set_parameters(o, type, size);
	stored = o->level < 0 ? 0 : compress(o, body, payload, size, cuts);
	head.encoding = stored ? TACHO_ENCODING_ZSTD : TACHO_ENCODING_PLAIN;
	if (!stored) {
		stored = size;
		if (size)
			memcpy(body, payload, size);
	}
	memset(body + stored, 0, padded(stored) - stored);
	head.stored_size = (uint32_t)stored;
	head.raw_size = (uint32_t)size;
	head.number = o->blocks;
	head.tag = o->tag;
	head.payload_crc = tacho__crc32c(0, body, padded(stored));
	head.crc = tacho__crc32c(0, &head, offsetof(struct tacho_trace_block, crc));
	memcpy(o->buffer, &head, sizeof(head));
	need = sizeof(head) + padded(stored);
	/* The index does not list itself: the end says where it is. */
	if (type != TACHO_BLOCK_INDEX)
		note_in_index(o, type, need, events);
	if (!write_all(o, o->buffer, need))
		o->blocks++;
	return o->error;
}

int tacho__output_bytes(struct tacho__output *o, enum tacho_block_type type, struct tacho__bytes *b)
{
	if (b->error)
		tacho__output_no_memory(o);
	else
		tacho__output_block(o, type, b->data, b->size, NULL, NULL);
	tacho__bytes_free(b);
	return o->error;
}

int tacho__output_end(struct tacho__output *o)
{
	struct tacho_trace_end end = {.index_offset = 0};
	struct tacho_trace_array array = {sizeof(o->index[0]), o->index_count};
	const size_t room = TACHO_BLOCK_MAX - sizeof(array);
	struct tacho__bytes index = {0};

	/* A file with more blocks than an index can list is read without one. */
	if (o->index_count <= room / sizeof(o->index[0])) {
		end.index_offset = o->offset;
		tacho__bytes_put(&index, &array, sizeof(array));
		tacho__bytes_put(&index, o->index, o->index_count * sizeof(o->index[0]));
		tacho__output_bytes(o, TACHO_BLOCK_INDEX, &index);
	}
	end.blocks = o->blocks;
	end.part_size = o->offset + sizeof(end);
	memcpy(end.magic, TACHO_TRACE_END_MAGIC, sizeof(end.magic));
	end.crc = tacho__crc32c(0, &end, offsetof(struct tacho_trace_end, crc));
	end.crc = tacho__crc32c(end.crc, end.magic, sizeof(end.magic));
	return write_all(o, (const uint8_t *)&end, sizeof(end));
}

void tacho__output_free(struct tacho__output *o)
{
	ZSTD_freeCCtx(o->zstd);
	free(o->buffer);
	free(o->index);
	o->zstd = NULL;
	o->buffer = NULL;
	o->index = NULL;
}
