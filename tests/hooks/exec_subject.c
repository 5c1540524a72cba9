/*
 * Starts itself in every way, with an environment of its own, and says what the new one has. With
 * START=PATH in its environment it starts that program instead, and with KEEP in it the new one
 * gets its own environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 5000

static char self[4096];
static char *args[] = {(char *)"subject", (char *)"show", NULL};
static char *many[MANY + 1];
static char **given; /* the environment of what is started; NULL: none at all */

static int show(void)
{
	const char *preload = getenv("LD_PRELOAD"), *recording = getenv("TACHO_RECORDING");
	size_t count = 0;

	while (environ && environ[count])
		count++;
	printf(" preload=%s recording=%s own=%s entries=%zu\n", preload ? preload : "none",
	       recording ? recording : "none", getenv("OWN") ? getenv("OWN") : "none", count);
	return 0;
}

static void start(const char *how)
{
	char *none[] = {NULL}, **variables = given ? given : none;

	if (!strcmp(how, "execve"))
		execve(self, args, given);
	if (!strcmp(how, "execvpe"))
		execvpe(self, args, variables);
	if (!strcmp(how, "fexecve"))
		fexecve(open(self, O_RDONLY), args, variables); /* a script's is opened again */
#if defined(__GLIBC__)						/* musl 1.2.3 has none */
	if (!strcmp(how, "execveat"))
		execveat(AT_FDCWD, self, args, variables, 0);
	if (!strcmp(how, "execveat descriptor"))
		execveat(open(self, O_PATH), "", args, variables, AT_EMPTY_PATH);
#endif
	if (!strcmp(how, "execle"))
		execle(self, "subject", "show", NULL, variables);
	environ = given;
	if (!strcmp(how, "execv"))
		execv(self, args);
	if (!strcmp(how, "execvp"))
		execvp(self, args);
	if (!strcmp(how, "execl"))
		execl(self, "subject", "show", NULL);
	if (!strcmp(how, "execlp"))
		execlp(self, "subject", "show", NULL);
	/* What fails, and how. */
	if (!strcmp(how, "missing"))
		execvp("no-such-program-here", args);
	if (!strcmp(how, "denied"))
		execv("/etc/passwd", args);
	if (!strcmp(how, "script"))
		execvp(getenv("SCRIPT") ? getenv("SCRIPT") : args[1], args);
	printf(" errno=%d\n", errno);
	fflush(stdout);
	_exit(1);
}

static void spawn(const char *how)
{
	posix_spawn_file_actions_t *actions = NULL;
	int error = !strcmp(how, "posix_spawn")
			    ? posix_spawn(&(pid_t){0}, self, actions, NULL, args, given)
			    : posix_spawnp(&(pid_t){0}, self, actions, NULL, args, given);

	if (error)
		printf(" error=%d\n", error);
	wait(NULL);
}

static void in_vfork(const char *how)
{
	pid_t child = vfork();
	char *none[] = {NULL};

	if (child == 0) {
		execve(self, args, given ? given : none);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	(void)how;
}

static void *in_thread(void *arg)
{
	if (fork() == 0)
		start(arg);
	wait(NULL);
	return NULL;
}

static void in_child(const char *how)
{
	pthread_t thread;

	/* A child of a program with threads, on a small stack. */
	if (!strncmp(how, "thread ", 7)) {
		pthread_attr_t a;

		pthread_attr_init(&a);
		pthread_attr_setstacksize(&a, 64 << 10);
		pthread_create(&thread, &a, in_thread, (void *)(uintptr_t)(how + 7));
		pthread_join(thread, NULL);
		return;
	}
	if (fork() == 0)
		start(how);
	wait(NULL);
}

/* subject HOW [NAME=VALUE ...]: with these variables; "-" for none, "many" for very many. */
int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "show";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	if (getenv("START"))
		snprintf(self, sizeof(self), "%s", getenv("START"));
	if (!strcmp(how, "show"))
		return show();
	given = argc > 2 && strcmp(argv[2], "-") != 0 ? argv + 2 : NULL;
	if (getenv("KEEP"))
		given = environ;
	if (given && !strcmp(given[0], "many")) {
		for (int i = 0; i < MANY; i++)
			many[i] = (char *)"OWN=many";
		given = many;
	}
	printf("%s", how);
	fflush(stdout);
	if (!strncmp(how, "posix_spawn", 11))
		spawn(how);
	else if (!strcmp(how, "vfork"))
		in_vfork(how);
	else
		in_child(how);
	return 0;
}
