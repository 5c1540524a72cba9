/* A loop needs to write what a reader thread keeps read-locked for 30 ms, 8 times per second. */
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t end;

static void *scan_table(void *arg)
{
	while (case_now() < end) {
		pthread_rwlock_rdlock(&table);
		usleep(30000);		       /* FAULT */
		pthread_rwlock_unlock(&table); /* FAULT */
		usleep(95000);
	}
	return arg;
}

static __attribute__((noinline)) void store(void)
{
	pthread_rwlock_wrlock(&table);
	case_work(30);
	pthread_rwlock_unlock(&table);
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;
	pthread_t thread;

	case_rounds_per_ms();
	end = case_end(2.5);
	case_check(pthread_create(&thread, NULL, scan_table, NULL), "pthread_create");
	while (case_now() < end) {
		epoll_wait(epoll, &e, 1, 4);
		store();
	}
	return pthread_join(thread, NULL);
}
