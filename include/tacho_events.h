/*
 * tacho_events.h - the table of all events. Included by tacho_read.h.
 *
 * What an event is called, what its argument and its words hold, and how it reads as text stand
 * here and nowhere else. The recorder's records, the checks of the reader, the columns of trace
 * files, the fields of `tacho cat` and of its JSON, and the reference in docs/format.md follow
 * from it.
 *
 *   E(NAME, number, name, words, state, text, what)
 *
 * is an event of type TACHO_EV_NAME. The two top bits of the number say how many words follow the
 * argument: none, one, two, or as many as the low 16 bits of word 0 say, itself included. `words`
 * is how many of those a reader may rely on; `state`: STATE if it changes what is known to be open
 * on its thread, else PLAIN. `text` is what a person reads: {field} shows a field,
 * {field?this|that} chooses by whether it is given, and [...] is left out when a field that it shows
 * is not given. `what` adds to the fields what they do not say.
 *
 *   F(NAME, field, at, role, what)
 *
 * is a field of it. `at`: ARG, the argument of 24 bits; W(k), word k; DATA, what word 0 holds above
 * its count; ARG_BITS(from, bits), BITS(k, from, bits), parts of these; REST(k), all words from
 * word k on. `role`: see enum tacho_role. TACHO_GET(event, NAME, field) takes it out of an event.
 *
 * Numbers are part of the format: they are never used again for something else. Unknown types may
 * come from newer recorders: skip them.
 */
#ifndef TACHO_EVENTS_H
#define TACHO_EVENTS_H

#include <stdint.h>

/* What a field holds. */
enum tacho_role {
	TACHO_ROLE_NUMBER,
	TACHO_ROLE_BOOL,
	TACHO_ROLE_NS,	     /* a duration */
	TACHO_ROLE_TIME,     /* ns of CLOCK_MONOTONIC; 0: not known. In a box: ticks */
	TACHO_ROLE_ID,	     /* a definition; 0: not given */
	TACHO_ROLE_KIND,     /* a definition, the kind of the task or work beside it */
	TACHO_ROLE_TASK,     /* 0: not given */
	TACHO_ROLE_RESOURCE, /* 0: not given */
	TACHO_ROLE_WORK,     /* 0: not given */
	TACHO_ROLE_OBJECT,   /* a lock or a task */
	TACHO_ROLE_LOCK,
	TACHO_ROLE_SPAN,	  /* id of an asynchronous span */
	TACHO_ROLE_SPAN_OR_NONE,  /* 0: not given */
	TACHO_ROLE_RESULT,	  /* of a poll: enum tacho_result */
	TACHO_ROLE_SUBJECT,	  /* enum tacho_sched_subject */
	TACHO_ROLE_VALUE,	  /* i64 or f64, as the counter that is the argument says */
	TACHO_ROLE_TRIGGER,	  /* number of a trigger: what tacho_read_trigger says of it */
	TACHO_ROLE_TRACE_ID,	  /* its high half; the low half is the next word */
	TACHO_ROLE_READY_FD,	  /* a descriptor, unless bit 63 is set */
	TACHO_ROLE_READY_DATA,	  /* with bit 63: what the program keeps for one (epoll_data) */
	TACHO_ROLE_READY_EVENTS,  /* bits, as epoll and poll number them */
	TACHO_ROLE_ON,		  /* a descriptor, process or thread; 2^64 - 1: none */
	TACHO_ROLE_FD_KIND,	  /* enum tacho_descriptor_kind */
	TACHO_ROLE_ERRNO,	  /* 0: none */
	TACHO_ROLE_ERROR,	  /* the same in words */
	TACHO_ROLE_TEXT,	  /* tacho_read_text */
	TACHO_ROLE_FIELDS,	  /* tacho_read_field */
	TACHO_ROLE_BUCKETS,	  /* words of bucket << 48 | count: tacho_bucket */
	TACHO_ROLE_BUCKETS_SUM,	  /* of the counts */
	TACHO_ROLE_SLOT,	  /* of a table in the box: for readers of these alone */
	TACHO_ROLE_KERNEL_FRAMES, /* how many of the frames beside it are the kernel's */
	TACHO_ROLE_CUT,		  /* whether there was more of the frames beside it */
	TACHO_ROLE_FRAMES,	  /* program counters, innermost first; the first is exact */
};

/* clang-format off */
#define TACHO_EVENTS(E, F) \
	E(PARK, 0x01, "park", 0, STATE, "loop {loop}", "") \
		F(PARK, loop, ARG, ID, "loop") \
	E(UNPARK, 0x02, "unpark", 0, STATE, "{ready} ready", "") \
		F(UNPARK, ready, ARG, NUMBER, "number ready, at most 2^24 - 1") \
	E(POLL_END, 0x03, "poll-end", 0, STATE, "{result}", "") \
		F(POLL_END, result, ARG, RESULT, \
		  "result: 0 unknown, 1 pending (the task is suspended), 2 done") \
	E(SPAN_BEGIN, 0x04, "span-begin", 0, STATE, "{span}", "") \
		F(SPAN_BEGIN, span, ARG, ID, "span; nests within its thread") \
	E(SPAN_END, 0x05, "span-end", 0, STATE, "{span}", "") \
		F(SPAN_END, span, ARG, ID, "span") \
	E(PAUSE, 0x06, "pause", 0, PLAIN, "{paused?paused|resumed}", "") \
		F(PAUSE, paused, ARG, BOOL, "1 recording paused, 0 resumed") \
	E(LOOP, 0x07, "loop", 0, STATE, "{loop?{loop}|none}", "") \
		F(LOOP, loop, ARG, ID, "loop that the thread runs from now on, 0 none") \
	E(SWITCH_OUT, 0x08, "switch-out", 0, PLAIN, \
	  "{preempted?preempted: it could have gone on|it waits}", "") \
		F(SWITCH_OUT, preempted, ARG, BOOL, \
		  "the thread left its CPU: 1 it was runnable (preempted), 0 it waits") \
	E(SWITCH_IN, 0x09, "switch-in", 0, PLAIN, "on CPU {cpu}", "") \
		F(SWITCH_IN, cpu, ARG, NUMBER, "the thread runs again: number of the CPU") \
	E(POLL_BEGIN, 0x41, "poll-begin", 1, STATE, "{kind}[ task {task}]", "") \
		F(POLL_BEGIN, kind, ARG, KIND, "kind") \
		F(POLL_BEGIN, task, W(0), TASK, "task") \
	E(POLL_SWITCH, 0x42, "poll-switch", 1, STATE, "{kind}[ task {task}]", \
	  "the poll before ends here (result unknown)") \
		F(POLL_SWITCH, kind, ARG, KIND, "kind") \
		F(POLL_SWITCH, task, W(0), TASK, "task") \
	E(WAKE, 0x43, "wake", 1, PLAIN, "[task {task}]", "") \
		F(WAKE, task, W(0), TASK, "task that this thread wakes") \
	E(TASK_END, 0x44, "task-end", 1, PLAIN, "[task {task}]", "") \
		F(TASK_END, task, W(0), TASK, "task") \
	E(LOCK_WAIT, 0x45, "lock-wait", 1, PLAIN, "[lock {lock}][ at {at}]", "") \
		F(LOCK_WAIT, lock, W(0), LOCK, "lock") \
		F(LOCK_WAIT, at, ARG, ID, "place or stack, or 0") \
	E(LOCK_WAITED, 0x46, "lock-waited", 1, PLAIN, \
	  "[lock {lock}] {taken?{signal?signalled|taken}|given up}", "") \
		F(LOCK_WAITED, lock, W(0), LOCK, "lock") \
		F(LOCK_WAITED, taken, ARG_BITS(0, 1), BOOL, "1 got it, 0 gave up") \
		F(LOCK_WAITED, signal, ARG_BITS(1, 1), BOOL, \
		  "1 a condition variable or semaphore was waited for, 0 a lock") \
	E(QUEUE_DEPTH, 0x47, "queue-depth", 1, PLAIN, "loop {loop} {depth} queued", "") \
		F(QUEUE_DEPTH, loop, ARG, ID, "loop") \
		F(QUEUE_DEPTH, depth, W(0), NUMBER, "depth") \
	E(COUNTER, 0x48, "counter", 1, PLAIN, "{counter} = {value}", "") \
		F(COUNTER, counter, ARG, ID, "counter or gauge") \
		F(COUNTER, value, W(0), VALUE, "value, i64 or f64 as its definition says") \
	E(ASYNC_END, 0x49, "async-end", 1, PLAIN, "{span}[ span {span_id}]", "") \
		F(ASYNC_END, span, ARG, ID, "span") \
		F(ASYNC_END, span_id, W(0), SPAN, "span id") \
	E(TRIGGER, 0x4a, "trigger", 1, PLAIN, "number {number}: {reason}[ (sentinel {sentinel})]", "") \
		F(TRIGGER, reason, ARG, ID, "reason (text)") \
		F(TRIGGER, number, W(0), NUMBER, "number of the trigger, from 1") \
		F(TRIGGER, sentinel, W(0), TRIGGER, "") \
	E(WORK_SUBMIT, 0x4b, "work-submit", 1, PLAIN, "{kind}[ work {work}]", "") \
		F(WORK_SUBMIT, kind, ARG, ID, "kind") \
		F(WORK_SUBMIT, work, W(0), WORK, "work given to a thread pool") \
	E(WORK_BEGIN, 0x4c, "work-begin", 1, PLAIN, "{kind}[ work {work}]", "") \
		F(WORK_BEGIN, kind, ARG, ID, "kind") \
		F(WORK_BEGIN, work, W(0), WORK, "work, on the thread of the pool") \
	E(WORK_END, 0x4d, "work-end", 1, PLAIN, "[work {work}]", "") \
		F(WORK_END, work, W(0), WORK, "work") \
	E(READY, 0x4e, "ready", 1, PLAIN, "{fd?descriptor {fd}|data {data}}: {events}", "") \
		F(READY, fd, W(0), READY_FD, "descriptor, or `1 << 63 | epoll_data`") \
		F(READY, data, W(0), READY_DATA, "") \
		F(READY, events, ARG, READY_EVENTS, "events, as epoll and poll number them") \
	E(LATE, 0x4f, "late", 1, PLAIN, "timer by {late_ns}", "") \
		F(LATE, late_ns, W(0), NS, \
		  "ns by which the timer of the next poll is late; where callbacks are not seen: " \
		  "by which the wait before this turn outlasted its time-out") \
	E(STACK, 0x50, "stack", 1, PLAIN, "of {of} at {at}", "") \
		F(STACK, of, W(0), OBJECT, "the lock or task that it belongs to") \
		F(STACK, at, ARG, ID, "stack") \
	E(SAMPLE, 0x51, "sample", 1, PLAIN, "{cpu_ns} of CPU at {at}", "") \
		F(SAMPLE, cpu_ns, W(0), NS, "ns of CPU time of the thread since the sample before") \
		F(SAMPLE, at, ARG, ID, "stack of this thread") \
	E(LOCK_OWNER, 0x52, "lock-owner", 1, PLAIN, \
	  "[lock {lock}] is {signal?not signalled yet|held by thread {owner}}", \
	  "of a wait that has not ended; told at the end of what the thread recorded") \
		F(LOCK_OWNER, lock, W(0), LOCK, "lock") \
		F(LOCK_OWNER, owner, ARG_BITS(0, 23), NUMBER, "thread id of who had it when the wait began") \
		F(LOCK_OWNER, signal, ARG_BITS(23, 1), BOOL, \
		  "1 a condition variable or semaphore, which nobody has") \
	E(NO_WAKER, 0x53, "no-waker", 1, PLAIN, "[task {task}][ at {at}]", \
	  "nobody can wake the task any more, which waits: nobody has a waker of it") \
		F(NO_WAKER, task, W(0), TASK, "task") \
		F(NO_WAKER, at, ARG, ID, "stack of who dropped the last one, or 0") \
	E(LOCK_RELEASE, 0x80, "lock-release", 2, PLAIN, "[lock {lock}] with {waiters} waiting[ at {at}]", "") \
		F(LOCK_RELEASE, lock, W(0), LOCK, "lock") \
		F(LOCK_RELEASE, waiters, W(1), NUMBER, "waiters") \
		F(LOCK_RELEASE, at, ARG, ID, "place or stack, or 0") \
	E(STEAL, 0x81, "steal", 2, PLAIN, "{thief} took {tasks} tasks from {victim}", "") \
		F(STEAL, thief, ARG, ID, "loop of the thief") \
		F(STEAL, victim, W(0), ID, "loop of the victim") \
		F(STEAL, tasks, W(1), NUMBER, "tasks") \
	E(ASYNC_BEGIN, 0x82, "async-begin", 2, PLAIN, "{span}[ span {span_id}][ parent {parent}]", "") \
		F(ASYNC_BEGIN, span, ARG, ID, "span") \
		F(ASYNC_BEGIN, span_id, W(0), SPAN, "span id") \
		F(ASYNC_BEGIN, parent, W(1), SPAN_OR_NONE, "span id of the parent or 0") \
	E(SCHED, 0x83, "sched", 2, PLAIN, \
	  "{runnable_ns} runnable but not running, {involuntary_switches} involuntary switches, " \
	  "{minor_faults} minor and {major_faults} major faults", \
	  "as SCHED_INTERVAL, without its interval; no longer written") \
		F(SCHED, runnable_ns, W(0), NS, "ns runnable but not running") \
		F(SCHED, involuntary_switches, ARG, NUMBER, "involuntary switches") \
		F(SCHED, minor_faults, BITS(1, 0, 32), NUMBER, "minor faults") \
		F(SCHED, major_faults, BITS(1, 32, 32), NUMBER, "major faults") \
	E(STOPPED, 0x84, "stopped", 2, PLAIN, \
	  "by {traced?a debugger|{frozen?the freezer of its cgroup|a signal}}[ until {until_ns}]", \
	  "the whole process, told by who watched it from outside; it may have begun later than this " \
	  "record says, but not after `seen_ns`: its own records tell") \
		F(STOPPED, until_ns, W(0), TIME, "when it ran again, or shortly after; 0 not known") \
		F(STOPPED, seen_ns, W(1), TIME, "until then it was seen to be stopped") \
		F(STOPPED, traced, ARG_BITS(0, 1), BOOL, "1 by a debugger or tracer") \
		F(STOPPED, frozen, ARG_BITS(1, 1), BOOL, "1 by the freezer of a cgroup") \
	E(LOCK_QUEUE, 0x85, "lock-queue", 2, PLAIN, \
	  "[lock {lock}] {waiting} wait for one of its threads, {given} so far[ at {at}]", \
	  "of a condition at which threads wait for work that a loop gives them") \
		F(LOCK_QUEUE, lock, W(0), LOCK, "condition variable") \
		F(LOCK_QUEUE, waiting, BITS(1, 0, 32), NUMBER, \
		  "pieces of work that wait, as far as can be told") \
		F(LOCK_QUEUE, given, BITS(1, 32, 32), NUMBER, \
		  "pieces of work given, ever, when no thread waited for one") \
		F(LOCK_QUEUE, at, ARG, ID, "place where one was given, or 0: one was taken") \
	E(SPAWN, 0xc0, "spawn", 3, PLAIN, "{kind}[ task {task}][ parent {parent}][ at {at}]", "") \
		F(SPAWN, kind, ARG, KIND, "kind") \
		F(SPAWN, task, W(1), TASK, "task") \
		F(SPAWN, parent, W(2), TASK, "task of the parent or 0") \
		F(SPAWN, at, DATA, ID, "place or 0") \
	E(TASK_WAITS, 0xc1, "task-waits", 3, PLAIN, \
	  "[task {task}][ for {for}][ resource {resource}][ at {at}]", "") \
		F(TASK_WAITS, task, W(1), TASK, "task") \
		F(TASK_WAITS, for, ARG, ID, "text or 0: what for") \
		F(TASK_WAITS, resource, W(2), RESOURCE, "resource or 0") \
		F(TASK_WAITS, at, DATA, ID, "stack or 0") \
	E(TRACE_ID, 0xc2, "trace-id", 4, PLAIN, \
	  "{trace_id} of {span_id?span {span_id}|the innermost span}", "") \
		F(TRACE_ID, trace_id, W(2), TRACE_ID, "high and low half of the 128-bit id") \
		F(TRACE_ID, span_id, W(1), SPAN_OR_NONE, \
		  "span id of an asynchronous span, or 0: the innermost span of the thread") \
	E(LOG, 0xc3, "log", 1, PLAIN, "level {level}: {text}", "") \
		F(LOG, level, ARG, NUMBER, "level") \
		F(LOG, text, DATA, TEXT, "see below; then the text") \
	E(EVENT, 0xc4, "event", 1, PLAIN, "{event}{fields}", "") \
		F(EVENT, event, ARG, ID, "schema") \
		F(EVENT, fields, DATA, FIELDS, "presence mask; then the fields, see section 3") \
	E(POLL_HIST, 0xc5, "poll-hist", 4, PLAIN, \
	  "{kind}[ on loop {loop}] {count} short polls, {total_ns} in all, since {since_ns}" \
	  "[: {buckets}]", "") \
		F(POLL_HIST, kind, ARG, ID, "kind") \
		F(POLL_HIST, loop, DATA, ID, "loop or 0") \
		F(POLL_HIST, slot, W(1), SLOT, "slot (index in HISTOGRAMS)") \
		F(POLL_HIST, since_ns, W(2), TIME, "ticks at which counting began") \
		F(POLL_HIST, total_ns, W(3), NS, "total ticks") \
		F(POLL_HIST, buckets, REST(4), BUCKETS, "`bucket << 48 | count`") \
		F(POLL_HIST, count, REST(4), BUCKETS_SUM, "") \
	E(CALL, 0xc6, "call", 4, PLAIN, \
	  "{call} took {duration_ns}[ on {fd_kind?descriptor |}{on}][ ({fd_kind})][ path {path}]" \
	  "[ failed: {error}][ at {at}]", "a blocking call that just returned") \
		F(CALL, call, ARG, ID, "name (text)") \
		F(CALL, duration_ns, W(1), NS, "ns that it took") \
		F(CALL, on, W(2), ON, "descriptor, process or thread, or 2^64 - 1: none") \
		F(CALL, fd_kind, BITS(3, 48, 16), FD_KIND, "kind of descriptor") \
		F(CALL, path, BITS(3, 0, 32), ID, "path (text) or 0") \
		F(CALL, errno, BITS(3, 32, 16), ERRNO, "errno") \
		F(CALL, error, BITS(3, 32, 16), ERROR, "") \
		F(CALL, at, DATA, ID, "stack or 0") \
	E(SAMPLE_FRAMES, 0xc7, "sample", 2, PLAIN, "{cpu_ns} of CPU at {at}", \
	  "as SAMPLE, with its stack") \
		F(SAMPLE_FRAMES, cpu_ns, W(1), NS, "ns") \
		F(SAMPLE_FRAMES, at, REST(2), FRAMES, \
		  "program counters, innermost first; the first is exact (section 3)") \
		F(SAMPLE_FRAMES, cut, BITS(0, 16, 1), CUT, "1 there were more frames") \
	E(KERNEL_SAMPLE, 0xc8, "kernel-sample", 2, PLAIN, "{cpu_ns} of CPU at {at}", \
	  "a sample that the kernel took") \
		F(KERNEL_SAMPLE, cpu_ns, W(1), NS, "ns of CPU time that it stands for") \
		F(KERNEL_SAMPLE, kernel_frames, ARG, KERNEL_FRAMES, "frames of the kernel") \
		F(KERNEL_SAMPLE, at, REST(2), FRAMES, \
		  "the frames of the kernel, then those of the program, each innermost first; the " \
		  "first of either is exact") \
		F(KERNEL_SAMPLE, cut, BITS(0, 16, 1), CUT, "1 there were more frames") \
	E(CALL_OPEN, 0xc9, "call-open", 3, PLAIN, \
	  "{call} has not returned[ since {since_ns}][ on {on}][ at {at}]", \
	  "a blocking call that the thread is in; told at the end of what it recorded") \
		F(CALL_OPEN, call, ARG, ID, "name (text)") \
		F(CALL_OPEN, since_ns, W(1), TIME, "when it began; 0 not known, after its last record") \
		F(CALL_OPEN, on, W(2), ON, "descriptor, process or thread, or 2^64 - 1: none") \
		F(CALL_OPEN, at, REST(3), FRAMES, "where it was called") \
	E(SCHED_INTERVAL, 0xca, "sched", 4, PLAIN, \
	  "[{subject}: ]{runnable_ns} runnable but not running[ since {begin_ns}], " \
	  "{involuntary_switches} involuntary switches, {minor_faults} minor and {major_faults} " \
	  "major faults", "how the kernel treated the thread until this record; see below") \
		F(SCHED_INTERVAL, subject, BITS(0, 16, 8), SUBJECT, \
		  "what it is about: 1 wait, 2 call, 3 poll, 4 loop iteration; 0 not known") \
		F(SCHED_INTERVAL, begin_ns, W(2), TIME, "ticks at which the interval began; 0 not known") \
		F(SCHED_INTERVAL, runnable_ns, W(1), NS, "ns runnable but not running in it") \
		F(SCHED_INTERVAL, involuntary_switches, ARG, NUMBER, "involuntary switches") \
		F(SCHED_INTERVAL, minor_faults, BITS(3, 0, 32), NUMBER, "minor faults") \
		F(SCHED_INTERVAL, major_faults, BITS(3, 32, 32), NUMBER, "major faults")
/* clang-format on */

/* Where a field stands: the word (-1: the argument), its lowest bit there, how many bits. 0 bits: all
   words from there on. */
#define TACHO__AT_ARG -1, 0, 24
#define TACHO__AT_ARG_BITS(from, bits) -1, from, bits
#define TACHO__AT_DATA 0, 16, 48
#define TACHO__AT_W(k) k, 0, 64
#define TACHO__AT_BITS(k, from, bits) k, from, bits
#define TACHO__AT_REST(k) k, 0, 0

static inline uint64_t tacho__bits(uint32_t arg, const uint64_t *words, int word, unsigned from,
				   unsigned bits)
{
	uint64_t all;

	if (!bits)
		return 0;
	all = word < 0 ? arg : words[word];
	return bits == 64 ? all : all >> from & ((UINT64_C(1) << bits) - 1);
}

#define TACHO__SKIP_EVENT(name, number, text_name, words, state, text, what)
#define TACHO__EVENT_FIELD(name, field, at, role, what)                                           \
	static inline uint64_t tacho__field_##name##_##field(uint32_t arg, const uint64_t *words) \
	{                                                                                         \
		(void)arg, (void)words;                                                           \
		return tacho__bits(arg, words, TACHO__AT_##at);                                   \
	}
TACHO_EVENTS(TACHO__SKIP_EVENT, TACHO__EVENT_FIELD)
#undef TACHO__EVENT_FIELD

/*
 * A field of an event of type TACHO_EV_NAME, as a uint64_t: TACHO_GET(event, CALL, path). The type
 * must be that one. 0 for fields that are all words from one on: those are event->word + that.
 */
#define TACHO_GET(event, name, field) tacho__field_##name##_##field((event)->arg, (event)->word)

/* A word of TACHO_ROLE_BUCKETS: so many took at least 2^bucket ns, and less than twice that. */
static inline unsigned tacho_bucket(uint64_t word)
{
	return (unsigned)(word >> 48);
}

static inline uint64_t tacho_bucket_count(uint64_t word)
{
	return word & ((UINT64_C(1) << 48) - 1);
}

#endif
