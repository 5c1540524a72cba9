/*
 * /proc/self/maps says what is mapped; the ELF headers in memory say the build-id.
 * They are read through /proc/self/mem, where an address that has just been
 * unmapped is an error and not a fault.
 */
#include "core/modules.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/build_id.h"
#include "base/sys.h"
#include "core/define.h"

/* Mapped, as the stack of the thread may be small. */
struct scan {
	char text[4096];
	int mem;
	uint64_t ticks;
	/* The latest mapping with file offset 0: where the ELF header of the file lies. */
	uint64_t header_at;
	char header_path[TACHO_MODULE_PATH_MAX + 1];
	int program_done;
};

struct mapping {
	uint64_t start, end, offset;
	int executable;
	const char *path;
	size_t path_size;
};

static uint64_t hex(const char **p)
{
	uint64_t v = 0;

	for (;; (*p)++) {
		char c = **p;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return v;
	}
}

/* One line: "start-end perms offset dev inode   path". */
static int parse_line(const char *line, struct mapping *m)
{
	const char *p = line;

	m->start = hex(&p);
	if (*p++ != '-')
		return 0;
	m->end = hex(&p);
	if (*p++ != ' ' || strnlen(p, 5) < 5)
		return 0;
	m->executable = p[2] == 'x';
	p += 5;
	m->offset = hex(&p);
	p = strpbrk(p, "/[");
	m->path = p ? p : "";
	m->path_size = strlen(m->path);
	return 1;
}

/* A daemon that changed its user may not open its own memory; it may read it all the same. */
static long read_memory(int mem, void *buf, size_t size, uint64_t at)
{
	struct iovec here = {buf, size}, there = {(void *)(uintptr_t)at, size};

	if (mem >= 0)
		return tacho__pread(mem, buf, size, at);
	return TACHO__SYS(SYS_process_vm_readv, tacho__getpid(), &here, 1, &there, 1, 0);
}

static uint8_t read_build_id(int mem, uint64_t header_at, uint8_t *id)
{
	Elf64_Ehdr e;
	uint64_t base = UINT64_MAX;

	if (read_memory(mem, &e, sizeof(e), header_at) != sizeof(e) ||
	    memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_phentsize != sizeof(Elf64_Phdr))
		return 0;
	for (unsigned i = 0; i < e.e_phnum && i < 64; i++) {
		Elf64_Phdr ph;
		uint8_t notes[TACHO__NOTES_MAX], n;
		long size;

		if (read_memory(mem, &ph, sizeof(ph), header_at + e.e_phoff + i * sizeof(ph)) !=
		    sizeof(ph))
			return 0;
		if (ph.p_type == PT_LOAD && base == UINT64_MAX)
			base = header_at - ph.p_vaddr + ph.p_offset;
		/* Notes may stand before the first segment in the table; they lie in the file
		   where they lie in memory, relative to the header. */
		if (ph.p_type != PT_NOTE)
			continue;
		size = read_memory(
			mem, notes, ph.p_filesz < sizeof(notes) ? ph.p_filesz : sizeof(notes),
			base == UINT64_MAX ? header_at + ph.p_offset : base + ph.p_vaddr);
		n = size > 0 ? tacho__build_id_of(notes, (size_t)size, id, TACHO_BUILD_ID_MAX) : 0;
		if (n)
			return n;
	}
	return 0;
}

/* 1 when the newest definition that overlaps [start, end) is this one, but for its time. */
static int known(const uint8_t *payload, uint32_t size)
{
	uint64_t start, end;

	memcpy(&start, payload, 8);
	memcpy(&end, payload + 8, 8);
	for (uint32_t id = tacho__load(&tacho__rec->super->next_def) - 1; id; id--) {
		const struct tacho_box_def *d = &tacho__rec->defs[id];
		uint32_t at = __atomic_load_n(&d->offset, __ATOMIC_ACQUIRE);
		const uint8_t *p = tacho__rec->def_data + (uint64_t)(at - 1) * 8;
		uint64_t other_start, other_end;

		if (!at || d->class != TACHO_DEF_MODULE)
			continue;
		memcpy(&other_start, p, 8);
		memcpy(&other_end, p + 8, 8);
		if (other_start < end && start < other_end)
			return d->size == size && !memcmp(p, payload, 24) &&
			       !memcmp(p + 32, payload + 32, size - 32);
	}
	return 0;
}

static void define_module(struct scan *s, const struct mapping *m)
{
	uint8_t buf[TACHO_MODULE_HEAD + TACHO_BUILD_ID_MAX + TACHO_MODULE_PATH_MAX];
	struct tacho_box_super *super = tacho__rec->super;
	uint8_t id[TACHO_BUILD_ID_MAX];
	uint16_t path_size = (uint16_t)(m->path_size > TACHO_MODULE_PATH_MAX ? TACHO_MODULE_PATH_MAX
									     : m->path_size);
	uint8_t id_size = 0;
	uint32_t size;

	if (!strncmp(m->path, s->header_path, sizeof(s->header_path) - 1))
		id_size = read_build_id(s->mem, s->header_at, id);
	memset(buf, 0, TACHO_MODULE_HEAD);
	memcpy(buf, &m->start, 8);
	memcpy(buf + 8, &m->end, 8);
	memcpy(buf + 16, &m->offset, 8);
	memcpy(buf + 24, &s->ticks, 8);
	buf[32] = id_size;
	memcpy(buf + 34, &path_size, 2);
	memcpy(buf + TACHO_MODULE_HEAD, id, id_size);
	memcpy(buf + TACHO_MODULE_HEAD + id_size, m->path, path_size);
	size = (uint32_t)TACHO_MODULE_HEAD + id_size + path_size;
	if (!known(buf, size))
		tacho__define_payload(TACHO_DEF_MODULE,
				      path_size < m->path_size ? TACHO_DEF_CUT : 0, buf, size);
	if (!s->program_done && id_size && !strcmp(m->path, super->exe)) {
		memcpy(super->build_id, id, id_size);
		super->build_id_size = id_size;
		s->program_done = 1;
	}
}

static void take_line(struct scan *s, const char *line)
{
	struct mapping m;

	if (!parse_line(line, &m))
		return;
	if (m.path_size && !m.offset && m.path_size < sizeof(s->header_path)) {
		memcpy(s->header_path, m.path, m.path_size + 1);
		s->header_at = m.start;
	}
	if (m.executable && strcmp(m.path, "[vsyscall]"))
		define_module(s, &m);
}

static void take_lines(struct scan *s, int maps)
{
	char *buf = s->text;
	size_t have = 0;
	long n;

	while ((n = tacho__read(maps, buf + have, sizeof(s->text) - 1 - have)) > 0) {
		char *line = buf, *end;

		have += (size_t)n;
		buf[have] = 0;
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			take_line(s, line);
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof(s->text) - 1) { /* no line is that long */
			tacho__count(TACHO_LOSS_MODULES, 1);
			break;
		}
	}
}

void tacho__modules_scan(void)
{
	struct scan *s = tacho__map_zeros(sizeof(*s));
	int maps;

	if (!s) {
		tacho__count(TACHO_LOSS_MODULES, 1);
		return;
	}
	s->ticks = tacho__ticks();
	maps = tacho__openat(AT_FDCWD, "/proc/self/maps", O_RDONLY, 0);
	s->mem = tacho__openat(AT_FDCWD, "/proc/self/mem", O_RDONLY, 0);
	if (maps < 0 || read_memory(s->mem, s->text, 1, (uintptr_t)s) != 1)
		tacho__count(TACHO_LOSS_MODULES, 1);
	if (maps >= 0) {
		take_lines(s, maps);
		tacho__close(maps);
	}
	if (s->mem >= 0)
		tacho__close(s->mem);
	tacho__munmap(s, sizeof(*s));
}
