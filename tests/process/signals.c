/* Signal handlers that record, and handlers that never return. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "core/recorder.h"
#include "lib.h"

#define IN_HANDLER 8u

/* One kind of storm: a timer, its signal, and the marks that its handler leaves. */
static struct storm {
	int signal;
	uint32_t writer;
	volatile uint32_t number;
	timer_t timer;
} storms[3];

static void on_signal(int sig)
{
	int saved = errno;

	for (unsigned i = 0; i < 3; i++) {
		if (storms[i].signal != sig)
			continue;
		for (unsigned k = 0; k < IN_HANDLER; k++) {
			mark(storms[i].writer, storms[i].number);
			storms[i].number++;
		}
	}
	errno = saved;
}

static void storm_begin(unsigned i, int sig, unsigned us, int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART | flags};
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig};
	struct itimerspec every = {{0, us * 1000l}, {0, us * 1000l}};

	storms[i].signal = sig;
	storms[i].writer = i + 1;
	storms[i].number = 0;
	sigaction(sig, &sa, NULL);
	CHECK(!timer_create(CLOCK_MONOTONIC, &ev, &storms[i].timer), "timer_create");
	CHECK(!timer_settime(storms[i].timer, 0, &every, NULL), "timer_settime");
}

static void storm_end(unsigned i)
{
	timer_delete(storms[i].timer);
}

/* Records at full speed until the storms have struck `strikes` times in all. */
static uint32_t record_in_storm(unsigned storm_count, uint32_t strikes)
{
	uint32_t i = 0;

	for (;;) {
		uint32_t seen = 0;

		for (int k = 0; k < 200; k++)
			mark(0, i++);
		for (unsigned k = 0; k < storm_count; k++)
			seen += storms[k].number / IN_HANDLER;
		if (seen >= strikes)
			return i;
	}
}

/* ------------------------------------------------------------- storms */

static void storms_body(void *arg)
{
	unsigned count = (unsigned)(uintptr_t)arg;
	uint32_t n;

	start();
	for (unsigned i = 0; i < count; i++)
		storm_begin(i, SIGRTMIN + 1 + (int)i, 150 + 17 * i, 0);
	n = record_in_storm(count, 4000);
	for (unsigned i = 0; i < count; i++)
		storm_end(i);
	shared()[0] = n;
	for (unsigned i = 0; i < count; i++)
		shared()[1 + i] = storms[i].number;
	die();
}

/* All that was recorded is there, but for what a full box overwrote. */
static const struct tally *check_storms(unsigned count)
{
	const struct tally *t;
	uint64_t made = 0, kept = 0;
	struct box *b;

	setenv("TACHO_MAX_BYTES", "2G", 1);
	subject(storms_body, (void *)(uintptr_t)count);
	unsetenv("TACHO_MAX_BYTES");
	b = the_box();
	t = tally(b);
	if (!b)
		return t;
	check_no_problem(b);
	CHECK(!t->foreign && !t->missing, "%llu missing", (unsigned long long)t->missing);
	CHECK(!loss(b, "abandoned"), "a stream was taken for abandoned");
	CHECK(t->streams > 0, "no handler interrupted a record: nothing was tested");
	for (unsigned i = 0; i <= count; i++) {
		made += shared()[i];
		kept += t->count[i];
	}
	CHECK(kept + loss(b, "nesting") == made, "%llu marks and %llu dropped are not %llu",
	      (unsigned long long)kept, (unsigned long long)loss(b, "nesting"),
	      (unsigned long long)made);
	return t;
}

static void test_storm(void)
{
	const struct tally *t = check_storms(1);

	check_writer(t, 0, (uint32_t)shared()[0]);
	check_writer(t, 1, (uint32_t)shared()[1]);
	CHECK(!t->disorder, "%llu holes", (unsigned long long)t->disorder);
}

static void test_nested(void)
{
	const struct tally *t = check_storms(2);

	for (uint32_t i = 0; i < 3; i++)
		check_writer(t, i, (uint32_t)shared()[i]);
	CHECK(!t->disorder, "%llu holes", (unsigned long long)t->disorder);
}

/* One deeper than there are streams: what finds no place is counted. */
static void test_too_deep(void)
{
	check_storms(3);
}

/* The same without luck: the streams are made busy by hand, by a frame that is less deep. */
static void busy_body(void *arg)
{
	(void)arg;
	start();
	mark(0, 0);
	for (unsigned deep = 1; deep <= TACHO_STREAMS; deep++) {
		tacho__self->stream[deep - 1].busy = UINTPTR_MAX;
		for (uint32_t i = 0; i < 5; i++)
			mark(deep, i);
	}
	for (unsigned i = 0; i < TACHO_STREAMS; i++)
		tacho__self->stream[i].busy = 0;
	mark(0, 1);
	die();
}

static void test_busy_streams(void)
{
	const struct tally *t;
	struct box *b;

	subject(busy_body, NULL);
	b = the_box();
	if (!b)
		return;
	t = tally(b);
	check_writer(t, 0, 2);
	check_writer(t, 1, 5);
	check_writer(t, 2, 5);
	check_writer(t, 3, 0);
	CHECK(t->streams == 10, "%llu marks in the streams of handlers",
	      (unsigned long long)t->streams);
	CHECK(loss(b, "nesting") == 5, "%llu records counted as nested too deeply",
	      (unsigned long long)loss(b, "nesting"));
	check_no_problem(b);
}

static void altstack_body(void *arg)
{
	stack_t ss = {.ss_size = 256 << 10};
	uint32_t n;

	(void)arg;
	ss.ss_sp =
		mmap(NULL, ss.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&ss, NULL);
	start();
	storm_begin(0, SIGRTMIN + 1, 150, SA_ONSTACK);
	storm_begin(1, SIGRTMIN + 2, 167, SA_ONSTACK);
	n = record_in_storm(2, 3000);
	storm_end(0);
	storm_end(1);
	shared()[0] = n;
	shared()[1] = storms[0].number;
	shared()[2] = storms[1].number;
	die();
}

static void test_altstack(void)
{
	const struct tally *t;
	struct box *b;

	setenv("TACHO_MAX_BYTES", "2G", 1);
	subject(altstack_body, NULL);
	unsetenv("TACHO_MAX_BYTES");
	b = the_box();
	t = tally(b);
	for (uint32_t i = 0; i < 3; i++)
		check_writer(t, i, (uint32_t)shared()[i]);
	CHECK(!t->disorder && !t->foreign, "%llu holes", (unsigned long long)t->disorder);
	CHECK(t->streams > 0, "no handler interrupted a record: nothing was tested");
	CHECK(!loss(b, "abandoned"), "a stream was taken for abandoned");
}

/* ----------------------------------------------------- first in a thread */

static void first_mark(int sig)
{
	(void)sig;
	for (uint32_t i = 0; i < 100; i++)
		mark(1, i);
}

static void *never_records(void *arg)
{
	gate_open(arg);
	while (!gate_is_open((struct gate *)shared()[0]))
		sleep_ms(1);
	return NULL;
}

static void first_body(void *arg)
{
	struct sigaction sa = {.sa_handler = first_mark};
	struct gate *ready = arg;
	pthread_t t;

	shared()[0] = (uint64_t)(uintptr_t)gate_new();
	start();
	sigaction(SIGUSR1, &sa, NULL);
	pthread_create(&t, NULL, never_records, ready);
	gate_pass(ready);
	pthread_kill(t, SIGUSR1);
	sleep_ms(1);
	gate_open((struct gate *)shared()[0]);
	pthread_join(t, NULL);
	for (uint32_t i = 0; i < 10; i++)
		mark(0, i);
	die();
}

static void test_first_in_thread(void)
{
	const struct tally *t;

	subject(first_body, gate_new());
	t = tally_whole(the_box(), 110);
	check_writer(t, 0, 10);
	check_writer(t, 1, 100);
}

/* -------------------------------------------------------- jumping out */

static sigjmp_buf out;
static volatile sig_atomic_t jumps;

static void jump_out(int sig)
{
	(void)sig;
	if (jumps >= 2000)
		return;
	jumps++;
	siglongjmp(out, 1);
}

static void jump_body(void *arg)
{
	struct itimerval every = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = jump_out};
	struct tacho_name *kind = arg;
	static volatile uint32_t i;

	start();
	sigaction(SIGALRM, &sa, NULL);
	if (!sigsetjmp(out, 1))
		setitimer(ITIMER_REAL, &every, NULL);
	else
		i++; /* whether the interrupted one was stored is not known */
	while (jumps < 2000) {
		for (int k = 0; k < 20; k++) {
			mark(0, i);
			i++;
		}
		tacho_poll_begin(kind, 7);
		tacho_poll_end(TACHO_DONE);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	shared()[0] = i;
	for (uint32_t k = 0; k < 100000; k++)
		mark(1, k);
	die();
}

static void check_jumps(void)
{
	static struct tacho_name kind = TACHO_KIND("interrupted");
	const struct tally *t;
	uint64_t made;
	struct box *b;

	setenv("TACHO_MAX_BYTES", "1G", 1);
	subject(jump_body, &kind);
	unsetenv("TACHO_MAX_BYTES");
	b = the_box();
	if (!b)
		return;
	t = tally(b);
	made = shared()[0];
	check_writer(t, 1, 100000);
	CHECK(loss(b, "abandoned") > 0, "no jump left a record: nothing was tested");
	CHECK(!t->foreign, "marks that nobody made");
	CHECK(t->count[0] + 2 * 2000 >= made && t->count[0] <= made + 2000,
	      "%u marks, of %llu made before and between jumps", t->count[0],
	      (unsigned long long)made);
	CHECK(t->disorder <= 2 * 2000, "%llu holes for 2000 jumps",
	      (unsigned long long)t->disorder);
	CHECK(!t->dropped && !loss(b, "nesting") && !loss(b, "no_chunk"),
	      "records were dropped after jumps");
	check_no_problem(b);
}

static void test_jump(void)
{
	check_jumps();
}

static void test_jump_threshold(void)
{
	setenv("TACHO_POLL_THRESHOLD", "1ms", 1);
	check_jumps();
	unsetenv("TACHO_POLL_THRESHOLD");
}

static const struct test tests[] = {
	{"a storm of signals whose handler records", test_storm},
	{"handlers that interrupt handlers, two deep", test_nested},
	{"deeper than there are streams: counted, not corrupted", test_too_deep},
	{"a record goes to the first stream that is not busy, or is counted", test_busy_streams},
	{"handlers on an alternate stack", test_altstack},
	{"a handler is the first to record in its thread", test_first_in_thread},
	{"siglongjmp out of the middle of a record", test_jump},
	{"siglongjmp out of the middle of a record, with a poll threshold", test_jump_threshold},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
