/*
 * A program that does not know tacho: it loads libtacho.so when it has been running for a
 * while, with threads that are older than the library. The tests of surroundings.c run
 * it and read its box.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define WAKE 0x43
#define THREADS 4
#define MARKS 1000u

static pthread_barrier_t loaded, done;
static void (*put1)(uint32_t type, uint32_t arg, uint64_t a);

/* As mark_value() in lib.c. */
static void marks(uint64_t writer)
{
	for (uint64_t i = 0; i < MARKS; i++)
		put1(WAKE, 0, (uint64_t)getpid() << 42 | writer << 28 | i);
}

static void *older(void *arg)
{
	pthread_barrier_wait(&loaded);
	marks((uint64_t)(uintptr_t)arg);
	pthread_barrier_wait(&done);
	return NULL;
}

int main(int argc, char **argv)
{
	int (*start)(const void *options);
	pthread_t t[THREADS];
	void *library;

	pthread_barrier_init(&loaded, NULL, THREADS + 1);
	pthread_barrier_init(&done, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, older, (void *)(i + 1));
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		fprintf(stderr, "stranger: %s\n", argc > 1 ? dlerror() : "which library?");
		return 3;
	}
	*(void **)&start = dlsym(library, "tacho_start");
	*(void **)&put1 = dlsym(library, "tacho__put1");
	if (!start || !put1)
		return 4;
	if (start(NULL))
		return 5;
	pthread_barrier_wait(&loaded);
	marks(0);
	pthread_barrier_wait(&done);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	/* It must stay: threads may be storing, and destructors of theirs will run. */
	dlclose(library);
	if (!dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD))
		return 6;
	marks(5);
	_exit(0);
}
