/*
 * A program for threads_at_end.py: a loop of libuv with threads that each are in something else,
 * named after it. When all of them are there, its callback on_tick does as the argument says.
 *
 *	kill, segv, term   ends the process
 *	block              reads from a pipe into which nobody writes
 *	go                 goes on
 *
 * Then it makes the file that its second argument names, if it gets so far.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

#define TICKS 10   /* that all are asleep */
#define SLEEPERS 8 /* five of the program, three of the pool that have no work, or do it */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ends[2], held;
static const char *how, *file;

__attribute__((noinline)) static void fetch(void)
{
	char c;
	volatile long n = read(ends[0], &c, 1);

	(void)n;
}

static void do_work(uv_work_t *work)
{
	(void)work;
	fetch();
}

static void *reads(void *arg)
{
	fetch();
	return arg;
}

static void *holds(void *arg)
{
	pthread_mutex_lock(&mutex);
	__atomic_store_n(&held, 1, __ATOMIC_RELEASE);
	sleep(100000);
	return arg;
}

__attribute__((noinline)) static int take(void)
{
	volatile int error = pthread_mutex_lock(&mutex);

	return error;
}

static void *locks(void *arg)
{
	while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		sched_yield();
	take();
	return arg;
}

static void *waits(void *arg)
{
	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&own);
	pthread_cond_wait(&condition, &own);
	return arg;
}

static void *parks(void *arg)
{
	struct epoll_event event;
	int epoll = epoll_create1(0);

	while (epoll_wait(epoll, &event, 1, -1) < 0)
		;
	return arg;
}

static void begin(const char *name, void *(*what)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, what, NULL) || pthread_setname_np(thread, name))
		abort();
}

/* How many threads are asleep. */
static int asleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	for (struct dirent *d; tasks && (d = readdir(tasks));) {
		char path[300], state = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", d->d_name);
		f = d->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1)
			count += state == 'S';
		if (f)
			fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return count;
}

static void say_there(void)
{
	if (file)
		close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static void on_tick(uv_timer_t *timer)
{
	static int volatile *nowhere;
	static int ticks;

	ticks = asleep() >= SLEEPERS ? ticks + 1 : 0;
	if (ticks < TICKS)
		return;
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "segv"))
		*nowhere = 1;
	uv_timer_stop(timer);
	say_there();
	if (!strcmp(how, "block"))
		fetch();
}

int main(int argc, char **argv)
{
	static uv_timer_t timer, rest;
	static uv_work_t work;
	uv_loop_t *loop = uv_default_loop();

	how = argc > 1 ? argv[1] : "go";
	file = argc > 2 ? argv[2] : NULL;
	setenv("UV_THREADPOOL_SIZE", "3", 1);
	if (!loop || pipe(ends))
		return 1;
	uv_queue_work(loop, &work, do_work, NULL);
	begin("reads", reads);
	begin("holds", holds);
	begin("locks", locks);
	begin("waits", waits);
	begin("parks", parks);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_tick, 5, 5);
	uv_timer_init(loop, &rest);
	uv_timer_start(&rest, on_tick, 100000000, 0);
	return uv_run(loop, UV_RUN_DEFAULT);
}
