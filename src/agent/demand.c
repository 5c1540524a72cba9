/*
 * When the window of one process is wanted.
 */
#define _GNU_SOURCE 1 /* memmem */
#include "agent/demand.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/box.h"

/* Between two hearings of a condition that is not enough by itself. */
#define AGAIN_NS UINT64_C(10000000)

/* Whether `watched` alone makes a group hold. */
static bool is_alone(const struct tacho__sentinels *s, unsigned watched)
{
	for (uint32_t i = 0; i < s->count; i++) {
		unsigned members = 0;

		if (s->conditions[i].watched != watched)
			continue;
		for (uint32_t k = 0; k < s->count; k++)
			members += s->conditions[k].group == s->conditions[i].group;
		if (members == 1)
			return true;
	}
	return false;
}

/* How often the recorder saw sentinels hold that it was not to tell of. */
static uint64_t count_suppressed(const struct tacho__demand_rules *r,
				 const struct tacho_box_control *control)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++)
		if (is_alone(&r->sentinels, i))
			sum += control->suppressed[i];
	return sum;
}

static void add_unheard(struct tacho__demand *d)
{
	size_t used = strlen(d->why);

	if (d->unheard)
		snprintf(d->why + used, sizeof(d->why) - used,
			 " (%" PRIu64 " more since the last window, in the cooldown)", d->unheard);
	d->unheard = 0;
}

static void arm_later(struct tacho__demand *d, uint64_t ns)
{
	if (d->arm_ns == 0)
		d->arm_ns = ns;
}

static void want(const struct tacho__demand_rules *r, struct tacho__demand *d, uint64_t now_ns,
		 const char *why, uint32_t trigger, const struct tacho_box_control *control)
{
	uint64_t suppressed = control ? count_suppressed(r, control) : d->suppressed;

	if (d->wanted || now_ns < d->quiet_ns) {
		d->unheard++;
		arm_later(d, d->wanted && d->due_ns > d->quiet_ns ? d->due_ns : d->quiet_ns);
		return;
	}
	/* The box is the program's: the count may be anything. Before the first window there
	   was no cooldown: what was counted held after this trigger. */
	if (d->quiet_ns && suppressed > d->suppressed)
		d->unheard += suppressed - d->suppressed;
	if (d->quiet_ns)
		d->suppressed = suppressed;
	d->wanted = true;
	d->why_ns = now_ns;
	d->due_ns = now_ns + r->after_ns;
	d->trigger = trigger;
	snprintf(d->why, sizeof(d->why), "%s", why);
	add_unheard(d);
	d->quiet_ns = now_ns + r->cooldown_ns;
	d->arm_ns = d->quiet_ns > d->due_ns ? d->quiet_ns : d->due_ns;
}

/* The recorder's own reason ends with the name of what it was about. */
static void add_name(char *why, size_t size, const struct tacho_box_trigger *trigger)
{
	const char *name = memmem(trigger->reason, trigger->size, ": ", 2);
	size_t used = strlen(why);

	if (name)
		snprintf(why + used, size - used, " (%.*s)",
			 (int)(trigger->reason + trigger->size - name) - 2, name + 2);
}

void tacho__demand_begin(const struct tacho__demand_rules *r, struct tacho__demand *d,
			 const struct tacho_box_control *control)
{
	d->suppressed = count_suppressed(r, control);
}

void tacho__demand_trigger(const struct tacho__demand_rules *r, struct tacho__demand *d,
			   uint64_t now_ns, const struct tacho_box_trigger *trigger,
			   const struct tacho_box_control *control)
{
	uint32_t sentinel = TACHO_TRIGGER_SENTINEL(trigger->flags);
	char why[TACHO__WHY_MAX];

	if (sentinel == 0) {
		snprintf(why, sizeof(why), "%.*s", (int)trigger->size, trigger->reason);
		want(r, d, now_ns, why[0] ? why : "the program asked", trigger->number, control);
		return;
	}
	if (sentinel > TACHO_SENTINEL_COUNT)
		return;
	if (tacho__watch_value(&r->sentinels, &d->watch, (enum tacho__watched)(sentinel - 1),
			       now_ns, trigger->value, why, sizeof(why))) {
		add_name(why, sizeof(why), trigger);
		want(r, d, now_ns, why, trigger->number, control);
	} else {
		arm_later(d, now_ns + AGAIN_NS);
	}
}

bool tacho__demand_value(const struct tacho__demand_rules *r, struct tacho__demand *d,
			 enum tacho__watched watched, uint64_t now_ns, uint64_t value,
			 const char *what)
{
	char why[TACHO__WHY_MAX];
	size_t used;

	if (!tacho__watch_value(&r->sentinels, &d->watch, watched, now_ns, value, why, sizeof(why)))
		return false;
	/* There is no later one to tell of it. */
	if (watched == TACHO__WATCH_EXIT) {
		d->wanted = false;
		d->quiet_ns = d->quiet_ns ? 1 : 0;
	}
	used = strlen(why);
	if (what && what[0])
		snprintf(why + used, sizeof(why) - used, "%s", what);
	want(r, d, now_ns, why, 0, NULL);
	return true;
}

bool tacho__demand_due(const struct tacho__demand *d, uint64_t now_ns)
{
	return d->wanted && now_ns >= d->due_ns;
}

void tacho__demand_taken(struct tacho__demand *d)
{
	d->wanted = false;
	d->why[0] = 0;
	d->trigger = 0;
}

bool tacho__demand_arm(struct tacho__demand *d, uint64_t now_ns)
{
	if (d->arm_ns == 0 || now_ns < d->arm_ns || (d->wanted && now_ns < d->due_ns))
		return false;
	d->arm_ns = 0;
	return true;
}

uint64_t tacho__demand_next(const struct tacho__demand *d)
{
	uint64_t next = UINT64_MAX;

	if (d->wanted)
		return d->due_ns;
	if (d->arm_ns)
		next = d->arm_ns;
	return next;
}
