/*
 * tacho_values.h - what the numbers in boxes and traces mean.
 *
 * Included by tacho.h and tacho_read.h; a program need not include it itself. The
 * recorder, the file formats and the reader all take the numbers from here, so each list
 * stands once; it has a file of its own because the recorder must not need the reader's
 * header, nor the reader the recorder's.
 *
 * The numbers are part of the file formats: they are never changed and never reused. A
 * newer tacho may write numbers that are not listed here: treat them as not known.
 */
#ifndef TACHO_VALUES_H
#define TACHO_VALUES_H

/* How recording stands. */
enum tacho_state {
	TACHO_STATE_NEVER = 0, /* tacho_start was not called; of a box: it is being made */
	TACHO_STATE_OFF = 1,   /* it failed: a reason says why */
	TACHO_STATE_RECORDING = 2,
	TACHO_STATE_PAUSED = 3,
	TACHO_STATE_STOPPED = 4, /* by tacho_stop, or the process ended in order */
};

/* What a box records its times with. */
enum tacho_clock {
	TACHO_CLOCK_NONE = 0,
	TACHO_CLOCK_MONOTONIC = 1, /* ticks are nanoseconds of CLOCK_MONOTONIC */
	TACHO_CLOCK_TSC = 2,	   /* x86-64 rdtsc */
	TACHO_CLOCK_CNTVCT = 3,	   /* arm64 cntvct_el0 */
};

/* Who made a trace. */
enum tacho_taken_by {
	TACHO_TAKEN_BOX = 0,	  /* nobody: it is a box that is read */
	TACHO_TAKEN_SNAPSHOT = 1, /* the process itself */
	TACHO_TAKEN_CRASH = 2,	  /* the crash handler */
	TACHO_TAKEN_DUMP = 3,	  /* somebody outside */
	TACHO_TAKEN_RECOVER = 4,  /* somebody, after the process was gone */
	TACHO_TAKEN_SEGMENT = 5,  /* an agent that records continuously */
	TACHO_TAKEN_IMPORT = 6,	  /* somebody, of a trace of another recorder */
};

/* How a process ended, as far as whoever watched it knows. */
enum tacho_end {
	TACHO_END_UNTOLD = 0,  /* the trace says nothing about it */
	TACHO_END_EXITED = 1,  /* with an exit status */
	TACHO_END_KILLED = 2,  /* by a signal */
	TACHO_END_GONE = 3,    /* it ended, and how is not known */
	TACHO_END_RUNNING = 4, /* it has not: it was last seen alive */
	TACHO_END_EXEC = 5,    /* it became another program */
};
/* What else is known of an end. */
#define TACHO_END_CORE 1u /* core was dumped */
#define TACHO_END_NO_MEMORY \
	2u			  /* the out-of-memory killer was at work in its cgroup, or, where
				      that does not count, on the host */
#define TACHO_END_EARLIER_BOOT 4u /* the host was restarted since, and nobody had seen the end */

/* How a source of events stands. */
enum tacho_source_state {
	TACHO_SOURCE_ABSENT = 0, /* not part of the recording */
	TACHO_SOURCE_OFF = 1,	 /* there, not switched on */
	TACHO_SOURCE_ON = 2,
	TACHO_SOURCE_REFUSED = 3, /* asked for, failed: an errno says why */
};

/* What a definition defines. */
enum tacho_definition_class {
	TACHO_DEF_TEXT = 1,
	TACHO_DEF_KIND = 2, /* of task or callback */
	TACHO_DEF_LOOP = 3,
	TACHO_DEF_SPAN = 4,
	TACHO_DEF_COUNTER = 5, /* grows; differences mean something */
	TACHO_DEF_GAUGE = 6,   /* goes up and down */
	TACHO_DEF_PLACE = 7,   /* a place in the code */
	TACHO_DEF_SCHEMA = 8,
	TACHO_DEF_STACK = 9,
	TACHO_DEF_MODULE = 10,
	TACHO_DEF_DESCRIPTOR = 11, /* that is no client's: its value is what READY has for it */
};

/* How closely a loop was observed. */
enum tacho_level {
	TACHO_LEVEL_UNKNOWN = 0,
	TACHO_LEVEL_WAITS = 1,	   /* only its waits */
	TACHO_LEVEL_CALLBACKS = 2, /* its callbacks, by interposition */
	TACHO_LEVEL_API = 3,	   /* all that it says of itself: it calls tacho.h */
};

/* What the value of a counter or gauge is. */
enum tacho_value_type {
	TACHO_VALUE_I64 = 1,
	TACHO_VALUE_F64 = 2,
};

/* What the value of a field of a custom event is. */
enum tacho_field_type {
	TACHO_FIELD_U64 = 1,
	TACHO_FIELD_I64 = 2,
	TACHO_FIELD_F64 = 3,
	TACHO_FIELD_BOOL = 4,
	TACHO_FIELD_STRING = 5,
};
#define TACHO_FIELD_OPTIONAL 0x80u /* in a schema, beside the type: it may be absent */

/* How a poll ended. */
enum tacho_result {
	TACHO_UNKNOWN = 0,
	TACHO_PENDING = 1, /* the task is suspended and will be polled again */
	TACHO_DONE = 2,	   /* it has finished */
};

/* How a wait for a lock ended: bits. */
#define TACHO_WAITED_GOT 1u    /* it got it; else it gave up */
#define TACHO_WAITED_SIGNAL 2u /* for a signal (condition variable, semaphore), not a lock */

/* What a record of the kernel's scheduling is about: what ended right before it. */
enum tacho_sched_subject {
	TACHO_SCHED_UNKNOWN = 0,
	TACHO_SCHED_WAIT = 1,	   /* a wait of a loop */
	TACHO_SCHED_CALL = 2,	   /* a blocking call */
	TACHO_SCHED_POLL = 3,	   /* a poll */
	TACHO_SCHED_ITERATION = 4, /* code of a loop iteration; a part of it if the loop goes on */
};

/* What a descriptor is, as far as it matters to whoever waits for it. */
enum tacho_descriptor_kind {
	TACHO_DESCRIPTOR_UNKNOWN = 0,
	TACHO_DESCRIPTOR_FILE = 1,
	TACHO_DESCRIPTOR_FOLDER = 2,
	TACHO_DESCRIPTOR_PIPE = 3,
	TACHO_DESCRIPTOR_TERMINAL = 4,
	TACHO_DESCRIPTOR_TCP = 5,
	TACHO_DESCRIPTOR_UDP = 6,
	TACHO_DESCRIPTOR_UNIX = 7,
	TACHO_DESCRIPTOR_SOCKET = 8, /* of another kind */
	TACHO_DESCRIPTOR_EVENT = 9,  /* eventfd, timerfd, signalfd, inotify and the like */
	TACHO_DESCRIPTOR_DEVICE = 10,
};

/* The streams of a thread. */
#define TACHO_STREAM_NORMAL 0u /* what it records in its normal course */
#define TACHO_STREAM_SIGNAL \
	1u			/* this and up: what signal handlers recorded, each while the one
				   below stored a record */
#define TACHO_STREAM_KERNEL 15u /* what the kernel reported of it */

/* Open polls and spans that are listed where a stream's records begin, at most. */
#define TACHO_OPEN_MAX 5u

#endif
