/* A row of segments, as the files that fill it share it. */
#ifndef TACHO_AGENT_SEGMENT_ROW_H
#define TACHO_AGENT_SEGMENT_ROW_H

#include "agent/segment_file.h"
#include "agent/segments.h"
#include "base/rights.h"

#define TACHO__ROW_ANCHORS 64u

struct tacho__segments {
	struct tacho__segments_options options;
	struct tacho__folder folder;
	struct tacho__row *rows;
	const struct tacho__absent *absent; /* NULL: nobody looks for them */
	uint64_t opened_ns;
	bool unfinished;  /* there are segments of a dead agent that could not be finished */
	bool left_later;  /* nobody has looked for such yet */
	unsigned trouble; /* rows that could not be written */
	int error;	  /* that was said */
	bool emptied;	  /* by the cap, which was said */
};

struct tacho__row {
	struct tacho__segments *segments;
	struct tacho__row *next;
	char *path;
	int fd;		 /* of the box, which may be deleted at any moment */
	bool unreadable; /* the box was, when it was drained last */
	bool known;	 /* identity and all below are */
	bool taken;	 /* this agent has delivered all that it found at first */
	bool ended;	 /* all there will ever be has been delivered */
	bool finish;	 /* the segment must be finished before anything else */
	struct tacho__identity identity;
	uint32_t clock;
	uint64_t number;		      /* of its newest segment; 0: there is none */
	char before[TACHO__SEGMENT_NAME_MAX]; /* the newest finished segment, or "" */
	uint32_t crashes;		      /* that the newest segment tells of */
	struct tacho__streams streams;
	uint64_t kernel_lost, kernel_ns;
	uint64_t past; /* records of streams that will never come again */
	struct tacho__segment segment;
	uint64_t *defined; /* bits: definitions that the segment has */
	uint32_t defined_words;
	/* Comparisons of the clocks, the older the sparser. */
	struct tacho_anchor anchors[TACHO__ROW_ANCHORS];
	uint32_t anchor_count;
	struct tacho_trace_gap gap; /* not yet written; records 0: none */
	uint64_t gap_ns;	    /* the next gap begins later */
	uint64_t drained_ns;	    /* when all that was there had been taken; 0: never */
	uint32_t reason;	    /* enum tacho_gap_reason of what is wrong now; 0: nothing */
	int error;		    /* errno of it */
	uint64_t retry_ns;
	struct tacho__trace_end end; /* how: TACHO_END_UNTOLD while its process runs */
	const char *command_line;    /* in place of the box's, or NULL */
	struct tacho__rights rights; /* the least that its process was seen with */
};

/* segment_row.c; all but the obvious return 0 or -errno */

/* Opens the box, if it is not open. */
int tacho__row_open(struct tacho__row *row);
/* Compares the clocks, now and then. */
void tacho__row_compare(struct tacho__row *row);
/* Reads what is wanted of the box. */
struct tacho__news;
int tacho__row_read(struct tacho__row *row, struct tacho__news *news, struct tacho_reader **out);
/* All that the box knows but its records. */
int tacho__row_facts(struct tacho__row *row, struct tacho_reader **out);
struct tacho__trace_options tacho__row_options(const struct tacho__row *row);
/* Whether the segment has this definition. */
bool tacho__row_defines(const struct tacho__row *row, uint32_t id);
/* It has all those of the reader. */
int tacho__row_define(struct tacho__row *row, const struct tacho_reader *reader);
/* Writes the gap that is not yet written, if there is one. */
int tacho__row_gap(struct tacho__row *row);
/* Finishes the segment, if there is one. */
int tacho__row_finish(struct tacho__row *row);
/* Bytes at which a segment is finished. */
uint64_t tacho__row_limit(const struct tacho__segments *s);
bool tacho__row_is_due(const struct tacho__row *row, uint64_t now_ns);

/* segment_drain.c */

/* What is new in the box, into the row's segment. Negative: the box cannot be read; *wrong: why
   not all could be written, negative, or 0. */
int tacho__row_drain(struct tacho__row *row, enum tacho__drain how, int *wrong);
/* Begins a segment; none is open. 0 or -errno. */
int tacho__row_begin(struct tacho__row *row);

/* segment_known.c */

/* Whose the box is, and what the segments in the folder hold of it. 0 or -errno. */
int tacho__row_know(struct tacho__row *row, const struct tacho_reader *reader);

/* segment_kernel.c */

int tacho__row_kernel(struct tacho__row *row, const struct tacho__records *records, uint32_t count,
		      uint64_t lost, uint32_t *done);

/* segments.c */

/* Tells whoever wants to know of a finished segment. */
void tacho__segments_finished(struct tacho__segments *s, const char *name);
/* Keeps the cap, finishing segments early if nothing else helps. */
void tacho__segments_fit(struct tacho__segments *s);

#endif
