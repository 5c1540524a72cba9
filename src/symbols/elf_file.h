/*
 * The headers of an ELF file. The file may be anything: all of it is checked, and nothing of it
 * is executed.
 */
#ifndef TACHO_SYMBOLS_ELF_FILE_H
#define TACHO_SYMBOLS_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#define TACHO__OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define TACHO__OUR_MACHINE EM_AARCH64
#else
#define TACHO__OUR_MACHINE EM_NONE
#endif

#define TACHO__SEGMENTS_MAX 256u /* program headers that are looked at */

struct tacho__elf_file {
	int fd;
	uint64_t size;
	Elf64_Ehdr head;
	bool ours; /* of this machine; of others no more is known than the head */
	Elf64_Phdr segment[TACHO__SEGMENTS_MAX];
	uint32_t segments;
};

/* Reads the headers; `fd` stays the caller's. 0; -ENOEXEC: no ELF file; -EBADMSG: its program
   headers cannot be read. */
int tacho__elf_file_read(struct tacho__elf_file *f, int fd);

/* Reads `size` bytes at `offset` of the file. 0, or -EBADMSG when it does not have them. */
int tacho__elf_file_get(const struct tacho__elf_file *f, void *to, uint64_t size, uint64_t offset);

/* Where the bytes at an address lie in the file; UINT64_MAX: nowhere. */
uint64_t tacho__elf_file_offset(const struct tacho__elf_file *f, uint64_t address);

/* Copies the build-id, if it has at most `room` bytes; its size, or 0. */
uint8_t tacho__elf_file_build_id(const struct tacho__elf_file *f, uint8_t *id, uint8_t room);

#endif
