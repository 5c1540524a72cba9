/*
 * What an ELF file of this machine says of itself, as far as recording depends on it. The file
 * may be anything: all of it is checked, and nothing of it executed.
 */
#ifndef TACHO_DOCTOR_PROGRAM_ELF_H
#define TACHO_DOCTOR_PROGRAM_ELF_H

#include <stdbool.h>
#include <stdint.h>

struct tacho__elf_facts {
	bool eh_frame;	 /* tables to unwind by, with an index */
	bool symtab;	 /* names of all functions */
	bool debug_info; /* lines and inlined functions */
	uint8_t build_id[20];
	uint32_t build_id_size;
	/* Of functions that were looked at, how many keep a frame pointer. */
	uint32_t functions, framed;
	/* Of the names that were asked for: 1 << i when it defines the function. */
	uint32_t defines;
	/* Code of Tokio's runtime is inside, and of the crate that tells of its tasks: by functions,
	   or by the names of source files that messages of panics have. */
	bool tokio, tacho_tokio;
};

/* `names`: functions to look for, at most 32, ends with NULL. 0; -ENOEXEC: no ELF file of this
   machine; or as of open(2). */
int tacho__elf_facts(const char *path, const char *const *names, struct tacho__elf_facts *out);

#endif
