/* A server of libuv. Its pool is libuv's own. */
#include "truth.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define TIMERS 8

struct connection {
	uv_tcp_t tcp;
	uint64_t request;
	size_t have;
};

struct reply {
	uv_write_t write;
	uv_work_t work;
	struct connection *connection;
	uint64_t request;
};

static uv_loop_t *loop;

static void on_written(uv_write_t *w, int status)
{
	(void)status;
	free(w->data);
}

static void on_closed(uv_handle_t *h)
{
	free(h->data);
}

static void on_leaked(uv_timer_t *t)
{
	(void)t;
}

/* A timer for a session, which nobody closes. */
FAULT fault_timer_leak(void)
{
	uv_timer_t *t = malloc(sizeof(*t));
	uint64_t now = now_ns();

	must(t && !uv_timer_init(loop, t) && !uv_timer_start(t, on_leaked, 3600000, 0), "timer");
	note("fault_timer_leak", now, now);
}

static void answer(struct reply *r)
{
	uv_buf_t buf = uv_buf_init((char *)&r->request, sizeof(r->request));

	r->write.data = r;
	if (uv_is_closing((uv_handle_t *)&r->connection->tcp) ||
	    uv_write(&r->write, (uv_stream_t *)&r->connection->tcp, &buf, 1, on_written))
		free(r);
}

static void in_pool(uv_work_t *w)
{
	(void)w;
	pool_job();
}

static void after_pool(uv_work_t *w, int status)
{
	(void)status;
	answer(w->data);
}

static void on_request(struct connection *c)
{
	struct reply *r;

	if (c->request >> 63) {
		flood_job();
		return;
	}
	r = malloc(sizeof(*r));
	must(r != NULL, "malloc");
	r->connection = c;
	r->request = c->request;
	r->work.data = r;
	serve_request();
	if (fault_is("timer-leak"))
		fault_timer_leak();
	if (fault_is("pool"))
		uv_queue_work(loop, &r->work, in_pool, after_pool);
	else
		answer(r);
}

/* One request at a time, so that none is in the way of others. */
static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
	struct connection *c = h->data;

	(void)size;
	*buf = uv_buf_init((char *)&c->request + c->have, (unsigned)(sizeof(c->request) - c->have));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct connection *c = s->data;

	(void)buf;
	if (n < 0) {
		uv_close((uv_handle_t *)s, on_closed);
		return;
	}
	c->have += (size_t)n;
	if (c->have < sizeof(c->request))
		return;
	c->have = 0;
	on_request(c);
}

static void on_client(uv_stream_t *server, int status)
{
	struct connection *c = calloc(1, sizeof(*c));

	must(c && !status, "listen");
	end_ns();
	uv_tcp_init(loop, &c->tcp);
	c->tcp.data = c;
	must(!uv_accept(server, (uv_stream_t *)&c->tcp), "uv_accept");
	uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}

static void on_time(uv_timer_t *t)
{
	if (over())
		uv_stop(t->loop);
}

static void on_storm(uv_timer_t *t)
{
	(void)t;
	timer_job();
}

int main(int argc, char **argv)
{
	static uv_timer_t watch, storm[TIMERS];
	static uv_tcp_t server;

	parse(argc, argv);
	loop = uv_default_loop();
	start_helpers();
	serving_thread();
	uv_tcp_init(loop, &server);
	uv_tcp_open(&server, listen_and_tell());
	must(!uv_listen((uv_stream_t *)&server, 128, on_client), "uv_listen");
	uv_timer_init(loop, &watch);
	uv_timer_start(&watch, on_time, 50, 50);
	for (int i = 0; i < TIMERS && fault_is("timers"); i++) {
		uv_timer_init(loop, &storm[i]);
		uv_timer_start(&storm[i], on_storm, 1, 1);
	}
	uv_run(loop, UV_RUN_DEFAULT);
	write_truth();
	_exit(0);
}
