/*
 * System calls made directly, for code that runs inside the recorded process.
 *
 * Through libc they would be wrong there: libc's wrappers set errno, are points
 * of cancellation, and may be interposed, by tacho's own hooks among others.
 * Each function returns what the kernel returns: a negative errno on failure.
 */
#ifndef TACHO_BASE_SYS_H
#define TACHO_BASE_SYS_H

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

#if defined(__clang_analyzer__)
/* It does not see what assembler stores; a call it assumes to store anything. */
long tacho__sys6(long n, long a, long b, long c, long d, long e, long f);
#elif defined(__x86_64__)
static inline long tacho__sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long tacho__sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}
#else
#error "tacho knows x86-64 and arm64"
#endif

#define TACHO__SYS(n, a, b, c, d, e, f) \
	tacho__sys6((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline int tacho__openat(int dir, const char *path, int flags, unsigned mode)
{
	return (int)TACHO__SYS(SYS_openat, dir, path, flags | O_CLOEXEC, mode, 0, 0);
}

static inline int tacho__close(int fd)
{
	return (int)TACHO__SYS(SYS_close, fd, 0, 0, 0, 0, 0);
}

static inline long tacho__read(int fd, void *buf, size_t size)
{
	return TACHO__SYS(SYS_read, fd, buf, size, 0, 0, 0);
}

static inline long tacho__write(int fd, const void *buf, size_t size)
{
	return TACHO__SYS(SYS_write, fd, buf, size, 0, 0, 0);
}

static inline long tacho__pread(int fd, void *buf, size_t size, uint64_t offset)
{
	return TACHO__SYS(SYS_pread64, fd, buf, size, offset, 0, 0);
}

/* Reads until `size` bytes, the end or an error; returns the bytes got, or the error
   when there were none. */
static inline long tacho__read_all(int fd, void *buf, size_t size)
{
	size_t got = 0;

	while (got < size) {
		long n = tacho__read(fd, (char *)buf + got, size - got);

		if (n == -4 /* EINTR */)
			continue;
		if (n <= 0)
			return got ? (long)got : n;
		got += (size_t)n;
	}
	return (long)got;
}

/* A small file, as of /proc, and a zero after it; the bytes got, or a negative errno. */
static inline long tacho__read_small(const char *path, char *to, size_t room)
{
	int fd = tacho__openat(AT_FDCWD, path, O_RDONLY, 0);
	long n = fd;

	if (fd >= 0) {
		n = tacho__read_all(fd, to, room - 1);
		tacho__close(fd);
	}
	to[n > 0 ? n : 0] = 0;
	return n;
}

static inline int tacho__ftruncate(int fd, uint64_t size)
{
	return (int)TACHO__SYS(SYS_ftruncate, fd, size, 0, 0, 0, 0);
}

static inline int tacho__fstat(int fd, struct stat *st)
{
	return (int)TACHO__SYS(SYS_fstat, fd, st, 0, 0, 0, 0);
}

static inline int tacho__unlinkat(int dir, const char *name)
{
	return (int)TACHO__SYS(SYS_unlinkat, dir, name, 0, 0, 0, 0);
}

static inline int tacho__mkdir(const char *path, unsigned mode)
{
	return (int)TACHO__SYS(SYS_mkdirat, AT_FDCWD, path, mode, 0, 0, 0);
}

/* Returns the address, or a negative errno (as a number above -4096). */
static inline intptr_t tacho__mmap(void *at, size_t size, int prot, int flags, int fd, uint64_t off)
{
	return TACHO__SYS(SYS_mmap, at, size, prot, flags, fd, off);
}

/* New zeroed memory, or NULL. */
static inline void *tacho__map_zeros(size_t size)
{
	intptr_t at =
		tacho__mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at < 0 && at > -4096 ? NULL : (void *)at;
}

static inline int tacho__munmap(void *at, size_t size)
{
	return (int)TACHO__SYS(SYS_munmap, at, size, 0, 0, 0, 0);
}

static inline int tacho__madvise(void *at, size_t size, int advice)
{
	return (int)TACHO__SYS(SYS_madvise, at, size, advice, 0, 0, 0);
}

static inline int tacho__getpid(void)
{
	return (int)TACHO__SYS(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static inline int tacho__gettid(void)
{
	return (int)TACHO__SYS(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static inline unsigned tacho__geteuid(void)
{
	return (unsigned)TACHO__SYS(SYS_geteuid, 0, 0, 0, 0, 0, 0);
}

/*
 * Keeps signal handlers of this thread out of what they must not find half done: a
 * handler may fork, jump out or be the thread's cancellation. Signals that report a
 * fault still come, because a blocked one would kill. Gives the mask of before.
 */
static inline uint64_t tacho__signals_hold(void)
{
	const uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) |
				1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) |
				1ull << (SIGABRT - 1) | 1ull << (SIGSYS - 1) |
				1ull << (SIGTRAP - 1);
	uint64_t held = ~faults, before = 0;

	(void)TACHO__SYS(SYS_rt_sigprocmask, SIG_BLOCK, &held, &before, sizeof(held), 0, 0);
	return before;
}

static inline void tacho__signals_release(uint64_t before)
{
	(void)TACHO__SYS(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof(before), 0, 0);
}

static inline void tacho__yield(void)
{
	(void)TACHO__SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

/* What getdents64(2) gives. */
struct tacho__dirent {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

#endif
