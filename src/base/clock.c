#include "base/clock.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

int tacho__counter_trusted(const char *source)
{
	unsigned a, b, c, d;

	if (strncmp(source, "tsc", 3) || (source[3] && source[3] != '\n'))
		return 0;
	/* Leaf 0x80000007, EDX bit 8: invariant TSC. */
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
}
#elif defined(__aarch64__)
int tacho__counter_trusted(const char *source)
{
	/* The generic timer is architecturally constant-rate; the kernel's word only
	   tells whether an erratum made it look for another clock. */
	return !strncmp(source, "arch_sys_counter", 16);
}
#else
int tacho__counter_trusted(const char *source)
{
	(void)source;
	return 0;
}
#endif
