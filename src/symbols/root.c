#include "symbols/root.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"

static struct kept {
	uint32_t pid;
	uint64_t start_time;
	int fd;
	unsigned users; /* boxes of the process */
} * kept;
static size_t kept_count;

static struct kept *find(uint32_t pid, uint64_t start_time)
{
	for (size_t i = 0; i < kept_count; i++)
		if (kept[i].pid == pid && kept[i].start_time == start_time)
			return &kept[i];
	return NULL;
}

/* The two are asked of the kernel alone: a file system that the process has mounted as its root may
   never answer. */
static int is_ours(uint32_t pid)
{
	struct stat ours, its;
	char path[64], root[2];

	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", pid);
	if (stat("/proc/self/ns/mnt", &ours) < 0 || stat(path, &its) < 0)
		return 1;
	if (ours.st_dev != its.st_dev || ours.st_ino != its.st_ino)
		return 0;
	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	return readlink(path, root, sizeof(root)) == 1;
}

/* -1: it is ours, cannot be opened, or the process is gone. */
static int open_root(uint32_t pid, uint64_t start_time)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	/* After the opening: the number may be another process by now. */
	if (!is_ours(pid) && tacho__process_start_time(pid) == start_time)
		return fd;
	close(fd);
	return -1;
}

int tacho__root_keep(uint32_t pid, uint64_t start_time)
{
	struct kept *k = find(pid, start_time), *grown;
	int fd;

	if (k) {
		k->users++;
		return 1;
	}
	fd = open_root(pid, start_time);
	if (fd < 0)
		return 0;
	grown = reallocarray(kept, kept_count + 1, sizeof(*grown));
	if (!grown) {
		close(fd);
		return 0;
	}
	kept = grown;
	kept[kept_count++] = (struct kept){pid, start_time, fd, 1};
	return 1;
}

void tacho__root_forget(uint32_t pid, uint64_t start_time)
{
	struct kept *k = find(pid, start_time);

	if (!k || --k->users)
		return;
	close(k->fd);
	*k = kept[--kept_count];
}

int tacho__root_open(uint32_t pid, uint64_t start_time)
{
	const struct kept *k = find(pid, start_time);

	return k ? fcntl(k->fd, F_DUPFD_CLOEXEC, 3) : open_root(pid, start_time);
}

int tacho__root_open_file(int root, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}
