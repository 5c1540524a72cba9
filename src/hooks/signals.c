/*
 * The one signal that samples use stays out of the program's sight.
 *
 * - A handler that the program installs for it, or a set of its that names it without
 *   naming all signals, means that the program uses the signal: samples move to another.
 *   Sets are those of signals that it blocks, from its beginning on, and waits for. One with all
 *   real-time signals and few others is of a program that uses them all: then there are no samples.
 * - The default action and SIG_IGN are only remembered: daemons set these for all signals.
 * - Waits for "all signals" wait for all but this one.
 * - Handlers of crashes run with it blocked. They do what nothing may come in between of:
 *   redis's tests all memory, ours included, by changing it and changing it back.
 * - So do handlers on an alternate stack: the frame of a second signal, 3 KiB with AVX-512, may not fit on
 *   it, and then the kernel ends the program.
 *
 * So do the handlers of ours that note crashes (crashes.c): after each call that may have changed
 * the action of such a signal, crashes.c sees what it is now, and what a call tells of the action
 * before is what the program believes.
 */
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/sys.h"
#include "core/recorder.h"
#include "hooks/crashes.h"
#include "hooks/hooks.h"
#include "hooks/samples.h"

/* What is hooked here may be called in signal handlers, where nothing can be looked up: the
   constructor does. */
sighandler_t __sysv_signal(int sig, sighandler_t handler);
sighandler_t bsd_signal(int sig, sighandler_t handler);
static struct {
	void *sigaction, *signal, *sysv_signal, *__sysv_signal, *sigset;
	void *sigwait, *sigwaitinfo, *sigtimedwait, *signalfd;
	void *sigprocmask, *pthread_sigmask;
} found;

/* Bits of signals, as in a mask of the kernel: all real-time ones that libc leaves to programs,
   and those of them that the program named in sets. */
#define FILLED_LEAST 16 /* of 31 standard signals; a program takes some out of a full set */
static uint64_t all_real_time;
static uint64_t named;

static void *find(void **at, const char *name)
{
	void *f = tacho__load(at);

	if (tacho__unlikely(!f)) {
		f = tacho__real(name);
		tacho__store(at, f);
	}
	return f;
}

#define FIND(name) ((__typeof__(&name))find(&found.name, #name))
/* Headers call it deprecated, or have none. */
#define FIND_SYSV ((__typeof__(&signal))find(&found.sysv_signal, "sysv_signal"))
#define FIND_SIGSET ((__typeof__(&signal))find(&found.sigset, "sigset"))

static uint64_t bit_of(int sig)
{
	return 1ull << (sig - 1);
}

/* Whether a set comes from sigfillset(3): all real-time signals, ours or not, and most others. */
static int is_filled(uint64_t mask, int ours)
{
	/* The program may have it from a mask of which we had taken our signal. */
	mask |= ours ? bit_of(ours) : 0;
	return (mask & all_real_time) == all_real_time &&
	       __builtin_popcountll(mask & (bit_of(32) - 1)) >= FILLED_LEAST;
}

/*
 * Our signal when `set` has it among all that there are, else 0. One that has some of them names
 * these, now or before any was chosen: then they are none of ours from here on.
 */
static int names_ours(const sigset_t *set)
{
	int ours = tacho__samples_signal();
	uint64_t mask;

	memcpy(&mask, set, sizeof(mask));
	if (tacho__likely(!(mask & all_real_time)))
		return 0;
	if (is_filled(mask, ours))
		return ours && mask & bit_of(ours) ? ours : 0;
	mask &= all_real_time;
	if (mask & ~tacho__load(&named))
		__atomic_fetch_or(&named, mask, __ATOMIC_RELAXED);
	if (ours && mask & bit_of(ours))
		tacho__samples_yield(ours);
	return 0;
}

void tacho__signals_begin(void)
{
	sigset_t blocked;

	(void)FIND(sigaction);
	(void)FIND(signal);
	(void)FIND_SYSV;
	(void)FIND(__sysv_signal);
	(void)FIND_SIGSET;
	(void)FIND(sigwait);
	(void)FIND(sigwaitinfo);
	(void)FIND(sigtimedwait);
	(void)FIND(signalfd);
	(void)FIND(sigprocmask);
	(void)FIND(pthread_sigmask);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		all_real_time |= bit_of(sig);
	sigemptyset(&blocked);
	(void)FIND(sigprocmask)(SIG_BLOCK, NULL, &blocked);
	(void)names_ours(&blocked);
}

int tacho__signal_named(int sig)
{
	return (tacho__load(&named) & bit_of(sig)) != 0;
}

int tacho__real_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return FIND(sigaction)(sig, act, old);
}

static int is_ours(int sig)
{
	return sig >= SIGRTMIN && sig == tacho__samples_signal();
}

static int has_handler(const struct sigaction *act)
{
	return act->sa_flags & SA_SIGINFO ||
	       (act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN);
}

/* ----------------------------------------------- handlers that run with it blocked */

/* What was added to the mask of the handler in place, by signal; 0: nothing. */
static int added[_NSIG];

/* NULL: there is no such signal. */
static int *added_for(int sig)
{
	return sig > 0 && sig < _NSIG ? &added[sig] : NULL;
}

static int is_crash(int sig)
{
	return tacho__crash_index(sig) >= 0;
}

static int runs_blocked(int sig, uint64_t flags)
{
	return flags & SA_ONSTACK || is_crash(sig);
}

/* The action as the kernel has it, which a sanitizer keeps from libc's functions. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

static int kernel_action(int sig, const struct kernel_action *act, struct kernel_action *old)
{
	return TACHO__SYS(SYS_rt_sigaction, sig, act, old, sizeof(act->mask), 0, 0) < 0;
}

/* Our signal is blocked in the handler that is in place. Another thread may put its own there
   meanwhile: then that one stays. */
static void block_in_handler(int sig, int *mark)
{
	int ours = tacho__samples_signal();
	struct kernel_action now, before, was;

	if (!ours || kernel_action(sig, NULL, &now))
		return;
	for (int tries = 0; tries < 4; tries++) {
		/* SIG_DFL, SIG_IGN. */
		if (now.handler <= 1 || now.mask & bit_of(ours) || !runs_blocked(sig, now.flags))
			return;
		was = now;
		if (tacho__load(mark))
			now.mask &= ~bit_of(tacho__load(mark));
		now.mask |= bit_of(ours);
		tacho__store(mark, ours);
		if (kernel_action(sig, &now, &before) ||
		    (before.handler == was.handler && before.flags == was.flags))
			return;
		tacho__store(mark, 0);
		now = before;
	}
}

void tacho__samples_chosen(void)
{
	int ours = tacho__samples_signal();

	/* With the one in set_marked: of two threads, one that has set a handler and one that
	   has chosen, at least one sees what the other did. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sig != ours && (sig < 32 || sig >= SIGRTMIN))
			block_in_handler(sig, &added[sig]);
}

/* As the program means it, and as it shall be. */
static int set_marked(int sig, int *mark, const struct sigaction *act, struct sigaction *old)
{
	int before = tacho__load(mark), ours = tacho__samples_signal(), add, result;
	struct sigaction changed;

	add = act && ours && has_handler(act) && runs_blocked(sig, (uint64_t)act->sa_flags) &&
	      sigismember(&act->sa_mask, ours) != 1;
	if (add) {
		changed = *act;
		sigaddset(&changed.sa_mask, ours);
	}
	result = FIND(sigaction)(sig, add ? &changed : act, old);
	if (!result && old && is_crash(sig))
		tacho__crash_believed(sig, old);
	if (!result && old && before && has_handler(old))
		sigdelset(&old->sa_mask, before);
	/* A child of vfork has no signal of ours, and must leave its parent's notes alone. */
	if (!result && act && ours)
		tacho__store(mark, add ? ours : 0);
	/* One may have been chosen meanwhile. */
	if (!result && act && !ours) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		block_in_handler(sig, mark);
	}
	if (!result && act && is_crash(sig))
		tacho__crash_settle(sig);
	return result;
}

/* Of the names of one function none calls another by that: a program that has a sigaction of its own, as
   Erlang's, comes here by the next name from it, and would be called again. */
static int set_action(int sig, const struct sigaction *act, struct sigaction *old)
{
	int *mark = added_for(sig);

	if (tacho__unlikely(is_ours(sig))) {
		if (!act || !has_handler(act)) {
			tacho__samples_believed(act, old);
			return 0;
		}
		tacho__samples_yield(sig);
	}
	return mark ? set_marked(sig, mark, act, old) : FIND(sigaction)(sig, act, old);
}

TACHO_HOOK int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return set_action(sig, act, old);
}

TACHO_HOOK int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return set_action(sig, act, old);
}

static int by_signal(int sig, sighandler_t handler, sighandler_t *before)
{
	struct sigaction act, old;

	if (tacho__likely(!is_ours(sig)))
		return 0;
	if (handler != SIG_DFL && handler != SIG_IGN) {
		tacho__samples_yield(sig);
		return 0;
	}
	memset(&act, 0, sizeof(act));
	act.sa_handler = handler;
	tacho__samples_believed(&act, &old);
	*before = old.sa_handler;
	return 1;
}

/* signal() and kin have set a handler of their own mask. Gives `before`. */
static sighandler_t was_set(int sig, sighandler_t before)
{
	int *mark = added_for(sig), saved = errno;
	struct sigaction action;

	if (!mark || before == SIG_ERR)
		return before;
	if (tacho__samples_signal()) {
		tacho__store(mark, 0);
		block_in_handler(sig, mark);
	}
	memset(&action, 0, sizeof(action));
	action.sa_handler = before;
	if (is_crash(sig)) {
		tacho__crash_believed(sig, &action);
		tacho__crash_settle(sig);
	}
	errno = saved;
	return action.sa_handler;
}

static sighandler_t set_handler(int sig, sighandler_t handler)
{
	sighandler_t before;

	return by_signal(sig, handler, &before) ? before : was_set(sig, FIND(signal)(sig, handler));
}

TACHO_HOOK sighandler_t signal(int sig, sighandler_t handler)
{
	return set_handler(sig, handler);
}

/* Other names of it. */
TACHO_HOOK sighandler_t bsd_signal(int sig, sighandler_t handler)
{
	return set_handler(sig, handler);
}

TACHO_HOOK sighandler_t ssignal(int sig, sighandler_t handler)
{
	return set_handler(sig, handler);
}

TACHO_HOOK sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	sighandler_t before;

	return by_signal(sig, handler, &before) ? before : was_set(sig, FIND_SYSV(sig, handler));
}

/* What signal() is in programs that ask for strict POSIX. */
TACHO_HOOK sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	sighandler_t before;

	return by_signal(sig, handler, &before) ? before
						: was_set(sig, FIND(__sysv_signal)(sig, handler));
}

/* It tells of a handler, or SIG_HOLD: the signal was blocked. */
TACHO_HOOK sighandler_t sigset(int sig, sighandler_t handler)
{
	sighandler_t before;

	return by_signal(sig, handler, &before) ? before : was_set(sig, FIND_SIGSET(sig, handler));
}

/* `set`, or a copy of it without our signal. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy)
{
	int ours = set ? names_ours(set) : 0;

	if (!ours)
		return set;
	*copy = *set;
	sigdelset(copy, ours);
	return copy;
}

TACHO_HOOK int sigwait(const sigset_t *set, int *sig)
{
	sigset_t copy;

	return FIND(sigwait)(without_ours(set, &copy), sig);
}

TACHO_HOOK int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	sigset_t copy;

	return FIND(sigwaitinfo)(without_ours(set, &copy), info);
}

TACHO_HOOK int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	sigset_t copy;

	return FIND(sigtimedwait)(without_ours(set, &copy), info, timeout);
}

TACHO_HOOK int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t copy;

	return FIND(signalfd)(fd, without_ours(set, &copy), flags);
}

/* ---------------------------------------------------------------------- masks */

TACHO_HOOK int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	if (set && how != SIG_UNBLOCK)
		(void)names_ours(set);
	return FIND(sigprocmask)(how, set, old);
}

TACHO_HOOK int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	if (set && how != SIG_UNBLOCK)
		(void)names_ours(set);
	return FIND(pthread_sigmask)(how, set, old);
}
