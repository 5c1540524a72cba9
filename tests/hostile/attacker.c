/*
 * Changes a box under whoever reads it, as its owner may, until it is killed:
 *
 *   attacker triggers BOX        makes triggers faster than they can be read, in a ring so long that none
 *                                is overwritten meanwhile, and calls for attention; says when it begins
 *   attacker noise BOX SEED      numbers of the head, of the control area and of what lies behind
 *   attacker cut BOX SEED        makes the file short and long again
 *   attacker user BOX UID        says now that it is that user's, now that it is the owner's
 *
 * or has a box of its own, where it is recorded:
 *
 *   attacker hold FILE           holds the lock of its memory: it maps a file of which a part is being
 *                                read, and that takes for ever
 *
 * It knows docs/format.md and nothing else of tacho.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { UID = 36, SLOTS_USED = 120, TRIGGER_COUNT = 140, REGIONS = 192, REGION_SIZE = 24 };
enum { REGION_BYTES = 8, REGION_ENTRIES = 20 };
enum {
	CONTROL,
	TRIGGERS = 2,
	REGION_COUNT = 12,
	TRIGGER_SIZE = 256,
	TRIGGER_RING = 64,
	LONG = 65536
};

static uint8_t *box;
static uint64_t size, state;

/* xorshift: the same for the same seed. */
static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t offset_of(int region)
{
	uint64_t offset;

	memcpy(&offset, box + REGIONS + region * REGION_SIZE, sizeof(offset));
	return offset < size - 4096 ? offset : 4096;
}

static void call(void)
{
	uint32_t *wake_seq = (uint32_t *)(box + offset_of(CONTROL));

	__atomic_add_fetch(wake_seq, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, wake_seq, FUTEX_WAKE, 1000, NULL, NULL, 0);
}

static void set_trigger(uint8_t *ring, uint32_t entries, uint32_t n)
{
	__atomic_store_n((uint32_t *)(ring + (n - 1) % entries * TRIGGER_SIZE), n,
			 __ATOMIC_RELEASE);
}

/* The long ring is behind all else; the short one is for who has looked before. */
static void make_triggers(uint64_t begin)
{
	const uint64_t bytes = (uint64_t)LONG * TRIGGER_SIZE;
	uint32_t *count = (uint32_t *)(box + TRIGGER_COUNT), entries = LONG;
	uint8_t *region = box + REGIONS + TRIGGERS * REGION_SIZE;
	uint8_t *ring = box + offset_of(TRIGGERS);

	memcpy(region, &begin, sizeof(begin));
	memcpy(region + REGION_BYTES, &bytes, sizeof(bytes));
	memcpy(region + REGION_ENTRIES, &entries, sizeof(entries));
	puts("begun");
	fflush(stdout);
	for (uint32_t n = *count + 1;; n++) {
		set_trigger(ring, TRIGGER_RING, n);
		set_trigger(box + begin, LONG, n);
		__atomic_store_n(count, n, __ATOMIC_RELEASE);
		if (n % 16 == 0)
			call();
	}
}

static uint64_t worst(void)
{
	static const uint64_t values[] = {0,	     1,		 UINT32_MAX, UINT64_MAX,
					  INT64_MAX, 1ull << 40, 4096};
	unsigned n = (unsigned)(draw() % (sizeof(values) / sizeof(values[0]) + 1));

	return n < sizeof(values) / sizeof(values[0]) ? values[n] : draw();
}

/* The head says where all else is, and how much of it there is. */
static void make_noise(void)
{
	for (unsigned n = 0;; n++) {
		uint64_t at = draw() % size, value = worst();

		if (n % 4 == 0)
			at = SLOTS_USED +
			     draw() % (REGIONS + REGION_COUNT * REGION_SIZE - SLOTS_USED);
		else if (n % 4 == 1)
			at = offset_of(CONTROL) + draw() % 512;
		at &= ~(uint64_t)(n % 2 ? 3 : 7);
		memcpy(box + at, &value, n % 2 ? 4 : 8);
		if (n % 64 == 0)
			call();
		if (n % 4096 == 0)
			usleep(1000);
	}
}

static void cut(int fd)
{
	for (;;) {
		if (ftruncate(fd, (off_t)(draw() % size)) || ftruncate(fd, (off_t)size))
			exit(1);
		usleep((useconds_t)(draw() % 2000));
	}
}

static void change_user(uint32_t other)
{
	uint32_t *uid = (uint32_t *)(box + UID), own = *uid;

	for (;;) {
		__atomic_store_n(uid, other, __ATOMIC_RELEASE);
		__atomic_store_n(uid, own, __ATOMIC_RELEASE);
	}
}

static void *read_file(void *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char c;

	return fd < 0 || read(fd, &c, 1) < 0 ? path : NULL;
}

static void hold(char *path)
{
	struct timespec until_it_reads = {0, 300000000};
	int loop = epoll_create1(EPOLL_CLOEXEC), fd;
	struct epoll_event event;
	pthread_t thread;

	for (int i = 0; i < 20; i++)
		epoll_wait(loop, &event, 1, 1);
	pthread_create(&thread, NULL, read_file, path);
	nanosleep(&until_it_reads, NULL);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	pause();
}

int main(int argc, char **argv)
{
	unsigned long number = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	struct stat st;
	int fd;

	if (argc > 2 && strcmp(argv[1], "hold") == 0)
		hold(argv[2]);
	fd = argc < 3 ? -1 : open(argv[2], O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || st.st_size < 1 << 16) {
		fprintf(stderr, "attacker: no box\n");
		return 1;
	}
	size = (uint64_t)st.st_size;
	state = number * 2654435769u + 1;
	if (strcmp(argv[1], "cut") == 0)
		cut(fd);
	if (strcmp(argv[1], "triggers") == 0) {
		size += (uint64_t)LONG * TRIGGER_SIZE;
		if (ftruncate(fd, (off_t)size))
			return 1;
	}
	box = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (box == MAP_FAILED)
		return 1;
	if (strcmp(argv[1], "triggers") == 0)
		make_triggers((uint64_t)st.st_size);
	else if (strcmp(argv[1], "noise") == 0)
		make_noise();
	else if (strcmp(argv[1], "user") == 0)
		change_user((uint32_t)number);
	return 1;
}
