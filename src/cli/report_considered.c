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

static void put_one(struct json *j, const struct tacho_reader *reader,
		    const struct tacho__considered *c)
{
	const struct tacho_process *p = tacho_read_process(reader, c->process);

	json_object(j);
	json_put_string(j, "rule", c->rule);
	json_put_u64(j, "pid", p ? p->pid : 0);
	json_put_known(j, "program", p ? p->comm : "");
	json_put_string(j, "what", c->what);
	json_put_f64(j, "cost_ns", c->cost_ns);
	json_put_f64(j, "waiting_ns", c->waiting_ns);
	json_put_string(j, "reason", c->reason);
	json_object_end(j);
}

void report_considered_json(struct json *j, const struct tacho_reader *reader,
			    const struct tacho__explanation *e)
{
	json_put_array(j, "considered");
	for (uint32_t i = 0; i < e->considered_count; i++)
		put_one(j, reader, &e->considered[i]);
	json_array_end(j);
}
