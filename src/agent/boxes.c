/*
 * Where boxes lie and which there are.
 */
#define _GNU_SOURCE 1 /* asprintf */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "base/box_path.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "read/ask.h"
#include "read/input.h"
#include "text/text.h"

/* Of one user: more processes than a user has, less than what someone else may put there to keep
   root busy. So it is with folders. */
#define FILES_MAX 4096u
#define FOLDERS_MAX 16u
/* What is looked at in a folder that all users share, for this user and for all. */
#define ENTRIES_MAX_OWN 4096u
#define ENTRIES_MAX_ALL 16384u
/* Processes whose users are asked for, and of those whose folder is taken, whose maps are. */
#define PROCESSES_MAX 65536u
#define MAPS_READ_MAX 256u
#define MAPS_MAX (4u << 20)
#define FOLDER_NAME 64u
#define ROOTS "/run/tacho" /* where nobody else can make it before root does */

static bool read_number(const char **at, uint64_t *out)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*out = strtoull(*at, &end, 10);
	*at = end;
	return errno == 0;
}

bool tacho__box_name_parse(const char *path, struct tacho__box_file *out)
{
	const char *slash = strrchr(path, '/');
	const char *at = slash ? slash + 1 : path;
	uint64_t pid, start, number;

	if (!read_number(&at, &pid) || *at++ != '-' || !read_number(&at, &start) || *at++ != '-' ||
	    !read_number(&at, &number) || strcmp(at, ".box") != 0)
		return false;
	if (pid == 0 || pid > INT32_MAX || number > UINT32_MAX)
		return false;
	out->pid = (uint32_t)pid;
	out->start_time = start;
	out->number = (uint32_t)number;
	return true;
}

static void add_file(struct tacho__box_list *list, const struct tacho__box_folder *folder,
		     const char *name)
{
	struct tacho__box_file file = {.note = folder->notes, .owner = folder->owner};
	struct tacho__box_file *grown;

	if (!tacho__box_name_parse(name, &file))
		return;
	grown = reallocarray(list->files, list->file_count + 1, sizeof(*grown));
	if (grown)
		list->files = grown;
	if (grown && asprintf(&file.path, "%s/%s", folder->path, name) >= 0)
		list->files[list->file_count++] = file;
	else
		list->failed = true;
}

__attribute__((format(printf, 2, 3))) static void skip(struct tacho__box_folder *folder,
						       const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(folder->reason, sizeof(folder->reason), format, args);
	va_end(args);
	folder->state = TACHO__BOX_FOLDER_SKIPPED;
}

/* Opens a folder if it is one and belongs to `owner` or root. */
static int open_folder(struct tacho__box_folder *folder, uid_t owner)
{
	struct stat st;
	int fd = tacho__open_box_path(folder->path,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		if (errno == ENOENT)
			folder->state = TACHO__BOX_FOLDER_ABSENT;
		else if (errno == EXDEV)
			skip(folder, "another file system is mounted there");
		else if (tacho__lstat_box_path(folder->path, &st) == 0 && S_ISLNK(st.st_mode))
			skip(folder, "it is a symbolic link");
		else
			skip(folder, "%s", strerror(errno));
		return -1;
	}
	if (fstat(fd, &st) < 0) {
		skip(folder, "%s", strerror(errno));
	} else if (st.st_uid != owner && st.st_uid != 0) {
		skip(folder, "it belongs to user %u, not to user %u", (unsigned)st.st_uid,
		     (unsigned)owner);
	} else {
		folder->owner = st.st_uid;
		return fd;
	}
	close(fd);
	return -1;
}

/* How many more files of this user are listed. */
static size_t files_left(const struct tacho__box_list *list, const struct tacho__box_folder *of)
{
	size_t files = 0, folders = 0;

	for (size_t i = 0; i < list->folder_count; i++) {
		const struct tacho__box_folder *f = &list->folders[i];

		if (f->state != TACHO__BOX_FOLDER_SEARCHED || f->owner != of->owner ||
		    f->notes != of->notes)
			continue;
		files += f->files;
		folders++;
	}
	return folders <= FOLDERS_MAX && files < FILES_MAX ? FILES_MAX - files : 0;
}

static void read_folder(struct tacho__box_list *list, struct tacho__box_folder *folder, int fd)
{
	size_t begin = list->file_count, limit = begin + files_left(list, folder);
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close(fd);
		list->failed = true;
		return;
	}
	while (!list->failed && !folder->cut && (entry = readdir(dir))) {
		folder->cut = list->file_count >= limit;
		if (!folder->cut)
			add_file(list, folder, entry->d_name);
	}
	folder->files = list->file_count - begin;
	closedir(dir);
}

/* Whether a folder is worth remembering: anybody can make any number that are not. */
static bool is_worth_it(const struct tacho__box_list *list, const struct tacho__box_folder *folder)
{
	size_t alike = 0;

	for (size_t i = 0; i < list->folder_count; i++)
		alike += list->folders[i].state == folder->state &&
			 list->folders[i].owner == folder->owner;
	return folder->state == TACHO__BOX_FOLDER_ABSENT || alike < FOLDERS_MAX;
}

static bool is_known(const struct tacho__box_list *list, const char *path)
{
	for (size_t i = 0; i < list->folder_count; i++)
		if (strcmp(list->folders[i].path, path) == 0)
			return true;
	return false;
}

/* Of those that are not searched, the first is remembered, and how many there are. */
static void add_odd(struct tacho__box_list *list, const char *path, uid_t owner, const char *reason)
{
	struct tacho__box_odd *odd = &list->odd[owner != geteuid()];

	if (odd->count++ > 0)
		return;
	odd->path = strdup(path);
	snprintf(odd->reason, sizeof(odd->reason), "%s", reason);
	list->failed |= !odd->path;
}

/* Takes over `path`, also when it fails. */
static void add_folder(struct tacho__box_list *list, char *path, bool notes, uid_t owner)
{
	struct tacho__box_folder folder = {.path = path, .notes = notes}, *grown = NULL;
	bool known = path && is_known(list, path), wanted;
	int fd = -1;

	if (path && !known && !list->failed)
		fd = open_folder(&folder, owner);
	if (folder.state == TACHO__BOX_FOLDER_SKIPPED)
		add_odd(list, path, owner, folder.reason);
	wanted = path && !known && is_worth_it(list, &folder);
	if (wanted && !list->failed)
		grown = reallocarray(list->folders, list->folder_count + 1, sizeof(*grown));
	if (!grown) {
		list->failed |= !path || wanted;
		free(path);
		if (fd >= 0)
			close(fd);
		return;
	}
	list->folders = grown;
	grown[list->folder_count++] = folder;
	if (fd >= 0)
		read_folder(list, &grown[list->folder_count - 1], fd);
}

__attribute__((format(printf, 1, 2))) static char *format_path(const char *format, ...)
{
	char *path;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&path, format, args);
	va_end(args);
	if (n < 0)
		return NULL;
	for (; n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = 0;
	return path;
}

/* tacho-UID, or tacho-UID.NUMBER, where somebody else has taken that. */
static bool parse_folder(const char *name, uid_t *owner)
{
	uint64_t uid, number;
	const char *at = name + 6;

	if (strncmp(name, "tacho-", 6) != 0 || !read_number(&at, &uid) || uid >= UINT32_MAX ||
	    (*at && !(*at++ == '.' && read_number(&at, &number) && !*at)))
		return false;
	*owner = (uid_t)uid;
	return true;
}

enum whose { THEIRS, NOT_THEIRS, NOBODYS };

/* Whether the folder belongs to that user or to root. NOT_THEIRS comes with a reason; NOBODYS means that there
   is no folder. This opens nothing, and asks no file system that is mounted there. */
static enum whose whose(int parent, const char *name, uid_t owner, char reason[160])
{
	struct statx st;

	if (statx(parent, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		  STATX_TYPE | STATX_UID, &st) < 0) {
		snprintf(reason, 160, "%s", strerror(errno));
		return errno == ENOENT ? NOBODYS : NOT_THEIRS;
	}
	if (S_ISLNK(st.stx_mode))
		snprintf(reason, 160, "it is a symbolic link");
	else if (!S_ISDIR(st.stx_mode))
		snprintf(reason, 160, "%s", strerror(ENOTDIR));
	else if (st.stx_uid != owner && st.stx_uid != 0)
		snprintf(reason, 160, "it belongs to user %u, not to user %u", (unsigned)st.stx_uid,
			 (unsigned)owner);
	else
		return THEIRS;
	return NOT_THEIRS;
}

/* Folders of all users in `parent`, or of one, as far as they are soon found. */
static void add_users(struct tacho__box_list *list, const char *parent, bool notes,
		      const uid_t *only)
{
	unsigned entries = only ? ENTRIES_MAX_OWN : ENTRIES_MAX_ALL;
	DIR *dir = opendir(parent);
	struct dirent *entry;
	char reason[160], *path;
	uid_t owner;

	while (dir && !list->failed && (entry = readdir(dir))) {
		if (entries-- == 0) {
			list->cut = parent;
			break;
		}
		if (!parse_folder(entry->d_name, &owner) || (only && owner != *only))
			continue;
		path = format_path("%s/%s", parent, entry->d_name);
		if (!path || whose(dirfd(dir), entry->d_name, owner, reason) == THEIRS) {
			add_folder(list, path, notes, owner);
			continue;
		}
		/* A folder with a number that is not ours was never ours. */
		if (owner != geteuid() || (!strchr(entry->d_name, '.') && !is_known(list, path)))
			add_odd(list, path, owner, reason);
		free(path);
	}
	if (dir)
		closedir(dir);
}

/* Calls `use` for each number that is a name in the folder, of at most `most`. */
static void each_number(struct tacho__box_list *list, const char *path, unsigned most,
			void (*use)(struct tacho__box_list *list, uint32_t number))
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	for (unsigned i = 0; dir && !list->failed && i < most && (entry = readdir(dir)); i++) {
		const char *at = entry->d_name;
		uint64_t number;

		if (read_number(&at, &number) && !*at && number < UINT32_MAX)
			use(list, (uint32_t)number);
	}
	if (dir)
		closedir(dir);
}

/* Nobody but the system makes folders there. */
static void add_session(struct tacho__box_list *list, uint32_t uid)
{
	add_folder(list, format_path(TACHO__RUN_USER "%u/tacho", (unsigned)uid), false, uid);
}

/* The folder in /dev/shm in which a box lies that is mapped, from what /proc/PID/maps says. `arg`: its name
   up to the point. */
static long find_mapped(void *arg, char *text, size_t size)
{
	char *prefix = arg, *at = strstr(text, prefix);
	size_t n = strlen(prefix);

	(void)size;
	n += at ? tacho__digits(at + n) : 0;
	if (!at || at[n] != '/' || n >= FOLDER_NAME)
		return -ENOENT;
	at[n] = 0;
	strcpy(prefix, at);
	return 0;
}

/* The folder of whoever runs that process; where somebody else has taken that, the one that it uses. */
static void add_process(struct tacho__box_list *list, uint32_t pid)
{
	char path[32], name[FOLDER_NAME], reason[160];
	enum whose is;
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", (unsigned)pid);
	if (stat(path, &st) < 0)
		return;
	snprintf(name, sizeof(name), "/dev/shm/tacho-%u", (unsigned)st.st_uid);
	if (is_known(list, name))
		return;
	is = whose(AT_FDCWD, name, st.st_uid, reason);
	if (is == THEIRS) {
		add_folder(list, format_path("%s", name), false, st.st_uid);
	} else if (is == NOT_THEIRS && list->maps_read < MAPS_READ_MAX) {
		list->maps_read++;
		strcat(name, ".");
		if (tacho__ask_process(pid, "maps", MAPS_MAX, find_mapped, name) == 0)
			add_folder(list, format_path("%s", name), false, st.st_uid);
	}
}

/* Somebody has made so many that not all are looked at: whoever runs something is found all the same. */
static void add_all(struct tacho__box_list *list)
{
	add_users(list, "/dev/shm", false, NULL);
	add_users(list, "/tmp", true, NULL);
	each_number(list, TACHO__RUN_USER, ENTRIES_MAX_OWN, add_session);
	if (list->cut)
		each_number(list, "/proc", PROCESSES_MAX, add_process);
}

static int compare_files(const void *a, const void *b)
{
	const struct tacho__box_file *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->start_time != y->start_time)
		return x->start_time < y->start_time ? -1 : 1;
	if (x->note != y->note)
		return x->note ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void add_own(struct tacho__box_list *list)
{
	const char *given = getenv("TACHO_BOX_DIR");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	uid_t uid = geteuid();

	if (given && given[0]) {
		add_folder(list, format_path("%s", given), false, uid);
	} else {
		add_folder(list, format_path("/dev/shm/tacho-%u", (unsigned)uid), false, uid);
		if (runtime && runtime[0] == '/')
			add_folder(list, format_path("%s/tacho", runtime), false, uid);
		add_session(list, uid);
		if (uid == 0)
			add_folder(list, format_path(ROOTS), false, uid);
	}
	add_folder(list, format_path("/tmp/tacho-%u", (unsigned)uid), true, uid);
}

int tacho__box_list_read(struct tacho__box_list *list, bool all_users)
{
	const char *given = getenv("TACHO_BOX_DIR");
	uid_t uid = geteuid();

	memset(list, 0, sizeof(*list));
	add_own(list);
	if (all_users)
		add_all(list);
	else if (!given || !given[0])
		add_users(list, "/dev/shm", false, &uid);
	if (list->failed) {
		tacho__box_list_free(list);
		return -ENOMEM;
	}
	if (list->file_count > 0)
		qsort(list->files, list->file_count, sizeof(list->files[0]), compare_files);
	return 0;
}

static void tell_odd(const struct tacho__box_odd *odd,
		     void (*tell)(void *arg, const char *sentence), void *arg)
{
	char sentence[TEXT_SENTENCE], more[64] = "";

	if (odd->count == 0)
		return;
	if (odd->count > 1)
		snprintf(more, sizeof(more), "; nor are %zu others like it", odd->count - 1);
	snprintf(sentence, sizeof(sentence), "%s is not searched: %s%s.", odd->path, odd->reason,
		 more);
	tell(arg, sentence);
}

void tacho__box_list_tell(const struct tacho__box_list *list, bool others,
			  void (*tell)(void *arg, const char *sentence), void *arg)
{
	char sentence[TEXT_SENTENCE];

	tell_odd(&list->odd[0], tell, arg);
	if (others)
		tell_odd(&list->odd[1], tell, arg);
	if (others && list->cut) {
		snprintf(sentence, sizeof(sentence),
			 "%s holds more than %u files: some boxes may not be found. Delete what is "
			 "not needed there.",
			 list->cut, ENTRIES_MAX_ALL);
		tell(arg, sentence);
	}
	for (size_t i = 0; i < list->folder_count; i++) {
		const struct tacho__box_folder *f = &list->folders[i];

		if (!f->cut)
			continue;
		snprintf(sentence, sizeof(sentence),
			 "user %u has more than %u boxes; of those in %s, some are left out.",
			 (unsigned)f->owner, FILES_MAX, f->path);
		tell(arg, sentence);
	}
}

void tacho__box_list_free(struct tacho__box_list *list)
{
	for (size_t i = 0; i < list->file_count; i++)
		free(list->files[i].path);
	for (size_t i = 0; i < list->folder_count; i++)
		free(list->folders[i].path);
	free(list->odd[0].path);
	free(list->odd[1].path);
	free(list->files);
	free(list->folders);
	memset(list, 0, sizeof(*list));
}

const struct tacho__box_file *tacho__box_list_find(const struct tacho__box_list *list, uint32_t pid)
{
	const struct tacho__box_file *found = NULL;

	for (size_t i = 0; i < list->file_count; i++)
		if (list->files[i].pid == pid && tacho__process_may_own(pid, list->files[i].owner))
			found = &list->files[i];
	return found;
}

const struct tacho__box_file *tacho__box_list_rival(const struct tacho__box_list *list,
						    const struct tacho__box_file *file)
{
	/* One that runs has the users that it has, and its newest box is of one of them. */
	if (tacho__box_process_runs(file->pid, file->start_time) == TACHO_ALIVE_YES)
		return NULL;
	for (size_t i = 0; i < list->file_count; i++) {
		const struct tacho__box_file *f = &list->files[i];

		if (f->pid == file->pid && f->owner != file->owner && !f->note && !file->note &&
		    tacho__process_may_own(f->pid, f->owner))
			return f;
	}
	return NULL;
}

bool tacho__box_is_there(const char *path, ino_t inode)
{
	struct stat st;

	if (tacho__lstat_box_path(path, &st) < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
	return st.st_ino == inode;
}

int tacho__box_lock(const char *path, struct stat *st)
{
	int fd = tacho__open_box_path(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

/* Where nobody else can have made it, as recorders do (core/box_dir.c). Whether there is such a place. */
static bool make_private(char *path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct statfs fs;
	struct stat st;

	for (int i = 0; i < 3; i++) {
		path[0] = 0;
		if (i == 0 && runtime && runtime[0] == '/')
			snprintf(path, size, "%s", runtime);
		else if (i == 1)
			snprintf(path, size, TACHO__RUN_USER "%u", (unsigned)geteuid());
		else if (i == 2 && geteuid() == 0)
			snprintf(path, size, "/run");
		if (!path[0] || statfs(path, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
			continue;
		strncat(path, "/tacho", size - strlen(path) - 1);
		mkdir(path, 0700);
		if (tacho__lstat_box_path(path, &st) == 0 && S_ISDIR(st.st_mode) &&
		    st.st_uid == geteuid())
			return true;
	}
	return false;
}

/* One of a name that nobody could have foreseen, as recorders make it too. */
static void make_another(char *path, size_t size)
{
	struct tacho__box_list list;
	uint32_t number = 0;
	bool found = false;

	if (tacho__box_list_read(&list, false) == 0) {
		for (size_t i = 0; i < list.folder_count && !found; i++) {
			const struct tacho__box_folder *f = &list.folders[i];

			found = f->state == TACHO__BOX_FOLDER_SEARCHED && !f->notes &&
				f->owner == geteuid();
			if (found)
				snprintf(path, size, "%s", f->path);
		}
		tacho__box_list_free(&list);
	}
	if (found || getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		return;
	snprintf(path, size, "/dev/shm/tacho-%u.%" PRIu32, (unsigned)geteuid(), number);
	mkdir(path, 0700);
}

/* Whether somebody else has made this user's folder. */
static bool is_taken(const char *path)
{
	struct stat st;

	if (tacho__lstat_box_path(path, &st) < 0)
		return errno == EXDEV;
	return !S_ISDIR(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0);
}

void tacho__box_folder_make(char *path, size_t size)
{
	const char *given = getenv("TACHO_BOX_DIR");

	if (given && given[0])
		snprintf(path, size, "%s", given);
	else
		snprintf(path, size, "/dev/shm/tacho-%u", (unsigned)geteuid());
	mkdir(path, 0700);
	if (!(given && given[0]) && is_taken(path) && !make_private(path, size))
		make_another(path, size);
}

void tacho__box_folders_tidy(bool all_users)
{
	const char *given = getenv("TACHO_BOX_DIR");
	struct tacho__box_list list;

	/* One that somebody chose is theirs. */
	if ((given && given[0]) || tacho__box_list_read(&list, all_users) < 0)
		return;
	for (size_t i = 0; i < list.folder_count; i++)
		if (list.folders[i].state == TACHO__BOX_FOLDER_SEARCHED)
			rmdir(list.folders[i].path);
	tacho__box_list_free(&list);
}

int tacho__box_remove(const char *path, const struct stat *was, char *message, size_t message_size)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *folder =
		slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	struct stat now;
	int error = 0, dir, file = -1;

	/* Of a folder that is another user's, the name may be a link to a third one's by now. */
	dir = folder ? tacho__open_any(folder, &now) : -ENOMEM;
	free(folder);
	if (dir >= 0)
		file = tacho__openat_same_mount(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		error = -dir;
	else if (file < 0 || fstat(file, &now) < 0)
		error = errno;
	else if (now.st_ino != was->st_ino || now.st_dev != was->st_dev)
		error = ESTALE;
	else if (unlinkat(dir, name, 0) < 0)
		error = errno;
	if (file >= 0)
		close(file);
	if (dir >= 0)
		close(dir);
	if (error == ENOENT) /* somebody else has deleted it */
		error = 0;
	if (error)
		snprintf(message, message_size,
			 "%s could not be deleted: %s. It will be recovered again next time.", path,
			 strerror(error));
	return -error;
}

static ssize_t read_proc(uint32_t pid, const char *name, char *out, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, name);
	return tacho__read_small(path, out, size);
}

enum tacho_alive tacho__box_process_runs(uint32_t pid, uint64_t start_time)
{
	char text[1024], state;
	ssize_t n = read_proc(pid, "stat", text, sizeof(text));
	unsigned long threads = 1;
	const char *at;

	if (n == -ENOENT || n == -ESRCH)
		return access("/proc/self/stat", F_OK) == 0 ? TACHO_ALIVE_NO : TACHO_ALIVE_UNKNOWN;
	if (n <= 0)
		return TACHO_ALIVE_UNKNOWN;
	/* The name in parentheses may hold anything; fields are counted after the last one. */
	at = strrchr(text, ')');
	if (!at || at[1] != ' ')
		return TACHO_ALIVE_UNKNOWN;
	at += 2;
	state = *at;
	for (int field = 3; field < 22; field++) {
		if (field == 20)
			threads = strtoul(at, NULL, 10);
		at = strchr(at, ' ');
		if (!at)
			return TACHO_ALIVE_UNKNOWN;
		at++;
	}
	/* A leader that has ended is a zombie while its threads go on. */
	if ((state == 'Z' || state == 'X') && threads <= 1)
		return TACHO_ALIVE_NO;
	return strtoull(at, NULL, 10) == start_time ? TACHO_ALIVE_YES : TACHO_ALIVE_NO;
}

const char *tacho__box_process_line(uint32_t pid, char *out, size_t size, bool keep,
				    uint32_t *parent)
{
	char text[1024];
	ssize_t n = read_proc(pid, "stat", text, sizeof(text));
	const char *at = n > 0 ? strrchr(text, ')') : NULL;

	/* NAME) STATE PARENT */
	*parent = at && strlen(at) > 4 ? (uint32_t)strtoul(at + 4, NULL, 10) : 0;
	tacho__ask_command_line(pid, out, size, keep);
	return out;
}

const char *tacho__box_process_comm(uint32_t pid, char *out, size_t size)
{
	ssize_t n = read_proc(pid, "comm", out, size);

	if (n <= 0)
		out[0] = 0;
	else if (out[n - 1] == '\n')
		out[n - 1] = 0;
	return out;
}
