/*
 * The boxes of one recording.
 */
#define _GNU_SOURCE 1 /* renameat2 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/trace_write.h"
#include "cli/boxes.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/run_boxes.h"
#include "cli/text.h"
#include "format/box.h"
#include "format/trace.h"

#define BOXES_MAX 16384u /* of one recording at a time: more are left to `tacho recover` */
#define NAMES_SHOWN 5u

static bool all_users(void)
{
	return geteuid() == 0;
}

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
	if (all_users())
		inotify_add_watch(b->inotify, "/dev/shm", mask);
}

void run_boxes_begin(struct run_boxes *b)
{
	const char *given = getenv("TACHO_BOX_DIR");
	char folder[64];

	b->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	/* What the first box would do, so that it can be waited for there. */
	snprintf(folder, sizeof(folder), "/dev/shm/tacho-%u", (unsigned)geteuid());
	mkdir(given && given[0] ? given : folder, 0700);
	run_boxes_scan(b);
}

static void drain(int fd)
{
	char events[4096];

	while (fd >= 0 && read(fd, events, sizeof(events)) > 0)
		;
}

enum kind { FOREIGN, UNFINISHED, OURS };

static enum kind read_super(const struct run_boxes *b, const struct box_file *file,
			    struct tacho_box_super *super, struct stat *st)
{
	int fd = open(file->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return FOREIGN;
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		return FOREIGN;
	}
	n = pread(fd, super, sizeof(*super), 0);
	close(fd);
	if (n < (ssize_t)sizeof(*super) || super->magic[0] == 0)
		return UNFINISHED;
	if (memcmp(super->magic, TACHO_BOX_MAGIC, sizeof(super->magic)) != 0 ||
	    super->recording != b->recording || super->pid != file->pid ||
	    super->start_time != file->start_time)
		return FOREIGN;
	return OURS;
}

static bool is_known(const struct run_boxes *b, const char *path, ino_t inode)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->boxes[i].inode == inode && strcmp(b->boxes[i].path, path) == 0)
			return true;
	return false;
}

/* Follows the process; one that is not there any more has ended. */
static void follow(struct run_box *box)
{
	box->pidfd = (int)syscall(SYS_pidfd_open, box->pid, 0);
	/* After the opening: the number may be another process by now. */
	if (box_process_runs(box->pid, box->start_time) == 0)
		box->ended = true;
}

static void say_note(struct run_boxes *b, const struct run_box *box,
		     const struct tacho_box_super *super)
{
	char reason[sizeof(super->reason) + 1] = "";

	memcpy(reason, super->reason, sizeof(super->reason));
	if (strcmp(reason, b->last_reason) == 0)
		return;
	memcpy(b->last_reason, reason, sizeof(reason));
	cli_warn("%s (%" PRIu32 ") runs but could not record: %s", box->comm, box->pid, reason);
}

static void add(struct run_boxes *b, const struct box_file *file)
{
	struct tacho_box_super super;
	struct run_box box = {.pid = file->pid,
			      .number = file->number,
			      .start_time = file->start_time,
			      .pidfd = -1};
	struct run_box *grown;
	struct stat st;
	enum kind kind = read_super(b, file, &super, &st);

	if (kind == UNFINISHED && box_process_runs(file->pid, file->start_time) != 0)
		b->pending = true;
	if (kind != OURS || is_known(b, file->path, st.st_ino) || b->count >= BOXES_MAX)
		return;
	box.inode = st.st_ino;
	box.path = strdup(file->path);
	grown = reallocarray(b->boxes, b->count + 1, sizeof(*grown));
	if (!box.path || !grown) {
		/* The box stays for `tacho recover`. */
		free(box.path);
		return;
	}
	memcpy(box.comm, super.comm, sizeof(super.comm));
	if (super.state == TACHO_BOX_OFF) {
		box.note = box.done = true;
		say_note(b, &box, &super);
	} else {
		follow(&box);
	}
	b->boxes = grown;
	b->boxes[b->count++] = box;
}

void run_boxes_scan(struct run_boxes *b)
{
	struct box_list list;
	int result;

	drain(b->inotify);
	result = b->silent ? box_list_read_quietly(&list, all_users())
			   : box_list_read(&list, all_users());
	b->silent = true;
	b->pending = false;
	if (result < 0)
		return;
	watch_folders(b, &list);
	for (size_t i = 0; i < list.file_count; i++)
		add(b, &list.files[i]);
	box_list_free(&list);
	for (size_t i = 0; i < b->count; i++) {
		struct run_box *box = &b->boxes[i];

		if (!box->ended && box_process_runs(box->pid, box->start_time) == 0)
			box->ended = true;
	}
}

/* The name that -o FILE gives to others than the command itself: FILE-PID. */
static int begin_beside(struct output *output, const struct run_boxes *b, const struct run_box *box)
{
	size_t stem = strlen(b->file);
	char path[PATH_MAX];

	if (stem > 6 && strcmp(b->file + stem - 6, ".tacho") == 0)
		stem -= 6;
	if ((size_t)snprintf(path, sizeof(path), "%.*s-%" PRIu32 ".tacho", (int)stem, b->file,
			     box->pid) >= sizeof(path))
		return -ENAMETOOLONG;
	return output_begin_unique(output, path);
}

/* Whether this is the newest box of the command itself: exec makes a new one. */
static bool is_main(const struct run_boxes *b, const struct run_box *box)
{
	if (box->pid != b->command || b->file_written)
		return false;
	for (size_t i = 0; i < b->count; i++)
		if (b->boxes[i].pid == box->pid && b->boxes[i].number > box->number &&
		    !b->boxes[i].note)
			return false;
	return true;
}

static int begin_output(struct output *output, const struct run_boxes *b, const struct run_box *box,
			const struct tacho_process *process)
{
	if (!b->file || !box->ended)
		return output_begin_in(output, b->folder, process);
	if (is_main(b, box))
		return output_begin(output, b->file, b->replace);
	return begin_beside(output, b, box);
}

static void say_saved(struct run_boxes *b, const struct run_box *box, const char *path,
		      const struct tacho__trace_result *r)
{
	char seconds[TEXT_SMALL], bytes[TEXT_SMALL];

	b->saved++;
	if (b->file && strcmp(path, b->file) == 0) {
		b->file_written = true;
	} else if (b->file && box->ended && r->events >= b->best_events) {
		snprintf(b->best, sizeof(b->best), "%s", path);
		b->best_events = r->events;
	}
	if (!b->quiet)
		cli_note("%s: %s %s (%" PRIu32 "), %" PRIu64 " events in %s, %s", path,
			 box->ended ? "window of" : "snapshot of", box->comm, box->pid, r->events,
			 text_duration(seconds, r->last_ns - r->first_ns),
			 text_bytes(bytes, r->bytes));
}

/* 1: a trace file was written, 0: there is nothing in the box. */
static int write_trace(struct run_boxes *b, const struct run_box *box, struct tacho_reader *reader)
{
	const char *slash = strrchr(box->path, '/');
	struct tacho__trace_options options = {
		.taken_by = box->ended ? TACHO_TAKEN_RECOVER : TACHO_TAKEN_DUMP,
		.box_name = slash ? slash + 1 : box->path,
		.no_symbols = b->no_symbols,
	};
	struct tacho__trace_result result = {0};
	char message[CLI_MESSAGE] = "";
	struct output output;
	int error = begin_output(&output, b, box, tacho_read_process(reader, 0));

	if (error < 0)
		return error;
	error = tacho__trace_write(reader, output.fd, &options, &result, message, sizeof(message));
	if (error < 0)
		cli_error("%s", message[0] ? message : strerror(-error));
	if (error < 0 || result.events == 0) {
		output_abandon(&output);
		return error;
	}
	error = output_commit(&output);
	if (error < 0)
		return error;
	cli_warn_problems(reader, 5);
	say_saved(b, box, output.path, &result);
	return 1;
}

/* The window of one process into a trace file. Returns 0 or -errno, after saying why. */
static int save_window(struct run_boxes *b, const struct run_box *box)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho_reader *reader = NULL;
	char message[CLI_MESSAGE] = "";
	int result = tacho_read_open(&reader, box->path, &options, message, sizeof(message));

	if (result < 0)
		cli_error("%s", message[0] ? message : strerror(-result));
	else if (!tacho_read_process(reader, 0))
		result = -EBADMSG;
	else
		result = write_trace(b, box, reader);
	tacho_read_close(reader);
	return result < 0 ? result : 0;
}

static void save_ended(struct run_boxes *b, struct run_box *box)
{
	struct stat st = {0};
	int lock = box_lock(box->path, &st);

	box->done = true;
	/* Deleted, or in the hands of a `tacho recover`. */
	if (lock == -ENOENT || lock == -EWOULDBLOCK)
		return;
	if (save_window(b, box) < 0) {
		b->failed++;
		cli_error("the window of %s (%" PRIu32 ") is kept in %s. Make room, then save it "
			  "with 'tacho recover %s -o FOLDER'.",
			  box->comm, box->pid, box->path, box->path);
	} else {
		box_remove(box->path, &st);
	}
	if (lock >= 0)
		close(lock);
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

void run_boxes_save(struct run_boxes *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->boxes[i].ended && !b->boxes[i].done)
			save_ended(b, &b->boxes[i]);
	forget_gone(b);
}

void run_boxes_snapshot(struct run_boxes *b)
{
	size_t alive = 0;

	run_boxes_scan(b);
	for (size_t i = 0; i < b->count; i++) {
		if (b->boxes[i].ended || b->boxes[i].done)
			continue;
		alive++;
		save_window(b, &b->boxes[i]);
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
	else if (!b->quiet)
		cli_note("%s is now %s", b->best, b->file);
}

void run_boxes_end(struct run_boxes *b)
{
	name_file(b);
	for (size_t i = 0; i < b->count; i++) {
		struct run_box *box = &b->boxes[i];

		if (box->note && box_process_runs(box->pid, box->start_time) == 0)
			unlink(box->path);
		if (box->pidfd >= 0)
			close(box->pidfd);
		free(box->path);
	}
	free(b->boxes);
	b->boxes = NULL;
	b->count = 0;
	if (b->inotify >= 0)
		close(b->inotify);
}
