/*
 * libuv by interposition: what its hooks share.
 *
 * A hook of a function that takes a callback hands libuv a thunk in its place (thunks.h).
 * What has to be remembered of a handle besides stands in a table under its address.
 *
 *   uv_api.h        what is known of libuv
 *   uv_library.c    where the real functions are
 *   uv_table.c      what is known of timers and asyncs
 *   uv.c            thunks, kinds, misses; uv_run, uv_loop_close, uv_walk
 *   uv_handles.c    hooks of handles
 *   uv_requests.c   hooks of requests
 */
#ifndef TACHO_HOOKS_UV_H
#define TACHO_HOOKS_UV_H

#include "hooks/thunks.h"
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

/* Code that calls a libuv. It stays as it is for good. */
struct tacho__uv_caller {
	uintptr_t start, size; /* 0: not known yet */
	struct tacho__uv *uv;
};
/* The libuv that the code at `caller` means, never NULL. `last`: what called the same hook before. */
struct tacho__uv *tacho__uv_of(const void *caller, const struct tacho__uv_caller **last);
/* Looks `function` up; what returns UV_ENOSYS when this libuv has none. */
void *tacho__uv_resolve(struct tacho__uv *uv, enum tacho__uv_function function);
int tacho__uv_has(struct tacho__uv *uv, enum tacho__uv_function function);

static inline void *tacho__uv_real(struct tacho__uv *uv, enum tacho__uv_function function)
{
	void *found = tacho__load(&uv->real[function]);

	return tacho__likely(found) ? found : tacho__uv_resolve(uv, function);
}

#define UV_REAL(uv, name) ((__typeof__(&name))tacho__uv_real((uv), TACHO__UV_##name))
#define UV_CALLER()                                                                    \
	(__extension__({                                                               \
		static const struct tacho__uv_caller *tacho__last = &tacho__uv_nobody; \
		const struct tacho__uv_caller *tacho__c =                              \
			__atomic_load_n(&tacho__last, __ATOMIC_ACQUIRE);               \
		const void *tacho__at = __builtin_return_address(0);                   \
		tacho__likely((uintptr_t)tacho__at - tacho__c->start < tacho__c->size) \
			? tacho__c->uv                                                 \
			: tacho__uv_of(tacho__at, &tacho__last);                       \
	}))
extern const struct tacho__uv_caller tacho__uv_nobody;

/* ------------------------------------------------------ the table */

/*
 * Of a timer or an async, by its address. libuv's rule that a handle is used by one thread at a
 * time is the table's rule as well: for one key there is never more than one thread, for the
 * table as a whole there are many.
 */
struct tacho__uv_entry {
	struct tacho__uv *uv; /* the handle's */
	uint64_t due;	      /* timers: when, in ms of the loop's clock; UINT64_MAX: not known */
	uint64_t due_before;  /* and before it was started again */
};

/* The entry, or NULL. It stays where it is until it is removed. */
struct tacho__uv_entry *tacho__uv_find(const void *handle);
/* The entry, a new one if there is none; NULL: no room, or no such address. */
struct tacho__uv_entry *tacho__uv_put(const void *handle, struct tacho__uv *uv);
void tacho__uv_remove(const void *handle);

/* ----------------------------------------------------- callbacks */

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
	TACHO__UV_OP_WALK,
	TACHO__UV_OP_CLOSE, /* from here on the last of a handle or request */
	TACHO__UV_WRITE,
	TACHO__UV_CONNECT,
	TACHO__UV_SHUTDOWN, /* to here */
	TACHO__UV_UDP_SEND,
	TACHO__UV_GETADDRINFO, /* from here on of libuv's pool */
	TACHO__UV_GETNAMEINFO,
	TACHO__UV_RANDOM,
	TACHO__UV_OP_WORK,
	TACHO__UV_AFTER_WORK,
	TACHO__UV_FS_FIRST, /* plus the place in UV_FS */
};

/* The use of a thunk: an operation and, where it is one on handles of several types, the type
   (uv_handle_type). */
#define UV_USE(op, handle_type) (TACHO__THUNK_UV | (uint32_t)(op) << 8 | ((handle_type)&0xff))
static inline uint32_t tacho__uv_use(struct tacho__uv *uv, enum tacho__uv_op op, const void *handle)
{
	return UV_USE(op, (uint32_t)UV_REAL(uv, uv_handle_get_type)(handle));
}

/* The thunk for `fn`, which may be one already or NULL; NULL: none. */
struct tacho__thunk *tacho__uv_thunk(uint32_t use, uv_any_cb fn);
/* What libuv calls for it. */
uv_any_cb tacho__uv_function(const struct tacho__thunk *t);
/* What to hand to libuv instead of `fn`. */
uv_any_cb tacho__uv_wrap(uint32_t use, uv_any_cb fn);
#define UV_WRAP(use, fn) ((__typeof__(fn))tacho__uv_wrap((use), (uv_any_cb)(fn)))

/* The definition of polls of this thunk; 0: nothing can be recorded. */
uint32_t tacho__uv_kind(struct tacho__thunk *t);

/* uv_handles.c: records how late a timer is that fires now; 1: the poll is recorded as well. */
int tacho__uv_late(const void *timer, uint32_t kind);
/* uv_requests.c: a thunk of an `op` of libuv's pool is called. 1: the original is to be run. */
int tacho__uv_pooled(struct tacho__thunk *t, enum tacho__uv_op op, void *req, int status);

/* A callback that could not be wrapped. */
void tacho__uv_missed(void);

#endif
