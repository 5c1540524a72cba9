/* The calling thread's own stack, where libc has no backtrace(3): by the tables that samples use. */
#include "hooks/unwind.h"

#if !defined(__GLIBC__)

#include "base/sys.h"
#include "core/recorder.h"
#include "core/stack.h"

#define ROOMS 8u /* threads that take a stack at the same time */

/* Emptied in a child: there nobody takes one. */
struct rooms {
	struct {
		uint32_t busy;
		struct tacho__unwind unwind;
	} room[ROOMS];
};
static struct rooms *rooms;

/* The registers that a function has to keep, all at one instruction. */
static inline __attribute__((always_inline)) void registers(uint64_t *r)
{
#if defined(__x86_64__)
	__asm__ volatile("movq %%rbx, 3*8(%0)\n\t"
			 "movq %%rbp, 6*8(%0)\n\t"
			 "movq %%rsp, 7*8(%0)\n\t"
			 "movq %%r12, 12*8(%0)\n\t"
			 "movq %%r13, 13*8(%0)\n\t"
			 "movq %%r14, 14*8(%0)\n\t"
			 "movq %%r15, 15*8(%0)\n\t"
			 "leaq 0f(%%rip), %%rax\n"
			 "0:\n\t"
			 "movq %%rax, 16*8(%0)\n\t"
			 :
			 : "r"(r)
			 : "rax", "memory");
#else
	__asm__ volatile("stp x19, x20, [%0, #19*8]\n\t"
			 "stp x21, x22, [%0, #21*8]\n\t"
			 "stp x23, x24, [%0, #23*8]\n\t"
			 "stp x25, x26, [%0, #25*8]\n\t"
			 "stp x27, x28, [%0, #27*8]\n\t"
			 "stp x29, x30, [%0, #29*8]\n\t"
			 "mov x9, sp\n\t"
			 "adr x10, 0f\n"
			 "0:\n\t"
			 "stp x9, x10, [%0, #31*8]\n\t"
			 :
			 : "r"(r)
			 : "x9", "x10", "memory");
#endif
}

/* A frame of its own, which is left out. */
static __attribute__((noinline)) int walk(void **pc, int most)
{
	struct rooms *all = __atomic_load_n(&rooms, __ATOMIC_ACQUIRE);
	uint32_t n = 0;

	for (unsigned i = 0; all && i < ROOMS; i++) {
		struct tacho__unwind *u = &all->room[i].unwind;
		uint64_t frames[TACHO_STACK_MAX + 5];
		int more;

		if (__atomic_exchange_n(&all->room[i].busy, 1, __ATOMIC_ACQUIRE))
			continue;
		registers(u->regs);
		n = tacho__unwind_registers(u, frames, (uint32_t)most + 1, &more);
		__atomic_store_n(&all->room[i].busy, 0, __ATOMIC_RELEASE);
		for (uint32_t f = 1; f < n; f++)
			pc[f - 1] = (void *)(uintptr_t)frames[f];
		break;
	}
	return n > 1 ? (int)n - 1 : 0;
}

void tacho__unwind_begin(void)
{
	void *at;

	tacho__tables_refresh();
	if (tacho__map_emptied(sizeof(struct rooms), &at))
		return;
	__atomic_store_n(&rooms, at, __ATOMIC_RELEASE);
	tacho__backtrace = walk;
}

#else

void tacho__unwind_begin(void)
{
}

#endif
