/* What the list of a folder says of one trace file: an object of JSON. */
#ifndef TACHO_SERVE_FOLDER_ROW_H
#define TACHO_SERVE_FOLDER_ROW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* How much is known. */
enum tacho__listed_stage {
	TACHO__LISTED_NAMED,  /* its name and size */
	TACHO__LISTED_OPENED, /* whose it is, and how that ended */
	TACHO__LISTED_JUDGED, /* the verdict, or why there is none */
};

struct tacho__listed_source {
	int folder;
	const char *name; /* a regular file in it */
	struct stat st;	  /* as it was listed */
	/* The calling thread ends where it stands when this is set. What it holds is lost: for the
	   end of the program, which does not wait for the verdict on a large trace. */
	const atomic_bool *stop;
};

/* Text to free; NULL: no memory. */
char *tacho__listed_json(const struct tacho__listed_source *s, enum tacho__listed_stage stage);
/* Whether a regular file in the folder is to be listed: one that is called *.tacho, or that another
   recorder made. */
bool tacho__listed_is_trace(int folder, const char *name);
/* The trace in a file of the folder, by its name; that of another recorder is imported, which stops as
   above (`stop` may be NULL). A descriptor, or a negative errno with a sentence in `message`, or "". */
int tacho__listed_open(int folder, const char *name, const atomic_bool *stop, char *message,
		       size_t message_size);
/* Whether it is the name of a file directly in a folder, and not a hidden one. */
bool tacho__listed_name(const char *name);

#endif
