/*
 * On a fatal signal: put signal, address, registers and stack of the thread into the
 * box, write the window to the crash file, and let whatever handled the signal
 * before have it. The hooks have a handler of their own, which writes no file
 * (hooks/crashes.c), and share what makes the record and what ends the process.
 *
 * Nothing here allocates, locks or uses stdio. What may fault itself (unwinding a
 * damaged stack, reading a box whose pointers were overwritten) runs inside a
 * guard: a second fault in the same thread jumps back out of it. The first thread
 * that crashes writes the file; others that crash meanwhile note themselves in the
 * box and wait for it, at most some seconds, because the process ends with the
 * first that goes on.
 */
#include "core/crash.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "core/recorder.h"
#include "core/snapshot.h"
#include "core/stack.h"
#include "core/testpoint.h"
#include "core/weak.h"
#include "format/trace.h"
#include "tacho.h"

#if !defined(__GLIBC__) /* there it is a macro */
TACHO__WEAK(sigsetjmp);
#endif

#define ALT_STACK_SIZE 65536u
#define WAIT_MS 5000
#define PATH_ROOM 512u

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

static struct sigaction previous[SIGNALS];
static char crash_path[PATH_ROOM];
static int installed;
static int install_error;
static int hooked; /* the hooks note crashes */
const uint32_t *const *tacho__crash_said;
static pthread_key_t stack_key;
static int stack_key_ready;

/* Threads in the handler. A thread that faults in there finds itself here. */
static struct crash_context {
	int tid;
	volatile int guarded;
	sigjmp_buf back;
	struct tacho_box_crash *record;
} contexts[TACHO_CRASHES];

/*
 * The file is written by the first crash. Once it is there, the process is most likely
 * about to end, and a thread that crashes in that moment must not truncate it. If
 * the process still lives after REWRITE_NS, or the thread that wrote it crashes again,
 * the program's own handler went on after the crash, and the next one is worth a
 * new file.
 */
#define REWRITE_NS 1000000000ull
static int file_owner;	   /* tid of the thread that writes the file; 0 none yet */
static uint64_t file_done; /* when it was finished, ns; 0: not yet */
static uint32_t crashes_seen;
static struct tacho__snapshot_room room;

static int box_ready(void)
{
	return tacho__rec &&
	       __atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE) == TACHO__PHASE_READY;
}

static struct crash_context *context_of(int tid)
{
	for (unsigned i = 0; i < TACHO_CRASHES; i++)
		if (tacho__load(&contexts[i].tid) == tid)
			return &contexts[i];
	return NULL;
}

static struct crash_context *context_take(int tid)
{
	for (unsigned i = 0; i < TACHO_CRASHES; i++) {
		int none = 0;

		if (__atomic_compare_exchange_n(&contexts[i].tid, &none, tid, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return &contexts[i];
	}
	return NULL;
}

static uint64_t take_registers(struct tacho_box_crash *c, const ucontext_t *uc)
{
#if defined(__x86_64__)
	c->arch = EM_X86_64;
	for (uint32_t i = 0; i < NGREG && i < TACHO_CRASH_REGS; i++)
		c->reg[i] = (uint64_t)uc->uc_mcontext.gregs[i];
	c->regs = NGREG;
	return (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
#else
	c->arch = EM_AARCH64;
	for (uint32_t i = 0; i < 31; i++)
		c->reg[i] = uc->uc_mcontext.regs[i];
	c->reg[31] = uc->uc_mcontext.sp;
	c->reg[32] = uc->uc_mcontext.pc;
	c->reg[33] = uc->uc_mcontext.pstate;
	c->regs = 34;
	return uc->uc_mcontext.pc;
#endif
}

/*
 * The stack at the fault: the unwinder starts in this handler, so the frames above
 * the one that faulted are left out. If it does not get there, the program counter
 * alone is what is known.
 */
static uint32_t take_stack(struct crash_context *me, struct tacho_box_crash *c)
{
	uint64_t frames[TACHO_CRASH_FRAMES];
	uint32_t n, at;
	int more;

	if (sigsetjmp(me->back, 0)) {
		me->guarded = 0;
		return 0;
	}
	me->guarded = 1;
	n = tacho__stack_take(frames, TACHO_CRASH_FRAMES, &more);
	me->guarded = 0;
	for (at = 0; at < n && frames[at] != c->frame[0];)
		at++;
	memcpy(c->frame, frames + at, (n - at) * sizeof(frames[0]));
	return n - at;
}

/* Read through the kernel: what is wrong with the program may be wrong there. */
static void take_said(void)
{
	char *said = tacho__rec->super->aborted;
	const uint32_t *at = tacho__crash_said ? *tacho__crash_said : NULL;
	struct iovec to = {said, TACHO_ABORTED_MAX - 1}, from = {NULL, to.iov_len};

	if (!at)
		return;
	from.iov_base = (void *)(at + 1);
	if (TACHO__SYS(SYS_process_vm_readv, tacho__getpid(), &to, 1, &from, 1, 0) <= 0)
		return;
	for (uint32_t i = 0; said[i]; i++)
		if (said[i] == '\n')
			said[i] = 0;
}

struct tacho_box_crash *tacho__crash_begin(int sig, const siginfo_t *info, const void *context)
{
	uint32_t number = __atomic_fetch_add(&crashes_seen, 1, __ATOMIC_RELAXED);
	struct tacho_box_crash *c;

	if (!box_ready() || number >= TACHO_CRASHES)
		return NULL;
	c = &tacho__rec->crashes[number];
	c->tid = (uint32_t)tacho__gettid();
	c->signal = sig;
	c->code = info->si_code;
	c->address = (uint64_t)(uintptr_t)info->si_addr;
	c->ticks = tacho__ticks();
	TACHO__SYS(SYS_prctl, 16 /* PR_GET_NAME */, c->thread_name, 0, 0, 0, 0);
	if (sig == SIGABRT)
		take_said();
	__atomic_store_n(&c->state, TACHO_CRASH_BEGUN, __ATOMIC_RELEASE);
	TACHO_TESTPOINT("crash-begun");
	c->frame[0] = take_registers(c, context);
	c->frames = 1;
	c->flags = TACHO_CRASH_UNWIND_FAILED;
	__atomic_store_n(&c->state, TACHO_CRASH_REGS_DONE, __ATOMIC_RELEASE);
	TACHO_TESTPOINT("crash-registers");
	return c;
}

void tacho__crash_end(struct tacho_box_crash *c, uint32_t frames, uint32_t interrupted)
{
	if (frames) {
		c->frames = frames;
		c->flags = interrupted << 8;
	}
	__atomic_store_n(&c->state, TACHO_CRASH_STACK_DONE, __ATOMIC_RELEASE);
	TACHO_TESTPOINT("crash-stack");
}

static void note_crash(struct crash_context *me, int sig, const siginfo_t *info, const void *uc)
{
	struct tacho_box_crash *c = tacho__crash_begin(sig, info, uc);

	if (c)
		tacho__crash_end(c, take_stack(me, c), 0);
}

/* %p becomes the process id. */
static void expand_path(char *to, size_t size)
{
	struct tacho__text t;

	tacho__text_init(&t, to, size);
	for (const char *p = crash_path; *p; p++) {
		if (*p == '%' && p[1] == 'p') {
			tacho__text_put_u64(&t, (uint64_t)tacho__getpid());
			p++;
		} else {
			p += *p == '%' && p[1] == '%';
			tacho__text_put_n(&t, p, 1);
		}
	}
}

/*
 * The folder may be one in which others can make files, to be given the window of somebody else's
 * process: one that is there must be ours, under one name, and nobody else's to read. Nobody may be
 * reading what turns out to be a FIFO.
 */
static int open_file(const char *path)
{
	const int how = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	int fd = tacho__openat(AT_FDCWD, path, how | O_CREAT | O_EXCL, 0600);
	struct stat st;

	if (fd != -EEXIST)
		return fd;
	fd = tacho__openat(AT_FDCWD, path, how, 0);
	if (fd < 0)
		return fd;
	if (!tacho__fstat(fd, &st) && st.st_uid == tacho__geteuid() &&
	    (!S_ISREG(st.st_mode) ||
	     (st.st_nlink == 1 && !(st.st_mode & 077) && !tacho__ftruncate(fd, 0))))
		return fd;
	tacho__close(fd);
	return -EPERM;
}

static void write_file(struct crash_context *me)
{
	char path[PATH_ROOM + 16];
	int fd;

	if (!box_ready() || tacho__load(&crashes_seen) > TACHO_CRASHES)
		return;
	expand_path(path, sizeof(path));
	fd = open_file(path);
	if (fd < 0)
		return;
	TACHO_TESTPOINT("crash-opened");
	if (!sigsetjmp(me->back, 0)) {
		me->guarded = 1;
		tacho__snapshot_write(fd, TACHO_TAKEN_CRASH, &room);
	}
	me->guarded = 0;
	tacho__close(fd);
	TACHO_TESTPOINT("crash-written");
}

static void wait_for_file(void)
{
	static const struct timespec ms = {0, 1000000};

	for (int i = 0; i < WAIT_MS && tacho__load(&file_owner) &&
			!__atomic_load_n(&file_done, __ATOMIC_ACQUIRE);
	     i++)
		TACHO__SYS(SYS_nanosleep, &ms, 0, 0, 0, 0, 0);
}

/* One thread writes the file, the others wait until it is there. */
static void write_or_wait(struct crash_context *me)
{
	uint64_t done = __atomic_load_n(&file_done, __ATOMIC_ACQUIRE);
	int owner = tacho__load(&file_owner);

	if (done && owner != me->tid && tacho__clock_ns(CLOCK_MONOTONIC) - done < REWRITE_NS)
		return;
	if ((!owner || done) && __atomic_compare_exchange_n(&file_owner, &owner, me->tid, 0,
							    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		tacho__store(&file_done, 0);
		write_file(me);
		__atomic_store_n(&file_done, tacho__clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
		return;
	}
	wait_for_file();
}

/*
 * Whether the fault comes again as soon as the handler returns. What was sent or raised does not,
 * nor does the news of a memory error that this thread did not run into, nor a trap, nor that
 * the frame of some signal could not be stored.
 */
static int comes_again(int sig, const siginfo_t *info, const ucontext_t *uc)
{
	if (info->si_code <= 0)
		return 0;
	switch (sig) {
	case SIGSEGV:
#if defined(__x86_64__)
		return info->si_code != SI_KERNEL ||
		       uc->uc_mcontext.gregs[REG_TRAPNO] == 13 /* general protection */;
#else
		(void)uc;
		return info->si_code != SI_KERNEL && info->si_code != 8 /* SEGV_MTEAERR */;
#endif
	case SIGBUS:
		return info->si_code != BUS_MCEERR_AO;
	default:
		return sig == SIGILL || sig == SIGFPE;
	}
}

void tacho__crash_default(int sig, const siginfo_t *info, void *context)
{
	const uint64_t plain[4] = {0}; /* as the kernel has it: SIG_DFL, flags, -, mask */
	uint64_t set = 1ull << (sig - 1);
	int pid = tacho__getpid(), tid = tacho__gettid();

	/* Not by libc's function, which the hooks have made theirs. */
	if (TACHO__SYS(SYS_rt_sigaction, sig, plain, NULL, sizeof(set), 0, 0)) {
		/* A fault that comes again while it is blocked is as fatal. */
		sigaddset(&((ucontext_t *)context)->uc_sigmask, sig);
		return;
	}
	if (comes_again(sig, info, context))
		return;
	/* It waits until the handler has returned, so that a core has the registers of the
	   crash, and it says the same. */
	TACHO__SYS(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, sizeof(set), 0, 0);
	if ((info->si_code == SI_TKILL && info->si_pid == pid) ||
	    TACHO__SYS(SYS_rt_tgsigqueueinfo, pid, tid, sig, info, 0, 0))
		TACHO__SYS(SYS_tgkill, pid, tid, sig, 0, 0, 0);
}

static struct sigaction *previous_of(int sig)
{
	for (unsigned i = 0; i < SIGNALS; i++)
		if (signals[i] == sig)
			return &previous[i];
	return NULL;
}

static int is_ignored(const struct sigaction *old)
{
	return !(old->sa_flags & SA_SIGINFO) && old->sa_handler == SIG_IGN;
}

/* Does what would have happened without us. */
static void pass_on(int sig, siginfo_t *info, void *uc)
{
	struct sigaction *old = previous_of(sig);
	struct sigaction now;
	sigset_t mask, before;

	if (!old || (!(old->sa_flags & SA_SIGINFO) && old->sa_handler == SIG_DFL)) {
		tacho__crash_default(sig, info, uc);
		return;
	}
	if (is_ignored(old)) {
		/* The kernel does not let faults be ignored. */
		if (info->si_code > 0)
			tacho__crash_default(sig, info, uc);
		return;
	}
	now = *old;
	if (old->sa_flags & (int)SA_RESETHAND)
		old->sa_handler = SIG_DFL, old->sa_flags = 0;
	mask = now.sa_mask;
	for (int s = 1; s < NSIG; s++)
		if (sigismember(&((ucontext_t *)uc)->uc_sigmask, s) == 1)
			sigaddset(&mask, s);
	if (!(now.sa_flags & SA_NODEFER))
		sigaddset(&mask, sig);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	if (now.sa_flags & SA_SIGINFO)
		now.sa_sigaction(sig, info, uc);
	else
		now.sa_handler(sig);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A signal that was sent to a program that ignores it is no crash. abort(3), which goes on to
   its end nevertheless, is one. */
static int is_nothing(int sig, const siginfo_t *info)
{
	const struct sigaction *old = previous_of(sig);

	return old && is_ignored(old) && info->si_code <= 0 &&
	       !(sig == SIGABRT && info->si_code == SI_TKILL && info->si_pid == tacho__getpid());
}

static void on_crash(int sig, siginfo_t *info, void *uc)
{
	int tid = tacho__gettid();
	struct crash_context *me = context_of(tid);

	if (me) { /* a fault in this handler */
		if (me->guarded)
			siglongjmp(me->back, 1);
		tacho__crash_default(sig, info, uc);
		return;
	}
	if (is_nothing(sig, info))
		return;
	me = context_take(tid);
	if (me) {
		note_crash(me, sig, info, uc);
		write_or_wait(me);
		me->guarded = 0;
		/* Before passing on: the old handler may jump out or fault again. */
		__atomic_store_n(&me->tid, 0, __ATOMIC_RELEASE);
	} else {
		/* Too many at once; this one would end the process before the file is there. */
		wait_for_file();
	}
	pass_on(sig, info, uc);
}

static void describe(void)
{
	struct tacho_box_source *s = &tacho__rec->super->sources[TACHO_SOURCE_CRASH_HANDLER];

	if (installed || hooked) {
		s->state = TACHO_SOURCE_ON;
		s->error = 0;
	} else if (install_error) {
		s->state = TACHO_SOURCE_REFUSED;
		s->error = -install_error;
	}
}

void tacho__crash_describe(void)
{
	/* Of this process, which may be a child of one that has survived crashes, and this box. */
	crashes_seen = 0;
	file_owner = 0;
	file_done = 0;
	for (unsigned i = 0; i < TACHO_CRASHES; i++)
		contexts[i].tid = 0;
	describe();
}

void tacho__crash_survived(void)
{
	for (uint32_t i = 0; i < TACHO_CRASHES; i++)
		if (tacho__load(&tacho__rec->crashes[i].state) != TACHO_CRASH_FREE)
			tacho__rec->crashes[i].flags |= TACHO_CRASH_SURVIVED;
}

void tacho__crash_hooked(int on)
{
	hooked = on;
	if (box_ready())
		describe();
}

static int set_path(const char *path)
{
	struct tacho__text t;

	tacho__text_init(&t, crash_path, sizeof(crash_path));
	if (path[0] != '/') {
		char cwd[PATH_ROOM];

		if (!getcwd(cwd, sizeof(cwd)))
			return -errno;
		tacho__text_put(&t, cwd);
		tacho__text_put(&t, "/");
	}
	tacho__text_put(&t, path);
	return t.cut ? -ENAMETOOLONG : 0;
}

static int install(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_crash;
	/* Faults in the handler must reach it again: see the guards. */
	sa.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	sigfillset(&sa.sa_mask);
	for (unsigned i = 0; i < 4; i++)
		sigdelset(&sa.sa_mask, signals[i]);
	for (unsigned i = 0; i < SIGNALS; i++) {
		struct sigaction old;

		if (sigaction(signals[i], NULL, &old))
			return -errno;
		/* System calls that such a signal interrupts go on as they did without us. */
		sa.sa_flags &= ~SA_RESTART;
		if (old.sa_flags & SA_RESTART || is_ignored(&old))
			sa.sa_flags |= SA_RESTART;
		if (sigaction(signals[i], &sa, NULL))
			return -errno;
		if (!(old.sa_flags & SA_SIGINFO) || old.sa_sigaction != on_crash)
			previous[i] = old;
	}
	return 0;
}

int tacho_crash_handler(const char *path)
{
	/* A program with more rights than its caller writes no file: the caller could choose
	   which, with the folder that it runs in or a link in the way. */
	int err = getauxval(AT_SECURE) ? -EPERM : set_path(path);

	if (!err) {
		tacho_stacks_prepare();
		tacho_crash_stack();
		err = install();
	}
	installed = !err;
	install_error = err;
	if (box_ready())
		describe();
	return err;
}

/* ----------------------------------------------------- alternate stacks */

static void free_stack(void *at)
{
	stack_t off, old;

	memset(&off, 0, sizeof(off));
	off.ss_flags = SS_DISABLE;
	/* Only if it is still ours. */
	if (!sigaltstack(NULL, &old) && old.ss_sp == at)
		sigaltstack(&off, NULL);
	munmap(at, ALT_STACK_SIZE);
}

int tacho_crash_stack(void)
{
	stack_t ss, old;

	if (sigaltstack(NULL, &old))
		return -errno;
	if (!(old.ss_flags & SS_DISABLE))
		return 0;
	if (!stack_key_ready && !pthread_key_create(&stack_key, free_stack))
		stack_key_ready = 1;
	memset(&ss, 0, sizeof(ss));
	ss.ss_size = ALT_STACK_SIZE;
	ss.ss_sp = mmap(NULL, ALT_STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	if (ss.ss_sp == MAP_FAILED)
		return -errno;
	if (sigaltstack(&ss, NULL)) {
		int err = -errno;

		munmap(ss.ss_sp, ALT_STACK_SIZE);
		return err;
	}
	if (stack_key_ready)
		pthread_setspecific(stack_key, ss.ss_sp);
	return 0;
}
