/*
 * An HTTP server over libuv, as small as one can be: it answers every request with the same
 * page. A subject for bench/daemons.py.
 *
 *   bench-daemons_uv PORT
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define REQUEST_MAX 4096

static const char page[] = "HTTP/1.1 200 OK\r\n"
			   "Server: bench\r\n"
			   "Content-Type: text/plain\r\n"
			   "Content-Length: 64\r\n\r\n"
			   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

struct client {
	uv_tcp_t tcp; /* first: the handle is the client */
	uv_write_t write;
	size_t got;
	char request[REQUEST_MAX];
};

static void on_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_written(uv_write_t *write, int status)
{
	uv_handle_t *handle = (uv_handle_t *)write->handle;

	if (status < 0 && !uv_is_closing(handle))
		uv_close(handle, on_closed);
}

static void on_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	struct client *c = (struct client *)handle;

	(void)wanted;
	*buf = uv_buf_init(c->request + c->got, (unsigned)(REQUEST_MAX - c->got));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct client *c = (struct client *)stream;
	uv_buf_t answer = uv_buf_init((char *)page, sizeof(page) - 1);

	(void)buf;
	if (n < 0) {
		if (!uv_is_closing((uv_handle_t *)stream))
			uv_close((uv_handle_t *)stream, on_closed);
		return;
	}
	c->got += (size_t)n;
	if (!memmem(c->request, c->got, "\r\n\r\n", 4))
		return;
	c->got = 0;
	uv_write(&c->write, stream, &answer, 1, on_written);
}

static void on_connection(uv_stream_t *server, int status)
{
	struct client *c = status < 0 ? NULL : calloc(1, sizeof(*c));

	if (!c)
		return;
	uv_tcp_init(server->loop, &c->tcp);
	uv_tcp_nodelay(&c->tcp, 1);
	if (uv_accept(server, (uv_stream_t *)&c->tcp) == 0)
		uv_read_start((uv_stream_t *)&c->tcp, on_buffer, on_read);
	else
		uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_signal(uv_signal_t *handle, int number)
{
	(void)number;
	uv_stop(handle->loop);
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	struct sockaddr_in at;
	uv_signal_t end;
	uv_tcp_t server;

	if (argc < 2 || uv_ip4_addr("127.0.0.1", atoi(argv[1]), &at)) {
		fprintf(stderr, "usage: %s PORT\n", argv[0]);
		return 2;
	}
	uv_tcp_init(loop, &server);
	if (uv_tcp_bind(&server, (struct sockaddr *)&at, 0) ||
	    uv_listen((uv_stream_t *)&server, 128, on_connection)) {
		fprintf(stderr, "%s: cannot listen on port %s\n", argv[0], argv[1]);
		return 1;
	}
	uv_signal_init(loop, &end);
	uv_signal_start(&end, on_signal, SIGTERM);
	return uv_run(loop, UV_RUN_DEFAULT) < 0;
}
