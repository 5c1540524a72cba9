/*
 * A flame graph as one SVG file: rectangles, a title for each, and a small script for zoom and
 * search. It needs nothing beside itself, and without scripts it is a picture.
 */
#ifndef TACHO_EXPORT_FLAME_SVG_H
#define TACHO_EXPORT_FLAME_SVG_H

#include "export/stacks.h"

struct tacho__flame {
	const char *title;    /* escaped here */
	const char *subtitle; /* "": none */
	int ns;		      /* values are nanoseconds, else samples */
	int off_cpu;	      /* other colours */
};

/* 0, -ENOMEM, or what the sink says. */
int tacho__flame_svg(const struct tacho__stacks *stacks, const struct tacho__flame *flame,
		     const struct tacho__sink *sink);

#endif
