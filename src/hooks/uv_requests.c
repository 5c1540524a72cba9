/*
 * Callbacks of libuv's requests.
 */
#include "hooks/uv.h"

#include <string.h>

#include "core/control.h"
#include "core/define.h"

#define QUEUE_BYTES 65536u

/* --------------------------------------------------- streams and UDP */

/* A gauge of what waits in the stream's queue, once that is more than sockets take at once. */
static int wrote(struct tacho__uv *uv, const void *stream, int result)
{
	static uint64_t known; /* epoch of the box << 32 | definition */
	uint64_t size, epoch, bits, id;
	double value;

	if (result || !tacho__recording())
		return result;
	size = UV_REAL(uv, uv_stream_get_write_queue_size)(stream);
	if (tacho__likely(size < QUEUE_BYTES) ||
	    !tacho__uv_has(uv, TACHO__UV_uv_stream_get_write_queue_size) ||
	    !tacho__recorder_ready())
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
	struct tacho__uv *uv = UV_CALLER();
	uv_status_cb use = UV_WRAP(tacho__uv_use(uv, TACHO__UV_WRITE, stream), cb);

	return wrote(uv, stream, UV_REAL(uv, uv_write)(req, stream, bufs, count, use));
}

TACHO_HOOK int uv_write2(void *req, void *stream, const void *bufs, unsigned count, void *send,
			 uv_status_cb cb)
{
	struct tacho__uv *uv = UV_CALLER();
	uv_status_cb use;

	/* libuv's uv_write calls it: then all is done there. */
	if (tacho__likely(tacho__is_thunk((uintptr_t)cb)))
		return UV_REAL(uv, uv_write2)(req, stream, bufs, count, send, cb);
	use = UV_WRAP(tacho__uv_use(uv, TACHO__UV_WRITE, stream), cb);
	return wrote(uv, stream, UV_REAL(uv, uv_write2)(req, stream, bufs, count, send, use));
}

TACHO_HOOK int uv_shutdown(void *req, void *stream, uv_status_cb cb)
{
	struct tacho__uv *uv = UV_CALLER();

	return UV_REAL(uv, uv_shutdown)(req, stream,
					UV_WRAP(tacho__uv_use(uv, TACHO__UV_SHUTDOWN, stream), cb));
}

TACHO_HOOK int uv_tcp_connect(void *req, void *handle, const struct sockaddr *addr, uv_status_cb cb)
{
	struct tacho__uv *uv = UV_CALLER();

	return UV_REAL(uv, uv_tcp_connect)(
		req, handle, addr, UV_WRAP(tacho__uv_use(uv, TACHO__UV_CONNECT, handle), cb));
}

TACHO_HOOK void uv_pipe_connect(void *req, void *handle, const char *name, uv_status_cb cb)
{
	struct tacho__uv *uv = UV_CALLER();

	UV_REAL(uv, uv_pipe_connect)
	(req, handle, name, UV_WRAP(tacho__uv_use(uv, TACHO__UV_CONNECT, handle), cb));
}

TACHO_HOOK int uv_pipe_connect2(void *req, void *handle, const char *name, size_t size,
				unsigned flags, uv_status_cb cb)
{
	struct tacho__uv *uv = UV_CALLER();

	return UV_REAL(uv,
		       uv_pipe_connect2)(req, handle, name, size, flags,
					 UV_WRAP(tacho__uv_use(uv, TACHO__UV_CONNECT, handle), cb));
}

TACHO_HOOK int uv_udp_send(void *req, void *handle, const void *bufs, unsigned count,
			   const struct sockaddr *addr, uv_status_cb cb)
{
	return UV_REAL(UV_CALLER(), uv_udp_send)(req, handle, bufs, count, addr,
						 UV_WRAP(UV_USE(TACHO__UV_UDP_SEND, 0), cb));
}

/* ----------------------------------------------------------- the pool */

static void record_work(uint32_t record, struct tacho__thunk *t, const void *req)
{
	uint32_t kind = tacho__recording() ? tacho__uv_kind(t) : 0;

	if (kind)
		tacho__put1(record, kind, (uint64_t)(uintptr_t)req);
}

/*
 * What waits for a thread of the pool. When the pool begins with a work of uv_queue_work can be
 * seen; what it does for files and names counts until it is complete. A child has a pool of
 * its own, and finds 0.
 */
static void waits_for_pool(struct tacho__thunk *t)
{
	int64_t n = __atomic_add_fetch(&tacho__rec->pool_waits, 1, __ATOMIC_RELAXED);

	if (tacho__unlikely(n > 0 &&
			    (uint64_t)n > tacho__load(&tacho__limit[TACHO_SENTINEL_QUEUE])) &&
	    tacho__recording())
		tacho__above(TACHO_SENTINEL_QUEUE, (uint64_t)n, tacho__uv_kind(t));
}

static void waits_no_more(void)
{
	__atomic_sub_fetch(&tacho__rec->pool_waits, 1, __ATOMIC_RELAXED);
}

/* On a thread of the pool. */
static void run_work(struct tacho__thunk *t, void *req)
{
	uint64_t task = (uint64_t)(uintptr_t)req;

	tacho__serves();
	record_work(TACHO_REC_WORK_BEGIN, t, req);
	((uv_object_cb)t->function)(req);
	if (tacho__recording())
		tacho__record(tacho_record_head(TACHO_REC_WORK_END, 0), &task, 1);
}

int tacho__uv_pooled(struct tacho__thunk *t, enum tacho__uv_op op, void *req, int status)
{
	/* A work that is cancelled never begins. */
	if (op != TACHO__UV_AFTER_WORK || status == -ECANCELED)
		waits_no_more();
	if (op != TACHO__UV_OP_WORK)
		return t->function != 0;
	run_work(t, req);
	return 0;
}

/* A request that libuv's pool serves was started, or not. When the pool begins with it, and
   where, cannot be seen. */
static int submitted(struct tacho__thunk *t, const void *req, int result)
{
	if (result >= 0 && t) {
		record_work(TACHO_REC_WORK_SUBMIT, t, req);
		waits_for_pool(t);
	}
	return result;
}

/* The thunk of a callback, and what libuv gets for it. */
#define THUNK_OF(op, cb) ((cb) ? tacho__uv_thunk(UV_USE((op), 0), (uv_any_cb)(cb)) : NULL)
#define THUNK_OR(t, cb) ((t) ? (__typeof__(cb))tacho__uv_function(t) : (cb))

enum {
#define UV_FS_OP(name, params, args) OP_##name,
	OP_before = TACHO__UV_FS_FIRST - 1,
	UV_FS(UV_FS_OP)
#undef UV_FS_OP
};

#define FS_HOOK(name, params, args)                                                             \
	TACHO_HOOK int name(void *loop, void *req, params, uv_object_cb cb)                     \
	{                                                                                       \
		struct tacho__thunk *t = THUNK_OF(OP_##name, cb);                               \
                                                                                                \
		return submitted(t, req,                                                        \
				 UV_REAL(UV_CALLER(), name)(loop, req, args, THUNK_OR(t, cb))); \
	}

UV_FS(FS_HOOK)

TACHO_HOOK int uv_getaddrinfo(void *loop, void *req, uv_getaddrinfo_cb cb, const char *node,
			      const char *service, const struct addrinfo *hints)
{
	struct tacho__thunk *t = THUNK_OF(TACHO__UV_GETADDRINFO, cb);

	return submitted(t, req,
			 UV_REAL(UV_CALLER(), uv_getaddrinfo)(loop, req, THUNK_OR(t, cb), node,
							      service, hints));
}

TACHO_HOOK int uv_getnameinfo(void *loop, void *req, uv_getnameinfo_cb cb,
			      const struct sockaddr *addr, int flags)
{
	struct tacho__thunk *t = THUNK_OF(TACHO__UV_GETNAMEINFO, cb);

	return submitted(
		t, req,
		UV_REAL(UV_CALLER(), uv_getnameinfo)(loop, req, THUNK_OR(t, cb), addr, flags));
}

TACHO_HOOK int uv_random(void *loop, void *req, void *buf, size_t size, unsigned flags,
			 uv_random_cb cb)
{
	struct tacho__thunk *t = THUNK_OF(TACHO__UV_RANDOM, cb);

	return submitted(
		t, req,
		UV_REAL(UV_CALLER(), uv_random)(loop, req, buf, size, flags, THUNK_OR(t, cb)));
}

TACHO_HOOK int uv_queue_work(void *loop, void *req, uv_object_cb work_cb, uv_status_cb after_cb)
{
	struct tacho__uv *uv = UV_CALLER();
	struct tacho__thunk *work = THUNK_OF(TACHO__UV_OP_WORK, work_cb), *after = NULL;
	int result;

	/* Both or none, also where there is no function to run after it: that one says whether the
	   work was cancelled. */
	if (work)
		after = tacho__uv_thunk(UV_USE(TACHO__UV_AFTER_WORK, 0), (uv_any_cb)after_cb);
	if (!after)
		return UV_REAL(uv, uv_queue_work)(loop, req, work_cb, after_cb);
	/* Before the pool has it: its first record may come at once. */
	record_work(TACHO_REC_WORK_SUBMIT, work, req);
	waits_for_pool(work);
	result = UV_REAL(uv, uv_queue_work)(loop, req, THUNK_OR(work, work_cb),
					    THUNK_OR(after, after_cb));
	if (result < 0)
		waits_no_more();
	return result;
}
