/*
 * Waits of event loops as park and unpark, in any program: those in epoll here, those in poll and
 * select in waits_poll.c.
 *
 * An epoll descriptor is a loop. Where libuv or libevent were seen to run the loop, it is theirs, with
 * their level of sight (tacho__loop_known).
 *
 * A thread that has told by tacho.h that it parks, as a worker of Tokio does, waits for the loop that it
 * said. Its park stands; the wait in it ends where the call returns, with what is ready, and not
 * where the program says so, after it has handled that. Until it says so, it may wait again.
 */
#include "hooks/hooks.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/sys.h"
#include "base/text.h"
#include "core/control.h"
#include "core/define.h"
#include "core/pool.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/watched.h"
#include "format/underway.h"
#include "hooks/alive.h"
#include "hooks/between.h"
#include "hooks/calls.h"
#include "hooks/waits.h"

#define READY_MAX 64 /* descriptors of one wait that are recorded one by one */
#define OVERSLEPT_NS UINT64_C(100000000)
#define FOREVER_NS UINT64_MAX /* the wait has no time-out */

static uint32_t define_loop(int fd, const char *what)
{
	char name[64], comm[16];
	struct tacho__text t;
	uint64_t number = (uint64_t)(fd == TACHO__NO_DESCRIPTOR ? tacho__gettid() : fd);

	/* One for all threads, which come and go. */
	if (fd == TACHO__CLIENTS)
		return tacho__define_name(TACHO_DEF_LOOP, what, NULL, 0, 0, TACHO_LEVEL_WAITS,
					  NULL);
	if (TACHO__SYS(SYS_prctl, 16 /* PR_GET_NAME */, comm, 0, 0, 0, 0))
		comm[0] = 0;
	tacho__text_init(&t, name, sizeof(name));
	tacho__text_put_n(&t, comm, strnlen(comm, sizeof(comm)));
	tacho__text_put(&t, " ");
	tacho__text_put(&t, what);
	if (fd != TACHO__NO_DESCRIPTOR) {
		tacho__text_put(&t, " ");
		tacho__text_put_u64(&t, number);
	}
	return tacho__define_name(TACHO_DEF_LOOP, name, NULL, 0, number, TACHO_LEVEL_WAITS, NULL);
}

void tacho__loop_known(int fd, uint32_t loop, uint32_t level)
{
	tacho__hook.loop = loop;
	tacho__hook.loop_fd = fd;
	tacho__hook.loop_epoch = tacho__load(&tacho__rec->epoch);
	tacho__hook.level = level;
	tacho__calls_loop();
}

void tacho__source_on(enum tacho_source source)
{
	uint64_t mask;

	if (tacho__enter(&mask))
		tacho__rec->super->sources[source].state = TACHO_SOURCE_ON;
	tacho__leave(mask);
}

/* Whether the thread is in a park that the program told, and has not said that it is back. One of ours
   that it left by longjmp is none. */
static inline int is_in_park(void)
{
	const struct tacho_underway *now = &tacho__self->now;

	return (now->parked || tacho__unpark_told) && now->loop &&
	       (now->loop != tacho__hook.loop || tacho__hook.level == TACHO_LEVEL_API);
}

/* The loop that this thread is about to wait for; 0 when it can't be recorded. */
static uint32_t wait_loop(int fd, const char *what)
{
	struct tacho__hook_thread *h = &tacho__hook;
	uint32_t loop;

	if (tacho__unlikely(is_in_park() &&
			    (h->loop != tacho__self->now.loop || h->loop_fd != fd)) &&
	    tacho__recorder_ready())
		tacho__loop_known(fd, tacho__self->now.loop, TACHO_LEVEL_API);
	if (tacho__likely(h->loop && h->loop_fd == fd && tacho__rec &&
			  h->loop_epoch == tacho__load(&tacho__rec->epoch)))
		return h->loop;
	/* A child begins anew. */
	if (!tacho__rec || h->loop_epoch != tacho__load(&tacho__rec->epoch))
		h->epolls = h->polls = h->asides = 0;
	if (!tacho__recorder_ready()) {
		tacho__recorder_lost();
		return 0;
	}
	/* Threads that block all signals do so before they begin to wait. */
	tacho__samples_thread();
	loop = tacho__event_waits() ? tacho__event_loop() : tacho__uv_loop(fd);
	if (loop)
		tacho__loop_known(fd, loop, TACHO_LEVEL_CALLBACKS);
	else
		tacho__loop_known(fd, define_loop(fd, what), TACHO_LEVEL_WAITS);
	tacho__eventfds_define();
	return h->loop;
}

/* How long the thread ran in a turn, as sched.c has just read; `looked`: when it did so before. 0:
   not known. */
static uint64_t ran_ticks(uint64_t since, uint64_t until, uint64_t looked)
{
	uint64_t ran = tacho__hook.ran ? tacho__ticks_of_ns(tacho__hook.ran) : 0;
	uint64_t before = since > looked ? since - looked : 0;

	if (ran == UINT64_MAX || ran < before)
		return 0;
	ran -= before;
	return ran < until - since ? ran : until - since;
}

static inline void turn_ended(uint32_t loop, uint64_t since, uint64_t until)
{
	/* Where callbacks are seen, each speaks for itself; and so do polls that the program tells. The
	   last one is over, but still where it was. */
	int whole = tacho__hook.level == TACHO_LEVEL_WAITS &&
		    tacho__self->now.open[0].since < tacho__hook.turn;

	uint64_t looked = tacho__hook.looked;

	tacho__hook.ran = 0;
	if (whole && tacho__unlikely(until - since >= tacho__slow_ticks))
		tacho__sched_iterated(until - since, loop);
	if (tacho__unlikely(tacho__turn_is_above(until - since, whole)))
		tacho__turn_above(since, until, loop, whole, ran_ticks(since, until, looked));
}

struct tacho__loop_wait tacho__loop_wait_parks(int fd, const char *what)
{
	struct tacho__hook_thread *h = &tacho__hook;
	struct tacho__loop_wait w = {0, 0};
	uint32_t process;

	h->interrupted = 0;
	if (!tacho__recording() || tacho__is_inside() ||
	    (fd == TACHO__NO_DESCRIPTOR && h->callbacks && !tacho__event_waits()))
		return w;
	w.loop = wait_loop(fd, what);
	if (!w.loop)
		return w;
	process = tacho__load(&tacho__rec->process);
	if (tacho__unlikely(h->sampled != process || !process))
		tacho__samples_thread();
	if (is_in_park()) {
		tacho__unpark_told = 1;
		if (tacho__self->now.parked) {
			w.since = tacho__self->now.park_time;
			h->turn = 0; /* which its park has ended */
			return w;
		}
	}
	w.since = tacho__record_from(tacho_record_head(TACHO_REC_PARK, w.loop), NULL, 0,
				     tacho__shared(), tacho__frame());
	if (h->turn && w.since > h->turn)
		turn_ended(w.loop, h->turn, w.since);
	h->turn = 0;
	return w;
}

/* The wait ended at `ticks` (0: it was not recorded). Keeps errno. */
static void unparked(uint64_t ticks)
{
	int saved = errno;

	tacho__hook.turn = ticks;
	tacho__edge(ticks, tacho__hook.level == TACHO_LEVEL_CALLBACKS);
	if (tacho__look_is_due(ticks))
		tacho__sched_turn(ticks, 1);
	tacho__unparked();
	errno = saved;
}

static inline uint32_t count_of(int ready)
{
	return ready < 0 ? 0 : ready < (int)TACHO_ARG_MAX ? (uint32_t)ready : TACHO_ARG_MAX;
}

static inline void keep_loop(const struct tacho__loop_wait *w)
{
	if (tacho__unlikely(tacho__self->now.loop != w->loop))
		tacho__loop(w->loop);
}

uint64_t tacho__loop_wait_unparks(const struct tacho__loop_wait *w, int ready)
{
	uint64_t ticks;

	keep_loop(w);
	ticks = tacho__record(tacho_record_head(TACHO_REC_UNPARK, count_of(ready)), NULL, 0);
	unparked(ticks);
	return ticks;
}

/*
 * A wait that failed: whether the signal of a CPU sample was what ended it. Then it goes on,
 * with the time that is left, and the program sees nothing of it. A signal of the program
 * that comes between that and the next try is not seen as EINTR, as it would not be if it
 * came just before the wait; programs that must not miss one block it outside of ppoll and
 * kin, and then it ends the next try.
 */
int tacho__loop_wait_goes_on(void)
{
	if (tacho__likely(errno != EINTR || !tacho__hook.interrupted))
		return 0;
	tacho__hook.interrupted = 0;
	return 1;
}

static uint64_t elapsed_ns(const struct tacho__loop_wait *w)
{
	return w->since > TACHO__NOTED ? tacho__ns_of_ticks(tacho__ticks() - w->since) : 0;
}

int tacho__loop_wait_goes_on_ms(const struct tacho__loop_wait *w, int whole, int *left)
{
	uint64_t ms;

	if (!tacho__loop_wait_goes_on())
		return 0;
	ms = elapsed_ns(w) / 1000000;
	if (whole > 0)
		*left = ms < (uint64_t)whole ? whole - (int)ms : 0;
	return 1;
}

static inline uint64_t timeout_of_ms(int ms)
{
	return ms < 0 ? FOREVER_NS : (uint64_t)ms * 1000000;
}

/* Years count as two centuries. */
static uint64_t timeout_of(const struct timespec *t)
{
	const uint64_t second = 1000000000u;

	if (!t)
		return FOREVER_NS;
	return (uint64_t)t->tv_sec < UINT64_MAX / second / 2
		       ? (uint64_t)t->tv_sec * second + (uint64_t)t->tv_nsec
		       : UINT64_MAX / 2;
}

int tacho__loop_wait_goes_on_ns(const struct tacho__loop_wait *w, const struct timespec *whole,
				const struct timespec **left, struct timespec *room)
{
	const uint64_t second = 1000000000u;
	uint64_t ns, all;

	if (!tacho__loop_wait_goes_on())
		return 0;
	if (!whole)
		return 1;
	ns = elapsed_ns(w);
	all = timeout_of(whole);
	all = ns < all ? all - ns : 0;
	room->tv_sec = (time_t)(all / second);
	room->tv_nsec = (long)(all % second);
	*left = room;
	return 1;
}

/*
 * A wait that ended long after its time-out, for which the thread did not lack a CPU: the process
 * was stopped. Where callbacks are seen, timers say themselves how late they are.
 */
static void look_overslept(const struct tacho__loop_wait *w, uint64_t ticks, uint64_t timeout)
{
	uint64_t ns, due;

	/* A wait of that length is measured when it ends. */
	if (timeout == FOREVER_NS || tacho__likely(tacho__hook.looked != ticks) || !w->since ||
	    tacho__hook.level != TACHO_LEVEL_WAITS || tacho__hook.delayed == UINT64_MAX)
		return;
	ns = tacho__ns_of_ticks(ticks - w->since);
	due = timeout + tacho__hook.delayed;
	if (ns < due || ns - due < OVERSLEPT_NS)
		return;
	ns -= due;
	tacho__record(tacho_record_head(TACHO_REC_LATE, 0), &ns, 1);
}

/* What is ready since the unpark at `ticks`, one by one, as the program will see it: descriptors
   where it keeps those. */
static __attribute__((noinline)) void record_ready(const struct epoll_event *events, int n,
						   uint64_t ticks)
{
	for (int i = 0; i < n && i < READY_MAX; i++) {
		uint64_t word = tacho_ready_word(events[i].data.u64);

		tacho__record_from(
			tacho_record_head(TACHO_REC_READY, events[i].events & TACHO_ARG_MAX), &word,
			1, ticks, tacho__frame());
	}
}

/* Several that are ready, in one record where that holds them. */
static __attribute__((noinline)) uint64_t unpark_list(const struct epoll_event *events, int n)
{
	uint64_t words[1 + READY_MAX];
	uint64_t fits = 1, ticks;
	uint32_t count = 1;

	for (int i = 0; fits && i < n && i < READY_MAX; i++)
		words[count++] = fits = tacho_item_pack(events[i].data.u64, events[i].events);
	if (fits) {
		words[0] = count;
		return tacho__record(tacho_record_head(TACHO_REC_UNPARK_LIST, count_of(n)), words,
				     count);
	}
	ticks = tacho__record(tacho_record_head(TACHO_REC_UNPARK, count_of(n)), NULL, 0);
	record_ready(events, n, ticks);
	return ticks;
}

static void epoll_waited(const struct tacho__loop_wait *w, const struct epoll_event *events, int n,
			 uint64_t timeout)
{
	uint64_t item = n == 1 ? tacho_item_pack(events[0].data.u64, events[0].events) : 0;
	uint64_t ticks;

	keep_loop(w);
	if (tacho__likely(item))
		ticks = tacho__record(tacho_record_head(TACHO_REC_UNPARK_READY, 1), &item, 1);
	else if (n > 0)
		ticks = unpark_list(events, n);
	else
		ticks = tacho__record(tacho_record_head(TACHO_REC_UNPARK, 0), NULL, 0);
	unparked(ticks);
	look_overslept(w, ticks, timeout);
}

/*
 * Whether a loop is run in the middle of a turn of another: one that waits for a child, say. Its thread
 * waits for work on another set, and hardly ever here. Then this is a blocking call.
 */
static __attribute__((noinline)) int in_other_loop(void)
{
	struct tacho__hook_thread *h = &tacho__hook;
	int often = h->epolls >= TACHO__EPOLLS_LEAST && h->asides < h->epolls / 4;

	if (!tacho__recording() || tacho__is_inside() || tacho__event_waits())
		return 0;
	tacho__count_wait(&h->asides);
	return often && tacho__on_loop_thread() && tacho__rec &&
	       h->loop_epoch == tacho__load(&tacho__rec->epoch);
}

static inline struct tacho__loop_wait park_epoll(int fd, int waits, const void *caller)
{
	struct tacho__loop_wait w;

	if (tacho__unlikely(tacho__hook.loop_fd != fd && tacho__hook.loop && waits) &&
	    in_other_loop()) {
		tacho__hook.interrupted = 0;
		w.loop = 0;
		w.since = TACHO__CALL_BEGINS_AT(caller, tacho__call_counts(), "epoll_wait", fd, 1);
		return w;
	}
	w = tacho__loop_wait_parks(fd, "epoll");
	if (w.loop && waits) {
		tacho__count_wait(&tacho__hook.epolls);
		tacho__waits_between(TACHO__AT_EPOLL);
	}
	return w;
}

#define OTHER_ENDS(w, n, fd) \
	TACHO__CALL_ENDS((w).since, "epoll_wait", (n) < 0 ? errno : 0, TACHO__FD(fd))

TACHO_HOOK int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	int left = timeout;
	struct tacho__loop_wait w = park_epoll(epfd, timeout != 0, __builtin_return_address(0));
	int n;

	do {
		n = TACHO_REAL(epoll_wait)(epfd, events, max, left);
	} while (n < 0 && tacho__loop_wait_goes_on_ms(&w, timeout, &left));
	if (w.loop)
		epoll_waited(&w, events, n, timeout_of_ms(timeout));
	else
		OTHER_ENDS(w, n, epfd);
	return n;
}

TACHO_HOOK int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout,
			   const sigset_t *mask)
{
	int left = timeout;
	struct tacho__loop_wait w = park_epoll(epfd, timeout != 0, __builtin_return_address(0));
	int n;

	do {
		n = TACHO_REAL(epoll_pwait)(epfd, events, max, left, mask);
	} while (n < 0 && tacho__loop_wait_goes_on_ms(&w, timeout, &left));
	if (w.loop)
		epoll_waited(&w, events, n, timeout_of_ms(timeout));
	else
		OTHER_ENDS(w, n, epfd);
	return n;
}

TACHO_HOOK int epoll_pwait2(int epfd, struct epoll_event *events, int max,
			    const struct timespec *timeout, const sigset_t *mask)
{
	const struct timespec *left = timeout;
	struct timespec room;
	struct tacho__loop_wait w =
		park_epoll(epfd, tacho__may_wait(timeout), __builtin_return_address(0));
	int n;

	do {
		n = TACHO_REAL(epoll_pwait2)(epfd, events, max, left, mask);
	} while (n < 0 && tacho__loop_wait_goes_on_ns(&w, timeout, &left, &room));
	if (w.loop)
		epoll_waited(&w, events, n, timeout_of(timeout));
	else
		OTHER_ENDS(w, n, epfd);
	return n;
}

/* --------------------------------------------------------- what is waited for */

TACHO_HOOK int epoll_ctl(int epfd, int what, int fd, struct epoll_event *event)
{
	__typeof__(&epoll_ctl) real = TACHO_REAL(epoll_ctl);
	int result;

	if (what == EPOLL_CTL_MOD)
		return real(epfd, what, fd, event);
	result = real(epfd, what, fd, event);
	if (result == 0 && what == EPOLL_CTL_ADD) {
		tacho__alive_begin(TACHO__ALIVE_DESCRIPTOR, tacho__alive_descriptor(fd),
				   __builtin_return_address(0));
		tacho__eventfd_waited_for(fd, event->data.u64);
	} else if (result == 0 && what == EPOLL_CTL_DEL)
		tacho__alive_end(tacho__alive_descriptor(fd));
	return result;
}

/* -------------------------------------------------------- waits of another kind */

uint32_t tacho__loop_parks(int fd, const char *what)
{
	/* libuv waits with epoll alone; it uses io_uring to change what it waits for. */
	return tacho__hook.uv_runs ? 0 : tacho__loop_wait_parks(fd, what).loop;
}

void tacho__loop_unparks(uint32_t loop, int ready)
{
	struct tacho__loop_wait w = {loop, 0};

	tacho__loop_wait_unparks(&w, ready);
}
