/* What a box costs and keeps: its size, its memory, min_age, the poll threshold. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib.h"

static void marks(uint32_t writer, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		mark(writer, i);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct tacho_status_info status_now(void)
{
	struct tacho_status_info st = {.size = sizeof(st)};

	tacho_status(&st);
	return st;
}

/* ---------------------------------------------------------- the budget */

static uint64_t memory_of_box(void)
{
	struct tacho_status_info st = status_now();
	struct stat file;

	CHECK(!stat(st.box, &file), "stat %s: %s", st.box, strerror(errno));
	CHECK((uint64_t)file.st_size == st.max_bytes, "the file has %lld bytes",
	      (long long)file.st_size);
	return (uint64_t)file.st_blocks * 512;
}

static void budget_body(void *arg)
{
	uint64_t idle, some, full;

	(void)arg;
	start();
	idle = memory_of_box();
	CHECK(idle < 512 << 10, "an idle box holds %llu bytes", (unsigned long long)idle);
	marks(0, 0, 100);
	CHECK(memory_of_box() < idle + (64 << 10), "one record costs %llu bytes",
	      (unsigned long long)(memory_of_box() - idle));
	CHECK(status_now().used_bytes <= memory_of_box() + 4096, "used_bytes is above the truth");
	marks(0, 100, 65536); /* one MiB of records */
	some = memory_of_box();
	CHECK(some < idle + (2 << 20), "a MiB of records takes %llu bytes",
	      (unsigned long long)(some - idle));
	CHECK(some > idle + (1 << 20), "a MiB of records takes %llu bytes",
	      (unsigned long long)(some - idle));
	marks(0, 65536, 4000000);
	full = memory_of_box();
	CHECK(full <= (32 << 20), "the full box has %llu bytes", (unsigned long long)full);
	CHECK(full > (24 << 20), "the full box has only %llu bytes", (unsigned long long)full);
	CHECK(status_now().overwritten_records > 0, "nothing was overwritten");
	CHECK(status_now().dropped_records == 0, "records were dropped");
	die();
}

static void test_budget(void)
{
	const struct tally *t;
	struct box *b;

	subject(budget_body, NULL);
	b = the_box();
	t = tally(b);
	CHECK(!t->disorder && t->last[0] == 3999999 && t->count[0] > 1500000,
	      "%u marks up to %u with %llu holes", t->count[0], t->last[0],
	      (unsigned long long)t->disorder);
	if (b)
		CHECK(t->count[0] + loss(b, "overwritten_records") == 4000000,
		      "%u kept and %llu overwritten are not all", t->count[0],
		      (unsigned long long)loss(b, "overwritten_records"));
}

static void odd_body(void *arg)
{
	(void)arg;
	setenv("TACHO_MAX_BYTES", "1234567", 1);
	start();
	marks(0, 0, 200000);
	CHECK(memory_of_box() <= 1234567 + 4095, "more memory than allowed");
	die();
}

static void test_odd_size(void)
{
	const struct tally *t;
	struct stat st;
	struct box *b;

	subject(odd_body, NULL);
	b = the_box();
	if (!b)
		return;
	CHECK(!stat(b->path, &st) && st.st_size == 1234567, "the box has %lld bytes",
	      (long long)st.st_size);
	t = tally(b);
	CHECK(!t->disorder && t->last[0] == 199999 && t->count[0] > 10000, "%u marks up to %u",
	      t->count[0], t->last[0]);
}

#define AGE_NS 200000000ull

static void age_body(void *arg)
{
	uint64_t begin, end;
	uint32_t i = 0;

	(void)arg;
	setenv("TACHO_MIN_AGE", "200ms", 1);
	start();
	begin = now_ns();
	end = begin + 6 * AGE_NS;
	/* 200 records a millisecond: 3.2 MB a second, 0.64 MB in the age that is wanted. */
	for (uint64_t t = begin; t < end; t = now_ns()) {
		while (i < 200 * ((t - begin) / 1000000))
			mark(0, i++);
		sleep_ms(1);
	}
	CHECK(status_now().used_bytes < 3 << 20, "%llu bytes are used for 0.64 MB of records",
	      (unsigned long long)status_now().used_bytes);
	shared()[0] = i;
	die();
}

/* When the marks last skipped one, and the number that comes after the last. */
static uint64_t last_hole(struct box *b, uint32_t *next)
{
	const struct tacho_event *e;
	uint64_t hole = 0;

	*next = 0;
	while (tacho_read_next(b->reader, &e) > 0) {
		if (e->type != TACHO_EV_WAKE)
			continue;
		if ((uint32_t)(e->word[0] & 0xfffffff) != *next)
			hole = e->ns;
		*next = (uint32_t)(e->word[0] & 0xfffffff) + 1;
	}
	return hole;
}

static void test_min_age(void)
{
	uint64_t first = 0, last = 0, hole;
	uint32_t next;
	struct box *b;

	subject(age_body, NULL);
	b = the_box();
	if (!b)
		return;
	CHECK(!tacho_read_window(b->reader, &first, &last) && last - first >= AGE_NS,
	      "the window is %llu ms", (unsigned long long)(last - first) / 1000000);
	CHECK(!loss(b, "min_age"), "%llu young chunks were overwritten",
	      (unsigned long long)loss(b, "min_age"));
	CHECK(loss(b, "overwritten_records") > 0, "nothing old was overwritten");
	/* The circle of chunks grew in its middle, so what is older than min_age may have holes. */
	hole = last_hole(b, &next);
	CHECK(last - hole >= AGE_NS, "a hole only %llu ms before the end",
	      (unsigned long long)(last - hole) / 1000000);
	CHECK(next == shared()[0], "the last mark is %u, not %llu", next - 1,
	      (unsigned long long)shared()[0] - 1);
}

static void forced_body(void *arg)
{
	(void)arg;
	setenv("TACHO_MIN_AGE", "1h", 1);
	setenv("TACHO_MAX_BYTES", "1M", 1);
	start();
	marks(0, 0, 300000);
	die();
}

static void test_forced_out(void)
{
	struct box *b;

	subject(forced_body, NULL);
	b = the_box();
	if (b)
		CHECK(loss(b, "min_age") > 10, "only %llu young chunks are counted as forced out",
		      (unsigned long long)loss(b, "min_age"));
}

/* ------------------------------------------------------ poll threshold */

static struct tacho_name loops[2] = {TACHO_LOOP("loop a"), TACHO_LOOP("loop b")};
static struct tacho_name kinds[3] = {TACHO_KIND("kind x"), TACHO_KIND("kind y"),
				     TACHO_KIND("kind z")};
#define SHORT_POLLS 30000u

struct bounds { /* of the time that all polls of one loop took */
	uint64_t least, most;
};

static void spin(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

/* Polls without a gap on one loop; the clock is read before and after each end of the whole, so
   that the bounds hold however slow the machine is. */
static void chain(struct tacho_name *loop, struct bounds *b)
{
	uint64_t before = now_ns(), after, end;

	tacho_loop(loop);
	tacho_poll_begin(&kinds[0], 1);
	after = now_ns();
	for (uint32_t i = 1; i < SHORT_POLLS; i++) {
		tacho_poll_switch(&kinds[i % 2], i + 1);
		if (i % 10000 == 5000)
			spin(3000000); /* longer than the threshold */
		if (i % 10000 == 7000)
			tacho_wake(i); /* something else is recorded in it */
	}
	end = now_ns();
	tacho_poll_end(TACHO_DONE);
	b->least = end - after;
	b->most = now_ns() - before;
}

static void threshold_body(void *arg)
{
	struct bounds *b = (struct bounds *)shared();

	(void)arg;
	setenv("TACHO_POLL_THRESHOLD", "1ms", 1);
	start();
	chain(&loops[0], &b[0]);
	chain(&loops[1], &b[1]);
	die();
}

struct sums {
	uint64_t counted, recorded, ns;
};

/* The polls of a box by loop and kind: those in histograms and those recorded. */
static void sum_polls(struct box *b, struct sums sums[2][2])
{
	uint64_t open_since = 0;
	unsigned loop = 0, kind = 0;
	int open = 0;
	const struct tacho_event *e;

	memset(sums, 0, 4 * sizeof(sums[0][0]));
	while (tacho_read_next(b->reader, &e) > 0) {
		const char *name = name_of(b, e->arg);
		int begins = e->type == TACHO_EV_POLL_BEGIN || e->type == TACHO_EV_POLL_SWITCH;

		if (e->type == TACHO_EV_LOOP)
			loop = !strcmp(name, "loop b");
		if (e->type == TACHO_EV_POLL_HIST) {
			unsigned at = !strcmp(name_of(b, (uint32_t)(e->word[0] >> 16)), "loop b");
			struct sums *s = &sums[at][!strcmp(name, "kind y")];

			s->ns += e->word[3];
			for (uint32_t i = 4; i < e->words; i++)
				s->counted += e->word[i] & 0xffffffffffffull;
		}
		if (open && (e->type == TACHO_EV_POLL_END || e->type == TACHO_EV_POLL_SWITCH)) {
			sums[loop][kind].ns += e->ns - open_since;
			open = 0;
		}
		if (begins) {
			kind = !strcmp(name, "kind y");
			sums[loop][kind].recorded++;
			open_since = e->ns;
			open = 1;
		}
	}
}

static void test_threshold(void)
{
	const struct bounds *b = (struct bounds *)shared();
	struct sums sums[2][2];
	struct box *box;

	subject(threshold_body, NULL);
	box = the_box();
	if (!box)
		return;
	sum_polls(box, sums);
	for (int l = 0; l < 2; l++) {
		uint64_t ns = sums[l][0].ns + sums[l][1].ns;
		uint64_t off = b[l].most / 1000 + 100000; /* two rates of one clock, and rounding */

		for (int k = 0; k < 2; k++) {
			CHECK(sums[l][k].counted + sums[l][k].recorded == SHORT_POLLS / 2,
			      "loop %d kind %d: %llu counted and %llu recorded are not %u", l, k,
			      (unsigned long long)sums[l][k].counted,
			      (unsigned long long)sums[l][k].recorded, SHORT_POLLS / 2);
			/* Slow machines make some long; most are not. */
			CHECK(sums[l][k].counted > SHORT_POLLS / 4, "loop %d kind %d: %llu counted",
			      l, k, (unsigned long long)sums[l][k].counted);
		}
		CHECK(sums[l][0].recorded >= 6, "loop %d: only %llu long polls recorded", l,
		      (unsigned long long)sums[l][0].recorded);
		CHECK(ns + off >= b[l].least && ns <= b[l].most + off,
		      "loop %d: polls took %llu ns, not %llu to %llu", l, (unsigned long long)ns,
		      (unsigned long long)b[l].least, (unsigned long long)b[l].most);
	}
	check_no_problem(box);
}

static void hang_body(void *arg)
{
	setenv("TACHO_POLL_THRESHOLD", "1h", 1);
	start();
	tacho_loop(&loops[0]);
	tacho_poll_begin(&kinds[0], 11);
	tacho_poll_end(TACHO_DONE);
	tacho_poll_begin(&kinds[2], 4711);
	gate_open(arg);
	for (;;)
		sleep_ms(1000);
}

static void test_hang_in_short_poll(void)
{
	struct gate *hanging = gate_new();
	pid_t pid = subject_start(hang_body, hanging);
	const struct tacho_event *e;
	int seen = 0, counted = 0;
	struct box *b;

	gate_pass(hanging);
	b = the_box();
	while (b && tacho_read_next(b->reader, &e) > 0) {
		seen += e->type == TACHO_EV_POLL_BEGIN && e->word[0] == 4711 &&
			!strcmp(name_of(b, e->arg), "kind z");
		counted += e->type == TACHO_EV_POLL_HIST && !strcmp(name_of(b, e->arg), "kind x");
	}
	CHECK(seen == 1, "the poll that hangs is %s", seen ? "there twice" : "not to be seen");
	CHECK(counted == 1, "the short poll before it is in %d histograms", counted);
	kill(pid, SIGKILL);
	subject_wait(pid);
}

static const struct test tests[] = {
	{"memory is taken step by step and never above max_bytes", test_budget},
	{"a box has the size that was asked for, to the byte", test_odd_size},
	{"min_age keeps a quiet program's box small and its window long enough", test_min_age},
	{"younger records that max_bytes forces out are counted", test_forced_out},
	{"polls under the threshold are counted, by kind and loop, and no time is lost",
	 test_threshold},
	{"a hang in a poll that is only counted so far can be seen", test_hang_in_short_poll},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
