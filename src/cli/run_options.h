/*
 * The command line of `tacho run`, and the environment that it means.
 */
#ifndef TACHO_CLI_RUN_OPTIONS_H
#define TACHO_CLI_RUN_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/watch_options.h"

/* Beside those of the command itself; as of shells, env(1) and timeout(1). */
enum run_status {
	RUN_FAILED = 125,    /* tacho itself could not go on */
	RUN_CANNOT = 126,    /* the command cannot be executed */
	RUN_NOT_FOUND = 127, /* there is no such command */
};

struct run_options {
	bool help;
	char folder[PATH_MAX]; /* for trace files and segments */
	const char *file;      /* -o FILE; NULL: names of our own */
	bool replace, no_wait;
	struct watch_options watch;
	int trigger; /* signal, 0: none */
	/* As they go into the environment; NULL: not given. */
	const char *memory, *min_age, *poll_threshold, *call_threshold, *service;
	char *exclude;
};

/* 0, or the exit status after saying what is wrong. The command is at argv[optind]. */
int run_options_read(struct run_options *o, int argc, char **argv);

/* Whether windows can be saved there: 0, or RUN_FAILED after saying why not. */
int run_check_folder(const char *folder);
/* Whether recorders will take TACHO_BOX_DIR: 0, or RUN_FAILED after saying why not. */
int run_check_box_dir(void);
/* Of --continuous: `out` (-o DIR) or tacho-NAME here. It need not exist. 0 or the status. */
int run_segment_folder(char *folder, size_t size, const char *out, const char *name);
/* What a process or service is called, as a part of a name of a file. */
void run_plain_name(char *out, size_t size, const char *name);

/* What LD_PRELOAD becomes; "" when `wanted` is false and there was none. 0 or the exit
   status. */
int run_preload(char *out, size_t size, bool wanted);

/* The environment of the command, for free(3); NULL without memory. */
char **run_environment(const struct run_options *o, const char *preload, const char *recording);

#endif
