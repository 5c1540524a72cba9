/*
 * What the files that write a Perfetto trace share.
 *
 *   perfetto.c         tracks, slices, counters, flows: from facts to packets
 *   perfetto_packet.c  packets, interned names, stacks
 *   perfetto_slices.c  slices of one thread, put into their order
 *   perfetto_tracks.c  what slices and counters stand on
 *
 * One packet sequence. Names and stacks are interned: written once, with the first packet that
 * uses them, and numbered. When their tables are full, the sequence's state is cleared, as the
 * format foresees, and they are numbered anew. Packets need no order of time: the trace
 * processor sorts them, those of one instant by their order in the file.
 *
 * Numbers of fields: protos/perfetto/trace/ of github.com/google/perfetto.
 */
#ifndef TACHO_EXPORT_PERFETTO_H
#define TACHO_EXPORT_PERFETTO_H

#include "export/code.h"
#include "export/export.h"
#include "export/text.h"

enum tacho__pf_packet {
	PF_PACKET = 1, /* of a Trace */
	PF_CLOCK_SNAPSHOT = 6,
	PF_TIMESTAMP = 8,
	PF_SEQUENCE = 10,
	PF_TRACK_EVENT = 11,
	PF_INTERNED_DATA = 12,
	PF_SEQUENCE_FLAGS = 13,
	PF_DEFAULTS = 59,
	PF_TRACK_DESCRIPTOR = 60,
	PF_PERF_SAMPLE = 66,
};
enum tacho__pf_event {
	PF_EVENT_CATEGORY = 3, /* interned */
	PF_EVENT_ANNOTATION = 4,
	PF_EVENT_TYPE = 9,
	PF_EVENT_NAME = 10, /* interned */
	PF_EVENT_TRACK = 11,
	PF_EVENT_COUNTER = 30,
	PF_EVENT_DOUBLE = 44,
	PF_EVENT_FLOW = 47,
	PF_EVENT_FLOW_ENDS = 48,
	PF_EVENT_CALLSTACK = 56, /* interned */
};
enum tacho__pf_type { PF_SLICE_BEGIN = 1, PF_SLICE_END = 2, PF_INSTANT = 3, PF_COUNTER = 4 };
enum tacho__pf_annotation {
	PF_ANNOTATION_NAME = 1, /* interned */
	PF_ANNOTATION_BOOL = 2,
	PF_ANNOTATION_U64 = 3,
	PF_ANNOTATION_I64 = 4,
	PF_ANNOTATION_DOUBLE = 5,
	PF_ANNOTATION_TEXT = 6,
	PF_ANNOTATION_POINTER = 7,
};
/* What is interned, by its field in InternedData. */
enum tacho__pf_interned {
	PF_CATEGORIES = 1,
	PF_NAMES = 2,
	PF_ANNOTATION_NAMES = 3,
	PF_FUNCTIONS = 5,
	PF_FRAMES = 6,
	PF_CALLSTACKS = 7,
	PF_BUILD_IDS = 16,
	PF_PATHS = 17,
	PF_SOURCES = 18,
	PF_MAPPINGS = 19,
};

/* A slice or instant of a thread that is complete and waits for its place among others. */
struct tacho__pf_slice {
	uint64_t begin_ns, end_ns;
	uint64_t number; /* in the order in which they came */
	size_t body, body_size;
	int instant;
};

#define TACHO__PF_SLICES 128u /* of one thread that wait at most */

struct tacho__pf_thread {
	struct tacho__entry entry; /* key: process, thread */
	uint64_t track;
	uint32_t count, room;
	struct tacho__pf_slice *slices;
	struct tacho__proto bodies;
};

enum tacho__pf_track {
	PF_TRACK_PROCESS,
	PF_TRACK_THREAD,
	PF_TRACK_LOOP,	  /* on its thread */
	PF_TRACK_OFF_CPU, /* of a thread */
	PF_TRACK_HOLES,	  /* of a thread */
	PF_TRACK_COUNTER,
	PF_TRACK_DEPTH, /* of a loop's queue */
	PF_TRACK_LANE,	/* of spans that are not a thread's */
	PF_TRACK_SPAN,	/* that found no lane */
};

struct tacho__pf_lane_entry {
	struct tacho__entry entry; /* key: process, lane */
	uint64_t end_ns;
};

struct tacho__perfetto {
	struct tacho_reader *reader;
	const struct tacho__export_options *options;
	struct tacho__exported *exported;
	struct tacho__proto packet, interned;
	struct tacho__proto event; /* the body of one, without type and track */
	struct tacho__proto built; /* a whole one */
	struct tacho__codes codes;
	struct tacho__samplers samplers;
	struct tacho__table texts; /* interned text, by field and hash */
	struct tacho__table stacks, mappings;
	struct tacho__table threads, tracks, lanes;
	uint64_t slices, last_ns, cpu_ns;
	int cleared; /* the next packet says that nothing is interned */
	int error;
};

/* perfetto_packet.c */
/* A packet with `body` as its `field`; descriptors have no time. */
void tacho__pf_put(struct tacho__perfetto *p, uint32_t field, uint64_t ns,
		   const struct tacho__proto *body);
uint64_t tacho__pf_text(struct tacho__perfetto *p, enum tacho__pf_interned what, const char *text);
/* 0: it has no stack. */
uint64_t tacho__pf_stack(struct tacho__perfetto *p, const struct tacho__stack *stack);
/* Whether a table of names is about to be full. */
int tacho__pf_is_full(const struct tacho__perfetto *p);
void tacho__pf_clear(struct tacho__perfetto *p);

/* perfetto_tracks.c; each writes the descriptor when it is new, and returns the track's number */
uint64_t tacho__pf_thread_track(struct tacho__perfetto *p, uint32_t process, uint32_t thread);
uint64_t tacho__pf_loop_track(struct tacho__perfetto *p, uint32_t process, uint32_t thread,
			      uint32_t loop);
uint64_t tacho__pf_side_track(struct tacho__perfetto *p, enum tacho__pf_track track,
			      uint32_t process, uint32_t thread);
uint64_t tacho__pf_counter_track(struct tacho__perfetto *p, const struct tacho__counter *c);
uint64_t tacho__pf_lane(struct tacho__perfetto *p, const struct tacho__span *span);
uint64_t tacho__pf_tid(const struct tacho__perfetto *p, uint32_t process, uint32_t thread);

/* perfetto_slices.c */
/* Keeps p->event until its turn, and empties it. */
void tacho__pf_keep(struct tacho__perfetto *p, struct tacho__pf_thread *t, uint64_t begin_ns,
		    uint64_t end_ns, int instant);
void tacho__pf_flush(struct tacho__perfetto *p, struct tacho__pf_thread *t);
/* One slice on a track where nothing overlaps: at once. */
void tacho__pf_slice(struct tacho__perfetto *p, uint64_t track, uint64_t begin_ns, uint64_t end_ns);

#endif
