/* Programs that take their address space for their own. */
#include "habits.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls `what` for each shared mapping of a file. Programs that checkpoint themselves, or that look
   for leaks of mappings, walk their maps like this. */
static int each_shared_file(int (*what)(void *at, size_t size))
{
	static char text[1 << 20];
	size_t have = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), failed = 0;

	MUST(fd >= 0);
	while ((n = read(fd, text + have, sizeof(text) - 1 - have)) > 0)
		have += (size_t)n;
	close(fd);
	text[have] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned long from, to;
		char mode[8];

		if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 && mode[3] == 's' &&
		    what((void *)from, to - from))
			failed++;
	}
	return failed;
}

static int without_access(void *at, size_t size)
{
	return mprotect(at, size, PROT_NONE);
}

static int ends_as(int (*what)(void *at, size_t size))
{
	wait_in_epoll(3);
	burn(0.03);
	MUST(each_shared_file(what) == 0);
	wait_in_epoll(3);
	burn(0.03);
	wait_in_epoll(3);
	puts("survived");
	return 0;
}

/* It unmaps the shared files that it does not know. */
int unmaps_strangers(int argc, char **argv)
{
	(void)argc, (void)argv;
	return ends_as(munmap);
}

/* It takes all access from them. */
int protects_strangers(int argc, char **argv)
{
	(void)argc, (void)argv;
	return ends_as(without_access);
}

/* It counts what is mapped writable and executable, and descriptors and threads that it did not make. */
int checks_maps(int argc, char **argv)
{
	char line[4096];
	FILE *f;
	int both = 0, open_ones = 0, first;

	(void)argc, (void)argv;
	wait_in_epoll(3);
	f = fopen("/proc/self/maps", "re");
	MUST(f);
	while (fgets(line, sizeof(line), f))
		both += strstr(line, " rwx") != NULL;
	fclose(f);
	for (int fd = 3; fd < 64; fd++)
		open_ones += fcntl(fd, F_GETFD) >= 0;
	first = open("/dev/null", O_RDONLY);
	printf("%d writable and executable, %d descriptors, next is %d\n", both, open_ones, first);
	return 0;
}

/* It uses every key that a process can have. */
int all_keys(int argc, char **argv)
{
	pthread_key_t key;
	int made = 0;

	(void)argc, (void)argv;
	while (pthread_key_create(&key, NULL) == 0)
		made++;
	wait_in_epoll(3);
	/* Two are tacho's: a program that needs all of them would find fewer. */
	puts(made >= PTHREAD_KEYS_MAX - 8 ? "enough keys" : "too few keys");
	return 0;
}

/* malloc and kin of its own, which call functions that are hooked. */
static char arena[1 << 22];
static size_t arena_used;
static pthread_mutex_t arena_lock = PTHREAD_MUTEX_INITIALIZER;

static void *take(size_t size)
{
	void *p = NULL;

	pthread_mutex_lock(&arena_lock);
	size = (size + 31) & ~(size_t)15;
	if (size <= sizeof(arena) - arena_used) {
		p = arena + arena_used;
		arena_used += size;
	}
	pthread_mutex_unlock(&arena_lock);
	return p;
}

static void *makes(void *arg)
{
	for (int i = 0; i < 100; i++)
		MUST(take(100));
	wait_in_epoll(1);
	return arg;
}

int own_allocator(int argc, char **argv)
{
	pthread_t thread[4];

	(void)argc, (void)argv;
	for (int i = 0; i < 4; i++)
		MUST(pthread_create(&thread[i], NULL, makes, NULL) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	printf("%zu bytes\n", arena_used);
	return 0;
}

static char *watched;
static int faults;

static void *serve_faults(void *arg)
{
	static char page[65536];
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct uffd_msg message;
	int fd = (int)(intptr_t)arg;

	while (read(fd, &message, sizeof(message)) == (ssize_t)sizeof(message)) {
		struct uffdio_copy copy = {
			.dst = message.arg.pagefault.address & ~(uint64_t)(size - 1),
			.src = (uintptr_t)page,
			.len = size,
		};

		memset(page, 'x', size);
		faults++;
		MUST(ioctl(fd, UFFDIO_COPY, &copy) == 0);
		if (faults == 4)
			break;
	}
	return NULL;
}

/* It answers page faults of its own, as programs do that restore a checkpoint. */
int faults_in_user_space(int argc, char **argv)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	pthread_t thread;

	(void)argc, (void)argv;
	if (fd < 0) {
		puts("no userfaultfd");
		return 0;
	}
	MUST(ioctl(fd, UFFDIO_API, &api) == 0);
	watched = mmap(NULL, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)watched;
	range.range.len = 4 * size;
	MUST(ioctl(fd, UFFDIO_REGISTER, &range) == 0);
	MUST(pthread_create(&thread, NULL, serve_faults, (void *)(intptr_t)fd) == 0);
	wait_in_epoll(2);
	for (int i = 0; i < 4; i++)
		MUST(watched[(size_t)i * size] == 'x');
	pthread_join(thread, NULL);
	printf("%d faults\n", faults);
	return 0;
}
