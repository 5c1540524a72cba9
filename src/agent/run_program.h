/*
 * A command before it is started: where it is, and whether the hooks can enter it.
 */
#ifndef TACHO_AGENT_RUN_PROGRAM_H
#define TACHO_AGENT_RUN_PROGRAM_H

#include <limits.h>
#include <stddef.h>

#include "base/libc_kind.h"

/* Why the hooks cannot enter a program. It runs all the same. */
enum tacho__hindrance {
	TACHO__HINDRANCE_NONE,
	TACHO__HINDRANCE_STATIC,  /* no dynamic linker that would load them */
	TACHO__HINDRANCE_SETID,	  /* set-user-id, set-group-id or file capabilities */
	TACHO__HINDRANCE_MACHINE, /* made for another architecture */
	TACHO__HINDRANCE_LIBC,	  /* made for a C library that there is no recording library for */
};

struct tacho__program {
	char path[PATH_MAX]; /* what execve(2) gets */
	char elf[PATH_MAX];  /* what the kernel loads: path, or the interpreter of a script */
	enum tacho__hindrance hindrance;
	unsigned machine;	    /* ELF e_machine, 0: not known */
	unsigned bits;		    /* 32, 64; 0: not known */
	char linker[PATH_MAX];	    /* the dynamic linker it asks for, or "" */
	enum tacho__libc_kind libc; /* that it runs on, by its linker; our own without one */
	int is_text;		    /* neither ELF nor "#!": the shell runs it, as execvp(3) does */
};

/*
 * Finds `name` as execvp(3) does. 0; or -ENOENT when it is not there, -EACCES and others when
 * it cannot be executed, with one sentence in `message`.
 */
int tacho__program_find(struct tacho__program *program, const char *name, char *message,
			size_t message_size);

/* The sentence for an execve(2) of it that failed with `error`. */
void tacho__program_explain(const struct tacho__program *program, int error, char *message,
			    size_t message_size);

/* "x86-64", "arm64", ... or NULL. */
const char *tacho__machine_name(unsigned machine);

/* The C library that tacho itself was built for. */
#if defined(__GLIBC__)
#define TACHO__OWN_LIBC TACHO__GLIBC
#else
#define TACHO__OWN_LIBC TACHO__MUSL
#endif

/*
 * libtacho-preload.so: $TACHO_PRELOAD, else the one that was built or installed with this
 * program. 0 or a negative errno with one sentence in `message`.
 */
int tacho__preload_find(char *path, size_t path_size, char *message, size_t message_size);

#define TACHO__NO_MUSL                                                                       \
	"tacho was built without the library for musl: build it where musl-gcc is (Debian: " \
	"musl-tools)."

/* The library for programs of another C library: it lies beside the one in `path`, which it
   replaces. 0; or -ENOENT when it is not there. */
int tacho__preload_for(enum tacho__libc_kind libc, char *path, size_t path_size);

#endif
