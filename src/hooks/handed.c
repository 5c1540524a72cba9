#include "hooks/handed.h"

#include "base/hash.h"
#include "core/pool.h"
#include "core/record.h"
#include "hooks/locks.h"

#define QUEUES 256u
#define PROBES 4u
#define ELSEWHERE 8u
#define RECORDS 8u /* of one queue, in a millisecond */

/* A condition or semaphore that threads wait for work at. */
struct queue {
	uint64_t address; /* 0: free */
	uint32_t given;	  /* by loops, when nobody waited for it */
	uint32_t taken;
	uint32_t told; /* how many wait, as it was recorded last */
	uint32_t records;
	uint64_t since; /* ticks: of the first of these records */
	uint64_t mutex; /* of the condition; 0: not known, or a semaphore */
	uint32_t is_fed;
	uint32_t is_no_queue;
} __attribute__((aligned(64)));

static struct queue queues[QUEUES];
uint32_t tacho__handed_count;

/* Where this thread waits for work. */
static __thread struct place_of_work {
	const void *condition;
	const void *code; /* that locks its mutex */
	struct queue *queue;
	uint32_t waits;	    /* for it, less those for others */
	uint32_t elsewhere; /* how often other code locked the mutex, since that did */
	const void *other;  /* the first of that, and how often it did */
	uint32_t others;
} work_place __attribute__((tls_model("initial-exec")));

/* Of a loop's thread: the queue that it gave something to last, and what locks its mutex for that. */
static __thread struct place_of_gift {
	struct queue *queue;
	const void *code;
	uint32_t is_untold; /* it has locked it there, and signalled nobody since */
} gift __attribute__((tls_model("initial-exec")));

/* NULL: not known, and (`make`) there is no room. */
static struct queue *queue_of(const void *condition, int make)
{
	uint64_t address = (uint64_t)(uintptr_t)condition;
	uint32_t at = (uint32_t)(tacho__mix(address >> 3) >> 32);

	for (uint32_t i = 0; i < PROBES; i++) {
		struct queue *q = &queues[(at + i) % QUEUES];
		uint64_t found = tacho__load(&q->address);

		if (!found && make &&
		    __atomic_compare_exchange_n(&q->address, &found, address, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			__atomic_add_fetch(&tacho__handed_count, 1, __ATOMIC_RELAXED);
			return q;
		}
		if (found == address)
			return q;
		if (!found)
			return NULL;
	}
	return NULL;
}

static uint32_t waiting(const struct queue *q)
{
	int32_t n = (int32_t)(tacho__load(&q->given) - tacho__load(&q->taken));

	return n > 0 ? (uint32_t)n : 0;
}

/* That none waits any more is told whenever it was told that some do. */
static void tell(struct queue *q, const void *caller)
{
	uint32_t n = waiting(q), told = tacho__load(&q->told);
	uint64_t now, words[2];

	if (n == told || !tacho__recording())
		return;
	now = tacho__ticks();
	if (now - tacho__load(&q->since) >= tacho__ticks_of_ns(1000000)) {
		tacho__store(&q->since, now);
		tacho__store(&q->records, 0);
	}
	if (__atomic_fetch_add(&q->records, 1, __ATOMIC_RELAXED) >= RECORDS && n)
		return;
	tacho__store(&q->told, n);
	words[0] = tacho__load(&q->address);
	words[1] = (uint64_t)tacho__load(&q->given) << 32 | n;
	tacho__record(tacho_record_head(TACHO_REC_LOCK_QUEUE, caller ? tacho__place(caller) : 0),
		      words, 2);
}

/* What locked the mutex before this signal gives something each time. */
static void know_gift(struct queue *q)
{
	const void *mutex = (const void *)(uintptr_t)tacho__load(&q->mutex);
	const void *code = tacho__taken_at(mutex);

	gift = (struct place_of_gift){.queue = code ? q : NULL, .code = code};
	tacho__hook.work_mutex = code ? mutex : NULL;
}

void tacho__hands_over(const void *c, uint64_t waiters, const void *caller)
{
	struct queue *q = queue_of(c, 0);

	if (!q || tacho__load(&q->is_no_queue))
		return;
	if (!tacho__load(&q->is_fed))
		tacho__store(&q->is_fed, 1);
	if (tacho__load(&q->mutex))
		know_gift(q);
	if (waiters)
		return;
	__atomic_add_fetch(&q->given, 1, __ATOMIC_RELAXED);
	tell(q, caller);
}

/* While somebody waits there, nothing is put into it without a signal. */
static void gives_silently(struct queue *q)
{
	if (tacho__load(&q->is_no_queue) ||
	    tacho__waiters_of((const void *)(uintptr_t)tacho__load(&q->address)))
		return;
	__atomic_add_fetch(&q->given, 1, __ATOMIC_RELAXED);
	tell(q, gift.code);
}

static void comes_to_give(const void *code)
{
	if (!gift.queue || code != gift.code)
		return;
	if (gift.is_untold)
		gives_silently(gift.queue);
	gift.is_untold = 1;
}

/* Who waits finds nothing to do. */
static void is_empty(struct queue *q)
{
	tacho__store(&q->taken, tacho__load(&q->given));
	tell(q, NULL);
}

void tacho__condition_waits(const void *c, const pthread_mutex_t *m)
{
	struct place_of_work *p = &work_place;

	if (tacho__on_loop_thread()) {
		struct queue *q = queue_of(c, 1);

		if (q && !tacho__load(&q->is_no_queue)) {
			tacho__store(&q->is_no_queue, 1);
			is_empty(q);
		}
		return;
	}
	if (p->condition == c) {
		p->waits += p->waits < UINT32_MAX;
	} else if (p->waits) {
		p->waits--;
	} else {
		*p = (struct place_of_work){.condition = c, .queue = queue_of(c, 1), .waits = 1};
		tacho__hook.work_mutex = NULL;
	}
	if (p->condition == c && p->queue) {
		if (tacho__load(&p->queue->mutex) != (uint64_t)(uintptr_t)m)
			tacho__store(&p->queue->mutex, (uint64_t)(uintptr_t)m);
		is_empty(p->queue);
	}
}

void tacho__condition_waited(const void *c, const pthread_mutex_t *m, const void *code)
{
	struct place_of_work *p = &work_place;

	if (p->condition != c || !p->queue || !tacho__load(&p->queue->is_fed) ||
	    tacho__load(&p->queue->is_no_queue))
		return;
	tacho__hook.work_mutex = m;
	p->code = code;
	p->elsewhere = 0;
	tacho__serves();
}

static void takes(struct queue *q, uint32_t count)
{
	uint32_t n = waiting(q);

	if (!n || !count)
		return;
	__atomic_add_fetch(&q->taken, count < n ? count : n, __ATOMIC_RELAXED);
	tell(q, NULL);
}

void tacho__semaphore_taken(const void *s)
{
	struct queue *q = work_place.condition == s ? work_place.queue : NULL;

	if (q)
		takes(q, 1);
}

int tacho__leaves_pool(void)
{
	const struct queue *q = work_place.queue;

	if (!q || !tacho__load(&q->is_no_queue))
		return 0;
	tacho__hook.serves = 0;
	tacho__hook.work_mutex = NULL;
	return 1;
}

/* What locks it before the first wait may never do so again: then what does instead has taken something
   each time. Whether this one has. */
static int learned(struct place_of_work *p, const void *code)
{
	if (!p->elsewhere++) {
		p->other = code;
		p->others = 0;
	}
	p->others += code == p->other;
	if (p->elsewhere <= ELSEWHERE)
		return 0;
	if (p->others > ELSEWHERE / 4)
		code = p->other;
	takes(p->queue, code == p->other ? p->others - 1 : 0);
	p->code = code;
	return 1;
}

void tacho__comes_for_work(const void *code)
{
	struct place_of_work *p = &work_place;
	struct queue *q = p->queue;

	if (tacho__on_loop_thread()) {
		comes_to_give(code);
		return;
	}
	if (code != p->code && !learned(p, code))
		return;
	p->elsewhere = 0;
	takes(q, 1);
}
