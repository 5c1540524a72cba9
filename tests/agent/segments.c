/* Continuous recording, on boxes that a subject records into meanwhile. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../process/lib.h"
#include "base/clock.h"
#include "format/trace.h"
#include "read/records.h"
#include "recording.h"
#include "tacho_read.h"

/* Of each writer: eight of them fill a part of a box of 8 MiB. */
#define ALLOWED 6000u
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* All by one agent, from the first record to the last. */
static struct found record_all(struct recording *r, const struct tacho__segments_options *options,
			       uint64_t records)
{
	struct tacho__segments *s;
	struct tacho__row *row;

	recording_allow(r, ALLOWED);
	recording_start(r);
	s = segments_open(options);
	row = tacho__segments_row(s, r->box);
	for (unsigned i = 0; recording_made(r) < records && !failed(); i++) {
		CHECK(!tacho__segments_drain(s, row,
					     i % 3 ? TACHO__DRAIN_SEALED : TACHO__DRAIN_ALL),
		      "drain failed");
		recording_allow(r, ALLOWED);
		sleep_ms(1);
	}
	recording_stop(r);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "the last drain failed");
	tacho__row_free(s, row);
	tacho__segments_close(s);
	return recording_check(r);
}

static void once_with(uint32_t writers)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(writers, 8 << 20);
	struct found f;

	options.segment_bytes = 30000;
	f = record_all(r, &options, 150000u * writers);
	CHECK(!f.gaps, "%llu records were lost", (unsigned long long)f.gaps);
	CHECK(!f.resumes, "%llu times a stream goes on after a hole",
	      (unsigned long long)f.resumes);
	CHECK(heard.finished > 1 && heard.finished == count_files(".tacho"),
	      "%u segments were finished, %u are there", heard.finished, count_files(".tacho"));
	CHECK(!count_files(".part") && !heard.said, "something is left, or was said: %s",
	      heard.last);
	segments_dir_remove();
}

static void once_1(void)
{
	once_with(1);
}

static void once_2(void)
{
	once_with(2);
}

static void once_8(void)
{
	once_with(8);
}

/* Events in the segment that is being written. */
static uint64_t events_so_far(void)
{
	DIR *d = opendir(segments_dir());
	uint64_t events = 0;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct tacho_reader *reader;
		const struct tacho_event *event;
		char path[1024];

		snprintf(path, sizeof(path), "%s/%s", segments_dir(), e->d_name);
		if (!strstr(e->d_name, ".part") || tacho_read_open(&reader, path, NULL, NULL, 0))
			continue;
		while (tacho_read_next(reader, &event) > 0)
			events += event->type != TACHO_EV_RESUME;
		tacho_read_close(reader);
	}
	if (d)
		closedir(d);
	return events;
}

static void sealed_first(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(1, 8 << 20);
	struct tacho__segments *s;
	struct tacho__row *row;
	uint64_t sealed, all;

	recording_allow(r, 20000);
	recording_start(r);
	recording_wait(r, 20000);
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_SEALED), "drain failed");
	sealed = events_so_far();
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	all = events_so_far();
	CHECK(sealed > 10000 && sealed < 20000 && all == 20000,
	      "%llu records in sealed chunks, %llu in all", (unsigned long long)sealed,
	      (unsigned long long)all);
	recording_stop(r);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "drain failed");
	tacho__segments_close(s);
	recording_check(r);
	segments_dir_remove();
}

/* --------------------------------------------------------------- one segment */

static uint64_t alone_events;

static void check_alone(const char *path, unsigned index)
{
	struct tacho_reader *reader;
	const struct tacho_process *p;
	struct found f = recording_read(path);
	char message[512];

	CHECK(f.events, "%s holds no events", path);
	alone_events += f.events;
	if (!CHECK(!tacho_read_open(&reader, path, NULL, message, sizeof(message)), "%s", message))
		return;
	p = tacho_read_process(reader, 0);
	CHECK(p->segment == index + 1, "segment %u says it is number %llu", index + 1,
	      (unsigned long long)p->segment);
	CHECK(p->taken_by == TACHO_TAKEN_SEGMENT && p->pid && p->exe[0] && p->host[0],
	      "a segment does not say whose it is");
	CHECK(tacho_read_thread_count(reader) >= 4, "%u threads", tacho_read_thread_count(reader));
	CHECK(tacho_read_real_ns(reader, 0, p->taken_mono_ns), "no wall clock");
	tacho_read_close(reader);
}

/* Also of a thread that does nothing any more: what it does is told. */
static unsigned quiet_told;

static void check_quiet(const char *path, unsigned index)
{
	struct tacho_reader *reader;
	const struct tacho_event *e;
	char message[512];
	int told = 0;

	(void)index;
	if (!CHECK(!tacho_read_open(&reader, path, NULL, message, sizeof(message)), "%s", message))
		return;
	while (tacho_read_next(reader, &e) > 0)
		if (e->type == TACHO_EV_RESUME && e->resume->open_count == 1 &&
		    e->resume->open[0].task == (1ull << 48))
			told = 1;
	quiet_told += told;
	tacho_read_close(reader);
}

static void complete(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(4, 8 << 20);
	struct found f;
	int count;

	r->quiet = 1;
	options.segment_bytes = 20000;
	f = record_all(r, &options, 300000);
	alone_events = 0;
	count = each_segment(check_alone);
	CHECK(count > 5 && alone_events == f.events, "%d segments with %llu of %llu events", count,
	      (unsigned long long)alone_events, (unsigned long long)f.events);
	quiet_told = 0;
	each_segment(check_quiet);
	CHECK(quiet_told + 1 >= (unsigned)count, "%u of %d segments know the quiet thread's poll",
	      quiet_told, count);
	segments_dir_remove();
}

/* ------------------------------------------------------------------ rotation */

static void by_time(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(2, 8 << 20);
	struct tacho__segments *s;
	struct tacho__row *row;

	options.segment_bytes = 0;
	options.segment_ns = 100000000;
	recording_start(r);
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	CHECK(tacho__segments_due(s) == UINT64_MAX, "something is due before it began");
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	for (int i = 0; i < 4000 && heard.finished < 5; i++) {
		uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);

		CHECK(tacho__row_due(row, now) == (tacho__segments_due(s) <= now),
		      "the row and the folder differ");
		if (!tacho__row_due(row, now)) {
			CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_SEALED), "drain failed");
		} else {
			unsigned before = heard.finished;

			CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
			CHECK(heard.finished == before + 1, "a segment was due, and not finished");
		}
		sleep_ms(5);
	}
	CHECK(heard.finished >= 5, "%u segments", heard.finished);
	recording_stop(r);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "the last drain failed");
	tacho__segments_close(s);
	recording_check(r);
	segments_dir_remove();
}

/* -------------------------------------------------------------------- agents */

static void restarts(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(4, 8 << 20);
	struct found f;

	recording_allow(r, ALLOWED);
	recording_start(r);
	for (unsigned i = 0; i < 12; i++) {
		struct tacho__segments *s = segments_open(&options);
		struct tacho__row *row = tacho__segments_row(s, r->box);

		for (unsigned k = 0; k < 5; k++) {
			tacho__segments_drain(s, row,
					      k % 2 ? TACHO__DRAIN_ALL : TACHO__DRAIN_SEALED);
			recording_allow(r, ALLOWED);
			sleep_ms(2);
		}
		if (i == 11) {
			recording_stop(r);
			CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "drain failed");
		}
		tacho__segments_close(s);
	}
	f = recording_check(r);
	CHECK(!f.gaps && !f.resumes, "%llu lost, %llu resumed", (unsigned long long)f.gaps,
	      (unsigned long long)f.resumes);
	segments_dir_remove();
}

/* The box is full several times over while nobody looks. */
static void no_agent(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(3, 2 << 20);
	struct found f;

	r->pace_us = 0;
	recording_start(r);
	for (unsigned i = 0; i < 3; i++) {
		struct tacho__segments *s = segments_open(&options);
		struct tacho__row *row = tacho__segments_row(s, r->box);

		tacho__segments_drain(s, row, TACHO__DRAIN_ALL);
		tacho__segments_close(s);
		recording_wait(r, recording_made(r) + 1000000);
		if (i == 2) {
			recording_stop(r);
			s = segments_open(&options);
			row = tacho__segments_row(s, r->box);
			CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "drain failed");
			tacho__segments_close(s);
		}
	}
	f = recording_check(r);
	CHECK(f.gaps && f.reasons & 1u << TACHO_GAP_NO_AGENT, "%llu lost, reasons %x",
	      (unsigned long long)f.gaps, f.reasons);
	segments_dir_remove();
}

/* Threads whose last records are overwritten before anybody saw that they were there. */
static void short_threads(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(2, 2 << 20);
	struct tacho__segments *s;
	struct tacho__row *row;
	struct found f;

	r->lasts = 700;
	recording_start(r);
	for (unsigned i = 0; i < 5; i++) {
		s = segments_open(&options);
		row = tacho__segments_row(s, r->box);
		for (unsigned k = 0; k < 10; k++)
			CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
		tacho__segments_close(s);
		recording_wait(r, recording_made(r) + 300000);
	}
	recording_stop(r);
	for (unsigned i = 0; i < 3; i++) {
		s = segments_open(&options);
		row = tacho__segments_row(s, r->box);
		CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "drain failed");
		tacho__segments_close(s);
	}
	f = recording_count(r);
	CHECK(f.gaps > f.missing, "no thread was gone before it was seen");
	segments_dir_remove();
}

static void too_fast(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(3, 2 << 20);
	struct tacho__segments *s = segments_open(&options);
	struct tacho__row *row;
	struct found f;

	r->pace_us = 0;
	recording_start(r);
	row = tacho__segments_row(s, r->box);
	for (unsigned i = 0; i < 4; i++) {
		CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
		recording_wait(r, recording_made(r) + 1000000);
	}
	recording_stop(r);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "drain failed");
	tacho__segments_close(s);
	f = recording_check(r);
	CHECK(f.gaps && f.reasons == 1u << TACHO_GAP_TOO_FAST, "%llu lost, reasons %x",
	      (unsigned long long)f.gaps, f.reasons);
	segments_dir_remove();
}

static const struct test tests[] = {
	{"segments hold each record of one thread once", once_1},
	{"segments hold each record of two threads once", once_2},
	{"segments hold each record of eight threads once", once_8},
	{"sealed chunks can be taken without the others", sealed_first},
	{"each segment is complete in itself", complete},
	{"segments are finished by time", by_time},
	{"an agent goes on where the one before stopped", restarts},
	{"what was overwritten without an agent is counted", no_agent},
	{"what was overwritten too fast is counted", too_fast},
	{"records of threads that nobody saw are counted", short_threads},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, COUNT(tests));
}
