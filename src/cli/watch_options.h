/*
 * Options that `tacho run` and `tacho agent` share: when windows are kept, how many, and
 * continuous recording.
 */
#ifndef TACHO_CLI_WATCH_OPTIONS_H
#define TACHO_CLI_WATCH_OPTIONS_H

#include <stdbool.h>

#include "agent/engine.h"

#define WATCH_SERVICE_BYTES 63u

struct watch_options {
	struct tacho__engine_options engine; /* what is not given has its default after the check */
	struct tacho__voice voice;	     /* of the engine, on standard error */
	uint64_t unread;		     /* what it said while nobody read */
	bool quiet;			     /* it says no notes */
	bool ends; /* windows of processes that have ended are files of their own, without --on too */
	bool no_kernel, debuginfod, cooldown_given, after_given;
};

/* clang-format off */
#define WATCH_OPTIONS_ROWS(o) \
	{"on", .call = watch_condition, .arg = (o)}, \
	{"cooldown", .flag = &(o)->cooldown_given, .call = watch_time, \
	 .arg = &(o)->engine.rules.cooldown_ns}, \
	{"after", .flag = &(o)->after_given, .call = watch_time, \
	 .arg = &(o)->engine.rules.after_ns}, \
	{"keep", .call = watch_keep, .arg = (o)}, \
	{"max-bytes", .call = watch_bytes, .arg = &(o)->engine.max_bytes}, \
	{"exec", .call = watch_exec, .arg = (o)}, \
	{"continuous", .flag = &(o)->engine.continuous}, \
	{"segment-bytes", .call = watch_bytes, .arg = &(o)->engine.segment_bytes}, \
	{"segment-time", .duration = &(o)->engine.segment_ns}, \
	{"sched", .flag = &(o)->engine.sched}, \
	{"kernel", .flag = &(o)->engine.kernel}, \
	{"no-kernel", .flag = &(o)->no_kernel}, \
	{"no-symbols", .flag = &(o)->engine.no_symbols}, \
	{"no-redact", .flag = &(o)->engine.no_redact}, \
	{"debuginfod", .flag = &(o)->debuginfod}
/* clang-format on */
bool watch_condition(void *arg, const char *option, const char *text);
bool watch_time(void *arg, const char *option, const char *text);
bool watch_bytes(void *arg, const char *option, const char *text);
bool watch_keep(void *arg, const char *option, const char *text);
bool watch_exec(void *arg, const char *option, const char *text);
bool watch_service(void *arg, const char *option, const char *text); /* --service */

#define WATCH_OPTIONS_HELP                                                                  \
	"  --on CONDITION         keep a window when it holds: 'poll>50ms', 'wake>20ms',\n" \
	"                         'lag>100ms', 'sched>10ms', 'queue>1000', 'stall>2s';\n"   \
	"                         joined by 'and', 'or'; may be given again\n"              \
	"  --cooldown TIME        then keep no other window of it for TIME (60s)\n"         \
	"  --after TIME           take the window TIME after the condition held (1s)\n"     \
	"  --keep N               keep at most N windows, the newest\n"                     \
	"  --max-bytes BYTES      keep at most BYTES of windows, or of segments (1G)\n"     \
	"  --exec COMMAND         run this in a shell for each finished file, $1\n"         \
	"  --continuous           write all to segments in the folder -o DIR\n"             \
	"  --segment-bytes BYTES  a segment is finished at this size (64M)\n"               \
	"  --segment-time TIME    a segment is finished at this age (60s)\n"                \
	"  --sched                record context switches of loop threads, with perf\n"     \
	"  --kernel               CPU samples with frames of the kernel, with perf\n"       \
	"  --no-kernel            take nothing from the kernel with perf (the default)\n"   \
	"  --no-symbols           leave code addresses as they are\n"                       \
	"  --no-redact            keep passwords and tokens in command lines\n"             \
	"  --debuginfod           fetch missing debug files from DEBUGINFOD_URLS\n"

/* When all are there: contradictions, and defaults. `o` must stay where it is. */
int watch_options_check(struct watch_options *o);

#endif
