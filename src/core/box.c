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
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/sys.h"
#include "base/text.h"
#include "core/box_dir.h"
#include "core/define.h"
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
	uint64_t pool;	  /* offset */
	uint32_t pid;	  /* as the box says */
	int here;	  /* as the process says */
	uint32_t storing; /* a store into it was interrupted by the fork, and goes on */
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

int tacho__box_populate(uint8_t *at, uint64_t size)
{
	struct tacho__recorder *r = tacho__rec;
	int err;

	if (tacho__load(&r->no_populate))
		return 0;
	err = tacho__madvise(at, size, MADV_POPULATE_WRITE);
	if (!err)
		__atomic_fetch_add(&r->used, size, __ATOMIC_RELAXED);
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
	if (err) {
		tacho__count(TACHO_LOSS_GROW, 1);
		tacho__box_is_full(err);
		return err;
	}
	while (filled < to && !__atomic_compare_exchange_n(&r->filled[region], &filled, to, 0,
							   __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		;
	return 0;
}

void tacho__set_reason(struct tacho_box_super *super, const char *reason)
{
	struct tacho__text t;

	tacho__text_init(&t, super->reason, sizeof(super->reason));
	tacho__text_put(&t, reason);
}

void tacho__box_is_full(int error)
{
	struct tacho__recorder *r = tacho__rec;

	if (__atomic_exchange_n(&r->full, 1, __ATOMIC_RELAXED))
		return;
	tacho__set_reason(r->super, "The box could not grow to its size, because the file system "
				    "has no memory left: the window is shorter. Make room in it "
				    "or set TACHO_MAX_BYTES lower.");
	tacho__store(&r->super->error, -error);
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

static void read_boot_id(uint8_t id[16])
{
	char text[64];
	unsigned n = 0;

	if (tacho__read_small("/proc/sys/kernel/random/boot_id", text, sizeof(text)) <= 0)
		return;
	for (const char *p = text; *p && n < 32; p++) {
		unsigned digit;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (unsigned)(*p - 'a' + 10);
		else
			continue;
		id[n / 2] = (uint8_t)((unsigned)id[n / 2] << 4 | digit);
		n++;
	}
}

/* The name of the process is that of its first thread; whichever thread records first is here. */
static void read_comm(char comm[16])
{
	char text[32];
	long n = tacho__read_small("/proc/self/comm", text, sizeof(text));

	if (n <= 1 || n > 16) {
		TACHO__SYS(SYS_prctl, 16 /* PR_GET_NAME */, comm, 0, 0, 0, 0);
		return;
	}
	memcpy(comm, text, (size_t)n - 1); /* it ends with a newline */
	comm[n - 1] = 0;
}

/* All of the superblock but state, magic and regions. */
static void describe_process(struct tacho_box_super *s, const struct tacho__options *o)
{
	long n;

	s->version = TACHO_BOX_VERSION;
	s->super_size = TACHO_BOX_SUPER_SIZE;
	s->pid = tacho__known_pid(&s->start_time);
	s->uid = tacho__geteuid();
	read_boot_id(s->boot_id);
	s->clock = tacho__clock_kind;
	s->region_count = TACHO_REGION_COUNT;
	tacho__clock_pair(tacho__clock_kind != TACHO_CLOCK_MONOTONIC, &s->created.ticks,
			  &s->created.mono_ns);
	s->created.real_ns = tacho__clock_ns(CLOCK_REALTIME);
	s->min_age_ns = o->min_age_ns;
	s->poll_threshold_ns = o->poll_threshold_ns;
	s->recording = o->recording;
	s->keep = o->keep_box;
	s->slot_size = TACHO_SLOT_SIZE;
	s->small_size = TACHO_SMALL_SIZE;
	s->next_def = 1;
	s->parent_pid = before.base && before.pid != s->pid ? before.pid : 0;
	n = TACHO__SYS(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", s->exe, sizeof(s->exe) - 1, 0,
		       0);
	s->exe[n > 0 ? n : 0] = 0;
	read_comm(s->comm);
	/* Now, as whoever looks later may find nothing any more. */
	n = tacho__read_small("/proc/self/cmdline", s->command_line, sizeof(s->command_line));
	tacho__join_arguments(s->command_line, n > 0 ? (size_t)n : 0);
	memcpy(s->service, o->service, sizeof(s->service));
}

/* Makes the file with a name that no other box has, not even of the same process before
   exec. Returns its descriptor. */
static int create_file(int dir, char *name, size_t name_size)
{
	struct tacho__text t;
	uint64_t start;
	uint32_t pid = tacho__known_pid(&start);
	int fd = -EEXIST;

	for (uint64_t n = 0; n < 1000 && fd == -EEXIST; n++) {
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
	if (err == -EINVAL) {
		/* Older than Linux 5.14: take all the memory now, when it can be refused. */
		r->no_populate = 1;
		r->used = size;
		return (int)TACHO__SYS(SYS_fallocate, fd, 0, 0, size, 0, 0);
	}
	r->used = TACHO_BOX_ALIGN;
	return err;
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

static int make(struct tacho__recorder *r, const struct tacho__options *o, int dir, char *reason,
		size_t reason_size)
{
	int fd, err;

	fd = create_file(dir, r->box_name, sizeof(r->box_name));
	if (fd < 0)
		return explain(fd, reason, reason_size, "cannot make a box in ", dir_path);
	TACHO_TESTPOINT("box-created");
	err = map_file(r, fd, o->max_bytes);
	tacho__close(fd);
	if (!err) {
		r->super->box_size = o->max_bytes;
		regions_plan(r->super, o->max_bytes);
		recorder_point(r);
		err = fill_start(r);
	}
	if (err) {
		explain(err, reason, reason_size, "cannot make the box large enough in ", dir_path);
		tacho__unlinkat(dir, r->box_name);
		if (r->base)
			tacho__munmap(r->base, r->size);
		r->base = NULL;
		r->control = NULL;
		r->losses = NULL;
		return err;
	}
	TACHO_TESTPOINT("box-mapped");
	describe_process(r->super, o);
	if (!tacho__first_anchor.ticks)
		tacho__first_anchor = r->super->created;
	tacho__madvise(r->pool, r->size - (uint64_t)(r->pool - r->base), MADV_DONTFORK);
	tacho__define_init(before.base);
	r->super->sources[TACHO_SOURCE_API].state = TACHO_SOURCE_ON;
	r->super->sources[TACHO_SOURCE_CRASH_HANDLER].state = TACHO_SOURCE_OFF;
	TACHO_TESTPOINT("box-described");
	drop_before();
	before.base = r->base;
	before.size = r->size;
	before.pool = (uint64_t)(r->pool - r->base);
	before.pid = r->super->pid;
	before.here = tacho__getpid();
	before.storing = 0;
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
	char name[48];
	int fd, left = 0;

	tacho__box_dir_prune(dir, o->dead_boxes);
	fd = create_file(dir, name, sizeof(name));
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
	union {
		struct tacho_box_super super;
		uint8_t bytes[TACHO_BOX_SUPER_SIZE];
	} off;
	int dir, left = 0;

	if (check_file_limit(sizeof(off)))
		return;
	memset(&off, 0, sizeof(off));
	memcpy(off.super.magic, TACHO_BOX_MAGIC, 8);
	off.super.box_size = TACHO_BOX_SUPER_SIZE;
	describe_process(&off.super, o);
	off.super.region_count = 0;
	off.super.state = TACHO_STATE_OFF;
	off.super.error = -error;
	tacho__set_reason(&off.super, reason);
	for (int i = 0; i < TACHO__NOTE_DIRS && !left; i++) {
		dir = tacho__note_dir_open(o, i);
		if (dir < 0)
			continue;
		left = leave_note(o, dir, &off, sizeof(off));
		tacho__close(dir);
	}
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

void tacho__box_unlink(void)
{
	char path[TACHO__PATH_MAX + 48];

	tacho__box_path(path, sizeof(path));
	if (path[0])
		tacho__unlinkat(AT_FDCWD, path);
}

void tacho__box_let_go(void)
{
	struct tacho__recorder *r = tacho__rec;
	uint64_t pool = (uint64_t)(r->pool - r->base);

	/* Only the pool: the definitions are needed when recording starts again. */
	make_private(r->pool, r->size - pool);
}

void tacho__box_forked(int storing)
{
	if (!before.base || !storing)
		return;
	make_private(before.base + before.pool, before.size - before.pool);
	before.storing = 1;
}
