/* Threads of known number, function and name. Ends with _exit, so that its box stays. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 300

static int tid(void)
{
	return (int)syscall(SYS_gettid);
}

static void *first(void *arg)
{
	printf("begun first %d\n", tid());
	return (char *)arg + 1;
}

static void *second(void *arg)
{
	printf("begun second %d\n", tid());
	pthread_exit((char *)arg + 2);
}

static void *third(void *arg)
{
	printf("begun third %d\n", tid());
	for (;;)
		pause();
	return arg;
}

__attribute__((noinline)) static pthread_t make(void *(*start)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, start, arg))
		_exit(3);
	return t;
}

static void *maker(void *arg)
{
	void *result;

	printf("begun maker %d\n", tid());
	pthread_join(make(first, arg), &result);
	return result;
}

static void check(pthread_t t, void *want)
{
	void *result;

	if (pthread_join(t, &result) || result != want)
		_exit(4);
}

/* Functions, arguments and results arrive; one thread makes another; one is cancelled. */
static void lives(void)
{
	pthread_attr_t attr;
	pthread_t t[THREADS], odd;
	char base[1];

	printf("make %p\nfirst %p\nsecond %p\nthird %p\nmaker %p\nmain %d\n", (void *)make,
	       (void *)first, (void *)second, (void *)third, (void *)maker, tid());
	for (int i = 0; i < THREADS; i++)
		t[i] = make(i % 2 ? first : second, base);
	for (int i = 0; i < THREADS; i++)
		check(t[i], base + (i % 2 ? 1 : 2));
	check(make(maker, base), base + 1);
	odd = make(third, base);
	pthread_cancel(odd);
	check(odd, PTHREAD_CANCELED);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)1 << 46);
	if (pthread_create(&odd, &attr, first, base) != EAGAIN)
		_exit(5);
}

static pthread_barrier_t barrier;

static void *nameless(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void *names_itself(void *arg)
{
	if (arg)
		prctl(PR_SET_NAME, "by-prctl");
	else
		pthread_setname_np(pthread_self(), "by-itself");
	return nameless(arg);
}

static void names(void)
{
	pthread_t other;

	pthread_barrier_init(&barrier, NULL, 4);
	other = make(nameless, NULL);
	make(names_itself, NULL);
	make(names_itself, &barrier);
	pthread_barrier_wait(&barrier);
	printf("set %d\n", pthread_setname_np(other, "by-another"));
	printf("too-long %d\n", pthread_setname_np(other, "a name that is too long"));
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "lives"))
		lives();
	else
		names();
	fflush(stdout);
	_exit(0);
}
