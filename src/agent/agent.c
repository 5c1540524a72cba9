#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "agent/engine.h"
#include "agent/gather.h"
#include "base/clock.h"
#include "symbols/child.h"
#include "text/text.h"

#define NS_PER_MS UINT64_C(1000000)
/*
 * Between looks at boxes that are being made, or that are left to their `tacho run`: the former
 * take less than the first, and what their processes do before they are followed is not
 * watched.
 */
#define PENDING_FIRST_NS (1 * NS_PER_MS)
#define PENDING_NS (100 * NS_PER_MS)
#define PENDING_LOOKS 100
#define NO_PIDFD_NS (500 * NS_PER_MS)
#define ABSENT_MOST 64u /* of those that could not record while it runs */

struct agent {
	struct tacho__engine_options options;
	struct tacho__engine engine;
	struct tacho__absent absent;
	int signals, lock;
	sigset_t ends; /* signals that end it */
	bool end;
	unsigned looks;
};

/* One agent for one folder of boxes. The lock ends with its process. */
static int take_lock(struct agent *a)
{
	const char *given = getenv("TACHO_BOX_DIR");
	bool host = geteuid() == 0 && !(given && given[0]);
	char path[PATH_MAX], other[TEXT_SMALL] = "";
	struct stat st;
	ssize_t n;

	tacho__box_folder_make(path, sizeof(path));
	a->options.all_users = host;
	tacho__child_divides = host;
	strncat(path, "/agent.lock", sizeof(path) - strlen(path) - 1);
	a->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (a->lock < 0) {
		tacho__error(a->options.voice,
			     "cannot make %s in the folder of the boxes: %s. Mount a tmpfs there, "
			     "or name a folder on one in TACHO_BOX_DIR.",
			     path, strerror(errno));
		return -EACCES;
	}
	/* In a folder that somebody chose, it may be a file that must not be written over. */
	if (fstat(a->lock, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_nlink != 1) {
		tacho__error(a->options.voice,
			     "will not use %s: it is another user's, or has another name as well. "
			     "Delete it, or name a folder of your own in TACHO_BOX_DIR.",
			     path);
		return -EPERM;
	}
	if (flock(a->lock, LOCK_EX | LOCK_NB) == 0) {
		/* The lock is what counts; who holds it is for people. */
		if (ftruncate(a->lock, 0) == 0)
			dprintf(a->lock, "%ld\n", (long)getpid());
		return 0;
	}
	n = pread(a->lock, other, sizeof(other) - 1, 0);
	other[n > 0 ? n : 0] = 0;
	other[strspn(other, "0123456789")] = 0;
	tacho__error(a->options.voice,
		     "a 'tacho agent'%s%s follows the boxes of this %s already. End it first, or "
		     "let it run.",
		     other[0] ? " with process id " : "", other,
		     host		 ? "host"
		     : given && given[0] ? "folder"
					 : "user");
	return -EBUSY;
}

static int take_signals(struct agent *a)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction was;
	sigset_t all;

	sigemptyset(&a->ends);
	/* What was ignored on purpose, as by nohup, stays so. */
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			sigaddset(&a->ends, ends[i]);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigfillset(&all);
	sigdelset(&all, SIGPIPE);
	sigprocmask(SIG_BLOCK, &all, NULL);
	tacho__gather_signals();
	return signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void read_signals(struct agent *a)
{
	struct signalfd_siginfo info;

	while (read(a->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo, status;
		pid_t pid;

		if (sigismember(&a->ends, number) == 1)
			a->end = true;
		while (number == SIGCHLD && (pid = waitpid(-1, &status, WNOHANG)) > 0)
			tacho__engine_reaped(&a->engine, pid, status);
	}
}

static bool is_impatient(void *arg)
{
	struct agent *a = arg;

	a->end = false;
	read_signals(a);
	return a->end;
}

static uint64_t next_look(const struct agent *a)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC), wait = PENDING_FIRST_NS;

	for (unsigned i = 0; i < a->looks && wait < PENDING_NS; i++)
		wait *= 2;
	if (a->engine.pending && a->looks < PENDING_LOOKS)
		return now + (wait < PENDING_NS ? wait : PENDING_NS);
	return tacho__engine_is_blind(&a->engine) ? now + NO_PIDFD_NS : UINT64_MAX;
}

static void follow(struct agent *a)
{
	uint64_t until = UINT64_MAX;

	while (!a->end) {
		bool look, due;

		/* A program that calls again and again does not put it off. */
		if (until == UINT64_MAX)
			until = next_look(a);
		look = tacho__engine_wait(&a->engine, a->signals, until);
		due = tacho__clock_ns(CLOCK_MONOTONIC) >= until;
		a->looks = look ? 0 : a->looks + due;
		read_signals(a);
		tacho__engine_work(&a->engine, look || due);
		if (look || due)
			until = UINT64_MAX;
	}
}

/* `message` gets what is wrong, unless that was said already. */
static int start(struct agent *a, char *message)
{
	int error = take_lock(a);

	if (!error)
		error = tacho__engine_open(&a->engine, &a->options, message);
	if (error)
		return error;
	a->absent.most = ABSENT_MOST;
	a->engine.absent = &a->absent;
	a->signals = take_signals(a);
	if (a->signals < 0) {
		error = -errno;
		snprintf(message, TACHO__MESSAGE, "cannot make a signalfd: %s.", strerror(-error));
		return error;
	}
	tacho__raise_descriptors();
	return tacho__engine_begin(&a->engine, message);
}

int tacho__agent(const struct tacho__engine_options *options)
{
	struct agent a = {.options = *options};
	char names[TACHO__MESSAGE], message[TACHO__MESSAGE] = "";
	int error = start(&a, message);

	if (error && message[0])
		tacho__error(options->voice, "%s", message);
	if (error)
		return error;
	tacho__note(options->voice, "following %s; windows go to %s",
		    tacho__engine_alive(&a.engine)
			    ? tacho__engine_names(&a.engine, names, sizeof(names))
			    : "boxes as they are made",
		    options->folder);
	follow(&a);
	tacho__engine_end(&a.engine);
	tacho__engine_finish(&a.engine, a.signals, is_impatient, &a);
	tacho__absent_free(&a.absent);
	return 0;
}
