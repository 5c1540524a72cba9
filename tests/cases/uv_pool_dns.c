/*
 * Name look-ups are given to libuv's pool and take all four threads of it; what concerns files
 * waits. The name server that does not answer is a function of this program.
 */
#include <netdb.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uv_loop_t *loop;
static uint64_t end;
static uv_timer_t connects, reads;

static int ask_name_server(const char *name)
{
	usleep(250000); /* FAULT */
	return name ? EAI_AGAIN : 0;
}

static void resolve_name(uv_work_t *w)
{
	case_sink += (uint64_t)ask_name_server(w->data);
}

static void on_resolved(uv_work_t *w, int status)
{
	(void)status;
	free(w);
}

static void on_stat(uv_fs_t *r)
{
	uv_fs_req_cleanup(r);
	free(r);
}

static void on_connect(uv_timer_t *t)
{
	for (int i = 0; i < 4; i++) {
		uv_work_t *w = calloc(1, sizeof(*w));

		case_check(!w, "calloc");
		w->data = "db.internal";
		case_check(uv_queue_work(loop, w, resolve_name, on_resolved), "uv_queue_work");
	}
	if (case_now() > end) {
		uv_timer_stop(t);
		uv_timer_stop(&reads);
	}
}

static void on_read(uv_timer_t *t)
{
	uv_fs_t *r = malloc(sizeof(*r));

	(void)t;
	case_check(!r || uv_fs_stat(loop, r, "/etc/passwd", on_stat), "uv_fs_stat");
}

int main(void)
{
	loop = uv_default_loop();
	end = case_end(2.2);
	uv_timer_init(loop, &connects);
	uv_timer_init(loop, &reads);
	uv_timer_start(&connects, on_connect, 200, 700);
	uv_timer_start(&reads, on_read, 20, 20);
	return uv_run(loop, UV_RUN_DEFAULT);
}
