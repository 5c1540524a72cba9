/*
 * One followed box.
 */
#include "agent/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/listener.h"
#include "base/clock.h"
#include "read/input.h"

struct tacho__follow {
	int fd;
	struct stat file;
	struct tacho_box_super super;
	uint64_t control; /* offset in the file; 0: the box has none */
	uint32_t last_trigger;
	uint32_t config;
	bool listens;		   /* agent_pid is there, and it is listened to */
	struct tacho__heard heard; /* wake_seq */
	void *page;		   /* mapped, for the futex */
	size_t page_size;
};

static int check_super(const struct tacho__follow *f)
{
	const struct tacho_box_super *s = &f->super;

	if (s->magic[0] == 0)
		return -ENODATA;
	if (memcmp(s->magic, TACHO_BOX_MAGIC, sizeof(s->magic)) != 0 ||
	    s->version > TACHO_BOX_VERSION)
		return -EBADMSG;
	return 0;
}

/* Where the control area is, if it lies in the file as it should. */
static uint64_t find_control(const struct tacho__follow *f)
{
	const struct tacho_box_region *r = &f->super.regions[TACHO_REGION_CONTROL];
	uint64_t size = (uint64_t)f->file.st_size;

	if (r->size < sizeof(struct tacho_box_control) || r->offset < TACHO_BOX_SUPER_SIZE ||
	    r->offset % TACHO_BOX_ALIGN != 0 || r->offset > size || r->size > size - r->offset)
		return 0;
	return r->offset;
}

static int open_box(struct tacho__follow *f, const char *path)
{
	ssize_t n;

	f->fd = tacho__open_box_path(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (f->fd < 0)
		return -errno;
	/* A second name would be that of a file that is not theirs who put it there. */
	if (fstat(f->fd, &f->file) < 0 || !S_ISREG(f->file.st_mode) || f->file.st_nlink > 1)
		return -EBADMSG;
	n = pread(f->fd, &f->super, sizeof(f->super), 0);
	if (n < (ssize_t)sizeof(f->super))
		return n < 0 ? -errno : -ENODATA;
	return check_super(f);
}

int tacho__follow_open(struct tacho__follow **out, const char *path)
{
	struct tacho__follow *f = calloc(1, sizeof(*f));
	int result;

	*out = NULL;
	if (!f)
		return -ENOMEM;
	result = open_box(f, path);
	if (result < 0) {
		if (f->fd >= 0)
			close(f->fd);
		free(f);
		return result;
	}
	f->control = find_control(f);
	*out = f;
	return 0;
}

const struct tacho_box_super *tacho__follow_super(const struct tacho__follow *f)
{
	return &f->super;
}

const struct stat *tacho__follow_file(const struct tacho__follow *f)
{
	return &f->file;
}

int tacho__follow_fd(const struct tacho__follow *f)
{
	return f->fd;
}

static int read_u32(const struct tacho__follow *f, uint64_t at, uint32_t *out)
{
	ssize_t n = pread(f->fd, out, sizeof(*out), (off_t)at);

	if (n == (ssize_t)sizeof(*out))
		return 0;
	return n < 0 ? -errno : -ENODATA;
}

/* Nothing depends on a write that fails: the file is the program's, and its recorder goes on
   without. */
static void write_at(const struct tacho__follow *f, size_t field, const void *data, size_t size)
{
	struct stat st;

	/* Writing past the end of a truncated file would make it larger. */
	if (f->control == 0 || fstat(f->fd, &st) < 0 ||
	    (uint64_t)st.st_size < f->control + sizeof(struct tacho_box_control))
		return;
	if (pwrite(f->fd, data, size, (off_t)(f->control + field)) < 0)
		return;
}

uint32_t tacho__follow_state(const struct tacho__follow *f)
{
	uint32_t state;

	if (read_u32(f, offsetof(struct tacho_box_super, state), &state) < 0)
		return f->super.state;
	return state;
}

int tacho__follow_lock(struct tacho__follow *f)
{
	return flock(f->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

uint32_t tacho__follow_agent(const struct tacho__follow *f)
{
	uint32_t pid = 0;

	if (f->control == 0 ||
	    read_u32(f, f->control + offsetof(struct tacho_box_control, agent_pid), &pid) < 0)
		return 0;
	return pid;
}

/* ------------------------------------------------------------------ listening */

static int map_futex(struct tacho__follow *f)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t at = f->control + offsetof(struct tacho_box_control, wake_seq);
	void *mapped = mmap(NULL, page, PROT_READ, MAP_SHARED, f->fd, (off_t)(at - at % page));

	if (mapped == MAP_FAILED)
		return -errno;
	f->page = mapped;
	f->page_size = page;
	f->heard.futex = (const uint32_t *)((const char *)mapped + at % page);
	f->heard.fd = f->fd;
	f->heard.at = (off_t)at;
	return 0;
}

static void set_agent(const struct tacho__follow *f, uint32_t pid)
{
	write_at(f, offsetof(struct tacho_box_control, agent_pid), &pid, sizeof(pid));
}

int tacho__follow_begin(struct tacho__follow *f, struct tacho__listener *listener, int poke,
			bool past)
{
	uint64_t at = f->control + offsetof(struct tacho_box_control, wake_seq);
	int result;

	if (f->control == 0)
		return -ENOTSUP;
	f->heard.poke = poke;
	if (!past &&
	    read_u32(f, offsetof(struct tacho_box_super, trigger_count), &f->last_trigger) < 0)
		return -ENOTSUP;
	result = read_u32(f, at, &f->heard.seen);
	if (result == 0)
		result = map_futex(f);
	if (result == 0)
		result = tacho__listener_add(listener, &f->heard);
	if (result < 0)
		return result;
	f->listens = true;
	set_agent(f, (uint32_t)getpid());
	/* What happened before the recorder knew of us. */
	tacho__heard_poke(&f->heard);
	return 0;
}

bool tacho__follow_poked(struct tacho__follow *f)
{
	return __atomic_exchange_n(&f->heard.poked, false, __ATOMIC_ACQUIRE);
}

/* -------------------------------------------------------------------- control */

int tacho__follow_control(const struct tacho__follow *f, struct tacho_box_control *out)
{
	ssize_t n;

	memset(out, 0, sizeof(*out));
	if (f->control == 0)
		return -ENOTSUP;
	n = pread(f->fd, out, sizeof(*out), (off_t)f->control);
	return n == (ssize_t)sizeof(*out) ? 0 : n < 0 ? -errno : -ENODATA;
}

static void change_config(struct tacho__follow *f)
{
	uint32_t config = 0;

	/* An agent before us may have left any number. */
	read_u32(f, f->control + offsetof(struct tacho_box_control, config), &config);
	config++;
	write_at(f, offsetof(struct tacho_box_control, config), &config, sizeof(config));
}

void tacho__follow_limits(struct tacho__follow *f, const uint64_t *limit, uint32_t chunks)
{
	uint64_t all[TACHO_SENTINEL_MAX] = {0};

	if (f->control == 0)
		return;
	if (limit)
		memcpy(all, limit, TACHO_SENTINEL_COUNT * sizeof(all[0]));
	write_at(f, offsetof(struct tacho_box_control, limit), all, sizeof(all));
	write_at(f, offsetof(struct tacho_box_control, follow), &chunks, sizeof(chunks));
	tacho__follow_arm(f);
	change_config(f);
}

void tacho__follow_arm(struct tacho__follow *f)
{
	struct tacho_box_control control;

	if (tacho__follow_control(f, &control) < 0)
		return;
	for (size_t i = 0; i < TACHO_SENTINEL_MAX; i++)
		control.armed[i] = control.fired[i] + 1;
	write_at(f, offsetof(struct tacho_box_control, armed), control.armed,
		 sizeof(control.armed));
}

void tacho__follow_idle(struct tacho__follow *f)
{
	const uint32_t idle = 1;

	write_at(f, offsetof(struct tacho_box_control, idle), &idle, sizeof(idle));
}

/* The entry of trigger `number`: 1; 0: it is not there yet; -ESTALE: it was overwritten. */
static int read_trigger(const struct tacho__follow *f, uint32_t number,
			struct tacho_box_trigger *out)
{
	const struct tacho_box_region *r = &f->super.regions[TACHO_REGION_TRIGGERS];
	uint64_t at;
	uint32_t again;

	if (r->count == 0 || r->entry_size != sizeof(*out) || r->offset > INT64_MAX / 2)
		return -ESTALE;
	at = r->offset + (uint64_t)((number - 1) % r->count) * r->entry_size;
	if (pread(f->fd, out, sizeof(*out), (off_t)at) != (ssize_t)sizeof(*out))
		return -ESTALE;
	if (read_u32(f, at, &again) < 0 || again != out->number || out->number == 0)
		return 0;
	if (out->number != number)
		return out->number < number ? 0 : -ESTALE;
	return out->size <= TACHO_REASON_MAX ? 1 : -ESTALE;
}

int tacho__follow_trigger(struct tacho__follow *f, struct tacho_box_trigger *out, uint32_t *missed)
{
	uint32_t count;
	int result;

	*missed = 0;
	if (read_u32(f, offsetof(struct tacho_box_super, trigger_count), &count) < 0)
		return 0;
	if ((int32_t)(count - f->last_trigger) < 0)
		f->last_trigger = count; /* it only grows in a box that is in order */
	if (count - f->last_trigger > TACHO_TRIGGERS) {
		*missed = count - f->last_trigger - TACHO_TRIGGERS;
		f->last_trigger += *missed;
	}
	while (f->last_trigger != count) {
		result = read_trigger(f, f->last_trigger + 1, out);
		/* Who stores it wakes us afterwards. */
		if (result == 0)
			return 0;
		f->last_trigger++;
		if (result > 0)
			return 1;
		*missed += 1;
	}
	return 0;
}

/* When the sealed chunk that was filled the longest time ago was full, in *ticks; 0: none is. One
   that changes meanwhile is not the oldest. When it began says nothing: a quiet thread takes long
   to fill one. */
static void look_at_chunk(const struct tacho__follow *f, uint64_t at, uint64_t *ticks)
{
	struct tacho_chunk c;

	if (at > INT64_MAX || pread(f->fd, &c, sizeof(c), (off_t)at) != (ssize_t)sizeof(c) ||
	    !c.generation || c.magic != TACHO_CHUNK_MAGIC || !(c.flags & TACHO_CHUNK_SEALED))
		return;
	if (!*ticks || c.last_ticks < *ticks)
		*ticks = c.last_ticks;
}

static void look_at_slot(const struct tacho__follow *f, uint32_t index, uint64_t *ticks)
{
	const struct tacho_box_region *regions = f->super.regions;
	struct tacho_box_slot slot;
	uint64_t at = regions[TACHO_REGION_SLOTS].offset + (uint64_t)index * sizeof(slot);
	uint64_t pool = regions[TACHO_REGION_POOL].offset + (uint64_t)index * TACHO_SLOT_SIZE;
	unsigned shape, parts;

	if (at > INT64_MAX || pread(f->fd, &slot, sizeof(slot), (off_t)at) != (ssize_t)sizeof(slot))
		return;
	shape = TACHO_SLOT_SHAPE(slot.state);
	parts = shape == TACHO_SLOT_SPLIT ? TACHO_SMALL_PER_SLOT : shape == TACHO_SLOT_WHOLE;
	for (unsigned i = 0; i < parts; i++)
		if (slot.pages >> i & 1)
			look_at_chunk(f, pool + i * TACHO_SMALL_SIZE, ticks);
}

static bool has_overwritten(const struct tacho__follow *f)
{
	const struct tacho_box_region *r = &f->super.regions[TACHO_REGION_LOSSES];
	uint64_t at = r->offset + TACHO_LOSS_OVERWRITTEN_CHUNKS * sizeof(uint64_t), n = 0;

	return at <= INT64_MAX && pread(f->fd, &n, sizeof(n), (off_t)at) == (ssize_t)sizeof(n) && n;
}

/* 0: it cannot be told. */
static uint64_t ns_of(const struct tacho_box_super *super, uint64_t ticks)
{
	const struct tacho_anchor *created = &super->created;
	uint64_t now_ticks, now_ns;
	unsigned __int128 ago;

	tacho__clock_pair(super->clock != TACHO_CLOCK_MONOTONIC, &now_ticks, &now_ns);
	if (ticks >= now_ticks || created->ticks >= now_ticks || created->mono_ns >= now_ns)
		return 0;
	ago = (unsigned __int128)(now_ticks - ticks) * (now_ns - created->mono_ns) /
	      (now_ticks - created->ticks);
	return ago < now_ns ? now_ns - (uint64_t)ago : 0;
}

uint64_t tacho__follow_window(const struct tacho__follow *f)
{
	const struct tacho_box_region *slots = &f->super.regions[TACHO_REGION_SLOTS];
	uint64_t oldest = 0;
	uint32_t used;

	if (slots->entry_size != sizeof(struct tacho_box_slot) || !has_overwritten(f) ||
	    read_u32(f, offsetof(struct tacho_box_super, slots_used), &used) < 0)
		return 0;
	if (used > slots->count)
		used = slots->count;
	/* A damaged box does not make us look further than it is long. */
	if (used > (uint64_t)f->file.st_size / TACHO_SLOT_SIZE)
		used = (uint32_t)((uint64_t)f->file.st_size / TACHO_SLOT_SIZE);
	for (uint32_t i = 0; i < used; i++)
		look_at_slot(f, i, &oldest);
	return oldest ? ns_of(&f->super, oldest) : 0;
}

struct tacho_box_thread *tacho__follow_threads(const struct tacho__follow *f, uint32_t *count)
{
	const struct tacho_box_region *r = &f->super.regions[TACHO_REGION_THREADS];
	struct tacho_box_thread *threads;
	uint32_t used;
	ssize_t n;

	*count = 0;
	if (r->entry_size != sizeof(*threads) || r->offset > (uint64_t)f->file.st_size ||
	    r->count > ((uint64_t)f->file.st_size - r->offset) / sizeof(*threads) ||
	    read_u32(f, offsetof(struct tacho_box_super, threads_used), &used) < 0 || used == 0)
		return NULL;
	if (used > r->count)
		used = r->count;
	threads = calloc(used, sizeof(*threads));
	if (!threads)
		return NULL;
	n = pread(f->fd, threads, used * sizeof(*threads), (off_t)r->offset);
	*count = n > 0 ? (uint32_t)((size_t)n / sizeof(*threads)) : 0;
	return threads;
}

void tacho__follow_end(struct tacho__follow *f)
{
	if (!f)
		return;
	if (f->listens) {
		tacho__follow_limits(f, NULL, 0);
		set_agent(f, 0);
		tacho__listener_remove(&f->heard);
	}
	if (f->page)
		munmap(f->page, f->page_size);
	close(f->fd);
	free(f);
}
