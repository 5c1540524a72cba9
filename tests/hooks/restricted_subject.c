/*
 * Programs for restricted.py, which restrict their own system calls and go on: restricted_subject
 * HOW ANSWER. HOW is the call that restricts: prctl, seccomp, raw (syscall with the number of
 * prctl), strict, accept or none; accept forbids what tells how many connections wait, and nothing else,
 * and accepts some. ANSWER is what calls that the program does not make get: kill, trap or
 * error.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBER offsetof(struct seccomp_data, nr)
#define ARG(n) offsetof(struct seccomp_data, args[n])
#define ALLOWED(call)                                          \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter code[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
	ALLOWED(read),
	ALLOWED(write),
	ALLOWED(epoll_pwait),
#ifdef SYS_epoll_wait
	ALLOWED(epoll_wait),
#endif
	ALLOWED(ppoll),
#ifdef SYS_poll
	ALLOWED(poll),
#endif
	ALLOWED(futex),
	ALLOWED(exit_group),
	ALLOWED(execve),
	/* What handlers need, of which this program has none. */
	ALLOWED(rt_sigprocmask),
	ALLOWED(rt_sigreturn),
	/* Of the rest one more, by its argument and through all kinds of instructions. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 9),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG(1)),
	BPF_STMT(BPF_ST, 3),
	BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 3),
	BPF_STMT(BPF_LD | BPF_IMM, 0),
	BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
	BPF_STMT(BPF_MISC | BPF_TAX, 0),
	BPF_STMT(BPF_MISC | BPF_TXA, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 3 /* F_GETFL */, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
#define LAST (sizeof(code) / sizeof(code[0]) - 1)

static struct sock_filter no_questions[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 3, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG(1)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned sink;
static int held;

static void *hold(void *arg)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&held, 1, __ATOMIC_RELEASE);
	poll(NULL, 0, 20);
	pthread_mutex_unlock(&lock);
	poll(NULL, 0, -1);
	return arg;
}

static int restrict_by(const char *how, const struct sock_fprog *filter)
{
	if (!strcmp(how, "none"))
		return 0;
	if (!strcmp(how, "strict"))
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (!strcmp(how, "prctl"))
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter);
	if (!strcmp(how, "raw"))
		return (int)syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			    filter);
}

/* With more than a millisecond between two of them. */
static int accept_some(void)
{
	struct sock_fprog filter = {sizeof(no_questions) / sizeof(no_questions[0]), no_questions};
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 4;
	for (int i = 0; i < 60; i++) {
		if (connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, size) ||
		    accept(listener, NULL, NULL) < 0)
			return 6;
		usleep(2000);
	}
	return 7;
}

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(9);
}

int main(int argc, char **argv)
{
	struct sock_fprog filter = {LAST + 1, code};
	const char *answer = argc > 2 ? argv[2] : "kill";
	struct epoll_event event;
	int epoll = epoll_create1(0);
	pthread_t t;

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "accept"))
		return accept_some();
	code[LAST].k = !strcmp(answer, "trap")	  ? SECCOMP_RET_TRAP
		       : !strcmp(answer, "error") ? SECCOMP_RET_ERRNO | EPERM
						  : SECCOMP_RET_KILL_PROCESS;
	epoll_wait(epoll, &event, 1, 5);
	/* In strict mode there is no way to end but one by one. What a thread calls when it begins
	   is not allowed either. */
	if (strcmp(argv[1], "strict") != 0) {
		pthread_create(&t, NULL, hold, NULL);
		while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
			sched_yield();
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* How programs ask whether there are filters. */
	if (!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) || errno != EFAULT)
		return 3;
	epoll_wait(epoll, &event, 1, 5);
	if (restrict_by(argv[1], &filter))
		return 4;
	say("restricted\n");
	if (!strcmp(argv[1], "strict")) {
		syscall(SYS_exit, 7);
		return 5;
	}
	for (int i = 0; i < 50; i++) {
		epoll_wait(epoll, &event, 1, 2);
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		for (unsigned n = 0; n < 2000000; n++)
			sink += n;
	}
	/* It is not there, and nothing else is asked of the kernel. */
	execve("/no/such/program", argv, (char *[]){NULL});
	say(errno == ENOENT ? "done\n" : "found\n");
	_exit(7);
}
