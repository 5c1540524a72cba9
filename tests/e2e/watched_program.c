/*
 * A libuv program that does what its arguments say, one after the other, each in a callback of
 * a timer: the subject of tests of sentinels, windows and segments. Its own code knows nothing
 * of tacho.
 *
 *   poll:MS      blocks in its callback
 *   burn:MS      uses CPU time for so long
 *   late:MS      blocks while another timer is due
 *   wake:MS      blocks while an async handle has been sent
 *   queue:N      gives N pieces of work to the pool, 20 ms each
 *   turns:N      N turns of 1 ms
 *   park:MS      does nothing
 *   trigger:TEXT calls tacho_trigger, if it is there
 *   touch:FILE   makes a file
 *   await:FILE   waits until it is there, in turns of 10 ms
 *   block:FILE   the same inside of one callback; makes FILE.in when it has begun
 *   exit:N       exits;  _exit:N without handlers;  abort
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

static char **steps;
static uv_timer_t timer, late_timer;
static uv_async_t async;
static int turns_left;

static void next(uv_timer_t *t);

static void go_on(uint64_t ms)
{
	uv_timer_start(&timer, next, ms, 0);
}

static void block(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&t, &t) < 0)
		;
}

static void burn(long ms)
{
	struct timespec t;
	int64_t end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	end = t.tv_sec * 1000 + t.tv_nsec / 1000000 + ms;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < end);
}

static void on_late(uv_timer_t *t)
{
	(void)t;
}

static void on_async(uv_async_t *a)
{
	(void)a;
}

static void work(uv_work_t *w)
{
	(void)w;
	block(20);
}

static void work_done(uv_work_t *w, int status)
{
	(void)status;
	free(w);
}

static void turn(uv_timer_t *t)
{
	(void)t;
	if (--turns_left > 0)
		uv_timer_start(&timer, turn, 1, 0);
	else
		go_on(1);
}

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	if (fd >= 0)
		close(fd);
}

static void block_until(const char *path)
{
	char in[4096];

	snprintf(in, sizeof(in), "%s.in", path);
	touch(in);
	while (access(path, F_OK) < 0)
		block(10);
}

static void trigger(const char *text)
{
	union {
		void *address;
		uint32_t (*call)(const char *);
	} found = {.address = dlsym(RTLD_DEFAULT, "tacho_trigger")};

	if (found.address)
		found.call(text);
}

static void queue(long count)
{
	while (count-- > 0)
		uv_queue_work(uv_default_loop(), calloc(1, sizeof(uv_work_t)), work, work_done);
}

/* 1: it was one of those that end in the same callback. */
static int simple(const char *name, const char *value, long number)
{
	if (strcmp(name, "poll") == 0)
		block(number);
	else if (strcmp(name, "burn") == 0)
		burn(number);
	else if (strcmp(name, "queue") == 0)
		queue(number);
	else if (strcmp(name, "trigger") == 0)
		trigger(value);
	else if (strcmp(name, "touch") == 0)
		touch(value);
	else if (strcmp(name, "block") == 0)
		block_until(value);
	else if (strcmp(name, "exit") == 0)
		exit((int)number);
	else if (strcmp(name, "_exit") == 0)
		_exit((int)number);
	else if (strcmp(name, "abort") == 0)
		abort();
	else
		return 0;
	return 1;
}

static void do_step(const char *name, const char *value, long number)
{
	if (simple(name, value, number)) {
		go_on(1);
	} else if (strcmp(name, "late") == 0) {
		uv_timer_start(&late_timer, on_late, 1, 0);
		block(number);
		go_on(1);
	} else if (strcmp(name, "wake") == 0) {
		uv_async_send(&async);
		block(number);
		go_on(1);
	} else if (strcmp(name, "turns") == 0) {
		turns_left = (int)number;
		uv_timer_start(&timer, turn, 1, 0);
	} else if (strcmp(name, "await") == 0) {
		if (access(value, F_OK) < 0)
			steps--;
		go_on(10);
	} else if (strcmp(name, "park") == 0) {
		go_on((uint64_t)number);
	} else {
		fprintf(stderr, "no step %s\n", name);
		exit(99);
	}
}

static void next(uv_timer_t *t)
{
	char name[32] = "";
	const char *colon;

	(void)t;
	if (!*steps)
		exit(0);
	colon = strchr(*steps, ':');
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(*steps, ":"), *steps);
	steps++;
	do_step(name, colon ? colon + 1 : "", colon ? atol(colon + 1) : 0);
}

int main(int argc, char **argv)
{
	(void)argc;
	steps = argv + 1;
	uv_timer_init(uv_default_loop(), &timer);
	uv_timer_init(uv_default_loop(), &late_timer);
	uv_async_init(uv_default_loop(), &async, on_async);
	go_on(1);
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
