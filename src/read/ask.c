#include "read/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/redact.h"
#include "format/box.h"

#define PAUSE_NS UINT64_C(60000000000) /* in which a user is not asked again */
#define OPEN_MAX_OF_USER 4u
#define USERS_MAX 64u
#define STACK_BYTES 65536u
#define FUSE_MAGIC 0x65735546 /* as in linux/magic.h of newer kernels */

/* One question. The thread that asks it and the one that waits for it share it. */
struct asked {
	pthread_cond_t changed;
	bool done;
	bool left;    /* nobody waits for the answer any more: who gets it frees it */
	bool counted; /* as one of its user's */
	uint32_t uid;
	size_t most; /* bytes to read; 0: it is only opened */
	char *text;
	size_t size;
	int result; /* a descriptor or 0, or -errno */
	char path[];
};

/* Users of whose processes a question was not answered in time. */
struct user {
	uint32_t uid, open; /* questions that are still not answered */
	uint64_t until_ns;  /* not asked before */
	bool used;
};

uint64_t tacho__ask_limit_ns = 2000000000; /* far more than any answer takes */

/* Held for moments only: never while anything is asked. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct user users[USERS_MAX];

/* ------------------------------------------------------------------ users */

/* NULL: not known, and (`make`) there is no room. */
static struct user *user_of(uint32_t uid, bool make)
{
	struct user *free_one = NULL;
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < USERS_MAX; i++) {
		struct user *u = &users[i];

		if (u->used && !u->open && now >= u->until_ns)
			u->used = false;
		if (u->used && u->uid == uid)
			return u;
		if (!u->used)
			free_one = u;
	}
	if (!make || !free_one)
		return NULL;
	*free_one = (struct user){.uid = uid, .used = true};
	return free_one;
}

static bool is_asked(uint32_t uid)
{
	const struct user *u;
	bool asked;

	pthread_mutex_lock(&lock);
	u = user_of(uid, false);
	asked = !u ||
		(u->open < OPEN_MAX_OF_USER && tacho__clock_ns(CLOCK_MONOTONIC) >= u->until_ns);
	pthread_mutex_unlock(&lock);
	return asked;
}

/* -------------------------------------------------------- the thread that asks */

/* Room for more than what is there, and for a zero. */
static int make_room(struct asked *a, size_t *room)
{
	char *more;

	if (*room > a->size + 1)
		return 0;
	*room = *room ? 2 * *room : 4096;
	more = realloc(a->text, *room);
	if (!more)
		return -ENOMEM;
	a->text = more;
	return 0;
}

static int read_text(struct asked *a, int fd)
{
	size_t room = 0;
	ssize_t n;

	do {
		size_t left = a->most - a->size;

		if (make_room(a, &room))
			return -ENOMEM;
		if (left > room - a->size - 1)
			left = room - a->size - 1;
		n = read(fd, a->text + a->size, left);
		if (n < 0 && errno != EINTR)
			return -errno;
		a->size += n > 0 ? (size_t)n : 0;
	} while (n && a->size < a->most);
	a->text[a->size] = 0;
	return 0;
}

/* 0, or -errno: it may not be what it says that it is. */
static int check_opened(int fd)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	return !S_ISREG(st.st_mode) || (geteuid() == 0 && fs.f_type == FUSE_MAGIC) ? -EINVAL : 0;
}

static int ask(struct asked *a)
{
	int fd = open(a->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = a->most ? read_text(a, fd) : check_opened(fd);
	if (!err && !a->most)
		return fd;
	close(fd);
	return err;
}

static void asked_free(struct asked *a)
{
	pthread_cond_destroy(&a->changed);
	free(a->text);
	free(a);
}

static void *asking(void *arg)
{
	struct asked *a = arg;
	bool left;

	a->result = ask(a);
	pthread_mutex_lock(&lock);
	a->done = true;
	left = a->left;
	if (a->counted)
		user_of(a->uid, false)->open--;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&lock);
	if (left) {
		if (!a->most && a->result >= 0)
			close(a->result);
		asked_free(a);
	}
	return NULL;
}

/* --------------------------------------------------------- the thread that waits */

static struct asked *asked_new(const char *path, uint32_t uid, size_t most)
{
	size_t size = strlen(path) + 1;
	struct asked *a = calloc(1, sizeof(*a) + size);
	pthread_condattr_t how;

	if (!a)
		return NULL;
	memcpy(a->path, path, size);
	a->uid = uid;
	a->most = most;
	pthread_condattr_init(&how);
	pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	pthread_cond_init(&a->changed, &how);
	pthread_condattr_destroy(&how);
	return a;
}

/* No signal of the program's is for this thread. */
static int start(struct asked *a)
{
	sigset_t all, before;
	pthread_attr_t how;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_attr_init(&how);
	pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&how, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &how, asking, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&how);
	return -err;
}

/* Whether it was answered; if not, the question is no longer the caller's. */
static bool wait_for(struct asked *a)
{
	uint64_t until = tacho__clock_ns(CLOCK_MONOTONIC) + tacho__ask_limit_ns;
	struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
	struct user *u;
	bool done;
	int err = 0;

	pthread_mutex_lock(&lock);
	while (!a->done && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&a->changed, &lock, &at);
	done = a->done;
	if (!done) {
		a->left = true;
		u = user_of(a->uid, true);
		a->counted = u != NULL;
		if (u) {
			u->open++;
			u->until_ns = tacho__clock_ns(CLOCK_MONOTONIC) + PAUSE_NS;
		}
	}
	pthread_mutex_unlock(&lock);
	return done;
}

/* The question with its answer; NULL and *err: there is none. */
static struct asked *get(uint32_t pid, const char *path, size_t most, int *err)
{
	uint32_t ids[4], uid = tacho__process_uids(pid, ids) ? ids[0] : UINT32_MAX;
	struct asked *a;

	if (!is_asked(uid)) {
		*err = -EBUSY;
		return NULL;
	}
	a = asked_new(path, uid, most);
	*err = a ? start(a) : -ENOMEM;
	if (!*err && wait_for(a))
		return a;
	if (*err && a)
		asked_free(a);
	*err = *err ? *err : -ETIMEDOUT;
	return NULL;
}

long tacho__ask_process(uint32_t pid, const char *name, size_t most,
			long (*use)(void *arg, char *text, size_t size), void *arg)
{
	char path[64];
	struct asked *a;
	long result;
	int err;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, name);
	a = get(pid, path, most, &err);
	if (!a)
		return err;
	result = a->result ? a->result : use(arg, a->text, a->size);
	asked_free(a);
	return result;
}

static long copy(void *arg, char *text, size_t size)
{
	memcpy(arg, text, size + 1);
	return (long)size;
}

long tacho__ask_process_small(uint32_t pid, const char *name, char *to, size_t room)
{
	to[0] = 0;
	return tacho__ask_process(pid, name, room - 1, copy, to);
}

void tacho__ask_command_line(uint32_t pid, char *line, size_t room, int keep)
{
	char arguments[4 * TACHO_BOX_LINE_MAX];
	long n = tacho__ask_process_small(pid, "cmdline", arguments, sizeof(arguments));
	size_t size = n > 0 ? (size_t)n : 0;

	tacho__command_line(line, room, arguments, size, size == sizeof(arguments) - 1, keep);
}

int tacho__ask_open(uint32_t pid, const char *path)
{
	struct asked *a;
	int err;

	a = get(pid, path, 0, &err);
	if (a) {
		err = a->result;
		asked_free(a);
	}
	return err;
}
