/*
 * Processes that cannot help: stopped by SIGSTOP, spinning in a poll, or waiting for a
 * lock that nobody releases. Their windows are taken with `tacho dump` and read directly.
 *
 *	stopped TACHO		TACHO: the program
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"
#include "tacho.h"
#include "tacho_read.h"
#include "verify.h"
#include "victim.h"

#define WRITERS 3
#define STUCK_TASK 0xfeed5eedull

static struct victim_folder folder;
static const char *tacho_program;
static struct tacho_name stuck = TACHO_KIND("stuck");
static struct tacho_name counter = TACHO_COUNTER("counter", "");

/* Waits, with a limit, until *value is at least `least`. */
static int reaches(const uint64_t *value, uint64_t least)
{
	for (int i = 0; i < 20000; i++) {
		if (__atomic_load_n(value, __ATOMIC_SEQ_CST) >= least)
			return 1;
		usleep(1000);
	}
	return 0;
}

/* Runs `tacho` with these arguments, its output thrown away; its exit status. */
static int run_tacho(const char *const arguments[])
{
	posix_spawn_file_actions_t actions;
	const char *argv[8] = {tacho_program};
	extern char **environ;
	int status = -1, err;
	pid_t pid;

	for (int i = 0; i < 6 && arguments[i]; i++)
		argv[i + 1] = arguments[i];
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1 /* O_WRONLY */, 0);
	err = posix_spawn(&pid, tacho_program, &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *dump(pid_t pid)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", pid);
	if (run_tacho((const char *[]){"status", number, NULL}))
		return "tacho status failed";
	if (run_tacho((const char *[]){"ls", NULL}))
		return "tacho ls failed";
	if (run_tacho((const char *[]){"dump", number, "-o", folder.file, NULL}))
		return "tacho dump failed";
	return NULL;
}

/* -------------------------------------------------------------- open polls */

struct open_poll {
	uint32_t thread;
	int polls;	 /* that are open in the thread with the stuck poll */
	int found, lock; /* the stuck poll; its wait for a lock */
};

static void take(struct open_poll *open, const struct tacho_event *e)
{
	if (e->type == TACHO_EV_RESUME) {
		for (uint32_t i = 0; i < e->resume->open_listed; i++) {
			if (e->resume->open[i].task != STUCK_TASK)
				continue;
			open->thread = e->thread;
			open->polls = open->found = 1;
		}
	}
	if (e->type == TACHO_EV_POLL_BEGIN && e->word[0] == STUCK_TASK) {
		open->thread = e->thread;
		open->polls++;
		open->found = 1;
	}
	if (e->type == TACHO_EV_POLL_END && e->thread == open->thread)
		open->polls--;
	if (e->type == TACHO_EV_LOCK_WAIT && e->thread == open->thread)
		open->lock = 1;
	if (e->type == TACHO_EV_LOCK_WAITED && e->thread == open->thread)
		open->lock = 0;
}

static const char *check_open(const char *path, int lock)
{
	static char message[400];
	struct open_poll open = {0};
	struct tacho_reader *reader;
	const struct tacho_event *event;

	if (tacho_read_open(&reader, path, NULL, message, sizeof(message)))
		return message;
	while (tacho_read_next(reader, &event) > 0)
		take(&open, event);
	tacho_read_close(reader);
	if (!open.found || open.polls != 1)
		return "the poll that hangs is not seen as open";
	return open.lock != lock ? "the wait for the lock is not seen" : NULL;
}

/* ----------------------------------------------------------------- victims */

/* value[0]: it hangs now. */
static void hang_now(struct truth *truth)
{
	__atomic_store_n(&truth->value[0], 1, __ATOMIC_SEQ_CST);
}

static int spin(struct truth *truth, void *arg)
{
	volatile int for_ever = 1;

	(void)arg;
	victim_record(truth, 1 << 20, 0);
	tacho_poll_begin(&stuck, STUCK_TASK);
	hang_now(truth);
	while (for_ever)
		;
	return 0;
}

/* The begin of the poll is long overwritten when it hangs. */
static int spin_late(struct truth *truth, void *arg)
{
	volatile int for_ever = 1;

	(void)arg;
	victim_record(truth, 1 << 20, 0);
	tacho_poll_begin(&stuck, STUCK_TASK);
	for (int i = 0; i < 300000; i++)
		tacho_counter(&counter, i);
	hang_now(truth);
	while (for_ever)
		;
	return 0;
}

/* A poll that might yet turn out to be short is not recorded. */
static int spin_under_threshold(struct truth *truth, void *arg)
{
	volatile int for_ever = 1;

	(void)arg;
	victim_record(truth, 1 << 20, 10000000000);
	for (int i = 0; i < 100; i++) {
		tacho_poll_begin(&stuck, 1);
		tacho_poll_end(TACHO_DONE);
	}
	tacho_poll_begin(&stuck, STUCK_TASK);
	hang_now(truth);
	while (for_ever)
		;
	return 0;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int deadlock(struct truth *truth, void *arg)
{
	(void)arg;
	victim_record(truth, 1 << 20, 0);
	pthread_mutex_lock(&mutex);
	tacho_poll_begin(&stuck, STUCK_TASK);
	tacho_lock_wait(&mutex, TACHO_HERE);
	hang_now(truth);
	pthread_mutex_lock(&mutex);
	return 0;
}

static int writers(struct truth *truth, void *arg)
{
	static struct victim_thread t[WRITERS];

	(void)arg;
	victim_record(truth, 1 << 20, 0);
	for (int i = 0; i < WRITERS; i++)
		victim_thread_start(&t[i], truth, UINT64_MAX);
	for (int i = 0; i < WRITERS; i++)
		victim_thread_join(&t[i]);
	return 0;
}

/* ------------------------------------------------------------------- tests */

static const char *while_hung(struct truth *truth, pid_t pid, int lock)
{
	const char *why;

	if (!reaches(&truth->value[0], 1))
		return "the victim did not get so far";
	why = check_open(truth->box[0].path, lock);
	if (!why)
		why = dump(pid);
	if (!why)
		why = check_open(folder.file, lock);
	return why;
}

static const char *while_stopped(struct truth *truth, pid_t pid, int lock)
{
	static struct verify v;
	const char *why;
	uint64_t before;

	(void)lock;
	for (int i = 0; i < WRITERS; i++)
		if (!reaches(&truth->sequence[3 * i].done, 50000))
			return "the victim did not get so far";
	if (kill(pid, SIGSTOP) || waitpid(pid, NULL, WUNTRACED) != pid)
		return "it could not be stopped";
	v = (struct verify){.truth = truth, .end = TRUTH_SEQUENCES};
	if (verify_file(&v, truth->box[0].path))
		return v.why;
	why = dump(pid);
	if (why)
		return why;
	if (verify_file(&v, folder.file))
		return v.why;
	before = truth->sequence[0].done;
	kill(pid, SIGCONT);
	return reaches(&truth->sequence[0].done, before + 1000) ? NULL
								: "it does not go on afterwards";
}

static const struct {
	const char *name;
	victim_main *victim;
	const char *(*test)(struct truth *truth, pid_t pid, int lock);
	int lock;
} tests[] = {
	{"a process stopped by SIGSTOP", writers, while_stopped, 0},
	{"a process that spins in a poll", spin, while_hung, 0},
	{"a process that spins in a poll whose begin is overwritten", spin_late, while_hung, 0},
	{"a process that spins in a poll that is not recorded yet", spin_under_threshold,
	 while_hung, 0},
	{"a process in a deadlock", deadlock, while_hung, 1},
};

int main(int argc, char **argv)
{
	struct truth *truth = truth_map();

	if (argc != 2) {
		fprintf(stderr, "usage: stopped TACHO\n");
		return 2;
	}
	tacho_program = argv[1];
	pattern_init(100);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		pid_t pid;

		truth_clear(truth);
		victim_folder_make(&folder);
		pid = victim_start(tests[i].victim, truth, NULL);
		report(tests[i].name, tests[i].test(truth, pid, tests[i].lock));
		kill(pid, SIGKILL);
		victim_wait(pid);
		victim_folder_remove(&folder);
	}
	return report_status();
}
