/* The one file of a recording: parts that are appended, given up, or cannot even begin. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/recording.h"
#include "folder_help.h"
#include "tacho_read.h"
#include "write/trace_write.h"

static char notes[2000], warnings[2000];

static void say(void *arg, enum tacho__said kind, const char *sentence)
{
	(void)arg;
	snprintf(kind == TACHO__NOTE ? notes : warnings, sizeof(notes), "%s", sentence);
}

static const struct tacho__voice voice = {.say = say};

static int enter(void **state)
{
	(void)state;
	notes[0] = warnings[0] = 0;
	return folder_enter("recording");
}

static const struct tacho_process process = {.pid = 17, .comm = "first", .created_mono_ns = 5};
static const struct tacho_process other = {.pid = 18, .comm = "other", .created_mono_ns = 6};

static struct tacho__recording begin(const char *file, bool replace)
{
	struct tacho__recording r;

	tacho__recording_init(&r, &voice);
	r.folder = ".";
	r.file = file;
	r.replace = replace;
	return r;
}

/* 0, or what beginning said; the sentence says it as well. */
static int put(struct tacho__recording *r, const struct tacho_process *p, const char *text,
	       uint64_t first_ns, const char *why)
{
	const struct tacho__trace_result part = {.bytes = strlen(text),
						 .events = 10,
						 .first_ns = first_ns,
						 .last_ns = first_ns + 1000000000};
	char message[400] = "";
	int fd = tacho__recording_begin(r, p, message, sizeof(message));

	if (fd < 0) {
		assert_string_not_equal(message, "");
		return fd;
	}
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return tacho__recording_commit(r, p, &part, why, message, sizeof(message));
}

static void holds(const char *path, const char *text)
{
	char bytes[100] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes) - 1), strlen(text));
	assert_string_equal(bytes, text);
	close(fd);
}

static void a_file_that_cannot_begin_is_an_error(void **state)
{
	struct tacho__recording r = begin("not-there/file.tacho", false);

	(void)state;
	assert_int_equal(put(&r, &process, "part", 1, NULL), -ENOENT);
	assert_int_equal(r.fd, -1);
	assert_int_equal(r.count, 0);
	tacho__recording_end(&r);
	assert_string_equal(notes, "");
	assert_string_equal(warnings, "");

	r = begin(NULL, false);
	r.folder = "not-there";
	assert_int_equal(put(&r, &process, "part", 1, NULL), -ENOENT);
	tacho__recording_end(&r);
}

static void parts_are_appended_and_told_at_the_end(void **state)
{
	struct tacho__recording r = begin("all.tacho", false);

	(void)state;
	assert_int_equal(put(&r, &process, "one", 3000000000, "the reason"), 0);
	holds("all.tacho", "one");
	assert_int_equal(put(&r, &other, "two", 2000000000, ""), 0);
	holds("all.tacho", "onetwo");
	tacho__recording_end(&r);
	assert_non_null(strstr(notes, "all.tacho: 2 processes, 20 events in 2.000 s, 6 B: "));
	assert_non_null(strstr(notes, "first (17) 10"));
	assert_non_null(strstr(notes, "other (18) 10"));
	assert_non_null(strstr(notes, "; the reason"));
	assert_string_equal(warnings, "");
}

static void a_part_that_is_given_up_leaves_the_others(void **state)
{
	struct tacho__recording r = begin("all.tacho", false);
	char message[400];
	int fd;

	(void)state;
	fd = tacho__recording_begin(&r, &process, message, sizeof(message));
	assert_true(fd >= 0);
	tacho__recording_abandon(&r);
	assert_int_equal(access("all.tacho", F_OK), -1);
	assert_int_equal(put(&r, &process, "one", 1, NULL), 0);
	fd = tacho__recording_begin(&r, &process, message, sizeof(message));
	assert_int_equal(write(fd, "half", 4), 4);
	tacho__recording_abandon(&r);
	holds("all.tacho", "one");
	assert_int_equal(put(&r, &other, "two", 1, NULL), 0);
	holds("all.tacho", "onetwo");
	tacho__recording_end(&r);
}

static void a_file_that_was_deleted_is_made_again(void **state)
{
	struct tacho__recording r = begin("all.tacho", false);

	(void)state;
	assert_int_equal(put(&r, &process, "one", 1, NULL), 0);
	assert_int_equal(unlink("all.tacho"), 0);
	assert_int_equal(put(&r, &process, "two", 1, NULL), 0);
	holds("all.tacho", "two");
	assert_int_equal(rename("all.tacho", "elsewhere"), 0);
	assert_int_equal(put(&r, &process, "three", 1, NULL), 0);
	holds("elsewhere", "twothree");
	tacho__recording_end(&r);
	assert_non_null(strstr(warnings, "was renamed or replaced"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_that_cannot_begin_is_an_error, enter,
						folder_leave),
		cmocka_unit_test_setup_teardown(parts_are_appended_and_told_at_the_end, enter,
						folder_leave),
		cmocka_unit_test_setup_teardown(a_part_that_is_given_up_leaves_the_others, enter,
						folder_leave),
		cmocka_unit_test_setup_teardown(a_file_that_was_deleted_is_made_again, enter,
						folder_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
