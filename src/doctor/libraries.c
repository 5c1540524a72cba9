#include "doctor/libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/elf_file.h"

#define OBJECTS_MAX 1024u     /* libraries of one program */
#define ENTRIES_MAX 4096u     /* of a dynamic section */
#define TEXT_MAX_BYTES 16384u /* of a name or a list of folders */
#define TRIES_MAX 200000u     /* paths that are looked at for one program */
#define CACHE_MAX (16u << 20) /* bytes of /etc/ld.so.cache */
#define NOBODY UINT32_MAX     /* no object */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#if defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#define PLATFORM "aarch64"
#else
#define TRIPLET "x86_64-linux-gnu"
#define PLATFORM "x86_64"
#endif

/* A file that the linker would have loaded. */
struct object {
	char *path;
	char *origin; /* the folder that $ORIGIN means in it */
	char *soname; /* NULL: it has none */
	char *asked;  /* the name that it was found by */
	char *rpath, *runpath;
	uint32_t loader; /* the object that needs it; NOBODY: the program */
	dev_t dev;
	ino_t ino;
	char **needed;
	uint32_t needed_count;
};

struct search {
	const struct tacho__libraries *to;
	struct object *objects;
	uint32_t count, tries;
	bool failed; /* a limit was reached, or there was no memory */
	bool musl;
	bool foreign; /* a glibc of another place, with a cache and folders of its own */
	bool unsure;  /* a library was not found, but may be in one of these */
	char *system; /* musl: its folders */
	uint8_t *cache;
	size_t cache_size;
};

/* What $LIB may mean: distributions differ. */
static const char *const lib_names[] = {("lib/" TRIPLET), "lib64", "lib"};
/* Where glibc looks last; only those of the host's distribution exist. */
static const char *const default_folders[] = {
	("/lib/" TRIPLET), ("/usr/lib/" TRIPLET), "/lib64", "/usr/lib64", "/lib", "/usr/lib"};

/* ------------------------------------------------------------- reading an object */

/* The text at `at` of the string table, or NULL. */
static char *read_text(const struct tacho__elf_file *f, uint64_t table, uint64_t size, uint64_t at)
{
	char text[TEXT_MAX_BYTES];
	uint64_t n;

	if (table == UINT64_MAX || at >= size)
		return NULL;
	n = size - at < sizeof(text) ? size - at : sizeof(text);
	if (table > f->size || at >= f->size - table)
		return NULL;
	n = n < f->size - table - at ? n : f->size - table - at;
	if (tacho__elf_file_get(f, text, n, table + at) || !memchr(text, 0, (size_t)n))
		return NULL;
	return strdup(text);
}

/* Reads the dynamic section; the number of its entries, up to DT_NULL. */
static uint32_t read_dynamic(const struct tacho__elf_file *f, Elf64_Dyn *entries)
{
	for (uint32_t i = 0; i < f->segments; i++) {
		const Elf64_Phdr *p = &f->segment[i];
		uint64_t count = p->p_filesz / sizeof(*entries);
		uint32_t n = 0;

		if (p->p_type != PT_DYNAMIC)
			continue;
		count = count < ENTRIES_MAX ? count : ENTRIES_MAX;
		if (tacho__elf_file_get(f, entries, count * sizeof(*entries), p->p_offset))
			return 0;
		while (n < count && entries[n].d_tag != DT_NULL)
			n++;
		return n;
	}
	return 0;
}

static uint64_t value_of(const Elf64_Dyn *entries, uint32_t count, int64_t tag)
{
	for (uint32_t i = 0; i < count; i++)
		if (entries[i].d_tag == tag)
			return entries[i].d_un.d_val;
	return UINT64_MAX;
}

static bool read_needed(const struct tacho__elf_file *f, struct object *o)
{
	const struct {
		int64_t tag;
		char **to;
	} texts[] = {{DT_SONAME, &o->soname}, {DT_RPATH, &o->rpath}, {DT_RUNPATH, &o->runpath}};
	Elf64_Dyn *entries = malloc(ENTRIES_MAX * sizeof(*entries));
	uint32_t count = entries ? read_dynamic(f, entries) : 0;
	uint64_t table, size;
	bool whole = entries != NULL;

	table = tacho__elf_file_offset(f, value_of(entries, count, DT_STRTAB));
	size = value_of(entries, count, DT_STRSZ);
	size = size == UINT64_MAX ? 0 : size;
	for (size_t i = 0; i < COUNT(texts); i++) {
		uint64_t at = value_of(entries, count, texts[i].tag);

		*texts[i].to = read_text(f, table, size, at);
		whole = whole && (*texts[i].to || at == UINT64_MAX);
	}
	o->needed = count ? calloc(count, sizeof(*o->needed)) : NULL;
	for (uint32_t i = 0; o->needed && i < count; i++) {
		if (entries[i].d_tag != DT_NEEDED)
			continue;
		o->needed[o->needed_count] = read_text(f, table, size, entries[i].d_un.d_val);
		if (o->needed[o->needed_count])
			o->needed_count++;
		else
			whole = false;
	}
	free(entries);
	return whole;
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];

	if (path[0] == '/')
		return strndup(path, slash > path ? (size_t)(slash - path) : 1);
	if (!getcwd(folder, sizeof(folder)))
		return NULL;
	if (slash) {
		size_t used = strlen(folder);

		snprintf(folder + used, sizeof(folder) - used, "/%.*s", (int)(slash - path), path);
	}
	return strdup(folder);
}

/* Adds the file at `path`, if it is a library of this machine. True: it is loaded now, or was. */
static bool add_object(struct search *s, const char *path, const char *asked, uint32_t loader)
{
	struct tacho__elf_file f;
	struct object *o = &s->objects[s->count];
	struct stat st;
	bool taken = false;
	int fd;

	if (++s->tries > TRIES_MAX || s->count == OBJECTS_MAX) {
		s->failed = true;
		return false;
	}
	/* Not opened unless it is a file: opening a device may do something. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->objects[i].dev == st.st_dev && s->objects[i].ino == st.st_ino)
			return true;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	if (!tacho__elf_file_read(&f, fd) && f.ours) {
		*o = (struct object){.path = strdup(path),
				     .origin = folder_of(path),
				     .asked = asked ? strdup(asked) : NULL,
				     .loader = loader,
				     .dev = st.st_dev,
				     .ino = st.st_ino};
		s->failed |= !read_needed(&f, o) || !o->path || !o->origin;
		s->count++;
		taken = true;
	}
	close(fd);
	return taken;
}

/* ---------------------------------------------------------------- where it looks */

/* Puts `text` with what $ORIGIN, $LIB and $PLATFORM mean into `out`. -1: it does not fit. 1: $LIB is in
   it, and may mean something else as well. */
static int expand(const char *text, size_t size, const char *origin, const char *lib, char *out)
{
	const struct {
		const char *name, *means;
	} words[] = {{"ORIGIN", origin}, {"LIB", lib}, {"PLATFORM", PLATFORM}};
	size_t used = 0;
	int has_lib = 0;

	while (size) {
		size_t took = 0;

		for (size_t i = 0; text[0] == '$' && i < COUNT(words) && !took; i++) {
			size_t n = strlen(words[i].name), means = strlen(words[i].means);
			bool braces = size > 1 && text[1] == '{';
			const char *at = text + 1 + braces;

			if (size < 1 + n + 2 * braces || strncmp(at, words[i].name, n) ||
			    (braces && at[n] != '}'))
				continue;
			if (used + means >= PATH_MAX)
				return -1;
			memcpy(out + used, words[i].means, means);
			used += means;
			took = 1 + n + 2 * braces;
			has_lib |= i == 1;
		}
		if (!took) {
			if (used + 1 >= PATH_MAX)
				return -1;
			out[used++] = text[0];
			took = 1;
		}
		text += took;
		size -= took;
	}
	out[used] = 0;
	return has_lib;
}

/* Looks for `name` in a folder, or for `name` itself when `folder` is NULL. */
static bool try_text(struct search *s, const char *folder, size_t size, const char *origin,
		     const char *name, uint32_t loader)
{
	char expanded[PATH_MAX], path[2 * PATH_MAX];
	int more = 1;

	for (size_t i = 0; i < COUNT(lib_names) && more > 0; i++) {
		if (folder) {
			more = expand(folder, size, origin, lib_names[i], expanded);
			/* An empty one is the current folder. */
			snprintf(path, sizeof(path), "%s%s%s", expanded, size ? "/" : "", name);
		} else {
			more = expand(name, strlen(name), origin, lib_names[i], path);
		}
		if (more >= 0 && add_object(s, path, name, loader))
			return true;
	}
	return false;
}

static bool try_list(struct search *s, const char *list, const char *separators, const char *origin,
		     const char *name, uint32_t loader)
{
	while (list) {
		size_t n = strcspn(list, separators);

		if (try_text(s, list, n, origin, name, loader))
			return true;
		list = list[n] && !s->failed ? list + n + 1 : NULL;
	}
	return false;
}

/* /etc/ld.so.cache: a header, entries of a name and a path, and their texts. */
struct cache_head {
	char magic[20];
	uint32_t count, texts;
	uint32_t unused[5];
};
struct cache_entry {
	int32_t flags;
	uint32_t name, path, os;
	uint64_t capabilities;
};

static void read_cache(struct search *s)
{
	int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= CACHE_MAX) {
		s->cache = calloc(1, (size_t)st.st_size + 1); /* so that the last text ends */
		if (s->cache && read(fd, s->cache, (size_t)st.st_size) == st.st_size)
			s->cache_size = (size_t)st.st_size;
	}
	close(fd);
}

/* Where the newer of its two formats begins; the older one may stand before it. */
static size_t cache_begin(const struct search *s)
{
	static const char old[] = "ld.so-1.7.0", new[] = "glibc-ld.so.cache1.1";
	size_t at = 0;
	uint32_t count;

	if (s->cache_size >= 16 && !memcmp(s->cache, old, sizeof(old) - 1)) {
		memcpy(&count, s->cache + 12, sizeof(count));
		at = (16 + (size_t)count * 12 + 7) & ~(size_t)7;
	}
	if (at + sizeof(struct cache_head) > s->cache_size ||
	    memcmp(s->cache + at, new, sizeof(new) - 1))
		return SIZE_MAX;
	return at;
}

static bool try_cache(struct search *s, const char *name, uint32_t loader)
{
	size_t begin = cache_begin(s), at;
	struct cache_head head;
	struct cache_entry e;

	if (begin == SIZE_MAX)
		return false;
	memcpy(&head, s->cache + begin, sizeof(head));
	at = begin + sizeof(head);
	/* Copies for newer CPUs have capabilities, and stand first; any CPU can use the others. */
	for (int plain = 1; plain >= 0; plain--) {
		for (size_t i = 0; i < head.count && at + (i + 1) * sizeof(e) <= s->cache_size;
		     i++) {
			memcpy(&e, s->cache + at + i * sizeof(e), sizeof(e));
			if (begin + e.name < s->cache_size && begin + e.path < s->cache_size &&
			    (e.capabilities == 0) == plain &&
			    !strcmp((char *)s->cache + begin + e.name, name) &&
			    add_object(s, (char *)s->cache + begin + e.path, name, loader))
				return true;
		}
	}
	return false;
}

/* DT_RPATH of who needs it, and of who needs that: not where there is a DT_RUNPATH. */
static bool try_rpaths(struct search *s, const char *name, uint32_t loader)
{
	uint32_t steps = 0;

	for (uint32_t i = loader; i != NOBODY && steps++ < OBJECTS_MAX; i = s->objects[i].loader) {
		const struct object *o = &s->objects[i];
		/* For musl both are the same. */
		const char *list = s->musl && o->runpath ? o->runpath : o->rpath;

		if ((s->musl || !o->runpath) && list &&
		    try_list(s, list, ":", o->origin, name, loader))
			return true;
	}
	return false;
}

static bool find_for_glibc(struct search *s, const char *name, uint32_t loader)
{
	const struct object *o = &s->objects[loader];
	const char *given = getenv("LD_LIBRARY_PATH");

	if (!o->runpath && try_rpaths(s, name, loader))
		return true;
	if (given && given[0] && try_list(s, given, ":;", s->objects[0].origin, name, loader))
		return true;
	if (o->runpath && try_list(s, o->runpath, ":", o->origin, name, loader))
		return true;
	if (try_cache(s, name, loader))
		return true;
	for (size_t i = 0; i < COUNT(default_folders); i++)
		if (try_text(s, default_folders[i], strlen(default_folders[i]), "", name, loader))
			return true;
	return false;
}

static bool find_for_musl(struct search *s, const char *name, uint32_t loader)
{
	const char *given = getenv("LD_LIBRARY_PATH");

	if (given && given[0] && try_list(s, given, ":\n", s->objects[0].origin, name, loader))
		return true;
	return try_rpaths(s, name, loader) || try_list(s, s->system, ":\n", "", name, loader);
}

/* musl is one file, and has these inside. */
static bool is_musl_itself(const char *name)
{
	static const char *const parts[] = {"c.", "pthread.", "rt.", "m.", "dl.", "util.", "xnet."};

	for (size_t i = 0; !strncmp(name, "lib", 3) && i < COUNT(parts); i++)
		if (!strncmp(name + 3, parts[i], strlen(parts[i])))
			return true;
	return false;
}

static bool is_loaded(const struct search *s, const char *name)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct object *o = &s->objects[i];

		if ((o->asked && !strcmp(o->asked, name)) ||
		    (o->soname && !strcmp(o->soname, name)))
			return true;
	}
	return s->musl && is_musl_itself(name);
}

static void find(struct search *s, const char *name, uint32_t loader)
{
	uint32_t before = s->count;
	bool found;

	if (is_loaded(s, name))
		return;
	if (strchr(name, '/'))
		found = try_text(s, NULL, 0, s->objects[loader].origin, name, loader);
	else
		found = s->musl ? find_for_musl(s, name, loader) : find_for_glibc(s, name, loader);
	if (s->count > before)
		s->to->see(s->to->arg, name, s->objects[before].path);
	else if (!found && s->foreign)
		s->unsure = true;
	else if (!found && !s->failed)
		s->to->see(s->to->arg, name, NULL);
}

/* --------------------------------------------------------------------- all of it */

/* The folders of musl: in a file beside its linker, or built in. */
static char *musl_folders(const char *linker)
{
	char path[PATH_MAX + 32], text[4096] = "/lib:/usr/local/lib:/usr/lib";
	const char *base = strrchr(linker, '/') + 1;
	size_t name = strcspn(base, "."), prefix = (size_t)(base - linker);
	ssize_t n;
	int fd;

	/* /lib/ld-musl-x86_64.so.1 reads /etc/ld-musl-x86_64.path, with the prefix of /lib. */
	prefix = prefix >= 5 && !strncmp(base - 5, "/lib/", 5) ? prefix - 5 : 0;
	snprintf(path, sizeof(path), "%.*s/etc/%.*s.path", (int)prefix, linker, (int)name, base);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = 0;
		close(fd);
	}
	return strdup(text);
}

static void free_search(struct search *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct object *o = &s->objects[i];

		for (uint32_t k = 0; k < o->needed_count; k++)
			free(o->needed[k]);
		free(o->needed);
		free(o->path);
		free(o->origin);
		free(o->soname);
		free(o->asked);
		free(o->rpath);
		free(o->runpath);
	}
	free(s->objects);
	free(s->system);
	free(s->cache);
}

bool tacho__libraries(const char *program, const char *linker, const struct tacho__libraries *to)
{
	struct search s = {.to = to};
	/* As the kernel tells the linker: without links. */
	char *real = realpath(program, NULL);
	bool whole;

	s.objects = calloc(OBJECTS_MAX, sizeof(*s.objects));
	if (s.objects && real && linker[0] == '/' && add_object(&s, real, NULL, NOBODY)) {
		s.musl = !strncmp(strrchr(linker, '/') + 1, "ld-musl-", 8);
		s.system = s.musl ? musl_folders(linker) : NULL;
		s.foreign = !s.musl && strncmp(linker, "/lib", 4) && strncmp(linker, "/usr/lib", 8);
		if (!s.musl && !s.foreign)
			read_cache(&s);
		if (!add_object(&s, linker, NULL, NOBODY))
			to->see(to->arg, linker, NULL);
	} else {
		s.failed = true;
	}
	for (uint32_t i = 0; i < s.count && !s.failed; i++)
		for (uint32_t k = 0; k < s.objects[i].needed_count && !s.failed; k++)
			find(&s, s.objects[i].needed[k], i);
	whole = !s.failed && !s.unsure;
	free_search(&s);
	free(real);
	return whole;
}
