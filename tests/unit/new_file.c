/* Files that get their name when they are whole: what may have the name already, and what becomes of
   it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#include "folder_help.h"
#include "write/new_file.h"

static int enter(void **state)
{
	(void)state;
	return folder_enter("new-file");
}

/* Writes `text` to `path`; what beginning or ending says. */
static int put(const char *path, const char *text, bool replace)
{
	struct tacho__new_file f;
	int result = tacho__new_file_begin(&f, path, replace);

	if (result)
		return result;
	assert_int_equal(write(f.fd, text, strlen(text)), strlen(text));
	return tacho__new_file_commit(&f);
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

static void what_had_the_name_is_kept_once(void **state)
{
	(void)state;
	assert_int_equal(put("a", "one", false), 0);
	assert_int_equal(put("a", "two", false), 0);
	assert_int_equal(put("a", "three", false), 0);
	holds("a", "three");
	holds("a.old", "two");
	assert_int_equal(put("a", "four", true), 0);
	holds("a", "four");
	holds("a.old", "two");
}

static void a_file_that_is_given_up_leaves_nothing(void **state)
{
	struct tacho__new_file f;

	(void)state;
	assert_int_equal(tacho__new_file_begin(&f, "b", false), 0);
	assert_int_equal(faccessat(f.folder, f.temporary, F_OK, 0), 0);
	assert_int_not_equal(access("b", F_OK), 0);
	tacho__new_file_abandon(&f);
	assert_int_not_equal(access(f.temporary, F_OK), 0);
	assert_int_not_equal(access("b", F_OK), 0);
}

/* Said before anything is recorded, not when it is too late. */
static void what_cannot_give_way_is_refused_at_once(void **state)
{
	struct tacho__new_file f;
	char name[NAME_MAX + 2];

	(void)state;
	assert_int_equal(mkdir("c", 0700), 0);
	assert_int_equal(tacho__new_file_begin(&f, "c", true), -EISDIR);
	assert_int_equal(tacho__new_file_begin(&f, "c/", true), -EISDIR);
	assert_int_equal(put("d", "one", false), 0);
	assert_int_equal(mkdir("d.old", 0700), 0);
	assert_int_equal(tacho__new_file_begin(&f, "d", false), -EEXIST);
	assert_non_null(strstr(f.message, "--force"));
	assert_int_equal(put("d", "two", true), 0);
	assert_int_equal(mkfifo("e", 0600), 0);
	assert_int_equal(tacho__new_file_begin(&f, "e", true), -ENOTSUP);
	memset(name, 'x', sizeof(name));
	name[NAME_MAX + 1] = 0;
	assert_int_equal(tacho__new_file_begin(&f, name, false), -ENAMETOOLONG);
	name[NAME_MAX] = 0;
	assert_int_equal(put(name, "one", false), 0);
	/* There is no room for .old. */
	assert_int_equal(tacho__new_file_begin(&f, name, false), -ENAMETOOLONG);
	assert_int_equal(put(name, "two", true), 0);
}

/* What had the name needs four letters more. */
static void a_name_that_is_kept_may_be_as_long_as_any(void **state)
{
	char name[NAME_MAX + 1] = "", old[NAME_MAX + 1];

	(void)state;
	memset(name, 'n', NAME_MAX - 4);
	assert_int_equal(put(name, "one", false), 0);
	assert_int_equal(put(name, "two", false), 0);
	holds(name, "two");
	memcpy(old, name, sizeof(old));
	strcat(old, ".old");
	holds(old, "one");
	strcat(name, "n");
	assert_int_equal(put(name, "one", false), 0);
	assert_int_equal(put(name, "two", false), -ENAMETOOLONG);
	holds(name, "one");
}

static void a_name_that_is_taken_gets_a_number(void **state)
{
	static const char *const names[] = {"f.tacho", "f-2.tacho", "f-3.tacho"};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct tacho__new_file f;

		assert_int_equal(tacho__new_file_begin_unique(&f, "f.tacho"), 0);
		assert_int_equal(tacho__new_file_commit(&f), 0);
		assert_string_equal(f.path, names[i]);
		holds(names[i], "");
	}
}

static void a_process_does_not_choose_the_folder(void **state)
{
	char out[8];

	(void)state;
	tacho__plain_name(out, sizeof(out), "../a b\n");
	assert_string_equal(out, ".._a_b_");
	tacho__plain_name(out, sizeof(out), "Az09_+-.x");
	assert_string_equal(out, "Az09_+-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_had_the_name_is_kept_once),
		cmocka_unit_test(a_file_that_is_given_up_leaves_nothing),
		cmocka_unit_test(what_cannot_give_way_is_refused_at_once),
		cmocka_unit_test(a_name_that_is_kept_may_be_as_long_as_any),
		cmocka_unit_test(a_name_that_is_taken_gets_a_number),
		cmocka_unit_test(a_process_does_not_choose_the_folder),
	};

	return cmocka_run_group_tests(tests, enter, folder_leave);
}
