/* Names of the kernel's functions, from files as /proc/kallsyms is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "kernel/ksyms.h"

static int load(struct tacho__ksyms **k, const char *text)
{
	char path[64];
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	int err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = tacho__ksyms_load(k, path);
	close(fd);
	return err;
}

static void an_address_has_the_name_before_it(void **state)
{
	struct tacho__ksyms *k;

	(void)state;
	assert_int_equal(load(&k, "ffffffff81000300 t third\n"
				  "ffffffff81000100 T first\n"
				  "ffffffff81000100 T also_first\n"
				  "ffffffff81000200 D data\n"
				  "ffffffff81000200 W second\n"
				  "ffffffffc0000000 t sync_file\t[ext4]\n"),
			 0);
	assert_null(tacho__ksyms_name(k, 0xffffffff810000ff));
	assert_null(tacho__ksyms_name(k, 0x401000));
	assert_string_equal(tacho__ksyms_name(k, 0xffffffff81000100), "first");
	assert_string_equal(tacho__ksyms_name(k, 0xffffffff810001ff), "first");
	assert_string_equal(tacho__ksyms_name(k, 0xffffffff81000200), "second");
	assert_string_equal(tacho__ksyms_name(k, 0xffffffff81000301), "third");
	assert_string_equal(tacho__ksyms_name(k, 0xffffffffc0000010), "sync_file [ext4]");
	assert_null(tacho__ksyms_name(k, 0xfffffffff0000000));
	tacho__ksyms_free(k);
}

static void hidden_addresses_are_no_names(void **state)
{
	struct tacho__ksyms *k;

	(void)state;
	assert_int_equal(load(&k, "0000000000000000 T first\n0000000000000000 t second\n"),
			 -EACCES);
	assert_int_equal(load(&k, ""), -ENODATA);
	assert_int_equal(tacho__ksyms_load(&k, "/nowhere/at/all"), -ENOENT);
}

static void lines_of_another_kind_are_left_out(void **state)
{
	char *text = malloc(600000), *at = text;
	struct tacho__ksyms *k;

	(void)state;
	at += sprintf(at, "\n \nzzz\nffffffff81000000\nffffffff81000000 T\n"
			  "ffffffff81000000  T x\nffffffff81000010 T right\n");
	/* Longer than what is read at once. */
	memset(at, 'x', 500000);
	at += 500000;
	strcpy(at, "\nffffffff81000020 T next\nffffffff81000030 T without_an_end");
	assert_int_equal(load(&k, text), 0);
	assert_string_equal(tacho__ksyms_name(k, 0xffffffff81000010), "right");
	assert_string_equal(tacho__ksyms_name(k, 0xffffffff81000035), "next");
	assert_null(tacho__ksyms_name(k, 0xffffffff81000000));
	tacho__ksyms_free(k);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_has_the_name_before_it),
		cmocka_unit_test(hidden_addresses_are_no_names),
		cmocka_unit_test(lines_of_another_kind_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
