/*
 * Handles, events, descriptors and threads that are begun and not ended. The hooks tell how many are
 * alive by the place that begins them: a gauge in the unit "alive", a counter in "begun", and both
 * have as their value where it is.
 *
 * What a program keeps, a pool that has become full, and what comes and goes do not grow with all the
 * work that is done, to its end. Work is counted in turns of loops: while a program has nothing to do,
 * nothing grows, and that says nothing. What belongs to connections grows with these: that is load,
 * and no leak, as long as their peers have not closed them.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "explain/rules.h"

/* What was told of a place. */
struct place {
	const struct tacho__counter_sum *gauge;
	const struct tacho_definition *d;
	double floor
		[4]; /* the fewest that were alive, by quarters of the work since it was told first */
	double late; /* in the last eighth */
	double begun, ended;
};

/* Work that was done before each step of the window, and in all of it. */
struct work {
	double before[TACHO__SERIES + 1];
};

static void take_work(const struct tacho__explaining *x, struct work *w)
{
	double *sum = w->before;

	memset(w, 0, sizeof(*w));
	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));)
		for (uint32_t i = 0; i < TACHO__SERIES; i++)
			sum[i + 1] += (double)l->did.at[i];
	for (uint32_t i = 0; i < TACHO__SERIES; i++)
		sum[i + 1] += sum[i];
	if (sum[TACHO__SERIES] >= (double)tacho__leak_turns)
		return;
	for (uint32_t i = 0; i <= TACHO__SERIES; i++)
		sum[i] = i;
}

static int is_told(const struct tacho_definition *d, uint8_t def_class, const char *unit)
{
	return d && d->def_class == def_class && d->value && strcmp(d->unit, unit) == 0;
}

static int is_connection(const struct place *p)
{
	return strcmp(p->d->name, "connection") == 0;
}

static int is_descriptor(const struct place *p)
{
	return strcmp(p->d->name, "descriptor") == 0;
}

/* A value holds until the next is told. */
static void take_floors(struct place *p, const struct work *w)
{
	const struct tacho__counter_sum *k = p->gauge;
	uint32_t from = 0;
	double now = k->first, all;

	while (from < TACHO__SERIES - 1 && !k->set[from])
		from++;
	all = w->before[TACHO__SERIES] - w->before[from];
	for (uint32_t i = 0; i < 4; i++)
		p->floor[i] = -1;
	p->late = -1;
	for (uint32_t i = from; i < TACHO__SERIES; i++) {
		double done = all > 0 ? (w->before[i] - w->before[from]) / all : 1;
		double *floor = &p->floor[done < 1 ? (uint32_t)(4 * done) : 3];

		/* What it was at the begin of a step counts, where it grew in it. */
		if (*floor < 0 || now < *floor)
			*floor = now;
		if (done >= 7.0 / 8 && (p->late < 0 || now < p->late))
			p->late = now;
		if (k->set[i])
			now = k->series[i];
		if (now < *floor)
			*floor = now;
	}
}

static void take_counts(const struct tacho__explaining *x, struct place *p)
{
	p->begun = p->ended = 0;
	for (const struct tacho__counter_sum *k = NULL;
	     (k = tacho__table_next(&x->sum->counters, k));) {
		const struct tacho_definition *d =
			tacho_read_definition(x->reader, k->process, k->name);

		if (k->process == p->gauge->process && is_told(d, TACHO_DEF_COUNTER, "begun") &&
		    d->value == p->d->value && strcmp(d->name, p->d->name) == 0)
			p->begun = k->last - k->first;
	}
	p->ended = p->begun - (p->gauge->last - p->gauge->first);
	if (p->ended < 0)
		p->ended = 0;
}

static int take_place(const struct tacho__explaining *x, const struct tacho__counter_sum *k,
		      const struct work *w, struct place *p)
{
	p->gauge = k;
	p->d = k->depth ? NULL : tacho_read_definition(x->reader, k->process, k->name);
	if (!is_told(p->d, TACHO_DEF_GAUGE, "alive"))
		return 0;
	take_floors(p, w);
	return 1;
}

static double growth(const struct place *p)
{
	return p->floor[3] > p->floor[0] ? p->floor[3] - p->floor[0] : 0;
}

/* In each quarter, and to the end: in the last eighth an eighth of what is usual at least. And not
   for a while only, as at the start of a program. */
static int keeps_growing(const struct tacho__explaining *x, const struct place *p)
{
	const double *q = p->floor;
	double ns = (double)(p->gauge->last_ns - p->gauge->first_ns);

	return ns >= (double)tacho__leak_ns && ns >= tacho__window_ns(x) / 2 && q[0] >= 0 &&
	       q[1] > q[0] && q[2] > q[1] &&
	       q[3] - q[2] >= (q[3] - q[0]) * tacho__last_quarter_share &&
	       p->gauge->last - p->late >= growth(p) * tacho__last_quarter_share / 8;
}

static double connections(const struct tacho__explaining *x, const struct work *w)
{
	struct place p;
	double sum = 0;

	for (const struct tacho__counter_sum *k = NULL;
	     (k = tacho__table_next(&x->sum->counters, k));)
		if (take_place(x, k, w, &p) && is_connection(&p))
			sum += growth(&p);
	return sum;
}

/* What waits for a loop that is full is alive until the loop comes to it. */
static int is_full(const struct tacho__explaining *x)
{
	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));)
		if (!l->serves_one &&
		    (double)l->busy_ns >= tacho__full_share * (double)(l->busy_ns + l->parked_ns) &&
		    (double)l->busy_ns >= tacho__window_ns(x) / 2)
			return 1;
	return 0;
}

/* "uv_timer handles", "threads". */
static const char *many_text(char out[TACHO__TEXT], const struct place *p)
{
	if (strncmp(p->d->name, "uv_", 3) == 0)
		snprintf(out, TACHO__TEXT, "%s handles", p->d->name);
	else if (strcmp(p->d->name, "epoll descriptor") == 0)
		snprintf(out, TACHO__TEXT, "descriptors of epoll sets");
	else if (strncmp(p->d->name, "event added", 11) == 0)
		snprintf(out, TACHO__TEXT, "added events");
	else
		snprintf(out, TACHO__TEXT, "%ss", p->d->name);
	return out;
}

/* NULL: that of the rule. */
static const char *advice(const struct place *p)
{
	if (strncmp(p->d->name, "uv_", 3) == 0)
		return "Close each with uv_close when it is done with: a timer that has fired, or "
		       "a "
		       "handle that was stopped, is still open.";
	if (strcmp(p->d->name, "epoll descriptor") == 0)
		return "Close each when its peer has closed it, after errors, and after a "
		       "time-out.";
	if (strcmp(p->d->name, "thread") == 0)
		return "See what they wait for: give each a way to end, or use a pool of threads.";
	if (is_descriptor(p))
		return "Close each on all paths, also after errors: when the program may have no "
		       "more of them, it can neither accept a connection nor open a file.";
	return NULL;
}

static void find(struct tacho__explaining *x, const struct place *p)
{
	const struct tacho__counter_sum *k = p->gauge;
	double seconds = (double)(k->last_ns - k->first_ns) / 1e9;
	struct tacho__finding *f =
		tacho__find(x, TACHO__RULE_HANDLE_LEAK, TACHO__SEVERITY_WARNING, k->process, 0);
	char many[TACHO__TEXT];

	f->thread = k->thread;
	f->subject = tacho__hash_bytes(p->d->name, strlen(p->d->name), 0);
	tacho__where_id(x, f, (uint32_t)p->d->value, x->sum->last_ns);
	tacho__say_summary(
		f,
		"%s pile up: %.0f were begun here, %.0f of them have ended, and the number "
		"that is alive grows",
		many_text(many, p), p->begun, p->ended);
	if (advice(p))
		tacho__say_advice(f, "%s", advice(p));
	tacho__say_evidence(f, k->thread, k->first_ns, k->last_ns, k->last, "alive",
			    "from %.0f to %.0f alive", k->first, k->last);
	if (seconds > 0 && p->begun > 0)
		tacho__say_evidence(f, k->thread, k->first_ns, k->last_ns, p->begun / seconds,
				    "per second", "%.1f begun and %.1f ended per second",
				    p->begun / seconds, p->ended / seconds);
}

/* All that the rule looks at once. */
struct leaks {
	struct work work;
	double open; /* connections more than before */
	double rest; /* what grows and is no descriptor, which it may have */
	double limit;
};

static int grows(const struct tacho__explaining *x, const struct leaks *l, const struct place *p)
{
	return !is_connection(p) && growth(p) >= l->limit && keeps_growing(x, p);
}

static void take_all(const struct tacho__explaining *x, struct leaks *l)
{
	struct place p;

	l->limit = TACHO__LIMIT(x, HANDLE_LEAK_COUNT);
	l->rest = 0;
	take_work(x, &l->work);
	l->open = connections(x, &l->work);
	for (const struct tacho__counter_sum *k = NULL;
	     (k = tacho__table_next(&x->sum->counters, k));)
		if (take_place(x, k, &l->work, &p) && grows(x, l, &p) && !is_descriptor(&p))
			l->rest += growth(&p);
}

/* Why what grows is no finding; NULL: it is one. */
static const char *no_leak(const struct tacho__explaining *x, const struct leaks *l,
			   const struct place *p)
{
	if (growth(p) <= tacho__per_connection * l->open)
		return "some grow in number as the open connections do";
	if (p->ended >= p->begun / 2 && is_full(x))
		return "some grow in number while their loop is full";
	/* A connection is a descriptor, one of an epoll set, and a handle; the last says most. */
	if (is_descriptor(p) && growth(p) - l->rest < l->limit)
		return "some grow in number as what they are part of does";
	return NULL;
}

void tacho__rules_leak(struct tacho__explaining *x)
{
	const char *dropped, *why = "";
	int told = 0;
	char many[TACHO__TEXT];
	struct leaks l;
	struct place p;

	take_all(x, &l);
	for (const struct tacho__counter_sum *k = NULL;
	     (k = tacho__table_next(&x->sum->counters, k));) {
		if (!take_place(x, k, &l.work, &p))
			continue;
		told = 1;
		if (!grows(x, &l, &p))
			continue;
		take_counts(x, &p);
		dropped = no_leak(x, &l, &p);
		if (dropped)
			tacho__consider(x, TACHO__RULE_HANDLE_LEAK, many_text(many, &p), 0, 0, "%s",
					dropped);
		else
			find(x, &p);
		why = dropped ? dropped : why;
	}
	if (told)
		tacho__cover(x, TACHO__RULE_HANDLE_LEAK, 1, "%s", why);
}
