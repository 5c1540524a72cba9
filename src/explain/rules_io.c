/* Load, timers, descriptors: what loops are busy with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/busy.h"
#include "explain/group.h"

#define LOOPS_MAX 256u

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static struct tacho__finding *find_loop(struct tacho__explaining *x, enum tacho__rule_id rule,
					const struct tacho__loop_sum *l, double cost_ns)
{
	struct tacho__finding *f =
		tacho__find(x, rule, TACHO__SEVERITY_WARNING, l->process, cost_ns);

	f->loop = l->loop;
	f->thread = l->thread;
	f->subject = tacho__loop_class(x->reader, l->process, l->loop);
	return f;
}

/* What waits for a loop that is busy decides how much that matters. */
static void keeps_waiting(const struct tacho__explaining *x, struct tacho__finding *f,
			  double waiting_ns)
{
	f->waiting_ns = waiting_ns;
	f->severity = tacho__severity_of_waiting(x, waiting_ns);
}

/* ", mostly in parse (server.c:42)", or nothing. */
static const char *mostly_text(char out[3 * TACHO__TEXT], const struct tacho__finding *f)
{
	char where[2 * TACHO__TEXT];

	out[0] = 0;
	if (f->where_count)
		snprintf(out, 3 * TACHO__TEXT, ", mostly in %s", tacho__where_text(where, f));
	return out;
}

/* Whether it hardly ran: it waited where nobody sees it. */
static int waited_unseen(const struct tacho__explaining *x, struct tacho__own_time own)
{
	return tacho__source_is_on(x, x->process, "cpu_samples") &&
	       own.cpu_ns < tacho__seen_share * own.code_ns;
}

static void find_saturated(struct tacho__explaining *x, const struct tacho__loop_sum *l)
{
	const struct tacho__own_time own = tacho__own_time_of(x, l->thread);
	double busy = tacho__utilisation(x, own, l), share = tacho__median_busy(x, l), ran;
	char name[TACHO__TEXT], thread[TACHO__TEXT], mostly[3 * TACHO__TEXT], off[TACHO__TEXT];
	struct tacho__finding *f;
	int lacks = own.off_ns > own.code_ns / 2;

	/* Between two waits for events it may wait for something else to do. */
	if (own.all_ns - own.idle_ns < (double)l->busy_ns)
		share *= (own.all_ns - own.idle_ns) / (double)l->busy_ns;
	tacho__loop_text(x, name, l);
	if (l->turns < tacho__full_turns ||
	    tacho__below(x, TACHO__RULE_LOOP_SATURATED, name, (double)l->busy_ns, share,
			 TACHO__LIMIT_LOOP_SATURATED_SHARE))
		return;
	/* Its clients may come later than the window begins, and go before it ends. */
	if (busy < tacho__mostly_busy_share) {
		tacho__consider(x, TACHO__RULE_LOOP_SATURATED, name, (double)l->busy_ns, 0,
				lacks ? "it waits for a CPU, and has time left when it has one"
				      : "it is full for a part of the window only");
		return;
	}
	if (waited_unseen(x, own)) {
		tacho__consider(x, TACHO__RULE_LOOP_SATURATED, name, (double)l->busy_ns, 0,
				"it hardly ran: it waited unseen");
		return;
	}
	ran = own.all_ns - own.off_ns - tacho__rest_ns(own, l);
	f = find_loop(x, TACHO__RULE_LOOP_SATURATED, l,
		      ran < (double)l->busy_ns ? ran : (double)l->busy_ns);
	keeps_waiting(x, f, own.waiting_ns);
	tacho__where_busy(x, f, l);
	mostly_text(mostly, f);
	tacho__say_summary(f, "loop %s on %s is busy %.0f %% of the time%s and cannot do more%s",
			   tacho__id_text(x, name, l->process, l->loop),
			   tacho__thread_text(x, thread, l->process, l->thread), 100 * busy,
			   lacks ? " that it has a CPU" : "", mostly);
	tacho__say_many(f, "%c are busy up to %.0f %% of the time%s and cannot do more%s",
			TACHO__WHO, 100 * busy, lacks ? " that they have a CPU" : "", mostly);
	tacho__say_evidence(f, l->thread, l->first_ns, l->last_ns, share, "%",
			    "%llu turns, busy %.0f %% of the time in the median",
			    (unsigned long long)l->turns, share);
	if (lacks)
		tacho__say_evidence(f, l->thread, l->first_ns, l->last_ns, own.off_ns, "ns",
				    "for %s, others had its CPU", tacho__ns_text(off, own.off_ns));
}

static void find_futile(struct tacho__explaining *x, const struct tacho__loop_sum *l)
{
	double rate =
		tacho__undisturbed(x, tacho__own_time_of(x, l->thread), l, (double)l->no_ready) /
		tacho__seconds(x);
	double share = l->turns ? 100.0 * (double)l->no_ready / (double)l->turns : 0;
	char name[TACHO__TEXT];
	struct tacho__finding *f;

	tacho__loop_text(x, name, l);
	if (tacho__below(x, TACHO__RULE_FUTILE_WAKEUPS, name, (double)l->busy_ns * share / 100,
			 rate, TACHO__LIMIT_FUTILE_WAKEUPS_RATE) ||
	    tacho__below(x, TACHO__RULE_FUTILE_WAKEUPS, name, (double)l->busy_ns * share / 100,
			 share, TACHO__LIMIT_FUTILE_WAKEUPS_SHARE))
		return;
	f = find_loop(x, TACHO__RULE_FUTILE_WAKEUPS, l, (double)l->busy_ns * share / 100);
	tacho__where_busy(x, f, l);
	tacho__say_summary(f, "loop %s wakes up %.0f times per second and finds nothing to do",
			   tacho__loop_text(x, name, l), rate);
	tacho__say_evidence(f, l->thread, l->first_ns, l->last_ns, share, "%",
			    "%.0f %% of %llu waits ended with nothing ready", share,
			    (unsigned long long)l->turns);
}

/* ------------------------------------------------------------------- timers */

static int is_found(const struct tacho__explaining *x, enum tacho__rule_id rule,
		    const struct tacho__loop_sum *l)
{
	for (uint32_t i = 0; i < x->out->count; i++) {
		const struct tacho__finding *f = &x->out->findings[i];

		if (f->rule == rule && f->process == l->process && f->loop == l->loop)
			return 1;
	}
	return 0;
}

int tacho__is_timer(const struct tacho__explaining *x, const struct tacho__kind_sum *k)
{
	const struct tacho_definition *d =
		k->kind ? tacho_read_definition(x->reader, k->process, k->kind) : NULL;

	return d && (strstr(d->name, "timer") || strstr(d->name, "timeout"));
}

static const struct tacho__loop_sum *loop_at(const struct tacho__explaining *x,
					     const struct tacho__at *at)
{
	return tacho__table_find(&x->sum->loops, (uint64_t)at->process << 32 | at->loop,
				 at->thread);
}

/* A loop that is full with callbacks of a timer, although these are not all that many: what they do takes
   long. */
static int is_slow_timer(const struct tacho__explaining *x, const struct tacho__kind_sum *k,
			 const struct tacho__loop_sum *l, double rate)
{
	return l && is_found(x, TACHO__RULE_LOOP_SATURATED, l) && k->ns.sum > l->busy_ns / 2 &&
	       rate < tacho__slow_timer_times * TACHO__LIMIT(x, TIMER_STORM_RATE);
}

static void find_timer_storm(struct tacho__explaining *x, const struct tacho__kind_sum *k)
{
	const struct tacho__at *at = k->worst.count ? &k->worst.at[0].at : NULL;
	char name[TACHO__TEXT], mostly[3 * TACHO__TEXT];
	const struct tacho__loop_sum *l;
	struct tacho__own_time own;
	struct tacho__finding *f;
	double rate;

	if (!at || !tacho__is_timer(x, k))
		return;
	l = loop_at(x, at);
	own = tacho__own_time_of(x, at->thread);
	rate = tacho__undisturbed(x, own, l, (double)k->ns.count) / tacho__seconds(x);
	tacho__id_text(x, name, k->process, k->kind);
	if (tacho__below(x, TACHO__RULE_TIMER_STORM, name, (double)k->ns.sum, rate,
			 TACHO__LIMIT_TIMER_STORM_RATE))
		return;
	if (is_slow_timer(x, k, l, rate)) {
		tacho__consider(x, TACHO__RULE_TIMER_STORM, name, (double)k->ns.sum, 0,
				"what it does fills its loop, and that is said");
		return;
	}
	f = tacho__find(x, TACHO__RULE_TIMER_STORM, TACHO__SEVERITY_WARNING, k->process,
			(double)k->ns.sum);
	f->kind = k->kind;
	f->loop = at->loop;
	f->thread = at->thread;
	keeps_waiting(x, f, tacho__waited_in(own, (double)k->ns.sum));
	if (l)
		tacho__where_kind(x, f, l, k->kind);
	else
		tacho__where_id(x, f, k->kind, x->sum->last_ns);
	tacho__say_summary(f, "the timer %s fires %.0f times per second%s",
			   tacho__id_text(x, name, k->process, k->kind), rate,
			   mostly_text(mostly, f));
	tacho__say_evidence(f, f->thread, x->sum->first_ns, x->sum->last_ns, rate, "per second",
			    "%llu callbacks", (unsigned long long)k->ns.count);
}

/* Whether its loop was still waiting when the timer was due. */
static int was_parked(const struct tacho__poll *p)
{
	uint64_t due = p->begin_ns - p->late_ns;

	return p->turn_ns > due && p->turn_ns - due >= p->late_ns / 2;
}

/* In most of the worst cases the loop was busy with others. */
static int loop_was_busy(const struct tacho__kind_sum *k)
{
	uint32_t parked = 0;

	for (uint32_t i = 0; i < k->worst_late.count; i++)
		parked += (uint32_t)was_parked(&k->worst_late.at[i]);
	return 2 * parked < k->worst_late.count;
}

/* One timer that is late may be anything. */
static uint64_t late_enough(const struct tacho__kind_sum *k)
{
	uint64_t least = (uint64_t)((double)k->late.count * tacho__late_timers_share);

	return least > tacho__late_timers ? least : tacho__late_timers;
}

static void find_timer_late(struct tacho__explaining *x, const struct tacho__kind_sum *k)
{
	double warn = TACHO__LIMIT(x, TIMER_LATE_WARN);
	double p99 = (double)tacho__hist_at(&k->late, tacho__tail);
	char ns[TACHO__TEXT], name[TACHO__TEXT];
	const struct tacho__poll *p = &k->worst_late.at[0];
	struct tacho__finding *f;

	if (k->late.count < tacho__several)
		return;
	tacho__id_text(x, name, k->process, k->kind);
	if (tacho__below(x, TACHO__RULE_TIMER_LATE, name, (double)k->late.sum, p99,
			 TACHO__LIMIT_TIMER_LATE_WARN))
		return;
	if (tacho__hist_above(&k->late, (uint64_t)warn) < late_enough(k)) {
		tacho__consider(x, TACHO__RULE_TIMER_LATE, name, 0, (double)k->late.sum,
				"few of them were late");
		return;
	}
	f = tacho__find(x, TACHO__RULE_TIMER_LATE, TACHO__SEVERITY_WARNING, k->process, 0);
	f->waiting_ns = (double)k->late.sum;
	f->kind = k->kind;
	f->loop = p->at.loop;
	f->thread = p->at.thread;
	tacho__where_id(x, f, k->kind, x->sum->last_ns);
	tacho__say_summary(f, "the timer %s fires up to %s late",
			   tacho__id_text(x, name, k->process, k->kind),
			   tacho__ns_text(ns, (double)k->late.most));
	if (!loop_was_busy(k))
		tacho__say_advice(f, "The loop slept when it was due: its clock was behind after a "
				     "long turn, or the kernel woke it late.");
	tacho__say_evidence(f, p->at.thread, p->begin_ns - p->late_ns, p->begin_ns,
			    (double)p->late_ns, "ns", "due, and run %s later",
			    tacho__ns_text(ns, (double)p->late_ns));
}

/* -------------------------------------------------------------- descriptors */

/* Times of turns: that something is often ready does not say that it takes long. */
struct flood {
	const struct tacho__ready_sum *top;
	uint64_t sum, second;
	uint32_t count;
};

void tacho__find_own_wakers(const struct tacho__explaining *x, struct tacho__own_wakers *w)
{
	uint32_t limit = tacho_read_definition_limit(x->reader, x->process);

	w->count = 0;
	for (uint32_t id = 1; id < limit && w->count < TACHO__OWN_WAKERS; id++) {
		const struct tacho_definition *d = tacho_read_definition(x->reader, x->process, id);

		if (d && d->def_class == TACHO_DEF_DESCRIPTOR)
			w->what[w->count++] = d->value;
	}
}

int tacho__is_own_waker(const struct tacho__own_wakers *w, uint64_t what)
{
	uint32_t i = 0;

	while (i < w->count && w->what[i] != what)
		i++;
	return i < w->count;
}

static struct flood flood_of(const struct tacho__explaining *x, const struct tacho__loop_sum *l)
{
	struct flood f = {0};
	struct tacho__own_wakers wakers;

	tacho__find_own_wakers(x, &wakers);
	for (const struct tacho__ready_sum *r = NULL; (r = tacho__table_next(&x->sum->ready, r));) {
		if (r->process != l->process || r->loop != l->loop)
			continue;
		f.sum += r->ns;
		/* No client: others of the program have done something for it. */
		if (tacho__is_own_waker(&wakers, r->what))
			continue;
		f.count++;
		if (!f.top || r->ns > f.top->ns) {
			f.second = f.top ? f.top->ns : 0;
			f.top = r;
		} else if (r->ns > f.second) {
			f.second = r->ns;
		}
	}
	return f;
}

/* One client of several on a busy loop; that a loop serves only one is no fault. */
static void find_flood(struct tacho__explaining *x, const struct tacho__loop_sum *l)
{
	const struct tacho__own_time own = tacho__own_time_of(x, l->thread);
	struct flood flood = flood_of(x, l);
	double share = flood.top ? 100.0 * (double)flood.top->ns / (double)flood.sum : 0;
	char name[TACHO__TEXT], ns[TACHO__TEXT], next[TACHO__TEXT], mostly[3 * TACHO__TEXT];
	struct tacho__finding *f;

	if (!flood.top || flood.count < tacho__flood_clients ||
	    tacho__undisturbed(x, own, l, (double)flood.top->count) < (double)tacho__flood_times)
		return;
	tacho__loop_text(x, name, l);
	if (tacho__below(x, TACHO__RULE_FD_FLOOD, name, (double)flood.top->ns, share,
			 TACHO__LIMIT_FD_FLOOD_SHARE))
		return;
	if (tacho__utilisation(x, own, l) < tacho__flooded_share ||
	    (double)flood.top->ns < tacho__flood_next * (double)flood.second) {
		tacho__consider(x, TACHO__RULE_FD_FLOOD, name, (double)flood.top->ns, 0, "%s",
				tacho__utilisation(x, own, l) < tacho__flooded_share
					? "its loop has time for all others"
					: "another one takes a fifth of it");
		return;
	}
	f = find_loop(x, TACHO__RULE_FD_FLOOD, l, (double)l->busy_ns * share / 100);
	keeps_waiting(x, f, tacho__waited_in(own, f->cost_ns));
	tacho__where_sole(x, f, l, flood.top->what);
	tacho__loop_text(x, name, l);
	mostly_text(mostly, f);
	if (flood.top->what >> 63)
		tacho__say_summary(f,
				   "one connection of %u takes %.0f %% of loop %s (0x%llx in its "
				   "epoll data)%s",
				   flood.count, share, name,
				   (unsigned long long)(flood.top->what << 1 >> 1), mostly);
	else
		tacho__say_summary(f, "descriptor %llu, one of %u, takes %.0f %% of loop %s%s",
				   (unsigned long long)flood.top->what, flood.count, share, name,
				   mostly);
	tacho__say_evidence(f, l->thread, l->first_ns, l->last_ns, (double)flood.top->count,
			    "times", "ready %llu times, for %s in all; the next one took %s",
			    (unsigned long long)flood.top->count,
			    tacho__ns_text(ns, (double)flood.top->ns),
			    tacho__ns_text(next, (double)flood.second));
}

/* Callbacks that are run because a descriptor is ready. */
static int is_reader(const struct tacho__explaining *x, const struct tacho__task_sum *k)
{
	static const char *const names[] = {"read", "recv", "uv_poll", "event", NULL};
	const struct tacho_definition *d =
		k->kind ? tacho_read_definition(x->reader, k->process, k->kind) : NULL;
	uint32_t i = 0;

	if (!d || strstr(d->name, "timer") || strstr(d->name, "signal"))
		return 0;
	while (names[i] && !strstr(d->name, names[i]))
		i++;
	return names[i] != NULL;
}

static const struct tacho__loop_sum *loop_of_kind(const struct tacho__explaining *x,
						  uint32_t process, uint32_t kind)
{
	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&x->sum->kinds, k));) {
		const struct tacho__at *at = k->worst.count ? &k->worst.at[0].at : NULL;

		if (at && k->process == process && k->kind == kind)
			return loop_at(x, at);
	}
	return NULL;
}

/* The same by the time that callbacks take: libraries read many times for one readiness. */
static void find_busy_client(struct tacho__explaining *x, const struct tacho__task_sum *k)
{
	double top = (double)k->busiest.busy_ns, share;
	char name[TACHO__TEXT], kind[TACHO__TEXT];
	const struct tacho__loop_sum *l;
	struct tacho__finding *f;
	struct tacho__own_time own;

	if (k->seen < tacho__flood_clients || top < tacho__flood_next * (double)k->next_busy_ns ||
	    !is_reader(x, k))
		return;
	l = loop_of_kind(x, k->process, k->kind);
	if (!l || !l->busy_ns)
		return;
	own = tacho__own_time_of(x, l->thread);
	share = 100 * top / (double)l->busy_ns;
	if (tacho__undisturbed(x, own, l, (double)k->busiest.polls) < (double)tacho__flood_times ||
	    tacho__utilisation(x, own, l) < tacho__flooded_share ||
	    share < TACHO__LIMIT(x, FD_FLOOD_SHARE) || is_found(x, TACHO__RULE_FD_FLOOD, l))
		return;
	f = find_loop(x, TACHO__RULE_FD_FLOOD, l, top);
	keeps_waiting(x, f, tacho__waited_in(own, top));
	f->task = k->busiest.task;
	tacho__where_kind(x, f, l, k->kind);
	tacho__say_summary(f, "one connection of %llu takes %.0f %% of loop %s, in %s",
			   (unsigned long long)k->seen, share, tacho__loop_text(x, name, l),
			   tacho__id_text(x, kind, k->process, k->kind));
	tacho__say_evidence(f, l->thread, k->busiest.first_ns, k->busiest.last_ns, top, "ns",
			    "in %llu callbacks of task 0x%llx; the next one took %.1f ms",
			    (unsigned long long)k->busiest.polls,
			    (unsigned long long)k->busiest.task, (double)k->next_busy_ns / 1e6);
}

/* ------------------------------------------------------------------- balance */

/* Loops with the same name, numbers aside, and on threads of one process are peers. */
static int are_peers(const struct tacho__explaining *x, const struct tacho__loop_sum *a,
		     const struct tacho__loop_sum *b)
{
	const struct tacho_definition *d = tacho_read_definition(x->reader, a->process, a->loop);
	const struct tacho_definition *e = tacho_read_definition(x->reader, b->process, b->loop);
	const char *s = d ? d->name : "", *t = e ? e->name : "";

	while (*s && *t) {
		if (*s >= '0' && *s <= '9' && *t >= '0' && *t <= '9') {
			while (*s >= '0' && *s <= '9')
				s++;
			while (*t >= '0' && *t <= '9')
				t++;
		} else if (*s++ != *t++) {
			return 0;
		}
	}
	return !*s && !*t && a->process == b->process && a->level == b->level;
}

static void find_imbalance(struct tacho__explaining *x, const struct tacho__loop_sum *l)
{
	const struct tacho__own_time own = tacho__own_time_of(x, l->thread);
	uint64_t others[LOOPS_MAX], median;
	double ratio;
	char name[TACHO__TEXT], thread[TACHO__TEXT];
	struct tacho__finding *f;
	uint32_t n = 0;

	if (tacho__utilisation(x, own, l) < tacho__mostly_busy_share ||
	    l->turns < tacho__balance_turns)
		return;
	for (const struct tacho__loop_sum *o = NULL;
	     n < LOOPS_MAX && (o = tacho__table_next(&x->sum->loops, o));) {
		if (o != l && are_peers(x, o, l)) {
			if (o->busy_ns > l->busy_ns)
				return;
			others[n++] = o->busy_ns;
		}
	}
	if (!n)
		return;
	qsort(others, n, sizeof(others[0]), by_value);
	median = others[n / 2];
	ratio = (double)l->busy_ns / (double)(median ? median : 1);
	if (tacho__below(x, TACHO__RULE_WORKER_IMBALANCE, tacho__loop_text(x, name, l),
			 (double)(l->busy_ns - median), ratio, TACHO__LIMIT_WORKER_IMBALANCE_RATIO))
		return;
	/* One descriptor that is always ready fills a loop, and keeps nobody waiting. */
	if (own.waiting_ns < own.code_ns) {
		tacho__consider(x, TACHO__RULE_WORKER_IMBALANCE, name,
				(double)(l->busy_ns - median), own.waiting_ns,
				"while it does one thing, nothing else waits for most of the time");
		return;
	}
	/* They may be there for something else, as threads for timers or signals are. */
	if ((double)others[n - 1] < tacho__least_busy_share * (double)l->busy_ns &&
	    is_found(x, TACHO__RULE_LOOP_SATURATED, l)) {
		tacho__consider(x, TACHO__RULE_WORKER_IMBALANCE, name,
				(double)(l->busy_ns - median), 0,
				"its peers serve nothing, and that it is full is said");
		return;
	}
	f = find_loop(x, TACHO__RULE_WORKER_IMBALANCE, l, (double)(l->busy_ns - median));
	keeps_waiting(x, f, own.waiting_ns);
	tacho__where_busy(x, f, l);
	tacho__say_summary(
		f,
		"loop %s on %s works %.0f %% of the time while its %u peers have little to "
		"do",
		tacho__id_text(x, name, l->process, l->loop),
		tacho__thread_text(x, thread, l->process, l->thread),
		100 * tacho__utilisation(x, own, l), n);
	tacho__say_evidence(f, l->thread, l->first_ns, l->last_ns, ratio, "times",
			    "%.1f times as busy as the median of its peers", ratio);
}

void tacho__rules_io(struct tacho__explaining *x)
{
	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));) {
		/* One client has as much of its own thread as it likes. */
		if (!l->loop || l->serves_one)
			continue;
		find_saturated(x, l);
		find_futile(x, l);
		find_flood(x, l);
		find_imbalance(x, l);
	}
	for (const struct tacho__task_sum *k = NULL; (k = tacho__table_next(&x->sum->tasks, k));)
		find_busy_client(x, k);
	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&x->sum->kinds, k));) {
		find_timer_storm(x, k);
		find_timer_late(x, k);
	}
}
