/* Names of the kernel's functions, as /proc/kallsyms gives them to those who may see them. */
#ifndef TACHO_KERNEL_KSYMS_H
#define TACHO_KERNEL_KSYMS_H

#include <stdint.h>

struct tacho__ksyms;

/* From the file at `path`, NULL: /proc/kallsyms. -EACCES: addresses are hidden from us
   (kernel.kptr_restrict). */
int tacho__ksyms_load(struct tacho__ksyms **out, const char *path);
/* "vfs_read", "ext4_sync_file [ext4]"; NULL: none holds the address. */
const char *tacho__ksyms_name(const struct tacho__ksyms *k, uint64_t address);
void tacho__ksyms_free(struct tacho__ksyms *k);

#endif
