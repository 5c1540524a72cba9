/* The folder of segments: whose it is, how much it takes, and what others do to it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../process/lib.h"
#include "agent/segment_blocks.h"
#include "agent/segment_streams.h"
#include "format/trace.h"
#include "recording.h"

#define ALLOWED 6000u
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void path_in(char path[1024], const char *name)
{
	snprintf(path, 1024, "%s/%s", segments_dir(), name);
}

static void write_file(const char *name, const char *text)
{
	char path[1024];
	int fd;

	path_in(path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "cannot write %s",
	      path);
	close(fd);
}

static int holds(const char *name, const char *text)
{
	char path[1024], got[256] = "";
	int fd;

	path_in(path, name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	if (read(fd, got, sizeof(got) - 1) < 0)
		got[0] = 0;
	close(fd);
	return !strcmp(got, text);
}

/* Opening must fail with `error`, say `word`, and leave as many entries as there were. */
static void refused(const struct tacho__segments_options *options, int error, const char *word)
{
	unsigned before = count_entries(options->folder);
	struct tacho__segments *s = NULL;
	char message[512] = "";
	int err = tacho__segments_open(&s, options, message, sizeof(message));

	CHECK(err == error && !s, "opening gave %d, not %d: %s", err, error, message);
	CHECK(strstr(message, word) && strstr(message, options->folder),
	      "the sentence does not say \"%s\" and the folder: %s", word, message);
	CHECK(count_entries(options->folder) == before, "something was changed");
	if (s)
		tacho__segments_close(s);
}

static void service(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct tacho__segments *s = segments_open(&options);

	refused(&options, -EBUSY, "another agent");
	options.service = "other";
	refused(&options, -EPERM, "of test");
	tacho__segments_close(s);
	refused(&options, -EPERM, "of test");
	options.service = "";
	refused(&options, -EINVAL, "no name");
	options.service = "test";
	tacho__segments_close(segments_open(&options));
	segments_dir_remove();
}

static void foreign(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	char path[1024];

	write_file("mine.tacho", "a trace of somebody");
	refused(&options, -EPERM, "trace files");
	path_in(path, "mine.tacho");
	unlink(path);
	write_file("mine.tacho.part", "half a trace of somebody");
	refused(&options, -EPERM, "trace files");
	path_in(path, "mine.tacho.part");
	unlink(path);
	/* Anything else is nobody's business. */
	write_file("notes.txt", "notes");
	tacho__segments_close(segments_open(&options));
	CHECK(holds("notes.txt", "notes"), "the notes are gone");
	path_in(path, "notes.txt");
	options.folder = path;
	refused(&options, -ENOTDIR, "directory");
	path_in(path, "no/such/folder");
	refused(&options, -ENOENT, "No such file");
	segments_dir_remove();
}

static void makes_folder(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	char path[1024];
	struct stat st;

	path_in(path, "new");
	options.folder = path;
	tacho__segments_close(segments_open(&options));
	CHECK(!stat(path, &st) && (st.st_mode & 07777) == 0700, "the folder has mode %o",
	      (unsigned)st.st_mode);
	segments_dir_remove();
}

/* ------------------------------------------------------------------- the cap */

#define CAP (400u << 10)

static void cap(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(3, 8 << 20);
	struct tacho__segments *s;
	struct tacho__row *row;
	uint64_t most = 0;
	struct found f;
	char name[256], other[256], path[1024];

	options.segment_bytes = 0;
	options.max_bytes = CAP;
	recording_allow(r, ALLOWED);
	recording_start(r);
	s = segments_open(&options);
	/* These look like segments but are not. */
	snprintf(name, sizeof(name), "tacho-test-20000101T000000.000Z-%d-000001.tacho", r->pid);
	write_file(name, "not a trace");
	snprintf(other, sizeof(other), "tacho-other-20000101T000000.000Z-%d-000001.tacho", r->pid);
	write_file(other, "another's");
	row = tacho__segments_row(s, r->box);
	for (unsigned i = 0; recording_made(r) < 3000000 && !failed(); i++) {
		CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_SEALED), "drain failed");
		recording_allow(r, ALLOWED);
		if (folder_bytes() > most)
			most = folder_bytes();
		if (i % 100 == 99) {
			tacho__segments_close(s);
			s = segments_open(&options);
			row = tacho__segments_row(s, r->box);
		}
		sleep_ms(1);
	}
	recording_stop(r);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "the last drain failed");
	CHECK(most <= CAP && folder_bytes() <= CAP, "%llu bytes under a cap of %u",
	      (unsigned long long)most, CAP);
	CHECK(most > CAP / 2, "only %llu bytes were kept", (unsigned long long)most);
	CHECK(holds(name, "not a trace") && holds(other, "another's"), "a foreign file is gone");
	tacho__segments_close(s);
	path_in(path, name);
	unlink(path);
	path_in(path, other);
	unlink(path);
	/* The newest are there, without a hole. */
	f = recording_read(segments_dir());
	CHECK(f.events && !f.resumes && !f.repeated, "%llu events, %llu holes",
	      (unsigned long long)f.events, (unsigned long long)f.resumes);
	for (unsigned i = 0; i < r->writers; i++)
		CHECK(f.next[i] == r->made[i], "the newest records are not there");
	/* A smaller one counts for what is there already. */
	options.max_bytes = CAP / 4;
	tacho__segments_close(segments_open(&options));
	CHECK(folder_bytes() <= CAP / 4, "%llu bytes under a smaller cap",
	      (unsigned long long)folder_bytes());
	segments_dir_remove();
}

/* ------------------------------------------------------------------- mishaps */

/* Deletes or, with `cut`, cuts what is being written. */
static unsigned hurt_parts(int cut)
{
	DIR *d = opendir(segments_dir());
	struct dirent *e;
	unsigned hurt = 0;

	while (d && (e = readdir(d))) {
		size_t size = strlen(e->d_name);
		struct stat st;
		char path[1024];

		if (size < 6 || strcmp(e->d_name + size - 5, ".part"))
			continue;
		path_in(path, e->d_name);
		if (!cut)
			hurt += !unlink(path);
		else if (!stat(path, &st))
			hurt += !truncate(path, (off_t)(rand() % (st.st_size + 1)));
	}
	if (d)
		closedir(d);
	return hurt;
}

static void deleted_file(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(2, 16 << 20);
	struct tacho__segments *s;
	struct tacho__row *row;
	unsigned hurt = 0;
	struct found f;

	options.segment_bytes = 0;
	recording_allow(r, ALLOWED);
	recording_start(r);
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	for (unsigned i = 0; i < 30; i++) {
		CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
		recording_allow(r, ALLOWED);
		if (i % 5 == 2)
			hurt += hurt_parts(0);
		sleep_ms(2);
	}
	recording_stop(r);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "the last drain failed");
	tacho__segments_close(s);
	CHECK(hurt > 3, "nothing was deleted");
	f = recording_check(r);
	CHECK(!f.gaps, "%llu records were lost though the box had them",
	      (unsigned long long)f.gaps);
	segments_dir_remove();
}

static void deleted_folder(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(2, 16 << 20);
	struct tacho__segments *s;
	struct tacho__row *row;
	char path[1024], command[1100];
	struct found f;

	path_in(path, "sub");
	options.folder = path;
	recording_allow(r, 10 * ALLOWED);
	recording_start(r);
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	snprintf(command, sizeof(command), "rm -r '%s'", path);
	CHECK(!system(command), "cannot delete the folder");
	for (unsigned i = 0; i < 5; i++)
		CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	CHECK(heard.said == 1 && strstr(heard.last, "No such file"), "%u times: %s", heard.said,
	      heard.last);
	CHECK(tacho__segments_due(s) != UINT64_MAX, "nothing will be tried again");
	CHECK(access(path, F_OK), "the folder was made again");
	CHECK(!mkdir(path, 0700), "cannot make the folder");
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	CHECK(heard.said == 2 && strstr(heard.last, "again"), "%u times: %s", heard.said,
	      heard.last);
	recording_stop(r);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "the last drain failed");
	tacho__segments_close(s);
	f = recording_read(path);
	CHECK(f.events == recording_made(r) && !f.gaps, "%llu of %llu records",
	      (unsigned long long)f.events, (unsigned long long)recording_made(r));
	segments_dir_remove();
}

static void write_and_die(void *arg)
{
	struct recording *r = arg;
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct tacho__segments *s = segments_open(&options);
	struct tacho__row *row = tacho__segments_row(s, r->box);

	for (unsigned i = 0; i < 4; i++)
		CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_ALL), "drain failed");
	_exit(0);
}

/* As if the kernel had written only a part of what an agent wrote before it died. */
static void cut_file(uint64_t max_bytes, uint32_t pace_us, int lossy)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(3, max_bytes);
	struct tacho__segments *s;
	struct tacho__row *row;
	unsigned hurt = 0;
	struct found f;

	srand(1);
	r->pace_us = pace_us;
	if (!lossy)
		recording_allow(r, ALLOWED);
	recording_start(r);
	for (unsigned i = 0; i < 40 && !failed(); i++) {
		if (!lossy)
			recording_allow(r, ALLOWED);
		subject(write_and_die, r);
		hurt += hurt_parts(1);
	}
	recording_stop(r);
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "the last drain failed");
	tacho__segments_close(s);
	CHECK(hurt > 20, "only %u files were cut", hurt);
	f = recording_check(r);
	CHECK(lossy ? f.gaps > 0 : !f.gaps, "%llu records were lost", (unsigned long long)f.gaps);
	segments_dir_remove();
}

static void cut_whole(void)
{
	cut_file(32 << 20, 3000, 0);
}

static void cut_lossy(void)
{
	cut_file(2 << 20, 0, 1);
}

/* ------------------------------------------------------------------- damage */

static char *read_whole(const char *path, size_t *size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *data = NULL;

	*size = 0;
	if (fd >= 0 && !fstat(fd, &st))
		data = malloc((size_t)st.st_size + 1);
	if (data && read(fd, data, (size_t)st.st_size) == st.st_size)
		*size = (size_t)st.st_size;
	if (fd >= 0)
		close(fd);
	return data;
}

/* The same with some bytes changed, more of them near the beginning. */
static void write_hurt(const char *path, const char *data, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size, "cannot write %s", path);
	for (int i = rand() % 8; i >= 0; i--) {
		size_t reach = rand() % 2 ? size : size < 8192 ? size : 8192;
		uint64_t value = (uint64_t)rand() << (rand() % 40);
		off_t at = (off_t)(((size_t)rand() * 4096u + (size_t)rand()) % reach);

		CHECK(pwrite(fd, &value, 1 + (size_t)rand() % 8, at) > 0, "cannot damage %s", path);
	}
	close(fd);
}

/* Whatever a file or a box says, the agent goes on; and what it writes is no box's fault. */
static void damaged(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(2, 1 << 20);
	char part[1024] = "", box[600];
	size_t part_size, box_size;
	char *part_data, *box_data;
	DIR *d;
	struct dirent *e;

	recording_allow(r, 3000);
	recording_start(r);
	subject(write_and_die, r);
	recording_stop(r);
	d = opendir(segments_dir());
	while (d && (e = readdir(d)))
		if (strstr(e->d_name, ".part"))
			path_in(part, e->d_name);
	if (d)
		closedir(d);
	part_data = read_whole(part, &part_size);
	box_data = read_whole(r->box, &box_size);
	CHECK(part_size && box_size, "nothing to damage");
	snprintf(box, sizeof(box), "%s", r->box);
	srand(2);
	for (unsigned i = 0; i < 60 && !failed(); i++) {
		struct tacho__segments *s;
		struct tacho__row *row;

		write_hurt(part, part_data, part_size);
		write_hurt(box, box_data, box_size);
		s = segments_open(&options);
		row = tacho__segments_row(s, box);
		tacho__segments_drain(s, row, TACHO__DRAIN_ALL);
		tacho__segments_drain(s, row, TACHO__DRAIN_END);
		tacho__segments_close(s);
		CHECK(!heard.said, "it said: %s", heard.last);
	}
	free(part_data);
	free(box_data);
	segments_dir_remove();
}

/* How many indices are in all segments. With `cut`, each is made one that its agent had not finished: what
   follows its index is cut off. */
static unsigned count_indices(bool cut)
{
	DIR *d = opendir(segments_dir());
	struct dirent *e;
	unsigned count = 0;

	while (d && (e = readdir(d))) {
		char path[1024], part[1040];
		struct tacho__blocks b;
		uint64_t end = 0;
		int fd;

		if (e->d_name[0] == '.' || strstr(e->d_name, ".part"))
			continue;
		path_in(path, e->d_name);
		fd = open(path, O_RDWR);
		CHECK(!tacho__blocks_open(&b, fd), "%s cannot be read", path);
		while (tacho__blocks_next(&b) > 0)
			if (b.head.type == TACHO_BLOCK_INDEX) {
				count++;
				end = b.next;
			}
		tacho__blocks_free(&b);
		snprintf(part, sizeof(part), "%s.part", path);
		CHECK(!cut || (!ftruncate(fd, (off_t)end) && !rename(path, part)), "not cut: %s",
		      strerror(errno));
		close(fd);
	}
	if (d)
		closedir(d);
	return count;
}

/* An agent ends between the index and the mark that says that this is all. */
static void unmarked(void)
{
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct recording *r = recording_new(2, 16 << 20);
	struct tacho__segments *s;
	unsigned segments;

	recording_allow(r, ALLOWED);
	recording_start(r);
	recording_stop(r);
	s = segments_open(&options);
	CHECK(!tacho__segments_drain(s, tacho__segments_row(s, r->box), TACHO__DRAIN_END),
	      "the drain failed");
	tacho__segments_close(s);
	segments = count_indices(true);
	CHECK(segments && !count_files(".tacho"), "%u segments", segments);
	tacho__segments_close(segments_open(&options));
	CHECK(!count_files(".part"), "a segment is not finished");
	CHECK(count_indices(false) == segments, "a segment has two indices");
	recording_check(r);
	segments_dir_remove();
}

/* --------------------------------------------------------------------- limits */

static void limited(void *arg)
{
	struct recording *r = arg;
	struct heard heard = {0};
	struct tacho__segments_options options = segments_options(&heard);
	struct rlimit limit = {80000, 80000};
	struct tacho__segments *s;
	struct tacho__row *row;

	options.segment_bytes = 0;
	signal(SIGXFSZ, SIG_IGN);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit), "setrlimit: %s", strerror(errno));
	s = segments_open(&options);
	row = tacho__segments_row(s, r->box);
	while (recording_made(r) < 1500000 && !failed()) {
		CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_SEALED), "drain failed");
		recording_allow(r, ALLOWED);
		sleep_ms(1);
	}
	CHECK(!heard.said, "it said: %s", heard.last);
	CHECK(heard.finished > 3, "%u segments", heard.finished);
	__atomic_store_n(&r->stop, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE) != 2)
		sleep_ms(1);
	sleep_ms(20);
	CHECK(!tacho__segments_drain(s, row, TACHO__DRAIN_END), "the last drain failed");
	tacho__segments_close(s);
}

static void file_limit(void)
{
	struct recording *r = recording_new(3, 8 << 20);

	segments_dir();
	recording_allow(r, ALLOWED);
	recording_start(r);
	subject(limited, r);
	recording_stop(r);
	CHECK(!recording_check(r).gaps, "records were lost");
	segments_dir_remove();
}

static const struct test tests[] = {
	{"a folder belongs to one service and one agent", service},
	{"a folder with traces of others is refused", foreign},
	{"a folder that is not there is made", makes_folder},
	{"segments stay under their cap, across agents, and the oldest go", cap},
	{"a segment that is deleted while it is written is written again", deleted_file},
	{"a folder that is deleted is used again once it is back", deleted_folder},
	{"a segment cut anywhere is finished and nothing is lost", cut_whole},
	{"a segment cut anywhere keeps count of what was lost", cut_lossy},
	{"damaged segments and boxes do no harm", damaged},
	{"a segment that lacks nothing but the mark of its end has one index", unmarked},
	{"segments end before the limit of a file's size", file_limit},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, COUNT(tests));
}
