/*
 * What of a process cannot be read, and which findings this could make by itself.
 *
 * A rule that misses a record concludes from its absence: the wake that led to no poll, the callback that
 * did not end. So a finding is dropped where records are lost that could have been those it misses.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explain/rules.h"

/* ------------------------------------------------------------ how much is left */

static double share_of(const struct tacho__readable *r, const struct tacho__damage *d)
{
	uint64_t all = r->records + r->lost;
	double share = all ? (double)r->records / (double)all : r->is_damaged ? 0 : 1;
	double bytes = d->bytes ? 1 - (double)d->lost_bytes / (double)d->bytes : 1;

	return r->is_uncounted && !d->is_box && bytes < share ? bytes : share;
}

/* "0.5", "87", "99.9": never 0 or 100 of a part. */
static const char *percent_text(char out[TACHO__TEXT], double share)
{
	double percent = 100 * share;

	snprintf(out, TACHO__TEXT, "%.*f",
		 percent < 9.95 || (percent > 99 && percent < 100) ? 1 : 0,
		 percent > 99.9 && percent < 100 ? 99.9
		 : percent > 0 && percent < 0.1	 ? 0.1
						 : percent);
	return out;
}

static const char *what_of(const struct tacho__damage *d)
{
	return d->is_box ? "box" : "file";
}

/* `what` it is: a file, or all of them. */
static void say_readable(struct tacho__readable *r, const struct tacho__damage *d, uint64_t window,
			 const char *what)
{
	char share[TACHO__TEXT], ns[TACHO__TEXT];

	if (!r->is_damaged)
		return;
	percent_text(share, r->share);
	if (r->is_cut && !r->records)
		snprintf(r->text, sizeof(r->text),
			 "the %s is cut: its end is missing, and no record is left", what);
	else if (r->is_cut)
		snprintf(r->text, sizeof(r->text),
			 "the %s is cut: its end is missing. %" PRIu64 " records of %s are left",
			 what, r->records, tacho__ns_text(ns, (double)window));
	else if (r->is_uncounted)
		snprintf(r->text, sizeof(r->text),
			 "the %s is damaged in %" PRIu32 " place%s: at most %s %% of it can be "
			 "read, %" PRIu64 " records",
			 what, d->places, d->places == 1 ? "" : "s", share, r->records);
	else if (r->lost)
		snprintf(r->text, sizeof(r->text),
			 "the %s is damaged: %s %% of it can be read, %" PRIu64 " of %" PRIu64
			 " records",
			 what, share, r->records, r->records + r->lost);
	else
		snprintf(r->text, sizeof(r->text),
			 "the %s is damaged in %" PRIu32
			 " place%s: all records can be read, but not "
			 "all that describes them",
			 what, d->places, d->places == 1 ? "" : "s");
}

static void take_damage(struct tacho__readable *r, const struct tacho__damage *d)
{
	r->is_damaged = d->places != 0;
	r->is_cut = d->is_cut;
	r->is_uncounted = d->is_uncounted;
	r->share = share_of(r, d);
}

void tacho__know_losses(struct tacho__explaining *x)
{
	const struct tacho__process_sum *p = &x->sum->process[x->process];
	struct tacho__readable *r = &x->out->processes[x->process].readable;
	struct tacho__damage *d = &x->damage;

	tacho__read_damage(x->reader, x->process, d);
	r->records = p->events;
	r->lost = p->missing + p->dropped + d->lost + d->dropped;
	take_damage(r, d);
	say_readable(r, d, x->sum->last_ns - x->sum->first_ns, what_of(d));
}

void tacho__sum_losses(struct tacho__explaining *x)
{
	struct tacho__explanation *e = x->out;
	struct tacho__readable *all = &e->readable;
	uint64_t last, first = tacho__explained_window(e, &last);
	struct tacho__damage d;

	tacho__read_damage(x->reader, UINT32_MAX, &d);
	for (uint32_t i = 0; i < e->process_count; i++) {
		all->records += e->processes[i].readable.records;
		all->lost += e->processes[i].readable.lost;
	}
	take_damage(all, &d);
	say_readable(all, &d, last - first, e->process_count > 1 ? "trace" : what_of(&d));
}

/* ------------------------------------------------------------ what that could make */

/* Since when nothing may be missing, if the finding is to be believed. */
static uint64_t since_of(const struct tacho__explaining *x, const struct tacho__finding *f)
{
	return f->evidence_count ? f->evidence[0].from_ns : x->sum->first_ns;
}

/* An agent could not deliver all of it. */
static int has_gap(const struct tacho__explaining *x, uint64_t since)
{
	for (uint32_t i = 0; i < tacho_read_gap_count(x->reader); i++) {
		const struct tacho_gap *g = tacho_read_gap(x->reader, i);

		if (g->process == x->process && g->to_ns > since &&
		    strcmp(g->reason, "kernel") != 0)
			return 1;
	}
	return 0;
}

/* A record that the finding misses may have been lost: of any thread. */
static int may_be_lost(const struct tacho__explaining *x, const struct tacho__finding *f)
{
	const struct tacho__process_sum *p = &x->sum->process[x->process];
	uint64_t since = since_of(x, f), absent = f->absent ? f->absent : 1;
	uint64_t lost = p->missing + p->dropped + x->damage.dropped;

	return has_gap(x, since) || tacho__counted(x, x->process, "no_thread") >= (double)absent ||
	       (lost >= absent && (x->damage.dropped || p->hole_ns > since));
}

/* The same of the last that its thread recorded: what is open at a hole ends there. */
static int may_end_early(const struct tacho__explaining *x, const struct tacho__finding *f)
{
	return x->damage.dropped || has_gap(x, since_of(x, f));
}

/* Too much of the file is lost to say how much what is left means. */
static int says_little(const struct tacho__explaining *x)
{
	const struct tacho__readable *r = &x->out->processes[x->process].readable;

	return x->damage.lacks_facts || 100 * (1 - r->share) >= TACHO__LIMIT(x, RECORDER_LOSS_WARN);
}

/* Why it is no alarm; NULL: it is one. */
static const char *doubt(const struct tacho__explaining *x, const struct tacho__finding *f)
{
	enum tacho__rests rests = f->rests ? f->rests : tacho__rules[f->rule].rests;

	if (rests == TACHO__RESTS_ON_FACTS)
		return NULL;
	if (rests == TACHO__RESTS_ON_ABSENCE ? may_be_lost(x, f)
					     : rests == TACHO__RESTS_ON_END && may_end_early(x, f))
		return "records are lost, and those that would explain it may be among them";
	if (!x->damage.places)
		return NULL;
	if (rests != TACHO__RESTS_ON_RECORDS)
		return "the file is damaged, and the damage may be all there is to it";
	return says_little(x) ? "the file is damaged, and too little is left to judge it" : NULL;
}

/* What records show by themselves stays as a note; all else is not said. */
void tacho__withhold(struct tacho__explaining *x, uint32_t first)
{
	struct tacho__explanation *e = x->out;
	uint32_t kept = first;

	for (uint32_t i = first; i < e->count; i++) {
		struct tacho__finding *f = &e->findings[i];
		const char *why = f->severity != TACHO__SEVERITY_INFO ? doubt(x, f) : NULL;

		/* What is too small by itself does not become an alarm with others. */
		if (why && !f->severity)
			continue;
		if (why)
			tacho__uncover(x, f->rule, why);
		if (why && !f->rests && tacho__rules[f->rule].rests == TACHO__RESTS_ON_RECORDS) {
			f->severity = TACHO__SEVERITY_INFO;
			why = NULL;
		}
		if (why)
			tacho__consider(x, f->rule, f->summary, f->cost_ns, f->waiting_ns, "%s",
					why);
		else
			e->findings[kept++] = *f;
	}
	e->count = kept;
}
