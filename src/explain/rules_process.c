/* The process as a whole: its end, what its requests wait for, and what was recorded of it. */
#include <stdlib.h>
#include <string.h>

#include "explain/rules.h"
#include "format/definition.h"
#include "model/language.h"

#define IDLE 0.01 /* of the window at most, for each loop */
#define SURVIVED_NS 1000000000u

/* Whether the function is one in which a program ends itself, or what languages have above it. */
static int is_abort(const char *function)
{
	static const char *const begins[] = {
		"abort", "raise",    "gsignal",	    "__assert",	   "__interceptor_", "__cxa_",
		"std::", "__cxxabi", "__gnu_cxx::", "core::panic", "rust_",	     "__rust",
	};

	for (uint32_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(function, begins[i], strlen(begins[i])) == 0)
			return 1;
	return 0;
}

/* The innermost place that is the program's own; who aborts it is not. */
static uint32_t crash_place(const struct tacho_crash_info *c, const struct tacho__place *places,
			    uint32_t n)
{
	uint32_t own = tacho__places_own(places, n), i = own;

	while (c->signal == 6 && i < n &&
	       (!tacho__place_is_own(&places[i]) || is_abort(places[i].function)))
		i++;
	if (i < n)
		return i;
	return own < n ? own : 0;
}

/* What is known beside the place. */
static void crash_evidence(struct tacho__finding *f, const struct tacho_crash_info *c,
			   const struct tacho_process *p)
{
	/* Of a signal that was sent there is the sender in the place of the address. */
	uint32_t sender = (uint32_t)c->address;

	if (c->said[0])
		tacho__say_evidence(f, 0, c->ns, c->ns, (double)c->signal, "", "%s", c->said);
	else if (c->code > 0)
		tacho__say_evidence(f, 0, c->ns, c->ns, (double)c->signal, "", "at address 0x%llx",
				    (unsigned long long)c->address);
	else if (p && sender == p->pid)
		tacho__say_evidence(f, 0, c->ns, c->ns, (double)c->signal, "",
				    "raised by the process itself");
	else
		tacho__say_evidence(f, 0, c->ns, c->ns, (double)c->signal, "", "sent by process %u",
				    sender);
}

/* Whether the process lived on for long: it still does, or something else killed it. */
static int is_survived(const struct tacho__explaining *x, const struct tacho_crash_info *c,
		       const struct tacho_process *p)
{
	if (c->survived || !p)
		return c->survived;
	if (p->end_how == TACHO_END_KILLED)
		return p->end_status != (uint32_t)c->signal && p->until_ns > c->ns + SURVIVED_NS;
	return p->alive == TACHO_ALIVE_YES && x->sum->last_ns > c->ns + SURVIVED_NS;
}

static void find_crash(struct tacho__explaining *x, const struct tacho_crash_info *c)
{
	const struct tacho_process *p = tacho_read_process(x->reader, c->process);
	int survived = is_survived(x, c, p);
	struct tacho__place places[TACHO__PLACES_MAX];
	char where[2 * TACHO__TEXT], name[TACHO__TEXT];
	struct tacho__finding *f =
		tacho__find(x, "crash", survived ? TACHO__SEVERITY_INFO : TACHO__SEVERITY_CRITICAL,
			    c->process, survived ? 0 : tacho__window_ns(x));
	uint32_t n;

	/* A handler that ends the program tells less than what it was called for. */
	n = tacho__places_of_frames(x->reader, c->process, c->frames + c->interrupted,
				    c->frame_count - c->interrupted, 1, c->ns, places,
				    TACHO__PLACES_MAX);
	for (uint32_t i = crash_place(c, places, n); i < n && f->where_count < TACHO__WHERE; i++)
		f->where[f->where_count++] = places[i];
	tacho__say_summary(f, "thread %s %s %s (%d)%s%s", c->thread_name,
			   survived ? "survived" : "crashed with",
			   tacho__signal_text(name, (uint32_t)c->signal), c->signal,
			   f->where_count ? " in " : "",
			   f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f, survived ? "The program's own handler of the signal went on after it."
				      : "The stack above and the last events of this thread "
					"('tacho cat') show how it got there.");
	crash_evidence(f, c, p);
}

/* ------------------------------------------------------------------- spans */

double tacho__idle_share(const struct tacho__explaining *x, uint32_t process)
{
	uint64_t busy = 0, parked = 0;

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));) {
		if (l->process == process) {
			busy += l->busy_ns;
			parked += l->parked_ns;
		}
	}
	return busy + parked ? (double)parked / (double)(busy + parked) : 0;
}

static void find_downstream(struct tacho__explaining *x, const struct tacho__span_sum *k)
{
	double p99 = (double)tacho__hist_at(&k->ns, 0.99);
	const struct tacho__span *s = &k->worst.at[0];
	char ns[TACHO__TEXT], name[TACHO__TEXT];
	struct tacho__finding *f;

	/* Spans of a thread are its own doing. */
	if (!k->async || k->ns.count < 5 || tacho__is_runtime_span(x, k->name))
		return;
	tacho__id_text(x, name, k->process, k->name);
	if (tacho__below(x, "downstream-wait", name, (double)k->ns.sum / 2, p99,
			 "downstream-wait.warn"))
		return;
	if (tacho__idle_share(x, k->process) < 0.5) {
		tacho__consider(x, "downstream-wait", name, (double)k->ns.sum / 2, 0,
				"the loops were busy meanwhile");
		return;
	}
	f = tacho__find(x, "downstream-wait", TACHO__SEVERITY_WARNING, k->process,
			(double)k->ns.sum / 2);
	tacho__where_id(x, f, k->name, x->sum->last_ns);
	tacho__say_summary(f,
			   "%s takes up to %s while the loops idle: it waits for something outside "
			   "this process",
			   tacho__id_text(x, name, k->process, k->name),
			   tacho__ns_text(ns, (double)k->ns.most));
	tacho__say_advice(
		f, "Look at what it calls: 'tacho blame --span' shows when it waited and for "
		   "what.");
	tacho__say_evidence(f, s->at.thread, s->begin_ns, s->end_ns,
			    (double)(s->end_ns - s->begin_ns), "ns", "the longest took %s", ns);
}

static void find_outlier(struct tacho__explaining *x, uint32_t process, uint32_t id,
			 const struct tacho__hist *h, uint32_t thread, uint64_t from_ns,
			 uint64_t to_ns)
{
	double p50 = (double)tacho__hist_at(h, 0.5), most = (double)h->most;
	char ns[TACHO__TEXT], name[TACHO__TEXT], usual[TACHO__TEXT];
	struct tacho__finding *f;

	if (h->count < 20 || most < tacho__limit(x, "outlier.ns") ||
	    most < tacho__limit(x, "outlier.ratio") * p50)
		return;
	f = tacho__find(x, "outlier", TACHO__SEVERITY_INFO, process, most);
	f->kind = id;
	f->thread = thread;
	tacho__where_id(x, f, id, to_ns);
	tacho__say_summary(f, "%s took %s once, %.0f times as long as usual (%s)",
			   tacho__id_text(x, name, process, id), tacho__ns_text(ns, most),
			   most / (p50 > 0 ? p50 : 1), tacho__ns_text(usual, p50));
	tacho__say_advice(f, "'tacho blame --slowest 5' shows where its time went.");
	tacho__say_evidence(f, thread, from_ns, to_ns, most, "ns", "the longest of %llu",
			    (unsigned long long)h->count);
}

/* ---------------------------------------------------------- what was recorded */

static double share_of(double missing, double rest)
{
	return missing > 0 ? 100.0 * missing / (missing + rest) : 0;
}

/* Records that are missing in the window, or that never found room in the box. */
static void find_loss(struct tacho__explaining *x, uint32_t process)
{
	const struct tacho__process_sum *p = &x->sum->process[process];
	double missing = (double)(p->missing + p->dropped);
	double never =
		tacho__counted(x, process, "no_chunk") + tacho__counted(x, process, "no_thread");
	double ever = (double)p->events + tacho__counted(x, process, "overwritten_records");
	double share = share_of(missing, (double)p->events);
	struct tacho__finding *f;

	if (share_of(never, ever) > share) {
		missing = never;
		share = share_of(never, ever);
	}
	if (share < tacho__limit(x, "recorder-loss.share"))
		return;
	/* When most is missing, what else is found may be wrong. */
	f = tacho__find(x, "recorder-loss",
			share >= tacho__limit(x, "recorder-loss.critical")
				? TACHO__SEVERITY_CRITICAL
			: share >= tacho__limit(x, "recorder-loss.warn") ? TACHO__SEVERITY_WARNING
									 : TACHO__SEVERITY_INFO,
			process, 0);
	tacho__say_summary(f,
			   "%.0f %% of the records are missing (%.0f): the box was too small for "
			   "all threads",
			   share, missing);
	tacho__say_advice(f, "Raise the budget (--memory, TACHO_MAX_BYTES) or count short polls "
			     "(--poll-threshold).");
	tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, missing, "records",
			    "%.0f records are missing", missing);
}

static int has_problem(const struct tacho__explaining *x, const char *name)
{
	for (uint32_t i = 0; i < tacho_read_problem_count(x->reader); i++) {
		const struct tacho_problem *p = tacho_read_problem(x->reader, i);

		if (p->process == x->process && strcmp(p->name, name) == 0)
			return 1;
	}
	return 0;
}

/* Times that are wrong are no better than records that are missing: the clock went back, in the
   window or, as the recorder counted, since it began; or nobody knows how fast it goes. */
static void find_bad_clock(struct tacho__explaining *x, uint32_t process)
{
	double equal = tacho__counted(x, process, "clock_back");
	double ever = (double)x->sum->process[process].events +
		      tacho__counted(x, process, "overwritten_records");
	double share = ever > 0 ? 100.0 * equal / ever : 0;
	int back = has_problem(x, "clock-back"), unknown = has_problem(x, "clock-unknown");
	struct tacho__finding *f;

	if (!back && !unknown && share < tacho__limit(x, "recorder-loss.warn"))
		return;
	f = tacho__find(x, "recorder-loss", TACHO__SEVERITY_CRITICAL, process, 0);
	if (unknown)
		tacho__say_summary(f, "nothing says how fast the recording's clock went: times, "
				      "and the findings that rest on them, mean nothing");
	else
		tacho__say_summary(f, "the recording's clock went back: times, and the findings "
				      "that rest on them, may be wrong");
	tacho__say_advice(f, "Record again. This happens when a virtual machine is moved or "
			     "restored; if it is the CPU's own clock, set TACHO_CLOCK=monotonic.");
	if (!back && !unknown)
		tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, equal, "records",
				    "%.0f records have the time of the one before", equal);
}

/* Of the threads that a quota kept from running: how many, and what it took of the one it took most
   of, as the ledger has it. */
static double most_throttled(const struct tacho__explaining *x, uint32_t process, uint32_t *threads)
{
	const struct tacho__ledger *l = x->out->ledger;
	double *ns = calloc(l->thread_count + 1u, sizeof(*ns)), most = 0;

	*threads = 0;
	for (const struct tacho__owned *o = NULL; ns && (o = tacho__table_next(&l->owned, o));) {
		if (o->process != process || !o->ns ||
		    (o->owns != TACHO__OWNS_THROTTLED && o->reason != TACHO__LATE_QUOTA))
			continue;
		*threads += ns[o->thread] <= 0;
		ns[o->thread] += (double)o->ns;
		most = ns[o->thread] > most ? ns[o->thread] : most;
	}
	free(ns);
	return most;
}

/* The counter of the hooks: how long a quota stopped the process, in us, since it was set up. Each
   CPU counts for itself. */
static void find_throttled(struct tacho__explaining *x, const struct tacho__counter_sum *k)
{
	const struct tacho_definition *d = tacho_read_definition(x->reader, k->process, k->name);
	double ns = (k->last - k->first) * 1000, share = 100.0 * ns / tacho__window_ns(x);
	char text[TACHO__TEXT], thread[TACHO__TEXT];
	struct tacho__finding *f;
	uint32_t threads;
	double most;

	if (!d || d->def_class != TACHO_DEF_COUNTER || strcmp(d->name, "cgroup throttled") != 0 ||
	    tacho__below(x, "cpu-throttled", "the CPU quota", ns, share, "cpu-throttled.share"))
		return;
	f = tacho__find(x, "cpu-throttled",
			share >= 5 * tacho__limit(x, "cpu-throttled.share")
				? TACHO__SEVERITY_CRITICAL
				: TACHO__SEVERITY_WARNING,
			k->process, ns);
	most = most_throttled(x, k->process, &threads);
	tacho__ns_text(text, ns);
	if (threads <= 1 && share <= 100)
		tacho__say_summary(f,
				   "the CPU quota of its cgroup stopped the process for %s, %.0f "
				   "%% of the window",
				   text, share);
	else if (!threads)
		tacho__say_summary(f,
				   "the CPU quota of its cgroup stopped its threads for %s, added "
				   "up over all CPUs",
				   text);
	else
		tacho__say_summary(
			f,
			"the CPU quota of its cgroup stopped its threads for %s, added "
			"up over all CPUs, and one of them for %s, %.0f %% of the window",
			text, tacho__ns_text(thread, most), 100 * most / tacho__window_ns(x));
	tacho__say_advice(f, "Raise the quota (cpu.max, the CPU limit of the container), or use "
			     "fewer threads at once: when a period's share is used up, all of them "
			     "stop until the next period.");
	tacho__say_evidence(f, 0, k->first_ns, k->last_ns, ns, "ns", "stopped by the quota for %s",
			    text);
}

/* 1: there is enough to say that nothing is wrong. */
static int enough(const struct tacho__explaining *x)
{
	return tacho__window_ns(x) >= tacho__limit(x, "not-enough-data.ns") &&
	       (double)x->sum->events >= tacho__limit(x, "not-enough-data.events");
}

int tacho__is_idle(const struct tacho__explaining *x)
{
	uint64_t busy = 0;

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));) {
		/* One that could run has something to do. */
		if (l->busy_ns + l->delay_ns > busy)
			busy = l->busy_ns + l->delay_ns;
	}
	return x->sum->loops.count &&
	       tacho__window_ns(x) >= tacho__limit(x, "not-enough-data.ns") &&
	       (double)busy <= IDLE * tacho__window_ns(x);
}

static void find_not_enough(struct tacho__explaining *x)
{
	char ns[TACHO__TEXT];
	struct tacho__finding *f;
	uint32_t loops = x->sum->loops.count;

	if ((enough(x) && loops) || tacho__is_idle(x))
		return;
	f = tacho__find(x, "not-enough-data", TACHO__SEVERITY_INFO, x->process, 0);
	if (enough(x))
		tacho__say_summary(f, "no loop was seen, so there is nothing to judge");
	else
		tacho__say_summary(
			f, "%llu events in %s are too few to tell",
			(unsigned long long)x->sum->events,
			tacho__ns_text(ns, (double)(x->sum->last_ns - x->sum->first_ns)));
	tacho__say_advice(f,
			  "Record for longer, under load. 'tacho doctor' says what can be recorded "
			  "of a program.");
}

static int is_covered(const struct tacho__explaining *x, const char *rule)
{
	for (uint32_t i = 0; i < x->out->coverage_count; i++)
		if (strcmp(x->out->coverage[i].rule, rule) == 0)
			return 1;
	return 0;
}

/* Tokio's workers are seen, and nobody tells of their tasks. */
static int has_silent_tokio(const struct tacho__explaining *x)
{
	int seen = 0;

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));)
		if (l->level == TACHO_LEVEL_API)
			return 0;
	for (uint32_t i = 0; i < tacho_read_thread_count(x->reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(x->reader, i);

		seen |= t->process == x->process && tacho__is_tokio(t->name);
	}
	return seen;
}

/* Rules that need what only some programs tell. */
static void cover_told(struct tacho__explaining *x)
{
	const struct tacho__summary *s = x->sum;
	int works = s->works.count != 0 || x->out->ledger->pool_count, spans = s->spans.count != 0,
	    late = 0, gauges = 0, silent = has_silent_tokio(x);

	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&s->kinds, k));)
		late |= k->late.count != 0;
	for (const struct tacho__counter_sum *k = NULL; (k = tacho__table_next(&s->counters, k));) {
		if (!k->depth) {
			const struct tacho_definition *d =
				tacho_read_definition(x->reader, k->process, k->name);

			gauges |= d && d->def_class == TACHO_DEF_GAUGE &&
				  strcmp(d->name, TACHO_GAUGE_CPUS) != 0;
		}
	}
	tacho__cover(x, "pool-exhausted", works, "%s", works ? "" : "no work of a pool was seen");
	tacho__cover(x, "timer-late", late, "%s", late ? "" : "no timer that says when it was due");
	tacho__cover(x, "downstream-wait", spans, "%s", spans ? "" : "the program tells no spans");
	/* Those of libuv are recorded only when there is something in them. */
	gauges |= tacho__source_is_on(x, x->process, "libuv");
	tacho__cover(x, "write-backlog", gauges, "%s", gauges ? "" : "no gauge of what is queued");
	tacho__cover(x, "memory-growth", gauges, "%s",
		     gauges ? "" : "the program tells no gauge of its memory");
	tacho__cover(x, "stuck-task", !silent, "%s", silent ? TACHO__TOKIO_HOW : "");
	tacho__cover(x, "task-leak", !silent, "%s", silent ? "no task was told" : "");
	for (uint32_t i = 0; i < tacho__rule_count; i++)
		if (!is_covered(x, tacho__rules[i].id))
			tacho__cover(x, tacho__rules[i].id, 1, "%s", "");
}

/* A callback that had not ended where the records do, of a process whose end nobody saw. */
static void cover_unseen_end(struct tacho__explaining *x)
{
	const struct tacho__poll *last = NULL;
	char name[TACHO__TEXT];

	if (!tacho__ended_unseen(tacho_read_process(x->reader, x->process)))
		return;
	for (const struct tacho__open_poll *o = NULL;
	     (o = tacho__table_next(&x->gathered.open, o));)
		if (o->poll.kind && o->poll.end_ns >= x->sum->process[x->process].end_ns &&
		    (!last || o->poll.begin_ns > last->begin_ns))
			last = &o->poll;
	if (!last)
		return;
	x->out->processes[x->process].ended_badly = 1;
	tacho__callback_text(x, name, last);
	tacho__cover(x, "never-yields", 0, "%s had not come back, and nobody saw until when", name);
	tacho__cover(x, "hang", 0, "%s had not come back, and nobody saw until when", name);
}

static void cover(struct tacho__explaining *x)
{
	uint32_t p = x->process;
	int samples = tacho__source_is_on(x, p, "cpu_samples") || x->sum->process[p].samples;
	int calls = tacho__source_is_on(x, p, "calls") || x->sum->calls.count;
	int locks = tacho__source_is_on(x, p, "locks") || x->sum->locks.count;
	int sched = tacho__source_is_on(x, p, "sched");

	tacho__cover(x, "long-callback", 1,
		     samples ? ""
			     : "without CPU samples: places are those of "
			       "the callbacks");
	tacho__cover(x, "blocking-call", calls, calls ? "" : "blocking calls were not recorded");
	tacho__cover(x, "lock-contention", locks, locks ? "" : "waits for locks were not recorded");
	tacho__cover(x, "kernel-scheduling-delay", sched,
		     sched ? "" : "the kernel's counts of scheduling were not recorded");
	tacho__cover(x, "process-pause", samples,
		     samples ? "" : "without CPU samples: only stops that were seen from outside");
	tacho__cover(x, "wake-latency", 1, "%llu wakes were seen",
		     (unsigned long long)x->sum->process[p].wakes.count);
	cover_unseen_end(x);
	cover_told(x);
}

void tacho__rules_process(struct tacho__explaining *x)
{
	cover(x);
	find_not_enough(x);
	for (uint32_t i = 0; i < tacho_read_crash_count(x->reader); i++)
		if (tacho_read_crash(x->reader, i)->process == x->process)
			find_crash(x, tacho_read_crash(x->reader, i));
	find_loss(x, x->process);
	find_bad_clock(x, x->process);
	for (const struct tacho__counter_sum *k = NULL;
	     (k = tacho__table_next(&x->sum->counters, k));)
		find_throttled(x, k);
	for (const struct tacho__span_sum *k = NULL; (k = tacho__table_next(&x->sum->spans, k));) {
		if (!k->worst.count)
			continue;
		find_downstream(x, k);
		find_outlier(x, k->process, k->name, &k->ns, k->worst.at[0].at.thread,
			     k->worst.at[0].begin_ns, k->worst.at[0].end_ns);
	}
	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&x->sum->kinds, k));) {
		if (k->kind && k->worst.count)
			find_outlier(x, k->process, k->kind, &k->ns, k->worst.at[0].at.thread,
				     k->worst.at[0].begin_ns, k->worst.at[0].end_ns);
	}
}
