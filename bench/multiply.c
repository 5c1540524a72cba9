/*
 * bench-multiply IN OUT EVENTS: a trace file of at least EVENTS events, made of copies of the
 * records of the trace IN, one after the other in time. Each copy has tasks of its own; where
 * one ends and the next begins each stream has a hole, as nothing says how polls that were
 * open went on. Prints
 *
 *   events N
 *   copies N
 *   bytes N
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "write/columns_encode.h"
#include "write/trace_output.h"
#include "write/trace_parts.h"
#include "format/record.h"
#include "read/records.h"
#include "tacho_read.h"

#define PAUSE_NS 1000000u /* between two copies */

/* What a stream has written so far; stretches of one stream follow each other. */
struct stream {
	uint32_t process, thread;
	uint16_t stream;
	uint32_t sequence;
	uint64_t records;
};

struct multiplying {
	struct tacho_reader *reader;
	struct tacho__output out;
	struct tacho__records records;
	struct tacho__encoder encoder;
	struct stream *streams;
	uint32_t stream_count;
	uint64_t first_ns, last_ns;
	uint64_t task_step; /* tasks of the next copy have numbers higher by so much */
	uint64_t events;
};

/* Word of a record that is a task; UINT32_MAX: none. */
static uint32_t task_word(unsigned type)
{
	switch (type) {
	case TACHO_REC_POLL_BEGIN:
	case TACHO_REC_POLL_SWITCH:
	case TACHO_REC_WAKE:
	case TACHO_REC_TASK_END:
		return 0;
	case TACHO_REC_SPAWN:
	case TACHO_REC_TASK_WAITS:
		return 1;
	default:
		return UINT32_MAX;
	}
}

static void each_task(struct tacho__records *r, void (*change)(uint64_t *task, uint64_t arg),
		      uint64_t arg)
{
	for (uint32_t i = 0; i < r->head.count; i++) {
		uint32_t word = task_word(tacho_record_type(r->type_arg[i]));
		uint64_t *words = r->words + r->word_at[i];
		uint32_t n = r->word_at[i + 1] - r->word_at[i];

		if (word < n && words[word])
			change(&words[word], arg);
		if (tacho_record_type(r->type_arg[i]) == TACHO_REC_SPAWN && n > 2 && words[2])
			change(&words[2], arg);
	}
	for (uint32_t i = 0; i < r->head.open_listed; i++)
		if (r->open[i].task)
			change(&r->open[i].task, arg);
}

static void add(uint64_t *task, uint64_t arg)
{
	*task += arg;
}

static void look(uint64_t *task, uint64_t arg)
{
	uint64_t *most = (uint64_t *)(uintptr_t)arg;

	if (*task > *most)
		*most = *task;
}

static void shift(struct tacho__records *r, uint64_t ns)
{
	for (uint32_t i = 0; i < r->head.count; i++)
		r->ns[i] += ns;
	r->head.first_ns += ns;
	r->head.last_ns += ns;
	if (r->head.park_ns)
		r->head.park_ns += ns;
	for (uint32_t i = 0; i < r->head.open_listed; i++)
		if (r->open[i].since)
			r->open[i].since += ns;
}

static struct stream *stream_of(struct multiplying *m, const struct tacho__stretch *s)
{
	struct stream *k;

	for (uint32_t i = 0; i < m->stream_count; i++) {
		k = &m->streams[i];
		if (k->process == s->process && k->thread == s->thread && k->stream == s->stream)
			return k;
	}
	k = realloc(m->streams, (m->stream_count + 1) * sizeof(*k));
	if (!k)
		return NULL;
	m->streams = k;
	k += m->stream_count++;
	*k = (struct stream){s->process, s->thread, s->stream, 0, 0};
	return k;
}

static int put(struct multiplying *m, uint32_t index, uint64_t copy)
{
	const struct tacho__stretch *s = tacho__stretch_at(m->reader, index);
	struct stream *k = stream_of(m, s);
	struct tacho__records *r = &m->records;
	struct tacho_trace_events head;
	struct tacho__cuts cuts;
	int err = k ? tacho__stretch_load(m->reader, index, r) : -ENOMEM;

	if (err)
		return err;
	shift(r, copy * (m->last_ns - m->first_ns + PAUSE_NS));
	each_task(r, add, copy * m->task_step);
	r->head.sequence = k->sequence++;
	r->head.prior_records = k->records;
	k->records += r->head.count;
	m->events += r->head.count;
	err = tacho__columns_encode(&m->encoder, r);
	if (err)
		return err;
	memcpy(&head, m->encoder.data, sizeof(head));
	cuts = (struct tacho__cuts){m->encoder.cuts, m->encoder.cut_count};
	return tacho__output_block(&m->out, TACHO_BLOCK_EVENTS, m->encoder.data, m->encoder.size,
				   &cuts, &head);
}

static int put_copies(struct multiplying *m, uint64_t wanted, uint64_t *copies)
{
	uint32_t count = tacho__stretch_count(m->reader);
	int err = 0;

	for (*copies = 0; !err && m->events < wanted; ++*copies) {
		uint64_t before = m->events;

		for (uint32_t i = 0; !err && i < count; i++)
			err = put(m, i, *copies);
		/* The hole before the next copy. */
		for (uint32_t i = 0; i < m->stream_count; i++)
			m->streams[i].sequence++;
		if (m->events == before)
			return -ENODATA;
	}
	return err;
}

static int find_tasks(struct multiplying *m)
{
	uint64_t most = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < tacho__stretch_count(m->reader); i++) {
		err = tacho__stretch_load(m->reader, i, &m->records);
		if (!err)
			each_task(&m->records, look, (uint64_t)(uintptr_t)&most);
	}
	m->task_step = most + 1;
	return err;
}

static int multiply(struct multiplying *m, uint64_t wanted, uint64_t *copies)
{
	const struct tacho__trace_options options = {.taken_by = TACHO_TAKEN_DUMP};
	int err = tacho_read_window(m->reader, &m->first_ns, &m->last_ns);

	if (!err)
		err = find_tasks(m);
	if (!err)
		err = tacho__output_begin(&m->out);
	if (!err)
		err = tacho__put_meta(&m->out, tacho_read_process(m->reader, 0), &options);
	if (!err)
		err = tacho__put_clock(&m->out, m->reader, 0);
	if (!err)
		err = tacho__put_sources(&m->out, m->reader, 0);
	if (!err)
		err = tacho__put_threads(&m->out, m->reader, 0);
	if (!err)
		err = tacho__put_definitions(&m->out, m->reader, 0);
	if (!err)
		err = put_copies(m, wanted, copies);
	return err ? err : tacho__output_end(&m->out);
}

int main(int argc, char **argv)
{
	struct multiplying m = {0};
	char message[512] = "";
	uint64_t copies = 0;
	int err;

	if (argc != 4) {
		fprintf(stderr, "usage: bench-multiply IN OUT EVENTS\n");
		return 2;
	}
	alarm(1800);
	err = tacho_read_open(&m.reader, argv[1], NULL, message, sizeof(message));
	m.out = (struct tacho__output){.message = message, .message_size = sizeof(message)};
	m.out.fd = err ? -1 : open(argv[2], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (!err && m.out.fd < 0)
		err = -errno;
	if (!err)
		err = multiply(&m, strtoull(argv[3], NULL, 10), &copies);
	if (err) {
		fprintf(stderr, "bench-multiply: %s\n", message[0] ? message : strerror(-err));
		return 1;
	}
	printf("events %" PRIu64 "\ncopies %" PRIu64 "\nbytes %" PRIu64 "\n", m.events, copies,
	       m.out.offset);
	close(m.out.fd);
	tacho__records_free(&m.records);
	tacho__encoder_free(&m.encoder);
	tacho__output_free(&m.out);
	tacho_read_close(m.reader);
	free(m.streams);
	return 0;
}
