/*
 * tacho view, tacho serve: traces in the browser.
 */
#include "cli/cli.h"
#include "cli/viewing.h"

static bool has_port(const struct viewing *v)
{
	if (v->port <= UINT16_MAX)
		return true;
	cli_usage("--port: there is no port above 65535.");
	return false;
}

static int view(void *arg, const char *path)
{
	const struct viewing *v = arg;

	return v->html ? viewing_write(v, path) : viewing_serve(v, path);
}

static int run_view(int argc, char **argv)
{
	struct viewing v = {0};
	const struct cli_row options[] = {
		{"port", .count = &v.port},
		{"no-browser", .flag = &v.no_browser},
		{"html", .text = &v.html},
		{"force", .letter = 'f', .flag = &v.force},
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_view, options);

	if (status != CLI_TAKEN)
		return status;
	if (!has_port(&v))
		return CLI_USAGE;
	if (v.html && !v.html[0])
		return cli_usage("--html needs the name of a file, or - for standard output.");
	if (v.html && (v.port || v.no_browser))
		return cli_usage("--html writes a file and serves nothing: no --port, no "
				 "--no-browser.");
	if (v.force && !v.html)
		return cli_usage("--force is about the file of --html.");
	if (v.html && optind == argc)
		return viewing_write(&v, NULL);
	return cli_with_source(argc, argv, view, &v);
}

static int run_serve(int argc, char **argv)
{
	struct viewing v = {0};
	const char *folder = NULL;
	const struct cli_row options[] = {
		{"dir", .text = &folder},
		{"port", .count = &v.port},
		{"no-browser", .flag = &v.no_browser},
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_serve, options);

	if (status != CLI_TAKEN)
		return status;
	if (!has_port(&v))
		return CLI_USAGE;
	if (!folder || !folder[0] || optind < argc)
		return cli_usage(
			"which folder? Give it as --dir DIR. For one trace use 'tacho view'.");
	return viewing_serve_folder(&v, folder);
}

const struct cli_command cli_view = {
	.name = "view",
	.summary = "a trace, or a process that runs, in the browser",
	.help = "Usage: tacho view FILE|FOLDER|BOX|PID [--port N] [--no-browser]\n"
		"       tacho view --html OUT [FILE|BOX|PID] [--force]\n\n"
		"Shows a trace on a page: the verdict and the findings, the ledger, and what "
		"every\n"
		"thread did when. Of a process that runs, the page follows the last seconds. Of a\n"
		"folder it lists the traces, as 'tacho serve' does. The page is served on\n"
		"127.0.0.1, under an address that nobody can guess, until Ctrl-C.\n\n"
		"  --port N      listen there (default: any that is free)\n"
		"  --no-browser  print the address, and open nothing\n"
		"  --html OUT    write the page with the trace inside to a file, to send or to\n"
		"                attach; '-' is standard output. Without a trace, a page to drop\n"
		"                traces on\n"
		"  --force       replace OUT if it exists; else it is kept as OUT.old\n\n"
		"Examples:\n"
		"  tacho view slow.tacho\n"
		"  tacho view 4711\n"
		"  tacho view --html incident.html slow.tacho\n",
	.run = run_view,
};

const struct cli_command cli_serve = {
	.name = "serve",
	.summary = "the traces of a folder in the browser",
	.help = "Usage: tacho serve --dir DIR [--port N] [--no-browser]\n\n"
		"Lists the traces of a folder on a page, with verdict, service, host, time, why\n"
		"each was taken and how its process ended; opens them, and follows new ones. Only\n"
		"files *.tacho directly in the folder are shown. The page is served on 127.0.0.1,\n"
		"under an address that nobody can guess, until Ctrl-C.\n\n"
		"  --dir DIR     the folder\n"
		"  --port N      listen there (default: any that is free)\n"
		"  --no-browser  print the address, and open nothing\n\n"
		"Example:\n"
		"  tacho serve --dir /var/lib/tacho\n",
	.run = run_serve,
};
