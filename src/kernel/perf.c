#include "kernel/perf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "read/memory.h"

#define STACK_BYTES 16384u /* of a thread's stack, in each sample */
#define HZ_MAX 1000u

/* Data pages of a ring, a power of two. With samples: 31 of them; switches: 10,900. */
#define PAGES_SAMPLED 128u
#define PAGES_SAMPLED_MIN 16u
#define PAGES_SWITCHES 64u
#define PAGES_SWITCHES_MIN 1u
/* On machines with very many CPUs rings are smaller: each has a part of the load. */
#define PAGES_ALL 4096u

#define CPUS_MAX 4096u
#define THREADS_MAX 16384 /* that one process is looked through for */
#define BIRTH_WAITS 20
#define BIRTH_WAIT_NS 1000000
#define ROUNDS 8 /* of looking for threads that began meanwhile */

struct ring {
	int cpu;
	int owner;
	struct perf_event_mmap_page *page; /* the data follow it */
};

/* A thread with events of its own, one for each ring; others have inherited theirs. */
struct thread {
	uint32_t tid;
	bool seen;
	int *fds;
};

struct tacho__perf {
	struct tacho__perf_options options;
	struct perf_event_attr attr;
	struct ring *rings;
	uint32_t ring_count;
	size_t page_size, data_size;
	int poll_fd;
	bool inherits; /* threads of followed threads are followed (Linux 5.13) */
	bool counts;   /* events count what they lost (Linux 6.0); else records do, late */
	struct thread *threads;
	uint32_t thread_count, thread_capacity;
	uint32_t *born; /* threads that have inherited events, while we look for others */
	uint32_t born_count, born_capacity;
	uint32_t missed;
	int missed_error;
	uint64_t lost;	   /* by records; of those that count, only what is gone or made no sense */
	uint64_t *whole;   /* a record that goes round the end of a ring */
	uint64_t ahead_ns; /* this time namespace, of the clock that perf reads; it may wrap */
};

static int open_event(const struct perf_event_attr *attr, int pid, int cpu)
{
	struct perf_event_attr copy = *attr;
	long fd = syscall(SYS_perf_event_open, &copy, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static void describe(struct perf_event_attr *a, const struct tacho__perf_options *o)
{
	uint32_t hz = o->sample_hz < HZ_MAX ? o->sample_hz : HZ_MAX;

	*a = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(*a),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = TACHO__PERF_EVERY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	a->context_switch = o->switches;
	if (!hz)
		return;
	a->config = PERF_COUNT_SW_CPU_CLOCK;
	a->sample_type = TACHO__PERF_SAMPLED;
	a->sample_period = 1000000000u / hz;
	a->exclude_kernel = 0;
	a->sample_regs_user = TACHO__PERF_REGS;
	a->sample_stack_user = STACK_BYTES;
}

/* ------------------------------------------------------------------ rings */

/* "0-3,8" */
static int read_cpus(struct tacho__perf *p)
{
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	char line[4096] = "0";
	char *at = line;

	if (f && !fgets(line, sizeof(line), f))
		strcpy(line, "0");
	if (f)
		fclose(f);
	p->rings = calloc(CPUS_MAX, sizeof(*p->rings));
	if (!p->rings)
		return -ENOMEM;
	while (*at >= '0' && *at <= '9') {
		unsigned long first = strtoul(at, &at, 10), last = first;

		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		for (; first <= last && p->ring_count < CPUS_MAX; first++)
			p->rings[p->ring_count++] = (struct ring){(int)first, -1, NULL};
		at += *at == ',';
	}
	return p->ring_count ? 0 : -ENODEV;
}

static int open_owners(struct tacho__perf *p)
{
	struct perf_event_attr attr;
	struct tacho__perf_options nothing = {0};
	uint32_t kept = 0;

	describe(&attr, &nothing);
	attr.disabled = 1;
	attr.wakeup_watermark = (uint32_t)(p->data_size / 2);
	for (uint32_t i = 0; i < p->ring_count; i++) {
		struct ring r = p->rings[i];

		r.owner = open_event(&attr, 0, r.cpu);
		/* Taken away meanwhile. */
		if (r.owner == -ENODEV)
			continue;
		if (r.owner < 0)
			return r.owner;
		p->rings[kept++] = r;
	}
	p->ring_count = kept;
	return kept ? 0 : -ENODEV;
}

static void close_rings(struct tacho__perf *p)
{
	for (uint32_t i = 0; i < p->ring_count; i++) {
		struct ring *r = &p->rings[i];

		if (r->page)
			munmap(r->page, p->page_size + p->data_size);
		if (r->owner >= 0)
			close(r->owner);
		r->page = NULL;
		r->owner = -1;
	}
}

static int map_rings(struct tacho__perf *p)
{
	for (uint32_t i = 0; i < p->ring_count; i++) {
		struct ring *r = &p->rings[i];
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
		void *at = mmap(NULL, p->page_size + p->data_size, PROT_READ | PROT_WRITE,
				MAP_SHARED, r->owner, 0);

		if (at == MAP_FAILED)
			return -errno;
		r->page = at;
		if (epoll_ctl(p->poll_fd, EPOLL_CTL_ADD, r->owner, &event))
			return -errno;
	}
	return 0;
}

/* What one user may lock is limited: smaller rings, then. */
static int open_rings(struct tacho__perf *p, enum tacho__perf_step *step)
{
	bool sampled = p->options.sample_hz;
	uint32_t pages = sampled ? PAGES_SAMPLED : PAGES_SWITCHES;
	uint32_t least = sampled ? PAGES_SAMPLED_MIN : PAGES_SWITCHES_MIN;
	int err;

	while (pages > least && (uint64_t)pages * p->ring_count > PAGES_ALL)
		pages /= 2;
	for (;; pages /= 2) {
		p->data_size = pages * p->page_size;
		*step = TACHO__PERF_OPEN;
		err = open_owners(p);
		if (!err) {
			*step = TACHO__PERF_RING;
			err = map_rings(p);
		}
		if (!err)
			return 0;
		close_rings(p);
		if (*step == TACHO__PERF_OPEN || (err != -EPERM && err != -ENOMEM) ||
		    pages / 2 < least)
			return err;
	}
}

/* ---------------------------------------------------------------- threads */

/* What events of a thread, and of those that inherited them, found no room for. */
static uint64_t lost_of(const struct tacho__perf *p, const struct thread *t)
{
	uint64_t values[2], lost = 0; /* the count, which means nothing, and the loss */

	for (uint32_t i = 0; p->counts && i < p->ring_count; i++)
		if (t->fds[i] >= 0 && read(t->fds[i], values, sizeof(values)) == sizeof(values))
			lost += values[1];
	return lost;
}

static void forget_thread(struct tacho__perf *p, struct thread *t)
{
	p->lost += lost_of(p, t);
	for (uint32_t i = 0; i < p->ring_count; i++)
		if (t->fds[i] >= 0)
			close(t->fds[i]);
	free(t->fds);
	t->fds = NULL;
}

/* The first event of all finds out what this kernel cannot do. */
static int open_thread(struct tacho__perf *p, uint32_t tid, int cpu)
{
	int fd = open_event(&p->attr, (int)tid, cpu);

	if (fd == -EINVAL && p->counts && !p->thread_count) {
		p->counts = false;
		p->attr.read_format = 0;
		fd = open_event(&p->attr, (int)tid, cpu);
	}
	if (fd == -EINVAL && p->inherits && !p->thread_count) {
		p->inherits = false;
		p->attr.inherit = p->attr.inherit_thread = p->attr.remove_on_exec = 0;
		fd = open_event(&p->attr, (int)tid, cpu);
	}
	return fd;
}

static int follow(struct tacho__perf *p, uint32_t tid)
{
	struct thread t = {.tid = tid, .seen = true};
	int err = 0;

	if (TACHO__GROW(p->threads, p->thread_capacity, p->thread_count + 1))
		return -ENOMEM;
	t.fds = malloc(p->ring_count * sizeof(*t.fds));
	if (!t.fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->ring_count; i++)
		t.fds[i] = -1;
	for (uint32_t i = 0; !err && i < p->ring_count; i++) {
		t.fds[i] = open_thread(p, tid, p->rings[i].cpu);
		if (t.fds[i] < 0)
			err = t.fds[i];
		else if (ioctl(t.fds[i], PERF_EVENT_IOC_SET_OUTPUT, p->rings[i].owner))
			err = -errno;
	}
	if (err)
		forget_thread(p, &t);
	else
		p->threads[p->thread_count++] = t;
	return err;
}

static struct thread *find(struct tacho__perf *p, uint32_t tid)
{
	for (uint32_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].tid == tid)
			return &p->threads[i];
	return NULL;
}

static bool was_born(const struct tacho__perf *p, uint32_t tid)
{
	for (uint32_t i = 0; i < p->born_count; i++)
		if (p->born[i] == tid)
			return true;
	return false;
}

static void see_born(struct tacho__perf *p, uint32_t tid)
{
	if (!TACHO__GROW(p->born, p->born_capacity, p->born_count + 1))
		p->born[p->born_count++] = tid;
}

/* Only who began is looked at; everything else stays. */
static void drain_births(struct tacho__perf *p);

/* Threads that are there and not known yet; how many, or -errno. */
static int list_new(struct tacho__perf *p, uint32_t *tids)
{
	char path[64];
	struct dirent *e;
	int count = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%u/task", p->options.pid);
	d = opendir(path);
	if (!d)
		return -errno;
	for (uint32_t i = 0; i < p->thread_count; i++)
		p->threads[i].seen = false;
	while ((e = readdir(d)) && count < THREADS_MAX) {
		uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);
		struct thread *t = tid ? find(p, tid) : NULL;

		if (t)
			t->seen = true;
		else if (tid && !was_born(p, tid))
			tids[count++] = tid;
	}
	closedir(d);
	return count;
}

/* A thread can be seen before the record of its birth is written. */
static void wait_for_births(struct tacho__perf *p, const uint32_t *tids, int count)
{
	const struct timespec a_while = {0, BIRTH_WAIT_NS};

	for (int i = 0; i < BIRTH_WAITS; i++) {
		int unborn = 0;

		drain_births(p);
		for (int k = 0; k < count; k++)
			unborn += !was_born(p, tids[k]);
		if (!unborn)
			return;
		nanosleep(&a_while, NULL);
	}
}

/* How many; or -errno when not one could be. */
static int follow_new(struct tacho__perf *p, const uint32_t *tids, int count)
{
	int found = 0, first = 0;

	for (int i = 0; i < count; i++) {
		int err = was_born(p, tids[i]) ? -ESRCH : follow(p, tids[i]);

		found += !err;
		if (!err || err == -ESRCH)
			continue;
		first = first ? first : err;
		p->missed++;
		p->missed_error = -err;
		see_born(p, tids[i]); /* once is enough */
	}
	return found || !first || p->thread_count ? found : first;
}

static void forget_gone(struct tacho__perf *p)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->thread_count; i++) {
		if (p->threads[i].seen)
			p->threads[kept++] = p->threads[i];
		else
			forget_thread(p, &p->threads[i]);
	}
	p->thread_count = kept;
}

/*
 * A thread that begins while we look has inherited its events, and a record says so; or its
 * creator had none yet, and it comes up when we look again. Of those that were there before
 * anything was followed, none has.
 */
static int look(struct tacho__perf *p)
{
	uint32_t *tids = calloc(THREADS_MAX, sizeof(*tids));
	int result = tids ? 1 : -ENOMEM;

	for (int round = 0; result > 0 && round < ROUNDS; round++) {
		int count = list_new(p, tids);

		if (count > 0 && p->inherits && p->thread_count)
			wait_for_births(p, tids, count);
		result = count > 0 ? follow_new(p, tids, count) : count;
	}
	if (p->inherits)
		p->born_count = 0;
	free(tids);
	return result < 0 && !p->thread_count ? result : 0;
}

void tacho__perf_threads(struct tacho__perf *p)
{
	if (p->inherits)
		return;
	look(p);
	forget_gone(p);
}

uint32_t tacho__perf_missed(const struct tacho__perf *p, int *error)
{
	*error = p->missed_error;
	return p->missed;
}

/* --------------------------------------------------------------- draining */

/* The record at `at`, whole and aligned; NULL: what stands there is none. */
static const void *record_at(struct tacho__perf *p, const uint8_t *data, uint64_t at, uint64_t left,
			     size_t *size)
{
	size_t offset = (size_t)(at & (p->data_size - 1));
	size_t first = p->data_size - offset;
	struct perf_event_header head;

	if (left < sizeof(head) || at % 8)
		return NULL;
	memcpy(&head, data + offset, sizeof(head));
	*size = head.size;
	if (head.size < sizeof(head) || head.size % 8 || head.size > left)
		return NULL;
	if (head.size <= first)
		return data + offset;
	memcpy(p->whole, data + offset, first);
	memcpy((uint8_t *)p->whole + first, data, head.size - first);
	return p->whole;
}

static void drain_ring(struct tacho__perf *p, struct ring *r, bool births,
		       void (*record)(void *arg, const struct tacho__perf_record *record),
		       void *arg)
{
	const uint8_t *data = (const uint8_t *)r->page + p->page_size;
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = r->page->data_tail;

	if (head - at > p->data_size)
		at = head;
	while (at < head) {
		struct tacho__perf_record rec;
		size_t size;
		const void *whole = record_at(p, data, at, head - at, &size);

		if (!whole) {
			/* Where the next one begins cannot be known. */
			p->lost++;
			at = head;
			break;
		}
		at += size;
		if (tacho__perf_parse(whole, size, &rec)) {
			p->lost++;
			continue;
		}
		rec.cpu = (uint32_t)r->cpu;
		rec.ns += p->ahead_ns;
		if (births) {
			if (rec.type == TACHO__PERF_FORK && rec.pid == p->options.pid &&
			    !was_born(p, rec.tid))
				see_born(p, rec.tid);
		} else if (rec.type == TACHO__PERF_LOST) {
			p->lost += p->counts ? 0 : rec.lost;
		} else if (rec.type != TACHO__PERF_OTHER && rec.pid == p->options.pid) {
			record(arg, &rec);
		}
	}
	if (!births)
		__atomic_store_n(&r->page->data_tail, at, __ATOMIC_RELEASE);
}

static void drain_births(struct tacho__perf *p)
{
	for (uint32_t i = 0; i < p->ring_count; i++)
		drain_ring(p, &p->rings[i], true, NULL, NULL);
}

void tacho__perf_drain(struct tacho__perf *p,
		       void (*record)(void *arg, const struct tacho__perf_record *record),
		       void *arg)
{
	for (uint32_t i = 0; i < p->ring_count; i++)
		drain_ring(p, &p->rings[i], false, record, arg);
}

uint64_t tacho__perf_lost(const struct tacho__perf *p)
{
	uint64_t lost = p->lost;

	for (uint32_t i = 0; i < p->thread_count; i++)
		lost += lost_of(p, &p->threads[i]);
	return lost;
}

/* -------------------------------------------------------------- beginning */

/* perf knows no time namespaces. Where there are none, there is no such file. */
static uint64_t namespace_ahead_ns(void)
{
	FILE *f = fopen("/proc/self/timens_offsets", "re");
	long long seconds = 0, ns = 0;

	if (f && fscanf(f, "monotonic %lld %lld", &seconds, &ns) != 2)
		seconds = ns = 0;
	if (f)
		fclose(f);
	return (uint64_t)seconds * 1000000000u + (uint64_t)ns;
}

int tacho__perf_fd(const struct tacho__perf *p)
{
	return p->poll_fd;
}

static int begin(struct tacho__perf *p, enum tacho__perf_step *step)
{
	long page = sysconf(_SC_PAGESIZE);
	int err;

	*step = TACHO__PERF_MEMORY;
	p->ahead_ns = namespace_ahead_ns();
	p->page_size = page > 0 ? (size_t)page : 4096;
	p->whole = malloc(TACHO__PERF_RECORD_MAX);
	if (!p->whole)
		return -ENOMEM;
	err = read_cpus(p);
	if (err)
		return err;
	*step = TACHO__PERF_OPEN;
	p->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->poll_fd < 0)
		return -errno;
	err = open_rings(p, step);
	if (err)
		return err;
	describe(&p->attr, &p->options);
	p->attr.task = 1;
	p->attr.inherit = p->attr.inherit_thread = p->attr.remove_on_exec = 1;
	p->attr.read_format = PERF_FORMAT_LOST;
	p->inherits = p->counts = true;
	*step = TACHO__PERF_OPEN;
	err = look(p);
	if (err == -ENOENT || (!err && !p->thread_count)) {
		*step = TACHO__PERF_TASKS;
		err = -ESRCH;
	}
	return err;
}

int tacho__perf_new(struct tacho__perf **out, const struct tacho__perf_options *options,
		    enum tacho__perf_step *step)
{
	struct tacho__perf *p = calloc(1, sizeof(*p));
	int err;

	*step = TACHO__PERF_MEMORY;
	if (!p)
		return -ENOMEM;
	p->options = *options;
	p->poll_fd = -1;
	err = begin(p, step);
	if (err) {
		tacho__perf_free(p);
		return err;
	}
	*out = p;
	return 0;
}

void tacho__perf_free(struct tacho__perf *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->thread_count; i++)
		forget_thread(p, &p->threads[i]);
	close_rings(p);
	if (p->poll_fd >= 0)
		close(p->poll_fd);
	free(p->threads);
	free(p->born);
	free(p->rings);
	free(p->whole);
	free(p);
}
