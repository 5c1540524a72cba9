/*
 * What `tacho export` and `tacho flame` share: the stretch of time that is read, and where the
 * result goes.
 */
#ifndef TACHO_CLI_EXPORTING_H
#define TACHO_CLI_EXPORTING_H

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "export/proto.h"

/* Opens what lies between two instants. 0 or -errno, after saying why. */
int exporting_open(struct tacho_reader **reader, const char *path, const struct parse_instant *from,
		   const struct parse_instant *to);

struct exporting {
	FILE *file;
	bool named; /* it goes to `output`, else to standard output */
	struct output output;
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
