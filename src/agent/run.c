/*
 * It waits in ppoll(2) for signals, for new boxes, for what their recorders tell and for the
 * ends of recorded processes. Processes that the command leaves behind, daemons above
 * all, become children of this one, so that their ends are known. Nothing that would live on
 * without this process is ended by it.
 *
 * Whatever fails here, the command runs: at worst this process becomes the command.
 */
#define _GNU_SOURCE 1 /* sigabbrev_np, environ */
#include "agent/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/engine.h"
#include "agent/exec.h"
#include "agent/gather.h"
#include "agent/run_child.h"
#include "agent/run_program.h"
#include "base/clock.h"
#include "text/names.h"
#include "text/text.h"

#define NS_PER_MS UINT64_C(1000000)
/* How long a process that was left behind may take to record its first event. */
#define GRACE_NS (2000 * NS_PER_MS)
/* How long before its end a command starts what it leaves to itself. */
#define LAUNCH_NS (2000 * NS_PER_MS)
/* How long those that the command lived beside may take to end with it. */
#define HEIRS_NS (1000 * NS_PER_MS)
#define PENDING_NS (10 * NS_PER_MS) /* between looks at a box that is being made */
#define PENDING_LOOKS 200
#define NO_PIDFD_NS (500 * NS_PER_MS) /* ... at processes that cannot be waited for */

struct session {
	const struct tacho__run_options *options;
	const struct tacho__voice *voice;
	struct tacho__engine engine;
	int signals; /* signalfd */
	pid_t command;
	bool ended; /* the command has */
	uint64_t ended_ns;
	bool lived;	   /* it recorded for a while */
	uint64_t launched; /* what was started since then it was for: ticks since boot */
	int status;	   /* its wait status */
	bool leave;	   /* do not wait for others */
	bool told;	   /* that others go on */
	unsigned looks;	   /* at boxes that are being made */
	bool is_init;	   /* of its pid namespace: what the command leaves ends with us */
	bool own_group;	   /* the command has one */
	struct tacho__absent absent;
	char preload[PATH_MAX];
	int key; /* SIGINT or SIGQUIT, when the terminal sent it; 0: none */
};

static uint64_t random_number(void)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
		number = tacho__clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 40;
	number &= INT64_MAX;
	return number ? number : 1;
}

/* The signals that come to this process are read, not suffered. */
static int take_signals(struct tacho__start *start, bool sigpipe_ignored)
{
	struct sigaction action = {.sa_handler = SIG_DFL}, old;
	sigset_t all;

	sigemptyset(&start->changed);
	sigemptyset(&start->ignored);
	sigaddset(&start->changed, SIGPIPE);
	if (sigpipe_ignored)
		sigaddset(&start->ignored, SIGPIPE);
	signal(SIGPIPE, SIG_IGN);
	/* Ignored, the ends of children would be kept from us. */
	sigaddset(&start->changed, SIGCHLD);
	sigaction(SIGCHLD, &action, &old);
	if (old.sa_handler == SIG_IGN)
		sigaddset(&start->ignored, SIGCHLD);
	sigfillset(&all);
	sigdelset(&all, SIGPIPE);
	sigprocmask(SIG_BLOCK, &all, &start->mask);
	tacho__gather_signals();
	return signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* ------------------------------------------------------------------ signals */

static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The command was stopped from the terminal: the shell waits for us to stop as well. */
static void stop_too(const struct session *s, int number)
{
	if ((number == SIGTSTP || number == SIGTTIN || number == SIGTTOU) && has_terminal() &&
	    tacho__is_stopped(s->command))
		raise(SIGSTOP);
}

static void say_killed(const struct session *s)
{
	int number = WTERMSIG(s->status);
	const char *abbreviation = sigabbrev_np(number);

	/* As shells do: nobody wonders about these two. */
	if (number == SIGINT || number == SIGPIPE)
		return;
	tacho__note(s->voice, "%s (%ld) was killed by signal %d%s%s%s%s", s->options->argv[0],
		    (long)s->command, number, abbreviation ? " (SIG" : "",
		    abbreviation ? abbreviation : "", abbreviation ? ")" : "",
		    WCOREDUMP(s->status) ? ", core dumped" : "");
}

static void reap_children(struct session *s)
{
	siginfo_t info;
	uint64_t since;
	int status;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) <
			    0 ||
		    info.si_pid == 0)
			return;
		if (waitpid(info.si_pid, &status, WUNTRACED | WCONTINUED | WNOHANG) <= 0)
			return;
		if (WIFSTOPPED(status) || WIFCONTINUED(status))
			tacho__engine_told(&s->engine, info.si_pid, WIFSTOPPED(status));
		if (WIFCONTINUED(status))
			continue;
		tacho__absent_news(&s->absent);
		if (!WIFSTOPPED(status) && tacho__engine_reaped(&s->engine, info.si_pid, status))
			continue;
		if (info.si_pid != s->command || s->ended)
			continue;
		if (WIFSTOPPED(status)) {
			stop_too(s, WSTOPSIG(status));
		} else {
			s->ended = true;
			s->ended_ns = tacho__clock_ns(CLOCK_MONOTONIC);
			s->launched = tacho__ticks_of_boot(LAUNCH_NS);
			since = tacho__engine_recorded_since(&s->engine, (uint32_t)s->command);
			s->lived = since < s->ended_ns && s->ended_ns - since > LAUNCH_NS;
			s->status = status;
			if (WIFSIGNALED(status))
				say_killed(s);
		}
	}
}

static bool is_deadly(int number)
{
	return number == SIGINT || number == SIGQUIT || number == SIGHUP || number == SIGTERM;
}

static void snapshot(struct session *s, int number)
{
	char name[TEXT_SMALL], why[2 * TEXT_SMALL];

	name_signal(name, number);
	snprintf(why, sizeof(why), "%s%s", strncmp(name, "SIG", 3) == 0 ? "signal " : "", name);
	tacho__engine_snapshot(&s->engine, why);
}

static void handle_signal(struct session *s, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;

	if (number == SIGCHLD) {
		reap_children(s);
	} else if (number == s->options->trigger) {
		snapshot(s, number);
	} else if (number == SIGCONT) {
		/* A shell continues the whole group; whoever continued only us means the
		   command. */
		if (!s->ended && tacho__is_stopped(s->command))
			kill(s->command, SIGCONT);
	} else if (!tacho__is_for_child(info, s->own_group)) {
		if (info->ssi_code > 0 && (number == SIGINT || number == SIGQUIT))
			s->key = number;
	} else if (!s->ended) {
		tacho__pass_on(info, s->command);
	}
	/* No signal to the command reaches what it left behind, and none of ours shall: it ends
	   the waiting. */
	if (s->ended && is_deadly(number))
		s->leave = true;
}

/* Whether there were any. */
static bool read_signals(struct session *s)
{
	struct signalfd_siginfo info;
	bool any = false;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		handle_signal(s, &info);
		any = true;
	}
	return any;
}

/* While the last commands of --exec are waited for, who interrupts wants to leave. */
static bool is_impatient(void *arg)
{
	struct session *s = arg;
	struct signalfd_siginfo info;
	bool leave = false;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap_children(s);
		leave |= is_deadly((int)info.ssi_signo);
	}
	return leave;
}

/* ------------------------------------------------------------------ waiting */

/* A child of this process that is not the command's. */
static pid_t own_child(const struct session *s)
{
	return s->engine.exec ? tacho__exec_pid(s->engine.exec) : 0;
}

/*
 * What the command started just before it ended is what it was for: it put a daemon into the
 * background. That is followed. What is older the command lived beside; and one that recorded
 * for a while, or that a signal killed, had a life of its own. As the first process of a pid
 * namespace, a container that is, the command would have taken all of it along.
 */
static bool was_launcher(const struct session *s)
{
	if (s->options->wait || s->is_init || s->lived || WIFSIGNALED(s->status))
		return s->options->wait;
	return tacho__engine_alive_since(&s->engine, s->launched) > 0;
}

static void tell_who_goes_on(struct session *s)
{
	char names[TACHO__MESSAGE];

	if (s->told)
		return;
	s->told = true;
	tacho__note(s->voice,
		    "the command has ended; still running and recorded: %s. Waiting for their end; "
		    "'tacho dump PID' saves a window at any time, Ctrl-C leaves them running.",
		    tacho__engine_names(&s->engine, names, sizeof(names)));
}

static void sooner(uint64_t *until, uint64_t at)
{
	if (at < *until)
		*until = at;
}

/* Whether there is still something to wait for; *until: at most until then. */
static bool goes_on(struct session *s, uint64_t *until)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC), grace = 0;
	size_t alive;

	*until = s->absent.due_ns;
	if (s->engine.pending && s->looks < PENDING_LOOKS)
		sooner(until, now + PENDING_NS);
	if (tacho__engine_is_blind(&s->engine))
		sooner(until, now + NO_PIDFD_NS);
	if (!s->ended)
		return true;
	if (s->leave || s->options->no_wait)
		return false;
	alive = tacho__engine_alive(&s->engine);
	if (alive > 0 && (s->told || was_launcher(s))) {
		tell_who_goes_on(s);
		return true;
	}
	/* From now on a window that cannot be saved is not tried again. */
	s->engine.closing = true;
	if (alive > 0)
		grace = HEIRS_NS;
	if (!s->lived && !s->is_init && !WIFSIGNALED(s->status) &&
	    tacho__has_child_since(s->launched, own_child(s)))
		grace = GRACE_NS;
	if (now - s->ended_ns >= grace)
		return false;
	sooner(until, s->ended_ns + grace);
	return true;
}

static void wait_for_end(struct session *s)
{
	uint64_t until;
	bool look;

	while (goes_on(s, &until)) {
		look = tacho__engine_wait(&s->engine, s->signals, until);
		if (look)
			s->looks = 0;
		look |= read_signals(s);
		tacho__absent_look(&s->absent, own_child(s));
		if (!look && (s->engine.pending || tacho__clock_ns(CLOCK_MONOTONIC) >= until)) {
			s->looks += s->engine.pending;
			look = true;
		}
		/* Find the processes that have ended before their windows are saved: the last
		   windows are not tried again. */
		if (s->ended && look)
			tacho__engine_scan(&s->engine);
		s->engine.closing = s->ended && tacho__engine_alive(&s->engine) == 0;
		tacho__engine_work(&s->engine, look && !s->ended);
	}
}

/* ---------------------------------------------------------------------- end */

static void say_goes_on(const struct session *s, const char *names)
{
	const char *all = geteuid() == 0 ? " --all" : "";

	tacho__note(s->voice,
		    "still running and recorded: %s. 'tacho dump PID' saves a window, 'tacho "
		    "ls%s' lists them, 'tacho recover%s' saves what they leave behind.",
		    names, all, all);
}

static void say_nothing_recorded(const struct session *s, const char *absent)
{
	if (absent[0])
		tacho__warn(s->voice, "nothing was recorded. Of its processes, %s", absent);
	else
		tacho__note(
			s->voice,
			"nothing was recorded: its processes%s did not wait with epoll, poll or "
			"select, nor call tacho.h, or could not record ('tacho doctor' "
			"tells).%s",
			s->options->exclude ? ", apart from those that --exclude names," : "",
			s->options->no_wait
				? " Processes that it left running may still do so: 'tacho ls' "
				  "lists them, 'tacho recover' saves what they leave behind."
				: "");
}

static void say_rest(const struct session *s, size_t alive, const char *names)
{
	const struct tacho__engine *e = &s->engine;
	bool hindered =
		s->options->program->hindrance != TACHO__HINDRANCE_NONE || !s->absent.preload;
	char absent[TACHO__MESSAGE];

	/* That nothing, or not the command itself, can be recorded was said when it started. */
	tacho__absent_names(&s->absent, hindered ? (uint32_t)s->command : 0, absent,
			    sizeof(absent));
	if (alive > 0)
		say_goes_on(s, names);
	if (alive + e->saved + e->failed + e->unwanted + e->segment_count == 0 && !hindered &&
	    !e->last_reason[0])
		say_nothing_recorded(s, absent);
	else if (absent[0])
		tacho__warn(s->voice, "not recorded: %s", absent);
}

/* What those have that go on; their boxes stay. */
static void save_living(struct session *s)
{
	struct tacho__engine *e = &s->engine;

	if (!s->options->no_wait && !e->options.continuous && tacho__engine_alive(e) > 0 &&
	    !tacho__sentinels_watch(&e->options.rules.sentinels, TACHO__WATCH_EXIT))
		tacho__engine_snapshot(e, NULL);
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ------------------------------------------------------------------- beginning */

static int cannot_start(const struct session *s, int error)
{
	char message[TACHO__MESSAGE];

	tacho__program_explain(s->options->program, error, message, sizeof(message));
	tacho__error(s->voice, "%s", message);
	return error == ENOENT ? TACHO__RUN_NOT_FOUND : TACHO__RUN_CANNOT;
}

/* Returns only when the command cannot be executed: the exit status. */
static int become_command(struct session *s, struct tacho__start *start)
{
	int error;

	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	error = tacho__become(start);
	if (error == -E2BIG && start->environment != environ) {
		start->environment = environ;
		error = tacho__become(start);
	}
	return cannot_start(s, -error);
}

/* The command with what recording needs in its environment; where that is too much for the
   system, without. As tacho__start. */
static pid_t start_recorded(struct session *s, struct tacho__start *start)
{
	pid_t pid = tacho__start(start);

	if (pid != -E2BIG || start->environment == environ)
		return pid;
	tacho__warn(s->voice,
		    "nothing will be recorded: with the variables that recording needs, arguments "
		    "and environment are longer than the system allows.");
	start->environment = environ;
	s->absent.preload = NULL;
	return tacho__start(start);
}

/* Whether this process can follow the command; else why not is in `message`. */
static bool can_follow(struct session *s, struct tacho__start *start, char *message)
{
	s->signals = take_signals(start, s->options->sigpipe_ignored);
	if (s->signals >= 0)
		return tacho__engine_begin(&s->engine, message) == 0;
	snprintf(message, TACHO__MESSAGE, "cannot make a signalfd: %s.", strerror(errno));
	return false;
}

static void say_not_followed(const struct session *s, const char *why)
{
	tacho__warn(
		s->voice,
		"%s is not followed, and nobody saves its window at its end: %s It is started; if "
		"it records, " TACHO__RUN_SAVE,
		s->options->argv[0], why);
}

/* 0: it runs, as a child. */
static int start_command(struct session *s)
{
	struct tacho__start start = {.program = s->options->program,
				     .argv = s->options->argv,
				     .own_group = s->own_group};
	char message[TACHO__MESSAGE] = "", number[TEXT_SMALL];
	char **environment = NULL;
	int status = 0;

	snprintf(number, sizeof(number), "%" PRIu64, s->engine.options.recording);
	if (tacho__run_environment(&environment, s->options, number, message, sizeof(message)) < 0)
		tacho__warn(s->voice, "%s", message);
	start.environment = environment ? environment : environ;
	if (can_follow(s, &start, message)) {
		if (!s->options->no_wait)
			prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		s->command = start_recorded(s, &start);
		if (s->command == 0)
			snprintf(message, sizeof(message), "no process can be made for it: %s.",
				 strerror(errno));
	}
	if (s->command == 0) {
		say_not_followed(s, message);
		status = become_command(s, &start);
	} else if (s->command < 0) {
		status = cannot_start(s, -s->command);
	}
	free(environment);
	if (status) {
		tacho__engine_end(&s->engine);
		tacho__engine_free(&s->engine);
	} else {
		s->engine.command = (uint32_t)s->command;
	}
	return status;
}

/* TACHO=off. */
static int run_plain(struct session *s)
{
	struct tacho__start start = {
		.program = s->options->program, .argv = s->options->argv, .environment = environ};

	sigemptyset(&start.changed);
	sigemptyset(&start.ignored);
	sigaddset(&start.changed, SIGPIPE);
	if (s->options->sigpipe_ignored)
		sigaddset(&start.ignored, SIGPIPE);
	sigprocmask(SIG_BLOCK, NULL, &start.mask);
	return become_command(s, &start);
}

static void finish(struct session *s)
{
	char names[TACHO__MESSAGE];
	size_t alive;

	tacho__absent_end(&s->absent, own_child(s));
	save_living(s);
	alive = tacho__engine_alive(&s->engine);
	tacho__engine_names(&s->engine, names, sizeof(names));
	tacho__engine_end(&s->engine);
	say_rest(s, alive, names);
	tacho__engine_finish(&s->engine, s->signals, is_impatient, s);
	tacho__absent_free(&s->absent);
}

static void watch_absent(struct session *s)
{
	char message[TACHO__MESSAGE];
	const char *slash;

	if (tacho__preload_find(s->preload, sizeof(s->preload), message, sizeof(message)) < 0)
		return; /* and nothing is recorded */
	slash = strrchr(s->preload, '/');
	s->absent.preload = slash ? slash + 1 : s->preload;
	s->absent.exclude = s->options->exclude;
	s->engine.absent = &s->absent;
}

int tacho__run(const struct tacho__run_options *options, int *key)
{
	struct session s = {.options = options, .voice = options->engine->voice};
	struct tacho__engine_options engine = *options->engine;
	char message[TACHO__MESSAGE] = "";
	int status;

	*key = 0;
	if (options->off)
		return run_plain(&s);
	s.is_init = getpid() == 1;
	/* Signals that others send to the first process of a container are meant for the command,
	   those of its own children too. With a terminal, its keys need one group for all. */
	s.own_group = s.is_init && !has_terminal();
	engine.recording = random_number();
	engine.all_users = geteuid() == 0;
	if (tacho__engine_open(&s.engine, &engine, message) < 0)
		tacho__warn(s.voice, "%s. The command is started and recorded; " TACHO__RUN_SAVE,
			    message);
	watch_absent(&s);
	status = start_command(&s);
	if (status)
		return status;
	tacho__raise_descriptors();
	wait_for_end(&s);
	finish(&s);
	if (WIFSIGNALED(s.status) && WTERMSIG(s.status) == s.key)
		*key = s.key;
	return exit_status(s.status);
}
