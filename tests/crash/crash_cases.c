#include "crash_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tacho.h"

/* Each crash is a function of its own, with a frame of its own. */
#if defined(__clang__)
#define OWN_FRAME __attribute__((noinline))
#else
#define OWN_FRAME __attribute__((noipa))
#endif
#define CRASH static OWN_FRAME void
#define NOTE_CALLER(t) \
	((t)->value[CASE_CALLER] = (uint64_t)(uintptr_t)__builtin_return_address(0), errno = 1234)

static volatile int *volatile nowhere;
static volatile int zero, sink = 7;

/* ------------------------------------------------------------------- faults */

CRASH null_write(struct truth *t)
{
	NOTE_CALLER(t);
	t->value[CASE_ADDRESS] = 0;
#if defined(__x86_64__)
	__asm__ volatile("mov %0, %%r12\n\tmovl $1, (%1)"
			 :
			 : "r"(CASE_MARK_VALUE), "r"(nowhere)
			 : "r12", "memory");
#else
	*nowhere = 1;
#endif
}

CRASH write_to_read_only(struct truth *t)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NOTE_CALLER(t);
	t->value[CASE_ADDRESS] = (uint64_t)(uintptr_t)(page + 100);
	*(volatile char *)(page + 100) = 1;
}

CRASH beyond_file_end(struct truth *t)
{
	int fd = open("short", O_RDWR | O_CREAT | O_EXCL, 0600);
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	NOTE_CALLER(t);
	t->value[CASE_ADDRESS] = (uint64_t)(uintptr_t)(page + 4096);
	*(volatile char *)(page + 4096) = 1;
}

CRASH bad_instruction(struct truth *t)
{
	NOTE_CALLER(t);
	t->value[CASE_ADDRESS] = 0;
#if defined(__x86_64__)
	__asm__ volatile("ud2");
#else
	__asm__ volatile(".inst 0");
#endif
	sink = 1;
}

CRASH divide_by_zero(struct truth *t)
{
	NOTE_CALLER(t);
#if defined(__x86_64__)
	sink = sink / zero;
#else
	raise(SIGFPE); /* dividing by zero is no fault there */
#endif
}

CRASH call_nothing(struct truth *t)
{
	void (*volatile f)(void) = (void (*)(void))(uintptr_t)nowhere;

	NOTE_CALLER(t);
	f();
	sink = 1;
}

/* Bounded, and no compiler sees that it does not return. */
static OWN_FRAME int recurse(volatile char *before, unsigned depth)
{
	volatile char room[512];

	room[depth % 512] = before[0];
	return depth < 1u << 30 ? recurse(room, depth + 1) + room[1] : room[2];
}

CRASH overflow_stack(struct truth *t)
{
	char start[1] = {0};

	(void)t;
	sink = recurse(start, 0);
}

static void *overflow_thread(void *arg)
{
	if (!tacho_crash_stack())
		overflow_stack(arg);
	return NULL;
}

CRASH overflow_in_thread(struct truth *t)
{
	pthread_t thread;

	pthread_create(&thread, NULL, overflow_thread, t);
	pthread_join(thread, NULL);
}

static void *null_thread(void *arg)
{
	null_write(arg);
	return NULL;
}

CRASH crash_in_thread(struct truth *t)
{
	pthread_t thread;

	pthread_create(&thread, NULL, null_thread, t);
	pthread_join(thread, NULL);
}

/* ------------------------------------------------------------ raised, sent */

CRASH call_abort(struct truth *t)
{
	NOTE_CALLER(t);
	abort();
}

CRASH kill_self(struct truth *t)
{
	NOTE_CALLER(t);
	kill(getpid(), SIGBUS);
	pause();
	sink = 1;
}

/* getppid(2) raises SIGSYS. */
CRASH forbidden_call(struct truth *t)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	NOTE_CALLER(t);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
	sink = (int)syscall(SYS_getppid);
	pause();
}

/* --------------------------------------------------------- damaged memory */

CRASH corrupt_heap(struct truth *t)
{
	volatile size_t size = 2000;
	char *a = malloc(size), *b = malloc(size), *c = malloc(size);

	NOTE_CALLER(t);
	/* The size fields of the next blocks, and all that they hold. */
	memset(a, 0x41, 3 * size);
	free(b);
	free(a);
	free(c);
	abort();
}

/* malloc itself runs into what was overwritten. */
CRASH crash_in_malloc(struct truth *t)
{
	volatile size_t size = 40;
	char *volatile a = malloc(size), *volatile b = malloc(size);

	NOTE_CALLER(t);
	free(a);
	free(b);
	/* The list of free blocks of this size leads to a place that is not mapped. */
	*(uint64_t *)b = 0x4141414141414140ull ^ ((uint64_t)(uintptr_t)b >> 12);
	for (int i = 0; i < 10; i++)
		sink = *(volatile char *)malloc(size);
	abort();
}

/* Return addresses and saved registers of this function and its callers are gone. */
CRASH smash_frames(struct truth *t)
{
	volatile uint64_t *frame = __builtin_frame_address(0);

	NOTE_CALLER(t);
	for (int i = 0; i < 64; i++)
		frame[i] = 0x4141414141414141ull;
	*nowhere = 1;
}

/* Frames that lead back to themselves. */
CRASH loop_frames(struct truth *t)
{
	volatile uint64_t *frame = __builtin_frame_address(0);

	NOTE_CALLER(t);
	for (int i = 0; i < 64; i += 2) {
		frame[i] = (uint64_t)(uintptr_t)frame;
		frame[i + 1] = (uint64_t)(uintptr_t)loop_frames + 8;
	}
	*nowhere = 1;
}

CRASH lose_stack(struct truth *t)
{
	NOTE_CALLER(t);
#if defined(__x86_64__)
	__asm__ volatile("mov $0x1008, %%rsp\n\tmov $0x1010, %%rbp\n\tud2" ::: "memory");
#else
	__asm__ volatile("mov sp, %0\n\t.inst 0" : : "r"(0x1010ul) : "memory");
#endif
	sink = 1;
}

/* ---------------------------------------------------------- several at once */

#define AT_ONCE 6
#define MANY 20 /* more than the box keeps crashes of */
static pthread_barrier_t barrier;

static void *crash_together(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	*nowhere = 1;
	return NULL;
}

CRASH crash_at_once(struct truth *t)
{
	pthread_t thread;

	(void)t;
	pthread_barrier_init(&barrier, NULL, AT_ONCE);
	for (int i = 1; i < AT_ONCE; i++)
		pthread_create(&thread, NULL, crash_together, NULL);
	crash_together(NULL);
}

CRASH crash_many(struct truth *t)
{
	pthread_t thread;

	(void)t;
	pthread_barrier_init(&barrier, NULL, MANY);
	for (int i = 1; i < MANY; i++)
		pthread_create(&thread, NULL, crash_together, NULL);
	crash_together(NULL);
}

static void *crash_after(void *arg)
{
	usleep((useconds_t)(uintptr_t)arg);
	*nowhere = 1;
	return NULL;
}

/* One after the other, so that some come when the first has written its file. */
CRASH crash_in_a_row(struct truth *t)
{
	pthread_t thread;

	(void)t;
	for (uintptr_t i = 1; i < AT_ONCE; i++)
		pthread_create(&thread, NULL, crash_after, (void *)(1000 + i * 120));
	crash_after((void *)1000);
}

/* -------------------------------------------------- the program's handlers */

static struct truth *handler_truth;
static char *volatile fixable;
static sigjmp_buf again;

static void see(int sig)
{
	sigset_t mask;
	uint64_t bits = 0;

	handler_truth->value[CASE_SEEN_ERRNO] = (uint64_t)errno;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (int i = 1; i < 64; i++)
		bits |= (uint64_t)(sigismember(&mask, i) == 1) << i;
	handler_truth->value[CASE_SEEN_SIGNAL] = (uint64_t)sig;
	handler_truth->value[CASE_SEEN_MASK] = bits;
	handler_truth->value[CASE_TIMES]++;
}

static void exit_handler(int sig, siginfo_t *info, void *uc)
{
	see(sig);
	if (info->si_code > 0)
		handler_truth->value[CASE_SEEN_ADDRESS] = (uint64_t)(uintptr_t)info->si_addr;
	_exit(uc ? 42 : 43);
}

static void plain_handler(int sig)
{
	see(sig);
}

static void fixing_handler(int sig)
{
	see(sig);
	mprotect(fixable, 4096, PROT_READ | PROT_WRITE);
}

static void jumping_handler(int sig)
{
	see(sig);
	siglongjmp(again, 1);
}

static void install(struct truth *t, void (*plain)(int), void (*full)(int, siginfo_t *, void *),
		    int flags)
{
	static const int all[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
	struct sigaction sa;
	sigset_t blocked;

	handler_truth = t;
	memset(&sa, 0, sizeof(sa));
	sa.sa_flags = flags;
	if (full)
		sa.sa_sigaction = full;
	else
		sa.sa_handler = plain;
	sigaddset(&sa.sa_mask, SIGUSR1);
	for (unsigned i = 0; i < 6; i++)
		sigaction(all[i], &sa, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

static void before_exit(struct truth *t)
{
	install(t, NULL, exit_handler, SA_SIGINFO);
}

static void before_plain_nodefer(struct truth *t)
{
	install(t, plain_handler, NULL, (int)SA_RESETHAND | SA_NODEFER);
}

static void before_reset(struct truth *t)
{
	install(t, plain_handler, NULL, (int)SA_RESETHAND);
}

static void before_fix(struct truth *t)
{
	install(t, fixing_handler, NULL, 0);
}

static void before_ignore(struct truth *t)
{
	install(t, SIG_IGN, NULL, 0);
}

static void before_jump(struct truth *t)
{
	install(t, jumping_handler, NULL, 0);
}

#define SLOW_US 20000u

static void slow_handler(int sig)
{
	(void)sig;
	usleep(SLOW_US);
	_exit(51);
}

static void before_slow(struct truth *t)
{
	install(t, slow_handler, NULL, 0);
}

/* The first one's file is complete; those that crash when its handler ends the process must
   not have begun it anew. */
CRASH crash_late(struct truth *t)
{
	pthread_t thread;

	(void)t;
	for (uintptr_t i = 1; i < AT_ONCE; i++)
		pthread_create(&thread, NULL, crash_after, (void *)(SLOW_US + i * 300));
	crash_after((void *)1000);
}

CRASH write_and_go_on(struct truth *t)
{
	fixable = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NOTE_CALLER(t);
	t->value[CASE_ADDRESS] = (uint64_t)(uintptr_t)fixable;
	*(volatile char *)fixable = 7;
	/* The write was done in the end. */
	_exit(fixable[0] == 7 ? 44 : 45);
}

CRASH raise_and_go_on(struct truth *t)
{
	(void)t;
	raise(SIGSEGV);
	kill(getpid(), SIGABRT);
	_exit(46);
}

/* Crashes, goes on recording, crashes again. */
CRASH jump_out(struct truth *t)
{
	volatile int times = 0;

	if (sigsetjmp(again, 1))
		times++;
	for (int i = 0; i < 100; i++)
		truth_put(t, 0);
	if (times < 3)
		null_write(t);
	_exit(t->value[CASE_TIMES] == 3 ? 47 : 48);
}

/* A program that recovers from faults for ever, more often than crashes are noted. */
CRASH jump_often(struct truth *t)
{
	volatile int times = 0;

	if (sigsetjmp(again, 1))
		times++;
	truth_put(t, 0);
	if (times < 30)
		null_write(t);
	_exit(t->value[CASE_TIMES] == 30 ? 49 : 50);
}

/* A child of such a program: its crashes are its own. */
CRASH fork_and_crash(struct truth *t)
{
	volatile int times = 0;
	int status;
	pid_t pid;

	if (sigsetjmp(again, 1))
		times++;
	if (times < 12)
		null_write(t);
	if (times == 13)
		_exit(52);
	pid = fork();
	if (!pid) {
		truth_box_begin(t);
		truth_put(t, truth_take(t, gettid()));
		if (tacho__on)
			truth_box_made(t);
		null_write(t);
	}
	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) && WEXITSTATUS(status) == 52 ? 53 : 54);
}

/* ------------------------------------------------------------ no room left */

/* The file may not grow: the kernel sends SIGXFSZ to who writes. */
CRASH crash_without_room(struct truth *t)
{
	struct rlimit small = {8192, 8192};

	setrlimit(RLIMIT_FSIZE, &small);
	null_write(t);
}

static void make_fifo(struct truth *t)
{
	(void)t;
	mkfifo("fifo", 0600);
}

#define FAULT (CASE_IN_FUNCTION | CASE_HAS_CALLER)

const struct crash_case crash_cases[] = {
	{"a write through a null pointer", null_write, NULL, SIGSEGV, SEGV_MAPERR,
	 FAULT | CASE_HAS_ADDRESS | CASE_MARK, NULL, 0},
	{"a write to read-only memory", write_to_read_only, NULL, SIGSEGV, SEGV_ACCERR,
	 FAULT | CASE_HAS_ADDRESS, NULL, 0},
	{"an overflow of the main stack", overflow_stack, NULL, SIGSEGV, 0, CASE_DEEP, NULL, 0},
	{"an overflow of a thread's stack", overflow_in_thread, NULL, SIGSEGV, 0, CASE_DEEP, NULL,
	 0},
	{"a crash in a thread without an alternate stack", crash_in_thread, NULL, SIGSEGV,
	 SEGV_MAPERR, CASE_HAS_CALLER | CASE_MARK, NULL, 0},
	{"an access beyond the end of a mapped file", beyond_file_end, NULL, SIGBUS, BUS_ADRERR,
	 FAULT | CASE_HAS_ADDRESS, NULL, 0},
	{"an illegal instruction", bad_instruction, NULL, SIGILL, 0, FAULT, NULL, 0},
	{"a division by zero", divide_by_zero, NULL, SIGFPE, 0, FAULT, NULL, 0},
	{"a call through a null pointer", call_nothing, NULL, SIGSEGV, SEGV_MAPERR, 0, NULL, 0},
	{"abort", call_abort, NULL, SIGABRT, 0, CASE_FIND_CALLER, NULL, 0},
	{"a signal sent by kill(2)", kill_self, NULL, SIGBUS, SI_USER, CASE_FIND_CALLER, NULL, 0},
	{"a system call that seccomp traps", forbidden_call, NULL, SIGSYS, 0, CASE_FIND_CALLER,
	 NULL, 0},
	{"free of a corrupted heap", corrupt_heap, NULL, SIGABRT, 0, CASE_FIND_CALLER, NULL, 0},
	{"a fault inside malloc of a corrupted heap", crash_in_malloc, NULL, 0, 0, 0, NULL, 0},
	{"overwritten frames", smash_frames, NULL, SIGSEGV, 0, CASE_IN_FUNCTION, NULL, 0},
	{"frames that lead in a circle", loop_frames, NULL, SIGSEGV, 0, CASE_IN_FUNCTION, NULL, 0},
	{"a lost stack pointer", lose_stack, NULL, SIGILL, 0, CASE_IN_FUNCTION, NULL, 0},
	{"six threads at once", crash_at_once, NULL, SIGSEGV, 0, CASE_OTHERS_RUN, NULL, 15},
	{"six threads one after the other", crash_in_a_row, NULL, SIGSEGV, 0, CASE_OTHERS_RUN, NULL,
	 15},
	{"twenty threads at once", crash_many, NULL, SIGSEGV, 0, CASE_OTHERS_RUN, NULL, 15},
	{"threads that crash while the program's handler ends it", crash_late, before_slow, SIGSEGV,
	 0, CASE_OTHERS_RUN, NULL, 15},
	{"an earlier SA_SIGINFO handler", null_write, before_exit, SIGSEGV, SEGV_MAPERR,
	 CASE_HAS_ADDRESS, NULL, 0},
	{"an earlier SA_SIGINFO handler and abort", call_abort, before_exit, SIGABRT, 0, 0, NULL,
	 0},
	{"an earlier plain handler that repairs the fault", write_and_go_on, before_fix, SIGSEGV,
	 SEGV_ACCERR, FAULT | CASE_HAS_ADDRESS, NULL, 0},
	{"an earlier SA_RESETHAND handler", null_write, before_reset, SIGSEGV, SEGV_MAPERR, FAULT,
	 NULL, 0},
	{"an earlier SA_RESETHAND and SA_NODEFER handler", null_write, before_plain_nodefer,
	 SIGSEGV, SEGV_MAPERR, FAULT, NULL, 0},
	{"an earlier handler that returns into abort", call_abort, before_reset, SIGABRT, 0, 0,
	 NULL, 0},
	{"an ignored signal that is raised", raise_and_go_on, before_ignore, 0, 0,
	 CASE_NO_CRASH | CASE_NO_FILE, NULL, 0},
	{"an ignored signal that is a fault", null_write, before_ignore, SIGSEGV, SEGV_MAPERR,
	 FAULT, NULL, 0},
	{"ignored SIGABRT and abort", call_abort, before_ignore, SIGABRT, 0, CASE_FIND_CALLER, NULL,
	 0},
	{"an earlier handler that jumps out", jump_out, before_jump, SIGSEGV, SEGV_MAPERR,
	 CASE_OTHERS_RUN | CASE_HAS_CALLER | CASE_AGAIN, NULL, 0},
	{"an earlier handler that jumps out again and again", jump_often, before_jump, SIGSEGV,
	 SEGV_MAPERR, CASE_OTHERS_RUN, NULL, 0},
	{"a child of a program that goes on after crashes", fork_and_crash, before_jump, SIGSEGV,
	 SEGV_MAPERR, CASE_OTHERS_RUN | CASE_CHILD | CASE_NO_FILE | CASE_HAS_CALLER, NULL, 0},
	{"a full disk", null_write, NULL, SIGSEGV, SEGV_MAPERR, FAULT | CASE_NO_FILE, "/dev/full",
	 0},
	{"a folder that is not there", null_write, NULL, SIGSEGV, SEGV_MAPERR, FAULT | CASE_NO_FILE,
	 "/nowhere/at/all/file.tacho", 0},
	{"a folder in place of the file", null_write, NULL, SIGSEGV, SEGV_MAPERR,
	 FAULT | CASE_NO_FILE, ".", 0},
	{"a limit on the size of files", crash_without_room, NULL, SIGSEGV, SEGV_MAPERR,
	 CASE_NO_FILE, NULL, 0},
	{"a FIFO that nobody reads", null_write, make_fifo, SIGSEGV, SEGV_MAPERR,
	 FAULT | CASE_NO_FILE, "fifo", 0},
};
const unsigned crash_case_count = sizeof(crash_cases) / sizeof(crash_cases[0]);
