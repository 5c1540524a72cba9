/*
 * How the kernel treated a thread during a slow poll: how long it was runnable but not
 * running (run_delay of schedstat), how often it was preempted, its page faults.
 *
 * The kernel only keeps totals, and reading them at the begin of each poll would cost more
 * than most polls. So they are read when a loop comes out of its wait, unless that was
 * done less than TACHO_SLOW_POLL (10 ms) before, and at the end of a slow poll: what
 * is recorded is the difference. It belongs to the slow poll and to at most that much time
 * before the turn in which it ran. When a loop comes out of its wait, a difference that is as
 * long as a slow poll is recorded as well: what it waited for was there, and others ran. A
 * fast poll costs a compare; a loop at full speed about a hundred readings a second, 3 us
 * each.
 */
#include <sys/resource.h>

#include "base/sys.h"
#include "core/control.h"
#include "core/pool.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/watched.h"
#include "hooks/hooks.h"

#define LOOK_NS UINT64_C(10000000) /* where no poll is slow */

static int unread = 1; /* 1: the totals are not wanted, or refused */

struct totals {
	uint64_t ran_ns, delay_ns, preempted, minor, major;
};

/* Those of the last reading; tacho__looked says when that was. */
static __thread struct totals last __attribute__((tls_model("initial-exec")));

static const char *take_number(const char *p, uint64_t *out)
{
	*out = 0;
	for (p += *p == ' '; *p >= '0' && *p <= '9'; p++)
		*out = *out * 10 + (uint64_t)(*p - '0');
	return p;
}

/* The first two numbers of /proc/thread-self/schedstat; 0 or a negative errno. */
static int read_times(struct totals *t)
{
	int fd = tacho__openat(AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY, 0);
	char text[96];
	long n;

	if (fd < 0)
		return fd;
	n = tacho__read(fd, text, sizeof(text) - 1);
	tacho__close(fd);
	if (n <= 0)
		return n ? (int)n : -ENODATA;
	text[n] = 0;
	take_number(take_number(text, &t->ran_ns), &t->delay_ns);
	return 0;
}

static void turn_off(void)
{
	tacho__store(&unread, 1);
	tacho__store(&tacho__slow_ticks, UINT64_MAX);
}

static void describe(int err)
{
	struct tacho_box_source *s;

	if (__atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE) != TACHO__PHASE_READY)
		return;
	s = &tacho__rec->super->sources[TACHO_SOURCE_SCHED];
	s->state = err ? TACHO_SOURCE_REFUSED : TACHO_SOURCE_ON;
	s->error = -err;
}

static int measure(struct totals *t)
{
	struct rusage usage;
	int err = read_times(t);

	if (!err)
		err = (int)TACHO__SYS(SYS_getrusage, RUSAGE_THREAD, &usage, 0, 0, 0, 0);
	if (!err) {
		t->preempted = (uint64_t)usage.ru_nivcsw;
		t->minor = (uint64_t)usage.ru_minflt;
		t->major = (uint64_t)usage.ru_majflt;
	}
	describe(err);
	if (err)
		turn_off();
	return err;
}

static uint64_t least(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

/* Totals are of the thread, and a child's thread begins with new ones. */
static int totals_are_mine(void)
{
	return tacho__looked && tacho__hook.sampled &&
	       tacho__hook.sampled == tacho__load(&tacho__rec->process);
}

/* The rate of the clock is known only some time after the box was made. */
static int rate_known(void)
{
	uint64_t slow = tacho__slow_poll_ns();

	if (tacho__load(&tacho__look_ticks))
		return 1;
	slow = tacho__ticks_of_ns(slow ? slow : LOOK_NS);
	if (slow == UINT64_MAX)
		return 0;
	if (!tacho__load(&tacho__slow_ticks))
		tacho__store(&tacho__slow_ticks, slow);
	tacho__store(&tacho__look_ticks, slow + !slow);
	return 1;
}

/* Its ticks, or 0. */
static uint64_t record_since(const struct totals *before, const struct totals *now)
{
	const uint64_t words[2] = {
		now->delay_ns - before->delay_ns,
		least(now->minor - before->minor, UINT32_MAX) |
			least(now->major - before->major, UINT32_MAX) << 32,
	};

	return tacho__record(tacho_record_head(TACHO_REC_SCHED,
					       (uint32_t)least(now->preempted - before->preempted,
							       TACHO_ARG_MAX)),
			     words, 2);
}

void tacho__sched_ended(uint64_t ticks, uint32_t id)
{
	struct totals now;
	uint64_t delay;
	int saved = errno;

	if (!tacho__recording() || !rate_known() || ticks < tacho__load(&tacho__slow_ticks))
		goto out;
	tacho__descriptors_doubted();
	if (!totals_are_mine() || measure(&now))
		goto out;
	delay = now.delay_ns - last.delay_ns;
	tacho__hook.ran = now.ran_ns - last.ran_ns;
	tacho__looked = record_since(&last, &now);
	last = now;
	tacho__throttle_read();
	if (delay && tacho__load(&tacho__watching) & TACHO__WATCH(SCHED))
		tacho__above(TACHO_SENTINEL_SCHED, delay, id);
out:
	errno = saved;
}

void tacho__sched_turn(uint64_t ticks, int waited)
{
	struct totals before = last;
	int mine = totals_are_mine();

	rate_known();
	if (tacho__load(&unread)) {
		tacho__looked = ticks;
		tacho__hook.delayed = UINT64_MAX;
		return;
	}
	if (!tacho__looked)
		tacho__throttle_read();
	tacho__looked = ticks;
	tacho__hook.delayed = UINT64_MAX;
	if (measure(&last) || !mine)
		return;
	tacho__hook.delayed = last.delay_ns - before.delay_ns;
	if (waited && tacho__hook.delayed >= tacho__slow_poll_ns())
		record_since(&before, &last);
}

void tacho__sched_begin(void)
{
	unread = !tacho__slow_poll_ns();
	tacho__slow_ticks = unread ? UINT64_MAX : 0;
}
