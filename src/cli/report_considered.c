#include "cli/report_considered.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "text/text.h"

/* "; 1.10 s in all, what waited 320 ms"; "" of what has no size in time. */
static void put_sizes(char *out, size_t size, const struct tacho__considered *c)
{
	char ns[TACHO__TEXT], waiting[TACHO__TEXT];
	int costs = c->cost_ns > 0, waits = c->waiting_ns > 0;

	snprintf(out, size, "%s%s%s%s%s%s", costs ? "; " : "",
		 costs ? tacho__ns_text(ns, c->cost_ns) : "", costs ? " in all" : "",
		 !waits	 ? ""
		 : costs ? ", what waited "
			 : "; what waited ",
		 waits ? tacho__ns_text(waiting, c->waiting_ns) : "",
		 waits && !costs ? " in all" : "");
}

void report_considered(const struct tacho_reader *reader, const struct tacho__explanation *e)
{
	char line[CLI_MESSAGE], sizes[3 * TACHO__TEXT], name[TACHO__TEXT];

	for (uint32_t i = 0; i < e->considered_count; i++) {
		const struct tacho__considered *c = &e->considered[i];

		put_sizes(sizes, sizeof(sizes), c);
		snprintf(line, sizeof(line), "considered: %s%s%s, %s%s; dropped because %s",
			 e->process_count > 1 ? tacho__process_text(reader, name, c->process) : "",
			 e->process_count > 1 ? ": " : "", tacho__rules[c->rule].id, c->what, sizes,
			 c->reason);
		printf("\n%s", cli_colour(stdout, CLI_DIM));
		text_put_broken(stdout, line, 0, 2, cli_columns(stdout));
		fputs(cli_colour(stdout, CLI_PLAIN), stdout);
	}
	if (e->considered_more)
		printf("\n%sconsidered: %" PRIu64 " more that cost less%s",
		       cli_colour(stdout, CLI_DIM), e->considered_more,
		       cli_colour(stdout, CLI_PLAIN));
}
