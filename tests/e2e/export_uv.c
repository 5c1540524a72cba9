/*
 * For export_tools.py and export_flame.py: a libuv program with a timer that burns CPU, one that
 * sleeps, work for the pool, and a lock that two threads want. Its main thread has a name that is
 * markup in some formats and ends a frame in others. Ends by itself.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define TICKS 25

static volatile unsigned sink;
static uv_mutex_t lock;
static int ticks, done;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) void burn_cpu(unsigned ms)
{
	uint64_t end = cpu_ns() + ms * 1000000ull;

	while (cpu_ns() < end)
		for (unsigned i = 0; i < 5000; i++)
			sink += i;
}

__attribute__((noinline)) void hold_lock(unsigned ms)
{
	uv_mutex_lock(&lock);
	usleep(ms * 1000);
	uv_mutex_unlock(&lock);
}

static void pool_work(uv_work_t *work)
{
	(void)work;
	hold_lock(5);
	burn_cpu(5);
}

static void pool_done(uv_work_t *work, int status)
{
	(void)work;
	(void)status;
	done++;
}

static void on_burn(uv_timer_t *timer)
{
	static uv_work_t works[TICKS];

	burn_cpu(20);
	if (ticks < TICKS)
		uv_queue_work(timer->loop, &works[ticks++], pool_work, pool_done);
	else
		uv_timer_stop(timer);
}

/* Has the lock when the loop goes on, and keeps it long enough for the loop to want it. */
static void keeper(void *arg)
{
	uv_mutex_lock(&lock);
	uv_sem_post(arg);
	usleep(30000);
	uv_mutex_unlock(&lock);
}

static void on_sleep(uv_timer_t *timer)
{
	static int kept;
	uv_thread_t thread;
	uv_sem_t has_it;

	usleep(10000);
	if (kept++ < 5) {
		uv_sem_init(&has_it, 0);
		uv_thread_create(&thread, keeper, &has_it);
		uv_sem_wait(&has_it);
		hold_lock(1);
		uv_thread_join(&thread);
		uv_sem_destroy(&has_it);
	}
	if (ticks >= TICKS)
		uv_timer_stop(timer);
}

int main(void)
{
	uv_timer_t burn, slow;
	uv_loop_t *loop = uv_default_loop();

	pthread_setname_np(pthread_self(), "<m>&\"';\x01\xff");
	uv_mutex_init(&lock);
	uv_timer_init(loop, &burn);
	uv_timer_init(loop, &slow);
	uv_timer_start(&burn, on_burn, 1, 5);
	uv_timer_start(&slow, on_sleep, 1, 30);
	uv_run(loop, UV_RUN_DEFAULT);
	printf("%d works done\n", done);
	return 0;
}
