/*
 * Who really called: a function that ends with the call of a hook jumps there, and is not on the
 * stack any more. The return address is in whoever called that function, often a dispatcher that
 * calls everybody.
 *
 * The instruction before the return address tells whom that caller called. If it is a function and
 * not an entry of the PLT, this function jumped, to the hook or to others that did. Where the
 * instruction calls through a pointer nobody knows. In both cases the function that took the lock, if
 * it is another one than the caller, is where that led.
 */
#include "hooks/callers.h"

#include <stdint.h>
#include <string.h>

#include "hooks/unwind_tables.h"

/* Begin of the function that holds `pc`, and its module; 0: not known. */
static uint64_t function_of(struct tacho__tables *t, uint64_t pc)
{
	struct tacho__frame_table d;

	memset(t, 0, sizeof(*t));
	return tacho__tables_find(t, pc) && tacho__table_describe(&d, t, pc) ? d.begin : 0;
}

/* What an instruction says of whom it called. */
enum called { CALLED_NOBODY, CALLED_TARGET, CALLED_POINTER };

#if defined(__x86_64__)
static int is_indirect(const uint8_t *end, int64_t size)
{
	/* FF /2 with what it takes to say where the pointer is. */
	static const int sizes[] = {2, 3, 4, 6, 7};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (size >= sizes[i] && end[-sizes[i]] == 0xff &&
		    (end[1 - sizes[i]] & 0x38) == 0x10)
			return 1;
	return 0;
}

/* The call that ends at `end`, of which `size` bytes are of the same function. */
static enum called called(const uint8_t *end, int64_t size, const struct tacho__tables *t,
			  uint64_t *target)
{
	int32_t offset;

	if (size < 5)
		return is_indirect(end, size) ? CALLED_POINTER : CALLED_NOBODY;
	memcpy(&offset, end - 4, sizeof(offset));
	*target = (uint64_t)(uintptr_t)end + (uint64_t)(int64_t)offset;
	if (end[-5] == 0xe8 && *target >= t->start && *target < t->end)
		return CALLED_TARGET;
	/* A pointer of the linker's. */
	if (size >= 6 && end[-6] == 0xff && end[-5] == 0x15 && *target >= t->start &&
	    *target + 8 <= t->end) {
		memcpy(target, (const void *)(uintptr_t)*target, sizeof(*target));
		return CALLED_TARGET;
	}
	return is_indirect(end, size) ? CALLED_POINTER : CALLED_NOBODY;
}
#else
static enum called called(const uint8_t *end, int64_t size, const struct tacho__tables *t,
			  uint64_t *target)
{
	uint32_t code;

	(void)t;
	if (size < 4)
		return CALLED_NOBODY;
	memcpy(&code, end - 4, sizeof(code));
	if (code >> 26 == 0x25) { /* BL: words, signed, from the instruction on */
		*target = (uint64_t)(uintptr_t)end - 4 +
			  (uint64_t)((int64_t)(int32_t)(code << 6) >> 4);
		return CALLED_TARGET;
	}
	return (code & 0xfffffc1f) == 0xd63f0000 ? CALLED_POINTER : CALLED_NOBODY; /* BLR */
}
#endif

/* The function that the caller of the hook called, if that is none of ours; 0: it called the hook. */
static uint64_t jumped_from(uint64_t target)
{
	struct tacho__tables t, ours;

	(void)function_of(&ours, (uint64_t)(uintptr_t)tacho__tail_callers);
	/* No table of frames begins with an entry of the PLT. */
	return function_of(&t, target) == target && t.start != ours.start ? target : 0;
}

unsigned tacho__tail_callers(const void *returns, const void *taken, const void *callers[2])
{
	uint64_t end = (uint64_t)(uintptr_t)returns, target = 0, taken_in = 0;
	struct tacho__tables t, other;
	uint64_t begin = function_of(&t, end - 1);
	enum called how =
		begin ? called(returns, (int64_t)(end - begin), &t, &target) : CALLED_NOBODY;
	unsigned n = 0;

	target = how == CALLED_TARGET ? jumped_from(target) : 0;
	if (how == CALLED_NOBODY || (how == CALLED_TARGET && !target))
		return 0;
	if (taken)
		taken_in = function_of(&other, (uint64_t)(uintptr_t)taken - 1);
	/* The one that was called may have jumped on to the one that took the lock. */
	if (taken_in && taken_in != begin)
		callers[n++] = taken;
	/* As return addresses do, it lies behind what is meant. */
	if (target && target != taken_in)
		callers[n++] = (const void *)(uintptr_t)(target + 1);
	return n;
}
