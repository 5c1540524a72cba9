/* Makes a trace file in memory, block by block, and reads files back. */
#ifndef TACHO_TESTS_TRACE_BUILD_H
#define TACHO_TESTS_TRACE_BUILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "write/columns_encode.h"
#include "write/trace_output.h"
#include "write/trace_write.h"
#include "columns_random.h"
#include "format/definition.h"
#include "tacho_read.h"

#define BUILD_BEGIN_NS 5000000000ull

struct build {
	int fd;
	struct tacho__output out;
	struct tacho__bytes bytes;
	char message[300];
};

static inline void build_begin(struct build *b)
{
	memset(b, 0, sizeof(*b));
	b->fd = memfd_create("trace", MFD_CLOEXEC);
	assert_true(b->fd >= 0);
	b->out = (struct tacho__output){
		.fd = b->fd, .message = b->message, .message_size = sizeof(b->message)};
	assert_int_equal(tacho__output_begin(&b->out), 0);
}

static inline void build_bytes(struct build *b, const void *data, size_t size)
{
	assert_int_equal(tacho__bytes_put(&b->bytes, data, size), 0);
}

static inline void build_block(struct build *b, enum tacho_block_type type)
{
	assert_int_equal(
		tacho__output_block(&b->out, type, b->bytes.data, b->bytes.size, NULL, NULL), 0);
	b->bytes.size = 0;
}

static inline void build_meta(struct build *b, uint16_t key, const void *data, uint32_t size)
{
	uint16_t head[2] = {key, 0};

	build_bytes(b, head, sizeof(head));
	build_bytes(b, &size, sizeof(size));
	build_bytes(b, data, size);
	assert_int_equal(tacho__bytes_pad(&b->bytes), 0);
}

static inline void build_meta_u64(struct build *b, uint16_t key, uint64_t value)
{
	build_meta(b, key, &value, sizeof(value));
}

static inline void build_array(struct build *b, enum tacho_block_type type, const void *entries,
			       uint32_t size, uint32_t count)
{
	struct tacho_trace_array array = {size, count};

	build_bytes(b, &array, sizeof(array));
	build_bytes(b, entries, (size_t)size * count);
	build_block(b, type);
}

static inline void build_definition(struct build *b, uint32_t id, uint8_t class, uint8_t flags,
				    const void *payload, uint16_t size)
{
	struct tacho_trace_def head = {id, size, class, flags};

	build_bytes(b, &head, sizeof(head));
	build_bytes(b, payload, size);
	assert_int_equal(tacho__bytes_pad(&b->bytes), 0);
}

static inline void build_events(struct build *b, const struct tacho__records *r)
{
	struct tacho__encoder e = {0};
	struct tacho__cuts cuts;
	struct tacho_trace_events head;

	assert_int_equal(tacho__columns_encode(&e, r), 0);
	memcpy(&head, e.data, sizeof(head));
	cuts = (struct tacho__cuts){e.cuts, e.cut_count};
	assert_int_equal(
		tacho__output_block(&b->out, TACHO_BLOCK_EVENTS, e.data, e.size, &cuts, &head), 0);
	tacho__encoder_free(&e);
}

/* `stretches` of `count` random records in each of `threads` threads. */
static inline void build_random_events(struct build *b, uint64_t seed, uint32_t threads,
				       uint32_t stretches, uint32_t count)
{
	struct random rnd = {.state = seed, .meaningful = 1};
	struct tacho__records r = {0};

	for (uint32_t t = 1; t <= threads; t++) {
		uint64_t ns = BUILD_BEGIN_NS + t;

		for (uint32_t s = 0; s < stretches; s++) {
			random_records(&rnd, &r, count, 0);
			r.head.thread = t;
			r.head.tid = 1000 + t;
			r.head.sequence = s;
			r.head.prior_records = (uint64_t)s * count;
			for (uint32_t i = 0; i < count; i++)
				r.ns[i] = ns += random_below(&rnd, 40000);
			r.head.first_ns = r.ns[0];
			r.head.last_ns = ns;
			snprintf(r.head.name, sizeof(r.head.name), "loop-%u", t);
			build_events(b, &r);
		}
	}
	tacho__records_free(&r);
}

/* The file's bytes; the builder is gone afterwards. */
static inline void *build_end(struct build *b, size_t *size)
{
	void *data;

	assert_int_equal(tacho__output_end(&b->out), 0);
	*size = b->out.offset;
	data = malloc(*size);
	assert_int_equal(pread(b->fd, data, *size, 0), (ssize_t)*size);
	tacho__output_free(&b->out);
	tacho__bytes_free(&b->bytes);
	close(b->fd);
	return data;
}

static inline struct tacho_reader *open_bytes(const void *data, size_t size)
{
	struct tacho_reader *reader;
	char message[300] = "";

	if (tacho_read_open_memory(&reader, data, size, NULL, message, sizeof(message)))
		fail_msg("%s", message);
	return reader;
}

/* Meta data that make a process known. */
static inline void build_process(struct build *b)
{
	static const uint8_t boot_id[16] = "0123456789abcde";
	const struct tacho_anchor anchors[2] = {
		{BUILD_BEGIN_NS, BUILD_BEGIN_NS, 1700000000000000000u},
		{BUILD_BEGIN_NS + 1000000000u, BUILD_BEGIN_NS + 1000000000u, 1700000001000000000u},
	};

	build_meta_u64(b, TACHO_META_PID, 4242);
	build_meta_u64(b, TACHO_META_UID, 1000);
	build_meta_u64(b, TACHO_META_START_TIME, 987654);
	build_meta(b, TACHO_META_BOOT_ID, boot_id, sizeof(boot_id));
	build_meta_u64(b, TACHO_META_CREATED_MONO, BUILD_BEGIN_NS);
	build_meta_u64(b, TACHO_META_CREATED_REAL, 1700000000000000000u);
	build_meta_u64(b, TACHO_META_CLOCK, TACHO_CLOCK_TSC);
	build_meta_u64(b, TACHO_META_MAX_BYTES, 32 << 20);
	build_meta_u64(b, TACHO_META_POLL_THRESHOLD, 20000);
	build_meta_u64(b, TACHO_META_STATE, TACHO_STATE_RECORDING);
	build_meta_u64(b, TACHO_META_ALIVE, 0);
	build_meta_u64(b, TACHO_META_TAKEN_MONO, BUILD_BEGIN_NS + 900000000u);
	build_meta_u64(b, TACHO_META_TAKEN_BY, TACHO_TAKEN_CRASH);
	build_meta(b, TACHO_META_EXE, "/usr/bin/serve", 14);
	build_meta(b, TACHO_META_HOST, "db-7", 4);
	build_meta(b, TACHO_META_SERVICE, "orders", 6);
	build_block(b, TACHO_BLOCK_META);
	build_array(b, TACHO_BLOCK_CLOCK, anchors, sizeof(anchors[0]), 2);
}

#endif
