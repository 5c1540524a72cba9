/* What kinds and spans of two traces are called, so that the same have the same name (diff.h). */
#ifndef TACHO_EXPLAIN_DIFF_NAMES_H
#define TACHO_EXPLAIN_DIFF_NAMES_H

#include "explain/diff.h"

struct tacho__diff_label {
	uint32_t process, id;
	const char *name, *function, *file; /* "": not known */
	const char *module;
	uint64_t offset; /* in the module, when there is no function */
};

struct tacho__diff_names {
	struct tacho_reader *reader[2];
	struct tacho__diff_label *labels[2]; /* of kinds and spans, by process and id */
	uint32_t count[2];
};

/* Takes the definitions of both readers. 0 or -ENOMEM. */
int tacho__diff_names_make(struct tacho__diff_names *n);
void tacho__diff_names_free(struct tacho__diff_names *n);
/* The name of an id of one side; out holds TACHO__DIFF_NAME bytes, zeroed behind the name. */
void tacho__diff_name(const struct tacho__diff_names *n, uint32_t side, uint32_t process,
		      uint32_t id, char *out);

#endif
