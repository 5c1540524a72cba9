/*
 * To be preloaded: one allocation of tacho itself fails, or all from there on. Those of the libraries
 * that it uses do not, nor do those of programs that it starts.
 *
 *   SHORT_MEMORY_AT=N    the Nth, counted from 1
 *   SHORT_MEMORY_ALL=1   and all after it
 *   SHORT_MEMORY_LOG=F   instead, F gets a line for each: the address behind the call
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static uintptr_t from, to; /* where the program lies */
static long fails_at, count;
static int all_after, log_fd = -1;

__attribute__((constructor)) static void begin(void)
{
	const Elf64_Phdr *phdr = (const Elf64_Phdr *)getauxval(AT_PHDR);
	size_t n = getauxval(AT_PHNUM);
	const char *at = getenv("SHORT_MEMORY_AT"), *all = getenv("SHORT_MEMORY_ALL");
	const char *log = getenv("SHORT_MEMORY_LOG");
	uintptr_t base = 0, end = 0;

	if (strcmp(program_invocation_short_name, "tacho") != 0)
		return;

	for (size_t i = 0; i < n; i++) {
		if (phdr[i].p_type == PT_PHDR)
			base = (uintptr_t)phdr - phdr[i].p_vaddr;
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_vaddr + phdr[i].p_memsz > end)
			end = phdr[i].p_vaddr + phdr[i].p_memsz;
	}
	fails_at = at ? atol(at) : 0;
	all_after = all && *all == '1';
	if (log)
		log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	from = base;
	to = base + end;
}

static int fails(void *caller)
{
	uintptr_t address = (uintptr_t)caller;
	char line[32];
	long now;

	if (address < from || address >= to)
		return 0;
	now = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	if (log_fd >= 0) {
		int size = snprintf(line, sizeof(line), "%lx\n", (unsigned long)(address - from));

		return write(log_fd, line, (size_t)size) != size;
	}
	if (now != fails_at && !(all_after && now > fails_at))
		return 0;
	errno = ENOMEM;
	return 1;
}

#define FAILS() fails(__builtin_return_address(0))

void *malloc(size_t size)
{
	return FAILS() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return FAILS() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	return FAILS() ? NULL : __libc_realloc(old, size);
}

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = FAILS() ? NULL : __libc_malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

char *strndup(const char *text, size_t most)
{
	size_t size = strnlen(text, most);
	char *copy = FAILS() ? NULL : __libc_malloc(size + 1);

	if (copy) {
		memcpy(copy, text, size);
		copy[size] = '\0';
	}
	return copy;
}

void *reallocarray(void *old, size_t n, size_t size)
{
	size_t bytes;

	if (FAILS() || __builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return __libc_realloc(old, bytes);
}

static int print(char **out, const char *format, va_list args)
{
	va_list again;
	int size;

	va_copy(again, args);
	size = vsnprintf(NULL, 0, format, again);
	va_end(again);
	*out = size < 0 ? NULL : __libc_malloc((size_t)size + 1);
	return *out ? vsnprintf(*out, (size_t)size + 1, format, args) : -1;
}

int vasprintf(char **out, const char *format, va_list args)
{
	return FAILS() ? -1 : print(out, format, args);
}

int asprintf(char **out, const char *format, ...)
{
	va_list args;
	int size;

	if (FAILS())
		return -1;
	va_start(args, format);
	size = print(out, format, args);
	va_end(args);
	return size;
}

FILE *open_memstream(char **out, size_t *size)
{
	FILE *(*next)(char **, size_t *) =
		(FILE * (*)(char **, size_t *)) dlsym(RTLD_NEXT, "open_memstream");

	return FAILS() ? NULL : next(out, size);
}
