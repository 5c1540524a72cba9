/*
 * The boxes that `tacho run` or `tacho agent` follows: found when they are made, attended to
 * while their processes run, saved and deleted when these have ended.
 *
 * engine.c         its life, and what it waits for
 * engine_boxes.c   which boxes there are
 * engine_attend.c  what one of them wants: triggers, stalls, segments
 * engine_save.c    windows into trace files
 */
#ifndef TACHO_AGENT_ENGINE_H
#define TACHO_AGENT_ENGINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/absent.h"
#include "agent/demand.h"
#include "agent/end.h"
#include "agent/kernel.h"
#include "agent/recording.h"
#include "agent/stops.h"
#include "agent/voice.h"
#include "base/rights.h"

#define TACHO__MESSAGE 1024u /* bytes for a sentence of the parts below */

/* Texts must outlive the engine. */
struct tacho__engine_options {
	const struct tacho__voice *voice;
	struct tacho__demand_rules rules; /* when windows are kept */
	uint64_t max_bytes;		  /* of windows or segments; 0: no cap */
	uint64_t segment_bytes, segment_ns;
	uint64_t recording; /* boxes of one command; 0: all */
	/* Whose segments they are. Without `recording`: only boxes of this name; NULL: all. */
	const char *service;
	const char *exec;    /* for each finished file; NULL: none */
	const char *folder;  /* for trace files */
	bool one_file;	     /* all windows are parts of one file, not files in folder */
	const char *file;    /* its name; NULL: one in folder, after the command */
	const char *command; /* name of the command, or NULL */
	uint32_t keep;	     /* windows; 0: all */
	bool replace;	     /* the file, if it exists */
	bool continuous;     /* all into segments */
	bool sched, kernel;  /* context switches, samples with frames of the kernel */
	bool no_symbols;
	bool no_redact; /* credentials among the arguments of processes are kept */
	bool names;	/* languages were told to write perf maps: they go with their process */
	bool all_users; /* boxes of all, not only this one's */
	bool all_ends;	/* keep also windows of processes that ended in order */
};

/* A box that is followed, and its process. */
struct tacho__followed {
	char *path;
	struct tacho__follow *follow; /* NULL: a note */
	ino_t inode;
	uid_t owner;		     /* of the file */
	struct tacho__rights rights; /* the least that its process was seen with */
	uint32_t pid, number;
	uint64_t start_time;
	char comm[17];
	uint32_t parent_pid; /* 0: not known */
	char *command_line;  /* when it was first seen; NULL: not known */
	int pidfd;	     /* -1: none */
	bool root_kept;	     /* its root folder is another one than ours (symbols/root.h) */
	bool ended;	     /* the process has; what follows is for its box */
	bool done;	     /* nothing more to do: left as it is, and why was said */
	bool note;	     /* of a process that could not record */
	bool listens;	     /* its recorder tells us what happens */

	struct tacho__demand demand;
	struct tacho__stall *stall; /* NULL: nobody asked */
	uint64_t look_ns;	    /* at its loops next; UINT64_MAX: when it is poked */
	bool settled;		    /* its loops were parked, and the recorder tells when not */
	struct tacho__row *row;	    /* with continuous */
	uint64_t drain_ns;	    /* all of it next; UINT64_MAX: when it is poked */
	uint32_t sealed;	    /* chunks, when it was drained last */
	uint32_t unrecorded;	    /* programs that it said it started */
	struct tacho__stops stops;
	struct tacho__kernel *kernel; /* what it tells, of stops also; NULL: nothing yet */

	struct tacho__kills kills;
	struct tacho__trace_end end; /* once it has ended */
	int exit_status;	     /* then, as a shell tells it; -1: its parent's secret */
	uint64_t retry_ns;	     /* when it ended and could not be saved: next time */
	uint32_t unreadable;	     /* how often its box could not be read */
};

/* A child that was reaped: its box may be found only now. */
#define TACHO__REAPED 64u
struct tacho__reaped {
	uint32_t pid;
	int status;
	uint64_t ns;
};

/* Another agent, whose boxes become ours when it ends. */
struct tacho__other_agent {
	uint32_t pid;
	int pidfd;
};

struct tacho__engine {
	struct tacho__engine_options options;
	const struct tacho__voice *voice;
	/* Set by who starts the command. */
	uint32_t command;	      /* its process id; 0: none */
	struct tacho__absent *absent; /* who is not recorded; NULL: nobody wants to know */
	bool closing;		      /* nothing is followed any longer than this turn */

	bool command_reaped;
	struct tacho__reaped reaped[TACHO__REAPED]; /* the last ones */
	uint32_t reaped_count;			    /* ever */
	int inotify;
	int *watches; /* of the folders that the last scan listed */
	size_t watch_count;
	int poke; /* eventfd: a recorder wants attention */
	struct tacho__listener *listener;
	bool pending; /* a box is being made, or left to its tacho run: look again soon */
	bool waiting; /* there are boxes of ours for which there were no descriptors */
	bool silent;  /* folders that cannot be searched have been told */
	uint64_t begun_ns;
	uint64_t scan_ns; /* not before, unless a process has ended: for new boxes */
	struct tacho__followed *boxes;
	size_t count;
	struct tacho__other_agent *others;
	size_t other_count;

	struct tacho__keep *keep;
	struct tacho__exec *exec;
	struct tacho__segments *segments;
	struct tacho__followed *current;     /* that is being drained */
	struct tacho__kernel_options kernel; /* what the kernel tells of processes of ours */
	bool failing;			     /* the last window could not be saved */
	bool no_segments; /* there should be, and their folder was not to be had */
	unsigned saved, failed, unwanted, segment_count, dropped;
	unsigned kept;			   /* of those that failed: in their boxes, and not named */
	struct tacho__recording recording; /* with one_file */
	char last_reason[257];
	bool size_said; /* that a box stays smaller than wanted */
};

/* Takes the folder of the segments, if there are to be any. This and the next: 0 or a negative
   errno, with a sentence in `message` (TACHO__MESSAGE bytes). After a failure of this one the engine
   can still be used: windows stay in their boxes. */
int tacho__engine_open(struct tacho__engine *e, const struct tacho__engine_options *options,
		       char *message);
/* Before the command starts. */
int tacho__engine_begin(struct tacho__engine *e, char *message);

/* When there is something to do by itself, CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t tacho__engine_due(const struct tacho__engine *e);
/* Waits for that, for what the boxes want, for `signals` (a descriptor) and at most until
   `until`. Whether boxes may be new or processes may have ended. */
bool tacho__engine_wait(const struct tacho__engine *e, int signals, uint64_t until);
/* What is to be done after the wait. `look`: boxes may be new, processes may have ended. */
void tacho__engine_work(struct tacho__engine *e, bool look);
/* New boxes, or the ends of some processes, cannot be waited for: look again now and then. */
bool tacho__engine_is_blind(const struct tacho__engine *e);

/* A child has ended: 1: it was a command of `exec`. */
int tacho__engine_reaped(struct tacho__engine *e, pid_t pid, int status);
/* A child was stopped, or runs again. */
void tacho__engine_told(struct tacho__engine *e, pid_t pid, bool stopped);
/* Saves the windows of those that run; they go on. */
void tacho__engine_snapshot(struct tacho__engine *e, const char *why);
/* Recorded processes that run; those that were started at `start` (ticks since boot) or later. */
size_t tacho__engine_alive(const struct tacho__engine *e);
size_t tacho__engine_alive_since(const struct tacho__engine *e, uint64_t start);
/* Since when a process records, CLOCK_MONOTONIC; UINT64_MAX: it does not. */
uint64_t tacho__engine_recorded_since(const struct tacho__engine *e, uint32_t pid);
/* "nginx (17), nginx (18) and 3 more"; returns out. */
const char *tacho__engine_names(const struct tacho__engine *e, char *out, size_t size);
/* Lets go of those that run, finishes the recording, deletes notes. What `exec` has to do goes
   on: tacho__engine_reaped. */
void tacho__engine_end(struct tacho__engine *e);
/* Then: waits for commands of `exec`, at most half a minute or until somebody is impatient:
   `impatient` reads the signals, reaps children, and says so. Says what all of it cost and came to,
   and frees what is left. */
void tacho__engine_finish(struct tacho__engine *e, int signals, bool (*impatient)(void *),
			  void *arg);
void tacho__engine_free(struct tacho__engine *e);

/* More processes may be followed than descriptors are usual. Not before a command starts,
   which inherits the limit. */
void tacho__raise_descriptors(void);

/* A warning of one of its parts; arg: the engine. */
void tacho__engine_warn(void *arg, const char *sentence);

/* engine_boxes.c: new boxes, and processes that have ended. */
void tacho__engine_scan(struct tacho__engine *e);
/* Whether so many descriptors are in use that those followed must end before others. */
bool tacho__engine_crowded(const struct tacho__engine *e);

/* engine_attend.c */
int tacho__attend_setup(struct tacho__engine *e, char *message);
int tacho__attend_segments(struct tacho__engine *e, char *message);
void tacho__attend_begin(struct tacho__engine *e, struct tacho__followed *box);
void tacho__attend(struct tacho__engine *e, struct tacho__followed *box, uint64_t now);
uint64_t tacho__attend_due(const struct tacho__engine *e, const struct tacho__followed *box);
/* Its process was stopped, or runs again. */
void tacho__attend_stop(struct tacho__engine *e, struct tacho__followed *box, bool stopped);
/* A stop that goes on is told as far as it has come. */
void tacho__attend_stopped(struct tacho__engine *e, struct tacho__followed *box);
/* Into its segment; how: enum tacho__drain. */
int tacho__attend_drain(struct tacho__engine *e, struct tacho__followed *box, int how);
/* The process has ended, or we leave it: takes the last triggers. */
void tacho__attend_last(struct tacho__engine *e, struct tacho__followed *box);
void tacho__attend_end(struct tacho__engine *e, struct tacho__followed *box);

/* engine_save.c: 0 or -errno, after saying why. */
int tacho__save_window(struct tacho__engine *e, struct tacho__followed *box, const char *why,
		       uint64_t why_ns, uint32_t trigger);
/* Of a process that has ended: saved and deleted, or remembered. */
void tacho__save_ended(struct tacho__engine *e, struct tacho__followed *box);
/* A file is finished: `exec` gets it. */
void tacho__save_file(struct tacho__engine *e, uint32_t pid, const char *path, const char *why);
/* All boxes are dealt with: the recording is finished. */
void tacho__save_recording(struct tacho__engine *e);

#endif
