/*
 * Programs for noted.py: each ends by a fatal signal, or goes on after it, and prints what it sees
 * of its handlers meanwhile. Everything must be the same with and without the hooks.
 *
 *	noted_subject HOW [CRASH]
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* sigset */

sighandler_t bsd_signal(int sig, sighandler_t handler);

#define ALTERNATE (64u << 10)

static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
#define FATAL (sizeof(fatal) / sizeof(fatal[0]))

static volatile int *volatile nowhere;
static void (*volatile no_function)(void);
static volatile int zero, sink = 1;
static char alternate[ALTERNATE];
static sigjmp_buf back;
static volatile int times;
static int epoll;

/* ------------------------------------------------------------------ crashes */

__attribute__((noinline)) static void crash_segv(void)
{
	*nowhere = 1;
}

__attribute__((noinline)) static void crash_call(void)
{
	no_function();
	sink = 1;
}

__attribute__((noinline)) static void crash_general(void)
{
	/* No address is like that: general protection on x86-64. */
	*(volatile int *)(0x4141414141414140ull + (unsigned)zero) = 1;
}

__attribute__((noinline)) static void crash_bus(void)
{
	int fd = open(".", O_TMPFILE | O_RDWR, 0600);
	volatile char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	page[7] = 1;
}

__attribute__((noinline)) static void crash_ill(void)
{
#if defined(__x86_64__)
	__asm__ volatile("ud2");
#else
	__asm__ volatile(".inst 0");
#endif
	sink = 1;
}

__attribute__((noinline)) static void crash_fpe(void)
{
#if defined(__x86_64__)
	sink = sink / zero;
#else
	raise(SIGFPE); /* dividing by zero is no fault there */
#endif
}

__attribute__((noinline)) static void crash_trap(void)
{
#if defined(__x86_64__)
	__asm__ volatile("int3");
#else
	__asm__ volatile("brk 0");
#endif
	sink = 1;
}

__attribute__((noinline)) static void crash_abort(void)
{
	abort();
}

__attribute__((noinline)) static void crash_assert(void)
{
	assert(zero == 1);
}

__attribute__((noinline)) static void crash_sys(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
	syscall(SYS_getppid);
	sink = 1;
}

/* Calls that only a handler of crashes makes are refused so. */
static void forbid(unsigned action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_tgsigqueueinfo, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

__attribute__((noinline)) static void crash_queue(void)
{
	union sigval value = {.sival_int = 4711};

	sigqueue(getpid(), SIGSEGV, value);
	sink = 1;
}

__attribute__((noinline)) static int crash_overflow(volatile char *before, unsigned depth)
{
	volatile char room[512];

	room[depth % 512] = before[0];
	return depth < 1u << 30 ? crash_overflow(room, depth + 1) + room[1] : room[2];
}

static void crash(const char *how)
{
	char start[1] = {0};

	fflush(stdout);
	if (!strcmp(how, "segv"))
		crash_segv();
	else if (!strcmp(how, "call"))
		crash_call();
	else if (!strcmp(how, "general"))
		crash_general();
	else if (!strcmp(how, "bus"))
		crash_bus();
	else if (!strcmp(how, "ill"))
		crash_ill();
	else if (!strcmp(how, "fpe"))
		crash_fpe();
	else if (!strcmp(how, "trap"))
		crash_trap();
	else if (!strcmp(how, "abort"))
		crash_abort();
	else if (!strcmp(how, "assert"))
		crash_assert();
	else if (!strcmp(how, "sys"))
		crash_sys();
	else if (!strcmp(how, "queue"))
		crash_queue();
	else if (!strcmp(how, "overflow"))
		sink = crash_overflow(start, 0);
	else
		raise(atoi(how));
}

/* Further down than a handler that was called before. */
__attribute__((noinline)) static void crash_deeper(const char *how)
{
	volatile char room[32 << 10];

	memset((char *)room, 1, sizeof(room));
	crash(how);
	room[1] = 2;
}

/* ----------------------------------------------------------------- handlers */

static int on_alternate(void)
{
	char here;

	return &here >= alternate && &here < alternate + sizeof(alternate);
}

/* Only what is as small as a stack of signals: no stdio. */
static void say(const char *what, unsigned long value)
{
	char text[80];
	int n = 0;

	while (*what)
		text[n++] = *what++;
	text[n++] = ' ';
	for (int shift = 60; shift >= 0; shift -= 4)
		text[n++] = "0123456789abcdef"[value >> shift & 15];
	text[n++] = '\n';
	if (write(1, text, (size_t)n) != n)
		_exit(99);
}

static void see(int sig)
{
	sigset_t mask;
	unsigned long bits = 0;
	void *frames[40];

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	/* Signals of samples are blocked as well: real-time ones are not looked at. */
	for (int i = 1; i < 32; i++)
		bits |= (unsigned long)(sigismember(&mask, i) == 1) << i;
	say("signal", (unsigned long)sig);
	say("mask", bits);
	say("on the alternate stack", (unsigned long)on_alternate());
	say("frames", (unsigned long)backtrace(frames, 40));
}

static void tell(int sig, const char *when)
{
	struct sigaction now;

	sigaction(sig, NULL, &now);
	printf("%s: %d %s flags %x mask %d\n", when, sig,
	       now.sa_handler == SIG_DFL   ? "default"
	       : now.sa_handler == SIG_IGN ? "ignored"
					   : "handler",
	       (unsigned)now.sa_flags & ~0x04000000u, sigismember(&now.sa_mask, SIGUSR1));
	fflush(stdout);
}

static void ends(int sig)
{
	see(sig);
	_exit(7);
}

static void ends_with_info(int sig, siginfo_t *info, void *context)
{
	see(sig);
	say("code", (unsigned long)info->si_code);
	say("context", context != NULL);
	_exit(8);
}

static void returns(int sig)
{
	see(sig);
	if (++times > 3)
		_exit(9);
}

static void jumps(int sig)
{
	say("jumps", (unsigned long)sig);
	times++;
	siglongjmp(back, 1);
}

static void gives_back(int sig)
{
	see(sig);
	signal(sig, SIG_DFL);
}

static void raises_again(int sig)
{
	see(sig);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* After some turns of a loop, of which there are records. */
static void raises_later(int sig)
{
	struct epoll_event event;

	see(sig);
	for (int i = 0; i < 3; i++)
		epoll_wait(epoll, &event, 1, 0);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void aborts(int sig)
{
	see(sig);
	abort();
}

static void faults(int sig)
{
	see(sig);
	crash_segv();
}

static void set_all(void (*handler)(int), int flags)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = handler;
	sa.sa_flags = flags;
	sigaddset(&sa.sa_mask, SIGUSR1);
	for (unsigned i = 0; i < FATAL; i++)
		sigaction(fatal[i], &sa, NULL);
	tell(SIGSEGV, "set");
}

static void set_alternate(void)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)}, old;

	sigaltstack(NULL, &old);
	printf("alternate stack before: flags %x\n", (unsigned)old.ss_flags);
	sigaltstack(&stack, NULL);
	sigaltstack(NULL, &old);
	printf("alternate stack: mine %d, %zu\n", old.ss_sp == alternate, old.ss_size);
}

/* ---------------------------------------------------------------- behaviours */

static void with_info(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = ends_with_info;
	sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
	for (unsigned i = 0; i < FATAL; i++)
		sigaction(fatal[i], &sa, NULL);
	set_alternate();
}

/* All that tells of an action, before and after each is set. */
static void queries(void)
{
	struct sigaction sa, old;

	for (unsigned i = 0; i < FATAL; i++) {
		int sig = fatal[i];

		tell(sig, "at first");
		printf("%d", signal(sig, ends) == SIG_DFL);
		printf("%d", signal(sig, SIG_DFL) == ends);
		printf("%d", sigset(sig, ends) == SIG_DFL);
		printf("%d", sigset(sig, SIG_DFL) == ends);
		printf("%d", bsd_signal(sig, SIG_IGN) == SIG_DFL);
		printf("%d", ssignal(sig, SIG_DFL) == SIG_IGN);
		printf("%d", sysv_signal(sig, ends) == SIG_DFL);
		tell(sig, " once");
		printf("%d", sysv_signal(sig, SIG_DFL) == ends);
		memset(&sa, 0, sizeof(sa));
		sa.sa_flags = SA_NODEFER | SA_RESTART;
		sigaddset(&sa.sa_mask, SIGUSR1);
		sigaction(sig, &sa, NULL);
		tell(sig, " default with flags");
		sa.sa_handler = ends;
		sa.sa_flags = (int)SA_RESETHAND;
		sigaction(sig, &sa, &old);
		printf("%d %x\n", old.sa_handler == SIG_DFL, (unsigned)old.sa_flags & ~0x04000000u);
		sigaction(sig, &old, &sa);
		printf("%d %x\n", sa.sa_handler == ends, (unsigned)sa.sa_flags & ~0x04000000u);
	}
}

static void *crash_thread(void *how)
{
	crash(how);
	return NULL;
}

static void in_thread(char *how)
{
	pthread_t t;

	pthread_create(&t, NULL, crash_thread, how);
	pthread_join(t, NULL);
}

static void print_child(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	printf("child: signal %d, core %d, status %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	       WIFSIGNALED(status) && WCOREDUMP(status),
	       WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void in_children(char *how)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		crash(how);
		_exit(5);
	}
	print_child(pid);
	pid = vfork();
	if (!pid) {
		/* As those do who start programs. */
		signal(SIGSEGV, SIG_DFL);
		crash_segv();
		_exit(6);
	}
	print_child(pid);
	tell(SIGSEGV, "after children");
}

static void start_other(char *self)
{
	char *argv[] = {self, (char *)"show", NULL};
	extern char **environ;
	pid_t pid;

	signal(SIGFPE, SIG_IGN);
	signal(SIGILL, ends);
	if (!posix_spawn(&pid, self, NULL, NULL, argv, environ))
		print_child(pid);
	fflush(stdout);
	execv(self, argv);
}

static void blocked(int block)
{
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < FATAL; i++)
		sigaddset(&set, fatal[i]);
	pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static int do_as(char **argv)
{
	const char *how = argv[1];
	char *what = argv[2] ? argv[2] : (char *)"segv";

	if (!strcmp(how, "handler")) {
		set_all(ends, 0);
	} else if (!strcmp(how, "info")) {
		with_info();
	} else if (!strcmp(how, "once")) {
		set_all(returns, (int)SA_RESETHAND);
	} else if (!strcmp(how, "once-nodefer")) {
		set_all(raises_again, (int)SA_RESETHAND | SA_NODEFER);
	} else if (!strcmp(how, "once-later")) {
		set_all(raises_later, (int)SA_RESETHAND | SA_NODEFER);
	} else if (!strcmp(how, "once-onstack")) {
		set_alternate();
		set_all(ends, (int)SA_RESETHAND | SA_ONSTACK);
	} else if (!strcmp(how, "nodefer")) {
		set_all(returns, SA_NODEFER);
	} else if (!strcmp(how, "gives-back")) {
		set_all(gives_back, 0);
	} else if (!strcmp(how, "raises-again")) {
		set_all(raises_again, 0);
	} else if (!strcmp(how, "aborts")) {
		signal(SIGSEGV, aborts);
	} else if (!strcmp(how, "faults")) {
		set_all(faults, 0);
	} else if (!strcmp(how, "ignored")) {
		set_all(SIG_IGN, 0);
	} else if (!strcmp(how, "taken-back")) {
		set_all(ends, 0);
		set_all(SIG_DFL, 0);
	} else if (!strcmp(how, "alternate")) {
		set_alternate();
	} else if (!strcmp(how, "alternate-handler")) {
		set_alternate();
		set_all(ends, SA_ONSTACK);
	} else if (!strcmp(how, "blocked")) {
		blocked(1);
	} else if (!strcmp(how, "forbidden")) {
		forbid(SECCOMP_RET_KILL_PROCESS);
	} else if (!strcmp(how, "refused")) {
		forbid(SECCOMP_RET_ERRNO | EPERM);
	} else if (!strcmp(how, "jumps") || !strcmp(how, "jumps-once")) {
		int once = !strcmp(how, "jumps-once");

		sigsetjmp(back, 1);
		set_all(times < 3 ? jumps : SIG_DFL, once ? (int)SA_RESETHAND : 0);
		if (times == 2 && once) {
			set_all(SIG_DFL, 0);
			return 0; /* it was survived, and all is well */
		}
	} else if (!strcmp(how, "deeper") || !strcmp(how, "deeper-onstack")) {
		if (!strcmp(how, "deeper-onstack"))
			set_alternate();
		if (!sigsetjmp(back, 1)) {
			set_all(jumps, (int)SA_RESETHAND | SA_ONSTACK);
			crash("8");
		}
		crash_deeper(what);
	} else if (!strcmp(how, "thread")) {
		in_thread(what);
	} else if (!strcmp(how, "children")) {
		in_children(what);
		return 0;
	} else if (!strcmp(how, "exec")) {
		start_other(argv[0]);
	} else if (!strcmp(how, "show")) {
		for (unsigned i = 0; i < FATAL; i++)
			tell(fatal[i], "after exec");
		return 0;
	} else if (!strcmp(how, "queries")) {
		queries();
		return 0;
	}
	crash(what);
	printf("it goes on\n");
	if (!strcmp(how, "blocked")) {
		fflush(stdout);
		blocked(0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	struct epoll_event event;
	int result;
	void *one[1];

	if (argc < 2)
		return 2;
	backtrace(one, 1);
	epoll = epoll_create1(0);
	setrlimit(RLIMIT_CORE, &all);
	epoll_wait(epoll, &event, 1, 0);
	epoll_wait(epoll, &event, 1, 0);
	result = do_as(argv);
	epoll_wait(epoll, &event, 1, 0);
	return result;
}
