/*
 * Mutexes and rwlocks: only contended waits are recorded.
 *
 * A mutex that is free, as far as one can see, is left to the real function at once: one that is
 * taken between that look and the call, some nanoseconds, is waited for without a record.
 *
 * Else the hook tries first. An attempt that succeeds has done all that the real function
 * would have done, and so has one that fails with anything but EBUSY (EAGAIN of
 * recursive ones, EINVAL of priorities). EBUSY means that the thread has to wait, or that
 * the lock is its own, and leaves both to the real function.
 *
 * Where an attempt is not as good, it is not made. Clocks that libc doesn't know and times
 * that are none go to the real function, which refuses them. Robust mutexes are looked at
 * instead: glibc's trylock of one that is not recoverable leaves it locked, which its
 * lock doesn't. So a robust mutex that is released at the very moment is seen as a wait of
 * no length, and one that is taken at that moment is waited for without a record.
 */
#include "hooks/hooks.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/sys.h"
#include "hooks/handed.h"
#include "hooks/lock_words.h"
#include "hooks/locks.h"

static int is_own(const pthread_mutex_t *m)
{
	return tacho__mutex_owner(m) == tacho__gettid();
}

/* The type in PTHREAD_MUTEX_NORMAL to _ADAPTIVE_NP, without the flags for robust and so on. */
static int type_of(const pthread_mutex_t *m)
{
	return tacho__mutex_kind(m) & 3;
}

static int is_robust(const pthread_mutex_t *m)
{
	return (tacho__mutex_kind(m) & TACHO__KIND_ROBUST) != 0;
}

/* Whether a robust mutex has to be waited for, as far as one can see. */
static int looks_taken(const pthread_mutex_t *m)
{
	int lock = tacho__mutex_word(m);

	if (!(lock & TACHO__LOCK_OWNER) || (lock & TACHO__LOCK_OWNER_DIED))
		return 0;
	/* Not recoverable, in musl: refused at once. */
	if ((lock & TACHO__LOCK_OWNER) == TACHO__LOCK_OWNER)
		return 0;
	return type_of(m) != PTHREAD_MUTEX_RECURSIVE || !is_own(m);
}

/* An error-checking mutex that is the caller's is refused at once: no wait. */
static int is_refused(const pthread_mutex_t *m)
{
	return type_of(m) == PTHREAD_MUTEX_ERRORCHECK && is_own(m);
}

/* Whether unlocking it lets others have it. */
static int will_be_free(const pthread_mutex_t *m)
{
	if (type_of(m) == PTHREAD_MUTEX_RECURSIVE && tacho__mutex_count(m) > TACHO__COUNT_OF_ONE)
		return 0;
	return (type_of(m) != PTHREAD_MUTEX_RECURSIVE && type_of(m) != PTHREAD_MUTEX_ERRORCHECK) ||
	       is_own(m);
}

static int is_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* rwlocks look at the time before they look at the lock; without one they wait for good. */
static int is_time(const struct timespec *t)
{
	/* libc's headers say that it cannot be NULL. */
	__asm__("" : "+r"(t));
	return t && t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

/* What the real `call` gives, which is a wait unless it is certain to return `at_once`. */
#define WAIT(lock, caller, owner, at_once, call)                                           \
	(__extension__({                                                                   \
		struct tacho__wait w;                                                      \
		int no_wait = (at_once), error;                                            \
                                                                                           \
		if (!no_wait)                                                              \
			tacho__wait_begin(&w, TACHO__FOR_LOCK, (lock), (caller), (owner)); \
		error = (call);                                                            \
		if (!no_wait)                                                              \
			tacho__wait_end(&w, !error || error == EOWNERDEAD);                \
		error;                                                                     \
	}))
/* What the `attempt` gives, or when that says EBUSY the wait. */
#define TRY_THEN_WAIT(lock, attempt, owner, at_once, call)                                         \
	(__extension__({                                                                           \
		int attempted = (attempt);                                                         \
                                                                                                   \
		if (tacho__unlikely(attempted == EBUSY))                                           \
			attempted = WAIT(lock, __builtin_return_address(0), owner, at_once, call); \
		attempted;                                                                         \
	}))

/* -------------------------------------------------------------- mutexes */

#define MUTEX(m, call)                                                                           \
	TRY_THEN_WAIT(m, is_robust(m) ? EBUSY : REAL(pthread_mutex_trylock)(m),                  \
		      tacho__mutex_owner(m), (is_robust(m) && !looks_taken(m)) || is_refused(m), \
		      call)

static __attribute__((cold)) int first_lock(pthread_mutex_t *m);
static __attribute__((cold)) int first_unlock(pthread_mutex_t *m);

/* The real functions. At first they look themselves up, so that no call has to ask. */
static TACHO__HOT __typeof__(&pthread_mutex_lock) real_lock = first_lock;
static TACHO__HOT __typeof__(&pthread_mutex_unlock) real_unlock = first_unlock;

/* While it is being looked up something else stands in, which is not kept. */
static int first_lock(pthread_mutex_t *m)
{
	__typeof__(real_lock) real = REAL(pthread_mutex_lock);

	if (tacho__load(&tacho__lock_found[TACHO__LOCK_pthread_mutex_lock]))
		tacho__store(&real_lock, real);
	return real(m);
}

static int first_unlock(pthread_mutex_t *m)
{
	__typeof__(real_unlock) real = REAL(pthread_mutex_unlock);

	if (tacho__load(&tacho__lock_found[TACHO__LOCK_pthread_mutex_unlock]))
		tacho__store(&real_unlock, real);
	return real(m);
}

static inline struct tacho__hook_taken *taken_slot(const void *lock)
{
	uintptr_t a = (uintptr_t)lock, slot = (a ^ a >> 3) & 8 * (TACHO__TAKEN - 1); /* times 8 */

	return (struct tacho__hook_taken *)((uintptr_t)tacho__hook.taken + slot * 2);
}

static inline void note_taken(const void *lock, const void *code)
{
	*taken_slot(lock) = (struct tacho__hook_taken){lock, code};
}

const void *tacho__taken_at(const void *lock)
{
	const struct tacho__hook_taken *t = taken_slot(lock);

	return t->lock == lock ? t->code : NULL;
}

static __attribute__((noinline)) int lock_taken(pthread_mutex_t *m, const void *caller)
{
	int tried = EBUSY;

	if (!tacho__recording() || (is_robust(m) && !looks_taken(m)))
		return REAL(pthread_mutex_lock)(m);
	if (!is_robust(m))
		tried = REAL(pthread_mutex_trylock)(m);
	return tried != EBUSY ? tried
			      : WAIT(m, caller, tacho__mutex_owner(m), is_refused(m),
				     REAL(pthread_mutex_lock)(m));
}

static __attribute__((noinline)) int lock_for_work(pthread_mutex_t *m, const void *caller)
{
	tacho__comes_for_work(caller);
	return tacho__mutex_word(m) ? lock_taken(m, caller) : tacho__load(&real_lock)(m);
}

/* What is free is locked at the cost of two looks and two stores more. */
TACHO_HOOK int pthread_mutex_lock(pthread_mutex_t *m)
{
	note_taken(m, __builtin_return_address(0));
	if (tacho__unlikely(tacho__hook.work_mutex == m))
		return lock_for_work(m, __builtin_return_address(0));
	if (tacho__likely(!tacho__mutex_word(m)))
		return tacho__load(&real_lock)(m);
	return lock_taken(m, __builtin_return_address(0));
}

TACHO_HOOK int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	if (!tacho__recording())
		return REAL(pthread_mutex_timedlock)(m, until);
	return MUTEX(m, REAL(pthread_mutex_timedlock)(m, until));
}

TACHO_HOOK int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
				       const struct timespec *until)
{
	/* Not every glibc lets a mutex that inherits priorities wait on any clock. */
	if (!tacho__recording() || !is_clock(clock) ||
	    (tacho__mutex_kind(m) & TACHO__KIND_INHERITS))
		return REAL(pthread_mutex_clocklock)(m, clock, until);
	return MUTEX(m, REAL(pthread_mutex_clocklock)(m, clock, until));
}

static __attribute__((noinline)) void released(const pthread_mutex_t *m, const void *caller)
{
	uint64_t waiters = tacho__waiters_of(m);

	if (waiters && tacho__recording() && will_be_free(m))
		tacho__released(TACHO__FOR_LOCK, m, waiters, caller, tacho__taken_at(m));
}

void tacho__mutex_released(const pthread_mutex_t *m, const void *caller)
{
	if (tacho__unlikely(tacho__anyone_waits()))
		released(m, caller);
}

TACHO_HOOK int pthread_mutex_unlock(pthread_mutex_t *m)
{
	if (tacho__unlikely(tacho__anyone_waits()))
		released(m, __builtin_return_address(0));
	return tacho__load(&real_unlock)(m);
}

/* -------------------------------------------------------------- rwlocks */

/* The thread that writes is refused at once. */
#define READ(l, call)                                                                              \
	TRY_THEN_WAIT(l, REAL(pthread_rwlock_tryrdlock)(l), tacho__rwlock_writer(l), is_writer(l), \
		      call)
#define WRITE(l, call)                                                                             \
	TRY_THEN_WAIT(l, REAL(pthread_rwlock_trywrlock)(l), tacho__rwlock_writer(l), is_writer(l), \
		      call)

static int is_writer(const pthread_rwlock_t *l)
{
	return tacho__rwlock_writer(l) == tacho__gettid();
}

TACHO_HOOK int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	if (!tacho__recording())
		return REAL(pthread_rwlock_rdlock)(l);
	return READ(l, REAL(pthread_rwlock_rdlock)(l));
}

TACHO_HOOK int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *until)
{
	if (!tacho__recording() || !is_time(until))
		return REAL(pthread_rwlock_timedrdlock)(l, until);
	return READ(l, REAL(pthread_rwlock_timedrdlock)(l, until));
}

TACHO_HOOK int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock,
					  const struct timespec *until)
{
	if (!tacho__recording() || !is_clock(clock) || !is_time(until))
		return REAL(pthread_rwlock_clockrdlock)(l, clock, until);
	return READ(l, REAL(pthread_rwlock_clockrdlock)(l, clock, until));
}

TACHO_HOOK int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	if (!tacho__recording())
		return REAL(pthread_rwlock_wrlock)(l);
	return WRITE(l, REAL(pthread_rwlock_wrlock)(l));
}

TACHO_HOOK int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *until)
{
	if (!tacho__recording() || !is_time(until))
		return REAL(pthread_rwlock_timedwrlock)(l, until);
	return WRITE(l, REAL(pthread_rwlock_timedwrlock)(l, until));
}

TACHO_HOOK int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock,
					  const struct timespec *until)
{
	if (!tacho__recording() || !is_clock(clock) || !is_time(until))
		return REAL(pthread_rwlock_clockwrlock)(l, clock, until);
	return WRITE(l, REAL(pthread_rwlock_clockwrlock)(l, clock, until));
}

/* A reader's too, though others may go on reading: the last before the wait ends is the one. */
TACHO_HOOK int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	if (tacho__unlikely(tacho__anyone_waits()) && tacho__recording()) {
		uint64_t waiters = tacho__waiters_of(l);

		if (waiters)
			tacho__released(TACHO__FOR_LOCK, l, waiters, __builtin_return_address(0),
					NULL);
	}
	return REAL(pthread_rwlock_unlock)(l);
}
