/*
 * How a definition comes in: an id and room for the payload are reserved, each by
 * one atomic addition; the payload is stored; the directory entry is stored, its
 * offset last; then the entry is pushed onto its hash chain. A process that dies
 * anywhere in between leaves a hole that readers step over. Two threads that
 * define the same thing at the same moment may both succeed: two ids with one
 * meaning do no harm.
 */
#include "core/define.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "core/box.h"
#include "core/control.h"
#include "core/testpoint.h"

static uint32_t *bucket_of(uint32_t hash)
{
	return &tacho__rec->buckets[hash %
				    tacho__rec->super->regions[TACHO_REGION_DEF_BUCKETS].count];
}

/* Looks through a chain from `id` down to, not including, `until`. */
static uint32_t find(uint32_t id, uint32_t until, uint32_t hash, unsigned class,
		     const void *payload, uint32_t size)
{
	for (; id && id != until;) {
		const struct tacho_box_def *d = &tacho__rec->defs[id];
		uint32_t at = __atomic_load_n(&d->offset, __ATOMIC_ACQUIRE);

		if (at && d->hash == hash && d->class == class && d->size == size &&
		    !memcmp(tacho__rec->def_data + (uint64_t)(at - 1) * 8, payload, size))
			return id;
		id = tacho__load(&d->next);
	}
	return 0;
}

/* Adds `n` to *counter unless that passes `most`; the value before, or UINT64_MAX. */
static uint64_t reserve(uint64_t *counter, uint64_t n, uint64_t most)
{
	uint64_t v = tacho__load(counter);

	do {
		if (v + n > most)
			return UINT64_MAX;
	} while (!__atomic_compare_exchange_n(counter, &v, v + n, 0, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return v;
}

static uint32_t reserve_id(void)
{
	struct tacho_box_super *s = tacho__rec->super;
	uint32_t most = s->regions[TACHO_REGION_DEF_DIR].count;
	uint32_t id = tacho__load(&s->next_def);

	do {
		if (id >= most || id > TACHO_ARG_MAX)
			return 0;
		if (tacho__box_fill(TACHO_REGION_DEF_DIR, (id + 1) * sizeof(struct tacho_box_def)))
			return 0;
	} while (!__atomic_compare_exchange_n(&s->next_def, &id, id + 1, 0, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return id;
}

/* Stores the definition under a reserved id; 0 or -ENOSPC. */
static int store(uint32_t id, unsigned class, unsigned flags, uint32_t hash, const void *payload,
		 uint32_t size)
{
	struct tacho_box_super *s = tacho__rec->super;
	uint64_t room = (size + 7u) & ~7u;
	uint64_t at = reserve(&s->def_bytes, room, s->regions[TACHO_REGION_DEF_DATA].size & ~7ull);
	struct tacho_box_def *d = &tacho__rec->defs[id];

	if (at == UINT64_MAX || tacho__box_fill(TACHO_REGION_DEF_DATA, at + room))
		return -ENOSPC;
	TACHO_TESTPOINT("define-reserved");
	memcpy(tacho__rec->def_data + at, payload, size);
	d->size = (uint16_t)size;
	d->class = (uint8_t) class;
	d->flags = (uint8_t)flags;
	d->hash = hash;
	TACHO_TESTPOINT("define-stored");
	__atomic_store_n(&d->offset, (uint32_t)(at / 8 + 1), __ATOMIC_RELEASE);
	TACHO_TESTPOINT("define-committed");
	return 0;
}

/* Whether half of the room for definitions is taken. */
static int half_full(void)
{
	const struct tacho_box_super *s = tacho__rec->super;

	return tacho__load(&s->next_def) > s->regions[TACHO_REGION_DEF_DIR].count / 2 ||
	       tacho__load(&s->def_bytes) > s->regions[TACHO_REGION_DEF_DATA].size / 2;
}

static uint32_t insert(enum tacho_definition_class class, unsigned flags, const void *payload,
		       uint32_t size, int modest)
{
	uint32_t hash = tacho__fnv1a(payload, size, class);
	uint32_t *bucket = bucket_of(hash);
	uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
	uint32_t id = find(head, 0, hash, class, payload, size);

	if (id)
		return id;
	if (modest && half_full())
		return 0;
	id = reserve_id();
	if (!id || store(id, class, flags, hash, payload, size)) {
		tacho__count(TACHO_LOSS_DEFS_FULL, 1);
		return TACHO_ID_FULL;
	}
	for (;;) {
		uint32_t seen = head;
		uint32_t other;

		tacho__store(&tacho__rec->defs[id].next, head);
		if (__atomic_compare_exchange_n(bucket, &head, id, 0, __ATOMIC_RELEASE,
						__ATOMIC_ACQUIRE))
			break;
		other = find(head, seen, hash, class, payload, size);
		if (other)
			return other;
	}
	TACHO_TESTPOINT("define-linked");
	return id;
}

uint32_t tacho__define_payload(enum tacho_definition_class class, unsigned flags,
			       const void *payload, uint32_t size)
{
	uint32_t id = 0;
	uint64_t mask;

	if (tacho__enter(&mask))
		id = insert(class, flags, payload, size, 0);
	tacho__leave(mask);
	return id;
}

uint32_t tacho__define_stack(unsigned flags, const void *payload, uint32_t size)
{
	uint32_t id = 0;
	uint64_t mask;

	if (tacho__enter(&mask))
		id = insert(TACHO_DEF_STACK, flags, payload, size, 1);
	tacho__leave(mask);
	return id;
}

/* Length of a text, cut at `most`. */
static uint16_t text_size(const char *s, uint32_t most, unsigned *flags)
{
	size_t n = s ? strnlen(s, most + 1) : 0;

	if (n > most) {
		n = most;
		*flags |= TACHO_DEF_CUT;
		tacho__count(TACHO_LOSS_TEXT_CUT, 1);
	}
	return (uint16_t)n;
}

uint32_t tacho__define_name(enum tacho_definition_class class, const char *text, const char *file,
			    uint32_t line, uint64_t value, uint8_t detail, const char *unit)
{
	uint8_t buf[TACHO_NAME_HEAD + 2 * TACHO_NAME_MAX + TACHO_UNIT_MAX];
	unsigned flags = 0;
	uint16_t name_size = text_size(text, TACHO_NAME_MAX, &flags);
	uint16_t file_size = text_size(file, TACHO_NAME_MAX, &flags);
	uint8_t unit_size = (uint8_t)text_size(unit, TACHO_UNIT_MAX, &flags);
	uint8_t *p = buf + TACHO_NAME_HEAD;

	memcpy(buf, &value, 8);
	memcpy(buf + 8, &line, 4);
	memcpy(buf + 12, &name_size, 2);
	memcpy(buf + 14, &file_size, 2);
	buf[16] = detail;
	buf[17] = unit_size;
	if (name_size)
		memcpy(p, text, name_size);
	if (file_size)
		memcpy(p + name_size, file, file_size);
	if (unit_size)
		memcpy(p + name_size + file_size, unit, unit_size);
	return tacho__define_payload(class, flags, buf,
				     TACHO_NAME_HEAD + name_size + file_size + unit_size);
}

void tacho__define_init(const uint8_t *before)
{
	const struct tacho_box_super *old = (const struct tacho_box_super *)before;
	struct tacho__recorder *r = tacho__rec;
	const struct tacho_box_def *defs;
	const uint8_t *data;
	uint32_t limit;

	if (!old) {
		uint32_t id =
			tacho__define_name(TACHO_DEF_TEXT, TACHO_ID_FULL_TEXT, NULL, 0, 0, 0, NULL);

		(void)id; /* TACHO_ID_FULL: the first of a box, or, without room, what stands for it */
		return;
	}
	/* The ids that the program's variables hold must mean the same in this box, so each
	   definition keeps its id. What no longer fits stays a hole. */
	defs = (const void *)(before + old->regions[TACHO_REGION_DEF_DIR].offset);
	data = before + old->regions[TACHO_REGION_DEF_DATA].offset;
	limit = __atomic_load_n(&old->next_def, __ATOMIC_ACQUIRE);
	for (uint32_t id = 1; id < limit; id++) {
		uint32_t at = __atomic_load_n(&defs[id].offset, __ATOMIC_ACQUIRE);
		uint32_t hash = defs[id].hash;
		uint32_t *bucket = bucket_of(hash);

		if (id >= r->super->regions[TACHO_REGION_DEF_DIR].count ||
		    tacho__box_fill(TACHO_REGION_DEF_DIR, (id + 1) * sizeof(struct tacho_box_def)))
			break;
		tacho__store(&r->super->next_def, id + 1);
		if (!at || store(id, defs[id].class, defs[id].flags, hash,
				 data + (uint64_t)(at - 1) * 8, defs[id].size))
			continue;
		tacho__store(&r->defs[id].next, *bucket);
		tacho__store(bucket, id);
	}
}
