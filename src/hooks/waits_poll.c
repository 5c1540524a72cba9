/*
 * Waits in poll and select: a thread that waits so is a loop, unless it has one of another kind; then
 * these are blocking calls (in_work).
 */
#include <poll.h>
#include <sys/select.h>

#include "core/control.h"
#include "core/record.h"
#include "format/underway.h"
#include "hooks/between.h"
#include "hooks/calls.h"
#include "hooks/waits.h"

#define STACK_NEAR (64u << 10)

/* Whether the thread is in a callback, or in a poll that the program tells. */
static int in_poll(void)
{
	const struct tacho__writer *t = tacho__self;

	return tacho__hook.callbacks ||
	       (tacho__on_loop_thread() && (t->pending_kind || tacho_underway_poll(&t->now)));
}

/*
 * Whether poll or select is called in the middle of work, by a client library say, and is not how
 * the thread waits for work: in a poll, on a thread of a pool, where nearly all its waits are in
 * epoll, or where this `code` has called it between two of them before. `waits`: it may wait. What
 * looks only, without a time-out, tells nothing of how a thread waits: loops of poll with an epoll set
 * among their descriptors empty it so.
 */
static int in_work(int waits, const void *code)
{
	struct tacho__hook_thread *h = &tacho__hook;
	int often, between = 0;

	if (!tacho__recording() || tacho__is_inside() || tacho__event_waits())
		return 0;
	if (in_poll() || (h->serves && !h->loop))
		return 1;
	/* Programs of Rust look so at their standard descriptors when they start. */
	if (!waits && !h->loop && !h->glanced) {
		h->glanced = 1;
		return 1;
	}
	often = h->epolls >= TACHO__EPOLLS_LEAST && h->polls < h->epolls / 4;
	if (waits && h->loop) {
		tacho__count_wait(&h->polls);
		between = tacho__waits_between(code);
	}
	return (often || between) && tacho__on_loop_thread() && tacho__rec &&
	       h->loop_epoch == tacho__load(&tacho__rec->epoch);
}

/* What does not wait is no blocking call, and not timed, unless every call is recorded. */
static int poll_counts(int waits)
{
	tacho__hook.interrupted = 0;
	return (waits || !tacho__load(&tacho__call_ticks)) && tacho__call_counts();
}

/* The only descriptor of a poll, where it lies on the stack of the caller, as it does in a function
   that waits for one; elsewhere it may not be there to be read. -1: not known. */
static inline int only_on_stack(const struct pollfd *fds, nfds_t count, uintptr_t frame)
{
	return count == 1 && (uintptr_t)fds - frame < STACK_NEAR ? fds->fd : -1;
}

/* A thread that has polled several at a time is a loop of its own. */
static struct tacho__loop_wait park_poll(const char *what, int only)
{
	if (only >= 0 && tacho__may_be_for_client(TACHO__POLLS) &&
	    tacho__is_for_client(only, TACHO__POLLS))
		return tacho__loop_wait_parks(TACHO__CLIENTS, TACHO_CLIENTS);
	return tacho__loop_wait_parks(TACHO__NO_DESCRIPTOR, what);
}

#define POLL_BEGINS(name, what, waits, some, only)                                           \
	(in_work(waits, (some) ? __builtin_return_address(0) : TACHO__AT_NOTHING)            \
		 ? (struct tacho__loop_wait){0, TACHO__CALL_BEGINS(poll_counts(waits), name, \
								   TACHO__ON_NOTHING)}       \
		 : park_poll(what, (waits) ? (only) : -1))

#define POLL_ENDS(w, name, n, ...)                                                           \
	do {                                                                                 \
		if ((w).loop)                                                                \
			tacho__loop_wait_unparks(&(w), n);                                   \
		else                                                                         \
			TACHO__CALL_ENDS((w).since, name, (n) < 0 ? errno : 0, __VA_ARGS__); \
	} while (0)

/* The descriptor, where the kernel has read one. */
#define ONLY_FD(n, fds, count) TACHO__FD((n) >= 0 && (count) == 1 ? (fds)->fd : -1)

TACHO_HOOK int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	int left = timeout;
	struct tacho__loop_wait w = POLL_BEGINS("poll", "poll", timeout != 0, count != 0,
						only_on_stack(fds, count, tacho__frame()));
	int n;

	do {
		n = TACHO_REAL(poll)(fds, count, left);
	} while (n < 0 && tacho__loop_wait_goes_on_ms(&w, timeout, &left));
	POLL_ENDS(w, "poll", n, ONLY_FD(n, fds, count));
	return n;
}

TACHO_HOOK int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		     const sigset_t *mask)
{
	const struct timespec *left = timeout;
	struct timespec room;
	struct tacho__loop_wait w =
		POLL_BEGINS("ppoll", "poll", tacho__may_wait(timeout), count != 0,
			    only_on_stack(fds, count, tacho__frame()));
	int n;

	do {
		n = TACHO_REAL(ppoll)(fds, count, left, mask);
	} while (n < 0 && tacho__loop_wait_goes_on_ns(&w, timeout, &left, &room));
	POLL_ENDS(w, "ppoll", n, ONLY_FD(n, fds, count));
	return n;
}

/* The kernel writes into `timeout` what is left of it, and leaves the sets alone. */
TACHO_HOOK int select(int count, fd_set *readable, fd_set *writable, fd_set *broken,
		      struct timeval *timeout)
{
	struct tacho__loop_wait w =
		POLL_BEGINS("select", "select", !timeout || timeout->tv_sec || timeout->tv_usec,
			    readable || writable || broken, -1);
	int n;

	do {
		n = TACHO_REAL(select)(count, readable, writable, broken, timeout);
	} while (n < 0 && tacho__loop_wait_goes_on());
	POLL_ENDS(w, "select", n, TACHO__NOTHING);
	return n;
}

TACHO_HOOK int pselect(int count, fd_set *readable, fd_set *writable, fd_set *broken,
		       const struct timespec *timeout, const sigset_t *mask)
{
	const struct timespec *left = timeout;
	struct timespec room;
	struct tacho__loop_wait w = POLL_BEGINS("pselect", "select", tacho__may_wait(timeout),
						readable || writable || broken, -1);
	int n;

	do {
		n = TACHO_REAL(pselect)(count, readable, writable, broken, left, mask);
	} while (n < 0 && tacho__loop_wait_goes_on_ns(&w, timeout, &left, &room));
	POLL_ENDS(w, "pselect", n, TACHO__NOTHING);
	return n;
}

/* What programs that are built with _FORTIFY_SOURCE call instead. */
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t size);

TACHO_HOOK int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size)
{
	int left = timeout;
	struct tacho__loop_wait w = POLL_BEGINS("poll", "poll", timeout != 0, count != 0,
						only_on_stack(fds, count, tacho__frame()));
	int n;

	do {
		n = TACHO_REAL(__poll_chk)(fds, count, left, size);
	} while (n < 0 && tacho__loop_wait_goes_on_ms(&w, timeout, &left));
	POLL_ENDS(w, "poll", n, ONLY_FD(n, fds, count));
	return n;
}

TACHO_HOOK int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			   const sigset_t *mask, size_t size)
{
	const struct timespec *left = timeout;
	struct timespec room;
	struct tacho__loop_wait w =
		POLL_BEGINS("ppoll", "poll", tacho__may_wait(timeout), count != 0,
			    only_on_stack(fds, count, tacho__frame()));
	int n;

	do {
		n = TACHO_REAL(__ppoll_chk)(fds, count, left, mask, size);
	} while (n < 0 && tacho__loop_wait_goes_on_ns(&w, timeout, &left, &room));
	POLL_ENDS(w, "ppoll", n, ONLY_FD(n, fds, count));
	return n;
}
