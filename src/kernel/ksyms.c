#include "kernel/ksyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read/memory.h"

#define SYMBOLS_MAX (4u << 20)
#define NAMES_MAX (256u << 20)
#define PIECE (256u << 10)
#define LINE_MAX_BYTES 1024u /* longer ones are left out */
/* Behind the last function there is nothing that could be told from it. */
#define LAST_SIZE 65536u

struct symbol {
	uint64_t address;
	uint32_t name; /* offset */
};

struct tacho__ksyms {
	struct symbol *symbols;
	uint32_t count, capacity;
	char *names;
	uint32_t name_bytes, name_capacity;
	bool hidden; /* there was an address of 0 */
};

static int grow(struct tacho__ksyms *k, size_t name_size)
{
	if (k->count == SYMBOLS_MAX || name_size > NAMES_MAX - k->name_bytes)
		return -EFBIG;
	if (TACHO__GROW(k->symbols, k->capacity, k->count + 1) ||
	    TACHO__GROW(k->names, k->name_capacity, k->name_bytes + (uint32_t)name_size))
		return -ENOMEM;
	return 0;
}

/* "ffffffff81000000 T name" or "... t name\t[module]" */
static int take_line(struct tacho__ksyms *k, char *line)
{
	char *p, *tab;
	uint64_t address = strtoull(line, &p, 16);
	size_t size;
	int err;

	if (p == line || p[0] != ' ' || !p[1] || p[2] != ' ' || !strchr("tTwWi", p[1]))
		return 0;
	if (!address) {
		k->hidden = true;
		return 0;
	}
	p += 3;
	tab = strchr(p, '\t');
	if (tab)
		*tab = ' ';
	size = strlen(p) + 1;
	err = grow(k, size);
	if (err)
		return err;
	k->symbols[k->count++] = (struct symbol){address, k->name_bytes};
	memcpy(k->names + k->name_bytes, p, size);
	k->name_bytes += (uint32_t)size;
	return 0;
}

static int take_lines(struct tacho__ksyms *k, int fd, char *buffer)
{
	size_t have = 0;
	ssize_t n;
	int err = 0;

	while ((n = read(fd, buffer + have, PIECE)) > 0 || (n < 0 && errno == EINTR)) {
		char *line = buffer, *end;

		if (n < 0)
			continue;
		have += (size_t)n;
		while (!err && (end = memchr(line, '\n', have - (size_t)(line - buffer)))) {
			*end = 0;
			err = take_line(k, line);
			line = end + 1;
		}
		if (err)
			return err;
		have -= (size_t)(line - buffer);
		if (have > LINE_MAX_BYTES)
			have = 0;
		memmove(buffer, line, have);
	}
	return n < 0 ? -errno : 0;
}

static int compare(const void *va, const void *vb)
{
	const struct symbol *a = va, *b = vb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	/* Of several names for one place the one that comes first in the file. */
	return a->name < b->name ? -1 : a->name > b->name;
}

int tacho__ksyms_load(struct tacho__ksyms **out, const char *path)
{
	int fd = open(path ? path : "/proc/kallsyms", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct tacho__ksyms *k;
	char *buffer;
	int err;

	if (fd < 0)
		return -errno;
	k = calloc(1, sizeof(*k));
	buffer = malloc(PIECE + LINE_MAX_BYTES);
	err = k && buffer ? take_lines(k, fd, buffer) : -ENOMEM;
	free(buffer);
	close(fd);
	if (!err && !k->count)
		err = k->hidden ? -EACCES : -ENODATA;
	if (err) {
		tacho__ksyms_free(k);
		return err;
	}
	qsort(k->symbols, k->count, sizeof(*k->symbols), compare);
	*out = k;
	return 0;
}

const char *tacho__ksyms_name(const struct tacho__ksyms *k, uint64_t address)
{
	uint32_t low = 0, high = k->count;
	uint64_t begin;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (k->symbols[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || (low == k->count && address - k->symbols[low - 1].address >= LAST_SIZE))
		return NULL;
	begin = k->symbols[--low].address;
	while (low && k->symbols[low - 1].address == begin)
		low--;
	return k->names + k->symbols[low].name;
}

void tacho__ksyms_free(struct tacho__ksyms *k)
{
	if (!k)
		return;
	free(k->symbols);
	free(k->names);
	free(k);
}
