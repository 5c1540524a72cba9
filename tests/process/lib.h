/*
 * What the tests of this folder share: subjects that record and end as they like,
 * and their boxes, read back.
 *
 * A test program never records itself. It forks a subject for each thing that it
 * wants to see, waits for its end, and opens the boxes that were left in a folder
 * of this test's own. Checks may be made in the subject as well: a failure is kept in
 * memory that all processes of the test share.
 *
 * Records are told apart by mark(): each carries the process and the writer that
 * stored it and a number that counts up without holes.
 */
#ifndef TESTS_PROCESS_LIB_H
#define TESTS_PROCESS_LIB_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tacho.h"
#include "tacho_read.h"

struct test {
	const char *name;
	void (*run)(void);
};
/* Runs all tests, or those whose names contain one of the arguments. */
int tests_main(int argc, char **argv, const struct test *tests, size_t count);

/* Counts a failure unless `good`; the first one is shown. Returns `good`. */
int check_at(int good, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
#define CHECK(good, ...) check_at(!!(good), __FILE__, __LINE__, __VA_ARGS__)
/* The test cannot be made here. Returns, so `return skip(...)` where nothing follows. */
void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
int failed(void);

/* The folder for boxes of this test; TACHO_BOX_DIR says it too. */
const char *box_dir(void);
/* A folder that is on no tmpfs of the test's and can be mounted on; removed after the test. */
const char *mount_point(void);
/* 1 when the program runs under qemu-user, where some of Linux is missing. */
int emulated(void);

/* ------------------------------------------------------------ subjects */

/* Forks, runs `body` in the child, which then ends with _exit(0). */
pid_t subject_start(void (*body)(void *), void *arg);
/* Waits for the end (at most two minutes, then kills); the status of waitpid(2). */
int subject_wait(pid_t pid);
/* Both, and checks that it ended with status 0. */
void subject(void (*body)(void *), void *arg);
/* Checks that waitpid gave the normal end with `code`. */
void check_exit(int status, int code);
/* Ends this process in the way that leaves its box. */
void die(void) __attribute__((noreturn));
/* tacho_start that must succeed. */
void start(void);
void start_with(const struct tacho_options *options);
void sleep_ms(unsigned ms);

/* A gate in shared memory for subjects that must wait for one another. */
struct gate;
struct gate *gate_new(void);
void gate_open(struct gate *gate);
int gate_is_open(struct gate *gate);
void gate_pass(struct gate *gate); /* waits, at most a minute */
/* A page that all processes of the test share, emptied before each test. */
uint64_t *shared(void);

/* --------------------------------------------------------------- marks */

#define MARK_WRITERS 16384u
/* Records a wake of the task that stands for (this process, writer, number). */
void mark(uint32_t writer, uint32_t number);
uint64_t mark_value(uint32_t pid, uint32_t writer, uint32_t number);

struct tally {
	uint64_t events; /* all but RESUME */
	uint64_t marks;
	uint64_t foreign;	   /* marks of another process */
	uint64_t disorder;	   /* marks that are not one more than the one before */
	uint64_t missing, dropped; /* what RESUME says */
	uint64_t streams;	   /* marks outside of stream 0 */
	uint64_t mixed;		   /* marks of a writer on another thread than those before */
	uint32_t writers;	   /* that left marks */
	uint32_t first[MARK_WRITERS], last[MARK_WRITERS], count[MARK_WRITERS];
	uint32_t thread[MARK_WRITERS];
};

/* --------------------------------------------------------------- boxes */

struct box {
	char path[512];
	int pid;
	int n;			     /* 0, or higher for a later box of the same process */
	struct tacho_reader *reader; /* NULL: `error` and `message` say why */
	int error;
	char message[512];
};
#define BOXES_MAX 64
struct boxes {
	struct box box[BOXES_MAX];
	size_t count;
};
/* All boxes in the folder, in the order of pid and n. Close before opening others. */
struct boxes *boxes_open(const char *dir);
void boxes_close(void);
struct box *box_of(pid_t pid, int n);
/* The only box there is; a failure and NULL otherwise. */
struct box *the_box(void);
const struct tacho_process *process_of(const struct box *box);

/* Reads all events of the box. The result is good until the next call. */
const struct tally *tally(struct box *box);
/* The same, and checks: `marks` of this process in all, no hole, nothing foreign, no problem
   in the box, nothing dropped. */
const struct tally *tally_whole(struct box *box, uint64_t marks);
/* Checks that writer `w` left the numbers 0 to count - 1 and no others. */
void check_writer(const struct tally *t, uint32_t writer, uint32_t count);
void check_no_problem(const struct box *box);
/* A counter of losses by its stable name. */
uint64_t loss(const struct box *box, const char *name);
/* Name of a definition, "" when there is none. */
const char *name_of(const struct box *box, uint32_t id);
/* Output of the tacho program (TACHO_BIN) for `arguments`; NULL when there is none. */
const char *cli(const char *arguments);
/* How many entries /proc/self/fd, /proc/self/task have. */
unsigned count_entries(const char *dir);

#endif
