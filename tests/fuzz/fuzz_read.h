/* Reads all that a reader gives, twice, and once more from the middle. */
#ifndef TESTS_FUZZ_READ_H
#define TESTS_FUZZ_READ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tacho_read.h"

#define FUZZ_CHECK(x)            \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

static volatile uint64_t fuzz_sink;

static inline void fuzz_bytes(const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		fuzz_sink += ((const uint8_t *)data)[i];
}

static inline void fuzz_event(struct tacho_reader *r, const struct tacho_event *e)
{
	struct tacho_field_value value = {.size = sizeof(value)};
	const char *text;
	size_t size;
	int cut;

	fuzz_bytes(e->word, e->words * sizeof(*e->word));
	FUZZ_CHECK((e->type == TACHO_EV_RESUME) == (e->resume != NULL));
	FUZZ_CHECK(e->process < tacho_read_process_count(r));
	FUZZ_CHECK(tacho_read_thread_by_number(r, e->process, e->thread));
	FUZZ_CHECK(e->type != 0);
	if (e->resume)
		FUZZ_CHECK(e->resume->open_listed <= 5);
	else
		FUZZ_CHECK(TACHO_EV_IS_VARIABLE(e->type) || e->words == e->type >> 6);
	if (!tacho_read_text(e, &text, &size, &cut))
		fuzz_bytes(text, size);
	for (uint32_t i = 0; i < 17; i++)
		if (tacho_read_field(r, e, i, &value) == 1 && value.type == TACHO_FIELD_STRING)
			fuzz_bytes(value.text, value.text_size);
}

static inline void fuzz_events(struct tacho_reader *r)
{
	const struct tacho_event *e;
	uint64_t last = 0;

	/* Few bytes can stand for very many records; some of them tell as much. */
	for (int i = 0; i < 100000 && tacho_read_next(r, &e) > 0; i++) {
		FUZZ_CHECK(e->ns >= last);
		last = e->ns;
		fuzz_event(r, e);
	}
}

static inline void fuzz_definitions(struct tacho_reader *r)
{
	uint32_t limit = tacho_read_definition_limit(r, 0);

	for (uint32_t i = 0; i < limit && i < 5000; i++) {
		const struct tacho_definition *d = tacho_read_definition(r, 0, i);

		if (!d)
			continue;
		FUZZ_CHECK(d->id == i);
		fuzz_bytes(d->name, strlen(d->name));
		fuzz_bytes(d->file, strlen(d->file));
		fuzz_bytes(d->unit, strlen(d->unit));
		fuzz_bytes(d->build_id, d->build_id_size);
		if (d->frames)
			fuzz_bytes(d->frames, 8 * (size_t)d->count);
		for (uint32_t k = 0; d->fields && k < d->count; k++)
			fuzz_bytes(d->fields[k].name, strlen(d->fields[k].name));
		tacho_read_module_at(r, 0, d->start, d->since_ns);
	}
}

static inline void fuzz_facts(struct tacho_reader *r)
{
	for (uint32_t i = 0; i < tacho_read_process_count(r); i++) {
		const struct tacho_process *p = tacho_read_process(r, i);

		fuzz_bytes(p->exe, strlen(p->exe));
		fuzz_bytes(p->reason, strlen(p->reason));
		fuzz_bytes(p->why, strlen(p->why));
		fuzz_bytes(p->build_id, p->build_id_size);
		fuzz_sink += tacho_read_real_ns(r, i, 12345);
	}
	for (uint32_t i = 0; i < tacho_read_thread_count(r); i++)
		fuzz_bytes(tacho_read_thread(r, i)->name, strlen(tacho_read_thread(r, i)->name));
	for (uint32_t i = 0; i < tacho_read_gap_count(r); i++) {
		const struct tacho_gap *g = tacho_read_gap(r, i);

		FUZZ_CHECK(g->from_ns <= g->to_ns && g->process < tacho_read_process_count(r));
		FUZZ_CHECK(!i || g->process > g[-1].process || g->from_ns >= g[-1].from_ns);
		fuzz_bytes(g->text, strlen(g->text));
	}
	for (uint32_t i = 0; i < tacho_read_loss_count(r); i++) {
		struct tacho_loss_info l = {.size = sizeof(l)};

		if (!tacho_read_loss(r, 0, i, &l))
			fuzz_bytes(l.name, strlen(l.name));
	}
	for (uint32_t i = 0; i < tacho_read_trigger_count(r); i++)
		fuzz_bytes(tacho_read_trigger(r, i)->sentinel,
			   strlen(tacho_read_trigger(r, i)->sentinel));
	for (uint32_t i = 0; i < tacho_read_trigger_count(r); i++)
		fuzz_bytes(tacho_read_trigger(r, i)->reason,
			   strlen(tacho_read_trigger(r, i)->reason));
	for (uint32_t i = 0; i < tacho_read_crash_count(r); i++) {
		fuzz_bytes(tacho_read_crash(r, i)->regs, 8 * tacho_read_crash(r, i)->reg_count);
		fuzz_bytes(tacho_read_crash(r, i)->frames, 8 * tacho_read_crash(r, i)->frame_count);
	}
	for (uint32_t i = 0; i < tacho_read_problem_count(r); i++)
		fuzz_bytes(tacho_read_problem(r, i)->text, strlen(tacho_read_problem(r, i)->text));
}

static inline void fuzz_read_with(const void *data, size_t size,
				  const struct tacho_read_options *options)
{
	struct tacho_reader *r;
	char message[128] = "";
	uint64_t first, last;
	int err = tacho_read_open_memory(&r, data, size, options, message, sizeof(message));

	FUZZ_CHECK((err == 0) == (r != NULL) && (err == 0 || message[0]));
	if (err)
		return;
	fuzz_events(r);
	if (!tacho_read_window(r, &first, &last)) {
		FUZZ_CHECK(!tacho_read_seek(r, first + (last - first) / 2));
		fuzz_events(r);
	}
	fuzz_definitions(r);
	fuzz_facts(r);
	tacho_read_close(r);
}

static inline void fuzz_read(const void *data, size_t size)
{
	struct tacho_read_options last = {.size = sizeof(last), .last_ns = 1000};

	fuzz_read_with(data, size, NULL);
	fuzz_read_with(data, size, &last);
}

#endif
