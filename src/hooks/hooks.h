/*
 * What all hooks share.
 *
 * A hook is a function of libc, libuv or libevent defined again in
 * libtacho-preload.so, which the dynamic linker finds first. It calls the real one,
 * exactly once, with the caller's arguments, and returns what that returned; around
 * it, it records. What a hook must keep:
 *
 * - errno after the call is what the real function left there;
 * - nothing is allocated, nothing locked, and nothing of stdio used;
 * - it works before the library's constructor ran and after its destructor;
 * - the real function is a point of cancellation if it was one: no hook holds
 *   anything while it runs;
 * - when recording is off, it is the real function and a branch.
 */
#ifndef TACHO_HOOKS_HOOKS_H
#define TACHO_HOOKS_HOOKS_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "core/recorder.h"
#include "core/watched.h"
#include "format/definition.h"
#include "tacho.h"

#define TACHO_HOOK __attribute__((visibility("default")))

/* The next definition of `name` after ours, or NULL. */
void *tacho__real(const char *name);
/* Stands for a function that no library of the program has, such as epoll_pwait2 before glibc 2.35. A
   program that asks dlsym for it finds the hook. It fails with ENOSYS. */
void *tacho__absent_function(const char *name) __attribute__((cold));
/* memory.c: what is at `slot`, or `size` zero bytes put there, of several threads by one. NULL: there
   is no memory. */
void *tacho__map_once(void **slot, size_t size);

/* A real function, looked up when it is called first or by tacho__look_up_all. All of these lie in
   one section, for that. */
struct tacho__next {
	const char *name;
	void *found;
};
void *tacho__look_up(struct tacho__next *next) __attribute__((cold));
#define TACHO__IS_NEXT __attribute__((section("tacho_next"), used))

static inline void *tacho__found(struct tacho__next *next)
{
	void *found = __atomic_load_n(&next->found, __ATOMIC_RELAXED);

	return __builtin_expect(!found, 0) ? tacho__look_up(next) : found;
}

/*
 * Looks up what was not called yet: before dlopen, as looking up forgets what dlerror would have
 * told the program of it.
 */
void tacho__look_up_all(void);

#define TACHO__FIND(text, type)                                                       \
	(__extension__({                                                              \
		static struct tacho__next tacho__one TACHO__IS_NEXT = {(text), NULL}; \
		(type) tacho__found(&tacho__one);                                     \
	}))

/* The real function: TACHO_REAL(epoll_wait)(epfd, ...). */
#define TACHO_REAL(name) TACHO__FIND(#name, __typeof__(&name))

/* Of the waits of a thread (between.h). */
struct tacho__hook_between {
	const void *work;  /* where most of them are */
	const void *aside; /* where the last was, if not there */
	const void *code;  /* where one was between two of those */
	uint32_t waits;	   /* at `work`, less those elsewhere */
	uint32_t times;	   /* that one was at `code` alone */
};

/* Where it took a lock (locks.c). */
#define TACHO__TAKEN 8u
struct tacho__hook_taken {
	const void *lock, *code;
};
_Static_assert(sizeof(struct tacho__hook_taken) == 16, "as locks.c counts");

/* What hooks know of the calling thread: a cache line that callbacks, calls and locks look at, another
   one for each wait, and the rest. */
struct tacho__hook_thread {
	uint64_t edge;		/* see tacho__edge; 0 none */
	const void *work_mutex; /* it locks that when it comes for work (handed.h); NULL: none */
	uint64_t event_base;	/* of libevent that it runs; 0: none, or in one of its finalizers */
	uint32_t loop;		/* that it waited on last: a definition, 0 none */
	int32_t loop_fd;	/* descriptor of that loop, -1 poll and select */
	uint32_t loop_epoch;	/* of the box in which `loop` was looked up */
	uint32_t said;	     /* 1: it says by tacho.h that it runs a loop or polls tasks (said.c) */
	uint32_t serves;     /* 1: it is of a pool that does what loops give it to do */
	uint32_t inside;     /* hooks of libuv or libevent that call libc: these record nothing */
	uint32_t callbacks;  /* depth of callbacks that are running on this thread */
	uint32_t level;	     /* enum tacho_level of its loop */
	uint32_t base_depth; /* of callbacks where an event_base began to run, + 1; 0: none does */
	uint32_t uv_runs;    /* 1: a loop of libuv runs */

	uintptr_t outer; /* frame of a call that makes others (calls.c), 0 none */
	uint64_t turn;	 /* ticks of the unpark with which its turn began, 0 none */
	struct tacho__hook_between between;
	uint32_t epolls;      /* its waits in epoll; the older ones count less */
	uint32_t polls;	      /* those in poll and select */
	uint32_t sampled;     /* process (tacho__recorder) in which its CPU timer was made */
	uint32_t interrupted; /* 1: a sample's signal, and no other, ended its system call */

	uint64_t looked;  /* ticks of the last reading of sched.c, 0: none in this process */
	uint64_t delayed; /* ns runnable but not running, between the last two; -1 not known */
	uint64_t ran;	  /* ns that it ran in a slow turn, 0: not known */
	int32_t listener; /* socket from which listener_loop took a connection last */
	uint32_t listener_loop;
	uint32_t asides;  /* its waits in epoll that are on another set than the one before */
	uint32_t glanced; /* 1: it looked once, without a time-out, when it was no loop */
	uint64_t
		queue_looked; /* ticks when it told last how many wait to be accepted (clients.c) */
	uint32_t little_stack; /* 1: it has no room for the handler of samples */
	struct tacho__hook_taken taken[TACHO__TAKEN] __attribute__((aligned(64))); /* last */
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct tacho__hook_thread, outer) == 64, "callbacks look at one line");
_Static_assert(offsetof(struct tacho__hook_thread, looked) == 128, "waits at two");
extern __thread struct tacho__hook_thread tacho__hook __attribute__((tls_model("initial-exec")));

extern uint32_t tacho__unseen; /* 1: there were callbacks that are not seen */

/*
 * What follows at once shares a reading of the clock: the first callback with the unpark, a callback
 * with the end of the one before, the park with the last end. Nothing but code of libuv or libevent
 * runs between these, as long as all callbacks of the loop are seen, and its time counts to what
 * follows. An edge is where such a stretch begins; it is one while no other record comes.
 */
static inline void tacho__edge(uint64_t ticks, int in_loop)
{
	tacho__hook.edge = in_loop && !tacho__load(&tacho__unseen) ? ticks : 0;
}
/* Its ticks, or 0. */
static inline uint64_t tacho__shared(void)
{
	uint64_t edge = tacho__hook.edge;

	return edge == tacho__self->stream[0].last ? edge : 0;
}
/* The same for a callback that begins: code of the program follows, whether a record of the begin
   does or not. */
static inline uint64_t tacho__shared_last(void)
{
	uint64_t ticks = tacho__shared();

	tacho__hook.edge = 0;
	return ticks;
}
/* In loop_fd: what the thread waits on next is not known yet; it waits for clients (clients.c). */
#define TACHO__NO_LOOP_FD (-2)
#define TACHO__CLIENTS (-3)

/*
 * event.c: the loop of the event_base that runs on this thread, or 0. What the thread waits
 * for is its base's where the base itself waits, and not a callback that it runs.
 */
uint32_t tacho__event_loop(void);
static inline int tacho__event_waits(void)
{
	return tacho__hook.base_depth == tacho__hook.callbacks + 1;
}

/* uv.c: the loop of libuv that runs on this thread, if its waits are on `fd`; else 0. */
uint32_t tacho__uv_loop(int fd);

/* The thread runs the loop with this definition, whose waits are on `fd` (-1: poll, select). */
void tacho__loop_known(int fd, uint32_t loop, uint32_t level);

/* A loop of libuv or libevent was seen: its callbacks are recorded. */
void tacho__source_on(enum tacho_source source);

/*
 * samples.c: CPU samples of the calling thread from now on. A thread calls it when it begins;
 * loop threads do when they park (the check is a compare).
 */
void tacho__samples_thread(void);

/* In the constructor. */
void tacho__samples_begin(void);
int tacho__under_valgrind(void);
void tacho__signals_begin(void);
void tacho__sched_begin(void);
/* exec.c: `record`: what the program starts is to be recorded. */
void tacho__exec_begin(int record);
/* From now on it starts others as if there were no hook. */
void tacho__exec_end(void);
/* system(3) or popen(3) starts a shell: an agent is told if that cannot be recorded. Returns its
   argument. */
const char *tacho__shell_begins(const char *command);

/*
 * sched.c: a poll (where callbacks are not seen, an iteration of `loop`) that took `ticks` has just
 * ended. Records how the kernel treated the thread meanwhile if that was long (TACHO_SLOW_POLL), or if
 * the kernel ran others.
 */
void tacho__sched_polled(uint64_t ticks, uint32_t kind);
void tacho__sched_iterated(uint64_t ticks, uint32_t loop);

/* A call that was recorded, began at `since` (ticks) and took `ns`: how long of that the kernel ran
   others. */
void tacho__sched_called(uint64_t since, uint64_t ns);

/* A turn begins at `ticks`, after a wait or (0) without one; called when a look is due. */
void tacho__sched_turn(uint64_t ticks, int waited);

/* said.c: what threads say of themselves from now on counts. */
void tacho__said_begin(void);

/* seccomp.c: the program is about to restrict the system calls of this process or thread, in mode
   SECCOMP_MODE_STRICT or SECCOMP_MODE_FILTER. errno stays. */
void tacho__restricts(unsigned long mode, const void *filter) __attribute__((cold));

/* throttle.c: records how long a CPU quota has stopped the process so far. */
void tacho__throttle_read(void);

static inline void tacho__slow_poll(uint64_t ticks, uint32_t kind)
{
	if (__builtin_expect(ticks >= tacho__slow_ticks, 0))
		tacho__sched_polled(ticks, kind);
}

/* waits.c: a wait of a loop on `fd` (-1: on none that is known) that is neither of epoll nor of
   poll, begins: gives what ends it, or 0 when it is not recorded. */
uint32_t tacho__loop_parks(int fd, const char *what);
void tacho__loop_unparks(uint32_t loop, int ready);

/* threads.c: the kernel's number of a thread that is alive, 0 if it can't be told. */
uint32_t tacho__tid_of(pthread_t thread);

/* calls.c: the thread has just become one of a loop. */
void tacho__calls_loop(void);

/* calls.c: the thread is of a pool that does what a loop gives it to do. */
void tacho__serves(void);

/* calls.c: after a slow poll, what is known of descriptors is found out anew (calls.h). */
void tacho__descriptors_doubted(void);

/* calls.c: whether the call at tacho__hook.outer still runs, and this is inside of it. */
int tacho__inside_outer(void) __attribute__((cold, noinline));

/* Whether what the calling thread does is part of something that is recorded as a whole. */
static inline int tacho__is_inside(void)
{
	return tacho__hook.inside ||
	       (__builtin_expect(tacho__hook.outer != 0, 0) && tacho__inside_outer());
}

/* Whether the calling thread runs a loop, as its waits show or as it says: then its blocking calls
   are of interest, unless they are how it waits for work. */
static inline int tacho__on_loop_thread(void)
{
	return (tacho__hook.loop | tacho__hook.said) != 0 && !tacho__self->now.parked;
}

/* The same for threads of pools that do what loops give them to do. */
static inline int tacho__calls_matter(void)
{
	return (tacho__hook.loop | tacho__hook.said | tacho__hook.serves) != 0 &&
	       !tacho__self->now.parked;
}

#endif
