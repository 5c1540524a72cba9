/*
 * A libuv program that does one thing too slowly, over and over, until it is ended or a minute
 * is over:
 *
 *   slow   a timer's callback takes 30 ms
 *   late   the same keeps another timer waiting
 *   pool   more works are queued than the pool has threads
 *   files  more is asked of files, and every second time one is cancelled
 *   async  a thread wakes a loop that is busy for 30 ms
 *   gone   a handle is woken, and closed before its callback ran, which takes 30 ms
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define WORKS 12

static uv_loop_t *loop;
static uv_timer_t slow, quick;
static uv_async_t async;
static uv_work_t works[WORKS];
static uv_fs_t files[WORKS];
static int left;

static void pass(long ms)
{
	struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}

static void on_slow(uv_timer_t *t)
{
	(void)t;
	pass(30);
}

static void on_quick(uv_timer_t *t)
{
	(void)t;
}

static void on_work(uv_work_t *w)
{
	(void)w;
	pass(2);
}

static void on_works_done(uv_work_t *w, int status)
{
	(void)w;
	(void)status;
	if (--left)
		return;
	left = WORKS;
	for (int i = 0; i < WORKS; i++)
		uv_queue_work(loop, &works[i], on_work, on_works_done);
}

static void on_file_done(uv_fs_t *f)
{
	static int turn;

	if (f)
		uv_fs_req_cleanup(f);
	if (--left)
		return;
	left = WORKS;
	for (int i = 0; i < WORKS; i++)
		uv_fs_stat(loop, &files[i], "/", on_file_done);
	if (++turn % 2)
		uv_cancel((uv_req_t *)&files[WORKS - 1]);
}

static void on_async(uv_async_t *a)
{
	(void)a;
}

static void *sender(void *arg)
{
	(void)arg;
	for (;;) {
		uv_async_send(&async);
		pass(5);
	}
	return NULL;
}

static void on_closed(uv_handle_t *h)
{
	(void)h;
	uv_async_init(loop, &async, on_async);
}

static void on_gone(uv_timer_t *t)
{
	(void)t;
	if (uv_is_closing((uv_handle_t *)&async))
		return;
	uv_async_send(&async);
	uv_close((uv_handle_t *)&async, on_closed);
	pass(30);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t thread;

	alarm(60);
	loop = uv_default_loop();
	uv_timer_init(loop, &slow);
	uv_timer_init(loop, &quick);
	if (!strcmp(mode, "slow") || !strcmp(mode, "late") || !strcmp(mode, "async"))
		uv_timer_start(&slow, on_slow, 1, 10);
	if (!strcmp(mode, "late"))
		uv_timer_start(&quick, on_quick, 1, 1);
	if (!strcmp(mode, "async") || !strcmp(mode, "gone"))
		uv_async_init(loop, &async, on_async);
	if (!strcmp(mode, "async"))
		pthread_create(&thread, NULL, sender, NULL);
	if (!strcmp(mode, "gone"))
		uv_timer_start(&slow, on_gone, 1, 1);
	if (!strcmp(mode, "pool")) {
		left = 1;
		on_works_done(NULL, 0);
	}
	if (!strcmp(mode, "files")) {
		left = 1;
		on_file_done(NULL);
	}
	return uv_run(loop, UV_RUN_DEFAULT);
}
