/*
 * The file and the memory of the box.
 *
 * FORK. The pool is not inherited by children (MADV_DONTFORK): a child cannot
 * store into its parent's chunks even by accident. The rest of the box stays
 * mapped in the child until it makes its own, so that it can carry over the
 * definitions: the ids that its copy of the program's variables hold stay valid.
 *
 * A signal handler may fork while it interrupts the storing of a record. When the
 * child returns from it, the interrupted store goes on, to an address that is no
 * longer mapped. So a fork through libc that finds a record being stored puts
 * private memory in the place of the pool (tacho__box_forked), and of the rest when
 * its own box is made.
 */
#include "core/box.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/sys.h"
#include "base/text.h"
#include "core/box_dir.h"
#include "core/control.h"
#include "core/define.h"
#include "core/room.h"
#include "core/sentinel.h"
#include "core/testpoint.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define MAKE_TRIES 10

/* The box before this one: of this process before tacho_stop, or of the parent. Not
   emptied by fork. */
static struct {
	uint8_t *base;
	uint64_t size;
	uint64_t pool;	   /* offset */
	uint32_t pid;	   /* as the box says */
	int here;	   /* as the process says */
	uint32_t storing;  /* a store into it was interrupted by the fork, and goes on */
	uint32_t uid, gid; /* of its file */
	uint64_t number;   /* the last one in its name */
	char name[48];
	int renounced; /* 1: the mapping is private memory, and no longer the file */
} before;

static char dir_path[TACHO__PATH_MAX];

static void regions_plan(struct tacho_box_super *s, uint64_t size)
{
	const struct {
		uint32_t entry;
		uint64_t count;
	} plan[TACHO_REGION_COUNT] = {
		[TACHO_REGION_CONTROL] = {sizeof(struct tacho_box_control), 1},
		[TACHO_REGION_LOSSES] = {sizeof(uint64_t), TACHO_LOSS_MAX},
		[TACHO_REGION_TRIGGERS] = {sizeof(struct tacho_box_trigger), TACHO_TRIGGERS},
		[TACHO_REGION_CRASHES] = {sizeof(struct tacho_box_crash), TACHO_CRASHES},
		[TACHO_REGION_THREADS] = {sizeof(struct tacho_box_thread), size >> 12},
		[TACHO_REGION_HISTOGRAMS] = {sizeof(struct tacho_box_hist), size >> 15},
		[TACHO_REGION_DEF_DIR] = {sizeof(struct tacho_box_def), size >> 10},
		[TACHO_REGION_DEF_BUCKETS] = {sizeof(uint32_t), size >> 12},
		[TACHO_REGION_DEF_DATA] = {1, size >> 4},
		[TACHO_REGION_SLOTS] = {sizeof(struct tacho_box_slot), size / TACHO_SLOT_SIZE},
		[TACHO_REGION_UNDERWAY] = {sizeof(struct tacho_box_underway), size >> 12},
	};
	static const uint64_t most[TACHO_REGION_COUNT] = {
		[TACHO_REGION_THREADS] = TACHO__THREADS_MAX,
		[TACHO_REGION_HISTOGRAMS] = 1u << 14,
		[TACHO_REGION_DEF_DIR] = 1u << 20,
		[TACHO_REGION_DEF_BUCKETS] = 1u << 16,
		[TACHO_REGION_DEF_DATA] = 1u << 26,
		[TACHO_REGION_UNDERWAY] = TACHO__THREADS_MAX,
	};
	uint64_t at = TACHO_BOX_SUPER_SIZE;

	for (int i = 0; i < TACHO_REGION_COUNT; i++) {
		struct tacho_box_region *r = &s->regions[i];
		uint64_t n = plan[i].count;

		if (i == TACHO_REGION_POOL) /* what is left */
			continue;
		if (most[i] && n > most[i])
			n = most[i];
		r->offset = at;
		r->entry_size = plan[i].entry;
		r->count = (uint32_t)n;
		r->size = n * plan[i].entry;
		at = (at + r->size + TACHO_BOX_ALIGN - 1) & ~(uint64_t)(TACHO_BOX_ALIGN - 1);
	}
	at = (at + TACHO_SLOT_SIZE - 1) & ~(uint64_t)(TACHO_SLOT_SIZE - 1);
	s->regions[TACHO_REGION_POOL].offset = at;
	s->regions[TACHO_REGION_POOL].entry_size = TACHO_SLOT_SIZE;
	s->regions[TACHO_REGION_POOL].count = (uint32_t)((size - at) / TACHO_SLOT_SIZE);
	s->regions[TACHO_REGION_POOL].size = (size - at) / TACHO_SLOT_SIZE * TACHO_SLOT_SIZE;
}

static void recorder_point(struct tacho__recorder *r)
{
	struct tacho_box_region *g = r->super->regions;
	uint8_t *b = r->base;

	r->control = (void *)(b + g[TACHO_REGION_CONTROL].offset);
	r->losses = (void *)(b + g[TACHO_REGION_LOSSES].offset);
	r->triggers = (void *)(b + g[TACHO_REGION_TRIGGERS].offset);
	r->crashes = (void *)(b + g[TACHO_REGION_CRASHES].offset);
	r->threads = (void *)(b + g[TACHO_REGION_THREADS].offset);
	r->hists = (void *)(b + g[TACHO_REGION_HISTOGRAMS].offset);
	r->defs = (void *)(b + g[TACHO_REGION_DEF_DIR].offset);
	r->buckets = (void *)(b + g[TACHO_REGION_DEF_BUCKETS].offset);
	r->def_data = b + g[TACHO_REGION_DEF_DATA].offset;
	r->slots = (void *)(b + g[TACHO_REGION_SLOTS].offset);
	r->pool = b + g[TACHO_REGION_POOL].offset;
	r->underway = (void *)(b + g[TACHO_REGION_UNDERWAY].offset);
	r->slot_count = g[TACHO_REGION_POOL].count;
	r->thread_count = g[TACHO_REGION_THREADS].count;
}

void tacho__set_reason(struct tacho_box_super *super, const char *reason)
{
	struct tacho__text t;

	tacho__text_init(&t, super->reason, sizeof(super->reason));
	tacho__text_put(&t, reason);
}

/* tmpfs has no more memory: the box says so, once, and stays at its size. */
static void box_is_full(int error)
{
	struct tacho__recorder *r = tacho__rec;

	if (__atomic_exchange_n(&r->full, 1, __ATOMIC_RELAXED))
		return;
	tacho__set_reason(r->super, "The box could not grow to its size, because the file system "
				    "has no memory left: the window is shorter. Make room in it "
				    "or set TACHO_MAX_BYTES lower.");
	tacho__store(&r->super->error, -error);
}

int tacho__box_populate(uint8_t *at, uint64_t size)
{
	struct tacho__recorder *r = tacho__rec;
	int err;

	if (tacho__load(&r->no_populate))
		return 0;
	err = tacho__room_take(size);
	if (err)
		return err;
	err = tacho__madvise(at, size, MADV_POPULATE_WRITE);
	if (err) {
		tacho__room_give_back(size);
		tacho__count(TACHO_LOSS_GROW, 1);
		box_is_full(err);
	}
	return err;
}

int tacho__box_fill(enum tacho_region region, uint64_t end)
{
	struct tacho__recorder *r = tacho__rec;
	const struct tacho_box_region *g = &r->super->regions[region];
	uint64_t filled = __atomic_load_n(&r->filled[region], __ATOMIC_ACQUIRE);
	uint64_t step = region == TACHO_REGION_DEF_DATA ? 4 * TACHO_BOX_ALIGN : TACHO_BOX_ALIGN;
	uint64_t to = (end + step - 1) / step * step;
	int err;

	if (tacho__likely(end <= filled))
		return 0;
	err = tacho__box_populate(r->base + g->offset + filled, to - filled);
	if (err)
		return err;
	while (filled < to && !__atomic_compare_exchange_n(&r->filled[region], &filled, to, 0,
							   __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		;
	return 0;
}

static void choose_clock(uint32_t option)
{
	char source[32];

	tacho__clock_kind = TACHO_CLOCK_MONOTONIC;
	if (option == TACHO_CLOCK_OPTION_MONOTONIC)
		return;
	if (tacho__read_small("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			      source, sizeof(source)) <= 0 ||
	    !tacho__counter_trusted(source))
		return;
#if defined(__x86_64__)
	tacho__clock_kind = TACHO_CLOCK_TSC;
#else
	tacho__clock_kind = TACHO_CLOCK_CNTVCT;
#endif
}

/* Makes the file with a name that no other box has, not even of the same process before
   exec. Returns its descriptor. */
static int create_file(int dir, char *name, size_t name_size, uint64_t *number)
{
	struct tacho__text t;
	uint64_t start;
	uint32_t pid = tacho__known_pid(&start);
	/* A later box has a higher number, also in the folder of another user. */
	uint64_t first = tacho__box_is_own() ? before.number + 1 : 0;
	int fd = -EEXIST;

	for (uint64_t n = first; n < first + 1000 && fd == -EEXIST; n++) {
		*number = n;
		tacho__text_init(&t, name, name_size);
		tacho__text_put_u64(&t, pid);
		tacho__text_put(&t, "-");
		tacho__text_put_u64(&t, start);
		tacho__text_put(&t, "-");
		tacho__text_put_u64(&t, n);
		tacho__text_put(&t, ".box");
		fd = tacho__openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	}
	return fd;
}

static int explain(int error, char *reason, size_t size, const char *what, const char *path)
{
	struct tacho__text t;

	tacho__text_init(&t, reason, size);
	tacho__text_put(&t, what);
	tacho__text_put(&t, path);
	tacho__text_put(&t, ": ");
	tacho__text_put_errno(&t, -error);
	tacho__text_put(&t, ".");
	return error;
}

/* A file larger than RLIMIT_FSIZE would raise SIGXFSZ instead of an error. */
static int check_file_limit(uint64_t size)
{
	struct rlimit limit;

	if (TACHO__SYS(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit, 0, 0))
		return 0;
	return limit.rlim_cur < size ? -EFBIG : 0;
}

/* Maps the new file of `size` bytes into r. */
static int map_file(struct tacho__recorder *r, int fd, uint64_t size)
{
	intptr_t at;
	int err = check_file_limit(size);

	if (!err)
		err = tacho__ftruncate(fd, size);
	if (err)
		return err;
	TACHO_TESTPOINT("box-sized");
	at = tacho__mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at < 0 && at > -4096)
		return (int)at;
	r->base = (uint8_t *)at;
	r->size = size;
	r->super = (struct tacho_box_super *)r->base;
	tacho__madvise(r->base, size, MADV_DONTDUMP);
	err = tacho__madvise(r->base, TACHO_BOX_ALIGN, MADV_POPULATE_WRITE);
	r->no_populate = err == -EINVAL;
	r->used = TACHO_BOX_ALIGN;
	return r->no_populate ? 0 : err;
}

/* Linux before 5.14 cannot refuse memory page by page. So all of it is taken now, when it can be
   refused, and the box is as large as it may become. */
static int take_at_once(struct tacho__recorder *r, int dir, int fd, char *reason,
			size_t reason_size)
{
	uint64_t size = tacho__room_whole(dir, r->size, reason, reason_size);
	int err = size ? tacho__ftruncate(fd, size) : -EDQUOT;

	if (err)
		return err;
	if (size < r->size)
		tacho__munmap(r->base + size, r->size - size);
	r->size = r->used = size;
	return (int)TACHO__SYS(SYS_fallocate, fd, 0, 0, size, 0, 0);
}

/* The memory to begin with is ours; r->size is final. */
static int take_memory(struct tacho__recorder *r, int dir, int fd, char *reason, size_t reason_size)
{
	int err = r->no_populate ? take_at_once(r, dir, fd, reason, reason_size) : 0;

	return err ? err
		   : tacho__room_claim(dir, r->no_populate ? r->size : TACHO__ROOM_LEAST, reason,
				       reason_size);
}

/* Memory for the parts that are in use from the beginning. */
static int fill_start(struct tacho__recorder *r)
{
	static const enum tacho_region whole[] = {
		TACHO_REGION_CONTROL, TACHO_REGION_LOSSES, TACHO_REGION_TRIGGERS,
		TACHO_REGION_CRASHES, TACHO_REGION_SLOTS,  TACHO_REGION_DEF_BUCKETS,
	};

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		const struct tacho_box_region *g = &r->super->regions[whole[i]];
		int err = tacho__box_populate(r->base + g->offset,
					      (g->size + TACHO_BOX_ALIGN - 1) &
						      ~(uint64_t)(TACHO_BOX_ALIGN - 1));

		if (err)
			return err;
	}
	return 0;
}

/* Memory of nobody in the place of a part of a box that may still be stored into. */
static void make_private(uint8_t *at, uint64_t size)
{
	tacho__mmap(at, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

int tacho__box_is_own(void)
{
	return before.base && before.here == tacho__getpid();
}

/* Lets go of what is still mapped of the box before this one. */
static void drop_before(void)
{
	/* Of this process: other threads may still be looking at it. */
	if (before.base && (before.storing || tacho__box_is_own()))
		make_private(before.base, before.pool);
	else if (before.base)
		tacho__munmap(before.base, before.pool);
	before.base = NULL;
}

/* The box that was just made is the one before the next. */
static void remember_box(const struct tacho__recorder *r, const struct stat *st, uint64_t number)
{
	drop_before();
	before.base = r->base;
	before.size = r->size;
	before.pool = (uint64_t)(r->pool - r->base);
	before.pid = r->super->pid;
	before.here = tacho__getpid();
	before.storing = 0;
	before.uid = st->st_uid;
	before.gid = st->st_gid;
	before.number = number;
	memcpy(before.name, r->box_name, sizeof(before.name));
	before.renounced = 0;
}

static int make(struct tacho__recorder *r, const struct tacho__options *o, int dir, char *reason,
		size_t reason_size)
{
	uint64_t size = tacho__room_plan(o, dir, dir_path, reason, reason_size), number = 0;
	struct stat st;
	int fd, err;

	if (!size)
		return -EDQUOT;
	fd = create_file(dir, r->box_name, sizeof(r->box_name), &number);
	if (fd < 0)
		return explain(fd, reason, reason_size, "cannot make a box in ", dir_path);
	TACHO_TESTPOINT("box-created");
	err = tacho__fstat(fd, &st);
	if (!err)
		err = map_file(r, fd, size);
	if (!err)
		err = take_memory(r, dir, fd, reason, reason_size);
	tacho__close(fd);
	if (!err) {
		r->super->box_size = r->size;
		regions_plan(r->super, r->size);
		recorder_point(r);
		err = fill_start(r);
	}
	if (err) {
		if (err != -EDQUOT)
			explain(err, reason, reason_size, "cannot make the box large enough in ",
				dir_path);
		tacho__unlinkat(dir, r->box_name);
		if (r->base)
			tacho__munmap(r->base, r->size);
		r->base = NULL;
		r->control = NULL;
		r->losses = NULL;
		return err;
	}
	TACHO_TESTPOINT("box-mapped");
	tacho__box_describe(r->super, o, before.base ? before.pid : 0);
	if (!tacho__first_anchor.ticks)
		tacho__first_anchor = r->super->created;
	tacho__madvise(r->pool, r->size - (uint64_t)(r->pool - r->base), MADV_DONTFORK);
	tacho__define_init(before.base);
	r->super->sources[TACHO_SOURCE_API].state = TACHO_SOURCE_ON;
	r->super->sources[TACHO_SOURCE_CRASH_HANDLER].state = TACHO_SOURCE_OFF;
	TACHO_TESTPOINT("box-described");
	remember_box(r, &st, number);
	return 0;
}

int tacho__box_make(const struct tacho__options *o, char *reason, size_t reason_size)
{
	struct tacho__recorder *r = tacho__rec;
	int dir, err, tries = 0;

	r->base = NULL;
	r->control = NULL;
	r->losses = NULL;
	memset(r->filled, 0, sizeof(*r) - offsetof(struct tacho__recorder, filled));
	choose_clock(o->clock);
	do {
		dir = tacho__box_dir_open(o, dir_path, sizeof(dir_path), reason, reason_size);
		if (dir < 0)
			return dir;
		tacho__box_dir_prune(dir, o->dead_boxes);
		err = make(r, o, dir, reason, reason_size);
		tacho__close(dir);
		/* The folder was empty, and a `tacho run` that ended has deleted it. */
	} while (err == -ENOENT && ++tries < MAKE_TRIES);
	if (err)
		return err;
	if (reason[0])
		tacho__set_reason(r->super, reason);
	tacho__sentinels_ask(r->control, o->limit);
	tacho__store(&r->super->state, TACHO_STATE_RECORDING);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(r->super->magic, TACHO_BOX_MAGIC, 8);
	TACHO_TESTPOINT("box-made");
	return 0;
}

/* Whether the note is there. */
static int leave_note(const struct tacho__options *o, int dir, const void *note, size_t size)
{
	uint64_t number;
	char name[48];
	int fd, left = 0;

	tacho__box_dir_prune(dir, o->dead_boxes);
	fd = create_file(dir, name, sizeof(name), &number);
	if (fd >= 0) {
		left = tacho__write(fd, note, size) == (long)size;
		if (!left)
			tacho__unlinkat(dir, name);
		tacho__close(fd);
	}
	return left;
}

void tacho__box_make_off(const struct tacho__options *o, int error, const char *reason)
{
	/* Mapped, as the stack of the thread may be small. */
	struct tacho_box_super *off = tacho__map_zeros(TACHO_BOX_SUPER_SIZE);
	int dir, left = check_file_limit(TACHO_BOX_SUPER_SIZE);

	if (!off)
		return;
	memcpy(off->magic, TACHO_BOX_MAGIC, 8);
	off->box_size = TACHO_BOX_SUPER_SIZE;
	tacho__box_describe(off, o, before.base ? before.pid : 0);
	off->region_count = 0;
	off->state = TACHO_STATE_OFF;
	off->error = -error;
	tacho__set_reason(off, reason);
	for (int i = 0; i < TACHO__NOTE_DIRS && !left; i++) {
		dir = tacho__note_dir_open(o, i);
		if (dir < 0)
			continue;
		left = leave_note(o, dir, off, TACHO_BOX_SUPER_SIZE);
		tacho__close(dir);
	}
	tacho__munmap(off, TACHO_BOX_SUPER_SIZE);
}

void tacho__box_path(char *buf, size_t size)
{
	struct tacho__text t;

	tacho__text_init(&t, buf, size);
	if (!tacho__rec->base)
		return;
	tacho__text_put(&t, dir_path);
	tacho__text_put(&t, "/");
	tacho__text_put(&t, tacho__rec->box_name);
}

int tacho__box_unlink(void)
{
	char path[TACHO__PATH_MAX + 48];

	tacho__box_path(path, sizeof(path));
	return path[0] ? tacho__unlinkat(AT_FDCWD, path) : 0;
}

void tacho__box_empty(void)
{
	struct tacho__recorder *r = tacho__rec;

	tacho__madvise(r->pool, r->size - (uint64_t)(r->pool - r->base), MADV_REMOVE);
}

void tacho__box_let_go(void)
{
	struct tacho__recorder *r = tacho__rec;
	uint64_t pool = (uint64_t)(r->pool - r->base);

	/* Only the pool: the definitions are needed when recording starts again. */
	make_private(r->pool, r->size - pool);
}

/* ------------------------------------------------------------- its owner */

/* Whether the number is one of the first three behind `title` in the status of the process: the real, the
   effective and the saved one. */
static int is_listed(const char *status, const char *title, uint32_t id)
{
	const char *at = strstr(status, title);

	if (!at)
		return 0;
	at += strlen(title);
	for (int i = 0; i < 3 && *at == '\t'; i++) {
		uint64_t v = 0;

		for (at++; *at >= '0' && *at <= '9'; at++)
			v = v * 10 + (uint64_t)(*at - '0');
		if (v == id)
			return 1;
	}
	return 0;
}

/* Whether the process can still act for this user and group. Of root the group does not matter. */
static int can_be(const char *status, uint32_t uid, uint32_t gid)
{
	return is_listed(status, "\nUid:", uid) && (!uid || is_listed(status, "\nGid:", gid));
}

/* In another user namespace, the same user has another number; so has the file. */
static int is_renumbered(const char *status)
{
	char path[TACHO__PATH_MAX + 48];
	struct tacho__text t;
	struct stat st;
	int fd, same;

	tacho__text_init(&t, path, sizeof(path));
	tacho__text_put(&t, dir_path);
	tacho__text_put(&t, "/");
	tacho__text_put(&t, before.name);
	fd = tacho__openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0);
	if (fd < 0)
		return 0;
	same = !tacho__fstat(fd, &st) && can_be(status, st.st_uid, st.st_gid);
	tacho__close(fd);
	return same;
}

int tacho__box_is_of_user(void)
{
	char status[1024];

	if (!before.base || before.renounced || (!before.uid && !tacho__geteuid()))
		return 1;
	if (tacho__read_small("/proc/self/status", status, sizeof(status)) <= 0)
		return tacho__geteuid() == before.uid; /* there is no /proc */
	return can_be(status, before.uid, before.gid) || is_renumbered(status);
}

int tacho__box_is_suspect(void)
{
	return before.uid != tacho__geteuid();
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int tacho__box_renounce(void)
{
	const struct tacho_box_super *s = (const void *)before.base;
	struct {
		uint64_t at, size;
	} part[3] = {{0, TACHO_BOX_SUPER_SIZE}};
	uint64_t total = TACHO_BOX_SUPER_SIZE, used = 0;
	uint8_t *copy;

	if (!before.base || before.renounced)
		return 0;
	/* What the next box takes over (tacho__define_init), and nothing else. */
	part[1].at = s->regions[TACHO_REGION_DEF_DIR].offset;
	part[1].size = smaller(s->next_def * sizeof(struct tacho_box_def),
			       s->regions[TACHO_REGION_DEF_DIR].size);
	part[2].at = s->regions[TACHO_REGION_DEF_DATA].offset;
	part[2].size = smaller(s->def_bytes, s->regions[TACHO_REGION_DEF_DATA].size);
	total += part[1].size + part[2].size;
	copy = tacho__map_zeros(total);
	for (int i = 0; copy && i < 3; used += part[i++].size)
		memcpy(copy + used, before.base + part[i].at, part[i].size);
	make_private(before.base, before.pool);
	used = 0;
	for (int i = 0; copy && i < 3; used += part[i++].size)
		memcpy(before.base + part[i].at, copy + used, part[i].size);
	before.renounced = 1;
	if (!copy)
		return -ENOMEM;
	tacho__munmap(copy, total);
	return 0;
}

int tacho__box_is_gone(const void *address)
{
	uint64_t page = getauxval(AT_PAGESZ);
	uintptr_t at = (uintptr_t)address & ~(uintptr_t)(page - 1);
	intptr_t mapped;

	if (!before.base || (uintptr_t)address - (uintptr_t)before.base >= before.size)
		return 0;
	tacho__stop_at_once();
	mapped = tacho__mmap((void *)at, page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return mapped == (intptr_t)at;
}

void tacho__box_forked(int storing)
{
	if (!before.base || !storing)
		return;
	make_private(before.base + before.pool, before.size - before.pool);
	before.storing = 1;
}
