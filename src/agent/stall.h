/*
 * Loops that do not come back, seen from outside.
 *
 * A loop that waits and returns says so in its records: it parks. One that has unparked and
 * not parked since is in a callback, spins, or waits for something that is no event; when that
 * takes longer than a limit, it is stalled. Where polls are recorded, the poll that is open
 * tells which it is; a poll that is open for longer than the limit is a stall also when the
 * thread waits inside of it, on another loop, and for a loop that never parks. A loop of level
 * API that goes from poll to poll without parking comes back with each of them.
 *
 * What threads wait for with the same loop, an epoll set that several of them serve, is one queue of
 * work. While one of them is parked in it nobody is stalled, whatever the others do: those that idle
 * on a condition, a futex, in a sleep or in accept until they are needed look like any that is
 * blocked. When none is, the queue is stalled since the last of them unparked.
 *
 * A thread is a loop if libuv, libevent or the program says so. Of others only their waits are
 * seen, and one that looks up a name waits as well, and then computes for as long as it likes:
 * they are loops from their TACHO__LOOP_WAITS'th wait on, which is more than a lookup or a short
 * request takes, and which a loop with something to do has behind it in no time.
 *
 * Not told: of a thread whose records were dropped or paused, as it may have parked unseen.
 *
 * The box is read with pread(2), from the thread table and the chunks that threads write to,
 * and of these only what is new since the last look.
 */
#ifndef TACHO_AGENT_STALL_H
#define TACHO_AGENT_STALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TACHO__LOOP_WAITS 8u

struct tacho__stall;

struct tacho__stalled {
	bool found;	    /* a loop is stalled; what follows is about the worst of them */
	bool fresh;	    /* this very stall was not told before; such ones come first */
	uint32_t tid;	    /* as the recorded process knows it */
	uint32_t thread;    /* number in the box */
	uint64_t since_ns;  /* CLOCK_MONOTONIC */
	uint64_t took_ns;   /* until now */
	uint32_t kind;	    /* of the poll that is open, 0: none is or it has none */
	char kind_name[64]; /* cut; "" when not known */
	char loop_name[64];
	uint32_t stalled; /* loops in all that are */
	uint32_t loops;	  /* threads that run one */
	/* Every loop is parked, or its stall was told: nothing new can be found until one
	   unparks (see `idle` in struct tacho_box_control). */
	bool idle;
	/* When the next look can find something, CLOCK_MONOTONIC; UINT64_MAX: idle. Loops
	   that unpark meanwhile have all of the limit before them. */
	uint64_t due_ns;
};

/*
 * `fd`: the box, open for reading, not closed here. `pid`: by which the caller knows the
 * process, to leave out threads that ended without telling; 0: not known. NULL without memory.
 */
struct tacho__stall *tacho__stall_new(int fd, pid_t pid);

/* 0; -EBADMSG: this is no box, or a damaged one; else what pread(2) met. Then *out says that
   nothing was found and not that loops are idle. */
int tacho__stall_look(struct tacho__stall *s, uint64_t limit_ns, struct tacho__stalled *out);
void tacho__stall_free(struct tacho__stall *s);

#endif
