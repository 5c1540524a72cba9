#include "doctor/program_elf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/elf_file.h"

#define SECTIONS_MAX 4096u
#define SYMBOLS_AT_ONCE 1024u
#define NAMES_MAX (UINT64_C(256) << 20) /* bytes of a string table that are read */
#define FUNCTIONS_MAX 2000u		/* that are looked at */
#define PROLOGUE 24u
#define TEXTS_MAX (UINT64_C(64) << 20) /* bytes of a section that are searched for texts */

/* ------------------------------------------------------- frame pointers */

/* Whether a function that begins so keeps a frame pointer. */
static bool is_framed(const uint8_t *code)
{
#if defined(__x86_64__)
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint32_t at = memcmp(code, endbr, sizeof(endbr)) ? 0 : 4;

	/* push %rbp, and soon mov %rsp,%rbp in one of its two encodings. */
	if (code[at] != 0x55)
		return false;
	for (at++; at + 3 <= PROLOGUE; at++)
		if (code[at] == 0x48 && ((code[at + 1] == 0x89 && code[at + 2] == 0xe5) ||
					 (code[at + 1] == 0x8b && code[at + 2] == 0xec)))
			return true;
	return false;
#else
	for (uint32_t at = 0; at + 4 <= PROLOGUE; at += 4) {
		uint32_t word;

		memcpy(&word, code + at, sizeof(word));
		/* mov x29, sp or add x29, sp, #n */
		if ((word & 0xffc003ffu) == 0x910003fdu)
			return true;
	}
	return false;
#endif
}

/* The index of .eh_frame lists where functions begin: pairs of 32 bits, relative to itself. */
static void read_frames(const struct tacho__elf_file *f, const Elf64_Phdr *p,
			struct tacho__elf_facts *out)
{
	uint8_t head[4], code[PROLOGUE];
	uint32_t count, step;
	int32_t entry[2];

	if (tacho__elf_file_get(f, head, sizeof(head), p->p_offset) || head[0] != 1)
		return;
	out->eh_frame = true;
	/* Encodings as all linkers write them: udata4, and datarel sdata4. */
	if (head[2] != 0x03 || head[3] != 0x3b ||
	    tacho__elf_file_get(f, &count, sizeof(count), p->p_offset + 8) ||
	    count > p->p_filesz / 8)
		return;
	step = count / FUNCTIONS_MAX + 1;
	for (uint32_t i = 0; i < count; i += step) {
		uint64_t offset;

		if (tacho__elf_file_get(f, entry, sizeof(entry),
					p->p_offset + 12 + (uint64_t)i * 8))
			return;
		offset = tacho__elf_file_offset(f, p->p_vaddr + (uint64_t)(int64_t)entry[0]);
		if (offset == UINT64_MAX || tacho__elf_file_get(f, code, sizeof(code), offset))
			continue;
		out->functions++;
		out->framed += is_framed(code);
	}
}

/* -------------------------------------------------------------- symbols */

static void look_for(const char *name, const char *const *names, struct tacho__elf_facts *out)
{
	for (uint32_t i = 0; i < 32 && names[i]; i++)
		if (!strcmp(name, names[i]))
			out->defines |= 1u << i;
	/* Parts of a path, with their lengths, in both of Rust's forms. */
	out->tokio |= strstr(name, "5tokio7runtime") != NULL;
	out->tacho_tokio |= strstr(name, "11tacho_tokio") != NULL;
}

static void read_symbols(const struct tacho__elf_file *f, const Elf64_Shdr *table,
			 const Elf64_Shdr *texts, const char *const *names,
			 struct tacho__elf_facts *out)
{
	Elf64_Sym some[SYMBOLS_AT_ONCE];
	uint64_t count = table->sh_size / sizeof(some[0]);
	char *text;

	if (table->sh_entsize != sizeof(some[0]) || texts->sh_size > NAMES_MAX ||
	    texts->sh_size > f->size || table->sh_size > f->size)
		return;
	text = malloc((size_t)texts->sh_size + 1);
	if (!text)
		return;
	text[texts->sh_size] = 0;
	if (tacho__elf_file_get(f, text, texts->sh_size, texts->sh_offset))
		count = 0;
	for (uint64_t i = 0; i < count; i += SYMBOLS_AT_ONCE) {
		uint64_t n = count - i < SYMBOLS_AT_ONCE ? count - i : SYMBOLS_AT_ONCE;

		if (tacho__elf_file_get(f, some, n * sizeof(some[0]),
					table->sh_offset + i * sizeof(some[0])))
			break;
		for (uint64_t k = 0; k < n; k++)
			if (some[k].st_shndx != SHN_UNDEF && some[k].st_name < texts->sh_size &&
			    ELF64_ST_TYPE(some[k].st_info) == STT_FUNC)
				look_for(text + some[k].st_name, names, out);
	}
	free(text);
}

/* ---------------------------------------------------------------- texts */

/* Whether it has a path such as /tokio-1.47.1/src/runtime/, of a crate and a part of it. */
static bool has_path(const char *text, size_t size, const char *crate, const char *part)
{
	const char *end = text + size, *at = text;

	while ((at = memmem(at, (size_t)(end - at), crate, strlen(crate)))) {
		at += strlen(crate);
		while (at < end && strchr("-.0123456789", *at) && *at)
			at++;
		if ((size_t)(end - at) >= strlen(part) && !memcmp(at, part, strlen(part)))
			return true;
	}
	return false;
}

static void read_texts(const struct tacho__elf_file *f, const Elf64_Shdr *s,
		       struct tacho__elf_facts *out)
{
	uint64_t size = s->sh_size < TEXTS_MAX ? s->sh_size : TEXTS_MAX;
	char *text = size <= f->size ? malloc((size_t)size + 1) : NULL;

	if (text && !tacho__elf_file_get(f, text, size, s->sh_offset)) {
		out->tokio |= has_path(text, (size_t)size, "/tokio", "/src/runtime/");
		out->tacho_tokio |= has_path(text, (size_t)size, "tacho-tokio", "/src/");
	}
	free(text);
}

static bool is_constant(const Elf64_Shdr *s)
{
	return s->sh_type == SHT_PROGBITS && (s->sh_flags & SHF_ALLOC) &&
	       !(s->sh_flags & (SHF_WRITE | SHF_EXECINSTR));
}

static void read_sections(const struct tacho__elf_file *f, const char *const *names,
			  struct tacho__elf_facts *out)
{
	uint32_t count = f->head.e_shnum, name_size;
	Elf64_Shdr *all, *texts;
	char name[16];

	if (f->head.e_shentsize != sizeof(*all) || !count || count > SECTIONS_MAX ||
	    f->head.e_shstrndx >= count)
		return;
	all = calloc(count, sizeof(*all));
	if (!all)
		return;
	if (tacho__elf_file_get(f, all, count * sizeof(*all), f->head.e_shoff))
		count = 0;
	texts = &all[f->head.e_shstrndx];
	for (uint32_t i = 0; i < count; i++) {
		const Elf64_Shdr *s = &all[i];

		out->symtab |= s->sh_type == SHT_SYMTAB;
		if ((s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM) && s->sh_link < count)
			read_symbols(f, s, &all[s->sh_link], names, out);
		if (is_constant(s))
			read_texts(f, s, out);
		name_size = sizeof(".debug_info");
		if (s->sh_name < texts->sh_size && texts->sh_size - s->sh_name >= name_size &&
		    !tacho__elf_file_get(f, name, name_size, texts->sh_offset + s->sh_name) &&
		    !memcmp(name, ".debug_info", name_size) && s->sh_type != SHT_NOBITS)
			out->debug_info = true;
	}
	free(all);
}

int tacho__elf_facts(const char *path, const char *const *names, struct tacho__elf_facts *out)
{
	struct tacho__elf_file f;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err;

	*out = (struct tacho__elf_facts){0};
	if (fd < 0)
		return -errno;
	err = tacho__elf_file_read(&f, fd) || !f.ours ? -ENOEXEC : 0;
	if (!err) {
		out->build_id_size =
			tacho__elf_file_build_id(&f, out->build_id, sizeof(out->build_id));
		for (uint32_t i = 0; i < f.segments; i++)
			if (f.segment[i].p_type == PT_GNU_EH_FRAME)
				read_frames(&f, &f.segment[i], out);
		read_sections(&f, names, out);
	}
	close(fd);
	return err;
}
