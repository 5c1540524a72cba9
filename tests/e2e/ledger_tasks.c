/*
 * ledger_tasks SECONDS: a runtime of one worker that tells of its tasks through tacho.h: each
 * connection is one, and who asks wakes it (ledger.py).
 */
#include <stdbool.h>

#include "ledger_servers.h"
#include "tacho.h"

static struct tacho_name loop = TACHO_LOOP("worker");
static struct tacho_name request = TACHO_KIND("request");
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static uint64_t tasks[CONNECTIONS];
static bool woken[CONNECTIONS], planting;
static int queue[CONNECTIONS], queued;

static void wake(int task)
{
	pthread_mutex_lock(&mutex);
	if (!woken[task]) {
		woken[task] = true;
		queue[queued++] = task;
		tacho_wake(tasks[task]);
		pthread_cond_signal(&filled);
	}
	pthread_mutex_unlock(&mutex);
}

static void *wake_all(void *arg)
{
	unsigned rounds = (unsigned)(*(double *)arg * 1e6 / ROUND_US);

	for (unsigned i = 1; i <= rounds; i++) {
		if (i % PLANT_EVERY == 0)
			planting = true;
		for (int k = 0; k < CONNECTIONS; k++)
			wake(k);
		sleep_us(ROUND_US);
	}
	atomic_store(&done, 1);
	wake(0);
	return NULL;
}

static int take(void)
{
	int task;

	pthread_mutex_lock(&mutex);
	if (!queued) {
		tacho_park(&loop);
		while (!queued)
			pthread_cond_wait(&filled, &mutex);
		tacho_unpark(&loop, (uint32_t)queued);
	}
	task = queue[0];
	queued--;
	for (int i = 0; i < queued; i++)
		queue[i] = queue[i + 1];
	woken[task] = false;
	pthread_mutex_unlock(&mutex);
	return task;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	pthread_t asker;

	tacho_start(NULL);
	tacho_loop(&loop);
	for (int i = 0; i < CONNECTIONS; i++) {
		tasks[i] = tacho_task_new();
		tacho_task_spawn(tasks[i], &request, 0, NULL);
	}
	if (pthread_create(&asker, NULL, wake_all, &seconds))
		return 2;
	while (!atomic_load(&done)) {
		int task = take();

		tacho_poll_begin(&request, tasks[task]);
		if (task == 0 && planting) {
			planting = false;
			planted();
		}
		tacho_poll_end(TACHO_PENDING);
	}
	end_asking(asker);
	return 0;
}
