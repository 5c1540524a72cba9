#include "symbols/addresses.h"

#include <errno.h>
#include <stdlib.h>

#include "format/record.h"
#include "tacho_read.h"
#include "read/memory.h"

static int compare(const void *va, const void *vb)
{
	uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;

	return a < b ? -1 : a > b;
}

void tacho__addresses_sort(struct tacho__addresses *a)
{
	size_t kept = 0;

	TACHO__SORT(a->at, a->count, compare);
	for (size_t i = 0; i < a->count; i++)
		if (!kept || a->at[kept - 1] != a->at[i])
			a->at[kept++] = a->at[i];
	a->count = kept;
}

static int add(struct tacho__addresses *a, uint64_t address)
{
	size_t capacity = a->capacity ? 2 * a->capacity : 4096;
	uint64_t *p;

	if (!address)
		return 0;
	if (a->count == a->capacity) {
		/* The same few come again and again. */
		tacho__addresses_sort(a);
		if (a->count > TACHO__ADDRESSES_MAX)
			a->count = TACHO__ADDRESSES_MAX;
		if (a->count > a->capacity / 2 || !a->capacity) {
			p = realloc(a->at, capacity * sizeof(*p));
			if (!p)
				return -ENOMEM;
			a->at = p;
			a->capacity = capacity;
		}
	}
	a->at[a->count++] = address;
	return 0;
}

/* `exact`: the first was interrupted, and is not where a call returns to. */
static int add_stack(struct tacho__addresses *a, const uint64_t *frames, uint32_t count, int exact)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++)
		err = add(a, i == 0 && exact ? frames[i] : frames[i] - 1);
	return err;
}

int tacho__addresses_of_facts(struct tacho__addresses *a, const struct tacho_reader *reader,
			      uint32_t process)
{
	uint32_t limit = tacho_read_definition_limit(reader, process);
	uint32_t crashes = tacho_read_crash_count(reader);
	int err = 0;

	for (uint32_t id = 1; !err && id < limit; id++) {
		const struct tacho_definition *d = tacho_read_definition(reader, process, id);

		if (d && d->def_class == TACHO_DEF_STACK)
			err = add_stack(a, d->frames, d->count, (int)d->exact);
		else if (d && d->def_class == TACHO_DEF_KIND)
			err = add(a, d->value);
		else if (d && d->def_class == TACHO_DEF_PLACE && d->value)
			err = add(a, d->value - 1);
	}
	for (uint32_t i = 0; !err && i < crashes; i++) {
		const struct tacho_crash_info *c = tacho_read_crash(reader, i);

		if (c && c->process == process)
			err = add_stack(a, c->frames, c->frame_count, 1);
		if (c && c->process == process && c->interrupted && !err)
			err = add(a, c->frames[c->interrupted]);
	}
	return err;
}

int tacho__addresses_of_records(struct tacho__addresses *a, const struct tacho__records *r)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < r->head.count; i++) {
		const struct tacho_event event = {
			.type = (uint8_t)tacho_record_type(r->type_arg[i]),
			.arg = tacho_record_arg(r->type_arg[i]),
			.words = r->word_at[i + 1] - r->word_at[i],
			.word = r->words + r->word_at[i],
		};
		struct tacho_frames f = {.size = sizeof(f)};

		if (!TACHO_EV_IS_VARIABLE(event.type) || tacho_read_frames(&event, &f) <= 0)
			continue;
		/* Two stacks: each begins where something was interrupted. */
		err = add_stack(a, f.frames, f.kernel, 1);
		if (!err)
			err = add_stack(a, f.frames + f.kernel, f.count - f.kernel, 1);
	}
	return err;
}

void tacho__addresses_free(struct tacho__addresses *a)
{
	free(a->at);
	*a = (struct tacho__addresses){0};
}
