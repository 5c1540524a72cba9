/*
 * Agents that are killed at random moments while a subject records at high speed: no segment is
 * damaged, and each record is there once or counted in a gap.
 *
 *	TACHO_KILLS	how many, at least 200
 *	TACHO_SEED	of the moments
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../process/lib.h"
#include "agent/segment_streams.h"
#include "recording.h"

#define LEAST_KILLS 200u
#define OVERWRITES 1500000u /* records: more than the box holds */
#define LONGEST_US 30000u

static uint64_t seed;

static uint64_t random_next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void agent(void *arg)
{
	struct recording *r = arg;
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct tacho__segments *s;
	struct tacho__row *row;

	options.segment_bytes = 150000;
	s = segments_open(&options);
	row = s ? tacho__segments_row(s, r->box) : NULL;
	for (unsigned i = 0; row && !failed(); i++) {
		int err = tacho__segments_drain(s, row,
						i % 4 ? TACHO__DRAIN_SEALED : TACHO__DRAIN_ALL);

		CHECK(!err && !heard.said, "drain: %d, %s", err, heard.last);
		__atomic_store_n(&shared()[0], 1, __ATOMIC_RELEASE);
	}
	/* Waits for being killed. */
	for (;;)
		sleep_ms(1000);
}

/* What the kill left: segments without their end, and with half a block behind the last whole
   one. */
static void look(unsigned *parts, unsigned *torn)
{
	DIR *d = opendir(segments_dir());
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct tacho__segment_facts facts;
		struct stat st;
		int fd;

		if (strlen(e->d_name) < 6 || strcmp(e->d_name + strlen(e->d_name) - 5, ".part"))
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC);
		++*parts;
		if (fd >= 0 && !fstat(fd, &st) && !tacho__segment_examine(&facts, fd)) {
			*torn += facts.size != (uint64_t)st.st_size && !facts.ended;
			tacho__segment_facts_free(&facts);
		}
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
}

static void kill_agents(struct recording *r, unsigned kills)
{
	unsigned parts = 0, torn = 0;

	for (unsigned i = 0; i < kills && !failed(); i++) {
		pid_t pid;

		shared()[0] = 0;
		pid = subject_start(agent, r);
		/* Most of them while they copy, some while they begin. */
		for (unsigned k = 0; i % 4 && k < 60000 && !failed(); k++) {
			if (__atomic_load_n(&shared()[0], __ATOMIC_ACQUIRE))
				break;
			sleep_ms(1);
		}
		usleep((useconds_t)(random_next() % LONGEST_US));
		kill(pid, SIGKILL);
		subject_wait(pid);
		look(&parts, &torn);
		/* Now and then long enough for the subject to overwrite what nobody took. */
		if (random_next() % 16 == 0)
			recording_wait(r, recording_made(r) + OVERWRITES);
	}
	printf("%u kills left %u segments unfinished, %u of them in the middle of a block\n", kills,
	       parts, torn);
	CHECK(parts > kills / 8, "only %u of %u kills came while a segment was written", parts,
	      kills);
}

static void kills(unsigned count, uint32_t lasts)
{
	struct recording *r = recording_new(4, 16 << 20);
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct tacho__segments *s;
	struct tacho__row *row;
	struct found f;

	r->burst = 300;
	r->pace_us = 500;
	r->lasts = lasts;
	recording_start(r);
	kill_agents(r, count);
	recording_stop(r);
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "the last drain failed");
	tacho__segments_close(s);
	CHECK(!count_files(".part"), "a segment is not finished");
	f = lasts ? recording_count(r) : recording_check(r);
	printf("%llu records: %llu in %u segments, %llu in %u gaps\n",
	       (unsigned long long)recording_made(r), (unsigned long long)f.events,
	       count_files(".tacho"), (unsigned long long)f.gaps, f.gap_count);
	CHECK(f.events && f.gaps, "nothing was delivered, or nothing lost");
	segments_dir_remove();
}

static unsigned wanted(void)
{
	const char *kills_wanted = getenv("TACHO_KILLS");
	unsigned count = kills_wanted ? (unsigned)atoi(kills_wanted) : 0;

	return count > LEAST_KILLS ? count : LEAST_KILLS;
}

static void lasting(void)
{
	kills(wanted(), 0);
}

static void short_lived(void)
{
	kills(wanted() / 4, 2000);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"agents killed at random lose nothing and write nothing twice", lasting},
		{"the same with threads that come and go", short_lived},
	};
	const char *given = getenv("TACHO_SEED");
	const char *soak = getenv("TACHO_SOAK");

	seed = given ? strtoull(given, NULL, 0) : 0x9e3779b97f4a7c15;
	if (!given && soak && !strcmp(soak, "1"))
		seed ^= (uint64_t)getpid() << 32;
	printf("seed 0x%llx\n", (unsigned long long)seed);
	fflush(stdout);
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
