/*
 * A subject whose every record can be told from every other, an agent that copies its box into
 * segments, and a reader that finds out what became of each record.
 *
 * Each writer of the subject counts its records. Record n is, by turns, the begin of a poll of
 * task n, a wake of task n, and the end of the poll; its kind changes every KIND_LASTS records.
 */
#ifndef TESTS_AGENT_RECORDING_H
#define TESTS_AGENT_RECORDING_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/segments.h"

#define WRITERS 8u
#define KIND_LASTS 3000u
#define KINDS 60u /* of one writer; then they come again */

/* Shared by subject, agent and test. */
struct recording {
	uint32_t writers;
	uint32_t pace_us;   /* that a writer sleeps after each burst; 0: it never does */
	uint32_t burst;	    /* records */
	uint64_t max_bytes; /* of the box */
	uint32_t quiet;	    /* writers that record three records only, and then wait */
	uint32_t address;   /* 1: kinds have that of recording_function */
	uint32_t lasts;	    /* records of one thread, then another goes on for the writer; 0: all */
	uint32_t stop;	    /* 1: writers end; 2: they ended */
	uint32_t how;	    /* the subject then ends: 0 _exit, 1 by a crash */
	uint64_t made[WRITERS];
	uint64_t allow[WRITERS]; /* a writer waits when it has made so many; 0: it never does */
	char box[512];
	pid_t pid;
};

void recording_function(void);
struct recording *recording_new(uint32_t writers, uint64_t max_bytes);
/* Starts the subject; its box is there when this returns. */
void recording_start(struct recording *r);
/* Where the box of r->pid is. */
void recording_find(struct recording *r);
/* Lets writers end, and the subject with them. */
void recording_stop(struct recording *r);
/* Each writer may make so many more: what is not yet delivered must fit the box, however slow
   this machine is. */
void recording_allow(struct recording *r, uint64_t more);
uint64_t recording_made(const struct recording *r);
/* Waits until all writers together have made so many. */
void recording_wait(struct recording *r, uint64_t made);

/* A folder for segments, removed with all that is in it. */
const char *segments_dir(void);
void segments_dir_remove(void);

struct heard {
	unsigned finished;
	unsigned said;
	char last[512]; /* sentence */
};
struct tacho__segments_options segments_options(struct heard *heard);
struct tacho__segments *segments_open(const struct tacho__segments_options *options);

/* What a folder, or a segment, holds. */
struct found {
	uint64_t events;
	uint64_t alone;	  /* of a folder: events of all its segments, each read alone */
	uint64_t missing; /* before the first record of a writer, and between */
	uint64_t gaps;	  /* records that gaps count */
	uint64_t repeated;
	uint64_t resumes; /* but the first of each stream */
	uint32_t gap_count;
	uint32_t reasons; /* bits, by enum tacho_gap_reason */
	uint32_t crashes;
	uint64_t next[WRITERS]; /* number after the last record */
	uint64_t hists;
};
/* Reads it and checks all that must hold of any: order, states, names, no problem. */
struct found recording_read(const char *path);
/* The folder holds all that was made, but what its gaps count. */
struct found recording_check(const struct recording *r);
/* The same for threads that do not last: each event once, and the numbers add up. */
struct found recording_count(const struct recording *r);
/* Files in the folder whose names end so. */
unsigned count_files(const char *end);
/* Calls `check` for each finished segment, in the order of names; how many there are. */
int each_segment(void (*check)(const char *path, unsigned index));
uint64_t folder_bytes(void);

#endif
