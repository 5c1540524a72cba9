/*
 * How the kernel treated a thread: how long it was runnable but not running (run_delay of
 * schedstat), how often it was preempted, its page faults.
 *
 * The kernel only keeps totals, and reading them at the begin of each poll would cost more
 * than most polls. So they are read at the end of a poll or iteration that took a tenth of
 * TACHO_SLOW_POLL (1 ms), after a call that is recorded, and when a loop comes out of its wait, unless
 * that was done less than TACHO_SLOW_POLL before; where the thread has lacked a CPU lately, less than a
 * tenth of that. What is recorded is the difference, with what ended (the subject) and the time since
 * which the totals grew by so much: right before the last reading, which may be before the subject
 * began.
 *
 * A call is inside of a poll or iteration. Its record takes its part of the difference; what comes at
 * the end of the poll tells the rest, of all the time since the last reading that was not after a call.
 *
 * Differences that are too small for a record are kept until they add up to one, so that the records
 * of a thread add up to what it was runnable for. A fast poll costs a compare; a loop at full speed
 * about a hundred readings a second, 3 us each, ten times as many beside busy neighbours.
 */
#include <string.h>
#include <sys/resource.h>

#include "base/sys.h"
#include "core/control.h"
#include "core/define.h"
#include "core/pool.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/watched.h"
#include "hooks/hooks.h"

#define LOOK_NS UINT64_C(10000000) /* where no poll is slow */
#define CLOSER 10		   /* times as near are readings of a thread that lacks a CPU */
#define CLOSE_LOOKS 100		   /* for so many readings after it did */
#define LEAST_NS UINT64_C(100000)  /* in a record, unless a poll was slow */

static int unread = 1;	    /* 1: the totals are not wanted, or refused */
static uint64_t slow_ticks; /* of TACHO_SLOW_POLL; tacho__slow_ticks is for what is looked at */

struct totals {
	uint64_t ran_ns, delay_ns, preempted, minor, major;
};

/* What the kernel did to the thread since `begin`. */
struct treatment {
	uint64_t begin; /* ticks; 0: nothing */
	uint64_t delay_ns, preempted, minor, major;
};

static __thread struct {
	struct totals last;	/* of the last reading */
	struct totals begin;	/* of the last that was not after a call */
	uint64_t last_ticks;	/* right before the last reading */
	uint64_t begin_ticks;	/* right before the one of `begin` */
	uint64_t called_ns;	/* delay since `begin` that records of calls have told */
	struct treatment small; /* too little for a record so far */
	uint32_t close;		/* readings that will be close */
} seen __attribute__((tls_model("initial-exec")));

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
	return tacho__hook.looked && tacho__hook.sampled &&
	       tacho__hook.sampled == tacho__load(&tacho__rec->process);
}

/* The rate of the clock is known only some time after the box was made. */
static int rate_known(void)
{
	uint64_t slow;

	if (tacho__load(&slow_ticks))
		return 1;
	slow = tacho__slow_poll_ns();
	slow = tacho__ticks_of_ns(slow ? slow : LOOK_NS);
	if (slow == UINT64_MAX)
		return 0;
	tacho__store(&slow_ticks, slow + !slow);
	if (!tacho__load(&tacho__slow_ticks))
		tacho__store(&tacho__slow_ticks, slow / CLOSER);
	return 1;
}

/* On how many CPUs the thread may run, when it begins to be read: a gauge. There is a system call for
   that, but programs that restrict theirs may not know it. */
static __attribute__((noinline)) void tell_cpus(void)
{
	static const char digits[] = "0123456789abcdef";
	char text[2048];
	const char *p;
	uint64_t n = 0;

	if (!tacho__recorder_ready() ||
	    tacho__read_small("/proc/thread-self/status", text, sizeof(text)) <= 0)
		return;
	p = strstr(text, "Cpus_allowed:");
	/* Digits of 4 CPUs each, in groups with commas between them. */
	for (p = p ? p + 13 : ""; *p && *p != '\n'; p++) {
		const char *digit = strchr(digits, *p);

		n += digit ? (uint64_t)__builtin_popcountl((unsigned long)(digit - digits)) : 0;
	}
	if (n)
		tacho__put1(
			TACHO_REC_COUNTER,
			tacho__define_name(TACHO_DEF_GAUGE, TACHO_GAUGE_CPUS, NULL, 0, 0, 1, ""),
			n);
}

/* There was a reading at `ticks`: the next one. */
static void looked_at(uint64_t ticks)
{
	uint64_t slow = tacho__load(&slow_ticks);

	tacho__hook.looked = ticks;
	tacho__look_due = ticks + (seen.close ? slow / CLOSER : slow);
}

/* A reading: since the last one it was delayed by so much. */
static uint64_t take(const struct totals *now)
{
	uint64_t delay = now->delay_ns - seen.last.delay_ns;

	seen.last = *now;
	if (delay >= tacho__slow_poll_ns() / CLOSER)
		seen.close = CLOSE_LOOKS;
	else if (seen.close)
		seen.close--;
	return delay;
}

/* Its ticks, or 0. */
static uint64_t record(enum tacho_sched_subject subject, const struct treatment *t)
{
	uint32_t preempted = (uint32_t)least(t->preempted, TACHO_ARG_MAX);
	const uint64_t words[4] = {4 | (uint64_t)subject << 16, t->delay_ns, t->begin,
				   least(t->minor, UINT32_MAX) | least(t->major, UINT32_MAX) << 32};

	return tacho__record(tacho_record_head(TACHO_REC_SCHED_INTERVAL, preempted), words, 4);
}

static int is_worth_a_record(const struct treatment *t)
{
	return t->delay_ns >= LEAST_NS || t->major;
}

/* Since the last reading that was not after a call, without what calls have told. */
static struct treatment treated(const struct totals *now)
{
	const struct totals *before = &seen.begin;
	struct treatment t = {.begin = seen.begin_ticks,
			      .delay_ns = now->delay_ns - before->delay_ns,
			      .preempted = now->preempted - before->preempted,
			      .minor = now->minor - before->minor,
			      .major = now->major - before->major};

	t.delay_ns -= least(t.delay_ns, seen.called_ns);
	return t;
}

static void begin_anew(const struct totals *now, uint64_t ticks)
{
	seen.begin = *now;
	seen.begin_ticks = seen.last_ticks = ticks;
	seen.called_ns = 0;
}

static void keep(const struct treatment *t)
{
	if (!seen.small.begin)
		seen.small.begin = t->begin;
	seen.small.delay_ns += t->delay_ns;
	seen.small.preempted += t->preempted;
	seen.small.minor += t->minor;
}

/*
 * The subject ended, and the totals were `now` when they were read after `ticks`; `always`: that is
 * worth a record. A large difference is told with its own interval, not with that of small ones before
 * it. Gives the ticks of the record, or `ticks` without one; 0: it could not be recorded.
 */
static uint64_t tell(enum tacho_sched_subject subject, const struct totals *now, uint64_t ticks,
		     int always)
{
	struct treatment t = treated(now);
	uint64_t told = ticks;

	if (always || is_worth_a_record(&t)) {
		told = record(subject, &t);
	} else {
		keep(&t);
		if (is_worth_a_record(&seen.small)) {
			told = record(subject, &seen.small);
			seen.small = (struct treatment){0};
		}
	}
	begin_anew(now, ticks);
	return told;
}

static void ended(enum tacho_sched_subject subject, uint64_t ticks, uint32_t id)
{
	struct totals now;
	uint64_t at, delay;
	int saved = errno, slow;

	if (!tacho__recording() || !rate_known() || ticks < tacho__load(&tacho__slow_ticks))
		goto out;
	slow = ticks >= tacho__load(&slow_ticks);
	if (slow)
		tacho__descriptors_doubted();
	at = tacho__ticks();
	if (!totals_are_mine() || measure(&now))
		goto out;
	take(&now);
	delay = now.delay_ns - seen.begin.delay_ns;
	tacho__hook.ran = now.ran_ns - seen.begin.ran_ns;
	looked_at(tell(subject, &now, at, slow));
	if (!slow)
		goto out;
	tacho__throttle_read();
	if (delay && tacho__load(&tacho__watching) & TACHO__WATCH(SCHED))
		tacho__above(TACHO_SENTINEL_SCHED, delay, id);
out:
	errno = saved;
}

void tacho__sched_polled(uint64_t ticks, uint32_t kind)
{
	ended(TACHO_SCHED_POLL, ticks, kind);
}

void tacho__sched_iterated(uint64_t ticks, uint32_t loop)
{
	ended(TACHO_SCHED_ITERATION, ticks, loop);
}

/* When the code began that runs since the last reading, or since the wait after that: ticks. */
static uint64_t code_begin(void)
{
	const struct tacho_underway *now = &tacho__self->now;

	return !now->parked && now->park_time > seen.last_ticks ? now->park_time : seen.last_ticks;
}

void tacho__sched_called(uint64_t since, uint64_t ns)
{
	struct totals now;
	struct treatment call = {.begin = since};
	uint64_t at = tacho__ticks(), code, code_ns, ran_ns, delay_ns, earlier_ns;

	if (tacho__load(&unread) || !rate_known() || !totals_are_mine() || measure(&now))
		return;
	code = code_begin();
	code_ns = since > code ? tacho__ns_of_ticks(since - code) : 0;
	ran_ns = now.ran_ns - seen.last.ran_ns;
	delay_ns = take(&now);
	/* Code that did not run was delayed before the call. */
	earlier_ns = least(code_ns > ran_ns ? code_ns - ran_ns : 0, delay_ns);
	call.delay_ns = least(delay_ns - earlier_ns, ns);
	/* A wait before that code may have its part in what is left. */
	if (code > seen.last_ticks)
		call.begin = seen.last_ticks;
	seen.called_ns += call.delay_ns;
	seen.last_ticks = at;
	looked_at(record(TACHO_SCHED_CALL, &call));
}

/* The first reading of this thread in this process. */
static void read_first(const struct totals *now, uint64_t ticks)
{
	seen.last = *now;
	seen.close = 0;
	seen.small = (struct treatment){0};
	begin_anew(now, ticks);
	if (!tacho__hook.little_stack)
		tell_cpus();
}

void tacho__sched_turn(uint64_t ticks, int waited)
{
	struct totals now;
	int mine = totals_are_mine();

	rate_known();
	tacho__hook.delayed = UINT64_MAX;
	if (!tacho__hook.looked && !tacho__load(&unread))
		tacho__throttle_read();
	if (tacho__load(&unread) || measure(&now)) {
		looked_at(ticks);
		return;
	}
	if (mine) {
		tacho__hook.delayed = take(&now);
		tell(waited ? TACHO_SCHED_WAIT : TACHO_SCHED_ITERATION, &now, ticks, 0);
		/* A loop with little to do in each turn is stopped in its waits: the quota is used up
		   when it wants to come back. */
		if (tacho__hook.delayed >= tacho__slow_poll_ns())
			tacho__throttle_read();
	} else {
		read_first(&now, ticks);
	}
	looked_at(ticks);
}

void tacho__sched_begin(void)
{
	unread = !tacho__slow_poll_ns();
	tacho__slow_ticks = unread ? UINT64_MAX : 0;
}
