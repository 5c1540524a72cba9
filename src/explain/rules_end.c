/* How a process ended, where that is no ordinary end, and what was open then. */
#include <stdio.h>
#include <string.h>

#include "explain/rules.h"

#define SIGNAL_ABRT 6
#define SIGNAL_BUS 7
#define SIGNAL_KILL 9
#define SIGNAL_SEGV 11

/* Numbers and names of the recorded host, which is a Linux. */
static const struct {
	uint32_t number;
	const char *name;
	int fatal;    /* the program did something wrong */
	int ordinary; /* somebody asked it to end */
} signals[] = {
	{1, "SIGHUP", 0, 1},   {2, "SIGINT", 0, 1},   {4, "SIGILL", 1, 0},  {6, "SIGABRT", 1, 0},
	{7, "SIGBUS", 1, 0},   {8, "SIGFPE", 1, 0},   {9, "SIGKILL", 0, 0}, {11, "SIGSEGV", 1, 0},
	{13, "SIGPIPE", 0, 1}, {15, "SIGTERM", 0, 1},
};
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* SIGNALS: none of these. */
static uint32_t find_signal(uint32_t number)
{
	uint32_t i = 0;

	while (i < SIGNALS && signals[i].number != number)
		i++;
	return i;
}

const char *tacho__signal_text(char out[TACHO__TEXT], uint32_t number)
{
	uint32_t i = find_signal(number);

	if (i < SIGNALS)
		return signals[i].name;
	snprintf(out, TACHO__TEXT, "signal %u", number);
	return out;
}

static int is_ordinary(uint32_t number)
{
	uint32_t i = find_signal(number);

	return i < SIGNALS && signals[i].ordinary;
}

static int has_crash_record(const struct tacho__explaining *x, uint32_t process)
{
	for (uint32_t i = 0; i < tacho_read_crash_count(x->reader); i++)
		if (tacho_read_crash(x->reader, i)->process == process)
			return 1;
	return 0;
}

static int hangs(const struct tacho__explaining *x, uint32_t process)
{
	for (uint32_t i = 0; i < x->out->count; i++) {
		const struct tacho__finding *f = &x->out->findings[i];

		if (f->process == process &&
		    (f->rule == TACHO__RULE_DEADLOCK || f->rule == TACHO__RULE_HANG ||
		     f->rule == TACHO__RULE_NEVER_YIELDS))
			return 1;
	}
	return 0;
}

/* --------------------------------------------------------------- what was open */

static int was_open(const struct tacho__explaining *x, const struct tacho__poll *p)
{
	return p->end_ns >= x->sum->process[p->at.process].end_ns;
}

static const char *poll_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
			     const struct tacho__poll *p)
{
	if (p->kind)
		return tacho__id_text(x, out, p->at.process, p->kind);
	snprintf(out, TACHO__TEXT, "a turn of its loop");
	return out;
}

/* Of several threads, the one that was in a callback for the shortest time: what ends a process is
   something that it has just begun. */
static const struct tacho__poll *newest_open(const struct tacho__explaining *x,
					     const struct tacho__opened *o)
{
	const struct tacho__poll *best = NULL;

	for (uint32_t i = 0; o && i < TACHO__OPENED && i < o->count; i++)
		if (was_open(x, &o->at[i]) && (!best || o->at[i].begin_ns > best->begin_ns))
			best = &o->at[i];
	return best;
}

static void say_open(struct tacho__explaining *x, struct tacho__finding *f,
		     const struct tacho__opened *o)
{
	char name[TACHO__TEXT], thread[TACHO__TEXT], ns[TACHO__TEXT];

	for (uint32_t i = 0; o && i < TACHO__OPENED && i < o->count; i++) {
		const struct tacho__poll *p = &o->at[i];

		if (!was_open(x, p))
			continue;
		tacho__say_evidence(f, p->at.thread, p->begin_ns, p->end_ns,
				    (double)(p->end_ns - p->begin_ns), "ns",
				    "thread %s was in %s, for %s",
				    tacho__thread_text(x, thread, p->at.process, p->at.thread),
				    poll_text(x, name, p),
				    tacho__ns_text(ns, (double)(p->end_ns - p->begin_ns)));
	}
}

/* ------------------------------------------------------------------------ ends */

/* Of a turn whose callbacks are not seen, what was sampled in it tells the place. */
static void where_sampled(const struct tacho__explaining *x, struct tacho__finding *f,
			  const struct tacho__poll *open)
{
	const struct tacho__open_poll *o =
		tacho__table_find(&x->gathered.open, open->at.process, open->at.thread);
	struct tacho__hottest h;

	if (o && o->poll.begin_ns == open->begin_ns &&
	    tacho__find_hottest(x, f->process, &o->samples, open->end_ns, 1, &h))
		tacho__where_hottest(x, f, &h, open->end_ns);
}

/* A finding about the end; what was open stands behind its summary. */
static struct tacho__finding *find_end(struct tacho__explaining *x, uint32_t process,
				       enum tacho__rule_id rule, enum tacho__severity severity,
				       const char *what)
{
	const struct tacho_process *p = tacho_read_process(x->reader, process);
	const struct tacho__opened *o = tacho__table_find(&x->gathered.opened, process, 0);
	const struct tacho__poll *open = newest_open(x, o);
	uint64_t end_ns = x->sum->process[process].end_ns;
	char name[TACHO__TEXT], where[2 * TACHO__TEXT];
	struct tacho__finding *f = tacho__find(x, rule, severity, process, 0);

	f->subject = (uint64_t)p->end_how << 32 | p->end_status;
	if (open) {
		f->loop = open->at.loop;
		f->kind = open->kind;
		f->thread = open->at.thread;
		if (open->kind)
			tacho__where_id(x, f, open->kind, open->end_ns);
		else
			where_sampled(x, f, open);
	}
	tacho__say_summary(f, "%s %s%s%s", p->comm[0] ? p->comm : "the process", what,
			   open ? " while in " : "",
			   !open				       ? ""
			   : f->where_count && f->where[0].function[0] ? tacho__where_text(where, f)
								       : poll_text(x, name, open));
	tacho__say_evidence(f, f->thread, end_ns, end_ns, (double)p->end_status, "", "%s",
			    open ? "its end" : "its end; no callback was open");
	say_open(x, f, o);
	return f;
}

/* The handler does not run where there is no room for its frame, nor for a signal that is blocked. */
static void say_no_record(struct tacho__explaining *x, struct tacho__finding *f, uint32_t number)
{
	uint64_t end_ns = x->sum->process[f->process].end_ns;
	int stack = number == SIGNAL_SEGV || number == SIGNAL_BUS;

	if (!tacho__source_is_on(x, f->process, "crash_handler")) {
		tacho__say_advice(f, "There is no crash record: what was open is all that is "
				     "known of the place. A core file, or tacho's crash handler, "
				     "would have the stack.");
		return;
	}
	tacho__say_evidence(f, f->thread, end_ns, end_ns, (double)number, "",
			    "no crash record: %sthe signal was blocked",
			    stack ? "the stack had overflowed, or " : "");
	tacho__say_advice(f,
			  "What was open is all that is known of the place%s. A core file would "
			  "have the stack.",
			  stack ? ": look for recursion and large arrays below it" : "");
}

static void find_killed(struct tacho__explaining *x, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(x->reader, process);
	uint32_t s = find_signal(p->end_status);
	char what[2 * TACHO__TEXT], name[TACHO__TEXT];
	struct tacho__finding *f;

	snprintf(what, sizeof(what), "was killed by %s%s", tacho__signal_text(name, p->end_status),
		 p->end_flags & TACHO_END_CORE ? ", which dumped core," : "");
	if (p->end_flags & TACHO_END_NO_MEMORY) {
		find_end(x, process, TACHO__RULE_OUT_OF_MEMORY, TACHO__SEVERITY_CRITICAL,
			 "was killed because memory ran out");
	} else if (s < SIGNALS && signals[s].fatal) {
		if (has_crash_record(x, process))
			return;
		/* Watchdogs abort what hangs. */
		f = find_end(x, process, TACHO__RULE_CRASH,
			     p->end_status == SIGNAL_ABRT && hangs(x, process)
				     ? TACHO__SEVERITY_WARNING
				     : TACHO__SEVERITY_CRITICAL,
			     what);
		say_no_record(x, f, p->end_status);
	} else if (!is_ordinary(p->end_status)) {
		f = find_end(x, process, TACHO__RULE_END, TACHO__SEVERITY_INFO, what);
		tacho__say_advice(f, p->end_status == SIGNAL_KILL
					     ? "Somebody sent it: a watchdog, a supervisor "
					       "whose time-out was over, or a person."
					     : "See who sends this signal.");
	}
}

void tacho__rules_end(struct tacho__explaining *x)
{
	const struct tacho_process *p = tacho_read_process(x->reader, x->process);
	char what[TACHO__TEXT];

	x->out->processes[x->process].ended_badly |=
		(p->end_how == TACHO_END_KILLED && !is_ordinary(p->end_status)) ||
		hangs(x, x->process);
	if (p->end_how == TACHO_END_KILLED) {
		find_killed(x, x->process);
	} else if (p->end_how == TACHO_END_EXITED && p->end_status) {
		snprintf(what, sizeof(what), "exited with status %u", p->end_status);
		find_end(x, x->process, TACHO__RULE_END, TACHO__SEVERITY_INFO, what);
	}
}
