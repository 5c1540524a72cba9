#include "symbols/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "core/memory_limits.h"
#include "symbols/debuginfod.h"
#include "symbols/resolve_elf.h"
#include "symbols/root.h"

#define NS_PER_S UINT64_C(1000000000)
/* Waiting for debuginfod servers is asked for, and has limits of its own. */
#define SERVERS_NS (3600 * NS_PER_S)
#define CPU_S 30u
#define DATA_BYTES (UINT64_C(1) << 30)	   /* beyond its parent's, without files that are mapped */
#define DATA_BYTES_MIN (UINT64_C(4) << 20) /* with less, none is started */
#define FETCHED_BYTES (UINT64_C(4) << 30)  /* what a debuginfod server may send as one file */
#define CHILDREN_MAX 4u /* one after the other: each that fails costs a module its names */
#define REPLY_BYTES (64u << 10)
/* What names of a user may take of the time of who serves others, beyond what is allowed at once: one
   part for so many that are not theirs. */
#define PARTS 3u
#define ACCOUNTS 16u

/* Before the texts of a frame. */
struct reply_frame {
	uint32_t line;
	uint16_t function, file; /* bytes of their names, which follow */
};

/* Reading of debug information ends after 20 s by itself. */
uint64_t tacho__child_time_ns = 30 * NS_PER_S;
uint64_t tacho__child_allowed_ns = 10 * NS_PER_S;
int tacho__child_divides;

struct tacho__child {
	const struct tacho_process *process;
	struct tacho__resolver *resolver;
	const struct tacho__asked *asked;
	size_t count, next;
	struct tacho__rights rights;
	uint8_t *bad; /* by asked: its module made a child fail */
	pid_t pid;    /* 0: none runs */
	int fd;
	unsigned children; /* started */
	int failed;	   /* one of them has */
	uint64_t began, deadline;
	uint8_t buffer[REPLY_BYTES];
	size_t have, taken;
	char texts[2 * TACHO__INLINED_MAX][TACHO__SYMBOL_TEXT_MAX + 1];
	char why[512];
};

/* ------------------------------------------------------------------- accounts */

/* Whose names took time, and how much of it time has not made up for yet. */
static struct account {
	uint32_t uid;
	uint64_t debt_ns, at_ns;
} accounts[ACCOUNTS];

static uint64_t debt_of(const struct account *a, uint64_t now)
{
	uint64_t paid = (now - a->at_ns) / PARTS;

	return paid < a->debt_ns ? a->debt_ns - paid : 0;
}

static int is_in_debt(uint32_t uid, uint64_t now)
{
	for (unsigned i = 0; i < ACCOUNTS; i++)
		if (accounts[i].uid == uid && debt_of(&accounts[i], now) > tacho__child_allowed_ns)
			return 1;
	return 0;
}

/* On the user's account; whoever owes least is forgotten for it. */
static void charge(uint32_t uid, uint64_t ns, uint64_t now)
{
	struct account *at = &accounts[0];

	/* Only who serves others has to divide its time among them. */
	if (geteuid() != 0 || uid == 0)
		return;
	for (unsigned i = 0; i < ACCOUNTS; i++)
		if (accounts[i].uid == uid) {
			at = &accounts[i];
			break;
		} else if (debt_of(&accounts[i], now) < debt_of(at, now)) {
			at = &accounts[i];
		}
	ns += at->uid == uid ? debt_of(at, now) : 0;
	*at = (struct account){.uid = uid, .debt_ns = ns, .at_ns = now};
}

/* ------------------------------------------------------------------ the child */

static void limit(int what, uint64_t most)
{
	struct rlimit l = {most, most}, now;

	if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < most)
		l.rlim_cur = l.rlim_max = now.rlim_max;
	setrlimit((__rlimit_resource_t)what, &l);
}

/* What the process has already of what RLIMIT_DATA limits: of a sanitizer's, terabytes. */
static uint64_t data_bytes(void)
{
	unsigned long long pages = 0;
	char text[256];

	if (tacho__read_small("/proc/self/statm", text, sizeof(text)) > 0 &&
	    sscanf(text, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
		pages = 0;
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Root keeps those alone. */
static int drop_capabilities(uint64_t kept)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -1;
	for (unsigned i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(kept >> (32 * i));
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &head, data);
}

/* It counts against the same memory limits as the program that is recorded, where they share a
   cgroup: half of what is left. */
static uint64_t data_bytes_more(void)
{
	struct tacho__memory_limits memory;
	struct tacho__memory_work work;
	uint64_t most = DATA_BYTES;

	tacho__memory_limits(&work, &memory);
	for (uint32_t i = 0; i < memory.count; i++)
		if (memory.limit[i].left / 2 < most)
			most = memory.limit[i].left / 2;
	return most;
}

/* If memory runs out all the same, the kernel shall end this process and not the program. */
static void offer_to_oom_killer(void)
{
	int fd = tacho__openat(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0);

	if (fd >= 0) {
		(void)tacho__write(fd, "1000", 4);
		tacho__close(fd);
	}
}

/* 0: it is that user's process, or ours to begin with. */
static int drop_rights(const struct tacho__child *c)
{
	gid_t gid = c->rights.gid;
	uid_t uid = c->rights.uid;

	if (geteuid() == 0 && uid != 0 &&
	    (setgroups(1, &gid) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)))
		return -1;
	if (geteuid() == 0 && drop_capabilities(c->rights.capabilities))
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Standard error stays, for who waits for a debuginfod server and is told how far it is. The root of
   the process (-1: ours) becomes descriptor 3. */
static void close_others(int keep, int root)
{
	/* Out of the way of the others first: standard descriptors may have been closed. */
	if (root >= 0)
		root = fcntl(root, F_DUPFD, 4);
	if (dup2(keep, 0) < 0 || (keep != 1 && dup2(keep, 1) < 0) ||
	    (root >= 0 && dup2(root, 3) < 0) ||
	    syscall(SYS_close_range, root >= 0 ? 4u : 3u, ~0u, 0) < 0)
		_exit(1);
	tacho__elf_set_root(root >= 0 ? 3 : -1);
}

static int write_all(const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t n = write(1, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static size_t put_text(uint8_t *to, const char *text, uint16_t *size)
{
	*size = (uint16_t)(text ? strnlen(text, TACHO__SYMBOL_TEXT_MAX) : 0);
	memcpy(to, text ? text : "", *size);
	return *size;
}

static int answer(const struct tacho__resolved *found, uint32_t count)
{
	uint8_t head[sizeof(struct reply_frame)], texts[2 * TACHO__SYMBOL_TEXT_MAX];

	if (write_all(&count, sizeof(count)))
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		struct reply_frame f = {.line = found[i].line};
		size_t used = put_text(texts, found[i].function, &f.function);

		used += put_text(texts + used, found[i].file, &f.file);
		memcpy(head, &f, sizeof(f));
		if (write_all(head, sizeof(head)) || write_all(texts, used))
			return -1;
	}
	return 0;
}

static void run(struct tacho__child *c)
{
	struct tacho__resolved found[TACHO__INLINED_MAX];

	for (size_t i = c->next; i < c->count; i++) {
		const struct tacho__asked *a = &c->asked[i];
		uint32_t n;

		if (c->bad[i])
			continue;
		n = tacho__resolve(c->resolver, a->module, a->address, found, TACHO__INLINED_MAX);
		if (answer(found, n))
			_exit(1);
	}
	_exit(0);
}

static void be_the_child(struct tacho__child *c, int fd, int root, pid_t parent)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
	for (int number = 1; number < SIGRTMIN; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	offer_to_oom_killer();
	close_others(fd, root);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, CPU_S);
	limit(RLIMIT_DATA, data_bytes() + data_bytes_more());
	limit(RLIMIT_FSIZE, tacho__debuginfod_is_allowed() ? FETCHED_BYTES : 0);
	/* Whoever the files belong to may not look into what this process has of its parent's. */
	if (drop_rights(c) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		_exit(1);
	run(c);
}

/* ------------------------------------------------------------------ its parent */

static void start(struct tacho__child *c)
{
	pid_t parent = getpid();
	int fds[2], root;

	if (c->children++ >= CHILDREN_MAX)
		return;
	if (data_bytes_more() < DATA_BYTES_MIN) {
		snprintf(c->why, sizeof(c->why),
			 "the memory limit of this cgroup leaves no room to look names up");
		return;
	}
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	c->have = c->taken = 0;
	root = tacho__root_open(c->process->pid, c->process->start_time);
	c->pid = fork();
	if (c->pid == 0)
		be_the_child(c, fds[1], root, parent);
	close(fds[1]);
	if (root >= 0)
		close(root);
	if (c->pid < 0) {
		snprintf(c->why, sizeof(c->why), "no process could be started for it: %s",
			 strerror(errno));
		c->pid = 0;
		close(fds[0]);
		return;
	}
	c->fd = fds[0];
}

/* Its wait status. */
static int stop(struct tacho__child *c, int kill_it)
{
	int status = 0;

	if (kill_it)
		kill(c->pid, SIGKILL);
	close(c->fd);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	return status;
}

static const char *name_of(const struct tacho__asked *a)
{
	if (!a->module)
		return "code that is in no file";
	return a->module->name && a->module->name[0] ? a->module->name : "code without a file";
}

enum failure { ENDED = 1, LATE, NONSENSE };

/* The one that is being looked up made it fail: no other of its module is asked for. */
static void give_up(struct tacho__child *c, enum failure failure)
{
	const struct tacho__asked *a = &c->asked[c->next];
	int status = stop(c, 1);
	const char *how = "ended before it had answered";

	if (failure == LATE)
		how = "took too long";
	else if (failure == NONSENSE)
		how = "gave an answer that makes no sense";
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		how = "used too much CPU";
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		how = "found a file that was cut short meanwhile";
	else if (WIFSIGNALED(status))
		how = "crashed";
	if (!c->why[0])
		snprintf(c->why, sizeof(c->why), "the process that looked names up in %.300s %s",
			 name_of(a), how);
	c->failed = 1;
	for (size_t i = c->next; i < c->count; i++)
		c->bad[i] |= c->asked[i].module == a->module;
}

/* Waits until the child has said `size` bytes more, and gives them. 0, or why not. */
static int take(struct tacho__child *c, void *to, size_t size)
{
	while (c->have - c->taken < size) {
		uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);
		struct pollfd fd = {.fd = c->fd, .events = POLLIN};
		ssize_t n;

		if (now >= c->deadline)
			return LATE;
		memmove(c->buffer, c->buffer + c->taken, c->have - c->taken);
		c->have -= c->taken;
		c->taken = 0;
		poll(&fd, 1, (int)((c->deadline - now) / 1000000) + 1);
		if (!fd.revents)
			continue;
		n = read(c->fd, c->buffer + c->have, sizeof(c->buffer) - c->have);
		if (n <= 0 && !(n < 0 && errno == EINTR))
			return ENDED;
		c->have += n > 0 ? (size_t)n : 0;
	}
	memcpy(to, c->buffer + c->taken, size);
	c->taken += size;
	return 0;
}

static int take_text(struct tacho__child *c, char *to, uint16_t size)
{
	int failure = size > TACHO__SYMBOL_TEXT_MAX ? NONSENSE : take(c, to, size);

	if (!failure)
		to[size] = 0;
	return failure;
}

/* 0 and how many functions, or why not. */
static int take_answer(struct tacho__child *c, struct tacho__resolved *out, uint32_t *count)
{
	int failure = take(c, count, sizeof(*count));

	if (!failure && *count > TACHO__INLINED_MAX)
		failure = NONSENSE;
	for (uint32_t i = 0; !failure && i < *count; i++) {
		char *function = c->texts[2 * i], *file = c->texts[2 * i + 1];
		struct reply_frame f;

		failure = take(c, &f, sizeof(f));
		if (!failure)
			failure = take_text(c, function, f.function);
		if (!failure)
			failure = take_text(c, file, f.file);
		if (!failure)
			out[i] = (struct tacho__resolved){function, file, f.line};
	}
	return failure;
}

struct tacho__child *tacho__child_new(const struct tacho_process *process,
				      const struct tacho__rights *rights,
				      const struct tacho__asked *asked, size_t count)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);
	struct tacho__child *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct tacho__child){.process = process,
				   .asked = asked,
				   .count = count,
				   .rights = *rights,
				   .began = now,
				   .resolver = tacho__resolver_new(process),
				   .bad = calloc(count + 1, 1)};
	c->deadline = now + (tacho__debuginfod_is_allowed() ? SERVERS_NS : tacho__child_time_ns);
	if (!c->resolver || !c->bad) {
		tacho__child_free(c);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		tacho__resolver_prepare(c->resolver, asked[i].module, asked[i].address);
	if (is_in_debt(rights->uid, now)) {
		snprintf(c->why, sizeof(c->why),
			 "names of user %u have taken more than their share of the time lately",
			 (unsigned)rights->uid);
		c->children = CHILDREN_MAX;
	}
	return c;
}

uint32_t tacho__child_next(struct tacho__child *c, struct tacho__resolved *out)
{
	uint32_t n = 0;
	int failure;

	if (c->next >= c->count)
		return 0;
	if (!c->bad[c->next] && !c->pid)
		start(c);
	if (!c->bad[c->next] && c->pid) {
		failure = take_answer(c, out, &n);
		if (failure) {
			give_up(c, (enum failure)failure);
			n = 0;
		}
	}
	c->next++;
	if (c->next == c->count && c->pid)
		stop(c, 0);
	return n;
}

const char *tacho__child_why(const struct tacho__child *c)
{
	return c->why;
}

void tacho__child_free(struct tacho__child *c)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);

	if (!c)
		return;
	if (c->pid)
		stop(c, 1);
	if (c->failed || tacho__child_divides)
		charge(c->rights.uid, now - c->began, now);
	tacho__resolver_free(c->resolver);
	free(c->bad);
	free(c);
}
