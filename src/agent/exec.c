#include "agent/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text.h"

/* What the command is told, as it stands in the environment. */
enum { TOLD_FILE, TOLD_PID, TOLD_WHY, TOLD_COUNT };
static const char *const told[TOLD_COUNT] = {"TACHO_FILE=", "TACHO_PID=", "TACHO_WHY="};

struct job {
	struct job *next;
	char *variable[TOLD_COUNT];
};

struct tacho__exec {
	const char *command;
	char **environment; /* the caller's, then room for what the command is told */
	size_t environment_count;
	struct job *first, *last; /* that wait */
	unsigned waiting;
	pid_t pid; /* that runs; 0: none does */
	struct job *running;
};

static void job_free(struct job *j)
{
	if (!j)
		return;
	for (int i = 0; i < TOLD_COUNT; i++)
		free(j->variable[i]);
	free(j);
}

static const char *job_path(const struct job *j)
{
	return j->variable[TOLD_FILE] + strlen(told[TOLD_FILE]);
}

static struct job *job_new(const char *path, uint32_t pid, const char *why)
{
	struct job *j = calloc(1, sizeof(*j));
	int bad;

	if (!j)
		return NULL;
	bad = asprintf(&j->variable[TOLD_FILE], "%s%s", told[TOLD_FILE], path) < 0;
	if (bad)
		j->variable[TOLD_FILE] = NULL;
	if (asprintf(&j->variable[TOLD_PID], "%s%" PRIu32, told[TOLD_PID], pid) < 0) {
		j->variable[TOLD_PID] = NULL;
		bad = 1;
	}
	if (asprintf(&j->variable[TOLD_WHY], "%s%s", told[TOLD_WHY], why ? why : "") < 0) {
		j->variable[TOLD_WHY] = NULL;
		bad = 1;
	}
	if (!bad)
		return j;
	job_free(j);
	return NULL;
}

static int is_told(const char *variable)
{
	for (int i = 0; i < TOLD_COUNT; i++)
		if (!strncmp(variable, told[i], strlen(told[i])))
			return 1;
	return 0;
}

struct tacho__exec *tacho__exec_new(const char *command, char *const *environment)
{
	struct tacho__exec *x = calloc(1, sizeof(*x));
	size_t n = 0;

	while (environment && environment[n])
		n++;
	if (x)
		x->environment = calloc(n + TOLD_COUNT + 1, sizeof(*x->environment));
	if (!x || !x->environment) {
		free(x);
		return NULL;
	}
	x->command = command;
	for (size_t i = 0; i < n; i++)
		if (!is_told(environment[i]))
			x->environment[x->environment_count++] = environment[i];
	return x;
}

/* Signals as a program finds them that a shell starts, whatever the agent made of them. */
static int attributes(posix_spawnattr_t *a)
{
	sigset_t all, none;
	int err;

	sigfillset(&all);
	sigemptyset(&none);
	err = posix_spawnattr_setsigdefault(a, &all);
	if (!err)
		err = posix_spawnattr_setsigmask(a, &none);
	if (!err)
		err = posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	return err;
}

static int start(struct tacho__exec *x, struct job *j)
{
	/* The path is an argument: no character of it is read as part of the command. */
	char *argv[] = {(char *)"sh",	 (char *)"-c",	      (char *)x->command,
			(char *)"tacho", (char *)job_path(j), NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t a;
	int err;

	for (size_t i = 0; i < TOLD_COUNT; i++)
		x->environment[x->environment_count + i] = j->variable[i];
	err = posix_spawn_file_actions_init(&files);
	if (err)
		return -err;
	err = posix_spawnattr_init(&a);
	if (!err) {
		err = attributes(&a);
		if (!err)
			err = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
		if (!err)
			err = posix_spawn(&x->pid, "/bin/sh", &files, &a, argv, x->environment);
		posix_spawnattr_destroy(&a);
	}
	posix_spawn_file_actions_destroy(&files);
	if (err)
		x->pid = 0;
	else
		x->running = j;
	return -err;
}

int tacho__exec_file(struct tacho__exec *x, const char *path, uint32_t pid, const char *why)
{
	struct job *j;
	int err;

	if (x->pid && x->waiting == TACHO__EXEC_WAITING)
		return -ENOBUFS;
	j = job_new(path, pid, why);
	if (!j)
		return -ENOMEM;
	if (!x->pid) {
		err = start(x, j);
		if (err)
			job_free(j);
		return err;
	}
	if (x->last)
		x->last->next = j;
	else
		x->first = j;
	x->last = j;
	x->waiting++;
	return 0;
}

/* The next that can be started; those that can't are named by `t`. */
static void start_next(struct tacho__exec *x, struct tacho__text *t)
{
	while (!x->pid && x->first) {
		struct job *j = x->first;
		int err;

		x->first = j->next;
		if (!x->first)
			x->last = NULL;
		x->waiting--;
		j->next = NULL;
		err = start(x, j);
		if (!err)
			return;
		if (!t->size) {
			tacho__text_put(t, "the --exec command could not be started for ");
			tacho__text_put(t, job_path(j));
			tacho__text_put(t, ": ");
			tacho__text_put_errno(t, -err);
		}
		job_free(j);
	}
}

int tacho__exec_ended(struct tacho__exec *x, pid_t pid, int status, char *message,
		      size_t message_size)
{
	struct tacho__text t;

	tacho__text_init(&t, message, message_size);
	if (!x->pid || pid != x->pid)
		return 0;
	if (WIFSIGNALED(status) || WEXITSTATUS(status)) {
		tacho__text_put(&t, "the --exec command for ");
		tacho__text_put(&t, job_path(x->running));
		if (WIFSIGNALED(status)) {
			tacho__text_put(&t, " was killed by signal ");
			tacho__text_put_u64(&t, (uint64_t)WTERMSIG(status));
		} else {
			tacho__text_put(&t, " ended with status ");
			tacho__text_put_u64(&t, (uint64_t)WEXITSTATUS(status));
		}
	}
	job_free(x->running);
	x->running = NULL;
	x->pid = 0;
	start_next(x, &t);
	return 1;
}

unsigned tacho__exec_pending(const struct tacho__exec *x)
{
	return x->waiting + (x->pid ? 1u : 0u);
}

pid_t tacho__exec_pid(const struct tacho__exec *x)
{
	return x->pid;
}

void tacho__exec_free(struct tacho__exec *x)
{
	if (!x)
		return;
	while (x->first) {
		struct job *j = x->first;

		x->first = j->next;
		job_free(j);
	}
	job_free(x->running);
	free(x->environment);
	free(x);
}
