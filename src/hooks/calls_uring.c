/*
 * io_uring: waits for completions are waits of a loop, as those of epoll are; what only
 * submits is a call.
 *
 * Programs come here through libc's syscall() or through what liburing exports. liburing
 * itself uses instructions and no function of libc. Locks, conditions and parked threads of Rust and
 * of other runtimes come through syscall() as well: their futexes are waits as those for
 * conditions are.
 */
#include "hooks/calls.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "core/control.h"
#include "hooks/foreign.h"
#include "hooks/locks.h"

#if defined(__GLIBC__)
TACHO__WEAK(dladdr1);
#endif

#define ENTER_GETEVENTS 1u
#define FUTEX_WANTED 2u

/* -------------------------------------------------------------- syscall() */

/*
 * Every other system call goes on as it came: with its seven arguments in their places and
 * nothing of ours on the stack, as compilers make it of a last call.
 */
static long uring_enter(long number, long ring, long submit, long wait, long flags, long mask,
			long size);

/* The operations of seccomp(2) that restrict are one less than the modes of prctl. */
static __attribute__((noinline)) void restricts(long number, long a, long b, long c)
{
	if (number == SYS_seccomp)
		tacho__restricts((unsigned long)a + 1, (const void *)c);
	else if (a == PR_SET_SECCOMP)
		tacho__restricts((unsigned long)b, (const void *)c);
}

static int changes_user(long number)
{
	return number == SYS_setuid || number == SYS_setreuid || number == SYS_setresuid ||
	       number == SYS_setgid || number == SYS_setregid || number == SYS_setresgid;
}

/* The kernel changes it for the calling thread alone. */
static __attribute__((noinline)) long change_user(long number, long a, long b, long c);

static long futex(long number, long address, long what, long value, long timeout, long other,
		  long mask);

TACHO__HOOKED(long, syscall, (long number, long a, long b, long c, long d, long e, long f))
{
	if (tacho__unlikely(number == SYS_io_uring_enter))
		return uring_enter(number, a, b, c, d, e, f);
	if (number == SYS_futex && tacho__recording())
		return futex(number, a, b, c, d, e, f);
	/* libuv closes so. */
	if (number == SYS_close)
		tacho__descriptor_closed((int)a);
	if (tacho__unlikely(number == SYS_seccomp || number == SYS_prctl))
		restricts(number, a, b, c);
	if (tacho__unlikely(changes_user(number)))
		return change_user(number, a, b, c);
	return TACHO__NEXT(syscall)(number, a, b, c, d, e, f);
}

static __attribute__((noinline)) long change_user(long number, long a, long b, long c)
{
	long result = TACHO__NEXT(syscall)(number, a, b, c, 0, 0, 0);

	if (!result)
		tacho__user_changed();
	return result;
}

static __attribute__((noinline)) long uring_enter(long number, long ring, long submit, long wait,
						  long flags, long mask, long size)
{
	int waits = wait && flags & ENTER_GETEVENTS;
	uint32_t loop = waits ? tacho__loop_parks((int)ring, "io_uring") : 0;
	uint64_t since = TACHO__CALL_BEGINS(!waits && tacho__call_counts(), "io_uring_enter", ring);
	long result = TACHO__NEXT(syscall)(number, ring, submit, wait, flags, mask, size);

	if (loop)
		tacho__loop_unparks(loop, result < 0 ? 0 : (int)wait);
	TACHO__CALL_ENDS(since, "io_uring_enter", result < 0 ? errno : 0, TACHO__FD((int)ring));
	return result;
}

/*
 * Whether a futex is a lock, a condition or something else, only the program knows. Mutexes, of Rust and
 * of others, wait while theirs is 2: taken, and wanted. The counter of a condition is 2 once, when
 * it has been seen with other values, or woken when nobody waited; so what a word was first is kept.
 */
static enum tacho__wait_for futex_is_for(uint64_t address, int waits, uint32_t value)
{
	static uint8_t known[1024]; /* 0: not; 1 + enum tacho__wait_for */
	uint8_t *k = &known[tacho__mix(address >> 2) % sizeof(known)], was = tacho__load(k);

	if (!was || (waits && value != FUTEX_WANTED)) {
		was = (uint8_t)(1 + (waits && value == FUTEX_WANTED ? TACHO__FOR_LOCK
								    : TACHO__FOR_SIGNAL));
		tacho__store(k, was);
	}
	return (enum tacho__wait_for)(was - 1);
}

static __attribute__((noinline)) long futex(long number, long address, long what, long value,
					    long timeout, long other, long mask)
{
	const void *at = (const void *)(uintptr_t)address, *caller = __builtin_return_address(0);
	long command = what & FUTEX_CMD_MASK, result;
	int waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
	int wakes = command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET;
	enum tacho__wait_for lock_or_signal = TACHO__FOR_SIGNAL;
	uint64_t waiters = wakes ? tacho__waiters_of(at) : 0;
	struct tacho__wait w;

	if (waits || wakes)
		lock_or_signal = futex_is_for((uint64_t)address, waits, (uint32_t)value);
	if (waiters)
		tacho__released(lock_or_signal, at, waiters, caller, NULL);
	if (!waits)
		return TACHO__NEXT(syscall)(number, address, what, value, timeout, other, mask);
	tacho__wait_begin(&w, lock_or_signal, at, caller, 0);
	result = TACHO__NEXT(syscall)(number, address, what, value, timeout, other, mask);
	tacho__wait_end(&w, !result);
	return result;
}

/* --------------------------------------------------------------- liburing */

/* A handle of the library that holds this code, or NULL. */
static void *library_of(const void *code)
{
	Dl_info info;
#if defined(__GLIBC__)
	struct link_map *map = NULL;

	if (!tacho__is_foreign() && dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP))
		return map;
	return NULL;
#else
	return dladdr(code, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
#endif
}

/*
 * liburing may have been loaded for one library alone (RTLD_LOCAL), which still finds our
 * definitions first: then the real ones are those that the caller would have found.
 */
static void *real_of(const char *name, const void *caller, const void *ours)
{
	void *found = tacho__real(name), *library;
	int saved = errno;

	library = found ? NULL : library_of(caller);
	if (library)
		found = dlsym(library, name);
	errno = saved;
	/* Without liburing the caller has found ours, for instance with dlsym. */
	return found == ours ? NULL : found;
}

#define LATER(name)                                                                  \
	(__extension__({                                                             \
		static void *tacho__found;                                           \
		void *tacho__f = __atomic_load_n(&tacho__found, __ATOMIC_RELAXED);   \
		if (tacho__unlikely(!tacho__f)) {                                    \
			tacho__f = real_of(#name, __builtin_return_address(0),       \
					   (const void *)tacho__hooked_##name);      \
			__atomic_store_n(&tacho__found, tacho__f, __ATOMIC_RELAXED); \
		}                                                                    \
		(__typeof__(&tacho__hooked_##name))tacho__f;                         \
	}))

/* Functions of liburing return the error, below 0. One that its library does not have can't
   have been called through it. */
#define WAIT(name, params, args, wait)                                           \
	TACHO__HOOKED(int, name, params)                                         \
	{                                                                        \
		__typeof__(&tacho__hooked_##name) real = LATER(name);            \
		uint32_t loop;                                                   \
		int outermost, result;                                           \
                                                                                 \
		if (!real)                                                       \
			return -ENOSYS;                                          \
		loop = (wait) ? tacho__loop_parks(-1, "io_uring") : 0;           \
		outermost = tacho__outer_begins(__builtin_frame_address(0));     \
		result = real args;                                              \
		if (outermost)                                                   \
			tacho__hook.outer = 0;                                   \
		if (loop)                                                        \
			tacho__loop_unparks(loop, result < 0 ? 0 : (int)(wait)); \
		return result;                                                   \
	}

WAIT(__io_uring_get_cqe, (void *ring, void **done, unsigned submit, unsigned wait, void *mask),
     (ring, done, submit, wait, mask), wait)
WAIT(io_uring_wait_cqes, (void *ring, void **done, unsigned wait, void *time, void *mask),
     (ring, done, wait, time, mask), wait)
WAIT(io_uring_wait_cqes_min_timeout,
     (void *ring, void **done, unsigned wait, void *time, unsigned least, void *mask),
     (ring, done, wait, time, least, mask), wait)
WAIT(io_uring_wait_cqe_timeout, (void *ring, void **done, void *time), (ring, done, time), 1)
WAIT(io_uring_submit_and_wait, (void *ring, unsigned wait), (ring, wait), wait)
WAIT(io_uring_submit_and_wait_timeout,
     (void *ring, void **done, unsigned wait, void *time, void *mask),
     (ring, done, wait, time, mask), wait)
WAIT(io_uring_submit_and_wait_min_timeout,
     (void *ring, void **done, unsigned wait, void *time, unsigned least, void *mask),
     (ring, done, wait, time, least, mask), wait)
WAIT(io_uring_submit_and_wait_reg, (void *ring, void **done, unsigned wait, int index),
     (ring, done, wait, index), wait)
WAIT(io_uring_enter, (unsigned ring, unsigned submit, unsigned wait, unsigned flags, void *mask),
     (ring, submit, wait, flags, mask), flags &ENTER_GETEVENTS ? wait : 0)
WAIT(io_uring_enter2,
     (unsigned ring, unsigned submit, unsigned wait, unsigned flags, void *mask, size_t size),
     (ring, submit, wait, flags, mask, size), flags &ENTER_GETEVENTS ? wait : 0)
