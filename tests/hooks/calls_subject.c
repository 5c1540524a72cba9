/*
 * A program with an event loop that knows nothing of tacho and makes blocking calls. For
 * each it prints
 *
 *   call NAME ns NS number N path P at ADDRESS
 *
 * with the time that it measured itself, the descriptor or process or -1, the path or "-",
 * and the function that made the call.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls_subject.h"

#define MS 30 /* what lasts */

ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
int __open_2(const char *path, int flags);

static char folder[200];
static int loop = -1;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void need(int good, const char *what)
{
	if (good)
		return;
	printf("failed %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* One turn of the loop: from now on the thread is that of one. */
void turn(void)
{
	struct epoll_event event;

	if (loop < 0)
		loop = epoll_create1(EPOLL_CLOEXEC);
	need(epoll_wait(loop, &event, 1, 0) == 0, "epoll_wait");
}

void done(const char *name, uint64_t since, long number, const char *path, void *at)
{
	printf("call %s ns %llu number %ld path %s at %p\n", name,
	       (unsigned long long)(now_ns() - since), number, path ? path : "-", at);
}

const char *in_folder(const char *name)
{
	static char path[4][256];
	static int next;
	char *p = path[next++ % 4];

	snprintf(p, 256, "%s/%s", folder, name);
	return p;
}

/* ------------------------------------------- somebody who lets it go on */

static pid_t subject;

/* Until the first thread of the program waits, as it does in the call that shall last, and then
   for as long as that: whatever else the machine has to do. */
static void let_it_wait(void)
{
	struct timespec t = {0, MS * 1000000};
	char path[40], text[512];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", subject, subject);
	do {
		usleep(200);
		fd = open(path, O_RDONLY);
		n = read(fd, text, sizeof(text) - 1);
		need(n > 0, path);
		text[n] = 0;
		close(fd);
		state = strrchr(text, ')');
	} while (!state || strncmp(state, ") S", 3) != 0);
	nanosleep(&t, NULL);
}

struct later {
	pthread_t thread;
	int fd;
	const char *path; /* to open */
	int flags;
	int drain; /* read instead of write */
};

static void *later_thread(void *arg)
{
	struct later *l = arg;
	char buf[65536] = "x";
	ssize_t n;

	let_it_wait();
	if (l->path)
		l->fd = open(l->path, l->flags);
	else if (l->drain)
		while ((n = read(l->fd, buf, sizeof(buf))) == (ssize_t)sizeof(buf))
			;
	else
		n = write(l->fd, buf, 1);
	return NULL;
}

static void later(struct later *l)
{
	need(!pthread_create(&l->thread, NULL, later_thread, l), "pthread_create");
}

static void end_later(struct later *l)
{
	pthread_join(l->thread, NULL);
	if (l->path)
		close(l->fd);
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (!pid) {
		let_it_wait();
		_exit(3);
	}
	return pid;
}

/* --------------------------------------------------- reads and writes */

/* A function each, whose address the stack must show. */
#define READER(name, call)                                                          \
	static __attribute__((noinline)) ssize_t slow_##name(int fd)                \
	{                                                                           \
		static char buf[16];                                                \
		static struct iovec part = {buf, sizeof(buf)};                      \
		static struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1}; \
		uint64_t since = now_ns();                                          \
		ssize_t n = call;                                                   \
                                                                                    \
		done(#name, since, fd, NULL, slow_##name);                          \
		(void)message;                                                      \
		return n;                                                           \
	}
READER(read, read(fd, buf, sizeof(buf)))
READER(readv, readv(fd, &part, 1))
READER(__read_chk, __read_chk(fd, buf, sizeof(buf), sizeof(buf)))
READER(recv, recv(fd, buf, sizeof(buf), 0))
READER(recvfrom, recvfrom(fd, buf, sizeof(buf), 0, NULL, NULL))
READER(recvmsg, recvmsg(fd, &message, 0))
READER(__recv_chk, __recv_chk(fd, buf, sizeof(buf), sizeof(buf), 0))

static void read_from(int fd[2], ssize_t (*call)(int))
{
	struct later l = {.fd = fd[1]};

	later(&l);
	need(call(fd[0]) == 1, "a read");
	end_later(&l);
	close(fd[0]);
	close(fd[1]);
}

static __attribute__((noinline)) void slow_write(void)
{
	static char buf[1 << 20];
	int fd[2];
	struct later l = {.drain = 1};
	uint64_t since;

	need(!pipe(fd), "pipe");
	l.fd = fd[0];
	later(&l);
	since = now_ns();
	need(write(fd[1], buf, sizeof(buf)) == sizeof(buf), "write");
	done("write", since, fd[1], NULL, slow_write);
	close(fd[1]);
	end_later(&l);
	close(fd[0]);
}

static void udp_pair(int fd[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);

	fd[0] = socket(AF_INET, SOCK_DGRAM, 0);
	fd[1] = socket(AF_INET, SOCK_DGRAM, 0);
	need(!bind(fd[0], (void *)&a, size) && !getsockname(fd[0], (void *)&a, &size) &&
		     !connect(fd[1], (void *)&a, size),
	     "udp");
}

static __attribute__((noinline)) int slow_accept(int listener)
{
	uint64_t since = now_ns();
	int fd = accept(listener, NULL, NULL);

	done("accept", since, listener, NULL, slow_accept);
	return fd;
}

static void *connector(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	let_it_wait();
	need(!connect(fd, arg, sizeof(struct sockaddr_in)), "connect");
	return (void *)(intptr_t)fd;
}

static void accepts(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int fd[2], listener = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;
	void *other;

	need(!bind(listener, (void *)&a, size) && !listen(listener, 1) &&
		     !getsockname(listener, (void *)&a, &size),
	     "tcp");
	pthread_create(&thread, NULL, connector, &a);
	fd[0] = slow_accept(listener);
	pthread_join(thread, &other);
	fd[1] = (int)(intptr_t)other;
	read_from(fd, slow_recv);
	close(listener);
}

/* On a UNIX socket whose queue is full. */
static __attribute__((noinline)) void slow_connect(int fd, const struct sockaddr_un *to)
{
	uint64_t since = now_ns();

	need(!connect(fd, (const void *)to, sizeof(*to)), "connect");
	done("connect", since, fd, NULL, slow_connect);
}

static void *acceptor(void *arg)
{
	int fd = *(int *)arg;

	let_it_wait();
	close(accept(fd, NULL, NULL));
	close(accept(fd, NULL, NULL));
	return NULL;
}

static void connects(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd[2];
	pthread_t thread;

	snprintf(a.sun_path, sizeof(a.sun_path), "%.90s/socket", folder);
	need(!bind(listener, (void *)&a, sizeof(a)) && !listen(listener, 0), "listen");
	for (int i = 0; i < 2; i++)
		fd[i] = socket(AF_UNIX, SOCK_STREAM, 0);
	need(!connect(fd[0], (void *)&a, sizeof(a)), "connect");
	pthread_create(&thread, NULL, acceptor, &listener);
	slow_connect(fd[1], &a);
	pthread_join(thread, NULL);
	close(fd[0]);
	close(fd[1]);
	close(listener);
}

/* ------------------------------------------------------- files and locks */

#define OPENER(name, call, other)                                \
	static __attribute__((noinline)) void slow_##name(void)  \
	{                                                        \
		const char *path = in_folder(#name);             \
		struct later l = {.path = path, .flags = other}; \
		uint64_t since;                                  \
		int fd;                                          \
                                                                 \
		need(!mkfifo(path, 0600), "mkfifo");             \
		later(&l);                                       \
		since = now_ns();                                \
		fd = call;                                       \
		done(#name, since, fd, path, slow_##name);       \
		end_later(&l);                                   \
		close(fd);                                       \
	}
OPENER(open, open(path, O_RDONLY), O_WRONLY)
OPENER(open64, open64(path, O_RDONLY), O_WRONLY)
OPENER(openat, openat(AT_FDCWD, path, O_RDONLY), O_WRONLY)
OPENER(creat, creat(path, 0600), O_RDONLY)
OPENER(__open_2, __open_2(path, O_RDONLY), O_WRONLY)

static void hold_lock(int (*lock)(int), const char *path, int go)
{
	int fd = open(path, O_RDWR);

	need(!lock(fd), "lock");
	need(write(go, "x", 1) == 1, "write");
	let_it_wait();
	_exit(0);
}

static int flock_it(int fd)
{
	return flock(fd, LOCK_EX);
}

static int fcntl_it(int fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_SETLKW, &l);
}

static int lockf_it(int fd)
{
	return lockf(fd, F_LOCK, 0);
}

static void slow_lock(const char *name, int (*lock)(int))
{
	const char *path = in_folder(name);
	int fd = open(path, O_RDWR | O_CREAT, 0600), go[2];
	uint64_t since;
	char c;
	pid_t pid;

	need(fd >= 0 && !pipe(go), "open");
	pid = fork();
	if (!pid)
		hold_lock(lock, path, go[1]);
	need(read(go[0], &c, 1) == 1, "read");
	since = now_ns();
	need(!lock(fd), name);
	done(name, since, fd, path, lock);
	waitpid(pid, NULL, 0);
	close(fd);
	close(go[0]);
	close(go[1]);
}

/* ------------------------------------------------------ time, processes */

#define WAITER(name, call)                                           \
	static __attribute__((noinline)) void slow_##name(pid_t pid) \
	{                                                            \
		static struct timespec t = {0, MS * 1000000};        \
		static siginfo_t info;                               \
		static int status;                                   \
		uint64_t since = now_ns();                           \
		int bad = (int)(call);                               \
                                                                     \
		done(#name, since, pid, NULL, slow_##name);          \
		need(bad >= 0 || pid > 0, #name);                    \
		(void)t;                                             \
		(void)info;                                          \
		(void)status;                                        \
	}
WAITER(nanosleep, nanosleep(&t, NULL))
WAITER(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL))
WAITER(usleep, usleep(MS * 1000))
WAITER(sleep, sleep(1))
WAITER(wait, wait(&status))
WAITER(waitpid, waitpid(pid, &status, 0))
WAITER(wait4, wait4(pid, &status, 0, NULL))
WAITER(waitid, waitid(P_PID, (id_t)pid, &info, WEXITED))

static __attribute__((noinline)) void slow_system(void)
{
	uint64_t since = now_ns();
	int status = system("sleep 0.03; exit 5");

	done("system", since, -1, "sleep", slow_system);
	need(WEXITSTATUS(status) == 5, "system");
}

static __attribute__((noinline)) void slow_pclose(void)
{
	FILE *f = popen("sleep 0.3; exit 6", "r");
	uint64_t since = now_ns();
	int status = pclose(f);

	done("pclose", since, -1, NULL, slow_pclose);
	need(WEXITSTATUS(status) == 6, "pclose");
}

/* Sleeps on when the main thread does. */
static void *outlasts(void *tid)
{
	struct timespec t = {0, MS * 1000000};
	char path[64], stat[64] = "";

	__atomic_store_n((long *)tid, (long)syscall(SYS_gettid), __ATOMIC_RELEASE);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	while (!strstr(stat, ") S")) {
		FILE *f = fopen(path, "r");

		need(f && fgets(stat, sizeof(stat), f), path);
		fclose(f);
	}
	nanosleep(&t, NULL);
	return NULL;
}

static __attribute__((noinline)) void slow_join(void)
{
	long tid = 0;
	pthread_t thread;
	uint64_t since;

	need(!pthread_create(&thread, NULL, outlasts, &tid), "pthread_create");
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		sched_yield();
	since = now_ns();
	pthread_join(thread, NULL);
	done("pthread_join", since, tid, NULL, slow_join);
}

static __attribute__((noinline)) void slow_fgets(void)
{
	FILE *f = popen("sleep 0.03; echo text", "r");
	uint64_t since = now_ns();
	char line[20];

	need(f && fgets(line, sizeof(line), f), "fgets");
	done("fgets", since, fileno(f), NULL, slow_fgets);
	pclose(f);
}

/* Into a pipe that is full: what becomes of a log when nobody reads it. */
static void full_pipe(int fd[2])
{
	static const char page[4096];

	need(!pipe(fd) && !fcntl(fd[1], F_SETFL, O_NONBLOCK), "pipe");
	while (write(fd[1], page, sizeof(page)) > 0)
		;
	need(errno == EAGAIN && !fcntl(fd[1], F_SETFL, 0), "a full pipe");
}

#define LOGGER(name, call)                                         \
	static __attribute__((noinline)) void slow_##name(void)    \
	{                                                          \
		struct later l = {.drain = 1};                     \
		int fd[2];                                         \
		FILE *f;                                           \
		uint64_t since;                                    \
                                                                   \
		full_pipe(fd);                                     \
		f = fdopen(fd[1], "w");                            \
		need(f && !setvbuf(f, NULL, _IONBF, 0), "fdopen"); \
		l.fd = fd[0];                                      \
		later(&l);                                         \
		since = now_ns();                                  \
		need((call) > 0, #name);                           \
		done(#name, since, fd[1], NULL, slow_##name);      \
		end_later(&l);                                     \
		fclose(f);                                         \
		close(fd[0]);                                      \
	}
LOGGER(fprintf, fprintf(f, "%s %d", "text", 1))
LOGGER(fwrite, fwrite("text", 1, 4, f))

/* The library sleeps and reads while it is loaded. */
static __attribute__((noinline)) void slow_dlopen(const char *path)
{
	uint64_t since = now_ns();
	void *library = dlopen(path, RTLD_NOW);

	done("dlopen", since, -1, path, slow_dlopen);
	if (!library)
		puts(dlerror());
	need(library != NULL, "dlopen");
	printf("plugin %p\n", dlsym(library, "plugin_function"));
}

void slow(const char *plugin)
{
	int fd[2];

	turn();
	need(!pipe(fd), "pipe");
	read_from(fd, slow_read);
	need(!pipe(fd), "pipe");
	read_from(fd, slow_readv);
	need(!pipe(fd), "pipe");
	read_from(fd, slow___read_chk);
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd), "socketpair");
	read_from(fd, slow_recvmsg);
	need(!socketpair(AF_UNIX, SOCK_DGRAM, 0, fd), "socketpair");
	read_from(fd, slow___recv_chk);
	udp_pair(fd);
	read_from(fd, slow_recvfrom);
	slow_write();
	accepts();
	connects();
	slow_open();
	slow_open64();
	slow_openat();
	slow_creat();
	slow___open_2();
	slow_lock("flock", flock_it);
	slow_lock("fcntl", fcntl_it);
	slow_lock("lockf", lockf_it);
	slow_nanosleep(-1);
	slow_clock_nanosleep(-1);
	slow_usleep(-1);
	slow_sleep(-1);
	slow_wait(child());
	slow_waitpid(child());
	slow_wait4(child());
	slow_waitid(child());
	slow_system();
	slow_pclose();
	slow_join();
	slow_fgets();
	slow_fprintf();
	slow_fwrite();
	slow_dlopen(plugin);
	turn();
}

/* ------------------------------------------------------------------ modes */

/* None of this takes long. */
static void fast(void)
{
	struct stat st;
	int fd[2];
	char c = 'x';

	turn();
	need(!pipe(fd), "pipe");
	for (int i = 0; i < 20000; i++) {
		need(write(fd[1], &c, 1) == 1 && read(fd[0], &c, 1) == 1, "a byte");
		need(!stat("/", &st) && !fstat(fd[0], &st), "stat");
	}
	turn();
}

static void *other_thread(void *arg)
{
	int *fd = arg;
	struct later l = {.fd = fd[1]};

	later(&l);
	need(slow_read(fd[0]) == 1, "read");
	end_later(&l);
	return NULL;
}

/* A long call of a thread that runs no loop. */
static void no_loop(void)
{
	pthread_t thread;
	int fd[2];

	turn();
	need(!pipe(fd), "pipe");
	pthread_create(&thread, NULL, other_thread, fd);
	pthread_join(thread, NULL);
	turn();
}

static void cleaned(void *arg)
{
	*(int *)arg += 1;
}

static int cleanups, will_clean, cancelled_fd[2];

static void *cancelled(void *arg)
{
	char c;

	turn();
	pthread_cleanup_push(cleaned, &cleanups);
	__atomic_store_n(&will_clean, 1, __ATOMIC_RELEASE);
	need(read(cancelled_fd[0], &c, 1) == 1, "read");
	pthread_cleanup_pop(0);
	return arg;
}

/* A thread of a loop is cancelled in a read. */
static void cancel(void)
{
	struct timespec t = {0, MS * 1000000};
	pthread_t thread;
	void *result;

	need(!pipe(cancelled_fd), "pipe");
	pthread_create(&thread, NULL, cancelled, NULL);
	while (!__atomic_load_n(&will_clean, __ATOMIC_ACQUIRE))
		sched_yield();
	nanosleep(&t, NULL);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("cancelled %d cleanups %d\n", result == PTHREAD_CANCELED, cleanups);
	turn();
	slow_nanosleep(-1);
}

static sigjmp_buf out;

static void alarmed(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

static __attribute__((noinline)) int slow_getaddrinfo(const char *host)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list = NULL;
	uint64_t since = now_ns();
	int bad = getaddrinfo(host, NULL, &hints, &list);

	done("getaddrinfo", since, -1, host, slow_getaddrinfo);
	printf("answer %d %s\n", bad,
	       bad ? "-" : inet_ntoa(((struct sockaddr_in *)list->ai_addr)->sin_addr));
	if (!bad)
		freeaddrinfo(list);
	return bad;
}

/* A resolver that is slow, and one that never answers, which is left with siglongjmp. */
static void resolve(void)
{
	struct sigaction act = {.sa_handler = alarmed};

	turn();
	slow_getaddrinfo("slow.test");
	slow_getaddrinfo("missing.test");
	sigaction(SIGALRM, &act, NULL);
	if (!sigsetjmp(out, 1)) {
		ualarm(100000, 0);
		slow_getaddrinfo("never.test");
		puts("never.test has answered");
	}
	turn();
	slow_nanosleep(-1);
}

static int remove_entry(const char *path, const struct stat *st, int what, struct FTW *at)
{
	(void)st;
	(void)what;
	(void)at;
	return remove(path);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *plugin = getenv("CALLS_PLUGIN");

	subject = getpid();
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	snprintf(folder, sizeof(folder), "%s/calls-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	need(mkdtemp(folder) != NULL, "mkdtemp");
	if (!strcmp(mode, "slow"))
		slow(plugin);
	else if (!strcmp(mode, "fast"))
		fast();
	else if (!strcmp(mode, "no_loop"))
		no_loop();
	else if (!strcmp(mode, "cancel"))
		cancel();
	else if (!strcmp(mode, "resolve"))
		resolve();
	else if (!strcmp(mode, "answers"))
		answers();
	else if (!strcmp(mode, "search"))
		search();
	else if (!strcmp(mode, "uring"))
		uring();
	else if (!strcmp(mode, "liburing"))
		liburing();
	else if (!strcmp(mode, "transfers"))
		transfers();
	else if (!strcmp(mode, "cost"))
		cost();
	else
		return 2;
	fflush(stdout);
	nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}
