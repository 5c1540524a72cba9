/*
 * Options that `tacho run` and `tacho agent` share: when windows are kept, how many, and
 * continuous recording.
 */
#ifndef TACHO_CLI_WATCH_OPTIONS_H
#define TACHO_CLI_WATCH_OPTIONS_H

#include <stdbool.h>

#include "agent/engine.h"

struct watch_options {
	struct tacho__engine_options engine; /* what is not given has its default after the check */
	struct tacho__voice voice;	     /* of the engine, on standard error */
	bool quiet;			     /* it says no notes */
	bool no_kernel, debuginfod, cooldown_given, after_given;
};

/* Rows for getopt_long, and what their values begin with. */
#define WATCH_OPTIONS_FIRST 512
enum {
	WATCH_ON = WATCH_OPTIONS_FIRST,
	WATCH_COOLDOWN,
	WATCH_AFTER,
	WATCH_KEEP,
	WATCH_MAX_BYTES,
	WATCH_EXEC,
	WATCH_CONTINUOUS,
	WATCH_SEGMENT_BYTES,
	WATCH_SEGMENT_TIME,
	WATCH_SCHED,
	WATCH_KERNEL,
	WATCH_NO_KERNEL,
	WATCH_NO_SYMBOLS,
	WATCH_DEBUGINFOD,
};
/* clang-format off */
#define WATCH_OPTIONS_ROWS \
	{"on", required_argument, NULL, WATCH_ON}, \
	{"cooldown", required_argument, NULL, WATCH_COOLDOWN}, \
	{"after", required_argument, NULL, WATCH_AFTER}, \
	{"keep", required_argument, NULL, WATCH_KEEP}, \
	{"max-bytes", required_argument, NULL, WATCH_MAX_BYTES}, \
	{"exec", required_argument, NULL, WATCH_EXEC}, \
	{"continuous", no_argument, NULL, WATCH_CONTINUOUS}, \
	{"segment-bytes", required_argument, NULL, WATCH_SEGMENT_BYTES}, \
	{"segment-time", required_argument, NULL, WATCH_SEGMENT_TIME}, \
	{"sched", no_argument, NULL, WATCH_SCHED}, \
	{"kernel", no_argument, NULL, WATCH_KERNEL}, \
	{"no-kernel", no_argument, NULL, WATCH_NO_KERNEL}, \
	{"no-symbols", no_argument, NULL, WATCH_NO_SYMBOLS}, \
	{"debuginfod", no_argument, NULL, WATCH_DEBUGINFOD}
/* clang-format on */

#define WATCH_OPTIONS_HELP                                                                  \
	"  --on CONDITION         keep a window when it holds: 'poll>50ms', 'wake>20ms',\n" \
	"                         'lag>100ms', 'sched>10ms', 'queue>1000', 'stall>2s';\n"   \
	"                         joined by 'and', 'or'; may be given again\n"              \
	"  --cooldown TIME        then keep no other window of it for TIME (60s)\n"         \
	"  --after TIME           take the window TIME after the condition held (1s)\n"     \
	"  --keep N               keep at most N of these windows\n"                        \
	"  --max-bytes BYTES      keep at most BYTES of them, or of segments (1G)\n"        \
	"  --exec COMMAND         run this in a shell for each finished file, $1\n"         \
	"  --continuous           write all to segments in the folder -o DIR\n"             \
	"  --segment-bytes BYTES  a segment is finished at this size (64M)\n"               \
	"  --segment-time TIME    a segment is finished at this age (60s)\n"                \
	"  --sched                record context switches of loop threads, with perf\n"     \
	"  --kernel               CPU samples with frames of the kernel, with perf\n"       \
	"  --no-kernel            take nothing from the kernel with perf (the default)\n"   \
	"  --no-symbols           leave code addresses as they are\n"                       \
	"  --debuginfod           fetch missing debug files from DEBUGINFOD_URLS\n"

/* One of the above, with optarg. 0 or CLI_USAGE after saying what is wrong. */
int watch_options_take(struct watch_options *o, int option);
/* When all are there: contradictions, and defaults. `o` must stay where it is. */
int watch_options_check(struct watch_options *o);

#endif
