/*
 * Where the parts of a trace file begin (format/trace.h).
 *
 * From the end backwards, as long as each part ends with a mark that says how long it is: that
 * needs no more than the ends of the parts. What is left at the beginning (one was cut or
 * damaged, or is of an older tacho) is gone through forwards, from block to block; where no block
 * stands, the next one is searched for, and a header that is found on the way begins the next
 * part. No search begins before a place where something good was found, so the time is that of
 * reading the file once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/reader.h"

#define SEARCH_BYTES 65536u
/* Without the right magic at its beginning, a file must show something of ours this early. */
#define FOREIGN_SEARCH_MAX (32ull << 20)

enum found { FOUND_NOTHING, FOUND_HEADER, FOUND_BLOCK, FOUND_END };

struct look {
	struct tacho__input *in;
	uint64_t limit; /* what is looked at ends here */
	uint32_t tag;	/* of the part's blocks, if `tagged` */
	int tagged;
	int ended;     /* the end of the part was seen: only a header is of interest */
	uint64_t size; /* of what was found */
};

static int read_header(const struct look *l, uint64_t at, struct tacho_trace_file *file)
{
	return l->limit - at >= sizeof(*file) &&
	       !tacho__input_read(l->in, at, file, sizeof(*file)) &&
	       tacho__file_check(file) != -EBADMSG;
}

/* What stands at `bytes`, of which there are 32, and which are those at `at`. */
static enum found look_at(struct look *l, uint64_t at, const uint8_t *bytes)
{
	struct tacho_trace_file file;
	struct tacho_trace_block head;
	struct tacho_trace_end end;

	if (!memcmp(bytes, TACHO_TRACE_MAGIC, sizeof(file.magic)) && read_header(l, at, &file)) {
		l->size = tacho__file_check(&file) ? sizeof(file) : file.header_size;
		l->tag = file.tag;
		return FOUND_HEADER;
	}
	memcpy(&head, bytes, sizeof(head));
	if (!l->ended && tacho__block_check(&head, l->tagged ? &l->tag : NULL)) {
		l->size = tacho__block_size(&head);
		l->tag = head.tag;
		return FOUND_BLOCK;
	}
	memcpy(&end, bytes, sizeof(end));
	l->size = sizeof(end);
	return !l->ended && tacho__end_check(&end) ? FOUND_END : FOUND_NOTHING;
}

/* In steps of 8 bytes from *at. */
static enum found search(struct look *l, uint64_t *at, uint64_t limit, uint8_t *buffer)
{
	while (*at < limit && limit - *at >= sizeof(struct tacho_trace_end)) {
		uint64_t left = limit - *at;
		size_t size = left < SEARCH_BYTES ? (size_t)left : SEARCH_BYTES;

		if (tacho__input_read(l->in, *at, buffer, size))
			break;
		for (size_t i = 0; i + sizeof(struct tacho_trace_end) <= size; i += 8, *at += 8) {
			enum found found = look_at(l, *at, buffer + i);

			if (found != FOUND_NOTHING)
				return found;
		}
	}
	return FOUND_NOTHING;
}

/* Where the part after the one that begins at `from` does, or `limit`. */
static uint64_t find_next(struct tacho__input *in, uint64_t from, uint64_t limit, uint8_t *buffer)
{
	struct look l = {.in = in, .limit = limit};
	uint64_t at = from, good = from; /* nothing before `good` is searched again */

	for (;;) {
		uint64_t last = limit;
		enum found found = FOUND_NOTHING;

		if (at < limit && limit - at >= sizeof(struct tacho_trace_end) &&
		    !tacho__input_read(in, at, buffer, sizeof(struct tacho_trace_end)))
			found = look_at(&l, at, buffer);
		if (found == FOUND_NOTHING) {
			at = good;
			if (good == from && limit - from > FOREIGN_SEARCH_MAX)
				last = from + FOREIGN_SEARCH_MAX;
			found = search(&l, &at, last, buffer);
		}
		if (found == FOUND_NOTHING)
			return limit;
		if (found == FOUND_HEADER && at != from)
			return at;
		l.tagged = 1;
		l.ended |= found == FOUND_END;
		/* A payload that was cut may have swallowed what follows it. */
		good = at + (found == FOUND_BLOCK ? sizeof(struct tacho_trace_block) : l.size);
		at += l.size;
	}
}

/* The part that ends at `end` and says where it begins: 1 and *from. */
static int find_last(struct tacho__input *in, uint64_t end, uint64_t *from)
{
	const struct look l = {.in = in, .limit = end};
	struct tacho_trace_end mark;
	struct tacho_trace_file file;

	if (end < sizeof(mark) || tacho__input_read(in, end - sizeof(mark), &mark, sizeof(mark)) ||
	    !tacho__end_check(&mark) || mark.part_size < sizeof(file) + sizeof(mark) ||
	    mark.part_size > end || mark.part_size % 8)
		return 0;
	*from = end - mark.part_size;
	return read_header(&l, *from, &file);
}

static int add(struct tacho__split *s, uint64_t from)
{
	if (TACHO__GROW(s->from, s->capacity, s->count + 1))
		return -ENOMEM;
	s->from[s->count++] = from;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int tacho__split(struct tacho__split *s, struct tacho__input *in)
{
	uint64_t rest = in->size, from;
	uint8_t *buffer = malloc(SEARCH_BYTES);
	int err = buffer ? 0 : -ENOMEM;

	*s = (struct tacho__split){0};
	while (!err && s->count < TACHO_TRACE_PARTS_MAX && find_last(in, rest, &from)) {
		rest = from;
		err = add(s, from);
	}
	for (from = 0; !err && from < rest && s->count < TACHO_TRACE_PARTS_MAX;) {
		err = add(s, from);
		from = find_next(in, from, rest, buffer);
	}
	s->cut = !err && from < rest;
	if (!err && !s->count)
		err = add(s, 0);
	if (s->count > 1)
		qsort(s->from, s->count, sizeof(s->from[0]), compare);
	free(buffer);
	return err;
}
