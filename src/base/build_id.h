/* The build-id in the notes of an ELF file. Makes no calls, so that the recorder can use it. */
#ifndef TACHO_BASE_BUILD_ID_H
#define TACHO_BASE_BUILD_ID_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TACHO__NOTES_MAX 1024u /* bytes of notes in which it is looked for */

/* Copies the GNU build-id, if it has at most `room` bytes; its size, or 0. */
static inline uint8_t tacho__build_id_of(const uint8_t *notes, size_t size, uint8_t *id,
					 uint8_t room)
{
	uint64_t at = 0;

	while (at + sizeof(Elf64_Nhdr) <= size) {
		Elf64_Nhdr h;
		uint64_t name, desc;

		memcpy(&h, notes + at, sizeof(h));
		name = at + sizeof(h);
		desc = name + ((h.n_namesz + 3ull) & ~3ull);
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && h.n_descsz &&
		    h.n_descsz <= room && desc + h.n_descsz <= size &&
		    !memcmp(notes + name, "GNU", 4)) {
			memcpy(id, notes + desc, h.n_descsz);
			return (uint8_t)h.n_descsz;
		}
		at = desc + ((h.n_descsz + 3ull) & ~3ull);
	}
	return 0;
}

#endif
