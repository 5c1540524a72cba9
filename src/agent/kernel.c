/*
 * Records of perf are turned into records of the box's kind as they come, and put into one
 * ring of words, in which the oldest make room. Stacks are unwound at once: a copied
 * stack is a hundred times as large as its frames.
 *
 * In the ring a record is: time; thread << 32 | type and argument; payload words.
 */
#include "agent/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel_say.h"
#include "agent/kernel_unwind.h"
#include "agent/stops.h"
#include "base/hash.h"
#include "base/sys.h"
#include "format/record.h"
#include "kernel/perf.h"
#include "read/records.h"

#define HEAD_WORDS 2u
#define FRAMES_MAX (TACHO_RECORD_MAX_WORDS - 2)
#define KERNEL_FRAMES_MAX 62u
#define FIRST_WORDS 8192u     /* of the ring, which grows */
#define LEAST_WORDS 1024u     /* whatever the limit says */
#define STRETCH_RECORDS 1024u /* of a thread; they are cut at multiples of it, as chunks are */
#define THREADS_FIRST 64u

struct thread {
	uint32_t tid;	  /* 0: free */
	uint32_t slot;	  /* while stretches are made: where its records stand; ~0: not wanted */
	uint64_t seen;	  /* records so far */
	uint64_t gone;	  /* of these, made room */
	uint64_t told;	  /* of these, delivered, or missing from what was */
	uint64_t told_ns; /* of the last that was delivered */
	uint64_t passed;  /* while they are listed */
	bool wanted;	  /* it has been one of the box's */
	char name[16];
};

struct tacho__kernel {
	struct tacho__kernel_options options;
	uint32_t pid;
	struct tacho__perf *perf;
	struct tacho__unwinder *unwinder;

	uint64_t *ring;
	size_t size, limit; /* words */
	size_t begin, used;

	struct thread *threads; /* by a hash of the tid; a power of two */
	uint32_t thread_count, thread_capacity;
	uint64_t forgotten; /* no thread that was forgotten had more records */
	uint64_t unkept;    /* no memory */
	uint64_t missing;   /* made room undelivered */

	struct tacho__records *stretches;
	uint32_t stretch_count;
};

/* ---------------------------------------------------------------- threads */

static uint32_t place(const struct tacho__kernel *k, uint32_t tid)
{
	uint32_t at = (uint32_t)(tacho__mix(tid) >> 32) & (k->thread_capacity - 1);

	while (k->threads[at].tid && k->threads[at].tid != tid)
		at = (at + 1) & (k->thread_capacity - 1);
	return at;
}

/* Threads of which nothing is kept are forgotten on the way. One that comes again is counted on
   from where none had come, so that no two of its records have one number. */
static int grow_threads(struct tacho__kernel *k)
{
	uint32_t old_capacity = k->thread_capacity, kept = 0;
	struct thread *old = k->threads;

	for (uint32_t i = 0; i < old_capacity; i++)
		kept += old[i].tid && old[i].seen > old[i].gone;
	k->thread_capacity = THREADS_FIRST;
	while (k->thread_capacity < 4 * (kept + 1))
		k->thread_capacity *= 2;
	k->threads = calloc(k->thread_capacity, sizeof(*k->threads));
	if (!k->threads) {
		k->threads = old;
		k->thread_capacity = old_capacity;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < old_capacity; i++)
		if (old[i].tid && old[i].seen > old[i].gone)
			k->threads[place(k, old[i].tid)] = old[i];
		else if (old[i].seen > k->forgotten)
			k->forgotten = old[i].seen;
	k->thread_count = kept;
	free(old);
	return 0;
}

static void read_name(const struct tacho__kernel *k, struct thread *t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", k->pid, t->tid);
	tacho__read_small(path, t->name, sizeof(t->name));
	t->name[strcspn(t->name, "\n")] = 0;
}

static struct thread *thread_of(struct tacho__kernel *k, uint32_t tid)
{
	struct thread *t;

	if (2 * k->thread_count >= k->thread_capacity && grow_threads(k))
		return NULL;
	t = &k->threads[place(k, tid)];
	if (!t->tid) {
		*t = (struct thread){.tid = tid, .slot = UINT32_MAX};
		t->seen = t->gone = t->told = k->forgotten;
		k->thread_count++;
		read_name(k, t);
	}
	return t;
}

/* ------------------------------------------------------------------- ring */

static uint64_t *word(const struct tacho__kernel *k, size_t at)
{
	return &k->ring[at < k->size ? at : at - k->size];
}

/* Words of the record at `at`. */
static size_t record_words(const struct tacho__kernel *k, size_t at)
{
	unsigned type = tacho_record_type(*word(k, at + 1));

	if (TACHO_REC_CLASS(type) != TACHO_REC_CLASS_VARIABLE)
		return HEAD_WORDS + TACHO_REC_CLASS(type);
	return HEAD_WORDS + tacho_record_words(type, *word(k, at + HEAD_WORDS));
}

static void drop_oldest(struct tacho__kernel *k)
{
	size_t words = record_words(k, k->begin);
	uint32_t tid = (uint32_t)(*word(k, k->begin + 1) >> 32);

	k->threads[place(k, tid)].gone++;
	k->begin += words;
	if (k->begin >= k->size)
		k->begin -= k->size;
	k->used -= words;
}

static int grow_ring(struct tacho__kernel *k)
{
	size_t size = k->size ? 2 * k->size : FIRST_WORDS;
	uint64_t *ring;

	if (size > k->limit)
		size = k->limit;
	if (size <= k->size)
		return -ENOSPC;
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (size_t i = 0; i < k->used; i++)
		ring[i] = *word(k, k->begin + i);
	free(k->ring);
	k->ring = ring;
	k->size = size;
	k->begin = 0;
	return 0;
}

/*
 * The ring is full. What no window can reach back to goes at once; memory is taken only when that
 * left it more than three quarters full, so that the box is not asked for each record.
 */
static int make_room(struct tacho__kernel *k)
{
	uint64_t since = 0;

	if (k->size >= k->limit)
		return -ENOSPC;
	if (k->size && k->options.since)
		since = k->options.since(k->options.arg);
	while (k->used && *word(k, k->begin) < since)
		drop_oldest(k);
	return k->size && k->used <= k->size / 4 * 3 ? 0 : grow_ring(k);
}

static void keep(struct tacho__kernel *k, const struct tacho__perf_record *from, uint32_t type_arg,
		 const uint64_t *words, uint32_t n)
{
	struct thread *t = thread_of(k, from->tid);
	size_t need = HEAD_WORDS + n, at;

	while (t && k->size - k->used < need && !make_room(k))
		;
	while (t && k->used && k->size - k->used < need)
		drop_oldest(k);
	if (!t || k->size - k->used < need) {
		k->unkept++;
		return;
	}
	at = k->begin + k->used;
	*word(k, at % k->size) = from->ns;
	*word(k, (at + 1) % k->size) = (uint64_t)from->tid << 32 | type_arg;
	for (uint32_t i = 0; i < n; i++)
		*word(k, (at + HEAD_WORDS + i) % k->size) = words[i];
	k->used += need;
	t->seen++;
}

/* ---------------------------------------------------------------- records */

static void keep_sample(struct tacho__kernel *k, const struct tacho__perf_record *from)
{
	uint64_t words[TACHO_RECORD_MAX_WORDS];
	uint32_t kernel = from->kernel_count, user;
	bool more = false;

	if (kernel > KERNEL_FRAMES_MAX) {
		kernel = KERNEL_FRAMES_MAX;
		more = true;
	}
	if (kernel)
		memcpy(words + 2, from->kernel, kernel * sizeof(words[0]));
	user = tacho__unwinder_frames(k->unwinder, from, words + 2 + kernel, FRAMES_MAX - kernel,
				      &more);
	/* Without tables for where it is, frame pointers are better than nothing. */
	if (user <= 1 && from->user_count > user) {
		user = from->user_count;
		more = user > FRAMES_MAX - kernel;
		user = more ? FRAMES_MAX - kernel : user;
		memcpy(words + 2 + kernel, from->user, user * sizeof(words[0]));
	}
	more |= kernel < from->kernel_count;
	words[0] = (2 + kernel + user) | (uint64_t)more << 16;
	words[1] = 1000000000u / k->options.sample_hz;
	keep(k, from, tacho_record_head(TACHO_REC_KERNEL_SAMPLE, kernel), words, 2 + kernel + user);
}

static void take_record(void *arg, const struct tacho__perf_record *from)
{
	struct tacho__kernel *k = arg;

	switch (from->type) {
	case TACHO__PERF_SAMPLE:
		keep_sample(k, from);
		break;
	case TACHO__PERF_SWITCH_OUT:
		keep(k, from, tacho_record_head(TACHO_REC_SWITCH_OUT, from->preempted), NULL, 0);
		break;
	case TACHO__PERF_SWITCH_IN:
		keep(k, from, tacho_record_head(TACHO_REC_SWITCH_IN, from->cpu), NULL, 0);
		break;
	default:
		break;
	}
}

/* All threads of a process that is stopped leave their CPUs, and come back when it goes on. */
static void sharpen(const struct tacho__kernel *k, struct tacho__stop *stop)
{
	uint64_t from = 0, until = stop->until_ns, first_seen = stop->first_ns;

	for (size_t i = 0; i < k->used;) {
		size_t at = (k->begin + i) % k->size;
		unsigned type = tacho_record_type(*word(k, (at + 1) % k->size));
		uint64_t ns = *word(k, at);

		if (type == TACHO_REC_SWITCH_OUT && ns <= first_seen && ns > from)
			from = ns;
		if (type == TACHO_REC_SWITCH_IN && ns > stop->seen_ns && ns < until)
			until = ns;
		i += record_words(k, at);
	}
	if (from)
		stop->from_ns = from;
	stop->until_ns = until;
}

void tacho__kernel_stopped(struct tacho__kernel *k, uint32_t tid, struct tacho__stop *stop)
{
	struct tacho__perf_record at = {.tid = tid};
	uint64_t words[2];

	tacho__kernel_drain(k);
	if (k->options.switches)
		sharpen(k, stop);
	at.ns = stop->from_ns;
	words[0] = stop->until_ns;
	words[1] = stop->seen_ns;
	keep(k, &at, tacho_record_head(TACHO_REC_STOPPED, (uint32_t)stop->how - TACHO__STOP_SIGNAL),
	     words, 2);
}

/* -------------------------------------------------------------- stretches */

/* Where a record stands, while they are sorted by thread and time. */
struct entry {
	uint64_t ns;
	uint32_t slot;
	uint32_t order; /* as they came */
	size_t at;
};

static int compare(const void *va, const void *vb)
{
	const struct entry *a = va, *b = vb;

	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static void forget_stretches(struct tacho__kernel *k)
{
	for (uint32_t i = 0; i < k->stretch_count; i++)
		tacho__records_free(&k->stretches[i]);
	free(k->stretches);
	k->stretches = NULL;
	k->stretch_count = 0;
}

static int make_stretch(const struct tacho__kernel *k, struct tacho__records *r,
			const struct entry *entries, uint32_t count)
{
	uint64_t words[TACHO_RECORD_MAX_WORDS];
	size_t all = 0;

	for (uint32_t i = 0; i < count; i++)
		all += record_words(k, entries[i].at) - HEAD_WORDS;
	if (tacho__records_reserve(r, count, (uint32_t)all))
		return -ENOMEM;
	r->word_at[0] = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = (uint32_t)record_words(k, entries[i].at) - HEAD_WORDS;

		for (uint32_t w = 0; w < n; w++)
			words[w] = *word(k, (entries[i].at + HEAD_WORDS + w) % k->size);
		tacho__records_put(r, entries[i].ns, (uint32_t)*word(k, entries[i].at + 1), words,
				   n);
	}
	r->head.first_ns = entries[0].ns;
	r->head.last_ns = entries[count - 1].ns;
	return 0;
}

/* The records of one thread, the last of which is its newest, cut where their numbers say. */
static int make_thread(struct tacho__kernel *k, const struct thread *t, uint32_t number,
		       const struct entry *entries, uint32_t count)
{
	uint64_t prior = t->seen - count;

	for (uint32_t done = 0; done < count;) {
		uint32_t part = STRETCH_RECORDS - (uint32_t)(prior % STRETCH_RECORDS);
		struct tacho__records *r = &k->stretches[k->stretch_count];

		if (part > count - done)
			part = count - done;
		*r = (struct tacho__records){0};
		r->head.size = sizeof(r->head);
		r->head.thread = number;
		r->head.tid = t->tid;
		r->head.stream = TACHO_STREAM_KERNEL;
		r->head.sequence = (uint32_t)(prior / STRETCH_RECORDS) + 1;
		r->head.prior_records = prior;
		memcpy(r->head.name, t->name, sizeof(r->head.name));
		k->stretch_count++;
		if (make_stretch(k, r, entries + done, part))
			return -ENOMEM;
		done += part;
		prior += part;
	}
	return 0;
}

/* The entries of wanted threads; how many. Of those that were not delivered (`fresh`), one that
   came late is not older than what was: times of a stream do not run back. */
static uint32_t list(struct tacho__kernel *k, struct entry *entries, bool fresh)
{
	uint32_t count = 0, order = 0;

	for (uint32_t i = 0; i < k->thread_capacity; i++)
		k->threads[i].passed = k->threads[i].gone;
	for (size_t i = 0; i < k->used;) {
		size_t at = (k->begin + i) % k->size;
		uint32_t tid = (uint32_t)(*word(k, at + 1) >> 32);
		struct thread *t = &k->threads[place(k, tid)];
		uint64_t ns = *word(k, at);

		if (fresh && ns < t->told_ns)
			ns = t->told_ns;
		if (t->slot != UINT32_MAX && (!fresh || t->passed >= t->told))
			entries[count++] = (struct entry){ns, t->slot, order, at};
		t->passed++;
		order++;
		i += record_words(k, at);
	}
	return count;
}

static int make_all(struct tacho__kernel *k, const uint32_t *numbers, struct entry *entries,
		    uint32_t count)
{
	int err = 0;

	if (count)
		qsort(entries, count, sizeof(*entries), compare);
	for (uint32_t i = 0, end; !err && i < count; i = end) {
		uint32_t tid = (uint32_t)(*word(k, entries[i].at + 1) >> 32);

		for (end = i + 1; end < count && entries[end].slot == entries[i].slot; end++)
			;
		err = make_thread(k, &k->threads[place(k, tid)], numbers[entries[i].slot],
				  entries + i, end - i);
	}
	return err;
}

/* What made room and was not delivered is missing; but not what a thread did before it was one
   of the box's. */
static void count_missing(struct tacho__kernel *k, struct thread *t)
{
	if (t->gone > t->told) {
		k->missing += t->wanted ? t->gone - t->told : 0;
		t->told = t->gone;
	}
	t->wanted = true;
}

static int take(struct tacho__kernel *k, uint32_t (*thread)(void *arg, uint32_t tid), void *arg,
		bool fresh)
{
	uint32_t *numbers;
	struct entry *entries;
	uint64_t kept = 0;
	uint32_t wanted = 0;
	int err = -ENOMEM;

	tacho__kernel_drain(k);
	numbers = calloc((size_t)k->thread_capacity + 1, sizeof(*numbers));
	for (uint32_t i = 0; numbers && i < k->thread_capacity; i++) {
		struct thread *t = &k->threads[i];
		uint64_t before = fresh && t->told > t->gone ? t->told : t->gone;
		uint32_t number = t->tid && t->seen > before ? thread(arg, t->tid) : 0;

		t->slot = number ? wanted : UINT32_MAX;
		if (!number)
			continue;
		if (fresh)
			count_missing(k, t);
		kept += t->seen - before;
		numbers[wanted++] = number;
	}
	entries = malloc((kept + 1) * sizeof(*entries));
	k->stretches =
		calloc(kept / STRETCH_RECORDS + 2 * (size_t)wanted + 1, sizeof(*k->stretches));
	if (numbers && entries && k->stretches)
		err = make_all(k, numbers, entries, list(k, entries, fresh));
	free(entries);
	free(numbers);
	if (err)
		forget_stretches(k);
	return err;
}

static uint64_t lost_of(const struct tacho__kernel *k)
{
	return (k->perf ? tacho__perf_lost(k->perf) : 0) + k->unkept;
}

int tacho__kernel_take(struct tacho__kernel *k, uint32_t (*thread)(void *arg, uint32_t tid),
		       void *arg, const struct tacho__records **out, uint32_t *count,
		       uint64_t *lost)
{
	int err = take(k, thread, arg, false);

	*out = k->stretches;
	*count = k->stretch_count;
	*lost = lost_of(k);
	return err;
}

int tacho__kernel_take_new(struct tacho__kernel *k, uint32_t (*thread)(void *arg, uint32_t tid),
			   void *arg, const struct tacho__records **out, uint32_t *count,
			   uint64_t *lost)
{
	int err = take(k, thread, arg, true);

	*out = k->stretches;
	*count = k->stretch_count;
	*lost = lost_of(k) + k->missing;
	return err;
}

void tacho__kernel_delivered(struct tacho__kernel *k, uint32_t count)
{
	for (uint32_t i = 0; i < count && i < k->stretch_count; i++) {
		const struct tacho_trace_events *head = &k->stretches[i].head;
		struct thread *t = &k->threads[place(k, head->tid)];

		t->told = head->prior_records + head->count;
		t->told_ns = head->last_ns;
	}
}

uint32_t tacho__kernel_missed(const struct tacho__kernel *k, int *error)
{
	return tacho__perf_missed(k->perf, error);
}

int tacho__kernel_fd(const struct tacho__kernel *k)
{
	return k->perf ? tacho__perf_fd(k->perf) : -1;
}

void tacho__kernel_drain(struct tacho__kernel *k)
{
	forget_stretches(k);
	if (!k->perf)
		return;
	tacho__perf_drain(k->perf, take_record, k);
	tacho__perf_threads(k->perf);
}

/* -------------------------------------------------------------- beginning */

static int begin(struct tacho__perf **perf, uint32_t pid, const struct tacho__kernel_options *o,
		 char *message, size_t message_size)
{
	struct tacho__perf_options options = {pid, o->sample_hz, o->switches};
	enum tacho__perf_step step;
	int err = tacho__perf_new(perf, &options, &step);

	if (err)
		tacho__kernel_say(o, pid, step, err, message, message_size);
	return err;
}

int tacho__kernel_possible(const struct tacho__kernel_options *options, char *message,
			   size_t message_size)
{
	struct tacho__perf *perf = NULL;
	int err = begin(&perf, (uint32_t)getpid(), options, message, message_size);

	if (!err)
		tacho__perf_free(perf);
	return err;
}

struct tacho__kernel *tacho__kernel_new(uint32_t pid, const struct tacho__kernel_options *options,
					char *message, size_t message_size)
{
	struct tacho__kernel *k = calloc(1, sizeof(*k));
	int err;

	if (!k) {
		tacho__kernel_say(options, pid, TACHO__PERF_MEMORY, -ENOMEM, message, message_size);
		return NULL;
	}
	k->options = *options;
	k->pid = pid;
	k->limit = options->max_bytes / sizeof(uint64_t);
	if (k->limit < LEAST_WORDS)
		k->limit = LEAST_WORDS;
	err = options->sample_hz || options->switches
		      ? begin(&k->perf, pid, options, message, message_size)
		      : 0;
	if (err) {
		if (err == -EACCES && message && message_size &&
		    !tacho__kernel_possible(options, NULL, 0))
			tacho__kernel_say_whose(pid, message, message_size);
		free(k);
		return NULL;
	}
	/* Without it, as far as frame pointers reach. */
	if (options->sample_hz)
		k->unwinder = tacho__unwinder_new(pid);
	return k;
}

void tacho__kernel_free(struct tacho__kernel *k)
{
	if (!k)
		return;
	forget_stretches(k);
	tacho__perf_free(k->perf);
	tacho__unwinder_free(k->unwinder);
	free(k->threads);
	free(k->ring);
	free(k);
}
