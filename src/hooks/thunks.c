/*
 * Taking a thunk: one is reserved by one atomic addition, filled, and then linked into its chain.
 * Two threads that take one for the same function at the same moment may both succeed: two thunks
 * that do the same.
 */
#include "hooks/thunks.h"

#include "base/hash.h"
#include "core/control.h"
#include "core/define.h"

#define CHAIN_BITS 8

struct tacho__thunk tacho__thunks[TACHO__THUNKS];
static uint32_t used;
static uint32_t chains[1u << CHAIN_BITS];

static uint32_t find(uint32_t link, uint32_t until, tacho__word function, uint32_t use)
{
	for (; link && link != until; link = tacho__thunks[link - 1].next)
		if (tacho__thunks[link - 1].function == function &&
		    tacho__thunks[link - 1].use == use)
			return link;
	return 0;
}

static __attribute__((cold, noinline)) uint32_t take(uint32_t *chain, uint32_t head,
						     tacho__word function, uint32_t use)
{
	uint32_t i = tacho__load(&used), seen = 0, link;

	do {
		if (i == TACHO__THUNKS)
			return 0;
	} while (!__atomic_compare_exchange_n(&used, &i, i + 1, 0, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	tacho__thunks[i].function = function;
	tacho__thunks[i].use = use;
	do {
		link = find(head, seen, function, use);
		if (link)
			return link;
		seen = head;
		tacho__thunks[i].next = head;
	} while (!__atomic_compare_exchange_n(chain, &head, i + 1, 0, __ATOMIC_RELEASE,
					      __ATOMIC_ACQUIRE));
	return i + 1;
}

uint32_t tacho__thunk_take(tacho__word function, uint32_t use)
{
	uint32_t *chain = &chains[tacho__mix(function ^ (uint64_t)use << 48) >> (64 - CHAIN_BITS)];
	uint32_t head = __atomic_load_n(chain, __ATOMIC_ACQUIRE);
	uint32_t link = find(head, 0, function, use);

	return tacho__likely(link) ? link : take(chain, head, function, use);
}

uint32_t tacho__thunk_define(const struct tacho__thunk *t, const char *name, uint64_t *known)
{
	uint32_t id;

	if (!tacho__recorder_ready())
		return 0;
	id = tacho__define_name(TACHO_DEF_KIND, name, NULL, 0, t->function, 0, NULL);
	tacho__store(known, (uint64_t)tacho__load(&tacho__rec->epoch) << 32 | id);
	return id;
}

uint64_t tacho__watched_begins(uint32_t kind, tacho__word task, int whole, uint64_t shared)
{
	uint64_t t = tacho__watches(TACHO__WATCH_SHORT) && !whole
			     ? tacho__short_poll_begin(kind, task, tacho__frame())
			     : tacho__record_poll_begin(kind, task, shared, TACHO__ANY_CLOCK,
							tacho__frame());

	if (tacho__watches(TACHO__WATCH(WAKE)))
		tacho__wake_polled(task, t, kind);
	return t;
}

void tacho__watched_ended(uint32_t kind, uint64_t begin, uint32_t result, int in_loop)
{
	uint64_t t;

	if (tacho__watches(TACHO__WATCH_SHORT)) {
		t = tacho__short_poll_end(result, tacho__frame());
	} else {
		t = tacho__record(tacho_record_head(TACHO_REC_POLL_END, result), NULL, 0);
		tacho__edge(t, in_loop);
	}
	if (t > begin) {
		tacho__took(TACHO_SENTINEL_POLL, t - begin, kind);
		tacho__slow_poll(t - begin, kind);
	}
}
