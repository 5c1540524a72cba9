/* A program with more rights than its caller does not do what the caller asks for. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

#define NOBODY 65534
static const char SECRET[] = "only root writes here\n";

static char program[300], secret[300];

struct how {
	uid_t user;
	const char *variable; /* the value of TACHO_CRASH_FILE or NULL */
	const char *argument; /* of the program, or NULL */
};

/* The program, owned by root and setuid, and a file that only root may write to. */
static int prepare(void)
{
	struct statvfs fs;
	struct stat st;
	char from[600];
	ssize_t n = readlink("/proc/self/exe", from, sizeof(from) - 20);
	int in, out;

	snprintf(program, sizeof(program), "%s/crasher", mount_point());
	snprintf(secret, sizeof(secret), "%s/secret", mount_point());
	from[n > 0 ? n : 0] = 0;
	strcpy(strrchr(from, '/'), "/process-crasher");
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (!CHECK(in >= 0 && out >= 0 && !fstat(in, &st) &&
			   sendfile(out, in, NULL, (size_t)st.st_size) == st.st_size,
		   "no copy of %s: %s", from, strerror(errno)))
		return 0;
	close(in);
	close(out);
	CHECK(!chmod(program, 04755) && !chmod(mount_point(), 0755), "%s", strerror(errno));
	out = open(secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(write(out, SECRET, sizeof(SECRET)) == sizeof(SECRET), "%s", strerror(errno));
	close(out);
	return !statvfs(program, &fs) && !(fs.f_flag & ST_NOSUID);
}

static void crasher_body(void *arg)
{
	const struct how *h = arg;
	const struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	if (h->variable)
		setenv("TACHO_CRASH_FILE", h->variable, 1);
	if (h->user && (setgroups(0, NULL) || setgid(h->user) || setuid(h->user)))
		_exit(98);
	execl(program, program, h->argument, secret, NULL);
	_exit(99);
}

static int run_crasher(const struct how *h)
{
	return subject_wait(subject_start(crasher_body, (void *)h));
}

static int is_secret_whole(void)
{
	char text[sizeof(SECRET)] = "";
	int fd = open(secret, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text));
	struct stat st;
	int whole = !fstat(fd, &st) && st.st_size == sizeof(SECRET) && n == sizeof(SECRET) &&
		    !memcmp(text, SECRET, sizeof(SECRET));

	close(fd);
	return whole;
}

static void check_setuid(void)
{
	const struct how ask_environment = {NOBODY, secret, NULL};
	const struct how ask_option = {NOBODY, NULL, "option"};
	const struct how ask_call = {NOBODY, NULL, "call"};
	const struct how ask_as_root = {0, secret, NULL};
	int status = run_crasher(&ask_environment);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %#x", status);
	CHECK(is_secret_whole(), "the environment of another user had root's file overwritten");
	CHECK(boxes_open(box_dir())->count == 0,
	      "the environment of another user chose the folder");
	status = run_crasher(&ask_option);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %#x", status);
	CHECK(is_secret_whole(), "the option of a setuid program made a crash file");
	check_exit(run_crasher(&ask_call), 2);
	CHECK(is_secret_whole(), "tacho_crash_handler of a setuid program made a crash file");
	/* So that the above says something: without foreign hands the file is written. */
	run_crasher(&ask_as_root);
	CHECK(!is_secret_whole(), "no crash file was written when root ran it");
	CHECK(boxes_open(box_dir())->count == 1, "no box when root ran it");
}

static void test_setuid(void)
{
	if (geteuid() || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) || emulated())
		return skip("needs root, and programs that may gain rights");
	if (prepare())
		check_setuid();
	else
		skip("setuid programs have no effect in %s", mount_point());
	unlink(program);
	unlink(secret);
}

static const struct test tests[] = {
	{"a setuid program takes no orders from the environment and writes no crash file",
	 test_setuid},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
