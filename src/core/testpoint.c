#include "core/testpoint.h"

#if TACHO_TESTPOINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

/*
 * The name of the point at which to die and how many times to pass it first; set
 * by the test program. "*" matches every point.
 */
const char *tacho__testpoint_name;
int tacho__testpoint_passes;
/* Called at every point, if the test program sets it: a thread may be kept there. */
void (*tacho__testpoint_call)(const char *name);

/* Of a program that knows nothing of it. */
__attribute__((constructor)) static void from_environment(void)
{
	if (!tacho__testpoint_name)
		tacho__testpoint_name = getenv("TACHO_TESTPOINT");
}

void tacho__testpoint(const char *name)
{
	const char *wanted = tacho__testpoint_name;

	if (tacho__testpoint_call)
		tacho__testpoint_call(name);
	if (!wanted || (strcmp(wanted, name) && strcmp(wanted, "*")))
		return;
	if (__atomic_fetch_sub(&tacho__testpoint_passes, 1, __ATOMIC_RELAXED) > 0)
		return;
	TACHO__SYS(SYS_kill, tacho__getpid(), SIGKILL, 0, 0, 0, 0);
}
#endif
