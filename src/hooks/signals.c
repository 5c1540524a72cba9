/*
 * The one signal that samples use stays out of the program's sight.
 *
 * - A handler that the program installs for it, or a set of its that names it without
 *   naming all real-time signals, means that the program uses the signal: samples move to
 *   another.
 * - The default action and SIG_IGN are only remembered: daemons set these for all signals.
 * - Waits for "all signals" wait for all but this one.
 */
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "core/recorder.h"
#include "hooks/hooks.h"
#include "hooks/samples.h"

/* What is hooked here may be called in signal handlers, where nothing can be looked up: the
   constructor does. */
sighandler_t __sysv_signal(int sig, sighandler_t handler);
static struct {
	void *sigaction, *signal, *sysv_signal, *__sysv_signal;
	void *sigwait, *sigwaitinfo, *sigtimedwait, *signalfd;
} found;

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

void tacho__signals_begin(void)
{
	(void)FIND(sigaction);
	(void)FIND(signal);
	(void)FIND(sysv_signal);
	(void)FIND(__sysv_signal);
	(void)FIND(sigwait);
	(void)FIND(sigwaitinfo);
	(void)FIND(sigtimedwait);
	(void)FIND(signalfd);
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

TACHO_HOOK int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	if (tacho__unlikely(is_ours(sig))) {
		if (!act || !has_handler(act)) {
			tacho__samples_believed(act, old);
			return 0;
		}
		tacho__samples_yield(sig);
	}
	return FIND(sigaction)(sig, act, old);
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

TACHO_HOOK sighandler_t signal(int sig, sighandler_t handler)
{
	sighandler_t before;

	return by_signal(sig, handler, &before) ? before : FIND(signal)(sig, handler);
}

TACHO_HOOK sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	sighandler_t before;

	return by_signal(sig, handler, &before) ? before : FIND(sysv_signal)(sig, handler);
}

/* What signal() is in programs that ask for strict POSIX. */
TACHO_HOOK sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	sighandler_t before;

	return by_signal(sig, handler, &before) ? before : FIND(__sysv_signal)(sig, handler);
}

/* `set`, or a copy of it without our signal. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy)
{
	int ours = tacho__samples_signal();

	if (!ours || !set || sigismember(set, ours) != 1)
		return set;
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++) {
		if (sigismember(set, sig) != 1) {
			tacho__samples_yield(ours);
			return set;
		}
	}
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
