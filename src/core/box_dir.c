#include "core/box_dir.h"

#include <errno.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>

#include "base/box_path.h"
#include "base/sys.h"
#include "base/text.h"
#include "format/box.h"

#define FOLDER_TRIES 10 /* at making a folder that somebody else deletes */
/* Of what lies in SHM: anybody can make any number of folders there, and the program waits. */
#define ENTRIES_MAX 1024
#define OPENED_MAX 8

static int fail(int error, char *reason, size_t size, const char *what, const char *path,
		const char *why)
{
	struct tacho__text t;

	tacho__text_init(&t, reason, size);
	tacho__text_put(&t, what);
	tacho__text_put(&t, path);
	tacho__text_put(&t, ": ");
	if (why)
		tacho__text_put(&t, why);
	else
		tacho__text_put_errno(&t, -error);
	tacho__text_put(&t, ".");
	return error;
}

static uint64_t number_at(const char *p)
{
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

/* The number of the mount that it is on; its file system is not asked for anything. */
static uint64_t mount_of(int fd)
{
	char path[48], text[512];
	struct tacho__text t;
	const char *at;

	tacho__text_init(&t, path, sizeof(path));
	tacho__text_put(&t, "/proc/self/fdinfo/");
	tacho__text_put_u64(&t, (uint64_t)fd);
	tacho__read_small(path, text, sizeof(text));
	at = strstr(text, "mnt_id:\t");
	return at ? number_at(at + 8) : 0;
}

/*
 * Another user may have made ours there, and mounted a file system on it that never answers: -EXDEV,
 * without asking it.
 */
static int open_dir(const char *path)
{
	size_t n = tacho__box_parent(path);
	char shared[TACHO__PATH_MAX];
	int at, parent, fd = -EXDEV;

	if (!n || n >= sizeof(shared))
		return tacho__openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	memcpy(shared, path, n);
	shared[n] = 0;
	at = tacho__openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (at < 0)
		return at;
	parent = tacho__openat(AT_FDCWD, shared, O_PATH | O_DIRECTORY, 0);
	if (parent >= 0 && mount_of(at) == mount_of(parent))
		fd = tacho__openat(at, ".", O_RDONLY | O_DIRECTORY, 0);
	if (parent >= 0)
		tacho__close(parent);
	tacho__close(at);
	return fd;
}

/*
 * Opens `path` as a folder that nobody else can have tampered with: not through a
 * link, owned by this user (or root), not writable by others.
 */
static int open_own_dir(const char *path, char *reason, size_t size)
{
	int made, fd, tries = 0;
	struct stat st;

	/* A `tacho run` that ends deletes the folder when it is empty: also just now. */
	do {
		made = tacho__mkdir(path, 0700);
		fd = open_dir(path);
	} while (fd == -ENOENT && (!made || made == -EEXIST) && ++tries < FOLDER_TRIES);
	if (fd == -ENOENT && made < 0)
		fd = made; /* why it could not be made says more */
	if (fd < 0)
		return fail(fd, reason, size, "cannot open the box folder ", path,
			    fd == -EXDEV ? "another file system is mounted there" : NULL);
	if (tacho__fstat(fd, &st) || (st.st_uid != tacho__geteuid() && st.st_uid != 0)) {
		tacho__close(fd);
		return fail(-EPERM, reason, size, "will not use the box folder ", path,
			    "it belongs to another user");
	}
	if (st.st_mode & 022) {
		tacho__close(fd);
		return fail(-EPERM, reason, size, "will not use the box folder ", path,
			    "others can write to it (chmod go-w)");
	}
	return fd;
}

static int is_in_memory(int fd)
{
	struct statfs fs;

	memset(&fs, 0, sizeof(fs));
	return !TACHO__SYS(SYS_fstatfs, fd, &fs, 0, 0, 0, 0) &&
	       ((unsigned long)fs.f_type == TMPFS_MAGIC || (unsigned long)fs.f_type == RAMFS_MAGIC);
}

static int open_tmpfs_dir(const char *path, char *reason, size_t size)
{
	int fd = open_own_dir(path, reason, size);

	if (fd < 0)
		return fd;
	if (!is_in_memory(fd)) {
		tacho__close(fd);
		return fail(-ENOTSUP, reason, size, "will not use the box folder ", path,
			    "it is not on tmpfs, where storing never waits for a disk");
	}
	return fd;
}

static void user_path(struct tacho__text *t, const char *prefix)
{
	tacho__text_put(t, prefix);
	tacho__text_put_u64(t, tacho__geteuid());
}

#define SHM "/dev/shm/"

/* The folder in SHM of that name, which begins with ours. */
static int open_named(const char *name, char *path, size_t size)
{
	char ignored[8];
	struct tacho__text t;

	tacho__text_init(&t, path, size);
	tacho__text_put(&t, SHM);
	tacho__text_put(&t, name);
	return open_tmpfs_dir(path, ignored, sizeof(ignored));
}

/* One that was made before, by open_another, if it is soon found. */
static int find_another(const char *prefix, char *path, size_t size)
{
	union {
		char bytes[2048];
		uint64_t align;
	} buf;
	int dir = tacho__openat(AT_FDCWD, SHM, O_RDONLY | O_DIRECTORY, 0), found = -ENOENT;
	int entries = 0, opened = 0;
	long n;

	while (dir >= 0 && found < 0 && entries < ENTRIES_MAX && opened < OPENED_MAX &&
	       (n = TACHO__SYS(SYS_getdents64, dir, buf.bytes, sizeof(buf), 0, 0, 0)) > 0) {
		for (long at = 0; at < n && found < 0 && opened < OPENED_MAX; entries++) {
			struct tacho__dirent *e = (struct tacho__dirent *)(buf.bytes + at);

			at += e->size;
			if (strncmp(e->name, prefix, strlen(prefix)) != 0)
				continue;
			found = open_named(e->name, path, size);
			opened++;
		}
	}
	if (dir >= 0)
		tacho__close(dir);
	return found;
}

/*
 * Places where nobody else can have made our folder: that of the session, which the environment may name, and
 * where it is without that; and root's alone.
 */
static int open_private(const struct tacho__options *options, char *path, size_t size)
{
	char ignored[8];
	struct tacho__text t;
	int fd = -ENOENT;

	for (int i = 0; i < 3 && fd < 0; i++) {
		int parent, fits;

		tacho__text_init(&t, path, size);
		if (i == 0)
			tacho__text_put(&t, options->runtime_dir);
		else if (i == 1)
			user_path(&t, TACHO__RUN_USER);
		else if (!tacho__geteuid())
			tacho__text_put(&t, "/run");
		if (!path[0])
			continue;
		/* No folder is made where it could not be used. */
		parent = tacho__openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
		fits = parent >= 0 && is_in_memory(parent);
		if (parent >= 0)
			tacho__close(parent);
		tacho__text_put(&t, "/tacho");
		if (fits)
			fd = open_tmpfs_dir(path, ignored, sizeof(ignored));
	}
	return fd;
}

/*
 * Somebody else has made what should be our folder, and there is no other place. One of a name that nobody
 * can have foreseen: tacho-UID.NUMBER, which readers look for as well.
 */
static int open_another(char *path, size_t size)
{
	char name[TACHO__PATH_MAX];
	uint32_t number = 0;
	struct tacho__text t;
	int found, random;

	tacho__text_init(&t, name, sizeof(name));
	user_path(&t, "tacho-");
	tacho__text_put(&t, ".");
	found = find_another(name, path, size);
	if (found >= 0)
		return found;
	random = tacho__openat(AT_FDCWD, "/dev/urandom", O_RDONLY, 0);
	if (random < 0 || tacho__read(random, &number, sizeof(number)) != (long)sizeof(number))
		number = (uint32_t)tacho__getpid();
	if (random >= 0)
		tacho__close(random);
	tacho__text_put_u64(&t, number);
	return open_named(name, path, size);
}

int tacho__box_dir_open(const struct tacho__options *options, char *path, size_t path_size,
			char *reason, size_t reason_size)
{
	struct tacho__text t;
	int fd, other, taken;

	reason[0] = 0;
	tacho__text_init(&t, path, path_size);
	if (options->box_dir[0]) {
		tacho__text_put(&t, options->box_dir);
		return open_tmpfs_dir(path, reason, reason_size);
	}
	user_path(&t, SHM "tacho-");
	fd = open_tmpfs_dir(path, reason, reason_size);
	if (fd >= 0)
		return fd;
	taken = fd == -EPERM || fd == -EACCES || fd == -ELOOP || fd == -ENOTDIR || fd == -EXDEV;
	other = open_private(options, path, path_size);
	/* That it is elsewhere needs a reason where somebody else is to blame. */
	if (other >= 0 && !taken)
		reason[0] = 0;
	if (other < 0 && taken)
		other = open_another(path, path_size);
	return other >= 0 ? other : fd;
}

int tacho__note_dir_open(const struct tacho__options *options, int nth)
{
	char path[TACHO__PATH_MAX], ignored[8];
	struct tacho__text t;

	tacho__text_init(&t, path, sizeof(path));
	if (nth == 0 && !options->box_dir[0])
		return -ENOENT;
	if (nth == 0)
		tacho__text_put(&t, options->box_dir);
	else
		user_path(&t, nth == 1 ? "/dev/shm/tacho-" : "/tmp/tacho-");
	return open_own_dir(path, ignored, sizeof(ignored));
}

/* Number and start time of a process from the text of its stat; 0 and 0 when there is none. */
static void read_stat(const char *path, uint64_t *pid, uint64_t *start)
{
	char buf[1024];
	const char *p;
	long n = -ENOENT;
	int fd = tacho__openat(AT_FDCWD, path, O_RDONLY, 0);

	if (fd >= 0) {
		n = tacho__read_all(fd, buf, sizeof(buf) - 1);
		tacho__close(fd);
	}
	buf[n > 0 ? n : 0] = 0;
	*pid = number_at(buf);
	/* The name, in brackets, may hold anything; the start time is field 22, the 20th
	   after it. */
	p = strrchr(buf, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	*start = number_at(p ? p + 1 : "");
}

/* In clock ticks since boot, 0 when the process is gone or it is not known. */
static uint64_t start_time_of(int pid)
{
	char path[32];
	struct tacho__text t;
	uint64_t ignored, start;

	tacho__text_init(&t, path, sizeof(path));
	tacho__text_put(&t, "/proc/");
	tacho__text_put_u64(&t, (uint64_t)pid);
	tacho__text_put(&t, "/stat");
	read_stat(path, &ignored, &start);
	return start;
}

uint32_t tacho__known_pid(uint64_t *start_time)
{
	uint64_t pid;

	read_stat("/proc/self/stat", &pid, start_time);
	return pid ? (uint32_t)pid : (uint32_t)tacho__getpid();
}

/* "<pid>-<start time>-<n>.box" into its numbers; 0 when it is not such a name. */
static int parse_name(const char *name, uint64_t *pid, uint64_t *start)
{
	uint64_t v[3];
	const char *p = name;

	for (int i = 0; i < 3; i++) {
		if (*p < '0' || *p > '9')
			return 0;
		for (v[i] = 0; *p >= '0' && *p <= '9'; p++)
			v[i] = v[i] * 10 + (uint64_t)(*p - '0');
		if (i < 2 && *p++ != '-')
			return 0;
	}
	*pid = v[0];
	*start = v[1];
	return !strcmp(p, ".box") && v[0] <= INT32_MAX;
}

/*
 * Whether an agent looks after the box and saves its window: the process may have ended just now, or
 * live in another container that shares the folder, where its number means another process or none.
 */
static int is_attended(int fd)
{
	uint32_t agent = 0;

	return tacho__pread(fd, &agent, sizeof(agent),
			    TACHO_BOX_SUPER_SIZE + offsetof(struct tacho_box_control, agent_pid)) ==
		       (long)sizeof(agent) &&
	       agent && TACHO__SYS(SYS_flock, fd, LOCK_SH | LOCK_NB, 0, 0, 0, 0) == -EWOULDBLOCK;
}

/*
 * One pass over the folder: counts the boxes of dead processes and finds the one
 * that was changed the longest time ago.
 */
static uint32_t oldest_dead(int dir, char *oldest, size_t oldest_size)
{
	union {
		char bytes[2048];
		uint64_t align;
	} buf;
	int64_t oldest_time = INT64_MAX;
	uint32_t dead = 0;
	long n;

	TACHO__SYS(SYS_lseek, dir, 0, 0 /* SEEK_SET */, 0, 0, 0);
	while ((n = TACHO__SYS(SYS_getdents64, dir, buf.bytes, sizeof(buf), 0, 0, 0)) > 0) {
		for (long at = 0; at < n;) {
			struct tacho__dirent *e = (struct tacho__dirent *)(buf.bytes + at);
			uint64_t pid, start;
			struct stat st;
			int fd;

			at += e->size;
			if (!parse_name(e->name, &pid, &start) || strlen(e->name) >= oldest_size ||
			    start_time_of((int)pid) == start)
				continue;
			fd = tacho__openat(dir, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
			if (fd < 0)
				continue;
			if (!tacho__fstat(fd, &st) && !is_attended(fd)) {
				dead++;
				if (st.st_mtim.tv_sec < oldest_time) {
					oldest_time = st.st_mtim.tv_sec;
					strcpy(oldest, e->name);
				}
			}
			tacho__close(fd);
		}
	}
	return dead;
}

void tacho__box_dir_prune(int dir, uint32_t keep)
{
	char name[64];

	/* Bounded: a folder with very many is thinned out by the next starts. */
	for (int i = 0; i < 16 && oldest_dead(dir, name, sizeof(name)) > keep; i++)
		if (tacho__unlinkat(dir, name) < 0)
			return;
}
