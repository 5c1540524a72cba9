#include "view/track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/memory.h"

#define GROUPS (TACHO__CHUNK_THINGS / TACHO__GROUP_THINGS)
#define SLACK 9u /* bytes behind the last that a look at it may touch */

/* Things of a node, as a power of two. */
static uint32_t node_bits(uint32_t level)
{
	return TACHO__GROUP_BITS + level * TACHO__NODE_BITS;
}

/* --------------------------------------------------------------------- bits */

static uint8_t bits_of(uint64_t value)
{
	return value ? (uint8_t)(64 - __builtin_clzll(value)) : 0;
}

static uint64_t get_bits(const uint8_t *bytes, uint32_t at, uint32_t bits)
{
	uint64_t word;
	uint32_t shift = at & 7;

	if (!bits)
		return 0;
	memcpy(&word, bytes + (at >> 3), sizeof(word));
	word >>= shift;
	if (shift + bits > 64)
		word |= (uint64_t)bytes[(at >> 3) + 8] << (64 - shift);
	return bits == 64 ? word : word & ((UINT64_C(1) << bits) - 1);
}

/* What is there is 0. */
static void put_bits(uint8_t *bytes, uint32_t at, uint32_t bits, uint64_t value)
{
	uint64_t word;
	uint32_t shift = at & 7;

	memcpy(&word, bytes + (at >> 3), sizeof(word));
	word |= value << shift;
	memcpy(bytes + (at >> 3), &word, sizeof(word));
	if (shift + bits > 64)
		bytes[(at >> 3) + 8] = (uint8_t)(value >> (64 - shift));
}

/* -------------------------------------------------------------------- group */

static struct tacho__thing unpack(const struct tacho__track_chunk *c, uint32_t i)
{
	const struct tacho__group *g = &c->groups[i >> TACHO__GROUP_BITS];
	const uint8_t *bytes = c->bytes + g->at;
	const uint8_t *bits = g->bits;
	uint32_t each = 0u + bits[TACHO__BEGIN] + bits[TACHO__LENGTH] + bits[TACHO__WHAT] +
			bits[TACHO__TASK];
	uint32_t at = (i & (TACHO__GROUP_THINGS - 1)) * each;
	struct tacho__thing thing;

	thing.begin_ns = g->begin_ns + get_bits(bytes, at, bits[TACHO__BEGIN]);
	at += bits[TACHO__BEGIN];
	thing.ns = get_bits(bytes, at, bits[TACHO__LENGTH]);
	at += bits[TACHO__LENGTH];
	thing.what = g->what + (uint32_t)get_bits(bytes, at, bits[TACHO__WHAT]);
	at += bits[TACHO__WHAT];
	thing.task = g->task + (uint32_t)get_bits(bytes, at, bits[TACHO__TASK]);
	return thing;
}

/* Begins are in order, so the first is the least of them. */
static struct tacho__group measure(const struct tacho__thing *things)
{
	struct tacho__group g = {
		.begin_ns = things[0].begin_ns, .what = things[0].what, .task = things[0].task};
	uint64_t length = 0;
	uint32_t what = 0, task = 0;

	for (uint32_t i = 0; i < TACHO__GROUP_THINGS; i++) {
		g.what = things[i].what < g.what ? things[i].what : g.what;
		g.task = things[i].task < g.task ? things[i].task : g.task;
	}
	for (uint32_t i = 0; i < TACHO__GROUP_THINGS; i++) {
		length |= things[i].ns;
		what |= things[i].what - g.what;
		task |= things[i].task - g.task;
	}
	g.bits[TACHO__BEGIN] = bits_of(things[TACHO__GROUP_THINGS - 1].begin_ns - g.begin_ns);
	g.bits[TACHO__LENGTH] = bits_of(length);
	g.bits[TACHO__WHAT] = bits_of(what);
	g.bits[TACHO__TASK] = bits_of(task);
	return g;
}

static int grow_bytes(struct tacho__track *t, struct tacho__track_chunk *c, uint32_t capacity)
{
	uint8_t *bytes = realloc(c->bytes, capacity);

	if (!bytes)
		return -ENOMEM;
	if (capacity > c->capacity)
		memset(bytes + c->capacity, 0, capacity - c->capacity);
	t->bytes += capacity;
	t->bytes -= c->capacity;
	c->bytes = bytes;
	c->capacity = capacity;
	return 0;
}

/* The newest things become a group. */
static int pack(struct tacho__track *t, struct tacho__track_chunk *c)
{
	struct tacho__group g = measure(t->newest);
	uint32_t each = 0, size, at = 0;

	for (uint32_t f = 0; f < TACHO__FIELDS; f++)
		each += g.bits[f];
	size = each * TACHO__GROUP_THINGS / 8;
	if (c->size + size + SLACK > c->capacity &&
	    grow_bytes(t, c, c->capacity + c->capacity / 2 + size + SLACK))
		return -ENOMEM;
	g.at = c->size;
	for (uint32_t i = 0; i < TACHO__GROUP_THINGS; i++) {
		const struct tacho__thing *thing = &t->newest[i];
		uint64_t values[TACHO__FIELDS] = {thing->begin_ns - g.begin_ns, thing->ns,
						  thing->what - g.what, thing->task - g.task};

		for (uint32_t f = 0; f < TACHO__FIELDS; at += g.bits[f++])
			put_bits(c->bytes + g.at, at, g.bits[f], values[f]);
	}
	c->size += size;
	c->groups[c->group_count++] = g;
	/* A full one grows no more. */
	return c->group_count == GROUPS ? grow_bytes(t, c, c->size + SLACK) : 0;
}

/* ---------------------------------------------------------------------- add */

/* A chunk of a track with few things is small. */
static int grow_groups(struct tacho__track *t, struct tacho__track_chunk *c)
{
	uint32_t before = c->group_capacity, capacity = before ? 4 * before : 4;
	struct tacho__group *groups = realloc(c->groups, capacity * sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	c->groups = groups;
	t->bytes += (capacity - before) * sizeof(*groups);
	for (uint32_t level = 0; level < TACHO__TREE_LEVELS; level++) {
		uint32_t bits = level * TACHO__NODE_BITS;
		uint32_t old = (before + (1u << bits) - 1) >> bits;
		uint32_t nodes = (capacity + (1u << bits) - 1) >> bits;
		struct tacho__node *tree = realloc(c->tree[level], nodes * sizeof(*tree));

		if (!tree)
			return -ENOMEM;
		memset(tree + old, 0, (nodes - old) * sizeof(*tree));
		c->tree[level] = tree;
		t->bytes += (nodes - old) * sizeof(*tree);
	}
	c->group_capacity = capacity;
	return 0;
}

static void note_in_tree(struct tacho__track *t, struct tacho__track_chunk *c, uint32_t i,
			 uint64_t ns)
{
	for (uint32_t level = 0; level < TACHO__TREE_LEVELS; level++) {
		struct tacho__node *n = &c->tree[level][i >> node_bits(level)];

		/* The first of a node is its longest so far. */
		if (!(i & ((1u << node_bits(level)) - 1)) || ns > t->longest_ns[level]) {
			n->longest = i;
			t->longest_ns[level] = ns;
		}
		n->busy_ns += ns;
	}
}

static int add_chunk(struct tacho__track *t)
{
	if (TACHO__GROW(t->chunks, t->chunk_capacity, t->chunk_count + 1))
		return -ENOMEM;
	memset(&t->chunks[t->chunk_count++], 0, sizeof(*t->chunks));
	return 0;
}

int tacho__track_add(struct tacho__track *t, const struct tacho__thing *thing)
{
	uint64_t begin = thing->begin_ns, end = thing->begin_ns + thing->ns;
	uint32_t i = t->count & (TACHO__CHUNK_THINGS - 1);
	struct tacho__track_chunk *c;

	if (begin < t->last_ns && t->count) {
		begin = t->last_ns;
		end = end > begin ? end : begin;
		t->clipped++;
	}
	if (!i && add_chunk(t))
		return -ENOMEM;
	c = &t->chunks[t->chunk_count - 1];
	if (i >> TACHO__GROUP_BITS == c->group_capacity && grow_groups(t, c))
		return -ENOMEM;
	t->newest[i & (TACHO__GROUP_THINGS - 1)] =
		(struct tacho__thing){begin, end - begin, thing->what, thing->task};
	note_in_tree(t, c, i, end - begin);
	c->last_ns = t->last_ns = end;
	t->count++;
	t->unnamed += !thing->what;
	return t->count & (TACHO__GROUP_THINGS - 1) ? 0 : pack(t, c);
}

void tacho__track_free(struct tacho__track *t)
{
	for (uint32_t i = 0; i < t->chunk_count; i++) {
		struct tacho__track_chunk *c = &t->chunks[i];

		free(c->groups);
		free(c->bytes);
		for (uint32_t level = 0; level < TACHO__TREE_LEVELS; level++)
			free(c->tree[level]);
	}
	free(t->chunks);
	memset(t, 0, sizeof(*t));
}

/* ---------------------------------------------------------------- questions */

struct tacho__thing tacho__track_at(const struct tacho__track *t, uint32_t index)
{
	const struct tacho__track_chunk *c = &t->chunks[index >> TACHO__CHUNK_BITS];
	uint32_t i = index & (TACHO__CHUNK_THINGS - 1);

	if (i >> TACHO__GROUP_BITS == c->group_count)
		return t->newest[i & (TACHO__GROUP_THINGS - 1)];
	return unpack(c, i);
}

/* When things begin from index on, or end: whether that is before `ns`. Things neither overlap nor
   go back, so their begins and their ends are both in order. */
static int is_before(const struct tacho__track *t, uint32_t index, uint64_t ns, int by_end)
{
	struct tacho__thing thing = tacho__track_at(t, index);

	return by_end ? thing.begin_ns + thing.ns <= ns : thing.begin_ns < ns;
}

/* The chunk first, then the group, then the thing. */
static uint32_t find(const struct tacho__track *t, uint64_t ns, int by_end)
{
	uint32_t low = 0, high = t->count, size = TACHO__CHUNK_THINGS;

	for (; size; size = size == TACHO__CHUNK_THINGS	  ? TACHO__GROUP_THINGS
			    : size == TACHO__GROUP_THINGS ? 1
							  : 0) {
		uint32_t from = 0, to = (high - low + size - 1) / size;

		/* The last of these pieces that does not begin too late. */
		while (from < to) {
			uint32_t middle = from + (to - from) / 2;

			if (is_before(t, low + middle * size, ns, by_end))
				from = middle + 1;
			else
				to = middle;
		}
		if (!from)
			return low;
		if (size == 1)
			return low + from;
		if (high - low > from * size)
			high = low + from * size;
		low += (from - 1) * size;
	}
	return low;
}

uint32_t tacho__track_after(const struct tacho__track *t, uint64_t ns)
{
	return find(t, ns, 1);
}

uint32_t tacho__track_from(const struct tacho__track *t, uint64_t ns)
{
	return find(t, ns, 0);
}

struct tacho__track_part tacho__track_stretch(const struct tacho__track *t, uint32_t from,
					      uint32_t to)
{
	struct tacho__track_part s = {from, 0};
	uint64_t longest = 0;

	while (from < to) {
		const struct tacho__track_chunk *c = &t->chunks[from >> TACHO__CHUNK_BITS];
		uint32_t i = from & (TACHO__CHUNK_THINGS - 1), left = to - from, levels = 0;
		uint32_t best = from, size = 1;
		uint64_t ns;

		/* The largest node that begins here and does not reach too far. */
		while (levels < TACHO__TREE_LEVELS && !(i & ((1u << node_bits(levels)) - 1)) &&
		       left >> node_bits(levels))
			levels++;
		if (levels) {
			const struct tacho__node *n =
				&c->tree[levels - 1][i >> node_bits(levels - 1)];

			best = from - i + n->longest;
			s.busy_ns += n->busy_ns;
			size = 1u << node_bits(levels - 1);
		}
		ns = tacho__track_at(t, best).ns;
		if (!levels)
			s.busy_ns += ns;
		if (ns > longest) {
			longest = ns;
			s.longest = best;
		}
		from += size;
	}
	return s;
}

uint64_t tacho__track_busy(const struct tacho__track *t, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t from = tacho__track_after(t, from_ns), to = tacho__track_from(t, to_ns);
	struct tacho__thing first, last;
	uint64_t busy;

	if (from >= to)
		return 0;
	first = tacho__track_at(t, from);
	last = tacho__track_at(t, to - 1);
	busy = tacho__track_stretch(t, from, to).busy_ns;
	/* Without what is outside. */
	if (first.begin_ns < from_ns)
		busy -= from_ns - first.begin_ns;
	if (last.begin_ns + last.ns > to_ns)
		busy -= last.begin_ns + last.ns - to_ns;
	return busy;
}

/* --------------------------------------------------------------------- draw */

uint32_t tacho__track_draw(const struct tacho__track *t, uint64_t origin_ns, uint64_t from_ns,
			   uint64_t to_ns, uint32_t columns, struct tacho__box *out, uint32_t most)
{
	uint64_t column_ns = columns ? (to_ns - from_ns) / columns : 0;
	uint32_t i = tacho__track_after(t, from_ns), n = 0;

	column_ns = column_ns ? column_ns : 1;
	while (i < t->count && n < most) {
		struct tacho__thing one = tacho__track_at(t, i);
		struct tacho__track_part s = {i, one.ns};
		uint64_t begin = one.begin_ns, end = one.begin_ns + one.ns;
		uint32_t next = i + 1;

		if (begin >= to_ns)
			break;
		if (one.ns < column_ns) {
			/* All that end in this column, and a longer one does not. */
			uint64_t column = begin < from_ns ? 0 : (begin - from_ns) / column_ns;
			uint64_t edge = from_ns + (column + 1) * column_ns;
			uint32_t last = tacho__track_after(t, edge);

			next = last > next ? last : next;
			s = tacho__track_stretch(t, i, next);
			one = tacho__track_at(t, next - 1);
			end = one.begin_ns + one.ns;
			one = tacho__track_at(t, s.longest);
		}
		out[n++] = (struct tacho__box){
			.begin = (double)(int64_t)(begin - origin_ns),
			.ns = (double)(end - begin),
			.longest_begin = (double)(int64_t)(one.begin_ns - origin_ns),
			.longest_ns = (double)one.ns,
			.what = one.what,
			.count = next - i,
			.index = s.longest,
			.busy = end > begin ? (float)((double)s.busy_ns / (double)(end - begin))
					    : 1.0F,
		};
		i = next;
	}
	return n;
}
