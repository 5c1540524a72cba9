/*
 * A small service with two event loops and many tasks, which records itself through
 * tacho.h: what a runtime of your own tells of its loops and tasks.
 *
 * Each loop runs on a thread of its own: it waits on an epoll descriptor with an
 * eventfd (wakes from the other loop) and a timeout (tasks that sleep). A task is
 * a little state machine: a request is read, parsed, handed to the other loop to be
 * stored, and answered. Now and then storing takes long, and a lock is contended.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "tacho.h"

#define TASKS 48 /* for each loop */
#define QUEUE 4096

enum step { READ, PARSE, STORE, REPLY };

static struct tacho_name kinds[] = {
	[READ] = TACHO_KIND("read_request"),
	[PARSE] = TACHO_KIND("parse_request"),
	[STORE] = TACHO_KIND("store_record"),
	[REPLY] = TACHO_KIND("send_reply"),
};
static struct tacho_name reply_wait = TACHO_TEXT("the other loop to store the record");
static struct tacho_name served = TACHO_COUNTER("served", "requests");

TACHO_EVENT(request_done, (u64, id), (string, path), (i64, status), (opt_f64, slow_ms))

struct task {
	uint64_t id;
	enum step step;
	struct loop *home;
	uint64_t due; /* ns; 0: not sleeping */
	unsigned seed;
};

struct loop {
	struct tacho_name name;
	pthread_mutex_t lock; /* of the queue */
	struct task *queue[QUEUE];
	unsigned head, tail;
	int epoll, event;
	struct task tasks[TASKS];
	struct loop *other;
	int64_t served;
};

static struct loop loops[2] = {{.name = TACHO_LOOP("front")}, {.name = TACHO_LOOP("back")}};
static pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned store_waiters;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void work(uint64_t ns)
{
	for (uint64_t end = now() + ns; now() < end;)
		;
}

/* Puts the task into a loop's queue and sees to it that the loop looks. */
static void schedule(struct loop *l, struct task *t)
{
	uint64_t one = 1;

	tacho_wake(t->id);
	pthread_mutex_lock(&l->lock);
	l->queue[l->tail++ % QUEUE] = t;
	pthread_mutex_unlock(&l->lock);
	if (write(l->event, &one, sizeof(one)) < 0)
		perror("eventfd");
}

static struct task *next_task(struct loop *l)
{
	struct task *t = NULL;

	pthread_mutex_lock(&l->lock);
	if (l->head != l->tail)
		t = l->queue[l->head++ % QUEUE];
	pthread_mutex_unlock(&l->lock);
	return t;
}

static void store(struct task *t)
{
	unsigned waiters;
	TACHO_SPAN("store");

	if (pthread_mutex_trylock(&store_lock)) {
		__atomic_add_fetch(&store_waiters, 1, __ATOMIC_RELAXED);
		tacho_lock_wait(&store_lock, TACHO_HERE);
		pthread_mutex_lock(&store_lock);
		tacho_lock_waited(&store_lock, 1);
		__atomic_sub_fetch(&store_waiters, 1, __ATOMIC_RELAXED);
	}
	/* One record in a hundred takes long. */
	work(rand_r(&t->seed) % 100 ? 100000 : 20000000);
	waiters = __atomic_load_n(&store_waiters, __ATOMIC_RELAXED);
	if (waiters)
		tacho_lock_release(&store_lock, waiters, TACHO_HERE);
	pthread_mutex_unlock(&store_lock);
}

static void reply(struct loop *l, struct task *t)
{
	double slow = 21.5;

	work(30000);
	l->served++;
	tacho_counter(&served, l->served);
	tacho_event_request_done(t->id, "/index.html", 200, rand_r(&t->seed) % 100 ? NULL : &slow);
}

/* One step of a task, on loop `l`. */
static void run(struct loop *l, struct task *t)
{
	tacho_poll_begin(&kinds[t->step], t->id);
	switch (t->step) {
	case READ:
		work(20000);
		t->step = PARSE;
		schedule(l, t);
		break;
	case PARSE:
		work(50000);
		t->step = STORE;
		tacho_task_waits(t->id, &reply_wait, 0, 0);
		schedule(l->other, t);
		break;
	case STORE:
		store(t);
		t->step = REPLY;
		schedule(t->home, t);
		break;
	case REPLY:
		reply(l, t);
		t->step = READ;
		t->due = now() + 500000000u + (uint64_t)rand_r(&t->seed) % 1000000000u;
		break;
	}
	tacho_poll_end(TACHO_PENDING);
}

/* Wakes the tasks whose time has come; milliseconds until the next. */
static int sleepers(struct loop *l)
{
	uint64_t t = now(), first = UINT64_MAX;

	for (int i = 0; i < TASKS; i++) {
		struct task *k = &l->tasks[i];

		if (k->due && k->due <= t) {
			k->due = 0;
			schedule(l, k);
		} else if (k->due && k->due < first) {
			first = k->due;
		}
	}
	return first == UINT64_MAX ? 100 : (int)((first - t) / 1000000 + 1);
}

static void *loop_main(void *arg)
{
	struct loop *l = arg;
	uint64_t end = now() + 60000000000u; /* nobody runs this for longer */

	pthread_setname_np(pthread_self(), l->name.text);
	while (now() < end) {
		struct epoll_event events[8];
		int timeout = sleepers(l);
		uint64_t count;
		struct task *t;
		int n;

		tacho_park(&l->name);
		n = epoll_wait(l->epoll, events, 8, timeout);
		tacho_unpark(&l->name, n > 0 ? (uint32_t)n : 0);
		if (n > 0 && read(l->event, &count, sizeof(count)) < 0 && errno != EAGAIN)
			perror("eventfd");
		tacho_queue_depth(&l->name, l->tail - l->head);
		while ((t = next_task(l)))
			run(l, t);
	}
	return NULL;
}

static void loop_init(struct loop *l, struct loop *other)
{
	struct epoll_event e = {.events = EPOLLIN};

	l->other = other;
	pthread_mutex_init(&l->lock, NULL);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->epoll < 0 || l->event < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->event, &e)) {
		perror("tasks");
		exit(1);
	}
	for (unsigned i = 0; i < TASKS; i++) {
		struct task *t = &l->tasks[i];

		t->id = tacho_task_new();
		t->home = l;
		t->seed = i + 1;
		t->due = now() + i * 10000000u;
		tacho_task_spawn(t->id, &kinds[READ], 0, TACHO_HERE);
	}
}

int main(void)
{
	pthread_t threads[2];
	int err = tacho_start(NULL);

	if (err) {
		struct tacho_status_info status = {.size = sizeof(status)};

		tacho_status(&status);
		fprintf(stderr, "tasks: not recording: %s\n", status.reason);
	}
	for (int i = 0; i < 2; i++)
		loop_init(&loops[i], &loops[1 - i]);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, loop_main, &loops[i]))
			exit(1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
