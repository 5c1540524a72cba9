/*
 * Recording stops and starts again while a thread is at a named point of the recorder
 * (src/core/testpoint.h), or the thread forks there, as a signal handler may. When it goes on, what it stores
 * into was the box before, or is its parent's: nothing may come of that, least of all a crash, and
 * what it records next is in the new box.
 *
 *	restart-points NAME...
 *
 * Where stopping waits for the thread, it does so for ten seconds: all points are tried at once.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tacho.h"
#include "tacho_read.h"
#include "victim.h"

#define POINTS 100
#define ROUNDS 30000u
#define KINDS 12u	   /* more than a thread has histograms: they are recorded all the time */
#define NAMES 600u	   /* that are new to the recorder */
#define LATER (1ull << 32) /* added to the tasks that are woken after the restart */
#define SECONDS 120u	   /* then it counts as hung; they are many at once */
#define NO_SIGNALS 78	   /* exit status: no handler forks there, and goes on in the child */
#define NEVER_THERE 77	   /* exit status */

/* Of src/core/testpoint.c. */
extern void (*tacho__testpoint_call)(const char *name);

static const char *wanted;
static enum { BEFORE, HELD, FREE } held;
static __thread int is_tried;

/* Whether this process is at the point for the first time. */
static int arrives(const char *name)
{
	int before = BEFORE;

	return is_tried && !strcmp(name, wanted) &&
	       __atomic_compare_exchange_n((int *)&held, &before, HELD, 0, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static void hold(const char *name)
{
	if (!arrives(name))
		return;
	while (__atomic_load_n((int *)&held, __ATOMIC_SEQ_CST) == HELD)
		usleep(1000);
}

/* The child goes on, alone, and records what comes later. */
static void fork_there(const char *name)
{
	sigset_t mask;
	int status;
	pid_t pid;

	if (!arrives(name))
		return;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	/* Nor may a handler fork so while a snapshot is written (tacho.h). */
	if (sigismember(&mask, SIGUSR1) || !strcmp(name, "snapshot-block"))
		_exit(NO_SIGNALS);
	pid = fork();
	if (!pid) {
		alarm(SECONDS);
		__atomic_store_n((int *)&held, FREE, __ATOMIC_SEQ_CST);
		return;
	}
	if (waitpid(pid, &status, 0) != pid || status)
		_exit(WIFSIGNALED(status) ? 100 + WTERMSIG(status) : 4);
}

/* ------------------------------------------------------------- in the victim */

static void name_something(unsigned n)
{
	static struct tacho_name names[NAMES];
	static char texts[NAMES][16];
	static const struct tacho_name empty = TACHO_KIND(NULL);

	if (names[n].text)
		return;
	snprintf(texts[n], sizeof(texts[n]), "name-%u", n);
	names[n] = empty;
	names[n].text = texts[n];
	tacho_poll_begin(&names[n], n);
	tacho_poll_end(TACHO_PENDING);
}

/* All that passes a point. */
static void *record(void *arg)
{
	static struct tacho_name kinds[KINDS] = {
		TACHO_KIND("0"), TACHO_KIND("1"), TACHO_KIND("2"), TACHO_KIND("3"),
		TACHO_KIND("4"), TACHO_KIND("5"), TACHO_KIND("6"), TACHO_KIND("7"),
		TACHO_KIND("8"), TACHO_KIND("9"), TACHO_KIND("a"), TACHO_KIND("b"),
	};
	int nowhere = memfd_create("snapshot", MFD_CLOEXEC);

	is_tried = 1;
	for (unsigned i = 0; i < ROUNDS; i++) {
		tacho_poll_begin(&kinds[i % KINDS], i);
		/* Something else in a poll: then the poll is recorded. */
		if (i % 16 == 0)
			tacho_wake(i + (__atomic_load_n((int *)&held, __ATOMIC_SEQ_CST) == FREE
						? LATER
						: 0));
		tacho_poll_end(TACHO_PENDING);
		if (i % (ROUNDS / NAMES) == 0)
			name_something(i / (ROUNDS / NAMES));
		if (i % (ROUNDS / 4) == 0) {
			tacho_trigger("now and then");
			tacho_snapshot(nowhere);
		}
	}
	close(nowhere);
	return arg;
}

static void start(void)
{
	struct tacho_options options = TACHO_OPTIONS_INIT;

	options.max_bytes = 1 << 20;
	/* What is counted is not stored on the hot path. */
	if (!strncmp(wanted, "hist-", 5))
		options.poll_threshold_ns = 3600ull * 1000000000;
	options.keep_box = 1;
	if (tacho_start(&options))
		_exit(3);
}

static void *record_twice(void *arg)
{
	pthread_t thread;

	/* A thread that is held where it ends records nothing more. */
	if (pthread_create(&thread, NULL, record, NULL) || pthread_join(thread, NULL))
		_exit(3);
	return record(arg);
}

static int forking(struct truth *truth, void *arg)
{
	pthread_t thread;

	(void)truth;
	alarm(SECONDS);
	wanted = arg;
	tacho__testpoint_call = fork_there;
	start();
	if (pthread_create(&thread, NULL, record_twice, NULL) || pthread_join(thread, NULL))
		return 3;
	tacho_stop();
	return held == BEFORE ? NEVER_THERE : 0;
}

static int restart(struct truth *truth, void *arg)
{
	int ended = 0;
	pthread_t thread;

	(void)truth;
	alarm(SECONDS);
	wanted = arg;
	tacho__testpoint_call = hold;
	start();
	if (pthread_create(&thread, NULL, record_twice, NULL))
		return 3;
	while (__atomic_load_n((int *)&held, __ATOMIC_SEQ_CST) == BEFORE && !ended) {
		usleep(1000);
		ended = !pthread_tryjoin_np(thread, NULL);
	}
	if (ended)
		return NEVER_THERE;
	tacho_stop();
	start();
	__atomic_store_n((int *)&held, FREE, __ATOMIC_SEQ_CST);
	if (pthread_join(thread, NULL))
		return 3;
	tacho_stop();
	return 0;
}

/* ------------------------------------------------------------------ outside */

/* Wakes of before and after the restart, in one of the boxes. */
static const char *look(const char *path, unsigned *old, unsigned *later)
{
	static char why[400];
	struct tacho_reader *reader;
	const struct tacho_event *e;

	*old = *later = 0;
	if (tacho_read_open(&reader, path, NULL, why, sizeof(why)))
		return why;
	while (tacho_read_next(reader, &e) > 0)
		if (e->type == TACHO_EV_WAKE)
			++*(e->word[0] >= LATER ? later : old);
	tacho_read_close(reader);
	return NULL;
}

/* What is wrong with the boxes of a victim, or NULL. */
static const char *check_boxes(const char *folder)
{
	unsigned boxes = 0, renewed = 0;
	struct dirent *entry;
	DIR *dir = opendir(folder);

	while (dir && (entry = readdir(dir))) {
		char path[400];
		const char *why;
		unsigned old, later;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.150s/%.200s", folder, entry->d_name);
		why = look(path, &old, &later);
		/* The wake at which it was held may be in either. */
		if (!why && later && old > 1)
			why = "a box has what was recorded before and after it was made";
		if (why) {
			closedir(dir);
			return why;
		}
		boxes++;
		renewed += later > 0;
	}
	if (dir)
		closedir(dir);
	if (boxes != 2)
		return "there are not two boxes";
	return renewed == 1 ? NULL : "what was recorded after the restart is not in one box";
}

static const char *check(const char *folder, int status)
{
	static char why[80];

	if (WIFSIGNALED(status)) {
		snprintf(why, sizeof(why), "it died of %s", strsignal(WTERMSIG(status)));
		return why;
	}
	if (WEXITSTATUS(status) > 100) {
		snprintf(why, sizeof(why), "its child died of %s",
			 strsignal(WEXITSTATUS(status) - 100));
		return why;
	}
	if (WEXITSTATUS(status) == NEVER_THERE)
		return "no thread came to this point";
	return WEXITSTATUS(status) ? "it could not be tried" : check_boxes(folder);
}

/* All points at once; how many could be tried. */
static unsigned try_all(const char *what, victim_main *run, int count, char **names)
{
	static struct victim_folder folders[POINTS];
	pid_t pids[POINTS];
	unsigned tried = 0;

	for (int i = 0; i < count; i++) {
		victim_folder_make(&folders[i]);
		pids[i] = victim_start(run, NULL, names[i]);
	}
	for (int i = 0; i < count; i++) {
		int status, lost = waitpid(pids[i], &status, 0) != pids[i];
		char name[120];

		snprintf(name, sizeof(name), "%s at %s", what, names[i]);
		if (lost || status != NO_SIGNALS << 8) {
			report(name, lost ? "it was lost" : check(folders[i].boxes, status));
			tried++;
		}
		victim_folder_remove(&folders[i]);
	}
	return tried;
}

int main(int argc, char **argv)
{
	if (argc > POINTS)
		return 2;
	try_all("restart", restart, argc - 1, argv + 1);
	/* Those of the hot path, at least. */
	if (try_all("fork", forking, argc - 1, argv + 1) < 5)
		report("fork", "hardly any point can be tried");
	return report_status();
}
