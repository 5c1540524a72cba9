/* The trace that was made (made.h) into a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/underway.h"
#include "import/making.h"
#include "write/columns_encode.h"
#include "write/symbol_block.h"
#include "write/trace_parts.h"

/* As the writer of other traces has them: what the columns of a block need fits a CPU's cache. */
#define BLOCK_RECORDS 32768u
#define BLOCK_WORDS 32768u

struct writing {
	struct tacho__made *m;
	struct tacho__output out;
	struct tacho__encoder encoder;
	struct tacho__trace_result result;
	uint64_t first_ns, last_ns; /* of all events */
};

/* ----------------------------------------------------------------- sorting */

/* By time, stable: bottom-up, from `from` to `to` and back. */
static void sort_indices(const uint64_t *ns, uint32_t *from, uint32_t *to, uint32_t count,
			 uint32_t **sorted)
{
	for (uint64_t width = 1; width < count; width *= 2) {
		uint32_t *swap = from;

		for (uint64_t low = 0; low < count; low += 2 * width) {
			uint64_t mid = low + width < count ? low + width : count;
			uint64_t high = low + 2 * width < count ? low + 2 * width : count;
			uint64_t a = low, b = mid;

			for (uint64_t k = low; k < high; k++)
				to[k] = a < mid && (b >= high || ns[from[a]] <= ns[from[b]])
						? from[a++]
						: from[b++];
		}
		from = to;
		to = swap;
	}
	*sorted = from;
}

/* Mostly a few come late, behind all others: those are sorted, and then put between. */
static int sort_records(struct tacho__records *r)
{
	uint32_t count = r->head.count, from = 1, late, *index, *sorted;
	struct tacho__records done = {0};
	int err;

	while (from < count && r->ns[from - 1] <= r->ns[from])
		from++;
	late = count - from;
	index = malloc((2 * (size_t)late + 1) * sizeof(*index));
	err = index ? tacho__records_reserve(&done, count, r->word_at[count]) : -ENOMEM;
	if (!err) {
		uint32_t a = 0, b = 0;

		for (uint32_t i = 0; i < late; i++)
			index[i] = from + i;
		sort_indices(r->ns, index, index + late, late, &sorted);
		while (a < from || b < late) {
			uint32_t k = b == late || (a < from && r->ns[a] <= r->ns[sorted[b]])
					     ? a++
					     : sorted[b++];

			tacho__records_put(&done, r->ns[k], r->type_arg[k],
					   r->words + r->word_at[k],
					   r->word_at[k + 1] - r->word_at[k]);
		}
		tacho__records_free(r);
		*r = done;
	} else {
		tacho__records_free(&done);
	}
	free(index);
	return err;
}

static void sort_all(struct writing *w)
{
	for (uint32_t i = 0; !w->out.error && i < w->m->thread_count; i++) {
		struct tacho__made_thread *t = &w->m->threads[i];
		struct tacho__records *r = &t->records;

		if (!r->head.count)
			continue;
		if (t->unsorted && sort_records(r))
			tacho__output_no_memory(&w->out);
		t->unsorted = 0;
		if (!w->last_ns || r->ns[0] < w->first_ns)
			w->first_ns = r->ns[0];
		if (r->ns[r->head.count - 1] > w->last_ns)
			w->last_ns = r->ns[r->head.count - 1];
	}
}

/* ------------------------------------------------------------------- facts */

static uint64_t real_ns(const struct tacho_anchor *a, uint64_t ns)
{
	return a->real_ns ? a->real_ns + (ns - a->mono_ns) : 0;
}

static void put_facts(struct writing *w)
{
	struct tacho__made *m = w->m;
	struct tacho_process *p = &m->process;
	uint64_t last =
		w->last_ns - w->first_ns < 1000000000u ? w->first_ns + 1000000000u : w->last_ns;
	const struct tacho_anchor clock[] = {
		{w->first_ns, w->first_ns, real_ns(&m->first, w->first_ns)},
		{last, last, real_ns(&m->last, last)},
	};

	p->created_mono_ns = w->first_ns;
	p->created_real_ns = real_ns(&m->first, w->first_ns);
	p->taken_mono_ns = w->last_ns;
	p->taken_real_ns = real_ns(&m->last, w->last_ns);
	p->threads_seen = m->thread_count;
	if (m->lost)
		tacho__made_say(m, "%llu events could not be taken over",
				(unsigned long long)m->lost);
	p->reason = m->said;
	tacho__put_meta(&w->out, p, &(struct tacho__trace_options){0});
	tacho__put_array(&w->out, TACHO_BLOCK_CLOCK, clock, sizeof(clock[0]), 2);
	tacho__put_array(&w->out, TACHO_BLOCK_SOURCES, m->sources, sizeof(m->sources[0]),
			 TACHO_SOURCE_COUNT);
	tacho__put_array(&w->out, TACHO_BLOCK_LOSSES, m->losses, sizeof(m->losses[0]),
			 TACHO_LOSS_COUNT);
}

static void put_threads(struct writing *w)
{
	uint32_t count = w->m->thread_count;
	struct tacho_box_thread *all = calloc((size_t)count + 1, sizeof(*all));

	if (!all) {
		tacho__output_no_memory(&w->out);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct tacho__made_thread *t = &w->m->threads[i];

		all[i] = (struct tacho_box_thread){
			.state = t->ends ? TACHO_THREAD_ENDED : TACHO_THREAD_LIVE,
			.number = i + 1,
			.tid = t->tid,
			.chunk = TACHO_NO_CHUNK,
			.start_ticks = t->records.head.count ? t->records.ns[0] : 0,
		};
		memcpy(all[i].name, t->name, sizeof(all[i].name));
	}
	tacho__put_array(&w->out, TACHO_BLOCK_THREADS, all, sizeof(*all), count);
	free(all);
}

static int compare_gaps(const void *va, const void *vb)
{
	const struct tacho_trace_gap *a = va, *b = vb;

	return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

static void put_definitions(struct writing *w)
{
	const struct tacho__made *m = w->m;
	size_t from = 0;

	for (uint32_t id = 1; id < m->definition_count; id++) {
		size_t to = id + 1 < m->definition_count ? m->definition_at[id + 1]
							 : m->definitions.size;

		if (to - from < TACHO__DEFINITIONS_BYTES && id + 1 < m->definition_count)
			continue;
		tacho__output_block(&w->out, TACHO_BLOCK_DEFINITIONS, m->definitions.data + from,
				    to - from, NULL, NULL);
		from = to;
	}
}

static void put_symbols(struct writing *w)
{
	struct tacho__symbol_block b = {.used = 0};

	for (uint32_t i = 0; !w->out.error && i < w->m->frame_count; i++) {
		const struct tacho__made_frame *f = &w->m->frames[i];
		const struct tacho__resolved name = {f->function, f->file, f->line};

		tacho__symbols_put(&w->out, &b, f->module, tacho__made_address(f, i + 1), &name, 1);
	}
	tacho__symbols_end(&w->out, &b);
}

/* ------------------------------------------------------------------ events */

static void put_block(struct writing *w, struct tacho__records *r)
{
	struct tacho_trace_events head;
	struct tacho__cuts cuts;
	int err = tacho__columns_encode(&w->encoder, r);

	if (err == -ENOMEM)
		tacho__output_no_memory(&w->out);
	else if (err)
		tacho__output_fail(&w->out, err, "cannot write the events: %s", strerror(-err));
	if (err)
		return;
	memcpy(&head, w->encoder.data, sizeof(head));
	cuts = (struct tacho__cuts){w->encoder.cuts, w->encoder.cut_count};
	tacho__output_block(&w->out, TACHO_BLOCK_EVENTS, w->encoder.data, w->encoder.size, &cuts,
			    &head);
	w->result.events += head.count;
}

static uint32_t block_end(const struct tacho__records *r, uint32_t from)
{
	uint32_t to = from + 1;

	while (to < r->head.count && to - from < BLOCK_RECORDS &&
	       r->word_at[to + 1] - r->word_at[from] <= BLOCK_WORDS)
		to++;
	return to;
}

static void begin_with(struct tacho__records *r, const struct tacho_underway *now)
{
	r->head.loop = now->loop;
	r->head.open_count = (uint16_t)(now->depth < UINT16_MAX ? now->depth : UINT16_MAX);
	r->head.open_listed = now->depth < TACHO_OPEN_MAX ? now->depth : TACHO_OPEN_MAX;
	if (now->parked) {
		r->head.flags |= TACHO_CHUNK_PARKED;
		r->head.park_ns = now->park_time;
	}
	memcpy(r->open, now->open, sizeof(r->open));
}

/* In blocks that each say what was under way, so that each can be read alone. */
static void put_thread(struct writing *w, uint32_t number)
{
	const struct tacho__made_thread *t = &w->m->threads[number - 1];
	const struct tacho__records *all = &t->records;
	struct tacho_underway now = t->at_first;

	for (uint32_t from = 0, to; !w->out.error && from < all->head.count; from = to) {
		struct tacho__records part = *all;

		to = block_end(all, from);
		part.head = (struct tacho_trace_events){
			.size = sizeof(part.head),
			.thread = number,
			.tid = t->tid,
			.flags = TACHO_CHUNK_SEALED,
			.count = to - from,
			.prior_records = from,
			.first_ns = all->ns[from],
			.last_ns = all->ns[to - 1],
		};
		memcpy(part.head.name, t->name, sizeof(part.head.name));
		begin_with(&part, &now);
		part.ns += from;
		part.type_arg += from;
		part.word_at += from;
		put_block(w, &part);
		for (uint32_t i = from; i < to; i++)
			tacho_underway_apply(&now, tacho_record_type(all->type_arg[i]),
					     tacho_record_arg(all->type_arg[i]),
					     all->word_at[i] < all->word_at[i + 1]
						     ? all->words[all->word_at[i]]
						     : 0,
					     all->ns[i]);
	}
}

static int put_all(struct writing *w)
{
	struct tacho__made *m = w->m;

	if (m->error)
		tacho__output_no_memory(&w->out);
	sort_all(w);
	tacho__output_begin(&w->out);
	put_facts(w);
	put_threads(w);
	TACHO__SORT(m->gaps, m->gap_count, compare_gaps);
	tacho__put_gaps(&w->out, m->gaps, m->gap_count);
	put_definitions(w);
	for (uint32_t i = 1; i <= m->thread_count; i++)
		put_thread(w, i);
	put_symbols(w);
	return tacho__output_end(&w->out);
}

int tacho__made_write(struct tacho__made *m, int fd, struct tacho__trace_result *result,
		      char *message, size_t message_size)
{
	struct writing w = {
		.m = m,
		.encoder = {.quick = m->once},
		.out = {.fd = fd,
			.level = m->once ? -1 : 0,
			.message = message,
			.message_size = message_size},
	};
	int err;

	if (message && message_size)
		message[0] = 0;
	err = put_all(&w);
	w.result.bytes = w.out.offset;
	w.result.blocks = w.out.blocks;
	w.result.first_ns = w.first_ns;
	w.result.last_ns = w.last_ns;
	if (result)
		*result = w.result;
	tacho__encoder_free(&w.encoder);
	tacho__output_free(&w.out);
	return err;
}
