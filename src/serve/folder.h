/*
 * A folder of trace files, as a list that says of each whose it is and what is wrong: *.tacho, and what
 * other recorders made, which is known by its first bytes and imported when it is looked at. Only
 * regular files directly in it: no links, no pipes, nothing below. Verdicts are found out by a thread of
 * its own, once for each file as long as it does not change.
 */
#ifndef TACHO_SERVE_FOLDER_H
#define TACHO_SERVE_FOLDER_H

#include "serve/site.h"

struct tacho__folder;

/* NULL with a sentence in `message`. */
struct tacho__folder *tacho__folder_open(const char *path, char *message, size_t message_size);
/* list          {"version", "traces", "more"}, the newest first
   list/VERSION  the same, or {"version"} alone if nothing has changed since
   traces/NAME   a file
   For struct tacho__site_options; `arg` is the folder. */
void tacho__folder_answer(void *arg, const char *path, bool post, struct tacho__answer *a);
void tacho__folder_close(struct tacho__folder *f);

#endif
