/*
 * Callbacks of libuv's requests.
 *
 * A request's entry goes before its callback runs: the callback may use the request again,
 * or free it.
 */
#include "hooks/uv.h"

#include <string.h>

#include "core/control.h"
#include "core/define.h"
#include "core/record.h"
#include "core/sentinel.h"

#define QUEUE_BYTES 65536u

/* The program's callback begins; 0: there is none. */
static int begin(struct tacho__uv_poll *poll, struct tacho__uv_entry *e, const void *req)
{
	if (tacho__unlikely(!tacho__uv_take(req, TACHO__UV_MAIN, e) || !e->fn)) {
		tacho__uv_missed();
		return 0;
	}
	tacho__uv_poll_begin(poll, e, req);
	return 1;
}

/*
 * What waits for a thread of the pool. When the pool begins with a work of uv_queue_work can be
 * seen; what it does for files and names counts until it is complete. A child has a pool of
 * its own, and finds 0.
 */
static void waits_for_pool(uint16_t type, uv_any_cb fn)
{
	int64_t n = __atomic_add_fetch(&tacho__rec->pool_waits, 1, __ATOMIC_RELAXED);

	if (tacho__unlikely(n > 0 &&
			    (uint64_t)n > tacho__load(&tacho__limit[TACHO_SENTINEL_QUEUE])) &&
	    tacho__recording())
		tacho__above(TACHO_SENTINEL_QUEUE, (uint64_t)n, tacho__uv_kind(type, fn));
}

static void waits_no_more(void)
{
	__atomic_sub_fetch(&tacho__rec->pool_waits, 1, __ATOMIC_RELAXED);
}

/* The same of what the pool has done. */
static int begin_pooled(struct tacho__uv_poll *poll, struct tacho__uv_entry *e, const void *req)
{
	waits_no_more();
	return begin(poll, e, req);
}

#define CALLBACK(begins, type, req, ...)                       \
	do {                                                   \
		struct tacho__uv_poll poll = {0};              \
		struct tacho__uv_entry e;                      \
                                                               \
		if (begins(&poll, &e, (req))) {                \
			((type)e.fn)((req), ##__VA_ARGS__);    \
			tacho__uv_poll_end(&poll, TACHO_DONE); \
		}                                              \
	} while (0)

static void on_status(void *req, int status)
{
	CALLBACK(begin, uv_status_cb, req, status);
}

static void on_fs(void *req)
{
	CALLBACK(begin_pooled, uv_object_cb, req);
}

static void on_getaddrinfo(void *req, int status, struct addrinfo *result)
{
	CALLBACK(begin_pooled, uv_getaddrinfo_cb, req, status, result);
}

static void on_getnameinfo(void *req, int status, const char *host, const char *service)
{
	CALLBACK(begin_pooled, uv_getnameinfo_cb, req, status, host, service);
}

static void on_random(void *req, int status, void *buf, size_t size)
{
	CALLBACK(begin_pooled, uv_random_cb, req, status, buf, size);
}

/* --------------------------------------------------- streams and UDP */

/* A gauge of what waits in the stream's queue, once that is more than sockets take at once. */
static int wrote(struct tacho__uv *uv, const void *stream, int result)
{
	static uint64_t known; /* epoch of the box << 32 | definition */
	uint64_t size, epoch, bits, id;
	double value;

	if (result || !tacho__recording() ||
	    !tacho__uv_has(uv, TACHO__UV_uv_stream_get_write_queue_size))
		return result;
	size = UV_REAL(uv, uv_stream_get_write_queue_size)(stream);
	if (tacho__likely(size < QUEUE_BYTES) || !tacho__recorder_ready())
		return result;
	epoch = tacho__load(&tacho__rec->epoch);
	id = tacho__load(&known);
	if (id >> 32 != (uint32_t)epoch || !id) {
		id = epoch << 32 |
		     tacho__define_name(TACHO_DEF_GAUGE, "uv write queue", NULL, 0, 0, 2, "bytes");
		tacho__store(&known, id);
	}
	value = (double)size;
	memcpy(&bits, &value, sizeof(bits));
	tacho__put1(TACHO_REC_COUNTER, (uint32_t)id, bits);
	return result;
}

TACHO_HOOK int uv_write(void *req, void *stream, const void *bufs, unsigned count, uv_status_cb cb)
{
	struct tacho__uv_start s = UV_START(req);
	uv_status_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, tacho__uv_type(s.uv, TACHO__UV_WRITE, stream), cb,
			     on_status)
		   : cb;

	return wrote(s.uv, stream,
		     tacho__uv_started(&s, UV_REAL(s.uv, uv_write)(req, stream, bufs, count, use)));
}

static __attribute__((noinline)) int write2(void *req, void *stream, const void *bufs,
					    unsigned count, void *send, uv_status_cb cb,
					    const void *caller)
{
	struct tacho__uv_start s = {.uv = tacho__uv_of(caller), .object = req, .entry = NULL};
	uv_status_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, tacho__uv_type(s.uv, TACHO__UV_WRITE, stream), cb,
			     on_status)
		   : cb;

	return wrote(s.uv, stream,
		     tacho__uv_started(
			     &s, UV_REAL(s.uv, uv_write2)(req, stream, bufs, count, send, use)));
}

TACHO_HOOK int uv_write2(void *req, void *stream, const void *bufs, unsigned count, void *send,
			 uv_status_cb cb)
{
	const void *caller = __builtin_return_address(0);

	/* libuv's uv_write calls it: then all is done there. */
	if (tacho__likely(cb == on_status))
		return UV_REAL(tacho__uv_of(caller), uv_write2)(req, stream, bufs, count, send, cb);
	return write2(req, stream, bufs, count, send, cb, caller);
}

TACHO_HOOK int uv_shutdown(void *req, void *stream, uv_status_cb cb)
{
	struct tacho__uv_start s = UV_START(req);
	uv_status_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, tacho__uv_type(s.uv, TACHO__UV_SHUTDOWN, stream),
			     cb, on_status)
		   : cb;

	return tacho__uv_started(&s, UV_REAL(s.uv, uv_shutdown)(req, stream, use));
}

TACHO_HOOK int uv_tcp_connect(void *req, void *handle, const struct sockaddr *addr, uv_status_cb cb)
{
	struct tacho__uv_start s = UV_START(req);
	uv_status_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, tacho__uv_type(s.uv, TACHO__UV_CONNECT, handle),
			     cb, on_status)
		   : cb;

	return tacho__uv_started(&s, UV_REAL(s.uv, uv_tcp_connect)(req, handle, addr, use));
}

TACHO_HOOK void uv_pipe_connect(void *req, void *handle, const char *name, uv_status_cb cb)
{
	struct tacho__uv_start s = UV_START(req);
	uv_status_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, tacho__uv_type(s.uv, TACHO__UV_CONNECT, handle),
			     cb, on_status)
		   : cb;

	UV_REAL(s.uv, uv_pipe_connect)(req, handle, name, use);
}

TACHO_HOOK int uv_pipe_connect2(void *req, void *handle, const char *name, size_t size,
				unsigned flags, uv_status_cb cb)
{
	struct tacho__uv_start s = UV_START(req);
	uv_status_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, tacho__uv_type(s.uv, TACHO__UV_CONNECT, handle),
			     cb, on_status)
		   : cb;

	return tacho__uv_started(
		&s, UV_REAL(s.uv, uv_pipe_connect2)(req, handle, name, size, flags, use));
}

TACHO_HOOK int uv_udp_send(void *req, void *handle, const void *bufs, unsigned count,
			   const struct sockaddr *addr, uv_status_cb cb)
{
	struct tacho__uv_start s = UV_START(req);
	uv_status_cb use = cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_UDP_SEND, 0),
					cb, on_status)
			      : cb;

	return tacho__uv_started(&s,
				 UV_REAL(s.uv, uv_udp_send)(req, handle, bufs, count, addr, use));
}

/* ----------------------------------------------------------- the pool */

static void record_work(uint32_t record, uint16_t type, uv_any_cb fn, const void *req)
{
	uint64_t task = (uint64_t)(uintptr_t)req;
	uint32_t kind;

	if (!tacho__recording())
		return;
	kind = tacho__uv_kind(type, fn);
	if (kind)
		tacho__put1(record, kind, task);
}

/* A request that libuv's pool serves was started, or not. When the pool begins with it, and
   where, cannot be seen. */
static int submitted(struct tacho__uv_start *s, int result)
{
	tacho__uv_started(s, result);
	if (result >= 0 && s->wrapped) {
		record_work(TACHO_REC_WORK_SUBMIT, s->entry->type, s->entry->fn, s->object);
		waits_for_pool(s->entry->type, s->entry->fn);
	}
	return result;
}

enum {
#define UV_FS_OP(name, params, args) OP_##name,
	OP_before = TACHO__UV_FS_FIRST - 1,
	UV_FS(UV_FS_OP)
#undef UV_FS_OP
};

#define FS_HOOK(name, params, args)                                                               \
	TACHO_HOOK int name(void *loop, void *req, params, uv_object_cb cb)                       \
	{                                                                                         \
		struct tacho__uv_start s = UV_START(req);                                         \
		uv_object_cb use =                                                                \
			cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(OP_##name, 0), cb, on_fs) \
			   : cb;                                                                  \
                                                                                                  \
		return submitted(&s, UV_REAL(s.uv, name)(loop, req, args, use));                  \
	}

UV_FS(FS_HOOK)

TACHO_HOOK int uv_getaddrinfo(void *loop, void *req, uv_getaddrinfo_cb cb, const char *node,
			      const char *service, const struct addrinfo *hints)
{
	struct tacho__uv_start s = UV_START(req);
	uv_getaddrinfo_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_GETADDRINFO, 0), cb,
			     on_getaddrinfo)
		   : cb;

	return submitted(&s, UV_REAL(s.uv, uv_getaddrinfo)(loop, req, use, node, service, hints));
}

TACHO_HOOK int uv_getnameinfo(void *loop, void *req, uv_getnameinfo_cb cb,
			      const struct sockaddr *addr, int flags)
{
	struct tacho__uv_start s = UV_START(req);
	uv_getnameinfo_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_GETNAMEINFO, 0), cb,
			     on_getnameinfo)
		   : cb;

	return submitted(&s, UV_REAL(s.uv, uv_getnameinfo)(loop, req, use, addr, flags));
}

TACHO_HOOK int uv_random(void *loop, void *req, void *buf, size_t size, unsigned flags,
			 uv_random_cb cb)
{
	struct tacho__uv_start s = UV_START(req);
	uv_random_cb use =
		cb ? UV_WRAP(&s, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_RANDOM, 0), cb, on_random)
		   : cb;

	return submitted(&s, UV_REAL(s.uv, uv_random)(loop, req, buf, size, flags, use));
}

/* On a thread of the pool. The entry stays until the request is complete: one that is
   cancelled never gets here. */
static void on_work(void *req)
{
	const struct tacho__uv_entry *found = tacho__uv_find(req, TACHO__UV_WORK);
	struct tacho__uv_entry e;
	uint64_t task = (uint64_t)(uintptr_t)req;

	waits_no_more();
	if (tacho__unlikely(!found)) {
		tacho__uv_missed();
		return;
	}
	e = *found;
	record_work(TACHO_REC_WORK_BEGIN, e.type, e.fn, req);
	((uv_object_cb)e.fn)(req);
	if (tacho__recording())
		tacho__record(tacho_record_head(TACHO_REC_WORK_END, 0), &task, 1);
}

static void on_after_work(void *req, int status)
{
	struct tacho__uv_poll poll = {0};
	struct tacho__uv_entry e, gone;

	if (tacho__uv_take(req, TACHO__UV_WORK, &gone) && status == -ECANCELED)
		waits_no_more();
	if (!tacho__uv_take(req, TACHO__UV_MAIN, &e)) {
		tacho__uv_missed();
		return;
	}
	if (!e.fn)
		return;
	tacho__uv_poll_begin(&poll, &e, req);
	((uv_status_cb)e.fn)(req, status);
	tacho__uv_poll_end(&poll, TACHO_DONE);
}

TACHO_HOOK int uv_queue_work(void *loop, void *req, uv_object_cb work_cb, uv_status_cb after_cb)
{
	struct tacho__uv_start w = UV_START(req), a = w;
	uint16_t type = TACHO__UV_TYPE(TACHO__UV_OP_WORK, 0);
	uv_object_cb work = work_cb;
	int counted, result;

	if (!work_cb)
		return UV_REAL(w.uv, uv_queue_work)(loop, req, work_cb, after_cb);
	after_cb = UV_WRAP(&a, TACHO__UV_MAIN, TACHO__UV_TYPE(TACHO__UV_AFTER_WORK, 0), after_cb,
			   on_after_work);
	/* Only with the other: that one removes this entry. */
	if (a.wrapped) {
		work = UV_WRAP(&w, TACHO__UV_WORK, type, work_cb, on_work);
		/* Before the pool has it: its first record may come at once. */
		record_work(TACHO_REC_WORK_SUBMIT, type, (uv_any_cb)work_cb, req);
	}
	counted = work == on_work;
	if (counted)
		waits_for_pool(type, (uv_any_cb)work_cb);
	result = UV_REAL(w.uv, uv_queue_work)(loop, req, work, after_cb);
	if (counted && result < 0)
		waits_no_more();
	tacho__uv_started(&w, result);
	return tacho__uv_started(&a, result);
}
