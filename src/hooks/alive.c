/*
 * Places that begin something, and the table of what is alive. See alive.h.
 *
 * The table has buckets of a cache line: seven words, each a key and the number of its place, and how
 * many keys of the bucket are elsewhere. A key is at the one word that its hash says; if that is
 * taken, anywhere in its bucket, or in that of the next level, which has four times the buckets.
 * Levels never go away, and words change with one store each: so keys are found, put and removed
 * without a lock. Two threads at one key are a race of the program; they leave a count that is off by
 * one.
 *
 * After fork a child has what its parent had, and counts on from there; only that its parent's
 * threads are not in it is not known.
 */
#include "hooks/alive.h"

#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/sys.h"
#include "core/control.h"
#include "core/define.h"
#include "core/pool.h"
#include "core/record.h"
#include "hooks/calls.h"
#include "hooks/event.h"
#include "hooks/locks.h"

/* ---------------------------------------------------------------- places */

#define PLACES 512u
#define PROBES 8u
#define LEAST 16u			/* alive, before anything is told */
#define INTERVAL_NS UINT64_C(100000000) /* between two times that it is told */

/*
 * Most places are always reached by one thread, the first that was there: it counts without atomic
 * additions, which take most of the time of a begin and an end. A signal handler that comes between
 * its load and its store, and is at the same place, leaves a count that is off by one.
 */
struct place {
	uint64_t code; /* kind << 56 | address of the caller; 0: free */
	const void *owner;
	uint64_t own_begun, own_ended;
	uint64_t told;	     /* ticks */
	uint32_t told_alive; /* saturated; 0: nothing was told, or none alive */
	uint32_t is_library; /* what libuv and libevent begin is part of something else */
	uint64_t gauge;	     /* epoch << 32 | definition */
	uint64_t counter;    /* definition */
	/* By all other threads. */
	uint64_t others_begun __attribute__((aligned(64))), others_ended;
};

static struct place places[PLACES];

static const struct {
	const char *name;
	uint32_t rate;
} kinds[] = {
#define KIND(kind, name, rate) {name, (1u << (rate)) - 1},
	TACHO__ALIVE_KINDS(KIND)
#undef KIND
};

static inline uint64_t begun_of(const struct place *p)
{
	return tacho__load(&p->own_begun) + tacho__load(&p->others_begun);
}

static inline uint64_t ended_of(const struct place *p)
{
	return tacho__load(&p->own_ended) + tacho__load(&p->others_ended);
}

static inline void add_one(const struct place *p, uint64_t *own, uint64_t *others)
{
	if (tacho__likely(tacho__load(&p->owner) == &tacho__hook))
		tacho__store(own, tacho__load(own) + 1);
	else
		__atomic_add_fetch(others, 1, __ATOMIC_RELAXED);
}

static enum tacho__alive kind_of(const struct place *p)
{
	return (enum tacho__alive)(tacho__load(&p->code) >> 56);
}

static int in_library(const void *caller)
{
	const char *path = tacho__code_path((uintptr_t)caller);
	const char *slash = path ? strrchr(path, '/') : NULL;

	return (slash && !strncmp(slash, "/libuv.", 7)) ||
	       tacho__event_is_libevent((uintptr_t)caller);
}

static __attribute__((cold, noinline)) uint32_t make_place(uint64_t code, const void *caller)
{
	uint32_t at = (uint32_t)(tacho__mix(code) >> 32);
	int saved = errno;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct place *p = &places[(at + i) % PLACES];
		uint64_t found = 0;

		/* The first is for others. */
		if (p == places)
			continue;
		if (!__atomic_compare_exchange_n(&p->code, &found, code, 0, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED)) {
			if (found != code)
				continue;
		} else {
			tacho__store(&p->owner, (const void *)&tacho__hook);
			if (kind_of(p) > TACHO__ALIVE_THREAD ||
			    kind_of(p) == TACHO__ALIVE_DESCRIPTOR)
				tacho__store(&p->is_library, (uint32_t)in_library(caller));
			errno = saved;
		}
		return (uint32_t)(p - places);
	}
	return 0;
}

static inline uint32_t place_of(enum tacho__alive kind, const void *caller)
{
	uint64_t code = (uint64_t)kind << 56 | ((uintptr_t)caller & UINT64_C(0xffffffffffffff));
	uint32_t at = (uint32_t)(tacho__mix(code) >> 32);

	for (uint32_t i = 0; i < PROBES; i++) {
		uint64_t found = tacho__load(&places[(at + i) % PLACES].code);

		if (tacho__likely(found == code))
			return (at + i) % PLACES;
		if (!found && (at + i) % PLACES)
			break;
	}
	return make_place(code, caller);
}

/* --------------------------------------------------------------- telling */

static int has_box(void)
{
	return tacho__rec &&
	       __atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE) == TACHO__PHASE_READY;
}

static int is_defined(const struct place *p)
{
	return has_box() && tacho__load(&p->gauge) >> 32 == tacho__load(&tacho__rec->epoch);
}

/*
 * The gauge and the counter of a place have in their value where that is: the stack of one that was
 * begun there, as what calls pthread_create may be a library.
 */
static void define(struct place *p, const void *caller)
{
	const char *name = kinds[kind_of(p)].name;
	uint32_t at = 0, epoch;

	if (p == places)
		at = tacho__define_name(TACHO_DEF_PLACE, "other places", NULL, 0, 0, 0, NULL);
	else if (tacho__on_loop_thread() || tacho__load(&tacho__stacks_ready))
		at = tacho__stack_from(caller, NULL, 0);
	/* Stacks may have no room left. */
	if (!at)
		at = tacho__place(caller);
	epoch = tacho__load(&tacho__rec->epoch);
	tacho__store(&p->counter, (uint64_t)tacho__define_name(TACHO_DEF_COUNTER, name, NULL, 0, at,
							       TACHO_VALUE_I64, "begun"));
	__atomic_store_n(&p->gauge,
			 (uint64_t)epoch << 32 | tacho__define_name(TACHO_DEF_GAUGE, name, NULL, 0,
								    at, TACHO_VALUE_I64, "alive"),
			 __ATOMIC_RELEASE);
}

/* In ticks; UINT64_MAX until that is known. */
static uint64_t interval(void)
{
	static uint64_t ticks = UINT64_MAX;
	uint64_t known = tacho__load(&ticks);

	if (known == UINT64_MAX) {
		known = tacho__ticks_of_ns(INTERVAL_NS);
		tacho__store(&ticks, known);
	}
	return known;
}

/* `caller`: NULL at an end. */
static __attribute__((cold, noinline)) void tell(struct place *p, const void *caller, int at_once)
{
	uint64_t now = tacho__ticks(), told = tacho__load(&p->told);
	uint64_t begun = begun_of(p), alive = begun - ended_of(p);
	int saved = errno;

	if (!at_once && told && now - told < interval())
		return;
	if (!tacho__recording() || !__atomic_compare_exchange_n(&p->told, &told, now, 0,
								__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	/* Ends alone make no box: those of a child may be on the way to another program. Nor do
	   descriptors: every compiler opens many. */
	if (!is_defined(p) && caller && (kind_of(p) != TACHO__ALIVE_OPENED || has_box()) &&
	    tacho__recorder_ready())
		define(p, caller);
	if (is_defined(p) && alive <= INT64_MAX) {
		tacho__store(&p->told_alive, alive < UINT32_MAX ? (uint32_t)alive : UINT32_MAX);
		tacho__put1(TACHO_REC_COUNTER, (uint32_t)tacho__load(&p->gauge), alive);
		tacho__put1(TACHO_REC_COUNTER, (uint32_t)tacho__load(&p->counter), begun);
	}
	errno = saved;
}

static inline void count(struct place *p, const void *caller)
{
	enum tacho__alive kind = kind_of(p);
	uint64_t begun;

	add_one(p, &p->own_begun, &p->others_begun);
	begun = begun_of(p);
	if (tacho__unlikely(!(begun & kinds[kind].rate)) &&
	    begun - ended_of(p) >= (kind == TACHO__ALIVE_CONNECTION ? 1 : LEAST))
		tell(p, caller, 0);
}

/* A fall to half is told at once: many may end at one time, after which nothing changes for long. */
static inline void uncount(struct place *p)
{
	uint32_t told = tacho__load(&p->told_alive);
	uint64_t ended;
	int fell;

	add_one(p, &p->own_ended, &p->others_ended);
	if (tacho__likely(!told))
		return;
	ended = ended_of(p);
	fell = begun_of(p) - ended <= told / 2;
	if (fell || !(ended & kinds[kind_of(p)].rate))
		tell(p, NULL, fell);
}

uint32_t tacho__alive_count(enum tacho__alive kind, const void *caller)
{
	uint32_t at = place_of(kind, caller);

	count(&places[at], caller);
	return at;
}

void tacho__alive_uncount(uint32_t place)
{
	uncount(&places[place]);
}

/* ----------------------------------------------------------------- table */

#define WAYS 7u
#define FIRST_BITS 9u /* 512 buckets, 3584 words, 32 KiB if they are all touched */
#define LEVEL_BITS 2u
#define LEVELS 8u /* the last has 58 M words */
#define PLACE_BITS 16u

_Static_assert(PLACES <= 1u << PLACE_BITS, "a place fits");

struct bucket {
	uint64_t word[WAYS]; /* key << PLACE_BITS | place; 0: free */
	uint64_t elsewhere;  /* first level: keys that are not at the word that their hash says */
} __attribute__((aligned(64)));

uint32_t tacho__alive_any;
static struct bucket first[1u << FIRST_BITS];
static struct bucket *levels[LEVELS] = {first};

static struct bucket *level_make(uint32_t level)
{
	return tacho__map_once((void **)&levels[level],
			       sizeof(struct bucket) << (FIRST_BITS + LEVEL_BITS * level));
}

static inline struct bucket *bucket_in(uint32_t level, struct bucket *buckets, uint64_t key)
{
	return &buckets[tacho__mix(key) >> (64 - FIRST_BITS - LEVEL_BITS * level)];
}

/* The word that the hash of a key says. */
static inline uint64_t *word_of(struct bucket *b, uint64_t key)
{
	return &b->word[(uint32_t)(tacho__mix(key) >> 32) % WAYS];
}

static __attribute__((noinline)) uint64_t *search(uint64_t key)
{
	for (uint32_t level = 0; level < LEVELS; level++) {
		struct bucket *b = __atomic_load_n(&levels[level], __ATOMIC_ACQUIRE);

		if (!b)
			break;
		b = bucket_in(level, b, key);
		for (uint32_t i = 0; i < WAYS; i++)
			if (tacho__load(&b->word[i]) >> PLACE_BITS == key)
				return &b->word[i];
	}
	return NULL;
}

static inline uint64_t *find(uint64_t key)
{
	struct bucket *b = bucket_in(0, first, key);
	uint64_t *word = word_of(b, key);

	if (tacho__likely(tacho__load(word) >> PLACE_BITS == key))
		return word;
	return tacho__load(&b->elsewhere) ? search(key) : NULL;
}

static inline int claim(uint64_t *at, uint64_t word)
{
	uint64_t none = 0;

	return !tacho__load(at) &&
	       __atomic_compare_exchange_n(at, &none, word, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) int put_elsewhere(uint64_t key, uint64_t word)
{
	for (uint32_t level = 0; level < LEVELS; level++) {
		struct bucket *b = __atomic_load_n(&levels[level], __ATOMIC_ACQUIRE);

		if (!b)
			b = level_make(level);
		if (!b)
			break;
		b = bucket_in(level, b, key);
		for (uint32_t i = 0; i < WAYS; i++)
			if (claim(&b->word[i], word)) {
				__atomic_add_fetch(&bucket_in(0, first, key)->elsewhere, 1,
						   __ATOMIC_RELAXED);
				return 1;
			}
	}
	return 0;
}

/* Of a key that is not there. 0: no room. */
static inline int put(uint64_t key, uint32_t place)
{
	uint64_t word = key << PLACE_BITS | place;

	return tacho__likely(claim(word_of(bucket_in(0, first, key), key), word)) ||
	       put_elsewhere(key, word);
}

static inline int is_key(uint64_t key)
{
	return key && !(key >> (64 - PLACE_BITS));
}

static inline void end(uint64_t *at)
{
	uint64_t word = tacho__load(at), key = word >> PLACE_BITS;
	struct bucket *b = bucket_in(0, first, key);

	tacho__store(at, 0);
	if (tacho__unlikely(at != word_of(b, key)))
		__atomic_sub_fetch(&b->elsewhere, 1, __ATOMIC_RELAXED);
	uncount(&places[word & (PLACES - 1)]);
}

void tacho__alive_ended(uint64_t key)
{
	uint64_t *at = is_key(key) ? find(key) : NULL;

	if (at)
		end(at);
}

void tacho__alive_ended_of(uint64_t key, uint32_t which)
{
	uint64_t *at = is_key(key) ? find(key) : NULL;

	if (at && which >> kind_of(&places[tacho__load(at) & (PLACES - 1)]) & 1)
		end(at);
}

void tacho__alive_begin(enum tacho__alive kind, uint64_t key, const void *caller)
{
	uint64_t *at;
	uint32_t place;

	if (!tacho__recording() || !is_key(key))
		return;
	place = place_of(kind, caller);
	at = find(key);
	if (tacho__unlikely(at != NULL))
		end(at);
	if (!tacho__load(&places[place].is_library) && put(key, place)) {
		tacho__store(&tacho__alive_any, 1);
		count(&places[place], caller);
	}
}

int tacho__is_alive(uint64_t key)
{
	return is_key(key) && find(key);
}
