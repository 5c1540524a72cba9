/*
 * tacho agent: follows the boxes of all processes of the user, as root of the host, until it
 * is told to end.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run_boxes.h"
#include "cli/run_options.h"
#include "text/text.h"
#include "cli/watch_options.h"

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
#define SERVICE_BYTES 63u

enum { SERVICE = 256, ALL_ENDS };

struct agent {
	struct watch_options watch;
	struct run_boxes boxes;
	const char *out;
	char folder[PATH_MAX];
	int signals, lock;
	sigset_t ends; /* signals that end it */
	bool end;
	unsigned looks;
};

static int take_option(struct agent *a, int c)
{
	switch (c) {
	case 'o':
		a->out = optarg;
		return 0;
	case 'q':
		a->watch.quiet = true;
		return 0;
	case SERVICE:
		if (!optarg[0] || strlen(optarg) > SERVICE_BYTES)
			return cli_usage("--service: give a name of 1 to %u bytes.", SERVICE_BYTES);
		a->boxes.service = optarg;
		return 0;
	case ALL_ENDS:
		a->boxes.all_ends = true;
		return 0;
	default:
		return c >= WATCH_OPTIONS_FIRST ? watch_options_take(&a->watch, c) : CLI_USAGE;
	}
}

static int check_options(struct agent *a)
{
	const char *name = a->boxes.service ? a->boxes.service : "agent";
	int status = watch_options_check(&a->watch);

	if (status)
		return status;
	if (run_check_box_dir())
		return CLI_FAILED;
	if (watch_options_on(&a->watch, TACHO__WATCH_EXIT))
		return cli_usage("--on exit is for 'tacho run': only the parent of a process is "
				 "told its exit status.");
	if (a->watch.continuous && a->boxes.all_ends)
		return cli_usage("--all-ends is about windows, but --continuous keeps everything; "
				 "give one of them.");
	if (a->watch.continuous)
		return run_segment_folder(a->folder, sizeof(a->folder), a->out, name);
	if (a->out &&
	    (!a->out[0] || strcmp(a->out, "-") == 0 || strlen(a->out) >= sizeof(a->folder)))
		return cli_usage("-o needs the name of a folder.");
	strcpy(a->folder, a->out ? a->out : ".");
	return run_check_folder(a->folder) ? CLI_FAILED : 0;
}

/* One agent for one folder of boxes. The lock ends with its process. */
static int take_lock(struct agent *a)
{
	const char *given = getenv("TACHO_BOX_DIR");
	bool host = geteuid() == 0 && !(given && given[0]);
	char path[PATH_MAX], other[TEXT_SMALL] = "", own[TEXT_SMALL];
	ssize_t n;

	if (given && given[0])
		snprintf(path, sizeof(path), "%s", given);
	else
		snprintf(path, sizeof(path), "/dev/shm/tacho-%u", (unsigned)geteuid());
	a->boxes.all_users = host;
	mkdir(path, 0700);
	strncat(path, "/agent.lock", sizeof(path) - strlen(path) - 1);
	a->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (a->lock < 0) {
		cli_error("cannot make %s, beside which boxes lie: %s. Mount a tmpfs there, or "
			  "name a folder on one in TACHO_BOX_DIR.",
			  path, strerror(errno));
		return CLI_FAILED;
	}
	if (flock(a->lock, LOCK_EX | LOCK_NB) == 0) {
		int size = snprintf(own, sizeof(own), "%ld\n", (long)getpid());

		if (ftruncate(a->lock, 0) < 0 || pwrite(a->lock, own, (size_t)size, 0) < 0)
			return 0; /* the lock is what counts */
		return 0;
	}
	n = pread(a->lock, other, sizeof(other) - 1, 0);
	other[n > 0 ? n : 0] = 0;
	other[strspn(other, "0123456789")] = 0;
	cli_error("a 'tacho agent'%s%s follows the boxes of this %s already. End it first, or let "
		  "it be.",
		  other[0] ? " with process id " : "", other,
		  host		      ? "host"
		  : given && given[0] ? "folder"
				      : "user");
	return CLI_FAILED;
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
	return signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Whether there were any, but for those that end it. */
static bool read_signals(struct agent *a)
{
	struct signalfd_siginfo info;
	bool any = false;

	while (read(a->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo, status;
		pid_t pid;

		any = true;
		if (sigismember(&a->ends, number) == 1)
			a->end = true;
		while (number == SIGCHLD && (pid = waitpid(-1, &status, WNOHANG)) > 0)
			run_boxes_reaped(&a->boxes, pid, status);
	}
	return any;
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
	uint64_t now = cli_now_ns(), wait = PENDING_FIRST_NS;

	for (unsigned i = 0; i < a->looks && wait < PENDING_NS; i++)
		wait *= 2;
	if (a->boxes.pending && a->looks < PENDING_LOOKS)
		return now + (wait < PENDING_NS ? wait : PENDING_NS);
	for (size_t i = 0; i < a->boxes.count; i++)
		if (!a->boxes.boxes[i].ended && !a->boxes.boxes[i].note &&
		    a->boxes.boxes[i].pidfd < 0)
			return now + NO_PIDFD_NS;
	return UINT64_MAX;
}

static void follow(struct agent *a)
{
	while (!a->end) {
		uint64_t until = next_look(a);
		bool look = run_boxes_wait(&a->boxes, a->signals, until);
		bool due = cli_now_ns() >= until;

		a->looks = look ? 0 : a->looks + due;
		read_signals(a);
		run_boxes_work(&a->boxes, look || due);
	}
}

static int start(struct agent *a)
{
	int status = take_lock(a);

	if (status)
		return status;
	a->boxes.watch = &a->watch;
	a->boxes.folder = a->folder;
	if (a->watch.continuous &&
	    run_boxes_segments(&a->boxes, a->boxes.service ? a->boxes.service : "agent") < 0)
		return CLI_FAILED;
	a->signals = take_signals(a);
	if (a->signals < 0) {
		cli_error("cannot make a signalfd: %s.", strerror(errno));
		return CLI_FAILED;
	}
	run_raise_descriptors();
	return run_boxes_begin(&a->boxes) < 0 ? CLI_FAILED : 0;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"quiet", no_argument, NULL, 'q'},
		{"service", required_argument, NULL, SERVICE},
		{"all-ends", no_argument, NULL, ALL_ENDS},
		WATCH_OPTIONS_ROWS,
		{NULL, 0, NULL, 0},
	};
	static struct agent a;
	char names[CLI_MESSAGE];
	int c, status;

	while ((c = cli_option(argc, argv, "o:q", options)) != -1) {
		if (c == 'h')
			return cli_show_help(&cli_agent);
		status = take_option(&a, c);
		if (status)
			return status;
	}
	if (optind < argc)
		return cli_usage("'%s' is no option; to start a command use 'tacho run'.",
				 argv[optind]);
	status = check_options(&a);
	if (status == 0)
		status = start(&a);
	if (status)
		return status;
	if (!a.watch.quiet)
		cli_note("following %s; windows go to %s",
			 run_boxes_alive(&a.boxes) ? run_boxes_names(&a.boxes, names, sizeof(names))
						   : "boxes as they are made",
			 a.folder);
	follow(&a);
	run_boxes_end(&a.boxes);
	run_boxes_finish_exec(&a.boxes, a.signals, is_impatient, &a);
	run_boxes_summary(&a.boxes);
	run_boxes_free(&a.boxes);
	return CLI_OK;
}

const struct cli_command cli_agent = {
	.name = "agent",
	.summary = "follow the boxes of all processes, and save what should be kept",
	.help = "Usage: tacho agent [OPTIONS]\n\n"
		"Follows all processes of the user that record, as root all of the host, until\n"
		"SIGINT or SIGTERM: those that run and those that are started later. Saves the\n"
		"window of each that crashes or is killed, and whenever a condition holds or\n"
		"the program asks. Commands under a 'tacho run' are left to it.\n\n"
		"  -o DIR                 where to (default: here)\n"
		"  -q, --quiet            say only what went wrong\n"
		"  --service NAME         only processes of this service\n"
		"  --all-ends             keep also windows of processes that end in "
		"order\n" WATCH_OPTIONS_HELP "\nExamples:\n"
		"  tacho agent -o /var/tmp/traces --on 'stall>2s' --keep 20\n"
		"  tacho agent --continuous --service shop -o /var/tmp/shop\n",
	.run = run,
};
