/*
 * Cutting a stretch. Where records are left out at its beginning, what they opened and
 * did not close goes into the head, just as the recorder would have put it into the
 * header of a chunk that began there (format/underway.h).
 */
#include <string.h>

#include "format/underway.h"
#include "read/reader.h"

/* What was under way before record n. The list in a file may be shorter than the count says; what
   it lacks is unknown. */
static struct tacho_underway underway_at(const struct tacho__records *r, uint32_t n)
{
	struct tacho_underway now = {
		.loop = r->head.loop,
		.depth = r->head.open_count,
		.parked = (r->head.flags & TACHO_CHUNK_PARKED) != 0,
		.park_time = r->head.park_ns,
	};

	memcpy(now.open, r->open, r->head.open_listed * sizeof(now.open[0]));
	for (uint32_t i = 0; r->head.stream == TACHO_STREAM_NORMAL && i < n; i++)
		tacho_underway_apply(&now, tacho_record_type(r->type_arg[i]),
				     tacho_record_arg(r->type_arg[i]), r->words[r->word_at[i]],
				     r->ns[i]);
	return now;
}

static void begin_with(struct tacho__records *r, const struct tacho_underway *now)
{
	r->head.loop = now->loop;
	r->head.open_count = (uint16_t)(now->depth < UINT16_MAX ? now->depth : UINT16_MAX);
	r->head.open_listed = now->depth < TACHO_OPEN_MAX ? now->depth : TACHO_OPEN_MAX;
	r->head.flags &= ~(uint32_t)TACHO_CHUNK_PARKED;
	if (now->parked) {
		r->head.flags |= TACHO_CHUNK_PARKED;
		r->head.park_ns = now->park_time;
	}
	memcpy(r->open, now->open, sizeof(r->open));
}

static void cut_front(struct tacho__records *r, uint32_t n, uint64_t from_ns)
{
	uint32_t left = r->head.count - n;
	uint32_t words = r->word_at[n];
	struct tacho_underway now = underway_at(r, n);

	begin_with(r, &now);
	memmove(r->ns, r->ns + n, left * sizeof(*r->ns));
	memmove(r->type_arg, r->type_arg + n, left * sizeof(*r->type_arg));
	memmove(r->words, r->words + words,
		(r->word_at[r->head.count] - words) * sizeof(*r->words));
	for (uint32_t i = 0; i <= left; i++)
		r->word_at[i] = r->word_at[i + n] - words;
	r->head.count = left;
	r->head.prior_records += n;
	r->head.drops = 0;
	if (left) {
		r->head.flags |= TACHO_EVENTS_CUT;
		r->head.first_ns = r->ns[0];
	} else {
		/* Nothing but what was open then: as a chunk that began at that moment. */
		r->head.first_ns = r->head.last_ns = from_ns;
	}
}

void tacho__records_skip(struct tacho__records *r, uint32_t n)
{
	if (n > r->head.count)
		n = r->head.count;
	if (n)
		cut_front(r, n, r->ns[n - 1]);
}

/* Records before ns. */
static uint32_t count_before(const struct tacho__records *r, uint64_t ns)
{
	uint32_t low = 0, high = r->head.count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (r->ns[mid] < ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void tacho__records_keep(struct tacho__records *r, uint32_t n)
{
	r->head.count = n;
	r->head.last_ns = n ? r->ns[n - 1] : r->head.first_ns;
}

void tacho__records_cut(struct tacho__records *r, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t before = count_before(r, from_ns);
	uint32_t upto = to_ns == UINT64_MAX ? r->head.count : count_before(r, to_ns + 1);

	if (upto < r->head.count) {
		tacho__records_keep(r, upto > before ? upto : before);
		/* What comes after is missing: no other stretch goes on from here. */
		r->head.flags &= ~(uint32_t)TACHO_CHUNK_SEALED;
	}
	if (before || (!r->head.count && r->head.first_ns < from_ns))
		cut_front(r, before, from_ns);
}
