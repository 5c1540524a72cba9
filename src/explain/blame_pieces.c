/* From what the ledger says of a stretch of time to pieces, in its words. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "explain/blaming.h"
#include "explain/ledger_book.h"

struct tacho__piece *tacho__blame_piece(struct tacho__blaming *b, uint32_t owner, uint32_t depth,
					uint32_t thread, uint64_t from, uint64_t to)
{
	struct tacho__piece *p = tacho__blame_add(b, &b->pieces, sizeof(*p));

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->owner = owner;
	p->depth = depth;
	p->process = b->subject->process;
	p->thread = thread;
	p->from_ns = from;
	p->to_ns = to;
	p->ns = to - from;
	p->parts = 1;
	return p;
}

const char *tacho__owner_name(uint32_t owner)
{
	static const char *const names[] = {"queued in pool", "work in pool", "waiting for I/O"};

	return owner < TACHO__OWNS_COUNT ? tacho__owns_name((enum tacho__owns)owner)
					 : names[owner - TACHO__OWNS_COUNT];
}

/* -------------------------------------------------------------------- words */

static void put_where(const struct tacho__blaming *b, struct tacho__piece *p, uint32_t id)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n =
		tacho__places_of_id(b->reader, p->process, id, p->to_ns, places, TACHO__PLACES_MAX);
	int any = tacho__places_own(places, n) < n;

	for (uint32_t i = 0; i < n && p->where_count < 4; i++)
		if (!any || tacho__place_is_own(&places[i]))
			p->where[p->where_count++] = places[i];
}

/* Of the poll that was open then. */
static uint64_t task_of(const struct tacho__blaming *b, const struct tacho__passage *s)
{
	uint32_t low = 0, high = s->poll_ns ? b->polls.count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct tacho__poll *p = TACHO__FACT_AT(&b->polls, tacho__poll, middle);

		if (p->at.thread < s->thread ||
		    (p->at.thread == s->thread && p->begin_ns < s->poll_ns))
			low = middle + 1;
		else
			high = middle;
	}
	for (; s->poll_ns && low < b->polls.count; low++) {
		const struct tacho__poll *p = TACHO__FACT_AT(&b->polls, tacho__poll, low);

		if (p->at.thread != s->thread || p->begin_ns != s->poll_ns)
			break;
		if (p->kind == s->kind)
			return p->task;
	}
	return 0;
}

__attribute__((format(printf, 2, 3))) static void say(struct tacho__piece *p, const char *format,
						      ...)
{
	size_t used = strlen(p->text);
	va_list list;

	va_start(list, format);
	vsnprintf(p->text + used, sizeof(p->text) - used, format, list);
	va_end(list);
}

/* Whose poll it was in, unless it is the subject's own, or has been said. */
static void say_whose(const struct tacho__blaming *b, struct tacho__piece *p)
{
	char name[160];

	if (p->own || !p->kind)
		return;
	tacho__name_of(name, sizeof(name), b->reader, p->process, p->kind, p->to_ns);
	if (strcmp(name, p->text) != 0)
		say(p, "%sin %s", p->text[0] ? ", " : "", name);
	if (p->task)
		say(p, p->task >> 32 ? " of task 0x%" PRIx64 : " of task %" PRIu64, p->task);
}

/* `function`: that it was sampled in, index + 1; 0. */
static struct tacho__piece *stretch_piece(struct tacho__blaming *b, const struct tacho__passage *s,
					  uint32_t function, uint64_t from, uint64_t to,
					  uint32_t depth, int own)
{
	struct tacho__ledger_line line = {
		.thread = s->line, .owned = s->owned + 1, .function = function};
	const struct tacho__owned *o = tacho__ledger_owned(b->ledger, &line);
	const struct tacho__function *f =
		function ? tacho__table_at(&b->ledger->functions, function - 1) : NULL;
	struct tacho__piece *p;
	uint32_t place = s->held_place ? s->held_place : s->place ? s->place : o->place;

	line.owns = f && f->is_recorder ? TACHO__OWNS_RECORDER : o->owns;
	p = tacho__blame_piece(b, line.owns, depth, s->thread, from, to);
	if (!p)
		return NULL;
	p->own = (uint8_t)own;
	p->lock = o->owns == TACHO__OWNS_LOCK ? o->lock : 0;
	if (o->owns != TACHO__OWNS_IDLE && o->owns != TACHO__OWNS_LATE) {
		p->kind = s->kind;
		p->task = task_of(b, s);
	}
	tacho__ledger_key(b->ledger, &line, p->text, sizeof(p->text));
	if (o->owns == TACHO__OWNS_CALL && s->path) {
		char path[160];

		tacho__name_of(path, sizeof(path), b->reader, p->process, s->path, to);
		say(p, " %s", path);
	} else if (p->lock && !o->holder) {
		say(p, "; who held it was not seen");
	}
	if ((o->owns == TACHO__OWNS_CALL || o->owns == TACHO__OWNS_LOCK) && place)
		put_where(b, p, place);
	if (!p->where_count)
		p->where_count = (uint32_t)tacho__ledger_place(b->ledger, &line, &p->where[0]);
	say_whose(b, p);
	return p;
}

/* ------------------------------------------------------------------ stretches */

static uint32_t first_sample(const struct tacho__diary *d, uint32_t thread, uint64_t ns)
{
	uint32_t low = 0, high = d->sample_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct tacho__diary_sample *s = &d->samples[middle];

		if (s->thread < thread || (s->thread == thread && s->ns <= ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void unseen(struct tacho__blaming *b, uint32_t thread, uint64_t from, uint64_t to,
		   uint32_t depth)
{
	struct tacho__piece *p =
		to > from ? tacho__blame_piece(b, TACHO__OWNS_NOT_OBSERVED, depth, thread, from, to)
			  : NULL;

	if (p)
		say(p, "what the thread did was not recorded");
}

/* Of a thread that serves no loop and no pool only what it recorded itself is known. */
static int is_unknown(const struct tacho__blaming *b, const struct tacho__passage *s)
{
	const struct tacho__ledger_thread *t = &b->ledger->threads[s->line];

	return !t->is_loop && !t->is_pool && !s->poll_ns;
}

/* Code is that of the functions that were sampled, from half way between two of them. */
static void code_pieces(struct tacho__blaming *b, const struct tacho__passage *s, uint64_t from,
			uint64_t to, uint32_t depth, int own)
{
	const struct tacho__diary *d = &b->diary;
	const struct tacho__diary_sample *before = NULL;

	for (uint32_t i = first_sample(d, s->thread, from); i < d->sample_count; i++) {
		const struct tacho__diary_sample *now = &d->samples[i];
		uint64_t half;

		if (now->thread != s->thread || now->ns > to)
			break;
		if (now->owned != s->owned)
			continue;
		if (before && before->function != now->function) {
			half = before->ns + (now->ns - before->ns) / 2;
			if (half > from)
				stretch_piece(b, s, before->function + 1, from, half, depth, own);
			from = half > from ? half : from;
		}
		before = now;
	}
	if (!before && is_unknown(b, s))
		unseen(b, s->thread, from, to, depth);
	else if (to > from)
		stretch_piece(b, s, before ? before->function + 1 : 0, from, to, depth, own);
}

static void lock_pieces(struct tacho__blaming *b, const struct tacho__passage *s, uint64_t from,
			uint64_t to, uint32_t depth, int own)
{
	uint32_t holder = tacho__owned_at(b->ledger, s->owned)->holder;

	if (!stretch_piece(b, s, 0, from, to, depth, own))
		return;
	if (holder && s->release_ns > from && depth + 1 < TACHO__BLAME_DEPTH)
		tacho__blame_thread(b, holder, from, s->release_ns < to ? s->release_ns : to,
				    depth + 1, 0);
}

static int is_more_of(const struct tacho__passage *s, const struct tacho__passage *next)
{
	return next->thread == s->thread && next->from == s->to && next->owned == s->owned &&
	       next->poll_ns == s->poll_ns && next->place == s->place && next->path == s->path &&
	       next->release_ns == s->release_ns;
}

void tacho__blame_thread(struct tacho__blaming *b, uint32_t thread, uint64_t from, uint64_t to,
			 uint32_t depth, int own)
{
	const struct tacho__diary *d = &b->diary;
	uint32_t i = tacho__diary_find(d, thread, from);

	while (i < d->count && d->at[i].thread == thread && d->at[i].from < to && !b->error) {
		const struct tacho__passage *s = &d->at[i];
		uint64_t begin = s->from > from ? s->from : from, end;
		enum tacho__owns owns = s->owned == TACHO__NONE
						? TACHO__OWNS_NOT_OBSERVED
						: tacho__owned_at(b->ledger, s->owned)->owns;

		while (i + 1 < d->count && is_more_of(&d->at[i], &d->at[i + 1]))
			i++;
		end = d->at[i].to < to ? d->at[i].to : to;
		i++;
		unseen(b, thread, from, begin, depth);
		from = end;
		if (owns == TACHO__OWNS_CODE)
			code_pieces(b, s, begin, end, depth, own);
		else if (owns == TACHO__OWNS_LOCK)
			lock_pieces(b, s, begin, end, depth, own);
		else if (owns == TACHO__OWNS_STOPPED && is_unknown(b, s))
			unseen(b, thread, begin, end, depth);
		else
			stretch_piece(b, s, 0, begin, end, depth, own);
	}
	unseen(b, thread, from, to, depth);
}

void tacho__blame_delay(struct tacho__blaming *b, uint32_t thread, uint64_t from, uint64_t to,
			uint32_t depth)
{
	uint32_t first = b->pieces.count;

	tacho__blame_thread(b, thread, from, to, depth, 0);
	for (uint32_t i = first; i < b->pieces.count; i++) {
		struct tacho__piece *p = &((struct tacho__piece *)b->pieces.at)[i];

		if (p->depth != depth || p->owner != TACHO__OWNS_IDLE)
			continue;
		p->owner = TACHO__OWNS_LATE;
		snprintf(p->text, sizeof(p->text), "%s", tacho__ledger_reason(TACHO__LATE_WOKEN));
	}
}

/* ----------------------------------------------------------------------- joining */

static int same_owner(const struct tacho__piece *a, const struct tacho__piece *b)
{
	return a->owner == b->owner && a->depth == b->depth && a->thread == b->thread &&
	       a->kind == b->kind && a->lock == b->lock && a->own == b->own &&
	       strcmp(a->text, b->text) == 0;
}

/*
 * Pieces of less than a hundredth of the whole with the same owner become one, so that the large
 * ones can be seen. Those that consist of others stay.
 */
void tacho__blame_join(struct tacho__blaming *b)
{
	uint64_t small = (b->subject->to_ns - b->subject->from_ns) / 100;
	struct tacho__piece *p = b->pieces.at;
	uint32_t n = 0, first = 0;

	for (uint32_t i = 0; i < b->pieces.count; i++) {
		int has_parts = i + 1 < b->pieces.count && p[i + 1].depth > p[i].depth;
		uint32_t k = n;

		if (!p[i].depth)
			first = 0;
		else if (i && p[i - 1].depth < p[i].depth)
			first = n;
		if (p[i].ns < small && !has_parts)
			for (k = first; k < n && !(same_owner(&p[k], &p[i]) &&
						   (p[k].ns < small || p[k].parts > 1));)
				k++;
		if (k == n) {
			if (p[i].ns || has_parts)
				p[n++] = p[i];
			continue;
		}
		p[k].ns += p[i].ns;
		p[k].parts += p[i].parts;
		p[k].to_ns = p[i].to_ns > p[k].to_ns ? p[i].to_ns : p[k].to_ns;
	}
	b->pieces.count = n;
}
