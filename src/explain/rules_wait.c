/* Wakes and queues: what waits to be run. */
#include <string.h>

#include "base/hash.h"
#include "explain/rules.h"

/* -------------------------------------------------------------------- wakes */

/* Many that were late at one time, as when a program starts, are one that was: what kept them is a
   finding of its own if it matters. */
static int is_late_often(const struct tacho__explaining *x, uint32_t process)
{
	const struct tacho__late *l = tacho__table_find(&x->gathered.late, process, 0);

	return l && (l->count >= tacho__several ||
		     (double)l->sum_ns >= tacho__late_share * tacho__window_ns(x));
}

/* Whether hardly any is late but those that were woken all at once: who comes last of many waits for the
   others, whatever else goes on. */
static int is_late_in_herds(const struct tacho__explaining *x, uint32_t process)
{
	const struct tacho__late *l = tacho__table_find(&x->gathered.late, process, 0);
	uint64_t late = l ? l->wakes : 0, count = x->sum->process[process].wakes.latency.count;

	for (const struct tacho__herds *h = NULL;
	     (h = tacho__table_next(&x->gathered.herding.herds, h));)
		if (h->process == process) {
			late -= h->late < late ? h->late : late;
			count -= h->tasks < count ? h->tasks : count;
		}
	return (double)late < (1 - tacho__tail) * (double)count || !count;
}

static void find_wake_latency(struct tacho__explaining *x, uint32_t process)
{
	const struct tacho__wake_sum *w = &x->sum->process[process].wakes;
	double p99 = (double)tacho__hist_at(&w->latency, tacho__tail);
	char ns[TACHO__TEXT], most[TACHO__TEXT], name[TACHO__TEXT];
	const struct tacho__wake *worst = &w->worst.at[0];
	struct tacho__finding *f;

	if ((double)w->latency.count < TACHO__LIMIT(x, WAKE_LATENCY_COUNT) ||
	    tacho__below(x, TACHO__RULE_WAKE_LATENCY, "wake to poll, 99th percentile",
			 (double)w->latency.sum, p99, TACHO__LIMIT_WAKE_LATENCY_WARN))
		return;
	if (tacho__hist_above(&w->latency, (uint64_t)TACHO__LIMIT(x, WAKE_LATENCY_WARN)) <
		    tacho__several ||
	    !is_late_often(x, process)) {
		tacho__consider(x, TACHO__RULE_WAKE_LATENCY, "wakes run late", 0,
				(double)w->latency.sum,
				"they were late at few times: what kept them then counts");
		return;
	}
	if (is_late_in_herds(x, process)) {
		tacho__consider(x, TACHO__RULE_WAKE_LATENCY, "wakes run late", 0,
				(double)w->latency.sum,
				"they were woken all at once, and waited for each other");
		return;
	}
	f = tacho__find(x, TACHO__RULE_WAKE_LATENCY,
			p99 >= TACHO__LIMIT(x, WAKE_LATENCY_CRITICAL) ? TACHO__SEVERITY_CRITICAL
								      : TACHO__SEVERITY_WARNING,
			process, 0);
	f->waiting_ns = (double)w->latency.sum;
	f->kind = worst->kind;
	f->thread = worst->thread;
	f->task = worst->task;
	tacho__where_id(x, f, worst->kind, worst->begin_ns);
	tacho__say_summary(f,
			   "what is woken runs late: 1 %% of wakes wait %s or more, up to %s (%s)",
			   tacho__ns_text(ns, p99), tacho__ns_text(most, (double)w->latency.most),
			   tacho__id_text(x, name, process, worst->kind));
	for (uint32_t i = 0; i < w->worst.count && i < 3; i++) {
		worst = &w->worst.at[i];
		tacho__say_evidence(f, worst->thread, worst->ns, worst->begin_ns,
				    (double)(worst->begin_ns - worst->ns), "ns",
				    "woken, and run %s later",
				    tacho__ns_text(ns, (double)(worst->begin_ns - worst->ns)));
	}
}

static void find_wake_storm(struct tacho__explaining *x, uint32_t process)
{
	const struct tacho__wake_sum *w = &x->sum->process[process].wakes;
	double rate = (double)w->again / tacho__seconds(x);
	struct tacho__finding *f;

	if (tacho__below(x, TACHO__RULE_WAKE_STORM, "wakes of what is awake", 0, rate,
			 TACHO__LIMIT_WAKE_STORM_RATE) ||
	    (double)w->again < tacho__needless_times * (double)w->count)
		return;
	f = tacho__find(x, TACHO__RULE_WAKE_STORM, TACHO__SEVERITY_WARNING, process, 0);
	if (w->worst.count) {
		f->kind = w->worst.at[0].kind;
		tacho__where_id(x, f, w->worst.at[0].at.kind, x->sum->last_ns);
		tacho__where_id(x, f, w->worst.at[0].kind, x->sum->last_ns);
	}
	tacho__say_summary(f,
			   "%.0f wakes per second were for tasks that had already been woken: only "
			   "one in %.0f leads to a poll",
			   rate, (double)(w->again + w->count) / (double)w->count);
	tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, (double)w->again, "wakes",
			    "%llu wakes that were not needed", (unsigned long long)w->again);
}

/* ------------------------------------------------------------------- queues */

/* The mean of the steps from..to that have a value; -1 without. */
static double mean(const struct tacho__counter_sum *k, uint32_t from, uint32_t to)
{
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t i = from; i < to; i++)
		if (k->set[i]) {
			sum += k->series[i];
			n++;
		}
	return n ? sum / n : -1;
}

/* The line through all values, which garbage that comes and goes does not bend. */
static double line_at(const struct tacho__counter_sum *k, uint64_t ns)
{
	double n = (double)k->count, x = (double)(ns - k->first_ns) / 1e9;
	double wide = n * k->sum_xx - k->sum_x * k->sum_x;
	double slope = wide > 0 ? (n * k->sum_xy - k->sum_x * k->sum_y) / wide : 0;

	return (k->sum_y - slope * k->sum_x) / n + slope * x;
}

/* In each quarter of the time in which it has values, if that is a quarter of the window. */
static int keeps_growing(const struct tacho__counter_sum *k, double ratio)
{
	uint32_t from = 0, to = TACHO__SERIES;
	double q[4], first;

	while (from < to && !k->set[from])
		from++;
	while (to > from && !k->set[to - 1])
		to--;
	if (to - from < tacho__gauge_window * TACHO__SERIES)
		return 0;
	for (uint32_t i = 0; i < 4; i++) {
		q[i] = mean(k, from + i * (to - from) / 4, from + (i + 1) * (to - from) / 4);
		if (q[i] < 0)
			return 0;
	}
	first = line_at(k, k->first_ns);
	/* What comes to rest, as a cache that has become full, grew and does not grow. */
	return q[1] > q[0] && q[2] > q[1] &&
	       q[3] - q[2] >= (q[3] - q[0]) * tacho__last_quarter_share &&
	       line_at(k, k->last_ns) >= ratio * (first > 1 ? first : 1);
}

static int names_one_of(const struct tacho_definition *d, const char *const *words)
{
	for (; *words; words++)
		if (strstr(d->name, *words))
			return 1;
	return 0;
}

static int names_memory(const struct tacho_definition *d)
{
	static const char *const words[] = {"mem", "rss", "heap", "alloc", NULL};

	return names_one_of(d, words);
}

static int names_queue(const struct tacho_definition *d)
{
	static const char *const words[] = {"queue", "channel", "backlog", NULL};

	return names_one_of(d, words);
}

static int is_bytes(const struct tacho_definition *d)
{
	return strcmp(d->unit, "bytes") == 0 || strcmp(d->unit, "B") == 0;
}

static void counter_finding(struct tacho__explaining *x, const struct tacho__counter_sum *k,
			    enum tacho__rule_id rule, enum tacho__severity severity,
			    const char *what)
{
	struct tacho__finding *f = tacho__find(x, rule, severity, k->process, 0);
	const struct tacho_definition *d = tacho_read_definition(x->reader, k->process, k->name);
	char name[TACHO__TEXT];

	f->subject = d ? tacho__hash_bytes(d->name, strlen(d->name), 0) : 0;
	if (k->depth)
		f->loop = k->name;
	f->thread = k->thread;
	/* A name that the program gave says where; one of the hooks does not, but its poll may. */
	tacho__where_id(x, f, k->name, x->sum->last_ns);
	if (f->where_count && !f->where[0].file[0])
		f->where_count = 0;
	if (!f->where_count)
		tacho__where_id(x, f, k->kind, x->sum->last_ns);
	tacho__say_summary(f, "%s %s: from %.0f to %.0f in the window, and it grows", what,
			   tacho__id_text(x, name, k->process, k->name), k->first, k->last);
	tacho__say_evidence(f, 0, k->first_ns, k->last_ns, k->most, "", "at most %.0f", k->most);
}

/* 1: it is a queue of tasks that grows. */
static int find_growth(struct tacho__explaining *x, const struct tacho__counter_sum *k)
{
	const struct tacho_definition *d = tacho_read_definition(x->reader, k->process, k->name);
	double warn = TACHO__LIMIT(x, QUEUE_GROWTH_WARN);

	if (!d || k->count < tacho__gauge_values || d->def_class == TACHO_DEF_COUNTER ||
	    !keeps_growing(k, TACHO__LIMIT(x, MEMORY_GROWTH_RATIO)))
		return 0;
	if ((k->depth || (names_queue(d) && !is_bytes(d))) && k->most >= warn)
		counter_finding(x, k, TACHO__RULE_QUEUE_GROWTH,
				k->most >= TACHO__LIMIT(x, QUEUE_GROWTH_CRITICAL)
					? TACHO__SEVERITY_CRITICAL
					: TACHO__SEVERITY_WARNING,
				k->depth ? "more comes in than is worked off: the queue of"
					 : "more comes in than is worked off:");
	else if (!k->depth && is_bytes(d) && strstr(d->name, "write") &&
		 k->most >= TACHO__LIMIT(x, WRITE_BACKLOG_BYTES))
		counter_finding(x, k, TACHO__RULE_WRITE_BACKLOG, TACHO__SEVERITY_WARNING,
				"what is to be written piles up:");
	else if (!k->depth && (is_bytes(d) || names_memory(d)) && names_memory(d))
		counter_finding(x, k, TACHO__RULE_MEMORY_GROWTH, TACHO__SEVERITY_WARNING,
				"memory grows:");
	return k->depth && k->most >= warn;
}

/* ------------------------------------------------- connections that nobody accepts */

/* Of the threads that accept them, that which has most to do. */
static const struct tacho__loop_sum *busiest_of(const struct tacho__explaining *x, uint32_t loop)
{
	const struct tacho__loop_sum *busiest = NULL;

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));)
		if (l->process == x->process && l->loop == loop &&
		    (!busiest || l->busy_ns > busiest->busy_ns))
			busiest = l;
	return busiest;
}

/* For how long there was one nearly all the time, at the longest; and since when. */
static uint64_t longest_run(const struct tacho__explaining *x, const struct tacho__counter_sum *k,
			    uint64_t *since)
{
	uint64_t step_ns = tacho__summary_step_ns(x->sum);
	double full = TACHO__LIMIT(x, LOOP_SATURATED_SHARE) / 100;
	uint32_t run = 0, longest = 0;

	for (uint32_t i = 0; i < TACHO__SERIES; i++) {
		run = (double)k->above.at[i] >= full * (double)step_ns ? run + 1 : 0;
		if (run > longest) {
			longest = run;
			*since = x->sum->first_ns + (i + 1 - run) * step_ns;
		}
	}
	return longest * step_ns;
}

/*
 * Threads or processes that serve one client each are full while others wait to be accepted all the time.
 * Whether they run or wait for their clients meanwhile makes no difference to those.
 */
static void find_not_accepted(struct tacho__explaining *x, const struct tacho__counter_sum *k)
{
	const struct tacho__loop_sum *l = busiest_of(x, k->name);
	uint64_t since = 0, run = longest_run(x, k, &since);
	double waited = k->sum_y / (double)k->count * (double)k->above_ns;
	char ns[TACHO__TEXT];
	struct tacho__finding *f;

	if (!l || run < tacho__not_accepted_ns) {
		if (k->above_ns)
			tacho__consider(x, TACHO__RULE_LOOP_SATURATED,
					"connections that wait to be accepted", (double)k->above_ns,
					waited, "they did not for a second without a pause");
		return;
	}
	f = tacho__find(x, TACHO__RULE_LOOP_SATURATED, tacho__severity_of_waiting(x, waited),
			k->process, (double)k->above_ns);
	f->loop = l->loop;
	f->thread = l->thread;
	f->waiting_ns = waited;
	tacho__where_busy(x, f, l);
	tacho__say_summary(
		f,
		"connections wait to be accepted, for %s without a pause and up to %.0f at once: "
		"whoever accepts them is busy with others",
		tacho__ns_text(ns, (double)run), k->most);
	tacho__say_advice(f,
			  "Have more threads or processes that accept, if there are CPUs for them; "
			  "or do less for each connection, and do not keep those that idle.");
	tacho__say_evidence(f, l->thread, since, since + run, k->sum_y / (double)k->count, "",
			    "%.1f more waited on average when one was accepted",
			    k->sum_y / (double)k->count);
}

void tacho__rules_wait(struct tacho__explaining *x)
{
	int queue = 0;

	find_wake_latency(x, x->process);
	find_wake_storm(x, x->process);
	for (const struct tacho__counter_sum *k = NULL;
	     (k = tacho__table_next(&x->sum->counters, k));) {
		queue |= find_growth(x, k);
		if (k->depth &&
		    tacho__serves_one(tacho_read_definition(x->reader, k->process, k->name)))
			find_not_accepted(x, k);
	}
	tacho__rules_tasks(x, queue);
}
