#include "agent/absent.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/run_program.h"
#include "base/clock.h"
#include "base/sys.h"
#include "read/ask.h"
#include "read/records.h"
#include "tacho_read.h"

#define NS_PER_MS UINT64_C(1000000)
/* After exec, until the dynamic linker has loaded what it loads. */
#define SETTLED_NS (100 * NS_PER_MS)
/* Who waits at all does so by then: others that lived that long are told as idle. */
#define IDLE_NS (2000 * NS_PER_MS)
#define STARTED_NS (5 * NS_PER_MS) /* until what is about to be started runs */
#define INTERVAL_MIN_NS (100 * NS_PER_MS)
#define INTERVAL_MAX_NS (60000 * NS_PER_MS)
#define RUNNING_MAX 2048u
#define LIST_MAX 1024u
#define TASKS_MAX 256u /* threads of a process whose children are looked for */
#define NAMES_SHOWN 5u
#define MAPS_MAX (8u << 20)

struct tacho__absent_process {
	uint32_t pid, parent;
	dev_t device; /* of its program */
	ino_t inode;
	uint64_t since_ns; /* it runs this program */
	char comm[16];
	char exe[sizeof(((struct tacho_trace_absent *)0)->exe)];
	const char *library; /* file name of the one that its C library can load */
	bool boxed;	     /* it records */
	bool loaded;	     /* the library is in it */
	bool told;	     /* it is in the list */
	bool seen;	     /* by this look */
};

/* ----------------------------------------------------------------------- /proc */

/* Ended by a zero; bytes or -errno. */
static ssize_t read_of(uint32_t pid, const char *name, char *out, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, name);
	return tacho__read_small(path, out, size);
}

static long search(void *arg, char *text, size_t size)
{
	const char *wanted = arg;

	if (!size)
		return -ESRCH;
	return memmem(text, size, wanted, strlen(wanted)) != NULL;
}

/* Whether `text` occurs in the file: 1, 0, or -errno; -ESRCH: the process has just ended. */
static int occurs(uint32_t pid, const char *name, const char *text)
{
	return (int)tacho__ask_process(pid, name, MAPS_MAX, search, (void *)(uintptr_t)text);
}

/* 1: its dynamic linker was told to load no foreign library. */
static bool is_secure(uint32_t pid)
{
	char text[2048];
	ssize_t n = read_of(pid, "auxv", text, sizeof(text));

	for (ssize_t at = 0; at + (ssize_t)sizeof(Elf64_auxv_t) <= n;
	     at += (ssize_t)sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t entry;

		memcpy(&entry, text + at, sizeof(entry));
		if (entry.a_type == AT_SECURE)
			return entry.a_un.a_val != 0;
	}
	return false;
}

static void read_stat(uint32_t pid, char comm[16], uint32_t *parent)
{
	char text[1024];
	char *from, *to;

	comm[0] = 0;
	*parent = 0;
	if (read_of(pid, "stat", text, sizeof(text)) <= 0)
		return;
	from = strchr(text, '(');
	to = strrchr(text, ')');
	if (!from || !to || to < from || strlen(to) < 5)
		return;
	*to = 0;
	snprintf(comm, 16, "%.15s", from + 1);
	*parent = (uint32_t)strtoul(to + 4, NULL, 10);
}

/* ------------------------------------------------------------------------ why */

static bool is_excluded(const struct tacho__absent *a, const char *comm)
{
	size_t n = strlen(comm);

	for (const char *at = a->exclude; at && *at;) {
		size_t size = strcspn(at, ",");

		if (size == n && memcmp(at, comm, n) == 0)
			return true;
		at += size + (at[size] != 0);
	}
	return false;
}

/* Of a process in which the library is not; 0: it has just ended, or does not answer. */
static uint32_t find_reason(const struct tacho__absent *a, uint32_t pid, const char *library)
{
	static struct tacho__program program;
	char path[64], message[256];
	int told;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", pid);
	if (tacho__program_find(&program, path, message, sizeof(message)) == 0) {
		if (program.hindrance == TACHO__HINDRANCE_STATIC)
			return TACHO_ABSENT_STATIC;
		if (program.hindrance == TACHO__HINDRANCE_MACHINE)
			return TACHO_ABSENT_MACHINE;
		if (program.hindrance == TACHO__HINDRANCE_LIBC)
			return TACHO_ABSENT_LIBC;
	}
	if (is_secure(pid))
		return TACHO_ABSENT_RIGHTS;
	/* An environment without any variable cannot be told from none: its memory must be there. */
	told = occurs(pid, "environ", library);
	if (told == -ETIMEDOUT || told == -EBUSY ||
	    (told == -ESRCH && occurs(pid, "maps", library) != 0))
		return 0;
	/* It was given the other one, by a program that does not choose. */
	if (told == 0 && library != a->preload && occurs(pid, "environ", a->preload) > 0)
		return TACHO_ABSENT_LIBC;
	return told > 0 ? TACHO_ABSENT_LIBRARY : TACHO_ABSENT_ENVIRONMENT;
}

static struct tacho_trace_absent *add(struct tacho__absent *a, uint32_t pid, uint32_t reason)
{
	struct tacho_trace_absent *grown;

	if (a->most && a->count >= a->most)
		memmove(a->list, a->list + 1, --a->count * sizeof(*a->list));
	if (a->count >= LIST_MAX)
		return NULL;
	grown = reallocarray(a->list, a->count + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	a->list = grown;
	grown[a->count] = (struct tacho_trace_absent){
		.pid = pid, .reason = reason, .seen_ns = tacho__clock_ns(CLOCK_MONOTONIC)};
	return &grown[a->count++];
}

static void tell(struct tacho__absent *a, struct tacho__absent_process *p, uint32_t reason)
{
	struct tacho_trace_absent *entry = p->told ? NULL : add(a, p->pid, reason);

	p->told = true;
	if (!entry)
		return;
	entry->parent_pid = p->parent;
	entry->seen_ns = p->since_ns;
	memcpy(entry->comm, p->comm, sizeof(entry->comm));
	memcpy(entry->exe, p->exe, sizeof(entry->exe));
}

/* It has ended, or nobody looks any longer. */
static void part(struct tacho__absent *a, struct tacho__absent_process *p, uint64_t now)
{
	if (p->boxed || p->told || !p->loaded || now - p->since_ns < IDLE_NS)
		return;
	tell(a, p, is_excluded(a, p->comm) ? TACHO_ABSENT_EXCLUDED : TACHO_ABSENT_IDLE);
}

/* ------------------------------------------------------------------ processes */

static struct tacho__absent_process *find(struct tacho__absent *a, uint32_t pid)
{
	struct tacho__absent_process *grown;

	for (size_t i = 0; i < a->running_count; i++)
		if (a->running[i].pid == pid)
			return &a->running[i];
	if (a->running_count >= RUNNING_MAX)
		return NULL;
	grown = reallocarray(a->running, a->running_count + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	a->running = grown;
	grown[a->running_count] = (struct tacho__absent_process){.pid = pid};
	return &grown[a->running_count++];
}

/* The library that the program of this process would load. */
static const char *library_for(const struct tacho__absent *a, const char *exe)
{
	static struct tacho__program program;
	char message[256];

	if (tacho__program_find(&program, exe, message, sizeof(message)) == 0 &&
	    program.libc != TACHO__OWN_LIBC && program.libc != TACHO__LIBC_OTHER)
		return TACHO__PRELOAD_FILE(program.libc);
	return a->preload;
}

/* Whether it runs another program than before; that may be recorded or not for itself. */
static bool is_another(struct tacho__absent *a, struct tacho__absent_process *p, uint64_t now)
{
	struct stat st = {0};
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", p->pid);
	if (stat(path, &st) < 0 && errno == ENOENT)
		return false; /* it has ended, and waits for its parent */
	if (p->since_ns && st.st_dev == p->device && st.st_ino == p->inode)
		return false;
	if (p->since_ns)
		part(a, p, now);
	*p = (struct tacho__absent_process){.pid = p->pid,
					    .device = st.st_dev,
					    .inode = st.st_ino,
					    .since_ns = now,
					    .library = library_for(a, path),
					    .seen = p->seen};
	n = readlink(path, p->exe, sizeof(p->exe) - 1);
	p->exe[n > 0 ? n : 0] = 0;
	read_stat(p->pid, p->comm, &p->parent);
	return true;
}

/*
 * Whether nothing will load the library, as its environment does not ask for that: known at once,
 * which is for those that a recorded process starts past its hooks and that may not live for long.
 * Of several, the first.
 */
static bool is_lost(const struct tacho__absent *a, const struct tacho__absent_process *p)
{
	bool recorded = false;
	char argument[2];
	int asks;

	for (size_t i = 0; i < a->running_count && !recorded; i++)
		recorded = a->running[i].pid == p->parent && a->running[i].boxed;
	for (uint32_t i = 0; i < a->count && recorded; i++)
		recorded =
			a->list[i].parent_pid != p->parent || strcmp(a->list[i].exe, p->exe) != 0;
	/* One without any variable has arguments; else it is not there yet. */
	if (!recorded ||
	    tacho__ask_process_small(p->pid, "cmdline", argument, sizeof(argument)) <= 0)
		return false;
	asks = occurs(p->pid, "environ", p->library);
	return asks == 0 || asks == -ESRCH;
}

/* Whether it is new. */
static bool look_at(struct tacho__absent *a, struct tacho__absent_process *p, uint64_t now)
{
	bool fresh = is_another(a, p, now);
	uint32_t reason;
	int found;

	p->seen = true;
	if (p->boxed || p->told || !p->since_ns)
		return fresh;
	/* As programs may exec themselves, one that had it may have lost it. */
	found = occurs(p->pid, "maps", p->library);
	if (now - p->since_ns < SETTLED_NS && !(found == 0 && is_lost(a, p)))
		return true;
	if (found == -EACCES || found == -EPERM) {
		tell(a, p, geteuid() == 0 ? TACHO_ABSENT_HIDDEN : TACHO_ABSENT_RIGHTS);
	} else if (found == 0) {
		reason = find_reason(a, p->pid, p->library);
		if (reason)
			tell(a, p, reason);
	} else if (found > 0) {
		p->loaded = true;
		read_stat(p->pid, p->comm, &p->parent);
	}
	return false;
}

struct queue {
	uint32_t pid[RUNNING_MAX];
	size_t count;
};

static void queue_children(struct queue *q, uint32_t pid, const char *tid, pid_t ours)
{
	char name[64], text[8192], *at = text, *end;
	unsigned long child;

	snprintf(name, sizeof(name), "task/%.20s/children", tid);
	if (read_of(pid, name, text, sizeof(text)) <= 0)
		return;
	while ((child = strtoul(at, &end, 10)) > 0 && end != at && q->count < RUNNING_MAX) {
		if ((pid_t)child != ours)
			q->pid[q->count++] = (uint32_t)child;
		at = end;
	}
}

static void queue_all_children(struct queue *q, uint32_t pid, pid_t ours)
{
	unsigned tasks = 0;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)) && tasks < TASKS_MAX) {
		if (e->d_name[0] == '.')
			continue;
		queue_children(q, pid, e->d_name, ours);
		tasks++;
	}
	if (dir)
		closedir(dir);
}

static void forget_ended(struct tacho__absent *a, uint64_t now)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->running_count; i++) {
		struct tacho__absent_process *p = &a->running[i];

		if (p->seen)
			a->running[kept++] = *p;
		else
			part(a, p, now);
	}
	a->running_count = kept;
}

void tacho__absent_news(struct tacho__absent *a)
{
	a->interval_ns = INTERVAL_MIN_NS;
	a->due_ns = a->last_ns + INTERVAL_MIN_NS;
}

void tacho__absent_started(struct tacho__absent *a)
{
	uint64_t soon = tacho__clock_ns(CLOCK_MONOTONIC) + STARTED_NS;

	tacho__absent_news(a);
	if (a->due_ns < soon)
		a->due_ns = soon;
}

void tacho__absent_look(struct tacho__absent *a, pid_t ours)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);
	static struct queue q;

	if (now < a->due_ns)
		return;
	if (!a->preload) { /* there is no library that could be missing */
		a->due_ns = UINT64_MAX;
		return;
	}
	a->interval_ns =
		a->interval_ns * 2 < INTERVAL_MAX_NS ? a->interval_ns * 2 : INTERVAL_MAX_NS;
	for (size_t i = 0; i < a->running_count; i++)
		a->running[i].seen = false;
	q.count = 0;
	queue_all_children(&q, (uint32_t)getpid(), ours);
	for (size_t i = 0; i < q.count; i++) {
		struct tacho__absent_process *p = find(a, q.pid[i]);

		if (p && look_at(a, p, now))
			a->interval_ns = INTERVAL_MIN_NS;
		queue_all_children(&q, q.pid[i], ours);
	}
	forget_ended(a, now);
	a->last_ns = now;
	a->due_ns = now + a->interval_ns;
}

void tacho__absent_boxed(struct tacho__absent *a, uint32_t pid)
{
	struct tacho__absent_process *p = a->preload ? find(a, pid) : NULL;

	if (!p)
		return;
	is_another(a, p, tacho__clock_ns(CLOCK_MONOTONIC));
	p->boxed = p->seen = true;
	tacho__absent_news(a);
}

void tacho__absent_refused(struct tacho__absent *a, const struct tacho_box_super *note)
{
	struct tacho_trace_absent *entry = add(a, note->pid, TACHO_ABSENT_REFUSED);
	char comm[16];

	if (!entry)
		return;
	read_stat(note->pid, comm, &entry->parent_pid);
	snprintf(entry->comm, sizeof(entry->comm), "%.15s", note->comm);
	snprintf(entry->said, sizeof(entry->said), "%.255s", note->reason);
	entry->error = note->error;
	tacho__absent_boxed(a, note->pid);
}

void tacho__absent_end(struct tacho__absent *a, pid_t ours)
{
	a->due_ns = 0;
	tacho__absent_look(a, ours);
	for (size_t i = 0; i < a->running_count; i++)
		part(a, &a->running[i], a->last_ns);
}

/* ---------------------------------------------------------------------- words */

static size_t put_group(const struct tacho__absent *a, uint32_t reason, uint32_t known, char *out,
			size_t size)
{
	struct tacho_absent told = {.text = ""};
	size_t used = 0, count = 0;

	for (uint32_t i = 0; i < a->count && used < size; i++) {
		const struct tacho_trace_absent *e = &a->list[i];

		if (e->reason != reason || e->pid == known)
			continue;
		tacho__absent_tell(&told, e);
		if (!told.hindered)
			return 0;
		if (count++ < NAMES_SHOWN)
			used += (size_t)snprintf(out + used, size - used, "%s%s (%" PRIu32 ")",
						 count > 1 ? ", " : "", e->comm, e->pid);
	}
	if (count > NAMES_SHOWN && used < size)
		used += (size_t)snprintf(out + used, size - used, " and %zu more",
					 count - NAMES_SHOWN);
	if (count && used < size)
		used += (size_t)snprintf(out + used, size - used, ": %s", told.text);
	return used < size ? used : size - 1;
}

const char *tacho__absent_names(const struct tacho__absent *a, uint32_t known, char *out,
				size_t size)
{
	size_t used = 0;

	out[0] = 0;
	for (uint32_t reason = TACHO_ABSENT_RIGHTS; reason <= TACHO_ABSENT_HIDDEN; reason++) {
		size_t between = used ? 2 : 0, n;

		/* Those were told one by one. */
		if (reason == TACHO_ABSENT_REFUSED || used + between + 1 >= size)
			continue;
		n = put_group(a, reason, known, out + used + between, size - used - between);
		if (n && between)
			memcpy(out + used, "; ", between);
		used += n ? n + between : 0;
		out[used] = 0;
	}
	return out;
}

void tacho__absent_free(struct tacho__absent *a)
{
	free(a->running);
	free(a->list);
	a->running = NULL;
	a->list = NULL;
	a->count = 0;
	a->running_count = 0;
}
