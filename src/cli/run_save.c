/*
 * Windows into trace files.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/exec.h"
#include "agent/follow.h"
#include "agent/keep.h"
#include "agent/kernel.h"
#include "agent/segments.h"
#include "base/clock.h"
#include "write/trace_write.h"
#include "cli/boxes.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/run_boxes.h"
#include "text/text.h"
#include "cli/watch_options.h"
#include "format/box.h"
#include "format/trace.h"

#define RETRY_NS UINT64_C(30000000000)
#define EXEC_NS UINT64_C(30000000000) /* for the last commands of --exec */

/* A window that is to be saved. */
struct window {
	struct run_boxes *b;
	struct run_box *box;
	const char *why;
	uint64_t why_ns;
	uint32_t trigger; /* that wanted it; 0: none */
};

uint64_t run_cpu_ns(void)
{
	return tacho__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* ----------------------------------------------------------------------- names */

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

/* --------------------------------------------------------------------- writing */

void run_save_file(struct run_boxes *b, uint32_t pid, const char *path, const char *why)
{
	int error;

	if (!b->exec)
		return;
	error = tacho__exec_file(b->exec, path, pid, why ? why : "");
	if (error == -ENOBUFS)
		cli_error("--exec is not run for %s: %u files wait for it already.", path,
			  TACHO__EXEC_WAITING);
	else if (error < 0)
		cli_error("--exec could not be run for %s: %s.", path, strerror(-error));
}

void run_save_best(struct run_boxes *b)
{
	if (b->best_waits)
		run_save_file(b, b->best_pid, b->best, b->best_why);
	b->best_waits = false;
}

/* Whether FILE may still go to another process than the command. */
static bool has_no_owner(const struct run_boxes *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->boxes[i].pid == b->command && !b->boxes[i].note)
			return false;
	return !b->file_written;
}

/* What gets the name FILE at the end is handed over then: a command that has the path must
   find the file there. */
static void hand_over(const struct window *w, const char *path, uint64_t events)
{
	struct run_boxes *b = w->b;
	bool best = b->file && w->box->ended && events >= b->best_events;

	if (b->file && strcmp(path, b->file) == 0) {
		b->file_written = true;
		best = false;
	}
	if (best || b->file_written)
		run_save_best(b);
	if (best) {
		snprintf(b->best, sizeof(b->best), "%s", path);
		b->best_events = events;
		b->best_pid = w->box->pid;
		snprintf(b->best_why, sizeof(b->best_why), "%s", w->why ? w->why : "");
		b->best_waits = has_no_owner(b);
	}
	if (!best || !b->best_waits)
		run_save_file(b, w->box->pid, path, w->why);
}

static void say_saved(const struct window *w, const char *path, const struct tacho__trace_result *r)
{
	char seconds[TEXT_SMALL], bytes[TEXT_SMALL];
	struct run_boxes *b = w->b;

	b->saved++;
	if (!b->watch->quiet)
		cli_note("%s: %s %s (%" PRIu32 "), %" PRIu64 " events in %s, %s%s%s", path,
			 w->box->ended ? "window of" : "snapshot of", w->box->comm, w->box->pid,
			 r->events, text_duration(seconds, r->last_ns - r->first_ns),
			 text_bytes(bytes, r->bytes), w->why && w->why[0] ? "; " : "",
			 w->why ? w->why : "");
}

/* When the trigger was, on the clock of the trace; the reader knows that best. */
static uint64_t trigger_ns(const struct tacho_reader *reader, const struct window *w)
{
	for (uint32_t i = 0; w->trigger && i < tacho_read_trigger_count(reader); i++) {
		const struct tacho_trigger_info *t = tacho_read_trigger(reader, i);

		if (t->number == w->trigger)
			return t->ns;
	}
	return w->why_ns;
}

static uint32_t thread_number(void *arg, uint32_t tid)
{
	const struct tacho_reader *reader = arg;
	uint32_t number = 0;

	/* An id may have been used again: the last one counts. */
	for (uint32_t i = 0; i < tacho_read_thread_count(reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(reader, i);

		if (t->tid == tid && t->number >= number)
			number = t->number;
	}
	return number;
}

static void add_kernel(const struct window *w, struct tacho_reader *reader,
		       struct tacho__trace_options *options, struct tacho_trace_gap *gap)
{
	uint64_t lost = 0;

	if (!w->box->kernel)
		return;
	tacho__kernel_drain(w->box->kernel);
	if (tacho__kernel_take(w->box->kernel, thread_number, reader, &options->kernel,
			       &options->kernel_count, &lost) < 0) {
		options->kernel_count = 0;
		return;
	}
	if (lost == 0)
		return;
	*gap = (struct tacho_trace_gap){.records = lost, .reason = TACHO_GAP_KERNEL};
	tacho_read_window(reader, &gap->from_ns, &gap->to_ns);
	options->gaps = gap;
	options->gap_count = 1;
}

/* 1: a trace file was written, 0: there is nothing in the box. */
static int write_trace(const struct window *w, struct tacho_reader *reader, struct output *output,
		       struct tacho__trace_result *result)
{
	const char *slash = strrchr(w->box->path, '/');
	struct tacho_trace_gap gap;
	struct tacho__trace_options options = {
		.taken_by = w->box->ended ? TACHO_TAKEN_RECOVER : TACHO_TAKEN_DUMP,
		.box_name = slash ? slash + 1 : w->box->path,
		.no_symbols = w->b->watch->no_symbols,
		.why = w->why && w->why[0] ? w->why : NULL,
		.why_mono_ns = w->why && w->why[0] ? trigger_ns(reader, w) : 0,
		.agent_cpu_ns = run_cpu_ns(),
	};
	char message[CLI_MESSAGE] = "";
	int error = begin_output(output, w->b, w->box, tacho_read_process(reader, 0));

	if (error < 0)
		return error;
	add_kernel(w, reader, &options, &gap);
	error = tacho__trace_write(reader, output->fd, &options, result, message, sizeof(message));
	if (error < 0)
		cli_error("%s", message[0] ? message : strerror(-error));
	if (error < 0 || result->events == 0) {
		output_abandon(output);
		return error;
	}
	error = output_commit(output);
	return error < 0 ? error : 1;
}

static int save(const struct window *w)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho__trace_result written = {0};
	struct tacho_reader *reader = NULL;
	char message[CLI_MESSAGE] = "";
	struct output output;
	int result = tacho_read_open(&reader, w->box->path, &options, message, sizeof(message));

	if (result < 0)
		cli_error("%s", message[0] ? message : strerror(-result));
	else if (!tacho_read_process(reader, 0))
		result = -EBADMSG;
	else
		result = write_trace(w, reader, &output, &written);
	if (result > 0) {
		cli_be_quiet(false);
		cli_warn_problems(reader, 5);
		say_saved(w, output.path, &written);
		if (!w->box->ended && w->why && w->why[0])
			w->b->dropped += tacho__keep_add(w->b->keep, output.path, written.bytes);
		hand_over(w, output.path, written.events);
	}
	tacho_read_close(reader);
	return result < 0 ? result : 0;
}

int run_save_window(struct run_boxes *b, struct run_box *box, const char *why, uint64_t why_ns,
		    uint32_t trigger)
{
	struct window w = {.b = b, .box = box, .why = why, .why_ns = why_ns, .trigger = trigger};
	/* What is wrong was said when it began. */
	bool was = cli_be_quiet(b->failing);
	bool failed = save(&w) < 0;

	cli_be_quiet(was);
	if (failed && !b->failing && !b->closing)
		cli_error("the window of %s (%" PRIu32 ") stays in %s; it is tried again every "
			  "30 s.",
			  box->comm, box->pid, box->path);
	else if (!failed && b->failing && !b->watch->quiet)
		cli_note("windows can be saved again");
	b->failing = failed;
	return failed ? -EIO : 0;
}

/* ------------------------------------------------------------------------- end */

/* How the process ended, as a shell tells it; -1: that is its parent's secret. */
static int exit_status(struct run_boxes *b, struct run_box *box)
{
	siginfo_t info = {0};

	if (box->pid == b->command && b->command_reaped) {
		box->status = b->command_status;
		box->status_known = true;
	}
	if (box->status_known)
		return WIFSIGNALED(box->status) ? 128 + WTERMSIG(box->status)
						: WEXITSTATUS(box->status);
	/* A child that was not reaped yet. */
	if (b->recording == 0 || waitid(P_PID, box->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	    info.si_pid == 0)
		return -1;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

/* With --on exit, its condition decides; a status that nobody tells us counts as bad if the
   process did not end in order. */
static bool ended_as_wanted(struct run_boxes *b, struct run_box *box, bool in_order)
{
	int status = exit_status(b, box);

	if (status < 0)
		return !in_order;
	return tacho__demand_value(&b->watch->rules, &box->demand, TACHO__WATCH_EXIT, cli_now_ns(),
				   (uint64_t)status, NULL);
}

static bool is_wanted(struct run_boxes *b, struct run_box *box)
{
	bool in_order = tacho__follow_state(box->follow) == TACHO_STATE_STOPPED;

	if (watch_options_on(b->watch, TACHO__WATCH_EXIT))
		return ended_as_wanted(b, box, in_order) || box->demand.wanted;
	/* `tacho agent` cares for what its owner did not expect, and for what a `tacho run`
	   that is gone was to save. */
	return b->recording || !in_order || b->all_ends || box->demand.wanted ||
	       tacho__follow_super(box->follow)->recording != 0;
}

static int save_last(struct run_boxes *b, struct run_box *box)
{
	struct tacho__demand *d = &box->demand;

	if (box->row)
		return run_attend_drain(b, box, TACHO__DRAIN_END);
	if (!is_wanted(b, box)) {
		b->unwanted++;
		if (b->recording && !b->watch->quiet)
			cli_note("the window of %s (%" PRIu32
				 ") is not kept: no condition of --on held at its end",
				 box->comm, box->pid);
		return 0;
	}
	return run_save_window(b, box, d->wanted ? d->why : NULL, d->why_ns, d->trigger);
}

/* The program wanted to have its box kept, and nobody saved it. */
static bool is_asked_to_stay(const struct run_boxes *b, const struct run_box *box)
{
	const struct tacho_box_super *super = tacho__follow_super(box->follow);

	return b->recording == 0 && super->recording == 0 && super->keep && !b->segments &&
	       !b->all_ends && !box->demand.wanted &&
	       tacho__follow_state(box->follow) == TACHO_STATE_STOPPED;
}

void run_save_ended(struct run_boxes *b, struct run_box *box)
{
	struct stat st = *tacho__follow_file(box->follow);
	struct stat now;

	box->done = lstat(box->path, &now) < 0 || now.st_ino != st.st_ino;
	if (box->done && b->recording) {
		b->failed++;
		cli_warn("the window of %s (%" PRIu32
			 ") is not saved: somebody deleted its box, %s.",
			 box->comm, box->pid, box->path);
	}
	if (!box->done && box->retry_ns == 0)
		run_attend_last(b, box);
	if (!box->done && save_last(b, box) == 0) {
		box->done = true;
		if (!is_asked_to_stay(b, box))
			box_remove(box->path, &st);
	}
	if (!box->done && !b->closing) {
		box->retry_ns = cli_now_ns() + RETRY_NS;
		return;
	}
	if (!box->done) {
		b->failed++;
		cli_error("the window of %s (%" PRIu32 ") is kept in %s. Make room, then save it "
			  "with 'tacho recover %s -o FOLDER'.",
			  box->comm, box->pid, box->path, box->path);
	}
	box->done = true;
	run_attend_end(b, box);
}

void run_boxes_finish_exec(struct run_boxes *b, int signals, bool (*impatient)(void *), void *arg)
{
	uint64_t end = cli_now_ns() + EXEC_NS;

	while (b->exec && tacho__exec_pending(b->exec) > 0) {
		uint64_t now = cli_now_ns();
		struct pollfd fd = {.fd = signals, .events = POLLIN};
		unsigned left;

		if (now < end)
			poll(&fd, 1, (int)((end - now) / 1000000) + 1);
		if (!impatient(arg) && now < end)
			continue;
		left = tacho__exec_pending(b->exec);
		if (left)
			cli_warn("%u commands of --exec were not waited for.", left);
		return;
	}
}

void run_boxes_summary(const struct run_boxes *b)
{
	char used[TEXT_SMALL];

	if (b->watch->quiet)
		return;
	if (b->watch->continuous)
		cli_note("%u segments were finished in %s", b->segment_count, b->folder);
	if (b->dropped)
		cli_note("%u older windows were deleted, as --keep or --max-bytes says",
			 b->dropped);
	cli_note("tacho itself used %s of CPU", text_duration(used, run_cpu_ns()));
}
