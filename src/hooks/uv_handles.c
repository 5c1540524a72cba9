/*
 * libuv's handles: their callbacks, and which are alive.
 */
#include "hooks/uv.h"

#include "base/clock.h"
#include "hooks/alive.h"

#define NS_PER_MS 1000000ull

/* --------------------------------------------------------- begin of handles */

#define BEGUN(kind, handle)                                                     \
	tacho__alive_begin(TACHO__ALIVE_UV_##kind, tacho__alive_object(handle), \
			   __builtin_return_address(0))

#define INIT(name, kind, params, args)                        \
	TACHO_HOOK int name params                            \
	{                                                     \
		int result = UV_REAL(UV_CALLER(), name) args; \
                                                              \
		if (!result)                                  \
			BEGUN(kind, handle);                  \
		return result;                                \
	}
#define INIT_PLAIN(name, kind) INIT(name, kind, (void *loop, void *handle), (loop, handle))
#define INIT_WITH(name, kind, type) \
	INIT(name, kind, (void *loop, void *handle, type with), (loop, handle, with))

INIT_PLAIN(uv_timer_init, TIMER)
INIT_PLAIN(uv_idle_init, IDLE)
INIT_PLAIN(uv_prepare_init, PREPARE)
INIT_PLAIN(uv_check_init, CHECK)
INIT_PLAIN(uv_signal_init, SIGNAL)
INIT_PLAIN(uv_fs_event_init, FS_EVENT)
INIT_PLAIN(uv_fs_poll_init, FS_POLL)
INIT_PLAIN(uv_tcp_init, TCP)
INIT_WITH(uv_tcp_init_ex, TCP, unsigned)
INIT_PLAIN(uv_udp_init, UDP)
INIT_WITH(uv_udp_init_ex, UDP, unsigned)
INIT_WITH(uv_pipe_init, PIPE, int)
INIT_WITH(uv_poll_init, POLL, int)
INIT_WITH(uv_poll_init_socket, POLL, int)
INIT(uv_tty_init, TTY, (void *loop, void *handle, int fd, int unused), (loop, handle, fd, unused))

/* ------------------------------------------------------------- timers */

static uint64_t loop_now(struct tacho__uv *uv, const void *handle)
{
	if (!tacho__uv_has(uv, TACHO__UV_uv_handle_get_loop))
		return UINT64_MAX;
	return UV_REAL(uv, uv_now)(UV_REAL(uv, uv_handle_get_loop)(handle));
}

/*
 * When the timer that fires now was due. libuv starts a repeating timer anew before it runs
 * the callback: where that was seen, its due time is the one before; where not (a libuv
 * that calls its own functions directly), the next one is known from here on.
 */
static uint64_t take_due(struct tacho__uv_entry *e, const void *handle)
{
	uint64_t now = loop_now(e->uv, handle);
	uint64_t due = e->due, repeat;

	if (due > now)
		return e->due_before <= now ? e->due_before : UINT64_MAX;
	repeat = UV_REAL(e->uv, uv_timer_get_repeat)(handle);
	e->due = repeat && now + repeat > now ? now + repeat : UINT64_MAX;
	return due;
}

/* Under a poll threshold only what is late enough to matter is recorded, and then the poll as
   well: the record is about the next one. */
int tacho__uv_late(const void *timer, uint32_t kind)
{
	struct tacho__uv_entry *e = tacho__uv_find(timer);
	uint64_t due = e ? take_due(e, timer) : UINT64_MAX;
	uint64_t now, late;

	if (due >= UINT64_MAX / NS_PER_MS)
		return 0;
	now = tacho__clock_ns(CLOCK_MONOTONIC);
	late = now > due * NS_PER_MS ? now - due * NS_PER_MS : 0;
	if (tacho__load(&tacho__threshold_ticks) && late < NS_PER_MS)
		return 0;
	tacho__record_from(tacho_record_head(TACHO_REC_LATE, 0), &late, 1, tacho__shared(),
			   tacho__frame());
	if (tacho__watches(TACHO__WATCH(LAG)))
		tacho__above(TACHO_SENTINEL_LAG, late, kind);
	return 1;
}

TACHO_HOOK int uv_timer_start(void *handle, uv_object_cb cb, uint64_t timeout, uint64_t repeat)
{
	struct tacho__uv *uv = UV_CALLER();
	uv_object_cb use = UV_WRAP(UV_USE(TACHO__UV_TIMER, 0), cb);
	int result = UV_REAL(uv, uv_timer_start)(handle, use, timeout, repeat);
	struct tacho__uv_entry *e =
		result || !tacho__is_thunk((uintptr_t)use) ? NULL : tacho__uv_put(handle, uv);
	uint64_t now;

	if (!e)
		return result;
	now = loop_now(uv, handle);
	/* With a thunk it is libuv that starts it again. */
	e->due_before = use == cb ? e->due : UINT64_MAX;
	e->due = now + timeout < now ? UINT64_MAX : now + timeout;
	return result;
}

/* ------------------------------------------------------------- asyncs */

/* Also what uv_async_send needs is looked up: that may be called by signal handlers. */
TACHO_HOOK int uv_async_init(void *loop, void *handle, uv_object_cb cb)
{
	struct tacho__uv *uv = UV_CALLER();
	int result;

	tacho__uv_real(uv, TACHO__UV_uv_async_send);
	result = UV_REAL(uv, uv_async_init)(loop, handle, UV_WRAP(UV_USE(TACHO__UV_ASYNC, 0), cb));
	if (!result) {
		tacho__uv_put(handle, uv);
		BEGUN(ASYNC, handle);
	}
	return result;
}

TACHO_HOOK int uv_async_send(void *handle)
{
	struct tacho__uv_entry *e = tacho__uv_find(handle);
	struct tacho__uv *uv = e ? e->uv : UV_CALLER();

	if (tacho__recording()) {
		uint64_t task = (uint64_t)(uintptr_t)handle;

		tacho__put1(TACHO_REC_WAKE, 0, task);
	}
	return UV_REAL(uv, uv_async_send)(handle);
}

/* --------------------------------------- other handles of one callback */

#define WATCHER(name, op)                                                              \
	TACHO_HOOK int name(void *handle, uv_object_cb cb)                             \
	{                                                                              \
		return UV_REAL(UV_CALLER(), name)(handle, UV_WRAP(UV_USE(op, 0), cb)); \
	}

WATCHER(uv_idle_start, TACHO__UV_IDLE)
WATCHER(uv_prepare_start, TACHO__UV_PREPARE)
WATCHER(uv_check_start, TACHO__UV_CHECK)

TACHO_HOOK int uv_poll_start(void *handle, int events, uv_poll_cb cb)
{
	return UV_REAL(UV_CALLER(), uv_poll_start)(handle, events,
						   UV_WRAP(UV_USE(TACHO__UV_POLL, 0), cb));
}

#define SIGNAL(name)                                                                            \
	TACHO_HOOK int name(void *handle, uv_status_cb cb, int signum)                          \
	{                                                                                       \
		return UV_REAL(UV_CALLER(),                                                     \
			       name)(handle, UV_WRAP(UV_USE(TACHO__UV_SIGNAL, 0), cb), signum); \
	}

SIGNAL(uv_signal_start)
SIGNAL(uv_signal_start_oneshot)

TACHO_HOOK int uv_fs_event_start(void *handle, uv_fs_event_cb cb, const char *path, unsigned flags)
{
	return UV_REAL(UV_CALLER(), uv_fs_event_start)(
		handle, UV_WRAP(UV_USE(TACHO__UV_FS_EVENT, 0), cb), path, flags);
}

TACHO_HOOK int uv_fs_poll_start(void *handle, uv_fs_poll_cb cb, const char *path, unsigned interval)
{
	return UV_REAL(UV_CALLER(), uv_fs_poll_start)(
		handle, UV_WRAP(UV_USE(TACHO__UV_FS_POLL, 0), cb), path, interval);
}

TACHO_HOOK int uv_spawn(void *loop, void *process, const struct uv_process_options *options)
{
	struct tacho__uv *uv = UV_CALLER();
	struct uv_process_options changed;
	int result;

	if (options && options->exit_cb) {
		changed = *options;
		changed.exit_cb = UV_WRAP(UV_USE(TACHO__UV_PROCESS, 0), options->exit_cb);
		options = &changed;
	}
	result = UV_REAL(uv, uv_spawn)(loop, process, options);
	if (!result)
		BEGUN(PROCESS, process);
	return result;
}

/* -------------------------------------------------- streams and UDP */

TACHO_HOOK int uv_listen(void *stream, int backlog, uv_status_cb cb)
{
	struct tacho__uv *uv = UV_CALLER();

	return UV_REAL(uv, uv_listen)(stream, backlog,
				      UV_WRAP(tacho__uv_use(uv, TACHO__UV_LISTEN, stream), cb));
}

/* libuv looks at the arguments before it looks at the handle. */
#define RECEIVER(name, type)                                                                      \
	TACHO_HOOK int name(void *handle, uv_alloc_cb alloc_cb, type cb)                          \
	{                                                                                         \
		struct tacho__uv *uv = UV_CALLER();                                               \
                                                                                                  \
		if (!handle || !alloc_cb || !cb)                                                  \
			return UV_REAL(uv, name)(handle, alloc_cb, cb);                           \
		return UV_REAL(uv, name)(                                                         \
			handle, UV_WRAP(tacho__uv_use(uv, TACHO__UV_OP_ALLOC, handle), alloc_cb), \
			UV_WRAP(tacho__uv_use(uv, TACHO__UV_OP_READ, handle), cb));               \
	}

RECEIVER(uv_read_start, uv_read_cb)
RECEIVER(uv_udp_recv_start, uv_udp_recv_cb)

/* ------------------------------------------------------------ closing */

/* The handle is not served any more, also not for a wake that was sent to it. */
static void forget(const void *handle)
{
	tacho__uv_remove(handle);
	tacho__alive_end(tacho__alive_object(handle));
	if (tacho__watches(TACHO__WATCH(WAKE)))
		tacho__wake_forgotten((uint64_t)(uintptr_t)handle);
}

TACHO_HOOK void uv_close(void *handle, uv_object_cb cb)
{
	struct tacho__uv *uv = UV_CALLER();

	forget(handle);
	UV_REAL(uv, uv_close)(handle, UV_WRAP(tacho__uv_use(uv, TACHO__UV_OP_CLOSE, handle), cb));
}

TACHO_HOOK int uv_tcp_close_reset(void *handle, uv_object_cb cb)
{
	struct tacho__uv *uv = UV_CALLER();
	int result = UV_REAL(uv, uv_tcp_close_reset)(
		handle, UV_WRAP(tacho__uv_use(uv, TACHO__UV_OP_CLOSE, handle), cb));

	/* It is still open where that failed. */
	if (!result)
		forget(handle);
	return result;
}
