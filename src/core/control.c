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
#include "core/short_polls.h"
#include "core/testpoint.h"
#include "core/writer.h"
#include "tacho.h"

int tacho__on;
struct tacho__recorder *tacho__rec;
struct tacho__writer *tacho__writers;
uint32_t tacho__clock_kind = TACHO_CLOCK_MONOTONIC;
struct tacho_anchor tacho__first_anchor;

/* Not emptied by fork: a child records as its parent did. */
static struct tacho__options options;
static int started; /* tacho_start succeeded, tacho_stop was not called since */
static int last_error;
static char last_reason[256];

static void fork_prepare(void);
static void fork_child(void);
static int storing_at_fork;

/* Private memory that a child finds empty. */
static int map_emptied(size_t size, void **out)
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

int tacho__recorder_init(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	void *at;
	int err = 0;

	pthread_mutex_lock(&once);
	if (!tacho__rec) {
		err = map_emptied(sizeof(struct tacho__recorder), &at);
		if (!err) {
			tacho__writer_init();
			pthread_atfork(fork_prepare, NULL, fork_child);
			__atomic_store_n(&tacho__rec, at, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&once);
	return err;
}

/*
 * Writers for a new box. Those of an earlier box of this process are left alone: threads
 * may still point to theirs, and see only that it is out of date.
 */
static int make_writers(void)
{
	void *at;
	int err = map_emptied(TACHO__THREADS_MAX * sizeof(struct tacho__writer), &at);

	if (!err)
		tacho__writers = at;
	return err;
}

static void fork_prepare(void)
{
	storing_at_fork = tacho__load(&tacho__self->stream[0].busy) != 0;
}

static void fork_child(void)
{
	if (tacho__rec->phase != TACHO__PHASE_NONE) {
		memset(tacho__rec, 0, sizeof(*tacho__rec));
		if (tacho__self != &tacho__no_writer)
			memset(tacho__self, 0, sizeof(*tacho__self));
	}
	tacho__box_forked(storing_at_fork);
	TACHO_TESTPOINT("forked");
}

static void remember(int error, const char *reason)
{
	struct tacho__text t;

	last_error = -error;
	tacho__text_init(&t, last_reason, sizeof(last_reason));
	tacho__text_put(&t, reason);
}

/* Makes the box; the phase is MAKING and this thread the maker. */
static int make(void)
{
	struct tacho__recorder *r = tacho__rec;
	char reason[256];
	int err = tacho__box_make(&options, reason, sizeof(reason));

	if (err) {
		tacho__store(&tacho__on, 0);
		remember(err, reason);
		tacho__box_make_off(&options, err, reason);
		__atomic_store_n(&r->phase, TACHO__PHASE_FAILED, __ATOMIC_RELEASE);
		return err;
	}
	tacho__modules_scan();
	tacho__short_polls_start(options.poll_threshold_ns);
	tacho__crash_describe();
	remember(0, "");
	tacho__count(TACHO_LOSS_NO_THREAD, tacho__load(&r->lost_early));
	__atomic_add_fetch(&r->epoch, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&r->phase, TACHO__PHASE_READY, __ATOMIC_RELEASE);
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

void tacho__recorder_lost(void)
{
	if (!tacho__rec)
		return;
	if (__atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE) == TACHO__PHASE_READY)
		tacho__count(TACHO_LOSS_NO_THREAD, 1);
	else
		__atomic_fetch_add(&tacho__rec->lost_early, 1, __ATOMIC_RELAXED);
}

int tacho_start(const struct tacho_options *given)
{
	char reason[256];
	uint32_t phase;
	int err = tacho__recorder_init();

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
		return err;
	}
	if (!tacho__writers || phase == TACHO__PHASE_STOPPED) {
		err = make_writers();
		if (err) {
			remember(err, "cannot map memory for the recorder.");
			__atomic_store_n(&tacho__rec->phase, TACHO__PHASE_FAILED, __ATOMIC_RELEASE);
			return err;
		}
	}
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

static void set_state(enum tacho_box_state state)
{
	tacho__store(&tacho__rec->super->state, (uint32_t)state);
}

/* An agent that looks after the box removes it itself, when it has what it wants. */
static void finish_file(void)
{
	set_state(TACHO_BOX_STOPPED);
	if (!options.keep_box && !tacho__load(&tacho__rec->control->agent_pid))
		tacho__box_unlink();
}

void tacho_stop(void)
{
	struct tacho__writer *w = tacho__self;

	tacho__store(&tacho__on, 0);
	started = 0;
	if (!ready())
		return;
	if (w != &tacho__no_writer && w->epoch == tacho__load(&tacho__rec->epoch))
		tacho__writer_release(w);
	tacho__self = &tacho__no_writer;
	__atomic_store_n(&tacho__rec->phase, TACHO__PHASE_STOPPED, __ATOMIC_RELEASE);
	tacho__writers_interrupt();
	finish_file();
	tacho__box_let_go();
}

void tacho_pause(void)
{
	if (!tacho__load(&tacho__on))
		return;
	tacho__record(tacho_record_head(TACHO_REC_PAUSE, 1), NULL, 0, 0);
	tacho__store(&tacho__on, 0);
	if (ready())
		set_state(TACHO_BOX_PAUSED);
}

void tacho_resume(void)
{
	if (!started || tacho__load(&tacho__on))
		return;
	tacho__store(&tacho__on, 1);
	if (ready())
		set_state(TACHO_BOX_RECORDING);
	tacho__record(tacho_record_head(TACHO_REC_PAUSE, 0), NULL, 0, 0);
}

/* Orderly end of the process. */
__attribute__((destructor)) static void at_exit(void)
{
	if (ready() && tacho__rec->super->pid == (uint32_t)tacho__getpid())
		finish_file();
}

static void status_of_box(struct tacho_status *st)
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

int tacho_status(struct tacho_status *out)
{
	struct tacho_status st;
	struct tacho__text t;
	uint32_t phase = TACHO__PHASE_NONE;
	size_t size = out->size;

	if (size < offsetof(struct tacho_status, reason))
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
