/* What a box holds now, as a trace file. */
#ifndef TACHO_SERVE_SNAPSHOT_H
#define TACHO_SERVE_SNAPSHOT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "text/end.h"
#include "write/trace_write.h"

struct tacho__snapshot_source {
	int box;
	const char *path;	     /* of the box, as a person reads it */
	uint64_t last_ns;	     /* only this long before its last event; 0: all */
	struct tacho__trace_end end; /* .how 0: as the box says */
};

struct tacho__snapshot {
	int fd; /* a file without a name; -1: none */
	uint32_t pid;
	uint64_t start_time;
	char comm[32];
	int alive;	    /* enum tacho_alive */
	char how[TEXT_END]; /* it ended */
	struct tacho__trace_result result;
};

/* Both: 0, or a negative errno with a sentence in `message`. */

int tacho__snapshot_take(struct tacho__snapshot *s, const struct tacho__snapshot_source *source,
			 char *message, size_t message_size);
/* Under a new name tacho-COMM-PID-TIME.tacho in the folder where the program was started; `name`
   gets it. */
int tacho__snapshot_keep(int fd, char name[NAME_MAX + 1], char *message, size_t message_size);

#endif
