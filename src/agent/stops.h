/*
 * Stops of a followed process: by a signal (SIGSTOP and kin), a debugger, or the freezer of its
 * cgroup. From inside nothing can be recorded of them, and afterwards a wait has just taken longer.
 *
 * A parent is told of both ends by the kernel. Of other processes, and of debuggers and freezers, it
 * shows where one looks: that is done while the process works, and as long as it is stopped. One
 * that idles is left alone, and so is not seen to be stopped.
 */
#ifndef TACHO_AGENT_STOPS_H
#define TACHO_AGENT_STOPS_H

#include <stdbool.h>
#include <stdint.h>

/* But for NONE in the order of the bits of the record. */
enum tacho__stop_how {
	TACHO__STOP_NONE,
	TACHO__STOP_SIGNAL,
	TACHO__STOP_TRACED,
	TACHO__STOP_FROZEN,
};

struct tacho__stop {
	enum tacho__stop_how how;
	uint64_t from_ns, seen_ns, until_ns; /* as in the record STOPPED */
	uint64_t first_ns;		     /* that it was seen */
};

struct tacho__stops {
	uint32_t pid;
	bool is_told;		/* of signals, by the kernel: that is enough, and wakes nobody up */
	struct tacho__stop now; /* how: NONE: it is not stopped */
	uint64_t ran_ns;	/* when that was last seen; 0: never */
	uint64_t look_ns;	/* next; UINT64_MAX: when it works again */
	uint64_t awake_ns;	/* it worked; until then it is looked at */
	char freezer[512];	/* file that says whether it is frozen; "": none */
};

void tacho__stops_begin(struct tacho__stops *s, uint32_t pid, bool is_told, uint64_t now);
/* It works. */
void tacho__stops_poked(struct tacho__stops *s, uint64_t now);
/* Looks, if that is due. *idle: it has not worked for a while; it should tell when it does. Whether
   a stop is over: *over. */
bool tacho__stops_look(struct tacho__stops *s, uint64_t now, bool *idle, struct tacho__stop *over);
/* The kernel says so. Whether a stop is over, as above. */
bool tacho__stops_told(struct tacho__stops *s, bool stopped, uint64_t now,
		       struct tacho__stop *over);
/* What is known of a stop that goes on; the rest of it is another one. */
bool tacho__stops_cut(struct tacho__stops *s, uint64_t now, struct tacho__stop *over);

#endif
