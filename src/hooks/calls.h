/*
 * Blocking calls: what their hooks share.
 *
 * On a thread that runs a loop, or that does what loops hand to it, a hook reads the clock before
 * and after the real call and records nothing but a call that took at least TACHO_CALL_THRESHOLD.
 * Before it, it says in the box which call it is, for one that never returns (struct
 * tacho_box_underway). On other threads that is all it does, and where the call reads or writes,
 * without asking the clock. A thread that has recorded nothing has no place in the box to say it:
 * there a hook is the real call and a branch. So it is, on every thread, where the call reads from or
 * writes to a descriptor that never waits.
 *
 * Hooks are declared here under names of their own and bound to libc's names by the assembler. So
 * no header of libc has a say in their types, and functions that take "..." are written with all
 * the arguments that they can take: on both architectures these lie where variable arguments do,
 * and what the caller did not give is passed on unread.
 */
#ifndef TACHO_HOOKS_CALLS_H
#define TACHO_HOOKS_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/recorder.h"
#include "hooks/alive.h"
#include "hooks/hooks.h"

/* A call that returned. */
struct tacho__blocking_call {
	uint64_t since, until; /* ticks */
	const char *name;
	const char *path; /* or the host, the command, the library; NULL none */
	int64_t number;	  /* descriptor, process or thread, below 0: none */
	int is_descriptor;
	int is_command; /* `path` is a line for a shell */
	int transfers;	/* it waits for nothing but the descriptor */
	int error;	/* errno, or 0 */
	const void *caller;
};

/* The least that a recorded call takes, in ticks; 0 until that is known. */
extern uint64_t tacho__call_ticks;

/* Records the call if it was long enough. errno stays. */
void tacho__call_returned(const struct tacho__blocking_call *call) __attribute__((cold));

/*
 * The definition of the name of a call, a literal, looked up once in each box: `known` keeps it as
 * epoch << 32 | id. Of a thread that writes to a box; 0: not to the one that there is.
 */
uint32_t tacho__name_look_up(const char *name, uint64_t *known) __attribute__((cold));
#define TACHO__NAME_ID(text)                                          \
	(__extension__({                                              \
		static uint64_t tacho__known;                         \
		uint64_t tacho__v = tacho__load(&tacho__known);       \
		tacho__likely(tacho__v >> 32 == tacho__self->epoch)   \
			? (uint32_t)tacho__v                          \
			: tacho__name_look_up((text), &tacho__known); \
	}))

/* In place of the ticks at which a call began: it is under way, and not recorded when it returns. */
#define TACHO__NOTED UINT64_C(1)

/* Whether calls of this thread are of interest now. */
static inline int tacho__call_counts(void)
{
	return (tacho__calls_matter() || tacho__self->underway) && tacho__recording() &&
	       !tacho__is_inside();
}

/*
 * The thread is about to make a call that may block: what is known of that if it never returns.
 * Gives the time, of a thread whose calls matter; else TACHO__NOTED. `timed`: a thread without a
 * loop asks the clock, too.
 */
static inline uint64_t tacho__call_begins(uint32_t name, const void *caller, int64_t on, int timed)
{
	struct tacho_box_underway *u = tacho__self->underway;
	int matters = tacho__calls_matter();
	uint64_t now = matters || timed ? tacho__ticks() : TACHO_UNDERWAY_UNTIMED;

	if (tacho__likely(u && name)) {
		tacho__store(&u->call, name);
		tacho__store(&u->call_at, (uint64_t)(uintptr_t)caller - 1);
		tacho__store(&u->call_on, on < 0 ? UINT64_MAX : (uint64_t)on);
		__atomic_store_n(&u->call_since, now, __ATOMIC_RELEASE);
	}
	return matters ? now : TACHO__NOTED;
}

static inline void tacho__call_ends(void)
{
	/* Not the one of before: this may be a child, and that its parent's. */
	struct tacho_box_underway *u = tacho__self->underway;

	if (tacho__likely(u))
		tacho__store(&u->call_since, 0);
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

/* Nothing that reads or writes on it waits, whatever thread it is: that is all that most hooks have to
   find out. */
static inline int tacho__never_waits(int fd)
{
	return tacho__likely((unsigned)fd < TACHO__DESCRIPTORS) &&
	       tacho__likely(tacho__load(&tacho__never_blocks[fd]) == tacho__load(&tacho__trusted));
}

/* A call on this descriptor was timed. errno stays. */
void tacho__descriptor_used(int fd) __attribute__((cold));

/* It may be another one from now on, or another kind of. */
static inline void tacho__descriptor_changed(int fd)
{
	if ((unsigned)fd < TACHO__DESCRIPTORS)
		tacho__store(&tacho__never_blocks[fd], 0);
}

/* It came into being, or (below 0) did not. errno stays. */
static inline void tacho__descriptor_made(int fd, const void *caller)
{
	if (fd < 0)
		return;
	tacho__descriptor_changed(fd);
	tacho__alive_opened(fd, caller);
}

static inline void tacho__descriptor_closed(int fd)
{
	tacho__descriptor_changed(fd);
	tacho__alive_closed(fd);
}

/* Whether it may block, as far as that can be told. errno stays. */
int tacho__blocks(int fd);

/*
 * clients.c: a thread that has no loop waits for a client: in accept, to receive from a connection
 * that was accepted, or in poll for that one alone. errno stays.
 */
enum tacho__client_wait { TACHO__ACCEPTS, TACHO__RECEIVES, TACHO__POLLS };
int tacho__is_for_client(int fd, enum tacho__client_wait how);
static inline int tacho__may_be_for_client(enum tacho__client_wait how)
{
	const struct tacho__hook_thread *h = &tacho__hook;

	return h->loop ? h->loop_fd == TACHO__CLIENTS
		       : how == TACHO__ACCEPTS || tacho__load(&tacho__alive_any);
}

/* The wait begins. Gives what ends it, or 0 when it is none. */
uint32_t tacho__client_parks(int fd, enum tacho__client_wait how);
static inline uint32_t tacho__waits_for_client(int fd, enum tacho__client_wait how)
{
	return tacho__unlikely(tacho__may_be_for_client(how)) ? tacho__client_parks(fd, how) : 0;
}
/* A wait in accept, of that loop, ends with `result`; it began at `parked`, in ticks. */
void tacho__client_accepted(int fd, uint32_t loop, uint64_t parked, int result);
/* A loop of which no more than its waits is seen accepts. */
static inline int tacho__accepts_in_turn(void)
{
	const struct tacho__hook_thread *h = &tacho__hook;

	return h->turn && h->level == TACHO_LEVEL_WAITS && tacho__recording();
}
void tacho__turn_accepted(int fd);
/* The calls that tell how many wait to be accepted are forbidden from now on. */
void tacho__clients_ask_nothing(void);

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

/* listeners.c: the loop of this thread took a connection from the socket `fd`. errno stays. */
void tacho__listens(int fd) __attribute__((cold));

/* eventfds.c: epoll is told to wait for `fd`, and to give back `data`. errno stays. */
void tacho__eventfd_waited_for(int fd, uint64_t data);
/* A loop begins, of this process: those that are known. errno stays. */
void tacho__eventfds_define(void);

/* Defines the function that programs reach by `name`. */
#define TACHO__HOOKED(type, name, params)                \
	type tacho__hooked_##name params __asm__(#name); \
	TACHO_HOOK type tacho__hooked_##name params

/* For large files programs of glibc call functions with names of their own. In musl's headers these
   names are macros for the ordinary ones, and its newer versions have no such functions. */
#if defined(__GLIBC__)
#define TACHO__LARGE(...) __VA_ARGS__
#else
#define TACHO__LARGE(...) _Static_assert(1, "");
#endif

#define TACHO__NEXT(name) TACHO__FIND(#name, __typeof__(&tacho__hooked_##name))

/* What a call is about: initializers of struct tacho__blocking_call. */
#define TACHO__FD(n) .number = (n), .is_descriptor = 1
#define TACHO__TRANSFERS(fd) TACHO__FD(fd), .transfers = 1
#define TACHO__PATH(p) .number = -1, .path = (p)
#define TACHO__COMMAND(p) TACHO__PATH(p), .is_command = 1
#define TACHO__FD_PATH(n, p) .number = (n), .is_descriptor = 1, .path = (p)
#define TACHO__NUMBER(n) .number = (n) /* of a process or a thread; of what is closed */
#define TACHO__NOTHING .number = -1

/* What stdio does is mostly quick, and often: those hooks ask no clock either (calls_streams.c). */
#ifndef TACHO__TIMED
#define TACHO__TIMED 1
#endif

/* When the call `text` on `about` begins, TACHO__NOTED, or 0: it does not count. */
#define TACHO__CALL_BEGINS_AT(caller, counts, text, about, timed)                                  \
	((counts) ? tacho__call_begins(tacho__self->underway ? TACHO__NAME_ID(text) : 0, (caller), \
				       (about), (timed))                                           \
		  : 0)
#define TACHO__CALL_BEGINS(counts, text, about) \
	TACHO__CALL_BEGINS_AT(__builtin_return_address(0), counts, text, about, TACHO__TIMED)
#define TACHO__ON_NOTHING (-1)

/* Records the call that began at `since` and has just returned. */
#define TACHO__CALL_ENDS(since_ticks, text, wrong, ...) \
	TACHO__CALL_ENDS_AT(__builtin_return_address(0), since_ticks, text, wrong, __VA_ARGS__)
#define TACHO__CALL_ENDS_AT(from, since_ticks, text, wrong, ...)                            \
	do {                                                                                \
		uint64_t tacho__now;                                                        \
		if ((since_ticks) == 0)                                                     \
			break;                                                              \
		tacho__call_ends();                                                         \
		if ((since_ticks) == TACHO__NOTED)                                          \
			break;                                                              \
		tacho__now = tacho__ticks();                                                \
		if (tacho__likely(tacho__now - (since_ticks) < tacho__call_ticks))          \
			break;                                                              \
		tacho__call_returned(&(struct tacho__blocking_call){.since = (since_ticks), \
								    .until = tacho__now,    \
								    .name = (text),         \
								    .error = (wrong),       \
								    .caller = (from),       \
								    __VA_ARGS__});          \
	} while (0)

/*
 * A hook: type, name, (parameters), (arguments), what it is on, how `result` tells the error, and
 * what the call is about. The ones for calls that set errno and return -1 are TACHO__CALL and, on
 * the descriptor `fd`, TACHO__FD_CALL.
 */
#define TACHO__CALL_ON(type, name, params, args, on, wrong, ...)                      \
	TACHO__HOOKED(type, name, params)                                             \
	{                                                                             \
		uint64_t since = TACHO__CALL_BEGINS(tacho__call_counts(), #name, on); \
		type result = TACHO__NEXT(name) args;                                 \
                                                                                      \
		TACHO__CALL_ENDS(since, #name, wrong, __VA_ARGS__);                   \
		return result;                                                        \
	}
#define TACHO__CALL_ERROR(type, name, params, args, wrong, ...) \
	TACHO__CALL_ON(type, name, params, args, TACHO__ON_NOTHING, wrong, __VA_ARGS__)
#define TACHO__CALL(type, name, params, args, ...) \
	TACHO__CALL_ERROR(type, name, params, args, result < 0 ? errno : 0, __VA_ARGS__)
#define TACHO__FD_CALL(type, name, params, args) \
	TACHO__CALL_ON(type, name, params, args, fd, result < 0 ? errno : 0, TACHO__FD(fd))

/*
 * The same for one that reads or writes on the descriptor `fd`, where something may have to be told:
 * a function of its own, so that the hook has no registers to save for it. `client`: what
 * tacho__waits_for_client gives, or 0.
 */
#define TACHO__MAY_WAIT(type, name, params, args, client_)                                       \
	type tacho__hooked_##name params __asm__(#name);                                         \
	static struct tacho__next tacho__next_##name TACHO__IS_NEXT = {#name, NULL};             \
	static __attribute__((noinline)) type tacho__told_##name TACHO__PARAMS_AND_CALLER params \
	{                                                                                        \
		uint32_t client = (client_);                                                     \
		uint64_t since = client ? 0                                                      \
					: TACHO__CALL_BEGINS_AT(caller, tacho__call_counts(),    \
								#name, fd, 0);                   \
		type result = TACHO__FOUND(name, tacho__found(&tacho__next_##name)) args;        \
                                                                                                 \
		if (client)                                                                      \
			tacho__loop_unparks(client, result >= 0);                                \
		TACHO__CALL_ENDS_AT(caller, since, #name, result < 0 ? errno : 0,                \
				    TACHO__TRANSFERS(fd));                                       \
		if (since > TACHO__NOTED)                                                        \
			tacho__descriptor_used(fd);                                              \
		return result;                                                                   \
	}
#define TACHO__PARAMS_AND_CALLER(...) (__VA_ARGS__, const void *caller)
#define TACHO__ARGS_AND_CALLER(...) (__VA_ARGS__, __builtin_return_address(0))
#define TACHO__FOUND(name, found) ((__typeof__(&tacho__hooked_##name))(found))

/* What never waits is left to the real function at once. */
#define TACHO__TOLD_OR_QUICK(name, args)                                           \
	(tacho__load(&tacho__next_##name.found) && tacho__never_waits(fd)          \
		 ? TACHO__FOUND(name, tacho__load(&tacho__next_##name.found)) args \
		 : tacho__told_##name TACHO__ARGS_AND_CALLER args)

#define TACHO__TRANSFER(type, name, params, args)        \
	TACHO__MAY_WAIT(type, name, params, args, 0)     \
	TACHO_HOOK type tacho__hooked_##name params      \
	{                                                \
		return TACHO__TOLD_OR_QUICK(name, args); \
	}

/* A connection whose peer has closed it, or is gone, is load no more, whether the program closes it
   or not. */
static inline void tacho__received(int fd, ssize_t result)
{
	if (tacho__unlikely(result <= 0) && (result == 0 || errno == ECONNRESET))
		tacho__alive_end(tacho__alive_connection(fd));
}
/* `waits`: it does where nothing is there. */
#define TACHO__RECEIVE(name, params, args, waits)                                   \
	TACHO__MAY_WAIT(ssize_t, name, params, args,                                \
			(waits) ? tacho__waits_for_client(fd, TACHO__RECEIVES) : 0) \
	TACHO_HOOK ssize_t tacho__hooked_##name params                              \
	{                                                                           \
		ssize_t result = TACHO__TOLD_OR_QUICK(name, args);                  \
                                                                                    \
		tacho__received(fd, result);                                        \
		return result;                                                      \
	}

/* The same for one that makes a descriptor, or fails. */
#define TACHO__CALL_MAKING(name, params, args, on, ...)                               \
	TACHO__HOOKED(int, name, params)                                              \
	{                                                                             \
		uint64_t since = TACHO__CALL_BEGINS(tacho__call_counts(), #name, on); \
		int result = TACHO__NEXT(name) args;                                  \
                                                                                      \
		tacho__descriptor_made(result, __builtin_return_address(0));          \
		TACHO__CALL_ENDS(since, #name, result < 0 ? errno : 0, __VA_ARGS__);  \
		return result;                                                        \
	}

/* The same for a call that makes others. */
#define TACHO__OUTER_CALL(type, name, params, args, wrong, ...)                             \
	TACHO__HOOKED(type, name, params)                                                   \
	{                                                                                   \
		uint64_t since =                                                            \
			TACHO__CALL_BEGINS(tacho__call_counts(), #name, TACHO__ON_NOTHING); \
		int outermost = tacho__outer_begins(__builtin_frame_address(0));            \
		type result = TACHO__NEXT(name) args;                                       \
                                                                                            \
		if (outermost)                                                              \
			tacho__outer_ends();                                                \
		TACHO__CALL_ENDS(since, #name, wrong, __VA_ARGS__);                         \
		return result;                                                              \
	}

#endif
