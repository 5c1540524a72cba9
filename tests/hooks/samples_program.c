/* Programs for samples.py: each burns CPU where it says, or does with signals what programs do. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static volatile unsigned sink;

__attribute__((noinline)) static void hot(uint64_t cpu_ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (unsigned i = 0; i < 20000; i++)
			sink += i;
}

__attribute__((noinline)) static void callback(uint64_t cpu_ns)
{
	hot(cpu_ns);
	sink++;
}

static int loop_fd = -1;

static void turn(void)
{
	struct epoll_event event;

	if (loop_fd < 0)
		loop_fd = epoll_create1(0);
	epoll_wait(loop_fd, &event, 1, 1);
}

/* One stretch of work between two waits. */
static void busy(const char *what, uint64_t cpu_ns)
{
	uint64_t begin, cpu;

	turn();
	begin = now();
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	callback(cpu_ns);
	printf("%s tid %ld from %" PRIu64 " to %" PRIu64 " cpu %" PRIu64 "\n", what,
	       syscall(SYS_gettid), begin, now(), clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
	turn();
	fflush(stdout);
}

static void say(const char *name, int good)
{
	printf("%s %s%s\n", good ? "ok" : "not ok", name, good ? "" : ": it is not so");
	fflush(stdout);
}

/* ------------------------------------------------------------------ threads */

static void *worker(void *what)
{
	if (!strcmp(what, "blocked")) {
		sigset_t all;

		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
		loop_fd = epoll_create1(0);
		busy(what, 300000000);
	} else {
		uint64_t begin = now();

		callback(300000000);
		printf("%s tid %ld from %" PRIu64 " to %" PRIu64 " cpu %u\n", (char *)what,
		       syscall(SYS_gettid), begin, now(), 300000000u);
	}
	return NULL;
}

static void run_thread(char *what)
{
	pthread_t t;

	pthread_create(&t, NULL, worker, what);
	pthread_join(t, NULL);
}

static void *nothing(void *arg)
{
	return arg;
}

static unsigned timers(void)
{
	FILE *f = fopen("/proc/self/timers", "r");
	char line[200];
	unsigned n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += !strncmp(line, "ID:", 3);
	if (f)
		fclose(f);
	return n;
}

static void many_threads(void)
{
	turn();
	for (int i = 0; i < 3000; i++) {
		pthread_t t;

		if (!pthread_create(&t, NULL, nothing, NULL))
			pthread_join(t, NULL);
	}
	say("timers end with their threads", timers() <= 2);
}

/* ------------------------------------------------------------------ signals */

static volatile int handled, last_signal;

static void handler(int sig)
{
	handled++;
	last_signal = sig;
}

static int is_default(int sig)
{
	struct sigaction sa;

	return !sigaction(sig, NULL, &sa) && !(sa.sa_flags & SA_SIGINFO) &&
	       sa.sa_handler == SIG_DFL;
}

static void defaults(void)
{
	int good = 1;

	turn();
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
		good &= is_default(s);
	say("every real-time signal has its default action", good);
	for (int s = 1; s <= SIGRTMAX; s++) {
		struct sigaction sa = {.sa_handler = SIG_DFL}, old;

		if (s == SIGKILL || s == SIGSTOP || (s >= 32 && s < SIGRTMIN))
			continue;
		/* Ignored signals are inherited, as SIGHUP under nohup. */
		good &= !sigaction(s, &sa, &old) &&
			(old.sa_handler == SIG_DFL || (s < 32 && old.sa_handler == SIG_IGN));
		good &= is_default(s);
	}
	say("all actions can be set to the default one", good);
	busy("defaults", 300000000);
	good = signal(SIGRTMAX, SIG_IGN) == SIG_DFL && signal(SIGRTMAX, SIG_DFL) == SIG_IGN;
	say("signal() gives back what it was given", good);
	busy("defaults", 300000000);
}

static void takeover(void)
{
	struct sigaction sa = {.sa_handler = handler}, old;

	turn();
	callback(50000000);
	say("the old action is the default one",
	    !sigaction(SIGRTMAX, &sa, &old) && old.sa_handler == SIG_DFL);
	callback(200000000);
	say("the new handler runs for signals of the program alone", handled == 0);
	raise(SIGRTMAX);
	say("and for these it does", handled == 1 && last_signal == SIGRTMAX);
	busy("takeover", 300000000);
	say("also after samples go on", handled == 1);
}

/* What handles a crash may do anything, and nothing of ours comes in between. */
static void crash_handler(int sig)
{
	uint64_t begin = now(), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	(void)sig;
	callback(100000000);
	printf("inside tid %ld from %" PRIu64 " to %" PRIu64 " cpu %" PRIu64 "\n",
	       syscall(SYS_gettid), begin, now(), clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
	handled++;
}

/* Whether the mask of a handler holds what was put there: SIGUSR1, and SIGRTMAX if `all`. */
static int has_mask(int sig, int all)
{
	struct sigaction sa;

	return !sigaction(sig, NULL, &sa) && sa.sa_handler == crash_handler &&
	       sigismember(&sa.sa_mask, SIGUSR1) && sigismember(&sa.sa_mask, SIGRTMAX) == all;
}

static void crashes(void)
{
	struct sigaction sa = {.sa_handler = crash_handler}, all = sa, old;
	sigset_t mask;

	sigaddset(&sa.sa_mask, SIGUSR1);
	sigfillset(&all.sa_mask);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &all, NULL);
	turn();
	callback(50000000);
	sigaction(SIGFPE, &sa, NULL);
	sigaction(SIGTRAP, &all, NULL);
	signal(SIGILL, crash_handler);
	say("handlers of crashes have the masks that they were given",
	    has_mask(SIGSEGV, 0) && has_mask(SIGFPE, 0) && has_mask(SIGBUS, 1) &&
		    has_mask(SIGTRAP, 1));
	say("signal() gives back the handler", signal(SIGILL, crash_handler) == crash_handler);
	raise(SIGSEGV);
	raise(SIGFPE);
	raise(SIGILL);
	say("they run", handled == 3);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	say("and leave no signal blocked", sigisemptyset(&mask));
	say("the old action is the one that was set",
	    !sigaction(SIGSEGV, &all, &old) && old.sa_handler == crash_handler &&
		    !sigismember(&old.sa_mask, SIGRTMAX) && has_mask(SIGSEGV, 1));
	busy("crashes", 300000000);
}

static void killed(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		turn();
		callback(50000000);
		raise(SIGRTMAX);
		_exit(3);
	}
	waitpid(child, &status, 0);
	say("a signal that nobody handles ends the program",
	    WIFSIGNALED(status) && WTERMSIG(status) == SIGRTMAX);
	child = fork();
	if (!child) {
		signal(SIGRTMAX, SIG_IGN);
		turn();
		signal(SIGRTMAX, SIG_IGN);
		callback(50000000);
		raise(SIGRTMAX);
		_exit(3);
	}
	waitpid(child, &status, 0);
	say("one that is ignored does nothing", WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void *burn(void *arg)
{
	callback(50000000);
	return arg;
}

/* A signal that the program blocks, to wait for it later, is its own: whether it said so before
   any was chosen for samples or after. */
static void named(void)
{
	struct signalfd_siginfo info = {0};
	struct timespec long_time = {60, 0};
	sigset_t first, second, old;
	pthread_t t;
	int fd;

	sigemptyset(&first);
	sigaddset(&first, SIGRTMAX);
	sigprocmask(SIG_BLOCK, &first, NULL);
	fd = signalfd(-1, &first, 0);
	turn();
	callback(50000000);
	kill(getpid(), SIGRTMAX);
	say("a signal that was blocked before the first wait is kept for signalfd",
	    read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == (uint32_t)SIGRTMAX);
	sigemptyset(&second);
	for (int sig = SIGRTMIN + 1; sig < SIGRTMAX; sig++)
		sigaddset(&second, sig);
	pthread_sigmask(SIG_BLOCK, &second, NULL);
	pthread_create(&t, NULL, burn, NULL);
	pthread_join(t, NULL);
	turn();
	callback(50000000);
	for (int sig = SIGRTMIN + 1; sig < SIGRTMAX; sig++)
		kill(getpid(), sig);
	for (int sig = SIGRTMIN + 1; sig < SIGRTMAX; sig++)
		if (sigtimedwait(&second, NULL, &long_time) != sig)
			say("signals that were blocked later are kept for sigtimedwait", 0);
	sigprocmask(SIG_BLOCK, NULL, &old);
	say("and all of them stay blocked",
	    sigismember(&old, SIGRTMAX) && sigismember(&old, SIGRTMAX - 1) &&
		    sigismember(&old, SIGRTMIN + 1) && !sigismember(&old, SIGRTMIN));
	busy("named", 300000000);
}

static void waiting(void)
{
	struct signalfd_siginfo info;
	struct timespec soon = {0, 20000000};
	sigset_t all, before;
	int sig = 0, fd;

	turn();
	sigfillset(&all);
	fd = signalfd(-1, &all, SFD_NONBLOCK);
	sigprocmask(SIG_SETMASK, &all, &before);
	callback(100000000);
	kill(getpid(), SIGUSR1);
	say("sigwait for all signals gives the program's", !sigwait(&all, &sig) && sig == SIGUSR1);
	callback(100000000);
	say("sigtimedwait for all signals gives none",
	    sigtimedwait(&all, NULL, &soon) < 0 && errno == EAGAIN);
	callback(100000000);
	say("signalfd for all signals gives none",
	    read(fd, &info, sizeof(info)) < 0 && errno == EAGAIN);
	kill(getpid(), SIGUSR2);
	say("and then the program's",
	    read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR2);
	sigprocmask(SIG_SETMASK, &before, NULL);
	busy("waiting", 300000000);
}

/* -------------------------------------------------------------- interruption */

static int our_signal;
static void *our_value;

/* Old kernels interrupt waits with CPU timers; here the same signal is sent by hand. */
static int learn_signal(void)
{
	FILE *f = fopen("/proc/self/timers", "r");
	char line[200];
	int got = 0;

	while (f && !got && fgets(line, sizeof(line), f))
		got = sscanf(line, "signal: %d/%p", &our_signal, &our_value) == 2;
	if (f)
		fclose(f);
	return got;
}

struct shooting {
	pid_t tid;
	int sig;
	unsigned after_ms;
};

static void *shoot(void *arg)
{
	struct shooting *s = arg;
	siginfo_t info;

	usleep(s->after_ms * 1000);
	memset(&info, 0, sizeof(info));
	info.si_signo = s->sig;
	info.si_code = s->sig == our_signal ? SI_TIMER : SI_QUEUE;
	info.si_value.sival_ptr = our_value;
	syscall(SYS_rt_tgsigqueueinfo, getpid(), s->tid, s->sig, &info);
	return NULL;
}

static int wait_kind(unsigned kind, int seconds)
{
	struct timespec t = {seconds, 0};
	struct timeval tv = {seconds, 0};
	struct epoll_event event;

	switch (kind) {
	case 0:
		return epoll_wait(loop_fd, &event, 1, seconds * 1000);
	case 1:
		return epoll_pwait(loop_fd, &event, 1, seconds * 1000, NULL);
	case 2:
		return poll(NULL, 0, seconds * 1000);
	case 3:
		return ppoll(NULL, 0, &t, NULL);
	case 4:
		return select(0, NULL, NULL, NULL, &tv);
	case 5:
		return pselect(0, NULL, NULL, NULL, &t, NULL);
	default:
		return epoll_pwait2(loop_fd, &event, 1, &t, NULL);
	}
}

static void shoot_at(unsigned kind, int sig, const char *what)
{
	static const char *const names[] = {"epoll_wait", "epoll_pwait", "poll",	"ppoll",
					    "select",	  "pselect",	 "epoll_pwait2"};
	/* Late, so that a wait that begins anew lasts nearly twice as long. */
	struct shooting s = {(pid_t)syscall(SYS_gettid), sig, sig == our_signal ? 900 : 100};
	uint64_t begin = now(), ms;
	char name[100];
	pthread_t t;
	int n, error;

	pthread_create(&t, NULL, shoot, &s);
	n = wait_kind(kind, sig == our_signal ? 1 : 60);
	error = errno;
	ms = (now() - begin) / 1000000;
	pthread_join(t, NULL);
	snprintf(name, sizeof(name), "%s %s", names[kind], what);
	if (sig == our_signal)
		say(name, n == 0 && ms >= 995 && ms < 1850);
	else
		say(name, n < 0 && error == EINTR);
}

static void interrupted(void)
{
	struct sigaction sa = {.sa_handler = handler};

	turn();
	if (!learn_signal()) {
		puts("skip waits go on: /proc/self/timers is not there");
		return;
	}
	sigaction(SIGUSR1, &sa, NULL);
	for (unsigned kind = 0; kind < 7; kind++) {
		shoot_at(kind, our_signal, "goes on when a sample interrupts it");
		shoot_at(kind, SIGUSR1, "is interrupted by a signal of the program");
	}
}

/* A different way down for each number. */
static void left(unsigned number, unsigned depth);

__attribute__((noinline)) static void right(unsigned number, unsigned depth)
{
	left(number, depth);
	sink++;
}

__attribute__((noinline)) static void left(unsigned number, unsigned depth)
{
	struct shooting s = {(pid_t)syscall(SYS_gettid), our_signal, 0};

	if (!depth)
		shoot(&s);
	else if (number >> (depth - 1) & 1)
		right(number, depth - 1);
	else
		left(number, depth - 1);
	sink++;
}

static void many_stacks(void)
{
	turn();
	if (!learn_signal()) {
		puts("skip many stacks: /proc/self/timers is not there");
		return;
	}
	for (unsigned i = 0; i < 4096; i++)
		left(i, 12);
	turn();
}

/* ------------------------------------------------------------------- stacks */

#define FIBER_BYTES 65536u
static ucontext_t outside, fiber;
static unsigned char *fiber_stack;

/* Code that no table describes, with a frame pointer that leads nowhere. */
static void wild(void)
{
#if defined(__x86_64__)
	/* push rbp; mov rbp, rsi; l: dec rdi; jnz l; pop rbp; ret */
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xf5, 0x48, 0xff,
					     0xcf, 0x75, 0xfb, 0x5d, 0xc3};
	unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*spin)(uint64_t, const void *);
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 300000000;

	if (at == MAP_FAILED) {
		printf("skip frame pointers that lead nowhere: no memory for code\n");
		return;
	}
	memcpy(at, code, sizeof(code));
	memcpy(&spin, &at, sizeof(spin));
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		spin(1000000, fiber_stack + FIBER_BYTES);
		spin(1000000, fiber_stack + FIBER_BYTES - 8);
		spin(1000000, (const void *)-8l);
	}
	munmap(at, 4096);
#endif
	say("frame pointers that lead nowhere end the stack", 1);
}

static void run_fiber(void)
{
	busy("fiber", 300000000);
	wild();
}

/* On memory of the program's own, with nothing behind it. */
static void fibers(void)
{
	turn();
	fiber_stack = mmap(NULL, FIBER_BYTES + 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fiber_stack == MAP_FAILED || mprotect(fiber_stack + FIBER_BYTES, 4096, PROT_NONE) ||
	    getcontext(&fiber))
		abort();
	fiber.uc_stack.ss_sp = fiber_stack;
	fiber.uc_stack.ss_size = FIBER_BYTES;
	fiber.uc_link = &outside;
	makecontext(&fiber, run_fiber, 0);
	swapcontext(&outside, &fiber);
}

/* ns that the kernel ran others while this thread was runnable; by system calls that no hook sees. */
static uint64_t delay_ns(void)
{
	char text[96] = "";
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY);
	char *end;

	if (fd < 0 || syscall(SYS_read, fd, text, sizeof(text) - 1) <= 0)
		abort();
	syscall(SYS_close, fd);
	strtoull(text, &end, 10);
	return strtoull(end, NULL, 10);
}

static void sleeps(void)
{
	usleep(80000);
}

static void reads(void)
{
	static char bytes[32 << 20];
	int fd = open("/dev/urandom", O_RDONLY);

	if (fd < 0 || read(fd, bytes, sizeof(bytes)) < 0)
		abort();
	close(fd);
}

/* An iteration with code and then a call: by how much the kernel delayed each. */
static void delays(uint64_t cpu_ns, void (*call)(void))
{
	uint64_t begin, called, end;

	turn();
	begin = delay_ns();
	callback(cpu_ns);
	called = delay_ns();
	call();
	end = delay_ns();
	turn();
	printf("delays tid %ld code %" PRIu64 " call %" PRIu64 " at %" PRIu64 "\n",
	       syscall(SYS_gettid), called - begin, end - called, now());
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "busy")) {
		busy("busy", 500000000);
		usleep(200000);
		busy("busy", 500000000);
	} else if (!strcmp(what, "delays")) {
		delays(100000000, sleeps);
		delays(0, reads);
	} else if (!strcmp(what, "thread") || !strcmp(what, "blocked")) {
		turn();
		run_thread(argv[1]);
	} else if (!strcmp(what, "fork")) {
		busy("fork", 100000000);
		if (!fork()) {
			busy("child", 300000000);
			return 0;
		}
		wait(NULL);
	} else if (!strcmp(what, "many")) {
		many_threads();
	} else if (!strcmp(what, "defaults")) {
		defaults();
	} else if (!strcmp(what, "takeover")) {
		takeover();
	} else if (!strcmp(what, "crashes")) {
		crashes();
	} else if (!strcmp(what, "killed")) {
		killed();
	} else if (!strcmp(what, "named")) {
		named();
	} else if (!strcmp(what, "waiting")) {
		waiting();
	} else if (!strcmp(what, "stacks")) {
		many_stacks();
	} else if (!strcmp(what, "fiber")) {
		fibers();
	} else if (!strcmp(what, "interrupted")) {
		interrupted();
	} else {
		fprintf(stderr, "what shall I do?\n");
		return 2;
	}
	return 0;
}
