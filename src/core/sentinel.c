#include "core/sentinel.h"

#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "base/text.h"
#include "core/control.h"
#include "core/pool.h"
#include "core/record.h"
#include "core/short_polls.h"
#include "core/trigger.h"
#include "core/wakes.h"
#include "core/watched.h"

/* Longer than any condition that means something, and far from where ticks overflow. */
#define LIMIT_MAX (1ull << 60)

_Static_assert(offsetof(struct tacho_box_control, config) % 8 == 0 &&
		       offsetof(struct tacho_box_control, idle) ==
			       offsetof(struct tacho_box_control, config) + 4,
	       "config and idle are one word");

#define NONE UINT64_MAX
TACHO__HOT uint64_t tacho__limit[TACHO_SENTINEL_COUNT] = {NONE, NONE, NONE, NONE, NONE};
static uint64_t given[TACHO_SENTINEL_COUNT] = {NONE, NONE, NONE, NONE, NONE}; /* as asked for */
static uint32_t applied;  /* `config` that they are of */
static uint32_t applying; /* a thread is at it */

/* ------------------------------------------------------ what is asked for */

/* What is watched whatever limits there are. */
static uint32_t always_watched(void)
{
	return (tacho__load(&tacho__threshold_ticks) ? TACHO__WATCH_SHORT : 0) |
	       (tacho__hooks ? TACHO__WATCH_HOOKS : 0) |
	       (tacho__clock_kind == TACHO_CLOCK_MONOTONIC ? TACHO__WATCH_CLOCK : 0);
}

/* Takes over the limits; 0 when the rate of the clock is not known yet. */
static int read_limits(const struct tacho_box_control *c)
{
	uint32_t watching = always_watched();
	uint64_t limit[TACHO_SENTINEL_COUNT], asked[TACHO_SENTINEL_COUNT];

	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++) {
		uint64_t l = tacho__load(&c->limit[i]);

		if (l > LIMIT_MAX)
			l = LIMIT_MAX;
		asked[i] = limit[i] = l ? l : NONE;
		if (!l)
			continue;
		watching |= 1u << i;
		if (i != TACHO_SENTINEL_QUEUE)
			limit[i] = tacho__ticks_of_ns(l);
		if (limit[i] == UINT64_MAX)
			return 0;
	}
	if (limit[TACHO_SENTINEL_WAKE] != NONE &&
	    tacho__load(&tacho__limit[TACHO_SENTINEL_WAKE]) == NONE && tacho__wakes_begin())
		watching &= ~TACHO__WATCH(WAKE);
	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++) {
		tacho__store(&given[i], asked[i]);
		tacho__store(&tacho__limit[i], limit[i]);
	}
	__atomic_store_n(&tacho__watching, watching, __ATOMIC_RELEASE);
	return 1;
}

static int apply(const struct tacho_box_control *c, uint32_t config)
{
	int done;

	if (config == tacho__load(&applied))
		return 1;
	/* One at a time, so that the limits of one config never replace those of a later one. */
	if (__atomic_exchange_n(&applying, 1, __ATOMIC_ACQUIRE))
		return 0;
	done = read_limits(c);
	if (done)
		tacho__store(&applied, config);
	__atomic_store_n(&applying, 0, __ATOMIC_RELEASE);
	return done;
}

void tacho__heed_config(struct tacho__writer *w)
{
	const struct tacho_box_control *c = tacho__load(&tacho__rec->control);
	uint32_t config;

	if (!c)
		return;
	/* Acquire: the limits are those of this config or of a later one. */
	config = __atomic_load_n(&c->config, __ATOMIC_ACQUIRE);
	/* What could not be done now is tried again at the next unpark: the word is never
	   UINT64_MAX while `idle` is 0. */
	w->calls_heeded = apply(c, config) ? config : UINT64_MAX;
}

void tacho__heed(void)
{
	struct tacho__writer *w = tacho__self;
	int saved = errno;
	uint64_t mask;

	w->called = 0;
	if (tacho__enter(&mask) && w == tacho__self && w->epoch &&
	    w->epoch == tacho__load(&tacho__rec->epoch)) {
		tacho__heed_config(w);
		if (__atomic_exchange_n(&tacho__rec->control->idle, 0, __ATOMIC_RELAXED))
			tacho__wake_agent();
	}
	tacho__leave(mask);
	errno = saved;
}

void tacho__chunk_sealed(void)
{
	struct tacho__recorder *r = tacho__rec;
	struct tacho_box_control *c = tacho__load(&r->control);
	uint32_t sealed, follow;

	if (!c)
		return;
	sealed = __atomic_add_fetch(&c->sealed, 1, __ATOMIC_RELEASE);
	follow = tacho__load(&c->follow);
	if (!follow || sealed - tacho__load(&r->sealed_told) < follow)
		return;
	tacho__store(&r->sealed_told, sealed);
	tacho__wake_agent();
}

void tacho__sentinels_ask(struct tacho_box_control *c, const uint64_t *limit)
{
	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++) {
		c->limit[i] = limit[i];
		c->armed[i] = limit[i] != 0;
		c->config |= limit[i] != 0;
	}
}

void tacho__sentinels_begin(void)
{
	const struct tacho_box_control *c = tacho__rec->control;
	uint32_t config = __atomic_load_n(&c->config, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++)
		tacho__limit[i] = given[i] = NONE;
	applied = applying = 0;
	tacho__store(&tacho__watching, always_watched());
	/* A process in its first two milliseconds does not know the rate of its clock. */
	while (config && !apply(c, config))
		;
}

/* -------------------------------------------------------------- firing */

/* By whether it is about a kind or about a loop. */
static const struct {
	const char *name, *before[2], *after[2];
} words[TACHO_SENTINEL_COUNT] = {
	[TACHO_SENTINEL_POLL] = {"poll", {"poll took ", "turn took "}, {"", ""}},
	[TACHO_SENTINEL_WAKE] = {"wake", {"wake was followed by its poll after ", ""}, {"", ""}},
	[TACHO_SENTINEL_LAG] = {"lag", {"timer was ", "turn took "}, {" late", ""}},
	[TACHO_SENTINEL_SCHED] = {"sched",
				  {"poll waited ", "turn waited "},
				  {" for a CPU", " for a CPU"}},
	[TACHO_SENTINEL_QUEUE] = {"queue", {"", ""}, {" wait for a thread of the pool", " queued"}},
};

/* The definition's class, with its name added to the text. */
static unsigned put_name(struct tacho__text *t, uint32_t id)
{
	const struct tacho__recorder *r = tacho__rec;
	const struct tacho_box_region *g = &r->super->regions[TACHO_REGION_DEF_DATA];
	const struct tacho_box_def *d = &r->defs[id];
	const uint8_t *payload;
	uint16_t size;
	uint64_t at;

	if (!id || id >= tacho__load(&r->super->next_def))
		return 0;
	at = __atomic_load_n(&d->offset, __ATOMIC_ACQUIRE);
	if (!at || d->size < TACHO_NAME_HEAD || (at - 1) * 8 + d->size > g->size)
		return 0;
	payload = r->def_data + (at - 1) * 8;
	memcpy(&size, payload + 12, sizeof(size));
	if (size > d->size - TACHO_NAME_HEAD)
		return 0;
	tacho__text_put(t, ": ");
	tacho__text_put_n(t, (const char *)payload + TACHO_NAME_HEAD, size);
	return d->class;
}

static void put_value(struct tacho__text *t, enum tacho_sentinel which, uint64_t value)
{
	if (which == TACHO_SENTINEL_QUEUE) {
		tacho__text_put_u64(t, value);
		return;
	}
	/* Milliseconds with one decimal; below ten, microseconds. */
	if (value >= 10000000) {
		tacho__text_put_u64(t, value / 1000000);
		tacho__text_put(t, ".");
		tacho__text_put_u64(t, value / 100000 % 10);
		tacho__text_put(t, " ms");
	} else {
		tacho__text_put_u64(t, value / 1000);
		tacho__text_put(t, " us");
	}
}

int tacho__sentinels_parse(const char *text, uint64_t *limit)
{
	while (*text) {
		size_t size = strcspn(text, ","), name = strcspn(text, ">");
		char value[32];
		unsigned i = 0;

		while (i < TACHO_SENTINEL_COUNT &&
		       (strlen(words[i].name) != name || strncmp(words[i].name, text, name)))
			i++;
		if (i == TACHO_SENTINEL_COUNT || name >= size || size - name > sizeof(value))
			return -EINVAL;
		memcpy(value, text + name + 1, size - name - 1);
		value[size - name - 1] = 0;
		if (i == TACHO_SENTINEL_QUEUE ? tacho__parse_u64(value, &limit[i])
					      : tacho__parse_duration(value, &limit[i]))
			return -EINVAL;
		text += size + (text[size] == ',');
	}
	return 0;
}

/*
 * The reason says the value. What the record of the trigger names says only what it was about,
 * because definitions are never forgotten, and there are few of these.
 */
static void fire(enum tacho_sentinel which, uint64_t value, uint32_t id)
{
	char name[TACHO_NAME_MAX + 1], reason[TACHO_REASON_MAX + 2];
	struct tacho__text n, r;
	int loop;

	tacho__text_init(&n, name, sizeof(name));
	tacho__text_put(&n, words[which].name);
	loop = put_name(&n, id) == TACHO_DEF_LOOP;
	tacho__text_init(&r, reason, sizeof(reason));
	tacho__text_put(&r, words[which].before[loop]);
	put_value(&r, which, value);
	tacho__text_put(&r, words[which].after[loop]);
	put_name(&r, id);
	tacho__trigger(name, reason, (uint32_t)(which + 1) << 8, value);
}

/*
 * Counts a sentinel that holds unheard, which it may do all the time, without the system calls
 * of tacho__enter: 1, or 0 when it must be looked at closely. The stream is busy meanwhile, as
 * it is for a record: a handler that forks leaves the memory of the box mapped in the child.
 */
static int suppressed(enum tacho_sentinel which, uintptr_t frame)
{
	struct tacho__writer *w = tacho__self;
	struct tacho__stream *s = &w->stream[0];
	struct tacho_box_control *c;
	int done = 0;

	if (w == &tacho__no_writer || tacho__load(&s->busy))
		return 0;
	tacho__store(&s->busy, frame);
	tacho__signal_fence();
	c = tacho__load(&tacho__rec->control);
	if (c && w->epoch && w->epoch == tacho__load(&tacho__rec->epoch) &&
	    tacho__load(&c->armed[which]) == tacho__load(&c->fired[which])) {
		__atomic_fetch_add(&c->suppressed[which], 1, __ATOMIC_RELAXED);
		done = 1;
	}
	tacho__signal_fence();
	tacho__store(&s->busy, (uintptr_t)0);
	return done;
}

void tacho__above(enum tacho_sentinel which, uint64_t value, uint32_t id)
{
	struct tacho_box_control *c;
	uint32_t armed, fired;
	int saved = errno;
	uint64_t mask;

	if (value <= tacho__load(&given[which]) || suppressed(which, tacho__frame()))
		return;
	if (tacho__enter(&mask)) {
		c = tacho__rec->control;
		armed = tacho__load(&c->armed[which]);
		fired = tacho__load(&c->fired[which]);
		/* Of two threads at once, one. */
		if (armed != fired &&
		    __atomic_compare_exchange_n(&c->fired[which], &fired, armed, 0,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			fire(which, value, id);
		else
			__atomic_fetch_add(&c->suppressed[which], 1, __ATOMIC_RELAXED);
	}
	tacho__leave(mask);
	errno = saved;
}

/* Of another thread, which writes it without a thought of us. */
#define LOOK(x) (*(const volatile __typeof__(x) *)&(x))

/* When the last of the other threads that wait with `loop` was parked, before `until`; `since`: none
   was after that. What others write is looked at as it is: a moment too early or late. */
static __attribute__((no_sanitize("thread"))) uint64_t last_served(uint32_t loop, uint64_t since,
								   uint64_t until)
{
	const struct tacho_box_super *super = tacho__rec->super;
	uint32_t used = super ? tacho__load(&super->threads_used) : 0;

	for (uint32_t i = 0; i < used && i < TACHO__THREADS_MAX; i++) {
		const struct tacho__writer *w = &tacho__writers[i];
		uint64_t time = LOOK(w->now.park_time);

		if (w == tacho__self || LOOK(w->now.loop) != loop ||
		    LOOK(w->epoch) != tacho__load(&tacho__rec->epoch))
			continue;
		/* Not one that died in its wait. */
		if (LOOK(w->now.parked) &&
		    !TACHO__SYS(SYS_tgkill, tacho__getpid(), LOOK(w->tid), 0, 0, 0, 0))
			return until;
		if (time > since)
			since = time;
	}
	return since < until ? since : until;
}

void tacho__turn_above(uint64_t since, uint64_t until, uint32_t loop, int whole, uint64_t ran)
{
	uint64_t unserved = until - last_served(loop, since, until);

	tacho__took(TACHO_SENTINEL_LAG, unserved, loop);
	if (whole)
		tacho__took(TACHO_SENTINEL_POLL, unserved > ran ? unserved : ran, loop);
}

void tacho__above_ticks(enum tacho_sentinel which, uint64_t ticks, uint32_t id)
{
	tacho__above(which, tacho__ns_of_ticks(ticks), id);
}
