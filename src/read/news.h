/*
 * Reading a box again and again: only what is new in it.
 *
 * A reader copies all that a box holds. Whoever follows a box knows most of it already, and
 * says so before it is copied.
 */
#ifndef TACHO_READ_NEWS_H
#define TACHO_READ_NEWS_H

#include <stddef.h>
#include <stdint.h>

#include "format/box.h"
#include "read/records.h"

struct tacho_reader;
struct tacho_read_options;

struct tacho__news {
	/* 1: leave this chunk out. Asked once for each chunk there is, whose header may have
	   changed a moment later. */
	int (*skip_chunk)(void *arg, const struct tacho_chunk *head);
	/* 1: leave this definition out. */
	int (*skip_definition)(void *arg, uint32_t id);
	void *arg;
	/* Comparisons of the clocks that were made before: times of records come out as they
	   did then, whichever chunks are left out. */
	const struct tacho_anchor *anchors;
	uint32_t anchor_count;
	/* 1: nothing will follow, so what stands in no chunk (a poll that is pending, counts that
	   are open) becomes records too. Else it is left where it is: it would be there
	   again the next time, as something else. */
	int last;
};

/* As tacho_read_open, for a box that is open: `fd` stays the caller's. */
int tacho__read_news(struct tacho_reader **out, int fd, const char *path,
		     const struct tacho__news *news, char *message, size_t message_size);
/* The same for a box or a trace file, and all that is in it. */
int tacho__read_fd(struct tacho_reader **out, int fd, const char *path,
		   const struct tacho_read_options *options, char *message, size_t message_size);

/* Leaves out the first `n` records (at most head.count); what is open then goes into the head,
   as if a chunk began there. */
void tacho__records_skip(struct tacho__records *r, uint32_t n);

#endif
