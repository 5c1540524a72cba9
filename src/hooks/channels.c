#include "hooks/channels.h"

#include "core/control.h"
#include "core/pool.h"
#include "core/record.h"
#include "hooks/calls.h"
#include "hooks/handed.h"

#define WAITED_NS 20000u  /* a read that takes longer found nothing there */
#define COUNTS (1u << 31) /* in an end: what is read there is all that one write has given */

uint32_t tacho__channel_ends[TACHO__CHANNELS];

void tacho__channel_made(int reads, int writes, int counts)
{
	uint32_t flag = counts ? COUNTS : 0;

	if ((unsigned)reads >= TACHO__CHANNELS || (unsigned)writes >= TACHO__CHANNELS)
		return;
	tacho__store(&tacho__channel_ends[reads], ((uint32_t)writes + 1) | flag);
	tacho__store(&tacho__channel_ends[writes], ((uint32_t)reads + 1) | flag);
}

/* The other end, if it is there; below 0: it is not. */
static int other_end(int fd)
{
	uint32_t other = (tacho__load(&tacho__channel_ends[fd]) & ~COUNTS) - 1;

	if (other >= TACHO__CHANNELS ||
	    (tacho__load(&tacho__channel_ends[other]) & ~COUNTS) != (uint32_t)fd + 1)
		return -1;
	return (int)other;
}

static const void *key_of(int reads)
{
	return (const void *)(((uintptr_t)reads + 1) * 8);
}

int tacho__waits_at_channel(int fd)
{
	const struct tacho__hook_thread *h = &tacho__hook;

	return tacho__recording() && !h->loop && !h->said && !h->callbacks && !tacho__is_inside() &&
	       other_end(fd) >= 0 && !tacho__is_elsewhere(key_of(fd)) && tacho__blocks(fd);
}

void tacho__channel_begins(struct tacho__channel_wait *w, int fd, const void *caller)
{
	w->unread = tacho__channel_waits(key_of(fd));
	tacho__wait_begin(&w->wait, TACHO__FOR_SIGNAL, key_of(fd), caller, 0);
}

void tacho__channel_cancelled(void *wait)
{
	tacho__wait_end(&((struct tacho__channel_wait *)wait)->wait, 0);
}

void tacho__channel_ends_with(struct tacho__channel_wait *w, int fd, ssize_t result)
{
	int saved = errno;
	uint64_t begun = w->wait.begun;
	int waited = begun && tacho__ticks() - begun >= tacho__ticks_of_ns(WAITED_NS);

	tacho__wait_end(&w->wait, result > 0);
	if (result > 0)
		tacho__channel_read(key_of(fd), result < INT32_MAX ? (uint32_t)result : 0,
				    waited ? begun : 0, w->unread);
	errno = saved;
}

/* Whether how much waits there is known. */
static int is_counted(int fd)
{
	return (tacho__load(&tacho__channel_ends[fd]) & COUNTS) != 0;
}

void tacho__writes_to_channel(int fd, size_t size, const void *caller)
{
	int reads = other_end(fd), saved = errno;
	uint64_t waiters;

	if (reads < 0 || !tacho__recording())
		return;
	waiters = tacho__maybe_awaited(key_of(reads)) ? tacho__waiters_of(key_of(reads)) : 0;
	if (waiters)
		tacho__released(TACHO__FOR_SIGNAL, key_of(reads), waiters, caller, NULL);
	if (tacho__may_hand_over())
		tacho__channel_writes(key_of(reads), is_counted(fd) ? (int64_t)size : 0);
	errno = saved;
}

void tacho__wrote_to_channel(int fd, size_t size, ssize_t result, const void *caller)
{
	int reads = other_end(fd), saved = errno;

	if (reads < 0 || !tacho__recording() || !tacho__may_hand_over() || !is_counted(fd))
		return;
	tacho__channel_writes(key_of(reads), (result > 0 ? (int64_t)result : 0) - (int64_t)size);
	if (result > 0 && result < INT32_MAX)
		tacho__channel_written(key_of(reads), (uint32_t)result, caller);
	errno = saved;
}
