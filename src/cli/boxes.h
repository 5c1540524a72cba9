/*
 * Where boxes lie and which there are.
 *
 * Folders: $TACHO_BOX_DIR if set, else /dev/shm/tacho-UID and
 * $XDG_RUNTIME_DIR/tacho; always /tmp/tacho-UID, where processes that could not
 * record leave a note of why. Root may ask for those of all users. A folder that
 * is a symbolic link or belongs to someone else is not searched.
 */
#ifndef TACHO_CLI_BOXES_H
#define TACHO_CLI_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tacho_read.h"

enum box_folder_state {
	BOX_FOLDER_SEARCHED,
	BOX_FOLDER_ABSENT,  /* there is none, which is usual */
	BOX_FOLDER_SKIPPED, /* reason says why */
};

struct box_folder {
	char *path;
	enum box_folder_state state;
	bool notes; /* only notes of processes that could not record are made here */
	char reason[160];
};

/* A file with the name of a box: PID-STARTTIME-N.box. */
struct box_file {
	char *path;
	uint32_t pid;
	uint64_t start_time;
	uint32_t number;
	bool note;
};

struct box_list {
	struct box_folder *folders;
	size_t folder_count;
	struct box_file *files; /* by pid, then oldest first */
	size_t file_count;
	bool quiet;
};

/* Returns 0 or -ENOMEM. Says which folders had to be skipped. */
int box_list_read(struct box_list *list, bool all_users);
/* The same without a word, for those who look again and again. */
int box_list_read_quietly(struct box_list *list, bool all_users);
void box_list_free(struct box_list *list);

/* The newest box of a process, a real one before a note; NULL: none. */
const struct box_file *box_list_find(const struct box_list *list, uint32_t pid);

/* Takes PID-STARTTIME-N.box apart; `path` may have folders before it. */
bool box_name_parse(const char *path, struct box_file *out);

struct stat;
/* Two that make a trace file of one box at once would both write one. A descriptor whose
   closing ends the lock, or -errno; -EWOULDBLOCK: another has it. */
int box_lock(const char *path, struct stat *st);
/* Deletes the box if it is still the file that was read; else says why not. */
bool box_remove(const char *path, const struct stat *was);

/* Whether a process with this id and start time runs. */
enum tacho_alive box_process_runs(uint32_t pid, uint64_t start_time);
/* Its name now, or "" */
const char *box_process_comm(uint32_t pid, char *out, size_t size);

#endif
