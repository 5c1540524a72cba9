/*
 * Thunks: functions that stand for those which a program registers with libevent.
 *
 * A thunk is taken for a function and a use and belongs to these for good; the next
 * registration of the same function for the same use gets the same thunk. Programs
 * have some dozens of such functions; when more than TACHO__EVENT_THUNKS come, the rest
 * is registered as it is, and a counter in the trace says how often.
 *
 * Taking one: a slot is reserved by one atomic addition, filled, and then linked into
 * its chain. Two threads that take one for the same function at the same moment may
 * both succeed: two thunks that do the same.
 */
#include "hooks/event.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "core/control.h"
#include "core/define.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/watched.h"

#define CHAINS 256u
#define EV_TIMEOUT 0x01u
#define EV_SIGNAL 0x08u

enum fired { FIRED_IO, FIRED_TIMER, FIRED_SIGNAL, FIRED_COUNT };

struct slot {
	tacho__word function;
	enum tacho__event_use use;
	uint32_t next;		     /* in its chain: slot + 1, or 0 */
	uint64_t kinds[FIRED_COUNT]; /* epoch << 32 | definition */
};
static struct slot slots[TACHO__EVENT_THUNKS];
static uint32_t slots_used;
static uint32_t chains[CHAINS];
static uint64_t misses; /* registrations for which there was no thunk */

__thread struct tacho__event_thread tacho__event_self __attribute__((tls_model("initial-exec")));

static const char *const use_names[TACHO__EVENT_USES] = {
	[TACHO__EVENT] = "event",
	[TACHO__EVENT_ONCE] = "event once",
	[TACHO__EVENT_INTERNAL] = "libevent",
	[TACHO__EVENT_FINALIZER] = "event finalizer",
	[TACHO__BUFFEREVENT_READ] = "bufferevent read",
	[TACHO__BUFFEREVENT_WRITE] = "bufferevent write",
	[TACHO__BUFFEREVENT_EVENT] = "bufferevent event",
	[TACHO__LISTENER] = "evconnlistener",
	[TACHO__LISTENER_ERROR] = "evconnlistener error",
	[TACHO__HTTP_REQUEST] = "evhttp request",
	[TACHO__HTTP_RESPONSE] = "evhttp response",
	[TACHO__HTTP_HEADERS] = "evhttp headers",
	[TACHO__HTTP_CHUNK] = "evhttp chunk",
	[TACHO__HTTP_SENT] = "evhttp sent",
	[TACHO__HTTP_ERROR] = "evhttp error",
	[TACHO__HTTP_CLOSE] = "evhttp close",
	[TACHO__DNS] = "evdns",
	[TACHO__DNS_ADDRINFO] = "evdns getaddrinfo",
	[TACHO__DNS_SERVER] = "evdns server",
};

/* ------------------------------------------------------- running a thunk */

static uint32_t define_kind(struct slot *s, enum fired fired)
{
	const char *name = use_names[s->use];
	uint32_t id;

	if (!tacho__recorder_ready())
		return 0;
	if (s->use == TACHO__EVENT && fired == FIRED_TIMER)
		name = "event timer";
	if (s->use == TACHO__EVENT && fired == FIRED_SIGNAL)
		name = "event signal";
	id = tacho__define_name(TACHO_DEF_KIND, name, NULL, 0, s->function, 0, NULL);
	tacho__store(&s->kinds[fired], (uint64_t)tacho__load(&tacho__rec->epoch) << 32 | id);
	return id;
}

static inline uint32_t kind_of(struct slot *s, enum fired fired)
{
	uint64_t kind = tacho__load(&s->kinds[fired]);

	if (tacho__likely(kind >> 32 == tacho__load(&tacho__rec->epoch) && kind))
		return (uint32_t)kind;
	return define_kind(s, fired);
}

/*
 * The event whose function is being called. libevent tells for a base that is calling
 * one, which is so in a thunk of an event, unless the program calls it by itself, outside
 * of its loop or in a finalizer: there `base` is NULL.
 */
static tacho__word running_event(void)
{
	static struct tacho__event_real real = {"event_base_get_running_event", 0, 0};
	tacho__word base = tacho__event_self.base;

	return base && tacho__event_find(&real) ? real.function(base, 0, 0, 0, 0, 0) : 0;
}

/* What the poll is one of: the event, bufferevent, listener or request; where the function
   is not told, what it was given instead. */
static inline tacho__word task_of(enum tacho__event_use use, tacho__word a, tacho__word b,
				  tacho__word c, tacho__word f)
{
	switch (use) {
	case TACHO__EVENT:
	case TACHO__EVENT_ONCE:
	case TACHO__EVENT_INTERNAL:
		a = running_event();
		return a ? a : c;
	case TACHO__DNS:
		return f;
	case TACHO__DNS_ADDRINFO:
		return c;
	case TACHO__HTTP_ERROR:
		return b;
	default:
		return a;
	}
}

static inline enum fired fired_of(enum tacho__event_use use, tacho__word what)
{
	if (use != TACHO__EVENT)
		return FIRED_IO;
	if (what & EV_SIGNAL)
		return FIRED_SIGNAL;
	return what & EV_TIMEOUT ? FIRED_TIMER : FIRED_IO;
}

static inline int watches(uint32_t what)
{
	return tacho__unlikely(tacho__load(&tacho__watching) & what) != 0;
}

/* Its ticks, or 0. */
static inline uint64_t poll_begin(uint32_t kind, tacho__word task)
{
	uint64_t shared = tacho__shared_last();
	const struct tacho__writer *w;

	if (!watches(TACHO__WATCH_SHORT | TACHO__WATCH(WAKE)))
		return tacho__record_poll_begin(kind, task, shared, tacho__frame());
	tacho__watched_poll_begin(kind, task, tacho__frame());
	w = tacho__self;
	return w->pending_kind ? w->pending_ticks : w->stream[0].last;
}

static inline void poll_end(uint32_t kind, uint64_t begin)
{
	uint64_t t;

	if (!watches(TACHO__WATCH_SHORT | TACHO__WATCH(POLL))) {
		t = tacho__record(tacho_record_head(TACHO_REC_POLL_END, TACHO_UNKNOWN), NULL, 0);
		tacho__edge(t, tacho__event_waits());
	} else {
		tacho__watched_poll_end(TACHO_UNKNOWN, tacho__frame());
		/* A short poll may be only counted: then no record is newer than its begin. */
		t = tacho__self->stream[0].last;
	}
	if (begin && t > begin)
		tacho__slow_poll(t - begin, kind);
}

static __attribute__((noinline)) tacho__word run(tacho__word a, tacho__word b, tacho__word c,
						 tacho__word d, tacho__word e, tacho__word f,
						 uint32_t index)
{
	struct slot *s = &slots[index];
	tacho__event_function original = (tacho__event_function)s->function;
	tacho__word base = tacho__event_self.base;
	struct tacho__writer *writer;
	tacho__word result;
	uint64_t begin;
	uint32_t kind;

	if (!tacho__recording())
		return original(a, b, c, d, e, f);
	kind = kind_of(s, fired_of(s->use, b));
	begin = poll_begin(kind, task_of(s->use, a, b, c, f));
	writer = tacho__self;
	if (s->use == TACHO__EVENT_FINALIZER)
		tacho__event_self.base = 0;
	tacho__hook.callbacks++;
	result = original(a, b, c, d, e, f);
	tacho__hook.callbacks--;
	tacho__event_self.base = base;
	/* Not in a child that was forked in the middle: its box has no begin of it. */
	if (tacho__recording() && tacho__likely(tacho__self == writer))
		poll_end(kind, begin);
	return result;
}

/* ------------------------------------------------------------ the thunks */

/* All in a section of their own, so that they are told from other functions by address. */
#define THUNK(n)                                                                           \
	__attribute__((section("tacho_thunks"))) static tacho__word thunk_##n(             \
		tacho__word a, tacho__word b, tacho__word c, tacho__word d, tacho__word e, \
		tacho__word f)                                                             \
	{                                                                                  \
		return run(a, b, c, d, e, f, 0x##n);                                       \
	}
#define ADDRESS(n) thunk_##n,
/* clang-format off */
#define EACH_OF_16(each, n)                                                                        \
	each(n##0) each(n##1) each(n##2) each(n##3) each(n##4) each(n##5) each(n##6) each(n##7)    \
	each(n##8) each(n##9) each(n##a) each(n##b) each(n##c) each(n##d) each(n##e) each(n##f)
#define EACH_OF_256(each, n)                                                                       \
	EACH_OF_16(each, n##0) EACH_OF_16(each, n##1) EACH_OF_16(each, n##2) EACH_OF_16(each, n##3) \
	EACH_OF_16(each, n##4) EACH_OF_16(each, n##5) EACH_OF_16(each, n##6) EACH_OF_16(each, n##7) \
	EACH_OF_16(each, n##8) EACH_OF_16(each, n##9) EACH_OF_16(each, n##a) EACH_OF_16(each, n##b) \
	EACH_OF_16(each, n##c) EACH_OF_16(each, n##d) EACH_OF_16(each, n##e) EACH_OF_16(each, n##f)
#ifdef __clang_analyzer__
#define EACH(each) EACH_OF_16(each, 0)
#else
#define EACH(each)                                                                                 \
	EACH_OF_256(each, 0) EACH_OF_256(each, 1) EACH_OF_256(each, 2) EACH_OF_256(each, 3)
#endif

EACH(THUNK)
static const tacho__event_function thunks[] = { EACH(ADDRESS) };
/* clang-format on */
_Static_assert(sizeof(thunks) / sizeof(thunks[0]) == TACHO__EVENT_THUNKS, "one slot each");

extern const char __start_tacho_thunks[] __attribute__((visibility("hidden")));
extern const char __stop_tacho_thunks[] __attribute__((visibility("hidden")));

/* The slot of a thunk, or -1. */
static int slot_of(tacho__word function)
{
	if (function < (uintptr_t)__start_tacho_thunks ||
	    function >= (uintptr_t)__stop_tacho_thunks)
		return -1;
	for (uint32_t i = 0; i < TACHO__EVENT_THUNKS; i++)
		if ((uintptr_t)thunks[i] == function)
			return (int)i;
	return -1;
}

tacho__word tacho__event_original(tacho__word function)
{
	int i = slot_of(function);

	return i < 0 ? function : slots[i].function;
}

/* --------------------------------------------------------- taking thunks */

static void count_miss(void)
{
	uint64_t n = __atomic_add_fetch(&misses, 1, __ATOMIC_RELAXED);

	tacho__store(&tacho__unseen, 1);
	if (tacho__recording() && tacho__recorder_ready())
		tacho__put1(TACHO_REC_COUNTER,
			    tacho__define_name(TACHO_DEF_COUNTER, "libevent callbacks not hooked",
					       NULL, 0, 0, TACHO_VALUE_I64, NULL),
			    n);
}

static uint32_t find(uint32_t link, uint32_t until, tacho__word function, enum tacho__event_use use)
{
	for (; link && link != until; link = slots[link - 1].next)
		if (slots[link - 1].function == function && slots[link - 1].use == use)
			return link;
	return 0;
}

/* The slot + 1 for a function; 0: none left. */
static uint32_t take(tacho__word function, enum tacho__event_use use)
{
	uint32_t *chain = &chains[(function >> 2 ^ function >> 10 ^ (uint32_t)use << 3) % CHAINS];
	uint32_t head = __atomic_load_n(chain, __ATOMIC_ACQUIRE);
	uint32_t seen = 0;
	uint32_t link = find(head, 0, function, use);
	uint32_t i;

	if (link)
		return link;
	i = tacho__load(&slots_used);
	do {
		if (i == TACHO__EVENT_THUNKS)
			return 0;
	} while (!__atomic_compare_exchange_n(&slots_used, &i, i + 1, 0, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	slots[i].function = function;
	slots[i].use = use;
	do {
		link = find(head, seen, function, use);
		if (link)
			return link;
		seen = head;
		slots[i].next = head;
	} while (!__atomic_compare_exchange_n(chain, &head, i + 1, 0, __ATOMIC_RELEASE,
					      __ATOMIC_ACQUIRE));
	return i + 1;
}

tacho__word tacho__event_wrap(tacho__word function, enum tacho__event_use use)
{
	uint32_t link;

	if (!function || slot_of(function) >= 0)
		return function;
	link = take(function, use);
	if (link)
		return (uintptr_t)thunks[link - 1];
	count_miss();
	return function;
}

/* ------------------------------------------------------ finding libevent */

static int is_libevent_path(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return path && !strncmp(slash ? slash + 1 : path, "libevent", 8);
}

/* Whether the code at `address` is libevent's. */
int tacho__event_is_libevent(tacho__word address)
{
	static int (*find_object)(void *, struct dl_find_object *);
	static int looked;
	struct dl_find_object object;
	Dl_info info;

	/* Since glibc 2.35; takes no lock, and some nanoseconds. */
	if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
		find_object =
			(int (*)(void *, struct dl_find_object *))tacho__real("_dl_find_object");
		__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
	}
	if (find_object)
		return !find_object((void *)address, &object) &&
		       is_libevent_path(object.dlfo_link_map->l_name);
	return dladdr((void *)address, &info) && is_libevent_path(info.dli_fname);
}

tacho__word tacho__event_wrap_user(tacho__word function, enum tacho__event_use use)
{
	return function && !tacho__event_is_libevent(function) ? tacho__event_wrap(function, use)
							       : function;
}

#define LIBRARIES_MAX 8
struct libraries {
	char path[LIBRARIES_MAX][256];
	unsigned count;
};

static int note_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct libraries *l = arg;

	(void)size;
	if (l->count < LIBRARIES_MAX && is_libevent_path(info->dlpi_name) &&
	    strlen(info->dlpi_name) < sizeof(l->path[0]))
		strcpy(l->path[l->count++], info->dlpi_name);
	return 0;
}

/* For programs that load libevent, or what needs it, with dlopen: then it is not among
   what follows us in the global order. */
static void *find_loaded(const char *name)
{
	static void *(*real_dlopen)(const char *, int);
	struct libraries l = {.count = 0};
	void *found = NULL;

	if (!real_dlopen)
		real_dlopen = (void *(*)(const char *, int))tacho__real("dlopen");
	dl_iterate_phdr(note_library, &l);
	for (unsigned i = 0; real_dlopen && i < l.count && !found; i++) {
		void *library = real_dlopen(l.path[i], RTLD_LAZY | RTLD_NOLOAD);

		/* The handle is kept: what was found stays mapped. */
		if (library)
			found = dlsym(library, name);
	}
	return found;
}

/* Stands for a function that is nowhere: the program asked whether libevent is there, and
   found us. */
static tacho__word nowhere(tacho__word a, tacho__word b, tacho__word c, tacho__word d,
			   tacho__word e, tacho__word f)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	return 0;
}

static __attribute__((cold, noinline)) int look_up(struct tacho__event_real *real)
{
	int saved = errno;
	void *found = tacho__real(real->name);

	if (!found)
		found = find_loaded(real->name);
	real->foreign = !found || !tacho__event_is_libevent((uintptr_t)found);
	if (!found)
		found = (void *)nowhere;
	__atomic_store_n(&real->function, (tacho__event_function)found, __ATOMIC_RELEASE);
	errno = saved;
	return !real->foreign;
}

int tacho__event_find(struct tacho__event_real *real)
{
	if (tacho__likely(__atomic_load_n(&real->function, __ATOMIC_ACQUIRE) != NULL))
		return !real->foreign;
	return look_up(real);
}
