/* The life of a box: pause, stop, start again, its end. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/box.h"
#include "lib.h"

static struct tacho_name kinds[3] = {TACHO_KIND("kind x"), TACHO_KIND("kind y"),
				     TACHO_KIND("kind z")};

static void marks(uint32_t writer, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		mark(writer, i);
}

static struct tacho_status_info status_now(void)
{
	struct tacho_status_info st = {.size = sizeof(st)};

	tacho_status(&st);
	return st;
}

/* ---------------------------------------------- pause, stop, start again */

static void pause_body(void *arg)
{
	(void)arg;
	start();
	marks(0, 0, 100);
	tacho_pause();
	CHECK(status_now().state == TACHO_STATE_PAUSED, "state %u", status_now().state);
	tacho_pause();
	marks(1, 0, 1000);
	CHECK(tacho_trigger("not now") == 0, "a trigger while paused");
	tacho_resume();
	tacho_resume();
	CHECK(status_now().state == TACHO_STATE_RECORDING, "state %u", status_now().state);
	marks(0, 100, 200);
	tacho_pause();
	die();
}

static void test_pause(void)
{
	const struct tacho_event *e;
	char seen[16] = "";
	struct box *b;

	subject(pause_body, NULL);
	b = the_box();
	check_writer(tally_whole(b, 200), 0, 200);
	if (!b)
		return;
	CHECK(process_of(b)->state == TACHO_STATE_PAUSED,
	      "the box of a paused process has state %u", process_of(b)->state);
	tacho_read_seek(b->reader, 0);
	while (tacho_read_next(b->reader, &e) > 0)
		if (e->type == TACHO_EV_PAUSE)
			strncat(seen, e->arg ? "p" : "r", sizeof(seen) - strlen(seen) - 1);
	CHECK(!strcmp(seen, "prp"), "pauses and resumes are '%s'", seen);
}

static void again_body(void *arg)
{
	char first[256];
	int keep = arg != NULL;

	setenv("TACHO_KEEP_BOX", keep ? "1" : "0", 1);
	start();
	tacho_poll_begin(&kinds[0], 1);
	tacho_poll_end(TACHO_DONE);
	marks(0, 0, 100);
	memcpy(first, status_now().box, sizeof(first));
	tacho_stop();
	CHECK(status_now().state == TACHO_STATE_STOPPED, "state %u", status_now().state);
	CHECK((access(first, F_OK) == 0) == keep, "the stopped box is %s",
	      keep ? "gone" : "still there");
	marks(0, 5000, 6000); /* into nothing */
	tacho_stop();
	start();
	CHECK(strcmp(first, status_now().box) || !keep, "the new box has the name of the old");
	tacho_poll_begin(&kinds[0], 2); /* an id of before */
	tacho_poll_end(TACHO_DONE);
	tacho_poll_begin(&kinds[1], 3);
	tacho_poll_end(TACHO_DONE);
	marks(0, 0, 200);
	die();
}

static void check_again(struct box *b)
{
	const struct tacho_event *e;
	int x = 0, y = 0;

	if (!b)
		return;
	check_writer(tally_whole(b, 200), 0, 200);
	CHECK(process_of(b)->parent_pid == 0, "a process that is its own parent");
	tacho_read_seek(b->reader, 0);
	while (tacho_read_next(b->reader, &e) > 0) {
		if (e->type != TACHO_EV_POLL_BEGIN)
			continue;
		x += e->word[0] == 2 && !strcmp(name_of(b, e->arg), "kind x");
		y += e->word[0] == 3 && !strcmp(name_of(b, e->arg), "kind y");
	}
	CHECK(x == 1 && y == 1, "names of before, or of after, are wrong in the new box");
}

static void test_again(void)
{
	subject(again_body, NULL);
	check_again(the_box());
}

static void test_again_kept(void)
{
	pid_t pid = subject_start(again_body, "keep");

	check_exit(subject_wait(pid), 0);
	boxes_open(box_dir());
	check_writer(tally_whole(box_of(pid, 0), 100), 0, 100);
	CHECK(process_of(box_of(pid, 0))->state == TACHO_STATE_STOPPED,
	      "the stopped box has state %u", process_of(box_of(pid, 0))->state);
	check_again(box_of(pid, 1));
}

/* A box of 1 MiB has room for 1024 definitions, of which 0 is none. */
#define SMALL_IDS 1024u
#define MANY_IDS 1500u

static void smaller_body(void *arg)
{
	static struct tacho_name names[MANY_IDS];
	static char texts[MANY_IDS][12];
	struct tacho_options options = {.size = sizeof(options), .max_bytes = 16u << 20};

	(void)arg;
	start_with(&options);
	for (uint32_t i = 0; i < MANY_IDS; i++) {
		snprintf(texts[i], sizeof(texts[i]), "kind %u", i);
		names[i] = (struct tacho_name)TACHO_KIND(texts[i]);
		tacho_poll_begin(&names[i], 1);
		tacho_poll_end(TACHO_DONE);
	}
	tacho_stop();
	options.max_bytes = 1u << 20;
	start_with(&options);
	for (uint32_t i = 0; i < MANY_IDS; i++) {
		tacho_poll_begin(&names[i], 100 + i);
		tacho_poll_end(TACHO_DONE);
	}
	die();
}

static void test_smaller(void)
{
	const struct tacho_event *e;
	uint32_t right = 0, wrong = 0;
	struct tacho_box_super super;
	struct box *b;
	int fd;

	subject(smaller_body, NULL);
	b = the_box();
	if (!b)
		return;
	fd = open(b->path, O_RDONLY | O_CLOEXEC);
	CHECK(read(fd, &super, sizeof(super)) == sizeof(super), "the box cannot be read");
	close(fd);
	CHECK(super.regions[TACHO_REGION_DEF_DIR].count == SMALL_IDS && super.next_def == SMALL_IDS,
	      "%u ids of %u", super.next_def, super.regions[TACHO_REGION_DEF_DIR].count);
	while (tacho_read_next(b->reader, &e) > 0) {
		char text[12];

		if (e->type != TACHO_EV_POLL_BEGIN)
			continue;
		snprintf(text, sizeof(text), "kind %u", (unsigned)e->word[0] - 100);
		if (e->arg < SMALL_IDS && !strcmp(name_of(b, e->arg), text))
			right++;
		else
			wrong += e->arg < SMALL_IDS;
	}
	CHECK(right > SMALL_IDS / 2 && !wrong, "%u names are right and %u wrong", right, wrong);
	for (uint32_t i = 0; i < tacho_read_problem_count(b->reader); i++) {
		const struct tacho_problem *p = tacho_read_problem(b->reader, i);

		/* It does not live long enough for its clock to be compared again. */
		CHECK(!strcmp(p->name, "clock-rough"), "the small box has a problem: %s", p->text);
	}
}

#define LAST_MARKS 5000 /* of each thread; those of all find room in the box */
static int last_start;

static void *through_stops(void *arg)
{
	uint32_t writer = (uint32_t)(uintptr_t)arg;
	uint32_t i = 0, left = LAST_MARKS;

	while (left) {
		left -= __atomic_load_n(&last_start, __ATOMIC_ACQUIRE) != 0;
		tacho_poll_begin(&kinds[writer % 3], writer);
		mark(writer, i++);
		tacho_poll_end(TACHO_PENDING);
	}
	return NULL;
}

static void cycles_body(void *arg)
{
	pthread_t t[4];

	(void)arg;
	setenv("TACHO_MAX_BYTES", "4M", 1);
	start();
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, through_stops, (void *)(i + 1));
	for (int i = 0; i < 100; i++) {
		tacho_stop();
		start();
		marks(0, 0, 50);
		if (i % 4 == 0)
			sleep_ms(1);
	}
	__atomic_store_n(&last_start, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	die();
}

/* Stopped and started again while threads record: no thread gets the place of another. */
static void test_cycles(void)
{
	const struct tally *t;
	struct box *b;

	subject(cycles_body, NULL);
	b = the_box();
	t = tally(b);
	CHECK(!t->foreign && !t->mixed, "%llu marks on the wrong thread",
	      (unsigned long long)t->mixed);
	/* Just after a start a record may still be lost to the stop before it. */
	CHECK(t->disorder <= 8, "%llu holes", (unsigned long long)t->disorder);
	for (uint32_t i = 1; i <= 4; i++)
		CHECK(t->count[i] > 0, "thread %u does not record any more", i);
	if (b)
		check_no_problem(b);
}

/* -------------------------------------------------------------- its end */

static void end_body(void *arg)
{
	start();
	marks(0, 0, 10);
	switch ((int)(intptr_t)arg) {
	case 0:
		exit(0);
	case 1:
		kill(getpid(), SIGKILL);
		break;
	case 2:
		kill(getpid(), SIGTERM);
		break;
	default:
		_exit(0);
	}
	pause();
}

static void test_orderly_end(void)
{
	subject(end_body, (void *)0);
	CHECK(boxes_open(box_dir())->count == 0, "an orderly end left the box behind");
}

static void test_other_ends(void)
{
	for (intptr_t how = 1; how <= 3; how++) {
		struct box *b;

		subject_wait(subject_start(end_body, (void *)how));
		b = the_box();
		check_writer(tally_whole(b, 10), 0, 10);
		if (b) {
			CHECK(process_of(b)->alive == TACHO_ALIVE_NO,
			      "a dead process counts as alive");
			unlink(b->path);
		}
		boxes_close();
	}
}

static void live_body(void *arg)
{
	start();
	mark(0, 0);
	gate_open(arg);
	for (;;)
		sleep_ms(1000);
}

/* Dead boxes above the limit go, the oldest first; live ones never. */
static void test_prune(void)
{
	struct gate *alive = gate_new();
	static const int ages[6] = {3, 0, 5, 1, 4, 2}; /* not the order of their names */
	pid_t live = subject_start(live_body, alive), dead[6], last;
	int kept = 0;

	gate_pass(alive);
	for (int i = 0; i < 6; i++) {
		struct timespec when[2] = {{1000 + ages[i], 0}, {1000 + ages[i], 0}};

		dead[i] = subject_start(end_body, (void *)1);
		subject_wait(dead[i]);
		boxes_open(box_dir());
		CHECK(!utimensat(AT_FDCWD, box_of(dead[i], 0)->path, when, 0), "utimensat");
	}
	setenv("TACHO_DEAD_BOXES", "3", 1);
	last = subject_start(end_body, (void *)1);
	subject_wait(last);
	unsetenv("TACHO_DEAD_BOXES");
	boxes_open(box_dir());
	CHECK(boxes_open(box_dir())->count == 5,
	      "%zu boxes, not three, the live one and the new one", boxes_open(box_dir())->count);
	box_of(live, 0);
	box_of(last, 0);
	for (int i = 0; i < 6; i++)
		kept += ages[i] >= 3 && box_of(dead[i], 0) != NULL;
	CHECK(kept == 3, "not the oldest were deleted");
	kill(live, SIGKILL);
	subject_wait(live);
}

static const struct test tests[] = {
	{"pause and resume", test_pause},
	{"stop and start again: names keep their meaning", test_again},
	{"stop and start again with both boxes kept", test_again_kept},
	{"stop and start again in a smaller box: what fits keeps its meaning", test_smaller},
	{"stop and start again and again while threads record", test_cycles},
	{"an orderly end removes the box", test_orderly_end},
	{"any other end leaves it", test_other_ends},
	{"dead boxes above the limit are deleted, the oldest first", test_prune},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
