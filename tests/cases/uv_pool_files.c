/*
 * Files of a slow file system (here: pipes) keep all threads of libuv's pool, and what concerns
 * other files waits.
 */
#include <pthread.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

#define FILES 4

static uint64_t end;
static int asked[2], files[FILES][2];
static uv_timer_t reads, stats;

static void on_archive(uv_fs_t *r) /* FAULT */
{				   /* FAULT */
	uv_fs_req_cleanup(r);
	free(r->data);
	free(r);
}

static void on_stat(uv_fs_t *r)
{
	uv_fs_req_cleanup(r);
	free(r);
}

static void *slow_disk(void *arg)
{
	char c;

	while (read(asked[0], &c, 1) == 1) {
		usleep(180000);
		for (int i = 0; i < FILES; i++)
			case_check(write(files[i][1], "12345678", 8) != 8, "write");
	}
	return arg;
}

static void on_reads(uv_timer_t *t)
{
	case_check(write(asked[1], "?", 1) != 1, "write");
	for (int i = 0; i < FILES; i++) {
		uv_fs_t *r = malloc(sizeof(*r));
		uv_buf_t b = uv_buf_init(malloc(8), 8);

		case_check(!r || !b.base, "malloc");
		r->data = b.base;
		case_check(uv_fs_read(t->loop, r, files[i][0], &b, 1, -1, on_archive), "read");
	}
	if (case_now() > end) {
		uv_timer_stop(t);
		uv_timer_stop(&stats);
	}
}

static void on_time(uv_timer_t *t)
{
	uv_fs_t *r = malloc(sizeof(*r));

	case_check(!r || uv_fs_stat(t->loop, r, "/etc/passwd", on_stat), "uv_fs_stat");
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	pthread_t thread;

	end = case_end(2);
	case_check(pipe(asked), "pipe");
	for (int i = 0; i < FILES; i++)
		case_check(pipe(files[i]), "pipe");
	case_check(pthread_create(&thread, NULL, slow_disk, NULL), "pthread_create");
	uv_timer_init(loop, &reads);
	uv_timer_init(loop, &stats);
	uv_timer_start(&reads, on_reads, 100, 400);
	uv_timer_start(&stats, on_time, 15, 15);
	uv_run(loop, UV_RUN_DEFAULT);
	_exit(0);
}
