/*
 * What `tacho export` and `tacho flame` share: some options, and where the result goes.
 */
#ifndef TACHO_CLI_EXPORTING_H
#define TACHO_CLI_EXPORTING_H

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "export/proto.h"

/* The stop function of those who read for long: shows progress (struct cli_progress), never stops. */
int exporting_progress(void *arg, uint64_t ns);
/* --weight: samples or ns (an int); false after saying that it is neither. */
bool exporting_weight(void *ns, const char *option, const char *text);

struct exporting {
	FILE *file;
	bool named; /* it goes to `output`, else to standard output */
	struct tacho__new_file output;
	struct tacho__sink sink;
};

/* To `path`; NULL and "-" are standard output, which takes no `binary` where it is a terminal.
   0 or -errno, after saying why. */
int exporting_begin(struct exporting *e, const char *path, bool force, bool binary);
/* Keeps the file if `error` is 0 and all could be written, else removes it and says why.
   Returns the status of the command. */
int exporting_end(struct exporting *e, int error);

/* Says what the model or the export had no room for. */
struct tacho__tracker_limits;
void exporting_warn(const struct tacho__tracker_limits *missed, uint64_t frames);

#endif
