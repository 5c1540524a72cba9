/*
 * A daemon that begins as root, waits once, gives up its rights, and is then somebody else's: it writes into
 * what it still has mapped of boxes of root's.
 *
 *   dropper HOW USER DONE
 *
 * HOW: `libc` through libc, `call` through syscall(3), `raw` by instructions of its own, `lie` the same and its
 * box names another process, `capabilities` keeps the user alone, `fork` in a child that has recorded nothing,
 * `often` changes its effective user for a while, a hundred times, and `stay` gives up nothing. In boxes, the
 * folder /aaaa/ becomes /bbbb/. DONE gets how many boxes of root's it could write to, and in how many places.
 *
 * It knows docs/format.md and nothing else of tacho.
 */
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"

enum { SUPER_PID = 32, OFTEN = 100 };

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) void burn_here(double end)
{
	for (volatile unsigned i = 0; cpu() < end; i++)
		;
}

static void work(int loop)
{
	struct epoll_event event;

	for (int i = 0; i < 3; i++) {
		epoll_wait(loop, &event, 1, 1);
		burn_here(cpu() + 0.1);
	}
	epoll_wait(loop, &event, 1, 1);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};

	return (int)TACHO__SYS(SYS_capset, &head, none, 0, 0, 0, 0);
}

static int change_often(uid_t user)
{
	int bad = 0;

	for (int i = 0; i < OFTEN; i++)
		bad |= seteuid(user) | seteuid(0);
	return bad;
}

/* 0: it is done. */
static int drop(const char *how, uid_t user)
{
	if (!strcmp(how, "stay"))
		return 0;
	if (!strcmp(how, "often"))
		return change_often(user);
	if (!strcmp(how, "capabilities"))
		return drop_capabilities();
	if (setgroups(0, NULL))
		return 1;
	if (!strcmp(how, "call"))
		return syscall(SYS_setresgid, user, user, user) ||
		       syscall(SYS_setresuid, user, user, user);
	if (!strcmp(how, "libc") || !strcmp(how, "fork"))
		return setresgid(user, user, user) || setresuid(user, user, user);
	return TACHO__SYS(SYS_setresgid, user, user, user, 0, 0, 0) ||
	       TACHO__SYS(SYS_setresuid, user, user, user, 0, 0, 0);
}

static unsigned change(uint8_t *at, uint8_t *end)
{
	unsigned places = 0;

	for (; (at = memmem(at, (size_t)(end - at), "/aaaa/", 6)); at += 6, places++)
		memcpy(at, "/bbbb/", 6);
	return places;
}

/* Boxes of root's that can be written to. */
static unsigned attack(const char *how, unsigned *places)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	const uint32_t init = 1;
	unsigned boxes = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start, end, offset;
		char perms[5];

		if (!strstr(line, "/tacho-0/") || !strstr(line, ".box") ||
		    sscanf(line, "%lx-%lx %4s %lx", &start, &end, perms, &offset) != 4 ||
		    perms[1] != 'w' || perms[3] != 's')
			continue;
		boxes++;
		*places += change((uint8_t *)start, (uint8_t *)end);
		if (!strcmp(how, "lie") && !offset)
			memcpy((uint8_t *)start + SUPER_PID, &init, sizeof(init));
	}
	if (maps)
		fclose(maps);
	return boxes;
}

int main(int argc, char **argv)
{
	struct epoll_event event;
	int loop = epoll_create1(0), waits;
	unsigned boxes, places = 0;
	FILE *done;

	if (argc < 4)
		return 2;
	work(loop);
	if (!strcmp(argv[1], "fork") && fork()) {
		for (;;)
			epoll_wait(loop, &event, 1, 600000);
	}
	if (drop(argv[1], (uid_t)atoi(argv[2])))
		return 3;
	boxes = attack(argv[1], &places);
	done = fopen(argv[3], "w");
	if (!done)
		return 4;
	fprintf(done, "%u %u %d\n", boxes, places, (int)getpid());
	fclose(done);
	/* The recorder finds out when a chunk is full. */
	waits = strcmp(argv[1], "raw") && strcmp(argv[1], "lie") ? 1 : 600000;
	for (;;)
		epoll_wait(loop, &event, 1, waits);
}
