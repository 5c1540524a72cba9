#include "agent/stall.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "format/copy.h"
#include "format/definition.h"
#include "format/underway.h"
#include "read/reader.h"

#define THREADS_MAX 16384u /* more than a recorder has; what a false box may make us hold */
#define THREADS_AT_ONCE 64u
#define TRIES 4

/* What is known of a thread from its records. */
struct seen {
	uint32_t number, tid;
	uint64_t generation; /* of the chunk that was read last; 0: none */
	uint32_t at;	     /* bytes of it that were read */
	bool live, sure, gone;
	uint32_t level; /* enum tacho_level of `level_loop` */
	uint32_t level_loop;
	uint32_t waits;		   /* that ended, as far as they were seen */
	uint64_t ticks;		   /* of the last record */
	struct tacho_underway now; /* times in ticks */
	uint64_t step;	  /* ticks of the last unpark, or begin or end of an outermost poll */
	uint64_t pending; /* ticks at which a poll began that is not recorded yet; 0: none */
	uint32_t pending_kind;
	uint64_t told[2]; /* by way in which it was stalled: since when, once that was told */
};

/* What threads that wait with the same loop serve. */
struct queue {
	uint32_t loop; /* 0: this place is free */
	uint32_t waits;
	bool served;	/* one of them is parked in it, or may be */
	uint64_t since; /* ticks at which the last of them unparked; 0: none did */
};

struct tacho__stall {
	int fd;
	pid_t pid;
	struct tacho_box_super super;
	struct seen *seen;
	uint32_t count, capacity;
	struct queue *queues; /* by a hash of the loop: more places than threads */
	uint32_t places;      /* a power of two */
	uint64_t pause;	      /* ticks of the last known moment without recording */
	uint64_t now_ticks, now_ns;
	uint64_t buffer[TACHO_SLOT_SIZE / 8];
};

struct tacho__stall *tacho__stall_new(int fd, pid_t pid)
{
	struct tacho__stall *s = calloc(1, sizeof(*s));

	if (s) {
		s->fd = fd;
		s->pid = pid;
	}
	return s;
}

void tacho__stall_free(struct tacho__stall *s)
{
	if (!s)
		return;
	free(s->seen);
	free(s->queues);
	free(s);
}

/* ------------------------------------------------------------- reading */

/* All or an error: -EBADMSG beyond the end, also of a file that was cut meanwhile. */
static int read_at(void *arg, uint64_t offset, void *to, size_t size)
{
	const struct tacho__stall *s = arg;
	int err = tacho__read_at(s->fd, offset, to, size);

	return err == -ENODATA ? -EBADMSG : err;
}

static const struct tacho_box_region *region_of(const struct tacho__stall *s,
						enum tacho_region which, uint32_t entry_size)
{
	const struct tacho_box_region *r = &s->super.regions[which];

	if (s->super.region_count <= (uint32_t)which || r->entry_size != entry_size ||
	    r->offset > INT64_MAX || r->size > INT64_MAX - r->offset)
		return NULL;
	return r;
}

static int read_super(struct tacho__stall *s)
{
	int err = read_at(s, 0, &s->super, sizeof(s->super));

	if (err)
		return err;
	if (memcmp(s->super.magic, TACHO_BOX_MAGIC, sizeof(s->super.magic)) ||
	    s->super.version > TACHO_BOX_VERSION || s->super.region_count > 16)
		return -EBADMSG;
	return 0;
}

/* Name, and level if it is a loop; "" and 0 when there is no such definition. */
static uint32_t read_name(struct tacho__stall *s, uint32_t id, char *name, size_t room)
{
	const struct tacho_box_region *dir =
		region_of(s, TACHO_REGION_DEF_DIR, sizeof(struct tacho_box_def));
	const struct tacho_box_region *data = region_of(s, TACHO_REGION_DEF_DATA, 1);
	uint8_t payload[TACHO_NAME_HEAD + TACHO_NAME_MAX];
	struct tacho_box_def def;
	uint64_t offset;
	uint16_t bytes;

	name[0] = 0;
	if (!dir || !data || !id || id >= dir->count ||
	    read_at(s, dir->offset + (uint64_t)id * sizeof(def), &def, sizeof(def)) ||
	    !def.offset || (def.class != TACHO_DEF_LOOP && def.class != TACHO_DEF_KIND) ||
	    def.size < TACHO_NAME_HEAD)
		return 0;
	offset = ((uint64_t)def.offset - 1) * 8;
	if (def.size > sizeof(payload))
		def.size = sizeof(payload);
	if (offset > data->size || data->size - offset < def.size ||
	    read_at(s, data->offset + offset, payload, def.size))
		return 0;
	memcpy(&bytes, payload + 12, sizeof(bytes));
	if (bytes > def.size - TACHO_NAME_HEAD)
		bytes = (uint16_t)(def.size - TACHO_NAME_HEAD);
	if (bytes > room - 1)
		bytes = (uint16_t)(room - 1);
	memcpy(name, payload + TACHO_NAME_HEAD, bytes);
	name[bytes] = 0;
	return def.class == TACHO_DEF_LOOP ? payload[16] : 0;
}

/* ------------------------------------------- what the records of a thread say */

/* Ticks of the last unpark; 0: it is parked, or never was. */
static uint64_t unpark_of(const struct seen *t)
{
	return t->now.parked ? 0 : t->now.park_time;
}

static void apply(struct tacho__stall *s, struct seen *t, const struct tacho__raw_record *r)
{
	const struct tacho_open *outer;

	tacho_underway_apply(&t->now, r->type, r->arg, r->words ? r->word[0] : 0, r->ticks);
	switch (r->type) {
	case TACHO_REC_UNPARK:
		t->step = r->ticks;
		t->waits += t->waits < TACHO__LOOP_WAITS;
		break;
	case TACHO_REC_POLL_SWITCH:
	case TACHO_REC_POLL_BEGIN:
	case TACHO_REC_POLL_END:
		outer = tacho_underway_outer_poll(&t->now);
		if (!outer || outer->since == r->ticks)
			t->step = r->ticks;
		break;
	case TACHO_REC_PAUSE:
		if (r->ticks > s->pause)
			s->pause = r->ticks;
		break;
	default:
		break;
	}
}

/* The state at the beginning of a chunk that was not read before. */
static void enter_chunk(struct seen *t, const struct tacho_chunk *c)
{
	const struct tacho_open *outer;

	/* A thread that we come late to and that has filled chunks: one wait of it is enough. */
	if (!t->generation && c->sequence && c->park_ticks)
		t->waits = TACHO__LOOP_WAITS - 1;
	t->generation = c->generation;
	t->at = TACHO_CHUNK_HEAD;
	t->ticks = c->anchor.ticks;
	t->now = (struct tacho_underway){
		.loop = c->loop,
		.depth = c->open_count,
		.parked = (c->flags & TACHO_CHUNK_PARKED) != 0,
		.park_time = c->park_ticks,
	};
	memcpy(t->now.open, c->open, sizeof(t->now.open));
	outer = tacho_underway_outer_poll(&t->now);
	/* Without an open poll, all that is known is that the last one ended before. */
	t->step = outer ? outer->since : unpark_of(t) ? c->anchor.ticks : 0;
	if (t->step < unpark_of(t))
		t->step = unpark_of(t);
}

/* Copies what is new in the chunk, and more only if it is another one than before. 1, 0: nothing
   is; -EAGAIN: it changed meanwhile, or is not the thread's (any more); else an error of reading. */
static int copy_news(struct tacho__stall *s, const struct seen *t,
		     const struct tacho_box_bytes *bytes, struct tacho_copy *c)
{
	struct tacho_box_slot slot;
	uint64_t now[2]; /* generation and commit */
	int done = read_at(s, tacho_copy_offset(bytes, c->slot, c->part), now, sizeof(now));

	if (done || (now[0] == t->generation && now[1] == t->at))
		return done;
	done = tacho_copy_slot(bytes, c->slot, &slot);
	c->state = slot.state;
	if (!done)
		done = tacho_copy_begin(c, bytes);
	if (done > 0 &&
	    (c->head.magic != TACHO_CHUNK_MAGIC || c->head.thread != t->number || c->head.stream))
		return -EAGAIN;
	if (done > 0) {
		c->from = c->head.generation == t->generation && c->size >= t->at
				  ? t->at
				  : TACHO_CHUNK_HEAD;
		done = tacho_copy_end(c, bytes, s->buffer);
	}
	return done ? done : -EAGAIN;
}

/* Reads what is new in the chunk. 0 or as copy_news. */
static int read_chunk(struct tacho__stall *s, struct seen *t, uint32_t chunk)
{
	const struct tacho_box_region *g = s->super.regions;
	struct tacho_box_bytes bytes = {read_at, s, g[TACHO_REGION_SLOTS].offset,
					g[TACHO_REGION_POOL].offset};
	struct tacho_copy c = {.slot = chunk / TACHO_SMALL_PER_SLOT,
			       .part = chunk % TACHO_SMALL_PER_SLOT};
	struct tacho__raw_record record;
	struct tacho__chunk_cursor cursor;
	int more = copy_news(s, t, &bytes, &c);

	if (more <= 0)
		return more;
	if (c.from == TACHO_CHUNK_HEAD)
		enter_chunk(t, &c.head);
	cursor = (struct tacho__chunk_cursor){
		.data = (const uint8_t *)s->buffer,
		.end = c.size - c.from,
		.ticks = t->ticks,
	};
	t->at = c.size;
	while ((more = tacho__chunk_next(&cursor, &record)) > 0)
		apply(s, t, &record);
	t->ticks = cursor.ticks;
	return more;
}

/* 0, or -EAGAIN: what the thread does could not be seen this time. */
static int follow_thread(struct tacho__stall *s, struct seen *t,
			 const struct tacho_box_thread *entry, uint64_t entry_offset)
{
	struct tacho_box_thread again;
	const struct tacho_box_region *pool =
		region_of(s, TACHO_REGION_POOL, s->super.regions[TACHO_REGION_POOL].entry_size);
	const struct tacho_box_region *slots =
		region_of(s, TACHO_REGION_SLOTS, sizeof(struct tacho_box_slot));
	uint64_t offset = (uint64_t)entry->chunk * TACHO_SMALL_SIZE;
	int err;

	t->live = entry->state == TACHO_THREAD_LIVE;
	if (!t->live)
		return 0;
	if (t->number != entry->number)
		*t = (struct seen){.number = entry->number, .live = true};
	t->tid = entry->tid;
	t->sure = false;
	if (!pool || !slots || entry->chunk == TACHO_NO_CHUNK || offset > pool->size ||
	    pool->size - offset < TACHO_SMALL_SIZE ||
	    entry->chunk / TACHO_SMALL_PER_SLOT >= slots->count)
		return 0;
	err = read_chunk(s, t, entry->chunk);
	if (err)
		return err == -EAGAIN ? err : 0;
	t->sure = entry->drops == 0;
	t->pending = 0;
	/* The entry was copied while the thread may have written to it: once more. */
	if (entry->pending_kind && entry->pending_ticks >= t->step &&
	    !read_at(s, entry_offset, &again, sizeof(again)) &&
	    again.pending_kind == entry->pending_kind &&
	    again.pending_ticks == entry->pending_ticks) {
		t->pending = entry->pending_ticks;
		t->pending_kind = entry->pending_kind;
	}
	return 0;
}

static int reserve(struct tacho__stall *s, uint32_t count)
{
	struct seen *more;

	if (count <= s->capacity)
		return 0;
	more = realloc(s->seen, count * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + s->capacity, 0, (count - s->capacity) * sizeof(*more));
	s->seen = more;
	s->capacity = count;
	return 0;
}

/* *busy: a thread changed its chunk faster than we could read; it does not stand still. */
static int follow_threads(struct tacho__stall *s, bool *busy)
{
	const struct tacho_box_region *r =
		region_of(s, TACHO_REGION_THREADS, sizeof(struct tacho_box_thread));
	struct tacho_box_thread entries[THREADS_AT_ONCE] = {0};
	uint32_t used = s->super.threads_used;

	if (!r)
		return -EBADMSG;
	if (used > r->count || used > THREADS_MAX)
		used = r->count < THREADS_MAX ? r->count : THREADS_MAX;
	s->count = 0;
	for (uint32_t i = 0; i < used; i += THREADS_AT_ONCE) {
		uint32_t n = used - i < THREADS_AT_ONCE ? used - i : THREADS_AT_ONCE;
		uint64_t offset = r->offset + (uint64_t)i * sizeof(entries[0]);
		int err = read_at(s, offset, entries, n * sizeof(entries[0]));

		if (!err)
			err = reserve(s, i + n);
		if (err)
			return err;
		for (uint32_t k = 0; k < n; k++) {
			uint64_t at = offset + k * sizeof(entries[0]);
			int tries = 0;

			while (follow_thread(s, &s->seen[i + k], &entries[k], at) == -EAGAIN) {
				if (++tries == TRIES ||
				    read_at(s, at, &entries[k], sizeof(entries[k]))) {
					*busy = true;
					break;
				}
			}
		}
		s->count = i + n;
	}
	return 0;
}

/* ------------------------------------------------------------- judging */

static uint64_t ns_since(const struct tacho__stall *s, uint64_t ticks)
{
	const struct tacho_anchor *created = &s->super.created;
	unsigned __int128 ns;

	if (ticks >= s->now_ticks || created->ticks >= s->now_ticks ||
	    created->mono_ns >= s->now_ns)
		return 0;
	ns = (unsigned __int128)(s->now_ticks - ticks) * (s->now_ns - created->mono_ns) /
	     (s->now_ticks - created->ticks);
	return ns < s->now_ns ? (uint64_t)ns : s->now_ns;
}

/* Threads that end by themselves are marked as ended only when there is need of their entry.
   Another pid than the box says: the process counts its threads in another namespace. */
static bool is_gone(struct tacho__stall *s, struct seen *t)
{
	char path[64];

	if (t->gone || s->pid <= 0 || (uint32_t)s->pid != s->super.pid)
		return t->gone;
	snprintf(path, sizeof(path), "/proc/%u/task/%u", (unsigned)s->pid, (unsigned)t->tid);
	t->gone = faccessat(AT_FDCWD, path, F_OK, 0) && errno == ENOENT;
	return t->gone;
}

/* Ticks since when a poll is open around all that the thread does, 0: none is. */
static uint64_t poll_since(const struct seen *t, uint32_t *kind)
{
	const struct tacho_open *o = tacho_underway_outer_poll(&t->now);

	*kind = o ? o->id : t->pending ? t->pending_kind : 0;
	return o ? o->since : t->pending;
}

/* ---------------------------------------------------------- queues of work */

/* Its place: that of the loop, or a free one. */
static struct queue *queue_of(const struct tacho__stall *s, uint32_t loop)
{
	uint32_t i = (uint32_t)(tacho__mix(loop) >> 32);

	while (s->queues[i & (s->places - 1)].loop && s->queues[i & (s->places - 1)].loop != loop)
		i++;
	return &s->queues[i & (s->places - 1)];
}

static void join_queue(struct tacho__stall *s, struct seen *t)
{
	struct queue *q = queue_of(s, t->now.loop);
	uint64_t unpark = unpark_of(t);

	q->loop = t->now.loop;
	q->waits += t->waits;
	if (unpark > q->since)
		q->since = unpark;
	/* Of one that could not be read nobody knows. One that died in its wait serves no more. */
	if ((!t->sure || t->now.parked) && !q->served)
		q->served = !is_gone(s, t);
}

static int find_queues(struct tacho__stall *s)
{
	uint32_t places = s->places ? s->places : 16;

	while (places < 2 * s->count)
		places *= 2;
	if (places != s->places) {
		struct queue *more = realloc(s->queues, places * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->queues = more;
		s->places = places;
	}
	memset(s->queues, 0, places * sizeof(*s->queues));
	for (uint32_t i = 0; i < s->count; i++)
		if (s->seen[i].live && s->seen[i].now.loop && !s->seen[i].gone)
			join_queue(s, &s->seen[i]);
	return 0;
}

/* Ticks since when the loop has not come back, 0: it waits, another serves its queue or came last,
   or it never did. */
static uint64_t turn_since(const struct tacho__stall *s, const struct seen *t)
{
	const struct queue *q = queue_of(s, t->now.loop);

	if (!unpark_of(t) || q->served || unpark_of(t) < q->since ||
	    (t->level == TACHO_LEVEL_WAITS && q->waits < TACHO__LOOP_WAITS))
		return 0;
	if (t->level != TACHO_LEVEL_API)
		return unpark_of(t);
	if (t->pending || tacho_underway_outer_poll(&t->now))
		return t->pending > t->step ? t->pending : t->step;
	/* Between two polls. Those that are only counted leave no trace of when they ended. */
	return s->super.poll_threshold_ns ? 0 : t->step;
}

/* The ways in which a thread may be stalled. */
enum way { WAY_TURN, WAY_POLL, WAY_COUNT };

/* Ticks since when, by way; 0: not. */
static void ways_of(struct tacho__stall *s, struct seen *t, uint64_t since[WAY_COUNT])
{
	char name[8];
	uint32_t kind;

	since[WAY_TURN] = since[WAY_POLL] = 0;
	if (!t->live || !t->now.loop || !t->sure || t->gone)
		return;
	if (t->level_loop != t->now.loop) {
		t->level = read_name(s, t->now.loop, name, sizeof(name));
		t->level_loop = t->now.loop;
	}
	since[WAY_TURN] = turn_since(s, t);
	/* A thread that is parked itself waits inside of its poll. */
	since[WAY_POLL] =
		t->now.parked || !queue_of(s, t->now.loop)->served ? poll_since(t, &kind) : 0;
	/* A poll of this turn is part of it; one from before it is a loop around this one. */
	if (since[WAY_TURN] && since[WAY_POLL] >= since[WAY_TURN])
		since[WAY_POLL] = 0;
	for (int i = 0; i < WAY_COUNT; i++)
		if (since[i] <= s->pause)
			since[i] = 0;
}

struct worst {
	struct seen *thread;
	enum way way;
	uint64_t since;
};

static void find_worst(struct tacho__stall *s, struct seen *t, uint64_t limit,
		       struct tacho__stalled *out, struct worst *worst)
{
	uint64_t since[WAY_COUNT];

	ways_of(s, t, since);
	for (int i = 0; i < WAY_COUNT; i++) {
		uint64_t took = since[i] ? ns_since(s, since[i]) : 0;
		bool fresh = since[i] != t->told[i];

		if (took <= limit || is_gone(s, t))
			continue;
		out->stalled++;
		if (out->found &&
		    (out->fresh > fresh || (out->fresh == fresh && out->took_ns >= took)))
			continue;
		out->found = true;
		out->fresh = fresh;
		out->took_ns = took;
		*worst = (struct worst){t, (enum way)i, since[i]};
	}
}

static void describe(struct tacho__stall *s, const struct worst *w, struct tacho__stalled *out)
{
	out->tid = w->thread->tid;
	out->thread = w->thread->number;
	out->since_ns = s->now_ns - out->took_ns;
	(void)poll_since(w->thread, &out->kind);
	read_name(s, out->kind, out->kind_name, sizeof(out->kind_name));
	read_name(s, w->thread->now.loop, out->loop_name, sizeof(out->loop_name));
}

/* When something can be told of the thread that was not told yet. */
static uint64_t due_of(struct tacho__stall *s, struct seen *t, uint64_t limit)
{
	uint64_t since[WAY_COUNT], due = UINT64_MAX;

	ways_of(s, t, since);
	for (int i = 0; i < WAY_COUNT; i++) {
		uint64_t at = s->now_ns - ns_since(s, since[i]) + limit + 1;

		if (since[i] && since[i] != t->told[i] && at < due)
			due = at;
		/* It comes back by the end of a poll, of which nobody is woken. */
		if (since[i] && t->level == TACHO_LEVEL_API && s->now_ns + limit < due)
			due = s->now_ns + limit;
	}
	return due;
}

int tacho__stall_look(struct tacho__stall *s, uint64_t limit_ns, struct tacho__stalled *out)
{
	struct worst worst = {0};
	bool busy = false;
	int err;

	*out = (struct tacho__stalled){.due_ns = UINT64_MAX};
	if (limit_ns > UINT64_MAX / 4)
		limit_ns = UINT64_MAX / 4;
	err = read_super(s);
	if (!err &&
	    (s->super.state == TACHO_STATE_RECORDING || s->super.state == TACHO_STATE_PAUSED))
		err = follow_threads(s, &busy);
	if (!err)
		err = find_queues(s);
	if (err)
		return err;
	/* After the records: none of them is from the future. */
	tacho__clock_pair(s->super.clock != TACHO_CLOCK_MONOTONIC, &s->now_ticks, &s->now_ns);
	if (s->super.state != TACHO_STATE_RECORDING) {
		s->pause = s->now_ticks;
		out->idle = true;
		return 0;
	}
	for (uint32_t i = 0; i < s->count; i++) {
		out->loops += s->seen[i].live && s->seen[i].now.loop;
		find_worst(s, &s->seen[i], limit_ns, out, &worst);
	}
	if (worst.thread) {
		describe(s, &worst, out);
		worst.thread->told[worst.way] = worst.since;
	}
	if (busy)
		out->due_ns = s->now_ns + limit_ns;
	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t due = due_of(s, &s->seen[i], limit_ns);

		out->due_ns = due < out->due_ns ? due : out->due_ns;
	}
	out->idle = out->due_ns == UINT64_MAX;
	return 0;
}
