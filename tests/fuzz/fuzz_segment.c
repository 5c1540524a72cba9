/*
 * Segments that an agent finds: it goes through their blocks, finishes what has no end, goes on
 * behind them with a box, and deletes what is too much. Input that begins like a trace file is taken
 * for a segment as it is; else it is the blocks of one that says that it is the box's.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "agent/segment_streams.h"
#include "agent/segment_folder.h"
#include "agent/segments.h"
#include "fuzz_read.h"
#include "../unit/box_builder.h"

#define BLOCKS_MAX 200u
#define RAW_MAX 65536u

static char folder[4096], box[sizeof(folder) + 8];

/* ------------------------------------------------------------ where it happens */

static int delete_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	/* The folder stays the service's. */
	return type == FTW_F && strcmp(path + at->base, TACHO__SERVICE_FILE) ? unlink(path) : 0;
}

static void delete_segments(void)
{
	nftw(folder, delete_one, 8, FTW_PHYS);
}

static void clean_up(void)
{
	char path[sizeof(folder) + sizeof(TACHO__SERVICE_FILE)];

	delete_segments();
	snprintf(path, sizeof(path), "%s/" TACHO__SERVICE_FILE, folder);
	unlink(path);
	rmdir(folder);
	unlink(box);
}

static void write_file(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

/* Two threads, with records that a segment may have, or lack. */
static void make_box(void)
{
	const char *base = getenv("TACHO_BOX_DIR");
	struct bb b;

	snprintf(folder, sizeof(folder), "%s/fuzz-XXXXXX", base ? base : "/dev/shm");
	FUZZ_CHECK(mkdtemp(folder));
	snprintf(box, sizeof(box), "%s.box", folder);
	bb_init(&b);
	for (uint32_t thread = 1; thread <= 2; thread++) {
		bb_thread(&b, thread);
		for (uint32_t sequence = 0; sequence < 2; sequence++) {
			uint64_t ticks = 30000000 + sequence * 3000;
			struct tacho_chunk *c = bb_chunk(&b, thread, sequence, ticks);

			c->prior_records = sequence * 4;
			for (uint32_t i = 0; i < 4; i++)
				bb_record1(c, ticks + 3 * i, TACHO_REC_POLL_BEGIN, 1, i);
			c->flags = sequence ? 0 : TACHO_CHUNK_SEALED;
		}
	}
	write_file(box, b.data, b.size);
	bb_free(&b);
	atexit(clean_up);
}

/* -------------------------------------------------------------------- segments */

static void put_identity(struct tb *t)
{
	static const uint8_t boot[16] = {[0 ... 15] = 0xb0};
	struct tb p = {0};

	tb_meta_u64(&p, TACHO_META_PID, 4194305);
	tb_meta_u64(&p, TACHO_META_START_TIME, 77);
	tb_meta_put(&p, TACHO_META_BOOT_ID, boot, sizeof(boot));
	tb_meta_u64(&p, TACHO_META_CREATED_MONO, 1000000000);
	tb_meta_u64(&p, TACHO_META_TAKEN_BY, TACHO_TAKEN_SEGMENT);
	tb_meta_u64(&p, TACHO_META_SEGMENT, 1);
	tb_plain(t, TACHO_BLOCK_META, p.data, p.size);
	tb_free(&p);
}

/* How far thread 1 had been delivered: no records, of no types, with no lists. */
static void put_position(struct tb *t)
{
	struct {
		struct tacho_trace_events head;
		struct tacho_open open;
		uint8_t columns[8];
	} p = {.head = {.size = sizeof(p.head),
			.thread = 1,
			.open_count = 1,
			.open_listed = 1,
			.prior_records = 3,
			.first_ns = 1009990000,
			.last_ns = 1009990000},
	       .open = {1, TACHO_REC_POLL_BEGIN, 7, 1009990000}};

	tb_plain(t, TACHO_BLOCK_EVENTS, &p, offsetof(__typeof__(p), columns) + 4);
}

static void put_zstd(struct tb *t, uint16_t type, const uint8_t *data, uint32_t size, uint32_t raw)
{
	uint8_t stored[4096];
	size_t n = ZSTD_compress(stored, sizeof(stored), data, size, 1);

	if (!ZSTD_isError(n))
		tb_block(t, type, TACHO_ENCODING_ZSTD, stored, (uint32_t)n, raw);
}

/* Entries { u8 type, u8 how, u16 size, bytes }. `how`, lowest bits: 0 and 1 as it is, 2 compressed, 3
   another size is said than is there. */
static void build(struct tb *t, const uint8_t *data, size_t size)
{
	tb_init(t);
	put_identity(t);
	put_position(t);
	while (size >= 4 && t->blocks < BLOCKS_MAX && t->size < RAW_MAX) {
		uint16_t type = data[0] % 17;
		uint8_t how = data[1];
		uint32_t n = data[2] | (uint32_t)data[3] << 8;

		data += 4;
		size -= 4;
		if (n > size || n > 2048)
			n = (uint32_t)(size < 2048 ? size : 2048);
		if (how & 2)
			put_zstd(t, type, data, n, how & 1 ? n + how : n);
		else
			tb_plain(t, type, data, n);
		data += n;
		size -= n;
	}
	/* It ends, with an index or without, or in the middle of something. */
	if (size & 1)
		tb_end(t, size & 2);
	else
		tb_put(t, data, size);
}

/* ------------------------------------------------------------------- what is done */

static void examine(int fd, bool finished)
{
	struct tacho__segment_facts facts;
	struct tacho__identity identity;
	struct stat st;
	uint64_t at = 0;

	FUZZ_CHECK(!fstat(fd, &st));
	if (!tacho__identity_read(&identity, fd))
		fuzz_sink += identity.segment;
	if (tacho__segment_examine(&facts, fd)) {
		FUZZ_CHECK(!finished);
		return;
	}
	FUZZ_CHECK(facts.size <= (uint64_t)st.st_size);
	FUZZ_CHECK(!finished || (facts.known && facts.ended));
	for (uint32_t i = 0; i < facts.blocks; i++) {
		FUZZ_CHECK(facts.index[i].offset >= at);
		at = facts.index[i].offset + facts.index[i].size;
		FUZZ_CHECK(at <= facts.size);
	}
	for (uint32_t i = 1; i < facts.streams.count; i++) {
		const struct tacho__delivery *s = &facts.streams.items[i];

		FUZZ_CHECK(s->thread > s[-1].thread ||
			   (s->thread == s[-1].thread && s->stream > s[-1].stream));
	}
	tacho__segment_facts_free(&facts);
}

/* What the agent said is finished, is. */
static void on_finished(void *arg, const char *path, uint64_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)arg;
	(void)bytes;
	FUZZ_CHECK(fd >= 0);
	examine(fd, true);
	close(fd);
}

static struct tacho__segments *open_folder(uint64_t max_bytes)
{
	struct tacho__segments_options options = {
		.folder = folder,
		.service = "fuzz",
		.max_bytes = max_bytes,
		.no_symbols = true,
		.finished = on_finished,
	};
	struct tacho__segments *s;
	char message[200];

	FUZZ_CHECK(!tacho__segments_open(&s, &options, message, sizeof(message)));
	return s;
}

static void recover(const void *data, size_t size, uint64_t max_bytes, bool part)
{
	char name[sizeof(folder) + 100];
	struct tacho__segments *s;
	struct tacho__row *row;

	delete_segments();
	snprintf(name, sizeof(name), "%s/tacho-fuzz-20261115T133200.123Z-4194305-000001.tacho%s",
		 folder, part ? TACHO__PART : "");
	write_file(name, data, size);
	s = open_folder(max_bytes);
	row = tacho__segments_row(s, box);
	FUZZ_CHECK(row);
	tacho__segments_drain(s, row, TACHO__DRAIN_END);
	tacho__row_free(s, row);
	tacho__segments_close(s);
}

static void all(const uint8_t *data, size_t size)
{
	int fd = memfd_create("segment", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	examine(fd, false);
	close(fd);
	recover(data, size, size % 3 ? 0 : 4096, size % 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tb t;

	if (!box[0]) {
		make_box();
		/* It must be the service's before there are traces in it. */
		tacho__segments_close(open_folder(0));
	}
	if (size >= 8 && !memcmp(data, TACHO_TRACE_MAGIC, 8)) {
		all(data, size);
		return 0;
	}
	build(&t, data, size);
	all(t.data, t.size);
	tb_free(&t);
	return 0;
}
