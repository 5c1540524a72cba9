/*
 * How much memory the box may take: the rules.
 *
 * All boxes together shall leave at least half of a file system free, and take at most a share
 * (5 % unless TACHO_MEMORY_SHARE says otherwise) of each memory limit: that of their cgroup, of
 * the cgroups around it, and, unless a size was asked for, of the machine. No process keeps the books; each looks for itself
 * before its box grows, and there is nothing that another user could forge:
 *
 *   - The file system says how much of it is free. What boxes may take of it is what is free
 *     beyond one half, whoever uses the rest. On one that is more than half full without boxes,
 *     the boxes of a user may take a sixteenth of what is free.
 *   - Each box says in its superblock how much it may take at most ("granted") and which limits
 *     it counts against. The sum is taken over the folder of this user. A box first says what it
 *     wants and then looks at the others, so that of two that want the last room at the same
 *     time, at least one sees the other.
 *   - A cgroup whose memory is nearly in use gets no box pages any more, whatever the sum is.
 *
 * A box takes at most a quarter of what its growth leaves to others. So n boxes that grow at the
 * same time end at 1/(n + 4) of the room each, and a process that comes late finds some.
 *
 * It is asked for more than what is needed at once, a quarter of what the box has, so that a box
 * of 32 MiB asks about twenty times while it grows, and then never again. A box that was refused
 * asks again after ten seconds at the earliest.
 */
#include "core/room.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/sys.h"
#include "base/text.h"
#include "core/box.h"
#include "core/box_dir.h"
#include "core/memory_limits.h"
#include "core/recorder.h"

#define OTHERS 4u	  /* what a box leaves to others is at least so many times its size */
#define FULL_FS_SHARE 16u /* of what is free, where more than half is in use */
#define NEARLY_FULL 16u	  /* of a memory limit: the part into which boxes do not grow */
#define DEFINITIONS_RESERVE (32u << 10) /* the pool leaves this to what is never overwritten */
#define LAID_OUT_BELOW (32u << 20)	/* smaller boxes are laid out for the size they can reach */
#define ASK_AGAIN_NS UINT64_C(10000000000)
#define MOST_BOXES 1024u
#define FIRST_CLAIM (256u << 10) /* enough for a process that records little */
#define NO_ROOM "there is no room for a box"

_Static_assert(TACHO_BOX_LIMITS == TACHO__MEMORY_LIMITS,
	       "a box names all limits it counts against");

enum why {
	WHY_FITS,
	WHY_FILE_SYSTEM,
	WHY_CGROUP,
	WHY_MACHINE,
	WHY_CGROUP_FULL,
	WHY_TOO_MANY,
	WHY_UNSEEN,
};

struct refusal {
	enum why why;
	uint64_t size; /* of the file system or limit */
};

struct view {
	int fs_seen;
	uint64_t fs_size, fs_free; /* fs_size 0: without a limit */
	struct tacho__memory_limits memory;
	uint64_t boxes;			    /* bytes of other boxes in the folder */
	uint64_t counted[TACHO_BOX_LIMITS]; /* those that count against each limit */
	uint32_t looked_at;
};

/* One asks at a time (tacho__recorder.asking), also in signal handlers, whose stacks are small. */
static struct {
	struct view view;
	struct tacho__memory_work memory;
	union {
		char bytes[2048];
		uint64_t align;
	} entries;
} work;

/* Not emptied by fork: a child looks again when it makes its box. */
static const char *folder_path;
static uint64_t folder_device, folder_inode;
static uint32_t share_percent, size_given; /* of the options */
static uint64_t kept_at;		   /* as the superblock says */

/* ------------------------------------------------------------------- the view */

static int counts_against(const struct tacho_box_room *room, uint64_t limit)
{
	for (unsigned i = 0; i < TACHO_BOX_LIMITS; i++)
		if (room->limits[i] == limit)
			return 1;
	return 0;
}

static void add_box(struct view *v, int dir, const char *name)
{
	struct tacho_box_room room;
	struct stat st;
	uint64_t bytes;
	int fd = tacho__openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd < 0)
		return;
	memset(&room, 0, sizeof(room));
	if (!tacho__fstat(fd, &st) && S_ISREG(st.st_mode)) {
		bytes = (uint64_t)st.st_blocks * 512;
		(void)tacho__pread(fd, &room, sizeof(room), offsetof(struct tacho_box_super, room));
		if (room.granted > bytes)
			bytes = room.granted < (uint64_t)st.st_size ? room.granted
								    : (uint64_t)st.st_size;
		v->boxes += bytes;
		for (uint32_t i = 0; i < v->memory.count; i++)
			if (counts_against(&room, v->memory.limit[i].id))
				v->counted[i] += bytes;
	}
	tacho__close(fd);
}

/* The folder is still where it was: the process may be in a chroot by now. */
static int folder_is_there(void)
{
	struct stat st;

	return !TACHO__SYS(SYS_newfstatat, AT_FDCWD, folder_path, &st, AT_SYMLINK_NOFOLLOW, 0, 0) &&
	       st.st_dev == folder_device && st.st_ino == folder_inode;
}

/* By its path when the process has no descriptor left for the folder. */
static void look_at_file_system(struct view *v, int dir)
{
	struct statfs fs;

	memset(&fs, 0, sizeof(fs));
	v->fs_seen = !(dir >= 0 ? TACHO__SYS(SYS_fstatfs, dir, &fs, 0, 0, 0, 0)
				: TACHO__SYS(SYS_statfs, folder_path, &fs, 0, 0, 0, 0));
	v->fs_size = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
	v->fs_free = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
}

static void add_boxes(struct view *v, int dir)
{
	long n;

	v->boxes = 0;
	v->looked_at = 0;
	memset(v->counted, 0, sizeof(v->counted));
	TACHO__SYS(SYS_lseek, dir, 0, 0 /* SEEK_SET */, 0, 0, 0);
	while ((n = TACHO__SYS(SYS_getdents64, dir, work.entries.bytes, sizeof(work.entries), 0, 0,
			       0)) > 0) {
		for (long at = 0; at < n;) {
			struct tacho__dirent *e = (struct tacho__dirent *)(work.entries.bytes + at);
			size_t size = strlen(e->name);

			at += e->size;
			if (size < 5 || strcmp(e->name + size - 4, ".box") ||
			    !strcmp(e->name, tacho__rec->box_name))
				continue;
			if (++v->looked_at > MOST_BOXES)
				return;
			add_box(v, dir, e->name);
		}
	}
}

/* Who asks for a size knows the machine; what limits a cgroup may not be known. */
static void look_at_memory(struct view *v)
{
	tacho__memory_limits(&work.memory, &v->memory);
	if (size_given && v->memory.count &&
	    v->memory.limit[v->memory.count - 1].id == TACHO__MEMORY_OF_MACHINE)
		v->memory.count--;
}

static void look(struct view *v, int dir)
{
	look_at_file_system(v, dir);
	look_at_memory(v);
	add_boxes(v, dir);
}

/* ------------------------------------------------------------------ the rules */

static uint64_t budget(const struct tacho__memory_limit *l)
{
	return l->size / 100 * share_percent;
}

/* Of a - b bytes, nothing when b is more. */
static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Whether the box, which has `used` bytes, may have `want`. */
static struct refusal fits(const struct view *v, uint64_t used, uint64_t want)
{
	uint64_t grow = less(want, used), half = v->fs_size / 2;
	uint64_t of_boxes = (v->fs_free + used + v->boxes) / FULL_FS_SHARE;

	if (!v->fs_seen)
		return (struct refusal){WHY_UNSEEN, 0};
	if (v->looked_at > MOST_BOXES)
		return (struct refusal){WHY_TOO_MANY, MOST_BOXES};
	if (v->fs_size && less(v->fs_free, half + grow) < OTHERS * want &&
	    less(of_boxes, v->boxes + want) < OTHERS * want)
		return (struct refusal){WHY_FILE_SYSTEM, v->fs_size};
	for (uint32_t i = 0; i < v->memory.count; i++) {
		const struct tacho__memory_limit *l = &v->memory.limit[i];

		if (less(budget(l), v->counted[i] + want) < OTHERS * want)
			return (struct refusal){l->id == TACHO__MEMORY_OF_MACHINE ? WHY_MACHINE
										  : WHY_CGROUP,
						l->size};
		if (grow && l->left < grow + l->size / NEARLY_FULL)
			return (struct refusal){WHY_CGROUP_FULL, l->size};
	}
	return (struct refusal){WHY_FITS, 0};
}

/* The size that the box could reach if it were the only one, and what keeps it from more. */
static uint64_t most(const struct view *v, struct refusal *because)
{
	uint64_t without = v->fs_free + v->boxes, size = UINT64_MAX, here;

	if (v->fs_size) {
		here = less(without, v->fs_size / 2);
		if (here < without / FULL_FS_SHARE)
			here = without / FULL_FS_SHARE;
		size = here / (OTHERS + 1);
		*because = (struct refusal){WHY_FILE_SYSTEM, v->fs_size};
	}
	for (uint32_t i = 0; i < v->memory.count; i++) {
		const struct tacho__memory_limit *l = &v->memory.limit[i];

		if (budget(l) / (OTHERS + 1) >= size)
			continue;
		size = budget(l) / (OTHERS + 1);
		*because = (struct refusal){
			l->id == TACHO__MEMORY_OF_MACHINE ? WHY_MACHINE : WHY_CGROUP, l->size};
	}
	return size;
}

/* ---------------------------------------------------------------- what is said */

/* "64 MiB", "1.3 MiB", "976 KiB" */
static void put_size(struct tacho__text *t, uint64_t bytes)
{
	static const char *const units[] = {" KiB", " MiB", " GiB"};
	unsigned unit = bytes >= UINT64_C(1) << 30 ? 2 : bytes >= 1u << 20;
	uint64_t tenths = bytes * 10 >> 10 * (unit + 1);

	tacho__text_put_u64(t, tenths / 10);
	if (tenths < 100 && tenths % 10) {
		tacho__text_put(t, ".");
		tacho__text_put_u64(t, tenths % 10);
	}
	tacho__text_put(t, units[unit]);
}

static void put_share(struct tacho__text *t)
{
	tacho__text_put(t, ", of which boxes take at most ");
	tacho__text_put_u64(t, share_percent);
	tacho__text_put(t, " % (TACHO_MEMORY_SHARE).");
}

static void put_refusal(struct tacho__text *t, const struct refusal *r)
{
	switch (r->why) {
	case WHY_FILE_SYSTEM:
		tacho__text_put(t, "the file system of ");
		tacho__text_put(t, folder_path);
		tacho__text_put(t, " has ");
		put_size(t, r->size);
		tacho__text_put(t, ", of which boxes leave at least half free.");
		break;
	case WHY_CGROUP:
		tacho__text_put(t, "the memory limit of its cgroup is ");
		put_size(t, r->size);
		put_share(t);
		break;
	case WHY_MACHINE:
		tacho__text_put(t, "the machine has ");
		put_size(t, r->size);
		tacho__text_put(t, " of memory");
		put_share(t);
		break;
	case WHY_CGROUP_FULL:
		tacho__text_put(t, "its cgroup has nearly reached its memory limit of ");
		put_size(t, r->size);
		tacho__text_put(t, ".");
		break;
	case WHY_TOO_MANY:
		tacho__text_put(t, folder_path);
		tacho__text_put(t, " has more than 1024 boxes.");
		break;
	default:
		tacho__text_put(t, "the folder ");
		tacho__text_put(t, folder_path);
		tacho__text_put(t, " cannot be opened any more.");
	}
}

static void explain(char *to, size_t room, const char *before, uint64_t size,
		    const struct refusal *r)
{
	struct tacho__text t;

	tacho__text_init(&t, to, room);
	tacho__text_put(&t, before);
	if (size)
		put_size(&t, size);
	tacho__text_put(&t, ": ");
	put_refusal(&t, r);
}

/* ------------------------------------------------------------- before the box */

uint64_t tacho__room_plan(const struct tacho__options *o, int dir, const char *path, char *reason,
			  size_t reason_size)
{
	struct refusal because = {WHY_FITS, 0}, refusal;
	uint64_t size;
	struct stat st;

	folder_path = path;
	folder_device = folder_inode = 0;
	if (!tacho__fstat(dir, &st)) {
		folder_device = st.st_dev;
		folder_inode = st.st_ino;
	}
	share_percent = o->memory_share;
	size_given = o->size_given;
	look(&work.view, dir);
	refusal = fits(&work.view, 0, TACHO__ROOM_LEAST);
	if (refusal.why != WHY_FITS) {
		explain(reason, reason_size, NO_ROOM, 0, &refusal);
		return 0;
	}
	size = most(&work.view, &because);
	kept_at = size < o->max_bytes ? size : 0;
	if (!kept_at)
		return o->max_bytes;
	if (!reason[0])
		explain(reason, reason_size, "The box takes at most ", size, &because);
	if (size >= LAID_OUT_BELOW)
		return o->max_bytes;
	size &= ~(uint64_t)(TACHO_BOX_ALIGN - 1);
	return size < TACHO_BOX_MIN_BYTES ? TACHO_BOX_MIN_BYTES : size;
}

uint64_t tacho__room_whole(int dir, uint64_t size, char *reason, size_t reason_size)
{
	struct refusal refusal;

	look(&work.view, dir);
	for (;;) {
		refusal = fits(&work.view, TACHO_BOX_ALIGN, size);
		if (refusal.why == WHY_FITS)
			return size;
		if (size / 2 < TACHO_BOX_MIN_BYTES)
			break;
		size = size / 2 & ~(uint64_t)(TACHO_BOX_ALIGN - 1);
	}
	explain(reason, reason_size, NO_ROOM, 0, &refusal);
	return 0;
}

/* ------------------------------------------------------------------- the claim */

static void publish(uint64_t granted)
{
	__atomic_store_n(&tacho__rec->super->room.granted, granted, __ATOMIC_SEQ_CST);
}

/*
 * Claims up to `want` bytes, at least `need`; returns them, or 0 with the reason. Without `dir`, when
 * the process has no descriptor left, the other boxes and the limits are those of the last look.
 */
static uint64_t claim(int dir, uint64_t need, uint64_t want, struct refusal *refusal)
{
	struct tacho__recorder *r = tacho__rec;
	struct view *v = &work.view;
	uint64_t used = tacho__load(&r->used), before = tacho__load(&r->granted);

	look_at_file_system(v, dir);
	if (dir >= 0)
		look_at_memory(v);
	for (uint32_t i = 0; i < TACHO_BOX_LIMITS; i++)
		tacho__store(&r->super->room.limits[i],
			     i < v->memory.count ? v->memory.limit[i].id : 0);
	publish(want); /* before the others are looked at */
	if (dir >= 0)
		add_boxes(v, dir);
	*refusal = fits(v, used, want);
	if (refusal->why != WHY_FITS && need < want) {
		want = need;
		*refusal = fits(v, used, want);
	}
	if (refusal->why != WHY_FITS)
		want = before;
	publish(want);
	tacho__store(&r->spare, fits(v, used, r->size).why == WHY_FITS ? r->size : want + want / 2);
	tacho__store(&r->granted, want);
	return refusal->why == WHY_FITS ? want : 0;
}

int tacho__room_claim(int dir, uint64_t size, char *reason, size_t reason_size)
{
	struct refusal refusal;

	if (claim(dir, size, size < FIRST_CLAIM ? FIRST_CLAIM : size, &refusal)) {
		tacho__store(&tacho__rec->super->room.kept_at, kept_at);
		return 0;
	}
	explain(reason, reason_size, NO_ROOM, 0, &refusal);
	return -EDQUOT;
}

static void say_refused(const struct refusal *refusal)
{
	struct tacho__recorder *r = tacho__rec;

	uint64_t granted = tacho__load(&r->granted);

	if (r->super->room.kept_at)
		return;
	if (!r->super->reason[0])
		explain(r->super->reason, sizeof(r->super->reason), "The box stays at ", granted,
			refusal);
	tacho__store(&r->super->room.kept_at, granted);
}

static int ask(uint64_t need)
{
	struct tacho__recorder *r = tacho__rec;
	struct refusal refusal = {WHY_UNSEEN, 0};
	uint64_t step = need / 4 > TACHO_SLOT_SIZE ? need / 4 : TACHO_SLOT_SIZE;
	uint64_t granted = 0;
	int dir = -ENOENT;

	if (folder_is_there())
		dir = tacho__openat(AT_FDCWD, folder_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir >= 0 || dir == -EMFILE || dir == -ENFILE)
		granted = claim(dir, need, need + step < r->size ? need + step : r->size, &refusal);
	if (dir >= 0)
		tacho__close(dir);
	tacho__store(&r->refused_ns, granted ? 0 : tacho__clock_ns(CLOCK_MONOTONIC));
	if (!granted)
		say_refused(&refusal);
	return granted != 0;
}

/* Whether the box may have `need` bytes. While one thread asks, others do not wait for it. They take what
   the last look found to be there, or a little more than what was granted. */
static int have(uint64_t need)
{
	struct tacho__recorder *r = tacho__rec;
	uint64_t refused = tacho__load(&r->refused_ns), granted = tacho__load(&r->granted);
	uint32_t nobody = 0;
	int may;

	if (need > r->size)
		need = r->size;
	if (need <= granted)
		return 1;
	if (refused && tacho__clock_ns(CLOCK_MONOTONIC) - refused < ASK_AGAIN_NS)
		return 0;
	if (!__atomic_compare_exchange_n(&r->asking, &nobody, 1, 0, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return need <= tacho__load(&r->spare);
	may = need <= tacho__load(&r->granted) || ask(need);
	__atomic_store_n(&r->asking, 0, __ATOMIC_RELEASE);
	return may;
}

int tacho__room_take(uint64_t size)
{
	uint64_t used = __atomic_add_fetch(&tacho__rec->used, size, __ATOMIC_RELAXED);

	if (tacho__likely(used <= tacho__load(&tacho__rec->granted)) || have(used))
		return 0;
	tacho__room_give_back(size);
	return -EDQUOT;
}

void tacho__room_give_back(uint64_t size)
{
	__atomic_fetch_sub(&tacho__rec->used, size, __ATOMIC_RELAXED);
}

int tacho__room_for(uint64_t size)
{
	struct tacho__recorder *r = tacho__rec;

	/* Not for the first slot, without which definitions are of no use. */
	if (tacho__load(&r->super->slots_used))
		size += DEFINITIONS_RESERVE;
	return !tacho__load(&r->full) && have(tacho__load(&r->used) + size);
}
