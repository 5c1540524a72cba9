/*
 * A track: things that follow one another in time, such as the callbacks of one thread at one
 * depth. There may be tens of millions of them, so they are packed; and a tree over them knows the
 * longest thing of each stretch, so that a picture costs what is on the screen and not what is in
 * the trace.
 *
 * PACKED. A group is 32 things in a row. It has the least begin, kind and task of them, and for each
 * thing what is added to these and its length, in as many bits as the largest of the group needs.
 * So any thing can be read without the others. The newest are not packed until there are 32.
 */
#ifndef TACHO_VIEW_TRACK_H
#define TACHO_VIEW_TRACK_H

#include <stddef.h>
#include <stdint.h>

#define TACHO__GROUP_BITS 5u
#define TACHO__GROUP_THINGS (1u << TACHO__GROUP_BITS)
/* Things of a chunk. A node of the tree has a group, and on each level above 16 of those below. */
#define TACHO__CHUNK_BITS 17u
#define TACHO__CHUNK_THINGS (1u << TACHO__CHUNK_BITS)
#define TACHO__NODE_BITS 4u
#define TACHO__TREE_LEVELS 4u

struct tacho__thing {
	uint64_t begin_ns, ns;
	uint32_t what; /* definition of its kind, its name or its place */
	uint32_t task; /* as the view numbers them; 0: none */
};

struct tacho__node {
	uint64_t busy_ns;
	uint32_t longest; /* index in the chunk */
};

enum { TACHO__BEGIN, TACHO__LENGTH, TACHO__WHAT, TACHO__TASK, TACHO__FIELDS };

struct tacho__group {
	uint64_t begin_ns;
	uint32_t what, task;
	uint32_t at; /* where its bytes begin */
	uint8_t bits[TACHO__FIELDS];
};

struct tacho__track_chunk {
	struct tacho__group *groups;
	uint32_t group_count, group_capacity;
	uint8_t *bytes;
	uint32_t size, capacity;
	uint64_t last_ns; /* end of its last thing */
	struct tacho__node *tree[TACHO__TREE_LEVELS];
};

struct tacho__track {
	struct tacho__track_chunk *chunks;
	uint32_t chunk_count, chunk_capacity;
	uint32_t count;
	uint64_t last_ns; /* end of the last thing */
	uint64_t clipped; /* things that began before the end of the one before them */
	uint32_t unnamed; /* things without `what` */
	size_t bytes;	  /* that it takes */
	/* The newest; and the longest of each node of the tree that is not full. */
	struct tacho__thing newest[TACHO__GROUP_THINGS];
	uint64_t longest_ns[TACHO__TREE_LEVELS];
};

/* 0 or -ENOMEM. What overlaps the thing before begins where that ends. */
int tacho__track_add(struct tacho__track *t, const struct tacho__thing *thing);
void tacho__track_free(struct tacho__track *t);

/* index below t->count */
struct tacho__thing tacho__track_at(const struct tacho__track *t, uint32_t index);
/* The first thing that ends after `ns`; t->count: none. */
uint32_t tacho__track_after(const struct tacho__track *t, uint64_t ns);
/* The first thing that begins at `ns` or later; t->count: none. */
uint32_t tacho__track_from(const struct tacho__track *t, uint64_t ns);

struct tacho__track_part {
	uint32_t longest; /* index */
	uint64_t busy_ns;
};
/* Of the things [from, to), of which there is at least one. */
struct tacho__track_part tacho__track_stretch(const struct tacho__track *t, uint32_t from,
					      uint32_t to);

/* How much of the time between these things have. */
uint64_t tacho__track_busy(const struct tacho__track *t, uint64_t from_ns, uint64_t to_ns);

/* What is drawn: one thing, or several that are too short to be told apart. */
struct tacho__box {
	double begin, ns; /* of the box; begins are from the origin */
	double longest_begin,
		longest_ns; /* of the longest thing in it: only this is a time of a thing */
	uint32_t what;	    /* of the longest */
	uint32_t count;
	uint32_t index; /* of the longest */
	float busy;	/* share of the box that things have */
};
_Static_assert(sizeof(struct tacho__box) == 48, "the page reads boxes of this size");

/*
 * The things between from_ns and to_ns, in `columns` columns of equal width; times in boxes are
 * counted from origin_ns. A thing of at least one column is a box of its own; shorter ones share
 * one for each column. Returns how many boxes there are, at most `most`, and never more than
 * twice the columns.
 */
uint32_t tacho__track_draw(const struct tacho__track *t, uint64_t origin_ns, uint64_t from_ns,
			   uint64_t to_ns, uint32_t columns, struct tacho__box *out, uint32_t most);

#endif
