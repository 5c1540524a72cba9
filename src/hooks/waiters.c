/* The table of who waits for which lock, and the records of it. See locks.h. */
#include "base/hash.h"
#include "hooks/callers.h"
#include "hooks/hooks.h"
#include "hooks/locks.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/sys.h"
#include "core/control.h"
#include "core/define.h"
#include "core/pool.h"
#include "core/record.h"
#include "hooks/foreign.h"
#include "hooks/hooks.h"
#include "tacho.h"

#if defined(__GLIBC__)
TACHO__WEAK(dlvsym);
#endif

/* ------------------------------------------------------- real functions */

void *tacho__lock_found[TACHO__LOCK_COUNT] __attribute__((aligned(64)));

static __thread int looking_up __attribute__((tls_model("initial-exec")));

#if defined(__GLIBC__)
/*
 * The same functions under names that nobody defines again. They stand in while this
 * thread is looking up the real ones, which may be those of another library that was
 * loaded before libc for its own purposes.
 */
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif
#define EARLY(name)                                                 \
	extern __typeof__(name) early_##name __attribute__((weak)); \
	__asm__(".symver early_" #name ", __" #name "@" OLDEST)
EARLY(pthread_mutex_lock);
EARLY(pthread_mutex_trylock);
EARLY(pthread_mutex_unlock);
EARLY(pthread_rwlock_rdlock);
EARLY(pthread_rwlock_tryrdlock);
EARLY(pthread_rwlock_wrlock);
EARLY(pthread_rwlock_trywrlock);
EARLY(pthread_rwlock_unlock);

static void *stand_in(enum tacho__lock_function which)
{
	switch (which) {
	case TACHO__LOCK_pthread_mutex_lock:
		return (void *)early_pthread_mutex_lock;
	case TACHO__LOCK_pthread_mutex_trylock:
		return (void *)early_pthread_mutex_trylock;
	case TACHO__LOCK_pthread_mutex_unlock:
		return (void *)early_pthread_mutex_unlock;
	case TACHO__LOCK_pthread_rwlock_rdlock:
		return (void *)early_pthread_rwlock_rdlock;
	case TACHO__LOCK_pthread_rwlock_tryrdlock:
		return (void *)early_pthread_rwlock_tryrdlock;
	case TACHO__LOCK_pthread_rwlock_wrlock:
		return (void *)early_pthread_rwlock_wrlock;
	case TACHO__LOCK_pthread_rwlock_trywrlock:
		return (void *)early_pthread_rwlock_trywrlock;
	case TACHO__LOCK_pthread_rwlock_unlock:
		return (void *)early_pthread_rwlock_unlock;
	default:
		return NULL;
	}
}
#else
/* musl's dlsym calls none of the hooked functions. */
static void *stand_in(enum tacho__lock_function which)
{
	(void)which;
	return NULL;
}
#endif

void *tacho__lock_look_up(enum tacho__lock_function which)
{
#define TACHO__LOCK_NAME(name, version) {#name, version},
	static const struct {
		const char *name, *version;
	} functions[] = {TACHO__LOCK_FUNCTIONS(TACHO__LOCK_NAME)};
	void *f = looking_up ? stand_in(which) : NULL;
	int saved = errno;

	if (f)
		return f;
	looking_up++;
#if defined(__GLIBC__)
	if (functions[which].version && !tacho__is_foreign())
		f = dlvsym(RTLD_NEXT, functions[which].name, functions[which].version);
#endif
	if (!f)
		f = dlsym(RTLD_NEXT, functions[which].name);
	looking_up--;
	errno = saved;
	tacho__store(&tacho__lock_found[which], f);
	return f ? f : tacho__absent_function(functions[which].name);
}

/* Early, because looking up forgets what dlerror would have told the program. */
__attribute__((constructor)) static void look_up_all(void)
{
	for (int i = 0; i < TACHO__LOCK_COUNT; i++)
		tacho__lock_real((enum tacho__lock_function)i);
}

/* ---------------------------------------------------------------- table */

static struct tacho__waiters nobody; /* until someone waits */
TACHO__HOT struct tacho__waiters *tacho__waiters = &nobody;

#define WAITERS_MAX 0xffffu /* of one slot */

static struct tacho__waiters *table(void)
{
	struct tacho__waiters *none = &nobody;
	struct tacho__waiters *t = __atomic_load_n(&tacho__waiters, __ATOMIC_ACQUIRE);
	intptr_t at;

	if (tacho__likely(t != none))
		return t;
	at = tacho__mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	if (at < 0 && at > -4096)
		return NULL;
	tacho__madvise((void *)at, sizeof(*t), MADV_WIPEONFORK);
	t = (void *)at;
	if (__atomic_compare_exchange_n(&tacho__waiters, &none, t, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return t;
	tacho__munmap(t, sizeof(*t));
	return none; /* that of the thread that was faster */
}

static uint64_t mix(uint64_t address)
{
	return tacho__mix(address >> 3);
}

static uint64_t *bucket(struct tacho__waiters *t, uint64_t address)
{
	return t->slot[mix(address) >> 54];
}
_Static_assert(TACHO__WAIT_BUCKETS == 1u << (64 - 54), "bucket");

/* Who released last what stands in this slot. */
static uint64_t *last_of(struct tacho__waiters *t, const uint64_t *slot)
{
	return &t->last[0][slot - t->slot[0]];
}

/* Since when who stands in this slot have waited, and nobody of them got it. */
static uint64_t *since_of(struct tacho__waiters *t, const uint64_t *slot)
{
	return &t->since[0][slot - t->slot[0]];
}

/* Adds one waiter where the address stands, else in a free slot; NULL if there is none. */
static uint64_t *join(uint64_t *slots, uint64_t address)
{
	for (int tries = 0; tries < 64; tries++) {
		uint64_t *to = NULL, seen = 0;

		for (unsigned i = 0; i < TACHO__WAIT_WAYS; i++) {
			uint64_t v = tacho__load(&slots[i]);

			if (v >> 16 == address && (v & WAITERS_MAX) < WAITERS_MAX) {
				to = &slots[i];
				seen = v;
				break;
			}
			if (!v && !to)
				to = &slots[i];
		}
		if (!to)
			return NULL;
		if (__atomic_compare_exchange_n(to, &seen, (seen ? seen : address << 16) + 1, 0,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return to;
	}
	return NULL;
}

static void enter_table(struct tacho__wait *w)
{
	struct tacho__waiters *t = w->address >> 48 ? NULL : table();

	w->slot = t ? join(bucket(t, w->address), w->address) : NULL;
	if (!w->slot)
		return;
	tacho__store(last_of(t, w->slot), 0);
	if ((tacho__load(w->slot) & WAITERS_MAX) == 1)
		tacho__store(since_of(t, w->slot), w->begun);
	__atomic_fetch_add(tacho__waits_counter(t, w->what, w->address), 1, __ATOMIC_SEQ_CST);
}

static void leave_table(const struct tacho__wait *w)
{
	uint64_t v;

	if (!w->slot)
		return;
	v = tacho__load(w->slot);
	do {
		/* This is a child that a signal handler forked during the wait. */
		if (v >> 16 != w->address)
			return;
	} while (!__atomic_compare_exchange_n(w->slot, &v, (v & WAITERS_MAX) > 1 ? v - 1 : 0, 0,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if ((v & WAITERS_MAX) > 1)
		tacho__store(since_of(tacho__waiters, w->slot), tacho__ticks());
	__atomic_fetch_sub(tacho__waits_counter(tacho__waiters, w->what, w->address), 1,
			   __ATOMIC_RELAXED);
}

uint64_t tacho__waiters_of(const void *address)
{
	uint64_t a = (uint64_t)(uintptr_t)address, n = 0;
	const uint64_t *slots = bucket(__atomic_load_n(&tacho__waiters, __ATOMIC_ACQUIRE), a);

	for (unsigned i = 0; i < TACHO__WAIT_WAYS; i++) {
		uint64_t v = tacho__load(&slots[i]);

		if (v >> 16 == a)
			n += v & WAITERS_MAX;
	}
	return n;
}

/* -------------------------------------------------------------- records */

int tacho__stacks_ready;

/*
 * Definitions of places by their address, as defining takes system calls. Two words are
 * stored by whoever comes, without order: the first is the address mixed with the second,
 * so that words of two different stores are found to be neither.
 */
#define PLACES 512u
static struct {
	uint64_t mixed;
	uint64_t id; /* epoch << 32 | id */
} places[PLACES];

uint32_t tacho__place(const void *code)
{
	uint64_t address = (uint64_t)(uintptr_t)code, value, mixed;
	unsigned i = (unsigned)(tacho__mix(address) >> 32) % PLACES;
	uint32_t id;

	if (!tacho__recorder_ready())
		return 0;
	value = tacho__load(&places[i].id);
	mixed = tacho__load(&places[i].mixed);
	if ((mixed ^ value) == address && value >> 32 == tacho__load(&tacho__rec->epoch))
		return (uint32_t)value;
	id = tacho__define_name(TACHO_DEF_PLACE, NULL, NULL, 0, address, 0, NULL);
	value = (uint64_t)tacho__load(&tacho__rec->epoch) << 32 | id;
	tacho__store(&places[i].id, value);
	tacho__store(&places[i].mixed, address ^ value);
	return id;
}

static int is_long(uint64_t ticks)
{
	static uint64_t least; /* the threshold in ticks, once that is known */
	uint64_t known = tacho__load(&least);

	if (tacho__unlikely(!known)) {
		known = tacho__ticks_of_ns(tacho__call_threshold_ns());
		if (known == UINT64_MAX)
			return 0;
		known += !known;
		tacho__store(&least, known);
	}
	return ticks >= known;
}

void tacho__wait_begin(struct tacho__wait *w, enum tacho__wait_for what, const void *address,
		       const void *caller, int owner)
{
	struct tacho_box_underway *u;

	w->what = what;
	w->is_lock = 0;
	w->address = (uint64_t)(uintptr_t)address;
	w->begun = tacho__record(tacho_record_head(TACHO_REC_LOCK_WAIT, tacho__place(caller)),
				 &w->address, 1);
	u = tacho__self->underway;
	if (w->begun && u && (owner > 0 || what == TACHO__FOR_SIGNAL)) {
		tacho__store(&u->wait_owner,
			     what == TACHO__FOR_SIGNAL ? TACHO_UNDERWAY_SIGNAL : (uint32_t)owner);
		tacho__store(&u->wait_lock, w->address);
		__atomic_store_n(&u->wait_since, w->begun, __ATOMIC_RELEASE);
	}
	/* Last: a release that is recorded lies after the begin of the wait. */
	enter_table(w);
}

void tacho__wait_end(struct tacho__wait *w, int got)
{
	uint32_t arg = (uint32_t)(got != 0) | (w->what == TACHO__FOR_SIGNAL && !w->is_lock ? 2 : 0);
	uint64_t now;

	leave_table(w);
	if (tacho__self->underway)
		tacho__store(&tacho__self->underway->wait_since, 0);
	if (!tacho__recording())
		return;
	now = tacho__record(tacho_record_head(TACHO_REC_LOCK_WAITED, arg), &w->address, 1);
	if (w->begun && now && tacho__load(&tacho__stacks_ready) && is_long(now - w->begun)) {
		int saved = errno;
		uint32_t stack = tacho__stack();

		tacho__record(tacho_record_head(TACHO_REC_STACK, stack), &w->address, 1);
		errno = saved;
	}
}

/*
 * What tells whether this thread released the same lock a moment ago, in one word: 13 bits
 * for the writer, 20 for the address, 31 for the time in units of 64 ns.
 */
#define REPEAT_NS 100000u
#define MARK_TIME 33
_Static_assert(TACHO__THREADS_MAX == 1u << 13, "writer");

static uint64_t mark_of(uint64_t address)
{
	return tacho__clock_ns(CLOCK_MONOTONIC) / 64 << MARK_TIME | (mix(address) >> 44) << 13 |
	       tacho__self->index;
}

static int is_repeated(uint64_t before, uint64_t now)
{
	uint64_t time = (now >> MARK_TIME) - (before >> MARK_TIME);
	uint64_t same = (1ull << MARK_TIME) - 1;

	return before && tacho__self != &tacho__no_writer && !((before ^ now) & same) &&
	       (time & 0x7fffffff) < REPEAT_NS / 64;
}

/* Where the last release of what is at `address` is kept, and since when somebody waits; NULL when
   nobody does any more. */
static uint64_t *last_release(uint64_t address, uint64_t **since)
{
	struct tacho__waiters *t = __atomic_load_n(&tacho__waiters, __ATOMIC_ACQUIRE);
	const uint64_t *slots = bucket(t, address);

	for (unsigned i = 0; i < TACHO__WAIT_WAYS; i++) {
		if (tacho__load(&slots[i]) >> 16 != address)
			continue;
		*since = since_of(t, &slots[i]);
		return last_of(t, &slots[i]);
	}
	return NULL;
}

/*
 * Who releases a lock that others have waited for since then: its place, or if they waited for long
 * its stack, as the place is often in a wrapper of the lock. A stack takes microseconds in which they
 * go on waiting: of one lock there is none before they have waited for as long again.
 */
static uint32_t releaser(const void *caller, const void *taken, uint64_t *since)
{
	uint64_t now = tacho__ticks();
	int saved = errno;
	const void *tails[2];
	uint32_t id = 0;
	unsigned count;

	if (!tacho__load(since) || !is_long(now - tacho__load(since)) || !tacho__recorder_ready())
		return tacho__place(caller);
	count = tacho__tail_callers(caller, taken, tails);
	if (tacho__load(&tacho__stacks_ready))
		id = tacho__stack_from(caller, tails, count);
	tacho__store(since, now);
	errno = saved;
	return id ? id : tacho__place(count ? tails[0] : caller);
}

void tacho__released(enum tacho__wait_for what, const void *address, uint64_t waiters,
		     const void *caller, const void *taken)
{
	uint64_t words[2] = {(uint64_t)(uintptr_t)address, waiters}, *since;
	uint64_t *last = last_release(words[0], &since);
	uint32_t place;

	if (!last || is_repeated(tacho__load(last), mark_of(words[0])))
		return;
	place = what == TACHO__FOR_LOCK ? releaser(caller, taken, since) : tacho__place(caller);
	tacho__record(tacho_record_head(TACHO_REC_LOCK_RELEASE, place), words, 2);
	tacho__store(last, mark_of(words[0]));
}
