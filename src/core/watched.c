#include "core/watched.h"

#include "core/record.h"
#include "core/sentinel.h"
#include "core/short_polls.h"
#include "core/wakes.h"
#include "tacho.h"

const struct tacho__hooks *tacho__hooks;
TACHO__HOT uint64_t tacho__slow_ticks = UINT64_MAX;
__thread uint64_t tacho__look_due __attribute__((tls_model("initial-exec")));
__thread uint32_t tacho__unpark_told __attribute__((tls_model("initial-exec")));

static int watches(uint32_t what)
{
	return (tacho__load(&tacho__watching) & what) != 0;
}

/* The poll that runs on this thread and ends next. */
struct running {
	uint64_t since; /* ticks; 0: none, or none that is known */
	uint32_t kind;
};

static struct running running_poll(void)
{
	const struct tacho__writer *w = tacho__self;
	struct running none = {0, 0};
	const struct tacho_open *open;

	/* In a signal handler that interrupts the storing of a record: what it records is of
	   another stream. */
	if (tacho__load(&w->stream[0].busy))
		return none;
	if (w->pending_kind)
		return (struct running){w->pending_ticks, w->pending_kind};
	open = tacho_underway_poll(&w->now);
	return open ? (struct running){open->since, open->id} : none;
}

static void ended(const struct running *r, uint64_t t)
{
	if (!r->since || t <= r->since)
		return;
	tacho__took(TACHO_SENTINEL_POLL, t - r->since, r->kind);
	if (watches(TACHO__WATCH_HOOKS) && tacho__is_slow(r->since, t))
		tacho__hooks->slow_poll(t - r->since, r->kind);
}

void tacho__watched_loop(uint32_t loop)
{
	tacho__hooks->loop(loop);
}

void tacho__watched_look(uint64_t ticks, int polls)
{
	tacho__hooks->look(ticks, polls);
}

void tacho__watched_slow(uint64_t ticks, uint32_t kind)
{
	/* Not in a signal handler whose poll went into another stream. */
	if (!tacho__load(&tacho__self->stream[0].busy))
		tacho__hooks->slow_poll(ticks, kind);
}

void tacho__watched_park(uint32_t loop, uintptr_t frame)
{
	const struct tacho__writer *w = tacho__self;
	uint64_t since = w->now.parked || tacho__load(&w->stream[0].busy) ? 0 : w->now.park_time;
	uint64_t t = tacho__record_from(tacho_record_head(TACHO_REC_PARK, loop), NULL, 0, 0, frame);

	if (since && t > since && tacho__turn_is_above(t - since, 0))
		tacho__turn_above(since, t, loop, 0, 0);
}

void tacho__watched_poll_begin(uint32_t kind, uint64_t task, uintptr_t frame)
{
	uint32_t head = tacho_record_head(TACHO_REC_POLL_BEGIN, kind);
	uint64_t t = watches(TACHO__WATCH_SHORT) ? tacho__short_poll_begin(kind, task, frame)
						 : tacho__record_from(head, &task, 1, 0, frame);

	if (watches(TACHO__WATCH(WAKE)))
		tacho__wake_polled(task, t, kind);
}

/* Whether the poll that runs is slow to hooks: what they record of it must stand between its end and
   what follows. *now: when that was found out, 0: there are no hooks. */
static int is_slow(const struct running *r, uint64_t *now)
{
	*now = watches(TACHO__WATCH_HOOKS) ? tacho__ticks() : 0;
	return *now && r->since && tacho__is_slow(r->since, *now);
}

void tacho__watched_poll_switch(uint32_t kind, uint64_t task, uintptr_t frame)
{
	uint32_t head = tacho_record_head(TACHO_REC_POLL_SWITCH, kind);
	struct running before = running_poll();
	uint64_t t;

	if (is_slow(&before, &t)) {
		tacho__watched_poll_end(TACHO_UNKNOWN, frame);
		tacho__watched_poll_begin(kind, task, frame);
		return;
	}
	t = watches(TACHO__WATCH_SHORT) ? tacho__short_poll_switch(kind, task, frame)
					: tacho__record_from(head, &task, 1, t, frame);
	ended(&before, t);
	if (watches(TACHO__WATCH(WAKE)))
		tacho__wake_polled(task, t, kind);
}

void tacho__watched_poll_end(uint32_t result, uintptr_t frame)
{
	uint32_t head = tacho_record_head(TACHO_REC_POLL_END, result);
	struct running before = running_poll();
	uint64_t t = watches(TACHO__WATCH_SHORT) ? tacho__short_poll_end(result, frame)
						 : tacho__record_from(head, NULL, 0, 0, frame);

	ended(&before, t);
}

void tacho__watched_poll_end_park(uint32_t result, uint32_t loop, uintptr_t frame)
{
	uint32_t arg = loop | result << TACHO_END_PARK_LOOP_BITS;
	struct running before = running_poll();
	uint64_t now;

	if (is_slow(&before, &now) || loop >> TACHO_END_PARK_LOOP_BITS ||
	    watches(TACHO__WATCH_SHORT | TACHO__WATCH(POLL) | TACHO__WATCH(LAG))) {
		tacho__watched_poll_end(result, frame);
		tacho__watched_park(loop, frame);
	} else {
		tacho__record_from(tacho_record_head(TACHO_REC_END_PARK, arg), NULL, 0, now, frame);
	}
}

void tacho__watched_put1(uint32_t type, uint32_t arg, uint64_t a, uintptr_t frame)
{
	uint64_t t = tacho__record_from(tacho_record_head(type, arg), &a, 1, 0, frame);

	switch (type) {
	case TACHO_REC_WAKE:
		if (watches(TACHO__WATCH(WAKE)))
			tacho__wake_noted(a, t);
		break;
	case TACHO_REC_TASK_END:
		tacho__wake_forgotten(a);
		break;
	case TACHO_REC_QUEUE_DEPTH:
		if (a > tacho__load(&tacho__limit[TACHO_SENTINEL_QUEUE]))
			tacho__above(TACHO_SENTINEL_QUEUE, a, arg);
		break;
	default:
		break;
	}
}
