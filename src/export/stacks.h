/*
 * Stacks that are added up: a tree of functions, from the outermost in.
 *
 * The first frame of each stack is the thread, unless another is asked for. On the CPU a stack is that of a sample; off the
 * CPU it is where a thread waited for a lock or in a blocking call, with that as its innermost
 * frame, and what else a thread was switched out for while a callback or turn was running.
 * Waiting for events is what a loop is there for, and waiting for a signal what a thread of a
 * pool does without work: both are left out.
 *
 * Memory: one node for each place in the tree, up to a bound. Beyond it a stack counts for its
 * last frame that has a node.
 */
#ifndef TACHO_EXPORT_STACKS_H
#define TACHO_EXPORT_STACKS_H

#include "export/code.h"
#include "export/proto.h"
#include "model/model.h"

#define TACHO__NODES_MAX (1u << 20)

struct tacho__tree_node {
	struct tacho__entry entry; /* key: parent's index, name */
	uint32_t parent;	   /* index; the root is its own */
	uint32_t name;
	uint64_t self;
};

struct tacho__name_entry {
	struct tacho__entry entry; /* key: two hashes */
	uint32_t id, size;
	size_t at; /* in `text` */
};

struct tacho__stacks {
	struct tacho__table nodes, names; /* node 0 is the root */
	char *text;
	size_t text_size;
	uint32_t text_room;
	uint64_t total, stacks; /* all values; how many were added */
	uint64_t cut;		/* stacks that found no room for all of their frames */
	struct tacho__tracker_limits missed;
	char advice
		[TACHO__LANGUAGE_TEXT]; /* how to see functions of a script; "": none is hidden */
};

/* What the first frame of each stack is. */
enum tacho__stacks_by {
	TACHO__STACKS_BY_THREAD,
	TACHO__STACKS_BY_KIND, /* of the poll that was running */
	TACHO__STACKS_BY_TASK,
};

struct tacho__stacks_options {
	enum tacho__stacks_by by;
	int off_cpu;
	int ns;		      /* CPU time instead of a count of samples; always off the CPU */
	const uint64_t *task; /* only of this one; NULL: all */
	const char *kind;     /* the name of a kind or of its function; NULL: all */
	const char *loop;     /* the name of a loop, or its number; NULL: all */
	int (*stop)(void *arg, uint64_t ns);
	void *stop_arg;
};

/* Takes the reader from where it is. 0 or a negative errno. */
int tacho__stacks_read(struct tacho__stacks *s, struct tacho_reader *reader,
		       const struct tacho__stacks_options *options);
void tacho__stacks_free(struct tacho__stacks *s);

/* For those who build them from something else: an empty tree, and one more stack under the node
   `parent` (0: the root). Returns the child's index, or `parent` where there is no room. */
int tacho__stacks_init(struct tacho__stacks *s);
uint32_t tacho__stacks_child(struct tacho__stacks *s, uint32_t parent, const char *name,
			     int *error);
void tacho__stacks_add(struct tacho__stacks *s, uint32_t node, uint64_t value);

const struct tacho__tree_node *tacho__stacks_node(const struct tacho__stacks *s, uint32_t index);
const char *tacho__stacks_name(const struct tacho__stacks *s, uint32_t name);

/* "a;b;c 12" for each, the outermost first, in the order of the tree. */
int tacho__stacks_write(const struct tacho__stacks *s, const struct tacho__sink *sink);

#endif
