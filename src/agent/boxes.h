/*
 * Where boxes lie and which there are.
 *
 * Folders: $TACHO_BOX_DIR if set, else /dev/shm/tacho-UID, $XDG_RUNTIME_DIR/tacho and
 * /run/user/UID/tacho, and /dev/shm/tacho-UID.NUMBER; always /tmp/tacho-UID, where processes that
 * could not record leave a note of why. Root may ask for those of all users. A folder that
 * is a symbolic link or belongs to someone else is not searched.
 *
 * Every user can make any number of folders in /dev/shm and /tmp. So what is looked at there is limited;
 * folders that are where they should be are found without looking.
 */
#ifndef TACHO_AGENT_BOXES_H
#define TACHO_AGENT_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tacho_read.h"

enum tacho__box_folder_state {
	TACHO__BOX_FOLDER_SEARCHED,
	TACHO__BOX_FOLDER_ABSENT,  /* there is none, which is usual */
	TACHO__BOX_FOLDER_SKIPPED, /* reason says why */
};

struct tacho__box_folder {
	char *path;
	enum tacho__box_folder_state state;
	uid_t owner;
	size_t files; /* that were listed */
	bool notes;   /* only notes of processes that could not record are made here */
	bool cut;     /* it holds more boxes than are listed */
	char reason[160];
};

/* A file with the name of a box: PID-STARTTIME-N.box. */
struct tacho__box_file {
	char *path;
	uint32_t pid;
	uint64_t start_time;
	uint32_t number;
	uid_t owner; /* of its folder: nobody else can have put it there, but root */
	bool note;
};

/* Folders that are not searched: mostly they are not of the user whom they name. */
struct tacho__box_odd {
	size_t count;
	char *path; /* of the first one */
	char reason[160];
};

struct tacho__box_list {
	struct tacho__box_folder *folders;
	size_t folder_count;
	struct tacho__box_file *files; /* by pid, then oldest first */
	size_t file_count;
	struct tacho__box_odd odd[2]; /* that name this user; that name others */
	const char *cut;	      /* a folder that holds more than was looked at, or NULL */
	uint32_t maps_read;
	bool failed; /* there was no memory for one of them; no others are added */
};

/* Returns 0 or -ENOMEM. */
int tacho__box_list_read(struct tacho__box_list *list, bool all_users);
/* What was not searched, or not to its end: a sentence for each reason. `others`: also of folders that
   name other users. */
void tacho__box_list_tell(const struct tacho__box_list *list, bool others,
			  void (*tell)(void *arg, const char *sentence), void *arg);
void tacho__box_list_free(struct tacho__box_list *list);
/* Makes this user's folder for boxes, as the first box would, and says where: so that it can be
   waited for there. The other deletes such folders where they are empty; recorders make them
   again. */
void tacho__box_folder_make(char *path, size_t size);
void tacho__box_folders_tidy(bool all_users);

/* The newest box of a process, a real one before a note; NULL: none. */
const struct tacho__box_file *tacho__box_list_find(const struct tacho__box_list *list,
						   uint32_t pid);

/* A box of somebody else's that says to be of the same process, which is gone, so that nobody knows
   whose it was; NULL: none. */
const struct tacho__box_file *tacho__box_list_rival(const struct tacho__box_list *list,
						    const struct tacho__box_file *file);

/* Takes PID-STARTTIME-N.box apart; `path` may have folders before it. */
bool tacho__box_name_parse(const char *path, struct tacho__box_file *out);

struct stat;
/* Whether the file is still there, and no other in its place; where it cannot be told, it is. */
bool tacho__box_is_there(const char *path, ino_t inode);
/* Two that make a trace file of one box at once would both write one. A descriptor whose
   closing ends the lock, or -errno; -EWOULDBLOCK: another has it. */
int tacho__box_lock(const char *path, struct stat *st);
/* Deletes the box if it is still the file that was read. 0, or a negative errno with a sentence in
   `message`. */
int tacho__box_remove(const char *path, const struct stat *was, char *message, size_t message_size);

/* Whether a process with this id and start time runs. */
enum tacho_alive tacho__box_process_runs(uint32_t pid, uint64_t start_time);
/* Its arguments, with spaces between, and its parent; "" and 0: it does not run. `keep`: credentials
   among them too. */
const char *tacho__box_process_line(uint32_t pid, char *out, size_t size, bool keep,
				    uint32_t *parent);
/* Its name now, or "" */
const char *tacho__box_process_comm(uint32_t pid, char *out, size_t size);

#endif
