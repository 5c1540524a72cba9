/*
 * The root folder of a recorded process, where it is another one than ours: after chroot, or in a
 * container. The process has noted the paths of its code as it sees them, and most windows are
 * saved when it has ended.
 */
#ifndef TACHO_SYMBOLS_ROOT_H
#define TACHO_SYMBOLS_ROOT_H

#include <stdint.h>

/* Of a process that runs. 1: it is kept until it is forgotten, which costs a descriptor. 0: it is
   ours, or cannot be opened. */
int tacho__root_keep(uint32_t pid, uint64_t start_time);
void tacho__root_forget(uint32_t pid, uint64_t start_time);

/* A new descriptor of the folder that was kept, or that the process has now; -1: it is ours, or
   nobody knows. */
int tacho__root_open(uint32_t pid, uint64_t start_time);

/* Opens a file for reading below such a folder, as if that were the root. A descriptor or -1. */
int tacho__root_open_file(int root, const char *path);

#endif
