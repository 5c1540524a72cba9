#include "agent/kernel_say.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* kernel.perf_event_paranoid; -2: not known. */
static int paranoid(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -2;

	if (f && fscanf(f, "%d", &level) != 1)
		level = -2;
	if (f)
		fclose(f);
	return level;
}

static const char *what_of(const struct tacho__kernel_options *o)
{
	if (!o->sample_hz)
		return "context switches";
	return o->switches ? "context switches and samples with frames of the kernel"
			   : "samples with frames of the kernel";
}

/* perf_event_open was refused: who did it, and what would help. */
static void say_refused(const struct tacho__kernel_options *o, int err, char *m, size_t size)
{
	int level = paranoid(), most = o->sample_hz ? 1 : 2;

	if (err == -EACCES && level > most)
		snprintf(m, size,
			 "cannot get %s from the kernel: kernel.perf_event_paranoid is %d, which "
			 "denies them to users without CAP_PERFMON; run tacho as root, or sysctl "
			 "kernel.perf_event_paranoid=%d",
			 what_of(o), level, most);
	else if (err == -ENOSYS)
		snprintf(m, size,
			 "cannot get %s from the kernel: it has no perf_event_open, or a seccomp "
			 "filter hides it; allow that call for the container, or do without",
			 what_of(o));
	else
		snprintf(m, size,
			 "cannot get %s from the kernel: perf_event_open is refused (%s), as "
			 "seccomp filters of containers do; allow that call, or do without",
			 what_of(o), strerror(-err));
}

void tacho__kernel_say_whose(uint32_t pid, char *m, size_t size)
{
	snprintf(m, size,
		 "cannot follow process %u in the kernel: it belongs to another user or may not be "
		 "inspected; run tacho as its user or as root",
		 pid);
}

void tacho__kernel_say(const struct tacho__kernel_options *o, uint32_t pid,
		       enum tacho__perf_step step, int err, char *m, size_t size)
{
	if (!m || !size)
		return;
	if (err == -ESRCH)
		snprintf(m, size,
			 "cannot follow process %u in the kernel: there is no such process", pid);
	else if (err == -EMFILE || err == -ENFILE)
		snprintf(m, size,
			 "cannot get %s from the kernel: that takes a descriptor for each thread "
			 "and CPU, and no more can be opened; raise the limit (ulimit -n)",
			 what_of(o));
	else if (step == TACHO__PERF_RING && (err == -EPERM || err == -ENOMEM))
		snprintf(
			m, size,
			"cannot get %s from the kernel: no more memory may be locked for it; raise "
			"kernel.perf_event_mlock_kb or the limit on locked memory (ulimit -l)",
			what_of(o));
	else if (step == TACHO__PERF_OPEN && (err == -EACCES || err == -EPERM || err == -ENOSYS))
		say_refused(o, err, m, size);
	else
		snprintf(m, size, "cannot get %s from the kernel: %s", what_of(o), strerror(-err));
}
