/*
 * Crashes of programs that prepared nothing for them: signal, registers and stack go into the
 * box, and then happens what would have happened.
 *
 * - A signal with its default action has a handler of ours, which the program never sees. It
 *   notes the crash and lets the default action follow, with status and core as without us
 *   (tacho__crash_default).
 * - A handler of the program is left alone: runtimes fault on purpose, and go on. What it does not
 *   know how to handle it mostly gives back to the default action, and so to us.
 * - A handler with SA_RESETHAND is called once. The kernel itself then gives the signal to the
 *   default action, which nobody sees; so the crash is noted before, and the handler finds flags,
 *   mask and stack as the kernel made them.
 * - Ignored signals stay ignored.
 * - A fault of the recorder itself, because the program unmapped the box, is no crash: recording ends.
 *
 * Signals that are blocked end a process that faults at once. So does a fault where no frame can be
 * stored for the handler: the end of a stack, in a thread without an alternate one. We give threads
 * none: handlers of the program with SA_ONSTACK would run there.
 *
 * Nothing here allocates, locks or faults, and little of the stack is used: it may be the
 * program's alternate one. Why it is so: docs/decisions/0016-crashes-by-the-default-action.md.
 */
#include "hooks/crashes.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "base/sys.h"
#include "core/box.h"
#include "core/control.h"
#include "core/crash.h"
#include "hooks/hooks.h"
#include "hooks/samples.h"
#include "hooks/unwind.h"
#include "hooks/foreign.h"

#if defined(__GLIBC__)
TACHO__WEAK(dlvsym);
#endif

const int tacho__crash_signals[TACHO__CRASH_SIGNALS] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE,
							SIGABRT, SIGTRAP, SIGSYS};

/* What the program set where the kernel has a handler of ours. */
static struct {
	struct sigaction plain; /* the default action, with its flags and mask */
	struct sigaction once;	/* a handler with SA_RESETHAND */
} meant[TACHO__CRASH_SIGNALS];
static int noting;

#define SETTLE_TRIES 8

/* Where this library begins and ends, from the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* For each record in the box; no memory until it is used. */
static struct {
	struct tacho__unwind unwind;
	/* Of a crash that a handler with SA_RESETHAND was called for: */
	int tid;		   /* 0: it was not */
	const ucontext_t *context; /* below it lies what the handler does */
	uint64_t pc, sp;	   /* as they are in there */
} rooms[TACHO_CRASHES];

int tacho__crash_index(int sig)
{
	for (int i = 0; i < TACHO__CRASH_SIGNALS; i++)
		if (tacho__crash_signals[i] == sig)
			return i;
	return -1;
}

/* ------------------------------------------------------------------ handlers */

#if defined(__x86_64__)
#define PC(uc) ((uc)->uc_mcontext.gregs[REG_RIP])
#define SP(uc) ((uc)->uc_mcontext.gregs[REG_RSP])
#else
#define PC(uc) ((uc)->uc_mcontext.pc)
#define SP(uc) ((uc)->uc_mcontext.sp)
#endif

/* What lies at an address that may lead nowhere; 0: it cannot be read. */
static uint64_t peek(const void *at)
{
	uint64_t value = 0;
	struct iovec here = {&value, sizeof(value)}, there = {(void *)at, sizeof(value)};
	long n = TACHO__SYS(SYS_process_vm_readv, tacho__getpid(), &here, 1, &there, 1, 0);

	return n == (long)sizeof(value) ? value : 0;
}

/* Where a call of something that is no code would have returned to; 0: it cannot be read. */
static uint64_t caller(const ucontext_t *uc)
{
#if defined(__x86_64__)
	return peek((const void *)SP(uc));
#else
	return uc->uc_mcontext.regs[30];
#endif
}

/* The stack of a call through a pointer that leads nowhere: as if it had only been about to be
   called. */
static uint32_t take_calls(struct tacho__unwind *room, ucontext_t *uc, uint64_t *frames)
{
	__typeof__(PC(uc)) pc = PC(uc);
	__typeof__(SP(uc)) sp = SP(uc);
	uint64_t back = caller(uc);
	uint32_t n;
	int more;

	if (!back)
		return 0;
	PC(uc) = (__typeof__(pc))(back - 1);
#if defined(__x86_64__)
	SP(uc) += 8;
#endif
	n = tacho__unwind(room, uc, frames, TACHO_CRASH_FRAMES - 1, &more);
	PC(uc) = pc;
	SP(uc) = sp;
	if (n)
		frames[0] = back;
	return n;
}

/* Gives the place of the record among all; -1: there is none. */
static int note(int sig, const siginfo_t *info, ucontext_t *uc)
{
	struct tacho_box_crash *c = tacho__crash_begin(sig, info, uc);
	int i = c ? (int)(c - tacho__rec->crashes) : -1, more;
	uint32_t n;

	if (i < 0)
		return i;
	if (sig == SIGSEGV && info->si_code > 0 && c->address == (uint64_t)PC(uc)) {
		n = take_calls(&rooms[i].unwind, uc, c->frame + 1);
		tacho__crash_end(c, 1 + n, 0);
	} else {
		n = tacho__unwind(&rooms[i].unwind, uc, c->frame, TACHO_CRASH_FRAMES, &more);
		tacho__crash_end(c, n, rooms[i].unwind.interrupted);
	}
	return i;
}

/* Whether what the thread does lies above the context of a handler, on the same stack. Behind a
   jump out of the handler it does not, or writes over the context. */
static int is_above(const ucontext_t *uc, const ucontext_t *context)
{
	uintptr_t stack = (uintptr_t)uc->uc_stack.ss_sp, size = uc->uc_stack.ss_size;
	uintptr_t sp = (uintptr_t)SP(uc), old = (uintptr_t)context;

	return sp < old && (old - stack < size) == (sp - stack < size);
}

/* Whether a handler of the program raised this because of a crash that is noted already. */
static int is_noted(const ucontext_t *uc)
{
	int tid = tacho__gettid();

	for (uint32_t i = 0; i < TACHO_CRASHES; i++)
		if (rooms[i].tid == tid && is_above(uc, rooms[i].context) &&
		    peek(&PC(rooms[i].context)) == rooms[i].pc &&
		    peek(&SP(rooms[i].context)) == rooms[i].sp)
			return 1;
	return 0;
}

/* Whether code of this library, or a function of libc that it called and that keeps no frame, ran into
   the fault. */
static int is_own_fault(const siginfo_t *info, const ucontext_t *uc)
{
	uintptr_t begin = (uintptr_t)__ehdr_start, size = (uintptr_t)_end - begin;

	return info->si_code > 0 && ((uintptr_t)PC(uc) - begin < size || caller(uc) - begin < size);
}

/* In place of the default action. */
static void on_crash(int sig, siginfo_t *info, void *context)
{
	if ((sig == SIGSEGV || sig == SIGBUS) && is_own_fault(info, context) &&
	    tacho__box_is_gone(info->si_addr))
		return;
	/* The first process of a namespace does not get what is sent to it and has the default
	   action. */
	if (info->si_code <= 0 && tacho__getpid() == 1)
		return;
	/* A child of vfork shares our memory, but not our box. */
	if (tacho__box_is_own() && !is_noted(context))
		(void)note(sig, info, context);
	tacho__crash_default(sig, info, context);
}

/* In place of a handler with SA_RESETHAND. Its call is the last thing done here, and so a jump:
   it returns to where the kernel meant it to, and its stack has no frame of ours. */
static void on_once(int sig, siginfo_t *info, void *context)
{
	int i = tacho__box_is_own() ? note(sig, info, context) : -1;

	if (i >= 0) {
		rooms[i].context = context;
		rooms[i].pc = (uint64_t)PC((const ucontext_t *)context);
		rooms[i].sp = (uint64_t)SP((const ucontext_t *)context);
		rooms[i].tid = tacho__gettid();
	}
	meant[tacho__crash_index(sig)].once.sa_sigaction(sig, info, context);
}

/* ------------------------------------------------------------------- actions */

static int is_default(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

static int is_ignored(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN;
}

static int is_same(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags &&
	       !memcmp(&a->sa_mask, &b->sa_mask, sizeof(uint64_t)); /* what the kernel has of it */
}

/* 1: `ours` shall be there in the place of `now`. */
static int stands_in(int index, const struct sigaction *now, struct sigaction *ours)
{
	if (is_default(now)) {
		meant[index].plain = *now;
		memset(ours, 0, sizeof(*ours));
		ours->sa_sigaction = on_crash;
		ours->sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
		sigfillset(&ours->sa_mask);
		return 1;
	}
	if (!(now->sa_flags & (int)SA_RESETHAND) || is_ignored(now) || now->sa_sigaction == on_once)
		return 0;
	meant[index].once = *now;
	*ours = *now;
	ours->sa_sigaction = on_once;
	ours->sa_flags |= SA_SIGINFO;
	return 1;
}

/* A child of vfork shares our memory, and is on its way to another program. */
static int is_own_process(void)
{
	int pid = tacho__getpid(), by = tacho__load(&tacho__rec->noted_by);

	if (!by)
		tacho__store(&tacho__rec->noted_by, pid);
	return !by || by == pid;
}

void tacho__crash_settle(int sig)
{
	int index = tacho__crash_index(sig), saved = errno;
	struct sigaction now, ours, before;
	int tries = index >= 0 && tacho__load(&noting) && is_own_process() ? SETTLE_TRIES : 0;

	/* Another thread may set its own meanwhile, or block the signal of samples in it: that is put
	   back, and looked at again. */
	while (tries-- > 0 && !tacho__real_sigaction(sig, NULL, &now) &&
	       stands_in(index, &now, &ours) && !tacho__real_sigaction(sig, &ours, &before) &&
	       !is_same(&before, &now))
		tacho__real_sigaction(sig, &before, NULL);
	errno = saved;
}

void tacho__crash_believed(int sig, struct sigaction *action)
{
	int index = tacho__crash_index(sig);

	if (index < 0)
		return;
	if (action->sa_sigaction == on_crash) {
		*action = meant[index].plain;
	} else if (action->sa_sigaction == on_once) {
		action->sa_sigaction = meant[index].once.sa_sigaction;
		action->sa_flags = meant[index].once.sa_flags;
	}
}

void tacho__crashes_begin(void)
{
	if (!tacho__crash_wanted() || tacho__under_valgrind())
		return;
	noting = 1;
#if defined(__GLIBC__)
	/* Debuggers look for it as well. It is in no header. */
	tacho__crash_said =
		(const uint32_t *const *)dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
#endif
	for (int i = 0; i < TACHO__CRASH_SIGNALS; i++)
		tacho__crash_settle(tacho__crash_signals[i]);
	tacho__crash_hooked(1);
}

void tacho__crashes_end(void)
{
	if (!tacho__load(&noting))
		return;
	tacho__store(&noting, 0);
	for (int i = 0; i < TACHO__CRASH_SIGNALS; i++) {
		int sig = tacho__crash_signals[i];
		struct sigaction now;

		if (tacho__real_sigaction(sig, NULL, &now) ||
		    (now.sa_sigaction != on_crash && now.sa_sigaction != on_once))
			continue;
		tacho__crash_believed(sig, &now);
		tacho__real_sigaction(sig, &now, NULL);
	}
	tacho__crash_hooked(0);
}
