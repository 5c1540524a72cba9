/*
 * The thunks of libevent, and where libevent is.
 */
#include "hooks/event.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "core/control.h"
#include "core/define.h"

#define EV_TIMEOUT 0x01u
#define EV_SIGNAL 0x08u

enum fired { FIRED_IO, FIRED_TIMER, FIRED_SIGNAL, FIRED_COUNT };

_Static_assert(FIRED_COUNT <= TACHO__THUNK_KINDS, "a kind for each");
static uint64_t misses; /* registrations for which there was no thunk */

__thread struct tacho__event_thread tacho__event_self __attribute__((tls_model("initial-exec")));

static const char *const use_names[TACHO__EVENT_USES] = {
	[TACHO__EVENT] = "event",
	[TACHO__EVENT_FIRES] = "event",
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

static inline enum fired fired_of(enum tacho__event_use use, tacho__word what)
{
	if (use > TACHO__EVENT_FIRES)
		return FIRED_IO;
	if (what & EV_SIGNAL)
		return FIRED_SIGNAL;
	return what & EV_TIMEOUT ? FIRED_TIMER : FIRED_IO;
}

static inline uint32_t kind_of(struct tacho__thunk *t, enum fired fired)
{
	static const char *const events[] = {NULL, "event timer", "event signal"};
	uint32_t kind = tacho__known_kind(&t->kinds[fired]);

	if (tacho__likely(kind))
		return kind;
	return tacho__thunk_define(t, fired == FIRED_IO ? use_names[t->use] : events[fired],
				   &t->kinds[fired]);
}

/*
 * The event whose function is being called. libevent tells for a base that is calling
 * one, which is so in a thunk of an event, unless the program calls it by itself, outside
 * of its loop or in a finalizer: there `base` is NULL.
 */
static tacho__word running_event(void)
{
	static struct tacho__event_real real = {"event_base_get_running_event", 0, 0};
	tacho__word base = tacho__hook.event_base;

	return base && tacho__event_find(&real)
		       ? ((tacho__word(*)(tacho__word))(void (*)(void))real.function)(base)
		       : 0;
}

/* What the poll is one of where libevent does not tell: the bufferevent, listener or request. */
static inline tacho__word task_of(enum tacho__event_use use, tacho__word a, tacho__word b,
				  tacho__word c, tacho__word f)
{
	switch (use) {
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

/* Not in a child that was forked in the middle: its box has no begin of it. */
static inline __attribute__((always_inline)) void ended(uint32_t kind, uint64_t begin,
							const struct tacho__writer *writer)
{
	tacho__hook.callbacks--;
	if (begin && tacho__recording() && tacho__likely(tacho__self == writer))
		tacho__original_ended(kind, begin, TACHO_UNKNOWN, tacho__event_waits());
}

/* A function of an event gets its descriptor, `what` happened, and its argument. */
static __attribute__((noinline)) tacho__word run_event(tacho__word fd, tacho__word what,
						       tacho__word arg, struct tacho__thunk *t)
{
	tacho__word base = tacho__hook.event_base, event = running_event();
	tacho__word task = event ? event : arg, result;
	uint32_t kind = kind_of(t, fired_of(t->use, what));
	uint64_t begin = tacho__original_begins(kind, task, 0);
	struct tacho__writer *writer = tacho__self;

	if (t->use == TACHO__EVENT_FIRES)
		tacho__alive_end_of(tacho__event_key(task), TACHO__ALIVE_BIT(EVENT_ONCE));
	result = ((tacho__event_function)t->function)(fd, what, arg, 0, 0, 0);
	tacho__hook.event_base = base;
	ended(kind, begin, writer);
	return result;
}

static __attribute__((noinline)) tacho__word run_other(tacho__word a, tacho__word b, tacho__word c,
						       tacho__word d, tacho__word e, tacho__word f,
						       struct tacho__thunk *t)
{
	tacho__word base = tacho__hook.event_base, result;
	uint32_t kind = kind_of(t, FIRED_IO);
	uint64_t begin = tacho__original_begins(kind, task_of(t->use, a, b, c, f), 0);
	struct tacho__writer *writer = tacho__self;

	if (t->use == TACHO__EVENT_FINALIZER)
		tacho__hook.event_base = 0;
	result = ((tacho__event_function)t->function)(a, b, c, d, e, f);
	tacho__hook.event_base = base;
	ended(kind, begin, writer);
	return result;
}

static __attribute__((noinline)) tacho__word run(tacho__word a, tacho__word b, tacho__word c,
						 tacho__word d, tacho__word e, tacho__word f,
						 uint32_t number)
{
	struct tacho__thunk *t = &tacho__thunks[number];

	if (tacho__recording())
		return t->use <= TACHO__EVENT_INTERNAL ? run_event(a, b, c, t)
						       : run_other(a, b, c, d, e, f, t);
	tacho__hook.edge = 0;
	return ((tacho__event_function)t->function)(a, b, c, d, e, f);
}

#define THUNK(n)                                                                        \
	TACHO__THUNK tacho__word thunk_##n(tacho__word a, tacho__word b, tacho__word c, \
					   tacho__word d, tacho__word e, tacho__word f) \
	{                                                                               \
		return run(a, b, c, d, e, f, 0x##n);                                    \
	}
#define ADDRESS(n) (const void *)thunk_##n,
TACHO__EACH_THUNK(THUNK)
static const void *const thunks[] = {TACHO__EACH_THUNK(ADDRESS)};
_Static_assert(sizeof(thunks) / sizeof(thunks[0]) == TACHO__THUNKS, "one of each number");

tacho__word tacho__event_original(tacho__word function)
{
	int i = tacho__thunk_number(function, thunks);

	return i < 0 ? function : tacho__thunks[i].function;
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

tacho__word tacho__event_wrap(tacho__word function, enum tacho__event_use use)
{
	uint32_t link;

	if (!function || tacho__is_thunk(function))
		return function;
	link = tacho__thunk_take(function, use);
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

const char *tacho__code_path(tacho__word address)
{
	Dl_info info;
#if defined(DLFO_EH_SEGMENT_TYPE)
	static int (*find_object)(void *, struct dl_find_object *);
	static int looked;
	struct dl_find_object object;

	/* Since glibc 2.35; takes no lock, and some nanoseconds. */
	if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
		find_object =
			(int (*)(void *, struct dl_find_object *))tacho__real("_dl_find_object");
		__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
	}
	if (find_object)
		return find_object((void *)address, &object) ? NULL : object.dlfo_link_map->l_name;
#endif
	return dladdr((void *)address, &info) ? info.dli_fname : NULL;
}

int tacho__event_is_libevent(tacho__word address)
{
	return is_libevent_path(tacho__code_path(address));
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
