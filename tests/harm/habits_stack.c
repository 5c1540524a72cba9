/* Little stack: threads with the smallest that there is, and handlers on a small alternate stack. */
#include "habits.h"

#include <alloca.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile char sink;

/* Leaves `left` bytes of the stack that begins at `bottom`. */
static __attribute__((noinline)) void with_little_left(const char *bottom, size_t left)
{
	size_t used = (size_t)((char *)__builtin_frame_address(0) - bottom) - left;
	char *room = alloca(used);

	memset(room, 1, used);
	wait_in_epoll(3);
	pthread_mutex_lock(&lock); /* which main holds for a while */
	pthread_mutex_unlock(&lock);
	burn(0.06);
	wait_in_epoll(2);
	sink = room[used / 2];
}

struct room {
	char *bottom;
	size_t left;
};

static void *body(void *arg)
{
	struct room *r = arg;

	with_little_left(r->bottom, r->left);
	return NULL;
}

/* STACK: bytes of the stack. LEFT: bytes of it that are left where it waits. */
int small_thread(int argc, char **argv)
{
	size_t size = argc > 2 ? (size_t)atol(argv[2]) : (size_t)PTHREAD_STACK_MIN;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct room r = {NULL, argc > 3 ? (size_t)atol(argv[3]) : 4096};
	pthread_attr_t attributes;
	pthread_t thread;
	char *map =
		mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(map != MAP_FAILED);
	MUST(mprotect(map, page, PROT_NONE) == 0); /* whoever needs more is told so */
	r.bottom = map + page;
	pthread_attr_init(&attributes);
	MUST(pthread_attr_setstack(&attributes, map + page, size) == 0);
	pthread_mutex_lock(&lock);
	MUST(pthread_create(&thread, &attributes, body, &r) == 0);
	usleep(20000);
	pthread_mutex_unlock(&lock);
	MUST(pthread_join(thread, NULL) == 0);
	puts("done");
	return 0;
}

/* Threads whose stack is as large as `ulimit -s` says. */
int thread_of_ulimit(int argc, char **argv)
{
	pthread_t thread[4];
	(void)argc, (void)argv;

	for (int i = 0; i < 4; i++)
		MUST(pthread_create(&thread[i], NULL, (void *(*)(void *))(void *)wait_in_epoll,
				    (void *)3) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	wait_in_epoll(3);
	burn(0.05);
	puts("done");
	return 0;
}

static const char *alternate;

static void on_signal(int sig)
{
	size_t left = (size_t)((char *)__builtin_frame_address(0) - alternate);
	char room[1024];

	(void)sig;
	memset(room, 1, sizeof(room));
	MUST(left < 1u << 20);
	burn(0.06);
	sink = room[17];
}

/* A handler that takes long, on an alternate stack on which little is left. */
int small_handler(int argc, char **argv)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = (argc > 2 ? (size_t)atol(argv[2]) : 8192);
	char *map =
		mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = map + page, .ss_size = size};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	MUST(map != MAP_FAILED);
	MUST(mprotect(map, page, PROT_NONE) == 0);
	alternate = map + page;
	MUST(sigaltstack(&stack, NULL) == 0);
	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	wait_in_epoll(2);
	for (int i = 0; i < 3; i++)
		raise(SIGUSR1);
	wait_in_epoll(2);
	puts("handled");
	return 0;
}
