/*
 * Where the real functions of libuv are.
 *
 * Not always after this library in the order of the dynamic linker: libuv may come with
 * dlopen (Python's uvloop), and then only those who depend on it see it; and a library
 * may have a libuv of its own inside. So the libuv that is meant is looked up where the
 * caller would have found it, had this library not been in the way. What was found is
 * kept by the address range of the caller.
 */
#include "hooks/uv.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#define LIBRARIES 8u
#define CALLERS 64u
#define PAGE 4096u

static struct tacho__uv libraries[LIBRARIES];
static uint32_t library_count;

static struct tacho__uv_caller callers[CALLERS];
static uint32_t caller_count;
const struct tacho__uv_caller tacho__uv_nobody;

static const char *const names[] = {
#define UV_NAME(name) #name,
#define UV_FS_NAME(name, params, args) #name,
	UV_FUNCTIONS(UV_NAME) UV_FS(UV_FS_NAME)
#undef UV_NAME
#undef UV_FS_NAME
};

/* For functions that a libuv does not have; callers pass what they like. */
static int missing(void)
{
	return -ENOSYS;
}

void *tacho__uv_resolve(struct tacho__uv *uv, enum tacho__uv_function function)
{
	int saved = errno;
	void *found = uv->handle ? dlsym(uv->handle, names[function]) : NULL;

	if (!found)
		found = (void *)missing;
	/* Without a handle it is no libuv yet, but may become one. */
	if (uv->handle)
		tacho__store(&uv->real[function], found);
	errno = saved;
	return found;
}

int tacho__uv_has(struct tacho__uv *uv, enum tacho__uv_function function)
{
	return tacho__uv_real(uv, function) != (void *)missing;
}

/* ------------------------------------------------------- the slow path */

struct object {
	uintptr_t address;
	uintptr_t start, end;
	const char *name;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object *o = arg;
	uintptr_t start = UINTPTR_MAX, end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		start = at < start ? at : start;
		end = at + p->p_memsz > end ? at + p->p_memsz : end;
	}
	if (o->address < start || o->address >= end)
		return 0;
	o->start = start;
	o->end = end;
	o->name = info->dlpi_name;
	return 1;
}

/* The library that holds `function`, which is one of libuv's. */
static struct tacho__uv *library_of(void *function)
{
	Dl_info info;
	void *handle = NULL;
	uint32_t count = __atomic_load_n(&library_count, __ATOMIC_ACQUIRE);
	uint32_t i;

	/* Kept: from now on there are pointers into it. */
	if (dladdr(function, &info) && info.dli_fname)
		handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		handle = RTLD_NEXT;
	for (i = 0; i < count && i < LIBRARIES; i++)
		if (__atomic_load_n(&libraries[i].handle, __ATOMIC_ACQUIRE) == handle)
			return &libraries[i];
	i = __atomic_fetch_add(&library_count, 1, __ATOMIC_ACQ_REL);
	if (i >= LIBRARIES) {
		tacho__store(&library_count, LIBRARIES);
		return NULL;
	}
	__atomic_store_n(&libraries[i].handle, handle, __ATOMIC_RELEASE);
	return &libraries[i];
}

static struct tacho__uv *look_up(const struct object *o)
{
	void *found = NULL;

	/* The program itself has no name, and its scope begins with this library. */
	if (o->name && o->name[0]) {
		void *handle = dlopen(o->name, RTLD_LAZY | RTLD_NOLOAD);

		if (handle) {
			found = dlsym(handle, "uv_run");
			dlclose(handle);
		}
	}
	if (!found || found == (void *)uv_run)
		found = dlsym(RTLD_NEXT, "uv_run");
	return found ? library_of(found) : NULL;
}

static __attribute__((cold, noinline)) struct tacho__uv *find_out(const void *address)
{
	struct object o = {.address = (uintptr_t)address};
	int saved = errno;
	struct tacho__uv *uv;
	uint32_t i;

	dl_iterate_phdr(look_at, &o);
	uv = look_up(&o);
	/* A caller that knows no libuv, such as code made at run time, means the first. */
	if (!uv)
		uv = &libraries[0];
	if (!o.end) {
		o.start = o.address & ~(uintptr_t)(PAGE - 1);
		o.end = o.start + PAGE;
	}
	i = uv->handle && tacho__load(&caller_count) < CALLERS
		    ? __atomic_fetch_add(&caller_count, 1, __ATOMIC_RELAXED)
		    : CALLERS;
	if (i < CALLERS) {
		callers[i].start = o.start;
		callers[i].uv = uv;
		__atomic_store_n(&callers[i].size, o.end - o.start, __ATOMIC_RELEASE);
	}
	errno = saved;
	return uv;
}

struct tacho__uv *tacho__uv_of(const void *caller, const struct tacho__uv_caller **last)
{
	uintptr_t at = (uintptr_t)caller;

	for (uint32_t i = 0; i < CALLERS; i++) {
		uintptr_t size = __atomic_load_n(&callers[i].size, __ATOMIC_ACQUIRE);

		if (!size)
			break;
		if (at - callers[i].start < size) {
			__atomic_store_n(last, &callers[i], __ATOMIC_RELEASE);
			return callers[i].uv;
		}
	}
	return find_out(caller);
}
