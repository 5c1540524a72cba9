/* A loop and a thread take two locks in different order, and wait for each other for ever. */
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

static pthread_mutex_t users = PTHREAD_MUTEX_INITIALIZER, rooms = PTHREAD_MUTEX_INITIALIZER;

static void *clean_rooms(void *arg)
{
	usleep(600000);
	pthread_mutex_lock(&rooms);
	usleep(100000);
	pthread_mutex_lock(&users);
	pthread_mutex_unlock(&users);
	pthread_mutex_unlock(&rooms);
	return arg;
}

static void leave_room(int meet)
{
	pthread_mutex_lock(&users);
	if (meet)
		usleep(200000);
	pthread_mutex_lock(&rooms); /* FAULT */
	pthread_mutex_unlock(&rooms);
	pthread_mutex_unlock(&users);
}

/* Another loop, which goes on. */
static void *heartbeat(void *arg)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;

	for (;;)
		epoll_wait(epoll, &e, 1, 50);
	return arg;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	uint64_t meet = case_end(0.55);
	struct epoll_event e;
	pthread_t threads[2];

	case_killed_after(3);
	case_check(pthread_create(&threads[0], NULL, clean_rooms, NULL) ||
			   pthread_create(&threads[1], NULL, heartbeat, NULL),
		   "pthread_create");
	for (;;) {
		epoll_wait(epoll, &e, 1, 5);
		leave_room(case_now() > meet);
	}
}
