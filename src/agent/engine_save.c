/*
 * Windows into trace files.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/boxes.h"
#include "agent/engine.h"
#include "agent/exec.h"
#include "agent/follow.h"
#include "agent/keep.h"
#include "agent/segments.h"
#include "base/clock.h"
#include "format/trace.h"
#include "read/news.h"
#include "read/records.h"
#include "symbols/resolve.h"
#include "tacho_read.h"
#include "text/problems.h"
#include "text/text.h"
#include "write/new_file.h"
#include "write/trace_write.h"

#define RETRY_NS UINT64_C(30000000000)
#define KEPT_SHOWN 5u /* windows that stay in their boxes at the end and are named one by one */

/* A window that is to be saved. */
struct window {
	struct tacho__engine *engine;
	struct tacho__followed *box;
	const char *why;
	uint64_t why_ns;
	uint32_t trigger; /* that wanted it; 0: none */
};

/* --------------------------------------------------------------------- writing */

void tacho__save_file(struct tacho__engine *e, uint32_t pid, const char *path, const char *why)
{
	int error;

	if (!e->exec)
		return;
	error = tacho__exec_file(e->exec, path, pid, why ? why : "");
	if (error == -ENOBUFS)
		tacho__error(e->voice, "--exec is not run for %s: %u files wait for it already.",
			     path, TACHO__EXEC_WAITING);
	else if (error < 0)
		tacho__error(e->voice, "--exec could not be run for %s: %s.", path,
			     strerror(-error));
}

/* Of a recording that is one file, all is said when it is finished. */
static void say_saved(const struct window *w, const char *path, const struct tacho__trace_result *r)
{
	char seconds[TEXT_SMALL], bytes[TEXT_SMALL];
	struct tacho__engine *e = w->engine;

	e->saved++;
	if (e->options.one_file) {
		if (!w->box->ended)
			tacho__note(e->voice, "%s: snapshot of %s (%" PRIu32 ") added%s%s", path,
				    w->box->comm, w->box->pid, w->why && w->why[0] ? "; " : "",
				    w->why ? w->why : "");
		return;
	}
	tacho__note(e->voice, "%s: %s %s (%" PRIu32 "), %" PRIu64 " events in %s, %s%s%s", path,
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

/* What is wrong was said when it began. */
static void complain(const struct tacho__engine *e, const char *sentence)
{
	if (!e->failing)
		tacho__error(e->voice, "%s", sentence);
}

/* Where a window goes: to the recording, or to a file of its own. */
static int begin_output(const struct window *w, const struct tacho_process *process,
			struct tacho__new_file *file, char message[TEXT_SENTENCE])
{
	struct tacho__engine *e = w->engine;
	const struct tacho_process command = {.pid = e->command,
					      .comm = e->options.command ? e->options.command : ""};
	int error;

	if (e->options.one_file)
		return tacho__recording_begin(&e->recording,
					      process->pid == e->command ? process : &command,
					      message, TEXT_SENTENCE);
	error = tacho__new_file_begin_in(file, e->options.folder, process);
	if (error < 0)
		memcpy(message, file->message, TEXT_SENTENCE);
	return error < 0 ? error : file->fd;
}

static void abandon_output(const struct window *w, struct tacho__new_file *file)
{
	if (w->engine->options.one_file)
		tacho__recording_abandon(&w->engine->recording);
	else
		tacho__new_file_abandon(file);
}

static int commit_output(const struct window *w, const struct tacho_process *process,
			 struct tacho__new_file *file, const struct tacho__trace_result *result,
			 char message[TEXT_SENTENCE])
{
	int error;

	if (w->engine->options.one_file)
		return tacho__recording_commit(&w->engine->recording, process, result, w->why,
					       message, TEXT_SENTENCE);
	error = tacho__new_file_commit(file);
	if (error < 0)
		memcpy(message, file->message, TEXT_SENTENCE);
	return error;
}

/* As readers of the trace will have it: a process that recorded until it ended did so until then. */
static bool lasts_until_end(const struct tacho__followed *box, const struct tacho_process *process)
{
	return box->ended && process->state == TACHO_STATE_RECORDING &&
	       box->end.how != TACHO_END_UNTOLD && box->end.how != TACHO_END_EXEC;
}

/* 1: a trace was written, 0: there is nothing in the box. */
static int write_trace(const struct window *w, struct tacho_reader *reader,
		       struct tacho__new_file *file, struct tacho__trace_result *result)
{
	const struct tacho_process *process = tacho_read_process(reader, 0);
	const char *slash = strrchr(w->box->path, '/');
	struct tacho_trace_gap gap;
	struct tacho__trace_options options = {
		.taken_by = w->box->ended ? TACHO_TAKEN_RECOVER : TACHO_TAKEN_DUMP,
		.box_name = slash ? slash + 1 : w->box->path,
		.no_symbols = w->engine->options.no_symbols,
		.why = w->why && w->why[0] ? w->why : NULL,
		.why_mono_ns = w->why && w->why[0] ? trigger_ns(reader, w) : 0,
		.agent_cpu_ns = tacho__clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		.end = w->box->ended ? &w->box->end : NULL,
		.absent = w->engine->absent ? w->engine->absent->list : NULL,
		.absent_count = w->engine->absent ? w->engine->absent->count : 0,
		.parent_pid = w->box->parent_pid,
		/* What the reader finds out itself has no credentials. */
		.command_line =
			w->box->ended || w->engine->options.no_redact ? w->box->command_line : NULL,
	};
	char message[TEXT_SENTENCE] = "";
	int error, fd = begin_output(w, process, file, message);

	if (w->box->ended)
		tacho__end_settle(&w->box->end, process);
	if (fd < 0) {
		complain(w->engine, message);
		return fd;
	}
	add_kernel(w, reader, &options, &gap);
	error = tacho__trace_write(reader, fd, &options, result, message, sizeof(message));
	if (lasts_until_end(w->box, process) && w->box->end.ns > result->last_ns)
		result->last_ns = w->box->end.ns;
	if (error < 0 || result->events == 0)
		abandon_output(w, file);
	else
		error = commit_output(w, process, file, result, message);
	if (error < 0)
		complain(w->engine, message[0] ? message : strerror(-error));
	return error < 0 ? error : result->events > 0;
}

static int save(const struct window *w)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho__trace_result written = {0};
	struct tacho__engine *e = w->engine;
	struct tacho_reader *reader = NULL;
	char message[TACHO__MESSAGE] = "";
	struct tacho__new_file file;
	/* Not by its name, which may be another's by now. */
	int result = tacho__read_fd(&reader, tacho__follow_fd(w->box->follow), w->box->path,
				    &options, message, sizeof(message));

	if (result == 0 && !tacho_read_process(reader, 0))
		result = -EBADMSG;
	/* There may be descriptors again later; a box that its program has damaged gets no better. */
	if (result < 0 && result != -EMFILE && result != -ENFILE && w->box->unreadable++ == 0)
		tacho__error(e->voice, "%s", message[0] ? message : strerror(-result));
	if (result == 0) {
		tacho__read_lower(reader, &w->box->rights);
		result = write_trace(w, reader, &file, &written);
	}
	if (result > 0) {
		text_problems(reader, 5, tacho__engine_warn, e);
		say_saved(w, e->options.one_file ? e->recording.path : file.path, &written);
	}
	if (result > 0 && !e->options.one_file) {
		e->dropped += tacho__keep_add(e->keep, file.path, written.bytes,
					      tacho__follow_file(w->box->follow)->st_uid);
		tacho__save_file(e, w->box->pid, file.path, w->why);
	}
	tacho_read_close(reader);
	return result < 0 ? result : 0;
}

int tacho__save_window(struct tacho__engine *e, struct tacho__followed *box, const char *why,
		       uint64_t why_ns, uint32_t trigger)
{
	struct window w = {
		.engine = e, .box = box, .why = why, .why_ns = why_ns, .trigger = trigger};
	uint32_t unreadable = box->unreadable;
	bool failed;

	/* The folder is not to be had, which was said. */
	if (e->no_segments)
		return -EIO;
	tacho__attend_stopped(e, box);
	failed = save(&w) < 0;
	/* That says nothing about the next one. */
	if (box->unreadable > unreadable)
		return -EIO;
	if (failed && !e->failing && !e->closing)
		tacho__error(e->voice,
			     "the window of %s (%" PRIu32
			     ") stays in %s; saving is tried again every 30 s.",
			     box->comm, box->pid, box->path);
	else if (!failed && e->failing)
		tacho__note(e->voice, "windows can be saved again");
	e->failing = failed;
	return failed ? -EIO : 0;
}

void tacho__save_recording(struct tacho__engine *e)
{
	bool is_there = e->recording.fd >= 0;

	if (is_there)
		tacho__save_file(e, e->command, e->recording.path, e->recording.why);
	tacho__recording_end(&e->recording);
}

/* ------------------------------------------------------------------------- end */

/* With --on exit, its condition decides; a status that nobody tells us counts as bad if the
   process did not end in order. */
static bool ended_as_wanted(struct tacho__engine *e, struct tacho__followed *box, bool in_order)
{
	if (box->exit_status < 0)
		return !in_order;
	return tacho__demand_value(&e->options.rules, &box->demand, TACHO__WATCH_EXIT,
				   tacho__clock_ns(CLOCK_MONOTONIC), (uint64_t)box->exit_status,
				   NULL);
}

/* It says itself that something was wrong. */
static bool has_failed(const struct tacho__followed *box)
{
	return box->end.how == TACHO_END_EXITED && box->end.status != 0;
}

static bool is_wanted(struct tacho__engine *e, struct tacho__followed *box)
{
	bool in_order = tacho__follow_state(box->follow) == TACHO_STATE_STOPPED;

	if (tacho__sentinels_watch(&e->options.rules.sentinels, TACHO__WATCH_EXIT))
		return ended_as_wanted(e, box, in_order) || box->demand.wanted;
	/* `tacho agent` saves the ends that nobody expected, and those that a `tacho run` would
	   have saved if it were not gone. */
	return e->options.recording || !in_order || has_failed(box) || e->options.all_ends ||
	       box->demand.wanted || tacho__follow_super(box->follow)->recording != 0;
}

static int save_last(struct tacho__engine *e, struct tacho__followed *box)
{
	struct tacho__demand *d = &box->demand;
	int result;

	if (box->row) {
		tacho__segments_end(box->row, &box->end, box->command_line);
		result = tacho__attend_drain(e, box, TACHO__DRAIN_END);
		box->unreadable += result < 0 && tacho__row_is_unreadable(box->row);
		return result;
	}
	if (!is_wanted(e, box)) {
		e->unwanted++;
		if (e->options.recording)
			tacho__note(e->voice,
				    "the window of %s (%" PRIu32
				    ") is not kept: no condition of --on held at its end",
				    box->comm, box->pid);
		return 0;
	}
	return tacho__save_window(e, box, d->wanted ? d->why : NULL, d->why_ns, d->trigger);
}

/* The program wanted to have its box kept, and nobody saved it. */
static bool is_asked_to_stay(const struct tacho__engine *e, const struct tacho__followed *box)
{
	const struct tacho_box_super *super = tacho__follow_super(box->follow);

	return e->options.recording == 0 && super->recording == 0 && super->keep && !e->segments &&
	       !e->options.all_ends && !box->demand.wanted && !has_failed(box) &&
	       tacho__follow_state(box->follow) == TACHO_STATE_STOPPED;
}

void tacho__save_ended(struct tacho__engine *e, struct tacho__followed *box)
{
	struct stat st = *tacho__follow_file(box->follow);
	uint32_t before = box->unreadable;
	char message[TEXT_SENTENCE];

	box->done = !tacho__box_is_there(box->path, st.st_ino);
	if (box->done && e->options.recording) {
		e->failed++;
		tacho__warn(e->voice,
			    "the window of %s (%" PRIu32
			    ") is not saved: somebody deleted its box, %s.",
			    box->comm, box->pid, box->path);
	}
	if (!box->done && box->retry_ns == 0)
		tacho__attend_last(e, box);
	if (!box->done && save_last(e, box) == 0) {
		box->done = true;
		if (!is_asked_to_stay(e, box) &&
		    tacho__box_remove(box->path, &st, message, sizeof(message)) < 0)
			tacho__warn(e->voice, "%s", message);
		if (e->options.names &&
		    tacho__box_process_runs(box->pid, box->start_time) == TACHO_ALIVE_NO)
			tacho__perf_map_remove(box->pid, st.st_uid);
	}
	if (!box->done && box->unreadable > before) {
		e->failed++;
		box->done = true;
		tacho__error(e->voice,
			     "the window of %s (%" PRIu32
			     ") stays in %s, which cannot be read; it is not tried again.",
			     box->comm, box->pid, box->path);
	}
	if (!box->done && !e->closing) {
		box->retry_ns = tacho__clock_ns(CLOCK_MONOTONIC) + RETRY_NS;
		return;
	}
	if (!box->done && e->failed++ < KEPT_SHOWN)
		tacho__error(e->voice,
			     "the window of %s (%" PRIu32
			     ") is kept in its box: 'tacho recover %s -o FOLDER' saves it.",
			     box->comm, box->pid, box->path);
	else if (!box->done)
		e->kept++;
	box->done = true;
	tacho__attend_end(e, box);
}
