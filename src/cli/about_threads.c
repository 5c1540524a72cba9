/*
 * What `info` and `report` say about what threads were in at the end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/about.h"
#include "cli/cli.h"
#include "answer/describe.h"
#include "text/text.h"

#define SHOWN 40u      /* by info; JSON has all */
#define SHOWN_SHORT 5u /* by report */

static const char *title(const struct tacho__at_ends *list, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(list->reader, process);

	return p && p->end_how == TACHO_END_RUNNING ? "threads when last seen"
						    : "threads at the end";
}

static void put_one(const struct tacho__at_ends *list, const struct tacho__at_end *e,
		    unsigned indent)
{
	char text[TACHO__AT_END_TEXT + TEXT_SMALL];
	size_t n;

	snprintf(text, sizeof(text), "%s%s%" PRIu32 "%s: ", e->name, e->name[0] ? " (" : "thread ",
		 e->tid, e->name[0] ? ")" : "");
	n = strlen(text);
	tacho__at_end_text(text + n, list->reader, e);
	text_put_broken(stdout, text, indent, indent + 2, cli_columns(stdout));
	putchar('\n');
}

void about_at_end(const struct tacho__at_ends *list, uint32_t process)
{
	struct tacho__at_end_part p = tacho__at_end_part(list, process);

	if (!p.count)
		return;
	about_label(title(list, process));
	putchar('\n');
	for (uint32_t i = 0; i < p.count && i < SHOWN; i++) {
		about_label("");
		put_one(list, &p.at[i], 12);
	}
	if (p.count > SHOWN) {
		about_label("");
		printf("and %" PRIu32 " more: see --json\n", p.count - SHOWN);
	}
}

void about_at_end_short(const struct tacho__at_ends *list, uint32_t process)
{
	struct tacho__at_end_part p = tacho__at_end_part(list, process);
	uint32_t idle = 0, shown = 0;

	if (!p.count)
		return;
	printf("\n%s:\n", title(list, process));
	for (uint32_t i = 0; i < p.count; i++) {
		if (tacho__at_end_idles(&p.at[i])) {
			idle++;
		} else if (shown < SHOWN_SHORT) {
			fputs("  ", stdout);
			put_one(list, &p.at[i], 2);
			shown++;
		}
	}
	if (p.count - idle > shown)
		printf("  and %" PRIu32 " more: 'tacho info' has all\n", p.count - idle - shown);
	if (idle)
		printf("  %s%" PRIu32 " thread%s for work\n", shown ? "and " : "", idle,
		       idle == 1 ? " that waits" : "s that wait");
}
