/* tacho report --ledger: who had the time of each thread, and what waited meanwhile. */
#include "cli/report_ledger.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "answer/describe.h"
#include "explain/explain.h"
#include "text/text.h"

#define KEY_MAX 256u
#define OWNERS_SHOWN 20u
#define SMALL 1000u /* of a thread's time: less is shown as one line */

/* "call clock_nanosleep at on_request (server.c:42)" */
static void put_owner(const struct tacho__ledger *l, const struct tacho__ledger_line *line,
		      int with_callback)
{
	const struct tacho__owned *o = tacho__ledger_owned(l, line);
	struct tacho__place place;
	char key[KEY_MAX], name[KEY_MAX];
	int placed = tacho__ledger_place(l, line, &place);

	fputs(tacho__owns_name(line->owns), stdout);
	if (tacho__ledger_key(l, line, key, sizeof(key))[0]) {
		putchar(' ');
		text_put(stdout, key);
	}
	if (placed && line->owns != TACHO__OWNS_CODE) {
		fputs(" at ", stdout);
		text_put(stdout, tacho__place_name(name, sizeof(name), &place));
	}
	if (placed && place.file[0]) {
		fputs(" (", stdout);
		text_put(stdout, tacho__place_file(&place));
		printf(":%" PRIu32 ")", place.line);
	}
	if (with_callback && line->function && o->kind) {
		tacho__name_of(name, sizeof(name), l->reader, o->process, o->kind, o->last_ns);
		fputs(" in ", stdout);
		text_put(stdout, name);
	}
	putchar('\n');
}

static const char *ns_or_none(char out[TACHO__TEXT], uint64_t ns)
{
	if (!ns) {
		out[0] = 0;
		return out;
	}
	return tacho__ns_text(out, (double)ns);
}

static void put_line(const struct tacho__ledger *l, const struct tacho__ledger_line *line,
		     uint64_t span)
{
	char ns[TACHO__TEXT], waiting[TACHO__TEXT];

	printf("  %9s %6.2f %%  %9s%s  ", tacho__ns_text(ns, (double)line->ns),
	       span ? (double)line->ns * 100 / (double)span : 0.0,
	       ns_or_none(waiting, line->waiting_ns), line->estimated_ns ? "~" : " ");
	put_owner(l, line, 1);
}

/* The lines of a thread; returns the first that is not. */
static uint32_t put_thread(const struct tacho_reader *reader, const struct tacho__ledger *l,
			   uint32_t thread, uint32_t line)
{
	const struct tacho__ledger_thread *t = &l->threads[thread];
	const struct tacho_thread *d = tacho_read_thread_by_number(reader, t->process, t->thread);
	const struct tacho_definition *loop =
		t->loop ? tacho_read_definition(reader, t->process, t->loop) : NULL;
	uint64_t span = t->last_ns - t->first_ns, ns = 0, waiting = 0, small = 0;
	char text[TACHO__TEXT];

	putchar('\n');
	text_put(stdout, tacho__process_text(reader, text, t->process));
	fputs(", thread ", stdout);
	text_put(stdout, d && d->name[0] ? d->name : "?");
	printf(" (%" PRIu32 ")", d ? d->tid : t->thread);
	if (loop) {
		fputs(", loop ", stdout);
		text_put(stdout, loop->name);
	}
	printf("%s, %s\n       time    share    waiting   owner\n", t->is_pool ? ", pool" : "",
	       tacho__ns_text(text, (double)span));
	for (; line < l->line_count && l->lines[line].thread == thread; line++) {
		const struct tacho__ledger_line *x = &l->lines[line];

		if (x->ns >= span / SMALL || x->waiting_ns >= span / SMALL) {
			put_line(l, x, span);
		} else {
			small++;
			ns += x->ns;
			waiting += x->waiting_ns;
		}
	}
	if (small)
		printf("  %9s %6.2f %%  %9s   %" PRIu64 " more\n", tacho__ns_text(text, (double)ns),
		       span ? (double)ns * 100 / (double)span : 0.0,
		       ns_or_none((char[TACHO__TEXT]){0}, waiting), small);
	return line;
}

static void put_owners(const struct tacho_reader *reader, const struct tacho__ledger *l)
{
	char waiting[TACHO__TEXT], ns[TACHO__TEXT], longest[TACHO__TEXT], lost[TACHO__TEXT];
	char process[TACHO__TEXT];

	printf("\nowners by cost; %s of waiting in all%s\n",
	       tacho__ns_text(waiting, (double)l->waiting_ns),
	       l->waiting_ns ? " (~: partly an estimate)" : "");
	if (!l->owner_count)
		return;
	puts("    waiting        time       lost     count    longest   owner");
	for (uint32_t i = 0; i < l->owner_count && i < OWNERS_SHOWN; i++) {
		const struct tacho__ledger_owner *o = &l->owners[i];

		if (!o->waiting_ns && !o->lost_ns)
			continue;
		printf("  %9s%s  %10s %10s %9" PRIu64 " %10s   ",
		       ns_or_none(waiting, o->waiting_ns), o->estimated_ns ? "~" : " ",
		       tacho__ns_text(ns, (double)o->ns), ns_or_none(lost, o->lost_ns), o->count,
		       ns_or_none(longest, o->longest_ns));
		if (tacho_read_process_count(reader) > 1) {
			text_put(stdout, tacho__process_text(reader, process, o->process));
			fputs(": ", stdout);
		}
		put_owner(l, &l->lines[o->line], 0);
	}
	if (l->unserved_ns)
		printf("  %9s   nobody was seen who could have served\n",
		       tacho__ns_text(waiting, (double)l->unserved_ns));
}

void report_ledger(const struct tacho_reader *reader, const struct tacho__ledger *l)
{
	uint32_t line = 0;

	for (uint32_t i = 0; i < l->thread_count; i++) {
		if (tacho__is_of_interest(&l->threads[i]))
			line = put_thread(reader, l, i, line);
		while (line < l->line_count && l->lines[line].thread == i)
			line++;
	}
	put_owners(reader, l);
	if (l->missed)
		printf("\n%" PRIu64
		       " owners or functions found no room: their time is with the others, or "
		       "not observed.\n",
		       l->missed);
}
