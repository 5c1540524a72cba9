/*
 * Named points in the code that keeps the box consistent. Tests kill the process
 * at each and read what is left. In the library that is installed they are
 * nothing at all.
 */
#ifndef TACHO_CORE_TESTPOINT_H
#define TACHO_CORE_TESTPOINT_H

#if TACHO_TESTPOINTS
void tacho__testpoint(const char *name);
#define TACHO_TESTPOINT(name) tacho__testpoint(name)
#else
#define TACHO_TESTPOINT(name) ((void)0)
#endif

#endif
