/*
 * Bytes at offsets: what a box, a trace file and a file in memory have in common.
 * Nothing else in this folder knows where bytes come from, but open.c.
 */
#ifndef TACHO_READ_INPUT_H
#define TACHO_READ_INPUT_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rights.h"

/* WASI has none: there it is the number that Linux has. */
#ifndef ENODATA
#define ENODATA 61
#endif

struct tacho__input {
	const char *path; /* "" when there is none */
	uint64_t begin;	  /* of this in the file */
	uint64_t size;
	/* Bytes that somebody pays for. A sparse file may be of any size for nothing, so
	   this and not the size bounds what is held of it. */
	uint64_t backed;
	uint32_t uid; /* of who owns the file */
	/* Of that user; of a box, no more than its process has. */
	struct tacho__rights rights;
	/* All of [offset, offset + size), which lies inside the input; 0 or -errno. */
	int (*read_at)(struct tacho__input *in, uint64_t offset, void *to, size_t size);
	void (*close)(struct tacho__input *in);
	uint32_t holders; /* parts that read from it */
};

/* 0, -ENODATA when the bytes are not (or no longer) there, or what read_at says. */
int tacho__input_read(struct tacho__input *in, uint64_t offset, void *to, size_t size);

/* A file that stays the caller's, who closes it; `size` is what it is now. 0 or -errno. open.c. */
struct tacho__fd_input {
	struct tacho__input base;
	int fd;
};
int tacho__input_fd(struct tacho__fd_input *in, int fd);
/*
 * A descriptor and what it is of: a file, or a folder; or a negative errno, -EINVAL for what is
 * neither. That is known before anything is opened: devices do things when they are. Nobody is led
 * elsewhere by a link that is not theirs: -ELOOP. open.c.
 */
struct stat;
int tacho__open_any(const char *path, struct stat *st);
/*
 * Where every user can make folders, a user may also mount a file system on theirs, which can keep
 * whoever asks it for anything waiting for ever. So what is in a user's folder of boxes is opened
 * through these: as open(2), openat(2) and lstat(2), but for -1 with EXDEV where something is mounted
 * on the folder of boxes, or on what is in it. open.c.
 */
int tacho__open_box_path(const char *path, int flags);
int tacho__openat_same_mount(int folder, const char *name, int flags);
int tacho__lstat_box_path(const char *path, struct stat *st);
/* Takes from `r` what the process has not got that the name of a box tells (PID-STARTTIME-N.box), if it
   runs. Only who owns the folder can have given it that name; what is in it, the process itself. open.c. */
void tacho__rights_of_box(struct tacho__rights *r, const char *path);
/* All of it: 0, -ENODATA: the file ends before, or -errno. open.c. */
int tacho__read_at(int fd, uint64_t offset, void *to, size_t size);

/* Bytes [from, from + size) of `whole`, which is closed with the last of its parts. NULL: no
   memory. */
struct tacho__input *tacho__input_part(struct tacho__input *whole, uint64_t from, uint64_t size);
/* Holds `whole` while parts of it are made. */
void tacho__input_hold(struct tacho__input *whole);
void tacho__input_release(struct tacho__input *whole);

/* The bytes stay the caller's. NULL: no memory. */
struct tacho__input *tacho__input_memory(const void *data, size_t size);

#endif
