/* A server of libuv. Its pool is libuv's own. */
#include "truth.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define TIMERS 8
#define MANY_TIMERS 24 /* that leave the loop no time */

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

	if (c->request & FLOOD_BIT) {
		flood_job();
		return;
	}
	if (c->request & FEED_BIT) {
		feed_job();
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
	/* One connection is all there is. */
	if (!strcmp(options.shape, "single-uv"))
		uv_close((uv_handle_t *)server, NULL);
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

/* Asks for its next turn by itself. */
static void on_rhythm(uv_timer_t *t)
{
	if (rhythm_job())
		uv_timer_start(t, on_rhythm, options.period_ns / MS, 0);
}

static void on_unread(uv_poll_t *p, int status, int events)
{
	(void)p, (void)status, (void)events;
	unread_job();
}

static int timers(void)
{
	if (fault_is("timers-full"))
		return MANY_TIMERS;
	return fault_is("timers") || fault_is("healthy-timers") ? TIMERS : 0;
}

static void start_others(void)
{
	static uv_timer_t storm[MANY_TIMERS], rhythm;
	static uv_poll_t unread;
	uint64_t ms = fault_is("healthy-timers") ? 10 : 1;

	for (int i = 0; i < timers(); i++) {
		uv_timer_init(loop, &storm[i]);
		uv_timer_start(&storm[i], on_storm, ms, ms);
	}
	if (fault_is("timer-stops") || fault_is("healthy-rhythm")) {
		uv_timer_init(loop, &rhythm);
		uv_timer_start(&rhythm, on_rhythm, options.period_ns / MS, 0);
	}
	if (fault_is("unread")) {
		uv_poll_init(loop, &unread, unread_fd());
		uv_poll_start(&unread, UV_READABLE, on_unread);
	}
}

int main(int argc, char **argv)
{
	static uv_timer_t watch;
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
	start_others();
	uv_run(loop, UV_RUN_DEFAULT);
	write_truth();
	_exit(0);
}
