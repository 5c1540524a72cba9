#include "agent/listener.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (64u << 10)
#define LISTENED (FUTEX_WAITV_MAX - 1u) /* by one thread, beside its own futex */
#define LOOK_NS 20000000
#define BETWEEN_NS 1000000 /* at least, between two looks that find news */

struct tacho__listening {
	struct tacho__listening *next;
	pthread_mutex_t lock; /* of what follows */
	uint32_t changed;     /* futex: the list has */
	bool end;
	struct tacho__heard *heard[LISTENED];
	uint32_t count;
	pthread_t thread;
};

struct tacho__listener {
	struct tacho__listening *groups;
};

void tacho__heard_poke(struct tacho__heard *h)
{
	const uint64_t one = 1;

	__atomic_store_n(&h->poked, true, __ATOMIC_RELEASE);
	/* It fails only when 2^64 - 2 pokes wait, which is as good. */
	if (write(h->poke, &one, sizeof(one)) < 0)
		return;
}

/* -------------------------------------------------------------------- thread */

/* Pokes for what has changed since; the others can be waited for. How many there are. */
static uint32_t look(struct tacho__listening *g, struct futex_waitv *wait, bool *news)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->count; i++) {
		struct tacho__heard *h = g->heard[i];
		uint32_t now;

		if (h->gone)
			continue;
		if (pread(h->fd, &now, sizeof(now), h->at) != (ssize_t)sizeof(now)) {
			h->gone = true;
			continue;
		}
		if (now != h->seen) {
			h->seen = now;
			*news = true;
			tacho__heard_poke(h);
		}
		wait[n++] = (struct futex_waitv){
			.val = h->seen, .uaddr = (uintptr_t)h->futex, .flags = FUTEX_32};
	}
	wait[n++] = (struct futex_waitv){.val = g->changed,
					 .uaddr = (uintptr_t)&g->changed,
					 .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
	return n;
}

static void *listen_to_all(void *arg)
{
	const struct timespec pause = {0, LOOK_NS}, between = {0, BETWEEN_NS};
	struct futex_waitv wait[FUTEX_WAITV_MAX];
	struct tacho__listening *g = arg;
	bool end = false;

	while (!end) {
		bool news = false;
		uint32_t n;

		pthread_mutex_lock(&g->lock);
		n = look(g, wait, &news);
		end = g->end;
		pthread_mutex_unlock(&g->lock);
		/* One program that calls without end does not get all the time. */
		if (news)
			nanosleep(&between, NULL);
		/* What fails for one of them, a file that was truncated, is found by looking. */
		if (!end && syscall(SYS_futex_waitv, wait, n, 0, NULL, 0) < 0 && errno != EAGAIN &&
		    errno != EINTR)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

static void tell_of_change(struct tacho__listening *g)
{
	__atomic_add_fetch(&g->changed, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &g->changed, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* --------------------------------------------------------------------- groups */

static int start(struct tacho__listening *g)
{
	pthread_attr_t attributes;
	sigset_t all, were;
	int error = pthread_attr_init(&attributes);

	if (error)
		return -error;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &were);
	error = pthread_create(&g->thread, &attributes, listen_to_all, g);
	pthread_sigmask(SIG_SETMASK, &were, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}

static struct tacho__listening *group_new(int *error)
{
	struct tacho__listening *g = calloc(1, sizeof(*g));

	*error = g ? -pthread_mutex_init(&g->lock, NULL) : -ENOMEM;
	if (!*error)
		*error = start(g);
	if (*error) {
		free(g);
		return NULL;
	}
	return g;
}

struct tacho__listener *tacho__listener_new(void)
{
	return calloc(1, sizeof(struct tacho__listener));
}

void tacho__listener_free(struct tacho__listener *l)
{
	while (l && l->groups) {
		struct tacho__listening *g = l->groups;

		l->groups = g->next;
		pthread_mutex_lock(&g->lock);
		g->end = true;
		pthread_mutex_unlock(&g->lock);
		tell_of_change(g);
		pthread_join(g->thread, NULL);
		pthread_mutex_destroy(&g->lock);
		free(g);
	}
	free(l);
}

int tacho__listener_add(struct tacho__listener *l, struct tacho__heard *h)
{
	struct tacho__listening *g = l->groups;
	int error = 0;

	while (g && g->count == LISTENED)
		g = g->next;
	if (!g) {
		g = group_new(&error);
		if (!g)
			return error;
		g->next = l->groups;
		l->groups = g;
	}
	h->group = g;
	pthread_mutex_lock(&g->lock);
	g->heard[g->count++] = h;
	pthread_mutex_unlock(&g->lock);
	tell_of_change(g);
	return 0;
}

void tacho__listener_remove(struct tacho__heard *h)
{
	struct tacho__listening *g = h->group;

	pthread_mutex_lock(&g->lock);
	for (uint32_t i = 0; i < g->count; i++)
		if (g->heard[i] == h)
			g->heard[i] = g->heard[--g->count];
	pthread_mutex_unlock(&g->lock);
	tell_of_change(g);
}
