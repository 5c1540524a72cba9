/*
 * The command line of `tacho run`.
 */
#ifndef TACHO_CLI_RUN_OPTIONS_H
#define TACHO_CLI_RUN_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/run.h"
#include "cli/watch_options.h"

struct run_options {
	char folder[PATH_MAX]; /* for trace files and segments */
	char *exclude;
	struct watch_options watch;
	struct tacho__run_options run; /* all but what is to be run */
};

/* CLI_TAKEN, or the exit status after saying what is wrong. The command is at argv[optind]. */
int run_options_read(struct run_options *o, int argc, char **argv);

/* Whether windows can be saved there: 0 or a negative errno. Warns where there is little room. */
int run_check_folder(const struct watch_options *o, const char *folder);
/* Whether recorders will take TACHO_BOX_DIR. */
bool run_box_dir_is_good(void);
/* Of --continuous: `out` (-o DIR) or tacho-NAME here. It need not exist. 0 or the status. */
int run_segment_folder(char *folder, size_t size, const char *out, const char *name);

#endif
