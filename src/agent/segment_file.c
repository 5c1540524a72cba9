#include "agent/segment_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/segment_blocks.h"
#include "write/trace_parts.h"
#include "read/news.h"
#include "read/reader.h"
#include "tacho_read.h"

/* Dirty pages are handed to the disk in steps, so that the sync at the end is short. */
#define FLUSH_BYTES (4u << 20)
#define SYMBOL_BYTES_MAX (64u << 20)

/* ------------------------------------------------------------- whole blocks */

/* Where the file stands between two blocks. */
struct mark {
	uint64_t offset;
	uint32_t blocks, index_count;
};

static struct mark mark_of(const struct tacho__segment *g)
{
	return (struct mark){g->out.offset, g->out.blocks, g->out.index_count};
}

static int cut_off(struct tacho__segment *g)
{
	if (!g->torn)
		return 0;
	if (ftruncate(g->out.fd, (off_t)g->whole))
		return -errno;
	g->torn = false;
	return 0;
}

static void count_bytes(struct tacho__segment *g)
{
	g->folder->total += g->whole;
	g->folder->total -= g->counted < g->folder->total ? g->counted : g->folder->total;
	g->counted = g->whole;
}

/* What was written since `m` counts, or is cut off again. */
static int commit(struct tacho__segment *g, struct mark m, int err)
{
	if (!err) {
		g->folder->written += g->out.offset - g->whole;
		g->whole = g->out.offset;
		if (g->whole - g->flushed >= FLUSH_BYTES) {
			sync_file_range(g->out.fd, (off_t)g->flushed,
					(off_t)(g->whole - g->flushed), SYNC_FILE_RANGE_WRITE);
			g->flushed = g->whole;
		}
	} else {
		g->out.offset = m.offset;
		g->out.blocks = m.blocks;
		g->out.index_count = m.index_count;
		g->out.error = 0; /* it may go better the next time */
		g->torn = true;
		cut_off(g);
	}
	count_bytes(g);
	return err;
}

bool tacho__segment_exists(const struct tacho__segment *g)
{
	struct stat st;

	return !fstat(g->out.fd, &st) && st.st_nlink > 0;
}

void tacho__segment_close(struct tacho__segment *g)
{
	if (!g->open)
		return;
	if (g->out.fd >= 0)
		close(g->out.fd);
	tacho__output_free(&g->out);
	tacho__encoder_free(&g->encoder);
	tacho__addresses_free(&g->addresses);
	*g = (struct tacho__segment){.open = false};
}

/* --------------------------------------------------------------------- head */

/* Facts of the process that change; they may be told again. */
static int put_facts(struct tacho__output *o, struct tacho_reader *facts)
{
	int err = tacho__put_clock(o, facts, 0);

	if (!err)
		err = tacho__put_sources(o, facts, 0);
	if (!err)
		err = tacho__put_threads(o, facts, 0);
	if (!err)
		err = tacho__put_losses(o, facts, 0);
	if (!err)
		err = tacho__put_triggers(o, facts, 0);
	return err ? err : tacho__put_crashes(o, facts, 0);
}

static int put_records(struct tacho__segment *g, const struct tacho__records *r)
{
	struct tacho__cuts cuts;
	struct tacho_trace_events head;
	int err = tacho__columns_encode(&g->encoder, r);

	/* Not to be mistaken for what a file system says. */
	if (err)
		return err == -EFBIG ? -EINVAL : err;
	memcpy(&head, g->encoder.data, sizeof(head));
	cuts = (struct tacho__cuts){g->encoder.cuts, g->encoder.cut_count};
	return tacho__output_block(&g->out, TACHO_BLOCK_EVENTS, g->encoder.data, g->encoder.size,
				   &cuts, &head);
}

static int put_position(struct tacho__segment *g, const struct tacho__delivery *at, uint64_t ns)
{
	struct tacho__records r = {.head = at->head};
	uint32_t none = 0;

	r.head.prior_records = at->delivered;
	r.head.first_ns = r.head.last_ns = ns;
	memcpy(r.open, at->open, sizeof(r.open));
	r.word_at = &none;
	return put_records(g, &r);
}

static int put_past(struct tacho__segment *g, uint64_t records)
{
	struct {
		struct tacho_trace_meta head;
		uint64_t value;
	} meta = {{TACHO_META_PAST, 0, sizeof(meta.value)}, records};

	return tacho__output_block(&g->out, TACHO_BLOCK_META, &meta, sizeof(meta), NULL, NULL);
}

static int put_head(struct tacho__segment *g, struct tacho_reader *facts,
		    const struct tacho__past *past, const struct tacho__trace_options *options)
{
	const struct tacho__streams *streams = past->streams;
	int err = tacho__output_begin(&g->out);

	if (!err)
		err = put_facts(&g->out, facts);
	if (!err)
		err = tacho__put_definitions(&g->out, facts, 0);
	for (uint32_t i = 0; !err && i < streams->count; i++)
		if (streams->items[i].head.size)
			err = put_position(g, &streams->items[i], past->ns[i]);
	if (!err)
		err = put_past(g, past->records);
	if (!err)
		err = tacho__put_absent(&g->out, facts, options);
	/* Last: whoever finds it knows that the rest is there. */
	return err ? err
		   : tacho__put_meta(&g->out, tacho_read_process(facts, options->process), options);
}

int tacho__segment_begin(struct tacho__segment *g, struct tacho__folder *folder,
			 struct tacho_reader *facts, const struct tacho__past *past,
			 const struct tacho__trace_options *options)
{
	const struct tacho_process *p = tacho_read_process(facts, 0);
	int err;

	*g = (struct tacho__segment){.folder = folder, .first_ns = UINT64_MAX};
	tacho__folder_name(folder, g->name, p->pid, options->segment);
	g->no_symbols = options->no_symbols;
	g->out.level = options->level;
	g->out.fd = openat(folder->dir, g->name,
			   O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (g->out.fd < 0)
		return -errno;
	g->open = true;
	err = commit(g, mark_of(g), put_head(g, facts, past, options));
	g->head = g->whole;
	if (err) {
		unlinkat(folder->dir, g->name, 0);
		tacho__segment_close(g);
	}
	return err;
}

/* --------------------------------------------------------------------- body */

int tacho__segment_definitions(struct tacho__segment *g, const struct tacho_reader *reader)
{
	int err = cut_off(g);
	struct mark m = mark_of(g);

	return err ? err : commit(g, m, tacho__put_definitions(&g->out, reader, 0));
}

int tacho__segment_events(struct tacho__segment *g, const struct tacho__records *r)
{
	int err = cut_off(g);
	struct mark m = mark_of(g);

	if (!err && !g->no_symbols)
		err = tacho__addresses_of_records(&g->addresses, r);
	if (!err)
		err = commit(g, m, put_records(g, r));
	if (!err && r->head.count && r->ns[0] < g->first_ns)
		g->first_ns = r->ns[0];
	return err;
}

int tacho__segment_past(struct tacho__segment *g, uint64_t records)
{
	int err = cut_off(g);
	struct mark m = mark_of(g);

	return err ? err : commit(g, m, put_past(g, records));
}

int tacho__segment_gap(struct tacho__segment *g, const struct tacho_trace_gap *gap)
{
	int err = cut_off(g);
	struct mark m = mark_of(g);

	return err ? err : commit(g, m, tacho__put_gaps(&g->out, gap, 1));
}

/* ---------------------------------------------------------------------- end */

/* What the segment before says about code need not be looked up again. */
static void take_symbols(const struct tacho__folder *f, const char *before,
			 struct tacho_reader *facts)
{
	int fd = openat(f->dir, before, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct tacho__blocks b;
	size_t held = 0;

	if (fd < 0)
		return;
	if (!tacho__blocks_open(&b, fd)) {
		while (tacho__blocks_next(&b) > 0) {
			const uint8_t *data;
			uint32_t size;

			if (b.head.type != TACHO_BLOCK_SYMBOLS || held > SYMBOL_BYTES_MAX ||
			    tacho__blocks_load(&b, UINT32_MAX, &data, &size))
				continue;
			held += size;
			tacho__symbols_add(facts, facts->processes[0], data, size);
		}
		tacho__symbols_settle(facts->processes[0]);
	}
	tacho__blocks_free(&b);
	close(fd);
}

static int put_symbols(struct tacho__segment *g, struct tacho_reader *facts)
{
	int err;

	if (g->no_symbols)
		return 0;
	err = tacho__addresses_of_facts(&g->addresses, facts, 0);
	return err ? err : tacho__put_symbols(&g->out, facts, 0, &g->addresses);
}

/* The name without ".part" is for files that are whole, also after a loss of power. */
static int give_name(struct tacho__segment *g, char name[TACHO__SEGMENT_NAME_MAX])
{
	size_t size = strlen(g->name) - strlen(TACHO__PART);

	memcpy(name, g->name, size);
	name[size] = 0;
	if (fdatasync(g->out.fd) && errno != EINVAL && errno != ENOSYS)
		return -errno;
	return renameat(g->folder->dir, g->name, g->folder->dir, name) ? -errno : 0;
}

int tacho__segment_finish(struct tacho__segment *g, struct tacho_reader *facts, const char *before,
			  const struct tacho__trace_options *options)
{
	char name[TACHO__SEGMENT_NAME_MAX];
	int err = cut_off(g);
	struct mark m = mark_of(g);

	if (err)
		return err;
	if (facts) {
		err = tacho__put_meta(&g->out, tacho_read_process(facts, options->process),
				      options);
		if (!err)
			err = put_facts(&g->out, facts);
		if (!err)
			err = tacho__put_absent(&g->out, facts, options);
		if (!err && *before && !g->no_symbols)
			take_symbols(g->folder, before, facts);
		if (!err)
			err = put_symbols(g, facts);
	}
	if (!err)
		err = tacho__output_end(&g->out);
	if (!err)
		err = give_name(g, name);
	err = commit(g, m, err);
	if (err)
		return err;
	memcpy(g->name, name, sizeof(name));
	close(g->out.fd);
	g->out.fd = -1;
	return 0;
}

/* ------------------------------------------------------------------- revive */

/* Appending goes on behind what is whole. */
static int go_on(struct tacho__segment *g, struct tacho__segment_facts *facts)
{
	while (facts->blocks && (facts->index[facts->blocks - 1].type == TACHO_BLOCK_INDEX ||
				 facts->index[facts->blocks - 1].type == TACHO_BLOCK_SYMBOLS))
		facts->size = facts->index[--facts->blocks].offset;
	g->out.zstd = ZSTD_createCCtx();
	if (!g->out.zstd)
		return -ENOMEM;
	g->out.tag = facts->tag;
	g->out.offset = g->whole = facts->size;
	g->out.blocks = g->out.index_count = facts->blocks;
	g->out.index_capacity = facts->capacity;
	g->out.index = facts->index;
	facts->index = NULL;
	g->torn = true;
	return cut_off(g);
}

/* An agent that died between records and the gap before them had not told of it. */
static int put_missing(struct tacho__segment *g, const struct tacho__segment_facts *facts)
{
	struct tacho_trace_gap gap = {
		.from_ns = facts->missing_from_ns,
		.to_ns = facts->missing_to_ns,
		.records = facts->missing - facts->counted,
		.reason = TACHO_GAP_TOO_FAST,
	};

	if (facts->missing <= facts->counted)
		return 0;
	if (gap.from_ns <= facts->gap_ns)
		gap.from_ns = facts->gap_ns + 1;
	if (gap.to_ns < gap.from_ns)
		gap.to_ns = gap.from_ns;
	return tacho__segment_gap(g, &gap);
}

static int revive_symbols(struct tacho__segment *g)
{
	struct tacho__records records = {0};
	struct tacho_reader *reader;
	char path[4096];
	int err;

	if (g->no_symbols)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", g->folder->path, g->name);
	err = tacho_read_open(&reader, path, NULL, NULL, 0);
	if (err)
		return err == -ENOMEM ? err : 0;
	for (uint32_t i = 0; !err && i < tacho__stretch_count(reader); i++) {
		err = tacho__stretch_load(reader, i, &records);
		if (!err)
			err = tacho__addresses_of_records(&g->addresses, &records);
		if (err == -EBADMSG)
			err = 0;
	}
	if (!err)
		err = put_symbols(g, reader);
	tacho__records_free(&records);
	tacho_read_close(reader);
	return err;
}

static int revive_open(struct tacho__segment *g, struct tacho__segment_facts *facts)
{
	struct mark m;
	int err = go_on(g, facts);

	if (!err)
		err = put_missing(g, facts);
	m = mark_of(g);
	if (!err)
		err = commit(g, m, revive_symbols(g));
	m = mark_of(g);
	return err ? err : commit(g, m, tacho__output_end(&g->out));
}

int tacho__segment_revive(struct tacho__folder *folder, char name[TACHO__SEGMENT_NAME_MAX],
			  bool no_symbols)
{
	struct tacho__segment g = {.folder = folder, .no_symbols = no_symbols};
	struct tacho__segment_facts facts = {0};
	struct stat st;
	int err;

	memcpy(g.name, name, sizeof(g.name));
	g.out.fd =
		openat(folder->dir, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (g.out.fd < 0)
		return -errno;
	g.open = true;
	if (!fstat(g.out.fd, &st))
		g.counted = (uint64_t)st.st_size;
	err = tacho__segment_examine(&facts, g.out.fd);
	/* A file that begins otherwise is not ours, whatever it is called. */
	if ((err == -EBADMSG && g.counted < sizeof(struct tacho_trace_file)) ||
	    (!err && !facts.known)) {
		err = unlinkat(folder->dir, name, 0) ? -errno : 0;
		if (!err)
			folder->total -= g.counted < folder->total ? g.counted : folder->total;
	} else {
		g.whole = facts.size;
		if (!err && !facts.ended)
			err = revive_open(&g, &facts);
		if (!err)
			err = give_name(&g, name);
		if (!err)
			err = 1;
	}
	tacho__segment_facts_free(&facts);
	tacho__segment_close(&g);
	return err;
}
