/*
 * What the kernel reported, into the segment of a row. It is not in the box and has positions of
 * its own, which begin anew with each agent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/segment_row.h"
#include "base/clock.h"
#include "read/news.h"

static int copy_records(struct tacho__records *to, const struct tacho__records *from)
{
	uint32_t count = from->head.count, words = count ? from->word_at[count] : 0;

	if (tacho__records_reserve(to, count, words))
		return -ENOMEM;
	to->head = from->head;
	memcpy(to->open, from->open, sizeof(to->open));
	memcpy(to->ns, from->ns, count * sizeof(*to->ns));
	memcpy(to->type_arg, from->type_arg, count * sizeof(*to->type_arg));
	memcpy(to->word_at, from->word_at, ((size_t)count + 1) * sizeof(*to->word_at));
	if (words)
		memcpy(to->words, from->words, words * sizeof(*to->words));
	return 0;
}

static int deliver(struct tacho__row *row, const struct tacho__records *from,
		   struct tacho__records *r)
{
	struct tacho__stream *at =
		tacho__streams_find(&row->kernel, from->head.thread, from->head.stream, true);
	uint64_t end = from->head.prior_records + from->head.count;
	int err;

	if (!at)
		return -ENOMEM;
	at->present = true;
	if (!from->head.count || end <= at->delivered)
		return 0;
	err = copy_records(r, from);
	if (!err && r->head.prior_records < at->delivered) {
		tacho__records_skip(r, (uint32_t)(at->delivered - r->head.prior_records));
		r->head.flags &= ~TACHO_EVENTS_CUT;
	}
	if (!err && !row->segment.open)
		err = tacho__row_begin(row);
	if (!err)
		err = tacho__segment_events(&row->segment, r);
	/* Such as can never be written are not tried again. */
	if (err && err != -EINVAL)
		return err;
	/* More was reported meanwhile than is kept. */
	if (from->head.prior_records > at->delivered)
		row->kernel_hole += from->head.prior_records - at->delivered;
	at->delivered = end;
	return 0;
}

static int put_lost(struct tacho__row *row, uint64_t lost, uint64_t now_ns)
{
	struct tacho_trace_gap gap = {
		.from_ns = row->kernel_ns ? row->kernel_ns : row->segments->opened_ns,
		.to_ns = now_ns,
		.records = lost - row->kernel_lost + row->kernel_hole,
		.reason = TACHO_GAP_KERNEL,
	};
	int err;

	if (!gap.records || !row->segment.open)
		return 0;
	err = tacho__segment_gap(&row->segment, &gap);
	if (!err) {
		row->kernel_lost = lost;
		row->kernel_hole = 0;
	}
	return err;
}

/* Of a thread that it no longer reports nothing will come again. */
static bool is_reported(void *arg, struct tacho__stream *at)
{
	(void)arg;
	return at->present;
}

int tacho__row_kernel(struct tacho__row *row, const struct tacho__records *records, uint32_t count,
		      uint64_t lost)
{
	uint64_t now_ns = tacho__clock_ns(CLOCK_MONOTONIC);
	struct tacho__records r = {0};
	int err = 0;

	for (uint32_t i = 0; i < row->kernel.count; i++)
		row->kernel.items[i].present = false;
	for (uint32_t i = 0; !err && i < count; i++)
		err = deliver(row, &records[i], &r);
	if (!err)
		err = put_lost(row, lost, now_ns);
	if (!err) {
		tacho__streams_keep(&row->kernel, is_reported, NULL);
		row->kernel_ns = now_ns;
	}
	tacho__records_free(&r);
	return err;
}
