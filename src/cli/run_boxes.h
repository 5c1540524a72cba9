/*
 * The boxes of one recording: found when they are made, saved as trace files and
 * deleted when their processes have ended.
 */
#ifndef TACHO_CLI_RUN_BOXES_H
#define TACHO_CLI_RUN_BOXES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct run_box {
	char *path;
	ino_t inode;
	uint32_t pid, number;
	uint64_t start_time;
	char comm[17];
	int pidfd;  /* -1: none */
	bool ended; /* the process has; what follows is for its box */
	bool done;  /* nothing more to do: left as it is, and why was said */
	bool note;  /* of a process that could not record */
};

struct run_boxes {
	/* Set by the caller. */
	uint64_t recording;
	uint32_t command;   /* process id of the command */
	const char *folder; /* for trace files */
	const char *file;   /* that was asked for with -o, or NULL; it is in folder */
	bool replace;	    /* ... if it exists */
	bool quiet;
	bool no_symbols; /* of code addresses in the files */

	int inotify;
	bool pending; /* a box is being made: look again soon */
	bool silent;  /* folders that cannot be searched have been told */
	struct run_box *boxes;
	size_t count;
	unsigned saved, failed;
	bool file_written;
	char last_reason[257];
	/* With -o FILE: the file that takes that name if the command itself has none. */
	char best[PATH_MAX];
	uint64_t best_events;
};

/* Before the command starts. The descriptor to wait for is in `inotify` (-1: none). */
void run_boxes_begin(struct run_boxes *b);
/* Finds new boxes, and which processes have ended. */
void run_boxes_scan(struct run_boxes *b);
/* Saves the windows of those that have ended. */
void run_boxes_save(struct run_boxes *b);
/* Saves the windows of those that run; they go on. */
void run_boxes_snapshot(struct run_boxes *b);
/* Recorded processes that run. */
size_t run_boxes_alive(const struct run_boxes *b);
/* "nginx (17), nginx (18) and 3 more"; returns out. */
const char *run_boxes_names(const struct run_boxes *b, char *out, size_t size);
/* Gives FILE its name, deletes notes, frees. */
void run_boxes_end(struct run_boxes *b);

#endif
