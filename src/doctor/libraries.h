/*
 * Which libraries the dynamic linker loads for a program, found out by reading the files as it
 * reads them. Nothing is loaded or executed: `ld.so --list` loads the libraries of DT_AUDIT and
 * runs their constructors, so it must not be asked about a file of somebody else.
 */
#ifndef TACHO_DOCTOR_LIBRARIES_H
#define TACHO_DOCTOR_LIBRARIES_H

#include <stdbool.h>

struct tacho__libraries {
	/* A library and its path; NULL: no file for it was found. The program is not among them. */
	void (*see)(void *arg, const char *name, const char *path);
	void *arg;
};

/*
 * `linker`: the dynamic linker that the program asks for (PT_INTERP). False: not all of it could be
 * read, so a library that was not seen may still be loaded.
 */
bool tacho__libraries(const char *program, const char *linker, const struct tacho__libraries *to);

#endif
