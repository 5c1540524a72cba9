#include "serve/live.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "agent/end.h"
#include "base/clock.h"
#include "read/input.h"
#include "serve/folder_row.h"
#include "serve/snapshot.h"
#include "tacho_read.h"
#include "text/end.h"
#include "text/json.h"

#define SECOND UINT64_C(1000000000)
#define WINDOW_NS (10 * SECOND) /* of a snapshot, at most */
#define WINDOW_LEAST_NS SECOND
#define EVENTS_MOST 400000u /* in a snapshot: the page is to keep up */
#define COST_SHARE 4u	    /* of the time at most is spent on snapshots */
#define SNAPSHOTS 4u	    /* that are kept in memory */
#define KEPT_MAX 64u

struct kept {
	char name[NAME_MAX + 1];
};

struct tacho__live {
	char *path;
	int box, pidfd, folder;
	int wake; /* eventfd: there is something to do */
	uint32_t pid;
	uint64_t start_time;
	char comm[32];
	struct tacho__kills kills;
	pthread_t thread;
	bool started;
	/* The thread's own. */
	uint64_t window_ns, due_ns;
	struct tacho__trace_end end;
	pthread_mutex_t mutex; /* of what follows */
	bool stop, asked, ended;
	struct tacho__snapshot snapshots[SNAPSHOTS]; /* number N at N % SNAPSHOTS */
	uint64_t number;			     /* of the newest, from 1 */
	char message[1024];			     /* why there was no other; "": there was */
	char how[TEXT_END];			     /* it ended */
	/* What is to be written to a file. */
	uint64_t keep, keep_number; /* how many were asked for; 0: what the box holds */
	uint64_t kept;		    /* how many were done */
	char keep_message[1024];    /* why the last was not */
	struct kept files[KEPT_MAX];
	uint32_t file_count;
};

/* ---------------------------------------------------------------- snapshots */

/* The page has to read each of them within a second: a busy process gets a shorter window. */
static void fit_window(struct tacho__live *l, const struct tacho__snapshot *s, uint64_t cost_ns)
{
	if (s->result.events > EVENTS_MOST || cost_ns > SECOND)
		l->window_ns =
			l->window_ns / 2 > WINDOW_LEAST_NS ? l->window_ns / 2 : WINDOW_LEAST_NS;
	else if (s->result.events < EVENTS_MOST / 4 && cost_ns < SECOND / 4)
		l->window_ns = l->window_ns < WINDOW_NS / 2 ? 2 * l->window_ns : WINDOW_NS;
}

static void publish(struct tacho__live *l, const struct tacho__snapshot *s, const char *message)
{
	struct tacho__snapshot *place;

	pthread_mutex_lock(&l->mutex);
	snprintf(l->message, sizeof(l->message), "%s", message);
	if (s->fd >= 0) {
		place = &l->snapshots[++l->number % SNAPSHOTS];
		if (place->fd >= 0)
			close(place->fd);
		*place = *s;
	}
	pthread_mutex_unlock(&l->mutex);
}

/* Of the window that fits, or of all; `s` is published. */
static void take(struct tacho__live *l, struct tacho__snapshot *s, bool all)
{
	struct tacho__snapshot_source source = {
		.box = l->box,
		.path = l->path,
		.last_ns = all ? 0 : l->window_ns,
		.end = l->end,
	};
	uint64_t begin = tacho__clock_ns(CLOCK_MONOTONIC), cost;
	char message[1024];

	tacho__snapshot_take(s, &source, message, sizeof(message));
	cost = tacho__clock_ns(CLOCK_MONOTONIC) - begin;
	if (!all)
		fit_window(l, s, cost);
	l->due_ns = begin + (COST_SHARE * cost > SECOND ? COST_SHARE * cost : SECOND);
	publish(l, s, message);
}

/* ---------------------------------------------------------------------- end */

static bool has_ended(const struct tacho__live *l)
{
	struct pollfd fd = {.fd = l->pidfd, .events = POLLIN};

	return l->pidfd < 0 || poll(&fd, 1, 0) == 1;
}

/* It has ended, or become another program: how, as well as can be told, and the last of it. */
static void see_end(struct tacho__live *l)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);
	struct tacho__snapshot s;
	int status;

	/* Of what nobody saw, the box may know: it has the crash. */
	if (!has_ended(l))
		l->end = (struct tacho__trace_end){.how = TACHO_END_EXEC, .ns = now};
	else if (tacho__end_status(l->pid, l->start_time, l->pidfd, &status))
		l->end = tacho__end_of(status, now, &l->kills);
	take(l, &s, true);
	pthread_mutex_lock(&l->mutex);
	l->ended = true;
	snprintf(l->how, sizeof(l->how), "%s", s.how[0] ? s.how : "ended, how is not known");
	pthread_mutex_unlock(&l->mutex);
}

/* --------------------------------------------------------------------- keep */

static void keep(struct tacho__live *l, uint64_t number)
{
	struct tacho__snapshot_source source = {.box = l->box, .path = l->path, .end = l->end};
	struct tacho__snapshot whole = {.fd = -1};
	char message[1024] = "", name[NAME_MAX + 1] = "";
	int fd = -1, error = 0;

	pthread_mutex_lock(&l->mutex);
	if (number && number <= l->number && l->number - number < SNAPSHOTS)
		fd = l->snapshots[number % SNAPSHOTS].fd;
	pthread_mutex_unlock(&l->mutex);
	/* Only this thread closes them. */
	if (fd < 0) {
		error = tacho__snapshot_take(&whole, &source, message, sizeof(message));
		fd = whole.fd;
	}
	if (!error)
		error = tacho__snapshot_keep(fd, name, message, sizeof(message));
	if (whole.fd >= 0)
		close(whole.fd);
	pthread_mutex_lock(&l->mutex);
	if (name[0])
		memcpy(l->files[l->file_count++ % KEPT_MAX].name, name, sizeof(name));
	snprintf(l->keep_message, sizeof(l->keep_message), "%s", error ? message : "");
	l->kept = l->keep;
	pthread_mutex_unlock(&l->mutex);
}

/* ------------------------------------------------------------------- thread */

/* Until something is to be done, the process ends, or it is time. True: it has ended. */
static bool wait_for_work(struct tacho__live *l, bool asked)
{
	struct pollfd fds[] = {{.fd = l->wake, .events = POLLIN},
			       {.fd = l->pidfd, .events = POLLIN}};
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC), count;
	int wait = -1;

	if (asked)
		wait = l->due_ns > now ? (int)((l->due_ns - now) / 1000000) + 1 : 0;
	poll(fds, l->ended ? 1 : 2, wait);
	if (fds[0].revents && read(l->wake, &count, sizeof(count)) < 0)
		return false;
	return fds[1].revents != 0;
}

static void take_and_look(struct tacho__live *l)
{
	struct tacho__snapshot s;

	take(l, &s, false);
	if (s.fd >= 0 && s.alive == TACHO_ALIVE_NO)
		see_end(l);
	else
		tacho__kills_look(&l->kills, l->pid);
}

static void *follow(void *arg)
{
	struct tacho__live *l = arg;

	for (;;) {
		uint64_t number;
		bool stop, asked, keeps, gone;

		pthread_mutex_lock(&l->mutex);
		asked = l->asked && !l->ended;
		pthread_mutex_unlock(&l->mutex);
		gone = wait_for_work(l, asked);
		pthread_mutex_lock(&l->mutex);
		stop = l->stop;
		keeps = l->kept < l->keep;
		number = l->keep_number;
		asked = l->asked && !l->ended && tacho__clock_ns(CLOCK_MONOTONIC) >= l->due_ns;
		l->asked = l->asked && !asked;
		pthread_mutex_unlock(&l->mutex);
		if (stop)
			return NULL;
		if (gone)
			see_end(l);
		else if (asked)
			take_and_look(l);
		if (keeps)
			keep(l, number);
	}
}

static void wake(const struct tacho__live *l)
{
	uint64_t one = 1;

	/* It fails only when the thread is awake anyway. */
	if (write(l->wake, &one, sizeof(one)) < 0)
		return;
}

/* ------------------------------------------------------------------ answers */

static void put_kept(struct json *j, const struct tacho__live *l)
{
	char here[PATH_MAX] = "", path[PATH_MAX + NAME_MAX + 2];
	const char *name = l->files[(l->file_count - 1) % KEPT_MAX].name;

	json_key(j, "kept");
	if (!l->kept) {
		json_null(j);
		return;
	}
	json_object(j);
	json_put_u64(j, "number", l->kept);
	json_put_known(j, "error", l->keep_message);
	if (!l->keep_message[0]) {
		if (!getcwd(here, sizeof(here)))
			here[0] = 0;
		snprintf(path, sizeof(path), "%s/%s", here, name);
		json_put_string(j, "name", name);
		json_put_string(j, "path", path);
	}
	json_object_end(j);
}

static void put_state(struct json *j, struct tacho__live *l)
{
	const struct tacho__snapshot *s = &l->snapshots[l->number % SNAPSHOTS];

	json_put_u64(j, "pid", l->pid);
	json_put_known(j, "program", l->comm);
	json_put_u64(j, "snapshot", l->number);
	json_put_u64(j, "events", s->result.events);
	json_put_u64(j, "bytes", s->result.bytes);
	json_put_u64(j, "window_ns", s->result.last_ns - s->result.first_ns);
	json_put_bool(j, "ended", l->ended);
	json_put_known(j, "end", l->ended ? l->how : "");
	json_put_known(j, "error", l->message);
	put_kept(j, l);
}

/* Whoever looks wants another one. */
static void answer_state(struct tacho__live *l, struct tacho__answer *a, const char *shows)
{
	char *data = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);
	struct json j;

	if (!out)
		return;
	json_begin(&j, out, false);
	json_object(&j);
	json_put_known(&j, "shows", shows);
	pthread_mutex_lock(&l->mutex);
	l->asked = true;
	put_state(&j, l);
	pthread_mutex_unlock(&l->mutex);
	json_object_end(&j);
	fclose(out);
	wake(l);
	tacho__answer_json(a, data, size);
}

static void answer_snapshot(struct tacho__live *l, struct tacho__answer *a)
{
	int fd;

	pthread_mutex_lock(&l->mutex);
	fd = fcntl(l->snapshots[l->number % SNAPSHOTS].fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&l->mutex);
	tacho__answer_file(a, fd);
}

static void answer_kept(struct tacho__live *l, const char *name, struct tacho__answer *a)
{
	char message[256];
	bool known = false;
	int fd;

	pthread_mutex_lock(&l->mutex);
	for (uint32_t i = 0; i < l->file_count && i < KEPT_MAX; i++)
		known = known || strcmp(l->files[i].name, name) == 0;
	pthread_mutex_unlock(&l->mutex);
	fd = known ? tacho__listed_open(l->folder, name, NULL, message, sizeof(message)) : -ENOENT;
	if (fd >= 0)
		tacho__answer_file(a, fd);
	else
		tacho__answer_text(a, 404, "No such trace was kept from this page.\n");
}

/* One at a time: who asks meanwhile gets the one under way. */
static void start_keeping(struct tacho__live *l, const char *number, struct tacho__answer *a)
{
	char *text = NULL;

	pthread_mutex_lock(&l->mutex);
	if (l->kept == l->keep) {
		l->keep++;
		l->keep_number = strtoull(number, NULL, 10);
	}
	if (asprintf(&text, "{\"number\":%" PRIu64 "}\n", l->keep) < 0)
		text = NULL;
	pthread_mutex_unlock(&l->mutex);
	wake(l);
	tacho__answer_json(a, text, text ? strlen(text) : 0);
}

void tacho__live_answer(void *arg, const char *path, bool post, struct tacho__answer *a)
{
	struct tacho__live *l = arg;

	if (post && strcmp(path, "keep") == 0)
		start_keeping(l, "0", a);
	else if (post && strncmp(path, "keep/", 5) == 0)
		start_keeping(l, path + 5, a);
	else if (post)
		tacho__answer_text(a, 405, "Nothing here can be changed.\n");
	else if (strcmp(path, "what") == 0)
		answer_state(l, a, "live");
	else if (strcmp(path, "live") == 0)
		answer_state(l, a, "");
	else if (strcmp(path, "snapshot") == 0)
		answer_snapshot(l, a);
	else if (strncmp(path, "traces/", 7) == 0)
		answer_kept(l, path + 7, a);
}

/* --------------------------------------------------------------------- life */

/* The first snapshot is taken here: what can not be read is said to who started this. */
static int begin(struct tacho__live *l, const char *path)
{
	struct tacho__snapshot s;

	l->path = strdup(path);
	l->box = tacho__open_box_path(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	l->folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	l->wake = eventfd(0, EFD_CLOEXEC);
	if (!l->path || l->box < 0 || l->folder < 0 || l->wake < 0)
		return -errno;
	take(l, &s, false);
	if (s.fd < 0)
		return -EBADMSG;
	l->pid = s.pid;
	l->start_time = s.start_time;
	memcpy(l->comm, s.comm, sizeof(l->comm));
	if (tacho__box_process_runs(l->pid, l->start_time) == TACHO_ALIVE_YES)
		l->pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0);
	if (s.alive == TACHO_ALIVE_NO)
		see_end(l);
	else
		tacho__kills_look(&l->kills, l->pid);
	return -pthread_create(&l->thread, NULL, follow, l);
}

struct tacho__live *tacho__live_start(const char *path, char *message, size_t message_size)
{
	struct tacho__live *l = calloc(1, sizeof(*l));
	int error;

	if (!l) {
		snprintf(message, message_size, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&l->mutex, NULL);
	l->window_ns = WINDOW_NS;
	l->box = l->pidfd = l->folder = l->wake = -1;
	for (uint32_t i = 0; i < SNAPSHOTS; i++)
		l->snapshots[i].fd = -1;
	error = begin(l, path);
	l->started = !error;
	if (!error)
		return l;
	if (l->message[0])
		snprintf(message, message_size, "%s", l->message);
	else
		snprintf(message, message_size,
			 "cannot watch %s: %s. 'tacho ls' lists what can be.", path,
			 strerror(-error));
	tacho__live_stop(l);
	return NULL;
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

void tacho__live_stop(struct tacho__live *l)
{
	if (!l)
		return;
	if (l->started) {
		pthread_mutex_lock(&l->mutex);
		l->stop = true;
		pthread_mutex_unlock(&l->mutex);
		wake(l);
		pthread_join(l->thread, NULL);
	}
	for (uint32_t i = 0; i < SNAPSHOTS; i++)
		close_if(l->snapshots[i].fd);
	close_if(l->box);
	close_if(l->pidfd);
	close_if(l->folder);
	close_if(l->wake);
	tacho__kills_free(&l->kills);
	pthread_mutex_destroy(&l->mutex);
	free(l->path);
	free(l);
}
