/* A program with functions of its own for libc's sigaction and signal, which call libc's by their other
   names, as Erlang's does. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static int actions, handlers, seen;

int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	int (*next)(int, const struct sigaction *, struct sigaction *) =
		(__typeof__(next))dlsym(RTLD_NEXT, "__sigaction");

	if (!next || ++actions > 100)
		exit(99);
	return next(sig, act, old);
}

__sighandler_t signal(int sig, __sighandler_t handler)
{
	__sighandler_t (*next)(int, __sighandler_t) = (__typeof__(next))dlsym(RTLD_NEXT, "ssignal");

	if (!next || ++handlers > 100)
		exit(98);
	return next(sig, handler);
}

static void on_signal(int sig)
{
	(void)sig;
	seen++;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct epoll_event event;
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (sigaction(SIGUSR1, &action, NULL) || signal(SIGUSR2, on_signal) == SIG_ERR ||
	    sigaction(SIGSEGV, &action, NULL) || raise(SIGUSR1) || raise(SIGUSR2))
		return 1;
	for (int i = 0; i < 3; i++)
		(void)epoll_wait(set, &event, 1, 1);
	close(set);
	printf("%d seen, %d actions, %d handlers\n", seen, actions, handlers);
	return 0;
}
