#include "recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../process/lib.h"
#include "format/trace.h"
#include "read/records.h"
#include "tacho.h"
#include "tacho_read.h"

#define WRITER_SHIFT 48
#define NUMBER_MASK ((1ull << WRITER_SHIFT) - 1)
#define WAIT_MS 120000

static char folder[512];

/* ------------------------------------------------------------------ subject */

struct recording *recording_new(uint32_t writers, uint64_t max_bytes)
{
	struct recording *r =
		mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (r == MAP_FAILED)
		abort();
	r->writers = writers;
	r->max_bytes = max_bytes;
	r->burst = 300;
	r->pace_us = 1000;
	return r;
}

struct writer {
	struct recording *recording;
	uint32_t index;
};

static uint64_t task_of(uint32_t writer, uint64_t n)
{
	return (uint64_t)(writer + 1) << WRITER_SHIFT | n;
}

static void kind_name(char *text, size_t size, uint32_t writer, uint64_t n)
{
	snprintf(text, size, "kind-%u-%llu", writer, (unsigned long long)(n / KIND_LASTS % KINDS));
}

__attribute__((noinline)) void recording_function(void)
{
	__asm__ volatile("");
}

static void put_record(const struct recording *r, uint32_t writer, uint64_t n)
{
	static __thread struct tacho_name kind;
	static __thread char text[64];

	if (n % KIND_LASTS == 0 || !kind.text) {
		kind_name(text, sizeof(text), writer, n);
		kind = (struct tacho_name)TACHO_KIND(text);
		if (r->address)
			kind.address = (const void *)recording_function;
	}
	if (n % 3 == 0)
		tacho_poll_begin(&kind, task_of(writer, n));
	else if (n % 3 == 1)
		tacho_wake(task_of(writer, n));
	else
		tacho_poll_end(TACHO_PENDING);
}

static int stopped(const struct recording *r)
{
	return __atomic_load_n(&r->stop, __ATOMIC_ACQUIRE) != 0;
}

static int may_go_on(const struct recording *r, uint32_t writer, uint64_t n)
{
	uint64_t allow = __atomic_load_n(&r->allow[writer], __ATOMIC_ACQUIRE);

	return !allow || n < allow || stopped(r);
}

static void *write_records(void *arg)
{
	struct writer *w = arg;
	struct recording *r = w->recording;
	uint64_t n = r->made[w->index], begin = n;

	while (!stopped(r) && (!r->lasts || n - begin < r->lasts)) {
		put_record(r, w->index, n++);
		__atomic_store_n(&r->made[w->index], n, __ATOMIC_RELEASE);
		if (w->index < r->quiet && n == 2)
			while (!stopped(r))
				sleep_ms(1);
		while (!may_go_on(r, w->index, n))
			usleep(200);
		if (r->pace_us && n % r->burst == 0)
			usleep(r->pace_us);
	}
	return NULL;
}

static void *run_threads(void *arg)
{
	struct writer *w = arg;
	pthread_t thread;

	while (!stopped(w->recording)) {
		pthread_create(&thread, NULL, write_records, w);
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void record(void *arg)
{
	struct recording *r = arg;
	struct tacho_options options = TACHO_OPTIONS_INIT;
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];

	options.max_bytes = r->max_bytes;
	if (r->how)
		options.crash_file = "/dev/null";
	start_with(&options);
	for (uint32_t i = 0; i < r->writers; i++) {
		writers[i] = (struct writer){r, i};
		pthread_create(&threads[i], NULL, r->lasts ? run_threads : write_records,
			       &writers[i]);
	}
	for (uint32_t i = 0; i < r->writers; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&r->stop, 2, __ATOMIC_RELEASE);
	if (r->how)
		raise(SIGSEGV);
	die();
}

/* The box of a process in the folder of boxes. */
static int find_box(struct recording *r)
{
	DIR *d = opendir(box_dir());
	struct dirent *e;
	int found = 0;

	while (d && !found && (e = readdir(d))) {
		if (e->d_name[0] == '.' || strtol(e->d_name, NULL, 10) != r->pid)
			continue;
		snprintf(r->box, sizeof(r->box), "%s/%s", box_dir(), e->d_name);
		found = 1;
	}
	if (d)
		closedir(d);
	return found;
}

void recording_start(struct recording *r)
{
	r->pid = subject_start(record, r);
	recording_wait(r, 1);
	recording_find(r);
}

void recording_find(struct recording *r)
{
	CHECK(find_box(r), "the subject made no box");
}

void recording_allow(struct recording *r, uint64_t more)
{
	for (uint32_t i = 0; i < r->writers; i++) {
		uint64_t made = __atomic_load_n(&r->made[i], __ATOMIC_ACQUIRE);

		__atomic_store_n(&r->allow[i], made + more, __ATOMIC_RELEASE);
	}
}

uint64_t recording_made(const struct recording *r)
{
	uint64_t made = 0;

	for (uint32_t i = 0; i < r->writers; i++)
		made += __atomic_load_n(&r->made[i], __ATOMIC_ACQUIRE);
	return made;
}

void recording_wait(struct recording *r, uint64_t made)
{
	for (int i = 0; i < WAIT_MS && recording_made(r) < made; i++)
		sleep_ms(1);
	CHECK(recording_made(r) >= made, "the subject made %llu of %llu records",
	      (unsigned long long)recording_made(r), (unsigned long long)made);
}

void recording_stop(struct recording *r)
{
	int status;

	__atomic_store_n(&r->stop, 1, __ATOMIC_RELEASE);
	status = subject_wait(r->pid);
	if (r->how)
		CHECK(WIFSIGNALED(status), "the subject did not crash");
	else
		check_exit(status, 0);
}

/* ------------------------------------------------------------------- folder */

const char *segments_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "%s/tacho-segments-XXXXXX",
			 tmp && *tmp ? tmp : "/tmp");
		CHECK(mkdtemp(folder), "no folder: %s", strerror(errno));
	}
	return folder;
}

static int remove_entry(const char *path, const struct stat *st, int what, struct FTW *at)
{
	(void)st;
	(void)what;
	(void)at;
	remove(path);
	return 0;
}

void segments_dir_remove(void)
{
	if (folder[0])
		nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	folder[0] = 0;
}

static int ends_with(const char *name, const char *end)
{
	size_t size = strlen(name), tail = strlen(end);

	return size > tail && !strcmp(name + size - tail, end);
}

unsigned count_files(const char *end)
{
	DIR *d = opendir(segments_dir());
	struct dirent *e;
	unsigned count = 0;

	while (d && (e = readdir(d)))
		count += ends_with(e->d_name, end) != 0;
	if (d)
		closedir(d);
	return count;
}

static int is_segment(const struct dirent *e)
{
	size_t size = strlen(e->d_name);

	return size > 6 && !strcmp(e->d_name + size - 6, ".tacho");
}

int each_segment(void (*check)(const char *path, unsigned index))
{
	struct dirent **entries = NULL;
	int n = scandir(segments_dir(), &entries, is_segment, alphasort);

	for (int i = 0; i < n; i++) {
		char path[1024];

		snprintf(path, sizeof(path), "%s/%s", segments_dir(), entries[i]->d_name);
		check(path, (unsigned)i);
		free(entries[i]);
	}
	free(entries);
	return n;
}

uint64_t folder_bytes(void)
{
	DIR *d = opendir(segments_dir());
	struct dirent *e;
	uint64_t bytes = 0;

	while (d && (e = readdir(d))) {
		struct stat st;

		if ((ends_with(e->d_name, ".tacho") || ends_with(e->d_name, ".part")) &&
		    !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_size;
	}
	if (d)
		closedir(d);
	return bytes;
}

static void on_finished(void *arg, const char *path, uint64_t bytes)
{
	struct heard *h = arg;
	struct stat st;

	h->finished++;
	CHECK(!stat(path, &st) && (uint64_t)st.st_size == bytes,
	      "a finished segment is not there, or of another size: %s", path);
}

static void on_say(void *arg, const char *sentence)
{
	struct heard *h = arg;

	h->said++;
	snprintf(h->last, sizeof(h->last), "%s", sentence);
}

struct tacho__segments_options segments_options(struct heard *heard)
{
	return (struct tacho__segments_options){
		.folder = segments_dir(),
		.service = "test",
		.segment_bytes = 256 << 10,
		.no_symbols = true,
		.finished = on_finished,
		.say = on_say,
		.arg = heard,
	};
}

struct tacho__segments *segments_open(const struct tacho__segments_options *options)
{
	struct tacho__segments *s = NULL;
	char message[512];
	int err = tacho__segments_open(&s, options, message, sizeof(message));

	CHECK(!err, "segments cannot be opened: %s", message);
	return s;
}

/* ------------------------------------------------------------------ reading */

struct stream {
	int known;
	uint32_t writer;
	uint64_t next;	  /* record that must come; valid once known */
	uint64_t pending; /* records since the first, while it is not known which it was */
	uint64_t lost;	  /* before those */
	int open;	  /* what RESUME said, while it is not known: -1 nothing */
};

static void check_open(const struct tacho_resume_info *resume, uint32_t writer, uint64_t next)
{
	int inside = next % 3 != 0;

	CHECK(resume->open_count == (uint32_t)inside, "%u polls are open before record %llu",
	      resume->open_count, (unsigned long long)next);
	if (inside && resume->open_count == 1)
		CHECK(resume->open[0].task == task_of(writer, next - next % 3),
		      "the poll open before record %llu is %llx", (unsigned long long)next,
		      (unsigned long long)resume->open[0].task);
}

static void read_resume(struct found *f, struct stream *s, const struct tacho_resume_info *r)
{
	CHECK(!r->dropped, "%u records were dropped", r->dropped);
	f->missing += r->missing;
	f->resumes += !r->first;
	if (s->known) {
		s->next += r->missing;
		check_open(r, s->writer, s->next);
	}
}

static void read_record(struct tacho_reader *reader, struct found *f, struct stream *s,
			const struct tacho_event *e)
{
	static const uint8_t types[] = {TACHO_EV_POLL_BEGIN, TACHO_EV_WAKE, TACHO_EV_POLL_END};

	f->events++;
	if (e->type == TACHO_EV_POLL_HIST) {
		f->hists++;
		return;
	}
	if (!s->known && e->words) {
		s->known = 1;
		s->writer = (uint32_t)(e->word[0] >> WRITER_SHIFT) - 1;
		s->next = e->word[0] & NUMBER_MASK;
		if (s->writer >= WRITERS) {
			CHECK(0, "a record of no writer");
			s->writer = 0;
		}
		f->missing += s->next - s->pending;
	} else if (!s->known) {
		s->pending++;
		return;
	}
	CHECK(e->type == types[s->next % 3], "record %llu has type %u", (unsigned long long)s->next,
	      e->type);
	if (e->words) {
		uint64_t n = e->word[0] & NUMBER_MASK;

		if (n < s->next)
			f->repeated++;
		CHECK(e->word[0] == task_of(s->writer, s->next),
		      "writer %u: record %llu where %llu must be", s->writer, (unsigned long long)n,
		      (unsigned long long)s->next);
		s->next = n;
	}
	if (e->type == TACHO_EV_POLL_BEGIN) {
		const struct tacho_definition *d =
			tacho_read_definition(reader, e->process, e->arg);
		char name[64];

		kind_name(name, sizeof(name), s->writer, s->next);
		CHECK(d && !strcmp(d->name, name), "kind %u is %s, not %s", e->arg,
		      d ? d->name : "not defined", name);
	}
	s->next++;
	f->next[s->writer] = s->next;
}

static void read_facts(struct tacho_reader *reader, struct found *f)
{
	for (uint32_t i = 0; i < tacho_read_problem_count(reader); i++)
		CHECK(0, "%s: %s", tacho_read_problem(reader, i)->path,
		      tacho_read_problem(reader, i)->text);
	for (uint32_t i = 0; i < tacho_read_gap_count(reader); i++) {
		const struct tacho_gap *g = tacho_read_gap(reader, i);

		f->gaps += g->records;
		f->gap_count++;
		f->reasons |= 1u << tacho__gap_reason(g->reason);
	}
	f->crashes = tacho_read_crash_count(reader);
}

struct found recording_read(const char *path)
{
	struct stream streams[64] = {{0}};
	struct found f = {0};
	struct tacho_reader *reader;
	const struct tacho_event *e;
	char message[512];
	int more;

	if (!CHECK(!tacho_read_open(&reader, path, NULL, message, sizeof(message)), "%s", message))
		return f;
	while ((more = tacho_read_next(reader, &e)) > 0) {
		if (!CHECK(e->thread < 64 && e->stream == TACHO_STREAM_NORMAL,
			   "thread %u, stream %u", e->thread, e->stream))
			continue;
		if (e->type == TACHO_EV_RESUME)
			read_resume(&f, &streams[e->thread], e->resume);
		else
			read_record(reader, &f, &streams[e->thread], e);
	}
	CHECK(!more, "reading failed: %d", more);
	read_facts(reader, &f);
	tacho_read_close(reader);
	return f;
}

/* A folder's reader leaves out what is there twice; here it shows. */
static uint64_t count_alone(void)
{
	DIR *d = opendir(segments_dir());
	uint64_t events = 0;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct tacho_reader *reader;
		const struct tacho_event *event;
		char path[1024], message[512];

		if (!ends_with(e->d_name, ".tacho"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", segments_dir(), e->d_name);
		if (!CHECK(!tacho_read_open(&reader, path, NULL, message, sizeof(message)), "%s",
			   message))
			continue;
		while (tacho_read_next(reader, &event) > 0)
			events += event->type != TACHO_EV_RESUME;
		tacho_read_close(reader);
	}
	if (d)
		closedir(d);
	return events;
}

struct found recording_check(const struct recording *r)
{
	struct found f = recording_read(segments_dir());
	uint64_t made = recording_made(r);

	for (uint32_t i = 0; i < r->writers; i++)
		CHECK(f.next[i] == r->made[i], "writer %u: the last record is %llu of %llu", i,
		      (unsigned long long)f.next[i], (unsigned long long)r->made[i]);
	f.alone = count_alone();
	CHECK(f.alone == f.events, "%llu events in the folder, %llu in its segments",
	      (unsigned long long)f.events, (unsigned long long)f.alone);
	CHECK(!f.repeated, "%llu records are there twice", (unsigned long long)f.repeated);
	CHECK(f.missing == f.gaps, "%llu records are missing, gaps count %llu",
	      (unsigned long long)f.missing, (unsigned long long)f.gaps);
	CHECK(f.events + f.gaps == made, "%llu events and %llu in gaps are not %llu",
	      (unsigned long long)f.events, (unsigned long long)f.gaps, (unsigned long long)made);
	return f;
}

struct found recording_count(const struct recording *r)
{
	struct found f = {0};
	struct tacho_reader *reader;
	const struct tacho_event *e;
	uint64_t limit = recording_made(r) + 64;
	uint64_t *there = calloc(r->writers * limit / 64 + 1, sizeof(*there));
	char message[512];

	if (!CHECK(there && !tacho_read_open(&reader, segments_dir(), NULL, message,
					     sizeof(message)),
		   "%s", message))
		return f;
	while (tacho_read_next(reader, &e) > 0) {
		uint64_t at;

		if (e->type == TACHO_EV_RESUME) {
			f.missing += e->resume->missing;
			continue;
		}
		f.events++;
		if (!e->words)
			continue;
		at = (e->word[0] & NUMBER_MASK) + ((e->word[0] >> WRITER_SHIFT) - 1) * limit;
		if (!CHECK(at < r->writers * limit, "a record of no writer"))
			continue;
		f.repeated += there[at / 64] >> at % 64 & 1;
		there[at / 64] |= 1ull << at % 64;
	}
	read_facts(reader, &f);
	tacho_read_close(reader);
	free(there);
	f.alone = count_alone();
	CHECK(f.alone == f.events, "%llu events in the folder, %llu in its segments",
	      (unsigned long long)f.events, (unsigned long long)f.alone);
	CHECK(!f.repeated, "%llu records are there twice", (unsigned long long)f.repeated);
	CHECK(f.events + f.gaps == recording_made(r), "%llu events and %llu in gaps are not %llu",
	      (unsigned long long)f.events, (unsigned long long)f.gaps,
	      (unsigned long long)recording_made(r));
	return f;
}
