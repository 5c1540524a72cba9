/*
 * The folder of segments: whose it is, what its files are called, how much they may take.
 *
 * A file ".tacho-service" in the folder names the service; the agent that writes there holds a
 * lock on it, which ends with the agent. A segment is called
 *
 *	tacho-SERVICE-20261115T133200.123Z-PID-000001.tacho
 *
 * after the time (UTC) at which it was begun, the process, and its number in the process's
 * row, so that names sort by time. While it is written, ".part" follows.
 *
 * Whatever else lies in the folder is left alone. Only what has such a name, is a regular
 * file, and says in its META that it is that segment, is ever deleted.
 */
#ifndef TACHO_AGENT_SEGMENT_FOLDER_H
#define TACHO_AGENT_SEGMENT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/segment_blocks.h"

#define TACHO__SERVICE_FILE ".tacho-service"
#define TACHO__PART ".part"
#define TACHO__SEGMENT_NAME_MAX 200u

struct tacho__folder {
	char *path;
	char *service;
	char prefix[96]; /* "tacho-SERVICE-" */
	int dir;	 /* -1: it is gone */
	int lock;
	uint64_t max_bytes; /* 0: no cap */
	uint64_t total;	    /* bytes of all segments, also of those being written */
	uint64_t written;   /* bytes, so far */
};

/* -EBUSY, -EPERM and others, with one sentence; nothing was changed then. */
int tacho__folder_take(struct tacho__folder *f, const char *path, const char *service,
		       uint64_t max_bytes, char *message, size_t message_size);
void tacho__folder_release(struct tacho__folder *f);
/*
 * Is it still there? A folder that was deleted is taken again once there is one at its path; it
 * is not made again, for it may be a disk that is not mounted. 0 or -errno.
 */
int tacho__folder_check(struct tacho__folder *f);

struct tacho__folder_file {
	char name[TACHO__SEGMENT_NAME_MAX];
	uint64_t size;
	uint32_t pid;
	uint64_t number;
	bool part;
};
struct tacho__folder_list {
	struct tacho__folder_file *items;
	size_t count, capacity;
};
/* All segments by their names, sorted; counts their bytes anew. 0 or -errno. */
int tacho__folder_list(struct tacho__folder *f, struct tacho__folder_list *list);
void tacho__folder_list_free(struct tacho__folder_list *list);

/* Of a segment that begins now, with ".part". */
void tacho__folder_name(const struct tacho__folder *f, char name[TACHO__SEGMENT_NAME_MAX],
			uint32_t pid, uint64_t number);

/*
 * The newest segment of the process, finished or not: its name in `name`, its number in
 * *number. -ENOENT: there is none.
 */
int tacho__folder_newest(struct tacho__folder *f, const struct tacho__identity *identity,
			 char name[TACHO__SEGMENT_NAME_MAX], uint64_t *number);

/*
 * Deletes the oldest finished segments until all that is there fits under the cap; those that
 * `spared` names only when it cannot be helped. true: it fits.
 */
bool tacho__folder_fit(struct tacho__folder *f, bool (*spared)(void *arg, const char *name),
		       void *arg);

#endif
