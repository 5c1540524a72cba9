#include "lib.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SUBJECT_SECONDS 120

/* Shared by all processes of a test. */
static struct {
	uint32_t failures;
	uint32_t skipped;
	char first[400];
	char why[200];
	uint64_t page[512];
} * common;

static char dir[200];
static char point[200];
static struct boxes boxes;
static pid_t pids[256]; /* subjects of this test */
static unsigned pid_count;

/* ------------------------------------------------------------- results */

int check_at(int good, const char *file, int line, const char *format, ...)
{
	char text[300];
	va_list args;

	if (good)
		return 1;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!__atomic_fetch_add(&common->failures, 1, __ATOMIC_ACQ_REL))
		snprintf(common->first, sizeof(common->first), "%s (%s:%d)", text,
			 strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line);
	return 0;
}

void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(common->why, sizeof(common->why), format, args);
	va_end(args);
	common->skipped = 1;
}

int failed(void)
{
	return __atomic_load_n(&common->failures, __ATOMIC_ACQUIRE) != 0;
}

const char *box_dir(void)
{
	return dir;
}

int emulated(void)
{
	const char *under = getenv("TACHO_TEST_UNDER");

	return under && !strcmp(under, "arm64");
}

static int remove_entry(const char *path, const struct stat *st, int what, struct FTW *at)
{
	(void)st;
	(void)what;
	(void)at;
	remove(path);
	return 0;
}

/* A subject that cannot use its folder leaves the reason in the user's own one. */
static void remove_notes(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		long pid = strtol(e->d_name, NULL, 10);

		for (unsigned i = 0; i < pid_count && i < 256; i++)
			if (pid == pids[i])
				unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		closedir(d);
	rmdir(folder); /* if nobody else uses it */
}

static void remove_all_notes(void)
{
	const unsigned users[] = {geteuid(), 65534};
	char folder[64];

	for (int i = 0; i < 2; i++) {
		snprintf(folder, sizeof(folder), "/dev/shm/tacho-%u", users[i]);
		remove_notes(folder);
		snprintf(folder, sizeof(folder), "/tmp/tacho-%u", users[i]);
		remove_notes(folder);
	}
	pid_count = 0;
}

const char *mount_point(void)
{
	const char *tmp = getenv("TMPDIR");

	if (!point[0]) {
		snprintf(point, sizeof(point), "%s/tacho-mount-XXXXXX", tmp && *tmp ? tmp : "/tmp");
		CHECK(mkdtemp(point), "no folder to mount on: %s", strerror(errno));
	}
	return point;
}

/* Subjects may leave children; this process became their parent. */
static void end_children(void)
{
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	for (int round = 0; round < 50; round++) {
		FILE *f = fopen(path, "r");
		size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
		char *at = text;
		long pid;

		if (f)
			fclose(f);
		text[n] = 0;
		if (!n)
			return;
		while ((pid = strtol(at, &at, 10)) > 0) {
			kill((pid_t)pid, SIGKILL);
			waitpid((pid_t)pid, NULL, 0);
		}
	}
}

static void run_one(const struct test *test)
{
	const char *parent = getenv("TESTS_BOX_PARENT");

	memset(common, 0, sizeof(*common));
	snprintf(dir, sizeof(dir), "%s/t-XXXXXX", parent);
	if (!mkdtemp(dir)) {
		printf("not ok %s: no folder for boxes in %s\n", test->name, parent);
		common->failures = 1;
		return;
	}
	setenv("TACHO_BOX_DIR", dir, 1);
	test->run();
	boxes_close();
	end_children();
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	remove_all_notes();
	if (point[0])
		rmdir(point);
	point[0] = 0;
	if (common->failures)
		printf("not ok %s: %s%s\n", test->name, common->first,
		       common->failures > 1 ? " and more" : "");
	else if (common->skipped)
		printf("skip %s: %s\n", test->name, common->why);
	else
		printf("ok %s\n", test->name);
	fflush(stdout);
}

static int wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return 1;
	return argc < 2;
}

int tests_main(int argc, char **argv, const struct test *tests, size_t count)
{
	const char *parent = getenv("TACHO_BOX_DIR");
	int bad = 0;

	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (common == MAP_FAILED)
		return 2;
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	setenv("TESTS_BOX_PARENT", parent && *parent ? parent : "/dev/shm", 1);
	for (size_t i = 0; i < count; i++) {
		if (!wanted(tests[i].name, argc, argv))
			continue;
		run_one(&tests[i]);
		bad |= common->failures != 0;
	}
	return bad;
}

/* ------------------------------------------------------------ subjects */

pid_t subject_start(void (*body)(void *), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		body(arg);
		_exit(0);
	}
	CHECK(pid > 0, "fork: %s", strerror(errno));
	pids[pid_count++ % 256] = pid;
	return pid;
}

int subject_wait(pid_t pid)
{
	struct timespec begin, now;
	int status = -1;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid || (got < 0 && errno != EINTR))
			return status;
		sleep_ms(1);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begin.tv_sec < SUBJECT_SECONDS);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CHECK(0, "the subject had not ended after %d s", SUBJECT_SECONDS);
	return status;
}

void check_exit(int status, int code)
{
	if (WIFSIGNALED(status))
		CHECK(0, "the subject was ended by signal %d (%s)", WTERMSIG(status),
		      strsignal(WTERMSIG(status)));
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code,
		      "the subject ended with status %d, not %d", WEXITSTATUS(status), code);
}

void subject(void (*body)(void *), void *arg)
{
	check_exit(subject_wait(subject_start(body, arg)), 0);
}

void die(void)
{
	_exit(0); /* no destructors run: the box stays */
}

void start_with(const struct tacho_options *options)
{
	int err = tacho_start(options);

	if (err) {
		struct tacho_status_info st = {.size = sizeof(st)};

		tacho_status(&st);
		CHECK(0, "tacho_start: %d, %s", err, st.reason);
		_exit(99);
	}
}

void start(void)
{
	start_with(NULL);
}

void sleep_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* The upper half of the shared page; tests use the lower one. */
struct gate {
	uint64_t open;
};

struct gate *gate_new(void)
{
	uint64_t n = __atomic_fetch_add(&common->page[511], 1, __ATOMIC_RELAXED);

	return (struct gate *)&common->page[256 + n % 255];
}

void gate_open(struct gate *gate)
{
	__atomic_store_n(&gate->open, 1, __ATOMIC_RELEASE);
}

int gate_is_open(struct gate *gate)
{
	return __atomic_load_n(&gate->open, __ATOMIC_ACQUIRE) != 0;
}

void gate_pass(struct gate *gate)
{
	for (int i = 0; i < 60000 && !gate_is_open(gate); i++)
		sleep_ms(1);
	CHECK(gate_is_open(gate), "waited a minute at a gate");
}

uint64_t *shared(void)
{
	return common->page;
}

/* --------------------------------------------------------------- marks */

#define NUMBER_BITS 28
#define WRITER_BITS 14

uint64_t mark_value(uint32_t pid, uint32_t writer, uint32_t number)
{
	return (uint64_t)pid << (NUMBER_BITS + WRITER_BITS) | (uint64_t)writer << NUMBER_BITS |
	       number;
}

void mark(uint32_t writer, uint32_t number)
{
	tacho_wake(mark_value((uint32_t)getpid(), writer, number));
}

static void tally_mark(struct tally *t, const struct tacho_event *e, uint32_t pid)
{
	uint64_t v = e->word[0];
	uint32_t writer = (uint32_t)(v >> NUMBER_BITS) % MARK_WRITERS;
	uint32_t number = (uint32_t)(v & ((1u << NUMBER_BITS) - 1));

	t->marks++;
	t->streams += e->stream != TACHO_STREAM_NORMAL;
	if (v >> (NUMBER_BITS + WRITER_BITS) != pid) {
		t->foreign++;
		return;
	}
	if (!t->count[writer]) {
		t->writers++;
		t->first[writer] = number;
		t->thread[writer] = e->thread;
	} else if (number != t->last[writer] + 1) {
		t->disorder++;
	}
	t->mixed += t->thread[writer] != e->thread;
	t->last[writer] = number;
	t->count[writer]++;
}

const struct tally *tally(struct box *box)
{
	static struct tally t;
	const struct tacho_event *e;
	uint64_t before = 0;
	int more = 0;

	memset(&t, 0, sizeof(t));
	if (!CHECK(box && box->reader, "no box that can be read: %s", box ? box->message : ""))
		return &t;
	while ((more = tacho_read_next(box->reader, &e)) > 0) {
		if (!CHECK(e->ns >= before, "an event is before the one that came first"))
			break;
		before = e->ns;
		if (e->type == TACHO_EV_RESUME) {
			t.missing += e->resume->missing;
			t.dropped += e->resume->dropped;
			continue;
		}
		t.events++;
		if (e->type == TACHO_EV_WAKE)
			tally_mark(&t, e, process_of(box)->pid);
	}
	CHECK(more == 0, "reading the box ended with error %d", more);
	return &t;
}

const struct tally *tally_whole(struct box *box, uint64_t marks)
{
	const struct tally *t = tally(box);

	CHECK(t->marks == marks, "%llu marks in the box, not %llu", (unsigned long long)t->marks,
	      (unsigned long long)marks);
	CHECK(!t->foreign, "%llu marks of another process in the box",
	      (unsigned long long)t->foreign);
	CHECK(!t->disorder, "%llu holes among the marks", (unsigned long long)t->disorder);
	CHECK(!t->missing && !t->dropped, "%llu records missing, %llu dropped",
	      (unsigned long long)t->missing, (unsigned long long)t->dropped);
	if (box)
		check_no_problem(box);
	return t;
}

void check_writer(const struct tally *t, uint32_t writer, uint32_t count)
{
	CHECK(t->count[writer] == count, "writer %u: %u marks, not %u", writer, t->count[writer],
	      count);
	if (count && t->count[writer])
		CHECK(t->first[writer] == 0 && t->last[writer] == count - 1,
		      "writer %u: marks %u to %u, not 0 to %u", writer, t->first[writer],
		      t->last[writer], count - 1);
}

/* --------------------------------------------------------------- boxes */

static int compare(const void *a, const void *b)
{
	const struct box *x = a, *y = b;

	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid) : x->n - y->n;
}

struct boxes *boxes_open(const char *from)
{
	DIR *d = opendir(from);
	struct dirent *e;

	boxes_close();
	while (d && (e = readdir(d)) && boxes.count < BOXES_MAX) {
		struct box *b = &boxes.box[boxes.count];
		unsigned long long begun;

		if (sscanf(e->d_name, "%d-%llu-%d.box", &b->pid, &begun, &b->n) != 3)
			continue;
		snprintf(b->path, sizeof(b->path), "%s/%s", from, e->d_name);
		b->message[0] = 0;
		b->error =
			tacho_read_open(&b->reader, b->path, NULL, b->message, sizeof(b->message));
		boxes.count++;
	}
	if (d)
		closedir(d);
	qsort(boxes.box, boxes.count, sizeof(boxes.box[0]), compare);
	return &boxes;
}

void boxes_close(void)
{
	for (size_t i = 0; i < boxes.count; i++)
		tacho_read_close(boxes.box[i].reader);
	memset(&boxes, 0, sizeof(boxes));
}

struct box *box_of(pid_t pid, int n)
{
	for (size_t i = 0; i < boxes.count; i++)
		if (boxes.box[i].pid == pid && boxes.box[i].n == n)
			return &boxes.box[i];
	CHECK(0, "process %d left no box %d (%zu boxes)", (int)pid, n, boxes.count);
	return NULL;
}

struct box *the_box(void)
{
	boxes_open(dir);
	if (!CHECK(boxes.count == 1, "%zu boxes, not one", boxes.count))
		return NULL;
	if (!CHECK(boxes.box[0].reader, "%s", boxes.box[0].message))
		return NULL;
	return &boxes.box[0];
}

const struct tacho_process *process_of(const struct box *box)
{
	return tacho_read_process(box->reader, 0);
}

void check_no_problem(const struct box *box)
{
	for (uint32_t i = 0; box->reader && i < tacho_read_problem_count(box->reader); i++) {
		const struct tacho_problem *p = tacho_read_problem(box->reader, i);

		/* A box that is milliseconds old: true, and nothing is wrong with it. */
		if (strcmp(p->name, "clock-rough"))
			CHECK(0, "problem in the box: %s", p->text);
	}
}

uint64_t loss(const struct box *box, const char *name)
{
	struct tacho_loss_info info = {.size = sizeof(info)};

	for (uint32_t i = 0; box && i < tacho_read_loss_count(box->reader); i++)
		if (tacho_read_loss(box->reader, 0, i, &info) >= 0 && !strcmp(info.name, name))
			return info.count;
	CHECK(0, "there is no loss named %s", name);
	return 0;
}

const char *name_of(const struct box *box, uint32_t id)
{
	const struct tacho_definition *d = tacho_read_definition(box->reader, 0, id);

	return d ? d->name : "";
}

const char *cli(const char *arguments)
{
	static char text[65536];
	const char *program = getenv("TACHO_BIN");
	char command[700];
	FILE *f;
	size_t n;

	if (!program || access(program, X_OK) || emulated())
		return NULL;
	snprintf(command, sizeof(command), "%s %s 2>&1", program, arguments);
	f = popen(command, "r");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = 0;
	if (f)
		pclose(f);
	return text;
}

unsigned count_entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}
