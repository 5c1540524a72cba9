/* What the inline functions of tacho.h call. */
#include <string.h>

#include "core/control.h"
#include "core/define.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/wakes.h"
#include "core/watched.h"
#include "tacho.h"

/* Numbers that tacho.h writes out. */
_Static_assert(TACHO_REC_QUEUE_DEPTH == 0x47 && TACHO_REC_STEAL == 0x81 &&
		       TACHO_REC_SPAWN == 0xc0 && TACHO_REC_WAKE == 0x43 &&
		       TACHO_REC_TASK_END == 0x44 && TACHO_REC_TASK_WAITS == 0xc1 &&
		       TACHO_REC_LOCK_WAIT == 0x45 && TACHO_REC_LOCK_WAITED == 0x46 &&
		       TACHO_REC_LOCK_RELEASE == 0x80 && TACHO_REC_ASYNC_BEGIN == 0x82 &&
		       TACHO_REC_ASYNC_END == 0x49 && TACHO_REC_TRACE_ID == 0xc2 &&
		       TACHO_REC_COUNTER == 0x48,
	       "record types as in the inline functions");
_Static_assert(TACHO_SCHEMA_FIELDS == 16 && TACHO_RECORD_MAX_WORDS == 128, "as in TACHO_EVENT");

static inline int watches(uint32_t what)
{
	return (tacho__load(&tacho__watching) & what) != 0;
}

/* Whether there is nothing to do but to store a record, with the time of the counter. What else there
   may be is in functions that are called last: so the way to here is short, in code and in stack. */
static inline int is_plain(void)
{
	return tacho__likely(!tacho__load(&tacho__watching)) != 0;
}

/* One record without words, plainly. */
static inline __attribute__((always_inline)) uint64_t plain(unsigned type, uint32_t arg,
							    uintptr_t frame)
{
	return tacho__record_by(tacho_record_head(type, arg), NULL, 0, 0, TACHO__COUNTER, frame);
}

#define OTHERWISE static __attribute__((noinline))

void tacho__loop(uint32_t loop)
{
	tacho__record(tacho_record_head(TACHO_REC_LOOP, loop), NULL, 0);
	if (tacho__unlikely(watches(TACHO__WATCH_HOOKS)))
		tacho__watched_loop(loop);
}

OTHERWISE void park_otherwise(uint32_t loop, uintptr_t frame)
{
	if (watches(TACHO__WATCH(LAG)))
		tacho__watched_park(loop, frame);
	else
		tacho__record_from(tacho_record_head(TACHO_REC_PARK, loop), NULL, 0, 0, frame);
}

TACHO__HOT_CODE void tacho__park(uint32_t loop)
{
	if (is_plain())
		plain(TACHO_REC_PARK, loop, tacho__frame());
	else
		park_otherwise(loop, tacho__frame());
}

/* Whether hooks have told already that the thread is back from its park. */
static inline int was_told(void)
{
	uint32_t told = tacho__unpark_told;

	tacho__unpark_told = 0;
	return told && !tacho__self->now.parked;
}

/* Its ticks, or 0. */
OTHERWISE uint64_t unpark(uint32_t loop, uint32_t ready, uintptr_t frame)
{
	uint64_t t;

	if (tacho__unlikely(watches(TACHO__WATCH_HOOKS)) && was_told())
		return 0;
	/* The record says how many are ready; the loop is the one that was parked on. */
	if (tacho__unlikely(tacho__self->now.loop != loop))
		tacho__loop(loop);
	if (ready > TACHO_ARG_MAX)
		ready = TACHO_ARG_MAX;
	t = tacho__record_from(tacho_record_head(TACHO_REC_UNPARK, ready), NULL, 0, 0, frame);
	tacho__unparked();
	if (watches(TACHO__WATCH_HOOKS) && tacho__look_is_due(t))
		tacho__watched_look(t, 0);
	return t;
}

TACHO__HOT_CODE void tacho__unpark(uint32_t loop, uint32_t ready)
{
	if (is_plain() && tacho__likely(tacho__self->now.loop == loop && ready <= TACHO_ARG_MAX)) {
		plain(TACHO_REC_UNPARK, ready, tacho__frame());
		tacho__unparked();
	} else {
		unpark(loop, ready, tacho__frame());
	}
}

void tacho__unpark_poll(uint32_t loop, uint32_t ready, uint32_t kind, uint64_t task)
{
	uint64_t t = unpark(loop, ready, tacho__frame());

	if (tacho__unlikely(watches(TACHO__WATCH_SHORT | TACHO__WATCH(WAKE))))
		tacho__watched_poll_begin(kind, task, tacho__frame());
	else
		tacho__record_poll_begin(kind, task, t, TACHO__ANY_CLOCK, tacho__frame());
}

OTHERWISE void poll_begin_otherwise(uint32_t kind, uint64_t task, uintptr_t frame)
{
	/* The clock need not be read to look: the last record was just now. */
	uint64_t last = tacho__self->stream[0].last;

	if (watches(TACHO__WATCH_HOOKS) && tacho__look_is_due(last))
		tacho__watched_look(last, 1);
	if (watches(TACHO__WATCH_SHORT | TACHO__WATCH(WAKE)))
		tacho__watched_poll_begin(kind, task, frame);
	else
		tacho__record_poll_begin(kind, task, 0, TACHO__ANY_CLOCK, frame);
}

TACHO__HOT_CODE void tacho__poll_begin(uint32_t kind, uint64_t task)
{
	if (is_plain())
		tacho__record_poll_begin(kind, task, 0, TACHO__COUNTER, tacho__frame());
	else
		poll_begin_otherwise(kind, task, tacho__frame());
}

void tacho__poll_switch(uint32_t kind, uint64_t task)
{
	if (tacho__unlikely(watches(TACHO__WATCH_SHORT | TACHO__WATCH(WAKE) | TACHO__WATCH(POLL) |
				    TACHO__WATCH_HOOKS)))
		tacho__watched_poll_switch(kind, task, tacho__frame());
	else
		tacho__record(tacho_record_head(TACHO_REC_POLL_SWITCH, kind), &task, 1);
}

OTHERWISE void poll_end_otherwise(uint32_t result, uintptr_t frame)
{
	uint64_t t;

	if (watches(TACHO__WATCH_SHORT | TACHO__WATCH(POLL))) {
		tacho__watched_poll_end(result, frame);
		return;
	}
	t = tacho__record_from(tacho_record_head(TACHO_REC_POLL_END, result), NULL, 0, 0, frame);
	if (watches(TACHO__WATCH_HOOKS)) {
		/* It is not open any more, but still where it was. */
		const struct tacho_underway *now = &tacho__self->now;
		const struct tacho_open *poll = &now->open[now->depth % TACHO_OPEN_MAX];

		if (tacho__is_slow(poll->since, t))
			tacho__watched_slow(t - poll->since, poll->id);
	}
}

TACHO__HOT_CODE void tacho__poll_end(uint32_t result)
{
	if (is_plain())
		plain(TACHO_REC_POLL_END, result & 3, tacho__frame());
	else
		poll_end_otherwise(result & 3, tacho__frame());
}

void tacho__poll_end_park(uint32_t result, uint32_t loop)
{
	uint32_t arg = loop | (result & 3) << TACHO_END_PARK_LOOP_BITS;

	if (tacho__unlikely(watches(TACHO__WATCH_SHORT | TACHO__WATCH(POLL) | TACHO__WATCH(LAG) |
				    TACHO__WATCH_HOOKS) ||
			    loop >> TACHO_END_PARK_LOOP_BITS))
		tacho__watched_poll_end_park(result & 3, loop, tacho__frame());
	else
		tacho__record(tacho_record_head(TACHO_REC_END_PARK, arg), NULL, 0);
}

void tacho__span_begin(uint32_t name)
{
	tacho__record(tacho_record_head(TACHO_REC_SPAN_BEGIN, name), NULL, 0);
}

void tacho__span_end(uint32_t name)
{
	tacho__record(tacho_record_head(TACHO_REC_SPAN_END, name), NULL, 0);
}

OTHERWISE void put1_otherwise(uint32_t type, uint32_t arg, uint64_t a, uintptr_t frame)
{
	if (watches(TACHO__WATCH(WAKE) | TACHO__WATCH(QUEUE)))
		tacho__watched_put1(type, arg, a, frame);
	else
		tacho__record_word(tacho_record_head(type, arg), a,
				   type == TACHO_REC_WAKE	? TACHO_REC_WAKE_SMALL
				   : type == TACHO_REC_TASK_END ? TACHO_REC_TASK_END_SMALL
								: 0,
				   TACHO__ANY_CLOCK, frame);
}

/* Most are wakes. */
TACHO__HOT_CODE void tacho__put1(uint32_t type, uint32_t arg, uint64_t a)
{
	if (is_plain() && tacho__likely(type == TACHO_REC_WAKE))
		tacho__record_word(tacho_record_head(TACHO_REC_WAKE, arg), a, TACHO_REC_WAKE_SMALL,
				   TACHO__COUNTER, tacho__frame());
	else
		put1_otherwise(type, arg, a, tacho__frame());
}

void tacho__put2(uint32_t type, uint32_t arg, uint64_t a, uint64_t b)
{
	uint64_t words[2] = {a, b};

	tacho__record(tacho_record_head(type, arg), words, 2);
}

/* What gcc knows to be short it copies with `rep movs`, which takes 25 ns to begin: so it does not
   know. */
static inline void copy(void *to, const void *from, size_t size)
{
	__asm__("" : "+r"(size));
	memcpy(to, from, size);
}

void tacho__put(uint32_t type, uint32_t arg, uint64_t data, const uint64_t *words, uint32_t count)
{
	uint64_t all[TACHO_RECORD_MAX_WORDS];

	/* Spawn and task_waits: a size known to the compiler makes the copy a few stores. */
	if (tacho__likely(count == 2)) {
		uint64_t three[3] = {3 | data << 16, words[0], words[1]};

		tacho__record(tacho_record_head(type, arg), three, 3);
		/* One that had its number before was never polled. */
		if (tacho__unlikely(watches(TACHO__WATCH(WAKE)) && type == TACHO_REC_SPAWN))
			tacho__wake_forgotten(words[0]);
		return;
	}
	if (count >= TACHO_RECORD_MAX_WORDS) {
		if (tacho__recorder_ready())
			tacho__count(TACHO_LOSS_RECORD_BIG, 1);
		return;
	}
	all[0] = (count + 1) | data << 16;
	copy(all + 1, words, count * sizeof(words[0]));
	tacho__record(tacho_record_head(type, arg), all, count + 1);
}

/* Bytes into words, the last padded with zeros; how many words. */
static uint32_t pack_text(uint64_t *words, const char *text, size_t size)
{
	uint32_t n = (uint32_t)((size + 7) / 8);

	if (n)
		words[n - 1] = 0;
	copy(words, text, size);
	return n;
}

#define TEXT_CUT (1u << 15)

void tacho__log(uint32_t level, const char *text, size_t size)
{
	uint64_t words[TACHO_TEXT_MAX / 8];
	uint64_t cut = 0;

	size = strnlen(text, size < TACHO_TEXT_MAX + 1 ? size : TACHO_TEXT_MAX + 1);
	if (size > TACHO_TEXT_MAX) {
		size = TACHO_TEXT_MAX;
		cut = TEXT_CUT;
		if (tacho__recorder_ready())
			tacho__count(TACHO_LOSS_TEXT_CUT, 1);
	}
	tacho__put(TACHO_REC_LOG, level & 0xff, size | cut, words, pack_text(words, text, size));
}

/* ------------------------------------------------------- definitions */

uint32_t tacho__define(struct tacho_name *name)
{
	uint64_t value = (uint64_t)(uintptr_t)name->address;
	uint32_t id;

	if (!tacho__recorder_ready())
		return 0;
	if (name->name_class == TACHO_DEF_LOOP)
		value = (uint64_t)(uintptr_t)name;
	id = tacho__define_name((enum tacho_definition_class)name->name_class, name->text,
				name->file, name->line, value, name->detail, name->unit);
	/* Two threads may store here at once; both ids mean the same. */
	__atomic_store_n(&name->id, id, __ATOMIC_RELAXED);
	return id;
}

uint32_t tacho__define_schema(struct tacho__schema *schema)
{
	uint8_t buf[TACHO_DEF_PAYLOAD_MAX];
	size_t name_size = strnlen(schema->name, 200);
	uint16_t n16 = (uint16_t)name_size;
	uint16_t count = (uint16_t)schema->count;
	uint32_t at = TACHO_SCHEMA_HEAD;
	unsigned flags = schema->name[name_size] ? TACHO_DEF_CUT : 0;
	uint32_t id;

	if (!tacho__recorder_ready())
		return 0;
	memcpy(buf, &n16, 2);
	memcpy(buf + 2, &count, 2);
	memcpy(buf + at, schema->name, name_size);
	at += n16;
	for (uint32_t i = 0; i < schema->count; i++) {
		/* 16 fields of 2 + 49 bytes and the name fit. */
		size_t size = strnlen(schema->fields[i].name, 49);

		if (schema->fields[i].name[size])
			flags |= TACHO_DEF_CUT;
		buf[at++] = schema->fields[i].type;
		buf[at++] = (uint8_t)size;
		memcpy(buf + at, schema->fields[i].name, size);
		at += (uint32_t)size;
	}
	id = tacho__define_payload(TACHO_DEF_SCHEMA, flags, buf, at);
	__atomic_store_n(&schema->id, id, __ATOMIC_RELAXED);
	return id;
}

void tacho__event_string(struct tacho__event *e, const char *text)
{
	/* Each field that is still to come keeps a word. */
	uint32_t room = TACHO_RECORD_MAX_WORDS - 1 - e->used - (TACHO_SCHEMA_FIELDS - 1 - e->field);
	size_t most = room * 8 < TACHO_TEXT_MAX ? room * 8 : TACHO_TEXT_MAX;
	size_t size;
	uint64_t head;

	if (!text) {
		e->field++;
		return;
	}
	size = strnlen(text, most + 1);
	head = size;
	if (size > most) {
		size = most;
		head = size | TEXT_CUT;
		if (tacho__recorder_ready())
			tacho__count(TACHO_LOSS_TEXT_CUT, 1);
	}
	tacho__event_word(e, head);
	e->used += pack_text(e->words + e->used, text, size);
}

void tacho__event_put(struct tacho__event *e)
{
	e->words[0] = e->used | (uint64_t)e->present << 16;
	tacho__record(tacho_record_head(TACHO_REC_EVENT, e->schema), e->words, e->used);
}

/* ------------------------------------------------------------- other */

uint64_t tacho_task_new(void)
{
	static uint64_t next;

	return __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
}
