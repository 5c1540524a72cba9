/*
 * Kills victims at the named points of the recorder (src/core/testpoint.h), in every
 * scenario that passes them, the first time, the second, the last and at some times
 * in between; then reads what they left.
 *
 *	kill-points NAME...
 *
 * A name that no scenario passes is a failure: the point would not be tested.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"
#include "tacho.h"
#include "verify.h"
#include "victim.h"

#define MANY (1 << 30)
#define FIRST_KILLS 2
#define RANDOM_KILLS 3
#define MIB (1u << 20)
#define TRIGGERS 200u /* more than a box has places for */

/* Of src/core/testpoint.c. */
extern const char *tacho__testpoint_name;
extern int tacho__testpoint_passes;

static struct victim_folder folder;
static uint64_t events_read;

/* This process has done all that it had to. */
static int finished(struct truth *truth)
{
	__atomic_fetch_add(&truth->passed, MANY - tacho__testpoint_passes, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&truth->finished, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static uint32_t record_here(struct truth *truth, uint64_t count)
{
	uint32_t sequence = truth_take(truth, gettid());

	for (uint64_t i = 0; i < count; i++)
		truth_put(truth, sequence);
	return sequence;
}

/* --------------------------------------------------------------- scenarios */

/* From the first, small chunk to whole ones. */
static int one_thread(struct truth *truth, void *arg)
{
	(void)arg;
	victim_record(truth, MIB, 0);
	record_here(truth, 6000);
	return finished(truth);
}

/* Chunks that some threads filled are taken by others, over and over. */
static int recycling(struct truth *truth, void *arg)
{
	struct victim_thread t[3];

	(void)arg;
	victim_record(truth, MIB, 0);
	for (int i = 0; i < 3; i++)
		victim_thread_start(&t[i], truth, 20000);
	for (int i = 0; i < 3; i++)
		victim_thread_join(&t[i]);
	return finished(truth);
}

/* Threads come and go beside one that fills chunks: slots change their shape. */
static int short_threads(struct truth *truth, void *arg)
{
	struct victim_thread busy, t[4];

	(void)arg;
	victim_record(truth, MIB, 0);
	victim_thread_start(&busy, truth, 50000);
	for (int wave = 0; wave < 20; wave++) {
		for (int i = 0; i < 4; i++)
			victim_thread_start(&t[i], truth, (uint64_t)(20 + 60 * i));
		for (int i = 0; i < 4; i++)
			victim_thread_join(&t[i]);
	}
	victim_thread_join(&busy);
	return finished(truth);
}

static int definitions(struct truth *truth, void *arg)
{
	struct victim_thread t[4];

	(void)arg;
	victim_record(truth, 4 * MIB, 0);
	for (int i = 0; i < 4; i++)
		victim_thread_start(&t[i], truth, 3000);
	for (int i = 0; i < 4; i++)
		victim_thread_join(&t[i]);
	return finished(truth);
}

static void forked_child(struct truth *truth)
{
	struct victim_thread t;
	uint32_t sequence;

	alarm(VICTIM_SECONDS);
	truth_box_begin(truth);
	sequence = record_here(truth, 1);
	truth_box_made(truth);
	victim_thread_start(&t, truth, 400);
	for (int i = 0; i < 800; i++)
		truth_put(truth, sequence);
	victim_thread_join(&t);
	_exit(finished(truth));
}

static int forking(struct truth *truth, void *arg)
{
	uint32_t sequence;
	pid_t pid;

	(void)arg;
	victim_record(truth, MIB, 0);
	sequence = record_here(truth, 700);
	pid = fork();
	if (!pid)
		forked_child(truth);
	for (int i = 0; i < 700; i++)
		truth_put(truth, sequence);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 700; i++)
		truth_put(truth, sequence);
	return finished(truth);
}

static void *short_polls_thread(void *arg)
{
	static struct tacho_name kinds[12];
	static char texts[12][16];
	static const struct tacho_name empty = TACHO_KIND(NULL);
	struct truth *truth = arg;
	uint32_t sequence = truth_take(truth, gettid());

	/* More kinds than a thread has histograms: they are recorded all the time. */
	for (unsigned i = 0; i < 12 && !kinds[i].text; i++) {
		snprintf(texts[i], sizeof(texts[i]), "short-%u", i);
		kinds[i] = empty;
		kinds[i].text = texts[i];
	}
	for (unsigned i = 0; i < 600; i++) {
		__atomic_fetch_add(&truth->polls_begun, 1, __ATOMIC_SEQ_CST);
		tacho_poll_begin(&kinds[i % 7 * i % 12], ~0ull);
		__atomic_fetch_add(&truth->polls_done, 1, __ATOMIC_SEQ_CST);
		/* Something else in a poll: then the poll is recorded. */
		if (i % 16 == 0)
			truth_put(truth, sequence + 1);
		tacho_poll_end(TACHO_PENDING);
	}
	truth->sequence[sequence].ended = TRUTH_ENDED;
	return NULL;
}

static int short_polls(struct truth *truth, void *arg)
{
	pthread_t thread;

	(void)arg;
	victim_record(truth, 4 * MIB, 3600ull * 1000000000);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, short_polls_thread, truth);
		pthread_join(thread, NULL);
	}
	short_polls_thread(truth);
	return finished(truth);
}

/* Every poll is in a histogram or recorded, and none in both. */
static const char *check_short_polls(const struct truth *truth, const struct verify *v)
{
	static char why[160];
	uint64_t seen = v->polls_counted + v->polls_recorded;

	if (seen >= truth->polls_done && seen <= truth->polls_begun)
		return NULL;
	snprintf(why, sizeof(why), "%llu polls are counted and %llu recorded, of %llu to %llu",
		 (unsigned long long)v->polls_counted, (unsigned long long)v->polls_recorded,
		 (unsigned long long)truth->polls_done, (unsigned long long)truth->polls_begun);
	return why;
}

static int crash(struct truth *truth, void *arg)
{
	volatile int *volatile nowhere = NULL;
	struct victim_thread t;

	(void)arg;
	victim_record(truth, MIB, 0);
	if (tacho_crash_handler(folder.file))
		return 3;
	record_here(truth, 3000);
	victim_thread_start(&t, truth, 3000);
	victim_thread_join(&t);
	*nowhere = 1;
	return 4;
}

static int snapshot(struct truth *truth, void *arg)
{
	struct victim_thread t;
	int fd;

	(void)arg;
	victim_record(truth, MIB, 0);
	victim_thread_start(&t, truth, 15000);
	record_here(truth, 3000);
	fd = open(folder.file, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || tacho_snapshot(fd))
		return 3;
	close(fd);
	victim_thread_join(&t);
	return finished(truth);
}

static int stop_and_start(struct truth *truth, void *arg)
{
	char reason[32];

	(void)arg;
	victim_record(truth, MIB, 0);
	truth->sequence[record_here(truth, 2000)].ended = TRUTH_ENDED;
	tacho_stop();
	victim_record(truth, MIB, 0);
	record_here(truth, 2000);
	for (uint32_t i = 1; i <= TRIGGERS; i++) {
		snprintf(reason, sizeof(reason), TRUTH_REASON, i);
		tacho_trigger(reason);
	}
	return finished(truth);
}

static const struct scenario {
	const char *name;
	victim_main *run;
	unsigned flags;
	unsigned processes;
	int ends_with; /* signal, when it is not killed before */
} scenarios[] = {
	{"one thread", one_thread, 0, 1, 0},
	{"recycling", recycling, 0, 1, 0},
	{"short threads", short_threads, 0, 1, 0},
	{"definitions", definitions, 0, 1, 0},
	{"fork", forking, 0, 2, 0},
	{"short polls", short_polls, VERIFY_OTHERS, 1, 0},
	{"crash", crash, 0, 1, SIGSEGV},
	{"snapshot", snapshot, 0, 1, 0},
	{"stop and start", stop_and_start, 0, 1, 0},
};
#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

/* ------------------------------------------------------------------ driver */

struct run {
	const struct scenario *scenario;
	const char *point;
	int passes;
};

static int in_victim(struct truth *truth, void *arg)
{
	const struct run *run = arg;

	tacho__testpoint_name = run->point;
	tacho__testpoint_passes = run->passes;
	return run->scenario->run(truth, NULL);
}

/* The crash file or snapshot, which may be missing or end anywhere. */
static const char *check_file(const struct truth *truth, const struct run *run, int whole)
{
	static struct verify v;
	int result;

	if (access(folder.file, F_OK))
		return whole ? "there is no file" : NULL;
	v = (struct verify){.truth = truth, .end = TRUTH_SEQUENCES};
	v.flags = whole ? VERIFY_LIVE : VERIFY_LIVE | VERIFY_CUT;
	result = verify_file(&v, folder.file);
	if (result > 0 || (result && whole))
		return v.why;
	if (whole && v.events < 100)
		return "the file holds next to nothing";
	return whole && run->scenario->run == crash && v.crashes != 1 ? "the file has no crash"
								      : NULL;
}

static const char *check_end(const struct truth *truth, const struct run *run, int status,
			     int *killed)
{
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	*killed = sig == SIGKILL || (run->scenario->processes > 1 && truth->finished < 2);
	if (*killed)
		return NULL;
	if (sig != run->scenario->ends_with || (!sig && WEXITSTATUS(status)))
		return sig == SIGALRM ? "it hung" : "it did not end as it should";
	return NULL;
}

/* One victim; what is wrong or NULL. */
static const char *one(struct truth *truth, struct run *run, int *killed)
{
	const struct scenario *s = run->scenario;
	static struct verify v;
	const char *why;
	int status;

	truth_clear(truth);
	victim_folder_make(&folder);
	status = victim_wait(victim_start(in_victim, truth, run));
	why = check_end(truth, run, status, killed);
	if (!why)
		why = victim_verify(&folder, truth, s->flags, &events_read);
	if (!why && s->run == short_polls && truth->boxes && truth->box[0].path[0]) {
		v = (struct verify){.truth = truth, .end = TRUTH_SEQUENCES, .flags = s->flags};
		why = verify_file(&v, truth->box[0].path) ? v.why : check_short_polls(truth, &v);
	}
	if (!why && (s->run == crash || s->run == snapshot))
		why = check_file(truth, run, !*killed);
	victim_folder_remove(&folder);
	return why;
}

static uint64_t random_below(uint64_t limit)
{
	static uint64_t state = 0x9e3779b97f4a7c15u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

static const char *tell(const char *why, const struct run *run)
{
	static char text[800];

	snprintf(text, sizeof(text), "killed at pass %d: %s", run->passes, why);
	return text;
}

/* Kills at the point in one scenario; how many died there. */
static int kill_in(struct truth *truth, struct run *run, const char **why)
{
	int64_t passed;
	int kills = 0, killed;

	run->passes = MANY;
	*why = one(truth, run, &killed);
	if (*why)
		return 0;
	/* A crash does not come to its end, so it cannot tell how often it passed. */
	passed = run->scenario->run == crash ? 24 : truth->passed;
	for (int i = 0; i < FIRST_KILLS + RANDOM_KILLS + 1 && i < passed; i++) {
		if (i < FIRST_KILLS)
			run->passes = i;
		else
			run->passes =
				(int)(i == FIRST_KILLS ? passed - 1
						       : (int64_t)random_below((uint64_t)passed));
		*why = one(truth, run, &killed);
		if (*why) {
			*why = tell(*why, run);
			return kills;
		}
		/* Other runs may pass the point less often, but not never. */
		kills += killed;
		if (i == 0 && !killed) {
			if (run->scenario->run != crash)
				*why = "a point that was passed before was not reached";
			break;
		}
	}
	return kills;
}

int main(int argc, char **argv)
{
	struct truth *truth = truth_map();
	int total = 0;

	pattern_init(400);
	for (int p = 1; p < argc; p++) {
		int kills = 0;

		for (size_t i = 0; i < SCENARIOS; i++) {
			struct run run = {&scenarios[i], argv[p], 0};
			const char *why;
			char name[120];
			int n = kill_in(truth, &run, &why);

			snprintf(name, sizeof(name), "kill at %s, %s", argv[p], scenarios[i].name);
			if (why || n)
				report(name, why);
			kills += n;
		}
		if (!kills)
			report(argv[p], "no scenario reaches this point");
		total += kills;
	}
	printf("%d victims killed, %llu events read\n", total, (unsigned long long)events_read);
	return report_status();
}
