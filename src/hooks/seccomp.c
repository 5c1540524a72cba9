/*
 * Programs that restrict their own system calls (seccomp).
 *
 * A filter that ends the program at calls which it does not make itself would end it at ours. So
 * each filter is tried out, before the kernel gets it, on every call that recording may make. If
 * one of these is not simply made or refused with an error, recording ends here, with the
 * reason in the box, and the program goes on as it does without us.
 *
 * A filter that is there when a program begins is left to whoever made it: programs that begin
 * need nearly all that recording does.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "base/sys.h"
#include "core/control.h"
#include "hooks/calls.h"
#include "hooks/crashes.h"
#include "hooks/hooks.h"
#include "hooks/samples.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* A call, with those of its arguments that filters look at. */
struct ours {
	int number;
	uint64_t args[4];
};

static const struct ours calls[] = {
	{SYS_clock_gettime, {CLOCK_MONOTONIC}},
	{SYS_clock_gettime, {(uint64_t)CLOCK_THREAD_CPUTIME_ID}},
	{SYS_close, {3}},
	{SYS_fallocate, {3}},
	{SYS_fcntl, {3, F_GETFL}},
	{SYS_flock, {3}},
	{SYS_fstat, {3}},
	{SYS_fstatfs, {3}},
	{SYS_ftruncate, {3}},
	{SYS_futex, {0, 1 /* FUTEX_WAKE */}},
	{SYS_getdents64, {3}},
	{SYS_geteuid, {0}},
	{SYS_getpid, {0}},
	{SYS_getrusage, {1 /* RUSAGE_THREAD */}},
	{SYS_getsockopt, {3, SOL_SOCKET, SO_TYPE}},
	{SYS_gettid, {0}},
	{SYS_kill, {0}},
	{SYS_lseek, {3}},
	{SYS_madvise, {0, 4096, MADV_DONTFORK}},
	{SYS_madvise, {0, 4096, 23 /* MADV_POPULATE_WRITE */}},
	{SYS_mkdirat, {(uint64_t)AT_FDCWD}},
	{SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS}},
	{SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE}},
	{SYS_munmap, {0, 4096}},
	{SYS_nanosleep, {0}},
	{SYS_newfstatat, {(uint64_t)AT_FDCWD}},
	{SYS_openat, {(uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC}},
	{SYS_openat, {(uint64_t)AT_FDCWD, 0, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC}},
	{SYS_openat, {3, 0, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600}},
	{SYS_prctl, {16 /* PR_GET_NAME */}},
	{SYS_pread64, {3}},
	{SYS_prlimit64, {0, 1 /* RLIMIT_FSIZE */}},
	{SYS_process_vm_readv, {0}},
	{SYS_read, {3}},
	{SYS_readlinkat, {(uint64_t)AT_FDCWD}},
	{SYS_rt_sigaction, {64}},
	{SYS_rt_sigprocmask, {SIG_BLOCK}},
	{SYS_rt_sigprocmask, {SIG_SETMASK}},
	{SYS_rt_sigreturn, {0}},
	{SYS_sched_yield, {0}},
	{SYS_sigaltstack, {0}},
	{SYS_statfs, {0}},
	{SYS_sysinfo, {0}},
	{SYS_tgkill, {0}},
	{SYS_timer_create, {(uint64_t)CLOCK_THREAD_CPUTIME_ID}},
	{SYS_timer_delete, {0}},
	{SYS_timer_settime, {0}},
	{SYS_unlinkat, {(uint64_t)AT_FDCWD}},
	{SYS_write, {3}},
};

/* Of these only who notes crashes makes use, and needs them all. */
static const struct ours crash_calls[] = {
	{SYS_rt_sigaction, {SIGSEGV}},
	{SYS_rt_tgsigqueueinfo, {0}},
};
/* Of these only who counts connections that wait. */
static const struct ours queue_calls[] = {
	{SYS_getsockopt, {3, IPPROTO_TCP, TCP_INFO}},
	{SYS_ppoll, {0, 1}},
};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ------------------------------------------------------------ what a filter says */

static uint32_t operate(uint16_t operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default:
		return -a; /* BPF_NEG */
	}
}

static int holds(uint16_t condition, uint32_t a, uint32_t b)
{
	switch (condition) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default:
		return (a & b) != 0; /* BPF_JSET */
	}
}

static uint32_t word_of(const struct seccomp_data *data, uint32_t at)
{
	uint32_t word = 0;

	if (at <= sizeof(*data) - sizeof(word))
		memcpy(&word, (const char *)data + at, sizeof(word));
	return word;
}

/* What the filter of `count` instructions returns. One that the kernel would not take may return
   anything. Jumps go forward alone, so it ends. */
static uint32_t run(const struct sock_filter *code, uint32_t count, const struct seccomp_data *data)
{
	uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = {0};

	for (uint64_t at = 0; at < count; at++) {
		const struct sock_filter *i = &code[at];
		uint32_t *cell = &memory[i->k % BPF_MEMWORDS];
		uint32_t b = BPF_SRC(i->code) == BPF_X ? x : i->k;
		uint32_t *to = BPF_CLASS(i->code) == BPF_LD ? &a : &x;

		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
		case BPF_LDX:
			*to = BPF_MODE(i->code) == BPF_ABS   ? word_of(data, i->k)
			      : BPF_MODE(i->code) == BPF_MEM ? *cell
			      : BPF_MODE(i->code) == BPF_LEN ? (uint32_t)sizeof(*data)
							     : i->k;
			break;
		case BPF_ST:
			*cell = a;
			break;
		case BPF_STX:
			*cell = x;
			break;
		case BPF_ALU:
			a = operate(BPF_OP(i->code), a, b);
			break;
		case BPF_JMP:
			if (BPF_OP(i->code) == BPF_JA)
				at += i->k;
			else
				at += holds(BPF_OP(i->code), a, b) ? i->jt : i->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(i->code) == BPF_A ? a : i->k;
		default: /* BPF_MISC */
			*(BPF_MISCOP(i->code) == BPF_TAX ? &x : &a) =
				BPF_MISCOP(i->code) == BPF_TAX ? a : x;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* Whether a call may fail: not those that lead out of a handler, or change what is blocked. */
static int may_fail(int number)
{
	return number != SYS_rt_sigreturn && number != SYS_rt_sigprocmask;
}

static int lets_us(const struct sock_filter *code, uint32_t count, const struct ours *list,
		   size_t entries)
{
	for (size_t i = 0; i < entries; i++) {
		struct seccomp_data data = {.nr = list[i].number, .arch = ARCHITECTURE};

		memcpy(data.args, list[i].args, sizeof(list[i].args));
		switch (run(code, count, &data) & SECCOMP_RET_ACTION_FULL) {
		case SECCOMP_RET_ALLOW:
		case SECCOMP_RET_LOG:
			break;
		case SECCOMP_RET_USER_NOTIF: /* somebody is asked, who answers with an error at worst */
		case SECCOMP_RET_ERRNO:
			if (list == calls && may_fail(list[i].number))
				break;
			return 0;
		default:
			return 0;
		}
	}
	return 1;
}

/* ------------------------------------------------------------- before the kernel */

/* Copies what may not be there; 0 or a negative errno. */
static long copy(void *to, const void *from, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)(uintptr_t)from, size};
	long n = TACHO__SYS(SYS_process_vm_readv, tacho__getpid(), &here, 1, &there, 1, 0);

	return n < 0 ? n : (size_t)n == size ? 0 : -EFAULT;
}

/* Whether recording can go on under the filter; also when it is none, as the kernel will say. What
   notes crashes ends here if it can not. */
static int can_go_on(const struct sock_fprog *filter)
{
	struct sock_fprog f;
	size_t size = BPF_MAXINSNS * sizeof(*f.filter);
	long err = copy(&f, filter, sizeof(f));
	intptr_t at;
	int result;

	if (err || !f.len || f.len > BPF_MAXINSNS)
		return !err || err == -EFAULT;
	at = tacho__mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at < 0 && at > -4096)
		return 0;
	err = copy((void *)at, f.filter, f.len * sizeof(*f.filter));
	result = err ? err == -EFAULT
		     : lets_us((const struct sock_filter *)at, f.len, calls, COUNT(calls));
	if (!err &&
	    !lets_us((const struct sock_filter *)at, f.len, crash_calls, COUNT(crash_calls)))
		tacho__crashes_end();
	if (!err &&
	    !lets_us((const struct sock_filter *)at, f.len, queue_calls, COUNT(queue_calls)))
		tacho__clients_ask_nothing();
	tacho__munmap((void *)at, size);
	return result;
}

void tacho__restricts(unsigned long mode, const void *filter)
{
	int saved = errno;
	int ends = mode == SECCOMP_MODE_STRICT ||
		   (mode == SECCOMP_MODE_FILTER && filter && !can_go_on(filter));

	if (ends)
		tacho__exec_end();
	if (ends && tacho__rec &&
	    !tacho__give_up(-EPERM, "The program forbids itself some system calls that recording "
				    "needs (seccomp): nothing is recorded from there on.")) {
		tacho__samples_end();
		tacho__crashes_end();
	}
	errno = saved;
}
