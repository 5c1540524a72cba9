/* Thumbnails, 90 ms each, on the same pool of four threads as everything else. */
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uv_loop_t *loop;
static uint64_t end;
static uv_timer_t uploads, queries;

static void make_thumbnail(uv_work_t *w)
{
	(void)w;
	usleep(90000); /* FAULT */
}

static void run_query(uv_work_t *w)
{
	(void)w;
	usleep(1000);
}

static void on_done(uv_work_t *w, int status)
{
	(void)status;
	free(w);
}

static void submit(uv_work_cb work)
{
	uv_work_t *w = malloc(sizeof(*w));

	case_check(!w || uv_queue_work(loop, w, work, on_done), "uv_queue_work");
}

static void on_upload(uv_timer_t *t)
{
	for (int i = 0; i < 8; i++)
		submit(make_thumbnail);
	if (case_now() > end) {
		uv_timer_stop(t);
		uv_timer_stop(&queries);
	}
}

static void on_query(uv_timer_t *t)
{
	(void)t;
	submit(run_query);
}

int main(void)
{
	loop = uv_default_loop();
	end = case_end(2);
	uv_timer_init(loop, &uploads);
	uv_timer_init(loop, &queries);
	uv_timer_start(&uploads, on_upload, 200, 400);
	uv_timer_start(&queries, on_query, 20, 20);
	return uv_run(loop, UV_RUN_DEFAULT);
}
