/*
 * The window is the same span of time for all threads: what threads recorded a moment
 * ago, each into a small chunk, is there however much another thread records, as
 * long as that is a small part of the box.
 *
 *	window
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"
#include "tacho.h"
#include "verify.h"
#include "victim.h"

#define YOUNG 3	    /* threads whose records must be there */
#define CHUNK 2700u /* records that fill a whole chunk, about */
#define SHORT 100u  /* records that a small chunk holds */
#define ROUNDS_FROM 5u
#define ROUNDS_TO 60u

/* A short thread and a whole chunk of the busy one in turns, then it is killed. */
static int victim(struct truth *truth, void *arg)
{
	unsigned rounds = *(unsigned *)arg;
	uint32_t busy;

	victim_record(truth, 1 << 20, 0);
	busy = truth_take(truth, gettid());
	for (unsigned i = 0; i < rounds; i++) {
		struct victim_thread t;

		victim_thread_start(&t, truth, SHORT);
		victim_thread_join(&t);
		if (i + YOUNG >= rounds)
			truth->sequence[truth->used - 3].ended = TRUTH_ENDED_LATELY;
		for (unsigned k = 0; k < CHUNK; k++)
			truth_put(truth, busy);
	}
	kill(getpid(), SIGKILL);
	return 1;
}

int main(void)
{
	struct truth *truth = truth_map();
	struct victim_folder folder;
	const char *why = NULL;
	char text[700];

	pattern_init(100);
	for (unsigned rounds = ROUNDS_FROM; !why && rounds <= ROUNDS_TO; rounds++) {
		truth_clear(truth);
		victim_folder_make(&folder);
		victim_wait(victim_start(victim, truth, &rounds));
		why = victim_verify(&folder, truth, 0, NULL);
		victim_folder_remove(&folder);
		if (why) {
			snprintf(text, sizeof(text), "after %u rounds: %s", rounds, why);
			why = text;
		}
	}
	report("records of threads that just ended are kept as long as others", why);
	return report_status();
}
