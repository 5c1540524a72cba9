/*
 * Workers behind a queue: threads that park on a condition, a futex, a semaphore, a pipe, an eventfd or a
 * socket until somebody hands them a request. A loop, or a thread for each connection, receives.
 */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_MS 100 /* so that the end of the window is noticed */
#define JOBS 4096

struct job {
	uint64_t request;
	int fd, unused;
};

static int listener, epoll;
static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_there = PTHREAD_COND_INITIALIZER;
static struct job jobs[JOBS];
static unsigned first_job, last_job;
static uint32_t told; /* the futex: how often somebody was told */
static sem_t tickets;
static int event, channel[2];

static int queue_is(const char *name)
{
	return !strcmp(options.queue, name);
}

/* ------------------------------------------------------------------- the queue */

static void push(struct job j)
{
	pthread_mutex_lock(&jobs_lock);
	jobs[last_job++ % JOBS] = j;
	if (queue_is("condition"))
		pthread_cond_signal(&jobs_there);
	pthread_mutex_unlock(&jobs_lock);
}

static void put(struct job j)
{
	uint64_t one = 1;

	if (queue_is("pipe") || queue_is("socket")) {
		must(write(channel[1], &j, sizeof(j)) == sizeof(j), "channel");
		return;
	}
	push(j);
	if (queue_is("semaphore")) {
		sem_post(&tickets);
	} else if (queue_is("eventfd")) {
		must(write(event, &one, sizeof(one)) == sizeof(one), "eventfd");
	} else if (queue_is("futex")) {
		__atomic_fetch_add(&told, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &told, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

static int pop(struct job *j)
{
	int there;

	pthread_mutex_lock(&jobs_lock);
	there = first_job != last_job;
	if (there)
		*j = jobs[first_job++ % JOBS];
	pthread_mutex_unlock(&jobs_lock);
	return there;
}

static void take_at_condition(struct job *j)
{
	pthread_mutex_lock(&jobs_lock);
	while (first_job == last_job)
		pthread_cond_wait(&jobs_there, &jobs_lock);
	*j = jobs[first_job++ % JOBS];
	pthread_mutex_unlock(&jobs_lock);
}

static void take_at_futex(struct job *j)
{
	for (;;) {
		uint32_t seen = __atomic_load_n(&told, __ATOMIC_SEQ_CST);

		if (pop(j))
			return;
		syscall(SYS_futex, &told, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	}
}

static void take(struct job *j)
{
	uint64_t one;

	if (queue_is("condition")) {
		take_at_condition(j);
	} else if (queue_is("futex")) {
		take_at_futex(j);
	} else if (queue_is("pipe") || queue_is("socket")) {
		must(read(channel[0], j, sizeof(*j)) == sizeof(*j), "channel");
	} else if (queue_is("semaphore")) {
		while (sem_wait(&tickets))
			;
		must(pop(j), "queue");
	} else {
		must(read(event, &one, sizeof(one)) == sizeof(one) && pop(j), "eventfd");
	}
}

static void open_queue(void)
{
	must(!sem_init(&tickets, 0, 0), "sem_init");
	event = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (queue_is("socket"))
		must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), "socketpair");
	else
		must(!pipe2(channel, O_CLOEXEC), "pipe");
}

/* ------------------------------------------------------------------ the workers */

static void *worker(void *arg)
{
	struct job j;

	serving_thread();
	for (;;) {
		take(&j);
		serve_request();
		must(send(j.fd, &j.request, sizeof(j.request), MSG_NOSIGNAL) > 0 ||
			     errno == EPIPE || errno == ECONNRESET || errno == EBADF,
		     "send");
	}
	return arg;
}

/* ------------------------------------------------------------------- the front */

static void on_ready(int fd)
{
	struct job j = {.fd = fd};
	int next;

	if (fd == listener) {
		while ((next = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
			struct epoll_event e = {.events = EPOLLIN, .data.fd = next};

			must(!epoll_ctl(epoll, EPOLL_CTL_ADD, next, &e), "epoll_ctl");
		}
	} else if (recv(fd, &j.request, sizeof(j.request), MSG_DONTWAIT) == sizeof(j.request)) {
		put(j);
	} else {
		/* Workers may still answer: its number must not be used again. */
		epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	}
}

static void receive_in_loop(void)
{
	struct epoll_event e[16] = {{.events = EPOLLIN, .data.fd = listener}};

	helper_thread();
	epoll = epoll_create1(EPOLL_CLOEXEC);
	must(!epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e[0]), "epoll_ctl");
	while (!over()) {
		int n = epoll_wait(epoll, e, 16, WAIT_MS);

		for (int i = 0; i < n; i++)
			on_ready(e[i].data.fd);
	}
}

static void *receiver(void *arg)
{
	struct job j = {.fd = (int)(intptr_t)arg};

	helper_thread();
	while (recv(j.fd, &j.request, sizeof(j.request), MSG_WAITALL) == sizeof(j.request))
		put(j);
	served();
	return NULL;
}

static void *acceptor(void *arg)
{
	pthread_t thread;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		must(!pthread_create(&thread, NULL, receiver, (void *)(intptr_t)fd),
		     "pthread_create");
	return arg;
}

static void receive_in_threads(void)
{
	pthread_t thread;

	must(!fcntl(listener, F_SETFL, 0) && !pthread_create(&thread, NULL, acceptor, NULL),
	     "acceptor");
	while (!over())
		SLEEP(20 * MS);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	parse(argc, argv);
	start_helpers();
	start_supervisors();
	open_queue();
	listener = listen_and_tell();
	for (int i = 0; i < options.threads; i++)
		must(!pthread_create(&thread, NULL, worker, NULL), "pthread_create");
	if (!strcmp(options.front, "threads"))
		receive_in_threads();
	else
		receive_in_loop();
	write_truth();
	/* Threads are in the middle of something. */
	_exit(0);
}
