/*
 * What the kernel reported, into the segment of a row. It is not in the box and has positions of
 * its own, which begin anew with each agent and are kept where it is (agent/kernel.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/segment_row.h"
#include "base/clock.h"
#include "read/news.h"

static int deliver(struct tacho__row *row, const struct tacho__records *r)
{
	int err = 0;

	if (!r->head.count)
		return 0;
	if (!row->segment.open)
		err = tacho__row_begin(row);
	if (!err)
		err = tacho__segment_events(&row->segment, r);
	/* Such as can never be written are not tried again. */
	return err == -EINVAL ? 0 : err;
}

static int put_lost(struct tacho__row *row, uint64_t lost, uint64_t now_ns)
{
	struct tacho_trace_gap gap = {
		.from_ns = row->kernel_ns ? row->kernel_ns : row->segments->opened_ns,
		.to_ns = now_ns,
		.records = lost - row->kernel_lost,
		.reason = TACHO_GAP_KERNEL,
	};
	int err;

	if (!gap.records || !row->segment.open)
		return 0;
	err = tacho__segment_gap(&row->segment, &gap);
	if (!err)
		row->kernel_lost = lost;
	return err;
}

int tacho__row_kernel(struct tacho__row *row, const struct tacho__records *records, uint32_t count,
		      uint64_t lost, uint32_t *done)
{
	uint64_t now_ns = tacho__clock_ns(CLOCK_MONOTONIC);
	int err = 0;

	for (*done = 0; !err && *done < count; *done += !err)
		err = deliver(row, &records[*done]);
	if (!err)
		err = put_lost(row, lost, now_ns);
	if (!err)
		row->kernel_ns = now_ns;
	return err;
}
