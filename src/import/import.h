/*
 * Traces of other recorders, recognised by their first bytes, become traces of tacho.
 *
 * An importer is a row of the table in import.c. It gets hostile bytes and a trace to be made
 * (made.h), into which it puts what it understands; what it does not, it says there. Only when
 * nothing can be made of the file does it fail.
 */
#ifndef TACHO_IMPORT_IMPORT_H
#define TACHO_IMPORT_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include "import/made.h"

struct tacho__importing {
	struct tacho__made *made;
	const char *const *paths; /* the files of one trace; most importers take one */
	uint32_t path_count;
	void (*progress)(void *arg, uint64_t done, uint64_t total); /* or NULL */
	void *progress_arg;
	char *message; /* the sentence behind a negative return value */
	size_t message_size;
};

#define TACHO__IMPORT_HEAD 64u /* bytes of a file that are looked at */

struct tacho__importer {
	/* Whether a file that begins so, unpacked, is of this kind. */
	int (*recognises)(const uint8_t *head, size_t size);
	/* 0 or a negative errno with a sentence: nothing could be made of it. */
	int (*import)(struct tacho__importing *i);
	int folders; /* the files of a folder are one trace */
};

extern const struct tacho__importer tacho__import_dial9;
extern const struct tacho__importer tacho__import_go;

/* What tacho__import_find has found; to be freed whatever it returned. */
struct tacho__found {
	const struct tacho__importer *importer;
	char **paths;
	uint32_t path_count;
};
/* Whether `path`, a file or folder, is something that is imported: 1 or 0. -ENOMEM. */
int tacho__import_find(struct tacho__found *f, const char *path);
void tacho__found_free(struct tacho__found *f);

/* Writes the trace to `fd`. 0 or a negative errno with a sentence that names no file. */
struct tacho__import_options {
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
	int once; /* it is read once and thrown away */
};
int tacho__import(const struct tacho__found *f, int fd, const struct tacho__import_options *options,
		  struct tacho__trace_result *result, char *message, size_t message_size);
/* The same into memory, where it is read once: a descriptor, or a negative errno as above. */
int tacho__import_memory(const struct tacho__found *f,
			 void (*progress)(void *arg, uint64_t done, uint64_t total),
			 void *progress_arg, char *message, size_t message_size);

#endif
