/*
 * Copying and comparing without libc: inside a program, its functions may be a sanitizer's, which
 * takes what threads do in the box, each in its order, for races of the program. Nobody outside
 * of the library sees these. What they move is small; what is of a constant size and hot, the
 * compiler does by itself.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "hooks/hooks.h"

/* Or the compiler makes a call of the function itself from its loop. */
#define KEEP_LOOP() __asm__ volatile("")

void *memcpy(void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
	void *at = to;

	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
#else
	for (size_t i = 0; i < n; i++) {
		((char *)to)[i] = ((const char *)from)[i];
		KEEP_LOOP();
	}
#endif
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	if ((size_t)((char *)to - (const char *)from) >= n)
		return memcpy(to, from, n);
	while (n--) {
		((char *)to)[n] = ((const char *)from)[n];
		KEEP_LOOP();
	}
	return to;
}

void *memset(void *to, int value, size_t n)
{
#if defined(__x86_64__)
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(value) : "memory");
#else
	for (size_t i = 0; i < n; i++) {
		((char *)to)[i] = (char)value;
		KEEP_LOOP();
	}
#endif
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;

	for (size_t i = 0; i < n; i++)
		if (p[i] != q[i])
			return p[i] < q[i] ? -1 : 1;
	return 0;
}

void *tacho__map_once(void **slot, size_t size)
{
	void *none = NULL;
	intptr_t at = tacho__mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at < 0 && at > -4096)
		return NULL;
	if (__atomic_compare_exchange_n(slot, &none, (void *)at, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return (void *)at;
	tacho__munmap((void *)at, size);
	return none;
}
