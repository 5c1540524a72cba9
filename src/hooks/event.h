/*
 * libevent 2, seen through its public functions.
 *
 * Every function that a program registers with libevent is exchanged for a thunk (thunks.h).
 * Getters give the original back.
 *
 * The hooks take and give whole machine words, six or seven of them, as both supported
 * architectures pass them in registers and on the stack. So a hook whose name some
 * other library uses for a function of its own passes the call on unchanged.
 */
#ifndef TACHO_HOOKS_EVENT_H
#define TACHO_HOOKS_EVENT_H

#include "hooks/alive.h"
#include "hooks/thunks.h"

typedef tacho__word (*tacho__event_function)(tacho__word, tacho__word, tacho__word, tacho__word,
					     tacho__word, tacho__word);

/* What a function is registered as. */
enum tacho__event_use {
	TACHO__EVENT,	       /* event_assign and kin */
	TACHO__EVENT_FIRES,    /* the same, for one that is added no more when it has fired */
	TACHO__EVENT_ONCE,     /* event_base_once */
	TACHO__EVENT_INTERNAL, /* an event of libevent's own, such as that of a bufferevent */
	TACHO__EVENT_FINALIZER,
	TACHO__BUFFEREVENT_READ,
	TACHO__BUFFEREVENT_WRITE,
	TACHO__BUFFEREVENT_EVENT,
	TACHO__LISTENER,
	TACHO__LISTENER_ERROR,
	TACHO__HTTP_REQUEST,  /* a server's */
	TACHO__HTTP_RESPONSE, /* a client's */
	TACHO__HTTP_HEADERS,
	TACHO__HTTP_CHUNK,
	TACHO__HTTP_SENT,
	TACHO__HTTP_ERROR,
	TACHO__HTTP_CLOSE,
	TACHO__DNS,
	TACHO__DNS_ADDRINFO,
	TACHO__DNS_SERVER,
	TACHO__EVENT_USES,
};

/* A hooked function. */
struct tacho__event_real {
	const char *name;
	tacho__event_function function; /* NULL: not looked up yet */
	int foreign;			/* it is not libevent's, whatever its name */
};
/* Looks the function up, once; 1 when it is libevent's. */
int tacho__event_find(struct tacho__event_real *real);

/* The file that holds the code at this address, or NULL. */
const char *tacho__code_path(tacho__word address);
/* Whether that is libevent's. */
int tacho__event_is_libevent(tacho__word address);

/* What to hand to libevent instead of `function`. */
tacho__word tacho__event_wrap(tacho__word function, enum tacho__event_use use);
/* The same for functions that libevent compares with its own: those stay. */
tacho__word tacho__event_wrap_user(tacho__word function, enum tacho__event_use use);
/* What the program handed to us. */
tacho__word tacho__event_original(tacho__word function);

static inline uint64_t tacho__event_key(tacho__word object)
{
	return tacho__alive_object((const void *)object);
}

/* What is known of the event_base that ran on this thread. */
struct tacho__event_thread {
	tacho__word known;   /* base whose loop was looked up last */
	uint32_t known_loop; /* that */
	uint32_t known_epoch;
	uint32_t assigns_once; /* inside event_base_once */
};
extern __thread struct tacho__event_thread tacho__event_self
	__attribute__((tls_model("initial-exec")));

/*
 * A hook. `change` may use and change the arguments a to f and runs when the function
 * is libevent's.
 */
#define TACHO__EVENT_HOOK(name_, change) TACHO__EVENT_HOOK_AND(name_, change, (void)0)
/* The same with what is done after it, where `result` is what it returned. */
#define TACHO__EVENT_HOOK_AND(name_, change, after)                                              \
	tacho__word name_(tacho__word a, tacho__word b, tacho__word c, tacho__word d,            \
			  tacho__word e, tacho__word f);                                         \
	TACHO_HOOK tacho__word name_(tacho__word a, tacho__word b, tacho__word c, tacho__word d, \
				     tacho__word e, tacho__word f)                               \
	{                                                                                        \
		static struct tacho__event_real real = {#name_, 0, 0};                           \
		int ours = tacho__event_find(&real);                                             \
		tacho__word result;                                                              \
                                                                                                 \
		if (ours) {                                                                      \
			change;                                                                  \
		}                                                                                \
		result = real.function(a, b, c, d, e, f);                                        \
		if (ours) {                                                                      \
			after;                                                                   \
		}                                                                                \
		return result;                                                                   \
	}

#endif
