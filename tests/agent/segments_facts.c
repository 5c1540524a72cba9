/* What stands in segments besides records, and what a process leaves at its end. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../process/lib.h"
#include "base/clock.h"
#include "format/box.h"
#include "format/trace.h"
#include "read/news.h"
#include "read/records.h"
#include "recording.h"
#include "tacho.h"
#include "tacho_read.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* -------------------------------------------------------------------- the end */

static void crash_told(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(1, 2 << 20);
	struct tacho__segments *s;
	struct tacho__row *row;
	struct found f;

	r->how = 1;
	r->quiet = 1;
	recording_start(r);
	recording_wait(r, 2);
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	recording_stop(r);
	/* By another agent, and all records delivered before. */
	tacho__segments_close(s);
	for (unsigned i = 0; i < 3; i++) {
		s = segments_open(&options);
		row = tacho__segments_row(s, r->box);
		CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "drain failed");
		tacho__segments_close(s);
	}
	f = recording_read(segments_dir());
	CHECK(f.crashes == 1, "%u crashes are told of", f.crashes);
	CHECK(count_files(".tacho") <= 2, "%u segments tell of it", count_files(".tacho"));
	segments_dir_remove();
}

/* Short polls are counted; while they are, no record stands for them. */
static void count_polls(void *arg)
{
	static struct tacho_name loop = TACHO_LOOP("loop"), kind = TACHO_KIND("short");
	struct gate **gates = arg;
	struct tacho_options options = TACHO_OPTIONS_INIT;

	options.max_bytes = 2 << 20;
	options.poll_threshold_ns = 3600ull * 1000000000;
	start_with(&options);
	tacho_loop(&loop);
	for (unsigned phase = 0; phase < 3; phase++) {
		for (unsigned i = 0; i < 10; i++) {
			tacho_poll_begin(&kind, i);
			tacho_poll_end(TACHO_PENDING);
		}
		tacho_wake(phase + 1);
		gate_open(gates[2 * phase]);
		gate_pass(gates[2 * phase + 1]);
	}
	tacho_poll_begin(&kind, 1000);
	die();
}

struct tails {
	uint64_t wakes, polls, counted;
};

static struct tails read_tails(void)
{
	struct tails t = {0};
	struct tacho_reader *reader;
	const struct tacho_event *e;
	char message[512];

	if (!CHECK(!tacho_read_open(&reader, segments_dir(), NULL, message, sizeof(message)), "%s",
		   message))
		return t;
	while (tacho_read_next(reader, &e) > 0) {
		CHECK(e->type != TACHO_EV_RESUME || !e->resume->missing, "something is missing");
		if (e->type == TACHO_EV_WAKE)
			t.wakes = t.wakes * 10 + e->word[0];
		t.polls += e->type == TACHO_EV_POLL_BEGIN && e->word[0] == 1000;
		for (uint32_t i = 4; e->type == TACHO_EV_POLL_HIST && i < e->words; i++)
			t.counted += e->word[i] & ((1ull << 48) - 1);
	}
	CHECK(!tacho_read_gap_count(reader), "there is a gap");
	tacho_read_close(reader);
	return t;
}

static void drain_once(const struct tacho__segments_options *options, const char *box,
		       enum tacho__drain how)
{
	struct tacho__segments *s = segments_open(options);
	struct tacho__row *row = tacho__segments_row(s, box);

	CHECK(!tacho__segments_drain(s, row, how), "drain failed");
	CHECK(!tacho__segments_drain(s, row, how), "drain failed");
	tacho__segments_close(s);
}

static void tails_once(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(0, 0);
	struct gate *gates[6];
	struct tails t;

	for (unsigned i = 0; i < 6; i++)
		gates[i] = gate_new();
	r->pid = subject_start(count_polls, gates);
	for (unsigned phase = 0; phase < 3; phase++) {
		gate_pass(gates[2 * phase]);
		recording_find(r);
		drain_once(&options, r->box, TACHO__DRAIN_ALL);
		gate_open(gates[2 * phase + 1]);
	}
	check_exit(subject_wait(r->pid), 0);
	for (unsigned i = 0; i < 2; i++) {
		drain_once(&options, r->box, TACHO__DRAIN_END);
		t = read_tails();
		CHECK(t.wakes == 123 && t.polls == 1 && t.counted == 30,
		      "wakes %llu, pending polls %llu, short ones %llu",
		      (unsigned long long)t.wakes, (unsigned long long)t.polls,
		      (unsigned long long)t.counted);
	}
	segments_dir_remove();
}

/* A call that the subject's first thread is in at its end, since there is a box. */
static void put_call(const char *path)
{
	struct tacho_box_super super;
	struct tacho_box_underway call = {.call = 1, .call_on = UINT64_MAX};
	int fd = open(path, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0 && pread(fd, &super, sizeof(super), 0) == sizeof(super), "no box");
	call.call_since = super.created.ticks;
	CHECK(pwrite(fd, &call, sizeof(call), (off_t)super.regions[TACHO_REGION_UNDERWAY].offset) ==
		      sizeof(call),
	      "the box is not written to");
	close(fd);
}

/* The only event of a call that never returned; 0: there is none, or more than one. */
static uint64_t open_call_ns(void)
{
	struct tacho_reader *reader;
	const struct tacho_event *e;
	char message[512];
	uint64_t ns = 0;
	unsigned count = 0;

	if (!CHECK(!tacho_read_open(&reader, segments_dir(), NULL, message, sizeof(message)), "%s",
		   message))
		return 0;
	while (tacho_read_next(reader, &e) > 0) {
		if (e->type != TACHO_EV_CALL_OPEN)
			continue;
		ns = e->ns;
		count++;
	}
	tacho_read_close(reader);
	return count == 1 ? ns : 0;
}

static void wake_once(void *arg)
{
	struct gate **gates = arg;
	struct tacho_options options = TACHO_OPTIONS_INIT;

	options.max_bytes = 2 << 20;
	start_with(&options);
	tacho_wake(1);
	gate_open(gates[0]);
	gate_pass(gates[1]);
	die();
}

static void call_told_late(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(0, 0);
	struct gate *gates[2] = {gate_new(), gate_new()};
	struct tacho__segments *s;
	struct tacho__row *row;
	uint64_t before, after, ns;

	r->pid = subject_start(wake_once, gates);
	gate_pass(gates[0]);
	recording_find(r);
	usleep(300000);
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	before = tacho__clock_ns(CLOCK_MONOTONIC);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	after = tacho__clock_ns(CLOCK_MONOTONIC);
	gate_open(gates[1]);
	check_exit(subject_wait(r->pid), 0);
	put_call(r->box);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "drain failed");
	tacho__segments_close(s);
	ns = open_call_ns();
	CHECK(ns >= before - 100000000 && ns <= after,
	      "told at %llu, what was there was taken from %llu to %llu", (unsigned long long)ns,
	      (unsigned long long)before, (unsigned long long)after);
	segments_dir_remove();
}

/* --------------------------------------------------------------- more than records */

static uint64_t kernel_count, kernel_next, kernel_lost;
static unsigned kernel_holes;

static void count_kernel(const char *path, unsigned index)
{
	struct tacho_reader *reader;
	const struct tacho_event *e;
	char message[512];

	(void)index;
	if (!CHECK(!tacho_read_open(&reader, path, NULL, message, sizeof(message)), "%s", message))
		return;
	while (tacho_read_next(reader, &e) > 0) {
		if (e->stream != TACHO_STREAM_KERNEL || e->type == TACHO_EV_RESUME)
			continue;
		kernel_holes += e->arg != kernel_next;
		kernel_next = e->arg + 1;
		kernel_count++;
	}
	for (uint32_t i = 0; i < tacho_read_gap_count(reader); i++)
		if (!strcmp(tacho_read_gap(reader, i)->reason, "kernel"))
			kernel_lost += tacho_read_gap(reader, i)->records;
	tacho_read_close(reader);
}

/* What the kernel reports goes into a segment once, and what was not taken is given again. */
static void kernel_once(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(1, 2 << 20);
	struct tacho__records k = {0};
	struct tacho__segments *s;
	struct tacho__row *row;
	uint32_t done;

	options.segment_bytes = 1500; /* so that there are several */
	recording_start(r);
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	CHECK(!tacho__records_reserve(&k, 1000, 0), "no memory");
	CHECK(!tacho__segments_kernel(s, row, &k, 1, 0), "taken, of a box that is not known yet");
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	k.word_at[0] = 0;
	k.head = (struct tacho_trace_events){.size = sizeof(k.head), .thread = 1};
	k.head.stream = TACHO_STREAM_KERNEL;
	for (uint32_t i = 0; i < 1000; i++) {
		tacho__records_put(&k, tacho__clock_ns(CLOCK_MONOTONIC),
				   tacho_record_head(TACHO_REC_SWITCH_IN, i), NULL, 0);
		if (i % 10)
			continue;
		if (i % 100 == 0) /* however slowly the recorder's process runs */
			recording_wait(r, recording_made(r) + 100);
		done = tacho__segments_kernel(s, row, &k, 1, i > 500 ? 7 : 0);
		CHECK(done == 1, "%u of one stretch are dealt with", done);
		tacho__records_skip(&k, k.head.count);
		CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	}
	CHECK(tacho__segments_kernel(s, row, &k, 1, 7) == 1, "the last are not taken");
	recording_stop(r);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "drain failed");
	tacho__segments_close(s);
	kernel_count = kernel_next = kernel_lost = kernel_holes = 0;
	each_segment(count_kernel);
	CHECK(kernel_count == 1000 && !kernel_holes && kernel_lost == 7,
	      "%llu events, %u not in order, %llu lost", (unsigned long long)kernel_count,
	      kernel_holes, (unsigned long long)kernel_lost);
	CHECK(heard.finished > 1, "one segment only");
	tacho__records_free(&k);
	segments_dir_remove();
}

static unsigned with_name;

static void look_for_name(const char *path, unsigned index)
{
	struct tacho_reader *reader;
	const struct tacho_symbol *symbol;
	char message[512];

	(void)index;
	if (!CHECK(!tacho_read_open(&reader, path, NULL, message, sizeof(message)), "%s", message))
		return;
	for (uint32_t id = 1; id < tacho_read_definition_limit(reader, 0); id++) {
		const struct tacho_definition *d = tacho_read_definition(reader, 0, id);

		if (d && d->def_class == TACHO_DEF_KIND && d->value &&
		    (symbol = tacho_read_symbol(reader, 0, d->value, UINT64_MAX, 0)) &&
		    !strcmp(symbol->function, "recording_function")) {
			with_name++;
			break;
		}
	}
	tacho_read_close(reader);
}

static void symbols(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(1, 2 << 20);
	struct tacho__segments *s;
	struct tacho__row *row;

	r->address = 1;
	options.no_symbols = false;
	recording_start(r);
	for (unsigned i = 0; i < 3; i++) {
		recording_wait(r, recording_made(r) + 100);
		s = segments_open(&options);
		row = tacho__segments_row(s, r->box);
		if (i == 2)
			recording_stop(r);
		CHECK(!tacho__segments_drain(s, row, i < 2 ? TACHO__DRAIN_ALL : TACHO__DRAIN_END),
		      "drain failed");
		tacho__segments_close(s);
	}
	with_name = 0;
	CHECK(each_segment(look_for_name) == 3, "not three segments");
#ifdef TACHO_HAVE_LIBDW
	CHECK(with_name == 3, "%u of 3 segments name the function", with_name);
#else
	skip("built without symbols");
#endif
	segments_dir_remove();
}

static const struct test tests[] = {
	{"a crash after the last record is told of once", crash_told},
	{"what is open at the end becomes records once", tails_once},
	{"a call that lasts is told where the last segment begins", call_told_late},
	{"what the kernel reported is delivered once", kernel_once},
	{"each segment says what its code is called", symbols},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, COUNT(tests));
}
