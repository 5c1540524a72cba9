/*
 * Waiting for what recorders say through the futexes of their boxes. One thread waits for more than
 * a hundred of them; it costs nothing while the recorded programs idle. Where the kernel can wait
 * for one at a time only (before Linux 5.16), it looks at all of them fifty times a second.
 */
#ifndef TACHO_AGENT_LISTENER_H
#define TACHO_AGENT_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tacho__listener;

/* One that is listened to. The program owns the file and may truncate it at any moment: its value is
   read with pread(2), and what is mapped is touched by the kernel alone. */
struct tacho__heard {
	int fd;
	off_t at;	       /* of the futex in the file */
	const uint32_t *futex; /* mapped */
	uint32_t seen;	       /* its value that is dealt with */
	bool poked;	       /* set when it changes */
	bool gone;	       /* the file has no futex any more: it is not listened to */
	int poke;	       /* eventfd that gets 1 then */
	struct tacho__listening *group;
};

/* NULL: out of memory. Threads are made when they are needed. */
struct tacho__listener *tacho__listener_new(void);
/* After all that was added has been removed. */
void tacho__listener_free(struct tacho__listener *l);

/* Both belong to the caller's thread. 0, or a negative errno: no memory, or no thread. */
int tacho__listener_add(struct tacho__listener *l, struct tacho__heard *h);
void tacho__listener_remove(struct tacho__heard *h);
/* As if it had changed. */
void tacho__heard_poke(struct tacho__heard *h);

#endif
