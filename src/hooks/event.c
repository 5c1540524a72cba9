/*
 * libevent's loop and its events.
 *
 * event_assign is what all others come down to: event_new, event_set, the events of
 * bufferevents, listeners and resolvers. Where a libevent is built so that its own calls
 * do not leave it (-Bsymbolic-functions), the hooks of event_new and event_set see
 * what the program itself registers; where they are not, a thunk that comes by again
 * is left as it is.
 */
#include "hooks/event.h"

#include "core/control.h"
#include "core/define.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/wakes.h"

/* ----------------------------------------------------------------- alive */

/* An event of event_new is alive until it is freed, one that the program has the memory of while it
   is added. */
#define begun(kind, event) \
	tacho__alive_begin(kind, tacho__event_key(event), __builtin_return_address(0))

#define EV_PERSIST 0x10u

static enum tacho__alive added_kind(tacho__word event)
{
	static struct tacho__event_real real = {"event_get_events", 0, 0};

	return tacho__event_find(&real) && real.function(event, 0, 0, 0, 0, 0) & EV_PERSIST
		       ? TACHO__ALIVE_EVENT_ADDED
		       : TACHO__ALIVE_EVENT_ONCE;
}

TACHO__EVENT_HOOK(event_add, if (a && tacho__recording() && !tacho__is_alive(tacho__event_key(a)))
				     begun(added_kind(a), a))

static inline void deleted(tacho__word event)
{
	tacho__alive_end_of(tacho__event_key(event),
			    TACHO__ALIVE_BIT(EVENT_ADDED) | TACHO__ALIVE_BIT(EVENT_ONCE));
}

/* ---------------------------------------------------------------- events */

static tacho__word wrap_event(tacho__word function, tacho__word events)
{
	/* event_base_once: the program's function has a thunk already, under its own name. */
	if (tacho__event_self.assigns_once)
		return function;
	if (tacho__event_is_libevent(function))
		return tacho__event_wrap(function, TACHO__EVENT_INTERNAL);
	return tacho__event_wrap(function, events & EV_PERSIST ? TACHO__EVENT : TACHO__EVENT_FIRES);
}

TACHO__EVENT_HOOK(event_assign, e = wrap_event(e, d))
TACHO__EVENT_HOOK_AND(event_new, d = wrap_event(d, c), begun(TACHO__ALIVE_EVENT, result))
TACHO__EVENT_HOOK(event_set, d = wrap_event(d, c))
TACHO__EVENT_HOOK(event_finalize, c = tacho__event_wrap_user(c, TACHO__EVENT_FINALIZER);
		  tacho__alive_end(tacho__event_key(b)))
TACHO__EVENT_HOOK(event_free_finalize, c = tacho__event_wrap_user(c, TACHO__EVENT_FINALIZER);
		  tacho__alive_end(tacho__event_key(b)))

tacho__word event_base_once(tacho__word base, tacho__word fd, tacho__word events,
			    tacho__word function, tacho__word arg, tacho__word timeout);
TACHO_HOOK tacho__word event_base_once(tacho__word base, tacho__word fd, tacho__word events,
				       tacho__word function, tacho__word arg, tacho__word timeout)
{
	static struct tacho__event_real real = {"event_base_once", 0, 0};
	uint32_t before = tacho__event_self.assigns_once;
	tacho__word result;

	if (!tacho__event_find(&real))
		return real.function(base, fd, events, function, arg, timeout);
	function = tacho__event_wrap_user(function, TACHO__EVENT_ONCE);
	tacho__event_self.assigns_once = 1;
	result = real.function(base, fd, events, function, arg, timeout);
	tacho__event_self.assigns_once = before;
	return result;
}

/* (fd, events, function, arg, timeout): for the base that was made last. */
TACHO__EVENT_HOOK(event_once, c = tacho__event_wrap_user(c, TACHO__EVENT_ONCE))

tacho__word event_get_callback(tacho__word event);
TACHO_HOOK tacho__word event_get_callback(tacho__word event)
{
	static struct tacho__event_real real = {"event_get_callback", 0, 0};
	int ours = tacho__event_find(&real);
	tacho__word function = real.function(event, 0, 0, 0, 0, 0);

	return ours ? tacho__event_original(function) : function;
}

tacho__word event_get_assignment(tacho__word event, tacho__word base, tacho__word fd,
				 tacho__word events, tacho__word function, tacho__word arg);
TACHO_HOOK tacho__word event_get_assignment(tacho__word event, tacho__word base, tacho__word fd,
					    tacho__word events, tacho__word function,
					    tacho__word arg)
{
	static struct tacho__event_real real = {"event_get_assignment", 0, 0};
	int ours = tacho__event_find(&real);
	tacho__word result = real.function(event, base, fd, events, function, arg);
	uintptr_t *out = (uintptr_t *)function;

	if (ours && out)
		*out = tacho__event_original(*out);
	return result;
}

/* ----------------------------------------------------------------- wakes */

static inline void wake(tacho__word task)
{
	if (tacho__recording())
		tacho__put1(TACHO_REC_WAKE, 0, task);
}

TACHO__EVENT_HOOK(event_active, wake(a))
TACHO__EVENT_HOOK(event_active_later_, wake(a))
TACHO__EVENT_HOOK(bufferevent_trigger, wake(a))
TACHO__EVENT_HOOK(bufferevent_trigger_event, wake(a))

/* What is not served yet never will be. */
static inline void forget(tacho__word task)
{
	if (tacho__unlikely(tacho__load(&tacho__watching) & TACHO__WATCH(WAKE)))
		tacho__wake_forgotten(task);
}

static inline void freed(tacho__word object)
{
	forget(object);
	tacho__alive_end(tacho__event_key(object));
}

TACHO__EVENT_HOOK(event_del, forget(a); deleted(a))
TACHO__EVENT_HOOK(event_del_block, forget(a); deleted(a))
TACHO__EVENT_HOOK(event_del_noblock, forget(a); deleted(a))
TACHO__EVENT_HOOK(event_free, freed(a))
TACHO__EVENT_HOOK(bufferevent_free, freed(a))
TACHO__EVENT_HOOK_AND(bufferevent_socket_new, (void)0, begun(TACHO__ALIVE_BUFFEREVENT, result))
/* (underlying, ...): that may be freed with the filter, inside of libevent. */
TACHO__EVENT_HOOK(bufferevent_filter_new, tacho__alive_end(tacho__event_key(a)))

/* -------------------------------------------------------------- the loop */

uint32_t tacho__event_loop(void)
{
	struct tacho__event_thread *t = &tacho__event_self;
	tacho__word base = tacho__hook.event_base;

	if (!base || !tacho__rec)
		return 0;
	if (tacho__likely(t->known == base && t->known_epoch == tacho__load(&tacho__rec->epoch)))
		return t->known_loop;
	if (!tacho__recorder_ready())
		return 0;
	t->known_loop = tacho__define_name(TACHO_DEF_LOOP, "libevent loop", NULL, 0, base,
					   TACHO_LEVEL_CALLBACKS, NULL);
	t->known_epoch = tacho__load(&tacho__rec->epoch);
	t->known = base;
	tacho__source_on(TACHO_SOURCE_LIBEVENT);
	return t->known_loop;
}

/* The thread waits for another loop from now on: that of its base, or that of a base
   around it, or none of libevent's. */
static void change_loop(tacho__word base, uint32_t depth)
{
	uint32_t loop;

	tacho__hook.event_base = base;
	tacho__hook.base_depth = depth;
	tacho__hook.loop_fd = TACHO__NO_LOOP_FD;
	tacho__hook.edge = 0;
	loop = tacho__recording() ? tacho__event_loop() : 0;
	if (loop && tacho__self->now.loop != loop) {
		tacho__hook.loop = loop;
		tacho__loop(loop);
	}
}

static tacho__word run_base(struct tacho__event_real *real, tacho__word base, tacho__word flags)
{
	tacho__word base_before = tacho__hook.event_base;
	uint32_t depth_before = tacho__hook.base_depth;
	tacho__word result;

	change_loop(base, tacho__hook.callbacks + 1);
	result = real->function(base, flags, 0, 0, 0, 0);
	change_loop(base_before, depth_before);
	return result;
}

tacho__word event_base_loop(tacho__word base, tacho__word flags);
TACHO_HOOK tacho__word event_base_loop(tacho__word base, tacho__word flags)
{
	static struct tacho__event_real real = {"event_base_loop", 0, 0};

	return tacho__event_find(&real) ? run_base(&real, base, flags)
					: real.function(base, flags, 0, 0, 0, 0);
}

tacho__word event_base_dispatch(tacho__word base);
TACHO_HOOK tacho__word event_base_dispatch(tacho__word base)
{
	static struct tacho__event_real real = {"event_base_dispatch", 0, 0};

	return tacho__event_find(&real) ? run_base(&real, base, 0)
					: real.function(base, 0, 0, 0, 0, 0);
}
