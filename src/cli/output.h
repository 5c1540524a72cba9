/*
 * A new file (write/new_file.h) that an interrupt does not leave half made. All say why when they
 * fail.
 */
#ifndef TACHO_CLI_OUTPUT_H
#define TACHO_CLI_OUTPUT_H

#include "write/new_file.h"

int output_begin(struct tacho__new_file *f, const char *path, bool replace);
int output_begin_in(struct tacho__new_file *f, const char *folder,
		    const struct tacho_process *process);
int output_commit(struct tacho__new_file *f);
void output_abandon(struct tacho__new_file *f);

#endif
