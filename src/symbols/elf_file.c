#include "symbols/elf_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/build_id.h"

int tacho__elf_file_get(const struct tacho__elf_file *f, void *to, uint64_t size, uint64_t offset)
{
	if (offset > f->size || size > f->size - offset)
		return -EBADMSG;
	return pread(f->fd, to, (size_t)size, (off_t)offset) == (ssize_t)size ? 0 : -EBADMSG;
}

int tacho__elf_file_read(struct tacho__elf_file *f, int fd)
{
	const Elf64_Ehdr *h = &f->head;
	struct stat st;

	f->fd = fd;
	f->segments = 0;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOEXEC;
	f->size = (uint64_t)st.st_size;
	if (tacho__elf_file_get(f, &f->head, sizeof(f->head), 0) ||
	    memcmp(h->e_ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	f->ours = h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB &&
		  h->e_machine == TACHO__OUR_MACHINE;
	if (!f->ours)
		return 0;
	f->segments = h->e_phnum < TACHO__SEGMENTS_MAX ? h->e_phnum : TACHO__SEGMENTS_MAX;
	if (h->e_phentsize == sizeof(f->segment[0]) &&
	    !tacho__elf_file_get(f, f->segment, f->segments * sizeof(f->segment[0]), h->e_phoff))
		return 0;
	f->segments = 0;
	return -EBADMSG;
}

uint64_t tacho__elf_file_offset(const struct tacho__elf_file *f, uint64_t address)
{
	for (uint32_t i = 0; i < f->segments; i++) {
		const Elf64_Phdr *p = &f->segment[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz)
			return p->p_offset + (address - p->p_vaddr);
	}
	return UINT64_MAX;
}

uint8_t tacho__elf_file_build_id(const struct tacho__elf_file *f, uint8_t *id, uint8_t room)
{
	uint8_t notes[TACHO__NOTES_MAX], n = 0;

	for (uint32_t i = 0; i < f->segments && !n; i++) {
		const Elf64_Phdr *p = &f->segment[i];
		uint64_t size = p->p_filesz < sizeof(notes) ? p->p_filesz : sizeof(notes);

		if (p->p_type == PT_NOTE && !tacho__elf_file_get(f, notes, size, p->p_offset))
			n = tacho__build_id_of(notes, (size_t)size, id, room);
	}
	return n;
}
