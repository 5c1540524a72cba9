/*
 * Blocking calls of loop threads: what their hooks share.
 *
 * A hook reads the clock before and after the real call and records nothing but a call
 * that took at least TACHO_CALL_THRESHOLD. On a thread that runs no loop it is the real
 * call and a branch.
 *
 * Hooks are declared here under names of their own and bound to libc's names by the
 * assembler. So no header of libc has a say in their types, and functions that take
 * "..." are written with all the arguments that they can take: on both architectures
 * these lie where variable arguments do, and what the caller did not give is passed on
 * unread.
 */
#ifndef TACHO_HOOKS_CALLS_H
#define TACHO_HOOKS_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "core/recorder.h"
#include "hooks/hooks.h"

/* A call that returned. */
struct tacho__blocking_call {
	uint64_t since, until; /* ticks */
	const char *name;
	const char *path; /* or the host, the command, the library; NULL none */
	int64_t number;	  /* descriptor, process or thread, below 0: none */
	int is_descriptor;
	int error; /* errno, or 0 */
	const void *caller;
};

/* The least that a recorded call takes, in ticks; 0 until that is known. */
extern uint64_t tacho__call_ticks;

/* Records the call if it was long enough. errno stays. */
void tacho__call_returned(const struct tacho__blocking_call *call) __attribute__((cold));

/* When the call began, or 0: it is not of interest. */
static inline uint64_t tacho__call_begins(void)
{
	if (tacho__likely(!tacho__on_loop_thread()) || !tacho__recording() || tacho__is_inside())
		return 0;
	return tacho__ticks();
}

/*
 * Reading and writing on descriptors that never block (O_NONBLOCK, and no file) is what an event
 * loop does all day, and reading the clock around it would cost more than all else that is
 * recorded. So it is not timed, unless every call is recorded (a threshold of 0). Which
 * descriptors these are is found out by asking the kernel, once one has been used some
 * times, and again after each slow poll: what was closed and opened again where no hook
 * sees it can hide one slow call, but not a second.
 */
#define TACHO__DESCRIPTORS 65536u
extern uint8_t tacho__never_blocks[TACHO__DESCRIPTORS]; /* equal to tacho__trusted: it does not */
extern uint8_t tacho__trusted;

/* A call on this descriptor was timed. errno stays. */
void tacho__descriptor_used(int fd) __attribute__((cold));

/* It may be another one from now on, or another kind of. */
static inline void tacho__descriptor_changed(int fd)
{
	if ((unsigned)fd < TACHO__DESCRIPTORS)
		tacho__store(&tacho__never_blocks[fd], 0);
}

static inline uint64_t tacho__transfer_begins(int fd)
{
	if (tacho__likely(!tacho__on_loop_thread()) ||
	    ((unsigned)fd < TACHO__DESCRIPTORS &&
	     tacho__load(&tacho__never_blocks[fd]) == tacho__load(&tacho__trusted)))
		return 0;
	return tacho__call_begins();
}

/*
 * Calls that make others which are hooked as well: getaddrinfo, dlopen and kin. What a
 * thread calls inside one is part of it and not recorded, whatever thread it is.
 * tacho__outer_begins gives 1 when this is the outermost.
 */
int tacho__outer_begins(void *frame);
void tacho__outer_ends(void);

/* Libraries may have been loaded or unloaded: if so, their addresses become known. */
void tacho__modules_check(void);
/* The same at the next recorded call, where it can't be done at once. */
void tacho__modules_later(void);

/* Defines the function that programs reach by `name`. */
#define TACHO__HOOKED(type, name, params)                \
	type tacho__hooked_##name params __asm__(#name); \
	TACHO_HOOK type tacho__hooked_##name params

#define TACHO__NEXT(name) TACHO__FIND(#name, __typeof__(&tacho__hooked_##name))

/* What a call is about: initializers of struct tacho__blocking_call. */
#define TACHO__FD(n) .number = (n), .is_descriptor = 1
#define TACHO__PATH(p) .number = -1, .path = (p)
#define TACHO__FD_PATH(n, p) .number = (n), .is_descriptor = 1, .path = (p)
#define TACHO__NUMBER(n) .number = (n) /* of a process or a thread; of what is closed */
#define TACHO__NOTHING .number = -1

/* Records the call that began at `since` and has just returned. */
#define TACHO__CALL_ENDS(since_ticks, text, wrong, ...)                                       \
	do {                                                                                  \
		uint64_t tacho__now;                                                          \
		if ((since_ticks) == 0)                                                       \
			break;                                                                \
		tacho__now = tacho__ticks();                                                  \
		if (tacho__likely(tacho__now - (since_ticks) < tacho__call_ticks))            \
			break;                                                                \
		tacho__call_returned(                                                         \
			&(struct tacho__blocking_call){.since = (since_ticks),                \
						       .until = tacho__now,                   \
						       .name = (text),                        \
						       .error = (wrong),                      \
						       .caller = __builtin_return_address(0), \
						       __VA_ARGS__});                         \
	} while (0)

/*
 * A hook: type, name, (parameters), (arguments), how `result` tells the error, and what
 * the call is about. The one for calls that set errno and return -1 is TACHO__CALL.
 */
#define TACHO__CALL_ERROR(type, name, params, args, wrong, ...)     \
	TACHO__HOOKED(type, name, params)                           \
	{                                                           \
		uint64_t since = tacho__call_begins();              \
		type result = TACHO__NEXT(name) args;               \
                                                                    \
		TACHO__CALL_ENDS(since, #name, wrong, __VA_ARGS__); \
		return result;                                      \
	}
#define TACHO__CALL(type, name, params, args, ...) \
	TACHO__CALL_ERROR(type, name, params, args, result < 0 ? errno : 0, __VA_ARGS__)

/* The same for one that reads or writes on the descriptor `fd`. */
#define TACHO__TRANSFER(type, name, params, args)                                              \
	TACHO__HOOKED(type, name, params)                                                      \
	{                                                                                      \
		uint64_t since = tacho__transfer_begins(fd);                                   \
		type result = TACHO__NEXT(name) args;                                          \
                                                                                               \
		if (tacho__unlikely(since)) {                                                  \
			TACHO__CALL_ENDS(since, #name, result < 0 ? errno : 0, TACHO__FD(fd)); \
			tacho__descriptor_used(fd);                                            \
		}                                                                              \
		return result;                                                                 \
	}

/* The same for one that makes a descriptor, or fails. */
#define TACHO__CALL_MAKING(name, params, args, ...)                                  \
	TACHO__HOOKED(int, name, params)                                             \
	{                                                                            \
		uint64_t since = tacho__call_begins();                               \
		int result = TACHO__NEXT(name) args;                                 \
                                                                                     \
		tacho__descriptor_changed(result);                                   \
		TACHO__CALL_ENDS(since, #name, result < 0 ? errno : 0, __VA_ARGS__); \
		return result;                                                       \
	}

/* The same for a call that makes others. */
#define TACHO__OUTER_CALL(type, name, params, args, wrong, ...)                  \
	TACHO__HOOKED(type, name, params)                                        \
	{                                                                        \
		uint64_t since = tacho__call_begins();                           \
		int outermost = tacho__outer_begins(__builtin_frame_address(0)); \
		type result = TACHO__NEXT(name) args;                            \
                                                                                 \
		if (outermost)                                                   \
			tacho__outer_ends();                                     \
		TACHO__CALL_ENDS(since, #name, wrong, __VA_ARGS__);              \
		return result;                                                   \
	}

#endif
