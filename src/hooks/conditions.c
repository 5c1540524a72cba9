/*
 * Condition variables and semaphores.
 *
 * Every wait for a condition is recorded: whoever calls it has found that it must wait.
 * A semaphore is tried first, like a lock. Both waits are points of cancellation, so
 * the table of waiters is left by a cleanup handler as well. (A cancelled wait for a
 * condition has its mutex again by the time that this handler runs.)
 *
 * A semaphore may be a lock: Python's are. It is one if each post was by a thread that had taken it,
 * and had not posted it since. Then who waits is held up by that thread; else it waits for somebody
 * to give it something, as idle threads do. One post by another thread settles it, for good.
 */
#include "hooks/hooks.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "hooks/foreign.h"
#include "hooks/handed.h"
#include "hooks/locks.h"

#if defined(__GLIBC__) /* of pthread_cleanup_push */
TACHO__WEAK(__pthread_register_cancel);
TACHO__WEAK(__pthread_unregister_cancel);
#endif

static void cancelled(void *wait)
{
	tacho__wait_end(wait, 0);
}

/* Sets `result` to that of the real `call`, made as a wait for `address`, and made again as long
   as `again` is true. */
#define WAIT(address, result, call, again, lock)                                                   \
	do {                                                                                       \
		struct tacho__wait w;                                                              \
                                                                                                   \
		tacho__wait_begin(&w, TACHO__FOR_SIGNAL, address, __builtin_return_address(0), 0); \
		pthread_cleanup_push(cancelled, &w);                                               \
		do                                                                                 \
			(result) = (call);                                                         \
		while (again);                                                                     \
		pthread_cleanup_pop(0);                                                            \
		w.is_lock = (lock);                                                                \
		tacho__wait_end(&w, !(result) || (result) == EOWNERDEAD);                          \
	} while (0)

static __attribute__((noinline)) uint64_t signalled(const void *address, enum tacho__wait_for what,
						    const void *caller)
{
	uint64_t waiters = tacho__recording() ? tacho__waiters_of(address) : 0;

	if (waiters)
		tacho__released(what, address, waiters, caller, NULL);
	return waiters;
}

/* ----------------------------------------------------------- conditions */

/* A wait that may be for work, and its end. */
#define WAIT_FOR(c, m, error, call)                                    \
	do {                                                           \
		tacho__mutex_released(m, __builtin_return_address(0)); \
		tacho__condition_waits(c, m);                          \
		WAIT(c, error, call, 0, 0);                            \
		tacho__condition_waited(c, m, tacho__taken_at(m));     \
	} while (0)

static inline void signals(pthread_cond_t *c, const void *caller)
{
	uint64_t waiters = 0;

	if (tacho__unlikely(tacho__maybe_awaited(c)))
		waiters = signalled(c, TACHO__FOR_SIGNAL, caller);
	if (tacho__unlikely(tacho__may_hand_over()))
		tacho__hands_over(c, waiters, caller);
}

TACHO_HOOK int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	int error;

	if (!tacho__recording())
		return REAL(pthread_cond_wait)(c, m);
	WAIT_FOR(c, m, error, REAL(pthread_cond_wait)(c, m));
	return error;
}

TACHO_HOOK int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
				      const struct timespec *until)
{
	int error;

	if (!tacho__recording())
		return REAL(pthread_cond_timedwait)(c, m, until);
	WAIT_FOR(c, m, error, REAL(pthread_cond_timedwait)(c, m, until));
	return error;
}

TACHO_HOOK int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				      const struct timespec *until)
{
	int error;

	if (!tacho__recording())
		return REAL(pthread_cond_clockwait)(c, m, clock, until);
	WAIT_FOR(c, m, error, REAL(pthread_cond_clockwait)(c, m, clock, until));
	return error;
}

TACHO_HOOK int pthread_cond_signal(pthread_cond_t *c)
{
	signals(c, __builtin_return_address(0));
	return REAL(pthread_cond_signal)(c);
}

TACHO_HOOK int pthread_cond_broadcast(pthread_cond_t *c)
{
	signals(c, __builtin_return_address(0));
	return REAL(pthread_cond_broadcast)(c);
}

/* ----------------------------------------------------------- semaphores */

#define HELD 8u	    /* semaphores that one thread has taken */
#define KNOWN 1024u /* semaphores that are told apart; of others none is a lock */
enum { IS_LOCK = 1, IS_NO_LOCK = 2 };

static uint64_t known[KNOWN]; /* address | what it is; 0: free */
static __thread struct held_semaphores {
	const sem_t *at[HELD];
	unsigned next;
} held __attribute__((tls_model("initial-exec")));

static void takes(const sem_t *s)
{
	struct held_semaphores *h = &held;

	for (unsigned i = 0; i < HELD; i++)
		if (h->at[i] == s)
			return;
	h->at[h->next++ % HELD] = s;
}

/* Whether the calling thread has it; then it does not any more. */
static int gives_back(const sem_t *s)
{
	struct held_semaphores *h = &held;

	for (unsigned i = 0; i < HELD; i++)
		if (h->at[i] == s) {
			h->at[i] = NULL;
			return 1;
		}
	return 0;
}

static uint64_t *known_slot(const sem_t *s)
{
	return &known[(tacho__mix((uint64_t)(uintptr_t)s >> 3) >> 32) % KNOWN];
}

static int is_lock(const sem_t *s)
{
	return tacho__load(known_slot(s)) == ((uint64_t)(uintptr_t)s | IS_LOCK);
}

static void learn(const sem_t *s, int had_it)
{
	uint64_t address = (uint64_t)(uintptr_t)s, *slot = known_slot(s), found = tacho__load(slot);

	if (!found)
		tacho__store(slot, address | (had_it ? IS_LOCK : IS_NO_LOCK));
	else if (found == (address | IS_LOCK) && !had_it)
		tacho__store(slot, address | IS_NO_LOCK);
}

/* Takes the semaphore if that needs no wait. Waits are points of cancellation even then. */
static int taken_at_once(sem_t *s)
{
	int saved = errno;

	pthread_testcancel();
	if (!REAL(sem_trywait)(s)) {
		takes(s);
		tacho__semaphore_taken(s);
		return 1;
	}
	errno = saved;
	tacho__hook.interrupted = 0;
	return 0;
}

/* Whether nothing but the signal of a CPU sample ended the wait. */
static int must_go_on(int result, int saved)
{
	if (tacho__likely(!result || errno != EINTR || !tacho__hook.interrupted))
		return 0;
	tacho__hook.interrupted = 0;
	errno = saved;
	return 1;
}

static int is_time(const struct timespec *t)
{
	return t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

/* What it returns: of a wait that the thread was in. */
#define WAIT_SEMAPHORE(s, result, call)                                       \
	do {                                                                  \
		int saved = errno;                                            \
                                                                              \
		if (taken_at_once(s))                                         \
			return 0;                                             \
		if (!is_lock(s))                                              \
			tacho__condition_waits(s, NULL);                      \
		WAIT(s, result, call, must_go_on(result, saved), is_lock(s)); \
		if (!(result)) {                                              \
			takes(s);                                             \
			tacho__condition_waited(s, NULL, NULL);               \
		}                                                             \
	} while (0)

/* What is taken while nothing is recorded may be given back when something is. */
static int noted(const sem_t *s, int result)
{
	if (!result)
		takes(s);
	return result;
}

TACHO_HOOK int sem_trywait(sem_t *s)
{
	return noted(s, REAL(sem_trywait)(s));
}

TACHO_HOOK int sem_wait(sem_t *s)
{
	int result;

	if (!tacho__recording())
		return noted(s, REAL(sem_wait)(s));
	WAIT_SEMAPHORE(s, result, REAL(sem_wait)(s));
	return result;
}

TACHO_HOOK int sem_timedwait(sem_t *s, const struct timespec *until)
{
	int result;

	if (!tacho__recording() || !is_time(until))
		return noted(s, REAL(sem_timedwait)(s, until));
	WAIT_SEMAPHORE(s, result, REAL(sem_timedwait)(s, until));
	return result;
}

TACHO_HOOK int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *until)
{
	int result;

	if (!tacho__recording() || !is_time(until) ||
	    (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
		return noted(s, REAL(sem_clockwait)(s, clock, until));
	WAIT_SEMAPHORE(s, result, REAL(sem_clockwait)(s, clock, until));
	return result;
}

TACHO_HOOK int sem_post(sem_t *s)
{
	uint64_t waiters = 0;

	learn(s, gives_back(s));
	if (tacho__unlikely(tacho__maybe_awaited(s)))
		waiters = signalled(s, is_lock(s) ? TACHO__FOR_LOCK : TACHO__FOR_SIGNAL,
				    __builtin_return_address(0));
	if (tacho__unlikely(tacho__may_hand_over()) && !is_lock(s))
		tacho__hands_over(s, waiters, __builtin_return_address(0));
	return REAL(sem_post)(s);
}
