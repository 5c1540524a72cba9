#include "symbols/resolve_elf.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "symbols/debuginfod.h"
#include "symbols/root.h"

#define SEGMENTS_MAX 32u
#define BUILD_ID_MAX 64u

struct tacho__elf {
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct {
		uint64_t offset, size, address;
	} segments[SEGMENTS_MAX];
	unsigned segment_count;
};

/* ------------------------------------------------------------------ opening */

static int process_root = -1; /* of the process whose files these are; -1: ours */

void tacho__elf_set_root(int fd)
{
	process_root = fd;
}

/* `fd` if it is a regular file that whoever runs the recorded process could read as well; or -1. */
static int checked(int fd, uint32_t uid)
{
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uid == geteuid() || uid == st.st_uid || st.st_mode & S_IROTH))
		return fd;
	close(fd);
	return -1;
}

static int open_file(const char *path, uint32_t uid)
{
	return checked(open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), uid);
}

/* What is looked for is a file with this build-id; where there is none, of this checksum. */
struct wanted {
	const void *id;
	ssize_t size;
	GElf_Word crc;
	char **found; /* its path, to be freed by libdwfl */
};

static int has_build_id(int fd, const struct wanted *w)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *id;
	int has = elf && dwelf_elf_gnu_build_id(elf, &id) == w->size &&
		  !memcmp(id, w->id, (size_t)w->size);

	elf_end(elf);
	return has;
}

static int has_checksum(int fd, GElf_Word crc)
{
	unsigned char bytes[65536];
	uLong sum = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		sum = crc32(sum, bytes, (uInt)n);
		at += n;
	}
	return n == 0 && sum == crc;
}

/* The file that is wanted, or -1. Takes `path` over. */
static int try_path(const struct wanted *w, char *path)
{
	int fd = path ? open_file(path, geteuid()) : -1;

	if (fd >= 0 && (w->size > 0 ? has_build_id(fd, w) : has_checksum(fd, w->crc))) {
		*w->found = path;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return -1;
}

static char *join(const char *root, const char *file, const char *folder, const char *link)
{
	const char *slash = strrchr(file, '/');
	char *path;
	int n = asprintf(&path, "%s%.*s%s%s%s", root, slash ? (int)(slash + 1 - file) : 0, file,
			 folder,
			 link	 ? link
			 : slash ? slash + 1
				 : file,
			 link ? "" : ".debug");

	/* A link may have the name of the file that it stands in. */
	if (n >= 0 && strcmp(path, file))
		return path;
	if (n >= 0)
		free(path);
	return NULL;
}

/* The debug file that `file` links to, in the folders where debuggers look for it. */
static int follow_link(const struct wanted *w, const char *file, const char *link)
{
	int fd = try_path(w, join("", file, "", link));

	if (fd < 0)
		fd = try_path(w, join("", file, ".debug/", link));
	return fd < 0 ? try_path(w, join("/usr/lib/debug", file, "", link)) : fd;
}

/* What several debug files share has a build-id of its own. */
static int find_shared(Dwfl_Module *module, const char *link, char **found)
{
	struct wanted w = {.found = found};
	const char *name, *file = NULL, *debug = NULL;
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(module, &bias);

	if (dwarf)
		w.size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &w.id);
	if (w.size <= 0 || !link)
		return -1;
	if (link[0] == '/')
		return try_path(&w, strdup(link));
	dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &file, &debug);
	return debug || file ? try_path(&w, join("", debug ? debug : file, "", link)) : -1;
}

/*
 * Not dwfl_standard_find_debuginfo: it opens whatever a link names, and waits for ever if that is a
 * pipe; and after it has looked for files as this does, it asks the servers that DEBUGINFOD_URLS
 * names, for as long as it likes. Whether they are asked is for the user to say.
 */
static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **found)
{
	const unsigned char *id;
	GElf_Addr address;
	int size = dwfl_module_build_id(module, &id, &address);
	struct wanted w = {id, size, crc, found};
	int fd = -1;

	if (size > 0)
		fd = dwfl_build_id_find_debuginfo(module, user, name, base, file, link, crc, found);
	if (fd < 0 && (size > 0 || link))
		fd = file ? follow_link(&w, file, link) : find_shared(module, link, found);
	if (fd < 0 && file && size > 0) {
		fd = tacho__debuginfod_find(TACHO__DEBUGINFOD_DEBUG, id, (size_t)size);
		/* Names of another program would be told as if they were this one's. */
		if (fd >= 0 && !has_build_id(fd, &w)) {
			close(fd);
			fd = -1;
		}
	}
	return fd < 0 ? -1 : fd;
}

static int find_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
		    char **file, Elf **elf)
{
	(void)module;
	(void)user;
	(void)name;
	(void)base;
	(void)file;
	(void)elf;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static int same_build(Dwfl_Module *file, const struct tacho_definition *module)
{
	const unsigned char *bits;
	GElf_Addr address;
	int size = dwfl_module_build_id(file, &bits, &address);

	if (!module->build_id_size)
		return 1;
	return size == (int)module->build_id_size && !memcmp(bits, module->build_id, (size_t)size);
}

/*
 * A file of debug information alone has kept where code is in memory but not where it is in the
 * file that ran. What was mapped tells: all of one segment, from the page that it begins in.
 */
static int put_back(GElf_Phdr *ph, const struct tacho_definition *module)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t before = ph->p_vaddr & (page - 1);
	uint64_t size = before + ph->p_memsz;

	if (!(ph->p_flags & PF_X) || size < before || size > UINT64_MAX - page ||
	    (size + page - 1) / page * page != module->end - module->start)
		return 0;
	ph->p_offset = module->offset + before;
	ph->p_filesz = ph->p_memsz;
	return 1;
}

static void take_segments(struct tacho__elf *e, const struct tacho_definition *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(e->module, &bias);
	size_t count = 0;

	if (!elf || elf_getphdrnum(elf, &count))
		return;
	for (size_t i = 0; i < count && e->segment_count < SEGMENTS_MAX; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (!ph.p_filesz && !put_back(&ph, module))
			continue;
		e->segments[e->segment_count].offset = ph.p_offset;
		e->segments[e->segment_count].size = ph.p_filesz;
		e->segments[e->segment_count++].address = ph.p_vaddr + bias;
	}
}

/* Takes fd over; -1: there is none. */
static struct tacho__elf *open_fd(int fd, const char *path, const struct tacho_definition *module)
{
	struct tacho__elf *e = fd < 0 ? NULL : calloc(1, sizeof(*e));

	if (!e) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	e->dwfl = dwfl_begin(&callbacks);
	if (e->dwfl)
		e->module = dwfl_report_elf(e->dwfl, path, path, fd, 0, true);
	if (!e->module)
		close(fd);
	if (!e->module || dwfl_report_end(e->dwfl, NULL, NULL) || !same_build(e->module, module)) {
		tacho__elf_close(e);
		return NULL;
	}
	take_segments(e, module);
	return e;
}

static struct tacho__elf *open_path(const char *path, const struct tacho_definition *module,
				    uint32_t uid)
{
	return open_fd(open_file(path, uid), path, module);
}

/* The file itself is worth more than its debug file, which is found from it. */
static struct tacho__elf *fetch(const struct tacho_definition *module)
{
	struct tacho__elf *e = NULL;

	for (int what = TACHO__DEBUGINFOD_EXECUTABLE; !e && what <= TACHO__DEBUGINFOD_DEBUG; what++)
		e = open_fd(tacho__debuginfod_find((enum tacho__debuginfod_file)what,
						   module->build_id, module->build_id_size),
			    module->name, module);
	return e;
}

struct tacho__elf *tacho__elf_open(const struct tacho_definition *module, uint32_t uid)
{
	struct tacho__elf *e = NULL;
	char path[64 + 2 * BUILD_ID_MAX];
	int n;

	if (module->name[0] == '/' && process_root >= 0)
		e = open_fd(checked(tacho__root_open_file(process_root, module->name), uid),
			    module->name, module);
	/* Without a build-id, a file of that name in another folder would be believed. */
	if (!e && module->name[0] == '/' && (process_root < 0 || module->build_id_size))
		e = open_path(module->name, module, uid);
	if (e || module->build_id_size < 2 || module->build_id_size > BUILD_ID_MAX)
		return e;
	n = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%02x/", module->build_id[0]);
	for (uint32_t i = 1; i < module->build_id_size; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", module->build_id[i]);
	snprintf(path + n, sizeof(path) - (size_t)n, ".debug");
	e = open_path(path, module, uid);
	return e ? e : fetch(module);
}

void tacho__elf_close(struct tacho__elf *e)
{
	if (!e)
		return;
	if (e->dwfl)
		dwfl_end(e->dwfl);
	free(e);
}

/* ---------------------------------------------------------------- resolving */

static int is_function(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
	       tag == DW_TAG_entry_point;
}

/* With its class and namespace where the language has such. */
static const char *function_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	return name ? name : dwarf_diename(die);
}

/* Where the call stood that was replaced by the body of the function. */
static void call_place(Dwarf_Die *inlined, Dwarf_Files *files, struct tacho__resolved *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (files && !dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attr), &value))
		out->file = dwarf_filesrc(files, (size_t)value, NULL, NULL);
	if (!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attr), &value))
		out->line = (uint32_t)value;
}

/* The unit of the program that an address is in. */
struct unit {
	Dwarf_Die *die; /* NULL: there is none */
	Dwarf_Addr bias;
};

static struct unit find_unit(struct tacho__elf *e, uint64_t address)
{
	struct unit u = {0};

	u.die = dwfl_module_addrdie(e->module, address, &u.bias);
	/* Not every compiler writes the table that this uses: clang does not. */
	for (Dwarf_Die *next = NULL; !u.die;) {
		next = dwfl_module_nextcu(e->module, next, &u.bias);
		if (!next)
			break;
		if (dwarf_haspc(next, address - u.bias) > 0)
			u.die = next;
	}
	return u;
}

/* Of scopes around an address: no code nests deeper. */
#define SCOPES_MAX 128u

enum scope { SCOPE_NONE, SCOPE_NAMES, SCOPE_CODE };

/* What functions may stand in: namespaces and types have no addresses of their own. */
static enum scope scope_of(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return SCOPE_NAMES;
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_entry_point:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return SCOPE_CODE;
	default:
		return SCOPE_NONE;
	}
}

/*
 * The scopes of code in `parent` that have the address, from the outermost inwards, inlined functions
 * as they stand in the code. How many. Not dwarf_getscopes, which does not look into namespaces, where
 * Rust has all of its functions.
 */
static uint32_t find_scopes(Dwarf_Die *parent, uint64_t address, Dwarf_Die *out, uint32_t most)
{
	Dwarf_Die die;
	uint32_t n = 0;
	int more = most ? dwarf_child(parent, &die) : 1;

	for (; !more && !n; more = dwarf_siblingof(&die, &die)) {
		enum scope scope = scope_of(dwarf_tag(&die));

		if (scope == SCOPE_NAMES) {
			n = find_scopes(&die, address, out, most - 1);
		} else if (scope == SCOPE_CODE && dwarf_haspc(&die, address) > 0) {
			out[0] = die;
			n = 1 + find_scopes(&die, address, out + 1, most - 1);
		}
	}
	return n;
}

static uint32_t by_dwarf(struct unit unit, uint64_t address, struct tacho__resolved *out,
			 uint32_t most)
{
	Dwarf_Die scopes[SCOPES_MAX];
	int count = (int)find_scopes(unit.die, address - unit.bias, scopes, SCOPES_MAX);
	Dwarf_Files *files = NULL;
	size_t file_count;
	uint32_t n = 0;

	if (dwarf_getsrcfiles(unit.die, &files, &file_count))
		files = NULL;
	for (int i = count - 1, before = -1; i >= 0 && n < most; i--) {
		if (!is_function(&scopes[i]))
			continue;
		out[n] = (struct tacho__resolved){.function = function_name(&scopes[i])};
		if (before >= 0)
			call_place(&scopes[before], files, &out[n]);
		before = i;
		n++;
		if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
			break;
	}
	return n;
}

static void take_line(struct unit unit, uint64_t address, struct tacho__resolved *out)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit.die, address - unit.bias);
	int number = 0;

	if (!line)
		return;
	out->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		out->line = (uint32_t)number;
}

uint32_t tacho__elf_resolve(struct tacho__elf *e, uint64_t offset, int quick,
			    struct tacho__resolved *out, uint32_t most)
{
	struct unit unit = {0};
	uint64_t address = 0;
	uint32_t n = 0;
	int found = 0;

	for (unsigned i = 0; i < e->segment_count && !found; i++) {
		found = offset - e->segments[i].offset < e->segments[i].size;
		address = offset - e->segments[i].offset + e->segments[i].address;
	}
	if (!found)
		return 0;
	if (!quick)
		unit = find_unit(e, address);
	if (unit.die)
		n = by_dwarf(unit, address, out, most);
	if (!n) {
		GElf_Off into;
		GElf_Sym symbol;

		out[0] = (struct tacho__resolved){
			.function = dwfl_module_addrinfo(e->module, address, &into, &symbol, NULL,
							 NULL, NULL),
		};
		n = out[0].function != NULL;
	}
	if (n && unit.die)
		take_line(unit, address, &out[0]);
	return n;
}

/* Rust's closures have no name, and the body of an async function is one: what they stand in is their
   name. "serve::{{closure}}" in the old mangling, "serve::{closure#0}" in the new one. */
static void drop_closures(char *name)
{
	size_t size = strlen(name);

	for (;;) {
		char *at = size && name[size - 1] == '}' ? memrchr(name, ':', size) : NULL;

		if (!at || at - name < 2 ||
		    (strncmp(at, ":{{closure}}", 12) != 0 && strncmp(at, ":{closure#", 10) != 0))
			return;
		size = (size_t)(at - 1 - name);
		name[size] = 0;
	}
}

char *tacho__demangle(const char *name)
{
	/* C++ of all compilers and both manglings of Rust. */
	char *demangled = cplus_demangle(name, DMGL_ANSI | DMGL_AUTO);

	if (demangled)
		drop_closures(demangled);
	return demangled;
}
