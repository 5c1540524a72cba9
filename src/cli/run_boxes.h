/*
 * The boxes that `tacho run` or `tacho agent` follows: found when they are made, attended to
 * while their processes run, saved and deleted when these have ended.
 *
 * run_boxes.c   which there are
 * run_attend.c  what one of them wants: triggers, stalls, segments
 * run_save.c    windows into trace files
 */
#ifndef TACHO_CLI_RUN_BOXES_H
#define TACHO_CLI_RUN_BOXES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/demand.h"
#include "agent/kernel.h"

struct watch_options;

struct run_box {
	char *path;
	struct tacho__follow *follow; /* NULL: a note */
	ino_t inode;
	uint32_t pid, number;
	uint64_t start_time;
	char comm[17];
	int pidfd;    /* -1: none */
	bool ended;   /* the process has; what follows is for its box */
	bool done;    /* nothing more to do: left as it is, and why was said */
	bool note;    /* of a process that could not record */
	bool listens; /* its recorder tells us what happens */

	struct tacho__demand demand;
	struct tacho__stall *stall; /* NULL: nobody asked */
	uint64_t look_ns;	    /* at its loops next; UINT64_MAX: when it is poked */
	bool settled;		    /* its loops were parked, and the recorder tells when not */
	struct tacho__row *row;	    /* --continuous */
	uint64_t drain_ns;	    /* all of it next; UINT64_MAX: when it is poked */
	uint32_t sealed;	    /* chunks, when it was drained last */
	struct tacho__kernel *kernel;

	bool status_known; /* how it ended */
	int status;	   /* of wait(2) */
	uint64_t retry_ns; /* when it ended and could not be saved: next time */
};

/* Another agent, whose boxes become ours when it ends. */
struct run_other {
	uint32_t pid;
	int pidfd;
};

struct run_boxes {
	/* Set by the caller. */
	const struct watch_options *watch;
	uint64_t recording;  /* 0: all boxes, not those of one command */
	uint32_t command;    /* process id of the command */
	bool command_reaped; /* its wait status is in command_status */
	int command_status;
	bool all_users;	     /* boxes of all, not only this one's */
	const char *service; /* only boxes of this name; NULL: all */
	bool all_ends;	     /* keep also windows of processes that ended in order */
	bool closing;	     /* nothing is followed any longer than this turn */
	const char *folder;  /* for trace files */
	const char *file;    /* that was asked for with -o, or NULL; it is in folder */
	bool replace;	     /* ... if it exists */

	int inotify;
	int poke;     /* eventfd: a recorder wants attention */
	bool pending; /* a box is being made, or left to its tacho run: look again soon */
	bool waiting; /* there are boxes of ours for which there were no descriptors */
	bool silent;  /* folders that cannot be searched have been told */
	uint64_t begun_ns;
	struct run_box *boxes;
	size_t count;
	struct run_other *others;
	size_t other_count;

	struct tacho__keep *keep;
	struct tacho__exec *exec;
	struct tacho__segments *segments;
	struct run_box *current;	     /* that is being drained */
	struct tacho__kernel_options kernel; /* what the kernel tells of processes of ours */
	bool failing;			     /* the last window could not be saved */
	unsigned saved, failed, unwanted, segment_count, dropped;
	bool file_written;
	char last_reason[257];
	/* With -o FILE: the file that takes that name if the command itself has none. */
	char best[PATH_MAX];
	uint64_t best_events;
	uint32_t best_pid;
	char best_why[TACHO__WHY_MAX];
	bool best_waits; /* --exec gets it when its name stands */
};

/* Before the command starts: 0 or -errno, after saying why. */
int run_boxes_begin(struct run_boxes *b);

/* When there is something to do by itself, CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t run_boxes_due(const struct run_boxes *b);
/* Waits for that, for what the boxes want, for `signals` (a descriptor) and at most until
   `until`. Whether boxes may be new or processes may have ended. */
bool run_boxes_wait(const struct run_boxes *b, int signals, uint64_t until);
/* What is to be done after the wait. `look`: boxes may be new, processes may have ended. */
void run_boxes_work(struct run_boxes *b, bool look);

/* A child has ended: 1: it was a command of --exec. */
int run_boxes_reaped(struct run_boxes *b, pid_t pid, int status);
/* Saves the windows of those that run; they go on. */
void run_boxes_snapshot(struct run_boxes *b, const char *why);
bool run_boxes_crowded(const struct run_boxes *b);
/* Recorded processes that run. */
size_t run_boxes_alive(const struct run_boxes *b);
/* "nginx (17), nginx (18) and 3 more"; returns out. */
const char *run_boxes_names(const struct run_boxes *b, char *out, size_t size);
/* Lets go of those that run, gives FILE its name, deletes notes. What --exec has to do goes
   on: run_boxes_reaped. */
void run_boxes_end(struct run_boxes *b);
void run_boxes_free(struct run_boxes *b);

/* More processes may be followed than descriptors are usual. Not before a command starts,
   which inherits the limit. */
void run_raise_descriptors(void);
/* --continuous: takes the folder. 0 or -errno, after saying why. */
int run_boxes_segments(struct run_boxes *b, const char *service);
/* Waits for commands of --exec, at most half a minute or until somebody is impatient:
   `impatient` reads the signals, reaps children, and says so. */
void run_boxes_finish_exec(struct run_boxes *b, int signals, bool (*impatient)(void *), void *arg);
/* What all of it cost and came to. */
void run_boxes_summary(const struct run_boxes *b);

/* run_attend.c */
bool run_attend_setup(struct run_boxes *b);
void run_attend_begin(struct run_boxes *b, struct run_box *box);
void run_attend(struct run_boxes *b, struct run_box *box, uint64_t now);
uint64_t run_attend_due(const struct run_boxes *b, const struct run_box *box);
/* Into its segment; how: enum tacho__drain. */
int run_attend_drain(struct run_boxes *b, struct run_box *box, int how);
/* The process has ended, or we leave it: takes the last triggers. */
void run_attend_last(struct run_boxes *b, struct run_box *box);
void run_attend_end(struct run_boxes *b, struct run_box *box);

/* run_save.c: 0 or -errno, after saying why. */
int run_save_window(struct run_boxes *b, struct run_box *box, const char *why, uint64_t why_ns,
		    uint32_t trigger);
/* Of a process that has ended: saved and deleted, or remembered. */
void run_save_ended(struct run_boxes *b, struct run_box *box);
/* A file is finished: --exec gets it. */
void run_save_file(struct run_boxes *b, uint32_t pid, const char *path, const char *why);
/* The name of the best stands. */
void run_save_best(struct run_boxes *b);
uint64_t run_cpu_ns(void);

#endif
