/*
 * The trace file (.tacho): one or more parts, each of one process and one stretch of time.
 *
 * The same format serves recordings, snapshots, segments, crash files and recovered boxes.
 * All integers little-endian. A part is
 *
 *   struct tacho_trace_file     64 bytes
 *   blocks                      each struct tacho_trace_block (32 bytes) and its
 *                               payload, padded with zeros to 8 bytes
 *   struct tacho_trace_end      32 bytes
 *
 * Every byte is covered by one CRC-32C (Castagnoli, reflected, initial and final
 * value ~0): that of the file header, of a block header, of a padded payload, or
 * of the end. So no damage goes unseen.
 *
 * PARTS follow each other without a gap, so files can be put together with cat(1). Each is
 * complete in itself: offsets in it count from its header. A reader finds them from the end of the
 * file backwards, as each end says how long its part is. Where that fails, it goes from block to
 * block, and a header (magic and right checksum, at a multiple of 8 bytes from the part before)
 * begins the next part. A part that is damaged does not concern the others.
 *
 * A DAMAGED FILE. A block whose payload fails its checksum is skipped by its
 * length. Where a block header fails, the reader searches on, in steps of 8
 * bytes, for the next header that has the magic, the file's tag and a right
 * checksum. Blocks are numbered without holes, so what is missing is known. No
 * end: the file was cut, or its writer died; what is there counts. The reader
 * reports each of these.
 *
 * ORDER. Blocks may come in any order. No block needs another but DEFINITIONS
 * (what ids mean) and, for CHUNK blocks, META and CLOCK (ticks to nanoseconds).
 *
 * VERSIONS. `major` changes when an older reader would misread the file; a
 * reader opens every file with its own major or a lower one. `minor` changes
 * when something is added that an older reader may skip: block types, keys of
 * META, record types, fields at the end of a payload's entries (entries carry
 * their size).
 */
#ifndef TACHO_FORMAT_TRACE_H
#define TACHO_FORMAT_TRACE_H

#include <stdint.h>

#include "format/box.h"

#define TACHO_TRACE_MAGIC "TACHOTRC"
#define TACHO_TRACE_END_MAGIC "TACHOEND"
#define TACHO_TRACE_MAJOR 1u
#define TACHO_TRACE_MINOR 4u
#define TACHO_BLOCK_MAGIC 0x4b4c4254u /* "TBLK" */
#define TACHO_BLOCK_MAX (16u << 20)   /* stored and raw size of a payload */
#define TACHO_BLOCK_EVENTS_MAX (1u << 20)
#define TACHO_COMMAND_LINE_MAX 4096u /* bytes of COMMAND_LINE */
#define TACHO_TRACE_PARTS_MAX 16384u /* of one file that a reader looks at: the last ones */

struct tacho_trace_file {
	char magic[8];
	uint16_t major;
	uint16_t minor;
	uint32_t header_size; /* of this struct: blocks begin here */
	uint32_t tag;	      /* repeated in each block of this file */
	uint32_t reserved;
	uint64_t created_real_ns;
	uint8_t reserved1[28];
	uint32_t crc; /* of the 60 bytes before */
};

enum tacho_encoding {
	TACHO_ENCODING_PLAIN = 0,
	TACHO_ENCODING_ZSTD = 1, /* one zstd frame */
};

enum tacho_block_type {
	TACHO_BLOCK_META = 1,
	TACHO_BLOCK_CLOCK = 2,
	TACHO_BLOCK_THREADS = 3,
	TACHO_BLOCK_DEFINITIONS = 4,
	TACHO_BLOCK_EVENTS = 5, /* records of one stream, as columns */
	TACHO_BLOCK_CHUNK = 6,	/* one chunk as it stood in the box */
	TACHO_BLOCK_HISTOGRAMS = 7,
	TACHO_BLOCK_LOSSES = 8,
	TACHO_BLOCK_TRIGGERS = 9,
	TACHO_BLOCK_CRASHES = 10,
	TACHO_BLOCK_SOURCES = 11,
	TACHO_BLOCK_INDEX = 12,
	TACHO_BLOCK_SYMBOLS = 13,
	/* 14 is not used */
	TACHO_BLOCK_GAPS = 15,
	TACHO_BLOCK_ABSENT = 16,
	TACHO_BLOCK_UNDERWAY = 17,
};

struct tacho_trace_block {
	uint32_t magic;
	uint16_t type;
	uint8_t encoding;
	uint8_t reserved;
	uint32_t stored_size; /* of the payload in the file, without padding */
	uint32_t raw_size;    /* once decoded; PLAIN: the same */
	uint32_t number;      /* of the block in this file, from 0 */
	uint32_t tag;
	uint32_t payload_crc; /* of the stored payload with its padding */
	uint32_t crc;	      /* of the 28 bytes before */
};

struct tacho_trace_end {
	uint64_t index_offset; /* of the INDEX block, or 0: there is none */
	uint64_t part_size;    /* from its header to the end of this; 0: not said */
	uint32_t blocks;       /* in the part */
	uint32_t crc;	       /* of the 20 bytes before and the 8 after */
	char magic[8];
};

/*
 * META: entries, each struct tacho_trace_meta and its bytes, padded to 8. Integers are
 * u64. A key that is not there was not known.
 */
struct tacho_trace_meta {
	uint16_t key; /* enum tacho_meta_key */
	uint16_t zero;
	uint32_t size; /* of the bytes */
};

enum tacho_meta_key {
	TACHO_META_PID = 1,
	TACHO_META_UID = 2,
	TACHO_META_START_TIME = 3, /* clock ticks since boot */
	TACHO_META_BOOT_ID = 4,	   /* 16 bytes */
	TACHO_META_EXE = 5,	   /* text */
	TACHO_META_COMM = 6,
	TACHO_META_BUILD_ID = 7,
	TACHO_META_SERVICE = 8,
	TACHO_META_CLOCK = 9, /* enum tacho_clock */
	TACHO_META_MAX_BYTES = 10,
	TACHO_META_MIN_AGE = 11,	/* ns */
	TACHO_META_POLL_THRESHOLD = 12, /* ns */
	TACHO_META_STATE = 13,		/* enum tacho_state, when the trace was taken */
	TACHO_META_REASON = 14,		/* text: why degraded */
	TACHO_META_PARENT_PID = 15,
	TACHO_META_BOX_NAME = 16,     /* text: file name of the box */
	TACHO_META_HOST = 17,	      /* text */
	TACHO_META_ARCH = 18,	      /* ELF e_machine */
	TACHO_META_CREATED_MONO = 19, /* ns: when recording began */
	TACHO_META_CREATED_REAL = 20,
	TACHO_META_TAKEN_MONO = 21, /* ns: when this trace was taken */
	TACHO_META_TAKEN_REAL = 22,
	TACHO_META_TAKEN_BY = 23,      /* enum tacho_taken_by */
	TACHO_META_VERSION = 24,       /* text: of the tacho that wrote the file */
	TACHO_META_ALIVE = 25,	       /* 1: the process ran when the trace was taken */
	TACHO_META_CUT_BEFORE = 26,    /* ns: events before were left out on request */
	TACHO_META_UNREAD_CHUNKS = 27, /* chunks overwritten or damaged while being copied */
	TACHO_META_THREADS_SEEN = 28,
	TACHO_META_WHY = 29,	      /* text: why this trace was taken; not there: the end of the
				      process, or somebody asked */
	TACHO_META_WHY_MONO = 30,     /* ns: when what WHY says happened */
	TACHO_META_SEGMENT = 31,      /* number of the segment, from 1, in its process's row */
	TACHO_META_RECORDING = 32,    /* number that all boxes of one `tacho run` share */
	TACHO_META_AGENT_CPU = 33,    /* ns of CPU time that the agent had used so far */
	TACHO_META_PAST = 34,	      /* of a segment: records, delivered before or lost, of streams
				      that it does not mention */
	TACHO_META_END_HOW = 35,      /* enum tacho_end */
	TACHO_META_END_STATUS = 36,   /* exit status, or number of the signal */
	TACHO_META_END_MONO = 37,     /* ns: when it ended, or was last seen alive */
	TACHO_META_END_FLAGS = 38,    /* TACHO_END_CORE and kin */
	TACHO_META_COMMAND_LINE = 40, /* text: the arguments, with spaces between */
	TACHO_META_IMPORTED = 41,     /* text: what it was made of, "a Go 1.26 execution trace" */
	TACHO_META_NAMES = 42,	      /* text: why some code addresses have no names */
};

/* CLOCK: u32 entry size, u32 count, struct tacho_anchor sorted by ticks. Between two
   anchors, and beyond them by the slope of first to last, time is linear. */

/* THREADS, UNDERWAY, HISTOGRAMS, TRIGGERS, CRASHES, SOURCES: u32 entry size, u32 count, entries
   as in box.h (struct tacho_box_thread etc.). Times in them are ticks: see CLOCK.
   LOSSES: the same with u64 entries. */
struct tacho_trace_array {
	uint32_t entry_size;
	uint32_t count;
};

/* What follows the crash is in entries of minor 3 alone. */
struct tacho_trace_crash {
	struct tacho_box_crash crash;
	char said[TACHO_ABORTED_MAX]; /* by the C library when it aborted the program */
};

/* DEFINITIONS: entries { u32 id, u16 size, u8 class, u8 flags, payload padded to 8 }. */
struct tacho_trace_def {
	uint32_t id;
	uint16_t size;
	uint8_t class;
	uint8_t flags;
};

/*
 * EVENTS: records of one stream, of a part of a chunk or of several that follow each other
 * (docs/format.md, section 11). struct tacho_trace_events, then open_listed struct tacho_open (their
 * `since` in nanoseconds, 0 unknown), then columns.
 *
 * TACHO_REC_TIME records are dissolved; times are CLOCK_MONOTONIC nanoseconds, also
 * those in the payloads of TACHO_REC_POLL_HIST and TACHO_REC_SCHED_INTERVAL.
 *
 *   types     u8 number T of the types that occur, u8 type of the first record, u8
 *             type of the last (both 0 without records); T times { u8 type, u32
 *             records }, in ascending order; then for each of them what follows it:
 *             u8 number A of types that do, those A types, and a column PLAIN with
 *             a value for each record of the type (but the block's last record):
 *             which of the A the next record has
 *   times     for each type in that order, and each of the A that follow it, a column
 *             PLAIN or DELTA with a value for each record of the first that is followed
 *             by one of the second: nanoseconds between the two. The first record of
 *             the block is at first_ns.
 *   lists     u8 number of lists (at most TACHO_COLUMN_LISTS); for each, u32
 *             distinct values D and a column of D values, PLAIN or DELTA
 *
 * Then, for each type that occurs, in ascending order, its columns, each with one
 * value per record of that type:
 *
 *   arg       the argument
 *   w0, w1    for types of one or two payload words
 *   words     for variable types: number of payload words; PLAIN of width 1
 *   data      for variable types: bits 16..63 of the first payload word
 *   w1 .. w3  for variable types: those payload words, of the records that have them
 *   rest      for variable types: all payload words from the fifth on, those of one
 *             record after those of the other; WORDS
 *
 * A column is { u8 transform, u8 width, body }.
 *
 *   width 0        no body, all values 0
 *   width 1..8     bytes of a value; the values are stored as so many planes, the
 *                  lowest bytes of all first
 *   width 0x81, 0x82, 0x84
 *                  values of 1, 2, 4 bits, the first in the lowest bits of the first
 *                  byte; the last byte is filled with zeros
 *
 *   transform 0 PLAIN   the values
 *   transform 1 DELTA   differences from the value before (first: from 0), as
 *                       zigzag: (d << 1) ^ (d >> 63)
 *   transform 2 DICT    { 2, width, u8 list, body }: what the value is in the list.
 *                       0: the next of its distinct values, which have the order
 *                       of their first appearance; k: the k-th in the order of last
 *                       use, 1 being the one used last. Columns may share a list,
 *                       and its uses are counted in the order of the records (and,
 *                       in one record, of its words): what is woken is polled soon
 *                       after. Only w0 .. w3.
 *   transform 3 MATE    { 3, 0, u32 N, column, column }: the argument goes with an item
 *                       of a list: that of w0, in variable types of w1, a column
 *                       that is DICT and has a value for every record. The first
 *                       column has N values: the arguments of the records whose item
 *                       comes for the first time with an argument that is MATE, in
 *                       any type. The second has those of the others: 0, the
 *                       argument is the one that the item had last; else it is
 *                       the value minus 1. Both PLAIN or DELTA. Only arg.
 *   transform 4 WORDS   values of eight bytes each, not in planes; width 8: text.
 *                       Only w0 .. w3 and rest.
 *
 * data is PLAIN or DELTA. Columns follow each other without padding. All
 * in all they take exactly the rest of the payload.
 *
 * A writer that ends a zstd block (ZSTD_e_flush) after each plane gives each its own
 * statistics; a reader need not know.
 */
struct tacho_trace_events {
	uint32_t size; /* of this struct */
	uint32_t thread;
	uint32_t tid;
	uint16_t stream;
	uint16_t open_count;
	uint32_t open_listed;
	uint32_t sequence; /* of the first chunk, or of the block before, if this one goes on */
	uint32_t flags;	   /* TACHO_CHUNK_*, TACHO_EVENTS_* */
	uint32_t loop;
	uint32_t count; /* records */
	uint32_t drops;
	uint64_t prior_records;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t park_ns; /* PARKED: since when */
	char name[16];
	uint64_t reserved;
};
#define TACHO_EVENTS_CUT 0x100u /* records of the chunk before the first were left out */

enum tacho_transform {
	TACHO_TRANSFORM_PLAIN = 0,
	TACHO_TRANSFORM_DELTA = 1,
	TACHO_TRANSFORM_DICT = 2,
	TACHO_TRANSFORM_MATE = 3,
	TACHO_TRANSFORM_WORDS = 4,
};
#define TACHO_COLUMN_BITS 0x80u /* in a width: of bits, not bytes */
#define TACHO_COLUMN_LISTS 8u	/* at most, in one block */
#define TACHO_COLUMN_WORDS 3u	/* words of variable records with columns of their own: w1 on */

/* CHUNK: the first `commit` bytes of the chunk (struct tacho_chunk and records). */

/*
 * SYMBOLS: what code addresses of the trace are called. struct tacho_trace_symbols; entries
 * (struct tacho_trace_symbol); frames (struct tacho_trace_frame); texts.
 *
 * An entry says which functions an address lies in: the innermost first, then those it was
 * inlined into. An address that will be returned to is that of the instruction after the
 * call, and may belong to something else; so for places, and all frames of a stack but one
 * that was interrupted (flag TACHO_DEF_EXACT, and frame 0 of crashes), the address looked
 * up, and the entry, is the one before. A text is given by its offset in the texts, each ended by a
 * zero; the first is empty and stands for "not known". A file may have several such
 * blocks, each complete in itself.
 */
struct tacho_trace_symbols {
	uint32_t size; /* of this struct */
	uint32_t entry_size;
	uint32_t entries;
	uint32_t frame_size;
	uint32_t frames;
	uint32_t text_bytes;
};

struct tacho_trace_symbol {
	uint64_t address;
	uint32_t module; /* definition that held the address; 0: code that no file holds */
	uint32_t first;	 /* of its frames */
	uint32_t frames;
	uint32_t reserved;
};

struct tacho_trace_frame {
	uint32_t function; /* text */
	uint32_t file;	   /* text */
	uint32_t line;	   /* 0: not known */
};

/*
 * GAPS: u32 entry size, u32 count, entries sorted by from_ns: stretches of time of which
 * something is missing that an agent should have delivered, and why.
 */
enum tacho_gap_reason {
	TACHO_GAP_NO_AGENT = 1,	  /* no agent ran */
	TACHO_GAP_NO_SPACE = 2,	  /* the disk, or the cap on it, was full */
	TACHO_GAP_UNWRITABLE = 3, /* the folder could not be written to */
	TACHO_GAP_TOO_FAST = 4,	  /* the process overwrote records before they were copied */
	TACHO_GAP_KERNEL = 5,	  /* the kernel dropped samples or switches */
	TACHO_GAP_IMPORT = 6,	  /* what the trace was made of is damaged or lacks it */
};
struct tacho_trace_gap {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
	uint64_t records;	 /* lost in it; 0 also when that is not known */
	uint32_t reason;	 /* enum tacho_gap_reason */
	int32_t error;		 /* errno, or 0 */
};

/*
 * ABSENT: u32 entry size, u32 count, entries: processes of the same `tacho run` that were seen and
 * have no box, and why; of an agent, the last that left a note. Each window and segment holds those
 * that were known when it was taken; an entry with the same pid and seen_ns is the same one.
 */
enum tacho_absent_reason {
	TACHO_ABSENT_RIGHTS = 1,      /* more rights than its caller (AT_SECURE) */
	TACHO_ABSENT_STATIC = 2,      /* linked statically */
	TACHO_ABSENT_MACHINE = 3,     /* made for another architecture */
	TACHO_ABSENT_LIBC = 4,	      /* made for another C library */
	TACHO_ABSENT_ENVIRONMENT = 5, /* cleaned, and nobody could give it back */
	TACHO_ABSENT_LIBRARY = 6,     /* the library could not be loaded where it runs */
	TACHO_ABSENT_EXCLUDED = 7,    /* --exclude names it */
	TACHO_ABSENT_IDLE = 8,	      /* it never waited, so there was nothing to record */
	TACHO_ABSENT_REFUSED = 9,     /* its recorder could not begin; `said` is why */
	TACHO_ABSENT_HIDDEN = 10,     /* it cannot be looked into */
};
struct tacho_trace_absent {
	uint32_t pid, parent_pid;
	uint32_t reason;  /* enum tacho_absent_reason */
	int32_t error;	  /* errno, or 0 */
	uint64_t seen_ns; /* CLOCK_MONOTONIC: when it was seen first */
	char comm[16];
	char exe[216];	/* path, cut; "" not known */
	char said[256]; /* what its recorder said, or "" */
};

/* INDEX: u32 entry size, u32 count, entries sorted by offset. */
struct tacho_trace_index {
	uint64_t offset; /* of the block */
	uint32_t size;	 /* header, payload and padding */
	uint16_t type;
	uint16_t stream;
	uint32_t thread;   /* EVENTS and CHUNK; else 0 */
	uint32_t count;	   /* records; CHUNK: 0, not counted */
	uint64_t first_ns; /* EVENTS; else 0 */
	uint64_t last_ns;
};

_Static_assert(sizeof(struct tacho_trace_file) == 64, "file header is 64 bytes");
_Static_assert(sizeof(struct tacho_trace_block) == 32, "block header is 32 bytes");
_Static_assert(sizeof(struct tacho_trace_end) == 32, "end is 32 bytes");
_Static_assert(sizeof(struct tacho_trace_meta) == 8, "head of a META entry is 8 bytes");
_Static_assert(sizeof(struct tacho_trace_events) == 96, "events header is 96 bytes");
_Static_assert(sizeof(struct tacho_trace_index) == 40, "index entry is 40 bytes");
_Static_assert(sizeof(struct tacho_trace_symbols) == 24, "symbols header is 24 bytes");
_Static_assert(sizeof(struct tacho_trace_symbol) == 24, "symbol is 24 bytes");
_Static_assert(sizeof(struct tacho_trace_frame) == 12, "frame is 12 bytes");
_Static_assert(sizeof(struct tacho_trace_gap) == 32, "gap is 32 bytes");
_Static_assert(sizeof(struct tacho_trace_absent) == 512, "absent process is 512 bytes");

#endif
