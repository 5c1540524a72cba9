/* A callback looks up a name, and the name server takes its time. */
#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uint64_t end;
static int server;

/* Says that there is no such name: the question comes back with two bits set. */
static void *answer_late(void *arg)
{
	unsigned char question[NS_PACKETSZ];
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	ssize_t n;

	while ((n = recvfrom(server, question, sizeof(question), 0, (struct sockaddr *)&from,
			     &size)) >= NS_HFIXEDSZ) {
		usleep(90000);
		question[2] |= 0x80;
		question[3] = ns_r_nxdomain;
		case_check(sendto(server, question, (size_t)n, 0, (struct sockaddr *)&from, size) <
				   0,
			   "sendto");
	}
	return arg;
}

static uint16_t name_server(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	pthread_t thread;

	server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	case_check(server < 0 || bind(server, (struct sockaddr *)&a, sizeof(a)) ||
			   getsockname(server, (struct sockaddr *)&a, &size),
		   "bind");
	case_check(pthread_create(&thread, NULL, answer_late, NULL), "pthread_create");
	return a.sin_port;
}

static void connect_to(const char *host)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;

	case_sink += (uint64_t)getaddrinfo(host, "80", &hints, &found); /* FAULT */
	if (found)
		freeaddrinfo(found);
}

static void on_retry(uv_timer_t *t)
{
	connect_to("late.test.");
	if (case_now() > end)
		uv_stop(t->loop);
}

static void on_tick(uv_timer_t *t)
{
	(void)t;
	case_work(20);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	uv_timer_t retries, ticks;

	end = case_end(2);
	/* Of this thread, which runs the loop. */
	case_check(res_init(), "res_init");
	memset(&_res.nsaddr_list[0], 0, sizeof(_res.nsaddr_list[0]));
	_res.nsaddr_list[0].sin_family = AF_INET;
	_res.nsaddr_list[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	_res.nsaddr_list[0].sin_port = name_server();
	_res.nscount = 1;
	uv_timer_init(loop, &retries);
	uv_timer_init(loop, &ticks);
	uv_timer_start(&retries, on_retry, 100, 300);
	uv_timer_start(&ticks, on_tick, 5, 5);
	uv_run(loop, UV_RUN_DEFAULT);
	_exit(0);
}
