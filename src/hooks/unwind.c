#include "hooks/unwind.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "base/hash.h"
#include "base/sys.h"
#include "core/recorder.h"

#define FRAME_MAX (1ull << 30) /* no frame is as large */
#define PAGE 4096u
#define WINDOW_BELOW 256u
#define STACK_MAX (256u << 10)	/* of which is read directly */
#define STACK_LEAST (64u << 10) /* no stack lies lower */
#define EXPRESSION_STACK 16u
#define INSTRUCTIONS_MAX 2000u

/* ------------------------------------------------------------------- memory */

/*
 * The thread's own stack, between the interrupted frame and its end, stays where it is while
 * the thread is in its handler. Its pages are read directly, each after the kernel was asked
 * whether it can be read. All else is copied by the kernel, which takes many times as long: the
 * stacks of coroutines, and wherever tables and registers lead that are wrong.
 */

/* The main thread's ends above its auxiliary vector; those of other threads below what
   pthread_self is the address of. */
static uint64_t stack_end(uint64_t sp)
{
	uint64_t self = (uint64_t)(uintptr_t)pthread_self();

	return self > sp ? self : getauxval(AT_RANDOM);
}

/* Reading a set of signals from there to do something unknown with it fails either way. */
static int is_readable(uint64_t page)
{
	return TACHO__SYS(SYS_rt_sigprocmask, -1, page, NULL, 8, 0, 0) == -EINVAL;
}

/* Whether the word at `at` is known to lie on the stack. */
static int on_stack(struct tacho__unwind *u, uint64_t at)
{
	if (at < u->stack_begin || at > u->stack_end - 8)
		return 0;
	while (at > u->stack_readable - 8) {
		if (u->stack_readable - u->stack_begin > STACK_MAX ||
		    !is_readable(u->stack_readable)) {
			u->stack_end = u->stack_readable;
			return 0;
		}
		u->stack_readable += PAGE;
	}
	return 1;
}

static void stack_begins(struct tacho__unwind *u)
{
	uint64_t sp = u->regs[TACHO__UNWIND_SP];

	u->stack_begin = u->stack_readable = sp & ~(uint64_t)(PAGE - 1);
	u->stack_end = sp > STACK_LEAST ? stack_end(sp) : 0;
	if (u->stack_end < sp || u->stack_end < 8)
		u->stack_begin = UINT64_MAX;
}

/* One window of memory, page by page as far as it can be read. */
static void load_window(struct tacho__unwind *u, uint64_t at)
{
	struct iovec to = {u->window, sizeof(u->window)};
	struct iovec from[2];
	uint64_t first = PAGE - at % PAGE;
	long n;

	from[0].iov_base = (void *)at;
	from[0].iov_len = first < sizeof(u->window) ? first : sizeof(u->window);
	from[1].iov_base = (void *)(at + from[0].iov_len);
	from[1].iov_len = sizeof(u->window) - from[0].iov_len;
	n = TACHO__SYS(SYS_process_vm_readv, u->pid, &to, 1, from, from[1].iov_len ? 2 : 1, 0);
	u->window_at = at;
	u->window_size = n > 0 ? (uint64_t)n : 0;
}

static int read_elsewhere(struct tacho__unwind *u, uint64_t at, uint64_t *out)
{
	if (at - u->window_at > u->window_size || u->window_size - (at - u->window_at) < 8) {
		/* With what lies just below, as far as that is of the same page. */
		load_window(u, at - (at % PAGE < WINDOW_BELOW ? at % PAGE : WINDOW_BELOW));
		if (u->window_size < at - u->window_at + 8)
			return 0;
	}
	__builtin_memcpy(out, u->window + (at - u->window_at), 8);
	return 1;
}

/* The word at `at`; 0 when it cannot be read. */
static int read_word(struct tacho__unwind *u, uint64_t at, uint64_t *out)
{
	if (!on_stack(u, at))
		return read_elsewhere(u, at, out);
	__builtin_memcpy(out, (const void *)(uintptr_t)at, 8);
	return 1;
}

/* -------------------------------------------------------------- expressions */

static int evaluate(struct tacho__unwind *u, uint64_t expression, const uint64_t *start,
		    uint64_t *out)
{
	struct tacho__cursor c = {(const uint8_t *)expression, (const uint8_t *)expression + 16};
	uint64_t stack[EXPRESSION_STACK];
	unsigned n = 0;
	uint64_t size = tacho__table_uleb(&c);

	c.end = c.at + size;
	if (start)
		stack[n++] = *start;
	while (c.at < c.end) {
		uint8_t op = *c.at++;
		uint64_t a = n ? stack[n - 1] : 0, b = n > 1 ? stack[n - 2] : 0;
		uint64_t v;

		if (op >= 0x70 && op <= 0x8f) { /* DW_OP_breg */
			unsigned reg = op - 0x70u;

			if (reg >= TACHO__UNWIND_REGS)
				return 0;
			v = u->regs[reg] + (uint64_t)tacho__table_sleb(&c);
		} else if (op >= 0x30 && op <= 0x4f) { /* DW_OP_lit */
			v = op - 0x30u;
		} else if (op == 0x08) { /* DW_OP_const1u */
			v = tacho__table_get(&c, 1);
		} else if (op == 0x0a) { /* DW_OP_const2u */
			v = tacho__table_get(&c, 2);
		} else if (op == 0x10) { /* DW_OP_constu */
			v = tacho__table_uleb(&c);
		} else if (op == 0x11) { /* DW_OP_consts */
			v = (uint64_t)tacho__table_sleb(&c);
		} else if (op == 0x06 && n) { /* DW_OP_deref */
			n--;
			if (!read_word(u, a, &v))
				return 0;
		} else if (op == 0x23 && n) { /* DW_OP_plus_uconst */
			n--;
			v = a + tacho__table_uleb(&c);
		} else if (n > 1 &&
			   (op == 0x1a || op == 0x1c || op == 0x22 || op == 0x24 || op == 0x2a)) {
			n -= 2;
			v = op == 0x1a	 ? (a & b)
			    : op == 0x1c ? b - a
			    : op == 0x22 ? a + b
			    : op == 0x24 ? (a < 64 ? b << a : 0)
					 : (uint64_t)((int64_t)b >= (int64_t)a);
		} else {
			return 0;
		}
		if (n == EXPRESSION_STACK)
			return 0;
		stack[n++] = v;
	}
	*out = n ? stack[n - 1] : 0;
	return n > 0;
}

/* ------------------------------------------------------------- instructions */

static void set_rule(struct tacho__unwind *u, uint64_t reg, enum tacho__unwind_how how,
		     int64_t value)
{
	if (reg < TACHO__UNWIND_REGS) {
		u->row.rules[reg].how = how;
		u->row.rules[reg].value = value;
	}
}

static void skip_expression(struct tacho__cursor *c)
{
	uint64_t size = tacho__table_uleb(c);

	c->at = size < (uint64_t)(c->end - c->at) ? c->at + size : c->end;
}

static void expression_rule(struct tacho__unwind *u, struct tacho__cursor *c,
			    enum tacho__unwind_how how)
{
	uint64_t reg = tacho__table_uleb(c);

	set_rule(u, reg, how, (int64_t)(uintptr_t)c->at);
	skip_expression(c);
}

static int remember(struct tacho__unwind *u)
{
	if (u->remembered_count == TACHO__UNWIND_REMEMBERED)
		return 0;
	u->remembered[u->remembered_count++] = u->row;
	return 1;
}

static int restore(struct tacho__unwind *u)
{
	if (!u->remembered_count)
		return 0;
	u->row = u->remembered[--u->remembered_count];
	return 1;
}

/* The instructions without an operand in their first byte; 0 for one that is not known. */
static int execute_other(struct tacho__unwind *u, const struct tacho__frame_table *d, uint8_t op,
			 struct tacho__cursor *c)
{
	uint64_t reg;

	switch (op) {
	case 0x00: /* nop */
	case 0x2d: /* AARCH64_negate_ra_state */
		return 1;
	case 0x05: /* offset_extended */
		reg = tacho__table_uleb(c);
		set_rule(u, reg, TACHO__UNWIND_AT, (int64_t)tacho__table_uleb(c) * d->data_align);
		return 1;
	case 0x06: /* restore_extended */
		reg = tacho__table_uleb(c);
		if (reg < TACHO__UNWIND_REGS)
			u->row.rules[reg] = u->initial.rules[reg];
		return 1;
	case 0x07: /* undefined */
		set_rule(u, tacho__table_uleb(c), TACHO__UNWIND_UNDEFINED, 0);
		return 1;
	case 0x08: /* same_value */
		set_rule(u, tacho__table_uleb(c), TACHO__UNWIND_SAME, 0);
		return 1;
	case 0x09: /* register */
		reg = tacho__table_uleb(c);
		set_rule(u, reg, TACHO__UNWIND_REGISTER, (int64_t)tacho__table_uleb(c));
		return 1;
	case 0x0a:
		return remember(u);
	case 0x0b:
		return restore(u);
	case 0x0c: /* def_cfa */
	case 0x12: /* def_cfa_sf */
		u->row.cfa_register = tacho__table_uleb(c);
		u->row.cfa_offset = op == 0x0c ? (int64_t)tacho__table_uleb(c)
					       : tacho__table_sleb(c) * d->data_align;
		u->row.cfa_expression = 0;
		return 1;
	case 0x0d: /* def_cfa_register */
		u->row.cfa_register = tacho__table_uleb(c);
		u->row.cfa_expression = 0;
		return 1;
	case 0x0e: /* def_cfa_offset */
		u->row.cfa_offset = (int64_t)tacho__table_uleb(c);
		return 1;
	case 0x13: /* def_cfa_offset_sf */
		u->row.cfa_offset = tacho__table_sleb(c) * d->data_align;
		return 1;
	case 0x0f: /* def_cfa_expression */
		u->row.cfa_expression = (uint64_t)(uintptr_t)c->at;
		skip_expression(c);
		return 1;
	case 0x10: /* expression */
		expression_rule(u, c, TACHO__UNWIND_EXPRESSION);
		return 1;
	case 0x16: /* val_expression */
		expression_rule(u, c, TACHO__UNWIND_IS_EXPRESSION);
		return 1;
	case 0x11: /* offset_extended_sf */
		reg = tacho__table_uleb(c);
		set_rule(u, reg, TACHO__UNWIND_AT, tacho__table_sleb(c) * d->data_align);
		return 1;
	case 0x14: /* val_offset */
		reg = tacho__table_uleb(c);
		set_rule(u, reg, TACHO__UNWIND_IS, (int64_t)tacho__table_uleb(c) * d->data_align);
		return 1;
	case 0x15: /* val_offset_sf */
		reg = tacho__table_uleb(c);
		set_rule(u, reg, TACHO__UNWIND_IS, tacho__table_sleb(c) * d->data_align);
		return 1;
	case 0x2e: /* GNU_args_size */
		tacho__table_uleb(c);
		return 1;
	default:
		return 0;
	}
}

/* Executes instructions up to the row that holds for `pc`. */
static int execute(struct tacho__unwind *u, const struct tacho__frame_table *d,
		   struct tacho__cursor c, uint64_t pc)
{
	uint64_t at = d->begin;

	for (unsigned i = 0; c.at < c.end; i++) {
		uint8_t op = *c.at++;
		uint8_t low = op & 0x3f;

		if (i == INSTRUCTIONS_MAX)
			return 0;
		if (op >> 6 == 1) { /* advance_loc */
			at += low * d->code_align;
		} else if (op >> 6 == 2) { /* offset */
			set_rule(u, low, TACHO__UNWIND_AT,
				 (int64_t)tacho__table_uleb(&c) * d->data_align);
		} else if (op >> 6 == 3) { /* restore */
			if (low < TACHO__UNWIND_REGS)
				u->row.rules[low] = u->initial.rules[low];
		} else if (op >= 0x02 && op <= 0x04) { /* advance_loc1, 2, 4 */
			at += tacho__table_get(&c, 1u << (op - 2)) * d->code_align;
		} else if (!execute_other(u, d, op, &c)) {
			return 0;
		}
		if (at > pc)
			return 1;
	}
	return 1;
}

/* ------------------------------------------------------------------- frames */

/* What register `reg` was in the caller; 0: not known. */
static int caller_register(struct tacho__unwind *u, unsigned reg, uint64_t cfa, uint64_t *out)
{
	int64_t value = u->row.rules[reg].value;

	switch (u->row.rules[reg].how) {
	case TACHO__UNWIND_AT:
		return read_word(u, cfa + (uint64_t)value, out);
	case TACHO__UNWIND_IS:
		*out = cfa + (uint64_t)value;
		return 1;
	case TACHO__UNWIND_REGISTER:
		if ((uint64_t)value >= TACHO__UNWIND_REGS)
			return 0;
		*out = u->regs[value];
		return 1;
	case TACHO__UNWIND_EXPRESSION:
		return evaluate(u, (uint64_t)value, &cfa, out) && read_word(u, *out, out);
	case TACHO__UNWIND_IS_EXPRESSION:
		return evaluate(u, (uint64_t)value, &cfa, out);
	case TACHO__UNWIND_SAME:
		*out = u->regs[reg];
		return 1;
	default:
		return 0;
	}
}

static int frame_address(struct tacho__unwind *u, uint64_t *cfa)
{
	if (u->row.cfa_expression)
		return evaluate(u, u->row.cfa_expression, NULL, cfa);
	if (u->row.cfa_register >= TACHO__UNWIND_REGS)
		return 0;
	*cfa = u->regs[u->row.cfa_register] + (uint64_t)u->row.cfa_offset;
	return 1;
}

/* ------------------------------------------------------------ known rows */

#if defined(__x86_64__)
static const uint8_t saved_registers[TACHO__UNWIND_SAVED] = {3, 6, 12, 13, 14, 15};
#else
static const uint8_t saved_registers[TACHO__UNWIND_SAVED] = {19, 20, 21, 22, 23, 24,
							     25, 26, 27, 28, 29, 30};
#endif
#define SAVED_MAX 255
static uint32_t forgotten;

void tacho__unwind_forget(void)
{
	__atomic_add_fetch(&forgotten, 1, __ATOMIC_RELAXED);
}

static struct tacho__unwind_known *known_place(struct tacho__unwind *u, uint64_t pc)
{
	return &u->known[(tacho__mix(pc) >> 32) % TACHO__UNWIND_KNOWN];
}

/* Where a register is stored, counted in words below the CFA; 0: nowhere; -1: elsewhere. */
static int words_below(const struct tacho__unwind_row *row, unsigned reg)
{
	int64_t value = row->rules[reg].value;

	if (row->rules[reg].how == TACHO__UNWIND_SAME)
		return 0;
	if (row->rules[reg].how != TACHO__UNWIND_AT || value % 8 || value >= 0 ||
	    value < -8 * SAVED_MAX)
		return -1;
	return (int)(value / -8);
}

/* Whether the return address is where a known row has it. */
static int returns_as_usual(const struct tacho__unwind_row *row, uint64_t reg)
{
#if defined(__x86_64__)
	return reg == TACHO__UNWIND_PC && words_below(row, TACHO__UNWIND_PC) == 1;
#else
	return reg == 30 && row->rules[TACHO__UNWIND_PC].how == TACHO__UNWIND_SAME;
#endif
}

/* Keeps the row if it can be said in short. */
static void keep(struct tacho__unwind *u, const struct tacho__frame_table *d, uint64_t pc)
{
	const struct tacho__unwind_row *row = &u->row;
	struct tacho__unwind_known k = {.pc = pc, .header = u->tables.header};
	uint32_t next = 0;

	if (d->is_signal || row->cfa_expression || row->cfa_register >= TACHO__UNWIND_REGS ||
	    row->cfa_offset != (int32_t)row->cfa_offset || d->return_register >= TACHO__UNWIND_REGS)
		return;
	k.cfa_offset = (int32_t)row->cfa_offset;
	k.cfa_register = (uint8_t)row->cfa_register;
	k.is_last = row->rules[d->return_register].how == TACHO__UNWIND_UNDEFINED;
	if (!k.is_last && !returns_as_usual(row, d->return_register))
		return;
	for (unsigned reg = 0; reg < TACHO__UNWIND_REGS && !k.is_last; reg++) {
		int words = words_below(row, reg);

		if (next < TACHO__UNWIND_SAVED && saved_registers[next] == reg) {
			if (words < 0)
				return;
			k.saved[next++] = (uint8_t)words;
		} else if (words && reg != TACHO__UNWIND_PC) {
			return;
		}
	}
	*known_place(u, pc) = k;
}

/* As step_by_table does for a row that was kept. */
static int step_by_known(struct tacho__unwind *u, const struct tacho__unwind_known *k)
{
	uint64_t sp = u->regs[TACHO__UNWIND_SP];
	uint64_t cfa = u->regs[k->cfa_register] + (uint64_t)(int64_t)k->cfa_offset;
	uint64_t pc;

	if (k->is_last || cfa < sp || cfa - sp > FRAME_MAX)
		return 0;
	for (uint32_t i = 0; i < TACHO__UNWIND_SAVED; i++)
		if (k->saved[i] &&
		    !read_word(u, cfa - 8ull * k->saved[i], &u->regs[saved_registers[i]]))
			u->regs[saved_registers[i]] = 0;
#if defined(__x86_64__)
	if (!read_word(u, cfa - 8, &pc))
		return 0;
#else
	pc = u->regs[30];
#endif
	if (pc == u->regs[TACHO__UNWIND_PC] && cfa == sp)
		return 0;
	u->regs[TACHO__UNWIND_PC] = pc;
	u->regs[TACHO__UNWIND_SP] = cfa;
	return 1;
}

/* ----------------------------------------------------------------- steps */

/* From the registers of a frame to those of its caller. 0: the stack ends here. */
static int step_by_table(struct tacho__unwind *u, const struct tacho__frame_table *d, uint64_t pc)
{
	uint64_t caller[TACHO__UNWIND_REGS];
	uint64_t cfa, sp = u->regs[TACHO__UNWIND_SP];
	int stored;

	memset(&u->row, 0, sizeof(u->row));
	u->remembered_count = 0;
	if (!execute(u, d, d->common, UINT64_MAX))
		return 0;
	u->initial = u->row;
	if (!execute(u, d, d->own, pc))
		return 0;
	keep(u, d, pc);
	if (!frame_address(u, &cfa))
		return 0;
	/* The stack of a signal handler may lie anywhere, any other only grows. */
	if (!d->is_signal && (cfa < sp || cfa - sp > FRAME_MAX))
		return 0;
	if (d->return_register >= TACHO__UNWIND_REGS)
		return 0;
	stored = u->row.rules[TACHO__UNWIND_SP].how != TACHO__UNWIND_SAME;
	for (unsigned reg = 0; reg < TACHO__UNWIND_REGS; reg++)
		if (!caller_register(u, reg, cfa, &caller[reg])) {
			if (reg == d->return_register)
				return 0;
			caller[reg] = 0;
		}
	caller[TACHO__UNWIND_PC] = caller[d->return_register];
	if (!stored)
		caller[TACHO__UNWIND_SP] = cfa;
	if (caller[TACHO__UNWIND_PC] == u->regs[TACHO__UNWIND_PC] && caller[TACHO__UNWIND_SP] == sp)
		return 0;
	memcpy(u->regs, caller, sizeof(caller));
	return 1;
}

/* Code that no table describes. What it keeps for its caller need not be a frame pointer. */
static int step_by_pointer(struct tacho__unwind *u)
{
	uint64_t fp = u->regs[TACHO__UNWIND_FP], sp = u->regs[TACHO__UNWIND_SP];
	uint64_t outer, pc;

	if (fp < sp || fp - sp > FRAME_MAX || fp % 8 || !read_word(u, fp, &outer) ||
	    !read_word(u, fp + 8, &pc))
		return 0;
	u->regs[TACHO__UNWIND_FP] = outer;
	u->regs[TACHO__UNWIND_SP] = fp + 16;
	u->regs[TACHO__UNWIND_PC] = pc;
	return 1;
}

static void set_registers(struct tacho__unwind *u, const ucontext_t *uc)
{
#if defined(__x86_64__)
	static const uint8_t order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
					REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	for (unsigned i = 0; i < TACHO__UNWIND_REGS; i++)
		u->regs[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
#else
	for (unsigned i = 0; i < 31; i++)
		u->regs[i] = uc->uc_mcontext.regs[i];
	u->regs[TACHO__UNWIND_SP] = uc->uc_mcontext.sp;
	u->regs[TACHO__UNWIND_PC] = uc->uc_mcontext.pc;
#endif
}

static void begin(struct tacho__unwind *u)
{
	u->pid = tacho__getpid();
	stack_begins(u);
	u->window_at = u->window_size = 0;
	u->tables.start = u->tables.end = 0;
	if (u->known_since != tacho__load(&forgotten)) {
		u->known_since = tacho__load(&forgotten);
		memset(u->known, 0, sizeof(u->known));
	}
}

/* A return address may be signed (arm64); addresses of user space have zeros there. */
static uint64_t plain(uint64_t pc)
{
#if defined(__aarch64__)
	return pc & ((1ull << 48) - 1);
#else
	return pc;
#endif
}

/* *back: 1 when what is in the program counter then is a return address. */
static int step(struct tacho__unwind *u, uint64_t pc, uint64_t *back)
{
	struct tacho__frame_table d;

	*back = 1;
	if (tacho__tables_find(&u->tables, pc)) {
		const struct tacho__unwind_known *k = known_place(u, pc);

		if (tacho__likely(k->pc == pc && k->header == u->tables.header))
			return step_by_known(u, k);
		if (tacho__table_describe(&d, &u->tables, pc)) {
			*back = !d.is_signal;
			return step_by_table(u, &d, pc);
		}
	}
	return step_by_pointer(u);
}

uint32_t tacho__unwind(struct tacho__unwind *u, const void *ucontext, uint64_t *frames,
		       uint32_t most, int *more)
{
	set_registers(u, ucontext);
	return tacho__unwind_registers(u, frames, most, more);
}

uint32_t tacho__unwind_registers(struct tacho__unwind *u, uint64_t *frames, uint32_t most,
				 int *more)
{
	/* A return address may be that of the next function already. */
	uint64_t back = 0;
	uint32_t n = 0;

	begin(u);
	u->interrupted = 0;
	*more = 0;
	for (;;) {
		uint64_t pc = plain(u->regs[TACHO__UNWIND_PC]);

		if (!pc)
			return n;
		if (n == most) {
			*more = 1;
			return n;
		}
		if (n && !back && !u->interrupted)
			u->interrupted = n;
		frames[n++] = pc;
		if (!step(u, pc - back, &back))
			return n;
	}
}
