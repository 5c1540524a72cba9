/*
 * tacho agent: all processes that record, until it is told to end.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "cli/cli.h"
#include "cli/run_options.h"
#include "core/options.h"

struct agent_options {
	struct watch_options watch;
	const char *out;
	char folder[PATH_MAX];
};

static int check_options(struct agent_options *a)
{
	const char *name = a->watch.engine.service ? a->watch.engine.service : "agent";
	int status;

	a->watch.ends = true;
	status = watch_options_check(&a->watch);
	if (status)
		return status;
	if (!run_box_dir_is_good()) {
		cli_error(
			"TACHO_BOX_DIR=%s cannot be used for boxes: give an absolute path of less "
			"than %u bytes.",
			getenv("TACHO_BOX_DIR"), TACHO__PATH_MAX);
		return CLI_FAILED;
	}
	if (tacho__sentinels_watch(&a->watch.engine.rules.sentinels, TACHO__WATCH_EXIT))
		return cli_usage("--on exit is for 'tacho run': only the parent of a process is "
				 "told its exit status.");
	if (a->watch.engine.continuous && a->watch.engine.all_ends)
		return cli_usage("--all-ends is about windows, but --continuous keeps everything; "
				 "give one of them.");
	if (a->watch.engine.continuous)
		return run_segment_folder(a->folder, sizeof(a->folder), a->out, name);
	if (a->out &&
	    (!a->out[0] || strcmp(a->out, "-") == 0 || strlen(a->out) >= sizeof(a->folder)))
		return cli_usage("-o needs the name of a folder.");
	strcpy(a->folder, a->out ? a->out : ".");
	status = run_check_folder(&a->watch, a->folder);
	if (status < 0)
		cli_error("cannot save windows to %s: %s. Give another place with -o.", a->folder,
			  strerror(-status));
	return status < 0 ? CLI_FAILED : 0;
}

static int run(int argc, char **argv)
{
	static struct agent_options a;
	const struct cli_row options[] = {
		{"output", .letter = 'o', .text = &a.out},
		{"quiet", .letter = 'q', .flag = &a.watch.quiet},
		{"service", .call = watch_service, .arg = &a.watch},
		{"all-ends", .flag = &a.watch.engine.all_ends},
		WATCH_OPTIONS_ROWS(&a.watch),
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_agent, options);

	if (status != CLI_TAKEN)
		return status;
	if (optind < argc)
		return cli_usage("'%s' is no option; to start a command use 'tacho run'.",
				 argv[optind]);
	status = check_options(&a);
	if (status)
		return status;
	if (!a.watch.engine.no_symbols)
		cli_allow_debuginfod(a.watch.debuginfod);
	a.watch.engine.folder = a.folder;
	return tacho__agent(&a.watch.engine) < 0 ? CLI_FAILED : CLI_OK;
}

const struct cli_command cli_agent = {
	.name = "agent",
	.summary = "follow the boxes of all processes, and save what should be kept",
	.help = "Usage: tacho agent [OPTIONS]\n\n"
		"Follows all processes of the user that record (as root: of the host), those\n"
		"that run and those that start later, until SIGINT or SIGTERM. Saves the window\n"
		"of each that crashes or is killed, and whenever a condition holds or the program\n"
		"asks. What a 'tacho run' has started is left to it.\n\n"
		"  -o DIR                 folder for the trace files (default: here)\n"
		"  -q, --quiet            say only what went wrong\n"
		"  --service NAME         only processes of this service\n"
		"  --all-ends             also keep windows of processes that end in "
		"order\n" WATCH_OPTIONS_HELP "\nExamples:\n"
		"  tacho agent -o /var/tmp/traces --on 'stall>2s' --keep 20\n"
		"  tacho agent --continuous --service shop -o /var/tmp/shop\n",
	.run = run,
};
