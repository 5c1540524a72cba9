#include "core/stack.h"

#if defined(__GLIBC__)
#include <execinfo.h>
#endif

#include "core/control.h"
#include "core/define.h"
#include "core/weak.h"
#include "tacho.h"

#if defined(__GLIBC__)
TACHO__WEAK(backtrace);
#else
/* musl has none. The hooks bring one, so that libtacho alone takes no stacks there. */
int (*tacho__backtrace)(void **pc, int most);
#define backtrace(pc, most) (tacho__backtrace ? tacho__backtrace((pc), (most)) : 0)
#endif

static int prepared;

void tacho_stacks_prepare(void)
{
	void *one[1];

	/* The first call loads libgcc and may allocate; later ones do neither. */
	if (!__atomic_exchange_n(&prepared, 1, __ATOMIC_RELAXED))
		backtrace(one, 1);
}

/* Not inlined: it counts on being a frame of its own. */
__attribute__((noinline)) uint32_t tacho__stack_take(uint64_t *frames, uint32_t most, int *more)
{
	void *pc[TACHO_STACK_MAX + 4];
	uint32_t n = 0;
	int got = backtrace(pc, (int)(sizeof(pc) / sizeof(pc[0])));

	/* Frame 0 is this function, frame 1 the one that called it. */
	for (int i = 2; i < got && n < most; i++)
		frames[n++] = (uint64_t)(uintptr_t)pc[i];
	*more = got - 2 > (int)n;
	return n;
}

static uint32_t define(const uint64_t *frames, uint32_t n, int more)
{
	if (!n) {
		tacho__count(TACHO_LOSS_UNWIND, 1);
		return 0;
	}
	if (more)
		tacho__count(TACHO_LOSS_STACK_CUT, 1);
	return tacho__define_payload(TACHO_DEF_STACK, more ? TACHO_DEF_CUT : 0, frames,
				     n * (uint32_t)sizeof(frames[0]));
}

/* One that the caller has taken: return addresses, innermost first. */
uint32_t tacho__stack_of(const uint64_t *frames, uint32_t count)
{
	int more = count > TACHO_STACK_MAX;

	return tacho__recorder_ready() ? define(frames, more ? TACHO_STACK_MAX : count, more) : 0;
}

uint32_t tacho__stack(void)
{
	uint64_t frames[TACHO_STACK_MAX];
	uint32_t n;
	int more;

	if (!tacho__recorder_ready())
		return 0;
	tacho_stacks_prepare();
	n = tacho__stack_take(frames, TACHO_STACK_MAX, &more);
	return define(frames, n, more);
}
