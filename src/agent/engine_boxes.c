/*
 * Which boxes there are to follow, and which of their processes have ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "agent/engine.h"
#include "agent/follow.h"
#include "agent/segments.h"
#include "base/box_path.h"
#include "base/clock.h"
#include "base/process.h"
#include "format/box.h"
#include "format/trace.h"
#include "read/input.h"
#include "symbols/root.h"

/* At a time: more are left to `tacho recover`. No user takes them all, and no process: one box of it is
   new, and others are there until they are saved. */
#define BOXES_MAX 16384u
#define USER_BOXES_MAX 2048u
#define PROCESS_BOXES_MAX 4u
/* Looking for boxes takes at most that part of the time, however often there might be new ones. */
#define SCAN_PART 10u
#define SCAN_PAUSE_MAX_NS UINT64_C(1000000000)
#define OTHERS_MAX 64u
/* Descriptors that are kept for looking around and for saving windows. */
#define RESERVE 32u
#define SEGMENT_FDS 3u /* that continuous recording opens later, for each process */
/* How long the boxes of a `tacho run` are left to it before another agent takes them. */
#define LEFT_TO_RUN_NS UINT64_C(2000000000)
#define KILLS_LOOK_NS UINT64_C(5000000000)

static bool is_watched(const int *watches, size_t count, int watch)
{
	for (size_t i = 0; i < count; i++)
		if (watches[i] == watch)
			return true;
	return false;
}

/* Folders in which boxes may appear, also those that are not there yet; and no others any more: of a
   user's very many, each scan may list different ones. Whether one was not watched before: what was made
   in it since it was read is not known. */
static bool watch_folders(struct tacho__engine *e, const struct tacho__box_list *list)
{
	const uint32_t mask = IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW;
	int *watches = calloc(list->folder_count + 1, sizeof(*watches));
	char session[PATH_MAX];
	size_t count = 0;
	bool fresh = false;

	if (e->inotify < 0 || !watches) {
		free(watches);
		return false;
	}
	/* Each call is the same watch again where there is one. */
	for (size_t i = 0; i < list->folder_count; i++) {
		const struct tacho__box_folder *f = &list->folders[i];
		size_t n = tacho__box_parent(f->path);

		/* Where a user's folder is taken, it comes to be in that of their session. */
		if (e->options.all_users && f->state == TACHO__BOX_FOLDER_ABSENT &&
		    !strncmp(f->path, TACHO__RUN_USER, strlen(TACHO__RUN_USER)) &&
		    n < sizeof(session)) {
			memcpy(session, f->path, n);
			session[n] = 0;
			watches[count++] = inotify_add_watch(e->inotify, session, mask);
		} else if (f->state == TACHO__BOX_FOLDER_SEARCHED) {
			watches[count++] = inotify_add_watch(e->inotify, f->path, mask);
		}
	}
	/* A server of root may have workers of users that had no folder before. */
	if (e->options.all_users)
		watches[count++] = inotify_add_watch(e->inotify, "/dev/shm", mask);
	for (size_t i = 0; i < count; i++)
		fresh |= watches[i] >= 0 && !is_watched(e->watches, e->watch_count, watches[i]);
	for (size_t i = 0; i < e->watch_count; i++)
		if (e->watches[i] >= 0 && !is_watched(watches, count, e->watches[i]))
			inotify_rm_watch(e->inotify, e->watches[i]);
	free(e->watches);
	e->watches = watches;
	e->watch_count = count;
	return fresh;
}

static void drain(int fd)
{
	char events[4096];

	while (fd >= 0 && read(fd, events, sizeof(events)) > 0)
		;
}

/* --------------------------------------------------------------------- adding */

static bool is_known(const struct tacho__engine *e, const char *path, ino_t inode)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->boxes[i].inode == inode && strcmp(e->boxes[i].path, path) == 0)
			return true;
	return false;
}

/* The end of another agent makes its boxes ours. */
static void wait_for_other(struct tacho__engine *e, uint32_t pid)
{
	struct tacho__other_agent *grown;
	int pidfd;

	if (pid == 0 || pid == (uint32_t)getpid() || e->other_count >= OTHERS_MAX)
		return;
	for (size_t i = 0; i < e->other_count; i++)
		if (e->others[i].pid == pid)
			return;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return;
	grown = reallocarray(e->others, e->other_count + 1, sizeof(*grown));
	if (!grown) {
		close(pidfd);
		return;
	}
	e->others = grown;
	e->others[e->other_count++] = (struct tacho__other_agent){.pid = pid, .pidfd = pidfd};
}

static void forget_others(struct tacho__engine *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->other_count; i++) {
		struct pollfd fd = {.fd = e->others[i].pidfd, .events = POLLIN};

		if (poll(&fd, 1, 0) > 0)
			close(fd.fd);
		else
			e->others[kept++] = e->others[i];
	}
	e->other_count = kept;
}

enum kind { FOREIGN, UNFINISHED, OURS };

/* Of `tacho agent`, which takes all but what others look after. */
static enum kind is_free(struct tacho__engine *e, const struct tacho__follow *f)
{
	const struct tacho_box_super *super = tacho__follow_super(f);
	uint32_t agent = tacho__follow_agent(f);
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);

	if (e->options.service &&
	    strncmp(super->service, e->options.service, sizeof(super->service)) != 0)
		return FOREIGN;
	/* Who asked that a box outlive an orderly end wants to read it. */
	if (super->state == TACHO_STATE_STOPPED && agent == 0 && super->recording == 0)
		return FOREIGN;
	if (super->recording != 0 && agent == 0 && now >= super->created.mono_ns &&
	    now - super->created.mono_ns < LEFT_TO_RUN_NS)
		return UNFINISHED;
	return OURS;
}

/* What one user or one process may have of what all share, notes and boxes that are dealt with among
   it; root's are many users'. */
static bool is_too_many(const struct tacho__engine *e, const struct tacho__box_file *file,
			uid_t owner)
{
	uint32_t user = 0, process = 0;
	struct rlimit limit;
	rlim_t most = USER_BOXES_MAX;

	if (owner == geteuid())
		return false;
	/* A box takes two descriptors. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 8 < most)
		most = limit.rlim_cur / 8;
	for (size_t i = 0; i < e->count; i++) {
		const struct tacho__followed *box = &e->boxes[i];

		user += box->owner == owner;
		process +=
			box->follow && box->pid == file->pid && box->start_time == file->start_time;
	}
	return user >= most || process >= PROCESS_BOXES_MAX;
}

/* Nobody gets another's process watched by naming it in a box, nor another's file saved by giving it
   a name in a folder of their own. */
static bool is_whose_it_says(const struct tacho__box_file *file, uid_t owner)
{
	if (file->owner != owner && file->owner != 0)
		return false;
	/* Of one that is gone, the number may be another's by now. */
	return tacho__process_may_own(file->pid, owner) ||
	       tacho__box_process_runs(file->pid, file->start_time) == TACHO_ALIVE_NO;
}

static enum kind judge(struct tacho__engine *e, const struct tacho__box_file *file,
		       struct tacho__follow **f)
{
	const struct tacho_box_super *super;
	int result = tacho__follow_open(f, file->path);

	if (result < 0)
		return result == -ENODATA ? UNFINISHED : FOREIGN;
	super = tacho__follow_super(*f);
	if (super->pid != file->pid || super->start_time != file->start_time ||
	    !is_whose_it_says(file, tacho__follow_file(*f)->st_uid) ||
	    is_known(e, file->path, tacho__follow_file(*f)->st_ino) ||
	    is_too_many(e, file, tacho__follow_file(*f)->st_uid))
		return FOREIGN;
	if (e->options.recording)
		return super->recording == e->options.recording ? OURS : FOREIGN;
	return is_free(e, *f);
}

static void say_note(struct tacho__engine *e, const struct tacho__followed *box,
		     const struct tacho_box_super *super)
{
	char reason[sizeof(super->reason) + 1] = "";

	memcpy(reason, super->reason, sizeof(super->reason));
	if (strcmp(reason, e->last_reason) == 0)
		return;
	memcpy(e->last_reason, reason, sizeof(reason));
	tacho__warn(e->voice,
		    "%s (%" PRIu32
		    ") runs but could not record: %s 'tacho doctor' says what can be "
		    "done.",
		    box->comm, box->pid, reason);
}

/* That a box stays smaller than wanted, once: of several processes it is the same reason. */
static void say_size(struct tacho__engine *e, const struct tacho__followed *box)
{
	struct tacho_box_super now;

	if (!e->options.recording || e->size_said || !box->follow ||
	    pread(tacho__follow_fd(box->follow), &now, sizeof(now), 0) != (ssize_t)sizeof(now) ||
	    !now.room.kept_at)
		return;
	e->size_said = true;
	tacho__note(e->voice, "%s (%" PRIu32 "): %.*s Its window is shorter.", box->comm, box->pid,
		    (int)strnlen(now.reason, sizeof(now.reason)), now.reason);
}

/* ------------------------------------------------------------------------ ends */

/* Whether the process has a later box. */
static bool has_later_box(const struct tacho__engine *e, const struct tacho__followed *box)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->boxes[i].pid == box->pid && e->boxes[i].start_time == box->start_time &&
		    e->boxes[i].number > box->number && !e->boxes[i].note)
			return true;
	return false;
}

/* A process that stops recording and starts again has a new box. */
static bool is_left(const struct tacho__engine *e, const struct tacho__followed *box)
{
	return box->follow && tacho__follow_state(box->follow) == TACHO_STATE_STOPPED &&
	       has_later_box(e, box);
}

/* Of a child of ours: NULL: it is none, or that was too long ago. Numbers are used again. */
static const struct tacho__reaped *find_reaped(const struct tacho__engine *e,
					       const struct tacho__followed *box)
{
	uint32_t kept = e->reaped_count < TACHO__REAPED ? e->reaped_count : TACHO__REAPED;

	for (uint32_t i = 1; i <= kept; i++) {
		const struct tacho__reaped *r = &e->reaped[(e->reaped_count - i) % TACHO__REAPED];

		if (r->pid == box->pid &&
		    r->ns >= tacho__follow_super(box->follow)->created.mono_ns)
			return r;
	}
	return NULL;
}

static void find_end(const struct tacho__engine *e, struct tacho__followed *box)
{
	const struct tacho__reaped *r = box->follow ? find_reaped(e, box) : NULL;
	/* One that was followed while it ran, or began since we look, has ended just now. */
	bool now =
		box->kills.looked_at_ns ||
		(box->follow && tacho__follow_super(box->follow)->created.mono_ns >= e->begun_ns);
	uint64_t ns = now ? tacho__clock_ns(CLOCK_MONOTONIC) : 0;
	int status = 0;

	box->end = (struct tacho__trace_end){.how = TACHO_END_GONE, .ns = ns};
	if (r)
		box->end = tacho__end_of(r->status, r->ns, &box->kills);
	else if (tacho__end_status(box->pid, box->start_time, box->pidfd, &status))
		box->end = tacho__end_of(status, ns, &box->kills);
	box->exit_status = box->end.how == TACHO_END_EXITED   ? (int)box->end.status
			   : box->end.how == TACHO_END_KILLED ? 128 + (int)box->end.status
							      : -1;
	/* That is the end of the process, not of what recorded into this box. */
	if (has_later_box(e, box))
		box->end = (struct tacho__trace_end){.how = is_left(e, box) ? TACHO_END_RUNNING
									    : TACHO_END_EXEC};
}

/* Follows the process; one that is not there any more has ended. */
static void follow_process(struct tacho__followed *box, bool whole_arguments)
{
	char line[TACHO_COMMAND_LINE_MAX];

	box->pidfd = (int)syscall(SYS_pidfd_open, box->pid, 0);
	tacho__box_process_line(box->pid, line, sizeof(line), whole_arguments, &box->parent_pid);
	/* After the opening: the number may be another process by now. */
	if (tacho__box_process_runs(box->pid, box->start_time) == TACHO_ALIVE_NO) {
		box->ended = true;
		return;
	}
	box->command_line = strdup(line);
	box->root_kept = tacho__root_keep(box->pid, box->start_time);
	tacho__kills_look(&box->kills, box->pid);
}

/* Takes over `f`, also when it fails. */
static void take(struct tacho__engine *e, const struct tacho__box_file *file,
		 struct tacho__follow *f)
{
	const struct tacho_box_super *super = tacho__follow_super(f);
	struct tacho__followed box = {.pid = file->pid,
				      .number = file->number,
				      .start_time = file->start_time,
				      .inode = tacho__follow_file(f)->st_ino,
				      .owner = tacho__follow_file(f)->st_uid,
				      .rights = {tacho__follow_file(f)->st_uid,
						 tacho__follow_file(f)->st_gid, UINT64_MAX},
				      .look_ns = UINT64_MAX,
				      .drain_ns = UINT64_MAX,
				      .pidfd = -1};
	struct tacho__followed *grown = reallocarray(e->boxes, e->count + 1, sizeof(*grown));

	if (grown)
		e->boxes = grown;
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
		if (e->options.recording)
			say_note(e, &box, super);
		if (e->absent)
			tacho__absent_refused(e->absent, super);
		tacho__follow_end(f);
	} else {
		if (e->absent)
			tacho__absent_boxed(e->absent, box.pid);
		box.follow = f;
		follow_process(&box, e->options.no_redact || super->whole_arguments);
		tacho__rights_of_box(&box.rights, box.path);
	}
	e->boxes[e->count++] = box;
	if (box.follow) {
		say_size(e, &e->boxes[e->count - 1]);
		tacho__attend_begin(e, &e->boxes[e->count - 1]);
	}
}

/* The lowest that is free tells how many are in use. */
bool tacho__engine_crowded(const struct tacho__engine *e)
{
	int lowest = fcntl(e->poke, F_DUPFD_CLOEXEC, 0);
	rlim_t followed = 0, wanted;
	struct rlimit limit;

	if (lowest >= 0)
		close(lowest);
	for (size_t i = 0; i < e->count; i++)
		followed += e->boxes[i].follow != NULL;
	if (followed == 0)
		return false;
	if (lowest < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return true;
	wanted = limit.rlim_cur / 4 < RESERVE ? limit.rlim_cur / 4 : RESERVE;
	if (e->segments)
		wanted += SEGMENT_FDS * followed;
	return (rlim_t)lowest + wanted >= limit.rlim_cur;
}

static void add(struct tacho__engine *e, const struct tacho__box_file *file)
{
	struct tacho__follow *f = NULL;
	enum kind kind = e->count < BOXES_MAX ? judge(e, file, &f) : FOREIGN;

	if (kind == OURS && tacho__engine_crowded(e)) {
		e->waiting = true;
		kind = FOREIGN;
	}

	if (kind == UNFINISHED &&
	    (f || tacho__box_process_runs(file->pid, file->start_time) != TACHO_ALIVE_NO))
		e->pending = true;
	if (kind != OURS) {
		tacho__follow_end(f);
	} else if (tacho__follow_super(f)->state != TACHO_STATE_OFF && tacho__follow_lock(f) < 0) {
		wait_for_other(e, tacho__follow_agent(f));
		tacho__follow_end(f);
	} else {
		take(e, file, f);
	}
}

static bool has_ended(const struct tacho__engine *e, const struct tacho__followed *box)
{
	struct pollfd fd = {.fd = box->pidfd, .events = POLLIN};
	enum tacho_alive runs;

	/* How the command ended decides about its window: it is known when it was reaped. */
	if (box->pid == e->command && !e->command_reaped)
		return false;
	if (e->options.recording == 0 && is_left(e, box))
		return true;
	runs = tacho__box_process_runs(box->pid, box->start_time);
	if (runs != TACHO_ALIVE_UNKNOWN)
		return runs == TACHO_ALIVE_NO;
	/* Without /proc the process itself is asked, or its number. */
	if (box->pidfd >= 0)
		return poll(&fd, 1, 0) > 0 && (fd.revents & POLLIN);
	return (box->follow && find_reaped(e, box)) ||
	       (kill((pid_t)box->pid, 0) < 0 && errno == ESRCH);
}

/* It may give them up, and then write into its box what it likes. */
static void note_rights(struct tacho__followed *box)
{
	tacho__rights_of_box(&box->rights, box->path);
	if (box->row)
		tacho__segments_lower(box->row, &box->rights);
}

static void look_at_ends(struct tacho__engine *e)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);
	bool any = false; /* process has just ended */

	for (size_t i = 0; i < e->count; i++) {
		struct tacho__followed *box = &e->boxes[i];

		if (!box->ended && box->follow)
			note_rights(box);
		if (!box->ended)
			box->ended = has_ended(e, box);
		if (box->ended && !box->end.how) {
			find_end(e, box);
			say_size(e, box);
			any = true;
		}
	}
	/* What the out-of-memory killer did by now has nothing to do with those that go on. */
	for (size_t i = 0; i < e->count; i++) {
		struct tacho__followed *box = &e->boxes[i];

		if (!box->ended && box->follow &&
		    (any || now - box->kills.looked_at_ns > KILLS_LOOK_NS))
			tacho__kills_look(&box->kills, box->pid);
	}
}

void tacho__engine_scan(struct tacho__engine *e)
{
	uint64_t begin = tacho__clock_ns(CLOCK_MONOTONIC), end;
	struct tacho__box_list list;
	char folder[PATH_MAX];
	int result;

	drain(e->inotify);
	forget_others(e);
	tacho__box_folder_make(
		folder,
		sizeof(folder)); /* also again: a `tacho run` that ends deletes it when it is empty */
	result = tacho__box_list_read(&list, e->options.all_users);
	if (result == 0 && watch_folders(e, &list)) {
		tacho__box_list_free(&list);
		result = tacho__box_list_read(&list, e->options.all_users);
	}
	e->pending = e->waiting = false;
	if (result == 0) {
		if (!e->silent)
			tacho__box_list_tell(&list, !e->options.recording, tacho__engine_warn, e);
		e->silent = true;
		for (size_t i = 0; i < list.file_count; i++)
			add(e, &list.files[i]);
		tacho__box_list_free(&list);
	}
	look_at_ends(e);
	end = tacho__clock_ns(CLOCK_MONOTONIC);
	e->scan_ns = (end - begin) * (SCAN_PART - 1);
	e->scan_ns = end + (e->scan_ns < SCAN_PAUSE_MAX_NS ? e->scan_ns : SCAN_PAUSE_MAX_NS);
}
