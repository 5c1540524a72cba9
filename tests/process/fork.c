/* Children of every make record into boxes of their own and leave their parent's alone. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

extern char **environ;

static struct tacho_name early = TACHO_KIND("defined before the fork");
static struct tacho_name late = TACHO_KIND("defined after the fork");
static struct tacho_name loop = TACHO_LOOP("loop of before");

static void marks(uint32_t writer, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		mark(writer, i);
}

static void named_poll(struct tacho_name *kind)
{
	tacho_poll_begin(kind, 1);
	tacho_poll_end(TACHO_DONE);
}

static void reap_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	check_exit(status, 0);
}

/* How many polls of a kind of this name a box holds. */
static unsigned polls_of(struct box *box, const char *name)
{
	const struct tacho_event *e;
	unsigned n = 0;

	if (!box || !box->reader)
		return 0;
	tacho_read_seek(box->reader, 0);
	while (tacho_read_next(box->reader, &e) > 0)
		n += e->type == TACHO_EV_POLL_BEGIN && !strcmp(name_of(box, e->arg), name);
	return n;
}

static void check_parent(struct box *child, pid_t parent)
{
	if (child && child->reader)
		CHECK(process_of(child)->parent_pid == (uint32_t)parent, "parent_pid is %u, not %d",
		      process_of(child)->parent_pid, (int)parent);
}

/* ---------------------------------------------------------- fork alone */

static void fork_body(void *arg)
{
	uint64_t *page = shared();
	pid_t pid;

	(void)arg;
	start();
	tacho_loop(&loop);
	named_poll(&early);
	marks(0, 0, 1000);
	pid = fork();
	if (!pid) {
		page[1] = (uint64_t)getpid();
		marks(0, 0, 500);
		named_poll(&early);
		named_poll(&late);
		die();
	}
	marks(0, 1000, 2000);
	reap_child(pid);
	named_poll(&late);
	marks(0, 2000, 3000);
	die();
}

static void test_fork(void)
{
	pid_t parent = subject_start(fork_body, NULL);
	struct box *p, *c;

	check_exit(subject_wait(parent), 0);
	boxes_open(box_dir());
	p = box_of(parent, 0);
	c = box_of((pid_t)shared()[1], 0);
	check_writer(tally_whole(p, 3000), 0, 3000);
	check_writer(tally_whole(c, 500), 0, 500);
	check_parent(c, parent);
	check_parent(p, 0);
	CHECK(polls_of(p, early.text) == 1, "the parent's own poll is not alone in its box");
	CHECK(polls_of(p, late.text) == 1, "the parent's poll after the fork is missing");
	CHECK(polls_of(c, early.text) == 1, "a name of before the fork means another in the child");
	CHECK(polls_of(c, late.text) == 1, "a name of after the fork is missing in the child");
}

static void silent_body(void *arg)
{
	pid_t pid;

	(void)arg;
	start();
	marks(0, 0, 10);
	pid = fork();
	if (!pid)
		exit(0); /* the orderly end must not remove its parent's box */
	reap_child(pid);
	marks(0, 10, 20);
	die();
}

static void test_silent_child(void)
{
	subject(silent_body, NULL);
	check_writer(tally_whole(the_box(), 20), 0, 20);
}

static void orderly_body(void *arg)
{
	pid_t pid;

	(void)arg;
	start();
	marks(0, 0, 10);
	pid = fork();
	if (!pid) {
		marks(0, 0, 10);
		exit(0);
	}
	reap_child(pid);
	marks(0, 10, 20);
	die();
}

/* The child's box goes with its orderly end, the parent's stays. */
static void test_orderly_child(void)
{
	subject(orderly_body, NULL);
	check_writer(tally_whole(the_box(), 20), 0, 20);
}

static void status_body(void *arg)
{
	struct tacho_status_info st = {.size = sizeof(st)};
	pid_t pid;

	(void)arg;
	start();
	mark(0, 0);
	tacho_pause();
	pid = fork();
	if (!pid) {
		tacho_status(&st);
		CHECK(st.state == TACHO_STATE_PAUSED, "child of a paused parent: state %u",
		      st.state);
		mark(0, 0);
		tacho_resume();
		mark(0, 1);
		tacho_status(&st);
		CHECK(st.state == TACHO_STATE_RECORDING, "after resume: state %u", st.state);
		CHECK(strstr(st.box, box_dir()), "the child's status names no box: '%s'", st.box);
		tacho_stop();
		tacho_status(&st);
		CHECK(st.state == TACHO_STATE_STOPPED, "after stop: state %u", st.state);
		die();
	}
	reap_child(pid);
	tacho_resume();
	mark(0, 1);
	die();
}

static void test_paused(void)
{
	subject(status_body, NULL);
	check_writer(tally_whole(the_box(), 2), 0, 2);
}

/* -------------------------------------------------------- exec, spawn */

/* What this program does when it is executed again: records, and ends when stdin does. */
static int image(const char *writer)
{
	char c;

	start();
	named_poll(&late);
	marks((uint32_t)atoi(writer), 0, 100);
	if (write(1, "r", 1) != 1)
		return 1;
	while (read(0, &c, 1) > 0)
		;
	_exit(0);
}

struct pipes {
	int up[2], down[2];
};

static void pipes_make(struct pipes *p)
{
	CHECK(!pipe(p->up) && !pipe(p->down), "pipe: %s", strerror(errno));
}

static void pipes_become(struct pipes *p)
{
	dup2(p->down[0], 0);
	dup2(p->up[1], 1);
	close(p->down[1]);
	close(p->up[0]);
}

static void exec_body(void *arg)
{
	char *argv[] = {"fork", "--image", "7", NULL};

	start();
	named_poll(&early);
	marks(0, 0, 1000);
	pipes_become(arg);
	execv("/proc/self/exe", argv);
	_exit(1);
}

static void test_exec(void)
{
	struct pipes p;
	pid_t pid;
	char c;

	pipes_make(&p);
	pid = subject_start(exec_body, &p);
	close(p.up[1]);
	close(p.down[0]);
	CHECK(read(p.up[0], &c, 1) == 1, "the second image did not record");
	boxes_open(box_dir());
	check_writer(tally_whole(box_of(pid, 0), 1000), 0, 1000);
	check_writer(tally_whole(box_of(pid, 1), 100), 7, 100);
	if (!failed()) {
		CHECK(process_of(box_of(pid, 0))->alive == TACHO_ALIVE_NO,
		      "the box of the image that is gone does not count as dead");
		CHECK(process_of(box_of(pid, 1))->alive == TACHO_ALIVE_YES,
		      "the box of the image that runs does");
		CHECK(process_of(box_of(pid, 1))->parent_pid == (uint32_t)getpid(),
		      "the parent of the second image is not the one that started it");
		CHECK(polls_of(box_of(pid, 1), late.text) == 1, "names of the second image");
	}
	close(p.down[1]);
	close(p.up[0]);
	check_exit(subject_wait(pid), 0);
}

static void fork_exec_body(void *arg)
{
	struct pipes *p = arg;
	pid_t pid;

	start();
	marks(0, 0, 1000);
	pid = fork();
	if (!pid) {
		char *argv[] = {"fork", "--image", "3", NULL};

		mark(0, 0); /* a box of the child before exec, too */
		pipes_become(p);
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	shared()[1] = (uint64_t)pid;
	close(p->down[1]);
	reap_child(pid);
	marks(0, 1000, 2000);
	die();
}

static void test_fork_exec(void)
{
	struct pipes p;
	pid_t parent, child;

	pipes_make(&p);
	parent = subject_start(fork_exec_body, &p);
	close(p.down[1]);
	check_exit(subject_wait(parent), 0);
	close(p.down[0]);
	close(p.up[0]);
	close(p.up[1]);
	child = (pid_t)shared()[1];
	boxes_open(box_dir());
	check_writer(tally_whole(box_of(parent, 0), 2000), 0, 2000);
	check_writer(tally_whole(box_of(child, 0), 1), 0, 1);
	check_parent(box_of(child, 0), parent);
	check_writer(tally_whole(box_of(child, 1), 100), 3, 100);
}

static void spawn_body(void *arg)
{
	char *argv[] = {"fork", "--image", "5", NULL};
	posix_spawn_file_actions_t actions;
	struct pipes *p = arg;
	pid_t pid = 0;

	start();
	marks(0, 0, 1000);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, p->down[0], 0);
	posix_spawn_file_actions_adddup2(&actions, p->up[1], 1);
	posix_spawn_file_actions_addclose(&actions, p->down[1]);
	CHECK(!posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ), "posix_spawn");
	shared()[1] = (uint64_t)pid;
	close(p->down[1]);
	marks(0, 1000, 2000);
	reap_child(pid);
	die();
}

static void test_posix_spawn(void)
{
	struct pipes p;
	pid_t parent;

	pipes_make(&p);
	parent = subject_start(spawn_body, &p);
	close(p.down[1]);
	check_exit(subject_wait(parent), 0);
	close(p.down[0]);
	close(p.up[0]);
	close(p.up[1]);
	boxes_open(box_dir());
	check_writer(tally_whole(box_of(parent, 0), 2000), 0, 2000);
	check_writer(tally_whole(box_of((pid_t)shared()[1], 0), 100), 5, 100);
}

static void vfork_body(void *arg)
{
	uint32_t parent = (uint32_t)getpid();
	pid_t pid;

	(void)arg;
	start();
	for (uint32_t round = 0; round < 20; round++) {
		marks(0, round * 20, round * 20 + 10);
		pid = vfork();
		if (!pid) {
			/* The child's records are its parent's. */
			for (uint32_t i = 10; i < 20; i++)
				tacho_wake(mark_value(parent, 0, round * 20 + i));
			if (round & 1)
				_exit(0);
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		reap_child(pid);
	}
	die();
}

static void test_vfork(void)
{
	subject(vfork_body, NULL);
	check_writer(tally_whole(the_box(), 400), 0, 400);
}

/* ---------------------------------------------------------- clone(2) */

static int clone_child(void *arg)
{
	(void)arg;
	marks(0, 0, 200);
	named_poll(&early);
	_exit(0);
}

static void clone_body(void *arg)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t own_stack, raw;

	(void)arg;
	start();
	named_poll(&early);
	marks(0, 0, 100);
	own_stack = clone(clone_child, stack + sizeof(stack), SIGCHLD, NULL);
	CHECK(own_stack > 0, "clone: %s", strerror(errno));
	shared()[1] = (uint64_t)own_stack;
	marks(0, 100, 200);
	/* Without libc's knowledge. The arguments stand in another order on arm64, all zero. */
	raw = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!raw)
		clone_child(NULL);
	CHECK(raw > 0, "clone: %s", strerror(errno));
	shared()[2] = (uint64_t)raw;
	marks(0, 200, 300);
	reap_child(own_stack);
	reap_child(raw);
	die();
}

static void test_clone(void)
{
	pid_t parent = subject_start(clone_body, NULL);

	check_exit(subject_wait(parent), 0);
	boxes_open(box_dir());
	check_writer(tally_whole(box_of(parent, 0), 300), 0, 300);
	for (int i = 1; i <= 2 && !failed(); i++) {
		struct box *c = box_of((pid_t)shared()[i], 0);

		/* getpid() in a raw clone is the kernel's, as glibc keeps no copy. */
		check_writer(tally_whole(c, 200), 0, 200);
		check_parent(c, parent);
		CHECK(polls_of(c, early.text) == 1, "a name of before the clone");
	}
}

/* ----------------------------------------------------- daemons, workers */

static void daemon_body(void *arg)
{
	start();
	marks(0, 0, 100);
	CHECK(!daemon(0, 0), "daemon: %s", strerror(errno));
	marks(0, 0, 300);
	shared()[1] = (uint64_t)getpid();
	gate_open(arg);
	die();
}

static void test_daemon(void)
{
	struct gate *done = gate_new();
	pid_t parent = subject_start(daemon_body, done);

	check_exit(subject_wait(parent), 0);
	gate_pass(done);
	boxes_open(box_dir());
	check_writer(tally_whole(box_of(parent, 0), 100), 0, 100);
	check_writer(tally_whole(box_of((pid_t)shared()[1], 0), 300), 0, 300);
	if (!failed())
		check_parent(box_of((pid_t)shared()[1], 0), parent);
}

static void double_body(void *arg)
{
	pid_t pid;

	(void)arg;
	start();
	named_poll(&early);
	marks(0, 0, 100);
	pid = fork();
	if (!pid) {
		/* The one in the middle never records: the grandchild comes from the recorded
		   grandparent as far as its box knows. */
		pid = fork();
		if (!pid) {
			marks(0, 0, 300);
			named_poll(&early);
			shared()[1] = (uint64_t)getpid();
			die();
		}
		reap_child(pid);
		_exit(0);
	}
	reap_child(pid);
	die();
}

static void test_double_fork(void)
{
	pid_t parent = subject_start(double_body, NULL);
	struct box *c;

	check_exit(subject_wait(parent), 0);
	boxes_open(box_dir());
	check_writer(tally_whole(box_of(parent, 0), 100), 0, 100);
	c = box_of((pid_t)shared()[1], 0);
	check_writer(tally_whole(c, 300), 0, 300);
	check_parent(c, parent);
	CHECK(polls_of(c, early.text) == 1, "a name of two forks before");
}

#define WORKERS 8

static void prefork_body(void *arg)
{
	pid_t pid[WORKERS];

	start();
	tacho_loop(&loop);
	named_poll(&early);
	for (uint32_t i = 0; i < WORKERS; i++) {
		mark(0, i);
		pid[i] = fork();
		if (!pid[i]) {
			gate_pass(arg);
			named_poll(&early);
			marks(i, 0, 20000);
			die();
		}
		shared()[i] = (uint64_t)pid[i];
	}
	gate_open(arg);
	for (uint32_t i = 0; i < WORKERS; i++)
		reap_child(pid[i]);
	die();
}

static void test_prefork(void)
{
	pid_t parent = subject_start(prefork_body, gate_new());

	check_exit(subject_wait(parent), 0);
	boxes_open(box_dir());
	check_writer(tally_whole(box_of(parent, 0), WORKERS), 0, WORKERS);
	for (uint32_t i = 0; i < WORKERS && !failed(); i++) {
		struct box *c = box_of((pid_t)shared()[i], 0);

		check_writer(tally_whole(c, 20000), i, 20000);
		check_parent(c, parent);
		CHECK(polls_of(c, early.text) == 1, "a name of before the fork in worker %u", i);
	}
}

static const struct test tests[] = {
	{"a forked child records into its own box with the names of its parent", test_fork},
	{"a child that does not record makes no box and removes none", test_silent_child},
	{"the orderly end of a child removes its own box alone", test_orderly_child},
	{"a child of a paused parent is paused", test_paused},
	{"exec: the next image has its own box and the one before counts as dead", test_exec},
	{"fork and exec", test_fork_exec},
	{"posix_spawn", test_posix_spawn},
	{"records of a vfork child are its parent's", test_vfork},
	{"clone like fork, with and without libc", test_clone},
	{"daemon(3)", test_daemon},
	{"double fork with a silent process in the middle", test_double_fork},
	{"eight preforked workers", test_prefork},
};

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--image"))
		return image(argv[2]);
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
