/* What the list of a folder says of one trace file: an object of JSON. */
#ifndef TACHO_SERVE_FOLDER_ROW_H
#define TACHO_SERVE_FOLDER_ROW_H

#include <stdatomic.h>
#include <stdbool.h>
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
/* A file of the folder that may be shown, by its name: a descriptor, or a negative errno. */
int tacho__listed_open(int folder, const char *name);
bool tacho__listed_name(const char *name);

#endif
