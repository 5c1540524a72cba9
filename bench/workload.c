/*
 * bench-workload [--ids=number|address] [--snapshot=FILE] SECONDS: the reference workload.
 *
 * A small runtime of the kind that tacho is made for, recorded through tacho.h as
 * a user would. Two loops, each with its thread, an epoll descriptor, a timerfd
 * for its timers, and a queue of woken tasks; a turn runs at most 16 of each. A
 * thousand tasks of five kinds:
 *
 *   client      50  a timer with exponential intervals; makes some connections
 *                   readable by writing to their eventfd, often on the other loop
 *   connection 640  polled when its descriptor is readable and when its answer is
 *                   there; parses in a span, then asks a query task, or
 *                   answers from a cache, or spawns a helper
 *   query      280  takes what connections ask, computes, wakes the connection
 *   flush       30  a timer every few milliseconds; longer work; records an event
 *                   of its own with two numbers, and the queue's depth
 *   helper          short-lived, spawned by connections, wakes its parent and ends
 *
 * Work is real (a hash over a buffer), its length random: most polls take 1 to 10
 * microseconds, some 100 and more. The loops are busy for half to three
 * quarters of the time, so they park in epoll_wait often. A descriptor that
 * becomes readable leads to a poll without a wake record: the loop knows by itself
 * whom to run.
 *
 * Runs for SECONDS and until the box is full, then prints made, overwritten,
 * dropped, box and snapshot_ns (with --snapshot, three times) and waits for the end of its
 * standard input. Task numbers come from tacho_task_new, or are the tasks' addresses.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "tacho.h"

#define LOOPS 2
#define CLIENTS 50
#define CONNECTIONS 640
#define QUERIES 280
#define FLUSHES 30
#define FIXED (CLIENTS + CONNECTIONS + QUERIES + FLUSHES)
#define HELPERS 512 /* at most at one time */
#define ASKED_MAX 64
#define TURN_MAX 16 /* tasks run, and descriptors asked for, in one turn */
#define MOST_SECONDS 60
#define SNAPSHOTS 3

enum kind { CLIENT, CONNECTION, QUERY, FLUSH, HELPER, KINDS };

static struct tacho_name kinds[KINDS] = {
	TACHO_KIND("client"), TACHO_KIND("connection"), TACHO_KIND("query"),
	TACHO_KIND("flush"),  TACHO_KIND("helper"),
};
static struct tacho_name loop_names[LOOPS] = {TACHO_LOOP("front"), TACHO_LOOP("back")};
static struct tacho_name span_parse = TACHO_SPAN_NAME("parse");
static struct tacho_name span_compute = TACHO_SPAN_NAME("compute");
TACHO_EVENT(flushed, (u64, bytes), (i64, pages))

struct task {
	uint64_t id;
	enum kind kind;
	unsigned loop;
	int fd;			       /* CONNECTION */
	uint64_t due_ns;	       /* CLIENT, FLUSH: next timer */
	struct task *asked[ASKED_MAX]; /* QUERY: by whom, under the lock of its loop */
	unsigned asked_count;
	struct task *parent; /* HELPER */
	bool answered;	     /* CONNECTION: polled because of a wake */
	bool queued;	     /* under the lock of its loop */
	bool used;	     /* HELPER, by its loop only */
	struct task *next;   /* in a queue */
};

struct queue {
	struct task *first, **last;
	unsigned count;
};

struct loop {
	unsigned number;
	int epoll;
	int bell;  /* eventfd that other loops ring */
	int alarm; /* timerfd of the next timer */
	pthread_mutex_t lock;
	struct queue inbox; /* from anywhere, under the lock */
	struct task *timers[CLIENTS + FLUSHES];
	unsigned timer_count;
	uint64_t alarm_ns; /* what the alarm is set to */
	struct task helpers[HELPERS];
	uint64_t random;
	uint64_t made; /* records */
	uint8_t buffer[4096];
	uint64_t sum;
	double busy; /* part of the time that its thread was on a CPU */
};

static struct loop loops[LOOPS];
static struct task tasks[FIXED];
static struct task *connections = tasks + CLIENTS;
static struct task *queries = tasks + CLIENTS + CONNECTIONS;
static bool ids_are_addresses;
static int stop;

/* Counts what is recorded, to be compared with what is read back. */
#define RECORD(l, call) ((l)->made++, (call))

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t random64(struct loop *l)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return l->random;
}

static unsigned below(struct loop *l, unsigned n)
{
	return (unsigned)((random64(l) >> 32) * n >> 32);
}

/* Exponential, cut at ten times the mean. */
static double exponential(struct loop *l, double mean)
{
	double u = (double)((random64(l) >> 11) + 1) / 9007199254740993.0;
	double x = -log(u);

	return mean * (x < 10 ? x : 10);
}

/* Hashes some bytes, at one or two nanoseconds each: the work of a task. */
static void work(struct loop *l, double mean_bytes)
{
	uint64_t bytes = (uint64_t)exponential(l, mean_bytes) + 200;
	uint64_t h = l->sum;

	for (uint64_t i = 0; i < bytes; i++)
		h = (h ^ l->buffer[i & 4095]) * 0x100000001b3ull;
	l->buffer[h & 4095]++;
	l->sum = h;
}

static uint64_t task_id(const struct task *t)
{
	return ids_are_addresses ? (uint64_t)(uintptr_t)t : tacho_task_new();
}

/* ------------------------------------------------------------- queues */

static void queue_put(struct queue *q, struct task *t)
{
	t->next = NULL;
	*(q->first ? q->last : &q->first) = t;
	q->last = &t->next;
	q->count++;
}

static void ring(const struct loop *l)
{
	uint64_t one = 1;

	if (write(l->bell, &one, sizeof(one)) < 0)
		abort();
}

/* From a task on loop `from`, or from its timers. */
static void wake(struct loop *from, struct task *t)
{
	struct loop *to = &loops[t->loop];
	bool first = false;

	RECORD(from, tacho_wake(t->id));
	pthread_mutex_lock(&to->lock);
	if (!t->queued) {
		t->queued = true;
		first = to->inbox.count == 0;
		queue_put(&to->inbox, t);
	}
	pthread_mutex_unlock(&to->lock);
	if (first && to != from)
		ring(to);
}

static bool ask(struct loop *from, struct task *query, struct task *connection)
{
	struct loop *to = &loops[query->loop];
	bool room;

	pthread_mutex_lock(&to->lock);
	room = query->asked_count < ASKED_MAX;
	if (room)
		query->asked[query->asked_count++] = connection;
	pthread_mutex_unlock(&to->lock);
	if (room)
		wake(from, query);
	return room;
}

/* -------------------------------------------------------------- tasks */

static void poll_client(struct loop *l, struct task *t)
{
	unsigned requests = 1 + below(l, 3);

	t->due_ns = now_ns() + (uint64_t)exponential(l, 1.5e6);
	for (unsigned i = 0; i < requests; i++) {
		uint64_t one = 1;

		work(l, 500);
		if (write(connections[below(l, CONNECTIONS)].fd, &one, sizeof(one)) < 0)
			abort();
	}
}

static void spawn_helper(struct loop *l, struct task *parent)
{
	for (unsigned i = 0; i < HELPERS; i++) {
		struct task *t = &l->helpers[i];

		if (t->used)
			continue;
		*t = (struct task){
			.kind = HELPER, .loop = l->number, .parent = parent, .used = true};
		t->id = task_id(t);
		RECORD(l, tacho_task_spawn(t->id, &kinds[HELPER], parent->id, TACHO_HERE));
		wake(l, t);
		return;
	}
}

static void poll_connection(struct loop *l, struct task *t)
{
	unsigned dice = below(l, 100);

	if (t->answered) {
		t->answered = false;
		work(l, 1500);
		return;
	}
	RECORD(l, tacho_span_begin(&span_parse));
	work(l, 2500);
	RECORD(l, tacho_span_end(&span_parse));
	if (dice < 70 && ask(l, &queries[below(l, QUERIES)], t))
		return;
	if (dice < 85)
		work(l, 1500);
	else
		spawn_helper(l, t);
}

static void poll_query(struct loop *l, struct task *t)
{
	struct task *asked[ASKED_MAX];
	unsigned count;

	pthread_mutex_lock(&l->lock);
	count = t->asked_count;
	memcpy(asked, t->asked, count * sizeof(asked[0]));
	t->asked_count = 0;
	pthread_mutex_unlock(&l->lock);
	for (unsigned i = 0; i < count; i++) {
		/* Some answers are at hand. */
		if (below(l, 3)) {
			RECORD(l, tacho_span_begin(&span_compute));
			work(l, 6000);
			RECORD(l, tacho_span_end(&span_compute));
		} else {
			work(l, 800);
		}
		wake(l, asked[i]);
	}
}

static void poll_flush(struct loop *l, struct task *t)
{
	unsigned depth;

	t->due_ns = now_ns() + (uint64_t)exponential(l, 2.0e7);
	work(l, 40000);
	pthread_mutex_lock(&l->lock);
	depth = l->inbox.count;
	pthread_mutex_unlock(&l->lock);
	RECORD(l, tacho_queue_depth(&loop_names[l->number], depth));
	RECORD(l, tacho_event_flushed(random64(l) >> 48, below(l, 64)));
}

static void run(struct loop *l, struct task *t, bool woken)
{
	uint32_t result = TACHO_PENDING;

	RECORD(l, tacho_poll_begin(&kinds[t->kind], t->id));
	switch (t->kind) {
	case CLIENT:
		poll_client(l, t);
		break;
	case CONNECTION:
		t->answered = woken;
		poll_connection(l, t);
		break;
	case QUERY:
		poll_query(l, t);
		break;
	case FLUSH:
		poll_flush(l, t);
		break;
	default:
		work(l, 3000);
		wake(l, t->parent);
		result = TACHO_DONE;
		break;
	}
	RECORD(l, tacho_poll_end(result));
	if (result == TACHO_DONE) {
		RECORD(l, tacho_task_end(t->id));
		t->used = false;
	}
}

/* -------------------------------------------------------------- loops */

/* The task that waits longest, or NULL. From here on it can be woken again. */
static struct task *queue_take(struct loop *l)
{
	struct task *t;

	pthread_mutex_lock(&l->lock);
	t = l->inbox.first;
	if (t) {
		l->inbox.first = t->next;
		l->inbox.count--;
		t->queued = false;
	}
	pthread_mutex_unlock(&l->lock);
	return t;
}

static void run_queue(struct loop *l)
{
	for (unsigned i = 0; i < TURN_MAX; i++) {
		struct task *t = queue_take(l);

		if (!t)
			return;
		run(l, t, true);
	}
}

/* Runs what is due and sets the alarm for the next. */
static void run_timers(struct loop *l)
{
	struct itimerspec next = {{0, 0}, {0, 0}};
	uint64_t first = UINT64_MAX;
	uint64_t now = now_ns();

	for (unsigned i = 0; i < l->timer_count; i++) {
		if (l->timers[i]->due_ns <= now)
			run(l, l->timers[i], false);
		if (l->timers[i]->due_ns < first)
			first = l->timers[i]->due_ns;
	}
	if (first == l->alarm_ns)
		return;
	l->alarm_ns = first;
	next.it_value.tv_sec = (time_t)(first / 1000000000u);
	next.it_value.tv_nsec = (long)(first % 1000000000u);
	if (timerfd_settime(l->alarm, TFD_TIMER_ABSTIME, &next, NULL))
		abort();
}

/* Bell and alarm need only be read: the loop looks at its inbox and timers anyway. */
static void run_ready(struct loop *l, const struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++) {
		int fd = (int)(uint32_t)events[i].data.u64;
		unsigned connection = (unsigned)(events[i].data.u64 >> 32);
		uint64_t count;

		if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			abort();
		if (connection)
			run(l, &connections[connection - 1], false);
	}
}

static void *loop_thread(void *arg)
{
	struct loop *l = arg;
	struct epoll_event events[TURN_MAX];
	struct tacho_name *name = &loop_names[l->number];
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	pthread_setname_np(pthread_self(), name->text);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		bool waiting;
		int n;

		run_timers(l);
		run_queue(l);
		pthread_mutex_lock(&l->lock);
		waiting = l->inbox.count == 0;
		pthread_mutex_unlock(&l->lock);
		RECORD(l, tacho_park(name));
		n = epoll_wait(l->epoll, events, TURN_MAX, waiting ? -1 : 0);
		RECORD(l, tacho_unpark(name, n > 0 ? (uint32_t)n : 0));
		run_ready(l, events, n);
	}
	l->busy = (double)clock_ns(CLOCK_THREAD_CPUTIME_ID) /
		  (double)(clock_ns(CLOCK_MONOTONIC) - begin);
	return NULL;
}

/* `connection` counts from 1; 0 is bell and alarm. */
static void watch(struct loop *l, int fd, unsigned connection)
{
	struct epoll_event e = {.events = EPOLLIN};

	e.data.u64 = (uint64_t)connection << 32 | (uint32_t)fd;
	if (fd < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e)) {
		perror("bench-workload: cannot watch a descriptor");
		exit(1);
	}
}

static void make_tasks(void)
{
	static const unsigned ends[] = {CLIENTS, CLIENTS + CONNECTIONS, FIXED - FLUSHES, FIXED};
	uint64_t now = now_ns();
	unsigned kind = CLIENT;

	for (unsigned i = 0; i < FIXED; i++) {
		struct task *t = &tasks[i];
		struct loop *l = &loops[i % LOOPS];

		while (i >= ends[kind])
			kind++;
		*t = (struct task){.kind = (enum kind)kind, .loop = i % LOOPS, .fd = -1};
		t->id = task_id(t);
		RECORD(l, tacho_task_spawn(t->id, &kinds[kind], 0, TACHO_HERE));
		if (kind == CONNECTION) {
			t->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
			watch(l, t->fd, i - CLIENTS + 1);
		} else if (kind == CLIENT || kind == FLUSH) {
			t->due_ns = now + (uint64_t)exponential(l, 1.5e6);
			l->timers[l->timer_count++] = t;
		}
	}
}

static void make_loops(void)
{
	for (unsigned i = 0; i < LOOPS; i++) {
		struct loop *l = &loops[i];

		l->number = i;
		l->random = 0x9e3779b97f4a7c15ull * (i + 1);
		l->epoll = epoll_create1(EPOLL_CLOEXEC);
		l->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		pthread_mutex_init(&l->lock, NULL);
		l->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		watch(l, l->bell, 0);
		watch(l, l->alarm, 0);
	}
}

/* --------------------------------------------------------------- main */

static int status_now(struct tacho_status_info *st)
{
	*st = (struct tacho_status_info){.size = sizeof(*st)};
	if (!tacho_status(st) && st->state == TACHO_STATE_RECORDING)
		return 0;
	fprintf(stderr, "bench-workload: not recording: %s\n", st->reason);
	return 1;
}

/* For `seconds`, and on until the box has begun to overwrite. */
static int run_for(unsigned seconds)
{
	pthread_t threads[LOOPS];
	struct tacho_status_info st;
	uint64_t begin = now_ns();
	int err = 0;

	for (unsigned i = 0; i < LOOPS; i++)
		if (pthread_create(&threads[i], NULL, loop_thread, &loops[i]))
			abort();
	for (unsigned i = 0; i < MOST_SECONDS * 10 && !err; i++) {
		nanosleep(&(struct timespec){0, 100000000}, NULL);
		err = status_now(&st);
		if (now_ns() - begin >= seconds * 1000000000ull && st.overwritten_records)
			break;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < LOOPS; i++) {
		ring(&loops[i]);
		pthread_join(threads[i], NULL);
	}
	printf("ran_ns %llu\nbusy %.3f\n", (unsigned long long)(now_ns() - begin),
	       (loops[0].busy + loops[1].busy) / LOOPS);
	return err;
}

static int snapshot(const char *path)
{
	for (unsigned i = 0; i < SNAPSHOTS; i++) {
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		uint64_t begin = now_ns();
		int err = fd < 0 ? -errno : tacho_snapshot(fd);

		if (err) {
			fprintf(stderr, "bench-workload: no snapshot into %s: %s\n", path,
				strerror(-err));
			return 1;
		}
		printf("snapshot_ns %llu\n", (unsigned long long)(now_ns() - begin));
		close(fd);
	}
	return 0;
}

static int report(void)
{
	struct tacho_status_info st;
	unsigned long long made = 0;
	char byte;

	if (status_now(&st))
		return 1;
	for (unsigned i = 0; i < LOOPS; i++)
		made += loops[i].made;
	printf("made %llu\noverwritten %llu\ndropped %llu\nused_bytes %llu\nbox %s\n", made,
	       (unsigned long long)st.overwritten_records, (unsigned long long)st.dropped_records,
	       (unsigned long long)st.used_bytes, st.box);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	const char *snapshot_path = NULL;
	struct tacho_status_info st;
	unsigned seconds = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--ids=address"))
			ids_are_addresses = true;
		else if (!strncmp(argv[i], "--snapshot=", 11))
			snapshot_path = argv[i] + 11;
		else if (strcmp(argv[i], "--ids=number"))
			seconds = (unsigned)strtoul(argv[i], NULL, 10);
	}
	if (!seconds || seconds > MOST_SECONDS) {
		fprintf(stderr, "usage: bench-workload [--ids=number|address] [--snapshot=FILE] "
				"SECONDS\n");
		return 2;
	}
	alarm(300);
	tacho_start(NULL);
	if (status_now(&st))
		return 1;
	make_loops();
	make_tasks();
	if (run_for(seconds))
		return 1;
	if (snapshot_path && snapshot(snapshot_path))
		return 1;
	return report();
}
