#include "agent/segment_folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SERVICE_HEAD "The segments in this folder are of the service: "
#define SERVICE_MAX 512u
#define TIME_SIZE 20u /* 20261115T133200.123Z */
/* What is kept free under the cap, so that one more block does not break it. */
#define ROOM_MAX (1u << 20)
#define ROOM_PART 16u

static int fail(char *message, size_t size, int err, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static int fail(char *message, size_t size, int err, const char *format, ...)
{
	va_list args;

	if (message && size) {
		va_start(args, format);
		vsnprintf(message, size, format, args);
		va_end(args);
	}
	return err;
}

/* -------------------------------------------------------------------- names */

static void make_prefix(struct tacho__folder *f)
{
	size_t at = 0;

	memcpy(f->prefix, "tacho-", 6);
	at = 6;
	for (const char *p = f->service; *p && at < sizeof(f->prefix) - 2; p++) {
		unsigned char c = (unsigned char)*p;

		f->prefix[at++] = (char)(isalnum(c) || c == '.' || c == '_' || c == '-' ? c : '_');
	}
	f->prefix[at++] = '-';
	f->prefix[at] = 0;
}

static bool is_time(const char *p)
{
	static const char shape[] = "00000000T000000.000Z";

	for (size_t i = 0; i < TIME_SIZE; i++)
		if (shape[i] == '0' ? !isdigit((unsigned char)p[i]) : p[i] != shape[i])
			return false;
	return true;
}

/* Digits and what ends them. */
static const char *take_number(const char *p, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)*p))
		return NULL;
	errno = 0;
	*number = strtoull(p, &end, 10);
	return errno ? NULL : end;
}

static bool parse_name(const struct tacho__folder *f, const char *name,
		       struct tacho__folder_file *file)
{
	size_t size = strlen(name), prefix = strlen(f->prefix);
	const char *p = name + prefix;
	uint64_t pid = 0;

	if (size >= sizeof(file->name) || strncmp(name, f->prefix, prefix) ||
	    size < prefix + TIME_SIZE || !is_time(p) || p[TIME_SIZE] != '-')
		return false;
	p = take_number(p + TIME_SIZE + 1, &pid);
	if (!p || *p != '-' || pid > UINT32_MAX)
		return false;
	p = take_number(p + 1, &file->number);
	if (!p || strncmp(p, ".tacho", 6))
		return false;
	p += 6;
	file->part = !strcmp(p, TACHO__PART);
	if (*p && !file->part)
		return false;
	file->pid = (uint32_t)pid;
	memcpy(file->name, name, size + 1);
	return true;
}

void tacho__folder_name(const struct tacho__folder *f, char name[TACHO__SEGMENT_NAME_MAX],
			uint32_t pid, uint64_t number)
{
	struct timespec now;
	struct tm tm;
	char when[64];

	clock_gettime(CLOCK_REALTIME, &now);
	if (!gmtime_r(&now.tv_sec, &tm) || !strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &tm))
		strcpy(when, "19700101T000000");
	snprintf(name, TACHO__SEGMENT_NAME_MAX, "%s%s.%03ldZ-%" PRIu32 "-%06" PRIu64 ".tacho%s",
		 f->prefix, when, now.tv_nsec / 1000000, pid, number, TACHO__PART);
}

/* ------------------------------------------------------------------ service */

static bool is_trace_name(const char *name)
{
	size_t size = strlen(name);

	return (size > 6 && !strcmp(name + size - 6, ".tacho")) ||
	       (size > 11 && !strcmp(name + size - 11, ".tacho" TACHO__PART));
}

static DIR *open_listing(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d && fd >= 0)
		close(fd);
	return d;
}

/* 1: there are trace files, of whomever; 0: none; or -errno. */
static int has_traces(int dir)
{
	DIR *d = open_listing(dir);
	struct dirent *e;
	int found = 0;

	if (!d)
		return -errno;
	while (!found && (e = readdir(d)))
		found = is_trace_name(e->d_name);
	closedir(d);
	return found;
}

static void service_text(const struct tacho__folder *f, char *text, size_t size)
{
	snprintf(text, size, "%s%s\n", SERVICE_HEAD, f->service);
	for (char *p = text; p[0] && p[1]; p++)
		if ((unsigned char)*p < ' ')
			*p = '_';
}

/* The file is there: is it ours, and does another agent hold it? */
static int service_check(struct tacho__folder *f, char *message, size_t message_size)
{
	char ours[SERVICE_MAX], theirs[SERVICE_MAX];
	size_t head = strlen(SERVICE_HEAD);
	struct stat st;
	ssize_t n;

	if (fstat(f->lock, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return fail(message, message_size, -EPERM,
			    "cannot write segments to %s: its " TACHO__SERVICE_FILE
			    " belongs to another user; give another folder",
			    f->path);
	service_text(f, ours, sizeof(ours));
	n = pread(f->lock, theirs, sizeof(theirs) - 1, 0);
	theirs[n > 0 ? n : 0] = 0;
	if (strcmp(ours, theirs)) {
		theirs[strcspn(theirs, "\n")] = 0;
		return fail(message, message_size, -EPERM,
			    "cannot write segments of %s to %s: it holds segments of %s; give "
			    "another folder or the same service",
			    f->service, f->path,
			    strncmp(theirs, SERVICE_HEAD, head) ? "something else" : theirs + head);
	}
	if (flock(f->lock, LOCK_EX | LOCK_NB))
		return fail(message, message_size, errno == EWOULDBLOCK ? -EBUSY : -errno,
			    "cannot write segments to %s: another agent writes there; stop it or "
			    "give another folder",
			    f->path);
	return 0;
}

/* -EEXIST: somebody else was faster. */
static int service_make(struct tacho__folder *f, char *message, size_t message_size)
{
	char name[64], text[SERVICE_MAX];
	int traces = has_traces(f->dir);
	int fd, err = 0;

	if (traces > 0)
		return fail(message, message_size, -EPERM,
			    "cannot write segments to %s: it holds trace files that are not "
			    "segments of a service; give an empty folder",
			    f->path);
	snprintf(name, sizeof(name), TACHO__SERVICE_FILE ".%d", (int)getpid());
	service_text(f, text, sizeof(text));
	fd = openat(f->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		err = -errno;
	else if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = errno ? -errno : -EIO;
	else if (flock(fd, LOCK_EX | LOCK_NB))
		err = -errno;
	/* Under its own name it is whole, and locked. */
	else if (linkat(f->dir, name, f->dir, TACHO__SERVICE_FILE, 0))
		err = -errno;
	if (fd >= 0)
		unlinkat(f->dir, name, 0);
	if (!err) {
		f->lock = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return fail(message, message_size, err,
		    "cannot write segments to %s: %s; give a folder "
		    "that can be written to",
		    f->path, strerror(-err));
}

static int service_take(struct tacho__folder *f, char *message, size_t message_size)
{
	int err = -EEXIST;

	for (int tries = 0; err == -EEXIST && tries < 3; tries++) {
		f->lock = openat(f->dir, TACHO__SERVICE_FILE,
				 O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (f->lock >= 0)
			err = service_check(f, message, message_size);
		else if (errno == ENOENT)
			err = service_make(f, message, message_size);
		else
			err = fail(
				message, message_size, -errno,
				"cannot write segments to %s: cannot open its " TACHO__SERVICE_FILE
				": %s",
				f->path, strerror(errno));
	}
	if (err && f->lock >= 0) {
		close(f->lock);
		f->lock = -1;
	}
	return err;
}

/* ------------------------------------------------------------------- folder */

/* Segments are read, appended to and deleted by their names: nobody else may choose those. */
static int folder_is_ours(const struct tacho__folder *f, char *message, size_t message_size)
{
	struct stat st;

	if (!fstat(f->dir, &st) && st.st_uid == geteuid() && !(st.st_mode & 022))
		return 0;
	return fail(
		message, message_size, -EPERM,
		"cannot write segments to %s: it belongs to another user, or others can write to "
		"it; give a folder of your own",
		f->path);
}

static int folder_open(struct tacho__folder *f, bool make, char *message, size_t message_size)
{
	bool made = make && !mkdir(f->path, 0700);
	int err;

	f->lock = -1;
	f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dir < 0)
		return fail(message, message_size, -errno,
			    "cannot write segments to %s: %s; give a folder that can be made",
			    f->path, strerror(errno));
	err = folder_is_ours(f, message, message_size);
	if (!err)
		err = service_take(f, message, message_size);
	if (err) {
		close(f->dir);
		f->dir = -1;
		if (made)
			rmdir(f->path);
	}
	return err;
}

int tacho__folder_take(struct tacho__folder *f, const char *path, const char *service,
		       uint64_t max_bytes, char *message, size_t message_size)
{
	struct tacho__folder_list list = {0};
	int err = -ENOMEM;

	*f = (struct tacho__folder){.dir = -1, .lock = -1, .max_bytes = max_bytes};
	if (!service || !*service)
		return fail(message, message_size, -EINVAL,
			    "cannot write segments to %s: the service has no name", path);
	f->path = strdup(path);
	f->service = strdup(service);
	if (f->path && f->service) {
		make_prefix(f);
		err = folder_open(f, true, message, message_size);
	} else {
		fail(message, message_size, err, "cannot write segments to %s: out of memory",
		     path);
	}
	if (!err)
		err = tacho__folder_list(f, &list);
	tacho__folder_list_free(&list);
	if (err)
		tacho__folder_release(f);
	return err;
}

void tacho__folder_release(struct tacho__folder *f)
{
	if (f->lock >= 0)
		close(f->lock);
	if (f->dir >= 0)
		close(f->dir);
	free(f->path);
	free(f->service);
	*f = (struct tacho__folder){.dir = -1, .lock = -1};
}

int tacho__folder_check(struct tacho__folder *f)
{
	struct stat st;

	if (f->dir >= 0 && !fstat(f->dir, &st) && st.st_nlink)
		return 0;
	if (f->lock >= 0)
		close(f->lock);
	if (f->dir >= 0)
		close(f->dir);
	f->dir = f->lock = -1;
	f->total = 0;
	return folder_open(f, false, NULL, 0);
}

/* --------------------------------------------------------------------- list */

static int by_name(const void *a, const void *b)
{
	const struct tacho__folder_file *fa = a, *fb = b;

	return strcmp(fa->name, fb->name);
}

static int list_add(struct tacho__folder_list *list, const struct tacho__folder_file *file)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 64;
		struct tacho__folder_file *p = realloc(list->items, capacity * sizeof(*p));

		if (!p)
			return -ENOMEM;
		list->items = p;
		list->capacity = capacity;
	}
	list->items[list->count++] = *file;
	return 0;
}

int tacho__folder_list(struct tacho__folder *f, struct tacho__folder_list *list)
{
	DIR *d = open_listing(f->dir);
	struct dirent *e;
	int err = 0;

	if (!d)
		return -errno;
	f->total = 0;
	while (!err && (e = readdir(d))) {
		struct tacho__folder_file file;
		struct stat st;

		if (!parse_name(f, e->d_name, &file) ||
		    fstatat(f->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		file.size = (uint64_t)st.st_size;
		f->total += file.size;
		err = list_add(list, &file);
	}
	closedir(d);
	if (list->count)
		qsort(list->items, list->count, sizeof(list->items[0]), by_name);
	return err;
}

void tacho__folder_list_free(struct tacho__folder_list *list)
{
	free(list->items);
	*list = (struct tacho__folder_list){0};
}

static int read_identity(const struct tacho__folder *f, const char *name,
			 struct tacho__identity *identity)
{
	int fd = openat(f->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	int err = fd < 0 ? -errno : tacho__identity_read(identity, fd);

	if (fd >= 0)
		close(fd);
	return err;
}

int tacho__folder_newest(struct tacho__folder *f, const struct tacho__identity *identity,
			 char name[TACHO__SEGMENT_NAME_MAX], uint64_t *number)
{
	struct tacho__folder_list list = {0};
	struct tacho__identity other;
	int err = tacho__folder_list(f, &list);

	*number = 0;
	for (size_t i = 0; !err && i < list.count; i++) {
		const struct tacho__folder_file *file = &list.items[i];

		if (file->pid != identity->pid || file->number <= *number ||
		    read_identity(f, file->name, &other) || !tacho__identity_same(identity, &other))
			continue;
		*number = file->number;
		memcpy(name, file->name, sizeof(file->name));
	}
	tacho__folder_list_free(&list);
	if (err)
		return err;
	return *number ? 0 : -ENOENT;
}

/* ---------------------------------------------------------------------- cap */

static uint64_t room_under(const struct tacho__folder *f)
{
	uint64_t room = f->max_bytes / ROOM_PART;

	return f->max_bytes - (room < ROOM_MAX ? room : ROOM_MAX);
}

static void delete_segment(struct tacho__folder *f, const struct tacho__folder_file *file)
{
	struct tacho__identity identity = {0};

	if (read_identity(f, file->name, &identity) || identity.taken_by != TACHO_TAKEN_SEGMENT ||
	    identity.pid != file->pid || identity.segment != file->number)
		return;
	if (!unlinkat(f->dir, file->name, 0) || errno == ENOENT)
		f->total -= file->size < f->total ? file->size : f->total;
}

bool tacho__folder_fit(struct tacho__folder *f, bool (*spared)(void *arg, const char *name),
		       void *arg)
{
	struct tacho__folder_list list = {0};
	int err;

	if (!f->max_bytes || f->total <= room_under(f))
		return true;
	err = tacho__folder_list(f, &list);
	for (int round = 0; !err && round < 2; round++)
		for (size_t i = 0; i < list.count && f->total > room_under(f); i++)
			if (!list.items[i].part && spared(arg, list.items[i].name) == (round == 1))
				delete_segment(f, &list.items[i]);
	tacho__folder_list_free(&list);
	return !err && f->total <= room_under(f);
}
