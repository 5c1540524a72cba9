/* One connection of nine sends a hundred times as much as each of the others. */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

#define CLIENTS 9

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

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf) /* FAULT */
{								    /* FAULT */
	(void)buf;
	if (n > 0)
		case_work(150); /* FAULT */
	if (case_now() > end)
		uv_stop(s->loop);
}

static void *clients(void *arg)
{
	char message[256] = "hello";

	for (unsigned i = 0; case_now() < end + 1000 * CASE_MS; i++) {
		if (write(pairs[7][1], message, sizeof(message)) < 0)
			break;
		usleep(20);
		if (i % 100 == 0)
			for (int k = 0; k < CLIENTS; k++)
				if (write(pairs[k][1], message, sizeof(message)) < 0)
					return arg;
	}
	return arg;
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
