#include "explain/diff_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/place.h"

#define LABELS_MAX 65536u
#define FOLDERS_MAX 4u

static void label_of(const struct tacho_reader *reader, uint32_t process,
		     const struct tacho_definition *d, struct tacho__diff_label *l)
{
	struct tacho__place place;

	*l = (struct tacho__diff_label){process, d->id, d->name, "", d->file, "", 0};
	if (!tacho__place_of_kind(reader, process, d->id, UINT64_MAX, &place))
		return;
	if (place.function[0]) {
		l->function = place.function;
		l->file = place.file;
	} else if (place.module[0]) {
		const struct tacho_definition *m =
			tacho_read_module_at(reader, process, d->value, UINT64_MAX);

		l->module = place.module;
		l->offset = m ? d->value - m->start + m->offset : d->value;
	}
}

static int add(struct tacho__diff_names *n, uint32_t side, const struct tacho__diff_label *l)
{
	uint32_t count = n->count[side];

	/* Room for a power of two. */
	if (!(count & (count - 1)) || !count) {
		size_t room = count ? 2 * (size_t)count : 1;
		struct tacho__diff_label *labels = realloc(n->labels[side], room * sizeof(*labels));

		if (!labels)
			return -ENOMEM;
		n->labels[side] = labels;
	}
	n->labels[side][n->count[side]++] = *l;
	return 0;
}

int tacho__diff_names_make(struct tacho__diff_names *n)
{
	for (uint32_t side = 0; side < 2; side++) {
		const struct tacho_reader *r = n->reader[side];

		for (uint32_t p = 0; p < tacho_read_process_count(r); p++)
			for (uint32_t id = 1; id < tacho_read_definition_limit(r, p); id++) {
				const struct tacho_definition *d = tacho_read_definition(r, p, id);
				struct tacho__diff_label l;

				if (!d || n->count[side] == LABELS_MAX ||
				    (d->def_class != TACHO_DEF_KIND &&
				     d->def_class != TACHO_DEF_SPAN))
					continue;
				label_of(r, p, d, &l);
				l.id = id;
				if (add(n, side, &l))
					return -ENOMEM;
			}
	}
	return 0;
}

void tacho__diff_names_free(struct tacho__diff_names *n)
{
	free(n->labels[0]);
	free(n->labels[1]);
}

/* Labels are in the order of process and id. */
static const struct tacho__diff_label *find(const struct tacho__diff_names *n, uint32_t side,
					    uint32_t process, uint32_t id)
{
	uint64_t key = (uint64_t)process << 32 | id;
	uint32_t from = 0, to = n->count[side];

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		const struct tacho__diff_label *l = &n->labels[side][mid];
		uint64_t k = (uint64_t)l->process << 32 | l->id;

		if (k == key)
			return l;
		if (k < key)
			from = mid + 1;
		else
			to = mid;
	}
	return NULL;
}

/* The last `parts` parts of a path. */
static const char *tail_of(const char *path, uint32_t parts)
{
	const char *at = path + strlen(path);

	while (at > path && parts) {
		at--;
		if (*at == '/' && !--parts)
			return at + 1;
	}
	return at;
}

/* Whether another file of one of the traces has this function and ends alike. */
static int is_ambiguous(const struct tacho__diff_names *n, const struct tacho__diff_label *l,
			const char *tail, uint32_t parts)
{
	for (uint32_t side = 0; side < 2; side++) {
		const char *file = NULL;

		for (uint32_t i = 0; i < n->count[side]; i++) {
			const struct tacho__diff_label *o = &n->labels[side][i];

			if (strcmp(o->function, l->function) != 0 ||
			    strcmp(o->name, l->name) != 0 ||
			    strcmp(tail_of(o->file, parts), tail) != 0)
				continue;
			if (file && strcmp(file, o->file) != 0)
				return 1;
			file = o->file;
		}
	}
	return 0;
}

static const char *file_of(const struct tacho__diff_names *n, const struct tacho__diff_label *l)
{
	for (uint32_t parts = 1; parts < FOLDERS_MAX; parts++) {
		const char *tail = tail_of(l->file, parts);

		if (!is_ambiguous(n, l, tail, parts))
			return tail;
	}
	return tail_of(l->file, FOLDERS_MAX);
}

void tacho__diff_name(const struct tacho__diff_names *n, uint32_t side, uint32_t process,
		      uint32_t id, char *out)
{
	const struct tacho__diff_label *l = id ? find(n, side, process, id) : NULL;
	const char *name = l && l->name[0] ? l->name : "(no name)";
	size_t used;

	memset(out, 0, TACHO__DIFF_NAME);
	if (!id)
		snprintf(out, TACHO__DIFF_NAME, "turns of loops");
	else if (l && l->module[0])
		snprintf(out, TACHO__DIFF_NAME, "%s: %s+0x%" PRIx64, name, tail_of(l->module, 1),
			 l->offset);
	else if (l && l->function[0])
		snprintf(out, TACHO__DIFF_NAME, "%s: %s", name, l->function);
	else
		snprintf(out, TACHO__DIFF_NAME, "%s", name);
	used = strlen(out);
	if (l && l->file[0])
		snprintf(out + used, TACHO__DIFF_NAME - used, " (%s)", file_of(n, l));
}
