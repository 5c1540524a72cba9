/* Callbacks of handles, but for streams. */
#include "uv_subject.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* -------------------------------------------------------- timers */

static unsigned repeats;

static void on_timer(uv_timer_t *t)
{
	check_data(t->data);
	count("uv_timer");
	shut(t);
}

static void on_repeat(uv_timer_t *t)
{
	count("uv_timer");
	if (++repeats == 3) {
		uv_timer_stop(t);
		MUST(uv_timer_again(t)); /* starts a repeating timer anew */
	}
	if (repeats == 6)
		shut(t);
}

static void on_busy(uv_timer_t *t)
{
	uint64_t until = uv_hrtime() + 40000000;

	count("uv_timer");
	while (uv_hrtime() < until)
		;
	shut(t);
}

void timers(void)
{
	uv_timer_t *once = new_handle(UV_TIMER), *repeat = new_handle(UV_TIMER);
	uv_timer_t *busy = new_handle(UV_TIMER), *late = new_handle(UV_TIMER);
	uv_timer_t *again = new_handle(UV_TIMER);

	MUST(uv_timer_init(loop, once));
	MUST(uv_timer_init(loop, repeat));
	MUST(uv_timer_init(loop, busy));
	MUST(uv_timer_init(loop, late));
	MUST(uv_timer_init(loop, again));
	printf("timer without callback: %d\n", uv_timer_start(once, NULL, 1, 0));
	printf("again before start: %d\n", uv_timer_again(once));
	MUST(uv_timer_start(once, on_never, 1, 0));
	MUST(uv_timer_start(once, on_timer, 2, 0));
	MUST(uv_timer_start(repeat, on_repeat, 1, 2));
	MUST(uv_timer_start(again, on_timer, 1000, 10));
	MUST(uv_timer_again(again));
	MUST(uv_timer_start(busy, on_busy, 20, 0));
	MUST(uv_timer_start(late, on_timer, 22, 0)); /* about 38 ms late */
	printf("due in at most 22: %d\n", uv_timer_get_due_in(late) <= 22);
	uv_run(loop, UV_RUN_DEFAULT);
}

/* --------------------------------- idle, prepare, check, async, signal */

static unsigned turns;
static uv_idle_t *idle;
static uv_prepare_t *prepare;
static uv_check_t *check;

static void on_idle(uv_idle_t *h)
{
	check_data(h->data);
	count("uv_idle");
	if (++turns == 5)
		shut(h);
}

static void on_prepare(uv_prepare_t *h)
{
	count("uv_prepare");
	if (turns == 5)
		shut(h);
}

static void on_check(uv_check_t *h)
{
	count("uv_check");
	if (turns == 5)
		shut(h);
}

static void never_idle(uv_idle_t *h)
{
	on_never((uv_timer_t *)h);
}

void watchers(void)
{
	idle = new_handle(UV_IDLE);
	prepare = new_handle(UV_PREPARE);
	check = new_handle(UV_CHECK);
	MUST(uv_idle_init(loop, idle));
	MUST(uv_prepare_init(loop, prepare));
	MUST(uv_check_init(loop, check));
	printf("idle without callback: %d\n", uv_idle_start(idle, NULL));
	MUST(uv_idle_start(idle, on_idle));
	/* libuv ignores this while the handle is active. */
	MUST(uv_idle_start(idle, never_idle));
	MUST(uv_prepare_start(prepare, on_prepare));
	MUST(uv_check_start(check, on_check));
	uv_run(loop, UV_RUN_DEFAULT);
}

static uv_async_t *async;
static unsigned async_runs;
static uv_barrier_t async_gate;

static void on_async(uv_async_t *h)
{
	check_data(h->data);
	count("uv_async");
	if (++async_runs == 3)
		shut(h);
	else
		uv_barrier_wait(&async_gate);
}

static void sender(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		MUST(uv_async_send(async));
		if (i < 2)
			uv_barrier_wait(&async_gate);
	}
}

void asyncs(void)
{
	uv_thread_t t;

	async = new_handle(UV_ASYNC);
	MUST(uv_async_init(loop, async, on_async));
	printf("wakes %p 3\n", (void *)async);
	MUST(uv_barrier_init(&async_gate, 2));
	MUST(uv_thread_create(&t, sender, NULL));
	uv_run(loop, UV_RUN_DEFAULT);
	uv_thread_join(&t);
	uv_barrier_destroy(&async_gate);
}

static unsigned signals;

static void on_signal(uv_signal_t *h, int signum)
{
	count("uv_signal");
	printf("signal %d\n", signum);
	if (++signals == 2)
		shut(h);
	else
		raise(SIGUSR1);
}

static void on_oneshot(uv_signal_t *h, int signum)
{
	count("uv_signal");
	printf("oneshot %d\n", signum);
	shut(h);
}

void signal_handles(void)
{
	uv_signal_t *s = new_handle(UV_SIGNAL), *o = new_handle(UV_SIGNAL);

	MUST(uv_signal_init(loop, s));
	MUST(uv_signal_init(loop, o));
	MUST(uv_signal_start(s, on_signal, SIGUSR1));
	MUST(uv_signal_start_oneshot(o, on_oneshot, SIGUSR2));
	printf("signal 0: %d\n", uv_signal_start(s, NEVER(uv_signal_cb), 0));
	raise(SIGUSR1);
	raise(SIGUSR2);
	uv_run(loop, UV_RUN_DEFAULT);
}

/* --------------------------------------- poll, files that change, child */

static int pair[2];

static void on_poll(uv_poll_t *h, int status, int events)
{
	char c;

	count("uv_poll");
	printf("poll %d %d\n", status, events);
	if (read(pair[0], &c, 1) == 1 && c == '2')
		shut(h);
	else if (write(pair[1], "2", 1) != 1)
		exit(1);
}

void polls(void)
{
	uv_poll_t *h = new_handle(UV_POLL);

	MUST(uv_socketpair(SOCK_STREAM, 0, pair, UV_NONBLOCK_PIPE, 0));
	MUST(uv_poll_init(loop, h, pair[0]));
	MUST(uv_poll_start(h, UV_WRITABLE | UV_READABLE, NEVER(uv_poll_cb)));
	MUST(uv_poll_start(h, UV_READABLE, on_poll));
	if (write(pair[1], "1", 1) != 1)
		exit(1);
	uv_run(loop, UV_RUN_DEFAULT);
	close(pair[0]);
	close(pair[1]);
}

static void touch(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		exit(1);
	close(fd);
}

static void on_fs_event(uv_fs_event_t *h, const char *filename, int events, int status)
{
	(void)events;
	count("uv_fs_event");
	printf("fs_event %s %d\n", filename, status);
	shut(h);
}

static void on_fs_poll(uv_fs_poll_t *h, int status, const uv_stat_t *before, const uv_stat_t *now)
{
	count("uv_fs_poll");
	printf("fs_poll %d %d\n", status, before->st_size != now->st_size);
	shut(h);
}

static void on_change(uv_timer_t *t)
{
	count("uv_timer");
	touch(in_folder("watched"), "longer than before");
	shut(t);
}

void watch_files(void)
{
	uv_fs_event_t *e = new_handle(UV_FS_EVENT);
	uv_fs_poll_t *p = new_handle(UV_FS_POLL);
	uv_timer_t *t = new_handle(UV_TIMER);

	touch(in_folder("watched"), "short");
	MUST(uv_fs_event_init(loop, e));
	MUST(uv_fs_poll_init(loop, p));
	MUST(uv_timer_init(loop, t));
	MUST(uv_fs_event_start(e, on_fs_event, in_folder("watched"), 0));
	printf("fs_event twice: %d\n",
	       uv_fs_event_start(e, NEVER(uv_fs_event_cb), in_folder("watched"), 0));
	MUST(uv_fs_poll_start(p, on_fs_poll, in_folder("watched"), 20));
	MUST(uv_fs_poll_start(p, NEVER(uv_fs_poll_cb), in_folder("watched"), 20));
	MUST(uv_timer_start(t, on_change, 60, 0));
	uv_run(loop, UV_RUN_DEFAULT);
}

static void on_exit_of_child(uv_process_t *p, int64_t status, int signum)
{
	count("uv_process");
	printf("child %d %d\n", (int)status, signum);
	shut(p);
}

void children(void)
{
	uv_process_t *good = new_handle(UV_PROCESS), *bad = new_handle(UV_PROCESS);
	char *args[] = {"sh", "-c", "exit 7", NULL};
	char *env[] = {"PATH=/usr/bin:/bin", NULL};
	uv_process_options_t options;

	memset(&options, 0, sizeof(options));
	options.exit_cb = on_exit_of_child;
	options.file = "/bin/sh";
	options.args = args;
	options.env = env;
	MUST(uv_spawn(loop, good, &options));
	options.file = "/nonexistent";
	options.exit_cb = NEVER(uv_exit_cb);
	printf("spawn of nothing: %d\n", uv_spawn(loop, bad, &options));
	shut(bad);
	uv_run(loop, UV_RUN_DEFAULT);
}
