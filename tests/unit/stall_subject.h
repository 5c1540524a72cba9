/*
 * A process that records and does what it is told, one command at a time, and what looks for
 * stalls in its box. For stall.c and stall_hostile.c.
 */
#ifndef TESTS_STALL_SUBJECT_H
#define TESTS_STALL_SUBJECT_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/stall.h"
#include "base/clock.h"
#include "format/box.h"
#include "tacho.h"

#define SECOND UINT64_C(1000000000)
#define SLACK UINT64_C(2000000) /* of the conversion of ticks; pauses between commands are longer */

/* Loops of which only waits, or also callbacks are seen, as the hooks define them, and one of the
   API. Each thread has one for its waits, and all serve a shared one. */
static __thread struct tacho_name waits = TACHO__NAME(3, 1, "waits", 0, 0);
static struct tacho_name shared = TACHO__NAME(3, 1, "shared", 0, 0);
static struct tacho_name inner = TACHO__NAME(3, 1, "inner", 0, 0);
static struct tacho_name callbacks = TACHO__NAME(3, 2, "callbacks", 0, 0);
static struct tacho_name api = TACHO_LOOP("api");
static struct tacho_name kind_one = TACHO_KIND("one");
static struct tacho_name kind_two = TACHO_KIND("two");
static struct tacho_name place = TACHO_PLACE("place");
static struct tacho_name span = TACHO_SPAN_NAME("span");

struct subject {
	pid_t pid;
	int command, answer; /* pipes */
	int box;
	char path[256];
	struct tacho__stall *stall;
	uint64_t before, after; /* around the last command */
};

static inline uint64_t now_ns(void)
{
	return tacho__clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_ms(unsigned ms)
{
	usleep(ms * 1000);
}

/* ------------------------------------------------------------ inside */

static inline void *forever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static inline void one_wait(void)
{
	tacho_park(&waits);
	tacho_unpark(&waits, 1);
}

/* Only waits of it are seen, but enough of them. */
static inline void become_loop(void)
{
	static __thread int is_loop;

	for (unsigned i = 0; !is_loop && i < TACHO__LOOP_WAITS; i++)
		one_wait();
	is_loop = 1;
}

static inline void *parked_thread(void *arg)
{
	tacho_park(&waits);
	return forever(arg);
}

static inline void *spinning_thread(void *arg)
{
	volatile uint64_t n = 0;

	become_loop();
	for (;;)
		n++;
	return arg;
}

/* Ends without any destructor being called. */
static inline void *vanishing_thread(void *arg)
{
	become_loop();
	syscall(SYS_exit, 0);
	return arg;
}

/* Serves the shared loop, and idles then elsewhere. */
static inline void *idle_thread(void *arg)
{
	for (unsigned i = 0; i < TACHO__LOOP_WAITS; i++) {
		tacho_park(&shared);
		tacho_unpark(&shared, 1);
	}
	return forever(arg);
}

/* Ends in its wait, as one that is cancelled there. */
static inline void *ending_thread(void *arg)
{
	tacho_park(&shared);
	syscall(SYS_exit, 0);
	return arg;
}

static inline void begin_thread(void *(*body)(void *))
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 128 * 1024);
	if (pthread_create(&t, &a, body, NULL))
		_exit(9);
}

static inline void deadlock(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&m);
	pthread_mutex_lock(&m);
}

static inline void obey(char command)
{
	switch (command) {
	case 'w':
		return one_wait();
	case 'P':
		become_loop();
		return tacho_park(&waits);
	case 'U':
		return tacho_unpark(&waits, 1);
	case 'a':
		return tacho_unpark_poll(&waits, 1, &kind_one, 1);
	case 'h':
		return tacho_park(&shared);
	case 'k':
		return tacho_unpark(&shared, 1);
	case 'i':
		return begin_thread(idle_thread);
	case 'G':
		return begin_thread(ending_thread);
	case 'Q':
		return tacho_park(&callbacks);
	case 'R':
		return tacho_unpark(&callbacks, 1);
	case 'I':
		return tacho_park(&inner);
	case 'J':
		return tacho_unpark(&inner, 1);
	case 'p':
		return tacho_park(&api);
	case 'u':
		return tacho_unpark(&api, 1);
	case 'l':
		return tacho_loop(&api);
	case 'L':
		return tacho_loop(NULL);
	case 'b':
		return tacho_poll_begin(&kind_one, 1);
	case 'c':
		return tacho_poll_begin(&kind_two, 2);
	case 's':
		return tacho_poll_switch(&kind_two, 2);
	case 'e':
		return tacho_poll_end(TACHO_PENDING);
	case '[':
		return tacho_span_begin(&span);
	case ']':
		return tacho_span_end(&span);
	case 'm':
		return tacho_lock_wait(&api, &place);
	case 'M':
		return tacho_lock_waited(&api, 1);
	case 'z':
		return tacho_pause();
	case 'Z':
		return tacho_resume();
	case 'r': /* more than a chunk or two */
		for (int i = 0; i < 20000; i++)
			tacho_wake(7);
		return;
	case 'T':
		return begin_thread(parked_thread);
	case 'V':
		return begin_thread(vanishing_thread);
	case 'X':
		return begin_thread(spinning_thread);
	case 'S':
		raise(SIGSTOP);
		return;
	default:
		_exit(8);
	}
}

static inline void subject_main(int commands, int answers, const struct tacho_options *options)
{
	struct tacho_status_info status = {.size = sizeof(status)};
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (tacho_start(options) || tacho_status(&status) ||
	    write(answers, status.box, sizeof(status.box)) != sizeof(status.box))
		_exit(7);
	while (read(commands, &c, 1) == 1) {
		if (c == 'D') /* never answered */
			deadlock();
		obey(c);
		if (write(answers, &c, 1) != 1)
			break;
	}
	_exit(0);
}

/* ----------------------------------------------------------- outside */

static inline void subject_start(struct subject *s, const struct tacho_options *options)
{
	int down[2], up[2];

	memset(s, 0, sizeof(*s));
	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (!s->pid) {
		close(down[1]);
		close(up[0]);
		subject_main(down[0], up[1], options);
	}
	close(down[0]);
	close(up[1]);
	s->command = down[1];
	s->answer = up[0];
	assert_int_equal(read(s->answer, s->path, sizeof(s->path)), sizeof(s->path));
	s->box = open(s->path, O_RDONLY | O_CLOEXEC);
	assert_true(s->box >= 0);
	s->stall = tacho__stall_new(s->box, s->pid);
	assert_non_null(s->stall);
}

static inline void subject_end(struct subject *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	close(s->command);
	close(s->answer);
	close(s->box);
	unlink(s->path);
	tacho__stall_free(s->stall);
}

static inline void answered(struct subject *s, char command)
{
	char c;

	assert_int_equal(read(s->answer, &c, 1), 1);
	assert_int_equal(c, command);
}

/* One after the other; `before` and `after` are around the last one. */
static inline void say(struct subject *s, const char *commands)
{
	for (; *commands; commands++) {
		sleep_ms(8);
		s->before = now_ns();
		assert_int_equal(write(s->command, commands, 1), 1);
		answered(s, *commands);
		s->after = now_ns();
		sleep_ms(8);
	}
}

static inline struct tacho__stalled look(struct subject *s, uint64_t limit)
{
	struct tacho__stalled out;

	assert_int_equal(tacho__stall_look(s->stall, limit, &out), 0);
	assert_int_equal(out.idle, out.due_ns == UINT64_MAX);
	return out;
}

static inline void found_since(const struct tacho__stalled *out, uint64_t from, uint64_t to)
{
	assert_true(out->found);
	if (out->since_ns + SLACK < from || out->since_ns > to + SLACK)
		fail_msg("since %llu, wanted %llu to %llu", (unsigned long long)out->since_ns,
			 (unsigned long long)from, (unsigned long long)to);
	assert_true(out->took_ns > 0);
}

/* A stall since the last command. */
static inline struct tacho__stalled found_now(struct subject *s)
{
	struct tacho__stalled out = look(s, 0);

	found_since(&out, s->before, s->after);
	return out;
}

static inline struct tacho__stalled none_found(struct subject *s)
{
	struct tacho__stalled out = look(s, 0);

	assert_false(out.found);
	assert_int_equal(out.stalled, 0);
	return out;
}

#endif
