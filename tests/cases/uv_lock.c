/* A thread writes a file with the lock of the cache held; the loop needs the cache. */
#include <pthread.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t end;
static uv_timer_t lookups;

static void *flush_cache(void *arg)
{
	while (case_now() < end) {
		usleep(150000);
		pthread_mutex_lock(&cache_lock);
		usleep(70000);			   /* FAULT */
		pthread_mutex_unlock(&cache_lock); /* FAULT */
	}
	return arg;
}

static void on_lookup(uv_timer_t *t)
{
	pthread_mutex_lock(&cache_lock);
	case_work(20);
	pthread_mutex_unlock(&cache_lock);
	if (case_now() > end)
		uv_timer_stop(t);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	pthread_t thread;

	end = case_end(2);
	uv_timer_init(loop, &lookups);
	uv_timer_start(&lookups, on_lookup, 10, 10);
	case_check(pthread_create(&thread, NULL, flush_cache, NULL), "pthread_create");
	uv_run(loop, UV_RUN_DEFAULT);
	return pthread_join(thread, NULL);
}
