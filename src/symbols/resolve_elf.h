/* Symbols of one ELF file, with libdw. */
#ifndef TACHO_SYMBOLS_RESOLVE_ELF_H
#define TACHO_SYMBOLS_RESOLVE_ELF_H

#include "symbols/resolve.h"

struct tacho__elf;

#if defined(TACHO_HAVE_LIBDW)

/*
 * Opens the file that `module` was mapped from, or one that has its debug information, from a
 * debuginfod server if that is allowed. NULL:
 * there is none, it is another file by now, or it cannot be read. `uid` is whose process
 * says so: what that user may not read is not read either.
 */
struct tacho__elf *tacho__elf_open(const struct tacho_definition *module, uint32_t uid);
/* From now on paths start there first (root.h). For a process that looks up names of one other. */
void tacho__elf_set_root(int root);
void tacho__elf_close(struct tacho__elf *e);

/* As tacho__resolve, for a byte of the file. Functions are not demangled yet. `quick`: without
   the debug information, whose reading can take long. */
uint32_t tacho__elf_resolve(struct tacho__elf *e, uint64_t offset, int quick,
			    struct tacho__resolved *out, uint32_t most);

/* In place of a mangled name the one in the source, to be freed; NULL if it is not mangled. */
char *tacho__demangle(const char *name);

#else

static inline void tacho__elf_set_root(int root)
{
	(void)root;
}

static inline struct tacho__elf *tacho__elf_open(const struct tacho_definition *module,
						 uint32_t uid)
{
	(void)module;
	(void)uid;
	return NULL;
}

static inline void tacho__elf_close(struct tacho__elf *e)
{
	(void)e;
}

static inline uint32_t tacho__elf_resolve(struct tacho__elf *e, uint64_t offset, int quick,
					  struct tacho__resolved *out, uint32_t most)
{
	(void)e;
	(void)offset;
	(void)quick;
	(void)out;
	(void)most;
	return 0;
}

static inline char *tacho__demangle(const char *name)
{
	(void)name;
	return NULL;
}

#endif
#endif
