/* Which files go when there are too many, and that no others do. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/keep.h"

static char folder[200];

static int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/keep-XXXXXX", tmp ? tmp : "/tmp");
	return !mkdtemp(folder) || chdir(folder);
}

static int remove_folder(void **state)
{
	char name[8];

	(void)state;
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "%d", i);
		unlink(name);
	}
	rmdir("sub");
	return chdir("/") || rmdir(folder);
}

static const char *path_of(int number)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%d", folder, number);
	return path;
}

static void write_file(int number)
{
	int fd = open(path_of(number), O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static unsigned add(struct tacho__keep *k, int number, uint64_t bytes)
{
	write_file(number);
	return tacho__keep_add(k, path_of(number), bytes, 0);
}

/* `there`: a digit for each file that must be there. */
static void files_are(const char *there)
{
	for (int i = 0; i < 10; i++) {
		int wanted = 0;

		for (const char *p = there; *p; p++)
			wanted |= *p - '0' == i;
		if ((access(path_of(i), F_OK) == 0) != wanted)
			fail_msg("file %d is %s", i, wanted ? "gone" : "still there");
	}
}

static void the_oldest_go_above_a_number_of_files(void **state)
{
	struct tacho__keep *k = tacho__keep_new(3, 0);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(add(k, i, UINT64_MAX / 8), 0);
	assert_int_equal(add(k, 3, 1), 1);
	files_are("123");
	assert_int_equal(add(k, 4, 1), 1);
	files_are("234");
	tacho__keep_free(k);
	files_are("234");
}

static void the_oldest_go_above_a_number_of_bytes(void **state)
{
	struct tacho__keep *k = tacho__keep_new(0, 100);

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(add(k, i, 25), 0);
	assert_int_equal(add(k, 4, 26), 2);
	files_are("234");
	/* One that is too large alone stays all the same: it is the newest. */
	assert_int_equal(add(k, 5, 1000), 3);
	files_are("5");
	assert_int_equal(add(k, 6, 1), 1);
	files_are("6");
	tacho__keep_free(k);
}

static void without_limits_all_stay(void **state)
{
	struct tacho__keep *k = tacho__keep_new(0, 0);

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(add(k, i, UINT64_MAX / 8), 0);
	files_are("01234");
	tacho__keep_free(k);
}

static void a_path_that_became_another_file_is_left_alone(void **state)
{
	struct tacho__keep *k = tacho__keep_new(2, 0);

	(void)state;
	assert_int_equal(add(k, 0, 1), 0);
	assert_int_equal(add(k, 1, 1), 0);
	/* Made before the old one goes, so that it cannot have the same inode. */
	write_file(9);
	assert_int_equal(rename("9", "0"), 0);
	/* It no longer counts either: two of ours are two. */
	assert_int_equal(add(k, 2, 1), 0);
	files_are("012");
	assert_int_equal(add(k, 3, 1), 1);
	files_are("023");
	tacho__keep_free(k);
}

static void a_path_that_became_a_link_is_left_alone(void **state)
{
	struct tacho__keep *k = tacho__keep_new(1, 0);

	(void)state;
	assert_int_equal(add(k, 0, 1), 0);
	assert_int_equal(rename("0", "8"), 0);
	assert_int_equal(symlink("8", "0"), 0);
	assert_int_equal(add(k, 1, 1), 0);
	files_are("018");
	tacho__keep_free(k);
}

static void files_that_others_took_away_make_none_of_ours_go(void **state)
{
	struct tacho__keep *k = tacho__keep_new(2, 0);

	(void)state;
	assert_int_equal(add(k, 0, 1), 0);
	assert_int_equal(add(k, 1, 1), 0);
	/* The newer one is gone: the older one is still one of two. */
	assert_int_equal(unlink("1"), 0);
	assert_int_equal(add(k, 2, 1), 0);
	files_are("02");
	assert_int_equal(add(k, 3, 1), 1);
	files_are("23");
	tacho__keep_free(k);
}

static void what_is_no_file_is_never_remembered(void **state)
{
	struct tacho__keep *k = tacho__keep_new(1, 0);

	(void)state;
	assert_int_equal(mkdir("sub", 0700), 0);
	assert_int_equal(tacho__keep_add(k, "sub", 1, 0), 0);
	assert_int_equal(tacho__keep_add(k, "absent", 1, 0), 0);
	assert_int_equal(add(k, 0, 1), 0);
	assert_int_equal(access("sub", F_OK), 0);
	files_are("0");
	tacho__keep_free(k);
}

static void a_relative_path_holds_after_a_change_of_folder(void **state)
{
	struct tacho__keep *k = tacho__keep_new(1, 0);

	(void)state;
	write_file(0);
	assert_int_equal(tacho__keep_add(k, "0", 1, 0), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(add(k, 1, 1), 1);
	files_are("1");
	tacho__keep_free(k);
	assert_int_equal(chdir(folder), 0);
}

/* Whoever has most loses first; of several with as much, the oldest. */
static void of_the_greediest(void **state)
{
	static const struct {
		uint32_t uid;
		unsigned deleted;
		int gone;
	} steps[] = {{7, 0, -1}, {8, 0, -1}, {8, 0, -1}, {8, 1, 1},
		     {8, 1, 2},	 {7, 1, 0},  {9, 1, 3}};
	struct tacho__keep *k = tacho__keep_new(3, 0);

	(void)state;
	assert_non_null(k);
	for (int i = 0; i < 7; i++) {
		write_file(i);
		assert_int_equal(tacho__keep_add(k, path_of(i), 10, steps[i].uid),
				 steps[i].deleted);
		assert_true(steps[i].gone < 0 || access(path_of(steps[i].gone), F_OK) < 0);
	}
	tacho__keep_free(k);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_oldest_go_above_a_number_of_files),
		TEST(the_oldest_go_above_a_number_of_bytes),
		TEST(of_the_greediest),
		TEST(without_limits_all_stay),
		TEST(a_path_that_became_another_file_is_left_alone),
		TEST(a_path_that_became_a_link_is_left_alone),
		TEST(files_that_others_took_away_make_none_of_ours_go),
		TEST(what_is_no_file_is_never_remembered),
		TEST(a_relative_path_holds_after_a_change_of_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
