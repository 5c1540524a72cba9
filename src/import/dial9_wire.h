/*
 * The wire format of dial9, version 1, as hostile input. Little-endian.
 *
 *   stream   headers and frames; a header may stand wherever a frame may begin
 *   header   54 52 43 00 ("TRC\0"), u8 version. What was said before it is forgotten: schemas, pools,
 *            time. What follows up to the next one is a batch: in most versions what one thread
 *            recorded, so that the batches of a file overlap in time.
 *   frame    u8 tag, and a body. No length: behind an unknown tag only the next header can be found.
 *     01 schema       u16 type; u16 n, name; u8 has time; u16 fields; each: u16 n, name, u8 type
 *     02 event        u16 type; if its schema has time: u24 ns since the event before; its fields
 *     03 strings      u32 count; each: u32 id, u32 n, bytes
 *     04 stacks       u32 count; each: u32 id, u32 n, n * u64, innermost first
 *     05 time         u64 ns: the next event is relative to that
 *     06 annotations  ULEB128 type; u16 count; each: u16 field, u16 n, key, u32 n, value
 *   field    by its type (enum tacho__dial9_type); with bit 7: a byte that says whether it is there
 *
 * What an event means is decided by the names of its schema and fields alone, never by its number.
 */
#ifndef TACHO_IMPORT_DIAL9_WIRE_H
#define TACHO_IMPORT_DIAL9_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "import/dial9_map.h"
#include "read/memory.h"

#define TACHO__DIAL9_HEADER 5u
#define TACHO__DIAL9_VERSION 1u
#define TACHO__DIAL9_OPTIONAL 0x80u
#define TACHO__DIAL9_VALUES \
	64u /* fields of an event that are looked at; the rest is stepped over */
#define TACHO__DIAL9_NESTING 8u /* lists and maps in each other */

enum tacho__dial9_type {
	TACHO__DIAL9_NONE = 0, /* in a list or map: absent, and a byte follows */
	TACHO__DIAL9_I64 = 1,
	TACHO__DIAL9_F64 = 2,
	TACHO__DIAL9_BOOL = 3,
	TACHO__DIAL9_STRING = 4, /* u32 n, bytes */
	TACHO__DIAL9_BYTES = 5,	 /* the same */
	TACHO__DIAL9_POOLED_STACK = 6,
	TACHO__DIAL9_POOLED_STRING = 7,
	TACHO__DIAL9_STACK = 8, /* u32 n, n * u64 */
	TACHO__DIAL9_VARINT = 9,
	TACHO__DIAL9_STRING_MAP = 10, /* u32 n; each: string, string */
	TACHO__DIAL9_U8 = 11,
	TACHO__DIAL9_U16 = 12,
	TACHO__DIAL9_U32 = 13,
	TACHO__DIAL9_LIST = 14, /* u32 n; each: u8 type, value */
	TACHO__DIAL9_MAP = 15,	/* u32 n; each: u8 type, key, u8 type, value */
};

struct tacho__dial9_field {
	const char *name;
	uint8_t type;
};

struct tacho__dial9_annotation {
	struct tacho__dial9_annotation *next;
	const char *key, *value;
	uint32_t field;
};

/* One for all schemas of all batches that are the same; it lives as long as the decoder. */
struct tacho__dial9_schema {
	const uint8_t *raw; /* the frame behind its type, by which it is known again */
	uint32_t raw_size;
	uint32_t number; /* from 1 */
	const char *name;
	uint32_t has_time, field_count;
	const struct tacho__dial9_field *fields;
	const struct tacho__dial9_annotation *annotations;
	uint64_t annotated; /* in which batch; 0: not yet */
	void *of;	    /* what the user of the decoder keeps with it */
};

struct tacho__dial9_pooled {
	const uint8_t *bytes;
	uint32_t size;	  /* in bytes, of stacks in frames */
	uint32_t user[2]; /* what the user of the decoder made of it; 0 nothing yet */
};

struct tacho__dial9_value {
	uint8_t type;	 /* without the bit for optional ones */
	uint8_t there;	 /* else it is absent, or its text or stack is in no pool */
	uint32_t size;	 /* of bytes; of stacks: frames */
	uint64_t number; /* numbers; f64: its bits; pooled: the id */
	const uint8_t
		*bytes; /* string, bytes, stack (u64, not aligned), list or map from its count on */
	struct tacho__dial9_pooled *pooled; /* for its `user` */
};

struct tacho__dial9_event {
	struct tacho__dial9_schema *schema;
	uint64_t ns; /* CLOCK_MONOTONIC; of one without time: that of the one before */
	uint32_t count;
	const struct tacho__dial9_value *values; /* `count` of them, in the order of the schema */
};

/* Why a batch ends where it does. */
enum tacho__dial9_end {
	TACHO__DIAL9_WHOLE, /* another header, or the end of the bytes */
	TACHO__DIAL9_CUT,   /* the bytes end in the middle of a frame */
	TACHO__DIAL9_TAG,   /* an unknown frame, whose number is `detail` */
	TACHO__DIAL9_TYPE,  /* an event without schema, `detail` */
	TACHO__DIAL9_FIELD, /* a field of an unknown type, `detail` */
	TACHO__DIAL9_DEEP,  /* lists in lists in lists */
	TACHO__DIAL9_NEWER, /* a version that is not known, `detail` */
	TACHO__DIAL9_STOP,  /* the user wanted no more */
	TACHO__DIAL9_MEMORY,
};

struct tacho__dial9_wire {
	const uint8_t *data;
	size_t size, at;
	uint64_t batch; /* its number, from 1 */
	uint64_t ns;	/* of the last event */
	uint32_t detail;
	struct tacho__arena arena; /* schemas */
	struct tacho__map known;   /* hash of a schema to its number */
	struct tacho__dial9_schema **schemas;
	uint32_t schema_count, schema_capacity;
	struct {
		struct tacho__dial9_schema *schema;
		uint64_t batch;
	} * types; /* by type, 65536 of them */
	struct tacho__dial9_pool {
		struct tacho__map ids; /* to index + 1 */
		struct tacho__dial9_pooled *all;
		uint32_t count, capacity;
	} strings, stacks;
	struct tacho__dial9_value values[TACHO__DIAL9_VALUES];
};

/* 0 or -ENOMEM. */
int tacho__dial9_wire_open(struct tacho__dial9_wire *w);
void tacho__dial9_wire_close(struct tacho__dial9_wire *w);

/* Whether a header begins there. */
int tacho__dial9_header(const void *data, size_t size);

/*
 * Decodes the batch whose header is at w->at of w->data, and goes to its end, or to where it could
 * not be read any further. `event` is called for each event, and ends it by returning other than 0.
 */
enum tacho__dial9_end
tacho__dial9_batch(struct tacho__dial9_wire *w,
		   int (*event)(void *arg, const struct tacho__dial9_event *e), void *arg);

/* The first header at or after w->at, or w->size. */
size_t tacho__dial9_next(const struct tacho__dial9_wire *w);

/* A value of the last event as text, zero-terminated: lists, maps and stacks in brackets, as far as
   there is room. Zero bytes in it are left out. */
void tacho__dial9_text(const struct tacho__dial9_wire *w, const struct tacho__dial9_value *v,
		       char *text, size_t size);
/* For who walks through a list or map: a value of `type` at w->at. */
enum tacho__dial9_end tacho__dial9_take(struct tacho__dial9_wire *w, uint8_t type, unsigned depth,
					struct tacho__dial9_value *v);

/* The next entry of a STRING_MAP; `at` is kept by the caller, 0 at first. 0: no more. Both are
   zero-terminated, and cut where they do not fit. */
int tacho__dial9_entry(const struct tacho__dial9_value *v, size_t *at, char *key, size_t key_size,
		       char *value, size_t value_size);

#endif
