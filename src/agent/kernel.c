/*
 * Records of perf are turned into records of the box's kind as they come, and put into one
 * ring of words, in which the oldest make room. Stacks are unwound at once: a copied
 * stack is a hundred times as large as its frames.
 *
 * In the ring a record is: time; thread << 32 | type and argument; payload words.
 */
#include "agent/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel_unwind.h"
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
	uint32_t tid;  /* 0: free */
	uint32_t slot; /* while stretches are made: where its records stand; ~0: not wanted */
	uint64_t seen; /* records so far */
	uint64_t gone; /* of these, made room */
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
	uint64_t unkept; /* no memory */

	struct tacho__records *stretches;
	uint32_t stretch_count;
};

/* ---------------------------------------------------------------- threads */

static uint32_t place(const struct tacho__kernel *k, uint32_t tid)
{
	uint32_t at = tid * 2654435769u & (k->thread_capacity - 1);

	while (k->threads[at].tid && k->threads[at].tid != tid)
		at = (at + 1) & (k->thread_capacity - 1);
	return at;
}

/* Threads of which nothing is kept are forgotten on the way. */
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
	k->thread_count = kept;
	free(old);
	return 0;
}

static void read_name(const struct tacho__kernel *k, struct thread *t)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", k->pid, t->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, t->name, sizeof(t->name) - 1);
	if (fd >= 0)
		close(fd);
	t->name[n > 0 ? n : 0] = 0;
	t->name[strcspn(t->name, "\n")] = 0;
}

static struct thread *thread_of(struct tacho__kernel *k, uint32_t tid)
{
	struct thread *t;

	if (2 * k->thread_count >= k->thread_capacity && grow_threads(k))
		return NULL;
	t = &k->threads[place(k, tid)];
	if (!t->tid) {
		t->tid = tid;
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
	k->begin = (k->begin + words) % k->size;
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
	ring = malloc(size * sizeof(*ring));
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

static void keep(struct tacho__kernel *k, const struct tacho__perf_record *from, uint32_t type_arg,
		 const uint64_t *words, uint32_t n)
{
	struct thread *t = thread_of(k, from->tid);
	size_t need = HEAD_WORDS + n, at;

	while (t && k->size - k->used < need && !grow_ring(k))
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

/* The records of one thread, cut where their numbers say. */
static int make_thread(struct tacho__kernel *k, const struct thread *t, uint32_t number,
		       const struct entry *entries, uint32_t count)
{
	uint64_t prior = t->gone;

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

/* The entries of wanted threads; how many. numbers[] is by slot. */
static uint32_t list(struct tacho__kernel *k, struct entry *entries)
{
	uint32_t count = 0, order = 0;

	for (size_t i = 0; i < k->used;) {
		size_t at = (k->begin + i) % k->size;
		uint32_t tid = (uint32_t)(*word(k, at + 1) >> 32);
		const struct thread *t = &k->threads[place(k, tid)];

		if (t->slot != UINT32_MAX)
			entries[count++] = (struct entry){*word(k, at), t->slot, order, at};
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

int tacho__kernel_take(struct tacho__kernel *k, uint32_t (*thread)(void *arg, uint32_t tid),
		       void *arg, const struct tacho__records **out, uint32_t *count,
		       uint64_t *lost)
{
	uint32_t *numbers;
	struct entry *entries;
	uint64_t kept = 0;
	uint32_t wanted = 0;
	int err = -ENOMEM;

	tacho__kernel_drain(k);
	forget_stretches(k);
	numbers = calloc((size_t)k->thread_capacity + 1, sizeof(*numbers));
	for (uint32_t i = 0; numbers && i < k->thread_capacity; i++) {
		struct thread *t = &k->threads[i];
		uint32_t number = t->tid && t->seen > t->gone ? thread(arg, t->tid) : 0;

		t->slot = number ? wanted : UINT32_MAX;
		kept += t->seen - t->gone;
		if (number)
			numbers[wanted++] = number;
	}
	entries = malloc((kept + 1) * sizeof(*entries));
	k->stretches =
		calloc(kept / STRETCH_RECORDS + 2 * (size_t)wanted + 1, sizeof(*k->stretches));
	if (numbers && entries && k->stretches)
		err = make_all(k, numbers, entries, list(k, entries));
	free(entries);
	free(numbers);
	if (err)
		forget_stretches(k);
	*out = k->stretches;
	*count = k->stretch_count;
	*lost = tacho__perf_lost(k->perf) + k->unkept;
	return err;
}

void tacho__kernel_threads(struct tacho__kernel *k)
{
	forget_stretches(k);
	tacho__perf_threads(k->perf);
}

uint32_t tacho__kernel_missed(const struct tacho__kernel *k, int *error)
{
	return tacho__perf_missed(k->perf, error);
}

int tacho__kernel_fd(const struct tacho__kernel *k)
{
	return tacho__perf_fd(k->perf);
}

void tacho__kernel_drain(struct tacho__kernel *k)
{
	forget_stretches(k);
	tacho__perf_drain(k->perf, take_record, k);
}

/* -------------------------------------------------------------- beginning */

/* kernel.perf_event_paranoid; -2: not known. */
static int paranoid(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -2;

	if (f && fscanf(f, "%d", &level) != 1)
		level = -2;
	if (f)
		fclose(f);
	return level;
}

static const char *what_of(const struct tacho__kernel_options *o)
{
	if (!o->sample_hz)
		return "context switches";
	return o->switches ? "context switches and samples with frames of the kernel"
			   : "samples with frames of the kernel";
}

/* perf_event_open was refused: who did it, and what would help. */
static void say_refused(const struct tacho__kernel_options *o, int err, char *m, size_t size)
{
	int level = paranoid(), most = o->sample_hz ? 1 : 2;

	if (err == -EACCES && level > most)
		snprintf(m, size,
			 "cannot have %s from the kernel: kernel.perf_event_paranoid is %d, which "
			 "keeps them from users without CAP_PERFMON; run tacho as root, or sysctl "
			 "kernel.perf_event_paranoid=%d",
			 what_of(o), level, most);
	else if (err == -ENOSYS)
		snprintf(m, size,
			 "cannot have %s from the kernel: it has no perf_event_open, or a seccomp "
			 "filter says so; allow that call for the container, or do without",
			 what_of(o));
	else
		snprintf(m, size,
			 "cannot have %s from the kernel: perf_event_open is refused (%s), as by "
			 "seccomp filters of containers; allow that call, or do without",
			 what_of(o), strerror(-err));
}

/* Not perf is refused, but this process to us. */
static void say_whose(uint32_t pid, char *m, size_t size)
{
	snprintf(m, size,
		 "cannot follow process %u in the kernel: it is another user's, or may not be "
		 "looked into; run tacho as its user or as root",
		 pid);
}

static void say(const struct tacho__kernel_options *o, uint32_t pid, enum tacho__perf_step step,
		int err, char *m, size_t size)
{
	if (!m || !size)
		return;
	if (err == -ESRCH)
		snprintf(m, size,
			 "cannot follow process %u in the kernel: there is no such process", pid);
	else if (err == -EMFILE || err == -ENFILE)
		snprintf(m, size,
			 "cannot have %s from the kernel: that takes a descriptor for each thread "
			 "and CPU, and there are no more; raise the limit (ulimit -n)",
			 what_of(o));
	else if (step == TACHO__PERF_RING && (err == -EPERM || err == -ENOMEM))
		snprintf(m, size,
			 "cannot have %s from the kernel: no more memory may be locked for it; "
			 "raise kernel.perf_event_mlock_kb or the limit on locked memory (ulimit "
			 "-l)",
			 what_of(o));
	else if (step == TACHO__PERF_OPEN && (err == -EACCES || err == -EPERM || err == -ENOSYS))
		say_refused(o, err, m, size);
	else
		snprintf(m, size, "cannot have %s from the kernel: %s", what_of(o), strerror(-err));
}

static int begin(struct tacho__perf **perf, uint32_t pid, const struct tacho__kernel_options *o,
		 char *message, size_t message_size)
{
	struct tacho__perf_options options = {pid, o->sample_hz, o->switches};
	enum tacho__perf_step step;
	int err = tacho__perf_new(perf, &options, &step);

	if (err)
		say(o, pid, step, err, message, message_size);
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
		say(options, pid, TACHO__PERF_MEMORY, -ENOMEM, message, message_size);
		return NULL;
	}
	k->options = *options;
	k->pid = pid;
	k->limit = options->max_bytes / sizeof(uint64_t);
	if (k->limit < LEAST_WORDS)
		k->limit = LEAST_WORDS;
	err = begin(&k->perf, pid, options, message, message_size);
	if (err) {
		if (err == -EACCES && message && message_size &&
		    !tacho__kernel_possible(options, NULL, 0))
			say_whose(pid, message, message_size);
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
