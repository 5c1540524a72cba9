/*
 * Threads: each that pthread_create makes says in its first record when it began, with
 * which function, who made it and where. Names that threads get later reach the box.
 */
#include "hooks/hooks.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "base/sys.h"
#include "core/control.h"
#include "core/define.h"
#include "core/record.h"
#include "core/writer.h"
#include "hooks/alive.h"
#include "hooks/foreign.h"
#include "hooks/locks.h"

#if defined(__GLIBC__) /* of pthread_cleanup_push */
TACHO__WEAK(__pthread_register_cancel);
TACHO__WEAK(__pthread_unregister_cancel);
#endif

#define LITTLE_STACK 65536u

/*
 * What a thread needs to know at its begin, from before the call of pthread_create until
 * it runs. Not emptied by fork: a handler may fork while the thread is being made.
 */
struct birth {
	void *(*start)(void *);
	void *arg;
	const void *caller;
	uint32_t parent; /* tid */
	uint32_t alive;	 /* place (alive.h) */
	uint32_t little_stack;
	uint32_t used;
};
static struct birth births[256];

static struct birth *birth_take(void)
{
	static uint32_t hand;

	for (unsigned i = 0; i < sizeof(births) / sizeof(births[0]); i++) {
		uint32_t at = __atomic_fetch_add(&hand, 1, __ATOMIC_RELAXED);
		struct birth *b = &births[at % (sizeof(births) / sizeof(births[0]))];
		uint32_t no = 0;

		if (__atomic_compare_exchange_n(&b->used, &no, 1, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return b;
	}
	return NULL;
}

static void birth_done(struct birth *b)
{
	__atomic_store_n(&b->used, 0, __ATOMIC_RELEASE);
}

static void record_begin(const struct birth *b)
{
	uint64_t start = (uint64_t)(uintptr_t)b->start;
	uint64_t words[3] = {3, (uint64_t)tacho__gettid(), b->parent};
	uint32_t kind;

	if (!tacho__recording() || !tacho__recorder_ready())
		return;
	kind = tacho__define_name(TACHO_DEF_KIND, "thread", NULL, 0, start, 0, NULL);
	words[0] |= (uint64_t)tacho__place(b->caller) << 16;
	tacho__record(tacho_record_head(TACHO_REC_SPAWN, kind), words, 3);
}

/* However the thread ends: it returns, calls pthread_exit, or is cancelled. */
static void ended(void *arg)
{
	tacho__alive_uncount(((const struct birth *)arg)->alive);
}

static void *begin(void *arg)
{
	struct birth b = *(struct birth *)arg;
	void *result;

	birth_done(arg);
	tacho__hook.little_stack = b.little_stack;
	record_begin(&b);
	tacho__samples_thread();
	pthread_cleanup_push(ended, &b);
	result = b.start(b.arg);
	pthread_cleanup_pop(1);
	return result;
}

/* Whether the stack of a new thread is too small for a handler that the program does not expect there.
   With AVX-512 the kernel alone stores 3.5 KiB for it, with AMX 11 KiB. */
static int has_little_stack(const pthread_attr_t *attr)
{
	struct rlimit limit = {0, 0};
	size_t size = 0;

	if (attr)
		return !TACHO_REAL(pthread_attr_getstacksize)(attr, &size) && size < LITTLE_STACK;
	/* By default it is as large as the limit for the stack of the first thread. */
	return !TACHO__SYS(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit, 0, 0) &&
	       limit.rlim_cur < LITTLE_STACK;
}

TACHO_HOOK int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			      void *arg)
{
	struct birth *b = tacho__recording() ? birth_take() : NULL;
	int error;

	if (!b)
		return REAL(pthread_create)(thread, attr, start, arg);
	/* Who makes threads often does nothing after that but wait for them, and what it waits in
	   should be known: it gets its place in the box here, where time does not matter. */
	tacho__writer_get();
	/* Here the program expects that memory is allocated, and from here on locks are waited
	   for, where it does not. */
	if (!tacho__load(&tacho__stacks_ready)) {
		int saved = errno;

		tacho_stacks_prepare();
		tacho__store(&tacho__stacks_ready, 1);
		errno = saved;
	}
	b->start = start;
	b->arg = arg;
	b->caller = __builtin_return_address(0);
	b->parent = (uint32_t)tacho__gettid();
	b->alive = tacho__alive_count(TACHO__ALIVE_THREAD, b->caller);
	b->little_stack = (uint32_t)has_little_stack(attr);
	error = REAL(pthread_create)(thread, attr, begin, b);
	if (error) {
		tacho__alive_uncount(b->alive);
		birth_done(b);
	}
	return error;
}

/* ---------------------------------------------------------------- names */

/* The thread with this id is called `name` from now on. */
static void record_name(uint32_t tid, const char *name)
{
	uint64_t mask;

	if (!tacho__rec || tacho__load(&tacho__rec->phase) != TACHO__PHASE_READY)
		return;
	if (tacho__enter(&mask)) {
		uint32_t used = tacho__load(&tacho__rec->super->threads_used);

		for (uint32_t i = 0; i < used && i < TACHO__THREADS_MAX; i++) {
			struct tacho_box_thread *t = &tacho__rec->threads[i];

			if (tacho__load(&t->tid) == tid &&
			    __atomic_load_n(&t->state, __ATOMIC_ACQUIRE) == TACHO_THREAD_LIVE)
				strncpy(t->name, name, sizeof(t->name) - 1);
		}
	}
	tacho__leave(mask);
}

uint32_t tacho__tid_of(pthread_t thread)
{
	clockid_t clock;

	if (pthread_equal(thread, pthread_self()))
		return (uint32_t)tacho__gettid();
	if (pthread_getcpuclockid(thread, &clock))
		return 0;
	/* The kernel's ABI: the clock of a thread is ~tid << 3 and three bits for its kind. */
	return ~(uint32_t)(clock >> 3);
}

TACHO_HOOK int pthread_setname_np(pthread_t thread, const char *name)
{
	int error = REAL(pthread_setname_np)(thread, name);

	if (!error && tacho__recording())
		record_name(tacho__tid_of(thread), name);
	return error;
}

/* Under a name of its own, as libc's header says "...": the arguments that it can take lie where
   variable ones do, and what the caller did not give is passed on unread. */
int tacho__hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
			unsigned long d) __asm__("prctl");

TACHO_HOOK int tacho__hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
				   unsigned long d)
{
	int result;

	if (tacho__unlikely(option == PR_SET_SECCOMP))
		tacho__restricts(a, (const void *)b);
	result = REAL(prctl)(option, a, b, c, d);

	if (option == PR_SET_NAME && !result && tacho__recording())
		record_name((uint32_t)tacho__gettid(), (const char *)a);
	return result;
}
