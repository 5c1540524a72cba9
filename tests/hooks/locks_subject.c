/*
 * Waits of known number, order and length. Prints what a recording must show; ends with
 * _exit, so that its box stays.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAITERS 3
#define ROUNDS 30

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int tids[WAITERS];
static uint32_t turn, finished;

static void print(const char *key, uint64_t value)
{
	printf("%s %#llx\n", key, (unsigned long long)value);
}

#define ADDRESS(what) print("address", (uint64_t)(uintptr_t)(what))

static int tid(void)
{
	return (int)syscall(SYS_gettid);
}

/* Waits until the kernel says that the thread sleeps: what it waits for is decided then. */
static void until_asleep(int id)
{
	char path[64], text[200];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
	for (;;) {
		FILE *f = fopen(path, "r");
		const char *at;

		if (!f || !fgets(text, sizeof(text), f))
			_exit(4);
		fclose(f);
		at = strrchr(text, ')');
		if (at && at[2] == 'S')
			return;
		usleep(100);
	}
}

static void until(const uint32_t *number, uint32_t value)
{
	while (__atomic_load_n(number, __ATOMIC_ACQUIRE) != value)
		usleep(50);
}

/* ------------------------------------------------------------- handover */

static int use_rwlock;
static uint32_t arrived;

__attribute__((noinline)) static void wait_here(void)
{
	if (use_rwlock)
		pthread_rwlock_wrlock(&rwlock);
	else
		pthread_mutex_lock(&mutex);
	__asm__ volatile("");
}

__attribute__((noinline)) static void release_here(void)
{
	if (use_rwlock)
		pthread_rwlock_unlock(&rwlock);
	else
		pthread_mutex_unlock(&mutex);
	__asm__ volatile("");
}

static void *waiter(void *arg)
{
	int *own = arg;

	__atomic_store_n(own, tid(), __ATOMIC_RELEASE);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		until(&turn, round);
		__atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
		wait_here();
		printf("got %d\n", tid());
		release_here();
		__atomic_fetch_add(&finished, 1, __ATOMIC_ACQ_REL);
	}
	return NULL;
}

/* In each round all waiters sleep at the lock before the main thread releases it. */
static void handover(void)
{
	pthread_t t[WAITERS];

	/* The box is there before several threads want it at once, some of which would not wait long
	   enough for it on a busy machine. */
	poll(NULL, 0, 0);
	ADDRESS(use_rwlock ? (void *)&rwlock : (void *)&mutex);
	print("wait_here", (uint64_t)(uintptr_t)wait_here);
	print("release_here", (uint64_t)(uintptr_t)release_here);
	print("waits", WAITERS * ROUNDS);
	for (int i = 0; i < WAITERS; i++)
		pthread_create(&t[i], NULL, waiter, &tids[i]);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		wait_here();
		printf("got %d\n", tid());
		__atomic_store_n(&turn, round, __ATOMIC_RELEASE);
		until(&arrived, round * WAITERS);
		for (int i = 0; i < WAITERS; i++)
			until_asleep(tids[i]);
		usleep(2000);
		release_here();
		until(&finished, round * WAITERS);
	}
	for (int i = 0; i < WAITERS; i++)
		pthread_join(t[i], NULL);
}

/* --------------------------------------------------------------- others */

static void quiet(void)
{
	for (int i = 0; i < 100000; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		pthread_rwlock_wrlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		pthread_cond_signal(&cond);
		pthread_cond_broadcast(&cond);
		sem_post(&sem);
		sem_wait(&sem);
	}
}

static uint64_t failures, inside, entered;

static void *hammer(void *arg)
{
	pthread_barrier_wait(arg);
	for (int i = 0; i < 20000; i++) {
		if (pthread_mutex_trylock(&mutex)) {
			__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
			pthread_mutex_lock(&mutex);
		}
		if (inside++)
			_exit(5);
		entered++;
		for (volatile int k = 0; k < 500; k++)
			;
		inside--;
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void hammers(void)
{
	pthread_barrier_t barrier;
	pthread_t t[4];

	ADDRESS(&mutex);
	pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, hammer, &barrier);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	print("entered", entered);
	print("failures", failures);
}

static uint32_t ball;
static uint64_t waits, timeouts;

__attribute__((noinline)) static void signal_here(void)
{
	pthread_cond_broadcast(&cond);
	__asm__ volatile("");
}

/* Two threads throw a ball; who does not have it waits for it. */
static void *player(void *arg)
{
	uint32_t own = arg != NULL;

	pthread_mutex_lock(&mutex);
	for (int i = 0; i < 500; i++) {
		while (ball != own) {
			waits++;
			pthread_cond_wait(&cond, &mutex);
		}
		ball = !own;
		signal_here();
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void conditions(void)
{
	pthread_t t[2];

	ADDRESS(&cond);
	print("signal_here", (uint64_t)(uintptr_t)signal_here);
	pthread_create(&t[0], NULL, player, NULL);
	pthread_create(&t[1], NULL, player, &ball);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < 7; i++) {
		struct timespec soon;

		clock_gettime(CLOCK_REALTIME, &soon);
		waits++;
		timeouts += pthread_cond_timedwait(&cond, &mutex, &soon) == ETIMEDOUT;
	}
	pthread_mutex_unlock(&mutex);
	signal_here();
	print("waits", waits);
	print("timeouts", timeouts);
}

static void unlock(void *arg)
{
	pthread_mutex_unlock(arg);
}

static void *wait_for_good(void *arg)
{
	*(int *)arg = tid();
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(unlock, &mutex);
	pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(1);
	return NULL;
}

static void start_waiter(pthread_t *t)
{
	int id = 0;

	pthread_create(t, NULL, wait_for_good, &id);
	while (!__atomic_load_n(&id, __ATOMIC_ACQUIRE))
		usleep(100);
	usleep(20000);
	until_asleep(id);
}

static void cancelled(void)
{
	pthread_t t;

	ADDRESS(&cond);
	start_waiter(&t);
	pthread_cancel(t);
	pthread_join(t, NULL);
	pthread_cond_broadcast(&cond);
}

/* The parent's waiter does not exist in the child, which has one of its own. */
static void forked(void)
{
	pthread_t t;
	int status;
	pid_t child;

	ADDRESS(&cond);
	start_waiter(&t);
	child = fork();
	if (!child) {
		pthread_cond_broadcast(&cond);
		pthread_cond_init(&cond, NULL);
		start_waiter(&t);
		pthread_cond_broadcast(&cond);
		pthread_join(t, NULL);
		_exit(0);
	}
	print("child", (uint64_t)child);
	waitpid(child, &status, 0);
	pthread_cond_broadcast(&cond);
	pthread_join(t, NULL);
	if (status)
		_exit(6);
}

static void *lock_once(void *arg)
{
	*(int *)arg = tid();
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

/* A wait for a condition hands the mutex to whoever waits for that. */
static void mutex_of_condition(void)
{
	struct timespec later;
	int id = 0;
	pthread_t t;

	ADDRESS(&mutex);
	print("main", (uint64_t)tid());
	pthread_mutex_lock(&mutex);
	pthread_create(&t, NULL, lock_once, &id);
	while (!__atomic_load_n(&id, __ATOMIC_ACQUIRE))
		usleep(100);
	usleep(10000);
	until_asleep(id);
	clock_gettime(CLOCK_REALTIME, &later);
	later.tv_sec += 1;
	pthread_cond_timedwait(&cond, &mutex, &later);
	pthread_mutex_unlock(&mutex);
	pthread_join(t, NULL);
}

static void *post_later(void *arg)
{
	for (int i = 0; i < 5; i++) {
		until_asleep(*(int *)arg);
		sem_post(&sem);
	}
	return NULL;
}

static void semaphores(void)
{
	int id = tid();
	pthread_t t;

	ADDRESS(&sem);
	pthread_create(&t, NULL, post_later, &id);
	for (int i = 0; i < 5; i++)
		sem_wait(&sem);
	pthread_join(t, NULL);
}

static uint32_t has_it, wants_it;

static void *hold_for_long(void *arg)
{
	for (uint32_t i = 1; i <= 5; i++) {
		sem_trywait(&sem);
		__atomic_store_n(&has_it, i, __ATOMIC_RELEASE);
		until_asleep(*(int *)arg);
		sem_post(&sem);
		until(&wants_it, i);
	}
	return NULL;
}

/* One that is used as a lock: who posts it has it. */
static void semaphore_lock(void)
{
	int id = tid();
	pthread_t t;

	ADDRESS(&sem);
	sem_init(&sem, 0, 1);
	pthread_create(&t, NULL, hold_for_long, &id);
	for (uint32_t i = 1; i <= 5; i++) {
		/* Asleep it is nowhere but in its wait. */
		while (__atomic_load_n(&has_it, __ATOMIC_ACQUIRE) != i)
			sched_yield();
		sem_wait(&sem);
		sem_post(&sem);
		__atomic_store_n(&wants_it, i, __ATOMIC_RELEASE);
	}
	pthread_join(t, NULL);
}

static uint32_t word;

static void *wake_later(void *arg)
{
	for (uint32_t i = 1; i <= 5; i++) {
		until_asleep(*(int *)arg);
		__atomic_store_n(&word, i, __ATOMIC_RELEASE);
		syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
	}
	return NULL;
}

/* As a mutex: 2 while it is taken and wanted. */
static void *unlock_later(void *arg)
{
	for (int i = 0; i < 5; i++) {
		until_asleep(*(int *)arg);
		__atomic_store_n(&word, 0, __ATOMIC_RELEASE);
		syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
		while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) != 2 && i < 4)
			usleep(50);
	}
	return NULL;
}

static void futex_mutex(void)
{
	int id = tid();
	pthread_t t;

	ADDRESS(&word);
	word = 2;
	pthread_create(&t, NULL, unlock_later, &id);
	for (int i = 0; i < 5; i++) {
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, NULL);
		__atomic_store_n(&word, 2, __ATOMIC_RELEASE);
	}
	pthread_join(t, NULL);
}

static void futexes(void)
{
	int id = tid();
	pthread_t t;

	ADDRESS(&word);
	pthread_create(&t, NULL, wake_later, &id);
	for (uint32_t i = 0; i < 5; i++)
		syscall(SYS_futex, &word, i % 2 ? FUTEX_WAIT_BITSET_PRIVATE : FUTEX_WAIT_PRIVATE, i,
			NULL, NULL, FUTEX_BITSET_MATCH_ANY);
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {
		{"mutex", handover},	    {"rwlock", handover},
		{"quiet", quiet},	    {"hammer", hammers},
		{"conditions", conditions}, {"cancelled", cancelled},
		{"forked", forked},	    {"mutex-of-condition", mutex_of_condition},
		{"semaphores", semaphores}, {"semaphore-lock", semaphore_lock},
		{"futexes", futexes},	    {"futex-mutex", futex_mutex},
	};

	sem_init(&sem, 0, 0);
	use_rwlock = argc > 1 && !strcmp(argv[1], "rwlock");
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name)) {
			modes[i].run();
			fflush(stdout);
			_exit(0);
		}
	return 2;
}
