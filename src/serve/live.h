/*
 * A process that is watched while it runs: snapshots of its box, about one a second as long as a page
 * asks for them, and the last when it has ended. Taken by a thread of its own, from the box alone: the
 * process is not asked.
 */
#ifndef TACHO_SERVE_LIVE_H
#define TACHO_SERVE_LIVE_H

#include "serve/site.h"

struct tacho__live;

/* `path`: a box. NULL with a sentence in `message`. */
struct tacho__live *tacho__live_start(const char *path, char *message, size_t message_size);
/* live                  how it stands: number of the newest snapshot, the end of the process
   snapshot              the newest
   POST keep             writes what the box holds now to a file
   POST keep/N           writes snapshot N, while it is there, to a file; `live` says where
   traces/NAME           a file that was written so
   For struct tacho__site_options; `arg` is what was started. */
void tacho__live_answer(void *arg, const char *path, bool post, struct tacho__answer *a);
void tacho__live_stop(struct tacho__live *l);

#endif
