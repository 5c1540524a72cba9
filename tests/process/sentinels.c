/*
 * What the recorder does for an agent: sentinels, the wake of an agent that sleeps while nothing
 * happens, and that of one that follows. The test is the agent: it writes into the control area
 * of the box's file, and sleeps on its futex.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/box.h"
#include "lib.h"

static struct tacho_name loop = TACHO_LOOP("main_loop");
static struct tacho_name kind = TACHO_KIND("slow_kind");
static struct tacho_name other = TACHO_KIND("other_kind");

#define MS 1000000ull
#define NEVER (1000000 * MS) /* no call of a test takes so long */
#define LONG_MS 30	     /* what is too slow here, with a limit of 10 ms */
#define SLOW (10 * MS)

/* ------------------------------------------------- the recorded process */

enum command {
	TURN = 1, /* park and unpark: the control area is looked at */
	POLL,	  /* arg: ms that it takes */
	SWITCH,
	LONG_TURN,
	LONG_PARK,
	WAKE,	 /* arg: ms until the poll */
	FORGOT,	 /* the task ended in between */
	SPAWNED, /* ... or was another one by then */
	DEPTH,	 /* arg: of the queue */
	FILL,	 /* arg: records */
	HANDLER, /* a poll that a signal handler ends */
	FORK,	 /* go on as a child of this process */
	END,
};

/* In the shared page: what is to be done, and what was. */
enum { STEP, DONE, COMMAND, ARG, CHILD };

static uint64_t get(int i)
{
	return __atomic_load_n(&shared()[i], __ATOMIC_ACQUIRE);
}

static void put(int i, uint64_t value)
{
	__atomic_store_n(&shared()[i], value, __ATOMIC_RELEASE);
}

static void on_signal(int sig)
{
	(void)sig;
	errno = 1;
	tacho_poll_end(TACHO_DONE);
	CHECK(errno == 1, "errno became %d in the handler", errno);
	errno = 77;
}

static void polls(enum command command, unsigned ms)
{
	switch (command) {
	case POLL:
		tacho_poll_begin(&kind, 7);
		sleep_ms(ms);
		tacho_poll_end(TACHO_PENDING);
		break;
	case SWITCH:
		tacho_poll_begin(&kind, 7);
		sleep_ms(ms);
		tacho_poll_switch(&other, 8);
		tacho_poll_end(TACHO_PENDING);
		break;
	case HANDLER:
		signal(SIGUSR1, on_signal);
		tacho_poll_begin(&kind, 7);
		sleep_ms(ms);
		raise(SIGUSR1);
		break;
	default:
		break;
	}
}

static void wakes(enum command command, unsigned ms)
{
	tacho_wake(42);
	tacho_wake(42);
	if (command == FORGOT)
		tacho_task_end(42);
	if (command == SPAWNED)
		tacho_task_spawn(42, &kind, 0, NULL);
	sleep_ms(ms);
	tacho_poll_begin(&kind, 42);
	tacho_poll_end(TACHO_DONE);
}

static void turn(unsigned ms)
{
	tacho_park(&loop);
	tacho_unpark(&loop, 1);
	sleep_ms(ms);
	tacho_park(&loop);
	tacho_unpark(&loop, 1);
}

static void obey(enum command command, uint64_t arg)
{
	errno = 77;
	switch (command) {
	case TURN:
	case LONG_TURN:
		turn((unsigned)arg);
		break;
	case LONG_PARK:
		tacho_park(&loop);
		sleep_ms((unsigned)arg);
		tacho_unpark(&loop, 0);
		break;
	case POLL:
	case SWITCH:
	case HANDLER:
		polls(command, (unsigned)arg);
		break;
	case WAKE:
	case FORGOT:
	case SPAWNED:
		wakes(command, (unsigned)arg);
		break;
	case DEPTH:
		tacho_queue_depth(&loop, arg);
		break;
	case FILL:
		for (uint64_t i = 0; i < arg; i++)
			tacho_wake(1ull << 40 | i); /* two words */
		break;
	case FORK: {
		pid_t pid = fork();

		if (pid) {
			put(CHILD, (uint64_t)pid);
			pause();
		}
		turn(0);
		errno = 77;
		break;
	}
	case END:
		die();
	}
	CHECK(errno == 77, "errno became %d by command %d", errno, (int)command);
}

static void body(void *arg)
{
	uint64_t done = get(DONE);

	(void)arg;
	start();
	sleep_ms(5); /* until the rate of the clock is known */
	turn(0);
	put(DONE, ++done);
	for (;;) {
		while (get(STEP) == done)
			sleep_ms(1);
		obey((enum command)get(COMMAND), get(ARG));
		put(DONE, ++done);
	}
}

/* ---------------------------------------------------------- the agent */

static void wait_done(uint64_t step)
{
	for (int i = 0; i < 60000 && get(DONE) != step && !failed(); i++)
		sleep_ms(1);
	CHECK(get(DONE) == step, "the subject did not get to step %llu", (unsigned long long)step);
}

static void order(enum command command, uint64_t arg)
{
	uint64_t step = get(STEP) + 1;

	put(COMMAND, command);
	put(ARG, arg);
	put(STEP, step);
	wait_done(step);
}

static pid_t subject_ready(void)
{
	pid_t pid;

	put(DONE, 0);
	put(STEP, 1);
	pid = subject_start(body, NULL);
	wait_done(1);
	return pid;
}

static void end(pid_t pid)
{
	put(COMMAND, END);
	put(STEP, get(STEP) + 1);
	check_exit(subject_wait(pid), 0);
}

/* A box as an agent has it. */
struct held {
	int fd;
	struct tacho_box_region control, triggers;
};

static struct held hold(pid_t pid)
{
	struct held h = {.fd = -1};
	struct tacho_box_super super;
	struct boxes *b = boxes_open(box_dir());

	for (size_t i = 0; i < b->count; i++)
		if (b->box[i].pid == pid)
			h.fd = open(b->box[i].path, O_RDWR | O_CLOEXEC);
	boxes_close();
	if (!CHECK(h.fd >= 0 && pread(h.fd, &super, sizeof(super), 0) == sizeof(super),
		   "there is no box of %d", (int)pid))
		return h;
	h.control = super.regions[TACHO_REGION_CONTROL];
	h.triggers = super.regions[TACHO_REGION_TRIGGERS];
	return h;
}

static struct tacho_box_control control(const struct held *h)
{
	struct tacho_box_control c;

	memset(&c, 0, sizeof(c));
	CHECK(pread(h->fd, &c, sizeof(c), (off_t)h->control.offset) == sizeof(c), "pread");
	return c;
}

static void put_control(const struct held *h, size_t at, const void *from, size_t size)
{
	CHECK(pwrite(h->fd, from, size, (off_t)(h->control.offset + at)) == (ssize_t)size,
	      "pwrite");
}
#define PUT(h, field, value)                                                                \
	do {                                                                                \
		__typeof__(((struct tacho_box_control *)0)->field) v_ = (value);            \
		put_control(h, offsetof(struct tacho_box_control, field), &v_, sizeof(v_)); \
	} while (0)

static void arm(const struct held *h, enum tacho_sentinel s)
{
	PUT(h, armed[s], control(h).armed[s] + 1);
}

/* Without a turn of the subject's loop, which makes it known there. */
static void limit(const struct held *h, enum tacho_sentinel s, uint64_t value)
{
	PUT(h, limit[s], value);
	PUT(h, config, control(h).config + 1);
}

static void watch(const struct held *h, enum tacho_sentinel s, uint64_t value)
{
	limit(h, s, value);
	arm(h, s);
	order(TURN, 0);
}

static uint32_t triggers(const struct held *h)
{
	struct tacho_box_super super;

	CHECK(pread(h->fd, &super, sizeof(super), 0) == sizeof(super), "pread");
	return super.trigger_count;
}

static struct tacho_box_trigger trigger(const struct held *h, uint32_t number)
{
	struct tacho_box_trigger t;

	memset(&t, 0, sizeof(t));
	CHECK(pread(h->fd, &t, sizeof(t), (off_t)(h->triggers.offset + (number - 1) * sizeof(t))) ==
		      sizeof(t),
	      "pread");
	return t;
}

static uint64_t suppressed(const struct held *h)
{
	struct tacho_box_control c = control(h);
	uint64_t n = 0;

	for (unsigned i = 0; i < TACHO_SENTINEL_MAX; i++)
		n += c.suppressed[i];
	return n;
}

/* Trigger `number` is the last, and says this. `least` is what its value is at least. */
static void check_fired(const struct held *h, uint32_t number, enum tacho_sentinel s,
			uint64_t least, const char *begin, const char *name)
{
	struct tacho_box_control c = control(h);
	struct tacho_box_trigger t = trigger(h, number);
	size_t size = strlen(name);

	CHECK(triggers(h) == number, "%u triggers, not %u", triggers(h), number);
	CHECK(t.number == number && TACHO_TRIGGER_SENTINEL(t.flags) == s + 1u,
	      "trigger %u: number %u, flags %#x", number, t.number, t.flags);
	CHECK(t.value >= least && t.value < NEVER, "trigger %u: value %llu", number,
	      (unsigned long long)t.value);
	CHECK(t.size <= TACHO_REASON_MAX && !strncmp(t.reason, begin, strlen(begin)) &&
		      t.size > size + 2 && !memcmp(t.reason + t.size - size, name, size) &&
		      !memcmp(t.reason + t.size - size - 2, ": ", 2),
	      "trigger %u: '%.*s'", number, (int)t.size, t.reason);
	CHECK(c.fired[s] == c.armed[s], "sentinel %d: armed %u, fired %u", s, c.armed[s],
	      c.fired[s]);
}

/* ---------------------------------------------------------------- tests */

static void everything_slow(void)
{
	order(POLL, LONG_MS);
	order(SWITCH, LONG_MS);
	order(LONG_TURN, LONG_MS);
	order(WAKE, LONG_MS);
	order(DEPTH, 100000);
}

static void test_off(void)
{
	pid_t pid = subject_ready();
	struct held h = hold(pid);
	uint32_t seq = control(&h).wake_seq;

	for (int i = 0; i < TACHO_SENTINEL_COUNT; i++)
		arm(&h, (enum tacho_sentinel)i); /* without a limit */
	everything_slow();
	for (int i = 0; i < TACHO_SENTINEL_COUNT; i++)
		watch(&h, (enum tacho_sentinel)i, NEVER);
	everything_slow();
	for (int i = 0; i < TACHO_SENTINEL_COUNT; i++)
		limit(&h, (enum tacho_sentinel)i, 0);
	everything_slow();
	CHECK(triggers(&h) == 0, "%u triggers", triggers(&h));
	CHECK(suppressed(&h) == 0, "%llu suppressed", (unsigned long long)suppressed(&h));
	CHECK(control(&h).wake_seq == seq, "the agent was woken %u times",
	      control(&h).wake_seq - seq);
	end(pid);
	close(h.fd);
}

/* One sentinel alone: fires once for each time that it was armed, and counts what it held
   besides. `command` makes it hold once. */
static void one(enum tacho_sentinel s, uint64_t limit_value, enum command command, uint64_t arg,
		uint64_t least, const char *begin, const char *name)
{
	pid_t pid = subject_ready();
	struct held h = hold(pid);
	uint32_t seq = control(&h).wake_seq;
	uint64_t before;

	limit(&h, s, limit_value);
	order(TURN, 0);
	order(command, arg);
	CHECK(triggers(&h) == 0, "it fired, and was not armed");
	CHECK(control(&h).suppressed[s] == 1 && suppressed(&h) == 1,
	      "not armed: %llu suppressed, not 1", (unsigned long long)suppressed(&h));
	arm(&h, s);
	order(command, arg);
	check_fired(&h, 1, s, least, begin, name);
	CHECK(control(&h).wake_seq == seq + 1, "the agent was woken %u times",
	      control(&h).wake_seq - seq);
	order(command, arg);
	order(command, arg);
	CHECK(triggers(&h) == 1, "it fired again");
	CHECK(control(&h).suppressed[s] == 3, "%llu suppressed, not 3",
	      (unsigned long long)control(&h).suppressed[s]);
	arm(&h, s);
	order(command, arg);
	check_fired(&h, 2, s, least, begin, name);
	limit(&h, s, 0);
	/* On a busy machine this one may still be too long for the old limit. */
	order(TURN, 0);
	before = control(&h).suppressed[s];
	arm(&h, s);
	order(command, arg);
	CHECK(triggers(&h) == 2 && control(&h).suppressed[s] == before, "it fired without a limit");
	end(pid);
	close(h.fd);
}

static void test_poll(void)
{
	one(TACHO_SENTINEL_POLL, SLOW, POLL, LONG_MS, LONG_MS * MS, "poll took ", "slow_kind");
}

static void test_switch(void)
{
	one(TACHO_SENTINEL_POLL, SLOW, SWITCH, LONG_MS, LONG_MS * MS, "poll took ", "slow_kind");
}

static void test_handler(void)
{
	one(TACHO_SENTINEL_POLL, SLOW, HANDLER, LONG_MS, LONG_MS * MS, "poll took ", "slow_kind");
}

static void test_lag(void)
{
	one(TACHO_SENTINEL_LAG, SLOW, LONG_TURN, LONG_MS, LONG_MS * MS, "turn took ", "main_loop");
}

/* What the loop waits is no lag. Between its parks the subject only waits for orders. */
static void test_parked(void)
{
	pid_t pid = subject_ready();
	struct held h = hold(pid);

	watch(&h, TACHO_SENTINEL_LAG, 3000 * MS);
	order(LONG_PARK, 3500);
	order(TURN, 0);
	CHECK(!triggers(&h) && !suppressed(&h), "it fired for a park");
	end(pid);
	close(h.fd);
}

static void test_wake(void)
{
	one(TACHO_SENTINEL_WAKE, SLOW, WAKE, LONG_MS, LONG_MS * MS, "wake was followed ",
	    "slow_kind");
}

static void test_queue(void)
{
	one(TACHO_SENTINEL_QUEUE, 1000, DEPTH, 1001, 1001, "1001 queued", "main_loop");
}

static void test_short_polls(void)
{
	setenv("TACHO_POLL_THRESHOLD", "1ms", 1);
	test_poll();
	test_switch();
	test_wake();
	unsetenv("TACHO_POLL_THRESHOLD");
}

static void test_monotonic(void)
{
	setenv("TACHO_CLOCK", "monotonic", 1);
	test_poll();
	unsetenv("TACHO_CLOCK");
}

/* At the limit it does not fire, above it does. */
static void test_limit(void)
{
	pid_t pid = subject_ready();
	struct held h = hold(pid);

	watch(&h, TACHO_SENTINEL_QUEUE, 1000);
	order(DEPTH, 1000);
	CHECK(!triggers(&h) && !suppressed(&h), "it fired at its limit");
	order(DEPTH, 1001);
	CHECK(triggers(&h) == 1, "%u triggers", triggers(&h));
	end(pid);
	close(h.fd);
}

/* A wake that no poll will ever answer is not taken for the wake of the next task there. */
static void test_wake_forgotten(void)
{
	pid_t pid = subject_ready();
	struct held h = hold(pid);

	watch(&h, TACHO_SENTINEL_WAKE, SLOW);
	order(FORGOT, LONG_MS);
	order(SPAWNED, LONG_MS);
	CHECK(!triggers(&h) && !suppressed(&h), "it fired for a task that had ended");
	order(WAKE, LONG_MS);
	CHECK(triggers(&h) == 1, "%u triggers", triggers(&h));
	/* What is noted is not remembered when somebody asks again later. */
	order(FILL, 64);
	limit(&h, TACHO_SENTINEL_WAKE, 0);
	order(LONG_TURN, LONG_MS);
	watch(&h, TACHO_SENTINEL_WAKE, SLOW);
	order(POLL, 0);
	CHECK(triggers(&h) == 1, "it fired for a wake of before it was set");
	end(pid);
	close(h.fd);
}

/* The limit is known to a process that takes a chunk, also if no loop unparks. */
static void test_config_by_chunk(void)
{
	pid_t pid = subject_ready();
	struct held h = hold(pid);

	limit(&h, TACHO_SENTINEL_QUEUE, 10);
	arm(&h, TACHO_SENTINEL_QUEUE);
	order(DEPTH, 100);
	CHECK(!triggers(&h), "it knew of the limit before it looked");
	order(FILL, 10000);
	order(DEPTH, 100);
	CHECK(triggers(&h) == 1, "%u triggers", triggers(&h));
	end(pid);
	close(h.fd);
}

/* What a trigger of a sentinel is in a trace, and that many make few definitions. */
static void test_records(void)
{
	pid_t pid = subject_ready();
	struct held h = hold(pid);
	const struct tacho_event *e;
	struct box *box;
	int seen = 0;

	limit(&h, TACHO_SENTINEL_QUEUE, 10);
	order(TURN, 0);
	for (unsigned i = 0; i < 100; i++) {
		arm(&h, TACHO_SENTINEL_QUEUE);
		order(DEPTH, 100 + i);
	}
	end(pid);
	close(h.fd);
	boxes_open(box_dir());
	box = box_of(pid, 0);
	while (box && tacho_read_next(box->reader, &e) > 0)
		if (e->type == TACHO_EV_TRIGGER) {
			CHECK(!strcmp(name_of(box, e->arg), "queue: main_loop"),
			      "it is called '%s'", name_of(box, e->arg));
			CHECK(e->word[0] == (uint64_t)++seen, "number %llu",
			      (unsigned long long)e->word[0]);
		}
	CHECK(seen == 100, "%d records of triggers, not 100", seen);
	if (box)
		check_no_problem(box);
}

static void test_fork(void)
{
	pid_t parent = subject_ready(), child;
	struct held h = hold(parent), c;
	uint32_t seq;

	watch(&h, TACHO_SENTINEL_POLL, SLOW);
	watch(&h, TACHO_SENTINEL_WAKE, SLOW);
	seq = control(&h).wake_seq;
	order(FORK, 0);
	child = (pid_t)get(CHILD);
	c = hold(child);
	order(POLL, LONG_MS);
	order(WAKE, LONG_MS);
	CHECK(!triggers(&c) && !suppressed(&c), "the child watches what its parent was asked to");
	CHECK(!triggers(&h) && !suppressed(&h) && control(&h).wake_seq == seq,
	      "what the child did stands in its parent's box");
	watch(&c, TACHO_SENTINEL_POLL, SLOW);
	order(POLL, LONG_MS);
	check_fired(&c, 1, TACHO_SENTINEL_POLL, LONG_MS * MS, "poll took ", "slow_kind");
	watch(&c, TACHO_SENTINEL_WAKE, SLOW);
	order(WAKE, LONG_MS);
	check_fired(&c, 2, TACHO_SENTINEL_WAKE, LONG_MS * MS, "wake was ", "slow_kind");
	CHECK(!triggers(&h) && control(&h).wake_seq == seq, "the parent's agent was woken");
	put(COMMAND, END);
	put(STEP, get(STEP) + 1);
	kill(parent, SIGKILL);
	subject_wait(parent);
	close(h.fd);
	close(c.fd);
}

/* -------------------------------------------------------------- wakes */

static struct held sleeper_box;

/* Sleeps as an agent does, until it is woken; ends with 1 when that does not happen. */
static void sleeper(void *arg)
{
	const struct held *h = &sleeper_box;
	uint64_t page = h->control.offset & ~4095ull;
	uint8_t *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, (off_t)page);
	struct tacho_box_control *c = (void *)(at + (h->control.offset - page));
	struct timespec limit_time = {20, 0};
	uint32_t seq = *(uint32_t *)arg;

	if (at == MAP_FAILED ||
	    syscall(SYS_futex, &c->wake_seq, FUTEX_WAIT, seq, &limit_time, NULL, 0))
		_exit(1);
}

static int sleeps(pid_t pid)
{
	char path[64], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	if (fd >= 0)
		close(fd);
	return atoi(text) == SYS_futex;
}

static pid_t sleeper_start(const struct held *h)
{
	static uint32_t seq;
	pid_t pid;

	sleeper_box = *h;
	seq = control(h).wake_seq;
	pid = subject_start(sleeper, &seq);
	for (int i = 0; i < 10000 && !sleeps(pid); i++)
		sleep_ms(1);
	CHECK(sleeps(pid), "the sleeper does not sleep");
	return pid;
}

static void test_idle(void)
{
	pid_t pid = subject_ready(), agent;
	struct held h = hold(pid);
	uint32_t seq;

	order(TURN, 0);
	seq = control(&h).wake_seq;
	order(TURN, 0);
	CHECK(control(&h).wake_seq == seq, "the agent was woken, and had not asked for it");
	agent = sleeper_start(&h);
	PUT(&h, idle, 1);
	order(POLL, 0);
	CHECK(control(&h).idle == 1, "it was woken by something that is no unpark");
	order(TURN, 0);
	check_exit(subject_wait(agent), 0);
	CHECK(control(&h).idle == 0, "idle is %u", control(&h).idle);
	CHECK(control(&h).wake_seq == seq + 1, "woken %u times", control(&h).wake_seq - seq);
	order(TURN, 0);
	CHECK(control(&h).wake_seq == seq + 1, "woken again");
	CHECK(!triggers(&h), "a trigger");
	end(pid);
	close(h.fd);
}

static void test_fires_wake(void)
{
	pid_t pid = subject_ready(), agent;
	struct held h = hold(pid);

	watch(&h, TACHO_SENTINEL_QUEUE, 10);
	agent = sleeper_start(&h);
	order(DEPTH, 100);
	check_exit(subject_wait(agent), 0);
	end(pid);
	close(h.fd);
}

static void test_follow(void)
{
	pid_t pid = subject_ready(), agent;
	struct held h = hold(pid);
	struct tacho_box_control a, b;

	a = control(&h);
	order(FILL, 100000);
	b = control(&h);
	/* 16 bytes a record; the first chunk is small. */
	CHECK(b.sealed - a.sealed >= 24 && b.sealed - a.sealed <= 27, "%u chunks sealed",
	      b.sealed - a.sealed);
	CHECK(b.wake_seq == a.wake_seq, "woken, and nobody follows");
	PUT(&h, follow, 4);
	PUT(&h, config, b.config + 1);
	agent = sleeper_start(&h);
	order(FILL, 100000);
	check_exit(subject_wait(agent), 0);
	a = control(&h);
	CHECK(a.wake_seq - b.wake_seq >= 6 && a.wake_seq - b.wake_seq <= 7,
	      "woken %u times for %u chunks", a.wake_seq - b.wake_seq, a.sealed - b.sealed);
	PUT(&h, follow, 0);
	order(FILL, 100000);
	CHECK(control(&h).wake_seq == a.wake_seq, "woken, and nobody follows any more");
	CHECK(control(&h).sealed > a.sealed, "chunks are no longer counted");
	end(pid);
	close(h.fd);
}

/* ------------------------------------------------------------- hostile */

static void test_hostile(void)
{
	pid_t pid = subject_ready();
	struct held h = hold(pid);
	uint64_t state = 88172645463325252ull;
	uint8_t bytes[sizeof(struct tacho_box_control)];
	struct box *box;

	memset(bytes, 0xff, sizeof(bytes));
	put_control(&h, 0, bytes, sizeof(bytes));
	order(TURN, 0);
	order(FILL, 20000);
	order(POLL, 1);
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			/* Some rounds with small limits, which nearly everything is above. */
			bytes[i] = round % 3 || i % 8 < 2 ? (uint8_t)(state >> 24) : 0;
		}
		put_control(&h, 0, bytes, sizeof(bytes));
		order(TURN, 0);
		order(POLL, 0);
		order(SWITCH, 0);
		order(WAKE, 0);
		order(DEPTH, round * 1000ull);
		order(FILL, 500);
	}
	/* And it still does what it should. */
	memset(bytes, 0, sizeof(bytes));
	put_control(&h, 0, bytes, sizeof(bytes));
	order(TURN, 0);
	watch(&h, TACHO_SENTINEL_POLL, SLOW);
	order(POLL, LONG_MS);
	CHECK(control(&h).fired[TACHO_SENTINEL_POLL] == 1, "it does not fire any more");
	end(pid);
	close(h.fd);
	boxes_open(box_dir());
	box = box_of(pid, 0);
	CHECK(box && box->reader, "the box can't be read");
	if (box)
		check_no_problem(box);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"nothing fires without a limit, or below it", test_off},
		{"poll fires once for each arming, and counts the rest", test_poll},
		{"poll fires at the switch to the next one", test_switch},
		{"poll fires in a signal handler", test_handler},
		{"lag fires for a long turn", test_lag},
		{"lag does not fire for a long park", test_parked},
		{"wake fires when the poll comes late", test_wake},
		{"queue fires when it is too deep", test_queue},
		{"polls and wakes fire under a poll threshold", test_short_polls},
		{"poll fires on the clock of the kernel", test_monotonic},
		{"what is as large as its limit does not fire", test_limit},
		{"wakes that no poll answers are forgotten", test_wake_forgotten},
		{"limits are read when a chunk is taken", test_config_by_chunk},
		{"triggers of sentinels are records, with few names", test_records},
		{"a child has its own sentinels", test_fork},
		{"an agent that sleeps is woken when a loop unparks", test_idle},
		{"an agent that sleeps is woken by a sentinel", test_fires_wake},
		{"an agent that follows is woken after so many chunks", test_follow},
		{"a control area full of nonsense does no harm", test_hostile},
	};

	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
