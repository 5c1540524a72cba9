/*
 * Paths. With ask.c, the only file of the reader that asks the operating system for anything.
 *
 * Boxes are read with pread(2) and never mapped: their owner may cut them short at any
 * moment, which would raise SIGBUS in whoever has them mapped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/box_path.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "read/ask.h"
#include "read/reader.h"

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define MAPS_MAX (16u << 20) /* bytes of /proc/PID/maps that are looked at */
/* A folder may hold more files than a process may have open. */
#define OPEN_FILES 32u

struct file_input;

struct file_pool {
	struct file_input *open[OPEN_FILES];
	unsigned hand;
	unsigned users;
};

struct file_input {
	struct tacho__input base;
	struct file_pool *pool; /* NULL: stays open */
	char *path;
	int fd; /* -1: closed for the moment */
	dev_t dev;
	ino_t ino;
};

/* ------------------------------------------------------------------- files */

static void file_shut(struct file_input *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	for (unsigned i = 0; f->pool && i < OPEN_FILES; i++)
		if (f->pool->open[i] == f)
			f->pool->open[i] = NULL;
}

/* Takes a place in the pool; whoever has it now is closed until it is read again. */
static void pool_enter(struct file_input *f)
{
	struct file_pool *p = f->pool;
	unsigned at = p->hand++ % OPEN_FILES;

	if (p->open[at])
		file_shut(p->open[at]);
	p->open[at] = f;
}

int tacho__openat_same_mount(int folder, const char *name, int flags)
{
	struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_NO_XDEV};
	long fd = syscall(SYS_openat2, folder, name, &how, sizeof(how));

	/* Linux has it since 5.6; some filters refuse what they do not know. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return openat(folder, name, flags);
	return (int)fd;
}

/* Whether it is on a tmpfs, as the kernel says: a user can also mount on the folder of their session, and
   that file system would have to be asked. */
static int is_in_memory(int fd)
{
	char path[48], text[512], *line = NULL;
	const char *at, *type;
	unsigned long wanted;
	size_t room = 0;
	int found = 0;
	FILE *mounts;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	tacho__read_small(path, text, sizeof(text));
	at = strstr(text, "mnt_id:\t");
	mounts = at ? fopen("/proc/self/mountinfo", "re") : NULL;
	if (!mounts)
		return 0;
	wanted = strtoul(at + 8, NULL, 10);
	while (!found && getline(&line, &room, mounts) > 0)
		if (strtoul(line, NULL, 10) == wanted) {
			type = strstr(line, " - ");
			found = type && (!strncmp(type + 3, "tmpfs ", 6) ||
					 !strncmp(type + 3, "ramfs ", 6));
			break;
		}
	free(line);
	fclose(mounts);
	return found;
}

int tacho__open_box_path(const char *path, int flags)
{
	size_t n = tacho__box_parent(path);
	char shared[64];
	int folder, fd, saved;

	if (!n || n >= sizeof(shared))
		return open(path, flags);
	memcpy(shared, path, n);
	shared[n] = 0;
	folder = open(shared, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -1;
	if (!strncmp(path, TACHO__RUN_USER, strlen(TACHO__RUN_USER)) && !is_in_memory(folder)) {
		close(folder);
		errno = EXDEV;
		return -1;
	}
	fd = tacho__openat_same_mount(folder, path + n, flags);
	saved = errno;
	close(folder);
	errno = saved;
	return fd;
}

int tacho__lstat_box_path(const char *path, struct stat *st)
{
	int fd = tacho__open_box_path(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), result, saved;

	if (fd < 0)
		return -1;
	result = fstat(fd, st);
	saved = errno;
	close(fd);
	errno = saved;
	return result;
}

/* 1: the name is that of a link; 2: of one that somebody else made. */
static int is_link(const char *path)
{
	struct stat st;

	if (tacho__lstat_box_path(path, &st) || !S_ISLNK(st.st_mode))
		return 0;
	return st.st_uid == geteuid() || st.st_uid == 0 ? 1 : 2;
}

int tacho__open_any(const char *path, struct stat *st)
{
	int link = is_link(path), fd, err = 0;
	int known =
		link > 1 ? -1
			 : tacho__open_box_path(path, O_PATH | O_CLOEXEC | (link ? 0 : O_NOFOLLOW));
	char through[32];

	*st = (struct stat){0};
	if (known < 0)
		return link > 1 ? -ELOOP : -errno;
	if (fstat(known, st))
		err = -errno;
	else if (S_ISLNK(st->st_mode))
		err = -ELOOP;
	else if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		err = -EINVAL;
	snprintf(through, sizeof(through), "/proc/self/fd/%d", known);
	fd = err ? -1 : open(through, OPEN_FLAGS);
	if (!err && fd < 0 && errno == ENOENT) /* there is no /proc */
		fd = open(path, OPEN_FLAGS | (link ? 0 : O_NOFOLLOW));
	if (!err && fd < 0)
		err = -errno;
	close(known);
	return err ? err : fd;
}

static int file_reopen(struct file_input *f)
{
	struct stat st;
	int fd = tacho__open_any(f->path, &st);

	if (fd < 0)
		return fd;
	if (st.st_dev != f->dev || st.st_ino != f->ino) {
		close(fd);
		return -ESTALE;
	}
	f->fd = fd;
	pool_enter(f);
	return 0;
}

int tacho__read_at(int fd, uint64_t offset, void *to, size_t size)
{
	size_t got = 0;

	if (offset > INT64_MAX - size)
		return -ENODATA;
	while (got < size) {
		ssize_t n = pread(fd, (char *)to + got, size - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		got += (size_t)n;
	}
	return 0;
}

static int fd_read(struct tacho__input *in, uint64_t offset, void *to, size_t size)
{
	return tacho__read_at(((struct tacho__fd_input *)in)->fd, offset, to, size);
}

/* What is known of an open file. */
static void describe_input(struct tacho__input *in, const char *path, const struct stat *st)
{
	in->path = path;
	in->size = st->st_size > 0 ? (uint64_t)st->st_size : 0;
	in->backed = (uint64_t)st->st_blocks * 512;
	if (in->backed > in->size)
		in->backed = in->size;
	in->uid = st->st_uid;
	in->rights = (struct tacho__rights){st->st_uid, st->st_gid, UINT64_MAX};
}

int tacho__input_fd(struct tacho__fd_input *in, int fd)
{
	struct stat st;

	*in = (struct tacho__fd_input){.base = {.read_at = fd_read}, .fd = fd};
	if (fstat(fd, &st))
		return -errno;
	describe_input(&in->base, "", &st);
	return 0;
}

static int file_read(struct tacho__input *in, uint64_t offset, void *to, size_t size)
{
	struct file_input *f = (struct file_input *)in;
	int err = f->fd < 0 ? file_reopen(f) : 0;

	/* It may have been longer when it was opened. */
	return err ? err : tacho__read_at(f->fd, offset, to, size);
}

static void file_close(struct tacho__input *in)
{
	struct file_input *f = (struct file_input *)in;

	file_shut(f);
	if (f->pool && --f->pool->users == 0)
		free(f->pool);
	free(f->path);
	free(f);
}

/* Takes fd over, also when it fails. */
static struct file_input *file_input(int fd, const char *path, const struct stat *st,
				     struct file_pool *pool)
{
	struct file_input *f = calloc(1, sizeof(*f));
	char *copy = strdup(path);

	if (!f || !copy) {
		close(fd);
		free(f);
		free(copy);
		return NULL;
	}
	f->path = copy;
	describe_input(&f->base, copy, st);
	f->base.read_at = file_read;
	f->base.close = file_close;
	f->fd = fd;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->pool = pool;
	if (pool) {
		pool->users++;
		pool_enter(f);
	}
	return f;
}

/* -------------------------------------------------------------------- host */

/* 1: the box was made since this host was started, 0: not, -1: cannot be told. */
static int is_same_boot(const uint8_t boot_id[16])
{
	static const uint8_t unknown[16];
	uint8_t ours[16] = {0};
	char text[64] = "";
	unsigned n = 0;

	if (!memcmp(boot_id, unknown, sizeof(unknown)) ||
	    tacho__read_small("/proc/sys/kernel/random/boot_id", text, sizeof(text)) <= 0)
		return -1;
	for (const char *p = text; *p && n < 32; p++) {
		unsigned digit;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (unsigned)(*p - 'a') + 10;
		else
			continue;
		ours[n / 2] = (uint8_t)((unsigned)ours[n / 2] << 4 | digit);
		n++;
	}
	return !memcmp(ours, boot_id, sizeof(ours));
}

struct stat_line {
	char state;
	uint32_t parent;
	unsigned long threads;
	uint64_t start_time;
};

/* What /proc/PID/stat says: 1 and its fields, 0 if it cannot be read. */
static int read_stat(uint32_t pid, struct stat_line *line)
{
	char path[64], text[1024];
	unsigned long long start;
	char *p;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (tacho__read_small(path, text, sizeof(text)) <= 0)
		return 0;
	/* The name of the process may hold anything, parentheses too. */
	p = strrchr(text, ')');
	if (!p || p[1] != ' ')
		return 0;
	if (sscanf(p + 2, "%c %" SCNu32, &line->state, &line->parent) != 2)
		return 0;
	p += 2;
	for (int field = 3; field < 20 && p; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (!p || sscanf(p, "%lu %*s %llu", &line->threads, &start) != 2)
		return 0;
	line->start_time = start;
	return 1;
}

void tacho__rights_of_box(struct tacho__rights *r, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat_line line;
	unsigned long long start;
	uint32_t pid;

	if (sscanf(slash ? slash + 1 : path, "%" SCNu32 "-%llu-", &pid, &start) == 2 &&
	    read_stat(pid, &line) && line.start_time == start)
		tacho__process_lower(pid, r);
}

/* 1: one of the mappings is of that file, 0: none is, -1: cannot be told. */
static long find_mapped(void *arg, char *text, size_t size)
{
	const ino_t *ino = arg;
	unsigned long long number;

	for (char *line = text, *end; *line; line = end + 1) {
		end = strchrnul(line, '\n');
		if (sscanf(line, "%*s %*s %*s %*s %llu", &number) == 1 && number == *ino)
			return 1;
		if (!*end)
			break;
	}
	return size && size < MAPS_MAX ? 0 : -1;
}

/* Inode numbers alone are compared, for devices have different numbers in different views. */
static int is_mapped(uint32_t pid, ino_t ino)
{
	long found = tacho__ask_process(pid, "maps", MAPS_MAX, find_mapped, &ino);

	return found < 0 ? -1 : (int)found;
}

/*
 * Whether the process that made the box still runs, and still is that program: exec
 * keeps the pid and the start time but not the mapping.
 */
static enum tacho_alive is_alive(const struct tacho_box_super *s, int same_boot, ino_t ino,
				 uint32_t owner, struct stat_line *line)
{
	if (!same_boot || s->pid == 0 || s->pid > INT32_MAX)
		return TACHO_ALIVE_NO;
	if (!read_stat(s->pid, line))
		return kill((pid_t)s->pid, 0) && errno == ESRCH ? TACHO_ALIVE_NO
								: TACHO_ALIVE_UNKNOWN;
	if (line->start_time != s->start_time || !tacho__process_may_own(s->pid, owner))
		return TACHO_ALIVE_NO;
	/* A leader that has ended is a zombie while its threads go on. */
	if ((line->state == 'Z' || line->state == 'X') && line->threads <= 1)
		return TACHO_ALIVE_NO;
	return is_mapped(s->pid, ino) ? TACHO_ALIVE_YES : TACHO_ALIVE_NO;
}

/* Of a process that runs. */
static void ask_process(struct tacho__host *host, const struct tacho_box_super *s,
			const struct stat_line *line)
{
	tacho__ask_command_line(s->pid, host->command_line, sizeof(host->command_line),
				s->whole_arguments);
	host->parent_pid = line->parent;
}

static void ask_host(struct tacho__host *host, const struct tacho_box_super *s,
		     const struct file_input *f)
{
	struct stat_line line;
	int same_boot = is_same_boot(s->boot_id);
	int our_clock = s->clock == TACHO_CLOCK_MONOTONIC;

	*host = (struct tacho__host){.alive = is_alive(s, same_boot, f->ino, f->base.uid, &line),
				     .earlier = same_boot == 0};
	if (host->alive == TACHO_ALIVE_YES)
		ask_process(host, s, &line);
#if defined(__x86_64__)
	our_clock |= s->clock == TACHO_CLOCK_TSC;
	host->arch = 62; /* EM_X86_64 */
#elif defined(__aarch64__)
	our_clock |= s->clock == TACHO_CLOCK_CNTVCT;
	host->arch = 183; /* EM_AARCH64 */
#endif
	if (same_boot != 1 || !our_clock)
		return;
	host->same_boot = 1;
	tacho__clock_pair(s->clock != TACHO_CLOCK_MONOTONIC, &host->now.ticks, &host->now.mono_ns);
	host->now.real_ns = tacho__clock_ns(CLOCK_REALTIME);
}

/* ------------------------------------------------------------------- boxes */

/* Boxes are trusted as little as their owner: nobody is made to read another's. */
static int check_box(const struct file_input *f, const struct tacho_box_super *s, int link,
		     char *message, size_t message_size)
{
	if (link) {
		tacho__say(
			message, message_size,
			"cannot read %s: it is a symbolic link, and a box never is; give the box "
			"itself if you trust it",
			f->path);
		return -ELOOP;
	}
	if (f->base.uid == geteuid() || (geteuid() == 0 && f->base.uid == s->uid))
		return 0;
	if (geteuid() == 0)
		tacho__say(
			message, message_size,
			"cannot read %s: it belongs to user %u but says that user %u recorded it",
			f->path, (unsigned)f->base.uid, s->uid);
	else
		tacho__say(message, message_size,
			   "cannot read %s: it belongs to user %u; try as that user or as root",
			   f->path, (unsigned)f->base.uid);
	return -EPERM;
}

static int add_file(struct tacho_reader *r, struct file_input *f, int link, char *message,
		    size_t message_size)
{
	struct tacho_box_super super;
	struct tacho__host host;
	int err;

	if (!tacho__is_box(&f->base) || tacho__input_read(&f->base, 0, &super, sizeof(super)))
		return tacho__reader_add(r, &f->base, NULL, message, message_size);
	err = check_box(f, &super, link, message, message_size);
	if (err) {
		f->base.close(&f->base);
		return err;
	}
	ask_host(&host, &super, f);
	/* A copy that root made of a user's box. */
	tacho__rights_lower(&f->base.rights,
			    &(struct tacho__rights){super.uid, TACHO__NOBODY, UINT64_MAX});
	tacho__rights_of_box(&f->base.rights, f->path);
	return tacho__reader_add(r, &f->base, &host, message, message_size);
}

/* ----------------------------------------------------------------- folders */

static int is_trace_name(const struct dirent *entry)
{
	size_t size = strlen(entry->d_name);

	return size > 6 && entry->d_name[0] != '.' && !strcmp(entry->d_name + size - 6, ".tacho");
}

static int add_from_folder(struct tacho_reader *r, const char *path, struct file_pool *pool)
{
	char message[512] = "";
	struct file_input *f;
	struct stat st;
	int fd = tacho__open_any(path, &st);
	int err;

	if (fd < 0 || !S_ISREG(st.st_mode)) {
		snprintf(message, sizeof(message), "it cannot be opened: %s",
			 fd < 0 && fd != -EINVAL ? strerror(-fd) : "it is not a regular file");
		if (fd >= 0)
			close(fd);
		tacho__problem_path(r, path, "unreadable-file", message);
		return 0;
	}
	f = file_input(fd, path, &st, pool);
	if (!f)
		return -ENOMEM;
	if (tacho__is_box(&f->base)) {
		f->base.close(&f->base);
		tacho__problem_path(r, path, "unreadable-file", "it is a box and not a trace file");
		return 0;
	}
	err = tacho__reader_add(r, &f->base, NULL, message, sizeof(message));
	if (err == -ENOMEM)
		return err;
	if (err) {
		tacho__problem_path(r, path, "unreadable-file", message);
		return 0;
	}
	return 1;
}

/* Returns how many files could be read. */
static int add_folder(struct tacho_reader *r, const char *path, char *message, size_t message_size)
{
	struct file_pool *pool = calloc(1, sizeof(*pool));
	struct dirent **entries = NULL;
	int count = pool ? scandir(path, &entries, is_trace_name, alphasort) : -1;
	int read = 0, err = count < 0 ? -errno : 0;

	if (pool)
		pool->users = 1;
	for (int i = 0; i < count; i++) {
		size_t size = strlen(path) + strlen(entries[i]->d_name) + 2;
		char *name = err ? NULL : malloc(size);

		if (name) {
			snprintf(name, size, "%s/%s", path, entries[i]->d_name);
			int result = add_from_folder(r, name, pool);

			if (result < 0)
				err = result;
			else
				read += result;
		} else if (!err) {
			err = -ENOMEM;
		}
		free(name);
		free(entries[i]);
	}
	free(entries);
	if (pool && --pool->users == 0)
		free(pool);
	if (err) {
		tacho__say(message, message_size, "cannot read the folder %s: %s", path,
			   strerror(-err));
		return err;
	}
	if (!read)
		tacho__say(message, message_size,
			   count ? "cannot read the folder %s: not one of its %d trace files can "
				   "be read"
				 : "cannot read the folder %s: it holds no trace files (*.tacho)",
			   path, count);
	return read ? 0 : -EBADMSG;
}

/* -------------------------------------------------------------------- open */

static int open_path(struct tacho_reader *r, const char *path, char *message, size_t message_size)
{
	struct file_input *f;
	struct stat st;
	int fd = tacho__open_any(path, &st);

	if (fd >= 0 && S_ISDIR(st.st_mode)) {
		close(fd);
		return add_folder(r, path, message, message_size);
	}
	if (fd >= 0) {
		f = file_input(fd, path, &st, NULL);
		return f ? add_file(r, f, is_link(path), message, message_size) : -ENOMEM;
	}
	if (fd == -EINVAL)
		tacho__say(message, message_size,
			   "cannot read %s: it is neither a file nor a folder; give a box, a trace "
			   "file or a folder of trace files",
			   path);
	else if (fd == -ELOOP)
		tacho__say(message, message_size,
			   "cannot read %s: it is a symbolic link that another user made; give the "
			   "file itself if you trust it",
			   path);
	else if (fd == -EXDEV)
		tacho__say(message, message_size,
			   "cannot read %s: another file system is mounted there, which might not "
			   "answer; umount it",
			   path);
	else
		tacho__say(message, message_size,
			   "cannot open %s: %s; try 'tacho ls' for the boxes there are", path,
			   strerror(-fd));
	return fd;
}

/* A reader to which something was added, or could not be: `err` says which. */
static int open_end(struct tacho_reader **out, struct tacho_reader *r, const char *path, int err,
		    char *message, size_t message_size)
{
	*out = NULL;
	if (!err)
		err = tacho__reader_settle(r, message, message_size);
	if (err && message && message_size && !message[0])
		tacho__say(message, message_size, "cannot read %s: %s", path,
			   err == -ENOMEM ? "it needs more memory than there is, or than its size "
					    "can justify"
					  : strerror(-err));
	if (err) {
		tacho_read_close(r);
		return err;
	}
	*out = r;
	return 0;
}

int tacho_read_open(struct tacho_reader **out, const char *path,
		    const struct tacho_read_options *options, char *message, size_t message_size)
{
	return tacho_read_open_all(out, &path, 1, options, message, message_size);
}

int tacho_read_open_all(struct tacho_reader **out, const char *const *paths, uint32_t count,
			const struct tacho_read_options *options, char *message,
			size_t message_size)
{
	struct tacho_reader *r;
	const char *path = "nothing";
	int err = tacho__reader_new(&r, options, message, message_size);

	for (uint32_t i = 0; !err && i < count; i++) {
		path = paths[i];
		err = open_path(r, path, message, message_size);
	}
	return open_end(out, r, path, err, message, message_size);
}

/* `news`: a box, and only this of it; NULL: all, and of a trace file too. */
static int open_fd(struct tacho_reader **out, int fd, const char *path,
		   const struct tacho_read_options *options, const struct tacho__news *news,
		   char *message, size_t message_size)
{
	struct tacho_reader *r;
	struct file_input *f = NULL;
	struct stat st = {0};
	int err = tacho__reader_new(&r, options, message, message_size);
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (!err && (own < 0 || fstat(own, &st)))
		err = -errno;
	if (!err)
		f = file_input(own, path, &st, NULL);
	else if (own >= 0)
		close(own);
	if (!err && !f)
		err = -ENOMEM;
	if (!err && news && !tacho__is_box(&f->base)) {
		f->base.close(&f->base);
		tacho__say(message, message_size, "cannot read %s: it is not a box", path);
		err = -EBADMSG;
	}
	if (!err) {
		r->news = news;
		err = add_file(r, f, 0, message, message_size);
		r->news = NULL;
	}
	return open_end(out, r, path, err, message, message_size);
}

int tacho__read_news(struct tacho_reader **out, int fd, const char *path,
		     const struct tacho__news *news, char *message, size_t message_size)
{
	return open_fd(out, fd, path, NULL, news, message, message_size);
}

int tacho__read_fd(struct tacho_reader **out, int fd, const char *path,
		   const struct tacho_read_options *options, char *message, size_t message_size)
{
	return open_fd(out, fd, path, options, NULL, message, message_size);
}
