/*
 * An HTTP server over libuv whose callback can be made to block or to crash.
 *
 *   blocked-server FILE
 *
 * prints "port N" and answers. A request for / is answered with "ok". Others (GET /WHAT) do
 * something first, in the callback of the read, and answer what the program itself found
 * out about it. FILE is mapped: struct counts, which is what the program knows of how far it
 * got when it is gone.
 *
 * Tests look for lines of this file by their text; a comment "at: NAME" marks them.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define REQUEST_MAX 4096
#define ANSWER_MAX 512
#define MS 1000000u

struct counts {
	_Atomic uint64_t begun;	  /* callbacks of reads */
	_Atomic uint64_t when_ns; /* CLOCK_MONOTONIC at the last of them */
	_Atomic uint64_t eaten;	  /* bytes */
	_Atomic uint64_t locked;  /* 1: the loop is about to wait in its deadlock */
};

struct client {
	uv_tcp_t tcp; /* first: the handle is the client */
	uv_write_t write;
	size_t got;
	char request[REQUEST_MAX];
	char answer[ANSWER_MAX];
};

static struct counts *counts;
static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sink;

static uint64_t clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pause_for(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
			     .tv_nsec = (long)(ns % 1000000000u)};

	nanosleep(&t, NULL);
}

/* ---------------------------------------------------------------- what blocks */

/* The resolver is at 127.0.0.1:PORT and never answers. */
static __attribute__((noinline)) void resolve_host(int port, char *text)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
	uint64_t begin;
	int error;

	res_init();
	_res.nsaddr_list[0].sin_family = AF_INET;
	_res.nsaddr_list[0].sin_port = htons((uint16_t)port);
	_res.nsaddr_list[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	_res.nscount = 1;
	_res.retrans = 1;
	_res.retry = 1;
	begin = clock_of(CLOCK_MONOTONIC);
	error = getaddrinfo("no-answer.test", "80", &hints, &found); /* at: resolve */
	snprintf(text, ANSWER_MAX / 2, "error %d took %lu", error,
		 clock_of(CLOCK_MONOTONIC) - begin);
	if (!error)
		freeaddrinfo(found);
}

/*
 * Makes no system calls. To ask for the CPU time that was used makes the kernel look whether
 * the time slice is over, so that a thread that keeps asking loses its CPU just after
 * those of others do; and then timers on its CPU time, which look at the tick, never expire.
 */
static __attribute__((noinline)) void hash_pages(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++) /* at: burn from */
		sink = sink * 31 + i;	      /* at: burn to */
}

static uint64_t rounds_per_ms;

static void burn(char *text)
{
	uint64_t begin = clock_of(CLOCK_THREAD_CPUTIME_ID);

	hash_pages(500 * rounds_per_ms);
	snprintf(text, ANSWER_MAX / 2, "cpu %lu", clock_of(CLOCK_THREAD_CPUTIME_ID) - begin);
}

static void calibrate(void)
{
	const uint64_t rounds = 5000000;
	uint64_t begin = clock_of(CLOCK_THREAD_CPUTIME_ID);

	hash_pages(rounds);
	rounds_per_ms = rounds * MS / (clock_of(CLOCK_THREAD_CPUTIME_ID) - begin + 1);
}

static _Atomic int held;

static void *hold_lock(void *nothing)
{
	(void)nothing;
	pthread_mutex_lock(&first_lock);
	atomic_store(&held, 1);
	pause_for(150 * MS);
	pthread_mutex_unlock(&first_lock); /* at: release */
	return NULL;
}

static __attribute__((noinline)) void take_lock(char *text)
{
	pthread_t holder;
	uint64_t begin;

	atomic_store(&held, 0);
	pthread_create(&holder, NULL, hold_lock, NULL);
	pthread_setname_np(holder, "holder");
	while (!atomic_load(&held))
		pause_for(MS / 10);
	begin = clock_of(CLOCK_MONOTONIC);
	pthread_mutex_lock(&first_lock); /* at: wait */
	snprintf(text, ANSWER_MAX / 2, "took %lu lock %lu", clock_of(CLOCK_MONOTONIC) - begin,
		 (uint64_t)(uintptr_t)&first_lock);
	pthread_mutex_unlock(&first_lock);
	pthread_join(holder, NULL);
}

static uint64_t run_delay(void)
{
	uint64_t ran = 0, delay = 0;
	FILE *file = fopen("/proc/self/schedstat", "re");

	if (!file || fscanf(file, "%lu %lu", &ran, &delay) != 2)
		abort();
	fclose(file);
	return delay;
}

static void compete(char *text)
{
	uint64_t delay = run_delay(), begin = clock_of(CLOCK_MONOTONIC);

	hash_pages(200 * rounds_per_ms);
	/* The delay is read between the two clocks: it is no more than the time. */
	delay = run_delay() - delay;
	snprintf(text, ANSWER_MAX / 2, "delay %lu took %lu", delay,
		 clock_of(CLOCK_MONOTONIC) - begin);
}

/* ---------------------------------------------------------------- what ends */

static void eat_memory(void)
{
	for (;;) {
		size_t size = 1 << 20;
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			return;
		memset(p, 1, size);
		counts->eaten += size;
	}
}

static void *other_way_round(void *nothing)
{
	(void)nothing;
	pthread_mutex_lock(&second_lock);
	atomic_store(&held, 1);
	pthread_mutex_lock(&first_lock); /* at: deadlock other */
	return NULL;
}

static __attribute__((noinline)) void lock_both(void)
{
	pthread_t other;

	atomic_store(&held, 0);
	pthread_mutex_lock(&first_lock);
	pthread_create(&other, NULL, other_way_round, NULL);
	while (!atomic_load(&held))
		pause_for(MS / 10);
	counts->locked = 1;
	pthread_mutex_lock(&second_lock); /* at: deadlock loop */
}

static __attribute__((noinline)) void do_what(const char *what, char *text)
{
	int port;

	if (sscanf(what, "resolve/%d", &port) == 1)
		resolve_host(port, text);
	else if (strncmp(what, "burn ", 5) == 0)
		burn(text);
	else if (strncmp(what, "lock ", 5) == 0)
		take_lock(text);
	else if (strncmp(what, "compete ", 8) == 0)
		compete(text);
	else if (strncmp(what, "segv ", 5) == 0)
		*(volatile int *)(uintptr_t)8 = 1;
	else if (strncmp(what, "abort ", 6) == 0)
		abort();
	else if (strncmp(what, "eat ", 4) == 0)
		eat_memory();
	else if (strncmp(what, "deadlock ", 9) == 0)
		lock_both();
}

/* ------------------------------------------------------------------- serving */

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

static void on_request(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct client *c = (struct client *)stream;
	char text[ANSWER_MAX / 2] = "ok";
	uv_buf_t answer;
	int size;

	(void)buf;
	counts->begun++;
	counts->when_ns = clock_of(CLOCK_MONOTONIC);
	if (n < 0) {
		uv_close((uv_handle_t *)stream, on_closed);
		return;
	}
	c->got += (size_t)n;
	if (!memmem(c->request, c->got, "\r\n\r\n", 4))
		return;
	c->request[c->got - 1] = 0;
	if (strncmp(c->request, "GET /", 5) == 0)
		do_what(c->request + 5, text);
	c->got = 0;
	size = snprintf(c->answer, sizeof(c->answer),
			"HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
	answer = uv_buf_init(c->answer, (unsigned)size);
	uv_write(&c->write, stream, &answer, 1, on_written);
}

static void on_connection(uv_stream_t *server, int status)
{
	struct client *c = status < 0 ? NULL : calloc(1, sizeof(*c));

	if (!c)
		return;
	uv_tcp_init(server->loop, &c->tcp);
	if (uv_accept(server, (uv_stream_t *)&c->tcp) == 0)
		uv_read_start((uv_stream_t *)&c->tcp, on_buffer, on_request);
	else
		uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_signal(uv_signal_t *handle, int number)
{
	(void)number;
	uv_stop(handle->loop);
}

static int map_counts(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*counts)))
		return -1;
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return counts == MAP_FAILED ? -1 : 0;
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	struct sockaddr_in at;
	int size = sizeof(at);
	uv_signal_t end;
	uv_tcp_t server;

	if (argc < 2 || map_counts(argv[1])) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return 2;
	}
	calibrate();
	uv_ip4_addr("127.0.0.1", 0, &at);
	uv_tcp_init(loop, &server);
	if (uv_tcp_bind(&server, (struct sockaddr *)&at, 0) ||
	    uv_listen((uv_stream_t *)&server, 128, on_connection) ||
	    uv_tcp_getsockname(&server, (struct sockaddr *)&at, &size))
		return 1;
	uv_signal_init(loop, &end);
	uv_signal_start(&end, on_signal, SIGTERM);
	printf("port %d pid %d\n", ntohs(at.sin_port), (int)getpid());
	fflush(stdout);
	return uv_run(loop, UV_RUN_DEFAULT) < 0;
}
