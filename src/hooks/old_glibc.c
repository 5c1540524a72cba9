/*
 * The library must load into programs with an older C library than the one that it was built with. The
 * dynamic linker ends a program whose LD_PRELOAD asks for a symbol version that its libc lacks.
 *
 * glibc 2.34 moved libdl and libpthread into libc and gave their functions new versions. The
 * definitions here keep the rest of the library from asking for these. Each calls the function by its
 * oldest version, which every glibc has: since 2.34 in libc, before that in libdl or libpthread. A
 * program may have loaded neither of the two. Then dlsym and dladdr are done here, and the functions of
 * libpthread report that they are not supported: such a program has one thread.
 *
 * They are hidden: the program calls those of its libc. The suite `elf` checks what the library needs.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#if defined(__GLIBC__)
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define NEXT_OLDEST "GLIBC_2.3.3"
#else
#define OLDEST "GLIBC_2.17"
#define NEXT_OLDEST "GLIBC_2.17"
#endif

/* old_NAME is NAME as the oldest glibc has it; NULL: no library that is loaded has it. */
#define OLD(name, version)                                        \
	extern __typeof__(name) old_##name __attribute__((weak)); \
	__asm__(".symver old_" #name "," #name "@" version)

OLD(dlsym, OLDEST);
OLD(dlvsym, OLDEST);
OLD(dladdr, OLDEST);
OLD(dladdr1, NEXT_OLDEST);
OLD(pthread_key_create, OLDEST);
OLD(pthread_setspecific, OLDEST);
OLD(pthread_getcpuclockid, OLDEST);
OLD(pthread_testcancel, OLDEST);
OLD(__pthread_register_cancel, NEXT_OLDEST);
OLD(__pthread_unregister_cancel, NEXT_OLDEST);
OLD(__pthread_unwind_next, NEXT_OLDEST);

/* ------------------------------------------------- symbols without libdl */

/* What a look-up needs of a loaded object. */
struct object {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint16_t *versions;
	const uint32_t *hash; /* DT_GNU_HASH */
	uintptr_t bias;
};

struct search {
	const char *name;
	uint32_t hash;
	int next; /* 1: only in objects after this library */
	int reached;
	void *found;
};

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* The dynamic linker has made the addresses in the dynamic section absolute, but not in the vDSO. */
static int read_object(const struct dl_phdr_info *info, struct object *o)
{
	const ElfW(Dyn) *d = NULL;

	memset(o, 0, sizeof(*o));
	o->bias = info->dlpi_addr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			o->symbols = (const ElfW(Sym) *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRTAB)
			o->strings = (const char *)d->d_un.d_ptr;
		else if (d->d_tag == DT_VERSYM)
			o->versions = (const uint16_t *)d->d_un.d_ptr;
		else if (d->d_tag == DT_GNU_HASH)
			o->hash = (const uint32_t *)d->d_un.d_ptr;
	}
	return o->hash && o->symbols && o->strings && (uintptr_t)o->hash > o->bias &&
	       (uintptr_t)o->symbols > o->bias;
}

/* Its address; a function that is chosen when it is bound (IFUNC) is left alone. */
static void *address_of(const struct object *o, uint32_t index, const char *name)
{
	const ElfW(Sym) *s = &o->symbols[index];
	int hidden = o->versions && o->versions[index] & 0x8000; /* not the default version */

	if (hidden || s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC ||
	    ELF64_ST_TYPE(s->st_info) == STT_TLS || strcmp(o->strings + s->st_name, name) != 0)
		return NULL;
	return (void *)(o->bias + s->st_value);
}

static void *find_in(const struct object *o, const char *name, uint32_t hash)
{
	uint32_t buckets = o->hash[0], first = o->hash[1], blooms = o->hash[2];
	const uint32_t *bucket = o->hash + 4 + (size_t)blooms * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + buckets;
	uint32_t index = buckets ? bucket[hash % buckets] : 0;

	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t link = chain[index - first];
		void *found = (link | 1) == (hash | 1) ? address_of(o, index, name) : NULL;

		if (found || link & 1)
			return found;
	}
}

static int holds(const struct dl_phdr_info *info, const void *address)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    (uintptr_t)address - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr <
			    info->dlpi_phdr[i].p_memsz)
			return 1;
	return 0;
}

static int search_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	struct object o;

	(void)size;
	if (s->next && !s->reached) {
		s->reached = holds(info, (const void *)&search_object);
		return 0;
	}
	if (read_object(info, &o))
		s->found = find_in(&o, s->name, s->hash);
	return s->found != NULL;
}

void *dlsym(void *handle, const char *name)
{
	struct search s = {name, gnu_hash(name), handle == RTLD_NEXT, 0, NULL};

	if (old_dlsym)
		return old_dlsym(handle, name);
	if (handle != RTLD_NEXT && handle != RTLD_DEFAULT)
		return NULL;
	dl_iterate_phdr(search_object, &s);
	return s.found;
}

void *dlvsym(void *handle, const char *name, const char *version)
{
	return old_dlvsym ? old_dlvsym(handle, name, version) : NULL;
}

struct place {
	const void *address;
	Dl_info *info;
};

static int note_place(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *p = arg;

	(void)size;
	if (!holds(info, p->address))
		return 0;
	memset(p->info, 0, sizeof(*p->info));
	p->info->dli_fname = info->dlpi_name;
	return 1;
}

int dladdr(const void *address, Dl_info *info)
{
	struct place p = {address, info};

	return old_dladdr ? old_dladdr(address, info) : dl_iterate_phdr(note_place, &p);
}

int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
	return old_dladdr1 ? old_dladdr1(address, info, extra, flags) : 0;
}

/* --------------------------------------------------------------- threads */

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	return old_pthread_key_create ? old_pthread_key_create(key, destructor) : ENOSYS;
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
	return old_pthread_setspecific ? old_pthread_setspecific(key, value) : ENOSYS;
}

int pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
	return old_pthread_getcpuclockid ? old_pthread_getcpuclockid(thread, clock) : ENOSYS;
}

void pthread_testcancel(void)
{
	if (old_pthread_testcancel)
		old_pthread_testcancel();
}

/* What pthread_cleanup_push and _pop become. */
void __pthread_register_cancel(__pthread_unwind_buf_t *buf)
{
	if (old___pthread_register_cancel)
		old___pthread_register_cancel(buf);
}

void __pthread_unregister_cancel(__pthread_unwind_buf_t *buf)
{
	if (old___pthread_unregister_cancel)
		old___pthread_unregister_cancel(buf);
}

void __pthread_unwind_next(__pthread_unwind_buf_t *buf)
{
	old___pthread_unwind_next(buf); /* where a thread was cancelled, libpthread is there */
	__builtin_unreachable();
}
#endif
