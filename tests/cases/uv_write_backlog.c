/* A server sends faster than its client reads, and never looks at what is still to be written. */
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uint64_t end;
static uv_tcp_t server, peer;
static uv_timer_t feed;
static char block[65536];

static void on_written(uv_write_t *w, int status)
{
	(void)status;
	free(w);
}

static void publish(uv_timer_t *t) /* FAULT */
{				   /* FAULT */
	uv_write_t *w = malloc(sizeof(*w));
	uv_buf_t buf = uv_buf_init(block, sizeof(block));

	case_check(!w, "malloc");
	uv_write(w, (uv_stream_t *)&peer, &buf, 1, on_written);
	if (case_now() > end) {
		uv_timer_stop(t);
		uv_close((uv_handle_t *)&peer, NULL);
		uv_close((uv_handle_t *)&server, NULL);
	}
}

static void on_client(uv_stream_t *s, int status)
{
	(void)status;
	uv_tcp_init(s->loop, &peer);
	case_check(uv_accept(s, (uv_stream_t *)&peer), "uv_accept");
	uv_timer_start(&feed, publish, 5, 5);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	struct sockaddr_in a;
	struct sockaddr bound;
	int size = sizeof(bound), client;

	end = case_end(2);
	memset(block, 'x', sizeof(block));
	uv_ip4_addr("127.0.0.1", 0, &a);
	uv_tcp_init(loop, &server);
	uv_timer_init(loop, &feed);
	case_check(uv_tcp_bind(&server, (struct sockaddr *)&a, 0) ||
			   uv_listen((uv_stream_t *)&server, 8, on_client) ||
			   uv_tcp_getsockname(&server, &bound, &size),
		   "uv_listen");
	/* It never reads. */
	client = case_connect(ntohs(((struct sockaddr_in *)&bound)->sin_port));
	uv_run(loop, UV_RUN_DEFAULT);
	return close(client);
}
