/*
 * The server of Go's article on its flight recorder: clients guess a number over HTTP, guesses
 * are counted in buckets with a lock each, and a report that is sent now and then keeps the locks
 * of all buckets until the answer to its POST is there.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "case.h"

#define BUCKETS 20
#define CLIENTS 4

struct bucket {
	pthread_mutex_t lock;
	unsigned guesses;
};

static struct bucket buckets[BUCKETS];
static uint64_t end;
static uint16_t port, sink_port;
static int sink;

/* Takes a report, slowly. */
static void *serve_reports(void *arg)
{
	char text[512];

	for (;;) {
		int fd = accept(sink, NULL, NULL);

		if (fd < 0)
			return arg;
		case_sink += (uint64_t)read(fd, text, sizeof(text));
		usleep(120000);
		case_sink += (uint64_t)write(fd, "HTTP/1.0 200 OK\r\n\r\n", 19);
		close(fd);
	}
}

static void post(const char *text)
{
	char answer[64];
	int fd = case_connect(sink_port);

	case_sink += (uint64_t)write(fd, text, strlen(text));
	case_sink += (uint64_t)read(fd, answer, sizeof(answer));
	close(fd);
}

static void send_report(void)
{
	char text[512] = "POST /report HTTP/1.0\r\n\r\n";
	size_t size = strlen(text);

	for (int i = 0; i < BUCKETS; i++) {
		pthread_mutex_lock(&buckets[i].lock);
		size += (size_t)snprintf(text + size, sizeof(text) - size, "%u ",
					 buckets[i].guesses);
	}
	post(text);
	for (int i = 0; i < BUCKETS; i++)
		pthread_mutex_unlock(&buckets[i].lock); /* FAULT */
}

static void *report(void *arg)
{
	while (case_now() < end) {
		usleep(300000);
		send_report();
	}
	return arg;
}

/* GET /guess?guess=N */
static void on_guess(int fd)
{
	char text[256];
	ssize_t n = read(fd, text, sizeof(text) - 1);
	const char *guess;
	unsigned number;

	if (n <= 0) {
		close(fd);
		return;
	}
	text[n] = 0;
	guess = strstr(text, "guess=");
	number = guess ? (unsigned)strtoul(guess + 6, NULL, 10) % BUCKETS : 0;
	pthread_mutex_lock(&buckets[number].lock);
	buckets[number].guesses++;
	pthread_mutex_unlock(&buckets[number].lock);
	case_sink += (uint64_t)write(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38);
}

static void *client(void *arg)
{
	int fd = case_connect(port);
	char text[256];

	for (unsigned i = 0; case_now() < end; i++) {
		int size = snprintf(text, sizeof(text),
				    "GET /guess?guess=%u HTTP/1.1\r\nHost: guess\r\n\r\n", i % 100);

		if (write(fd, text, (size_t)size) < 0 || read(fd, text, sizeof(text)) <= 0)
			break;
		usleep(2000);
	}
	close(fd);
	return arg;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), server = case_listen(16, &port);
	struct epoll_event e = {.events = EPOLLIN, .data.fd = server}, events[8];
	pthread_t threads[CLIENTS + 2];

	sink = case_listen(16, &sink_port);
	end = case_end(2.5);
	for (int i = 0; i < BUCKETS; i++)
		pthread_mutex_init(&buckets[i].lock, NULL);
	case_check(epoll_ctl(epoll, EPOLL_CTL_ADD, server, &e), "epoll_ctl");
	for (int i = 0; i < CLIENTS; i++)
		case_check(pthread_create(&threads[i], NULL, client, NULL), "pthread_create");
	case_check(pthread_create(&threads[CLIENTS], NULL, report, NULL) ||
			   pthread_create(&threads[CLIENTS + 1], NULL, serve_reports, NULL),
		   "pthread_create");
	while (case_now() < end) {
		int n = epoll_wait(epoll, events, 8, 50);

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd != server) {
				on_guess(events[i].data.fd);
				continue;
			}
			e.data.fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
			case_check(epoll_ctl(epoll, EPOLL_CTL_ADD, e.data.fd, &e), "epoll_ctl");
		}
	}
	exit(0);
}
