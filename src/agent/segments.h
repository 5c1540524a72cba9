/*
 * Continuous recording: the records of followed boxes as rows of segments in one folder.
 *
 * A segment is a trace file of one process, complete in itself. It is written block by block
 * under a name that ends in ".part", and gets its own name when it is finished, so that an
 * agent that dies loses nothing that it had taken: the next one finishes what it finds, and
 * goes on where the last whole block ends. Which records of a stream have been delivered is
 * known from the segments themselves (prior_records + count).
 *
 * The folder belongs to one service, by a file in it that says so. All segments in it together
 * stay below a cap: the oldest go first. A folder that holds trace files, but not that file, is
 * somebody else's and refused; other files in it are left alone.
 *
 * The program that uses this ignores or blocks SIGXFSZ, so that a limit of the size of files
 * (ulimit -f) is an error and not its end.
 */
#ifndef TACHO_AGENT_SEGMENTS_H
#define TACHO_AGENT_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tacho__segments;
struct tacho__row; /* the segments of one box */

struct tacho__segments_options {
	const char *folder;
	const char *service;	/* whose folder it is; not "" */
	uint64_t segment_bytes; /* a segment is finished when it is larger; 0: not by size */
	uint64_t segment_ns;	/* ... or its first record is older than this; 0: not by time */
	uint64_t max_bytes;	/* of all segments in the folder; 0: no cap */
	bool no_symbols;
	/* What a dead agent left is finished with the first drain, or at the end: that may take
	   long, and a command waits to be started. */
	bool left_later;
	/* A segment was finished (path, with its size), or something must be said to a person:
	   one sentence, once for each change of state. */
	void (*finished)(void *arg, const char *path, uint64_t bytes);
	void (*say)(void *arg, const char *sentence);
	void *arg;
};

/*
 * Takes the folder: makes it if need be, finishes what a dead agent left. -EBUSY: another
 * agent has it; -EPERM: it is another service's; else as of open(2) and kin. `message` gets
 * one sentence, and nothing in the folder was changed.
 */
int tacho__segments_open(struct tacho__segments **out,
			 const struct tacho__segments_options *options, char *message,
			 size_t message_size);

/* Who is not recorded, as far as that is known, is in each segment. It outlives `s`. */
struct tacho__absent;
void tacho__segments_absent(struct tacho__segments *s, const struct tacho__absent *absent);

/* The box at `path`; NULL without memory. */
struct tacho__row *tacho__segments_row(struct tacho__segments *s, const char *path);

enum tacho__drain {
	TACHO__DRAIN_SEALED, /* what is in sealed chunks and not delivered */
	TACHO__DRAIN_ALL,    /* also what stands in chunks that threads still write to */
	TACHO__DRAIN_END,    /* the process is gone: all, and the segment is finished */
};

/* The arguments of its process, in place of what the box says; they outlive the row. */
void tacho__segments_command_line(struct tacho__row *row, const char *command_line);

/* How its process ended, before DRAIN_END: the row's last segment says so. `command_line`: as it
   was while it ran, or NULL; it outlives the row. */
struct tacho__trace_end;
void tacho__segments_end(struct tacho__row *row, const struct tacho__trace_end *end,
			 const char *command_line);

/* It is known that the process had not more rights than these. */
struct tacho__rights;
void tacho__segments_lower(struct tacho__row *row, const struct tacho__rights *rights);

/*
 * Copies into the row's segment what is new in its box. A disk that is full or a folder that
 * cannot be written to is no error: it is said once, remembered, tried again at the next
 * call, and becomes a gap in the next segment. Negative: the box itself cannot be read; with
 * DRAIN_END also that not all of it could be delivered (the box must be kept).
 */
int tacho__segments_drain(struct tacho__segments *s, struct tacho__row *row, enum tacho__drain how);

/*
 * What the kernel reported (agent/kernel.h) and is in no segment yet goes into the row's. For just
 * before a drain that may finish the segment. `lost`: how many the kernel dropped so far. Returns
 * how many of the stretches are dealt with; the others are to be given again.
 */
struct tacho__records;
uint32_t tacho__segments_kernel(struct tacho__segments *s, struct tacho__row *row,
				const struct tacho__records *records, uint32_t count,
				uint64_t lost);

/* When the next segment is due by time, CLOCK_MONOTONIC ns; UINT64_MAX: none. At or after it,
   call tacho__segments_drain(ALL) for the rows that tacho__row_due names. */
uint64_t tacho__segments_due(const struct tacho__segments *s);
bool tacho__row_due(const struct tacho__row *row, uint64_t now_ns);
/* Whether what went wrong last was the reading of the box, not the writing of segments. */
bool tacho__row_is_unreadable(const struct tacho__row *row);

/* After DRAIN_END, or to leave a process that runs on: finishes its segment. */
void tacho__row_free(struct tacho__segments *s, struct tacho__row *row);
void tacho__segments_close(struct tacho__segments *s);

#endif
