#include "cli/report_considered.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "text/text.h"

void report_considered(const struct tacho_reader *reader, const struct tacho__explanation *e)
{
	char line[CLI_MESSAGE], ns[TACHO__TEXT], waiting[TACHO__TEXT], name[TACHO__TEXT];

	for (uint32_t i = 0; i < e->considered_count; i++) {
		const struct tacho__considered *c = &e->considered[i];

		snprintf(line, sizeof(line),
			 "considered: %s%s%s, %s; %s in all%s%s; dropped "
			 "because %s",
			 e->process_count > 1 ? tacho__process_text(reader, name, c->process) : "",
			 e->process_count > 1 ? ": " : "", c->rule, c->what,
			 tacho__ns_text(ns, c->cost_ns), c->waiting_ns > 0 ? ", what waited " : "",
			 c->waiting_ns > 0 ? tacho__ns_text(waiting, c->waiting_ns) : "",
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
