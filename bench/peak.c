/*
 * bench-peak COMMAND ARGUMENT...: runs it and prints to standard error
 *
 *   peak WALL_NS CPU_NS PEAK_BYTES
 *
 * The kernel hands the peak of a process down to what it executes, so the parent
 * must be small: this program is, an interpreter is not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double ns(struct timeval t)
{
	return (double)t.tv_sec * 1e9 + (double)t.tv_usec * 1e3;
}

int main(int argc, char **argv)
{
	struct rusage use;
	double begin, end;
	int status;
	pid_t child;

	if (argc < 2) {
		fprintf(stderr, "usage: bench-peak COMMAND ARGUMENT...\n");
		return 2;
	}
	begin = now();
	child = fork();
	if (child == 0) {
		alarm(600);
		execvp(argv[1], argv + 1);
		fprintf(stderr, "bench-peak: cannot run %s: %s\n", argv[1], strerror(errno));
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &use) < 0) {
		fprintf(stderr, "bench-peak: cannot run %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	end = now();
	fprintf(stderr, "peak %.0f %.0f %.0f\n", end - begin, ns(use.ru_utime) + ns(use.ru_stime),
		(double)use.ru_maxrss * 1024);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
