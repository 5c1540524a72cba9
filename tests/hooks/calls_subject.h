/* Between the parts of the program that calls.c runs. */
#ifndef TESTS_HOOKS_CALLS_SUBJECT_H
#define TESTS_HOOKS_CALLS_SUBJECT_H

#include <stdint.h>

uint64_t now_ns(void);
void need(int good, const char *what);
void turn(void);
void done(const char *name, uint64_t since, long number, const char *path, void *at);
const char *in_folder(const char *name);

/* calls_answers.c: every hooked call once, good and bad, and what it answers. */
void answers(void);
/* Finds a library by its name alone, which depends on who asks. */
void search(void);
/* A wait for io_uring through syscall(), and one through liburing. */
void uring(void);
void liburing(void);
/* calls_transfers.c: this many uses each of descriptors that block, and that do not. */
#define TRANSFERS_USES 100
void transfers(void);
/* What a read of nothing costs, on a thread of a loop and on another. */
void cost(void);

#endif
