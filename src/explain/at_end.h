/*
 * What each thread of a process was in where its process ended, or when it was last seen alive: its
 * callback or work, and the call, lock, signal or loop that it waited for.
 */
#ifndef TACHO_EXPLAIN_AT_END_H
#define TACHO_EXPLAIN_AT_END_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "model/place.h"

enum tacho__at_end_in {
	TACHO__IN_NOTHING, /* it runs, or no wait is known */
	TACHO__IN_CALL,
	TACHO__IN_LOCK,
	TACHO__IN_SIGNAL, /* a condition variable or semaphore */
	TACHO__IN_PARK,
};

struct tacho__at_end {
	uint32_t process, thread, tid;
	const char *name;	   /* "": it has none */
	uint32_t crashed;	   /* signal that it got, 0 none */
	uint32_t kind;		   /* of the callback or work that it is in; 0 */
	uint8_t works;		   /* that is work of a pool */
	uint8_t in_turn;	   /* it is in a turn of a loop whose callbacks are not seen */
	uint64_t kind_ns;	   /* for so long it is in the callback, work or turn */
	struct tacho__place place; /* of the callback or work: function "": not known */
	enum tacho__at_end_in in;
	uint8_t known;	 /* it is known since when */
	uint8_t at_most; /* it may have begun later */
	uint64_t ns;	 /* for so long */
	uint32_t loop;	 /* definition, that it runs; 0 */
	uint32_t call;	 /* its name, a definition */
	int64_t on;	 /* descriptor, process or thread of the call; -1 none */
	uint64_t lock;
	uint32_t owner;		/* thread id of who has the lock; 0: not known */
	const char *owner_name; /* "": not known */
	struct tacho__place at; /* where it calls or waits; function and address 0: not known */
	uint64_t end_ns;	/* of the process */
};

/* The list, of all processes that were looked at; of each process, what tells most first. */
struct tacho__at_ends {
	const struct tacho_reader *reader;
	uint64_t
		last_ns; /* where the window ends: of a process that goes on behind it nothing is said */
	struct tacho__at_end *at;
	uint32_t count, capacity;
	int error; /* -ENOMEM */
};

void tacho__at_end_init(struct tacho__at_ends *to, struct tacho_reader *reader);
/* To subscribe to a tracker with. */
void tacho__at_end_left(void *to, const struct tacho__left *left);
/* Then: adds threads of the process that recorded nothing, and puts all in order. */
void tacho__at_end_finish(struct tacho__at_ends *to, uint32_t process);
/* All of it for all processes of the reader. 0 or a negative errno. */
int tacho__at_end_list(struct tacho_reader *reader, struct tacho__at_ends *to);
/* The process is gone and nobody saw when: what was open lasted until its last record, or longer. */
int tacho__ended_unseen(const struct tacho_process *p);
void tacho__at_end_free(struct tacho__at_ends *list);

/* It has nothing to do. */
int tacho__at_end_idles(const struct tacho__at_end *e);
/* "callback", "work", "turn"; "": none */
const char *tacho__at_end_inside(const struct tacho__at_end *e);
/* "call", "lock", "condition", "loop"; "": it waits for nothing that is known */
const char *tacho__at_end_waits(const struct tacho__at_end *e);
/* "in on_request (server.c:41) for 1.2 s, blocked in read on 5, called in fetch (server.c:17)" */
#define TACHO__AT_END_TEXT 1024u
const char *tacho__at_end_text(char out[TACHO__AT_END_TEXT], const struct tacho_reader *reader,
			       const struct tacho__at_end *e);

/* The wait alone: "blocked in read on descriptor 5"; "running" where none is known. */
const char *tacho__at_end_does(char out[TACHO__AT_END_TEXT], const struct tacho_reader *reader,
			       const struct tacho__at_end *e);
/* Of the process that was added last: the newest of the threads that the kernel called so; NULL: none. */
const struct tacho__at_end *tacho__at_end_of(const struct tacho__at_ends *list, uint32_t process,
					     uint32_t tid);

/* The part of the list that is of the process. */
struct tacho__at_end_part {
	const struct tacho__at_end *at;
	uint32_t count;
};
struct tacho__at_end_part tacho__at_end_part(const struct tacho__at_ends *list, uint32_t process);

#endif
