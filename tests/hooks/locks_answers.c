/*
 * What locks, conditions and semaphores of all kinds answer, in all situations that have
 * a defined answer. Its output must be the same whatever is hooked.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct timespec past = {1, 0}, broken = {1, 2000000000};

static struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static char label[200];

static void say(const char *what, int answer)
{
	printf("%s: %s: %s\n", label, what, answer ? strerrorname_np(answer) : "0");
}

static void in_thread(void *(*body)(void *), void *arg)
{
	pthread_t t;
	void *result;

	if (pthread_create(&t, NULL, body, arg) || pthread_join(t, &result))
		exit(3);
}

/* -------------------------------------------------------------- mutexes */

static int timed(pthread_mutex_t *m, clockid_t clock)
{
	struct timespec t = in_ms(clock, 5);

	return clock == CLOCK_REALTIME ? pthread_mutex_timedlock(m, &t)
				       : pthread_mutex_clocklock(m, clock, &t);
}

static void *mutex_of_another(void *arg)
{
	pthread_mutex_t *m = arg;

	say("other's trylock", pthread_mutex_trylock(m));
	say("other's timedlock", timed(m, CLOCK_REALTIME));
	say("other's clocklock", timed(m, CLOCK_MONOTONIC));
	say("other's timedlock, past", pthread_mutex_timedlock(m, &past));
	say("other's timedlock, broken time", pthread_mutex_timedlock(m, &broken));
	say("other's clocklock, broken clock", pthread_mutex_clocklock(m, 77, &past));
	return NULL;
}

static void *unlock_of_another(void *arg)
{
	say("other's unlock", pthread_mutex_unlock(arg));
	return NULL;
}

static void *try_and_unlock(void *arg)
{
	int answer = pthread_mutex_trylock(arg);

	say("other's trylock", answer);
	if (!answer)
		pthread_mutex_unlock(arg);
	return NULL;
}

static void *lock_and_end(void *arg)
{
	say("lock of one that ends", pthread_mutex_lock(arg));
	return NULL;
}

static int locked;

static void *lock_wait_and_end(void *arg)
{
	pthread_mutex_lock(arg);
	__atomic_store_n(&locked, 1, __ATOMIC_RELEASE);
	usleep(30000);
	return NULL;
}

static void owner_dies(pthread_mutex_t *m)
{
	pthread_t t;

	in_thread(lock_and_end, m);
	say("lock after owner's end", pthread_mutex_lock(m));
	say("consistent", pthread_mutex_consistent(m));
	say("unlock", pthread_mutex_unlock(m));
	in_thread(lock_and_end, m);
	say("timedlock after owner's end", timed(m, CLOCK_REALTIME));
	say("consistent", pthread_mutex_consistent(m));
	say("unlock", pthread_mutex_unlock(m));
	locked = 0;
	pthread_create(&t, NULL, lock_wait_and_end, m);
	while (!__atomic_load_n(&locked, __ATOMIC_ACQUIRE))
		sched_yield();
	say("lock while the owner ends", pthread_mutex_lock(m));
	pthread_join(t, NULL);
	say("unlock without consistent", pthread_mutex_unlock(m));
	say("lock, not recoverable", pthread_mutex_lock(m));
	say("trylock, not recoverable", pthread_mutex_trylock(m));
	say("timedlock, not recoverable", timed(m, CLOCK_REALTIME));
	say("clocklock, not recoverable", timed(m, CLOCK_MONOTONIC));
}

static void mutex_answers(pthread_mutex_t *m, int type, int robust)
{
	say("lock", pthread_mutex_lock(m));
	in_thread(mutex_of_another, m);
	if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK) {
		say("lock again", pthread_mutex_lock(m));
		say("timedlock again", timed(m, CLOCK_REALTIME));
		say("clocklock again", timed(m, CLOCK_MONOTONIC));
		in_thread(unlock_of_another, m);
	}
	for (int i = 0; type == PTHREAD_MUTEX_RECURSIVE && i < 3; i++) {
		say("inner unlock", pthread_mutex_unlock(m));
		in_thread(try_and_unlock, m);
	}
	say("unlock", pthread_mutex_unlock(m));
	in_thread(try_and_unlock, m);
	if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
		say("unlock of none", pthread_mutex_unlock(m));
	say("timedlock, past", pthread_mutex_timedlock(m, &past));
	say("unlock", pthread_mutex_unlock(m));
	say("timedlock, broken time", pthread_mutex_timedlock(m, &broken));
	say("unlock", pthread_mutex_unlock(m));
	say("clocklock, broken clock", pthread_mutex_clocklock(m, 77, &past));
	if (robust)
		owner_dies(m);
}

static void mutexes(void)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT,
					PTHREAD_PRIO_PROTECT};

	for (int i = 0; i < 4 * 3 * 2 * 2; i++) {
		int type = types[i % 4], protocol = protocols[i / 4 % 3];
		int robust = i / 12 % 2, shared = i / 24;
		pthread_mutexattr_t a;
		pthread_mutex_t m;

		snprintf(label, sizeof(label), "type %d protocol %d robust %d shared %d", type,
			 protocol, robust, shared);
		pthread_mutexattr_init(&a);
		pthread_mutexattr_settype(&a, type);
		pthread_mutexattr_setprotocol(&a, protocol);
		pthread_mutexattr_setrobust(&a, robust);
		pthread_mutexattr_setpshared(&a, shared);
		say("init", pthread_mutex_init(&m, &a));
		/* Refused for users without the right to priorities: nothing more to see then. */
		if (protocol == PTHREAD_PRIO_PROTECT) {
			int answer = pthread_mutex_lock(&m);

			say("lock", answer);
			if (answer)
				continue;
			pthread_mutex_unlock(&m);
		}
		if (!(protocol == PTHREAD_PRIO_PROTECT && robust))
			mutex_answers(&m, type, robust);
	}
}

static void recursion_ends(void)
{
	pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

	snprintf(label, sizeof(label), "deep recursion");
	pthread_mutex_lock(&m);
	m.__data.__count = 0xffffffff;
	say("lock", pthread_mutex_lock(&m));
	say("timedlock", timed(&m, CLOCK_REALTIME));
}

/* -------------------------------------------------------------- rwlocks */

#define WRITER 2u /* in glibc's count of readers: a writer has the lock, or is the next one */

static int read_timed(pthread_rwlock_t *l, clockid_t clock)
{
	struct timespec t = in_ms(clock, 5);

	return clock == CLOCK_REALTIME ? pthread_rwlock_timedrdlock(l, &t)
				       : pthread_rwlock_clockrdlock(l, clock, &t);
}

static int write_timed(pthread_rwlock_t *l, clockid_t clock)
{
	struct timespec t = in_ms(clock, 5);

	return clock == CLOCK_REALTIME ? pthread_rwlock_timedwrlock(l, &t)
				       : pthread_rwlock_clockwrlock(l, clock, &t);
}

static void *rwlock_of_another(void *arg)
{
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
	pthread_rwlock_t *l = arg;
	int answer;

	for (int i = 0; i < 2; i++) {
		say("other's read", answer = read_timed(l, clocks[i]));
		if (!answer)
			say("its unlock", pthread_rwlock_unlock(l));
		say("other's write", answer = write_timed(l, clocks[i]));
		if (!answer)
			say("its unlock", pthread_rwlock_unlock(l));
	}
	say("other's read, broken time", pthread_rwlock_timedrdlock(l, &broken));
	say("other's write, broken time", pthread_rwlock_timedwrlock(l, &broken));
	say("other's read, broken clock", pthread_rwlock_clockrdlock(l, 77, &past));
	say("other's write, broken clock", pthread_rwlock_clockwrlock(l, 77, &past));
	return NULL;
}

static void *write_once(void *arg)
{
	pthread_rwlock_wrlock(arg);
	pthread_rwlock_unlock(arg);
	return NULL;
}

static void *read_beside_writer(void *arg)
{
	int answer = read_timed(arg, CLOCK_REALTIME);

	say("read while a writer waits", answer);
	if (!answer)
		pthread_rwlock_unlock(arg);
	return NULL;
}

static void rwlocks(void)
{
	for (int kind = 0; kind < 3; kind++) {
		pthread_rwlockattr_t a;
		pthread_rwlock_t l;
		pthread_t writer;

		snprintf(label, sizeof(label), "rwlock %d", kind);
		pthread_rwlockattr_init(&a);
		pthread_rwlockattr_setkind_np(&a, kind);
		pthread_rwlock_init(&l, &a);
		in_thread(rwlock_of_another, &l);
		say("read", pthread_rwlock_rdlock(&l));
		say("read again", pthread_rwlock_rdlock(&l));
		in_thread(rwlock_of_another, &l);
		pthread_create(&writer, NULL, write_once, &l);
		while (!(__atomic_load_n(&l.__data.__readers, __ATOMIC_ACQUIRE) & WRITER))
			sched_yield();
		in_thread(read_beside_writer, &l);
		say("unlock", pthread_rwlock_unlock(&l));
		say("unlock", pthread_rwlock_unlock(&l));
		pthread_join(writer, NULL);
		say("write", pthread_rwlock_wrlock(&l));
		say("read own", pthread_rwlock_rdlock(&l));
		say("write own", pthread_rwlock_wrlock(&l));
		say("read own, timed", read_timed(&l, CLOCK_REALTIME));
		say("write own, timed", write_timed(&l, CLOCK_MONOTONIC));
		in_thread(rwlock_of_another, &l);
		say("unlock", pthread_rwlock_unlock(&l));
	}
}

/* ------------------------------------------- conditions and semaphores */

static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int flag;

static void *set_flag(void *arg)
{
	pthread_mutex_lock(&mutex);
	flag = 1;
	if (arg)
		pthread_cond_broadcast(&cond);
	else
		pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void has_mutex(void *arg)
{
	(void)arg;
	say("the cancelled one locks its mutex", pthread_mutex_lock(&mutex));
	say("the cancelled one unlocks it", pthread_mutex_unlock(&mutex));
}

static void *wait_for_good(void *arg)
{
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(has_mutex, NULL);
	for (;;)
		pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(0);
	return arg;
}

static void conditions(void)
{
	struct timespec t = in_ms(CLOCK_REALTIME, 5), m = in_ms(CLOCK_MONOTONIC, 5);
	pthread_t other;
	void *result;
	int answer = 0;

	snprintf(label, sizeof(label), "condition");
	pthread_mutex_lock(&mutex);
	say("timedwait", pthread_cond_timedwait(&cond, &mutex, &t));
	say("clockwait", pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &m));
	say("timedwait, past", pthread_cond_timedwait(&cond, &mutex, &past));
	say("timedwait, broken time", pthread_cond_timedwait(&cond, &mutex, &broken));
	say("clockwait, broken clock", pthread_cond_clockwait(&cond, &mutex, 77, &past));
	for (int i = 0; i < 2; i++) {
		flag = 0;
		pthread_create(&other, NULL, set_flag, i ? &flag : NULL);
		while (!flag && !answer)
			answer = pthread_cond_wait(&cond, &mutex);
		say("wait", answer);
		say("lock of what wait has locked", pthread_mutex_lock(&mutex));
		pthread_mutex_unlock(&mutex);
		pthread_join(other, NULL);
		pthread_mutex_lock(&mutex);
	}
	pthread_mutex_unlock(&mutex);
	say("wait without the mutex", pthread_cond_wait(&cond, &mutex));
	pthread_create(&other, NULL, wait_for_good, NULL);
	usleep(10000);
	pthread_cancel(other);
	pthread_join(other, &result);
	printf("cancelled: %d\n", result == PTHREAD_CANCELED);
	say("destroy", pthread_cond_destroy(&cond));
}

static sem_t sem;

static void *cancel_at_sem(void *arg)
{
	pthread_cancel(pthread_self());
	if (arg)
		sem_wait(&sem); /* could be had at once, and is a point of cancellation */
	for (;;)
		sem_wait(&sem);
	return NULL;
}

static void *wait_at_sem(void *arg)
{
	for (;;)
		sem_wait(&sem);
	return arg;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void say_errno(const char *what, int result)
{
	say(what, result ? errno : 0);
}

static void semaphores(void)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct timespec t = in_ms(CLOCK_REALTIME, 5), m = in_ms(CLOCK_MONOTONIC, 5);
	pthread_t other;
	void *result;
	int value;

	snprintf(label, sizeof(label), "semaphore");
	sem_init(&sem, 0, 2);
	errno = 33;
	say_errno("wait", sem_wait(&sem));
	say_errno("timedwait", sem_timedwait(&sem, &past));
	printf("errno %d\n", errno);
	say_errno("timedwait", sem_timedwait(&sem, &t));
	say_errno("clockwait", sem_clockwait(&sem, CLOCK_MONOTONIC, &m));
	say_errno("broken time", sem_timedwait(&sem, &broken));
	say_errno("broken clock", sem_clockwait(&sem, 77, &past));
	sigaction(SIGALRM, &act, NULL);
	ualarm(20000, 20000); /* again, in case the first comes before the wait */
	say_errno("interrupted", sem_wait(&sem));
	ualarm(0, 0);
	signal(SIGALRM, SIG_DFL);
	alarm(60);
	sem_post(&sem);
	say_errno("broken time", sem_timedwait(&sem, &broken));
	in_thread(cancel_at_sem, &sem);
	sem_getvalue(&sem, &value);
	printf("value %d\n", value);
	errno = 44;
	sem_wait(&sem);
	printf("errno %d\n", errno);
	pthread_create(&other, NULL, wait_at_sem, NULL);
	usleep(10000);
	pthread_cancel(other);
	pthread_join(other, &result);
	printf("cancelled: %d\n", result == PTHREAD_CANCELED);
}

int main(void)
{
	alarm(60); /* a wrong answer may mean to wait for good */
	mutexes();
	recursion_ends();
	rwlocks();
	conditions();
	semaphores();
	return 0;
}
