/* Options: good ones take effect, bad ones are refused in a sentence, never replaced. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib.h"

static const char *long_text(size_t n)
{
	static char text[600];

	memset(text, 'x', n);
	text[0] = '/';
	text[n] = 0;
	return text;
}

/* ----------------------------------------------------- the environment */

struct setting {
	const char *name, *value;
};

static void refused_body(void *arg)
{
	const struct setting *s = arg;
	struct tacho_status_info st = {.size = sizeof(st)};
	int err;

	setenv(s->name, s->value, 1);
	err = tacho_start(NULL);
	CHECK(err == -EINVAL, "%s=%s: tacho_start gave %d", s->name, s->value, err);
	tacho_status(&st);
	CHECK(st.state == TACHO_STATE_OFF && st.error == EINVAL, "%s=%s: state %u, error %d",
	      s->name, s->value, st.state, st.error);
	CHECK(strstr(st.reason, s->name), "%s=%s: the reason does not name it: '%s'", s->name,
	      s->value, st.reason);
	CHECK(!st.box[0] && !st.max_bytes, "%s=%s: there is a box all the same", s->name, s->value);
	/* The program goes on, and all calls still work. */
	mark(0, 0);
	CHECK(tacho_trigger("nothing records") == 0, "a trigger was counted");
	CHECK(tacho_snapshot(1) == -ENODATA, "a snapshot was written");
	tacho_pause();
	tacho_resume();
	mark(0, 1);
	tacho_stop();
}

/* A box that says why there is no recording was left behind. */
static void check_note(const struct setting *s)
{
	struct boxes *b = boxes_open(box_dir());

	if (!strcmp(s->name, "TACHO_BOX_DIR"))
		return; /* it stands where boxes are by default */
	if (!CHECK(b->count == 1, "%s=%s: %zu notes in the folder", s->name, s->value, b->count))
		return;
	CHECK(b->box[0].error == -ENODATA, "%s=%s: reading the note gave %d (%s)", s->name,
	      s->value, b->box[0].error, b->box[0].message);
	CHECK(strstr(b->box[0].message, s->name), "%s=%s: the note says '%s'", s->name, s->value,
	      b->box[0].message);
	unlink(b->box[0].path);
}

static void test_refused(void)
{
	static char long_dir[260], long_service[80], long_file[260];
	const struct setting settings[] = {
		{"TACHO_MAX_BYTES", "lots"},
		{"TACHO_MAX_BYTES", "10X"},
		{"TACHO_MAX_BYTES", "-1"},
		{"TACHO_MAX_BYTES", "1.5M"},
		{"TACHO_MAX_BYTES", "32 M"},
		{"TACHO_MAX_BYTES", "1023K"},
		{"TACHO_MAX_BYTES", "65G"},
		{"TACHO_MAX_BYTES", "18446744073709551617"},
		{"TACHO_MAX_BYTES", "0"},
		{"TACHO_MEMORY_SHARE", "0"},
		{"TACHO_MEMORY_SHARE", "51"},
		{"TACHO_MEMORY_SHARE", "5%"},
		{"TACHO_MIN_AGE", "10"},
		{"TACHO_MIN_AGE", "-1s"},
		{"TACHO_MIN_AGE", "1s2"},
		{"TACHO_MIN_AGE", "9999999h"},
		{"TACHO_POLL_THRESHOLD", "50"},
		{"TACHO_POLL_THRESHOLD", "50usec"},
		{"TACHO_POLL_THRESHOLD", "us"},
		{"TACHO_SLOW_POLL", "10"},
		{"TACHO_SLOW_POLL", "soon"},
		{"TACHO_SLOW_POLL", "-1ms"},
		{"TACHO_CLOCK", "tsc"},
		{"TACHO_KEEP_BOX", "2"},
		{"TACHO_KEEP_BOX", "yes"},
		{"TACHO_ON", "poll"},
		{"TACHO_ON", "poll>"},
		{"TACHO_ON", "pol>50ms"},
		{"TACHO_ON", "poll>50ms,queue>many"},
		{"TACHO_ON", "stall>2s"},
		{"TACHO_DEAD_BOXES", "0"},
		{"TACHO_DEAD_BOXES", "1025"},
		{"TACHO_DEAD_BOXES", "8 "},
		{"TACHO_REDACT", "no"},
		{"TACHO_REDACT", "0"},
		{"TACHO_SERVICE", long_service},
		{"TACHO_CRASH_FILE", long_file},
		{"TACHO_BOX_DIR", "boxes"},
		{"TACHO_BOX_DIR", long_dir},
		{"TACHO", "maybe"},
		{"TACHO", "OFF"},
	};

	memcpy(long_dir, long_text(200), 201);
	memcpy(long_service, long_text(64), 65);
	memcpy(long_file, long_text(200), 201);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]) && !failed(); i++) {
		subject(refused_body, (void *)&settings[i]);
		check_note(&settings[i]);
	}
}

static void good_body(void *arg)
{
	(void)arg;
	setenv("TACHO", "on", 1);
	setenv("TACHO_MAX_BYTES", "3M", 1);
	setenv("TACHO_MIN_AGE", "1.5s", 1);
	setenv("TACHO_POLL_THRESHOLD", "250ns", 1);
	setenv("TACHO_SERVICE", "the service", 1);
	setenv("TACHO_CLOCK", "monotonic", 1);
	setenv("TACHO_KEEP_BOX", "1", 1);
	setenv("TACHO_DEAD_BOXES", "1024", 1);
	start();
	mark(0, 0);
	exit(0);
}

static void test_environment(void)
{
	const struct tacho_process *p;
	struct stat st;
	struct box *b;

	subject(good_body, NULL);
	b = the_box();
	check_writer(tally_whole(b, 1), 0, 1);
	if (failed())
		return;
	p = process_of(b);
	CHECK(p->max_bytes == 3u << 20, "max_bytes %llu", (unsigned long long)p->max_bytes);
	CHECK(!stat(b->path, &st) && st.st_size == 3 << 20, "the file has another size");
	CHECK((st.st_mode & 07777) == 0600, "mode %o", st.st_mode & 07777);
	CHECK(p->min_age_ns == 1500000000, "min_age %llu", (unsigned long long)p->min_age_ns);
	CHECK(p->poll_threshold_ns == 250, "threshold %llu",
	      (unsigned long long)p->poll_threshold_ns);
	CHECK(!strcmp(p->service, "the service"), "service '%s'", p->service);
	CHECK(p->clock == TACHO_CLOCK_MONOTONIC, "clock %u", p->clock);
	CHECK(p->state == TACHO_STATE_STOPPED, "a process that ended in order has state %u",
	      p->state);
	CHECK(strstr(p->comm, "options") || emulated(), "comm '%s'", p->comm);
}

static void sizes_body(void *arg)
{
	struct tacho_status_info st = {.size = sizeof(st)};

	setenv("TACHO_MAX_BYTES", ((struct setting *)arg)->name, 1);
	start();
	tacho_status(&st);
	CHECK(st.max_bytes == strtoull(((struct setting *)arg)->value, NULL, 10),
	      "TACHO_MAX_BYTES=%s makes %llu", ((struct setting *)arg)->name,
	      (unsigned long long)st.max_bytes);
}

static void test_units(void)
{
	static const struct setting units[] = {
		{"1048576", "1048576"}, {"1024K", "1048576"},	{"2MiB", "2097152"},
		{"1g", "1073741824"},	{"1048577", "1048577"},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		subject(sizes_body, (void *)&units[i]);
}

static void off_body(void *arg)
{
	struct tacho_options o = TACHO_OPTIONS_INIT;
	struct tacho_status_info st = {.size = sizeof(st)};

	(void)arg;
	setenv("TACHO", "off", 1);
	CHECK(tacho_start(&o) == -ECANCELED, "TACHO=off did not switch it off");
	tacho_status(&st);
	CHECK(st.state == TACHO_STATE_OFF && strstr(st.reason, "TACHO=off"),
	      "state %u, reason '%s'", st.state, st.reason);
	mark(0, 0);
}

static void test_off(void)
{
	subject(off_body, NULL);
	CHECK(boxes_open(box_dir())->count == 0, "TACHO=off left something in the folder");
}

static void wins_body(void *arg)
{
	struct tacho_options o = TACHO_OPTIONS_INIT;
	struct tacho_status_info st = {.size = sizeof(st)};

	(void)arg;
	o.max_bytes = 4 << 20;
	o.service = "of the program";
	setenv("TACHO_MAX_BYTES", "2M", 1);
	setenv("TACHO_SERVICE", "of the one who runs it", 1);
	start_with(&o);
	mark(0, 0);
	tacho_status(&st);
	CHECK(st.max_bytes == 2 << 20, "max_bytes %llu", (unsigned long long)st.max_bytes);
}

static void test_environment_wins(void)
{
	struct box *b;

	subject(wins_body, NULL);
	b = the_box();
	if (b)
		CHECK(!strcmp(process_of(b)->service, "of the one who runs it"), "service '%s'",
		      process_of(b)->service);
}

/* ----------------------------------------------------------- the struct */

static void refuse_struct(const struct tacho_options *o, const char *word)
{
	struct tacho_status_info st = {.size = sizeof(st)};
	int err = tacho_start(o);

	CHECK(err == -EINVAL, "%s: tacho_start gave %d", word, err);
	tacho_status(&st);
	CHECK(st.state == TACHO_STATE_OFF && strstr(st.reason, word), "%s: state %u, reason '%s'",
	      word, st.state, st.reason);
}

static void struct_body(void *arg)
{
	struct {
		struct tacho_options o;
		uint8_t tail[64];
	} larger;
	struct tacho_options o = TACHO_OPTIONS_INIT, bad;
	struct tacho_status_info st = {.size = sizeof(st)};

	(void)arg;
	CHECK(tacho_status(&st) == 0 && st.state == TACHO_STATE_NEVER, "state %u at first",
	      st.state);
	bad = o;
	bad.size = 0;
	refuse_struct(&bad, "size");
	bad = o;
	bad.clock = 2;
	refuse_struct(&bad, "clock");
	bad = o;
	bad.keep_box = 2;
	refuse_struct(&bad, "keep_box");
	bad = o;
	bad.dead_boxes = 1025;
	refuse_struct(&bad, "dead_boxes");
	bad = o;
	bad.reserved = 1;
	refuse_struct(&bad, "does not know");
	bad = o;
	bad.max_bytes = 1;
	refuse_struct(&bad, "max_bytes");
	bad = o;
	bad.service = long_text(64);
	refuse_struct(&bad, "service");
	bad = o;
	bad.box_dir = "here";
	refuse_struct(&bad, "box_dir");
	bad = o;
	bad.crash_file = long_text(200);
	refuse_struct(&bad, "crash_file");
	memset(&larger, 0, sizeof(larger));
	larger.o.size = sizeof(larger);
	larger.tail[63] = 1;
	refuse_struct(&larger.o, "does not know");
	/* Refusals do not last: a good start follows. */
	larger.tail[63] = 0;
	larger.o.max_bytes = 5 << 20;
	start_with(&larger.o);
	CHECK(tacho_start(&o) == -EALREADY, "started twice");
	tacho_status(&st);
	CHECK(st.max_bytes == 5 << 20, "max_bytes of a larger struct: %llu",
	      (unsigned long long)st.max_bytes);
	tacho_stop();
	/* An older, shorter struct: what is beyond it is not looked at. */
	o.size = offsetof(struct tacho_options, min_age_ns);
	o.max_bytes = 6 << 20;
	o.keep_box = 77;
	start_with(&o);
	tacho_status(&st);
	CHECK(st.max_bytes == 6 << 20, "max_bytes of a shorter struct: %llu",
	      (unsigned long long)st.max_bytes);
	tacho_stop();
}

static void test_struct(void)
{
	subject(struct_body, NULL);
}

static void fields_body(void *arg)
{
	struct tacho_options o = TACHO_OPTIONS_INIT;

	o.max_bytes = 2 << 20;
	o.min_age_ns = 123;
	o.poll_threshold_ns = 456;
	o.box_dir = arg;
	o.service = "by struct";
	o.clock = TACHO_CLOCK_OPTION_MONOTONIC;
	o.keep_box = 1;
	unsetenv("TACHO_BOX_DIR");
	start_with(&o);
	mark(0, 0);
	tacho_stop();
}

static void test_struct_fields(void)
{
	const struct tacho_process *p;
	struct box *b;

	subject(fields_body, (void *)box_dir());
	b = the_box();
	if (!b)
		return;
	p = process_of(b);
	CHECK(p->max_bytes == 2 << 20 && p->min_age_ns == 123 && p->poll_threshold_ns == 456 &&
		      p->clock == TACHO_CLOCK_MONOTONIC && !strcmp(p->service, "by struct"),
	      "an option of the struct did not get into the box");
	check_writer(tally_whole(b, 1), 0, 1);
}

static void status_body(void *arg)
{
	struct tacho_status_info st = {.size = 4};
	union {
		struct tacho_status_info st;
		char bytes[sizeof(struct tacho_status_info) + 8];
	} larger;

	(void)arg;
	CHECK(tacho_status(&st) == -EINVAL, "a status without its size was filled");
	start();
	mark(0, 0);
	memset(&larger, 0x55, sizeof(larger));
	larger.st.size = sizeof(larger);
	CHECK(tacho_status(&larger.st) == 0, "a larger struct");
	CHECK(larger.bytes[sizeof(struct tacho_status_info)] == 0x55,
	      "stored beyond what it knows");
	CHECK(larger.st.size == sizeof(struct tacho_status_info), "size %zu", larger.st.size);
	CHECK(larger.st.state == TACHO_STATE_RECORDING && !larger.st.error && !larger.st.reason[0],
	      "state %u, reason '%s'", larger.st.state, larger.st.reason);
	CHECK(larger.st.threads == 1 && larger.st.definitions >= 1 && larger.st.used_bytes > 0 &&
		      larger.st.used_bytes < larger.st.max_bytes,
	      "numbers of the status");
	CHECK(!access(larger.st.box, F_OK), "there is no box at '%s'", larger.st.box);
	CHECK(!strcmp(tacho_version(), TACHO_VERSION), "version '%s'", tacho_version());
}

static void test_status(void)
{
	subject(status_body, NULL);
}

static const struct test tests[] = {
	{"bad values in the environment are refused by name and a note is left", test_refused},
	{"every variable takes effect", test_environment},
	{"units of bytes", test_units},
	{"TACHO=off keeps recording off and leaves nothing", test_off},
	{"the environment wins over the program", test_environment_wins},
	{"the options struct may be shorter or longer, but hold nothing unknown", test_struct},
	{"every field of the options struct takes effect", test_struct_fields},
	{"tacho_status", test_status},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
