/*
 * A number-guessing game over HTTP: the server of Go's article on its flight recorder, in C.
 * It knows nothing of tacho.
 *
 *	guess_server [-c COLLECTOR-PORT] [-w MICROSECONDS]
 *
 * GET /guess-number?guess=N counts the guess in the bucket of its number, which has a lock, and
 * says whether it was right. Every two seconds a report of all buckets is sent to a collector
 * (-c). With -w each guess takes some CPU time, as where there is real work to do.
 *
 * Two things are wrong with it. send_report keeps the locks until the collector has answered, and
 * guesses wait for that. GET /count?guess=N believes that there is a bucket for every number.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "net.h"

#define BUCKETS 100
#define REPORT_SECONDS 2

struct bucket {
	pthread_mutex_t lock;
	unsigned guesses;
};

static struct bucket buckets[BUCKETS];
static const unsigned answer = 42;
static uint16_t collector;
static long work_us;
static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

/* ---------------------------------------------------------------------- reports */

static void post(const char *text)
{
	char message[2048];
	int size = snprintf(message, sizeof(message),
			    "POST /guess-report HTTP/1.1\r\nHost: collector\r\n"
			    "Content-Length: %zu\r\n\r\n%s",
			    strlen(text), text);
	int fd = connect_to(collector);

	if (fd < 0 || write(fd, message, (size_t)size) < 0 ||
	    read(fd, message, sizeof(message)) <= 0)
		fprintf(stderr, "guess_server: the report was not taken\n");
	if (fd >= 0)
		close(fd);
}

static void send_report(void)
{
	char text[BUCKETS * 11 + 1] = "";
	size_t size = 0;

	for (int i = 0; i < BUCKETS; i++) {
		pthread_mutex_lock(&buckets[i].lock);
		size += (size_t)snprintf(text + size, sizeof(text) - size, "%u ",
					 buckets[i].guesses);
	}
	post(text);
	for (int i = 0; i < BUCKETS; i++)
		pthread_mutex_unlock(&buckets[i].lock);
}

static void *report(void *arg)
{
	pthread_setname_np(pthread_self(), "reporter");
	for (;;) {
		sleep(REPORT_SECONDS);
		send_report();
	}
	return arg;
}

/* --------------------------------------------------------------------- requests */

static void work(void)
{
	struct timespec t;
	long since = -1, us;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		us = t.tv_sec * 1000000 + t.tv_nsec / 1000;
		if (since < 0)
			since = us;
	} while (us - since < work_us);
}

/* That of the number in the request; NULL: there is none. */
static struct bucket *find_bucket(const char *request)
{
	const char *text = strstr(request, "guess=");
	unsigned long number = text ? strtoul(text + 6, NULL, 10) : BUCKETS;

	return number < BUCKETS ? &buckets[number] : NULL;
}

static void reply(int fd, int status, const char *text)
{
	char message[256];
	int size = snprintf(message, sizeof(message),
			    "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n\r\n%s", status,
			    status == 200 ? "OK" : "Bad Request", strlen(text), text);

	/* A client that has gone is seen by the next read. */
	if (send(fd, message, (size_t)size, MSG_NOSIGNAL) < 0)
		return;
}

static void on_guess(int fd, const char *request)
{
	struct bucket *b = find_bucket(request);

	if (!b) {
		reply(fd, 400, "invalid 'guess' value\n");
		return;
	}
	pthread_mutex_lock(&b->lock);
	b->guesses++;
	pthread_mutex_unlock(&b->lock);
	work();
	reply(fd, 200, b == &buckets[answer] ? "right\n" : "wrong\n");
}

static void on_count(int fd, const char *request)
{
	char text[32];

	snprintf(text, sizeof(text), "%u\n", find_bucket(request)->guesses);
	reply(fd, 200, text);
}

/* Requests are short, and their clients wait for the answer: each comes whole and alone. */
static void on_readable(int fd)
{
	char request[1024];
	ssize_t n = read(fd, request, sizeof(request) - 1);

	if (n <= 0) {
		close(fd);
		return;
	}
	request[n] = 0;
	if (strncmp(request, "GET /count?", 11) == 0)
		on_count(fd, request);
	else
		on_guess(fd, request);
}

/* ------------------------------------------------------------------------- loop */

static void watch(int epoll, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	must(fd >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e), "epoll_ctl");
}

static void serve(int server)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[16];

	watch(epoll, server);
	while (!ended) {
		int n = epoll_wait(epoll, events, 16, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == server)
				watch(epoll, accept4(server, NULL, NULL, SOCK_CLOEXEC));
			else
				on_readable(events[i].data.fd);
		}
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread;
	int option;

	while ((option = getopt(argc, argv, "c:w:")) >= 0) {
		if (option == 'c') {
			collector = (uint16_t)atoi(optarg);
		} else if (option == 'w') {
			work_us = atol(optarg);
		} else {
			fprintf(stderr,
				"Usage: guess_server [-c COLLECTOR-PORT] [-w MICROSECONDS]\n");
			return 2;
		}
	}
	for (int i = 0; i < BUCKETS; i++)
		pthread_mutex_init(&buckets[i].lock, NULL);
	if (collector)
		must(!pthread_create(&thread, NULL, report, NULL), "pthread_create");
	sigaction(SIGTERM, &action, NULL);
	serve(listen_somewhere("guess_server"));
	return 0;
}
