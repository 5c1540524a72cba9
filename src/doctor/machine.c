/*
 * Each check tries what recording will do, where that leaves nothing behind. The value of the
 * file in /proc/sys is shown as well, because that is what a user can change.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "agent/kernel.h"
#include "agent/run_program.h"
#include "base/clock.h"
#include "kernel/ksyms.h"
#include "read/input.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define MIB (UINT64_C(1) << 20)
#define BUDGET (32 * MIB) /* of a box, by default */
#define SAMPLE_HZ 99u

/* The first line of a small file, without its newline; 0 or a negative errno. */
static int read_line(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
	int error = errno;

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
	return n < 0 ? -error : 0;
}

static void put_sysctl(struct tacho__check *c, const char *path)
{
	char line[32];

	if (read_line(path, line, sizeof(line)) == 0 && line[0])
		tacho__check_value(c, "%s", line);
}

/* A sentence of the agent's: what it says to do stands behind its last semicolon. */
static void put_sentence(struct tacho__check *c, const char *sentence)
{
	const char *last = NULL;

	for (const char *p = strstr(sentence, "; "); p; p = strstr(p + 1, "; "))
		last = p;
	if (!last) {
		tacho__check_means(c, "%s", sentence);
		return;
	}
	tacho__check_means(c, "%.*s", (int)(last - sentence), sentence);
	tacho__check_todo(c, "%s", last + 2);
}

static void check_switch(struct tacho__checks *checks)
{
	const char *text = getenv("TACHO");
	struct tacho__check *c;

	if (!text || strcmp(text, "off") != 0)
		return;
	c = tacho__check_add(checks, "switched-off", TACHO__CHECK_CANNOT);
	tacho__check_value(c, "TACHO=off");
	tacho__check_means(c, "TACHO=off is in the environment, so nothing records");
	tacho__check_todo(c, "unset TACHO");
}

static void check_hooks(struct tacho__checks *checks)
{
	char path[PATH_MAX], message[512];
	int err = tacho__preload_find(path, sizeof(path), message, sizeof(message));
	struct tacho__check *c =
		tacho__check_add(checks, "hooks", err ? TACHO__CHECK_CANNOT : TACHO__CHECK_OK);

	if (err) {
		tacho__check_means(c, "%s", message);
		tacho__check_todo(c, "install tacho completely ('make install')");
		return;
	}
	tacho__check_value(c, "%s", path);
	tacho__check_means(c, "the library that records unchanged programs is there");
	if (tacho__preload_for(TACHO__MUSL, path, sizeof(path)) == 0) {
		c = tacho__check_add(checks, "hooks-musl", TACHO__CHECK_OK);
		tacho__check_value(c, "%s", path);
		tacho__check_means(c, "and the one for programs that run on musl");
	} else if (access(TACHO__LINKER_MUSL, F_OK) == 0) {
		c = tacho__check_add(checks, "hooks-musl", TACHO__CHECK_WARNING);
		tacho__check_means(c, "programs that run on musl are not recorded");
		tacho__check_todo(c, "%s", TACHO__NO_MUSL);
	}
}

/* -------------------------------------------------------------- the box */

/* 0: boxes can be made in `path`, which need not exist yet; else -errno. */
static int try_folder(const char *path, struct statfs *fs)
{
	char parent[PATH_MAX];
	struct stat st;
	char *slash;

	if (strlen(path) >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, strlen(path) + 1);
	if (tacho__lstat_box_path(path, &st) < 0) {
		if (errno != ENOENT)
			return -errno;
		slash = strrchr(parent, '/');
		if (!slash)
			return -EINVAL;
		slash[slash == parent] = 0;
	} else if (!S_ISDIR(st.st_mode)) {
		return -ENOTDIR;
	} else if (st.st_uid != geteuid()) {
		return -EPERM;
	}
	if (statfs(parent, fs) < 0)
		return -errno;
	if (fs->f_type != TMPFS_MAGIC && fs->f_type != RAMFS_MAGIC)
		return -EXDEV;
	return faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS) ? -errno : 0;
}

static const char *folder_error(int err)
{
	switch (err) {
	case -EXDEV:
		return "it is not on tmpfs, where storing never waits for a disk";
	case -EPERM:
		return "it belongs to another user";
	case -ENOTDIR:
		return "it is no folder";
	default:
		return strerror(-err);
	}
}

static void check_space(struct tacho__checks *checks, const struct statfs *fs)
{
	uint64_t unit = (uint64_t)fs->f_bsize;
	uint64_t unused = (uint64_t)fs->f_bavail * unit, all = (uint64_t)fs->f_blocks * unit;
	bool little = all && unused < BUDGET;
	struct tacho__check *c = tacho__check_add(checks, "box-space",
						  little ? TACHO__CHECK_WARNING : TACHO__CHECK_OK);

	tacho__check_bytes(c, unused);
	if (!all) /* tmpfs without a limit */
		tacho__check_means(c, "only memory limits that tmpfs");
	else
		tacho__check_means(c,
				   "%" PRIu64 " MiB of %" PRIu64 " MiB are free; all boxes "
				   "together leave at least half of it free",
				   unused / MIB, all / MIB);
	if (little)
		tacho__check_todo(c,
				  "delete what fills it ('tacho recover' takes old boxes), or give "
				  "it more (docker run --shm-size)");
}

static void check_folder(struct tacho__checks *checks)
{
	const char *given = getenv("TACHO_BOX_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
	char paths[2][PATH_MAX] = {"", ""};
	struct tacho__check *c;
	struct statfs fs = {0};
	int err = 0, first = 0;

	if (given && given[0])
		snprintf(paths[0], sizeof(paths[0]), "%s", given);
	else
		snprintf(paths[0], sizeof(paths[0]), "/dev/shm/tacho-%u", (unsigned)geteuid());
	if ((!given || !given[0]) && runtime && runtime[0] == '/')
		snprintf(paths[1], sizeof(paths[1]), "%s/tacho", runtime);
	for (int i = 0; i < 2 && paths[i][0]; i++) {
		err = try_folder(paths[i], &fs);
		first = i ? first : err;
		if (err)
			continue;
		c = tacho__check_add(checks, "box-folder", TACHO__CHECK_OK);
		tacho__check_value(c, "%s", paths[i]);
		tacho__check_means(c, "boxes are made there, in memory (tmpfs)");
		check_space(checks, &fs);
		return;
	}
	c = tacho__check_add(checks, "box-folder", TACHO__CHECK_CANNOT);
	tacho__check_value(c, "%s", paths[0]);
	tacho__check_means(c, "boxes cannot be made in %s: %s", paths[0], folder_error(first));
	tacho__check_todo(c,
			  "name a folder of this user on tmpfs in TACHO_BOX_DIR, or mount a tmpfs "
			  "on /dev/shm");
}

/* --------------------------------------------------------------- limits */

struct limit {
	const char *name;
	int resource;
	bool bytes;
	uint64_t wanted, needed; /* less: a warning; nothing can be recorded */
	const char *means, *todo;
	const char *less; /* to do instead, while it is not below `needed` */
};

static void check_limits(struct tacho__checks *checks)
{
	static const struct limit limits[] = {
		{"limit-memlock", RLIMIT_MEMLOCK, true, 0, 0,
		 "locked memory (ulimit -l); perf needs some beyond kernel.perf_event_mlock_kb", "",
		 ""},
		{"limit-nofile", RLIMIT_NOFILE, false, 256, 0,
		 "open files (ulimit -n); tacho needs some for each recorded process and, with "
		 "perf, for each of its threads",
		 "raise it: ulimit -n 4096", ""},
		{"limit-fsize", RLIMIT_FSIZE, true, BUDGET, MIB,
		 "size of files (ulimit -f); a box is a file of 32 MiB",
		 "raise it: ulimit -f unlimited", "; or record with less: tacho run --memory 1M"},
		{"limit-as", RLIMIT_AS, true, 256 * MIB, BUDGET,
		 "address space (ulimit -v); a box takes 32 MiB of it and little more",
		 "raise it: ulimit -v unlimited", "; or record with less: tacho run --memory 8M"},
		{"limit-sigpending", RLIMIT_SIGPENDING, false, 512, 0,
		 "pending signals (ulimit -i); each sampled thread has a timer that counts here",
		 "raise it: ulimit -i 4096; threads above it are not sampled, and are counted", ""},
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct limit *l = &limits[i];
		enum tacho__check_state state = TACHO__CHECK_OK;
		struct tacho__check *c;
		struct rlimit r;

		if (getrlimit((__rlimit_resource_t)l->resource, &r) < 0)
			continue;
		if (r.rlim_cur != RLIM_INFINITY && r.rlim_cur < l->wanted)
			state = r.rlim_cur < l->needed ? TACHO__CHECK_CANNOT : TACHO__CHECK_WARNING;
		c = tacho__check_add(checks, l->name, state);
		if (r.rlim_cur == RLIM_INFINITY)
			tacho__check_value(c, "unlimited");
		else if (l->bytes)
			tacho__check_bytes(c, (uint64_t)r.rlim_cur);
		else
			tacho__check_number(c, (uint64_t)r.rlim_cur);
		tacho__check_means(c, "%s", l->means);
		if (state != TACHO__CHECK_OK)
			tacho__check_todo(c, "%s%s", l->todo,
					  state == TACHO__CHECK_WARNING ? l->less : "");
	}
}

/* ----------------------------------------------------------- the kernel */

static void check_perf(struct tacho__checks *checks)
{
	const struct tacho__kernel_options samples = {.sample_hz = SAMPLE_HZ},
					   switches = {.switches = true};
	char message[512];
	int err = tacho__kernel_possible(&samples, message, sizeof(message));
	struct tacho__check *c =
		tacho__check_add(checks, "perf", err ? TACHO__CHECK_WARNING : TACHO__CHECK_OK);

	put_sysctl(c, "/proc/sys/kernel/perf_event_paranoid");
	if (err)
		put_sentence(c, message);
	else
		tacho__check_means(c,
				   "perf gives CPU samples with kernel frames (tacho run --kernel; "
				   "kernel.perf_event_paranoid is %s)",
				   c->value[0] ? c->value : "not known");
	c = tacho__check_add(checks, "cpu-samples", TACHO__CHECK_OK);
	tacho__check_value(c, "%s", err ? "timers" : "perf and timers");
	tacho__check_means(c, "CPU samples of the program are taken %s",
			   err ? "by timers inside it, without kernel frames"
			       : "by timers inside it, and by perf on request");
	err = tacho__kernel_possible(&switches, message, sizeof(message));
	c = tacho__check_add(checks, "switches", err ? TACHO__CHECK_WARNING : TACHO__CHECK_OK);
	if (err)
		put_sentence(c, message);
	else
		tacho__check_means(c, "context switches can be recorded (tacho run --sched)");
}

/* With kptr_restrict 0 addresses are shown to users whom perf shows the kernel's frames, with 1
   to root, with 2 to nobody. */
static const char *how_to_see_names(const char *restricted)
{
	if (strcmp(restricted, "0") == 0)
		return "run tacho as root, or sysctl kernel.perf_event_paranoid=1";
	if (strcmp(restricted, "1") == 0)
		return "run tacho as root, or sysctl kernel.kptr_restrict=0 "
		       "kernel.perf_event_paranoid=1";
	return "sysctl kernel.kptr_restrict=1 and run tacho as root, or sysctl "
	       "kernel.kptr_restrict=0 kernel.perf_event_paranoid=1";
}

static void check_kernel_names(struct tacho__checks *checks)
{
	struct tacho__ksyms *names = NULL;
	int err = tacho__ksyms_load(&names, NULL);
	struct tacho__check *c = tacho__check_add(checks, "kernel-names",
						  err ? TACHO__CHECK_WARNING : TACHO__CHECK_OK);

	put_sysctl(c, "/proc/sys/kernel/kptr_restrict");
	if (err) {
		tacho__check_means(c,
				   "the kernel hides its addresses, so its frames in samples have "
				   "no names");
		tacho__check_todo(c, "%s", how_to_see_names(c->value));
	} else {
		tacho__check_means(c, "functions of the kernel can be named");
	}
	tacho__ksyms_free(names);
}

static void check_schedstat(struct tacho__checks *checks)
{
	char line[96];
	int err = read_line("/proc/thread-self/schedstat", line, sizeof(line));
	struct tacho__check *c =
		tacho__check_add(checks, "schedstat", err ? TACHO__CHECK_WARNING : TACHO__CHECK_OK);

	if (err) {
		tacho__check_means(c,
				   "/proc/thread-self/schedstat cannot be read (%s), so it is not "
				   "recorded how long slow callbacks were kept from running",
				   strerror(-err));
		tacho__check_todo(c, "use a kernel with CONFIG_SCHED_INFO; tacho run --sched is "
				     "another way, where perf works");
	} else {
		tacho__check_means(c,
				   "it is recorded how long slow callbacks were kept from running");
	}
}

/* The number behind `key` in /proc/self/status, or -1. */
static int status_number(const char *key)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");
	int number = -1;

	while (f && number < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			number = atoi(line + strlen(key) + 1);
	if (f)
		fclose(f);
	return number;
}

static void check_seccomp(struct tacho__checks *checks)
{
	int mode = status_number("Seccomp");
	struct tacho__check *c = tacho__check_add(
		checks, "seccomp", mode < 0 ? TACHO__CHECK_UNKNOWN : TACHO__CHECK_OK);
	char scope[32];

	if (mode >= 0)
		tacho__check_number(c, (uint64_t)mode);
	tacho__check_means(c, "%s",
			   mode == 0  ? "no filter refuses system calls"
			   : mode < 0 ? "it is not known whether a filter refuses system calls"
				      : "a filter may refuse system calls; those that tacho needs "
					"have lines of their own");
	c = tacho__check_add(checks, "ptrace-scope", TACHO__CHECK_OK);
	if (read_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) == 0)
		tacho__check_value(c, "%s", scope);
	tacho__check_means(c, "tacho attaches to no process, so it does not matter%s",
			   c->value[0] ? "" : " (there is no Yama here)");
}

/* Calls that have another way round them. */
static void check_calls(struct tacho__checks *checks)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int bad = at == MAP_FAILED || madvise(at, page, MADV_POPULATE_WRITE);
	uint32_t word = 0;
	struct tacho__check *c;
	long fd;

	if (at != MAP_FAILED)
		munmap(at, page);
	c = tacho__check_add(checks, "populate", bad ? TACHO__CHECK_WARNING : TACHO__CHECK_OK);
	tacho__check_means(c, "%s",
			   bad ? "MADV_POPULATE_WRITE is refused, so a box takes all of its memory "
				 "when it is made"
			       : "boxes take their memory step by step (MADV_POPULATE_WRITE)");
	if (bad)
		tacho__check_todo(c, "use Linux 5.14 or newer, or record with less: tacho run "
				     "--memory 8M");
	fd = syscall(SYS_pidfd_open, getpid(), 0);
	c = tacho__check_add(checks, "pidfd", fd < 0 ? TACHO__CHECK_WARNING : TACHO__CHECK_OK);
	tacho__check_means(c, "%s",
			   fd < 0 ? "pidfd_open is refused, so the end of a process is noticed up "
				    "to half a second late"
				  : "the ends of processes are noticed at once (pidfd_open)");
	if (fd < 0)
		tacho__check_todo(c, "use Linux 5.3 or newer, or allow the call in the filter");
	else
		close((int)fd);
	bad = syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) < 0;
	c = tacho__check_add(checks, "futex", bad ? TACHO__CHECK_WARNING : TACHO__CHECK_OK);
	tacho__check_means(c, "%s",
			   bad ? "futex is refused, so sentinels are noticed late"
			       : "recorded processes can wake tacho (futex)");
}

static void check_clock(struct tacho__checks *checks)
{
	char source[64] = "";
	struct tacho__check *c;
	bool counter;

	(void)read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
			sizeof(source));
	counter = tacho__counter_trusted(source);
	c = tacho__check_add(checks, "clock", counter ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);
	tacho__check_value(c, "%s", counter ? source : "monotonic");
	if (counter) {
		tacho__check_means(c, "times are read from the CPU's counter");
		return;
	}
	tacho__check_means(c,
			   "the kernel keeps time by %s, so each record asks it for the time, "
			   "which costs more",
			   source[0] ? source : "a clock that is not known");
	tacho__check_todo(c, "nothing, unless the machine has a stable tsc that was switched off "
			     "(see dmesg | grep -i tsc)");
}

static void check_symbols(struct tacho__checks *checks)
{
#if defined(TACHO_HAVE_LIBDW)
	struct tacho__check *c = tacho__check_add(checks, "symbols", TACHO__CHECK_OK);

	tacho__check_means(c, "functions, files and lines are looked up with libdw");
#else
	struct tacho__check *c = tacho__check_add(checks, "symbols", TACHO__CHECK_WARNING);

	tacho__check_means(c, "this tacho was built without libdw: traces have addresses but no "
			      "names of functions");
	tacho__check_todo(c, "install libdw-dev and libiberty-dev, and build tacho again");
#endif
}

void tacho__doctor_machine(struct tacho__checks *checks)
{
	check_switch(checks);
	check_hooks(checks);
	check_folder(checks);
	check_limits(checks);
	check_perf(checks);
	check_kernel_names(checks);
	check_schedstat(checks);
	check_seccomp(checks);
	check_calls(checks);
	check_clock(checks);
	check_symbols(checks);
}
