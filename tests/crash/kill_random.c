/*
 * Kills victims at random times: threads that record as fast as they can into the
 * smallest box, threads that come and go, names, and in every second victim signal
 * handlers that record in the middle of it all; then reads what they left.
 *
 *	kill-random COUNT [SEED]
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"
#include "tacho.h"
#include "verify.h"
#include "victim.h"

#define WRITERS 3
#define LONGEST_US 60000u

static struct victim_folder folder;
static struct truth *truth;
static __thread uint32_t own = TRUTH_SEQUENCES;
static int with_signals;

static void on_signal(int sig)
{
	if (own < TRUTH_SEQUENCES)
		truth_put(truth, own + (sig == SIGUSR1 ? 1 : 2));
}

/* Two timers that interrupt this thread alone, at intervals that drift against each other. */
static void interrupt_me(timer_t timers[2])
{
	for (int i = 0; i < 2; i++) {
		struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID};
		struct itimerspec every = {{0, 70000 + 31000 * i}, {0, 50000}};

		event.sigev_signo = i ? SIGUSR2 : SIGUSR1;
		event._sigev_un._tid = gettid();
		if (timer_create(CLOCK_MONOTONIC, &event, &timers[i]) ||
		    timer_settime(timers[i], 0, &every, NULL))
			_exit(3);
	}
}

static void *write_records(void *arg)
{
	uint64_t count = (uint64_t)(uintptr_t)arg;
	uint32_t sequence = truth_take(truth, gettid());
	timer_t timers[2];

	if (sequence >= TRUTH_SEQUENCES)
		return (void *)1;
	own = sequence;
	if (with_signals)
		interrupt_me(timers);
	for (uint64_t i = 0; i < count; i++) {
		truth_wait(truth, sequence);
		truth_put(truth, sequence);
	}
	for (int i = 0; with_signals && i < 2; i++)
		timer_delete(timers[i]);
	truth->sequence[sequence].ended = TRUTH_ENDED;
	return NULL;
}

static int victim(struct truth *shared, void *arg)
{
	struct sigaction sa = {.sa_handler = on_signal};
	pthread_t thread;
	void *full = NULL;

	truth = shared;
	with_signals = arg != NULL;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	victim_record(truth, 1 << 20, 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_create(&thread, NULL, write_records, (void *)(uintptr_t)UINT64_MAX);
	for (unsigned i = 0; !full; i++) {
		pthread_create(&thread, NULL, write_records, (void *)(uintptr_t)(i * 37 % 500));
		pthread_join(thread, &full);
	}
	/* The writers go on. */
	for (;;)
		sleep(VICTIM_SECONDS);
	return 0;
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 50;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x2545f4914f6cdd1d;
	struct truth *shared = truth_map();
	uint64_t events = 0, nested = 0, state = seed;
	uint32_t most_threads = 0;

	pattern_init(400);
	for (unsigned i = 0; i < count; i++) {
		static struct verify v;
		unsigned flags = i & 1 ? VERIFY_SIGNALS : 0;
		unsigned us = (unsigned)(random_next(&state) % LONGEST_US);
		const char *why = NULL;
		char name[80];
		int status;
		pid_t pid;

		truth_clear(shared);
		victim_folder_make(&folder);
		pid = victim_start(victim, shared, flags ? "" : NULL);
		usleep(us);
		kill(pid, SIGKILL);
		status = victim_wait(pid);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			why = "it ended before it was killed";
		if (!why)
			why = victim_verify(&folder, shared, flags, &events);
		if (!why && shared->boxes && shared->box[0].path[0]) {
			v = (struct verify){.truth = shared, .end = TRUTH_SEQUENCES};
			v.flags = flags;
			if (!verify_file(&v, shared->box[0].path))
				nested += v.nested;
		}
		if (shared->used > most_threads)
			most_threads = shared->used;
		snprintf(name, sizeof(name), "kill %u of %u after %u us%s", i + 1, count, us,
			 flags ? ", with signal handlers" : "");
		report(name, why);
		victim_folder_remove(&folder);
	}
	report("signal handlers recorded in the middle of records",
	       nested || count < 10 ? NULL : "they did not");
	printf("%llu events read, %llu of nested handlers, up to %u threads\n",
	       (unsigned long long)events, (unsigned long long)nested, most_threads / 3);
	return report_status();
}
