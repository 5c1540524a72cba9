/*
 * Traces of other recorders, wherever a command takes a trace: they become one of tacho's in
 * memory, under a path by which it can be opened.
 */
#ifndef TACHO_CLI_IMPORTING_H
#define TACHO_CLI_IMPORTING_H

/* The path to open instead of `path`, which this frees where they differ: `path` itself when it is
   not imported. NULL after saying why not. What was imported lives until the program ends. */
char *importing_resolve(char *path);

/* What a person calls the path: the file that was imported. */
const char *importing_name(const char *path);

#endif
