#include "agent/kernel_unwind.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "read/ask.h"

#define MODULES_MAX 4096u
#define LOOK_AGAIN_NS 1000000000ull /* programs with a JIT always have unknown code */
#define MAPS_MAX (64u << 20)	    /* bytes of /proc/PID/maps */
#define VDSO_MAX 65536u

/* A file as it is mapped, from its first byte on. */
struct module {
	uint64_t start, end;
	uint64_t inode;
	bool code;
	char *path;
};

struct tacho__unwinder {
	uint32_t pid, uid;
	Dwfl *dwfl;
	bool attached;
	struct module *modules;
	uint32_t module_count;
	uint64_t looked_ns;
	void *vdso;
	size_t vdso_size;

	/* The sample at hand. */
	const struct tacho__perf_record *sample;
	uint64_t sp;
	uint64_t *frames;
	uint32_t count, most;
	bool more;
	bool unknown; /* a frame that lies in no module */
};

/* ------------------------------------------------------------------ files */

/*
 * Root reads only what root alone can change: libdw maps the file, and who cuts it short meanwhile
 * ends who has it mapped. Of other code, frame pointers have to do. Others read what whoever runs the
 * process may read.
 */
static bool is_safe(const struct tacho__unwinder *u, const struct stat *st)
{
	if (geteuid() == 0)
		return st->st_uid == 0 && !(st->st_mode & S_IWOTH) &&
		       (st->st_gid == 0 || !(st->st_mode & S_IWGRP));
	return u->uid == geteuid() || u->uid == st->st_uid || st->st_mode & S_IROTH;
}

/* The mapped file: of that number, regular, and safe. Looked for where the process sees it, which
   may be a container. */
static int open_mapped(const struct tacho__unwinder *u, const struct module *m)
{
	char path[4200];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/root%s", u->pid, m->path);
	fd = tacho__ask_open(u->pid, path);
	if (fd < 0)
		fd = tacho__ask_open(u->pid, m->path);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_ino == m->inode && is_safe(u, &st))
		return fd;
	close(fd);
	return -1;
}

static int find_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
		    char **file, Elf **elf)
{
	struct tacho__unwinder *u = *user;

	(void)module;
	if (!u)
		return -1;
	/* Every process has the same one, and it is in no file. */
	if (!strcmp(name, "[vdso]")) {
		if (u->vdso)
			*elf = elf_memory(u->vdso, u->vdso_size);
		return -1;
	}
	for (uint32_t i = 0; i < u->module_count; i++) {
		int fd;

		if (u->modules[i].start != base || strcmp(u->modules[i].path, name) != 0)
			continue;
		fd = open_mapped(u, &u->modules[i]);
		if (fd >= 0)
			*file = strdup(name);
		return fd;
	}
	return -1;
}

/* Frames are in the file itself; separate debug information would only cost time. */
static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module;
	(void)user;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)found;
	return -1;
}

static const Dwfl_Callbacks file_callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
};

static void forget_modules(struct tacho__unwinder *u)
{
	while (u->module_count)
		free(u->modules[--u->module_count].path);
}

/* One line of /proc/PID/maps. Parts of one file lie next to each other. */
static void take_mapping(struct tacho__unwinder *u, char *line)
{
	uint64_t start, end, offset, inode;
	uint32_t n = u->module_count;
	char perms[5];
	int at = 0;

	if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %lu %n", &start, &end, perms, &offset, &inode,
		   &at) < 5 ||
	    !at || (line[at] != '/' && strcmp(line + at, "[vdso]") != 0))
		return;
	if (n && offset && u->modules[n - 1].inode == inode &&
	    !strcmp(u->modules[n - 1].path, line + at)) {
		u->modules[n - 1].end = end;
		u->modules[n - 1].code |= perms[2] == 'x';
		return;
	}
	if (n == MODULES_MAX)
		return;
	u->modules[n] = (struct module){start, end, inode, perms[2] == 'x', strdup(line + at)};
	u->module_count += u->modules[n].path != NULL;
}

static long take_mappings(void *arg, char *text, size_t size)
{
	struct tacho__unwinder *u = arg;

	(void)size;
	forget_modules(u);
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		take_mapping(u, line);
	return u->module_count ? 0 : -ESRCH;
}

static int read_maps(struct tacho__unwinder *u)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", u->pid);
	if (stat(path, &st) == 0)
		u->uid = st.st_uid;
	return (int)tacho__ask_process(u->pid, "maps", MAPS_MAX, take_mappings, u);
}

/* ------------------------------------------------------------- unwinding */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct tacho__unwinder *u = arg;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = arg;
	return (pid_t)u->sample->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl;
	(void)tid;
	*thread = arg;
	return true;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *out, void *arg)
{
	const struct tacho__unwinder *u = arg;
	uint64_t into = address - u->sp;

	(void)dwfl;
	if (address < u->sp || u->sample->stack_size < sizeof(*out) ||
	    into > u->sample->stack_size - sizeof(*out))
		return false;
	memcpy(out, u->sample->stack + into, sizeof(*out));
	return true;
}

/* From the kernel's order to DWARF's. */
static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct tacho__unwinder *u = arg;
	const uint64_t *r = u->sample->regs;
	Dwarf_Word regs[TACHO__PERF_REG_COUNT];

#if defined(__x86_64__)
	/* rax rdx rcx rbx rsi rdi rbp rsp r8 .. r15 rip of ax bx cx dx si di bp sp ip r8 .. r15 */
	static const uint8_t order[] = {0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 8};

	for (unsigned i = 0; i < sizeof(order); i++)
		regs[i] = r[order[i]];
	return dwfl_thread_state_registers(thread, 0, sizeof(order), regs);
#else
	for (unsigned i = 0; i < 32; i++)
		regs[i] = r[i];
	dwfl_thread_state_register_pc(thread, r[32]);
	return dwfl_thread_state_registers(thread, 0, 32, regs);
#endif
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_registers,
};

static int take_frame(Dwfl_Frame *state, void *arg)
{
	struct tacho__unwinder *u = arg;
	Dwarf_Addr pc;
	bool exact;

	if (!dwfl_frame_pc(state, &pc, &exact) || !pc)
		return DWARF_CB_ABORT;
	if (u->count == u->most) {
		u->more = true;
		return DWARF_CB_ABORT;
	}
	u->frames[u->count++] = pc;
	if (!dwfl_addrmodule(u->dwfl, exact ? pc : pc - 1))
		u->unknown = true;
	return DWARF_CB_OK;
}

/* Tells libdw what is mapped now. Modules that were there before stay as they are. */
static void look(struct tacho__unwinder *u)
{
	u->looked_ns = tacho__clock_ns(CLOCK_MONOTONIC);
	if (read_maps(u))
		return;
	dwfl_report_begin(u->dwfl);
	for (uint32_t i = 0; i < u->module_count; i++) {
		struct module *m = &u->modules[i];
		Dwfl_Module *module;
		void **user;

		if (!m->code)
			continue;
		module = dwfl_report_module(u->dwfl, m->path, m->start, m->end);
		if (module && dwfl_module_info(module, &user, NULL, NULL, NULL, NULL, NULL, NULL))
			*user = u;
	}
	dwfl_report_end(u->dwfl, NULL, NULL);
	if (!u->attached)
		u->attached = dwfl_attach_state(u->dwfl, NULL, (pid_t)u->pid, &thread_callbacks, u);
}

static void unwind(struct tacho__unwinder *u)
{
	u->count = 0;
	u->more = u->unknown = false;
	if (u->attached)
		dwfl_getthread_frames(u->dwfl, (pid_t)u->sample->tid, take_frame, u);
}

uint32_t tacho__unwinder_frames(struct tacho__unwinder *u, const struct tacho__perf_record *sample,
				uint64_t *frames, uint32_t most, bool *more)
{
	*more = false;
	if (!u || !sample->regs)
		return 0;
	u->sample = sample;
#if defined(__x86_64__)
	u->sp = sample->regs[7];
#else
	u->sp = sample->regs[31];
#endif
	u->frames = frames;
	u->most = most;
	unwind(u);
	if ((!u->attached || u->unknown) &&
	    (!u->looked_ns || tacho__clock_ns(CLOCK_MONOTONIC) - u->looked_ns >= LOOK_AGAIN_NS)) {
		look(u);
		unwind(u);
	}
	*more = u->more;
	u->sample = NULL;
	return u->count;
}

/* ------------------------------------------------------- beginning and end */

/* A copy of our own, which is everybody's. */
static void copy_vdso(struct tacho__unwinder *u)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start = 0, end = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "[vdso]"))
			sscanf(line, "%lx-%lx", &start, &end);
	if (f)
		fclose(f);
	if (end <= start || end - start > VDSO_MAX)
		return;
	u->vdso = malloc(end - start);
	if (!u->vdso)
		return;
	u->vdso_size = end - start;
	memcpy(u->vdso, (const void *)start, u->vdso_size);
}

struct tacho__unwinder *tacho__unwinder_new(uint32_t pid)
{
	struct tacho__unwinder *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->pid = pid;
	u->modules = calloc(MODULES_MAX, sizeof(*u->modules));
	u->dwfl = dwfl_begin(&file_callbacks);
	if (!u->modules || !u->dwfl) {
		tacho__unwinder_free(u);
		return NULL;
	}
	copy_vdso(u);
	/* While it runs: what was mapped at its end cannot be asked any more. */
	look(u);
	return u;
}

void tacho__unwinder_free(struct tacho__unwinder *u)
{
	if (!u)
		return;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	forget_modules(u);
	free(u->modules);
	free(u->vdso);
	free(u);
}
