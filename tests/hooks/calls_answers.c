/*
 * Every hooked call, with good and with bad arguments, and what it answered: the same with
 * the hooks as without.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/io_uring.h>
#include <malloc.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <resolv.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <syslog.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "calls_subject.h"

#define UNTOUCHED 77

ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t size, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t size, off_t at, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags, void *from,
		       socklen_t *from_size);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);
size_t __fread_chk(void *into, size_t room, size_t size, size_t n, FILE *f);
size_t __fread_unlocked_chk(void *into, size_t room, size_t size, size_t n, FILE *f);
char *__fgets_chk(char *into, size_t room, int size, FILE *f);
char *__fgets_unlocked_chk(char *into, size_t room, int size, FILE *f);
ssize_t __getdelim(char **line, size_t *room, int end, FILE *f);
int __printf_chk(int checks, const char *format, ...);
int __fprintf_chk(FILE *f, int checks, const char *format, ...);
int __dprintf_chk(int fd, int checks, const char *format, ...);
int __vprintf_chk(int checks, const char *format, va_list list);
int __vfprintf_chk(FILE *f, int checks, const char *format, va_list list);
int __vdprintf_chk(int fd, int checks, const char *format, va_list list);
void __syslog_chk(int priority, int checks, const char *format, ...);
void __vsyslog_chk(int priority, int checks, const char *format, va_list list);

/* Before, errno is what no call sets. */
#define SAY(name, call)                                     \
	do {                                                \
		long answer;                                \
		errno = UNTOUCHED;                          \
		answer = (long)(call);                      \
		printf("%s %ld %d\n", name, answer, errno); \
	} while (0)
/* For those that answer nothing. */
#define SAY_DONE(name, call) SAY(name, ((call), 0))
/* For those whose answer is never the same. */
#define SAY_WHETHER(name, call) SAY(name, (call) != 0)

static char buf[4096];
static struct iovec part = {buf, 64};
static struct stat st;
static struct stat64 st64;
static struct statfs fs;
static struct statfs64 fs64;
static struct statvfs vfs;
static struct statvfs64 vfs64;

static void by_descriptor(int fd)
{
	SAY("write", write(fd, "some text that is read again", 28));
	SAY("pwrite", pwrite(fd, "S", 1, 0));
	SAY("pwrite64", pwrite64(fd, "T", 1, 1));
	SAY("writev", writev(fd, &part, 1));
	SAY("pwritev", pwritev(fd, &part, 1, 100));
	SAY("pwritev64", pwritev64(fd, &part, 1, 200));
	SAY("pwritev2", pwritev2(fd, &part, 1, 300, 0));
	SAY("pwritev64v2", pwritev64v2(fd, &part, 1, 400, 0));
	SAY("lseek", lseek(fd, 0, SEEK_SET));
	SAY("read", read(fd, buf, 8));
	SAY("__read_chk", __read_chk(fd, buf, 8, sizeof(buf)));
	SAY("readv", readv(fd, &part, 1));
	SAY("pread", pread(fd, buf, 8, 4));
	SAY("pread64", pread64(fd, buf, 8, 4));
	SAY("__pread_chk", __pread_chk(fd, buf, 8, 4, sizeof(buf)));
	SAY("__pread64_chk", __pread64_chk(fd, buf, 8, 4, sizeof(buf)));
	SAY("preadv", preadv(fd, &part, 1, 8));
	SAY("preadv64", preadv64(fd, &part, 1, 8));
	SAY("preadv2", preadv2(fd, &part, 1, 8, 0));
	SAY("preadv64v2", preadv64v2(fd, &part, 1, 8, 0));
	SAY("fchmod", fchmod(fd, 0600));
	SAY("fchown", fchown(fd, (uid_t)-1, (gid_t)-1));
	SAY("futimens", futimens(fd, NULL));
	SAY("fstatfs", fstatfs(fd, &fs));
	SAY("fstatfs64", fstatfs64(fd, &fs64));
	SAY("fstatvfs", fstatvfs(fd, &vfs));
	SAY("fstatvfs64", fstatvfs64(fd, &vfs64));
	SAY("fsync", fsync(fd));
	SAY("fdatasync", fdatasync(fd));
	SAY("sync_file_range", sync_file_range(fd, 0, 10, SYNC_FILE_RANGE_WRITE));
	SAY("ftruncate", ftruncate(fd, 1000));
	SAY("ftruncate64", ftruncate64(fd, 2000));
	SAY("fallocate", fallocate(fd, 0, 0, 3000));
	SAY("fallocate64", fallocate64(fd, 0, 0, 4000));
	SAY("posix_fallocate", posix_fallocate(fd, 0, 5000));
	SAY("posix_fallocate64", posix_fallocate64(fd, 0, 6000));
	SAY("flock", flock(fd, LOCK_EX | LOCK_NB));
	SAY("lockf", lockf(fd, F_TLOCK, 0));
	SAY("lockf64", lockf64(fd, F_TLOCK, 0));
	SAY("fstat", fstat(fd, &st));
	SAY("fstat64", fstat64(fd, &st64));
	SAY("__fxstat", __fxstat(1, fd, &st));
	SAY("__fxstat64", __fxstat64(1, fd, &st64));
	SAY("fcntl", fcntl(fd, F_GETFL));
	SAY("fcntl", fcntl(fd, F_SETFL, O_APPEND));
	SAY("fcntl", fcntl(fd, F_GETFL));
	SAY("fcntl64", fcntl64(fd, F_SETLKW, &(struct flock){.l_type = F_WRLCK}));
}

static void copying(int fd)
{
	int to = open(in_folder("copy"), O_RDWR | O_CREAT, 0600), fds[2];
	loff_t zero = 0;
	off_t start = 0;

	need(to >= 0 && !pipe(fds), "copy");
	SAY("sendfile", sendfile(to, fd, &start, 10));
	SAY("sendfile64", sendfile64(to, fd, &start, 10));
	SAY("copy_file_range", copy_file_range(fd, &zero, to, NULL, 10, 0));
	SAY("splice", splice(fd, &zero, fds[1], NULL, 10, 0));
	SAY("msync", msync(buf, 10, 77));
	SAY("close", close(to));
	SAY("close", close(to));
	close(fds[0]);
	close(fds[1]);
}

static void by_path(void)
{
	const char *name = in_folder("name"), *other = in_folder("other");
	const char *second = in_folder("second");
	struct statx x;
	int dir = open(in_folder("."), O_RDONLY | O_DIRECTORY);

	SAY("open", close(open(name, O_CREAT | O_RDWR, 0640)));
	SAY("mode", stat(name, &st) ? -1 : (long)(st.st_mode & 0777));
	SAY("open64", close(open64(name, O_RDONLY)));
	SAY("openat", close(openat(dir, "name", O_RDWR | O_CREAT, 0600)));
	SAY("openat64", close(openat64(dir, "name", O_RDONLY)));
	SAY("creat", close(creat(name, 0600)));
	SAY("creat64", close(creat64(name, 0600)));
	SAY("__open_2", close(__open_2(name, O_RDONLY)));
	SAY("__open64_2", close(__open64_2(name, O_RDONLY)));
	SAY("__openat_2", close(__openat_2(dir, "name", O_RDONLY)));
	SAY("__openat64_2", close(__openat64_2(dir, "name", O_RDONLY)));
	SAY("stat", stat(name, &st));
	SAY("stat64", stat64(name, &st64));
	SAY("lstat", lstat(name, &st));
	SAY("lstat64", lstat64(name, &st64));
	SAY("fstatat", fstatat(dir, "name", &st, 0));
	SAY("fstatat64", fstatat64(dir, "name", &st64, 0));
	SAY("statx", statx(dir, "name", 0, STATX_SIZE, &x));
	SAY("__xstat", __xstat(1, name, &st));
	SAY("__xstat64", __xstat64(1, name, &st64));
	SAY("__lxstat", __lxstat(1, name, &st));
	SAY("__lxstat64", __lxstat64(1, name, &st64));
	SAY("__fxstatat", __fxstatat(1, dir, "name", &st, 0));
	SAY("__fxstatat64", __fxstatat64(1, dir, "name", &st64, 0));
	SAY("access", access(name, R_OK));
	SAY("faccessat", faccessat(dir, "name", R_OK, 0));
	SAY("readlink", readlink(name, buf, 10));
	SAY("readlinkat", readlinkat(dir, "name", buf, 10));
	SAY("realpath", realpath(name, buf) != NULL);
	SAY("realpath", realpath(second, buf) != NULL);
	SAY("statfs", statfs(name, &fs));
	SAY("statfs64", statfs64(name, &fs64));
	SAY("statvfs", statvfs(name, &vfs));
	SAY("statvfs64", statvfs64(name, &vfs64));
	SAY("link", link(name, second));
	SAY("linkat", linkat(dir, "name", dir, "second", 0));
	SAY("unlink", unlink(second));
	SAY("symlink", symlink("name", second));
	SAY("symlinkat", symlinkat("name", dir, "second"));
	SAY("unlink", unlink(second));
	SAY("chmod", chmod(name, 0640));
	SAY("fchmodat", fchmodat(dir, "name", 0600, 0));
	SAY("chown", chown(name, (uid_t)-1, (gid_t)-1));
	SAY("lchown", lchown(name, (uid_t)-1, (gid_t)-1));
	SAY("fchownat", fchownat(dir, "none", (uid_t)-1, (gid_t)-1, 0));
	SAY("utimensat", utimensat(dir, "name", NULL, 0));
	SAY("chdir", chdir(second));
	SAY("truncate", truncate(name, 10));
	SAY("truncate64", truncate64(name, 20));
	SAY("rename", rename(name, other));
	SAY("renameat", renameat(dir, "other", dir, "name"));
	SAY("renameat2", renameat2(dir, "name", dir, "other", 0));
	SAY("unlink", unlink(name));
	SAY("unlinkat", unlinkat(dir, "other", 0));
	SAY("mkdir", mkdir(name, 0700));
	SAY("mkdirat", mkdirat(dir, "other", 0700));
	SAY("rmdir", rmdir(name));
	SAY("remove", remove(other));
	SAY("syncfs", syncfs(-1));
	close(dir);
}

static void read_streams(void)
{
	FILE *f = fopen(in_folder("lines"), "w+");
	ssize_t (*volatile get_line)(char **, size_t *, FILE *) = getline; /* and nothing inline */
	char *line = NULL;
	size_t room = 0;

	need(f != NULL, "fopen");
	for (int i = 0; i < 10; i++)
		SAY("fputs", fputs("a line\n", f));
	SAY("fputs_unlocked", fputs_unlocked("some text\n", f));
	SAY("fwrite", fwrite("items", 1, 5, f));
	SAY("fwrite_unlocked", (fwrite_unlocked)("items\n", 2, 3, f));
	rewind(f);
	SAY("fgets", strlen(fgets(buf, 100, f)));
	SAY("fgets_unlocked", strlen(fgets_unlocked(buf, 100, f)));
	SAY("__fgets_chk", strlen(__fgets_chk(buf, sizeof(buf), 100, f)));
	SAY("__fgets_unlocked_chk", strlen(__fgets_unlocked_chk(buf, sizeof(buf), 100, f)));
	SAY("getline", get_line(&line, &room, f));
	SAY("getdelim", getdelim(&line, &room, 'e', f));
	SAY("__getdelim", __getdelim(&line, &room, 'e', f));
	puts(line);
	SAY("fread", fread(buf, 2, 3, f));
	SAY("fread_unlocked", (fread_unlocked)(buf, 2, 3, f));
	SAY("__fread_chk", __fread_chk(buf, sizeof(buf), 2, 3, f));
	SAY("__fread_unlocked_chk", __fread_unlocked_chk(buf, sizeof(buf), 1, 1000, f));
	SAY("fgets", fgets(buf, 100, f) != NULL);
	SAY("getline", get_line(&line, &room, f));
	free(line);
	fclose(f);
	f = fopen("/dev/full", "w");
	need(f != NULL, "fopen");
	setvbuf(f, NULL, _IONBF, 0);
	SAY("fwrite", fwrite("items", 1, 5, f));
	SAY("fprintf", fprintf(f, "%s", "text"));
	fclose(f);
}

/* With arguments in registers of both kinds and on the stack. */
#define FORMAT "%d %s %.2f %ld %c %d %d %d %.1f %s\n"
#define VALUES 1, "two", 3.5, 4L, '5', 6, 7, 8, 9.5, "ten"

static void print_list(FILE *f, int which, const char *format, ...)
{
	int (*volatile print)(const char *, va_list) = vprintf; /* and nothing inline */
	va_list list;
	int n = -1;

	va_start(list, format);
	errno = UNTOUCHED;
	switch (which) {
	case 0:
		n = print(format, list);
		break;
	case 1:
		n = vfprintf(f, format, list);
		break;
	case 2:
		n = vdprintf(fileno(f), format, list);
		break;
	case 3:
		n = __vprintf_chk(1, format, list);
		break;
	case 4:
		n = __vfprintf_chk(f, 1, format, list);
		break;
	case 5:
		n = __vdprintf_chk(fileno(f), 1, format, list);
		break;
	case 6:
		vsyslog(LOG_DEBUG, format, list);
		break;
	case 7:
		__vsyslog_chk(LOG_DEBUG, 1, format, list);
		break;
	}
	va_end(list);
	printf("%d %d\n", n, errno);
}

static void print_streams(void)
{
	static const char *const lists[] = {"vprintf",	     "vfprintf",       "vdprintf",
					    "__vprintf_chk", "__vfprintf_chk", "__vdprintf_chk",
					    "vsyslog",	     "__vsyslog_chk"};
	FILE *f = fopen(in_folder("printed"), "w+");

	need(f != NULL, "fopen");
	setlogmask(LOG_MASK(LOG_EMERG)); /* nobody is to read these */
	SAY("puts", puts("text"));
	SAY("printf", printf(FORMAT, VALUES));
	SAY("fprintf", fprintf(f, FORMAT, VALUES));
	SAY("dprintf", dprintf(fileno(f), FORMAT, VALUES));
	SAY("__printf_chk", __printf_chk(1, FORMAT, VALUES));
	SAY("__fprintf_chk", __fprintf_chk(f, 1, FORMAT, VALUES));
	SAY("__dprintf_chk", __dprintf_chk(fileno(f), 1, FORMAT, VALUES));
	SAY("dprintf", dprintf(-1, "%s", "text"));
	SAY_DONE("syslog", syslog(LOG_DEBUG, FORMAT, VALUES));
	SAY_DONE("__syslog_chk", __syslog_chk(LOG_DEBUG, 1, FORMAT, VALUES));
	for (int i = 0; i < (int)(sizeof(lists) / sizeof(lists[0])); i++) {
		print_list(f, i, FORMAT, VALUES);
		SAY(lists[i], 0);
	}
	rewind(f);
	while (fgets(buf, sizeof(buf), f))
		printf("%s", buf);
	fclose(f);
}

static void streams(void)
{
	FILE *f;
	DIR *d = NULL;

	SAY("fopen", (f = fopen(in_folder("stream"), "w")) != NULL);
	SAY("fflush", fflush(f));
	SAY("fclose", fclose(f));
	SAY("fopen64", (f = fopen64(in_folder("none"), "r")) != NULL);
	SAY("opendir", (d = opendir(in_folder("."))) != NULL);
	SAY("readdir", readdir(d) != NULL);
	SAY("readdir64", readdir64(d) != NULL);
	closedir(d);
	SAY("opendir", opendir(in_folder("none")) != NULL);
	SAY_DONE("sync", sync());
	read_streams();
	print_streams();
}

static void failures(void)
{
	const char *volatile bad = (const char *)16; /* volatile: so that compilers say nothing */
	struct sockaddr_in nobody = {.sin_family = AF_INET, .sin_port = htons(1)};
	int s = socket(AF_INET, SOCK_STREAM, 0);

	nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	SAY("read", read(-1, buf, 1));
	SAY("write", write(-1, buf, 1));
	SAY("write", write(1000, bad, 1));
	SAY("open", open(in_folder("none"), O_RDONLY));
	SAY("open", open(bad, O_RDONLY));
	SAY("stat", stat(bad, &st));
	SAY("unlink", unlink(bad));
	SAY("mkdir", mkdir("/", 0700));
	SAY("fsync", fsync(-1));
	SAY("posix_fallocate", posix_fallocate(-1, 0, 1));
	SAY("fcntl", fcntl(-1, F_GETFL));
	SAY("connect", connect(s, (void *)&nobody, sizeof(nobody)));
	SAY("accept", accept(s, NULL, NULL));
	SAY("accept4", accept4(-1, NULL, NULL, SOCK_CLOEXEC));
	SAY("nanosleep", nanosleep(&(struct timespec){0, 2000000000}, NULL));
	SAY("clock_nanosleep",
	    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, 2000000000}, NULL));
	SAY("waitpid", waitpid(-1, NULL, 0));
	SAY("wait3", wait3(NULL, 0, NULL));
	SAY("waitid", waitid(P_ALL, 0, NULL, WEXITED));
	SAY("dlopen", (intptr_t)dlopen("/nowhere/none.so", RTLD_NOW));
	puts(dlerror());
	close(s);
}

static void sockets(void)
{
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
	int fd[2];

	need(!socketpair(AF_UNIX, SOCK_DGRAM, 0, fd), "socketpair");
	SAY("send", send(fd[1], "abcd", 4, 0));
	SAY("recv", recv(fd[0], buf, 8, 0));
	SAY("sendto", sendto(fd[1], "abcde", 5, 0, NULL, 0));
	SAY("recvfrom", recvfrom(fd[0], buf, 8, 0, NULL, NULL));
	SAY("sendmsg", sendmsg(fd[1], &m.msg_hdr, 0));
	SAY("recvmsg", recvmsg(fd[0], &m.msg_hdr, 0));
	SAY("sendmmsg", sendmmsg(fd[1], &m, 1, 0));
	SAY("recvmmsg", recvmmsg(fd[0], &m, 1, 0, NULL));
	send(fd[1], "a", 1, 0);
	SAY("__recv_chk", __recv_chk(fd[0], buf, 8, sizeof(buf), 0));
	send(fd[1], "a", 1, 0);
	SAY("__recvfrom_chk", __recvfrom_chk(fd[0], buf, 8, sizeof(buf), 0, NULL, NULL));
	SAY("recv", recv(fd[0], buf, 8, MSG_DONTWAIT));
	close(fd[0]);
	close(fd[1]);
}

static void names(void)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_family = AF_INET}, *list = NULL;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct hostent entry, *found = NULL;
	int code = 0;

	/* Resolvers leave what they like in errno; that is compared as well. */
	SAY("getaddrinfo", getaddrinfo("127.0.0.1", NULL, &hints, &list));
	SAY("getaddrinfo", getaddrinfo("no number", NULL, &hints, &list));
	SAY("getnameinfo", getnameinfo((void *)&a, sizeof(a), buf, 100, NULL, 0, NI_NUMERICHOST));
	puts(buf);
	SAY("gethostbyname", gethostbyname("127.0.0.1") != NULL);
	SAY("gethostbyname2", gethostbyname2("127.0.0.1", AF_INET) != NULL);
	SAY("gethostbyname_r",
	    gethostbyname_r("127.0.0.1", &entry, buf, sizeof(buf), &found, &code));
	SAY("gethostbyname2_r",
	    gethostbyname2_r("127.0.0.1", AF_INET, &entry, buf, sizeof(buf), &found, &code));
	SAY("gethostbyaddr", gethostbyaddr(&a, 1, AF_INET) != NULL);
	SAY("gethostbyaddr_r",
	    gethostbyaddr_r(&a, 1, AF_INET, &entry, buf, sizeof(buf), &found, &code) != 0);
}

static void users(void)
{
	struct passwd user, *found_user = NULL;
	struct group group, *found_group = NULL;
	gid_t groups[8];
	int count = 8;

	SAY("getpwnam", getpwnam("root") != NULL);
	SAY("getpwnam", getpwnam("no such user") != NULL);
	SAY("getpwuid", getpwuid(0) != NULL);
	SAY("getgrnam", getgrnam("root") != NULL);
	SAY("getgrgid", getgrgid(0) != NULL);
	SAY("getpwnam_r", getpwnam_r("root", &user, buf, sizeof(buf), &found_user));
	SAY("getpwuid_r", getpwuid_r(0, &user, buf, 1, &found_user));
	SAY("getgrnam_r", getgrnam_r("root", &group, buf, sizeof(buf), &found_group));
	SAY("getgrgid_r", getgrgid_r(0, &group, buf, sizeof(buf), &found_group));
	SAY("getgrouplist", getgrouplist("root", 0, groups, &count));
	SAY("initgroups", initgroups("root", 0));
}

/* Names that no server is asked for. */
static void resolvers(void)
{
	static struct __res_state state;
	unsigned char *into = (unsigned char *)buf;
	char name[400];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	SAY("res_query", res_query(name, 1, 1, into, 100));
	SAY("res_search", res_search(name, 1, 1, into, 100));
	need(!res_ninit(&state), "res_ninit");
	SAY("res_nquery", res_nquery(&state, name, 1, 1, into, 100));
	SAY("res_nsearch", res_nsearch(&state, name, 1, 1, into, 100));
	res_nclose(&state);
}

static void *thread_body(void *arg)
{
	return arg;
}

static int thread_answer(void *arg)
{
	return *(int *)arg;
}

static void threads(void)
{
	struct timespec later = {time(NULL) + 1000, 0};
	pthread_t thread;
	thrd_t other;
	void *value = NULL;
	int seven = 7, returned = 0;

	need(!pthread_create(&thread, NULL, thread_body, &seven), "pthread_create");
	SAY("pthread_join", pthread_join(thread, &value) + (value != &seven));
	need(!pthread_create(&thread, NULL, thread_body, &seven), "pthread_create");
	SAY("pthread_timedjoin_np", pthread_timedjoin_np(thread, &value, &later));
	need(!pthread_create(&thread, NULL, thread_body, &seven), "pthread_create");
	SAY("pthread_clockjoin_np", pthread_clockjoin_np(thread, &value, CLOCK_REALTIME, &later));
	SAY("pthread_join", pthread_join(pthread_self(), NULL));
	SAY("pthread_timedjoin_np", pthread_timedjoin_np(pthread_self(), NULL, &later));
	need(thrd_create(&other, thread_answer, &seven) == thrd_success, "thrd_create");
	SAY("thrd_join", thrd_join(other, &returned));
	printf("seven %d\n", returned);
}

static void messages(void)
{
	struct {
		long type;
		char text[8];
	} message = {1, "text"};
	struct sembuf up = {0, 1, 0};
	struct timespec past = {0, 0};
	int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	int set = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);

	need(queue >= 0 && set >= 0, "msgget and semget");
	SAY("msgsnd", msgsnd(queue, &message, 5, 0));
	SAY("msgrcv", msgrcv(queue, &message, 8, 0, 0));
	SAY("msgrcv", msgrcv(queue, &message, 8, 0, IPC_NOWAIT));
	SAY("semop", semop(set, &up, 1));
	SAY("semtimedop", semtimedop(set, &up, 1, &past));
	msgctl(queue, IPC_RMID, NULL);
	semctl(set, 0, IPC_RMID);
	SAY("mq_send", mq_send(-1, "text", 4, 0));
	SAY("mq_receive", mq_receive(-1, buf, 100, NULL));
	SAY("mq_timedsend", mq_timedsend(-1, "text", 4, 0, &past));
	SAY("mq_timedreceive", mq_timedreceive(-1, buf, 100, NULL, &past));
}

static pid_t quick(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(access("/", R_OK));
	return pid;
}

static void processes(void)
{
	char name[] = "true", *args[] = {name, NULL};
	FILE *f;
	int status = 0;
	pid_t pid;

	SAY_WHETHER("fork", (pid = quick()));
	SAY_WHETHER("waitpid", waitpid(pid, &status, 0));
	quick();
	SAY_WHETHER("wait", wait(&status));
	quick();
	SAY_WHETHER("wait3", wait3(&status, 0, NULL));
	pid = quick();
	SAY_WHETHER("wait4", wait4(pid, &status, 0, NULL));
	pid = quick();
	SAY("waitid", waitid(P_PID, (id_t)pid, NULL, WEXITED));
	fflush(stdout);
	SAY("posix_spawn", posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ));
	waitpid(pid, NULL, 0);
	SAY("posix_spawnp", posix_spawnp(&pid, "true", NULL, NULL, args, environ));
	waitpid(pid, NULL, 0);
	SAY("posix_spawn", posix_spawn(&pid, "/none", NULL, NULL, args, environ));
	SAY("system", system("exit 3"));
	SAY("system", system(NULL));
	SAY_WHETHER("popen", (f = popen("echo text", "r")));
	SAY("fgets", fgets(buf, 10, f) ? (long)strlen(buf) : -1);
	SAY("pclose", pclose(f));
	SAY("malloc_trim", malloc_trim(0) >= 0);
	SAY("nanosleep", nanosleep(&(struct timespec){0, 1000}, NULL));
	SAY("clock_nanosleep",
	    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, 1000}, NULL));
	SAY("usleep", usleep(1));
	SAY("sleep", sleep(0));
}

static void system_calls(void)
{
	long page = syscall(SYS_mmap, NULL, 4096L, (long)(PROT_READ | PROT_WRITE),
			    (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 0L);

	SAY("syscall", syscall(SYS_getpid) == getpid());
	SAY("syscall", page > 0 && syscall(SYS_munmap, page, 4096L) == 0);
	SAY("syscall", syscall(SYS_pread64, -1, buf, 1L, 0L));
	SAY("syscall", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0L));
	SAY("syscall", syscall(100000));
}

/* What a library's loading went wrong with is told after other calls, too, that are the first of
   their kind. */
static void told_later(void)
{
	const char *told;

	SAY("dlopen", (intptr_t)dlopen("/nowhere/none.so", RTLD_NOW));
	SAY("rmdir", rmdir("/nowhere"));
	SAY("access", access("/nowhere", F_OK));
	poll(NULL, 0, 0);
	told = dlerror();
	puts(told ? told : "dlerror: nothing");
}

void answers(void)
{
	int fd = open(in_folder("file"), O_RDWR | O_CREAT, 0600);

	need(fd >= 0, "open");
	told_later();
	turn();
	by_descriptor(fd);
	copying(fd);
	by_path();
	streams();
	failures();
	sockets();
	names();
	users();
	resolvers();
	threads();
	messages();
	processes();
	system_calls();
	turn();
}

/* -------------------------------------------------------------- libraries */

static void *volatile library;

void search(void)
{
	turn();
	library = dlopen("libcalls-plugin.so", RTLD_NOW);
	printf("found %d\n", library != NULL);
	if (!library)
		puts(dlerror());
	else
		printf("number %d\n", *(int *)dlsym(library, "plugin_number"));
	printf("closed %d\n", library ? dlclose(library) : -1);
}

/* --------------------------------------------------------------- io_uring */

static int ring_of(struct io_uring_params *p)
{
	memset(p, 0, sizeof(*p));
	return (int)syscall(SYS_io_uring_setup, 4, p);
}

/* Submits a timeout of 30 ms and waits for it. */
void uring(void)
{
	static struct __kernel_timespec time = {0, 30000000};
	struct io_uring_params p;
	int ring = ring_of(&p);
	char *sq;
	struct io_uring_sqe *sqe;
	uint64_t since;

	if (ring < 0) {
		printf("skip %s\n", strerror(errno));
		return;
	}
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		  IORING_OFF_SQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		   IORING_OFF_SQES);
	need(sq != MAP_FAILED && sqe != MAP_FAILED, "mmap");
	sqe->opcode = IORING_OP_TIMEOUT;
	sqe->addr = (uint64_t)(uintptr_t)&time;
	sqe->len = 1;
	*(unsigned *)(sq + p.sq_off.array) = 0;
	__atomic_store_n((unsigned *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	since = now_ns();
	printf("submitted %ld\n",
	       syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0L));
	done("io_uring_enter", since, ring, NULL, uring);
}

/* The same with liburing, found as a program finds it that is linked with it. */
void liburing(void)
{
	static uint64_t ring[64]; /* a struct io_uring, which is smaller */
	static struct __kernel_timespec time = {0, 30000000};
	int (*init)(unsigned, void *, unsigned);
	int (*wait)(void *, void **, struct __kernel_timespec *);
	void *done_entry = NULL;
	uint64_t since;

	if (!dlopen("liburing.so.2", RTLD_NOW | RTLD_GLOBAL)) {
		puts("skip liburing is not installed");
		return;
	}
	init = (int (*)(unsigned, void *, unsigned))dlsym(RTLD_DEFAULT, "io_uring_queue_init");
	wait = (int (*)(void *, void **, struct __kernel_timespec *))dlsym(
		RTLD_DEFAULT, "io_uring_wait_cqe_timeout");
	need(init && wait, "dlsym");
	if (init(4, ring, 0) < 0) {
		puts("skip io_uring is not allowed");
		return;
	}
	since = now_ns();
	printf("waited %d\n", wait(ring, &done_entry, &time));
	done("io_uring_wait_cqe_timeout", since, -1, NULL, liburing);
}

/* ------------------------------------------------------------------- cost */

#define READS 300000
#define ROUNDS 7

static uint64_t reads(int fd)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t since = now_ns(), took;
		char c;

		for (int i = 0; i < READS; i++)
			need(read(fd, &c, 1) == 1, "read");
		took = now_ns() - since;
		if (took < best)
			best = took;
	}
	return best;
}

static void *reads_thread(void *fd)
{
	printf("other %.1f\n", (double)reads(*(int *)fd) / READS);
	return NULL;
}

void cost(void)
{
	int fd = open("/dev/zero", O_RDONLY);
	pthread_t thread;

	turn();
	printf("loop %.1f\n", (double)reads(fd) / READS);
	pthread_create(&thread, NULL, reads_thread, &fd);
	pthread_join(thread, NULL);
}
