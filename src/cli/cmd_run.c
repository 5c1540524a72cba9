/*
 * tacho run: a command, recorded.
 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

#include "agent/run_program.h"
#include "cli/cli.h"
#include "cli/run_options.h"

static void say_hindrance(const struct tacho__voice *voice, const struct tacho__program *p)
{
	const char *machine = tacho__machine_name(p->machine);

	switch (p->hindrance) {
	case TACHO__HINDRANCE_STATIC:
		tacho__warn(
			voice,
			"%s is linked statically, so nothing inside it will be recorded; programs "
			"that it starts will be, if they are linked dynamically.",
			p->elf);
		break;
	case TACHO__HINDRANCE_SETID:
		tacho__warn(
			voice,
			"%s runs with more rights than its caller (set-user-id, set-group-id or "
			"capabilities), so nothing inside it will be recorded. Run tacho as the "
			"user it runs as.",
			p->elf);
		break;
	case TACHO__HINDRANCE_MACHINE:
		tacho__warn(voice, "%s is a program for %s, so nothing inside it will be recorded.",
			    p->elf, machine ? machine : "another architecture");
		break;
	case TACHO__HINDRANCE_LIBC:
		tacho__warn(voice,
			    "%s is made for another C library (%s), so nothing inside it will be "
			    "recorded.%s",
			    p->elf, p->linker, p->libc == TACHO__MUSL ? " " TACHO__NO_MUSL : "");
		break;
	case TACHO__HINDRANCE_NONE:
		break;
	}
}

/*
 * When a key killed the command, the shell that waits for us wants to see that in us: it goes
 * on with its script after a program that only returned.
 */
static void die_alike(int key)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t one;

	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the core is the command's */
	sigaction(key, &action, NULL);
	sigemptyset(&one);
	sigaddset(&one, key);
	raise(key);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static int run(int argc, char **argv)
{
	static struct tacho__program program;
	static struct run_options options;
	char message[CLI_MESSAGE];
	int status, key;

	/* Whoever does not read what is said does not keep the command from running. */
	signal(SIGPIPE, SIG_IGN);
	status = run_options_read(&options, argc, argv);
	if (status != CLI_TAKEN)
		return status;
	status = tacho__program_find(&program, argv[optind], message, sizeof(message));
	if (status < 0) {
		cli_error("%s", message);
		return status == -ENOENT ? TACHO__RUN_NOT_FOUND : TACHO__RUN_CANNOT;
	}
	if (!options.watch.quiet && !options.run.off)
		say_hindrance(&options.watch.voice, &program);
	if (!options.watch.engine.no_symbols)
		cli_allow_debuginfod(options.watch.debuginfod);
	options.watch.engine.folder = options.folder;
	options.run.engine = &options.watch.engine;
	options.run.program = &program;
	options.run.argv = argv + optind;
	options.run.sigpipe_ignored = cli_started_without_sigpipe;
	status = tacho__run(&options.run, &key);
	if (key)
		die_alike(key);
	return status;
}

const struct cli_command cli_run = {
	.name = "run",
	.summary = "record a command, unchanged, and save its window when it ends",
	.help = "Usage: tacho run [OPTIONS] -- COMMAND [ARGUMENTS]\n\n"
		"Starts COMMAND so that its loops are recorded, waits for it, and saves the last\n"
		"window of each recorded process when it has ended, crashed or been killed.\n"
		"Signals are passed on; the exit status is that of COMMAND.\n\n"
		"  -o FILE|DIR/           one file for all processes, or a folder with one for "
		"each\n"
		"                         (default: tacho-NAME-PID-TIME.tacho here)\n"
		"  -f, --force            replace FILE if it exists; else it is kept as FILE.old\n"
		"  -q, --quiet            say only what went wrong\n"
		"  --memory BYTES         memory for one process, such as 64M (default 32M)\n"
		"  --min-age TIME         count a loss when the window gets shorter than this\n"
		"  --poll-threshold TIME  count shorter polls instead of recording them\n"
		"  --call-threshold TIME  record blocking calls from this length on\n"
		"  --exclude NAMES        do not record programs of these names (a,b,c)\n"
		"  --service NAME         name of the service, stored in its boxes and traces\n"
		"  --trigger-signal NAME  save a snapshot when tacho run gets this signal\n"
		"  --names                have Python and node name the functions of scripts\n"
		"  --no-wait-children     return when COMMAND ends, whatever it left "
		"running\n"
		"  --wait-children        wait for all that it left running and is "
		"recorded\n"
		"  --no-crash             do not note crashes in the box; handlers of signals are "
		"left\n                         alone\n" WATCH_OPTIONS_HELP
		"                         also 'exit!=0': keep the last window only then\n\n"
		"Examples:\n"
		"  tacho run -- redis-server --port 7777\n"
		"  tacho run --on 'poll>50ms' --keep 20 -o /var/tmp -- ./server\n"
		"  tacho run --continuous -o /var/tmp/web -- nginx -g 'daemon off;'\n",
	.run = run,
	.stops = true,
};
