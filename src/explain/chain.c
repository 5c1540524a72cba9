#include "explain/chain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct tacho__place nowhere = {.function = "", .file = "", .module = ""};

const char *tacho__role_name(enum tacho__role role)
{
	static const char *const names[] = {"", "waiter", "holder", "holder-did"};

	return names[role];
}

struct tacho__part *tacho__add_part(struct tacho__finding *f, enum tacho__role role,
				    uint32_t thread)
{
	/* The last gives way: what comes first is nearer to who waits. */
	struct tacho__part *p =
		&f->parts[f->part_count < TACHO__PARTS ? f->part_count++ : TACHO__PARTS - 1];

	*p = (struct tacho__part){.role = role, .thread = thread, .place = nowhere};
	return p;
}

static int is_somewhere(const struct tacho__place *p)
{
	return p->function[0] || p->address;
}

/* --------------------------------------------------------------------- the ledger */

static struct tacho__place place_of(const struct tacho__explaining *x, const struct tacho__owned *o,
				    uint32_t id)
{
	return id ? tacho__own_place(x, o->process, id, o->last_ns) : nowhere;
}

/* Of code: the function that was sampled most in it. */
static struct tacho__place place_of_code(const struct tacho__explaining *x,
					 const struct tacho__owned *o)
{
	const struct tacho__function *most = NULL;

	for (const struct tacho__function *f = NULL;
	     (f = tacho__table_next(&x->out->ledger->functions, f));)
		if (f->owned == o->entry.index && (!most || f->ns > most->ns))
			most = f;
	return most ? most->place : place_of(x, o, o->kind);
}

static void say_did(const struct tacho__explaining *x, struct tacho__part *p,
		    const struct tacho__owned *o)
{
	char name[TACHO__TEXT];

	switch (o->owns) {
	case TACHO__OWNS_CALL:
		snprintf(p->what, sizeof(p->what), "blocked in %s",
			 tacho__id_text(x, name, o->process, o->name));
		p->place = place_of(x, o, o->place);
		break;
	case TACHO__OWNS_CODE:
		snprintf(p->what, sizeof(p->what), "running");
		p->place = place_of_code(x, o);
		break;
	case TACHO__OWNS_LOCK:
		snprintf(p->what, sizeof(p->what), "%s",
			 o->is_signal ? "waiting for another thread to signal it"
				      : "waiting for another lock");
		p->place = place_of(x, o, o->place);
		break;
	case TACHO__OWNS_IDLE:
		snprintf(p->what, sizeof(p->what), "waiting for work");
		break;
	default:
		snprintf(p->what, sizeof(p->what), "%s", tacho__owns_name(o->owns));
		break;
	}
}

static void advise(struct tacho__finding *f, const struct tacho__owned *did,
		   const struct tacho__part *p)
{
	char where[2 * TACHO__TEXT] = "";

	if (is_somewhere(&p->place))
		tacho__place_text(where, &p->place);
	if (did->owns == TACHO__OWNS_CALL)
		tacho__say_advice(
			f,
			"While it holds the lock, the thread is %s%s%s: do that before or "
			"after, or copy what the lock protects.",
			p->what, where[0] ? ", called in " : "", where);
	else if (did->owns == TACHO__OWNS_CODE && where[0])
		tacho__say_advice(f,
				  "While it holds the lock, the thread runs %s: do that before or "
				  "after, split the lock, or copy what it protects.",
				  where);
}

void tacho__chain_owned(struct tacho__explaining *x, struct tacho__finding *f,
			const struct tacho__owned *waiter, const struct tacho__owned *held)
{
	const struct tacho__ledger *l = x->out->ledger;
	const struct tacho__owned *did =
		held && held->did ? tacho__table_at(&l->owned, held->did - 1) : NULL;
	struct tacho__part *p;

	p = tacho__add_part(f, TACHO__ROLE_WAITER, l->threads[waiter->thread].thread);
	p->place = place_of(x, waiter, waiter->place);
	if (!held)
		return;
	p = tacho__add_part(f, TACHO__ROLE_HOLDER, held->holder);
	p->place = place_of(x, held, held->held_place);
	if (!did)
		return;
	p = tacho__add_part(f, TACHO__ROLE_HOLDER_DID, held->holder);
	say_did(x, p, did);
	advise(f, did, p);
}

/* ----------------------------------------------------------------------- at the end */

static void say_at_end(const struct tacho__explaining *x, struct tacho__part *p,
		       const struct tacho__at_end *e)
{
	char text[TACHO__AT_END_TEXT];

	snprintf(p->what, sizeof(p->what), "%.90s", tacho__at_end_does(text, x->reader, e));
	p->place = is_somewhere(&e->at) ? e->at : e->place;
}

const struct tacho__at_end *tacho__chain_open(struct tacho__explaining *x, struct tacho__finding *f,
					      const struct tacho__lock *l)
{
	const struct tacho__at_ends *ends = &x->out->at_ends;
	const struct tacho__at_end *e = tacho__at_end_of(ends, l->at.process, l->owner);
	const struct tacho__at_end *last = NULL;
	struct tacho__part *p = tacho__add_part(f, TACHO__ROLE_WAITER, l->at.thread);

	p->place = tacho__own_place(x, l->at.process, l->stack ? l->stack : l->place, l->end_ns);
	while (e && e->thread != l->at.thread && f->part_count < TACHO__PARTS - 1) {
		p = tacho__add_part(f, TACHO__ROLE_HOLDER, e->thread);
		p->place = e->in == TACHO__IN_LOCK ? e->at : e->place;
		last = e;
		e = e->in == TACHO__IN_LOCK && e->owner
			    ? tacho__at_end_of(ends, e->process, e->owner)
			    : NULL;
	}
	if (last)
		say_at_end(x, tacho__add_part(f, TACHO__ROLE_HOLDER_DID, last->thread), last);
	return last;
}

/* ------------------------------------------------------------------------- in words */

const char *tacho__part_text(char *out, size_t size, const struct tacho_reader *reader,
			     uint32_t process, const struct tacho__part *p)
{
	const struct tacho_thread *t =
		p->thread ? tacho_read_thread_by_number(reader, process, p->thread) : NULL;
	char where[2 * TACHO__TEXT] = "", who[TACHO__TEXT] = "";

	if (is_somewhere(&p->place))
		tacho__place_text(where, &p->place);
	if (p->task)
		snprintf(who, sizeof(who), "task %" PRIu64, p->task);
	else if (t)
		snprintf(who, sizeof(who), "thread %s (%" PRIu32 ")", t->name, t->tid);
	if (p->role == TACHO__ROLE_HOLDER_DID)
		snprintf(out, size, "did     %s%s%s", p->what, where[0] ? " at " : "", where);
	else
		snprintf(out, size, "%-7s %s%s%s", tacho__role_name(p->role), who,
			 where[0] ? who[0] ? " at " : "at " : "", where);
	return out;
}
