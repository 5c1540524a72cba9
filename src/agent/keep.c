#include "agent/keep.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct kept {
	struct kept *next; /* the one written after it */
	uint64_t bytes;
	uint32_t uid;
	dev_t device;
	ino_t inode;
	char path[];
};

struct tacho__keep {
	struct kept *oldest, *newest;
	uint32_t files, most_files;
	uint64_t bytes, most_bytes;
};

struct tacho__keep *tacho__keep_new(uint32_t files, uint64_t bytes)
{
	struct tacho__keep *k = calloc(1, sizeof(*k));

	if (k) {
		k->most_files = files;
		k->most_bytes = bytes;
	}
	return k;
}

/* The path is made absolute, so that a change of folder does not lead to another file. */
static struct kept *kept_new(const char *path, uint64_t bytes, uint32_t uid)
{
	char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
	size_t room = strlen(path) + (here ? strlen(here) + 1 : 0) + 1;
	struct kept *f = calloc(1, sizeof(*f) + room);
	struct stat st;

	if (f) {
		if (here) {
			strcpy(f->path, here);
			strcat(f->path, "/");
		}
		strcat(f->path, path);
		f->bytes = bytes;
		f->uid = uid;
		if (lstat(f->path, &st) || !S_ISREG(st.st_mode)) {
			free(f);
			f = NULL;
		} else {
			f->device = st.st_dev;
			f->inode = st.st_ino;
		}
	}
	free(here);
	return f;
}

/* Whether its path still leads to the file that was written. */
static bool is_same(const struct kept *f)
{
	struct stat st;

	return !lstat(f->path, &st) && S_ISREG(st.st_mode) && st.st_dev == f->device &&
	       st.st_ino == f->inode;
}

/* `at`: what leads to it. The newest is forgotten by who looks after k->newest. */
static void forget(struct tacho__keep *k, struct kept **at)
{
	struct kept *f = *at;

	*at = f->next;
	k->files--;
	k->bytes -= f->bytes;
	free(f);
}

static bool above(const struct tacho__keep *k)
{
	return (k->most_files && k->files > k->most_files) ||
	       (k->most_bytes && k->bytes > k->most_bytes);
}

/* Files that others took away must not make ours go. */
static void forget_gone(struct tacho__keep *k)
{
	struct kept **at = &k->oldest, *last = NULL;

	while (*at) {
		struct kept *f = *at;

		if (is_same(f)) {
			last = f;
			at = &f->next;
			continue;
		}
		forget(k, at);
	}
	k->newest = last;
}

/* What a user has of that of which there is too much. */
static uint64_t share(const struct tacho__keep *k, uint32_t uid)
{
	bool files = k->most_files && k->files > k->most_files;
	uint64_t sum = 0;

	for (const struct kept *f = k->oldest; f; f = f->next)
		if (f->uid == uid)
			sum += files ? 1 : f->bytes;
	return sum;
}

/* Leads to the oldest file of who has most; never to the newest of all. */
static struct kept **choose(struct tacho__keep *k)
{
	struct kept **chosen = &k->oldest;
	uint64_t most = 0;

	for (struct kept **at = &k->oldest; *at && *at != k->newest; at = &(*at)->next) {
		uint64_t has = (*at)->uid == (*chosen)->uid && most ? most : share(k, (*at)->uid);

		if (has > most) {
			most = has;
			chosen = at;
		}
	}
	return chosen;
}

unsigned tacho__keep_add(struct tacho__keep *k, const char *path, uint64_t bytes, uint32_t uid)
{
	struct kept *f = kept_new(path, bytes, uid);
	unsigned deleted = 0;

	if (!f)
		return 0;
	if (k->bytes > UINT64_MAX - bytes) {
		free(f);
		return 0;
	}
	if (k->newest)
		k->newest->next = f;
	else
		k->oldest = f;
	k->newest = f;
	k->files++;
	k->bytes += bytes;
	if (above(k))
		forget_gone(k);
	while (above(k) && k->oldest && k->oldest != k->newest) {
		struct kept **at = choose(k);

		deleted += is_same(*at) && !unlink((*at)->path);
		forget(k, at);
	}
	return deleted;
}

void tacho__keep_free(struct tacho__keep *k)
{
	if (!k)
		return;
	while (k->oldest)
		forget(k, &k->oldest);
	free(k);
}
