/* The process as a whole: its end, what its requests wait for, and what was recorded of it. */
#include <stdlib.h>
#include <string.h>

#include "explain/rules.h"

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
		return p->end_status != (uint32_t)c->signal &&
		       p->until_ns > c->ns + tacho__survived_ns;
	return p->alive == TACHO_ALIVE_YES && x->sum->last_ns > c->ns + tacho__survived_ns;
}

static void find_crash(struct tacho__explaining *x, const struct tacho_crash_info *c)
{
	const struct tacho_process *p = tacho_read_process(x->reader, c->process);
	int survived = is_survived(x, c, p);
	struct tacho__place places[TACHO__PLACES_MAX];
	char where[2 * TACHO__TEXT], name[TACHO__TEXT];
	struct tacho__finding *f = tacho__find(
		x, TACHO__RULE_CRASH, survived ? TACHO__SEVERITY_INFO : TACHO__SEVERITY_CRITICAL,
		c->process, 0);
	uint32_t n;

	f->subject = (uint32_t)c->signal;
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
	if (survived)
		tacho__say_advice(f, "The program's own handler of the signal went on after it.");
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
	double p99 = (double)tacho__hist_at(&k->ns, tacho__tail);
	const struct tacho__span *s = &k->worst.at[0];
	char ns[TACHO__TEXT], name[TACHO__TEXT];
	struct tacho__finding *f;

	/* Spans of a thread are its own doing. */
	if (!k->async || k->ns.count < tacho__several || tacho__is_runtime_span(x, k->name))
		return;
	tacho__id_text(x, name, k->process, k->name);
	if (tacho__below(x, TACHO__RULE_DOWNSTREAM_WAIT, name, (double)k->ns.sum, p99,
			 TACHO__LIMIT_DOWNSTREAM_WAIT_WARN))
		return;
	if (tacho__idle_share(x, k->process) < 0.5) {
		tacho__consider(x, TACHO__RULE_DOWNSTREAM_WAIT, name, (double)k->ns.sum, 0,
				"the loops were busy meanwhile");
		return;
	}
	f = tacho__find(x, TACHO__RULE_DOWNSTREAM_WAIT, TACHO__SEVERITY_WARNING, k->process,
			(double)k->ns.sum);
	f->waiting_ns = f->cost_ns; /* whoever asked for it does */
	tacho__where_id(x, f, k->name, x->sum->last_ns);
	tacho__say_summary(f,
			   "%s takes up to %s while the loops idle: it waits for something outside "
			   "this process",
			   tacho__id_text(x, name, k->process, k->name),
			   tacho__ns_text(ns, (double)k->ns.most));
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

	if (h->count < tacho__usual_count || most < TACHO__LIMIT(x, OUTLIER_NS) ||
	    most < TACHO__LIMIT(x, OUTLIER_RATIO) * p50)
		return;
	f = tacho__find(x, TACHO__RULE_OUTLIER, TACHO__SEVERITY_INFO, process, most);
	f->kind = id;
	f->thread = thread;
	tacho__where_id(x, f, id, to_ns);
	tacho__say_summary(f, "%s took %s once, %.0f times as long as usual (%s)",
			   tacho__id_text(x, name, process, id), tacho__ns_text(ns, most),
			   most / (p50 > 0 ? p50 : 1), tacho__ns_text(usual, p50));
	tacho__say_evidence(f, thread, from_ns, to_ns, most, "ns", "the longest of %llu",
			    (unsigned long long)h->count);
}

/* ---------------------------------------------------------- what was recorded */

/* Subjects of recorder-loss. */
enum { LOST_FILE = 1, LOST_RECORDS, LOST_TIME };

static double share_of(double missing, double rest)
{
	return missing > 0 ? 100.0 * missing / (missing + rest) : 0;
}

static enum tacho__severity severity_of_loss(const struct tacho__explaining *x, double percent)
{
	return percent >= TACHO__LIMIT(x, RECORDER_LOSS_CRITICAL) ? TACHO__SEVERITY_CRITICAL
	       : percent >= TACHO__LIMIT(x, RECORDER_LOSS_WARN)	  ? TACHO__SEVERITY_WARNING
								  : TACHO__SEVERITY_INFO;
}

/* The file itself is damaged. How much of a file that is cut is missing nobody knows. */
static void find_damage(struct tacho__explaining *x, uint32_t process)
{
	const struct tacho__readable *r = &x->out->processes[process].readable;
	enum tacho__severity severity = severity_of_loss(x, 100 * (1 - r->share));
	struct tacho__finding *f;

	if (r->is_cut && severity < TACHO__SEVERITY_WARNING)
		severity = TACHO__SEVERITY_WARNING;
	f = tacho__find(x, TACHO__RULE_RECORDER_LOSS, severity, process, 0);
	f->subject = LOST_FILE;
	tacho__say_summary(f, "%s", r->text);
	tacho__say_advice(f, "Copy it again from where it was recorded, or record again. 'tacho "
			     "info' lists what cannot be read.");
	if (r->lost)
		tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, (double)r->lost,
				    "records", "%s%llu records are missing",
				    r->is_uncounted ? "at least " : "",
				    (unsigned long long)r->lost);
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

	if (x->out->processes[process].readable.is_damaged) {
		find_damage(x, process);
		return;
	}
	if (share_of(never, ever) > share) {
		missing = never;
		share = share_of(never, ever);
	}
	if (share < TACHO__LIMIT(x, RECORDER_LOSS_SHARE))
		return;
	/* When most is missing, what else is found may be wrong. */
	f = tacho__find(x, TACHO__RULE_RECORDER_LOSS, severity_of_loss(x, share), process, 0);
	f->subject = LOST_RECORDS;
	tacho__say_summary(f,
			   "%.0f %% of the records are missing (%.0f): the box was too small for "
			   "all threads",
			   share, missing);
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

	if (!back && !unknown && share < TACHO__LIMIT(x, RECORDER_LOSS_WARN))
		return;
	f = tacho__find(x, TACHO__RULE_RECORDER_LOSS, TACHO__SEVERITY_CRITICAL, process, 0);
	f->subject = LOST_TIME;
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

/* Of the threads that a quota kept from running: how many, what waited for them, and what it took of the
   one it took most of, as the ledger has it. */
static double most_throttled(const struct tacho__explaining *x, uint32_t process, uint32_t *threads,
			     double *waiting_ns)
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
		*waiting_ns += (double)o->waiting_ns;
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
	    tacho__below(x, TACHO__RULE_CPU_THROTTLED, "the CPU quota", ns, share,
			 TACHO__LIMIT_CPU_THROTTLED_SHARE))
		return;
	f = tacho__find(x, TACHO__RULE_CPU_THROTTLED,
			share >= tacho__critical_times * TACHO__LIMIT(x, CPU_THROTTLED_SHARE)
				? TACHO__SEVERITY_CRITICAL
				: TACHO__SEVERITY_WARNING,
			k->process, ns);
	f->is_shared = 1; /* by all processes of the cgroup */
	most = most_throttled(x, k->process, &threads, &f->waiting_ns);
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
	tacho__say_evidence(f, 0, k->first_ns, k->last_ns, ns, "ns",
			    "stopped by the quota for %s%s", text,
			    threads <= 1 && share <= 100 ? "" : ", added up over all CPUs");
}

/* 1: there is enough to say that nothing is wrong. */
static int enough(const struct tacho__explaining *x)
{
	return tacho__window_ns(x) >= TACHO__LIMIT(x, NOT_ENOUGH_DATA_NS) &&
	       (double)x->sum->events >= TACHO__LIMIT(x, NOT_ENOUGH_DATA_EVENTS);
}

int tacho__is_idle(const struct tacho__explaining *x)
{
	uint64_t busy = 0;

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));) {
		/* One that could run has something to do. */
		if (l->busy_ns + l->delay_ns > busy)
			busy = l->busy_ns + l->delay_ns;
	}
	return x->sum->loops.count && tacho__window_ns(x) >= TACHO__LIMIT(x, NOT_ENOUGH_DATA_NS) &&
	       (double)busy <= tacho__least_busy_share * tacho__window_ns(x);
}

static void find_not_enough(struct tacho__explaining *x)
{
	char ns[TACHO__TEXT];
	struct tacho__finding *f;
	uint32_t loops = x->sum->loops.count;

	if ((enough(x) && loops) || tacho__is_idle(x))
		return;
	f = tacho__find(x, TACHO__RULE_NOT_ENOUGH_DATA, TACHO__SEVERITY_INFO, x->process, 0);
	f->subject = loops != 0;
	if (enough(x))
		tacho__say_summary(f, "no loop was seen, so there is nothing to judge");
	else
		tacho__say_summary(
			f, "%llu events in %s are too few to tell",
			(unsigned long long)x->sum->events,
			tacho__ns_text(ns, (double)(x->sum->last_ns - x->sum->first_ns)));
}

void tacho__rules_process(struct tacho__explaining *x)
{
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
