/*
 * One segment while it is written: blocks are appended one by one, each with one write(2), and
 * what failed is cut off again. So its file is whole up to the last block at any moment.
 *
 *	head	CLOCK, SOURCES, THREADS, LOSSES, TRIGGERS, CRASHES, DEFINITIONS; an EVENTS
 *		block without records for each stream, which says how far it had been
 *		delivered and what its thread was doing; ABSENT, if there are any; META. A file
 *		that has META has a whole head.
 *	body	EVENTS; DEFINITIONS before those that need them; GAPS after those that they
 *		stand before
 *	end	what is known by then: META, CLOCK, SOURCES, THREADS, LOSSES, TRIGGERS, CRASHES,
 *		ABSENT, SYMBOLS; INDEX and end mark
 */
#ifndef TACHO_AGENT_SEGMENT_FILE_H
#define TACHO_AGENT_SEGMENT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "write/columns_encode.h"
#include "agent/segment_folder.h"
#include "agent/segment_streams.h"
#include "symbols/addresses.h"
#include "write/trace_output.h"
#include "write/trace_write.h"

struct tacho_reader;

/* What was delivered before a segment begins. */
struct tacho__past {
	const struct tacho__streams *streams;
	const uint64_t *ns; /* for each stream: when its state is told of */
	uint64_t records;   /* of other streams */
};

struct tacho__segment {
	bool open;
	struct tacho__folder *folder;
	char name[TACHO__SEGMENT_NAME_MAX]; /* with ".part" */
	struct tacho__output out;
	bool torn;	   /* what failed could not be cut off yet */
	uint64_t head;	   /* bytes */
	uint64_t whole;	   /* bytes: the end of the last whole block */
	uint64_t flushed;  /* bytes: up to there the kernel was asked to write */
	uint64_t counted;  /* bytes: in folder->total */
	uint64_t first_ns; /* of its records; UINT64_MAX: there are none */
	struct tacho__encoder encoder;
	struct tacho__addresses addresses; /* of code, for symbols */
	bool no_symbols;
};

/* All of these return 0 or a negative errno, and leave the file whole. */

/* Makes the file and writes its head. */
int tacho__segment_begin(struct tacho__segment *g, struct tacho__folder *folder,
			 struct tacho_reader *facts, const struct tacho__past *past,
			 const struct tacho__trace_options *options);
int tacho__segment_definitions(struct tacho__segment *g, const struct tacho_reader *reader);
/* -EINVAL: such records can never be written. */
int tacho__segment_events(struct tacho__segment *g, const struct tacho__records *r);
/* TACHO_META_PAST from now on. */
int tacho__segment_past(struct tacho__segment *g, uint64_t records);
int tacho__segment_gap(struct tacho__segment *g, const struct tacho_trace_gap *gap);
/* `facts` NULL: the box is gone. `before` names the segment before it, or is "". The file gets
   its name, and the segment is closed. */
int tacho__segment_finish(struct tacho__segment *g, struct tacho_reader *facts, const char *before,
			  const struct tacho__trace_options *options);
/* Is the file still in the folder? */
bool tacho__segment_exists(const struct tacho__segment *g);
/* Closes the file as it is. */
void tacho__segment_close(struct tacho__segment *g);

/* Finishes a segment whose agent died; one without a whole head holds nothing and is deleted.
   1: `name` is the file now, 0: it was deleted. */
int tacho__segment_revive(struct tacho__folder *folder, char name[TACHO__SEGMENT_NAME_MAX],
			  bool no_symbols);

#endif
