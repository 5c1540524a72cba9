#include "agent/run_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/run_program.h"
#include "base/sys.h"

#define ANCESTORS_MAX 64 /* generations that are followed to find out who sent a signal */
#define SHELL "/bin/sh"
#define NS_PER_S UINT64_C(1000000000)
#define START_FIELD 22 /* of /proc/PID/stat: when it was started */

static int is_variable(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static int is_replaced(const char *entry, const struct tacho__variable *variables, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_variable(entry, variables[i].name))
			return 1;
	return 0;
}

char **tacho__environment(char *const *environment, const struct tacho__variable *variables,
			  size_t count)
{
	size_t entries = count + 1, bytes = 0, n = 0;
	char **out, *text;

	for (char *const *e = environment; *e; e++)
		entries++;
	for (size_t i = 0; i < count; i++)
		if (variables[i].value)
			bytes += strlen(variables[i].name) + strlen(variables[i].value) + 2;
	out = malloc(entries * sizeof(*out) + bytes);
	if (!out)
		return NULL;
	text = (char *)(out + entries);
	for (char *const *e = environment; *e; e++)
		if (!is_replaced(*e, variables, count))
			out[n++] = *e;
	for (size_t i = 0; i < count; i++) {
		if (!variables[i].value)
			continue;
		out[n++] = text;
		text += sprintf(text, "%s=%s", variables[i].name, variables[i].value) + 1;
	}
	out[n] = NULL;
	return out;
}

/*
 * Sockets that a service manager hands over carry the process id that they are meant for:
 * that of this process, which is to be the command's.
 */
static void rename_listen_pid(char *const *environment, pid_t before)
{
	static char entry[32];
	char old[32];

	snprintf(old, sizeof(old), "LISTEN_PID=%ld", (long)before);
	for (char **e = (char **)(uintptr_t)environment; *e; e++) {
		if (strcmp(*e, old) != 0)
			continue;
		snprintf(entry, sizeof(entry), "LISTEN_PID=%ld", (long)getpid());
		*e = entry;
	}
}

static void restore_signals(const struct tacho__start *start)
{
	struct sigaction action = {.sa_handler = SIG_DFL};

	for (int number = 1; number < NSIG; number++) {
		if (sigismember(&start->changed, number) != 1)
			continue;
		action.sa_handler = sigismember(&start->ignored, number) == 1 ? SIG_IGN : SIG_DFL;
		sigaction(number, &action, NULL);
	}
	sigprocmask(SIG_SETMASK, &start->mask, NULL);
}

/* How execvp(3) runs a script without a first line: argv for the shell. */
static char **make_shell_argv(const struct tacho__start *start)
{
	size_t count = 0;
	char **out;

	while (start->argv[count])
		count++;
	out = calloc(count + 2, sizeof(*out));
	if (!out)
		return NULL;
	out[0] = (char *)(uintptr_t)SHELL;
	out[1] = (char *)(uintptr_t)start->program->path;
	for (size_t i = 1; i < count; i++)
		out[i + 1] = start->argv[i];
	return out;
}

int tacho__become(const struct tacho__start *start)
{
	char **shell_argv;
	int error;

	restore_signals(start);
	execve(start->program->path, start->argv, start->environment);
	error = errno;
	if (error == ENOEXEC && start->program->is_text) {
		shell_argv = make_shell_argv(start);
		if (shell_argv)
			execve(SHELL, shell_argv, start->environment);
		error = errno;
		free(shell_argv);
	}
	return -error;
}

pid_t tacho__start(const struct tacho__start *start)
{
	pid_t parent = getpid(), pid;
	int error = 0, ends[2];

	/* The child's end is closed by a successful exec. */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	pid = fork();
	if (pid == 0) {
		if (start->own_group)
			setpgid(0, 0);
		rename_listen_pid(start->environment, parent);
		error = tacho__become(start);
		while (write(ends[1], &error, sizeof(error)) < 0 && errno == EINTR)
			;
		_exit(127);
	}
	if (pid < 0)
		error = errno;
	close(ends[1]);
	if (pid > 0 && read(ends[0], &error, sizeof(error)) == (ssize_t)sizeof(error))
		waitpid(pid, NULL, 0);
	close(ends[0]);
	if (pid < 0) {
		errno = error;
		return 0;
	}
	return error ? error : pid;
}

/* What is behind the name in /proc/PID/stat: the state and numbers; NULL: it is not there. */
static const char *read_stat(pid_t pid, char text[1024])
{
	char path[32];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	tacho__read_small(path, text, 1024);
	/* The name in brackets may hold anything. */
	at = strrchr(text, ')');
	return at && at[1] == ' ' && at[2] ? at + 2 : NULL;
}

/* State and parent of a process; 0: it is not there. */
static pid_t read_parent(pid_t pid, char *state)
{
	char text[1024];
	const char *at = read_stat(pid, text);

	if (!at)
		return 0;
	*state = *at;
	return (pid_t)strtol(at + 1, NULL, 10);
}

uint64_t tacho__ticks_of_boot(uint64_t ago_ns)
{
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_BOOTTIME, &now);
	ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	return (ns > ago_ns ? ns - ago_ns : 0) / (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* When it was started, in ticks since boot; 0: it is not there, or has ended. */
static uint64_t read_start(pid_t pid)
{
	char text[1024];
	const char *at = read_stat(pid, text);

	if (!at || *at == 'Z')
		return 0;
	for (int field = 3; at && field < START_FIELD; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

bool tacho__has_child_since(uint64_t start, pid_t but)
{
	bool found = false;
	char path[64];
	FILE *file;
	long pid;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
	file = fopen(path, "re");
	while (file && !found && fscanf(file, "%ld", &pid) == 1)
		found = pid != (long)but && read_start((pid_t)pid) >= start;
	if (file)
		fclose(file);
	return found;
}

int tacho__is_stopped(pid_t pid)
{
	char state = 0;

	return read_parent(pid, &state) == 0 || state == 'T';
}

/* 1: `pid` descends from this process. */
static int is_descendant(pid_t pid)
{
	pid_t self = getpid();
	char state;

	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		pid = read_parent(pid, &state);
		if (pid == self)
			return 1;
	}
	return 0;
}

int tacho__is_for_child(const struct signalfd_siginfo *info, bool own_group)
{
	/* Of the kernel: the terminal's go to the group, others are about ourselves. */
	if (info->ssi_code > 0)
		return 0;
	if (info->ssi_pid == 0)
		return 1; /* from outside our pid namespace */
	return (pid_t)info->ssi_pid != getpid() &&
	       (own_group || !is_descendant((pid_t)info->ssi_pid));
}

int tacho__pass_on(const struct signalfd_siginfo *info, pid_t pid)
{
	union sigval value = {.sival_ptr = (void *)(uintptr_t)info->ssi_ptr};
	int number = (int)info->ssi_signo;
	int result = info->ssi_code == SI_QUEUE ? sigqueue(pid, number, value) : kill(pid, number);

	return result < 0 ? -errno : 0;
}
