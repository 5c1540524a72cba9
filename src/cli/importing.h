/*
 * Traces of other recorders and boxes, wherever a command takes a trace: they become one of tacho's
 * in memory, under a path by which it can be opened.
 */
#ifndef TACHO_CLI_IMPORTING_H
#define TACHO_CLI_IMPORTING_H

/* The path to open instead of `path`, which this frees where they differ: `path` itself when it is
   not imported. NULL after saying why not. What was imported lives until the program ends. */
char *importing_resolve(char *path);

/* The same for a box: it becomes the trace that `tacho dump` would write, because a box has only the
   addresses of code, and a trace has their names. A box that cannot be read stays what it is, and
   so does a damaged one: the trace would look whole. */
char *importing_box(char *path);

/* What a person calls the path: the file that was imported, or the box. */
const char *importing_name(const char *path);

#endif
