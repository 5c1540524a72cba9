#include "symbols/resolve.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbols/debuginfod.h"
#include "symbols/resolve_elf.h"
#include "kernel/ksyms.h"
#include "read/memory.h"

#define FILES_MAX 1024u
#define MAP_BYTES_MAX (64u << 20)
#define NAMES_MAX 64u
/* Debug information of a large program takes seconds to read; after this long, in all, only
   symbol tables are used. */
#define PATIENCE_NS 20000000000ull

/* A mapped file, open; or one that turned out not to be there. */
struct file {
	char *path;
	uint8_t build_id[64];
	uint32_t build_id_size;
	struct tacho__elf *elf;
};

/* One line of a perf map. */
struct mapped {
	uint64_t start, size;
	const char *name;
};

struct tacho__resolver {
	const struct tacho_process *process;
	uint64_t deadline;
	struct file *files;
	uint32_t file_count;
	char *map;
	struct mapped *mapped;
	uint32_t mapped_count;
	int map_tried;
	struct tacho__ksyms *kernel; /* NULL: none that may be used */
	int kernel_tried;
	char *names[NAMES_MAX]; /* demangled, of the last call */
	unsigned name_count;
};

/* Waiting for debuginfod servers has a limit of its own. */
static uint64_t working_ns(void)
{
	return tacho__clock_ns(CLOCK_MONOTONIC) - tacho__debuginfod_spent_ns();
}

struct tacho__resolver *tacho__resolver_new(const struct tacho_process *process)
{
	struct tacho__resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->process = process;
	r->deadline = working_ns() + PATIENCE_NS;
	return r;
}

static void forget_names(struct tacho__resolver *r)
{
	while (r->name_count)
		free(r->names[--r->name_count]);
}

void tacho__resolver_free(struct tacho__resolver *r)
{
	if (!r)
		return;
	forget_names(r);
	for (uint32_t i = 0; i < r->file_count; i++) {
		tacho__elf_close(r->files[i].elf);
		free(r->files[i].path);
	}
	free(r->files);
	tacho__ksyms_free(r->kernel);
	free(r->mapped);
	free(r->map);
	free(r);
}

/* -------------------------------------------------------------------- files */

static struct file *file_of(struct tacho__resolver *r, const struct tacho_definition *m)
{
	struct file *f, *all;

	for (uint32_t i = 0; i < r->file_count; i++) {
		f = &r->files[i];
		if (!strcmp(f->path, m->name) && f->build_id_size == m->build_id_size &&
		    !memcmp(f->build_id, m->build_id, f->build_id_size))
			return f;
	}
	if (r->file_count == FILES_MAX || m->build_id_size > sizeof(f->build_id))
		return NULL;
	all = realloc(r->files, (r->file_count + 1) * sizeof(*all));
	if (!all)
		return NULL;
	r->files = all;
	f = &all[r->file_count];
	memset(f, 0, sizeof(*f));
	f->path = strdup(m->name);
	if (!f->path)
		return NULL;
	r->file_count++;
	f->build_id_size = m->build_id_size;
	if (m->build_id_size)
		memcpy(f->build_id, m->build_id, m->build_id_size);
	f->elf = tacho__elf_open(m, r->process->uid);
	return f;
}

/* ----------------------------------------------------------------- perf map */

static int compare(const void *va, const void *vb)
{
	const struct mapped *a = va, *b = vb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	/* Of two at one place, the later line is the newer code. */
	return a->name < b->name ? -1 : a->name > b->name;
}

#define MAP_PATH 64u

static const char *map_path(char out[MAP_PATH], uint32_t pid)
{
	snprintf(out, MAP_PATH, "/tmp/perf-%u.map", pid);
	return out;
}

void tacho__perf_map_remove(uint32_t pid, uid_t uid)
{
	char path[MAP_PATH];
	struct stat st;

	if (lstat(map_path(path, pid), &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == uid)
		unlink(path);
}

/* The whole file, ended by a zero; NULL when there is none that can be trusted. */
static char *read_map(const struct tacho_process *p)
{
	char path[MAP_PATH], *text = NULL;
	size_t have = 0;
	struct stat st;
	ssize_t n = 0;
	int fd;

	fd = open(map_path(path, p->pid),
		  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	/* Anybody may write into /tmp. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == p->uid && st.st_size > 0 &&
	    st.st_size <= (off_t)MAP_BYTES_MAX)
		text = malloc((size_t)st.st_size + 1);
	while (text && have < (size_t)st.st_size &&
	       (n = read(fd, text + have, (size_t)st.st_size - have)) > 0)
		have += (size_t)n;
	if (text)
		text[have] = 0;
	close(fd);
	return text;
}

/* Lines "START SIZE NAME", hexadecimal. */
static void load_map(struct tacho__resolver *r)
{
	uint32_t capacity = 0;

	r->map_tried = 1;
	/* The map of an earlier process of this number would lie. */
	if (r->process->alive != TACHO_ALIVE_NO || r->process->taken_by == TACHO_TAKEN_BOX)
		r->map = read_map(r->process);
	for (char *line = r->map, *end; line && *line; line = end) {
		struct mapped m;
		char *p = line;

		end = strchrnul(line, '\n');
		if (*end)
			*end++ = 0;
		m.start = strtoull(p, &p, 16);
		m.size = strtoull(p, &p, 16);
		if (*p != ' ' || !m.start || !m.size)
			continue;
		m.name = p + 1;
		if (TACHO__GROW(r->mapped, capacity, r->mapped_count + 1))
			break;
		r->mapped[r->mapped_count++] = m;
	}
	TACHO__SORT(r->mapped, r->mapped_count, compare);
}

static uint32_t by_map(struct tacho__resolver *r, uint64_t address, struct tacho__resolved *out)
{
	size_t low = 0, high;

	if (!r->map_tried)
		load_map(r);
	high = r->mapped_count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->mapped[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || address - r->mapped[low - 1].start >= r->mapped[low - 1].size)
		return 0;
	out[0] = (struct tacho__resolved){.function = r->mapped[low - 1].name};
	return 1;
}

/* ------------------------------------------------------------------- kernel */

/* 1: the process ran on the kernel that runs now. Another one has its functions elsewhere. */
static int same_boot(const struct tacho_process *p)
{
	char text[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	unsigned got = 0;

	if (fd >= 0)
		close(fd);
	for (const char *c = text; n > 0 && got < sizeof(p->boot_id); got++) {
		unsigned byte;

		c += *c == '-';
		if (sscanf(c, "%2x", &byte) != 1 || byte != p->boot_id[got])
			return 0;
		c += 2;
	}
	return got == sizeof(p->boot_id);
}

static int is_kernel(uint64_t address)
{
	return (int)(address >> 63);
}

void tacho__resolver_prepare(struct tacho__resolver *r, const struct tacho_definition *module,
			     uint64_t address)
{
	if (module || !is_kernel(address) || r->kernel_tried)
		return;
	r->kernel_tried = 1;
	if (same_boot(r->process) && tacho__ksyms_load(&r->kernel, NULL))
		r->kernel = NULL;
}

static uint32_t by_kernel(struct tacho__resolver *r, uint64_t address, struct tacho__resolved *out)
{
	const char *name = r->kernel ? tacho__ksyms_name(r->kernel, address) : NULL;

	out[0] = (struct tacho__resolved){.function = name};
	return name != NULL;
}

uint32_t tacho__resolve(struct tacho__resolver *r, const struct tacho_definition *module,
			uint64_t address, struct tacho__resolved *out, uint32_t most)
{
	struct file *f = module && module->name[0] == '/' ? file_of(r, module) : NULL;
	uint32_t n = 0;

	forget_names(r);
	if (!module && is_kernel(address))
		return by_kernel(r, address, out);
	if (f && f->elf)
		n = tacho__elf_resolve(f->elf, address - module->start + module->offset,
				       working_ns() > r->deadline, out, most);
	else if (!module || !module->name[0])
		n = by_map(r, address, out);
	for (uint32_t i = 0; i < n && r->name_count < NAMES_MAX; i++) {
		char *name = out[i].function ? tacho__demangle(out[i].function) : NULL;

		if (name)
			out[i].function = r->names[r->name_count++] = name;
	}
	return n;
}
