#include "write/trace_write.h"

#include <errno.h>
#include <string.h>

#include "write/columns_encode.h"
#include "symbols/addresses.h"
#include "write/trace_output.h"
#include "write/trace_parts.h"
#include "read/reader.h"
#include "tacho_read.h"

/*
 * Stretches that follow each other share a block until it would hold more than this: the list of
 * tasks and the compressor's tables are then there once for all of them. Bytes per event of the
 * reference workload (docs/overhead.md), by chunks in a block: 1 2.12, 2 2.01, 4 1.95, 8 1.91.
 * Larger ones would no longer be decoded within the CPU's cache.
 */
#define BLOCK_RECORDS 32768u
#define BLOCK_WORDS 32768u

/* One trace being written. Holds one block at a time, and the stretch that may go into it. */
struct writing {
	struct tacho__output out;
	struct tacho_reader *reader;
	const struct tacho__trace_options *options;
	struct tacho__trace_result result;
	struct tacho__records block; /* not written yet; without records: there is none */
	struct tacho__records records;
	struct tacho__encoder encoder;
	struct tacho__addresses addresses; /* of code */
	uint64_t unread;		   /* stretches that turned out to be damaged */
	uint64_t cut_before_ns;		   /* 0: nothing was left out on request */
};

/* A stretch without records may still tell of drops and of what was open. */
static int tells_something(const struct tacho_trace_events *h)
{
	if (h->count)
		return 1;
	if (h->flags & TACHO_EVENTS_CUT)
		return 0;
	return h->drops || h->open_count || h->flags & TACHO_CHUNK_PARKED;
}

static void count_events(struct writing *w, const struct tacho_trace_events *h)
{
	if (!h->count)
		return;
	if (!w->result.events || h->first_ns < w->result.first_ns)
		w->result.first_ns = h->first_ns;
	if (h->last_ns > w->result.last_ns)
		w->result.last_ns = h->last_ns;
	w->result.events += h->count;
	if (h->flags & TACHO_EVENTS_CUT && (!w->cut_before_ns || h->first_ns < w->cut_before_ns))
		w->cut_before_ns = h->first_ns;
}

/* `err` is what loading the records came to. */
static void put_records(struct writing *w, const struct tacho__records *records, int err)
{
	struct tacho_trace_events head;
	struct tacho__cuts cuts;

	if (!err && !tells_something(&records->head))
		return;
	if (!err && !w->options->no_symbols)
		err = tacho__addresses_of_records(&w->addresses, records);
	if (!err)
		err = tacho__columns_encode(&w->encoder, records);
	/* The rest of the trace is worth having without this stretch. */
	if (err == -EBADMSG || err == -EINVAL || err == -EFBIG) {
		w->unread++;
		return;
	}
	if (err == -ENOMEM)
		tacho__output_no_memory(&w->out);
	else if (err)
		tacho__output_fail(&w->out, err, "cannot read the records for the trace: %s",
				   strerror(-err));
	if (err)
		return;
	memcpy(&head, w->encoder.data, sizeof(head));
	cuts = (struct tacho__cuts){w->encoder.cuts, w->encoder.cut_count};
	if (!tacho__output_block(&w->out, TACHO_BLOCK_EVENTS, w->encoder.data, w->encoder.size,
				 &cuts, &head))
		count_events(w, &head);
}

static void put_block(struct writing *w)
{
	if (w->block.head.count)
		put_records(w, &w->block, 0);
	w->block.head.count = 0;
}

/* Whether `r` goes on where the block ends, with nothing that its own head would have to say. */
static int goes_on(const struct tacho__records *block, const struct tacho__records *r)
{
	const struct tacho_trace_events *a = &block->head, *b = &r->head;

	if (!a->count || !b->count || a->thread != b->thread || a->stream != b->stream)
		return 0;
	return b->prior_records == a->prior_records + a->count && b->first_ns >= a->last_ns &&
	       !b->drops && !(b->flags & TACHO_EVENTS_CUT) && a->tid == b->tid &&
	       !memcmp(a->name, b->name, sizeof(a->name));
}

static int fits(const struct tacho__records *block, const struct tacho__records *r)
{
	return block->head.count + r->head.count <= BLOCK_RECORDS &&
	       block->word_at[block->head.count] + r->word_at[r->head.count] <= BLOCK_WORDS;
}

/* A block that goes on from the one before has its sequence, like a part of the same chunk. */
static void put_stretch(struct writing *w, uint32_t index)
{
	int err = tacho__stretch_load(w->reader, index, &w->records);
	int follows = !err && goes_on(&w->block, &w->records);
	struct tacho__records done;

	if (follows)
		w->records.head.sequence = w->block.head.sequence;
	if (follows && fits(&w->block, &w->records)) {
		if (tacho__records_reserve(&w->block, BLOCK_RECORDS, BLOCK_WORDS))
			tacho__output_no_memory(&w->out);
		else
			tacho__records_append(&w->block, &w->records);
		return;
	}
	put_block(w);
	if (err || !w->records.head.count) {
		put_records(w, &w->records, err);
		return;
	}
	done = w->block;
	w->block = w->records;
	w->records = done;
}

/* Those that lie within the limits of the reader, as the others do. */
static void put_kernel(struct writing *w)
{
	for (uint32_t i = 0; !w->out.error && i < w->options->kernel_count; i++) {
		struct tacho__records part = w->options->kernel[i];
		uint32_t first = 0, end = part.head.count;

		while (first < end && part.ns[first] < w->reader->from_ns)
			first++;
		while (end > first && part.ns[end - 1] > w->reader->to_ns)
			end--;
		part.ns += first;
		part.type_arg += first;
		part.word_at += first;
		part.head.count = end - first;
		part.head.prior_records += first;
		if (first)
			part.head.flags |= TACHO_EVENTS_CUT;
		put_records(w, &part, 0);
	}
}

static void put_events(struct writing *w)
{
	uint32_t count = tacho__stretch_count(w->reader);

	for (uint32_t i = 0; !w->out.error && i < count; i++) {
		if (tacho__stretch_at(w->reader, i)->process == w->options->process)
			put_stretch(w, i);
		if (i + 1 == count)
			put_block(w);
		if (!w->out.error && w->options->progress)
			w->options->progress(w->options->progress_arg, i + 1, count);
	}
}

/* After the records: looking symbols up can take a while, and may come to nothing. */
static void put_symbols(struct writing *w)
{
	if (w->options->no_symbols || w->out.error)
		return;
	if (tacho__addresses_of_facts(&w->addresses, w->reader, w->options->process))
		tacho__output_no_memory(&w->out);
	tacho__put_symbols(&w->out, w->reader, w->options->process, &w->addresses);
}

/* What says what the records mean comes first: a file that is cut short keeps it. */
static int put_all(struct writing *w)
{
	struct tacho__output *o = &w->out;
	struct tacho_reader *r = w->reader;
	uint32_t process = w->options->process;

	tacho__output_begin(o);
	tacho__put_meta(o, tacho_read_process(r, process), w->options);
	tacho__put_clock(o, r, process);
	tacho__put_sources(o, r, process);
	tacho__put_threads(o, r, process);
	tacho__put_losses(o, r, process);
	tacho__put_triggers(o, r, process);
	tacho__put_crashes(o, r, process);
	tacho__put_all_gaps(o, r, w->options);
	tacho__put_absent(o, r, w->options);
	tacho__put_definitions(o, r, process);
	put_events(w);
	put_kernel(w);
	put_symbols(w);
	tacho__put_meta_after(o, w->unread, w->cut_before_ns);
	return tacho__output_end(o);
}

int tacho__trace_write(struct tacho_reader *reader, int fd,
		       const struct tacho__trace_options *options,
		       struct tacho__trace_result *result, char *message, size_t message_size)
{
	struct writing w = {
		.out = {.fd = fd,
			.level = options->level,
			.message = message,
			.message_size = message_size},
		.reader = reader,
		.options = options,
	};
	int err;

	if (message && message_size)
		message[0] = 0;
	if (options->process >= tacho_read_process_count(reader))
		return tacho__output_fail(
			&w.out, -EINVAL,
			"cannot write the trace: the input has no process number %u",
			options->process);
	err = put_all(&w);
	w.result.bytes = w.out.offset;
	w.result.blocks = w.out.blocks;
	if (result)
		*result = w.result;
	tacho__records_free(&w.block);
	tacho__records_free(&w.records);
	tacho__addresses_free(&w.addresses);
	tacho__encoder_free(&w.encoder);
	tacho__output_free(&w.out);
	return err;
}
