/*
 * The command line of `tacho run`, and the environment that it means.
 */
#ifndef TACHO_CLI_RUN_OPTIONS_H
#define TACHO_CLI_RUN_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Beside those of the command itself; as of shells, env(1) and timeout(1). */
enum run_status {
	RUN_FAILED = 125,    /* tacho itself could not go on */
	RUN_CANNOT = 126,    /* the command cannot be executed */
	RUN_NOT_FOUND = 127, /* there is no such command */
};

struct run_options {
	bool help;
	char folder[PATH_MAX]; /* for trace files */
	const char *file;      /* -o FILE; NULL: names of our own */
	bool replace, quiet, no_wait, no_symbols;
	int trigger; /* signal, 0: none */
	/* As they go into the environment; NULL: not given. */
	const char *max_bytes, *min_age, *poll_threshold, *call_threshold, *service;
	char *exclude;
};

/* 0, or the exit status after saying what is wrong. The command is at argv[optind]. */
int run_options_read(struct run_options *o, int argc, char **argv);

/* What LD_PRELOAD becomes; "" when `wanted` is false and there was none. 0 or the exit
   status. */
int run_preload(char *out, size_t size, bool wanted);

/* The environment of the command, for free(3); NULL without memory. */
char **run_environment(const struct run_options *o, const char *preload, const char *recording);

#endif
