/*
 * What the hooks of locks, condition variables, semaphores and threads share: the real
 * functions, and the table of who waits.
 *
 * A wait is recorded as LOCK_WAIT and LOCK_WAITED by the thread that waits. In between
 * it stands in the table, under the address that it waits for. Whoever is about to
 * release a lock, to signal a condition or to post a semaphore looks there first, and
 * records LOCK_RELEASE if there is somebody: that record and the LOCK_WAITED which
 * follows it are the edge from the releaser to the waiter.
 *
 * A release that begins before the waiter stands in the table, and ends after it, gives
 * no edge: some nanoseconds of a wait that then ends at once. And a thread that takes and
 * releases a lock over and over, before the waiter that it wakes gets hold of it, records
 * that every 100 us: the edge then begins that much too early.
 */
#ifndef TACHO_HOOKS_LOCKS_H
#define TACHO_HOOKS_LOCKS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

#include "base/hash.h"
#include "core/recorder.h"

/* ------------------------------------------------------- real functions */

/* The condition variables of before 2003 have the same names: not those. */
#if defined(__x86_64__)
#define TACHO__COND_VERSION "GLIBC_2.3.2"
#else
#define TACHO__COND_VERSION NULL
#endif

#define TACHO__LOCK_FUNCTIONS(X)                       \
	X(pthread_mutex_lock, NULL)                    \
	X(pthread_mutex_trylock, NULL)                 \
	X(pthread_mutex_timedlock, NULL)               \
	X(pthread_mutex_clocklock, NULL)               \
	X(pthread_mutex_unlock, NULL)                  \
	X(pthread_rwlock_rdlock, NULL)                 \
	X(pthread_rwlock_tryrdlock, NULL)              \
	X(pthread_rwlock_timedrdlock, NULL)            \
	X(pthread_rwlock_clockrdlock, NULL)            \
	X(pthread_rwlock_wrlock, NULL)                 \
	X(pthread_rwlock_trywrlock, NULL)              \
	X(pthread_rwlock_timedwrlock, NULL)            \
	X(pthread_rwlock_clockwrlock, NULL)            \
	X(pthread_rwlock_unlock, NULL)                 \
	X(pthread_cond_wait, TACHO__COND_VERSION)      \
	X(pthread_cond_timedwait, TACHO__COND_VERSION) \
	X(pthread_cond_clockwait, NULL)                \
	X(pthread_cond_signal, TACHO__COND_VERSION)    \
	X(pthread_cond_broadcast, TACHO__COND_VERSION) \
	X(sem_wait, NULL)                              \
	X(sem_trywait, NULL)                           \
	X(sem_timedwait, NULL)                         \
	X(sem_clockwait, NULL)                         \
	X(sem_post, NULL)                              \
	X(pthread_create, NULL)                        \
	X(pthread_setname_np, NULL)                    \
	X(prctl, NULL)

#define TACHO__LOCK_NUMBER(name, version) TACHO__LOCK_##name,
enum tacho__lock_function { TACHO__LOCK_FUNCTIONS(TACHO__LOCK_NUMBER) TACHO__LOCK_COUNT };

extern void *tacho__lock_found[TACHO__LOCK_COUNT];
void *tacho__lock_look_up(enum tacho__lock_function which);

static inline void *tacho__lock_real(enum tacho__lock_function which)
{
	void *f = tacho__load(&tacho__lock_found[which]);

	return tacho__likely(f) ? f : tacho__lock_look_up(which);
}

/*
 * The real function: REAL(pthread_mutex_lock)(mutex). Not TACHO_REAL: looking up may
 * allocate, and allocators take locks, which come here again.
 */
#define REAL(name) ((__typeof__(&name))tacho__lock_real(TACHO__LOCK_##name))

/* ---------------------------------------------------------------- waits */

enum tacho__wait_for {
	TACHO__FOR_LOCK = 0,   /* mutex, rwlock */
	TACHO__FOR_SIGNAL = 1, /* condition variable, semaphore: idle threads wait there */
};

#define TACHO__WAIT_GROUPS 256u
#define TACHO__WAIT_BUCKETS 1024u
#define TACHO__WAIT_WAYS 8u /* a cache line */

/* A slot is address << 16 | waiters, or 0. One address may stand in several slots of its
   bucket; its waiters are their sum. The memory is emptied in a child made by fork, where
   nobody waits. */
struct tacho__waiters {
	uint32_t locks; /* who wait for locks, in all */
	/* Who wait for signals, by a hash of the address: in many programs some thread idles at any
	   time, which must not cost those that signal others. */
	uint32_t signals[TACHO__WAIT_GROUPS];
	uint64_t slot[TACHO__WAIT_BUCKETS][TACHO__WAIT_WAYS] __attribute__((aligned(64)));
	/* Of each slot: who released it last, and when; 0 after somebody came to wait. */
	uint64_t last[TACHO__WAIT_BUCKETS][TACHO__WAIT_WAYS];
	/* Ticks since when somebody has stood in it and nobody got what he waits for. */
	uint64_t since[TACHO__WAIT_BUCKETS][TACHO__WAIT_WAYS];
};
extern struct tacho__waiters *tacho__waiters; /* never NULL */

struct tacho__wait {
	uint64_t address;
	uint64_t begun; /* ticks, 0 not recorded */
	uint64_t *slot; /* NULL: the table was full */
	enum tacho__wait_for what;
	int is_lock; /* a semaphore that is used as one */
};

/* The thread is about to wait; `caller` is where in the program; `owner` the thread that has it, 0:
   not known. Changes no errno. */
void tacho__wait_begin(struct tacho__wait *w, enum tacho__wait_for what, const void *address,
		       const void *caller, int owner);
/* It got what it waited for, or (0) gave up. Changes no errno. */
void tacho__wait_end(struct tacho__wait *w, int got);

/* The counter of what is at `address`. */
static inline uint32_t *tacho__waits_counter(struct tacho__waiters *t, enum tacho__wait_for what,
					     uint64_t address)
{
	return what == TACHO__FOR_LOCK ? &t->locks : &t->signals[tacho__mix(address >> 3) >> 56];
}

/* Whether anyone waits for any lock: what nearly every release finds out. */
static inline int tacho__anyone_waits(void)
{
	return tacho__load(&tacho__load(&tacho__waiters)->locks) != 0;
}

/* The same for a condition or semaphore: whether anyone may wait for it. */
static inline int tacho__maybe_awaited(const void *address)
{
	struct tacho__waiters *t = tacho__load(&tacho__waiters);

	return tacho__load(tacho__waits_counter(t, TACHO__FOR_SIGNAL,
						(uint64_t)(uintptr_t)address)) != 0;
}

/* How many wait for what is at `address`. */
uint64_t tacho__waiters_of(const void *address);
/* Records that they may go on soon. Before the release, as they may be faster. `taken`: where the
   thread took it, NULL: not known. */
void tacho__released(enum tacho__wait_for what, const void *address, uint64_t waiters,
		     const void *caller, const void *taken);
/* Where the calling thread took a mutex; NULL: not known. */
const void *tacho__taken_at(const void *lock);
/* Both, for a mutex that a wait for a condition is about to unlock. */
void tacho__mutex_released(const pthread_mutex_t *m, const void *caller);

/* The definition of a place in the code. */
uint32_t tacho__place(const void *code);

/* calls.c: the stack from the program's own frame on, which `caller` is in; before it the functions
   that jumped here, `count` of them (callers.h). */
uint32_t tacho__stack_from(const void *caller, const void *const *tails, unsigned count);

/* Stacks of long waits are taken only when this is set: getting ready for them allocates. */
extern int tacho__stacks_ready;

#endif
