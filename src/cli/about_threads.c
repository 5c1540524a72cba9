/*
 * What `info` and `report` say about what threads were in at the end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/about.h"
#include "cli/cli.h"
#include "cli/describe.h"
#include "text/text.h"

#define SHOWN 40u      /* by info; JSON has all */
#define SHOWN_SHORT 5u /* by report */

/* The part of the list that is of the process. */
struct part {
	const struct tacho__at_end *at;
	uint32_t count;
};

static struct part part_of(const struct tacho__at_ends *list, uint32_t process)
{
	struct part p = {list->at, 0};
	uint32_t i = 0;

	while (i < list->count && list->at[i].process != process)
		i++;
	p.at += i;
	while (i + p.count < list->count && p.at[p.count].process == process)
		p.count++;
	return p;
}

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
	struct part p = part_of(list, process);

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
	struct part p = part_of(list, process);
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

static void put_place(struct json *j, const char *key, const struct tacho__place *p)
{
	json_key(j, key);
	if (!p->function[0] && !p->address) {
		json_null(j);
		return;
	}
	json_object(j);
	describe_place_json(j, p);
	json_object_end(j);
}

static void put_name(struct json *j, const char *key, const struct tacho__at_ends *list,
		     const struct tacho__at_end *e, uint32_t id)
{
	char name[TACHO__AT_END_TEXT];

	tacho__name_of(name, sizeof(name), list->reader, e->process, id, e->end_ns);
	json_put_known(j, key, name);
}

void about_at_end_json(struct json *j, const struct tacho__at_ends *list, uint32_t process)
{
	struct part p = part_of(list, process);
	char text[TACHO__AT_END_TEXT];

	if (!p.count)
		return;
	json_put_array(j, "threads_at_end");
	for (uint32_t i = 0; i < p.count; i++) {
		const struct tacho__at_end *e = &p.at[i];
		bool waits = e->in != TACHO__IN_NOTHING, inside = e->kind || e->in_turn;

		json_object(j);
		json_put_u64(j, "tid", e->tid);
		json_put_known(j, "name", e->name);
		json_put_not_zero(j, "signal", e->crashed);
		json_put_known(j, "inside", tacho__at_end_inside(e));
		put_name(j, "kind", list, e, e->kind);
		put_place(j, "inside_at", &e->place);
		json_put_u64_if(j, "inside_ns", inside, e->kind_ns);
		json_put_known(j, "waits", tacho__at_end_waits(e));
		json_put_u64_if(j, "waits_ns", waits && e->known, e->ns);
		json_put_bool(j, "at_most", e->at_most != 0);
		put_name(j, "call", list, e, e->call);
		json_put_u64_if(j, "on", e->on >= 0, (uint64_t)e->on);
		put_place(j, "waits_at", &e->at);
		json_put_address_if(j, "lock", e->lock != 0, e->lock);
		json_put_not_zero(j, "owner", e->owner);
		put_name(j, "loop", list, e, e->loop);
		json_put_bool(j, "idle", tacho__at_end_idles(e));
		json_put_string(j, "text", tacho__at_end_text(text, list->reader, e));
		json_object_end(j);
	}
	json_array_end(j);
}
