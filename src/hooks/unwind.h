/*
 * The stack of an interrupted thread, taken in its signal handler.
 *
 * Where the interrupted code belongs, _dl_find_object tells without a lock, or a list of modules in
 * musl; how its frame
 * looks, .eh_frame tells; code without such tables (JIT) is taken to keep frame pointers.
 * Whatever tables or registers say, an address that is not there ends the stack and faults
 * nowhere. Nothing is allocated.
 */
#ifndef TACHO_HOOKS_UNWIND_H
#define TACHO_HOOKS_UNWIND_H

#include <stdint.h>

#include "hooks/unwind_tables.h"

#if defined(__x86_64__)
#define TACHO__UNWIND_REGS 17u /* DWARF's numbers: rax .. r15, return address */
#define TACHO__UNWIND_FP 6u
#define TACHO__UNWIND_SP 7u
#define TACHO__UNWIND_PC 16u
#define TACHO__UNWIND_SAVED 6u /* registers that a function may have to restore */
#else
#define TACHO__UNWIND_REGS 33u /* x0 .. x30, sp, pc (which has no number of DWARF's) */
#define TACHO__UNWIND_FP 29u
#define TACHO__UNWIND_SP 31u
#define TACHO__UNWIND_PC 32u
#define TACHO__UNWIND_SAVED 12u
#endif

#define TACHO__UNWIND_WINDOW 4096u
#define TACHO__UNWIND_REMEMBERED 4u
#define TACHO__UNWIND_KNOWN 256u

enum tacho__unwind_how {
	TACHO__UNWIND_SAME = 0,
	TACHO__UNWIND_UNDEFINED,
	TACHO__UNWIND_AT,	  /* stored at CFA + value */
	TACHO__UNWIND_IS,	  /* is CFA + value */
	TACHO__UNWIND_REGISTER,	  /* is in register `value` */
	TACHO__UNWIND_EXPRESSION, /* stored where the expression at address `value` says */
	TACHO__UNWIND_IS_EXPRESSION,
};

/* How the registers of the caller are had from those of a frame. */
struct tacho__unwind_row {
	uint64_t cfa_register;
	int64_t cfa_offset;
	uint64_t cfa_expression; /* its address; 0: register and offset */
	struct {
		uint64_t how;
		int64_t value;
	} rules[TACHO__UNWIND_REGS];
};

/* The row of most frames, in short, for one program counter. */
struct tacho__unwind_known {
	uint64_t pc;	    /* 0: none */
	const void *header; /* of the tables that it comes from */
	int32_t cfa_offset;
	uint8_t cfa_register;
	uint8_t is_last;		    /* it has no caller */
	uint8_t saved[TACHO__UNWIND_SAVED]; /* stored at CFA - 8 * n; 0: as they are */
};

/* Work space: a signal's stack may be small. All zeros to begin with. */
struct tacho__unwind {
	uint64_t regs[TACHO__UNWIND_REGS];
	struct tacho__unwind_row row, initial;
	struct tacho__unwind_row remembered[TACHO__UNWIND_REMEMBERED];
	uint32_t remembered_count;
	int pid;
	uint64_t stack_begin, stack_end;
	uint64_t stack_readable; /* how far, from its begin on */
	uint64_t window_at, window_size;
	uint8_t window[TACHO__UNWIND_WINDOW];
	struct tacho__tables tables; /* of the frame before */
	/* Kept from stack to stack: reading the tables takes ten times as long. */
	struct tacho__unwind_known known[TACHO__UNWIND_KNOWN];
	uint32_t known_since; /* what tacho__unwind_forget counted then */
	uint32_t interrupted; /* of the frames: the first that a signal interrupted; 0: none */
};

/*
 * Program counters of the thread that a handler with this ucontext interrupted, innermost
 * first, at most `most`. *more: there were more.
 */
uint32_t tacho__unwind(struct tacho__unwind *u, const void *ucontext, uint64_t *frames,
		       uint32_t most, int *more);

/* The same with u->regs set by the caller: those of an instruction of its own. */
uint32_t tacho__unwind_registers(struct tacho__unwind *u, uint64_t *frames, uint32_t most,
				 int *more);
/* unwind_here.c: in the constructor. Where libc has no backtrace(3), the hooks have one. */
void tacho__unwind_begin(void);

/* Modules may have been unloaded: other code may be where they were. */
void tacho__unwind_forget(void);

#endif
