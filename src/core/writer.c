#include "core/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/sys.h"
#include "core/box.h"
#include "core/control.h"
#include "core/pool.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/short_polls.h"
#include "core/testpoint.h"

struct tacho__writer tacho__no_writer;
__thread struct tacho__writer *tacho__self __attribute__((tls_model("initial-exec"))) =
	&tacho__no_writer;

/* A thread that fills a small chunk in less than this goes on with whole ones. */
#define BUSY_THREAD_NS 1000000000ull
/* How long tacho_stop waits for threads that use the box. */
#define YIELDS 1000
#define INSIDE_WAIT_MS 10000

static pthread_key_t exit_key;
static int exit_key_ready;

/* ------------------------------------------------------------- chunks */

static void stream_seal(struct tacho__stream *s)
{
	struct tacho_chunk *c = s->chunk;

	TACHO_TESTPOINT("seal-begin");
	tacho__store(&c->records, s->records);
	tacho__store(&c->last_ticks, s->last);
	TACHO_TESTPOINT("seal-counted");
	__atomic_store_n(&c->flags, c->flags | TACHO_CHUNK_SEALED, __ATOMIC_RELEASE);
	TACHO_TESTPOINT("seal-sealed");
	s->prior += s->records;
	s->records = 0;
	s->chunk = NULL;
	s->cur = s->limit = NULL;
	tacho__store(&s->end, NULL);
	tacho__pool_release(tacho__chunk_index(c));
	TACHO_TESTPOINT("seal-released");
	tacho__chunk_sealed();
}

/* State of the thread at the beginning of the chunk, so that it can be read alone. */
static void chunk_describe(struct tacho_chunk *c, const struct tacho__writer *w, unsigned level)
{
	struct tacho_box_thread *t = w->entry;
	uint32_t depth = level ? 0 : w->now.depth;
	uint32_t listed = depth < TACHO_OPEN_MAX ? depth : TACHO_OPEN_MAX;

	c->thread = w->number;
	c->tid = w->tid;
	c->stream = (uint16_t)level;
	c->sequence = w->stream[level].sequence;
	c->prior_records = w->stream[level].prior;
	c->loop = w->now.loop;
	c->flags = w->now.parked && !level ? TACHO_CHUNK_PARKED : 0;
	c->park_ticks = w->now.park_time;
	c->open_count = (uint16_t)(depth < UINT16_MAX ? depth : UINT16_MAX);
	memcpy(c->open, w->now.open, listed * sizeof(c->open[0]));
	c->drops = level ? 0 : __atomic_exchange_n(&t->drops, 0, __ATOMIC_RELAXED);
	TACHO__SYS(SYS_prctl, 16 /* PR_GET_NAME */, c->name, 0, 0, 0, 0);
	if (!level)
		memcpy(t->name, c->name, sizeof(t->name));
}

static void stream_attach(struct tacho__writer *w, unsigned level, uint32_t index, uint32_t size)
{
	struct tacho__stream *s = &w->stream[level];
	struct tacho_chunk *c =
		(struct tacho_chunk *)(tacho__rec->pool + (uint64_t)index * TACHO_SMALL_SIZE);
	uint64_t generation;

	/* Readers that see anything of what follows see generation 0 or the new one. */
	tacho__store(&c->generation, 0);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	TACHO_TESTPOINT("attach-cleared");
	c->magic = TACHO_CHUNK_MAGIC;
	c->size = size;
	c->records = 0;
	c->last_ticks = 0;
	tacho__store(&c->commit, TACHO_CHUNK_HEAD);
	chunk_describe(c, w, level);
	TACHO_TESTPOINT("attach-described");
	tacho__clock_pair(tacho__clock_kind != TACHO_CLOCK_MONOTONIC, &c->anchor.ticks,
			  &c->anchor.mono_ns);
	c->anchor.real_ns = 0;
	generation = __atomic_add_fetch(&tacho__rec->super->generation, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&c->generation, generation, __ATOMIC_RELEASE);
	TACHO_TESTPOINT("attach-live");
	s->chunk = c;
	s->cur = (uint8_t *)c + TACHO_CHUNK_HEAD;
	s->limit = (uint8_t *)c + size;
	s->last = c->anchor.ticks;
	s->sequence++;
	if (!level)
		tacho__store(&tacho__rec->threads[w->index].chunk, index);
	tacho__store(&s->end, s->limit);
	TACHO_TESTPOINT("attach-done");
}

/* Whether the next chunk of the stream is worth a whole slot. */
static int wants_whole(const struct tacho__stream *s, unsigned level)
{
	const struct tacho_chunk *c = s->chunk;

	if (level || !c)
		return 0;
	if (c->size == TACHO_SLOT_SIZE)
		return 1;
	return tacho__ticks() - c->anchor.ticks < tacho__ticks_of_ns(BUSY_THREAD_NS);
}

static int next_chunk(struct tacho__writer *w, unsigned level)
{
	struct tacho__stream *s = &w->stream[level];
	int whole = wants_whole(s, level);
	uint32_t index, size;

	if (s->chunk)
		stream_seal(s);
	index = tacho__pool_take(whole, &size);
	if (index == TACHO_NO_CHUNK)
		return 0;
	TACHO_TESTPOINT("chunk-taken");
	stream_attach(w, level, index, size);
	if (!level)
		tacho__heed_config(w);
	return 1;
}

int tacho__stream_room(struct tacho__writer *w, unsigned level, uint32_t bytes)
{
	struct tacho__stream *s = &w->stream[level];
	uint64_t mask;
	int got;

	if (s->chunk && (uint64_t)(s->limit - s->cur) >= bytes)
		return 1;
	/* A writer of a box that is gone: tacho_stop, or a fork in the middle of a record. */
	if (w->epoch != tacho__load(&tacho__rec->epoch))
		return 0;
	/* Most changes of the user are seen by hooks, when they happen; of others this hears. */
	if (tacho__unlikely(tacho__box_is_suspect()) && tacho__user_changed())
		return 0;
	got = tacho__enter_as(w, &mask) && next_chunk(w, level);
	tacho__leave(mask);
	return got;
}

/* ------------------------------------------------------------ threads */

static struct tacho__writer *pop_free(void)
{
	uint64_t head = __atomic_load_n(&tacho__rec->free_writers, __ATOMIC_ACQUIRE);

	while ((uint32_t)head) {
		struct tacho__writer *w = &tacho__writers[(uint32_t)head - 1];
		/* May be stale when another thread takes it at this moment: then the tag has
		   changed and the exchange fails. */
		uint64_t next = ((head >> 32) + 1) << 32 | tacho__load(&w->next_free);

		if (__atomic_compare_exchange_n(&tacho__rec->free_writers, &head, next, 0,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return w;
	}
	return NULL;
}

static void push_free(struct tacho__writer *w)
{
	uint64_t index = (uint64_t)(w - tacho__writers);
	uint64_t head = tacho__load(&tacho__rec->free_writers);
	uint64_t next;

	/* Recording was stopped and started again meanwhile: not one of these writers. */
	if (index >= TACHO__THREADS_MAX)
		return;
	do {
		tacho__store(&w->next_free, (uint32_t)head);
		next = ((head >> 32) + 1) << 32 | (index + 1);
	} while (!__atomic_compare_exchange_n(&tacho__rec->free_writers, &head, next, 0,
					      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* A writer that was never used: the thread table grows by one. */
static struct tacho__writer *grow(void)
{
	struct tacho__recorder *r = tacho__rec;
	uint32_t i = tacho__load(&r->super->threads_used);

	do {
		if (i >= r->thread_count ||
		    tacho__box_fill(TACHO_REGION_THREADS,
				    (i + 1) * sizeof(struct tacho_box_thread)) ||
		    tacho__box_fill(TACHO_REGION_UNDERWAY,
				    (i + 1) * sizeof(struct tacho_box_underway)))
			return NULL;
	} while (!__atomic_compare_exchange_n(&r->super->threads_used, &i, i + 1, 0,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return &tacho__writers[i];
}

/*
 * Threads that ended without telling (clone(2), exit in the last round of
 * destructors) left their writers behind: takes one of them. Only when there is
 * no other, as it asks the kernel about each.
 */
static struct tacho__writer *reap(void)
{
	struct tacho__recorder *r = tacho__rec;
	uint32_t used = tacho__load(&r->super->threads_used);
	int pid = tacho__getpid();

	for (uint32_t i = 0; i < used; i++) {
		struct tacho_box_thread *t = &r->threads[i];
		uint32_t live = TACHO_THREAD_LIVE;

		if (tacho__load(&t->state) != live ||
		    TACHO__SYS(SYS_tgkill, pid, t->tid, 0, 0, 0, 0) != -ESRCH ||
		    !__atomic_compare_exchange_n(&t->state, &live, TACHO_THREAD_ENDED, 0,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		tacho__short_polls_flush(&tacho__writers[i], 0);
		for (unsigned k = 0; k < TACHO_STREAMS; k++)
			if (tacho__writers[i].stream[k].chunk)
				stream_seal(&tacho__writers[i].stream[k]);
		return &tacho__writers[i];
	}
	return NULL;
}

static void writer_begin(struct tacho__writer *w)
{
	struct tacho__recorder *r = tacho__rec;
	uint32_t index = (uint32_t)(w - tacho__writers);
	struct tacho_box_thread *t = &r->threads[index];

	memset(w->stream, 0, sizeof(w->stream));
	w->index = index;
	w->entry = t;
	w->underway = &r->underway[index];
	memset(w->underway, 0, sizeof(*w->underway));
	w->hists = r->hists;
	w->number = __atomic_add_fetch(&r->super->threads_seen, 1, __ATOMIC_RELAXED);
	w->tid = (uint32_t)tacho__gettid();
	w->now = (struct tacho_underway){0};
	w->calls = tacho__calls_of(r->control);
	w->calls_heeded = w->called = 0;
	w->pending_kind = 0;
	w->hist_count = 0;
	t->number = w->number;
	t->tid = w->tid;
	t->chunk = TACHO_NO_CHUNK;
	t->pending_kind = 0;
	t->drops = 0;
	t->start_ticks = tacho__ticks();
	TACHO__SYS(SYS_prctl, 16 /* PR_GET_NAME */, t->name, 0, 0, 0, 0);
	TACHO_TESTPOINT("thread-described");
	__atomic_store_n(&t->state, TACHO_THREAD_LIVE, __ATOMIC_RELEASE);
	w->epoch = tacho__load(&r->epoch);
	TACHO_TESTPOINT("thread-live");
}

static void thread_exit(void *arg)
{
	struct tacho__writer *w = tacho__self;

	(void)arg;
	/* Records in destructors that run after this one get a new writer, and this
	   destructor another turn. */
	tacho__self = &tacho__no_writer;
	/* In a child that has recorded nothing there is no need of a box. */
	if (tacho__rec && tacho__load(&tacho__rec->phase) == TACHO__PHASE_READY)
		tacho__writer_release(w);
}

static void release(struct tacho__writer *w)
{
	struct tacho_box_thread *t = w->entry;

	TACHO_TESTPOINT("thread-exit");
	for (unsigned i = 0; i < TACHO_STREAMS; i++)
		tacho__store(&w->stream[i].busy, (uintptr_t)1);
	tacho__signal_fence();
	tacho__pending_flush(w);
	tacho__short_polls_flush(w, 0);
	/* Threads are often named after they began. The next owner of this entry puts its own
	   name there, so the chunk has to know as well. */
	TACHO__SYS(SYS_prctl, 16 /* PR_GET_NAME */, t->name, 0, 0, 0, 0);
	if (w->stream[0].chunk)
		memcpy(w->stream[0].chunk->name, t->name, sizeof(t->name));
	for (unsigned i = 0; i < TACHO_STREAMS; i++)
		if (w->stream[i].chunk)
			stream_seal(&w->stream[i]);
	TACHO_TESTPOINT("thread-sealed");
	w->epoch = 0;
	__atomic_store_n(&t->state, TACHO_THREAD_ENDED, __ATOMIC_RELEASE);
	TACHO_TESTPOINT("thread-ended");
	tacho__signal_fence();
	for (unsigned i = 0; i < TACHO_STREAMS; i++)
		tacho__store(&w->stream[i].busy, (uintptr_t)0);
	push_free(w);
}

void tacho__writer_release(struct tacho__writer *w)
{
	uint64_t mask;

	if (tacho__enter_as(w, &mask))
		release(w);
	tacho__leave(mask);
}

static struct tacho__writer *writer_new(void)
{
	struct tacho__writer *w = pop_free();

	if (!w)
		w = grow();
	if (!w)
		w = reap();
	if (!w)
		return NULL;
	writer_begin(w);
	tacho__self = w;
	/* Keys beyond the first 32 make glibc allocate; then the thread is reaped instead. */
	if (exit_key_ready && exit_key < 32)
		pthread_setspecific(exit_key, w);
	return w;
}

struct tacho__writer *tacho__writer_get(void)
{
	struct tacho__writer *w = tacho__self;
	uint64_t mask;

	if (tacho__unlikely(!tacho__recorder_ready()))
		return NULL;
	if (w != &tacho__no_writer && w->epoch && w->epoch == tacho__load(&tacho__rec->epoch))
		return w;
	/* Looks again: a handler may have forked since, and this is the child. */
	w = tacho__enter(&mask) ? writer_new() : NULL;
	tacho__leave(mask);
	return w;
}

int tacho__writer_init(void)
{
	if (!exit_key_ready && !pthread_key_create(&exit_key, thread_exit))
		exit_key_ready = 1;
	return 0;
}

/*
 * Who is inside goes on as soon as it gets a CPU, which may take long where many want one: so
 * time is given up, and not only the rest of a turn. Only who jumped out of the handler of a
 * fault in there never leaves.
 */
static void wait_for_inside(void)
{
	static const struct timespec a_while = {0, 1000000};

	for (int tries = 0; __atomic_load_n(&tacho__rec->inside, __ATOMIC_SEQ_CST) &&
			    tries < YIELDS + INSIDE_WAIT_MS;
	     tries++) {
		if (tries < YIELDS)
			tacho__yield();
		else
			TACHO__SYS(SYS_nanosleep, &a_while, 0, 0, 0, 0, 0);
	}
}

void tacho__writers_interrupt(void)
{
	uint32_t used;

	wait_for_inside();
	used = tacho__load(&tacho__rec->super->threads_used);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < used; i++)
		for (unsigned k = 0; k < TACHO_STREAMS; k++)
			tacho__store(&tacho__writers[i].stream[k].end, NULL);
	for (uint32_t i = 0; i < used; i++) {
		struct tacho__writer *w = &tacho__writers[i];

		if (w == tacho__self)
			continue;
		for (int tries = 0; tries < 10000 && tacho__load(&w->stream[0].busy); tries++)
			tacho__yield();
		/* Again, as one that was changing its chunk has just set it. */
		for (unsigned k = 0; k < TACHO_STREAMS; k++)
			tacho__store(&w->stream[k].end, NULL);
	}
}

int tacho__writers_idle(void)
{
	/* Longer than what a CPU has stored takes to be seen by others. */
	static const struct timespec a_while = {0, 1000000};
	uint32_t used = tacho__load(&tacho__rec->super->threads_used);
	uintptr_t busy = 0;

	TACHO__SYS(SYS_nanosleep, &a_while, 0, 0, 0, 0, 0);
	for (uint32_t i = 0; i < used; i++)
		for (unsigned k = 0; k < TACHO_STREAMS && &tacho__writers[i] != tacho__self; k++)
			busy |= tacho__load(&tacho__writers[i].stream[k].busy);
	return !busy;
}

/* ---------------------------------------------------------- slow path */

static uint64_t store_record(struct tacho__stream *s, uint64_t t, uint32_t head,
			     const uint64_t *words, uint32_t count)
{
	uint64_t delta = t - s->last;
	uint64_t *p = (uint64_t *)s->cur;

	if ((int64_t)delta < 0) {
		tacho__count(TACHO_LOSS_CLOCK_BACK, 1);
		t = s->last;
		delta = 0;
	}
	if (delta > UINT32_MAX) {
		*p++ = tacho_record_head(TACHO_REC_TIME, 0);
		*p++ = t;
		delta = 0;
	}
	*p++ = head | delta << 32;
	TACHO_TESTPOINT("record-begun");
	for (uint32_t i = 0; i < count; i++)
		*p++ = words[i];
	TACHO_TESTPOINT("record-stored");
	s->cur = (uint8_t *)p;
	s->last = t;
	s->records += tacho_record_events(tacho_record_type(head), count);
	__atomic_store_n(&s->chunk->commit, (uint64_t)(s->cur - (uint8_t *)s->chunk),
			 __ATOMIC_RELEASE);
	TACHO_TESTPOINT("record-committed");
	return t;
}

uint64_t tacho__stream_put(struct tacho__writer *w, unsigned level, uint64_t t, uint32_t head,
			   const uint64_t *words, uint32_t count)
{
	/* Room for a TIME record in front as well. */
	if (!tacho__stream_room(w, level, 8 + 8 * count + 16)) {
		uint32_t events = tacho_record_events(tacho_record_type(head), count);

		tacho__count(TACHO_LOSS_NO_CHUNK, events);
		/* None: a handler that knows nothing of libc forked, and this is the child. */
		if (w->entry)
			__atomic_fetch_add(&w->entry->drops, events, __ATOMIC_RELAXED);
		return 0;
	}
	if (!t)
		t = tacho__ticks();
	else if (t < w->stream[level].last)
		t = w->stream[level].last; /* of a newer chunk, or of a handler in between */
	return store_record(&w->stream[level], t, head, words, count);
}

void tacho__pending_flush(struct tacho__writer *w)
{
	uint32_t kind = w->pending_kind;
	uint64_t task = w->pending_task;
	uint32_t head;

	if (!kind)
		return;
	w->pending_kind = 0;
	head = tacho_record_head(TACHO_REC_POLL_BEGIN, kind);
	/* Room was made when the poll began, so the chunk's anchor is before its ticks. */
	tacho__stream_put(w, 0, w->pending_ticks, head, &task, 1);
	tacho__apply(w, head, task, w->pending_ticks);
	__atomic_store_n(&w->entry->pending_kind, 0, __ATOMIC_RELEASE);
	tacho__store(&w->stream[0].end, w->stream[0].limit);
}

/*
 * A stream that is busy although the frame that made it so is gone: a signal handler
 * jumped out of the middle of a record, or the thread was cancelled there. That
 * frame was not less deep in the stack than `here`, on the same stack.
 */
static int abandoned(uintptr_t frame, uintptr_t here)
{
	stack_t ss;

	if (here < frame || here - frame > (1u << 20))
		return 0;
	if (TACHO__SYS(SYS_sigaltstack, 0, &ss, 0, 0, 0, 0))
		return 0;
	return !(ss.ss_flags & SS_ONSTACK);
}

static void recover_stream(const struct tacho__writer *w, struct tacho__stream *s)
{
	uint64_t mask;

	tacho__count(TACHO_LOSS_ABANDONED, 1);
	/* What was committed stays; nothing more goes into that chunk. */
	if (tacho__enter_as(w, &mask) && s->chunk)
		stream_seal(s);
	s->chunk = NULL;
	tacho__store(&s->end, NULL);
	tacho__leave(mask);
}

/* The lowest stream that nobody is storing into, made busy; -1 if there is none. */
static int claim_stream(struct tacho__writer *w, uintptr_t frame)
{
	for (unsigned level = 0; level < TACHO_STREAMS; level++) {
		struct tacho__stream *s = &w->stream[level];
		uintptr_t busy = tacho__load(&s->busy);

		if (busy && !abandoned(busy, frame))
			continue;
		tacho__store(&s->busy, frame);
		tacho__signal_fence();
		if (busy)
			recover_stream(w, s);
		return (int)level;
	}
	return -1;
}

uint64_t tacho__record_slow(uint32_t head, const uint64_t *words, uint32_t count, uintptr_t frame)
{
	return tacho__record_slow_at(head, words, count, 0, frame);
}

uint64_t tacho__record_slow_at(uint32_t head, const uint64_t *words, uint32_t count, uint64_t at,
			       uintptr_t frame)
{
	struct tacho__writer *w;
	uint64_t t;
	int level;

	for (;;) {
		w = tacho__writer_get();
		if (!w) {
			tacho__recorder_lost();
			return 0;
		}
		level = claim_stream(w, frame);
		if (tacho__likely(w == tacho__self))
			break;
		/* A handler forked in between. From the claim on, a fork is noticed. */
		if (level >= 0)
			tacho__store(&w->stream[level].busy, (uintptr_t)0);
	}
	if (level < 0) {
		tacho__count(TACHO_LOSS_NESTING,
			     tacho_record_events(tacho_record_type(head), count));
		return 0;
	}
	if (level == 0)
		tacho__pending_flush(w);
	t = tacho__stream_put(w, (unsigned)level, at, head, words, count);
	if (level == 0)
		tacho__apply(w, head, count ? words[0] : 0, t ? t : tacho__ticks());
	tacho__signal_fence();
	tacho__store(&w->stream[level].busy, (uintptr_t)0);
	return t;
}

uint64_t tacho__record_slow_word(uint32_t head, uint64_t word, uint64_t at, uintptr_t frame)
{
	return tacho__record_slow_at(head, &word, 1, at, frame);
}
