/* Hooked locks, conditions and semaphores: the same answers, and every wait with its releaser. */
#include "preloaded.h"

#define EVENTS_MAX 200000
#define NONE ((size_t)-1)

struct lock_event {
	uint8_t type;
	uint32_t tid, arg;
	uint64_t ns, waiters;
};
static struct lock_event events[EVENTS_MAX]; /* of the lock that a test is about */
static size_t event_count;
static struct preloaded program;

/* All events that carry `address`, in the order of time. */
static void read_events(struct box *box, uint64_t address)
{
	const struct tacho_event *e;

	event_count = 0;
	if (!box || !box->reader)
		return;
	while (tacho_read_next(box->reader, &e) > 0 && event_count < EVENTS_MAX) {
		const struct tacho_thread *t =
			tacho_read_thread_by_number(box->reader, e->process, e->thread);

		if ((e->type != TACHO_EV_LOCK_WAIT && e->type != TACHO_EV_LOCK_WAITED &&
		     e->type != TACHO_EV_LOCK_RELEASE && e->type != TACHO_EV_STACK) ||
		    e->word[0] != address)
			continue;
		events[event_count++] = (struct lock_event){
			.type = e->type,
			.tid = t ? t->tid : 0,
			.arg = e->arg,
			.ns = e->ns,
			.waiters = e->type == TACHO_EV_LOCK_RELEASE ? e->word[1] : 0,
		};
	}
	check_no_problem(box);
}

static void record(const char *mode)
{
	preloaded_run(&program, "hooks-locks_subject", mode, "on");
	boxes_open(box_dir());
	read_events(box_of(program.pid, 0), printed(&program, "address"));
}

static uint64_t count(uint8_t type)
{
	uint64_t n = 0;

	for (size_t i = 0; i < event_count; i++)
		n += events[i].type == type;
	return n;
}

#define CHECK_COUNT(type, want)                                                                 \
	CHECK(count(type) == (want), #type ": %llu, not %llu", (unsigned long long)count(type), \
	      (unsigned long long)(want))

/* The last release before event `i`, which ends a wait. */
static size_t releaser(size_t i)
{
	while (i--)
		if (events[i].type == TACHO_EV_LOCK_RELEASE)
			return i;
	return NONE;
}

static int place_is_in(uint32_t id, uint64_t function)
{
	const struct tacho_definition *d =
		tacho_read_definition(box_of(program.pid, 0)->reader, 0, id);

	return d && d->def_class == TACHO_DEF_PLACE && lies_in(d->value, function);
}

static int stack_passes(uint32_t id, uint64_t function)
{
	const struct tacho_definition *d =
		tacho_read_definition(box_of(program.pid, 0)->reader, 0, id);

	for (uint32_t i = 0; d && d->def_class == TACHO_DEF_STACK && i < d->count; i++)
		if (lies_in(d->frames[i], function))
			return 1;
	return 0;
}

/* ----------------------------------------------------------------- tests */

static void answers(void)
{
	static struct preloaded plain;
	size_t same = 0;

	if (!preloaded_has("hooks-locks_answers"))
		return skip("the program knows the locks of glibc alone");
	preloaded_run(&plain, "hooks-locks_answers", NULL, NULL);
	CHECK(strlen(plain.out) > 10000, "the program printed only %zu bytes", strlen(plain.out));
	for (int i = 0; i < 2; i++) {
		preloaded_run(&program, "hooks-locks_answers", NULL, i ? "off" : "on");
		for (same = 0; plain.out[same] && plain.out[same] == program.out[same];)
			same++;
		while (same && plain.out[same - 1] != '\n' && plain.out[same])
			same--;
		CHECK(!strcmp(plain.out, program.out), "hooks: %.100s without: %.100s",
		      program.out + same, plain.out + same);
	}
}

/* The threads that the program saw get the lock, in their order. */
static size_t order_of_program(uint32_t *tids, size_t most)
{
	size_t n = 0;

	for (const char *at = program.out; (at = strstr(at, "got ")) && n < most; at += 4)
		tids[n++] = (uint32_t)strtoul(at + 4, NULL, 10);
	return n;
}

/*
 * Who had the lock before a waiter got it must be who released it. The program's order
 * contains the main thread too, which never waits.
 */
static void check_order(void)
{
	uint32_t tids[1024];
	size_t n = order_of_program(tids, 1024), at = 0;

	for (size_t i = 0; i < event_count; i++) {
		size_t from;

		if (events[i].type != TACHO_EV_LOCK_WAITED)
			continue;
		while (at < n && (tids[at] != events[i].tid || !at))
			at++;
		from = releaser(i);
		if (!CHECK(at < n && from != NONE, "a wait ended that the program did not see"))
			return;
		if (!CHECK(events[from].tid == tids[at - 1],
			   "thread %u was released by %u, not by %u", events[i].tid,
			   events[from].tid, tids[at - 1]))
			return;
		at++;
	}
}

static void handover(const char *mode)
{
	uint64_t waits, left = 0;

	record(mode);
	waits = printed(&program, "waits");
	CHECK_COUNT(TACHO_EV_LOCK_WAIT, waits);
	CHECK_COUNT(TACHO_EV_LOCK_WAITED, waits);
	CHECK_COUNT(TACHO_EV_LOCK_RELEASE, waits);
	CHECK_COUNT(TACHO_EV_STACK, waits); /* each took more than 1 ms */
	check_order();
	for (size_t i = 0; i < event_count && !failed(); i++) {
		const struct lock_event *e = &events[i];

		if (e->type == TACHO_EV_LOCK_WAIT)
			CHECK(place_is_in(e->arg, printed(&program, "wait_here")),
			      "a wait is at another place than wait_here");
		else if (e->type == TACHO_EV_LOCK_WAITED)
			CHECK(e->arg == 1, "a wait was given up, or passes for one for a signal");
		else if (e->type == TACHO_EV_STACK)
			CHECK(stack_passes(e->arg, printed(&program, "wait_here")),
			      "wait_here is not on the stack of a waiter");
		else
			/* A stack where the waiters had waited for long. */
			CHECK(place_is_in(e->arg, printed(&program, "release_here")) ||
				      stack_passes(e->arg, printed(&program, "release_here")),
			      "a release is at another place than release_here");
		/* 3, 2, 1 waiters in turn. */
		if (e->type == TACHO_EV_LOCK_RELEASE) {
			left = left ? left : 3;
			CHECK(e->waiters == left, "%llu wait for the lock, not %llu",
			      (unsigned long long)e->waiters, (unsigned long long)left);
			left--;
		}
	}
}

static void mutexes(void)
{
	handover("mutex");
}

static void rwlocks(void)
{
	handover("rwlock");
}

static void quiet(void)
{
	preloaded_run(&program, "hooks-locks_subject", "quiet", "on");
	CHECK(!boxes_open(box_dir())->count, "a program that never waits has a box");
}

static void hammer(void)
{
	uint64_t us;

	record("hammer");
	CHECK(printed(&program, "entered") == 80000, "the mutex let in too few");
	CHECK(count(TACHO_EV_LOCK_WAIT) <= printed(&program, "failures"),
	      "%llu waits, but only %llu attempts failed",
	      (unsigned long long)count(TACHO_EV_LOCK_WAIT),
	      (unsigned long long)printed(&program, "failures"));
	CHECK_COUNT(TACHO_EV_LOCK_WAITED, count(TACHO_EV_LOCK_WAIT));
	/* A thread that takes the mutex over and over before those that it wakes. */
	us = event_count ? (events[event_count - 1].ns - events[0].ns) / 1000 : 0;
	CHECK(count(TACHO_EV_LOCK_RELEASE) <= 3 * count(TACHO_EV_LOCK_WAIT) + us / 50,
	      "%llu releases for %llu waits in %llu us",
	      (unsigned long long)count(TACHO_EV_LOCK_RELEASE),
	      (unsigned long long)count(TACHO_EV_LOCK_WAIT), (unsigned long long)us);
}

static void conditions(void)
{
	uint64_t gave_up = 0, waiting = 0;

	record("conditions");
	CHECK_COUNT(TACHO_EV_LOCK_WAIT, printed(&program, "waits"));
	CHECK_COUNT(TACHO_EV_LOCK_WAITED, printed(&program, "waits"));
	for (size_t i = 0; i < event_count && !failed(); i++) {
		const struct lock_event *e = &events[i];
		size_t from = releaser(i);

		gave_up += e->type == TACHO_EV_LOCK_WAITED && !(e->arg & TACHO_WAITED_GOT);
		CHECK(e->type != TACHO_EV_LOCK_WAITED || e->arg & TACHO_WAITED_SIGNAL,
		      "a wait for a signal passes for one for a lock");
		waiting += e->type == TACHO_EV_LOCK_WAIT;
		waiting -= e->type == TACHO_EV_LOCK_WAITED;
		if (e->type == TACHO_EV_LOCK_WAITED && e->arg & TACHO_WAITED_GOT)
			CHECK(from != NONE && events[from].tid != e->tid,
			      "a thread goes on that no other signalled");
		if (e->type == TACHO_EV_LOCK_RELEASE)
			CHECK(waiting && e->waiters &&
				      place_is_in(e->arg, printed(&program, "signal_here")),
			      "a signal that nobody waits for, or from another place");
	}
	CHECK(gave_up == printed(&program, "timeouts"), "%llu waits were given up",
	      (unsigned long long)gave_up);
}

static void cancelled(void)
{
	record("cancelled");
	CHECK_COUNT(TACHO_EV_LOCK_WAIT, 1);
	CHECK_COUNT(TACHO_EV_LOCK_WAITED, 1);
	CHECK_COUNT(TACHO_EV_LOCK_RELEASE, 0);
	for (size_t i = 0; i < event_count; i++)
		CHECK(events[i].type != TACHO_EV_LOCK_WAITED || !(events[i].arg & TACHO_WAITED_GOT),
		      "a cancelled wait got what it waited for");
}

static void forked(void)
{
	struct box *child;

	record("forked");
	CHECK_COUNT(TACHO_EV_LOCK_WAIT, 1);
	CHECK_COUNT(TACHO_EV_LOCK_RELEASE, 1);
	CHECK_COUNT(TACHO_EV_LOCK_WAITED, 1);
	child = box_of((pid_t)printed(&program, "child"), 0);
	read_events(child, printed(&program, "address"));
	/* Its own; it signals once before, when only the parent has a waiter. */
	CHECK_COUNT(TACHO_EV_LOCK_WAIT, 1);
	CHECK_COUNT(TACHO_EV_LOCK_RELEASE, 1);
	CHECK_COUNT(TACHO_EV_LOCK_WAITED, 1);
	for (size_t i = 0; i < event_count; i++)
		CHECK(events[i].type != TACHO_EV_LOCK_RELEASE || events[i].waiters == 1,
		      "the child counts waiters of its parent");
}

static void mutex_of_condition(void)
{
	record("mutex-of-condition");
	CHECK_COUNT(TACHO_EV_LOCK_WAIT, 1);
	CHECK_COUNT(TACHO_EV_LOCK_RELEASE, 1);
	CHECK_COUNT(TACHO_EV_LOCK_WAITED, 1);
	for (size_t i = 0; i < event_count; i++)
		CHECK(events[i].type != TACHO_EV_LOCK_RELEASE ||
			      events[i].tid == printed(&program, "main"),
		      "another thread than the one with the condition released the mutex");
}

/* As Rust waits and wakes. One that counts is a condition, also while it is 2. */
static void check_waits(const char *mode, uint32_t waited)
{
	record(mode);
	CHECK_COUNT(TACHO_EV_LOCK_WAIT, 5);
	CHECK_COUNT(TACHO_EV_LOCK_WAITED, 5);
	CHECK_COUNT(TACHO_EV_LOCK_RELEASE, 5);
	for (size_t i = 0; i < event_count; i++)
		CHECK(events[i].type != TACHO_EV_LOCK_WAITED || events[i].arg == waited,
		      "the wait ended with %u, not %u", events[i].arg, waited);
}

static void futexes(void)
{
	check_waits("futexes", TACHO_WAITED_GOT | TACHO_WAITED_SIGNAL);
}

static void futex_mutex(void)
{
	check_waits("futex-mutex", TACHO_WAITED_GOT);
}

static void semaphores(void)
{
	check_waits("semaphores", TACHO_WAITED_GOT | TACHO_WAITED_SIGNAL);
}

/* As locks of Python are. */
static void semaphore_lock(void)
{
	check_waits("semaphore-lock", TACHO_WAITED_GOT);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"hooked locks answer as unhooked ones", answers},
		{"a contended mutex shows waiter, releaser, place and stack", mutexes},
		{"a contended rwlock shows them too", rwlocks},
		{"locks that nobody waits for leave no trace", quiet},
		{"a mutex under pressure", hammer},
		{"waits for a condition, and who signalled", conditions},
		{"a cancelled wait is over", cancelled},
		{"waiters of the parent are not the child's", forked},
		{"a wait for a condition releases its mutex", mutex_of_condition},
		{"semaphores", semaphores},
		{"one that is a lock", semaphore_lock},
		{"futexes that a program waits on by itself", futexes},
		{"one that is a mutex", futex_mutex},
	};

	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
