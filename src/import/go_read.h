/* Reading the generations of a Go trace (go.h). */
#ifndef TACHO_IMPORT_GO_READ_H
#define TACHO_IMPORT_GO_READ_H

#include "import/go.h"

/* The next generation into go->now: 1, or 0 when there is none, or -ENOMEM. go->cut: it ends before
   its end. */
int go_read_generation(struct go *go);
void go_generation_free(struct go_generation *g);

#endif
