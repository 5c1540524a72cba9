/*
 * Channels: pipes, pairs of sockets and eventfds of which the process has both ends, by which its threads hand
 * work to each other.
 *
 * A thread without a loop that reads from one waits for what others write, as it would at a semaphore, and that is
 * how it is recorded: LOCK_WAIT and LOCK_WAITED, LOCK_RELEASE by who writes while somebody reads, and LOCK_QUEUE
 * when loops write more than is read. In place of an address they have 8 * (descriptor + 1), where no object can
 * be. Whether it waits for work there is not decided here. A thread that is known to wait for work elsewhere is in
 * the middle of it, and then a read is a call.
 */
#ifndef TACHO_HOOKS_CHANNELS_H
#define TACHO_HOOKS_CHANNELS_H

#include <stdint.h>
#include <sys/types.h>

#include "hooks/hooks.h"
#include "hooks/locks.h"

#define TACHO__CHANNELS 65536u
/* By descriptor: that of the other end + 1; 0: none. Both ends must say so. */
extern uint32_t tacho__channel_ends[TACHO__CHANNELS];

/* `writes` is where what `reads` gets is written. */
void tacho__channel_made(int reads, int writes, int counts);

static inline void tacho__channel_closed(int fd)
{
	if ((unsigned)fd < TACHO__CHANNELS && tacho__load(&tacho__channel_ends[fd]))
		tacho__store(&tacho__channel_ends[fd], 0);
}

static inline int tacho__is_channel(int fd)
{
	return (unsigned)fd < TACHO__CHANNELS &&
	       tacho__unlikely(tacho__load(&tacho__channel_ends[fd]) != 0);
}

/* One read while it lasts. */
struct tacho__channel_wait {
	struct tacho__wait wait;
	int64_t unread;
};

/* Whether this thread waits there for what others write. errno stays. */
int tacho__waits_at_channel(int fd) __attribute__((cold));
void tacho__channel_begins(struct tacho__channel_wait *w, int fd, const void *caller);
void tacho__channel_ends_with(struct tacho__channel_wait *w, int fd, ssize_t result);
/* For pthread_cleanup_push. */
void tacho__channel_cancelled(void *wait);
/* It is about to write `size` bytes (0: not known), and has. errno stays. */
void tacho__writes_to_channel(int fd, size_t size, const void *caller) __attribute__((cold));
void tacho__wrote_to_channel(int fd, size_t size, ssize_t result, const void *caller)
	__attribute__((cold));

#endif
