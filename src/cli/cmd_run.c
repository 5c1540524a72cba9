/*
 * tacho run: starts a command with the hooks in it, follows its boxes, and saves what was
 * recorded when it has ended, however that was.
 *
 * It waits in ppoll(2) for signals, for new boxes, for what their recorders tell and for the
 * ends of recorded processes. Processes that the command leaves behind, daemons above
 * all, become children of this one, so that their ends are known.
 */
#define _GNU_SOURCE 1 /* environ */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/exec.h"
#include "agent/run_child.h"
#include "agent/run_program.h"
#include "cli/cli.h"
#include "cli/run_boxes.h"
#include "cli/run_options.h"
#include "text/text.h"

#define NS_PER_MS UINT64_C(1000000)
/* How long a process that was left behind may take to record its first event. */
#define GRACE_NS (2000 * NS_PER_MS)
#define PENDING_NS (10 * NS_PER_MS) /* between looks at a box that is being made */
#define PENDING_LOOKS 200
#define NO_PIDFD_NS (500 * NS_PER_MS) /* ... at processes that cannot be waited for */

struct session {
	const struct run_options *options;
	const char *name; /* of the command */
	struct run_boxes boxes;
	int signals; /* signalfd */
	pid_t command;
	bool ended; /* the command has */
	uint64_t ended_ns;
	int status;	/* its wait status */
	bool leave;	/* do not wait for others */
	bool told;	/* that others go on */
	unsigned looks; /* at boxes that are being made */
	int key;	/* SIGINT or SIGQUIT, when the terminal sent it; 0: none */
};

static void say_hindrance(const struct tacho__program *p)
{
	const char *machine = tacho__machine_name(p->machine);

	switch (p->hindrance) {
	case TACHO__HINDRANCE_STATIC:
		cli_warn("%s is linked statically, so nothing inside it will be recorded; programs "
			 "that it starts will be, where they are linked dynamically.",
			 p->elf);
		break;
	case TACHO__HINDRANCE_SETID:
		cli_warn("%s runs with more rights than its caller (set-user-id, set-group-id or "
			 "capabilities), so nothing inside it will be recorded. Run tacho as the "
			 "user it runs as.",
			 p->elf);
		break;
	case TACHO__HINDRANCE_MACHINE:
		cli_warn("%s is a program for %s, so nothing inside it will be recorded.", p->elf,
			 machine ? machine : "another architecture");
		break;
	case TACHO__HINDRANCE_LIBC:
		cli_warn("%s is made for another C library (%s), so nothing inside it will be "
			 "recorded.",
			 p->elf, p->linker);
		break;
	case TACHO__HINDRANCE_NONE:
		break;
	}
}

/* Hooks in a program of another machine or C library would make its dynamic linker
   complain, or fail. */
static bool can_preload(const struct tacho__program *p)
{
	return p->hindrance != TACHO__HINDRANCE_MACHINE && p->hindrance != TACHO__HINDRANCE_LIBC;
}

static uint64_t random_number(void)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		number = cli_now_ns() ^ (uint64_t)getpid() << 40;
	number &= INT64_MAX;
	return number ? number : 1;
}

/* The signals that come to this process are read, not suffered. */
static int take_signals(struct tacho__start *start)
{
	struct sigaction action = {.sa_handler = SIG_DFL}, old;
	sigset_t all;

	sigemptyset(&start->changed);
	sigemptyset(&start->ignored);
	sigaddset(&start->changed, SIGPIPE);
	if (cli_started_without_sigpipe)
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
	if (s->options->watch.quiet || number == SIGINT || number == SIGPIPE)
		return;
	cli_note("%s (%ld) was killed by signal %d%s%s%s%s", s->name, (long)s->command, number,
		 abbreviation ? " (SIG" : "", abbreviation ? abbreviation : "",
		 abbreviation ? ")" : "", WCOREDUMP(s->status) ? ", core dumped" : "");
}

static void reap_children(struct session *s)
{
	siginfo_t info;
	int status;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0 ||
		    info.si_pid == 0)
			return;
		if (waitpid(info.si_pid, &status, WUNTRACED | WNOHANG) <= 0)
			return;
		if (!WIFSTOPPED(status) && run_boxes_reaped(&s->boxes, info.si_pid, status))
			continue;
		if (info.si_pid != s->command || s->ended)
			continue;
		if (WIFSTOPPED(status)) {
			stop_too(s, WSTOPSIG(status));
		} else {
			s->ended = true;
			s->ended_ns = cli_now_ns();
			s->status = status;
			s->boxes.command_reaped = true;
			s->boxes.command_status = status;
			if (WIFSIGNALED(status))
				say_killed(s);
		}
	}
}

/* To what the command left behind: children that this process inherited. */
static void pass_to_heirs(struct session *s, const struct signalfd_siginfo *info)
{
	char path[64];
	FILE *file;
	long pid;
	int count = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
	file = fopen(path, "re");
	while (file && fscanf(file, "%ld", &pid) == 1) {
		if (s->boxes.exec && pid == (long)tacho__exec_pid(s->boxes.exec))
			continue;
		tacho__pass_on(info, (pid_t)pid);
		count++;
	}
	if (file)
		fclose(file);
	if (count == 0)
		s->leave = true;
}

static bool is_deadly(int number)
{
	return number == SIGINT || number == SIGQUIT || number == SIGHUP || number == SIGTERM;
}

static void snapshot(struct session *s, int number)
{
	const char *name = sigabbrev_np(number);
	char why[TEXT_SMALL];

	if (name)
		snprintf(why, sizeof(why), "signal SIG%s", name);
	else
		snprintf(why, sizeof(why), "signal %d", number);
	run_boxes_snapshot(&s->boxes, why);
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
	} else if (!tacho__is_for_child(info)) {
		if (info->ssi_code > 0 && (number == SIGINT || number == SIGQUIT))
			s->key = number;
		/* Ctrl-C does not reach daemons; it ends the waiting for them. */
		if (s->ended && is_deadly(number))
			s->leave = true;
	} else if (!s->ended) {
		tacho__pass_on(info, s->command);
	} else {
		pass_to_heirs(s, info);
	}
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

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void tell_who_goes_on(struct session *s)
{
	char names[CLI_MESSAGE];

	if (s->told || s->options->watch.quiet)
		return;
	s->told = true;
	cli_note("the command has ended and %s go on and are recorded. Waiting for their end; "
		 "'tacho dump PID' saves a window at any time, Ctrl-C leaves them running.",
		 run_boxes_names(&s->boxes, names, sizeof(names)));
}

static void sooner(uint64_t *until, uint64_t at)
{
	if (at < *until)
		*until = at;
}

/* Whether there is still something to wait for; *until: at most until then. */
static bool goes_on(struct session *s, uint64_t *until)
{
	uint64_t now = cli_now_ns();

	*until = UINT64_MAX;
	if (s->boxes.pending && s->looks < PENDING_LOOKS)
		sooner(until, now + PENDING_NS);
	for (size_t i = 0; i < s->boxes.count; i++)
		if (!s->boxes.boxes[i].ended && !s->boxes.boxes[i].note &&
		    s->boxes.boxes[i].pidfd < 0)
			sooner(until, now + NO_PIDFD_NS);
	if (!s->ended)
		return true;
	if (s->leave || s->options->no_wait)
		return false;
	if (run_boxes_alive(&s->boxes) > 0) {
		tell_who_goes_on(s);
		return true;
	}
	/* From now on a window that cannot be saved is not tried again. */
	s->boxes.closing = true;
	if (!has_children() || now - s->ended_ns >= GRACE_NS)
		return false;
	sooner(until, s->ended_ns + GRACE_NS);
	return true;
}

static void wait_for_end(struct session *s)
{
	uint64_t until;
	bool look;

	while (goes_on(s, &until)) {
		look = run_boxes_wait(&s->boxes, s->signals, until);
		if (look)
			s->looks = 0;
		look |= read_signals(s);
		if (!look && (s->boxes.pending || cli_now_ns() >= until)) {
			s->looks += s->boxes.pending;
			look = true;
		}
		s->boxes.closing = s->ended && run_boxes_alive(&s->boxes) == 0;
		run_boxes_work(&s->boxes, look);
	}
}

/* ---------------------------------------------------------------------- end */

static void say_rest(const struct session *s, const struct tacho__program *program, size_t alive,
		     const char *names)
{
	const struct run_boxes *b = &s->boxes;
	const char *all = geteuid() == 0 ? " --all" : "";

	if (s->options->watch.quiet)
		return;
	if (alive > 0)
		cli_note("%s go on and are recorded: 'tacho dump PID' saves a window, 'tacho ls%s' "
			 "lists them, 'tacho recover%s' saves what they leave behind.",
			 names, all, all);
	else if (b->saved + b->failed + b->unwanted + b->segment_count == 0 &&
		 program->hindrance == TACHO__HINDRANCE_NONE && !b->last_reason[0])
		cli_note("nothing was recorded: no process of it%s waited with epoll, poll or "
			 "select or called tacho.h.%s",
			 s->options->exclude ? ", but for those that --exclude names," : "",
			 s->options->no_wait
				 ? " What it left running may still do so: 'tacho ls' "
				   "lists that, 'tacho recover' saves what is left of it."
				 : "");
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * When a key killed the command, the shell that waits for us wants to see that in us: it goes
 * on with its script after a program that only returned.
 */
static void die_alike(const struct session *s)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t one;

	if (!WIFSIGNALED(s->status) || WTERMSIG(s->status) != s->key)
		return;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the core is the command's */
	sigaction(s->key, &action, NULL);
	sigemptyset(&one);
	sigaddset(&one, s->key);
	raise(s->key);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static int start_command(struct session *s, const struct tacho__program *program, char **argv)
{
	struct tacho__start start = {.program = program, .argv = argv};
	char message[CLI_MESSAGE], number[TEXT_SMALL], preload[2 * PATH_MAX];
	char **environment;
	int status;

	s->boxes.recording = random_number();
	snprintf(number, sizeof(number), "%" PRIu64, s->boxes.recording);
	status = run_preload(preload, sizeof(preload), can_preload(program));
	if (status)
		return status;
	environment = run_environment(s->options, preload, number);
	if (!environment) {
		cli_error("out of memory.");
		return RUN_FAILED;
	}
	start.environment = environment;
	s->signals = take_signals(&start);
	if (s->signals < 0)
		cli_error("cannot make a signalfd: %s. Nothing was started.", strerror(errno));
	if (s->signals < 0 || run_boxes_begin(&s->boxes) < 0) {
		free(environment);
		return RUN_FAILED;
	}
	if (!s->options->no_wait)
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	s->command = tacho__start(&start);
	free(environment);
	if (s->command > 0) {
		s->boxes.command = (uint32_t)s->command;
		return 0;
	}
	tacho__program_explain(program, -s->command, message, sizeof(message));
	cli_error("%s", message);
	run_boxes_end(&s->boxes);
	run_boxes_free(&s->boxes);
	return s->command == -ENOENT ? RUN_NOT_FOUND : RUN_CANNOT;
}

static void finish(struct session *s, const struct tacho__program *program)
{
	char names[CLI_MESSAGE];
	size_t alive = run_boxes_alive(&s->boxes);

	run_boxes_names(&s->boxes, names, sizeof(names));
	run_boxes_end(&s->boxes);
	say_rest(s, program, alive, names);
	run_boxes_finish_exec(&s->boxes, s->signals, is_impatient, s);
	run_boxes_summary(&s->boxes);
	run_boxes_free(&s->boxes);
}

static int run(int argc, char **argv)
{
	static struct tacho__program program;
	static struct run_options options;
	static struct session s = {.options = &options};
	char message[CLI_MESSAGE];
	int status = run_options_read(&options, argc, argv);

	if (status)
		return status;
	if (options.help)
		return cli_show_help(&cli_run);
	status = tacho__program_find(&program, argv[optind], message, sizeof(message));
	if (status < 0) {
		cli_error("%s", message);
		return status == -ENOENT ? RUN_NOT_FOUND : RUN_CANNOT;
	}
	s.name = argv[optind];
	s.boxes.watch = &options.watch;
	s.boxes.folder = options.folder;
	s.boxes.file = options.file;
	s.boxes.replace = options.replace;
	s.boxes.all_users = geteuid() == 0;
	if (options.watch.continuous && run_boxes_segments(&s.boxes, options.service) < 0)
		return RUN_FAILED;
	if (!options.watch.quiet)
		say_hindrance(&program);
	status = start_command(&s, &program, argv + optind);
	if (status)
		return status;
	run_raise_descriptors();
	wait_for_end(&s);
	finish(&s, &program);
	die_alike(&s);
	return exit_status(s.status);
}

const struct cli_command cli_run = {
	.name = "run",
	.summary = "record a command, unchanged, and save its window when it ends",
	.help = "Usage: tacho run [OPTIONS] -- COMMAND [ARGUMENTS]\n\n"
		"Starts COMMAND so that its loops are recorded, waits for it, and saves the last\n"
		"window of each recorded process when it has ended, crashed or been killed.\n"
		"Signals are passed on; the exit status is that of COMMAND.\n\n"
		"  -o FILE|DIR            where to (default: tacho-NAME-PID-TIME.tacho here)\n"
		"  -f, --force            replace FILE if it exists\n"
		"  -q, --quiet            say only what went wrong\n"
		"  --memory BYTES         memory for one process, such as 64M (default 32M)\n"
		"  --min-age TIME         say so when the window gets shorter than this\n"
		"  --poll-threshold TIME  count shorter polls instead of recording them\n"
		"  --call-threshold TIME  record blocking calls from this length on\n"
		"  --exclude NAMES        do not record programs of these names (a,b,c)\n"
		"  --service NAME         a name for all of it, shown by tacho ls\n"
		"  --trigger-signal NAME  this signal to tacho run saves a snapshot\n"
		"  --no-wait-children     return when COMMAND ends, whatever it left "
		"running\n" WATCH_OPTIONS_HELP
		"                         also 'exit!=0': keep the last window only then\n\n"
		"Examples:\n"
		"  tacho run -- redis-server --port 7777\n"
		"  tacho run --on 'poll>50ms' --keep 20 -o /var/tmp -- ./server\n"
		"  tacho run --continuous -o /var/tmp/web -- nginx -g 'daemon off;'\n",
	.run = run,
};
