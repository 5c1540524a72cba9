#include "doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "read/memory.h"

struct tacho__check *tacho__check_add(struct tacho__checks *c, const char *name,
				      enum tacho__check_state state)
{
	static struct tacho__check lost;
	struct tacho__check *at = &lost;

	if (TACHO__GROW(c->items, c->capacity, c->count + 1))
		c->failed = true;
	else
		at = &c->items[c->count++];
	*at = (struct tacho__check){.name = name, .state = state};
	return at;
}

void tacho__check_value(struct tacho__check *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->value, sizeof(c->value), format, args);
	va_end(args);
}

void tacho__check_number(struct tacho__check *c, uint64_t number)
{
	c->is_number = true;
	c->number = number;
}

void tacho__check_bytes(struct tacho__check *c, uint64_t bytes)
{
	tacho__check_number(c, bytes);
	c->is_bytes = true;
}

void tacho__check_means(struct tacho__check *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->means, sizeof(c->means), format, args);
	va_end(args);
}

void tacho__check_todo(struct tacho__check *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->todo, sizeof(c->todo), format, args);
	va_end(args);
}

static void free_checks(struct tacho__checks *c)
{
	free(c->items);
	*c = (struct tacho__checks){0};
}

/* ----------------------------------------------------------------- verdict */

static unsigned count(const struct tacho__checks *c, enum tacho__check_state state)
{
	unsigned n = 0;

	for (size_t i = 0; i < c->count; i++)
		n += c->items[i].state == state;
	return n;
}

static void judge(struct tacho__doctor *d)
{
	const char *what = d->command ? d->command : "";

	d->warnings = count(&d->machine, TACHO__CHECK_WARNING) +
		      count(&d->program, TACHO__CHECK_WARNING) +
		      count(&d->self, TACHO__CHECK_WARNING);
	if (count(&d->self, TACHO__CHECK_CANNOT) || count(&d->machine, TACHO__CHECK_CANNOT)) {
		d->verdict = TACHO__VERDICT_CANNOT;
		snprintf(d->summary, sizeof(d->summary), "Recording does not work here.");
	} else if (count(&d->program, TACHO__CHECK_CANNOT)) {
		d->verdict = TACHO__VERDICT_CANNOT;
		snprintf(d->summary, sizeof(d->summary), "Recording works here, but not for %s.",
			 what);
	} else {
		d->verdict = d->warnings ? TACHO__VERDICT_DEGRADED : TACHO__VERDICT_OK;
		snprintf(d->summary, sizeof(d->summary), "Recording works here%s%s%s.",
			 d->command ? ", also for " : "", what,
			 !d->warnings	    ? ", with everything that tacho can record"
			 : d->warnings == 1 ? "; one thing could be better"
					    : "; some things could be better");
	}
}

int tacho__doctor(struct tacho__doctor *d, const char *command)
{
	*d = (struct tacho__doctor){.command = command};
	tacho__doctor_machine(&d->machine);
	if (command)
		tacho__doctor_program(&d->program, command);
	tacho__doctor_self(&d->self, &d->ran);
	judge(d);
	return d->machine.failed || d->program.failed || d->self.failed ? -ENOMEM : 0;
}

void tacho__doctor_free(struct tacho__doctor *d)
{
	free_checks(&d->machine);
	free_checks(&d->program);
	free_checks(&d->self);
}
