#include "core/memory_limits.h"

#include <string.h>
#include <sys/sysinfo.h>

#include "base/sys.h"
#include "base/text.h"

#define FILE_NAME_ROOM 32u
#define UNLIMITED (UINT64_C(1) << 60) /* version 1 says nearly 2^63 where there is no limit */

struct version {
	const char *limit, *high, *usage, *file;
};

static const struct version versions[] = {
	{"/memory.limit_in_bytes", NULL, "/memory.usage_in_bytes", "\ntotal_inactive_file "},
	{"/memory.max", "/memory.high", "/memory.current", "\ninactive_file "},
};

/* A folder of a cgroup. */
struct folder {
	const struct version *version;
	struct tacho__memory_work *work; /* with its path */
	size_t size;			 /* of the path without the name of a file after it */
};

static long read_in(struct folder *f, const char *name, char *to, size_t room)
{
	struct tacho__text t;
	long n;

	tacho__text_init(&t, f->work->path + f->size, FILE_NAME_ROOM);
	tacho__text_put(&t, name);
	n = tacho__read_small(f->work->path, to, room);
	f->work->path[f->size] = 0;
	return n;
}

static uint64_t number_of(const char *text)
{
	uint64_t v = 0;

	for (; *text >= '0' && *text <= '9' && v < UNLIMITED; text++)
		v = v * 10 + (uint64_t)(*text - '0');
	return v;
}

/* The number in that file, or `none` when there is no such file or it says "max". */
static uint64_t number_in(struct folder *f, const char *name, uint64_t none)
{
	char text[32];

	if (read_in(f, name, text, sizeof(text)) <= 0 || text[0] < '0' || text[0] > '9')
		return none;
	return number_of(text);
}

/* Page cache that the kernel takes back before it kills. */
static uint64_t reclaimable(struct folder *f)
{
	char *text = f->work->stat;
	const char *at;

	text[0] = '\n';
	if (read_in(f, "/memory.stat", text + 1, sizeof(f->work->stat) - 1) <= 0)
		return 0;
	at = strstr(text, f->version->file);
	return at ? number_of(at + strlen(f->version->file)) : 0;
}

static void add_folder(struct folder *f, struct tacho__memory_limits *out)
{
	struct tacho__memory_limit *l = &out->limit[out->count];
	uint64_t size = number_in(f, f->version->limit, UNLIMITED), used;
	uint64_t high = f->version->high ? number_in(f, f->version->high, UNLIMITED) : UNLIMITED;
	struct stat st;

	if (high < size)
		size = high; /* beyond this the kernel slows the program down */
	if (size >= UNLIMITED || out->count == TACHO__MEMORY_LIMITS ||
	    TACHO__SYS(SYS_newfstatat, AT_FDCWD, f->work->path, &st, 0, 0, 0))
		return;
	used = number_in(f, f->version->usage, 0);
	l->id = st.st_ino;
	l->size = size;
	l->left = used < size ? size - used : 0;
	if (l->left < size / 4) /* else no more needs to be known */
		l->left += reclaimable(f);
	if (l->left > size)
		l->left = size;
	out->count++;
}

/* The path in a line "4:memory:/path" or "0::/path", up to the end of the line; NULL if the
   line is about something else. Lists of controllers have commas. */
static const char *path_of(const char *line, int *unified)
{
	const char *names = strchr(line, ':'), *end, *at;

	end = names ? strchr(names + 1, ':') : NULL;
	if (!end)
		return NULL;
	*unified = end == names + 1;
	at = *unified ? names : strstr(names, "memory");
	if (!at || at > end ||
	    (!*unified && ((at[-1] != ':' && at[-1] != ',') || (at[6] != ':' && at[6] != ','))))
		return NULL;
	return end + 1;
}

/* The cgroup of that path and those around it. In a container the path may be one of the host,
   of which only this cgroup can be seen, at the mount. */
static void add_path(struct tacho__memory_work *work, const char *mount, int unified,
		     const char *path, size_t size, struct tacho__memory_limits *out)
{
	struct folder f = {.version = &versions[unified], .work = work};
	size_t root;
	struct tacho__text t;
	struct stat st;

	tacho__text_init(&t, work->path, sizeof(work->path) - FILE_NAME_ROOM);
	tacho__text_put(&t, mount);
	if (!unified)
		tacho__text_put(&t, "/memory");
	root = t.size;
	if (size > 1)
		tacho__text_put_n(&t, path, size);
	if (t.cut || strstr(work->path, "/..") ||
	    TACHO__SYS(SYS_newfstatat, AT_FDCWD, work->path, &st, 0, 0, 0))
		t.size = root;
	for (f.size = t.size; f.size >= root; f.size--) {
		if (f.size > root && f.size != t.size && work->path[f.size] != '/')
			continue;
		work->path[f.size] = 0;
		add_folder(&f, out);
	}
}

void tacho__memory_limits_of(struct tacho__memory_work *work, const char *mount,
			     struct tacho__memory_limits *out)
{
	const char *line = work->list;

	while (*line) {
		const char *end = strchr(line, '\n');
		size_t size = end ? (size_t)(end - line) : strlen(line);
		int unified = 0;
		const char *path = path_of(line, &unified);

		if (path && path <= line + size)
			add_path(work, mount, unified, path, (size_t)(line + size - path), out);
		line += size + (end != NULL);
	}
}

void tacho__memory_limits(struct tacho__memory_work *work, struct tacho__memory_limits *out)
{
	struct sysinfo machine;

	out->count = 0;
	if (tacho__read_small("/proc/self/cgroup", work->list, sizeof(work->list)) > 0)
		tacho__memory_limits_of(work, "/sys/fs/cgroup", out);
	if (out->count < TACHO__MEMORY_LIMITS && !TACHO__SYS(SYS_sysinfo, &machine, 0, 0, 0, 0, 0))
		out->limit[out->count++] = (struct tacho__memory_limit){
			.id = TACHO__MEMORY_OF_MACHINE,
			.size = (uint64_t)machine.totalram * machine.mem_unit,
			.left = UINT64_MAX,
		};
}
