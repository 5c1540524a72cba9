/* Hundreds of threads that all record, and a box that has room for a few of them. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "case.h"
#include "tacho.h"

#define THREADS 600

static struct tacho_name loops = TACHO_LOOP("worker");
static struct tacho_name job = TACHO_KIND("job");
static pthread_barrier_t all_there; /* else the tasks grow in number, which is a fault as well */
static uint64_t end;

static void *worker(void *arg)
{
	uint64_t task = tacho_task_new();

	pthread_barrier_wait(&all_there);
	while (case_now() < end) {
		tacho_park(&loops);
		usleep(20000);
		tacho_unpark(&loops, 1);
		for (int i = 0; i < 20; i++) {
			tacho_poll_begin(&job, task);
			tacho_poll_end(TACHO_PENDING);
		}
	}
	return arg;
}

int main(void)
{
	static pthread_t threads[THREADS];
	pthread_attr_t attr;
	int err = tacho_start(NULL);

	case_check(err && err != -EALREADY, "tacho_start");
	pthread_barrier_init(&all_there, NULL, THREADS + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 131072);
	for (int i = 0; i < THREADS; i++)
		case_check(pthread_create(&threads[i], &attr, worker, NULL), "pthread_create");
	end = case_end(1.5);
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
