#include "agent/gather.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t process, reader;

static void pass_on(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (getpid() != process) {
		/* A child on its way to another program: what it would have done by itself. */
		signal(number, SIG_DFL);
		kill(getpid(), number);
	} else if (syscall(SYS_rt_tgsigqueueinfo, process, reader, number, info)) {
		/* Only the first thread may repeat what the kernel says, such as that a child ended. */
		syscall(SYS_tgkill, process, reader, number);
	}
	errno = saved;
}

static int has_other_threads(void)
{
	DIR *folder = opendir("/proc/self/task");
	int count = 0;

	while (folder && count < 4 && readdir(folder)) /* with . and .. */
		count++;
	if (folder)
		closedir(folder);
	return count > 3;
}

void tacho__gather_signals(void)
{
	struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART},
			 now;
	/* Those whose default action ends or stops a process because of what it does itself stay. */
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
	sigset_t left;

	if (!has_other_threads())
		return;
	process = getpid();
	reader = (pid_t)syscall(SYS_gettid);
	sigfillset(&action.sa_mask);
	sigemptyset(&left);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigaddset(&left, faults[i]);
	/* Refused for SIGKILL and SIGSTOP. What is ignored stays so, for the command as well. */
	for (int number = 1; number <= SIGRTMAX; number++)
		if (!sigismember(&left, number) && !sigaction(number, NULL, &now) &&
		    !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
			sigaction(number, &action, NULL);
}
