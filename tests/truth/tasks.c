/*
 * A server of tasks: a small runtime that records itself through tacho.h. One task for each
 * connection; workers share one queue; one of those that have nothing to do waits in epoll, the
 * others for a condition. Other tasks are woken again and again, by a thread or by a task.
 */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tacho.h"

#define MAX_TASKS 64

struct task {
	uint64_t id, request;
	struct tacho_name *kind;
	uint32_t (*poll)(struct task *t);
	int fd;
	int queued, running, woken; /* woken while it ran */
	int ended;
	int answer; /* of the backend: 0 none, 1 waited for, 2 there */
	struct task *next;
};

static struct tacho_name request_kind = TACHO_KIND("request");
static struct tacho_name subscriber_kind = TACHO_KIND("subscriber");
static struct tacho_name ticker_kind = TACHO_KIND("ticker");
static struct tacho_name news_text = TACHO_TEXT("news");
static struct tacho_name backend_text = TACHO_TEXT("the backend");
static struct tacho_name input_text = TACHO_TEXT("a request");
static struct tacho_name loops[] = {TACHO_LOOP("worker-0"), TACHO_LOOP("worker-1"),
				    TACHO_LOOP("worker-2"), TACHO_LOOP("worker-3")};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct task *first, **last = &first;
static int epoll, event, listener, driven, driver_waits, idle;
static int backend[2];
static unsigned asked;
static struct task *subscribers[MAX_TASKS], *ticker;

/* ------------------------------------------------------------------- the scheduler */

static void push(struct task *t)
{
	t->queued = 1;
	t->next = NULL;
	*last = t;
	last = &t->next;
}

static void wake(struct task *t)
{
	uint64_t one = 1;
	int tell = 0;

	pthread_mutex_lock(&lock);
	if (t->ended) {
		pthread_mutex_unlock(&lock);
		return;
	}
	tacho_wake(t->id);
	if (t->running)
		t->woken = 1;
	else if (!t->queued) {
		push(t);
		if (idle)
			pthread_cond_signal(&more);
		else
			tell = driver_waits;
	}
	pthread_mutex_unlock(&lock);
	if (tell)
		must(write(event, &one, sizeof(one)) == sizeof(one), "eventfd");
}

static void watch(int fd, void *what, int how)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = what};

	must(!epoll_ctl(epoll, how, fd, &e), "epoll_ctl");
}

static struct task *spawn(struct tacho_name *kind, uint32_t (*poll)(struct task *t))
{
	struct task *t = calloc(1, sizeof(*t));

	must(t != NULL, "calloc");
	t->id = tacho_task_new();
	t->kind = kind;
	t->poll = poll;
	tacho_task_spawn(t->id, kind, 0, NULL);
	return t;
}

/* --------------------------------------------------------------------- the tasks */

/* The backend wakes whoever asked it; the one in the middle it forgets. */
FAULT fault_lost_wake(struct task *t)
{
	uint64_t now = now_ns();
	int lost = fault_is("lost-wake") && ++asked == 20;

	tacho_task_waits(t->id, &backend_text, (uint64_t)t->fd, TACHO_WITH_STACK);
	t->answer = 1;
	if (lost)
		note("fault_lost_wake", now, end_ns());
	else
		must(write(backend[1], &t, sizeof(t)) == sizeof(t), "pipe");
}

static void *backend_thread(void *arg)
{
	struct task *t;

	while (read(backend[0], &t, sizeof(t)) == sizeof(t)) {
		SLEEP(MS);
		t->answer = 2;
		wake(t);
	}
	return arg;
}

static uint32_t reply(struct task *t)
{
	t->answer = 0;
	must(send(t->fd, &t->request, sizeof(t->request), MSG_NOSIGNAL) > 0 || errno == EPIPE ||
		     errno == ECONNRESET,
	     "send");
	tacho_task_waits(t->id, &input_text, (uint64_t)t->fd, 0);
	watch(t->fd, t, EPOLL_CTL_MOD);
	return TACHO_PENDING;
}

static uint32_t poll_request(struct task *t)
{
	ssize_t n;

	if (t->answer == 1)
		return TACHO_PENDING;
	if (t->answer == 2)
		return reply(t);
	n = recv(t->fd, &t->request, sizeof(t->request), 0);
	if (n < 0 && errno == EAGAIN) {
		watch(t->fd, t, EPOLL_CTL_MOD);
		return TACHO_PENDING;
	}
	if (n <= 0) {
		close(t->fd);
		return TACHO_DONE;
	}
	serve_request();
	if (!fault_is("lost-wake"))
		return reply(t);
	fault_lost_wake(t);
	return TACHO_PENDING;
}

static void serve_connection(int fd)
{
	struct task *t = spawn(&request_kind, poll_request);

	t->fd = fd;
	watch(fd, t, EPOLL_CTL_ADD);
}

/* ------------------------------------------------------------ tasks that have a rhythm */

static uint32_t poll_subscriber(struct task *t)
{
	COMPUTE(options.work_us * 1000 / 4);
	if (fault_is("healthy-ends") && rhythm_stopped())
		return TACHO_DONE;
	/* Some runtimes tell what a task waits for, and where. */
	if (options.seed & 1)
		tacho_task_waits(t->id, &news_text, 0, options.seed & 2 ? TACHO_WITH_STACK : 0);
	return TACHO_PENDING;
}

/* Whoever should wake them goes on, and does not wake them any more. */
FAULT fault_stops_waking(void)
{
	uint64_t now = now_ns();

	if (fault_is("rhythm") && rhythm_stopped())
		return;
	for (int i = 0; i < options.many; i++)
		wake(subscribers[i]);
	note("fault_stops_waking", now, now_ns());
}

static uint32_t poll_ticker(struct task *t)
{
	(void)t;
	fault_stops_waking();
	return TACHO_PENDING;
}

/* A thread, or a task that is woken by one. */
static void *metronome(void *arg)
{
	uint64_t beat = options.seed;

	pthread_setname_np(pthread_self(), "metronome");
	while (!over()) {
		beat = beat * 6364136223846793005u + 1442695040888963407u;
		SLEEP(options.period_ns * (70 + (beat >> 33) % 60) / 100);
		if (fault_is("healthy-ends") && rhythm_stopped())
			break;
		if (ticker)
			wake(ticker);
		else
			fault_stops_waking();
	}
	/* The last time, they end. */
	for (int i = 0; fault_is("healthy-ends") && i < options.many; i++)
		wake(subscribers[i]);
	return arg;
}

static void start_rhythm(void)
{
	pthread_t thread;

	if (!fault_is("rhythm") && !fault_is("healthy-rhythm") && !fault_is("healthy-ends"))
		return;
	must(options.many <= MAX_TASKS, "--many");
	for (int i = 0; i < options.many; i++)
		subscribers[i] = spawn(&subscriber_kind, poll_subscriber);
	if (!strcmp(options.queue, "task"))
		ticker = spawn(&ticker_kind, poll_ticker);
	must(!pthread_create(&thread, NULL, metronome, NULL), "pthread_create");
}

static void run(struct task *t)
{
	uint32_t result;

	tacho_poll_begin(t->kind, t->id);
	result = t->poll(t);
	tacho_poll_end(result);
	pthread_mutex_lock(&lock);
	t->running = 0;
	t->ended = result == TACHO_DONE;
	if (!t->ended && t->woken) {
		t->woken = 0;
		push(t);
	}
	pthread_mutex_unlock(&lock);
	/* Its memory stays: it is small, and the program ends soon. */
	if (result == TACHO_DONE)
		tacho_task_end(t->id);
}

/* -------------------------------------------------------------------- the workers */

static void on_ready(void *what)
{
	uint64_t count;
	int fd;

	if (what == &event) {
		if (read(event, &count, sizeof(count)) < 0)
			must(errno == EAGAIN, "eventfd");
		watch(event, &event, EPOLL_CTL_MOD);
	} else if (what == &listener) {
		while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
			serve_connection(fd);
		end_ns();
		watch(listener, &listener, EPOLL_CTL_MOD);
	} else {
		wake(what);
	}
}

/* The lock is held before and after. */
static void drive(struct tacho_name *loop)
{
	struct epoll_event e[16];
	int n;

	driven = driver_waits = 1;
	pthread_mutex_unlock(&lock);
	tacho_park(loop);
	n = epoll_wait(epoll, e, 16, 100);
	tacho_unpark(loop, n > 0 ? (uint32_t)n : 0);
	pthread_mutex_lock(&lock);
	driver_waits = 0;
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < n; i++)
		on_ready(e[i].data.ptr);
	pthread_mutex_lock(&lock);
	driven = 0;
	if (idle)
		pthread_cond_signal(&more);
}

static void wait_idle(struct tacho_name *loop)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 100000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	idle++;
	tacho_park(loop);
	pthread_cond_timedwait(&more, &lock, &t);
	tacho_unpark(loop, first != NULL);
	idle--;
}

static struct task *take(void)
{
	struct task *t = first;

	if (t) {
		first = t->next;
		if (!first)
			last = &first;
		t->queued = 0;
		t->running = 1;
	}
	return t;
}

static void *worker(void *arg)
{
	struct tacho_name *loop = &loops[(intptr_t)arg];

	serving_thread();
	tacho_loop(loop);
	while (!over()) {
		struct task *t;

		pthread_mutex_lock(&lock);
		t = take();
		if (!t && !driven)
			drive(loop);
		else if (!t)
			wait_idle(loop);
		pthread_mutex_unlock(&lock);
		if (t)
			run(t);
	}
	served();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[4], other;
	int err = tacho_start(NULL);

	parse(argc, argv);
	if (err && err != -EALREADY)
		fprintf(stderr, "not recording: %d\n", err);
	start_helpers();
	must(options.threads <= 4 && !pipe2(backend, O_CLOEXEC), "pipe");
	if (fault_is("lost-wake"))
		must(!pthread_create(&other, NULL, backend_thread, NULL), "pthread_create");
	leak_set = epoll = epoll_create1(EPOLL_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	listener = listen_and_tell();
	watch(event, &event, EPOLL_CTL_ADD);
	watch(listener, &listener, EPOLL_CTL_ADD);
	for (intptr_t i = 0; i < options.threads; i++)
		must(!pthread_create(&threads[i], NULL, worker, (void *)i), "pthread_create");
	start_rhythm();
	for (int i = 0; i < options.threads; i++)
		pthread_join(threads[i], NULL);
	write_truth();
	_exit(0);
}
