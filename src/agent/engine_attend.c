/*
 * What one followed box wants: windows for its triggers, a look at its loops, its records in
 * segments.
 *
 * The agent wakes up by time only for these: a loop that has unparked and might stall, a process
 * that works or is stopped and is looked at for that, a window that must be taken later, the end of
 * a cooldown, a segment that is due, and a window that could not be saved.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "agent/engine.h"
#include "agent/exec.h"
#include "agent/follow.h"
#include "agent/keep.h"
#include "agent/segments.h"
#include "agent/stall.h"
#include "base/clock.h"
#include "symbols/root.h"
#include "core/memory_limits.h"

#define NS_PER_MS UINT64_C(1000000)
#define RETRY_NS (30000 * NS_PER_MS)
#define SETTLE_NS (10 * NS_PER_MS) /* until a loop that was unparking has said so */
#define LOOK_LEAST_NS (1 * NS_PER_MS)
#define SAMPLE_HZ 99u
#define KERNEL_BYTES (UINT64_C(16) << 20) /* for each process */
#define KERNEL_SHARE 256u		  /* the part of a memory limit that this is at most */

static bool has_effect(const struct tacho__engine *e, const char *option,
		       const struct tacho__kernel_options *wanted)
{
	char message[TACHO__MESSAGE] = "";

	if (tacho__kernel_possible(wanted, message, sizeof(message)) == 0)
		return true;
	tacho__warn(e->voice, "%s has no effect, the rest is recorded: %s", option,
		    message[0] ? message : "perf cannot be used");
	return false;
}

/* A container's memory limit counts for tacho and for the program together. */
static uint64_t kernel_bytes(void)
{
	struct tacho__memory_limits memory;
	struct tacho__memory_work work;
	uint64_t most = KERNEL_BYTES;

	tacho__memory_limits(&work, &memory);
	for (uint32_t i = 0; i < memory.count; i++)
		if (memory.limit[i].size / KERNEL_SHARE < most)
			most = memory.limit[i].size / KERNEL_SHARE;
	return most;
}

/*
 * Samples with frames of the kernel, and switches, as far as they are asked for and the kernel gives
 * them: switches it gives to users to whom it does not show its own frames.
 */
static void ask_kernel(struct tacho__engine *e)
{
	const struct tacho__engine_options *o = &e->options;
	const struct tacho__kernel_options samples = {.sample_hz = SAMPLE_HZ},
					   switches = {.switches = true};

	e->kernel = (struct tacho__kernel_options){.max_bytes = kernel_bytes()};
	if (o->kernel && has_effect(e, "--kernel", &samples))
		e->kernel.sample_hz = SAMPLE_HZ;
	e->kernel.switches = o->sched && has_effect(e, "--sched", &switches);
}

/* What all boxes share. */
int tacho__attend_setup(struct tacho__engine *e, char *message)
{
	const struct tacho__engine_options *o = &e->options;

	e->keep = tacho__keep_new(o->keep, o->max_bytes);
	if (o->exec)
		e->exec = tacho__exec_new(o->exec, environ);
	if (!e->keep || (o->exec && !e->exec)) {
		snprintf(message, TACHO__MESSAGE, "out of memory.");
		return -ENOMEM;
	}
	ask_kernel(e);
	return 0;
}

static uint64_t window_begin(void *follow)
{
	return tacho__follow_window(follow);
}

static void begin_kernel(struct tacho__engine *e, struct tacho__followed *box)
{
	struct tacho__kernel_options options = e->kernel;
	char message[TACHO__MESSAGE] = "";

	if (!options.sample_hz && !options.switches)
		return;
	options.since = window_begin;
	options.arg = box->follow;
	if (tacho__engine_crowded(e))
		snprintf(message, sizeof(message),
			 "too many files are open; raise the limit (ulimit -n)");
	else
		box->kernel = tacho__kernel_new(box->pid, &options, message, sizeof(message));
	if (!box->kernel && e->kernel.switches &&
	    tacho__box_process_runs(box->pid, box->start_time) == TACHO_ALIVE_YES)
		tacho__warn(e->voice, "%s (%" PRIu32 ") is recorded without context switches: %s",
			    box->comm, box->pid, message);
}

void tacho__attend_begin(struct tacho__engine *e, struct tacho__followed *box)
{
	const struct tacho_box_super *super = tacho__follow_super(box->follow);
	const struct tacho__sentinels *s = &e->options.rules.sentinels;
	bool past = e->options.recording || super->created.mono_ns >= e->begun_ns;
	uint64_t limit[TACHO_SENTINEL_COUNT];
	struct tacho_box_control control;
	uint32_t chunks = 0;

	if (e->segments) {
		box->row = tacho__segments_row(e->segments, box->path);
		if (box->row && e->options.no_redact)
			tacho__segments_command_line(box->row, box->command_line);
		chunks = super->regions[TACHO_REGION_SLOTS].count / 4;
		chunks = chunks ? chunks : 1;
	}
	if (box->ended)
		return;
	box->listens = tacho__follow_begin(box->follow, e->listener, e->poke, past) == 0;
	if (!box->listens)
		return;
	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++)
		limit[i] = tacho__sentinels_limit(s, (enum tacho__watched)i);
	if (tacho__follow_control(box->follow, &control) == 0)
		tacho__demand_begin(&e->options.rules, &box->demand, &control);
	tacho__follow_limits(box->follow, limit, chunks);
	if (tacho__sentinels_watch(s, TACHO__WATCH_STALL)) {
		box->stall = tacho__stall_new(tacho__follow_fd(box->follow), (pid_t)box->pid);
		box->look_ns = 0;
	}
	if (box->row)
		box->drain_ns = tacho__clock_ns(CLOCK_MONOTONIC) + e->options.segment_ns;
	begin_kernel(e, box);
	tacho__stops_begin(&box->stops, box->pid, box->parent_pid == (uint32_t)getpid(),
			   tacho__clock_ns(CLOCK_MONOTONIC));
}

/* ------------------------------------------------------------------- stops */

/* Its first thread, if that records; else any. */
static uint32_t any_thread(const struct tacho__followed *box)
{
	uint32_t count, tid = 0;
	struct tacho_box_thread *all = tacho__follow_threads(box->follow, &count);

	for (uint32_t i = 0; i < count; i++)
		if (all[i].state != TACHO_THREAD_FREE && (!tid || all[i].tid == box->pid))
			tid = all[i].tid;
	free(all);
	return tid;
}

static void keep_stop(const struct tacho__engine *e, struct tacho__followed *box,
		      struct tacho__stop *stop)
{
	struct tacho__kernel_options options = {
		.max_bytes = e->kernel.max_bytes, .since = window_begin, .arg = box->follow};
	uint32_t tid = any_thread(box);

	if (!box->kernel)
		box->kernel = tacho__kernel_new(box->pid, &options, NULL, 0);
	if (box->kernel && tid)
		tacho__kernel_stopped(box->kernel, tid, stop);
}

void tacho__attend_stop(struct tacho__engine *e, struct tacho__followed *box, bool stopped)
{
	struct tacho__stop stop;

	if (tacho__stops_told(&box->stops, stopped, tacho__clock_ns(CLOCK_MONOTONIC), &stop))
		keep_stop(e, box, &stop);
}

void tacho__attend_stopped(struct tacho__engine *e, struct tacho__followed *box)
{
	struct tacho__stop stop;

	if (tacho__stops_cut(&box->stops, tacho__clock_ns(CLOCK_MONOTONIC), &stop))
		keep_stop(e, box, &stop);
}

static void look_for_stops(struct tacho__engine *e, struct tacho__followed *box, uint64_t now)
{
	struct tacho__stop stop;
	bool idle;

	if (tacho__stops_look(&box->stops, now, &idle, &stop))
		keep_stop(e, box, &stop);
	if (idle)
		tacho__follow_idle(box->follow);
}

/* ------------------------------------------------------------------- triggers */

static void read_triggers(struct tacho__engine *e, struct tacho__followed *box, uint64_t now)
{
	struct tacho_box_control control;
	struct tacho_box_trigger trigger;
	uint32_t missed;

	if (tacho__follow_control(box->follow, &control) < 0)
		return;
	/* A program that makes them faster than they are read is listened to again later. */
	for (unsigned i = 0; i < TACHO_TRIGGERS; i++) {
		if (!tacho__follow_trigger(box->follow, &trigger, &missed))
			break;
		box->demand.unheard += missed;
		tacho__demand_trigger(&e->options.rules, &box->demand, now, &trigger, &control);
	}
}

static void take_window(struct tacho__engine *e, struct tacho__followed *box, uint64_t now)
{
	struct tacho__demand *d = &box->demand;

	if (tacho__save_window(e, box, d->why, d->why_ns, d->trigger) == 0)
		tacho__demand_taken(d);
	else
		d->due_ns = now + RETRY_NS;
}

/* ---------------------------------------------------------------------- stalls */

static void report_stall(struct tacho__engine *e, struct tacho__followed *box, uint64_t now,
			 const struct tacho__stalled *s)
{
	char what[256];

	snprintf(what, sizeof(what), "%s%s%s%s, thread %" PRIu32, s->loop_name[0] ? ", loop " : "",
		 s->loop_name, s->kind_name[0] ? ", in " : "", s->kind_name, s->tid);
	tacho__demand_value(&e->options.rules, &box->demand, TACHO__WATCH_STALL, now, s->took_ns,
			    what);
}

/* When the loops are all parked, their recorder is asked to tell when one unparks, and no
   time is waited for. One that was just unparking then may not have seen that: hence a
   second look. */
static void look_at_loops(struct tacho__engine *e, struct tacho__followed *box, uint64_t now)
{
	uint64_t limit = tacho__sentinels_limit(&e->options.rules.sentinels, TACHO__WATCH_STALL);
	struct tacho__stalled s;

	if (tacho__stall_look(box->stall, limit, &s) < 0) {
		/* It is damaged, or cut: there is nothing to be seen in it any more. */
		tacho__stall_free(box->stall);
		box->stall = NULL;
		box->look_ns = UINT64_MAX;
		return;
	}
	if (s.found && s.fresh)
		report_stall(e, box, now, &s);
	if (!s.idle) {
		box->settled = false;
		box->look_ns = s.due_ns < now + limit ? s.due_ns : now + limit;
		if (box->look_ns < now + LOOK_LEAST_NS)
			box->look_ns = now + LOOK_LEAST_NS;
	} else if (!box->settled) {
		box->settled = true;
		tacho__follow_idle(box->follow);
		box->look_ns = now + SETTLE_NS;
	} else {
		box->look_ns = UINT64_MAX;
	}
}

/* -------------------------------------------------------------------- segments */

static void segment_finished(void *arg, const char *path, uint64_t bytes)
{
	struct tacho__engine *e = arg;

	(void)bytes;
	e->segment_count++;
	tacho__save_file(e, e->current ? e->current->pid : 0, path, "");
}

int tacho__attend_segments(struct tacho__engine *e, char *message)
{
	struct tacho__segments_options options = {
		.folder = e->options.folder,
		.service = e->options.service ? e->options.service : "agent",
		.segment_bytes = e->options.segment_bytes,
		.segment_ns = e->options.segment_ns,
		.max_bytes = e->options.max_bytes,
		.no_symbols = e->options.no_symbols,
		.left_later = e->options.recording != 0,
		.finished = segment_finished,
		.say = tacho__engine_warn,
		.arg = e,
	};
	int result = tacho__segments_open(&e->segments, &options, message, TACHO__MESSAGE);

	e->no_segments = result < 0;
	if (result < 0 && !message[0])
		snprintf(message, TACHO__MESSAGE, "%s", strerror(-result));
	return result;
}

struct threads {
	struct tacho_box_thread *of;
	uint32_t count;
};

/* An id may have been used again: the last one counts. */
static uint32_t thread_number(void *arg, uint32_t tid)
{
	const struct threads *t = arg;
	uint32_t number = 0;

	for (uint32_t i = 0; i < t->count; i++)
		if (t->of[i].state != TACHO_THREAD_FREE && t->of[i].tid == tid &&
		    t->of[i].number > number)
			number = t->of[i].number;
	return number;
}

static void deliver_kernel(struct tacho__engine *e, struct tacho__followed *box)
{
	const struct tacho__records *records;
	struct threads threads;
	uint32_t count;
	uint64_t lost;

	if (!box->kernel)
		return;
	tacho__kernel_drain(box->kernel);
	threads.of = tacho__follow_threads(box->follow, &threads.count);
	if (tacho__kernel_take_new(box->kernel, thread_number, &threads, &records, &count, &lost) ==
	    0)
		tacho__kernel_delivered(box->kernel, tacho__segments_kernel(e->segments, box->row,
									    records, count, lost));
	free(threads.of);
}

int tacho__attend_drain(struct tacho__engine *e, struct tacho__followed *box, int how)
{
	int result;

	if (how != TACHO__DRAIN_SEALED)
		tacho__attend_stopped(e, box);
	e->current = box;
	/* What the kernel told finds a segment only where the box was read before. */
	if (how == TACHO__DRAIN_END && box->kernel)
		tacho__segments_drain(e->segments, box->row, TACHO__DRAIN_ALL);
	deliver_kernel(e, box);
	result = tacho__segments_drain(e->segments, box->row, (enum tacho__drain)how);
	e->current = NULL;
	if (result < 0)
		box->drain_ns = tacho__clock_ns(CLOCK_MONOTONIC) + RETRY_NS;
	return result;
}

/*
 * Sealed chunks are taken when the recorder says that a part of its pool is full of them. What
 * a quiet program has in chunks that are not full is taken when it may be as old as a
 * segment may get; then the recorder is asked to tell when a loop unparks, so that a
 * program in which nothing happens is left alone.
 */
static void attend_segments(struct tacho__engine *e, struct tacho__followed *box, uint64_t now,
			    bool poked)
{
	struct tacho_box_control control;

	if (poked && tacho__follow_control(box->follow, &control) == 0) {
		if (control.sealed != box->sealed) {
			box->sealed = control.sealed;
			tacho__attend_drain(e, box, TACHO__DRAIN_SEALED);
		}
		if (box->drain_ns == UINT64_MAX)
			box->drain_ns = now + e->options.segment_ns;
	}
	if (now >= box->drain_ns) {
		box->drain_ns = UINT64_MAX;
		tacho__follow_idle(box->follow);
		tacho__attend_drain(e, box, TACHO__DRAIN_ALL);
	} else if (tacho__row_due(box->row, now)) {
		tacho__attend_drain(e, box, TACHO__DRAIN_ALL);
	}
}

/* ---------------------------------------------------------------------- absent */

static void look_for_unrecorded(struct tacho__engine *e, struct tacho__followed *box)
{
	struct tacho_box_control control;

	if (!e->absent || tacho__follow_control(box->follow, &control) < 0 ||
	    control.unrecorded == box->unrecorded)
		return;
	box->unrecorded = control.unrecorded;
	tacho__absent_started(e->absent);
}

/* ------------------------------------------------------------------------- all */

void tacho__attend(struct tacho__engine *e, struct tacho__followed *box, uint64_t now)
{
	bool poked;

	if (box->kernel)
		tacho__kernel_drain(box->kernel);
	if (!box->listens)
		return;
	poked = tacho__follow_poked(box->follow);
	if (poked)
		read_triggers(e, box, now);
	if (poked) {
		tacho__stops_poked(&box->stops, now);
		box->settled = false;
		look_for_unrecorded(e, box);
	}
	look_for_stops(e, box, now);
	if (box->stall && (poked || now >= box->look_ns))
		look_at_loops(e, box, now);
	/* Before the window is taken, which takes its time. */
	if (tacho__demand_arm(&box->demand, now))
		tacho__follow_arm(box->follow);
	if (tacho__demand_due(&box->demand, now))
		take_window(e, box, now);
	if (box->row)
		attend_segments(e, box, now, poked);
}

uint64_t tacho__attend_due(const struct tacho__engine *e, const struct tacho__followed *box)
{
	uint64_t due;

	if (box->done || !box->follow)
		return UINT64_MAX;
	if (box->ended)
		return e->closing ? UINT64_MAX : box->retry_ns;
	due = tacho__demand_next(&box->demand);
	if (box->listens && box->stops.look_ns < due)
		due = box->stops.look_ns;
	if (box->stall && box->look_ns < due)
		due = box->look_ns;
	if (box->row && box->drain_ns < due)
		due = box->drain_ns;
	return due;
}

void tacho__attend_last(struct tacho__engine *e, struct tacho__followed *box)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);

	if (box->kernel)
		tacho__kernel_drain(box->kernel);
	read_triggers(e, box, now);
	/* We leave a process that goes on: what was wanted is taken as it stands. */
	if (!box->ended && box->demand.wanted)
		take_window(e, box, now);
	if (!box->ended && box->row)
		tacho__attend_drain(e, box, TACHO__DRAIN_ALL);
}

void tacho__attend_end(struct tacho__engine *e, struct tacho__followed *box)
{
	if (box->row) {
		e->current = box;
		tacho__row_free(e->segments, box->row);
		e->current = NULL;
	}
	if (box->stall)
		tacho__stall_free(box->stall);
	if (box->kernel)
		tacho__kernel_free(box->kernel);
	if (box->root_kept)
		tacho__root_forget(box->pid, box->start_time);
	tacho__follow_end(box->follow);
	box->root_kept = false;
	box->row = NULL;
	box->stall = NULL;
	box->kernel = NULL;
	box->follow = NULL;
}
