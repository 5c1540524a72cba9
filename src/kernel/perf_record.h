/* What the kernel puts into a ring of perf, taken apart. */
#ifndef TACHO_KERNEL_PERF_RECORD_H
#define TACHO_KERNEL_PERF_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TACHO__PERF_RECORD_MAX 65536u /* the size has 16 bits */

/* Registers in a sample: all general ones, in the order of the kernel's <asm/perf_regs.h>. */
#if defined(__x86_64__)
#define TACHO__PERF_REGS 0xff01ffull /* ax bx cx dx si di bp sp ip, r8 .. r15 */
#define TACHO__PERF_REG_COUNT 17u
#else
#define TACHO__PERF_REGS 0x1ffffffffull /* x0 .. x30, sp, pc */
#define TACHO__PERF_REG_COUNT 33u
#endif

enum tacho__perf_type {
	TACHO__PERF_OTHER, /* nothing that is used */
	TACHO__PERF_LOST,
	TACHO__PERF_FORK, /* tid: the thread that began */
	TACHO__PERF_SAMPLE,
	TACHO__PERF_SWITCH_OUT,
	TACHO__PERF_SWITCH_IN,
};

struct tacho__perf_record {
	enum tacho__perf_type type;
	uint32_t pid, tid;
	uint32_t cpu; /* of the ring */
	uint64_t ns;  /* CLOCK_MONOTONIC */
	uint64_t lost;
	bool preempted; /* SWITCH_OUT: it could have gone on */

	/* SAMPLE. Arrays lie in what was taken apart. */
	const uint64_t *kernel; /* frames, innermost first */
	uint32_t kernel_count;
	const uint64_t *user; /* as frame pointers say, which often lie */
	uint32_t user_count;
	const uint64_t *regs; /* TACHO__PERF_REG_COUNT of them; NULL: none */
	const uint8_t *stack; /* what lay at the stack pointer */
	uint32_t stack_size;
};

/* What samples hold (perf_event_attr.sample_type); other records end in the first two. */
#define TACHO__PERF_EVERY (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define TACHO__PERF_SAMPLED \
	(TACHO__PERF_EVERY | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/*
 * Takes apart one record of `size` bytes at `data`, which is aligned to eight. 0, or -EBADMSG: it
 * does not hold what it says.
 */
int tacho__perf_parse(const void *data, size_t size, struct tacho__perf_record *out);

#endif
