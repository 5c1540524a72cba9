#include "write/trace_write.h"

#include <errno.h>
#include <string.h>

#include "write/columns_encode.h"
#include "symbols/addresses.h"
#include "write/trace_output.h"
#include "write/trace_parts.h"
#include "read/reader.h"
#include "tacho_read.h"

/* One trace being written. Holds one stretch at a time. */
struct writing {
	struct tacho__output out;
	struct tacho_reader *reader;
	const struct tacho__trace_options *options;
	struct tacho__trace_result result;
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

static int no_memory(struct writing *w)
{
	return tacho__output_fail(&w->out, -ENOMEM,
				  "cannot write the trace: out of memory; free "
				  "some and try again");
}

/* `err` is what loading the records came to. */
static int put_records(struct writing *w, const struct tacho__records *records, int err)
{
	struct tacho_trace_events head;
	struct tacho__cuts cuts;

	if (!err && !tells_something(&records->head))
		return 0;
	if (!err && !w->options->no_symbols)
		err = tacho__addresses_of_records(&w->addresses, records);
	if (!err)
		err = tacho__columns_encode(&w->encoder, records);
	/* The rest of the trace is worth having without this stretch. */
	if (err == -EBADMSG || err == -EINVAL || err == -EFBIG) {
		w->unread++;
		return 0;
	}
	if (err == -ENOMEM)
		return no_memory(w);
	if (err)
		return tacho__output_fail(&w->out, err,
					  "cannot read the records that were to be "
					  "written: %s",
					  strerror(-err));
	memcpy(&head, w->encoder.data, sizeof(head));
	cuts = (struct tacho__cuts){w->encoder.cuts, w->encoder.cut_count};
	err = tacho__output_block(&w->out, TACHO_BLOCK_EVENTS, w->encoder.data, w->encoder.size,
				  &cuts, &head);
	if (!err)
		count_events(w, &head);
	return err;
}

static int put_stretch(struct writing *w, uint32_t index)
{
	return put_records(w, &w->records, tacho__stretch_load(w->reader, index, &w->records));
}

/* Those that lie within the limits of the reader, as the others do. */
static int put_kernel(struct writing *w)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < w->options->kernel_count; i++) {
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
		err = put_records(w, &part, 0);
	}
	return err;
}

static int put_events(struct writing *w)
{
	uint32_t count = tacho__stretch_count(w->reader);
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++) {
		if (tacho__stretch_at(w->reader, i)->process == w->options->process)
			err = put_stretch(w, i);
		if (!err && w->options->progress)
			w->options->progress(w->options->progress_arg, i + 1, count);
	}
	return err;
}

/* After the records: looking symbols up can take a while, and may come to nothing. */
static int put_symbols(struct writing *w)
{
	if (w->options->no_symbols)
		return 0;
	if (tacho__addresses_of_facts(&w->addresses, w->reader, w->options->process))
		return no_memory(w);
	return tacho__put_symbols(&w->out, w->reader, w->options->process, &w->addresses);
}

/* What says what the records mean comes first: a file that is cut short keeps it. */
static int put_all(struct writing *w)
{
	struct tacho__output *o = &w->out;
	struct tacho_reader *r = w->reader;
	uint32_t process = w->options->process;
	int err = tacho__output_begin(o);

	if (!err)
		err = tacho__put_meta(o, r, w->options);
	if (!err)
		err = tacho__put_clock(o, r, process);
	if (!err)
		err = tacho__put_sources(o, r, process);
	if (!err)
		err = tacho__put_threads(o, r, process);
	if (!err)
		err = tacho__put_losses(o, r, process);
	if (!err)
		err = tacho__put_triggers(o, r, process);
	if (!err)
		err = tacho__put_crashes(o, r, process);
	if (!err)
		err = tacho__put_all_gaps(o, r, w->options);
	if (!err)
		err = tacho__put_definitions(o, r, process);
	if (!err)
		err = put_events(w);
	if (!err)
		err = put_kernel(w);
	if (!err)
		err = put_symbols(w);
	if (!err)
		err = tacho__put_meta_after(o, w->unread, w->cut_before_ns);
	return err ? err : tacho__output_end(o);
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
		return tacho__output_fail(&w.out, -EINVAL,
					  "cannot write the trace: there is no "
					  "process number %u in what was opened",
					  options->process);
	err = put_all(&w);
	w.result.bytes = w.out.offset;
	w.result.blocks = w.out.blocks;
	if (result)
		*result = w.result;
	tacho__records_free(&w.records);
	tacho__addresses_free(&w.addresses);
	tacho__encoder_free(&w.encoder);
	tacho__output_free(&w.out);
	return err;
}
