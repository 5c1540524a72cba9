/*
 * Programs that know nothing of tacho, run with and without the hooks. They print what
 * they did and saw; the box says what was recorded of it.
 */
#ifndef TESTS_HOOKS_PRELOADED_H
#define TESTS_HOOKS_PRELOADED_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../process/lib.h"

struct preloaded {
	pid_t pid;
	int status;
	char out[65536]; /* what it printed */
};

static inline int preloaded_has(const char *name)
{
	const char *folder = getenv("TACHO_HOOKS_TESTS");
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", name);
	return access(path, X_OK) == 0;
}

/*
 * Runs `name` of this folder with one argument. `hooks`: "on"; "off" for hooks that are
 * there and record nothing; NULL for none. Checks that it ends with status 0.
 */
static inline void preloaded_run(struct preloaded *p, const char *name, const char *arg,
				 const char *hooks)
{
	const char *folder = getenv("TACHO_HOOKS_TESTS"), *library = getenv("TACHO_PRELOAD");
	char path[512];
	size_t size = 0;
	ssize_t n;
	int fd[2];

	memset(p, 0, sizeof(*p));
	snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", name);
	if (!CHECK(!pipe(fd) && library, "no pipe, or TACHO_PRELOAD is not set"))
		return;
	p->pid = fork();
	if (!p->pid) {
		dup2(fd[1], 1);
		close(fd[0]);
		close(fd[1]);
		if (hooks) {
			setenv("TACHO", hooks, 1);
			setenv("LD_PRELOAD", library, 1);
		}
		execl(path, name, arg, (char *)NULL);
		_exit(126);
	}
	close(fd[1]);
	while ((n = read(fd[0], p->out + size, sizeof(p->out) - 1 - size)) > 0 ||
	       (n < 0 && errno == EINTR))
		size += n > 0 ? (size_t)n : 0;
	close(fd[0]);
	p->status = subject_wait(p->pid);
	check_exit(p->status, 0);
}

/* The number after `key` at the beginning of a line that the program printed. */
static inline uint64_t printed(const struct preloaded *p, const char *key)
{
	size_t size = strlen(key);

	for (const char *line = p->out; *line; line = strchr(line, '\n') + 1) {
		if (!strncmp(line, key, size) && line[size] == ' ')
			return strtoull(line + size + 1, NULL, 0);
		if (!strchr(line, '\n'))
			break;
	}
	CHECK(0, "the program printed no %s", key);
	return 0;
}

/* 1 when `address` lies in the function that begins at `start`; they are short here. */
static inline int lies_in(uint64_t address, uint64_t start)
{
	return address > start && address < start + 512;
}

#endif
