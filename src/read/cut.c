/*
 * Cutting a stretch. Where records are left out at its beginning, what they opened and
 * did not close goes into the head, just as the recorder would have put it into the
 * header of a chunk that began there (tacho__apply in core/record.h).
 */
#include <string.h>

#include "read/reader.h"

static void push(struct tacho__records *r, uint32_t what, uint32_t id, uint64_t task, uint64_t ns)
{
	if (r->head.open_count < TACHO_OPEN_MAX)
		r->open[r->head.open_count] = (struct tacho_open){id, what, task, ns};
	if (r->head.open_count < UINT16_MAX)
		r->head.open_count++;
}

/* The innermost poll ends, and with it the spans that were left open in it. */
static void pop_poll(struct tacho__records *r)
{
	while (r->head.open_count) {
		r->head.open_count--;
		if (r->head.open_count >= TACHO_OPEN_MAX ||
		    r->open[r->head.open_count].what == TACHO_REC_POLL_BEGIN)
			return;
	}
}

static void pop_span(struct tacho__records *r)
{
	uint16_t n = r->head.open_count;

	if (n > TACHO_OPEN_MAX || (n && r->open[n - 1].what == TACHO_REC_SPAN_BEGIN))
		r->head.open_count--;
}

static void apply(struct tacho__records *r, uint32_t i)
{
	uint32_t arg = r->type_arg[i] >> 8;
	uint64_t ns = r->ns[i];

	switch (tacho_record_type(r->type_arg[i])) {
	case TACHO_REC_POLL_SWITCH:
		pop_poll(r);
		push(r, TACHO_REC_POLL_BEGIN, arg, r->words[r->word_at[i]], ns);
		break;
	case TACHO_REC_POLL_BEGIN:
		push(r, TACHO_REC_POLL_BEGIN, arg, r->words[r->word_at[i]], ns);
		break;
	case TACHO_REC_POLL_END:
		pop_poll(r);
		break;
	case TACHO_REC_SPAN_BEGIN:
		push(r, TACHO_REC_SPAN_BEGIN, arg, 0, ns);
		break;
	case TACHO_REC_SPAN_END:
		pop_span(r);
		break;
	case TACHO_REC_PARK:
		r->head.loop = arg;
		r->head.flags |= TACHO_CHUNK_PARKED;
		r->head.park_ns = ns;
		break;
	case TACHO_REC_UNPARK:
		r->head.flags &= ~(uint32_t)TACHO_CHUNK_PARKED;
		break;
	case TACHO_REC_LOOP:
		r->head.loop = arg;
		break;
	default:
		break;
	}
}

static void cut_front(struct tacho__records *r, uint32_t n, uint64_t from_ns)
{
	uint32_t left = r->head.count - n;
	uint32_t words = r->word_at[n];

	/* The list in a file may be shorter than the count says; what it lacks is unknown. */
	for (uint32_t i = r->head.open_listed; i < TACHO_OPEN_MAX; i++)
		r->open[i] = (struct tacho_open){0};
	for (uint32_t i = 0; r->head.stream == TACHO_STREAM_NORMAL && i < n; i++)
		apply(r, i);
	r->head.open_listed =
		r->head.open_count < TACHO_OPEN_MAX ? r->head.open_count : TACHO_OPEN_MAX;
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

void tacho__records_cut(struct tacho__records *r, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t before = count_before(r, from_ns);
	uint32_t upto = to_ns == UINT64_MAX ? r->head.count : count_before(r, to_ns + 1);

	if (upto < r->head.count) {
		r->head.count = upto > before ? upto : before;
		r->head.last_ns = r->head.count ? r->ns[r->head.count - 1] : r->head.first_ns;
		/* What comes after is missing: no other stretch goes on from here. */
		r->head.flags &= ~(uint32_t)TACHO_CHUNK_SEALED;
	}
	if (before || (!r->head.count && r->head.first_ns < from_ns))
		cut_front(r, before, from_ns);
}
