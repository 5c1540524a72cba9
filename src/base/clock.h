/*
 * The clock of the records.
 *
 * Ticks are the cheapest monotone counter that all threads agree on: the TSC
 * where the kernel itself keeps time by it and the CPU says that it is
 * invariant, arm64's virtual counter, else nanoseconds of CLOCK_MONOTONIC.
 * Reading the counter is nearly all that a record costs.
 */
#ifndef TACHO_BASE_CLOCK_H
#define TACHO_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t tacho__clock_ns(clockid_t id)
{
	struct timespec t;

	if (clock_gettime(id, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The counter of this architecture, whether it can be trusted or not. */
static inline uint64_t tacho__counter(void)
{
#if defined(__x86_64__)
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return tacho__clock_ns(CLOCK_MONOTONIC);
#endif
}

/*
 * One instant on the counter (or, with `use_counter` 0, CLOCK_MONOTONIC) and on
 * CLOCK_MONOTONIC: the clock is read between two counter reads, the closest of
 * a few tries is taken.
 */
static inline void tacho__clock_pair(int use_counter, uint64_t *ticks, uint64_t *mono_ns)
{
	uint64_t best = UINT64_MAX;

	*ticks = *mono_ns = tacho__clock_ns(CLOCK_MONOTONIC);
	if (!use_counter)
		return;
	for (int i = 0; i < 4; i++) {
		uint64_t a = tacho__counter();
		uint64_t ns = tacho__clock_ns(CLOCK_MONOTONIC);
		uint64_t b = tacho__counter();

		if (b - a < best) {
			best = b - a;
			*ticks = a + (b - a) / 2;
			*mono_ns = ns;
		}
	}
}

/*
 * 1 when the counter may be used as clock: the kernel uses it (`source` is what
 * /sys/devices/system/clocksource/clocksource0/current_clocksource says) and the
 * CPU keeps it running at one rate in all states.
 */
int tacho__counter_trusted(const char *source);

#endif
