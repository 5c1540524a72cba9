/*
 * A small epoll server with a planted fault, for musl. It says on which port of 127.0.0.1 it listens.
 * For each byte of a connection it answers one byte. "c" uses the CPU for long, "s" sleeps, "l" waits
 * for a lock, "x" starts /bin/sh by system(3), "q" ends the server.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FAULT_MS 120

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t start = PTHREAD_COND_INITIALIZER;
static int wanted;
static volatile uint64_t sum;

static uint64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

__attribute__((noinline)) void recompute_prices(void)
{
	uint64_t until = cpu_ms() + FAULT_MS;

	while (cpu_ms() < until)
		for (int i = 0; i < 100000; i++)
			sum += (uint64_t)i * i;
}

__attribute__((noinline)) void wait_for_backend(void)
{
	struct timespec t = {0, FAULT_MS * 1000000L};

	nanosleep(&t, NULL);
	sum++; /* no jump to nanosleep: this frame stays */
}

__attribute__((noinline)) void rewrite_table(void)
{
	struct timespec t = {0, FAULT_MS * 1000000L};

	pthread_mutex_lock(&table_lock);
	pthread_mutex_lock(&start_lock);
	wanted = 2;
	pthread_cond_broadcast(&start);
	pthread_mutex_unlock(&start_lock);
	nanosleep(&t, NULL);
	pthread_mutex_unlock(&table_lock);
	sum++;
}

/* The other thread holds the lock each time that the loop asks for it. */
static void *writer(void *arg)
{
	(void)arg;
	for (;;) {
		pthread_mutex_lock(&start_lock);
		while (wanted != 1)
			pthread_cond_wait(&start, &start_lock);
		pthread_mutex_unlock(&start_lock);
		rewrite_table();
	}
	return NULL;
}

__attribute__((noinline)) void read_table(void)
{
	pthread_mutex_lock(&start_lock);
	wanted = 1;
	pthread_cond_broadcast(&start);
	while (wanted != 2)
		pthread_cond_wait(&start, &start_lock);
	pthread_mutex_unlock(&start_lock);
	pthread_mutex_lock(&table_lock);
	sum++;
	pthread_mutex_unlock(&table_lock);
}

static int answer(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1) {
		close(fd);
		return 1;
	}
	if (byte == 'c')
		recompute_prices();
	else if (byte == 's')
		wait_for_backend();
	else if (byte == 'l')
		read_table();
	else if (byte == 'x')
		byte = system("exit 3") == 3 << 8 ? 'x' : '?';
	if (write(fd, &byte, 1) != 1)
		close(fd);
	return byte != 'q';
}

static void serve(int listener)
{
	struct epoll_event event = {.events = EPOLLIN, .data = {.fd = listener}}, ready[16];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int n = epoll_wait(epoll, ready, 16, -1);

		for (int i = 0; i < n; i++) {
			if (ready[i].data.fd != listener) {
				if (!answer(ready[i].data.fd))
					return;
				continue;
			}
			event.data.fd = accept(listener, NULL, NULL);
			epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
		}
	}
}

int main(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t thread;

	signal(SIGPIPE, SIG_IGN);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 16) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		return 1;
	pthread_create(&thread, NULL, writer, NULL);
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	serve(listener);
	return 5;
}
