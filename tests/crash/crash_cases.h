/* Ways to crash, for crash_handler.c. */
#ifndef TACHO_TESTS_CRASH_CRASH_CASES_H
#define TACHO_TESTS_CRASH_CRASH_CASES_H

#include <stdint.h>

#include "truth.h"

/* In truth->value: what the crash record must say, and what the program's own handler saw. */
enum case_value {
	CASE_CALLER,  /* return address of the function that crashes */
	CASE_ADDRESS, /* of the fault */
	CASE_SEEN_SIGNAL,
	CASE_SEEN_ADDRESS,
	CASE_SEEN_MASK,
	CASE_SEEN_ERRNO,
	CASE_TIMES, /* that the program's handler ran */
};

enum case_flag {
	CASE_HAS_CALLER = 1, /* the second frame is CASE_CALLER */
	CASE_HAS_ADDRESS = 2,
	CASE_IN_FUNCTION = 4,	/* the first frame is in `run` */
	CASE_DEEP = 8,		/* the stack has more frames than are kept */
	CASE_OTHERS_RUN = 16,	/* other threads record, or this one goes on afterwards */
	CASE_NO_FILE = 32,	/* none can be written */
	CASE_NO_CRASH = 64,	/* nothing is noted: the program ignores the signal */
	CASE_MARK = 128,	/* a register holds CASE_MARK_VALUE */
	CASE_FIND_CALLER = 256, /* some frame is CASE_CALLER */
	CASE_AGAIN = 512,	/* it crashes several times; the file is of the last */
	CASE_CHILD = 1024,	/* it is a child, with the second box, that crashes at last */
};
#define CASE_MARK_VALUE 0x7461636f68ull

struct crash_case {
	const char *name;
	void (*run)(struct truth *truth);
	void (*before)(struct truth *truth); /* before the crash handler is installed, or NULL */
	int signal;			     /* in the crash record */
	int code;			     /* si_code; 0: not looked at */
	unsigned flags;
	const char *path; /* of the crash file; NULL: one that can be written */
	unsigned times;	  /* how often it is run; 0: once */
};

extern const struct crash_case crash_cases[];
extern const unsigned crash_case_count;

#endif
