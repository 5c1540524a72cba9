/*
 * Which boxes there are to follow, and which of their processes have ended.
 */
#define _GNU_SOURCE 1 /* renameat2 */
#include "cli/run_boxes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/exec.h"
#include "agent/follow.h"
#include "agent/keep.h"
#include "agent/kernel.h"
#include "agent/segments.h"
#include "cli/boxes.h"
#include "cli/cli.h"
#include "cli/watch_options.h"
#include "format/box.h"

#define BOXES_MAX 16384u /* at a time: more are left to `tacho recover` */
#define OTHERS_MAX 64u
#define NAMES_SHOWN 5u
/* Descriptors that are kept for looking around and for saving windows. */
#define RESERVE 32u
#define SEGMENT_FDS 3u /* that continuous recording opens later, for each process */
/* How long the boxes of a `tacho run` are left to it before another agent takes them. */
#define LEFT_TO_RUN_NS UINT64_C(2000000000)
#define NS_PER_S UINT64_C(1000000000)
#define SHORT_NS UINT64_C(100000000)

/* Folders in which boxes may appear, also those that are not there yet. */
static void watch_folders(const struct run_boxes *b, const struct box_list *list)
{
	const uint32_t mask = IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW;

	if (b->inotify < 0)
		return;
	/* Each call is the same watch again where there is one. */
	for (size_t i = 0; i < list->folder_count; i++)
		if (list->folders[i].state == BOX_FOLDER_SEARCHED)
			inotify_add_watch(b->inotify, list->folders[i].path, mask);
	/* A server of root may have workers of users that had no folder before. */
	if (b->all_users)
		inotify_add_watch(b->inotify, "/dev/shm", mask);
}

static void drain(int fd)
{
	char events[4096];

	while (fd >= 0 && read(fd, events, sizeof(events)) > 0)
		;
}

/* --------------------------------------------------------------------- adding */

static bool is_known(const struct run_boxes *b, const char *path, ino_t inode)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->boxes[i].inode == inode && strcmp(b->boxes[i].path, path) == 0)
			return true;
	return false;
}

/* The end of another agent makes its boxes ours. */
static void wait_for_other(struct run_boxes *b, uint32_t pid)
{
	struct run_other *grown;
	int pidfd;

	if (pid == 0 || pid == (uint32_t)getpid() || b->other_count >= OTHERS_MAX)
		return;
	for (size_t i = 0; i < b->other_count; i++)
		if (b->others[i].pid == pid)
			return;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return;
	grown = reallocarray(b->others, b->other_count + 1, sizeof(*grown));
	if (!grown) {
		close(pidfd);
		return;
	}
	b->others = grown;
	b->others[b->other_count++] = (struct run_other){.pid = pid, .pidfd = pidfd};
}

static void forget_others(struct run_boxes *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->other_count; i++) {
		struct pollfd fd = {.fd = b->others[i].pidfd, .events = POLLIN};

		if (poll(&fd, 1, 0) > 0)
			close(fd.fd);
		else
			b->others[kept++] = b->others[i];
	}
	b->other_count = kept;
}

enum kind { FOREIGN, UNFINISHED, OURS };

/* Of `tacho agent`, which takes all but what others look after. */
static enum kind is_free(struct run_boxes *b, const struct tacho__follow *f)
{
	const struct tacho_box_super *super = tacho__follow_super(f);
	uint32_t agent = tacho__follow_agent(f);
	uint64_t now = cli_now_ns();

	if (b->service && strncmp(super->service, b->service, sizeof(super->service)) != 0)
		return FOREIGN;
	/* Who asked that a box outlive an orderly end wants to read it. */
	if (super->state == TACHO_STATE_STOPPED && agent == 0 && super->recording == 0)
		return FOREIGN;
	if (super->recording != 0 && agent == 0 && now >= super->created.mono_ns &&
	    now - super->created.mono_ns < LEFT_TO_RUN_NS)
		return UNFINISHED;
	return OURS;
}

static enum kind judge(struct run_boxes *b, const struct box_file *file, struct tacho__follow **f)
{
	const struct tacho_box_super *super;
	int result = tacho__follow_open(f, file->path);

	if (result < 0)
		return result == -ENODATA ? UNFINISHED : FOREIGN;
	super = tacho__follow_super(*f);
	if (super->pid != file->pid || super->start_time != file->start_time ||
	    is_known(b, file->path, tacho__follow_file(*f)->st_ino))
		return FOREIGN;
	if (b->recording)
		return super->recording == b->recording ? OURS : FOREIGN;
	return is_free(b, *f);
}

static void say_note(struct run_boxes *b, const struct run_box *box,
		     const struct tacho_box_super *super)
{
	char reason[sizeof(super->reason) + 1] = "";

	memcpy(reason, super->reason, sizeof(super->reason));
	if (strcmp(reason, b->last_reason) == 0)
		return;
	memcpy(b->last_reason, reason, sizeof(reason));
	cli_warn("%s (%" PRIu32 ") runs but could not record: %s 'tacho doctor' says what can be "
		 "done.",
		 box->comm, box->pid, reason);
}

/* Follows the process; one that is not there any more has ended. */
static void follow_process(struct run_box *box)
{
	box->pidfd = (int)syscall(SYS_pidfd_open, box->pid, 0);
	/* After the opening: the number may be another process by now. */
	if (box_process_runs(box->pid, box->start_time) == TACHO_ALIVE_NO)
		box->ended = true;
}

/* Takes over `f`, also when it fails. */
static void take(struct run_boxes *b, const struct box_file *file, struct tacho__follow *f)
{
	const struct tacho_box_super *super = tacho__follow_super(f);
	struct run_box box = {.pid = file->pid,
			      .number = file->number,
			      .start_time = file->start_time,
			      .inode = tacho__follow_file(f)->st_ino,
			      .look_ns = UINT64_MAX,
			      .drain_ns = UINT64_MAX,
			      .pidfd = -1};
	struct run_box *grown = reallocarray(b->boxes, b->count + 1, sizeof(*grown));

	if (grown)
		b->boxes = grown;
	box.path = strdup(file->path);
	if (!grown || !box.path) {
		/* The box stays for `tacho recover`. */
		free(box.path);
		tacho__follow_end(f);
		return;
	}
	memcpy(box.comm, super->comm, sizeof(super->comm));
	if (super->state == TACHO_STATE_OFF) {
		box.note = box.done = true;
		if (b->recording)
			say_note(b, &box, super);
		tacho__follow_end(f);
	} else {
		box.follow = f;
		follow_process(&box);
	}
	b->boxes[b->count++] = box;
	if (box.follow)
		run_attend_begin(b, &b->boxes[b->count - 1]);
}

/* Whether so many descriptors are in use that those followed must end before others. The lowest
   that is free tells how many are. */
bool run_boxes_crowded(const struct run_boxes *b)
{
	int lowest = fcntl(b->poke, F_DUPFD_CLOEXEC, 0);
	rlim_t followed = 0, wanted;
	struct rlimit limit;

	if (lowest >= 0)
		close(lowest);
	for (size_t i = 0; i < b->count; i++)
		followed += b->boxes[i].follow != NULL;
	if (followed == 0)
		return false;
	if (lowest < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return true;
	wanted = limit.rlim_cur / 4 < RESERVE ? limit.rlim_cur / 4 : RESERVE;
	if (b->segments)
		wanted += SEGMENT_FDS * followed;
	return (rlim_t)lowest + wanted >= limit.rlim_cur;
}

static void add(struct run_boxes *b, const struct box_file *file)
{
	struct tacho__follow *f = NULL;
	enum kind kind = b->count < BOXES_MAX ? judge(b, file, &f) : FOREIGN;

	if (kind == OURS && run_boxes_crowded(b)) {
		b->waiting = true;
		kind = FOREIGN;
	}

	if (kind == UNFINISHED &&
	    (f || box_process_runs(file->pid, file->start_time) != TACHO_ALIVE_NO))
		b->pending = true;
	if (kind != OURS) {
		tacho__follow_end(f);
	} else if (tacho__follow_super(f)->state != TACHO_STATE_OFF && tacho__follow_lock(f) < 0) {
		wait_for_other(b, tacho__follow_agent(f));
		tacho__follow_end(f);
	} else {
		take(b, file, f);
	}
}

/* A process that stops recording and starts again has a new box. */
static bool is_left(const struct run_boxes *b, const struct run_box *box)
{
	if (!box->follow || tacho__follow_state(box->follow) != TACHO_STATE_STOPPED)
		return false;
	for (size_t i = 0; i < b->count; i++)
		if (b->boxes[i].pid == box->pid && b->boxes[i].start_time == box->start_time &&
		    b->boxes[i].number > box->number && !b->boxes[i].note)
			return true;
	return false;
}

static bool has_ended(const struct run_boxes *b, const struct run_box *box)
{
	struct pollfd fd = {.fd = box->pidfd, .events = POLLIN};
	enum tacho_alive runs;

	/* How the command ended decides about its window: it is known when it was reaped. */
	if (box->pid == b->command && !b->command_reaped)
		return false;
	if (b->recording == 0 && is_left(b, box))
		return true;
	runs = box_process_runs(box->pid, box->start_time);
	/* That cannot be read: the process itself can still be asked. */
	return runs == TACHO_ALIVE_UNKNOWN ? poll(&fd, 1, 0) > 0 && (fd.revents & POLLIN)
					   : runs == TACHO_ALIVE_NO;
}

static void scan(struct run_boxes *b)
{
	struct box_list list;
	int result;

	drain(b->inotify);
	forget_others(b);
	result = b->silent ? box_list_read_quietly(&list, b->all_users)
			   : box_list_read(&list, b->all_users);
	b->silent = true;
	b->pending = b->waiting = false;
	if (result == 0) {
		watch_folders(b, &list);
		for (size_t i = 0; i < list.file_count; i++)
			add(b, &list.files[i]);
		box_list_free(&list);
	}
	for (size_t i = 0; i < b->count; i++)
		if (!b->boxes[i].ended)
			b->boxes[i].ended = has_ended(b, &b->boxes[i]);
}

/* ------------------------------------------------------------------ beginning */

int run_boxes_begin(struct run_boxes *b)
{
	const char *given = getenv("TACHO_BOX_DIR");
	char folder[64];

	b->begun_ns = cli_now_ns();
	b->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	b->poke = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (b->poke < 0) {
		int error = errno;

		cli_error("cannot make an eventfd: %s.", strerror(error));
		return -error;
	}
	if (!run_attend_setup(b))
		return -ENOMEM;
	/* What the first box would do, so that it can be waited for there. */
	snprintf(folder, sizeof(folder), "/dev/shm/tacho-%u", (unsigned)geteuid());
	mkdir(given && given[0] ? given : folder, 0700);
	scan(b);
	return 0;
}

void run_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* -------------------------------------------------------------------- waiting */

uint64_t run_boxes_due(const struct run_boxes *b)
{
	uint64_t due = b->segments ? tacho__segments_due(b->segments) : UINT64_MAX;

	for (size_t i = 0; i < b->count; i++) {
		uint64_t at = run_attend_due(b, &b->boxes[i]);

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

static void wait_for_all(struct waited *w, const struct run_boxes *b)
{
	wait_for(w, b->inotify, true);
	wait_for(w, b->poke, false);
	for (size_t i = 0; i < b->other_count; i++)
		wait_for(w, b->others[i].pidfd, true);
	for (size_t i = 0; i < b->count; i++) {
		const struct run_box *box = &b->boxes[i];

		if (box->ended)
			continue;
		wait_for(w, box->pidfd, true);
		if (box->kernel)
			wait_for(w, tacho__kernel_fd(box->kernel), false);
	}
}

bool run_boxes_wait(const struct run_boxes *b, int signals, uint64_t until)
{
	size_t most = 3 + b->other_count + 2 * b->count;
	struct waited w = {.fds = calloc(most, sizeof(*w.fds)), .look = calloc(most, 1)};
	uint64_t now = cli_now_ns(), due = run_boxes_due(b), left;
	struct timespec timeout;
	bool look = !w.fds || !w.look;

	if (due < until)
		until = due;
	left = until > now ? until - now : 0;
	if (look)
		left = left < SHORT_NS ? left : SHORT_NS; /* no memory: look around instead */
	timeout = (struct timespec){.tv_sec = (time_t)(left / NS_PER_S),
				    .tv_nsec = (long)(left % NS_PER_S)};
	if (!look) {
		wait_for(&w, signals, false);
		wait_for_all(&w, b);
	}
	ppoll(w.fds, w.count, until == UINT64_MAX && !look ? NULL : &timeout, NULL);
	for (size_t i = 0; i < w.count; i++)
		look |= w.look[i] && w.fds[i].revents;
	free(w.fds);
	free(w.look);
	return look;
}

/* Boxes that are dealt with; those that stay are remembered as done. */
static void forget_gone(struct run_boxes *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->count; i++) {
		struct run_box *box = &b->boxes[i];

		if (box->ended && box->pidfd >= 0) {
			close(box->pidfd);
			box->pidfd = -1;
		}
		if (box->ended && box->done && access(box->path, F_OK) < 0) {
			free(box->path);
			continue;
		}
		b->boxes[kept++] = *box;
	}
	b->count = kept;
}

/* Whether one of them is dealt with for good, and its descriptors are free. */
static bool attend_all(struct run_boxes *b)
{
	uint64_t now = cli_now_ns();
	bool freed = false;

	for (size_t i = 0; i < b->count; i++) {
		struct run_box *box = &b->boxes[i];

		if (box->follow && !box->ended) {
			run_attend(b, box, now);
		} else if (box->ended && !box->done && now >= box->retry_ns) {
			run_save_ended(b, box);
			freed |= box->done;
		}
	}
	forget_gone(b);
	return freed;
}

void run_boxes_work(struct run_boxes *b, bool look)
{
	uint64_t pokes;
	bool freed;

	if (read(b->poke, &pokes, sizeof(pokes)) < 0 && errno != EAGAIN)
		look = true;
	do {
		if (look)
			scan(b);
		freed = attend_all(b);
		look = true;
	} while (freed && b->waiting);
}

int run_boxes_reaped(struct run_boxes *b, pid_t pid, int status)
{
	char message[CLI_MESSAGE] = "";

	if (b->exec && tacho__exec_ended(b->exec, pid, status, message, sizeof(message))) {
		if (message[0])
			cli_error("%s", message);
		return 1;
	}
	for (size_t i = 0; i < b->count; i++) {
		if (b->boxes[i].pid != (uint32_t)pid)
			continue;
		b->boxes[i].status_known = true;
		b->boxes[i].status = status;
	}
	return 0;
}

void run_boxes_snapshot(struct run_boxes *b, const char *why)
{
	size_t alive = 0;

	scan(b);
	for (size_t i = 0; i < b->count; i++) {
		if (b->boxes[i].ended || b->boxes[i].done)
			continue;
		alive++;
		run_save_window(b, &b->boxes[i], why, cli_now_ns(), 0);
	}
	if (alive == 0)
		cli_warn("there is no window to save: nothing has been recorded yet.");
}

size_t run_boxes_alive(const struct run_boxes *b)
{
	size_t alive = 0;

	for (size_t i = 0; i < b->count; i++)
		alive += !b->boxes[i].ended && !b->boxes[i].note;
	return alive;
}

const char *run_boxes_names(const struct run_boxes *b, char *out, size_t size)
{
	size_t used = 0, shown = 0, alive = run_boxes_alive(b);

	out[0] = 0;
	for (size_t i = 0; i < b->count && shown < NAMES_SHOWN && used < size; i++) {
		const struct run_box *box = &b->boxes[i];

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

/* FILE is what was asked for: if the command itself recorded nothing, it is the window
   with the most events. */
static void name_file(struct run_boxes *b)
{
	int flags = b->replace ? 0 : RENAME_NOREPLACE;

	if (!b->file || b->file_written || !b->best[0])
		return;
	if (renameat2(AT_FDCWD, b->best, AT_FDCWD, b->file, (unsigned)flags) < 0)
		cli_warn("%s keeps its name, because it could not get the name %s: %s.", b->best,
			 b->file, strerror(errno));
	else {
		if (!b->watch->quiet)
			cli_note("%s is now %s", b->best, b->file);
		snprintf(b->best, sizeof(b->best), "%s", b->file);
	}
}

static void end_box(struct run_boxes *b, struct run_box *box)
{
	if (box->follow && !box->ended) {
		run_attend_last(b, box);
		run_attend_end(b, box);
	} else if (box->ended && !box->done) {
		run_save_ended(b, box);
	}
	if (box->note && box_process_runs(box->pid, box->start_time) == TACHO_ALIVE_NO &&
	    b->recording)
		unlink(box->path);
	if (box->pidfd >= 0)
		close(box->pidfd);
	free(box->path);
}

void run_boxes_end(struct run_boxes *b)
{
	b->closing = true;
	if (b->waiting)
		cli_error("some windows are kept in their boxes, because too many files are open: "
			  "save them with 'tacho recover -o FOLDER', and raise the limit (ulimit "
			  "-n).");
	for (size_t i = 0; i < b->count; i++)
		end_box(b, &b->boxes[i]);
	name_file(b);
	run_save_best(b);
	free(b->boxes);
	b->boxes = NULL;
	b->count = 0;
	for (size_t i = 0; i < b->other_count; i++)
		close(b->others[i].pidfd);
	free(b->others);
	b->others = NULL;
	b->other_count = 0;
	if (b->segments)
		tacho__segments_close(b->segments);
	b->segments = NULL;
	if (b->inotify >= 0)
		close(b->inotify);
	if (b->poke >= 0)
		close(b->poke);
	b->inotify = b->poke = -1;
}

void run_boxes_free(struct run_boxes *b)
{
	if (b->exec)
		tacho__exec_free(b->exec);
	if (b->keep)
		tacho__keep_free(b->keep);
	b->exec = NULL;
	b->keep = NULL;
}
