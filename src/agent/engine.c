/*
 * The life of the engine: its beginning, what it waits for, its end.
 */
#include "agent/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "agent/exec.h"
#include "agent/follow.h"
#include "agent/keep.h"
#include "agent/listener.h"
#include "agent/segments.h"
#include "base/clock.h"
#include "symbols/resolve.h"
#include "text/text.h"

#define NAMES_SHOWN 5u
#define NS_PER_S UINT64_C(1000000000)
#define SHORT_NS UINT64_C(100000000)
#define EXEC_NS (30 * NS_PER_S) /* for the last commands of `exec` */

int tacho__engine_open(struct tacho__engine *e, const struct tacho__engine_options *options,
		       char *message)
{
	*e = (struct tacho__engine){
		.options = *options, .voice = options->voice, .inotify = -1, .poke = -1};
	tacho__recording_init(&e->recording, e->voice);
	e->recording.folder = options->folder;
	e->recording.file = options->file;
	e->recording.replace = options->replace;
	return options->continuous ? tacho__attend_segments(e, message) : 0;
}

int tacho__engine_begin(struct tacho__engine *e, char *message)
{
	int error;

	e->begun_ns = tacho__clock_ns(CLOCK_MONOTONIC);
	e->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	e->poke = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (e->poke < 0) {
		error = -errno;
		snprintf(message, TACHO__MESSAGE, "cannot make an eventfd: %s.", strerror(-error));
		return error;
	}
	e->listener = tacho__listener_new();
	if (!e->listener) {
		snprintf(message, TACHO__MESSAGE, "out of memory.");
		return -ENOMEM;
	}
	error = tacho__attend_setup(e, message);
	if (error)
		return error;
	if (e->segments)
		tacho__segments_absent(e->segments, e->absent);
	tacho__engine_scan(e);
	return 0;
}

void tacho__engine_warn(void *arg, const char *sentence)
{
	const struct tacho__engine *e = arg;

	tacho__warn(e->voice, "%s", sentence);
}

void tacho__raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* -------------------------------------------------------------------- waiting */

uint64_t tacho__engine_due(const struct tacho__engine *e)
{
	uint64_t due = e->segments ? tacho__segments_due(e->segments) : UINT64_MAX;

	for (size_t i = 0; i < e->count; i++) {
		uint64_t at = tacho__attend_due(e, &e->boxes[i]);

		if (at < due)
			due = at;
	}
	return due;
}

struct waited {
	struct pollfd *fds;
	bool *look; /* it says that boxes are new or processes have ended */
	size_t count;
};

static void wait_for(struct waited *w, int fd, bool look)
{
	if (fd < 0)
		return;
	w->fds[w->count] = (struct pollfd){.fd = fd, .events = POLLIN};
	w->look[w->count++] = look;
}

static void wait_for_all(struct waited *w, const struct tacho__engine *e, bool boxes)
{
	if (boxes)
		wait_for(w, e->inotify, true);
	wait_for(w, e->poke, false);
	for (size_t i = 0; i < e->other_count; i++)
		wait_for(w, e->others[i].pidfd, true);
	for (size_t i = 0; i < e->count; i++) {
		const struct tacho__followed *box = &e->boxes[i];

		if (box->ended)
			continue;
		wait_for(w, box->pidfd, true);
		if (box->kernel)
			wait_for(w, tacho__kernel_fd(box->kernel), false);
	}
}

/* Somebody makes boxes faster than they can be looked at, or something like boxes. */
static bool has_news_too_early(const struct tacho__engine *e, uint64_t now)
{
	struct pollfd fd = {.fd = e->inotify, .events = POLLIN};

	return now < e->scan_ns && poll(&fd, 1, 0) > 0;
}

bool tacho__engine_wait(const struct tacho__engine *e, int signals, uint64_t until)
{
	size_t most = 3 + e->other_count + 2 * e->count;
	struct waited w = {.fds = calloc(most, sizeof(*w.fds)), .look = calloc(most, 1)};
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC), due = tacho__engine_due(e), left;
	struct timespec timeout;
	bool look = !w.fds || !w.look, held = has_news_too_early(e, now);

	if (due < until)
		until = due;
	if (held && e->scan_ns < until)
		until = e->scan_ns;
	left = until > now ? until - now : 0;
	if (look)
		left = left < SHORT_NS ? left : SHORT_NS; /* no memory: look around instead */
	timeout = (struct timespec){.tv_sec = (time_t)(left / NS_PER_S),
				    .tv_nsec = (long)(left % NS_PER_S)};
	if (!look) {
		wait_for(&w, signals, false);
		wait_for_all(&w, e, !held);
	}
	ppoll(w.fds, w.count, until == UINT64_MAX && !look ? NULL : &timeout, NULL);
	for (size_t i = 0; i < w.count; i++)
		look |= w.look[i] && w.fds[i].revents &&
			(w.fds[i].fd != e->inotify ||
			 tacho__clock_ns(CLOCK_MONOTONIC) >= e->scan_ns);
	free(w.fds);
	free(w.look);
	return look;
}

/* Boxes that are dealt with; those that stay are remembered as done. */
static void forget_gone(struct tacho__engine *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->count; i++) {
		struct tacho__followed *box = &e->boxes[i];

		if (box->ended && box->pidfd >= 0) {
			close(box->pidfd);
			box->pidfd = -1;
		}
		if ((box->ended || box->note) && box->done &&
		    !tacho__box_is_there(box->path, box->inode)) {
			tacho__kills_free(&box->kills);
			free(box->path);
			free(box->command_line);
			continue;
		}
		e->boxes[kept++] = *box;
	}
	e->count = kept;
}

/* Whether one of them is dealt with for good, and its descriptors are free. */
static bool attend_all(struct tacho__engine *e)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);
	bool freed = false;

	for (size_t i = 0; i < e->count; i++) {
		struct tacho__followed *box = &e->boxes[i];

		if (box->follow && !box->ended) {
			tacho__attend(e, box, now);
		} else if (box->ended && !box->done && now >= box->retry_ns) {
			tacho__save_ended(e, box);
			freed |= box->done;
		}
	}
	forget_gone(e);
	return freed;
}

void tacho__engine_work(struct tacho__engine *e, bool look)
{
	uint64_t pokes;
	bool freed;

	if (read(e->poke, &pokes, sizeof(pokes)) < 0 && errno != EAGAIN)
		look = true;
	do {
		if (look)
			tacho__engine_scan(e);
		freed = attend_all(e);
		look = true;
	} while (freed && e->waiting);
}

bool tacho__engine_is_blind(const struct tacho__engine *e)
{
	if (e->inotify < 0)
		return true;
	for (size_t i = 0; i < e->count; i++)
		if (!e->boxes[i].ended && !e->boxes[i].note && e->boxes[i].pidfd < 0)
			return true;
	return false;
}

int tacho__engine_reaped(struct tacho__engine *e, pid_t pid, int status)
{
	char message[TACHO__MESSAGE] = "";

	if (e->exec && tacho__exec_ended(e->exec, pid, status, message, sizeof(message))) {
		if (message[0])
			tacho__error(e->voice, "%s", message);
		return 1;
	}
	if ((uint32_t)pid == e->command)
		e->command_reaped = true;
	e->reaped[e->reaped_count++ % TACHO__REAPED] =
		(struct tacho__reaped){(uint32_t)pid, status, tacho__clock_ns(CLOCK_MONOTONIC)};
	return 0;
}

void tacho__engine_told(struct tacho__engine *e, pid_t pid, bool stopped)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->boxes[i].pid == (uint32_t)pid && e->boxes[i].follow && !e->boxes[i].ended)
			tacho__attend_stop(e, &e->boxes[i], stopped);
}

void tacho__engine_snapshot(struct tacho__engine *e, const char *why)
{
	size_t alive = 0;

	tacho__engine_scan(e);
	for (size_t i = 0; i < e->count; i++) {
		if (e->boxes[i].ended || e->boxes[i].done)
			continue;
		alive++;
		tacho__save_window(e, &e->boxes[i], why, tacho__clock_ns(CLOCK_MONOTONIC), 0);
	}
	if (alive == 0)
		tacho__warn(e->voice, "there is no window to save: nothing has been recorded yet.");
}

size_t tacho__engine_alive_since(const struct tacho__engine *e, uint64_t start)
{
	size_t alive = 0;

	for (size_t i = 0; i < e->count; i++)
		alive += !e->boxes[i].ended && !e->boxes[i].note && e->boxes[i].start_time >= start;
	return alive;
}

size_t tacho__engine_alive(const struct tacho__engine *e)
{
	return tacho__engine_alive_since(e, 0);
}

uint64_t tacho__engine_recorded_since(const struct tacho__engine *e, uint32_t pid)
{
	uint64_t since = UINT64_MAX;

	for (size_t i = 0; i < e->count; i++) {
		const struct tacho__followed *box = &e->boxes[i];

		if (box->pid == pid && box->follow &&
		    tacho__follow_super(box->follow)->created.mono_ns < since)
			since = tacho__follow_super(box->follow)->created.mono_ns;
	}
	return since;
}

const char *tacho__engine_names(const struct tacho__engine *e, char *out, size_t size)
{
	size_t used = 0, shown = 0, alive = tacho__engine_alive(e);

	out[0] = 0;
	for (size_t i = 0; i < e->count && shown < NAMES_SHOWN && used < size; i++) {
		const struct tacho__followed *box = &e->boxes[i];

		if (box->ended || box->note)
			continue;
		used += (size_t)snprintf(out + used, size - used, "%s%s (%" PRIu32 ")",
					 shown ? ", " : "", box->comm, box->pid);
		shown++;
	}
	if (alive > shown && used < size)
		snprintf(out + used, size - used, " and %zu more", alive - shown);
	return out;
}

/* ------------------------------------------------------------------------ end */

static void end_box(struct tacho__engine *e, struct tacho__followed *box)
{
	if (box->follow && !box->ended) {
		tacho__attend_last(e, box);
		tacho__attend_end(e, box);
	} else if (box->ended && !box->done) {
		tacho__save_ended(e, box);
	}
	if (box->note && tacho__box_process_runs(box->pid, box->start_time) == TACHO_ALIVE_NO &&
	    e->options.recording)
		unlink(box->path);
	if (box->pidfd >= 0)
		close(box->pidfd);
	tacho__kills_free(&box->kills);
	free(box->path);
	free(box->command_line);
}

void tacho__engine_end(struct tacho__engine *e)
{
	e->closing = true;
	if (e->waiting)
		tacho__error(
			e->voice,
			"some windows are kept in their boxes, because too many files are open: "
			"save them with 'tacho recover -o FOLDER', and raise the limit (ulimit "
			"-n).");
	for (size_t i = 0; i < e->count; i++)
		end_box(e, &e->boxes[i]);
	if (e->kept)
		tacho__error(e->voice,
			     "%u more windows are kept in their boxes: 'tacho recover -o FOLDER' "
			     "saves them all.",
			     e->kept);
	tacho__save_recording(e);
	/* Also where the command itself recorded nothing, as one that only starts others. */
	if (e->options.names && e->command_reaped && !e->failed)
		tacho__perf_map_remove(e->command, getuid());
	free(e->watches);
	e->watches = NULL;
	e->watch_count = 0;
	free(e->boxes);
	e->boxes = NULL;
	e->count = 0;
	for (size_t i = 0; i < e->other_count; i++)
		close(e->others[i].pidfd);
	free(e->others);
	e->others = NULL;
	e->other_count = 0;
	if (e->segments)
		tacho__segments_close(e->segments);
	e->segments = NULL;
	if (e->options.recording)
		tacho__box_folders_tidy(e->options.all_users);
	if (e->inotify >= 0)
		close(e->inotify);
	if (e->poke >= 0)
		close(e->poke);
	e->inotify = e->poke = -1;
	tacho__listener_free(e->listener);
	e->listener = NULL;
}

static void wait_for_exec(struct tacho__engine *e, int signals, bool (*impatient)(void *),
			  void *arg)
{
	uint64_t end = tacho__clock_ns(CLOCK_MONOTONIC) + EXEC_NS;

	while (e->exec && tacho__exec_pending(e->exec) > 0) {
		uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);
		struct pollfd fd = {.fd = signals, .events = POLLIN};
		unsigned left;

		if (now < end)
			poll(&fd, 1, (int)((end - now) / 1000000) + 1);
		if (!impatient(arg) && now < end)
			continue;
		left = tacho__exec_pending(e->exec);
		if (left)
			tacho__warn(e->voice, "%u commands of --exec were not waited for.", left);
		return;
	}
}

void tacho__engine_finish(struct tacho__engine *e, int signals, bool (*impatient)(void *),
			  void *arg)
{
	char used[TEXT_SMALL];

	wait_for_exec(e, signals, impatient, arg);
	if (e->options.continuous && !e->no_segments)
		tacho__note(e->voice, "%u segments were finished in %s", e->segment_count,
			    e->options.folder);
	if (e->dropped)
		tacho__note(e->voice,
			    "%u older windows were deleted, as --keep or --max-bytes says",
			    e->dropped);
	tacho__note(e->voice, "tacho itself used %s of CPU",
		    text_duration(used, tacho__clock_ns(CLOCK_PROCESS_CPUTIME_ID)));
	tacho__engine_free(e);
}

void tacho__engine_free(struct tacho__engine *e)
{
	if (e->exec)
		tacho__exec_free(e->exec);
	if (e->keep)
		tacho__keep_free(e->keep);
	e->exec = NULL;
	e->keep = NULL;
}
