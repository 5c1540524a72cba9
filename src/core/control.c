#include "core/control.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "base/text.h"
#include "core/box.h"
#include "core/crash.h"
#include "core/modules.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/short_polls.h"
#include "core/testpoint.h"
#include "core/writer.h"
#include "tacho.h"

TACHO__HOT int tacho__on;
TACHO__HOT uint32_t tacho__watching; /* here, beside what is looked at before it */
TACHO__HOT struct tacho__recorder *tacho__rec;
struct tacho__writer *tacho__writers;
TACHO__HOT uint32_t tacho__clock_kind = TACHO_CLOCK_MONOTONIC;
struct tacho_anchor tacho__first_anchor;

/* Not emptied by fork: a child records as its parent did. */
static struct tacho__options options;
static int started; /* tacho_start succeeded, tacho_stop was not called since */
static int last_error;
static char last_reason[256];

static int writers_unused; /* made for a box that then could not be made */

static void fork_prepare(void);
static void fork_parent(void);
static void fork_child(void);

int tacho__map_emptied(size_t size, void **out)
{
	intptr_t at = tacho__mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at < 0 && at > -4096)
		return (int)at;
	/* Kernels before 4.14 refuse; then only forks through libc are noticed (fork_child). */
	tacho__madvise((void *)at, size, MADV_WIPEONFORK);
	tacho__madvise((void *)at, size, MADV_DONTDUMP);
	*out = (void *)at;
	return 0;
}

#if defined(TACHO_PRELOAD) && defined(__GLIBC__)
/* pthread_atfork is this and a handle, by which a library that is unloaded is forgotten: this one
   never is. The call in libc's own copy would not be weak. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *handle) __attribute__((weak));
#define at_fork(prepare, parent, child) __register_atfork(prepare, parent, child, NULL)
#else
#define at_fork pthread_atfork
#endif

int tacho__recorder_init(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	void *at;
	int err = 0;

	pthread_mutex_lock(&once);
	if (!tacho__rec) {
		err = tacho__map_emptied(sizeof(struct tacho__recorder), &at);
		if (!err) {
			tacho__writer_init();
			at_fork(fork_prepare, fork_parent, fork_child);
			__atomic_store_n(&tacho__rec, at, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&once);
	return err;
}

/*
 * Writers for a new box. Those of an earlier box of this process, or of its parent, are
 * left alone: threads may still point to theirs, and see only that it is out of date.
 */
static int make_writers(void)
{
	void *at;
	int err;

	if (writers_unused)
		return 0;
	err = tacho__map_emptied(TACHO__THREADS_MAX * sizeof(struct tacho__writer), &at);

	if (!err) {
		tacho__writers = at;
		writers_unused = 1;
		tacho__store(&tacho__rec->free_writers, 0);
	}
	return err;
}

/*
 * A fork in a signal handler that interrupts the storing of a record. In the child the
 * interrupted store goes on when the handler returns, and nothing of what it uses may
 * be gone or in use: it keeps a copy of its writer, which belongs to no box any
 * more, and memory in the place of the box that nobody else looks at.
 *
 * `interrupted` is the thread that forks so, by the address of its tacho__self; other
 * threads that want to do the same at the same time wait for it.
 */
static uintptr_t interrupted;
static struct tacho__writer interrupted_writer;

static void fork_prepare(void)
{
	struct tacho__writer *w = tacho__self;
	uintptr_t none = 0;

	if (w == &tacho__no_writer || !tacho__load(&w->stream[0].busy) ||
	    tacho__load(&interrupted) == (uintptr_t)&tacho__self)
		return;
	while (!__atomic_compare_exchange_n(&interrupted, &none, (uintptr_t)&tacho__self, 0,
					    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		none = 0;
		tacho__yield();
	}
	interrupted_writer = *w;
}

static void fork_parent(void)
{
	if (tacho__load(&interrupted) == (uintptr_t)&tacho__self)
		__atomic_store_n(&interrupted, 0, __ATOMIC_RELEASE);
}

static void fork_child(void)
{
	int storing = interrupted == (uintptr_t)&tacho__self;

	interrupted = 0;
	if (tacho__rec->phase != TACHO__PHASE_NONE)
		memset(tacho__rec, 0, sizeof(*tacho__rec));
	if (storing) {
		*tacho__self = interrupted_writer;
		tacho__self->epoch = 0;
	}
	tacho__self = &tacho__no_writer;
	tacho__box_forked(storing);
	TACHO_TESTPOINT("forked");
	/* At once: what the interrupted store looks up in the recorder must be there. */
	if (storing)
		tacho__recorder_ready();
}

static void remember(int error, const char *reason)
{
	struct tacho__text t;

	last_error = -error;
	tacho__text_init(&t, last_reason, sizeof(last_reason));
	tacho__text_put(&t, reason);
}

static int make_memory(char *reason, size_t reason_size)
{
	struct tacho__text t;
	int err = make_writers();

	if (!err)
		return tacho__box_make(&options, reason, reason_size);
	tacho__text_init(&t, reason, reason_size);
	tacho__text_put(&t, "cannot map memory for the recorder: ");
	tacho__text_put_errno(&t, -err);
	tacho__text_put(&t, ".");
	return err;
}

/* There will be no box; this thread is the maker. */
static void fail(int error, const char *reason)
{
	tacho__store(&tacho__on, 0);
	remember(error, reason);
	tacho__box_make_off(&options, error, reason);
	__atomic_store_n(&tacho__rec->phase, TACHO__PHASE_FAILED, __ATOMIC_RELEASE);
}

/* Makes the box; the phase is MAKING and this thread the maker. */
static int make(void)
{
	struct tacho__recorder *r = tacho__rec;
	uint64_t mask = tacho__signals_hold();
	char reason[256];
	int err = make_memory(reason, sizeof(reason));

	if (err) {
		fail(err, reason);
		tacho__signals_release(mask);
		return err;
	}
	tacho__modules_scan();
	tacho__short_polls_start(options.poll_threshold_ns);
	tacho__sentinels_begin();
	tacho__crash_describe();
	remember(0, "");
	writers_unused = 0;
	tacho__count(TACHO_LOSS_NO_THREAD, tacho__load(&r->lost_early));
	__atomic_add_fetch(&r->epoch, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&r->phase, TACHO__PHASE_READY, __ATOMIC_RELEASE);
	tacho__signals_release(mask);
	return 0;
}

/* 1: this thread shall make the box. */
static int become_maker(uint32_t from)
{
	if (!__atomic_compare_exchange_n(&tacho__rec->phase, &from, TACHO__PHASE_MAKING, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
	tacho__store(&tacho__rec->maker, (uintptr_t)&tacho__self);
	return 1;
}

int tacho__recorder_ready(void)
{
	struct tacho__recorder *r = tacho__rec;

	if (!r)
		return 0;
	for (int tries = 0; tries < 2000; tries++) {
		switch (__atomic_load_n(&r->phase, __ATOMIC_ACQUIRE)) {
		case TACHO__PHASE_READY:
			return 1;
		case TACHO__PHASE_NONE:
			if (!started)
				return 0;
			if (become_maker(TACHO__PHASE_NONE))
				return make() == 0;
			break;
		case TACHO__PHASE_MAKING:
			/* A signal handler that interrupted the making. */
			if (tacho__load(&r->maker) == (uintptr_t)&tacho__self)
				return 0;
			tacho__yield();
			break;
		default:
			return 0;
		}
	}
	return 0;
}

int tacho__enter(uint64_t *mask)
{
	struct tacho__recorder *r = tacho__rec;

	*mask = tacho__signals_hold();
	/* Before the phase is looked at, as tacho_stop changes it before it looks at this. */
	__atomic_add_fetch(&r->inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->phase, __ATOMIC_SEQ_CST) == TACHO__PHASE_MAKING &&
	    tacho__load(&r->maker) == (uintptr_t)&tacho__self)
		return 1;
	return tacho__recorder_ready();
}

int tacho__enter_as(const struct tacho__writer *w, uint64_t *mask)
{
	return tacho__enter(mask) && w->epoch && w->epoch == tacho__load(&tacho__rec->epoch);
}

void tacho__leave(uint64_t mask)
{
	__atomic_sub_fetch(&tacho__rec->inside, 1, __ATOMIC_RELEASE);
	tacho__signals_release(mask);
}

void tacho__recorder_lost(void)
{
	if (!tacho__rec)
		return;
	if (__atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE) == TACHO__PHASE_READY)
		tacho__count(TACHO_LOSS_NO_THREAD, 1);
	else
		__atomic_fetch_add(&tacho__rec->lost_early, 1, __ATOMIC_RELAXED);
}

static const char *refused; /* why this process is never recorded; NULL: it may be */

void tacho__refuse(const char *reason)
{
	refused = reason;
}

/* Takes the options; with 0 this thread is the maker. */
static int begin(const struct tacho_options *given)
{
	char reason[256];
	uint32_t phase;
	int err = refused ? -ENOTSUP : tacho__recorder_init();

	if (refused) {
		remember(err, refused);
		return err;
	}
	if (err) {
		remember(err, "cannot map memory for the recorder.");
		return err;
	}
	phase = __atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE);
	if (phase == TACHO__PHASE_READY || !become_maker(phase))
		return -EALREADY;
	err = tacho__options_read(given, &options, reason, sizeof(reason));
	if (err) {
		remember(err, reason);
		if (err != -ECANCELED)
			tacho__box_make_off(&options, err, reason);
		__atomic_store_n(&tacho__rec->phase, TACHO__PHASE_FAILED, __ATOMIC_RELEASE);
	}
	return err;
}

int tacho__arm(void)
{
	int err = begin(NULL);

	if (err)
		return err;
	started = 1;
	__atomic_store_n(&tacho__rec->phase, TACHO__PHASE_NONE, __ATOMIC_RELEASE);
	if (options.crash_file[0])
		tacho_crash_handler(options.crash_file);
	tacho__store(&tacho__on, 1);
	return 0;
}

uint64_t tacho__call_threshold_ns(void)
{
	return options.call_threshold_ns;
}

uint64_t tacho__slow_poll_ns(void)
{
	return options.slow_poll_ns;
}

int tacho__crash_wanted(void)
{
	return !options.no_crash;
}

int tacho_start(const struct tacho_options *given)
{
	int err = begin(given);

	if (!err)
		err = make();
	if (err)
		return err;
	started = 1;
	if (options.crash_file[0])
		tacho_crash_handler(options.crash_file);
	tacho__store(&tacho__on, 1);
	return 0;
}

static int ready(void)
{
	return tacho__rec &&
	       __atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE) == TACHO__PHASE_READY;
}

static void set_state(enum tacho_state state)
{
	tacho__store(&tacho__rec->super->state, (uint32_t)state);
}

/* An agent that looks after the box removes it itself, when it has what it wants. 0, or a negative errno: it
   could not be removed. */
static int finish_file(void)
{
	tacho__crash_survived();
	set_state(TACHO_STATE_STOPPED);
	if (options.keep_box || tacho__load(&tacho__rec->control->agent_pid))
		return 0;
	return tacho__box_unlink();
}

void tacho_stop(void)
{
	uint32_t was = TACHO__PHASE_READY;

	tacho__store(&tacho__on, 0);
	started = 0;
	if (!ready())
		return;
	tacho__writer_release(tacho__self);
	tacho__self = &tacho__no_writer;
	/* Of two threads at once, one. */
	if (!__atomic_compare_exchange_n(&tacho__rec->phase, &was, TACHO__PHASE_STOPPED, 0,
					 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return;
	tacho__writers_interrupt();
	finish_file();
	tacho__box_let_go();
}

void tacho__stop_at_once(void)
{
	tacho__store(&tacho__on, 0);
	started = 0;
	if (ready())
		__atomic_store_n(&tacho__rec->phase, TACHO__PHASE_STOPPED, __ATOMIC_SEQ_CST);
}

int tacho__give_up(int error, const char *reason)
{
	struct tacho__recorder *r = tacho__rec;

	if (!started)
		return 0;
	/* A child of vfork shares our memory, and is on its way to another program. */
	if (ready() && !tacho__box_is_own())
		return -ESRCH;
	if (ready()) {
		tacho__set_reason(r->super, reason);
		tacho__store(&r->super->error, -error);
	} else if (become_maker(TACHO__PHASE_NONE)) {
		remember(error, reason);
		tacho__box_make_off(&options, error, reason);
		__atomic_store_n(&r->phase, TACHO__PHASE_FAILED, __ATOMIC_RELEASE);
	}
	tacho_stop();
	return 0;
}

/* ------------------------------------------------------------- another user */

/* A daemon changes its user once or twice. */
#define USERS_MAX 16u

/* This thread is the maker, and has stopped the box of the user before. `on`: it was not paused. */
static void begin_anew(int on)
{
	static uint32_t users;
	uint64_t mask;

	if (__atomic_add_fetch(&users, 1, __ATOMIC_RELAXED) <= USERS_MAX) {
		if (make())
			(void)tacho__box_renounce();
		else if (on && started)
			tacho__store(&tacho__on, 1);
		else
			set_state(TACHO_STATE_PAUSED);
		return;
	}
	mask = tacho__signals_hold();
	(void)tacho__box_renounce();
	fail(-EPERM, "The process changes its user again and again: nothing is recorded any more.");
	tacho__signals_release(mask);
}

/* What is mapped of a box that nobody records into: of the parent, or of before tacho_stop. */
static void renounce_idle(uint32_t phase)
{
	uint64_t mask;
	int err;

	if (!become_maker(phase))
		return;
	mask = tacho__signals_hold();
	err = tacho__box_renounce();
	if (err)
		fail(err,
		     "There is no memory for the names of the process that it was forked from.");
	else
		__atomic_store_n(&tacho__rec->phase, phase, __ATOMIC_RELEASE);
	tacho__signals_release(mask);
}

/* Not one that is storing a record, for which this is called or which was interrupted: that goes on, into
   nothing. */
static void release_own_writer(void)
{
	struct tacho__writer *w = tacho__self;
	uintptr_t busy = 0;

	for (unsigned i = 0; i < TACHO_STREAMS; i++)
		busy |= tacho__load(&w->stream[i].busy);
	if (busy || w == &tacho__no_writer)
		return;
	tacho__writer_release(w);
	tacho__self = &tacho__no_writer;
}

int tacho__user_changed(void)
{
	uint32_t phase;
	int on, err;

	if (!tacho__rec || tacho__box_is_of_user())
		return 0;
	phase = __atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE);
	/* Another thread is about to begin a box, of the new user or of the one before: then it finds out with
	   its first chunk. */
	if (phase == TACHO__PHASE_MAKING || (phase == TACHO__PHASE_STOPPED && started))
		return 0;
	if (phase != TACHO__PHASE_READY) {
		renounce_idle(phase);
		return 1;
	}
	if (!tacho__box_is_own())
		return 0;
	release_own_writer();
	if (!__atomic_compare_exchange_n(&tacho__rec->phase, &phase, TACHO__PHASE_STOPPED, 0,
					 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return 1;
	/* Another thread may have made one just now. */
	if (tacho__box_is_of_user()) {
		__atomic_store_n(&tacho__rec->phase, TACHO__PHASE_READY, __ATOMIC_RELEASE);
		return 1;
	}
	on = tacho__load(&tacho__rec->super->state) != TACHO_STATE_PAUSED;
	/* Else those who go on recording would be waited for. */
	tacho__store(&tacho__on, 0);
	tacho__writers_interrupt();
	tacho__set_reason(tacho__rec->super,
			  "The process has changed its user, and records on in a box of that user "
			  "if it can make one.");
	err = finish_file();
	if ((err == -EACCES || err == -EPERM) && tacho__writers_idle())
		tacho__box_empty();
	tacho__box_let_go();
	tacho__self = &tacho__no_writer;
	if (become_maker(TACHO__PHASE_STOPPED))
		begin_anew(on);
	return 1;
}

void tacho_pause(void)
{
	if (!tacho__load(&tacho__on))
		return;
	tacho__record(tacho_record_head(TACHO_REC_PAUSE, 1), NULL, 0);
	tacho__store(&tacho__on, 0);
	if (ready())
		set_state(TACHO_STATE_PAUSED);
}

void tacho_resume(void)
{
	if (!started || tacho__load(&tacho__on))
		return;
	tacho__store(&tacho__on, 1);
	if (ready())
		set_state(TACHO_STATE_RECORDING);
	tacho__record(tacho_record_head(TACHO_REC_PAUSE, 0), NULL, 0);
}

/* Orderly end of the process. */
__attribute__((destructor)) static void at_exit(void)
{
	if (ready() && tacho__box_is_own())
		finish_file();
}

static void status_of_box(struct tacho_status_info *st)
{
	struct tacho__recorder *r = tacho__rec;
	struct tacho__text t;

	st->state = tacho__load(&r->super->state);
	st->error = tacho__load(&r->super->error);
	tacho__text_init(&t, st->reason, sizeof(st->reason));
	tacho__text_put(&t, r->super->reason);
	tacho__box_path(st->box, sizeof(st->box));
	st->max_bytes = r->size;
	st->used_bytes = tacho__load(&r->used);
	st->overwritten_records = tacho__load(&r->losses[TACHO_LOSS_OVERWRITTEN_RECORDS]);
	st->dropped_records = tacho__load(&r->losses[TACHO_LOSS_NO_CHUNK]) +
			      tacho__load(&r->losses[TACHO_LOSS_NO_THREAD]) +
			      tacho__load(&r->losses[TACHO_LOSS_NESTING]) +
			      tacho__load(&r->losses[TACHO_LOSS_RECORD_BIG]);
	st->definitions = tacho__load(&r->super->next_def) - 1;
	st->threads = tacho__load(&r->super->threads_seen);
}

int tacho_status(struct tacho_status_info *out)
{
	struct tacho_status_info st;
	struct tacho__text t;
	uint32_t phase = TACHO__PHASE_NONE;
	size_t size = out->size;

	if (size < offsetof(struct tacho_status_info, reason))
		return -EINVAL;
	memset(&st, 0, sizeof(st));
	if (tacho__rec)
		phase = __atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE);
	switch (phase) {
	case TACHO__PHASE_READY:
		status_of_box(&st);
		break;
	case TACHO__PHASE_FAILED:
		st.state = TACHO_STATE_OFF;
		st.error = last_error;
		tacho__text_init(&t, st.reason, sizeof(st.reason));
		tacho__text_put(&t, last_reason);
		break;
	case TACHO__PHASE_STOPPED:
		st.state = TACHO_STATE_STOPPED;
		break;
	default:
		/* After fork: as the parent, from the first record on. */
		if (started)
			st.state = tacho__load(&tacho__on) ? TACHO_STATE_RECORDING
							   : TACHO_STATE_PAUSED;
		break;
	}
	if (size > sizeof(st))
		size = sizeof(st);
	memcpy(out, &st, size);
	out->size = size;
	return 0;
}

void tacho_modules_changed(void)
{
	if (ready())
		tacho__modules_scan();
}

const char *tacho_version(void)
{
	return TACHO_VERSION;
}
