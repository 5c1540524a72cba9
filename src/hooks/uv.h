/*
 * libuv by interposition: what its hooks share.
 *
 * A hook of a function that takes a callback keeps the callback in a table, under the address
 * of the handle or request and what the callback is for, and hands libuv one of tacho's
 * own in its place. That one finds the program's, and runs it between POLL_BEGIN and
 * POLL_END. Nothing in the program's memory is touched.
 *
 * libuv's rule that a handle or request is used by one thread at a time is the table's rule
 * as well: for one key there is never more than one thread, for the table as a whole
 * there are many.
 *
 *   uv_api.h        what is known of libuv
 *   uv_library.c    where the real functions are
 *   uv_table.c      callbacks of handles and requests
 *   uv.c            polls, kinds, misses; uv_run, uv_loop_close, uv_walk
 *   uv_handles.c    hooks of handles
 *   uv_requests.c   hooks of requests
 */
#ifndef TACHO_HOOKS_UV_H
#define TACHO_HOOKS_UV_H

#include "hooks/hooks.h"
#include "hooks/uv_api.h"

/* ------------------------------------------------- where libuv is */

enum tacho__uv_function {
#define UV_NUMBER(name) TACHO__UV_##name,
#define UV_FS_NUMBER(name, params, args) TACHO__UV_##name,
	UV_FUNCTIONS(UV_NUMBER) UV_FS(UV_FS_NUMBER)
#undef UV_NUMBER
#undef UV_FS_NUMBER
		TACHO__UV_FUNCTION_COUNT
};

/* One libuv in the process. There may be several: some libraries bring their own. */
struct tacho__uv {
	void *handle; /* of dlopen(3), or RTLD_NEXT */
	void *real[TACHO__UV_FUNCTION_COUNT];
};

/* The libuv that the code at `caller` means, never NULL. */
struct tacho__uv *tacho__uv_of(const void *caller);
/* By its number in the list, as the table keeps it. */
struct tacho__uv *tacho__uv_by_number(uint32_t number);
uint32_t tacho__uv_number(const struct tacho__uv *uv);
/* Looks `function` up; what returns UV_ENOSYS when this libuv has none. */
void *tacho__uv_resolve(struct tacho__uv *uv, enum tacho__uv_function function);
int tacho__uv_has(struct tacho__uv *uv, enum tacho__uv_function function);

static inline void *tacho__uv_real(struct tacho__uv *uv, enum tacho__uv_function function)
{
	void *found = tacho__load(&uv->real[function]);

	return tacho__likely(found) ? found : tacho__uv_resolve(uv, function);
}

#define UV_REAL(uv, name) ((__typeof__(&name))tacho__uv_real((uv), TACHO__UV_##name))
#define UV_CALLER() tacho__uv_of(__builtin_return_address(0))

/* ------------------------------------------------------ the table */

/* What a callback is for; with the address of the handle or request the key. */
enum tacho__uv_slot {
	TACHO__UV_MAIN = 0, /* a handle's only callback, a request's completion */
	TACHO__UV_READ = 1,
	TACHO__UV_ALLOC = 2,
	TACHO__UV_CLOSE = 3,
	TACHO__UV_WORK = 4, /* on a thread of the pool */
	TACHO__UV_SLOTS = 5,
};

struct tacho__uv_entry {
	uv_any_cb fn; /* the program's; NULL: none, but the end of the handle is of interest */
	uint64_t due; /* timers: when, in ms of the loop's clock; UINT64_MAX: not known */
	uint64_t due_before; /* and before it was started again */
	uint16_t type;	     /* TACHO__UV_TYPE */
	uint16_t uv;	     /* number of the libuv */
	uint32_t reserved;
};

/* The entry, or NULL. It stays where it is until it is taken. */
struct tacho__uv_entry *tacho__uv_find(const void *object, enum tacho__uv_slot slot);
/* The entry, a new one if there is none (*made 1); NULL: no room, or no such address. */
struct tacho__uv_entry *tacho__uv_put(const void *object, enum tacho__uv_slot slot, int *made);
/* Removes the entry and gives what was in it; 0: there was none. */
int tacho__uv_take(const void *object, enum tacho__uv_slot slot, struct tacho__uv_entry *out);

/* ------------------------------------------------ polls and kinds */

/* What a callback reports. Names: uv.c. */
enum tacho__uv_op {
	TACHO__UV_TIMER,
	TACHO__UV_ASYNC,
	TACHO__UV_IDLE,
	TACHO__UV_PREPARE,
	TACHO__UV_CHECK,
	TACHO__UV_POLL,
	TACHO__UV_SIGNAL,
	TACHO__UV_FS_EVENT,
	TACHO__UV_FS_POLL,
	TACHO__UV_PROCESS,
	TACHO__UV_OP_READ, /* from here on with the type of the handle */
	TACHO__UV_OP_ALLOC,
	TACHO__UV_LISTEN,
	TACHO__UV_OP_CLOSE,
	TACHO__UV_OP_WALK,
	TACHO__UV_WRITE,
	TACHO__UV_CONNECT,
	TACHO__UV_SHUTDOWN, /* to here */
	TACHO__UV_UDP_SEND,
	TACHO__UV_GETADDRINFO,
	TACHO__UV_GETNAMEINFO,
	TACHO__UV_RANDOM,
	TACHO__UV_OP_WORK,
	TACHO__UV_AFTER_WORK,
	TACHO__UV_FS_FIRST, /* plus the place in UV_FS */
};

/* An operation and, where it is one on handles of several types, the type (uv_handle_type). */
#define TACHO__UV_TYPE(op, handle_type) ((uint16_t)((op) << 8 | ((handle_type)&0xff)))
uint16_t tacho__uv_type(struct tacho__uv *uv, enum tacho__uv_op op, const void *handle);

/* The definition of callbacks of this type that run `fn`; 0: nothing can be recorded. */
uint32_t tacho__uv_kind(uint16_t type, uv_any_cb fn);

struct tacho__uv_poll {
	uint64_t since; /* ticks; 0: not recorded */
	uint32_t kind;
	int whole; /* also if it is short: something was recorded about it */
};

void tacho__uv_poll_begin(struct tacho__uv_poll *poll, const struct tacho__uv_entry *entry,
			  const void *task);
void tacho__uv_poll_end(struct tacho__uv_poll *poll, uint32_t result);

/* ------------------------------------------------------- starting */

/* What a hook keeps while the real function starts something. */
struct tacho__uv_start {
	struct tacho__uv *uv;
	const void *object;
	enum tacho__uv_slot slot;
	int wrapped;		       /* libuv gets a callback of tacho's */
	int made;		       /* the entry is new */
	struct tacho__uv_entry *entry; /* NULL: none */
	struct tacho__uv_entry before; /* what was in it */
};
#define UV_START(object_)                                             \
	{                                                             \
		.uv = UV_CALLER(), .object = (object_), .entry = NULL \
	}

/* 1: `ours` shall be handed to libuv for `fn`, which is in the table now. */
int tacho__uv_wrap(struct tacho__uv_start *s, enum tacho__uv_slot slot, uint16_t type, uv_any_cb fn,
		   uv_any_cb ours);
#define UV_WRAP(s, slot, type, fn, ours) \
	(tacho__uv_wrap((s), (slot), (type), (uv_any_cb)(fn), (uv_any_cb)(ours)) ? (ours) : (fn))

/* The real function returned `result`: when it failed, the table is as it was. Gives `result`. */
int tacho__uv_started(struct tacho__uv_start *s, int result);

/* A callback that could not be wrapped, or was not found. */
void tacho__uv_missed(void);

#endif
