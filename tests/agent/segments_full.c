/* A disk that is full: a small tmpfs in a mount namespace of its own. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../process/lib.h"
#include "base/crc32c.h"
#include "format/trace.h"
#include "recording.h"

#define DISK_BYTES "3m"
#define ALLOWED 4000u
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* 0: there is a disk at segments_dir(). */
static int make_disk(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("segments", segments_dir(), "tmpfs", 0, "mode=700,size=" DISK_BYTES)) {
		skip("no disk of our own can be mounted here: %s", strerror(errno));
		return -1;
	}
	return 0;
}

static void remove_disk(void)
{
	umount2(segments_dir(), MNT_DETACH);
	segments_dir_remove();
}

static void fill(void)
{
	static char block[4096];
	char path[1024];
	int fd;

	memset(block, 'x', sizeof(block));
	snprintf(path, sizeof(path), "%s/filler", segments_dir());
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	while (write(fd, block, sizeof(block)) > 0)
		;
	CHECK(errno == ENOSPC, "the disk is not full: %s", strerror(errno));
	close(fd);
}

static void make_space(void)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/filler", segments_dir());
	unlink(path);
}

/* One number for the contents of all finished segments. */
static uint32_t sum_of_segments(void)
{
	char command[1200];
	uint32_t crc = 0;
	char line[4096];
	FILE *p;

	snprintf(command, sizeof(command), "cd '%s' && cksum *.tacho", segments_dir());
	p = popen(command, "r");
	while (p && fgets(line, sizeof(line), p))
		crc = tacho__crc32c(crc, line, strlen(line));
	if (p)
		pclose(p);
	return crc;
}

struct agent {
	struct recording *r;
	uint64_t allow; /* records of each writer until the next drain; 0: any */
	struct heard heard;
	struct tacho__segments *s;
	struct tacho__row *row;
};

static void begin(struct agent *a, uint64_t box_bytes, uint64_t segment_bytes)
{
	struct tacho__segments_options options = segments_options(&a->heard);

	options.segment_bytes = segment_bytes;
	tacho__segments_close(segments_open(&options));
	a->r = recording_new(3, box_bytes);
	if (a->allow)
		recording_allow(a->r, a->allow);
	recording_start(a->r);
	a->s = segments_open(&options);
	a->row = tacho__segments_row(a->s, a->r->box);
}

static void drain(struct agent *a, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		CHECK(!tacho__segments_drain(a->s, a->row,
					     i % 2 ? TACHO__DRAIN_ALL : TACHO__DRAIN_SEALED),
		      "drain failed");
		if (a->allow)
			recording_allow(a->r, a->allow);
		sleep_ms(2);
	}
}

static void end(struct agent *a)
{
	recording_stop(a->r);
	CHECK(!tacho__segments_drain(a->s, a->row, TACHO__DRAIN_END), "the last drain failed");
	tacho__segments_close(a->s);
}

static void lossless(void)
{
	struct agent a = {.allow = ALLOWED};
	unsigned files;
	uint32_t sum;
	struct found f;

	if (make_disk())
		return;
	begin(&a, 16 << 20, 50000);
	for (unsigned i = 0; i < 1000 && a.heard.finished < 3; i++)
		drain(&a, 10);
	CHECK(a.heard.finished > 2, "%u segments before the disk was full", a.heard.finished);
	fill();
	drain(&a, 4);
	files = count_files(".tacho");
	sum = sum_of_segments();
	drain(&a, 6);
	CHECK(a.heard.said == 1 && strstr(a.heard.last, "no space"), "said %u times: %s",
	      a.heard.said, a.heard.last);
	CHECK(tacho__segments_due(a.s) != UINT64_MAX, "nothing will be tried again");
	CHECK(files == count_files(".tacho") && sum == sum_of_segments(),
	      "older segments were changed");
	make_space();
	drain(&a, 20);
	CHECK(a.heard.said == 2 && strstr(a.heard.last, "again"), "said %u times: %s", a.heard.said,
	      a.heard.last);
	end(&a);
	f = recording_check(a.r);
	CHECK(!f.gaps && !f.resumes, "%llu records were lost", (unsigned long long)f.gaps);
	remove_disk();
}

static void lossy(void)
{
	struct agent a = {0};
	struct found f;

	if (make_disk())
		return;
	begin(&a, 2 << 20, 50000);
	drain(&a, 20);
	fill();
	drain(&a, 3);
	recording_wait(a.r, recording_made(a.r) + 1000000);
	drain(&a, 3);
	make_space();
	drain(&a, 10);
	end(&a);
	f = recording_check(a.r);
	CHECK(f.gaps && f.reasons & 1u << TACHO_GAP_NO_SPACE, "%llu lost, reasons %x",
	      (unsigned long long)f.gaps, f.reasons);
	CHECK(a.heard.said == 2, "said %u times: %s", a.heard.said, a.heard.last);
	remove_disk();
}

/* The process is gone and the disk is full: the box must be kept, and can be delivered later. */
static void at_the_end(void)
{
	struct agent a = {.allow = ALLOWED};
	int err;

	if (make_disk())
		return;
	begin(&a, 8 << 20, 50000);
	drain(&a, 10);
	fill();
	recording_allow(a.r, 10 * ALLOWED);
	recording_wait(a.r, recording_made(a.r) + 20 * ALLOWED);
	recording_stop(a.r);
	err = tacho__segments_drain(a.s, a.row, TACHO__DRAIN_END);
	CHECK(err == -ENOSPC, "the last drain gave %d", err);
	tacho__segments_close(a.s);
	make_space();
	{
		struct tacho__segments_options options = segments_options(&a.heard);

		a.s = segments_open(&options);
		a.row = tacho__segments_row(a.s, a.r->box);
		CHECK(!tacho__segments_drain(a.s, a.row, TACHO__DRAIN_END), "drain failed");
		tacho__segments_close(a.s);
	}
	CHECK(!recording_check(a.r).gaps, "records were lost");
	CHECK(!count_files(".part"), "a segment is not finished");
	remove_disk();
}

/* Nothing that can be written says nothing about the disk. */
static void quiet(void)
{
	struct agent a = {.allow = 10}; /* too few to seal a chunk */

	if (make_disk())
		return;
	begin(&a, 8 << 20, 1);
	drain(&a, 2);
	fill();
	recording_allow(a.r, a.allow);
	recording_wait(a.r, recording_made(a.r) + 1);
	for (unsigned i = 0; i < 4; i++) {
		CHECK(!tacho__segments_drain(a.s, a.row, TACHO__DRAIN_ALL), "drain failed");
		CHECK(tacho__segments_due(a.s) != UINT64_MAX, "nothing will be tried again");
		CHECK(!tacho__segments_drain(a.s, a.row, TACHO__DRAIN_SEALED), "drain failed");
		CHECK(a.heard.said == 1, "said %u times: %s", a.heard.said, a.heard.last);
	}
	make_space();
	drain(&a, 2);
	CHECK(a.heard.said == 2 && strstr(a.heard.last, "again"), "said %u times: %s", a.heard.said,
	      a.heard.last);
	end(&a);
	CHECK(!recording_check(a.r).gaps, "records were lost");
	remove_disk();
}

static void read_only(void)
{
	struct agent a = {.allow = ALLOWED};
	struct found f;

	if (make_disk())
		return;
	/* A disk on which something is being written cannot be made so. */
	begin(&a, 16 << 20, 1);
	drain(&a, 10);
	CHECK(!mount(NULL, segments_dir(), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL),
	      "cannot be made read-only: %s", strerror(errno));
	drain(&a, 10);
	CHECK(a.heard.said == 1 && strstr(a.heard.last, "Read-only"), "said %u times: %s",
	      a.heard.said, a.heard.last);
	CHECK(!mount(NULL, segments_dir(), NULL, MS_REMOUNT | MS_BIND, NULL), "remount: %s",
	      strerror(errno));
	drain(&a, 10);
	end(&a);
	CHECK(a.heard.said == 2, "said %u times: %s", a.heard.said, a.heard.last);
	f = recording_check(a.r);
	CHECK(!f.gaps, "%llu records were lost", (unsigned long long)f.gaps);
	remove_disk();
}

static const struct test tests[] = {
	{"a full disk loses nothing that the box still holds", lossless},
	{"what is overwritten while the disk is full is counted", lossy},
	{"a box whose end cannot be written can be delivered later", at_the_end},
	{"a full disk is spoken of once", quiet},
	{"a disk that becomes read-only is used again when it can be written", read_only},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, COUNT(tests));
}
