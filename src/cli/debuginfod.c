/*
 * --debuginfod and TACHO_DEBUGINFOD=1: missing debug files may be fetched.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/debuginfod.h"
#include "cli/cli.h"

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
	struct cli_progress *p = arg;

	if (done == UINT64_MAX) {
		cli_progress_end(p);
		cli_progress_begin(p, p->what);
	} else {
		cli_progress(p, done, total);
	}
}

void cli_allow_debuginfod(bool asked)
{
	static struct cli_progress progress;
	const char *wanted = getenv("TACHO_DEBUGINFOD");
	char message[CLI_MESSAGE] = "";

	if (!asked && (!wanted || strcmp(wanted, "1") != 0))
		return;
	cli_progress_begin(&progress, "fetching debug information");
	/* A trace without all its names is better than none. */
	if (tacho__debuginfod_allow(show_progress, &progress, message, sizeof(message)) < 0)
		cli_warn("%s.", message);
}
