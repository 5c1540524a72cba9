/* An echo server of libuv with clients that keep it as busy as servers are. */
#include <pthread.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

#define CLIENTS 6

static uint64_t end;
static uint16_t port;

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
	(void)h;
	*buf = uv_buf_init(malloc(size), (unsigned)size);
}

static void on_written(uv_write_t *w, int status)
{
	(void)status;
	free(w->data);
	free(w);
}

static void on_closed(uv_handle_t *h)
{
	free(h);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	uv_write_t *w = malloc(sizeof(*w));
	uv_buf_t out = uv_buf_init(buf->base, n > 0 ? (unsigned)n : 0);

	case_check(!w, "malloc");
	w->data = buf->base;
	if (n > 0 && !uv_write(w, s, &out, 1, on_written))
		return;
	free(buf->base);
	free(w);
	if (n < 0)
		uv_close((uv_handle_t *)s, on_closed);
}

static void on_client(uv_stream_t *server, int status)
{
	uv_tcp_t *c = malloc(sizeof(*c));

	case_check(!c || status, "listen");
	uv_tcp_init(server->loop, c);
	case_check(uv_accept(server, (uv_stream_t *)c), "uv_accept");
	uv_read_start((uv_stream_t *)c, on_alloc, on_read);
}

static void on_time(uv_timer_t *t)
{
	if (case_now() > end)
		uv_stop(t->loop);
}

static void *client(void *arg)
{
	int fd = case_connect(port);
	char text[512] = "hello";

	while (case_now() < end) {
		if (write(fd, text, sizeof(text)) < 0 || read(fd, text, sizeof(text)) <= 0)
			break;
		usleep(1000);
	}
	close(fd);
	return arg;
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	pthread_t threads[CLIENTS];
	struct sockaddr_in a;
	int size = sizeof(a);
	uv_timer_t timer;
	uv_tcp_t server;

	end = case_end(2);
	uv_ip4_addr("127.0.0.1", 0, &a);
	uv_tcp_init(loop, &server);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_time, 100, 100);
	case_check(uv_tcp_bind(&server, (struct sockaddr *)&a, 0) ||
			   uv_listen((uv_stream_t *)&server, 16, on_client) ||
			   uv_tcp_getsockname(&server, (struct sockaddr *)&a, &size),
		   "uv_listen");
	port = ntohs(a.sin_port);
	for (int i = 0; i < CLIENTS; i++)
		case_check(pthread_create(&threads[i], NULL, client, NULL), "pthread_create");
	uv_run(loop, UV_RUN_DEFAULT);
	exit(0);
}
