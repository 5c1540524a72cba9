/* The code mapped into the process, as definitions: what addresses belong to. */
#ifndef TACHO_CORE_MODULES_H
#define TACHO_CORE_MODULES_H

/* Defines every executable mapping with its build-id, and puts the program's own build-id into
   the superblock. Makes some tens of system calls. */
void tacho__modules_scan(void);

#endif
