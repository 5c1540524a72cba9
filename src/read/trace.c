/* A trace file: which blocks there are, from the index or by scanning (format/trace.h). */
#include "read/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_BYTES 65536u
/* Without the right magic at its beginning, a file must show a block this early. */
#define FOREIGN_SEARCH_MAX (32ull << 20)

static int add_block(struct tacho__trace *t, const struct tacho_trace_index *block)
{
	if (TACHO__GROW(t->blocks, t->block_capacity, t->block_count + 1))
		return -ENOMEM;
	t->blocks[t->block_count++] = *block;
	return 0;
}

/* -------------------------------------------------------------------- scan */

enum found { FOUND_NOTHING, FOUND_BLOCK, FOUND_END };

/* What stands at `bytes`, of which there are 32. */
static enum found look(const uint8_t *bytes, const uint32_t *tag, struct tacho_trace_block *head,
		       struct tacho_trace_end *end)
{
	memcpy(head, bytes, sizeof(*head));
	if (tacho__block_check(head, tag))
		return FOUND_BLOCK;
	memcpy(end, bytes, sizeof(*end));
	return tacho__end_check(end) ? FOUND_END : FOUND_NOTHING;
}

/*
 * Searches [*at, limit) in steps of 8 bytes. FOUND_NOTHING: *at is the end of the input or
 * the limit. An input that can no longer be read ends there.
 */
static enum found search(struct tacho__input *in, uint64_t *at, uint64_t limit, const uint32_t *tag,
			 uint8_t *buffer, struct tacho_trace_block *head,
			 struct tacho_trace_end *end)
{
	while (*at < limit && in->size - *at >= sizeof(*head)) {
		uint64_t left = in->size - *at;
		size_t size = left < SEARCH_BYTES ? (size_t)left : SEARCH_BYTES;

		if (tacho__input_read(in, *at, buffer, size))
			break;
		for (size_t i = 0; i + sizeof(*head) <= size; i += 8, *at += 8) {
			enum found found = look(buffer + i, tag, head, end);

			if (found != FOUND_NOTHING)
				return found;
		}
	}
	*at = limit < in->size ? limit : in->size;
	return FOUND_NOTHING;
}

static void report_hole(struct tacho__trace *t, uint64_t from, uint64_t to, uint32_t next)
{
	uint32_t lost = next > t->expected ? next - t->expected : 0;

	if (to > from)
		tacho__problem(t->reader, t->source, "damaged-block", from, to - from,
			       "no block can be made out here; %" PRIu32
			       " blocks (from number %" PRIu32 ") are lost",
			       lost, t->expected);
	else if (lost)
		tacho__problem(t->reader, t->source, "missing-block", from, 0,
			       "%" PRIu32 " blocks (from number %" PRIu32 ") are missing here",
			       lost, t->expected);
}

/* The end of the file is reached: by its mark at `at`, or without one. */
static void report_end(struct tacho__trace *t, uint64_t at, const struct tacho_trace_end *end)
{
	uint64_t size = t->in->size;

	if (!end) {
		tacho__problem(t->reader, t->source, "cut", at, size - at,
			       "the file ends without its end mark after %" PRIu32
			       " blocks: it was cut short, or its writer died; what came after is "
			       "not there",
			       t->expected);
		return;
	}
	if (end->blocks > t->expected)
		tacho__problem(t->reader, t->source, "missing-block", at, 0,
			       "the last %" PRIu32 " of %" PRIu32 " blocks are missing",
			       end->blocks - t->expected, end->blocks);
	if (size - at > sizeof(*end))
		tacho__problem(t->reader, t->source, "trailing-garbage", at + sizeof(*end),
			       size - at - sizeof(*end),
			       "there are bytes after the end of the trace; they were left alone");
}

/* One block whose header is good. 1: go on behind it, 0: it reaches beyond the file. */
static int take_block(struct tacho__trace *t, uint64_t at, const struct tacho_trace_block *head)
{
	struct tacho_trace_index block = {.offset = at, .type = head->type};

	if (tacho__block_size(head) > t->in->size - at)
		return 0;
	block.size = (uint32_t)tacho__block_size(head);
	if (head->number < t->expected) {
		tacho__problem(t->reader, t->source, "duplicate-block", at, block.size,
			       "block number %" PRIu32 " is there twice; this one was left alone",
			       head->number);
		return 1;
	}
	t->expected = head->number + 1;
	return add_block(t, &block) ? -ENOMEM : 1;
}

static int scan(struct tacho__trace *t, uint8_t *buffer)
{
	struct tacho_trace_block head;
	struct tacho_trace_end end;
	uint64_t at = t->begin, good = at;
	uint64_t size = t->in->size;
	int go_on;

	t->listed = 0;
	t->block_count = 0;
	t->expected = 0;
	while (at < size) {
		enum found found = FOUND_NOTHING;

		if (size - at >= sizeof(head) &&
		    !tacho__input_read(t->in, at, buffer, sizeof(head)))
			found = look(buffer, &t->tag, &head, &end);
		if (found == FOUND_NOTHING)
			found = search(t->in, &at, size, &t->tag, buffer, &head, &end);
		if (found == FOUND_NOTHING)
			break;
		if (found == FOUND_END) {
			report_hole(t, good, at, t->expected);
			report_end(t, at, &end);
			return 0;
		}
		report_hole(t, good, at, head.number);
		good = at;
		go_on = take_block(t, at, &head);
		if (go_on < 0)
			return go_on;
		if (!go_on)
			break;
		at += tacho__block_size(&head);
		good = at;
		tacho__progress(t->reader, at, size);
	}
	report_end(t, good, NULL);
	return 0;
}

/* ------------------------------------------------------------------- index */

/* 1: the entries describe all that stands between header and index. */
static int entries_fit(const struct tacho__trace *t, uint64_t index_offset)
{
	uint64_t at = t->begin;

	for (uint32_t i = 0; i < t->block_count; i++) {
		const struct tacho_trace_index *b = &t->blocks[i];

		if (b->offset != at || b->size < sizeof(struct tacho_trace_block) || b->size % 8 ||
		    b->size > index_offset - at || b->first_ns > b->last_ns ||
		    b->count > TACHO_BLOCK_EVENTS_MAX)
			return 0;
		at += b->size;
	}
	return at == index_offset;
}

/* The entries of the index payload. */
static int take_entries(struct tacho__trace *t, const uint8_t *data, uint32_t size)
{
	struct tacho_trace_index block;
	struct tacho__array array;
	int err = tacho__array_open(&array, data, size, sizeof(block));

	for (uint32_t i = 0; !err && i < array.count; i++) {
		tacho__array_get(&array, i, &block, sizeof(block));
		/* A writer may list the index itself. */
		if (block.type == TACHO_BLOCK_INDEX && i + 1 == array.count)
			break;
		err = add_block(t, &block);
	}
	return err;
}

/* 1: blocks are known from the index; 0: the file must be scanned. */
static int use_index(struct tacho__trace *t)
{
	struct tacho_trace_block head;
	struct tacho_trace_end end;
	const uint8_t *data;
	uint64_t end_at;
	uint32_t size;
	int err;

	if (t->in->size < t->begin + sizeof(head) + sizeof(end))
		return 0;
	end_at = t->in->size - sizeof(end);
	if (tacho__input_read(t->in, end_at, &end, sizeof(end)) || !tacho__end_check(&end) ||
	    end.index_offset < t->begin || end.index_offset >= end_at ||
	    tacho__input_read(t->in, end.index_offset, &head, sizeof(head)) ||
	    !tacho__block_check(&head, &t->tag) || head.type != TACHO_BLOCK_INDEX ||
	    tacho__block_size(&head) != end_at - end.index_offset)
		return 0;
	err = tacho__block_load(t->reader, t->source, end.index_offset, tacho__block_size(&head),
				TACHO_BLOCK_INDEX, &data, &size);
	if (err)
		return err == -ENOMEM ? err : 0;
	t->index_checked = 1;
	err = take_entries(t, data, size);
	if (err == -ENOMEM)
		return err;
	if (err || !entries_fit(t, end.index_offset) || t->block_count + 1 != end.blocks) {
		tacho__problem(t->reader, t->source, "bad-index", end.index_offset,
			       tacho__block_size(&head),
			       "the index does not fit the file, which was searched for its blocks "
			       "instead");
		return 0;
	}
	t->listed = 1;
	return 1;
}

/* ------------------------------------------------------------------ header */

/* The file's own tag cannot be trusted: that of the first block is it. */
static int tag_from_blocks(struct tacho__trace *t, uint8_t *buffer)
{
	struct tacho_trace_block head;
	struct tacho_trace_end end;
	uint64_t at = 0;
	uint64_t limit = t->in->size < FOREIGN_SEARCH_MAX ? t->in->size : FOREIGN_SEARCH_MAX;

	if (search(t->in, &at, limit, NULL, buffer, &head, &end) != FOUND_BLOCK)
		return -EBADMSG;
	t->tag = head.tag;
	t->begin = at < sizeof(struct tacho_trace_file) ? at : sizeof(struct tacho_trace_file);
	tacho__problem(t->reader, t->source, "damaged-header", 0, t->begin,
		       "the header of the file is damaged; its blocks were found all the same");
	return 0;
}

/* What is no trace of tacho, as far as its first bytes tell. */
static const char *foreign_text(struct tacho__trace *t)
{
	char head[8];

	if (tacho__input_read(t->in, 0, head, sizeof(head)))
		memset(head, 0, sizeof(head));
	if (memcmp(head, "\x1f\x8b", 2) == 0)
		return "it is packed with gzip, and what is inside is no trace of Go or dial9; a "
		       "profile of pprof is no trace: runtime/trace and /debug/pprof/trace write "
		       "one";
	if (memcmp(head, "TOKIOTRC", 8) == 0)
		return "it is a trace of dial9 before 0.3, which tacho does not read; record it "
		       "again with a newer dial9";
	return "it is neither a box nor a trace file of tacho, or nothing of it is left; try "
	       "'tacho ls' for the boxes there are";
}

static int read_header(struct tacho__trace *t, uint8_t *buffer, char *message, size_t message_size)
{
	struct tacho_trace_file file;
	const char *path = t->in->path;

	if (tacho__input_read(t->in, 0, &file, sizeof(file)))
		goto foreign;
	switch (tacho__file_check(&file)) {
	case 0:
		t->begin = file.header_size;
		t->tag = file.tag;
		return 0;
	case -EBADMSG:
		if (tag_from_blocks(t, buffer))
			goto foreign;
		return 0;
	case -ENOTSUP:
		tacho__say(message, message_size,
			   "cannot read %s: it has version %u of the trace format and this tacho "
			   "knows up to %u; use a newer tacho",
			   path, file.major, TACHO_TRACE_MAJOR);
		return -ENOTSUP;
	default:
		break;
	}
foreign:
	tacho__say(message, message_size, "cannot read %s: %s", path, foreign_text(t));
	return -EBADMSG;
}

int tacho__trace_add(struct tacho_reader *r, uint32_t source, char *message, size_t message_size)
{
	struct tacho__trace t = {.reader = r, .source = source, .problems = r->problem_count};
	uint8_t *buffer = malloc(SEARCH_BYTES);
	int result;

	t.in = r->sources[source].input;
	if (!buffer)
		return -ENOMEM;
	result = read_header(&t, buffer, message, message_size);
	if (!result) {
		r->sources[source].tag = t.tag;
		result = use_index(&t);
		if (!result)
			result = scan(&t, buffer);
	}
	if (result >= 0)
		result = tacho__trace_contents(&t);
	if (result == -EBADMSG && message && message_size && !message[0])
		tacho__say(message, message_size,
			   "cannot read %s: it is a trace file, but none of its blocks can be read",
			   t.in->path);
	free(buffer);
	free(t.blocks);
	return result;
}
