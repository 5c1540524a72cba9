/*
 * Thunks: functions that stand for those which a program registers with libuv or libevent.
 *
 * A thunk is taken for a function and a use and belongs to these for good; the next
 * registration of the same function for the same use gets the same thunk. It records a poll
 * around the call of the original with all arguments as they came. Neither the program's
 * memory nor the library's is touched, and nothing needs to be known of the life of handles,
 * requests and events: they may be copied, moved, freed or started again in any way, and
 * still run their own function.
 *
 * Programs have some dozens of such functions; when more than TACHO__THUNKS come, the rest is
 * registered as it is, and a counter in the trace says how often.
 */
#ifndef TACHO_HOOKS_THUNKS_H
#define TACHO_HOOKS_THUNKS_H

#include "core/record.h"
#include "core/sentinel.h"
#include "core/short_polls.h"
#include "core/wakes.h"
#include "hooks/hooks.h"

/* Arguments are passed on as whole machine words, as both supported architectures pass them in
   registers and on the stack. */
typedef uint64_t tacho__word;

#ifdef __clang_analyzer__ /* which looks at each of them */
#define TACHO__THUNKS 16u
#else
#define TACHO__THUNKS 1024u
#endif
#define TACHO__THUNK_KINDS 3u

struct tacho__thunk {
	tacho__word function;
	uint32_t use;  /* TACHO__THUNK_UV and what uv.h says, or as event.h says */
	uint32_t next; /* in its chain: number + 1, or 0 */
	uint64_t kinds[TACHO__THUNK_KINDS]; /* epoch << 32 | definition */
} __attribute__((aligned(64)));
#define TACHO__THUNK_UV 0x10000u

extern struct tacho__thunk tacho__thunks[TACHO__THUNKS] __attribute__((visibility("hidden")));

/* The number + 1 of the thunk for a function; 0: none left. */
uint32_t tacho__thunk_take(tacho__word function, uint32_t use);

/* All in a section of their own, so that they are told from other functions by address. */
#define TACHO__THUNK __attribute__((section("tacho_thunks"))) static
extern const char __start_tacho_thunks[] __attribute__((visibility("hidden")));
extern const char __stop_tacho_thunks[] __attribute__((visibility("hidden")));

static inline int tacho__is_thunk(tacho__word function)
{
	return function >= (uintptr_t)__start_tacho_thunks &&
	       function < (uintptr_t)__stop_tacho_thunks;
}

/* The number of a thunk of those in `all`, or -1. */
static inline int tacho__thunk_number(tacho__word function, const void *const *all)
{
	if (tacho__likely(!tacho__is_thunk(function)))
		return -1;
	for (uint32_t i = 0; i < TACHO__THUNKS; i++)
		if ((uintptr_t)all[i] == function)
			return (int)i;
	return -1;
}

/* each(0) each(1) ..., with hexadecimal digits. */
/* clang-format off */
#define TACHO__EACH_OF_16(each, n)                                                                 \
	each(n##0) each(n##1) each(n##2) each(n##3) each(n##4) each(n##5) each(n##6) each(n##7)    \
	each(n##8) each(n##9) each(n##a) each(n##b) each(n##c) each(n##d) each(n##e) each(n##f)
#define TACHO__EACH_OF_256(each, n)                                                                \
	TACHO__EACH_OF_16(each, n##0) TACHO__EACH_OF_16(each, n##1)                                \
	TACHO__EACH_OF_16(each, n##2) TACHO__EACH_OF_16(each, n##3)                                \
	TACHO__EACH_OF_16(each, n##4) TACHO__EACH_OF_16(each, n##5)                                \
	TACHO__EACH_OF_16(each, n##6) TACHO__EACH_OF_16(each, n##7)                                \
	TACHO__EACH_OF_16(each, n##8) TACHO__EACH_OF_16(each, n##9)                                \
	TACHO__EACH_OF_16(each, n##a) TACHO__EACH_OF_16(each, n##b)                                \
	TACHO__EACH_OF_16(each, n##c) TACHO__EACH_OF_16(each, n##d)                                \
	TACHO__EACH_OF_16(each, n##e) TACHO__EACH_OF_16(each, n##f)
#ifdef __clang_analyzer__
#define TACHO__EACH_THUNK(each) TACHO__EACH_OF_16(each, 0)
#else
#define TACHO__EACH_THUNK(each)                                                                    \
	TACHO__EACH_OF_256(each, 0) TACHO__EACH_OF_256(each, 1)                                    \
	TACHO__EACH_OF_256(each, 2) TACHO__EACH_OF_256(each, 3)
#endif
/* clang-format on */

/* ------------------------------------------------------- running a thunk */

/* The definition that is in `known`, or 0: there is none for this box yet. */
static inline uint32_t tacho__known_kind(const uint64_t *known)
{
	uint64_t kind = tacho__load(known);

	return tacho__likely(kind >> 32 == tacho__load(&tacho__rec->epoch)) ? (uint32_t)kind : 0;
}

/* What `name` and the thunk's function are defined as, which is kept in `known`; 0: nothing can be
   recorded. */
uint32_t tacho__thunk_define(const struct tacho__thunk *t, const char *name, uint64_t *known)
	__attribute__((cold));

static inline int tacho__watches(uint32_t what)
{
	return (tacho__load(&tacho__watching) & what) != 0;
}

/* The same while something is watched besides (core/sentinel.h). */
uint64_t tacho__watched_begins(uint32_t kind, tacho__word task, int whole, uint64_t shared)
	__attribute__((cold));
void tacho__watched_ended(uint32_t kind, uint64_t begin, uint32_t result, int in_loop)
	__attribute__((cold));

/*
 * The original begins: the ticks at which it does, or 0. `whole`: it is recorded even if it is
 * short. Of the caches, what the kernel does between two callbacks leaves little: so this is kept
 * small, and tasks, which are addresses, are not tried to be packed.
 */
static inline __attribute__((always_inline)) uint64_t
tacho__original_begins(uint32_t kind, tacho__word task, int whole)
{
	uint64_t shared = tacho__shared_last();

	tacho__hook.callbacks++;
	if (tacho__unlikely(tacho__watches(~(TACHO__WATCH_HOOKS | TACHO__WATCH_CLOCK))))
		return tacho__watched_begins(kind, task, whole, shared);
	return tacho__record_from(tacho_record_head(TACHO_REC_POLL_BEGIN, kind), &task, 1, shared,
				  tacho__frame());
}

/* It has returned, and began at `begin`. `in_loop`: into a loop that runs no other callback. */
static inline __attribute__((always_inline)) void
tacho__original_ended(uint32_t kind, uint64_t begin, uint32_t result, int in_loop)
{
	uint64_t t;

	if (tacho__unlikely(tacho__watches(~(TACHO__WATCH_HOOKS | TACHO__WATCH_CLOCK)))) {
		tacho__watched_ended(kind, begin, result, in_loop);
		return;
	}
	t = tacho__record(tacho_record_head(TACHO_REC_POLL_END, result), NULL, 0);
	tacho__edge(t, in_loop);
	if (tacho__likely(t > begin))
		tacho__slow_poll(t - begin, kind);
}

#endif
