/*
 * What is done with a blocking call that took long: see calls.h.
 */
#include "hooks/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/redact.h"
#include "base/sys.h"
#include "base/text.h"
#include "core/control.h"
#include "core/define.h"
#include "core/pool.h"
#include "core/record.h"
#include "core/stack.h"
#include "hooks/unwind.h"
#include "hooks/unwind_tables.h"

#define NO_NUMBER UINT64_MAX
#define COMMAND_MAX 4096u /* bytes that are looked at */

TACHO__HOT uint64_t tacho__call_ticks;

/* ---------------------------------------------------- calls within calls */

/*
 * tacho__hook.outer is the frame of the hook that is running, so that a call from as deep
 * or less deep shows that it is gone without having returned: setcontext in a signal
 * handler, say. longjmp, which old resolvers leave getaddrinfo with, says so itself.
 */
int tacho__inside_outer(void)
{
	struct tacho__hook_thread *h = &tacho__hook;

	if ((uintptr_t)__builtin_frame_address(0) < h->outer)
		return 1;
	h->outer = 0;
	return 0;
}

int tacho__outer_begins(void *frame)
{
	struct tacho__hook_thread *h = &tacho__hook;

	if (tacho__is_inside())
		return 0;
	h->outer = (uintptr_t)frame;
	return 1;
}

void tacho__outer_ends(void)
{
	int saved = errno;

	tacho__hook.outer = 0;
	tacho__unwind_forget();
	tacho__modules_check();
	errno = saved;
}

#define JUMP(name)                                                       \
	void tacho__hooked_##name(void *where, int value) __asm__(#name) \
		__attribute__((noreturn));                               \
	TACHO_HOOK void tacho__hooked_##name(void *where, int value)     \
	{                                                                \
		tacho__hook.outer = 0;                                   \
		tacho__call_ends();                                      \
		TACHO__NEXT(name)(where, value);                         \
		__builtin_unreachable();                                 \
	}

JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

/* ---------------------------------------------------------------- modules */

static uint32_t modules_stale;

static int loader_count(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(uint64_t *)data = (uint64_t)(info->dlpi_adds + info->dlpi_subs);
	return 1;
}

void tacho__modules_check(void)
{
	static uint64_t seen;
	uint64_t count = 0;

	if (!tacho__recording())
		return;
	dl_iterate_phdr(loader_count, &count);
	if (__atomic_exchange_n(&seen, count, __ATOMIC_RELAXED) == count)
		return;
	tacho__tables_refresh();
	tacho_modules_changed();
}

void tacho__modules_later(void)
{
	tacho__store(&modules_stale, 1);
}

/* ------------------------------------------------- what a descriptor is */

static enum tacho_descriptor_kind socket_kind(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof(domain);

	if (TACHO__SYS(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &size, 0))
		return TACHO_DESCRIPTOR_SOCKET;
	size = sizeof(type);
	if (TACHO__SYS(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size, 0))
		return TACHO_DESCRIPTOR_SOCKET;
	if (domain == AF_UNIX)
		return TACHO_DESCRIPTOR_UNIX;
	if (domain == AF_INET || domain == AF_INET6) {
		if (type == SOCK_STREAM)
			return TACHO_DESCRIPTOR_TCP;
		if (type == SOCK_DGRAM)
			return TACHO_DESCRIPTOR_UDP;
	}
	return TACHO_DESCRIPTOR_SOCKET;
}

/* Majors of the kernel's list of devices: consoles, /dev/tty, pseudo terminals. */
static int is_terminal(unsigned device)
{
	return device == 4 || device == 5 || (device >= 136 && device <= 143);
}

static enum tacho_descriptor_kind fd_kind(int fd)
{
	struct stat st;

	if (tacho__fstat(fd, &st))
		return TACHO_DESCRIPTOR_UNKNOWN;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return TACHO_DESCRIPTOR_FILE;
	case S_IFDIR:
		return TACHO_DESCRIPTOR_FOLDER;
	case S_IFIFO:
		return TACHO_DESCRIPTOR_PIPE;
	case S_IFSOCK:
		return socket_kind(fd);
	case S_IFCHR:
		return is_terminal(major(st.st_rdev)) ? TACHO_DESCRIPTOR_TERMINAL
						      : TACHO_DESCRIPTOR_DEVICE;
	case S_IFBLK:
		return TACHO_DESCRIPTOR_DEVICE;
	default:
		return TACHO_DESCRIPTOR_EVENT; /* an anonymous inode */
	}
}

/* The path by which the descriptor was opened, or NULL. */
static const char *fd_path(int fd, char *buf, size_t room)
{
	char link[40];
	struct tacho__text t;
	long n;

	tacho__text_init(&t, link, sizeof(link));
	tacho__text_put(&t, "/proc/self/fd/");
	tacho__text_put_u64(&t, (uint64_t)fd);
	n = TACHO__SYS(SYS_readlinkat, AT_FDCWD, link, buf, room - 1, 0, 0);
	if (n <= 0)
		return NULL;
	buf[n] = 0;
	return buf;
}

/* ------------------------------------------- descriptors that never block */

/* In tacho__never_blocks: how often an unknown one was used, or what it is known to be. */
#define USES_BEFORE_ASKING 8u
#define BLOCKS 9u
#define TRUSTED_FIRST 16u

uint8_t tacho__never_blocks[TACHO__DESCRIPTORS];
TACHO__HOT uint8_t tacho__trusted = TRUSTED_FIRST;

static int never_blocks(int fd)
{
	long flags = TACHO__SYS(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);

	if (flags < 0 || !(flags & O_NONBLOCK))
		return 0;
	switch (fd_kind(fd)) {
	case TACHO_DESCRIPTOR_PIPE:
	case TACHO_DESCRIPTOR_SOCKET:
	case TACHO_DESCRIPTOR_UNIX:
	case TACHO_DESCRIPTOR_TCP:
	case TACHO_DESCRIPTOR_UDP:
	case TACHO_DESCRIPTOR_EVENT:
		return 1;
	default:
		return 0;
	}
}

void tacho__descriptor_used(int fd)
{
	uint8_t *state = &tacho__never_blocks[(unsigned)fd % TACHO__DESCRIPTORS];
	uint8_t trusted = tacho__load(&tacho__trusted);
	uint8_t known = tacho__load(state);

	if ((unsigned)fd >= TACHO__DESCRIPTORS || known == BLOCKS ||
	    !tacho__load(&tacho__call_ticks))
		return;
	if (known < USES_BEFORE_ASKING)
		tacho__store(state, (uint8_t)(known + 1));
	else
		tacho__store(state, never_blocks(fd) ? trusted : (uint8_t)BLOCKS);
}

int tacho__blocks(int fd)
{
	uint8_t *state = &tacho__never_blocks[(unsigned)fd % TACHO__DESCRIPTORS];
	uint8_t trusted = tacho__load(&tacho__trusted);

	if ((unsigned)fd >= TACHO__DESCRIPTORS)
		return 0;
	if (tacho__load(state) == BLOCKS || tacho__load(state) == trusted)
		return tacho__load(state) == BLOCKS;
	if (!never_blocks(fd)) {
		tacho__store(state, (uint8_t)BLOCKS);
		return 1;
	}
	/* Where every call is recorded none is trusted. */
	if (tacho__load(&tacho__call_ticks))
		tacho__store(state, trusted);
	return 0;
}

void tacho__descriptors_doubted(void)
{
	uint8_t trusted = tacho__load(&tacho__trusted);

	if (++trusted < TRUSTED_FIRST)
		trusted = TRUSTED_FIRST;
	tacho__store(&tacho__trusted, trusted);
}

/* -------------------------------------------------------------- recording */

/*
 * Paths and hosts are as many as a program likes, and definitions are kept for good: a
 * quarter of their room is for these, and what comes then is "(names full)".
 */
static uint32_t define_path(const char *path)
{
	static uint32_t epoch, count;
	const struct tacho_box_super *super = tacho__rec->super;
	uint32_t before = tacho__load(&super->next_def);
	uint32_t now = tacho__load(&tacho__rec->epoch);
	uint32_t id;

	if (tacho__load(&epoch) != now) {
		tacho__store(&epoch, now);
		tacho__store(&count, 0);
	}
	if (tacho__load(&count) >= super->regions[TACHO_REGION_DEF_DIR].count / 4) {
		tacho__count(TACHO_LOSS_DEFS_FULL, 1);
		return TACHO_ID_FULL;
	}
	id = tacho__define_name(TACHO_DEF_TEXT, path, NULL, 0, 0, 0, NULL);
	if (id >= before)
		__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	return id;
}

__attribute__((noinline)) uint32_t tacho__stack_from(const void *caller, const void *const *tails,
						     unsigned count)
{
	uint64_t frames[TACHO_STACK_MAX];
	int more;
	uint32_t n = tacho__stack_take(frames, TACHO_STACK_MAX, &more);
	uint32_t first = 0;

	while (first < n && frames[first] != (uint64_t)(uintptr_t)caller)
		first++;
	if (first == n) {
		/* The unwinder did not get there, or the caller is all that is known. */
		tacho__count(TACHO_LOSS_UNWIND, 1);
		frames[0] = (uint64_t)(uintptr_t)caller;
		n = 1;
		first = 0;
	}
	if (more)
		tacho__count(TACHO_LOSS_STACK_CUT, 1);
	/* There are frames of ours before. */
	while (count && first)
		frames[--first] = (uint64_t)(uintptr_t)tails[--count];
	return tacho__define_stack(more ? TACHO_DEF_CUT : 0, frames + first,
				   (n - first) * (uint32_t)sizeof(frames[0]));
}

/* A command line without its credentials, as that of the process. */
static const char *without_credentials(const char *command, char *buf, size_t room)
{
	size_t size = strnlen(command, COMMAND_MAX);

	tacho__command_line(buf, room, command, size, size == COMMAND_MAX,
			    tacho__rec->super->whole_arguments);
	return buf;
}

static void record(const struct tacho__blocking_call *c, uint64_t ns)
{
	char buf[TACHO_NAME_MAX + 2];
	const char *path = c->path;
	enum tacho_descriptor_kind kind = TACHO_DESCRIPTOR_UNKNOWN;
	uint64_t words[4];
	uint32_t name, id = 0;

	if (tacho__load(&modules_stale) && __atomic_exchange_n(&modules_stale, 0, __ATOMIC_RELAXED))
		tacho_modules_changed();
	if (c->is_descriptor && c->number >= 0)
		kind = fd_kind((int)c->number);
	/* A path that the kernel could not read is none that we can. */
	if (c->error == EFAULT)
		path = NULL;
	else if (!path && kind == TACHO_DESCRIPTOR_FILE)
		path = fd_path((int)c->number, buf, sizeof(buf));
	else if (path && c->is_command)
		path = without_credentials(path, buf, sizeof(buf));
	if (path)
		id = define_path(path);
	name = tacho__define_name(TACHO_DEF_TEXT, c->name, NULL, 0, 0, 0, NULL);
	words[0] = 4 | (uint64_t)tacho__stack_from(c->caller, NULL, 0) << 16;
	words[1] = ns;
	words[2] = c->number >= 0 ? (uint64_t)c->number : NO_NUMBER;
	words[3] = id | (uint64_t)(c->error & 0xffff) << 32 | (uint64_t)kind << 48;
	tacho__record(tacho_record_head(TACHO_REC_CALL, name), words, 4);
}

/* 1 when this thread's loop or pool belongs to the box that there is: not so in a child between
   fork and its first wait, which is on its way to another program. */
static int has_loop_here(void)
{
	const struct tacho__recorder *r = tacho__rec;

	return r && __atomic_load_n(&r->phase, __ATOMIC_ACQUIRE) == TACHO__PHASE_READY &&
	       tacho__load(&r->epoch) == tacho__hook.loop_epoch;
}

void tacho__serves(void)
{
	const struct tacho__recorder *r = tacho__rec;

	if (!r || tacho__hook.loop)
		return;
	tacho__hook.serves = 1;
	tacho__hook.loop_epoch = tacho__load(&r->epoch);
}

uint32_t tacho__name_look_up(const char *name, uint64_t *known)
{
	const struct tacho__recorder *r = tacho__rec;
	uint32_t epoch = tacho__self->epoch, id;

	if (!epoch || __atomic_load_n(&r->phase, __ATOMIC_ACQUIRE) != TACHO__PHASE_READY ||
	    tacho__load(&r->epoch) != epoch)
		return 0;
	id = tacho__define_name(TACHO_DEF_TEXT, name, NULL, 0, 0, 0, NULL);
	tacho__store(known, (uint64_t)epoch << 32 | id);
	return id;
}

/* One that cannot wait took long because others ran, or because it had much to do: no threshold but
   0 makes it a call that blocks. */
static int cannot_wait(const struct tacho__blocking_call *c, uint64_t least)
{
	return least && c->transfers && never_blocks((int)c->number);
}

void tacho__call_returned(const struct tacho__blocking_call *c)
{
	int saved = errno;
	uint64_t least = tacho__call_threshold_ns();
	uint64_t ns = c->until > c->since ? tacho__ns_of_ticks(c->until - c->since) : 0;

	if (least && !tacho__load(&tacho__call_ticks)) {
		/* No call takes years: what does not fit into ticks is as good as that. */
		uint64_t ticks =
			tacho__ticks_of_ns(least < UINT64_MAX / 64 ? least : UINT64_MAX / 64);

		if (ticks != UINT64_MAX)
			tacho__store(&tacho__call_ticks, ticks);
	}
	if (ns >= least && tacho__recording() && has_loop_here() && !cannot_wait(c, least)) {
		record(c, ns);
		tacho__sched_called(c->since, ns);
	}
	errno = saved;
}

void tacho__calls_loop(void)
{
	static uint64_t said; /* process and epoch of the box that knows that calls are recorded */
	uint64_t box = (uint64_t)tacho__getpid() << 32 | tacho__load(&tacho__rec->epoch);
	uint64_t mask;

	if (__atomic_exchange_n(&said, box, __ATOMIC_RELAXED) == box)
		return;
	/* The unwinder allocates when it is used first: here, not in the signal handler that
	   makes the first long call. */
	tacho_stacks_prepare();
	if (tacho__enter(&mask)) {
		struct tacho_box_source *sources = tacho__rec->super->sources;

		/* What is hooked in every program. */
		sources[TACHO_SOURCE_WAITS].state = TACHO_SOURCE_ON;
		sources[TACHO_SOURCE_THREADS].state = TACHO_SOURCE_ON;
		sources[TACHO_SOURCE_LOCKS].state = TACHO_SOURCE_ON;
		sources[TACHO_SOURCE_CALLS].state = TACHO_SOURCE_ON;
	}
	tacho__leave(mask);
}
