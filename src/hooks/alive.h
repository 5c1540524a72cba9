/*
 * What a program begins and has to end: handles of libuv, events of libevent, descriptors, those in
 * epoll sets, threads; and connections that were accepted, as a measure of load. How many are alive is
 * counted by the place that begins them, the address of the caller, and told by a gauge and a
 * counter of that place: not at each change, but as often as it takes to see one grow.
 *
 * A begin costs two look-ups and an atomic exchange, an end one look-up; of threads that are not the
 * first at a place both cost an atomic addition more. Nothing is walked and nothing allocated.
 */
#ifndef TACHO_HOOKS_ALIVE_H
#define TACHO_HOOKS_ALIVE_H

#include "hooks/hooks.h"

/* X(kind, name of the gauge, how often the clock is read: after each 2^n-th change). What takes a
   system call by itself can afford it each time. */
#define TACHO__ALIVE_KINDS(X)                    \
	X(OTHERS, "handle", 3) /* places full */ \
	X(CONNECTION, "connection", 0)           \
	X(DESCRIPTOR, "epoll descriptor", 0)     \
	X(OPENED, "descriptor", 0)               \
	X(THREAD, "thread", 0)                   \
	X(EVENT, "event", 3) /* event_new */     \
	X(EVENT_ADDED, "event added", 3)         \
	X(EVENT_ONCE, "event added once", 3)     \
	X(BUFFEREVENT, "bufferevent", 3)         \
	X(UV_ASYNC, "uv_async", 3)               \
	X(UV_CHECK, "uv_check", 3)               \
	X(UV_FS_EVENT, "uv_fs_event", 3)         \
	X(UV_FS_POLL, "uv_fs_poll", 3)           \
	X(UV_IDLE, "uv_idle", 3)                 \
	X(UV_PIPE, "uv_pipe", 3)                 \
	X(UV_POLL, "uv_poll", 3)                 \
	X(UV_PREPARE, "uv_prepare", 3)           \
	X(UV_PROCESS, "uv_process", 3)           \
	X(UV_TCP, "uv_tcp", 3)                   \
	X(UV_TIMER, "uv_timer", 3)               \
	X(UV_TTY, "uv_tty", 3)                   \
	X(UV_UDP, "uv_udp", 3)                   \
	X(UV_SIGNAL, "uv_signal", 3)

enum tacho__alive {
#define TACHO__ALIVE_NUMBER(kind, name, rate) TACHO__ALIVE_##kind,
	TACHO__ALIVE_KINDS(TACHO__ALIVE_NUMBER)
#undef TACHO__ALIVE_NUMBER
		TACHO__ALIVE_COUNT
};

/*
 * What something is known by: an address, which is aligned, or a descriptor. One that is begun again
 * has ended before, seen or not.
 */
static inline uint64_t tacho__alive_object(const void *object)
{
	return (uintptr_t)object & 7 ? 0 : (uintptr_t)object;
}
static inline uint64_t tacho__alive_descriptor(int fd)
{
	return (uint64_t)(uint32_t)fd << 3 | 1;
}
static inline uint64_t tacho__alive_connection(int fd)
{
	return (uint64_t)(uint32_t)fd << 3 | 2;
}
static inline uint64_t tacho__alive_open(int fd)
{
	return (uint64_t)(uint32_t)fd << 3 | 3;
}

/* errno stays. */
void tacho__alive_begin(enum tacho__alive kind, uint64_t key, const void *caller);
void tacho__alive_ended(uint64_t key);
/* If it is of one of the kinds whose bits are set. */
void tacho__alive_ended_of(uint64_t key, uint32_t kinds);
#define TACHO__ALIVE_BIT(kind) (1u << TACHO__ALIVE_##kind)

extern uint32_t tacho__alive_any; /* 1: something was begun */
static inline void tacho__alive_end(uint64_t key)
{
	if (tacho__load(&tacho__alive_any))
		tacho__alive_ended(key);
}
static inline void tacho__alive_end_of(uint64_t key, uint32_t kinds)
{
	if (tacho__load(&tacho__alive_any))
		tacho__alive_ended_of(key, kinds);
}

/* Whether it is known to be. */
int tacho__is_alive(uint64_t key);

/* The same for what knows its place by itself: counts one more, and gives the place for its end. */
uint32_t tacho__alive_count(enum tacho__alive kind, const void *caller);
void tacho__alive_uncount(uint32_t place);

/* The program has a new descriptor. One that was closed where no hook sees it has its number again: so no
   more are counted than there are. */
static inline void tacho__alive_opened(int fd, const void *caller)
{
	tacho__alive_begin(TACHO__ALIVE_OPENED, tacho__alive_open(fd), caller);
}

/* A descriptor is closed, or becomes another. */
static inline void tacho__alive_closed(int fd)
{
	tacho__alive_end(tacho__alive_open(fd));
	tacho__alive_end(tacho__alive_descriptor(fd));
	tacho__alive_end(tacho__alive_connection(fd));
}

#endif
