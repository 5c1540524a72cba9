/*
 * The trace file from inside: META, CLOCK, ... and each chunk as it stands, without
 * compression and without index (format/trace.h). One block at a time is put
 * together in memory that was there before, so this works in a crash handler
 * with a damaged heap.
 */
#include "core/snapshot.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/crc32c.h"
#include "base/sys.h"
#include "core/recorder.h"
#include "core/testpoint.h"
#include "format/copy.h"
#include "format/trace.h"
#include "tacho.h"

#if defined(__x86_64__)
#define ARCH EM_X86_64
#else
#define ARCH EM_AARCH64
#endif

struct out {
	int fd;
	int error;
	uint32_t tag;
	uint32_t blocks;
	uint8_t *payload; /* of the block being put together */
	uint32_t size;
	uint32_t room;
	uint32_t unread; /* chunks that changed while they were copied */
};

static void put_out(struct out *o, const void *data, size_t size)
{
	const uint8_t *p = data;

	while (size && !o->error) {
		long n = tacho__write(o->fd, p, size);

		if (n == -EINTR)
			continue;
		if (n <= 0) {
			o->error = n ? (int)n : -EIO;
			return;
		}
		p += n;
		size -= (size_t)n;
	}
}

static void block_begin(struct out *o)
{
	o->size = 0;
}

/* Bytes into the payload, padded to 8 with zeros. What does not fit is left out: callers
   see to it that blocks fit. */
static void block_put(struct out *o, const void *data, uint32_t size)
{
	uint32_t padded = (size + 7u) & ~7u;

	if (o->size + padded > o->room)
		return;
	memcpy(o->payload + o->size, data, size);
	memset(o->payload + o->size + size, 0, padded - size);
	o->size += padded;
}

static void block_end(struct out *o, enum tacho_block_type type)
{
	struct tacho_trace_block b;

	memset(&b, 0, sizeof(b));
	b.magic = TACHO_BLOCK_MAGIC;
	b.type = (uint16_t)type;
	b.encoding = TACHO_ENCODING_PLAIN;
	b.stored_size = b.raw_size = o->size;
	b.number = o->blocks++;
	b.tag = o->tag;
	b.payload_crc = tacho__crc32c(0, o->payload, o->size);
	b.crc = tacho__crc32c(0, &b, offsetof(struct tacho_trace_block, crc));
	put_out(o, &b, sizeof(b));
	put_out(o, o->payload, o->size);
	TACHO_TESTPOINT("snapshot-block");
}

static void meta(struct out *o, enum tacho_meta_key key, const void *data, uint32_t size)
{
	struct tacho_trace_meta head = {(uint16_t)key, 0, size};

	block_put(o, &head, sizeof(head));
	block_put(o, data, size);
}

static void meta_u64(struct out *o, enum tacho_meta_key key, uint64_t v)
{
	meta(o, key, &v, sizeof(v));
}

static void meta_text(struct out *o, enum tacho_meta_key key, const char *s, size_t most)
{
	size_t n = strnlen(s, most);

	if (n)
		meta(o, key, s, (uint32_t)n);
}

static void put_meta(struct out *o, uint32_t taken_by)
{
	const struct tacho_box_super *s = tacho__rec->super;
	uint64_t now_ns = tacho__clock_ns(CLOCK_MONOTONIC);

	block_begin(o);
	meta_u64(o, TACHO_META_PID, s->pid);
	meta_u64(o, TACHO_META_UID, s->uid);
	meta_u64(o, TACHO_META_START_TIME, s->start_time);
	meta(o, TACHO_META_BOOT_ID, s->boot_id, sizeof(s->boot_id));
	meta_text(o, TACHO_META_EXE, s->exe, sizeof(s->exe));
	meta_text(o, TACHO_META_COMM, s->comm, sizeof(s->comm));
	if (s->build_id_size && s->build_id_size <= sizeof(s->build_id))
		meta(o, TACHO_META_BUILD_ID, s->build_id, s->build_id_size);
	meta_text(o, TACHO_META_SERVICE, s->service, sizeof(s->service));
	meta_u64(o, TACHO_META_CLOCK, s->clock);
	meta_u64(o, TACHO_META_MAX_BYTES, s->box_size);
	meta_u64(o, TACHO_META_MIN_AGE, s->min_age_ns);
	meta_u64(o, TACHO_META_POLL_THRESHOLD, s->poll_threshold_ns);
	meta_u64(o, TACHO_META_STATE, tacho__load(&s->state));
	meta_text(o, TACHO_META_REASON, s->reason, sizeof(s->reason));
	if (s->parent_pid)
		meta_u64(o, TACHO_META_PARENT_PID, s->parent_pid);
	meta_text(o, TACHO_META_BOX_NAME, tacho__rec->box_name, sizeof(tacho__rec->box_name));
	meta_u64(o, TACHO_META_ARCH, ARCH);
	meta_u64(o, TACHO_META_CREATED_MONO, s->created.mono_ns);
	meta_u64(o, TACHO_META_CREATED_REAL, s->created.real_ns);
	meta_u64(o, TACHO_META_TAKEN_MONO, now_ns);
	meta_u64(o, TACHO_META_TAKEN_REAL, tacho__clock_ns(CLOCK_REALTIME));
	meta_u64(o, TACHO_META_TAKEN_BY, taken_by);
	meta_text(o, TACHO_META_VERSION, TACHO_VERSION, sizeof(TACHO_VERSION));
	meta_u64(o, TACHO_META_ALIVE, 1);
	meta_u64(o, TACHO_META_END_HOW, TACHO_END_RUNNING);
	meta_u64(o, TACHO_META_END_MONO, now_ns);
	meta_u64(o, TACHO_META_THREADS_SEEN, tacho__load(&s->threads_seen));
	block_end(o, TACHO_BLOCK_META);
}

/* The anchors of the chunks come with the chunks; these are the two ends. */
static void put_clock(struct out *o)
{
	struct tacho_trace_array a = {sizeof(struct tacho_anchor), 2};
	struct tacho_anchor now;

	tacho__clock_pair(tacho__clock_kind != TACHO_CLOCK_MONOTONIC, &now.ticks, &now.mono_ns);
	now.real_ns = tacho__clock_ns(CLOCK_REALTIME);
	block_begin(o);
	block_put(o, &a, sizeof(a));
	block_put(o, &tacho__rec->super->created, sizeof(now));
	block_put(o, &now, sizeof(now));
	block_end(o, TACHO_BLOCK_CLOCK);
}

/* The writers go on meanwhile: a race by design, for which a reader is prepared. Word by word, as
   they store; a thread sanitizer looks into memcpy and atomics even here. */
__attribute__((no_sanitize("thread"))) static int read_live(void *arg, uint64_t offset, void *to,
							    size_t size)
{
	const volatile uint64_t *from = (const volatile uint64_t *)((uint8_t *)arg + offset);

	for (size_t i = 0; i < size / 8; i++) {
		uint64_t word = from[i];

		memcpy((uint8_t *)to + 8 * i, &word, sizeof(word));
	}
	return 0;
}

/* `count` entries of a region, in as many blocks as they take. */
static void put_entries(struct out *o, enum tacho_block_type type, void *from, uint32_t entry_size,
			uint32_t count)
{
	uint32_t each = (o->room - 8) / entry_size;

	for (uint32_t i = 0; i < count;) {
		struct tacho_trace_array a = {entry_size, count - i < each ? count - i : each};

		block_begin(o);
		block_put(o, &a, sizeof(a));
		read_live(from, (uint64_t)i * entry_size, o->payload + o->size,
			  (size_t)a.count * entry_size);
		o->size += a.count * entry_size;
		i += a.count;
		block_end(o, type);
	}
}

static void put_chunk(struct out *o, const struct tacho_box_bytes *box, struct tacho_copy *c)
{
	if (tacho_copy_begin(c, box) <= 0)
		return;
	if (tacho_copy_end(c, box, o->payload) > 0) {
		o->size = c->size;
		block_end(o, TACHO_BLOCK_CHUNK);
	} else {
		o->unread++;
	}
}

static void put_chunks(struct out *o)
{
	const struct tacho__recorder *r = tacho__rec;
	struct tacho_box_bytes box = {read_live, r->base, (uint64_t)((uint8_t *)r->slots - r->base),
				      (uint64_t)(r->pool - r->base)};
	uint32_t used = tacho__load(&r->super->slots_used);

	for (uint32_t i = 0; i < used && !o->error; i++) {
		struct tacho_box_slot slot;

		tacho_copy_slot(&box, i, &slot);
		for (uint32_t k = 0; k < TACHO_SMALL_PER_SLOT; k++) {
			struct tacho_copy c = {.slot = i, .part = k, .state = slot.state};

			if (slot.pages >> k & 1)
				put_chunk(o, &box, &c);
		}
	}
}

/* After the chunks, so that every id in them is here. */
static void put_definitions(struct out *o)
{
	uint32_t limit = tacho__load(&tacho__rec->super->next_def);

	block_begin(o);
	for (uint32_t id = 1; id < limit; id++) {
		const struct tacho_box_def *d = &tacho__rec->defs[id];
		uint32_t at = __atomic_load_n(&d->offset, __ATOMIC_ACQUIRE);
		struct tacho_trace_def head = {id, d->size, d->class, d->flags};

		if (!at)
			continue;
		if (o->size + sizeof(head) + d->size + 8u > o->room) {
			block_end(o, TACHO_BLOCK_DEFINITIONS);
			block_begin(o);
		}
		block_put(o, &head, sizeof(head));
		block_put(o, tacho__rec->def_data + (uint64_t)(at - 1) * 8, d->size);
	}
	if (o->size)
		block_end(o, TACHO_BLOCK_DEFINITIONS);
}

static void put_end(struct out *o)
{
	struct tacho_trace_end end;
	uint32_t crc;

	memset(&end, 0, sizeof(end));
	end.blocks = o->blocks;
	memcpy(end.magic, TACHO_TRACE_END_MAGIC, sizeof(end.magic));
	crc = tacho__crc32c(0, &end, offsetof(struct tacho_trace_end, crc));
	end.crc = tacho__crc32c(crc, end.magic, sizeof(end.magic));
	put_out(o, &end, sizeof(end));
}

static int write_all(int fd, uint32_t taken_by, struct tacho__snapshot_room *room)
{
	struct tacho__recorder *r = tacho__rec;
	struct tacho_box_super *s = r->super;
	uint32_t triggers = tacho__load(&s->trigger_count);
	struct tacho_trace_file head;
	struct out o = {.fd = fd, .payload = (uint8_t *)room->words, .room = sizeof(room->words)};

	memset(&head, 0, sizeof(head));
	memcpy(head.magic, TACHO_TRACE_MAGIC, sizeof(head.magic));
	head.major = TACHO_TRACE_MAJOR;
	head.minor = TACHO_TRACE_MINOR;
	head.header_size = sizeof(head);
	head.created_real_ns = tacho__clock_ns(CLOCK_REALTIME);
	o.tag = tacho__crc32c(s->pid, &head.created_real_ns, sizeof(head.created_real_ns));
	head.tag = o.tag;
	head.crc = tacho__crc32c(0, &head, offsetof(struct tacho_trace_file, crc));
	put_out(&o, &head, sizeof(head));
	put_meta(&o, taken_by);
	put_clock(&o);
	put_entries(&o, TACHO_BLOCK_SOURCES, s->sources, sizeof(s->sources[0]), TACHO_SOURCE_COUNT);
	put_chunks(&o);
	put_definitions(&o);
	put_entries(&o, TACHO_BLOCK_THREADS, r->threads, sizeof(r->threads[0]),
		    tacho__load(&s->threads_used));
	put_entries(&o, TACHO_BLOCK_UNDERWAY, r->underway, sizeof(r->underway[0]),
		    tacho__load(&s->threads_used));
	put_entries(&o, TACHO_BLOCK_HISTOGRAMS, r->hists, sizeof(r->hists[0]),
		    tacho__load(&s->hists_used));
	put_entries(&o, TACHO_BLOCK_LOSSES, r->losses, sizeof(r->losses[0]), TACHO_LOSS_COUNT);
	put_entries(&o, TACHO_BLOCK_TRIGGERS, r->triggers, sizeof(r->triggers[0]),
		    triggers < TACHO_TRIGGERS ? triggers : TACHO_TRIGGERS);
	put_entries(&o, TACHO_BLOCK_CRASHES, r->crashes, sizeof(r->crashes[0]), TACHO_CRASHES);
	if (o.unread) {
		block_begin(&o);
		meta_u64(&o, TACHO_META_UNREAD_CHUNKS, o.unread);
		block_end(&o, TACHO_BLOCK_META);
	}
	put_end(&o);
	return o.error;
}

/* Signals that a failing write raises: the program must not see them. */
static void hold_signals(sigset_t *old, int *was_pending)
{
	sigset_t hold, pending;

	sigemptyset(&hold);
	sigaddset(&hold, SIGPIPE);
	sigaddset(&hold, SIGXFSZ);
	sigpending(&pending);
	*was_pending = sigismember(&pending, SIGPIPE) || sigismember(&pending, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &hold, old);
}

static void release_signals(const sigset_t *old, int was_pending, int error)
{
	if (!was_pending && (error == -EPIPE || error == -EFBIG)) {
		static const struct timespec now;
		sigset_t raised;

		sigemptyset(&raised);
		sigaddset(&raised, error == -EPIPE ? SIGPIPE : SIGXFSZ);
		TACHO__SYS(SYS_rt_sigtimedwait, &raised, 0, &now, 8 /* bytes of a kernel mask */, 0,
			   0);
	}
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

int tacho__snapshot_write(int fd, uint32_t taken_by, struct tacho__snapshot_room *room)
{
	sigset_t old;
	int was_pending, err;

	hold_signals(&old, &was_pending);
	err = write_all(fd, taken_by, room);
	release_signals(&old, was_pending, err);
	return err;
}

int tacho_snapshot(int fd)
{
	static struct tacho__snapshot_room room;
	static int
		writer; /* process: in a child made by fork, a snapshot of the parent is nothing */
	int pid = tacho__getpid();
	int before = tacho__load(&writer);
	int err;

	if (!tacho__rec ||
	    __atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE) != TACHO__PHASE_READY)
		return -ENODATA;
	if (before == pid || !__atomic_compare_exchange_n(&writer, &before, pid, 0,
							  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return -EBUSY;
	err = tacho__snapshot_write(fd, TACHO_TAKEN_SNAPSHOT, &room);
	__atomic_store_n(&writer, 0, __ATOMIC_RELEASE);
	return err;
}
