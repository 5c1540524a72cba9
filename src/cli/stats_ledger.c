#include "cli/stats_ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/describe.h"
#include "explain/explain.h"
#include "text/text.h"

#define NAME_WIDTH 44u
#define NUMBERS_WIDTH 49u

int stats_read(struct tacho_reader *reader, void (*progress)(void *arg, uint64_t ns), void *arg,
	       struct tacho__summary **sum, struct tacho__ledger **ledger)
{
	int one = tacho_read_process_count(reader) < 2, error = -ENOMEM;
	struct tacho__facts facts;

	/* Of several processes each has a window of its own. */
	*ledger = one ? tacho__ledger_new(reader) : NULL;
	if (one && !*ledger)
		return -ENOMEM;
	if (one)
		facts = tacho__ledger_facts(*ledger);
	*sum = tacho__summary_make(reader, one ? &facts : NULL, (uint32_t)one, progress, arg,
				   &error);
	if (!*sum)
		return error;
	if (one)
		error = tacho__ledger_turn_page(*ledger);
	if (one && !error)
		error = tacho__ledger_close(*ledger);
	if (!one)
		*ledger = tacho__ledger_make(reader, &error);
	return error;
}

/* ----------------------------------------------------------------------- threads */

/* By owner, of one thread. */
static void add_up(const struct tacho__ledger *l, uint32_t thread, uint64_t ns[TACHO__OWNS_COUNT])
{
	for (uint32_t i = 0; i < TACHO__OWNS_COUNT; i++)
		ns[i] = 0;
	for (uint32_t i = 0; i < l->line_count; i++)
		if (l->lines[i].thread == thread)
			ns[l->lines[i].owns] += l->lines[i].ns;
}

static void put_thread(const struct tacho_reader *reader, const struct tacho__ledger *l,
		       uint32_t index, size_t width)
{
	const struct tacho__ledger_thread *t = &l->threads[index];
	const struct tacho_thread *d = tacho_read_thread_by_number(reader, t->process, t->thread);
	uint64_t ns[TACHO__OWNS_COUNT], blocked, kernel;
	char text[6][TACHO__TEXT], name[2 * TACHO__TEXT], process[TACHO__TEXT], more[TACHO__TEXT];

	add_up(l, index, ns);
	blocked = ns[TACHO__OWNS_CALL] + ns[TACHO__OWNS_LOCK];
	kernel = ns[TACHO__OWNS_LATE] + ns[TACHO__OWNS_DESCHEDULED] + ns[TACHO__OWNS_THROTTLED] +
		 ns[TACHO__OWNS_STOPPED] + ns[TACHO__OWNS_FAULTING];
	process[0] = 0;
	if (tacho_read_process_count(reader) > 1)
		tacho__process_text(reader, process, t->process);
	snprintf(name, sizeof(name), "%s%s%s (%" PRIu32 ")", process, process[0] ? ": " : "",
		 d && d->name[0] ? d->name : "thread", d ? d->tid : t->thread);
	cli_table_name(name, width);
	printf(" %8s %7s %7s %7s %7s %7s",
	       tacho__ns_text(text[0], (double)(t->last_ns - t->first_ns)),
	       tacho__ns_text(text[1], (double)ns[TACHO__OWNS_IDLE]),
	       tacho__ns_text(text[2], (double)ns[TACHO__OWNS_CODE]),
	       tacho__ns_text(text[3], (double)blocked), tacho__ns_text(text[4], (double)kernel),
	       tacho__ns_text(text[5], (double)t->waiting_ns));
	more[0] = 0;
	if (ns[TACHO__OWNS_NOT_OBSERVED])
		snprintf(more, sizeof(more), "%s not observed",
			 tacho__ns_text(text[0], (double)ns[TACHO__OWNS_NOT_OBSERVED]));
	cli_table_remark(more, width + NUMBERS_WIDTH);
}

void stats_threads(const struct tacho_reader *reader, const struct tacho__ledger *l, uint64_t top)
{
	size_t width = cli_table_names(NAME_WIDTH, NUMBERS_WIDTH);
	uint64_t shown = 0, all = 0;

	for (uint32_t i = 0; i < l->thread_count; i++)
		all += (uint64_t)tacho__is_of_interest(&l->threads[i]);
	if (!all)
		return;
	printf("%s%-*s%s %8s %7s %7s %7s %7s %7s\n", cli_colour(stdout, CLI_BOLD), (int)width,
	       "time of threads", cli_colour(stdout, CLI_PLAIN), "all", "idle", "code", "blocked",
	       "kernel", "waiting");
	for (uint32_t i = 0; i < l->thread_count && shown < top; i++)
		if (tacho__is_of_interest(&l->threads[i])) {
			put_thread(reader, l, i, width);
			shown++;
		}
	if (all > shown)
		printf("%s... %" PRIu64 " more, see --top%s\n", cli_colour(stdout, CLI_DIM),
		       all - shown, cli_colour(stdout, CLI_PLAIN));
	putchar('\n');
}

void stats_threads_json(struct json *j, const struct tacho_reader *reader,
			const struct tacho__ledger *l)
{
	json_put_array(j, "threads");
	for (uint32_t i = 0; i < l->thread_count; i++) {
		const struct tacho__ledger_thread *t = &l->threads[i];
		const struct tacho_process *p = tacho_read_process(reader, t->process);
		uint64_t ns[TACHO__OWNS_COUNT];

		if (!tacho__is_of_interest(t))
			continue;
		add_up(l, i, ns);
		json_object(j);
		json_put_u64(j, "pid", p ? p->pid : 0);
		describe_thread_json(j, "tid",
				     tacho_read_thread_by_number(reader, t->process, t->thread));
		json_put_u64(j, "from_ns", t->first_ns);
		json_put_u64(j, "to_ns", t->last_ns);
		json_put_u64(j, "waiting_ns", t->waiting_ns);
		json_put_object(j, "owners");
		for (uint32_t k = 1; k < TACHO__OWNS_COUNT; k++)
			json_put_u64(j, tacho__owns_name((enum tacho__owns)k), ns[k]);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

const struct tacho__ledger_thread *stats_thread(const struct tacho__ledger *l, uint32_t process,
						uint32_t thread)
{
	for (uint32_t i = 0; i < l->thread_count; i++)
		if (l->threads[i].process == process && l->threads[i].thread == thread)
			return &l->threads[i];
	return NULL;
}

double stats_busy(const struct tacho__ledger_thread *t)
{
	uint64_t all = t ? t->last_ns - t->first_ns : 0;

	return all ? 1 - (double)t->idle_ns / (double)all : 0;
}

/* ---------------------------------------------------------------- locks and calls */

const struct tacho__hist *stats_lock(const struct tacho_reader *reader,
				     const struct tacho__ledger *l, const struct tacho__lock_sum *k,
				     uint64_t *ns)
{
	const struct tacho__lock *worst = k->worst_any.count ? &k->worst_any.at[0] : NULL;
	int is_signal = k->is_signal || (worst && tacho__idles(reader, worst));
	uint32_t place = k->worst.count ? k->worst.at[0].place : 0;

	*ns = 0;
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));)
		if (o->owns == TACHO__OWNS_LOCK && o->process == k->process &&
		    (o->is_signal ? is_signal && o->entry.key[1] == place : o->lock == k->lock))
			*ns += o->ns;
	/* What threads hand each other is waited for where there is nothing to do. */
	if (is_signal)
		return *ns && k->inside.count ? &k->inside : NULL;
	return &k->ns;
}

int stats_is_work_place(const struct tacho__ledger *l, const struct tacho__call_sum *k)
{
	uint64_t idle = 0, ns = 0;

	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));)
		if (o->owns == TACHO__OWNS_CALL && o->process == k->process && o->name == k->name &&
		    o->place == k->stack) {
			idle += o->work_place_ns;
			ns += o->ns;
		}
	return idle > ns;
}
