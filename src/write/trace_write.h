/*
 * Writes a trace file (format/trace.h): columns, zstd, index, end.
 */
#ifndef TACHO_WRITE_TRACE_WRITE_H
#define TACHO_WRITE_TRACE_WRITE_H

#include <stddef.h>
#include <stdint.h>

struct tacho_reader;
struct tacho__records;
struct tacho_trace_absent;
struct tacho_trace_gap;

struct tacho__trace_end {
	uint32_t how, status, flags; /* as in struct tacho_process */
	uint64_t ns;
};

struct tacho__trace_options {
	uint32_t process;      /* which process of the reader */
	uint32_t taken_by;     /* enum tacho_taken_by */
	int level;	       /* zstd level; 0: the default */
	const char *box_name;  /* file name of the box, or NULL */
	int no_symbols;	       /* 1: code addresses are not looked up */
	const char *why;       /* what made somebody take it, or NULL */
	uint64_t why_mono_ns;  /* when that was; 0: not known */
	uint64_t segment;      /* number of the segment; 0: it is none */
	uint64_t agent_cpu_ns; /* 0: not known */
	/* How the process ended; NULL: as the reader says. */
	const struct tacho__trace_end *end;
	/* What the reader may not know of a process that is gone; 0, NULL: not known. The command
	   line goes before that of a box, which is cut. */
	uint32_t parent_pid;
	const char *command_line;
	const struct tacho_trace_gap *gaps;
	uint32_t gap_count;
	/* Processes that were not recorded, besides those that the reader knows. */
	const struct tacho_trace_absent *absent;
	uint32_t absent_count;
	/* Stretches that the reader does not hold: what the kernel reported (stream
	   TACHO_STREAM_KERNEL), one for each thread. */
	const struct tacho__records *kernel;
	uint32_t kernel_count;
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
};

struct tacho__trace_result {
	uint64_t bytes; /* of the file */
	uint64_t events;
	uint64_t first_ns, last_ns; /* of the events; 0, 0 without */
	uint32_t blocks;
};

/*
 * Writes all that `reader` holds of one process to `fd` (a file, a pipe; written
 * from its current position). The reader's from/to/last limits have been applied
 * by the reader. Returns 0 or a negative errno with a sentence in `message`.
 */
int tacho__trace_write(struct tacho_reader *reader, int fd,
		       const struct tacho__trace_options *options,
		       struct tacho__trace_result *result, char *message, size_t message_size);

#endif
