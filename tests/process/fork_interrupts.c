/*
 * Forks where it is difficult: among threads that record, and in signal handlers that
 * interrupt the storing of a record.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

static struct tacho_name early = TACHO_KIND("defined before the fork");

static void marks(uint32_t writer, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		mark(writer, i);
}

static void reap_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	check_exit(status, 0);
}

static void check_parent(struct box *child, pid_t parent)
{
	if (child && child->reader)
		CHECK(process_of(child)->parent_pid == (uint32_t)parent, "parent_pid is %u, not %d",
		      process_of(child)->parent_pid, (int)parent);
}

/* -------------------------------------------------------------- threads */

static int stop_threads;

static void *full_speed(void *arg)
{
	uint32_t writer = (uint32_t)(uintptr_t)arg;
	uint32_t i = 0;

	while (!__atomic_load_n(&stop_threads, __ATOMIC_RELAXED))
		mark(writer, i++);
	shared()[100 + writer] = i;
	return NULL;
}

#define FORKS 40

static void threads_body(void *arg)
{
	pthread_t threads[3];

	(void)arg;
	start();
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, full_speed, (void *)(i + 1));
	for (uint32_t i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (!pid) {
			marks(0, 0, 50);
			die();
		}
		shared()[i] = (uint64_t)pid;
		reap_child(pid);
	}
	__atomic_store_n(&stop_threads, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	die();
}

static void test_fork_among_threads(void)
{
	const struct tally *t;
	pid_t parent;

	setenv("TACHO_DEAD_BOXES", "1000", 1);
	parent = subject_start(threads_body, NULL);
	check_exit(subject_wait(parent), 0);
	unsetenv("TACHO_DEAD_BOXES");
	boxes_open(box_dir());
	t = tally(box_of(parent, 0));
	CHECK(!t->foreign, "%llu marks of children in the parent's box",
	      (unsigned long long)t->foreign);
	CHECK(!t->disorder, "%llu holes among the marks", (unsigned long long)t->disorder);
	for (uint32_t i = 1; i <= 3; i++)
		CHECK(t->count[i] && t->last[i] + 1 == shared()[100 + i],
		      "thread %u: its last marks are missing", i);
	for (uint32_t i = 0; i < FORKS && !failed(); i++) {
		struct box *c = box_of((pid_t)shared()[i], 0);

		check_writer(tally_whole(c, 50), 0, 50);
		check_parent(c, parent);
	}
}

static void *first_in_child(void *arg)
{
	struct gate **gates = arg;

	marks(1, 0, 2000);
	gate_open(gates[0]);
	gate_pass(gates[1]);
	marks(1, 2000, 4000);
	return NULL;
}

static void child_threads_body(void *arg)
{
	pthread_t thread;
	pid_t pid;

	start();
	marks(0, 0, 10);
	pid = fork();
	if (!pid) {
		struct gate **gates = arg;

		shared()[1] = (uint64_t)getpid();
		pthread_create(&thread, NULL, first_in_child, arg);
		gate_pass(gates[0]);
		/* Its writer of before the fork must not be the one that the thread got. */
		gate_open(gates[1]);
		marks(0, 0, 4000);
		pthread_join(thread, NULL);
		die();
	}
	reap_child(pid);
	die();
}

/* In the child another thread may be the first to record. */
static void test_thread_first_in_child(void)
{
	struct gate *gates[2] = {gate_new(), gate_new()};
	const struct tally *t;

	subject(child_threads_body, gates);
	boxes_open(box_dir());
	t = tally_whole(box_of((pid_t)shared()[1], 0), 8000);
	check_writer(t, 0, 4000);
	check_writer(t, 1, 4000);
	CHECK(process_of(box_of((pid_t)shared()[1], 0))->threads_seen == 2,
	      "%u threads in the child's box, not 2",
	      process_of(box_of((pid_t)shared()[1], 0))->threads_seen);
}

#define STORM_FORKS 48

static volatile sig_atomic_t storm_forks;
static volatile sig_atomic_t in_child;

static void fork_in_handler(int sig)
{
	int saved = errno;
	pid_t pid;

	(void)sig;
	if (storm_forks >= STORM_FORKS || in_child)
		return;
	pid = fork();
	if (!pid) {
		in_child = 1;
		/* Half of the children record in the handler, all of them after it. */
		if (storm_forks & 1)
			for (uint32_t i = 0; i < 10; i++)
				mark(1, i);
	} else {
		shared()[storm_forks] = (uint64_t)pid;
		storm_forks++;
	}
	errno = saved;
}

/* What the recorder does seldom, all the time: the next chunk, a new name. */
static void rare_things(uint32_t i)
{
	static char large[513], text[32];
	struct tacho_name name = TACHO_KIND(text);

	memset(large, 'l', sizeof(large) - 1);
	for (int k = 0; k < 20; k++)
		tacho_log(1, large);
	snprintf(text, sizeof(text), "name %u", i % 20000);
	tacho_poll_begin(&name, i);
	tacho_poll_end(TACHO_DONE);
	if (i % 64 == 0)
		tacho_trigger(text);
}

static void storm_body(void *arg)
{
	struct itimerval every = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
	struct tacho_name *kind = arg;
	uint32_t i = 0;

	start();
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (storm_forks < STORM_FORKS && !in_child) {
		mark(0, i++);
		if (kind) {
			tacho_poll_begin(kind, i);
			tacho_poll_end(TACHO_DONE);
		} else {
			rare_things(i);
		}
		mark(0, i++);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	if (in_child) {
		for (i = 0; i < 20; i++)
			mark(2, i);
		die();
	}
	shared()[100] = i;
	for (int n = 0; n < STORM_FORKS; n++)
		reap_child((pid_t)shared()[n]);
	die();
}

static void check_storm(pid_t parent)
{
	const struct tally *t;

	check_exit(subject_wait(parent), 0);
	boxes_open(box_dir());
	t = tally(box_of(parent, 0));
	CHECK(!t->foreign, "%llu marks of children in the parent's box",
	      (unsigned long long)t->foreign);
	CHECK(!t->disorder, "%llu holes among the marks", (unsigned long long)t->disorder);
	CHECK(t->count[0] && t->last[0] + 1 == shared()[100], "the last marks are missing");
	CHECK(!t->dropped, "records were dropped");
	for (uint32_t i = 0; i < STORM_FORKS && !failed(); i++) {
		struct box *c = box_of((pid_t)shared()[i], 0);

		t = tally(c);
		check_parent(c, parent);
		check_no_problem(c);
		/* The record that was interrupted may have had its value, with the parent's
		   pid, before the fork. */
		CHECK(t->foreign <= 1, "marks of another process in child %u", i);
		CHECK(t->count[2] == 20, "child %u: %u of 20 marks after the handler", i,
		      t->count[2]);
		CHECK(t->count[1] == (i & 1 ? 10u : 0u), "child %u: %u marks in the handler", i,
		      t->count[1]);
	}
}

static void test_fork_in_handler(void)
{
	setenv("TACHO_DEAD_BOXES", "1000", 1);
	check_storm(subject_start(storm_body, &early));
	unsetenv("TACHO_DEAD_BOXES");
}

static void test_fork_in_slow_path(void)
{
	setenv("TACHO_DEAD_BOXES", "1000", 1);
	for (int i = 0; i < 3 && !failed(); i++) {
		char command[300];

		check_storm(subject_start(storm_body, NULL));
		boxes_close();
		snprintf(command, sizeof(command), "rm -f %s/*.box", box_dir());
		CHECK(!system(command), "rm");
	}
	unsetenv("TACHO_DEAD_BOXES");
}

static void test_fork_in_handler_threshold(void)
{
	setenv("TACHO_DEAD_BOXES", "1000", 1);
	setenv("TACHO_POLL_THRESHOLD", "50us", 1);
	check_storm(subject_start(storm_body, &early));
	unsetenv("TACHO_POLL_THRESHOLD");
	unsetenv("TACHO_DEAD_BOXES");
}

static const struct test tests[] = {
	{"forks while other threads record at full speed", test_fork_among_threads},
	{"a new thread may be the first to record in a child", test_thread_first_in_child},
	{"fork in a signal handler that interrupts recording", test_fork_in_handler},
	{"fork in a signal handler that interrupts a change of chunk or a definition",
	 test_fork_in_slow_path},
	{"fork in a signal handler that interrupts recording, with a poll threshold",
	 test_fork_in_handler_threshold},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
