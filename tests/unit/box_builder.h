/*
 * Boxes and trace files made by hand, from the format headers alone: what the reader
 * is tested with does not come from the recorder or the writer that it must agree with.
 */
#ifndef TESTS_BOX_BUILDER_H
#define TESTS_BOX_BUILDER_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "format/box.h"
#include "format/definition.h"
#include "format/trace.h"

#define BB_SLOTS 8u
#define BB_THREADS 16u
#define BB_HISTS 8u
#define BB_DEFS 64u
#define BB_DEF_DATA 16384u

/* ------------------------------------------------------------------- boxes */

struct bb {
	uint8_t *data;
	size_t size;
	struct tacho_box_super *super;
};

static inline void *bb_region(struct bb *b, enum tacho_region which)
{
	return b->data + b->super->regions[which].offset;
}

/* A box of nobody's process (pid 4194305 cannot be) with ticks of a third of a nanosecond:
   ns = 1000000000 + (ticks - 3000) / 3. */
static inline void bb_init(struct bb *b)
{
	static const struct {
		uint32_t entry, count;
	} plan[TACHO_REGION_COUNT] = {
		[TACHO_REGION_CONTROL] = {sizeof(struct tacho_box_control), 1},
		[TACHO_REGION_LOSSES] = {8, TACHO_LOSS_MAX},
		[TACHO_REGION_TRIGGERS] = {sizeof(struct tacho_box_trigger), TACHO_TRIGGERS},
		[TACHO_REGION_CRASHES] = {sizeof(struct tacho_box_crash), TACHO_CRASHES},
		[TACHO_REGION_THREADS] = {sizeof(struct tacho_box_thread), BB_THREADS},
		[TACHO_REGION_HISTOGRAMS] = {sizeof(struct tacho_box_hist), BB_HISTS},
		[TACHO_REGION_DEF_DIR] = {sizeof(struct tacho_box_def), BB_DEFS},
		[TACHO_REGION_DEF_BUCKETS] = {4, 16},
		[TACHO_REGION_DEF_DATA] = {1, BB_DEF_DATA},
		[TACHO_REGION_SLOTS] = {sizeof(struct tacho_box_slot), BB_SLOTS},
		[TACHO_REGION_POOL] = {TACHO_SLOT_SIZE, BB_SLOTS},
		[TACHO_REGION_UNDERWAY] = {sizeof(struct tacho_box_underway), BB_THREADS},
	};
	uint64_t at = TACHO_BOX_SUPER_SIZE;

	b->size = (BB_SLOTS + 4) * TACHO_SLOT_SIZE;
	b->data = calloc(1, b->size);
	assert(b->data);
	b->super = (struct tacho_box_super *)b->data;
	memcpy(b->super->magic, TACHO_BOX_MAGIC, 8);
	b->super->version = TACHO_BOX_VERSION;
	b->super->super_size = TACHO_BOX_SUPER_SIZE;
	b->super->box_size = b->size;
	b->super->state = TACHO_STATE_RECORDING;
	b->super->pid = 4194305;
	b->super->start_time = 77;
	memset(b->super->boot_id, 0xb0, 16);
	b->super->clock = TACHO_CLOCK_TSC;
	b->super->region_count = TACHO_REGION_COUNT;
	b->super->created = (struct tacho_anchor){3000, 1000000000, 1700000000000000000ull};
	b->super->slot_size = TACHO_SLOT_SIZE;
	b->super->small_size = TACHO_SMALL_SIZE;
	b->super->next_def = 1;
	strcpy(b->super->comm, "builder");
	strcpy(b->super->service, "tests");
	strcpy(b->super->exe, "/usr/bin/builder");
	for (int i = 0; i < TACHO_REGION_COUNT; i++) {
		struct tacho_box_region *g = &b->super->regions[i];
		uint64_t align = i == TACHO_REGION_POOL ? TACHO_SLOT_SIZE : TACHO_BOX_ALIGN;

		at = (at + align - 1) / align * align;
		g->offset = at;
		g->entry_size = plan[i].entry;
		g->count = plan[i].count;
		g->size = (uint64_t)plan[i].entry * plan[i].count;
		at += g->size;
	}
	assert(at <= b->size);
}

static inline void bb_free(struct bb *b)
{
	free(b->data);
	b->data = NULL;
}

static inline uint64_t bb_ns(uint64_t ticks)
{
	return 1000000000 + (ticks - 3000) / 3;
}

static inline uint32_t bb_define(struct bb *b, unsigned class, unsigned flags, const void *payload,
				 uint16_t size)
{
	struct tacho_box_def *dir = bb_region(b, TACHO_REGION_DEF_DIR);
	uint8_t *data = bb_region(b, TACHO_REGION_DEF_DATA);
	uint32_t id = b->super->next_def++;
	uint64_t at = b->super->def_bytes;

	memcpy(data + at, payload, size);
	dir[id] = (struct tacho_box_def){(uint32_t)(at / 8 + 1), size, (uint8_t) class,
					 (uint8_t)flags,	 0,    0};
	b->super->def_bytes += (size + 7u) & ~7u;
	return id;
}

/* Payload of a name-shaped class; its size. */
static inline uint16_t bb_name(uint8_t *to, const char *name, const char *file, uint32_t line,
			       uint64_t value, uint8_t detail, const char *unit)
{
	uint16_t n = (uint16_t)strlen(name), f = (uint16_t)strlen(file);
	uint8_t u = (uint8_t)strlen(unit);

	memcpy(to, &value, 8);
	memcpy(to + 8, &line, 4);
	memcpy(to + 12, &n, 2);
	memcpy(to + 14, &f, 2);
	to[16] = detail;
	to[17] = u;
	memcpy(to + 18, name, n);
	memcpy(to + 18 + n, file, f);
	memcpy(to + 18 + n + f, unit, u);
	return (uint16_t)(18 + n + f + u);
}

static inline uint32_t bb_define_name(struct bb *b, unsigned class, const char *name,
				      const char *file, uint32_t line)
{
	uint8_t payload[TACHO_DEF_PAYLOAD_MAX];
	uint16_t size = bb_name(payload, name, file, line, 0x1234, 3, "");

	return bb_define(b, class, 0, payload, size);
}

/* A whole chunk in a slot of its own. */
static inline struct tacho_chunk *bb_chunk_at(struct bb *b, uint32_t slot, uint32_t thread,
					      uint32_t sequence, uint64_t ticks)
{
	struct tacho_box_slot *slots = bb_region(b, TACHO_REGION_SLOTS);
	struct tacho_chunk *c;

	slots[slot].state = TACHO_SLOT_WHOLE | 1ull << 8 | 1ull << 40;
	if (b->super->slots_used <= slot)
		b->super->slots_used = slot + 1;
	c = (struct tacho_chunk *)((uint8_t *)bb_region(b, TACHO_REGION_POOL) +
				   (uint64_t)slot * TACHO_SLOT_SIZE);
	memset(c, 0, sizeof(*c));
	c->generation = ++b->super->generation;
	c->commit = TACHO_CHUNK_HEAD;
	c->magic = TACHO_CHUNK_MAGIC;
	c->size = TACHO_SLOT_SIZE;
	c->thread = thread;
	c->tid = 1000 + thread;
	c->sequence = sequence;
	c->anchor.ticks = ticks;
	c->anchor.mono_ns = bb_ns(ticks);
	strcpy(c->name, "worker");
	c->last_ticks = ticks;
	return c;
}

static inline struct tacho_chunk *bb_chunk(struct bb *b, uint32_t thread, uint32_t sequence,
					   uint64_t ticks)
{
	return bb_chunk_at(b, b->super->slots_used, thread, sequence, ticks);
}

/* A record at `ticks`; last_ticks keeps the time of the one before. */
static inline void bb_record(struct tacho_chunk *c, uint64_t ticks, unsigned type, uint32_t arg,
			     const uint64_t *words, unsigned n)
{
	uint64_t *p = (uint64_t *)((uint8_t *)c + c->commit);
	uint64_t delta = ticks - c->last_ticks;

	if (delta > UINT32_MAX) {
		*p++ = tacho_record_head(TACHO_REC_TIME, 0);
		*p++ = ticks;
		delta = 0;
	}
	*p++ = tacho_record_head(type, arg) | delta << 32;
	for (unsigned i = 0; i < n; i++)
		*p++ = words[i];
	c->last_ticks = ticks;
	c->records++;
	c->commit = (uint64_t)((uint8_t *)p - (uint8_t *)c);
	assert(c->commit <= c->size);
}

static inline void bb_record1(struct tacho_chunk *c, uint64_t ticks, unsigned type, uint32_t arg,
			      uint64_t word)
{
	bb_record(c, ticks, type, arg, &word, 1);
}

static inline struct tacho_box_thread *bb_thread(struct bb *b, uint32_t number)
{
	struct tacho_box_thread *t = bb_region(b, TACHO_REGION_THREADS);

	t += b->super->threads_used++;
	t->state = TACHO_THREAD_LIVE;
	t->number = number;
	t->tid = 1000 + number;
	t->chunk = TACHO_NO_CHUNK;
	t->start_ticks = 3000;
	strcpy(t->name, "worker");
	return t;
}

/* ------------------------------------------------------------- trace files */

struct tb {
	uint8_t *data;
	size_t size, capacity;
	uint32_t blocks;
	uint32_t tag;
	int sized; /* the end says how long the part is */
	struct tacho_trace_index index[256];
	uint32_t index_count;
};

#define TB_TAG 0x7a67u

static inline void tb_put(struct tb *t, const void *data, size_t size)
{
	if (t->size + size > t->capacity) {
		t->capacity = 2 * (t->size + size);
		t->data = realloc(t->data, t->capacity);
		assert(t->data);
	}
	if (size)
		memcpy(t->data + t->size, data, size);
	t->size += size;
}

static inline void tb_init(struct tb *t)
{
	struct tacho_trace_file file = {
		.major = TACHO_TRACE_MAJOR, .header_size = sizeof(file), .tag = TB_TAG};

	memset(t, 0, sizeof(*t));
	t->tag = TB_TAG;
	memcpy(file.magic, TACHO_TRACE_MAGIC, 8);
	file.crc = tacho__crc32c(0, &file, 60);
	tb_put(t, &file, sizeof(file));
}

/* `stored` is the payload as encoded; returns the offset of the block. */
static inline uint64_t tb_block(struct tb *t, uint16_t type, uint8_t encoding, const void *stored,
				uint32_t stored_size, uint32_t raw_size)
{
	static const uint8_t zeros[8];
	uint32_t padding = (8 - stored_size % 8) % 8;
	uint64_t offset = t->size;
	struct tacho_trace_block head = {
		.magic = TACHO_BLOCK_MAGIC,
		.type = type,
		.encoding = encoding,
		.stored_size = stored_size,
		.raw_size = raw_size,
		.number = t->blocks++,
		.tag = t->tag,
	};

	head.payload_crc = tacho__crc32c(0, stored, stored_size);
	head.payload_crc = tacho__crc32c(head.payload_crc, zeros, padding);
	head.crc = tacho__crc32c(0, &head, 28);
	tb_put(t, &head, sizeof(head));
	tb_put(t, stored, stored_size);
	tb_put(t, zeros, padding);
	t->index[t->index_count++] = (struct tacho_trace_index){
		.offset = offset, .size = (uint32_t)(t->size - offset), .type = type};
	return offset;
}

static inline uint64_t tb_plain(struct tb *t, uint16_t type, const void *payload, size_t size)
{
	return tb_block(t, type, TACHO_ENCODING_PLAIN, payload, (uint32_t)size, (uint32_t)size);
}

static inline void tb_array(struct tb *t, uint16_t type, const void *items, uint32_t entry_size,
			    uint32_t count)
{
	struct tb payload = {0};
	struct tacho_trace_array array = {entry_size, count};

	tb_put(&payload, &array, sizeof(array));
	tb_put(&payload, items, (size_t)entry_size * count);
	tb_plain(t, type, payload.data, payload.size);
	free(payload.data);
}

static inline void tb_meta_put(struct tb *payload, uint16_t key, const void *value, uint32_t size)
{
	static const uint8_t zeros[8];
	uint16_t zero = 0;

	tb_put(payload, &key, 2);
	tb_put(payload, &zero, 2);
	tb_put(payload, &size, 4);
	tb_put(payload, value, size);
	tb_put(payload, zeros, (8 - size % 8) % 8);
}

static inline void tb_meta_u64(struct tb *payload, uint16_t key, uint64_t value)
{
	tb_meta_put(payload, key, &value, 8);
}

/* META of the process `pid`, as a file taken at `taken` has it. */
static inline void tb_meta(struct tb *t, uint32_t pid, uint64_t taken)
{
	static const uint8_t boot[16] = {9, 9, 9};
	struct tb p = {0};

	tb_meta_u64(&p, TACHO_META_PID, pid);
	tb_meta_u64(&p, TACHO_META_START_TIME, 5);
	tb_meta_put(&p, TACHO_META_BOOT_ID, boot, 16);
	tb_meta_u64(&p, TACHO_META_CREATED_MONO, 500);
	tb_meta_u64(&p, TACHO_META_CREATED_REAL, 1000500);
	tb_meta_u64(&p, TACHO_META_TAKEN_MONO, taken);
	tb_meta_u64(&p, TACHO_META_CLOCK, TACHO_CLOCK_TSC);
	tb_meta_put(&p, TACHO_META_COMM, "traced", 6);
	tb_meta_u64(&p, 9999, 1); /* a key of the future */
	tb_plain(t, TACHO_BLOCK_META, p.data, p.size);
	free(p.data);
}

static inline void tb_definition(struct tb *payload, uint32_t id, uint8_t class, const void *data,
				 uint16_t size)
{
	static const uint8_t zeros[8];
	struct tacho_trace_def def = {id, size, class, 0};

	tb_put(payload, &def, sizeof(def));
	tb_put(payload, data, size);
	tb_put(payload, zeros, (8 - size % 8u) % 8);
}

static inline void tb_end(struct tb *t, int with_index)
{
	struct tacho_trace_end end = {0};

	if (with_index) {
		struct tb payload = {0};
		struct tacho_trace_array array = {sizeof(t->index[0]), t->index_count};

		tb_put(&payload, &array, sizeof(array));
		tb_put(&payload, t->index, sizeof(t->index[0]) * t->index_count);
		end.index_offset = t->size;
		tb_plain(t, TACHO_BLOCK_INDEX, payload.data, payload.size);
		free(payload.data);
	}
	end.blocks = t->blocks;
	end.part_size = t->sized ? t->size + sizeof(end) : 0;
	memcpy(end.magic, TACHO_TRACE_END_MAGIC, 8);
	end.crc = tacho__crc32c(0, &end, 20);
	end.crc = tacho__crc32c(end.crc, end.magic, 8);
	tb_put(t, &end, sizeof(end));
}

static inline void tb_free(struct tb *t)
{
	free(t->data);
	t->data = NULL;
}

#endif
