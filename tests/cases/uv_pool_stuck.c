/* Four reads of a file system that does not answer keep the pool for ever; nothing else is done. */
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uint64_t end;
static int fifos[4][2];
static char buffers[4][8];
static uv_fs_t reads[4];

static void on_archive(uv_fs_t *r) /* FAULT */
{				   /* FAULT */
	uv_fs_req_cleanup(r);
}

static void on_stat(uv_fs_t *r)
{
	uv_fs_req_cleanup(r);
	free(r);
}

static void on_time(uv_timer_t *t)
{
	static unsigned n;
	uv_fs_t *r = malloc(sizeof(*r));

	case_check(!r || uv_fs_stat(t->loop, r, "/etc/passwd", on_stat), "uv_fs_stat");
	if (++n == 20)
		for (int i = 0; i < 4; i++) {
			uv_buf_t b = uv_buf_init(buffers[i], 8);

			case_check(pipe(fifos[i]), "pipe");
			uv_fs_read(t->loop, &reads[i], fifos[i][0], &b, 1, -1, on_archive);
		}
	if (case_now() > end)
		_exit(0);
}

int main(void)
{
	uv_timer_t timer;

	end = case_end(3);
	uv_timer_init(uv_default_loop(), &timer);
	uv_timer_start(&timer, on_time, 20, 20);
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
