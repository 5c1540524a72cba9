/*
 * What can be recorded here, and of a program: one check for each thing that recording rests
 * on, with what it means and what to do about it. For `tacho doctor`.
 */
#ifndef TACHO_DOCTOR_DOCTOR_H
#define TACHO_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "doctor/self.h"

enum tacho__check_state {
	TACHO__CHECK_OK,
	TACHO__CHECK_WARNING, /* something is less than it could be */
	TACHO__CHECK_CANNOT,  /* nothing can be recorded because of it */
	TACHO__CHECK_UNKNOWN, /* it could not be found out */
};

struct tacho__check {
	const char *name; /* one word; the same in all versions */
	enum tacho__check_state state;
	/* The fact: `number` when is_number, else `value`; "": there is none. */
	bool is_number, is_bytes;
	uint64_t number;
	char value[512];
	char means[768]; /* a sentence */
	char todo[512];	 /* a sentence; "": nothing */
};

struct tacho__checks {
	struct tacho__check *items;
	uint32_t count, capacity;
	bool failed; /* there was no memory for one */
};

struct tacho__check *tacho__check_add(struct tacho__checks *c, const char *name,
				      enum tacho__check_state state);
/* What was added may move when the next one is. */
__attribute__((format(printf, 2, 3))) void tacho__check_value(struct tacho__check *c,
							      const char *format, ...);
void tacho__check_number(struct tacho__check *c, uint64_t number);
void tacho__check_bytes(struct tacho__check *c, uint64_t bytes);
__attribute__((format(printf, 2, 3))) void tacho__check_means(struct tacho__check *c,
							      const char *format, ...);
__attribute__((format(printf, 2, 3))) void tacho__check_todo(struct tacho__check *c,
							     const char *format, ...);

/* machine.c: what recording needs of this machine, this user, this container. */
void tacho__doctor_machine(struct tacho__checks *c);

/* program.c: what can be seen of the program that `name` means to execvp(3). Nothing of
   it is executed. */
void tacho__doctor_program(struct tacho__checks *c, const char *name);

enum tacho__verdict { TACHO__VERDICT_OK, TACHO__VERDICT_DEGRADED, TACHO__VERDICT_CANNOT };

struct tacho__doctor {
	const char *command; /* NULL: none was given */
	struct tacho__checks machine, program, self;
	struct tacho__self ran;
	enum tacho__verdict verdict;
	unsigned warnings;
	char summary[1024]; /* a sentence */
};

/* All of it. 0 or -ENOMEM: some checks are missing. */
int tacho__doctor(struct tacho__doctor *d, const char *command);
void tacho__doctor_free(struct tacho__doctor *d);

#endif
