/* Work on libuv's pool that it can do: short, and never more than threads at once for long. */
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uv_loop_t *loop;
static uint64_t end;

static void compress(uv_work_t *w)
{
	(void)w;
	usleep(3000);
}

static void on_done(uv_work_t *w, int status)
{
	(void)status;
	free(w);
}

static void on_stat(uv_fs_t *r)
{
	uv_fs_req_cleanup(r);
	free(r);
}

static void on_request(uv_timer_t *t)
{
	uv_fs_t *r = malloc(sizeof(*r));

	for (int i = 0; i < 3; i++) {
		uv_work_t *w = malloc(sizeof(*w));

		case_check(!w || uv_queue_work(loop, w, compress, on_done), "uv_queue_work");
	}
	case_check(!r || uv_fs_stat(loop, r, "/etc/passwd", on_stat), "uv_fs_stat");
	if (case_now() > end)
		uv_timer_stop(t);
}

int main(void)
{
	uv_timer_t timer;

	loop = uv_default_loop();
	end = case_end(2);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_request, 10, 10);
	return uv_run(loop, UV_RUN_DEFAULT);
}
