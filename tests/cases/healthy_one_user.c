/* Of six connections only one is in use, at 30 % of a CPU. */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

#define CLIENTS 6

static uint64_t end;
static int pairs[CLIENTS][2];
static uv_pipe_t pipes[CLIENTS];
static char buffer[256];

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
	(void)h;
	(void)size;
	*buf = uv_buf_init(buffer, sizeof(buffer));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	(void)buf;
	if (n > 0)
		case_work(150);
	if (case_now() > end)
		uv_stop(s->loop);
}

static void *clients(void *arg)
{
	for (unsigned i = 0;; i++) {
		if (write(pairs[2][1], "hello", 5) != 5)
			return arg;
		usleep(300);
		if (i % 200 == 0 && write(pairs[i / 200 % CLIENTS][1], "hello", 5) != 5)
			return arg;
	}
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	pthread_t thread;

	case_rounds_per_ms();
	end = case_end(2.5);
	for (int i = 0; i < CLIENTS; i++) {
		case_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), "pair");
		uv_pipe_init(loop, &pipes[i], 0);
		uv_pipe_open(&pipes[i], pairs[i][0]);
		uv_read_start((uv_stream_t *)&pipes[i], on_alloc, on_read);
	}
	case_check(pthread_create(&thread, NULL, clients, NULL), "pthread_create");
	uv_run(loop, UV_RUN_DEFAULT);
	exit(0);
}
