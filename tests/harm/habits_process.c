/* Programs that make processes in unusual ways. */
#include "habits.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		MUST(errno == EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int vforks(int argc, char **argv)
{
	volatile int good = 0;

	(void)argc, (void)argv;
	wait_in_epoll(2);
	for (int i = 0; i < 50; i++) {
		pid_t pid = vfork();

		if (!pid) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(127);
		}
		good += pid > 0 && status_of(pid) == 0;
	}
	wait_in_epoll(2);
	printf("%d children\n", good);
	return 0;
}

static int shared_memory;

static int in_same_memory(void *arg)
{
	wait_in_epoll(2); /* with the thread-local variables of its parent */
	shared_memory = 42;
	_exit(arg ? 3 : 4);
}

/* A child that shares the memory, which the C library knows nothing of. */
int clones_memory(int argc, char **argv)
{
	size_t size = 1 << 18;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 0;

	(void)argc;
	MUST(stack != MAP_FAILED);
	wait_in_epoll(2);
	for (int i = 0; i < 5; i++) {
		pid_t pid =
			clone(in_same_memory, stack + size, CLONE_VM | CLONE_VFORK | SIGCHLD, argv);

		MUST(pid > 0);
		status += status_of(pid);
	}
	wait_in_epoll(2);
	printf("%d %d\n", status, shared_memory);
	return 0;
}

static void *forks(void *arg)
{
	intptr_t good = 0;

	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		if (!pid) {
			wait_in_epoll(2);
			_exit(5);
		}
		good += status_of(pid) == 5;
	}
	(void)arg;
	return (void *)good;
}

int forks_in_threads(int argc, char **argv)
{
	pthread_t thread[4];
	intptr_t all = 0;

	(void)argc, (void)argv;
	wait_in_epoll(2);
	for (int i = 0; i < 4; i++)
		MUST(pthread_create(&thread[i], NULL, forks, NULL) == 0);
	for (int i = 0; i < 4; i++) {
		void *good;

		pthread_join(thread[i], &good);
		all += (intptr_t)good;
	}
	printf("%d children\n", (int)all);
	return 0;
}

static volatile sig_atomic_t children;

static void on_alarm(int sig)
{
	int saved = errno;
	pid_t pid = fork();

	(void)sig;
	if (!pid) {
		wait_in_epoll(1);
		_exit(6);
	}
	children += status_of(pid) == 6;
	errno = saved;
}

int forks_in_handler(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

	(void)argc, (void)argv;
	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	for (int i = 0; i < 10; i++) {
		wait_in_epoll(1);
		raise(SIGUSR1);
	}
	printf("%d children\n", (int)children);
	return 0;
}

int spawns_with_closed(int argc, char **argv)
{
	posix_spawn_file_actions_t actions;
	char *arguments[] = {"sh", "-c", "exit 7", NULL};
	pid_t pid;

	(void)argc, (void)argv;
	wait_in_epoll(2);
	posix_spawn_file_actions_init(&actions);
	for (int fd = 0; fd < 32; fd++)
		posix_spawn_file_actions_addclose(&actions, fd);
	MUST(posix_spawn(&pid, "/bin/sh", &actions, NULL, arguments, NULL) == 0);
	printf("status %d\n", status_of(pid));
	return 0;
}

/* exec with no arguments, and with no environment at all. */
int empty_arguments(int argc, char **argv)
{
	char *none[] = {NULL}, *one[] = {"true", NULL};
	char *const *volatile null = NULL;
	int good = 0;
	pid_t pid;

	(void)argc, (void)argv;
	wait_in_epoll(2);
	pid = fork();
	if (!pid) {
		execve("/bin/true", none, environ);
		_exit(127);
	}
	good += status_of(pid) == 0;
	pid = fork();
	if (!pid) {
		execve("/bin/true", one, null);
		_exit(127);
	}
	good += status_of(pid) == 0;
	pid = fork();
	if (!pid)
		_exit(execve("/does/not/exist", null, null) == -1 && errno == ENOENT ? 0 : 1);
	good += status_of(pid) == 0;
	printf("%d of 3\n", good);
	return 0;
}

/* It starts itself anew, as servers do at an upgrade: the same pid, then a child of it. */
int reexecutes(int argc, char **argv)
{
	int round = argc > 2 ? atoi(argv[2]) : 0;
	char next[16];

	wait_in_epoll(2);
	if (round < 3) {
		snprintf(next, sizeof(next), "%d", round + 1);
		if (round == 2 && fork())
			return 8;
		execl("/proc/self/exe", argv[0], "reexecutes", next, (char *)NULL);
		_exit(127);
	}
	printf("round %d\n", round);
	return 0;
}

int many_children(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 300, good = 0, gate[2];
	static pid_t pid[4096];

	MUST(count <= 4096 && pipe(gate) == 0);
	wait_in_epoll(2);
	for (int i = 0; i < count; i++) {
		pid[i] = fork();
		MUST(pid[i] >= 0);
		if (!pid[i]) {
			char c;

			close(gate[1]);
			wait_in_epoll(2);
			_exit(read(gate[0], &c, 1) == 0 ? 9 : 1); /* all live at once */
		}
	}
	close(gate[1]);
	for (int i = 0; i < count; i++)
		good += status_of(pid[i]) == 9;
	printf("%d children\n", good);
	return 0;
}

/* Its environment has nothing but what it was given, and getenv is the C library's. */
int checks_environment(int argc, char **argv)
{
	char **before = environ;
	int others = 0;

	(void)argc, (void)argv;
	wait_in_epoll(2);
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "TACHO", 5) &&
		    strncmp(*e, "ASAN_OPTIONS=", 13))
			others++;
	printf("%d variables, %s\n", others, before == environ ? "unmoved" : "moved");
	clearenv();
	MUST(setenv("A", "b", 1) == 0);
	execl("/bin/sh", "sh", "-c", "echo $A${LD_PRELOAD:+}", (char *)NULL);
	return 127;
}

/* It asks for functions that newer C libraries have, and calls what it finds. */
int probes_functions(int argc, char **argv)
{
	static const char *const names[] = {"uv_run", "event_base_loop", "io_uring_submit_and_wait",
					    "uv_version_string", "event_get_version"};
	int called = 0;

	(void)argc, (void)argv;
	wait_in_epoll(2);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		long (*f)(void *, long, long) =
			(long (*)(void *, long, long))dlsym(RTLD_DEFAULT, names[i]);

		if (f && (i < 3)) {
			(void)f(NULL, 0, 0);
			called++;
		}
	}
	(void)called; /* tacho's own are found where no library has them */
	puts("probed");
	return 0;
}
