/*
 * Faults with locks: of threads, of files, and of those who keep them. The holder is the cause, and
 * not who waits, nor what the holder does with the same lock afterwards.
 */
#include "truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SHORT_NS 30000 /* for which healthy programs keep a lock */
#define QUICK_TAKES 4  /* of the lock, after it was kept for long */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t rooms[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int journal[2]; /* two descriptions of one file */
static int reading;

/* ------------------------------------------------------------------ who waits */

/* What waits for a lock notes it, if it waited at all. */
static void note_wait(const char *function, struct moment begin, struct moment got)
{
	if (got.at - begin.at > MS / 10)
		note_between(function, begin, got);
}

FAULT fault_wants_lock(void)
{
	struct moment begin = begin_moment(), got;

	pthread_mutex_lock(&table_lock);
	got = end_moment();
	pthread_mutex_unlock(&table_lock);
	note_wait("fault_wants_lock", begin, got);
}

FAULT fault_flock(void)
{
	struct moment begin = begin_moment(), got;

	flock(journal[0], LOCK_EX);
	got = end_moment();
	flock(journal[0], LOCK_UN);
	note_wait("fault_flock", begin, got);
}

static void record_lock(short how)
{
	struct flock l = {.l_type = how, .l_whence = SEEK_SET, .l_len = 1};

	must(!fcntl(journal[0], F_SETLKW, &l), "fcntl");
}

FAULT fault_fcntl(void)
{
	struct moment begin = begin_moment(), got;

	record_lock(F_WRLCK);
	got = end_moment();
	record_lock(F_UNLCK);
	note_wait("fault_fcntl", begin, got);
}

/* ------------------------------------------------- threads that serve and hold it */

FAULT holds_lock_asleep(void)
{
	pthread_mutex_lock(&table_lock);
	SLEEP(options.size_ns);
	pthread_mutex_unlock(&table_lock);
	STAY;
}

FAULT holds_lock_computing(void)
{
	pthread_mutex_lock(&table_lock);
	COMPUTE(options.size_ns);
	pthread_mutex_unlock(&table_lock);
	STAY;
}

TAIL(fault_wants_lock)
TAIL(fault_flock)
TAIL(fault_fcntl)
TAIL(holds_lock_asleep)
TAIL(holds_lock_computing)

#define WANTS call_fault_wants_lock, tail_to_fault_wants_lock, 1

const struct fault lock_faults[] = {
	{"lock-sleep", NULL, WANTS},
	{"lock-cpu", NULL, WANTS},
	{"handover-sleep", NULL, WANTS},
	{"handover-cpu", NULL, WANTS},
	{"healthy-locks", NULL, WANTS},
	{"own-sleep", NULL, call_holds_lock_asleep, tail_to_holds_lock_asleep, 0},
	{"own-sleep", NULL, WANTS},
	{"own-cpu", NULL, call_holds_lock_computing, tail_to_holds_lock_computing, 0},
	{"own-cpu", NULL, WANTS},
	{"flock", NULL, call_fault_flock, tail_to_fault_flock, 1},
	{"fcntl", NULL, call_fault_fcntl, tail_to_fault_fcntl, 1},
	{NULL, NULL, NULL, NULL, 0},
};

/* ------------------------------------------------------------- who keeps it */

FAULT keeps_lock_asleep(void)
{
	pthread_mutex_lock(&table_lock);
	SLEEP(options.size_ns);
	pthread_mutex_unlock(&table_lock);
	STAY;
}

FAULT keeps_lock_computing(void)
{
	pthread_mutex_lock(&table_lock);
	COMPUTE(options.size_ns);
	pthread_mutex_unlock(&table_lock);
	STAY;
}

FAULT keeps_journal(void)
{
	flock(journal[1], LOCK_EX);
	SLEEP(options.size_ns);
	flock(journal[1], LOCK_UN);
	STAY;
}

FAULT keeps_record(void)
{
	record_lock(F_WRLCK);
	SLEEP(options.size_ns);
	record_lock(F_UNLCK);
	STAY;
}

/* As long as anybody may keep it. */
FAULT touches_lock(void)
{
	pthread_mutex_lock(&table_lock);
	COMPUTE(SHORT_NS);
	pthread_mutex_unlock(&table_lock);
	STAY;
}

static int handed_over(void)
{
	return fault_is("handover-sleep") || fault_is("handover-cpu");
}

static void keep_once(void)
{
	if (fault_is("lock-sleep") || fault_is("handover-sleep"))
		keeps_lock_asleep();
	else if (fault_is("lock-cpu") || fault_is("handover-cpu"))
		keeps_lock_computing();
	else if (fault_is("healthy-locks"))
		touches_lock();
	else if (fault_is("fcntl"))
		keeps_record();
	else
		keeps_journal();
	/* At once, before a waiter may have run, and then some more. */
	for (int i = 0; handed_over() && i < QUICK_TAKES; i++) {
		touches_lock();
		SLEEP(MS / 5);
	}
}

static void *keeper(void *arg)
{
	helper_thread();
	SLEEP(options.period_ns / 2);
	while (!over()) {
		keep_once();
		SLEEP(options.period_ns > options.size_ns ? options.period_ns - options.size_ns
							  : MS);
	}
	served();
	return arg;
}

/* A record lock belongs to a process: another one has to keep it. */
static void keep_in_a_child(void)
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (pid)
		return;
	forked();
	keeper(NULL);
	_exit(0);
}

void start_lock_helpers(void)
{
	static const char *const kept[] = {"lock-sleep",   "lock-cpu",	    "handover-sleep",
					   "handover-cpu", "healthy-locks", "flock"};
	char path[] = "locked-XXXXXX";
	pthread_t thread;

	journal[0] = mkostemp(path, O_CLOEXEC);
	journal[1] = open(path, O_RDWR | O_CLOEXEC);
	must(journal[0] >= 0 && journal[1] >= 0 && !unlink(path), path);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (fault_is(kept[i]))
			must(!pthread_create(&thread, NULL, keeper, NULL), "pthread_create");
	if (fault_is("fcntl"))
		keep_in_a_child();
}

/* ---------------------------------------------------------- from which none comes back */

FAULT fault_deadlock(void)
{
	pthread_mutex_lock(&rooms[0]);
	SLEEP(30 * MS);
	pthread_mutex_lock(&rooms[1]);
	STAY;
}

FAULT other_side(void)
{
	pthread_mutex_lock(&rooms[1]);
	SLEEP(30 * MS);
	pthread_mutex_lock(&rooms[0]);
	STAY;
}

static void *other_room(void *arg)
{
	other_side();
	return arg;
}

void end_in_deadlock(void)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, other_room, NULL), "pthread_create");
	fault_deadlock();
}

/* Nobody writes into that pipe. */
FAULT fault_reads_holding(void)
{
	int p[2];
	char c;

	must(!pipe2(p, O_CLOEXEC), "pipe");
	pthread_mutex_lock(&table_lock);
	__atomic_store_n(&reading, 1, __ATOMIC_RELAXED);
	must(read(p[0], &c, 1) < 0, "hang");
	pthread_mutex_unlock(&table_lock);
}

FAULT waits_behind_reader(void)
{
	pthread_mutex_lock(&table_lock);
	STAY;
}

static void *reader(void *arg)
{
	fault_reads_holding();
	return arg;
}

void end_behind_reader(void)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, reader, NULL), "pthread_create");
	while (!__atomic_load_n(&reading, __ATOMIC_RELAXED))
		SLEEP(MS);
	waits_behind_reader();
}
