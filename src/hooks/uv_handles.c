/*
 * Callbacks of libuv's handles.
 *
 * A handle's entries live until its close callback, which always is tacho's: libuv may call
 * the others until then, and the program may free the handle's memory in it.
 */
#include "hooks/uv.h"

#include "base/clock.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/short_polls.h"
#include "core/wakes.h"

#define NS_PER_MS 1000000ull

/* The program's callback begins; 0: there is none. The entry is copied, because the callback
   may start the handle anew. */
static int begin(struct tacho__uv_poll *poll, struct tacho__uv_entry *e, const void *handle,
		 enum tacho__uv_slot slot)
{
	struct tacho__uv_entry *found = tacho__uv_find(handle, slot);

	if (tacho__unlikely(!found || !found->fn)) {
		tacho__uv_missed();
		return 0;
	}
	*e = *found;
	tacho__uv_poll_begin(poll, e, handle);
	return 1;
}

#define HANDLE_CALLBACK(slot, type, handle, ...)                  \
	do {                                                      \
		struct tacho__uv_poll poll = {0};                 \
		struct tacho__uv_entry e;                         \
                                                                  \
		if (begin(&poll, &e, (handle), (slot))) {         \
			((type)e.fn)((handle), ##__VA_ARGS__);    \
			tacho__uv_poll_end(&poll, TACHO_PENDING); \
		}                                                 \
	} while (0)

static void on_handle(void *handle)
{
	HANDLE_CALLBACK(TACHO__UV_MAIN, uv_object_cb, handle);
}

static void on_poll(void *handle, int status, int events)
{
	HANDLE_CALLBACK(TACHO__UV_MAIN, uv_poll_cb, handle, status, events);
}

static void on_status(void *handle, int status)
{
	HANDLE_CALLBACK(TACHO__UV_MAIN, uv_status_cb, handle, status);
}

static void on_fs_event(void *handle, const char *filename, int events, int status)
{
	HANDLE_CALLBACK(TACHO__UV_MAIN, uv_fs_event_cb, handle, filename, events, status);
}

static void on_fs_poll(void *handle, int status, const void *before, const void *now)
{
	HANDLE_CALLBACK(TACHO__UV_MAIN, uv_fs_poll_cb, handle, status, before, now);
}

static void on_exit(void *process, int64_t status, int signal)
{
	HANDLE_CALLBACK(TACHO__UV_MAIN, uv_exit_cb, process, status, signal);
}

static void on_alloc(void *handle, size_t suggested, void *buf)
{
	HANDLE_CALLBACK(TACHO__UV_ALLOC, uv_alloc_cb, handle, suggested, buf);
}

static void on_read(void *stream, ssize_t nread, const void *buf)
{
	HANDLE_CALLBACK(TACHO__UV_READ, uv_read_cb, stream, nread, buf);
}

static void on_recv(void *handle, ssize_t nread, const void *buf, const struct sockaddr *addr,
		    unsigned flags)
{
	HANDLE_CALLBACK(TACHO__UV_READ, uv_udp_recv_cb, handle, nread, buf, addr, flags);
}

static void on_close(void *handle)
{
	struct tacho__uv_poll poll = {0};
	struct tacho__uv_entry e, gone;

	tacho__uv_take(handle, TACHO__UV_MAIN, &gone);
	tacho__uv_take(handle, TACHO__UV_READ, &gone);
	tacho__uv_take(handle, TACHO__UV_ALLOC, &gone);
	if (!tacho__uv_take(handle, TACHO__UV_CLOSE, &e)) {
		tacho__uv_missed();
		return;
	}
	if (!e.fn)
		return;
	tacho__uv_poll_begin(&poll, &e, handle);
	((uv_object_cb)e.fn)(handle);
	tacho__uv_poll_end(&poll, TACHO_DONE);
}

/* ------------------------------------------------------------- timers */

static uint64_t loop_now(struct tacho__uv *uv, const void *handle)
{
	if (!tacho__uv_has(uv, TACHO__UV_uv_handle_get_loop))
		return UINT64_MAX;
	return UV_REAL(uv, uv_now)(UV_REAL(uv, uv_handle_get_loop)(handle));
}

/* A poll follows whose timer was due at `due`. Under a poll threshold only what is late enough
   to matter is recorded, and then the poll as well: the record is about the next one. */
static void record_late(struct tacho__uv_poll *poll, const struct tacho__uv_entry *e, uint64_t due)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);
	uint64_t late;

	if (due >= UINT64_MAX / NS_PER_MS)
		return;
	late = now > due * NS_PER_MS ? now - due * NS_PER_MS : 0;
	if (tacho__load(&tacho__threshold_ticks) && late < NS_PER_MS)
		return;
	poll->whole = 1;
	tacho__record_from(tacho_record_head(TACHO_REC_LATE, 0), &late, 1, tacho__shared(),
			   tacho__frame());
	if (tacho__unlikely(tacho__load(&tacho__watching) & TACHO__WATCH(LAG)))
		tacho__above(TACHO_SENTINEL_LAG, late, tacho__uv_kind(e->type, e->fn));
}

/*
 * When the timer that fires now was due. libuv starts a repeating timer anew before it runs
 * the callback: where that was seen, its due time is the one before; where not (a libuv
 * that calls its own functions directly), the next one is known from here on.
 */
static uint64_t take_due(struct tacho__uv_entry *e, const void *handle)
{
	struct tacho__uv *uv = tacho__uv_by_number(e->uv);
	uint64_t now = loop_now(uv, handle);
	uint64_t due = e->due, repeat;

	if (due > now)
		return e->due_before <= now ? e->due_before : UINT64_MAX;
	repeat = UV_REAL(uv, uv_timer_get_repeat)(handle);
	e->due = repeat && now + repeat > now ? now + repeat : UINT64_MAX;
	return due;
}

static void on_timer(void *handle)
{
	struct tacho__uv_entry *found = tacho__uv_find(handle, TACHO__UV_MAIN);
	struct tacho__uv_poll poll = {0};
	struct tacho__uv_entry e;

	if (tacho__unlikely(!found || !found->fn)) {
		tacho__uv_missed();
		return;
	}
	if (tacho__recording())
		record_late(&poll, found, take_due(found, handle));
	e = *found;
	tacho__uv_poll_begin(&poll, &e, handle);
	((uv_object_cb)e.fn)(handle);
	tacho__uv_poll_end(&poll, TACHO_PENDING);
}

TACHO_HOOK int uv_timer_start(void *handle, uv_object_cb cb, uint64_t timeout, uint64_t repeat)
{
	struct tacho__uv_start s = UV_START(handle);
	uv_object_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_TIMER, 0), cb, on_timer)
		   : cb;
	int result =
		tacho__uv_started(&s, UV_REAL(s.uv, uv_timer_start)(handle, use, timeout, repeat));
	uint64_t now;

	if (result || !s.entry)
		return result;
	now = loop_now(s.uv, handle);
	s.entry->due_before = s.entry->due;
	s.entry->due = now + timeout < now ? UINT64_MAX : now + timeout;
	return result;
}

/* ---------------------------------------------- handles of one callback */

/* Also what uv_async_send needs is looked up: that may be called by signal handlers. */
TACHO_HOOK int uv_async_init(void *loop, void *handle, uv_object_cb cb)
{
	struct tacho__uv_start s = UV_START(handle);
	uv_object_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_ASYNC, 0), cb, on_handle)
		   : cb;

	tacho__uv_real(s.uv, TACHO__UV_uv_async_send);
	return tacho__uv_started(&s, UV_REAL(s.uv, uv_async_init)(loop, handle, use));
}

TACHO_HOOK int uv_async_send(void *handle)
{
	struct tacho__uv_entry *e = tacho__uv_find(handle, TACHO__UV_MAIN);
	struct tacho__uv *uv = e ? tacho__uv_by_number(e->uv) : UV_CALLER();

	if (tacho__recording()) {
		uint64_t task = (uint64_t)(uintptr_t)handle;

		tacho__put1(TACHO_REC_WAKE, 0, task);
	}
	return UV_REAL(uv, uv_async_send)(handle);
}

/* libuv ignores a second start of these while they are active: so does the table. */
#define WATCHER(name, op)                                                                        \
	TACHO_HOOK int name(void *handle, uv_object_cb cb)                                       \
	{                                                                                        \
		struct tacho__uv_start s = UV_START(handle);                                     \
		uv_object_cb use = cb;                                                           \
                                                                                                 \
		if (cb && !UV_REAL(s.uv, uv_is_active)(handle))                                  \
			use = UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(op, 0), cb, on_handle); \
		return tacho__uv_started(&s, UV_REAL(s.uv, name)(handle, use));                  \
	}

WATCHER(uv_idle_start, TACHO__UV_IDLE)
WATCHER(uv_prepare_start, TACHO__UV_PREPARE)
WATCHER(uv_check_start, TACHO__UV_CHECK)

TACHO_HOOK int uv_poll_start(void *handle, int events, uv_poll_cb cb)
{
	struct tacho__uv_start s = UV_START(handle);
	uv_poll_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_POLL, 0), cb, on_poll)
		   : cb;

	return tacho__uv_started(&s, UV_REAL(s.uv, uv_poll_start)(handle, events, use));
}

#define SIGNAL(name)                                                                              \
	TACHO_HOOK int name(void *handle, uv_status_cb cb, int signum)                            \
	{                                                                                         \
		struct tacho__uv_start s = UV_START(handle);                                      \
		uv_status_cb use =                                                                \
			cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_SIGNAL, 0), cb, \
				     on_status)                                                   \
			   : cb;                                                                  \
                                                                                                  \
		return tacho__uv_started(&s, UV_REAL(s.uv, name)(handle, use, signum));           \
	}

SIGNAL(uv_signal_start)
SIGNAL(uv_signal_start_oneshot)

TACHO_HOOK int uv_fs_event_start(void *handle, uv_fs_event_cb cb, const char *path, unsigned flags)
{
	struct tacho__uv_start s = UV_START(handle);
	uv_fs_event_cb use = cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_FS_EVENT, 0),
					  cb, on_fs_event)
				: cb;

	return tacho__uv_started(&s, UV_REAL(s.uv, uv_fs_event_start)(handle, use, path, flags));
}

TACHO_HOOK int uv_fs_poll_start(void *handle, uv_fs_poll_cb cb, const char *path, unsigned interval)
{
	struct tacho__uv_start s = UV_START(handle);
	uv_fs_poll_cb use = cb;

	if (cb && !UV_REAL(s.uv, uv_is_active)(handle))
		use = UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_FS_POLL, 0), cb,
			      on_fs_poll);
	return tacho__uv_started(&s, UV_REAL(s.uv, uv_fs_poll_start)(handle, use, path, interval));
}

TACHO_HOOK int uv_spawn(void *loop, void *process, const struct uv_process_options *options)
{
	struct tacho__uv_start s = UV_START(process);
	struct uv_process_options changed;

	if (!options || !options->exit_cb)
		return UV_REAL(s.uv, uv_spawn)(loop, process, options);
	changed = *options;
	changed.exit_cb = UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_PROCESS, 0),
				  options->exit_cb, on_exit);
	return tacho__uv_started(&s, UV_REAL(s.uv, uv_spawn)(loop, process, &changed));
}

/* -------------------------------------------------- streams and UDP */

TACHO_HOOK int uv_listen(void *stream, int backlog, uv_status_cb cb)
{
	struct tacho__uv_start s = UV_START(stream);
	uv_status_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, tacho__uv_type(s.uv, TACHO__UV_LISTEN, stream), cb,
			     on_status)
		   : cb;

	return tacho__uv_started(&s, UV_REAL(s.uv, uv_listen)(stream, backlog, use));
}

TACHO_HOOK int uv_read_start(void *stream, uv_alloc_cb alloc_cb, uv_read_cb read_cb)
{
	struct tacho__uv_start s = UV_START(stream), a = s;
	int result;

	if (!stream || !alloc_cb || !read_cb)
		return UV_REAL(s.uv, uv_read_start)(stream, alloc_cb, read_cb);
	alloc_cb = UV_WRAP(&a, TACHO__UV_ALLOC, tacho__uv_type(s.uv, TACHO__UV_OP_ALLOC, stream),
			   alloc_cb, on_alloc);
	read_cb = UV_WRAP(&s, TACHO__UV_READ, tacho__uv_type(s.uv, TACHO__UV_OP_READ, stream),
			  read_cb, on_read);
	result = UV_REAL(s.uv, uv_read_start)(stream, alloc_cb, read_cb);
	tacho__uv_started(&a, result);
	return tacho__uv_started(&s, result);
}

TACHO_HOOK int uv_udp_recv_start(void *handle, uv_alloc_cb alloc_cb, uv_udp_recv_cb recv_cb)
{
	struct tacho__uv_start s = UV_START(handle), a = s;
	int result;

	if (!handle || !alloc_cb || !recv_cb)
		return UV_REAL(s.uv, uv_udp_recv_start)(handle, alloc_cb, recv_cb);
	alloc_cb = UV_WRAP(&a, TACHO__UV_ALLOC, tacho__uv_type(s.uv, TACHO__UV_OP_ALLOC, handle),
			   alloc_cb, on_alloc);
	recv_cb = UV_WRAP(&s, TACHO__UV_READ, tacho__uv_type(s.uv, TACHO__UV_OP_READ, handle),
			  recv_cb, on_recv);
	result = UV_REAL(s.uv, uv_udp_recv_start)(handle, alloc_cb, recv_cb);
	tacho__uv_started(&a, result);
	return tacho__uv_started(&s, result);
}

/* ------------------------------------------------------------ closing */

/* A wake that was sent to the handle and is not served yet never will be. */
static void forget_wake(const void *handle)
{
	if (tacho__unlikely(tacho__load(&tacho__watching) & TACHO__WATCH(WAKE)))
		tacho__wake_forgotten((uint64_t)(uintptr_t)handle);
}

TACHO_HOOK void uv_close(void *handle, uv_object_cb cb)
{
	struct tacho__uv_start s = UV_START(handle);
	uint16_t type = tacho__uv_type(s.uv, TACHO__UV_OP_CLOSE, handle);

	forget_wake(handle);
	/* Without a callback as well: the handle's entries go when it does. */
	UV_REAL(s.uv, uv_close)(handle, UV_WRAP(&s, TACHO__UV_CLOSE, type, cb, on_close));
}

TACHO_HOOK int uv_tcp_close_reset(void *handle, uv_object_cb cb)
{
	struct tacho__uv_start s = UV_START(handle);
	uint16_t type = tacho__uv_type(s.uv, TACHO__UV_OP_CLOSE, handle);
	uv_object_cb use = UV_WRAP(&s, TACHO__UV_CLOSE, type, cb, on_close);

	return tacho__uv_started(&s, UV_REAL(s.uv, uv_tcp_close_reset)(handle, use));
}
