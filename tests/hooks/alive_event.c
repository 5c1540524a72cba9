/* Events of libevent: argv[1] says what is begun and not ended, or that all is well. */
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "alive.h"

/* Memory of the program's. */
struct session {
	struct event event;
	char rest[400]; /* of no other size */
};

static const char *what;
static struct event_base *base;
static const struct timeval minute = {60, 0}, at_once = {0, 1000};

static void nothing(evutil_socket_t fd, short events, void *arg)
{
	(void)fd, (void)events, (void)arg;
}

static void free_session(evutil_socket_t fd, short events, void *arg)
{
	(void)fd, (void)events;
	free(arg);
}

static __attribute__((noinline)) void begin_new(void)
{
	event_add(event_new(base, eventfd(0, 0), EV_READ | EV_PERSIST, nothing, NULL), NULL);
}

static __attribute__((noinline)) void begin_added(void)
{
	struct session *s = malloc(sizeof(*s));

	event_assign(&s->event, base, -1, 0, nothing, s);
	event_add(&s->event, &minute);
}

static __attribute__((noinline)) void begin_connection(void)
{
	bufferevent_socket_new(base, -1, 0);
}

/* Three that end: one is freed, one is deleted, one has fired. */
static __attribute__((noinline)) void begin_and_end(void)
{
	struct event *event = event_new(base, -1, 0, nothing, NULL);
	void *kept = malloc(sizeof(struct session)); /* takes what was freed */
	struct session *s = malloc(sizeof(*s));

	event_add(event, &minute);
	event_free(event);
	event_assign(&s->event, base, -1, ticks & 1 ? EV_PERSIST : 0, free_session, s);
	event_add(&s->event, ticks & 1 ? &minute : &at_once);
	if (ticks & 1) {
		event_del(&s->event);
		free(s);
	}
	bufferevent_free(bufferevent_socket_new(base, -1, 0));
	/* So that no address comes twice. */
	__asm__ volatile("" : : "r"(kept) : "memory");
}

static void tick(void)
{
	if (!strcmp(what, "new"))
		begin_new();
	if (!strcmp(what, "added"))
		begin_added();
	if (!strcmp(what, "bufferevent"))
		begin_connection();
	if (!strcmp(what, "comes-and-goes"))
		begin_and_end();
	if (!strcmp(what, "pool") && ticks < TICKS / 2)
		begin_new();
}

static void on_timer(evutil_socket_t fd, short events, void *arg)
{
	(void)fd, (void)events, (void)arg;
	while (tick_due())
		tick();
	if (ticks == TICKS)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	const struct timeval period = {0, 5000};

	what = argc > 1 ? argv[1] : "";
	base = event_base_new();
	event_add(event_new(base, -1, EV_PERSIST, on_timer, NULL), &period);
	return event_base_dispatch(base) < 0;
}
