/* What `tacho doctor` reads from ELF files: of good ones, and of ones that lie. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "doctor/libraries.h"
#include "doctor/program_elf.h"

/* One that this program defines, and one that it does not. */
int doctor_elf_is_here(void);
int doctor_elf_is_here(void)
{
	return 1;
}

static const char *const names[] = {"doctor_elf_is_nowhere", "doctor_elf_is_here", NULL};

static void a_program_tells_what_it_is(void **state)
{
	struct tacho__elf_facts f;

	(void)state;
	assert_int_equal(doctor_elf_is_here(), 1);
	assert_int_equal(tacho__elf_facts("/proc/self/exe", names, &f), 0);
	assert_true(f.eh_frame && f.symtab);
	assert_int_equal(f.defines, 2);
	assert_true(f.functions >= 8 && f.framed <= f.functions);
}

static void what_is_no_program_is_refused(void **state)
{
	struct tacho__elf_facts f;

	(void)state;
	assert_int_equal(tacho__elf_facts("/dev/null", names, &f), -ENOEXEC);
	assert_int_equal(tacho__elf_facts("/proc/self", names, &f), -ENOEXEC);
	assert_int_equal(tacho__elf_facts("/proc/version", names, &f), -ENOEXEC);
	assert_int_equal(tacho__elf_facts("/nowhere", names, &f), -ENOENT);
	assert_int_equal(f.functions, 0);
}

struct seen {
	unsigned found, missing;
	bool libc;
};

static void see(void *arg, const char *name, const char *path)
{
	struct seen *s = arg;

	s->found += path != NULL;
	s->missing += !path;
	s->libc |= path && strstr(name, "libc.so") != NULL;
}

/* The linker of this program, as its file names it. */
static const char *own_linker(void)
{
	static char text[256];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint8_t head[4096];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	close(fd);
	for (ssize_t i = 0; i + 8 < n; i++)
		if (!memcmp(head + i, "/lib", 4)) {
			snprintf(text, sizeof(text), "%.255s", (char *)head + i);
			break;
		}
	return text;
}

static void libraries_of_a_program_are_found(void **state)
{
	struct seen seen = {0};
	const struct tacho__libraries to = {.see = see, .arg = &seen};

	const char *under = getenv("TACHO_TEST_UNDER");

	(void)state;
	if (!own_linker()[0] || (under && !strcmp(under, "arm64"))) {
		puts("reason: the libraries of this program are not those of the host");
		skip();
	}
	assert_true(tacho__libraries("/proc/self/exe", own_linker(), &to));
	assert_true(seen.libc);
	assert_int_equal(seen.missing, 0);
	assert_false(tacho__libraries("/dev/null", own_linker(), &to));
	assert_false(tacho__libraries("/nowhere", own_linker(), &to));
	assert_false(tacho__libraries("/proc/self/exe", "", &to));
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* One of this machine, a small one if there is. */
static uint8_t *small_file(size_t *size)
{
	static const char *const paths[] = {"/bin/true", "/usr/bin/true", "/proc/self/exe"};
	struct tacho__elf_facts f;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		struct stat st;
		uint8_t *data;

		if (fd < 0 || tacho__elf_facts(paths[i], names, &f))
			continue;
		assert_int_equal(fstat(fd, &st), 0);
		*size = (size_t)st.st_size;
		data = malloc(*size);
		assert_int_equal(read(fd, data, *size), *size);
		close(fd);
		return data;
	}
	fail();
	return NULL;
}

static uint64_t dynamic_section(const uint8_t *file)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment;

	memcpy(&head, file, sizeof(head));
	for (unsigned i = 0; i < head.e_phnum; i++) {
		memcpy(&segment, file + head.e_phoff + i * sizeof(segment), sizeof(segment));
		if (segment.p_type == PT_DYNAMIC)
			return segment.p_offset;
	}
	return 64;
}

static void damage_is_survived(void **state)
{
	size_t size, shown;
	uint8_t *good = small_file(&size), *bad = malloc(size);
	uint64_t x = 88172645463325252u, headers, dynamic;
	int fd = memfd_create("elf", MFD_CLOEXEC), refused = 0, taken = 0;
	char path[64];

	(void)state;
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memcpy(&headers, good + 40, sizeof(headers)); /* e_shoff */
	dynamic = dynamic_section(good);
	for (int round = 0; round < 1500; round++) {
		struct seen seen = {0};
		const struct tacho__libraries to = {.see = see, .arg = &seen};
		struct tacho__elf_facts f;

		memcpy(bad, good, size);
		shown = round % 5 ? size : next_random(&x) % (round % 10 ? size : 200);
		for (uint64_t n = next_random(&x) % 6; n; n--) {
			uint64_t where = next_random(&x) % 4;
			uint64_t at = where == 0   ? 16 + next_random(&x) % 800
				      : where == 1 ? headers + next_random(&x) % 1500
				      : where == 2 ? dynamic + next_random(&x) % 512
						   : next_random(&x) % size;
			uint64_t value = next_random(&x) >> (next_random(&x) % 64);

			if (at + 8 <= size)
				memcpy(bad + at, &value, next_random(&x) % 2 ? 8 : 2);
		}
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bad, shown, 0), shown);
		if (tacho__elf_facts(path, names, &f))
			refused++;
		else
			taken++;
		tacho__libraries(path, "/lib/ld-linux.so", &to);
		tacho__libraries(path, "/lib/ld-musl-any.so.1", &to);
		assert_true(f.build_id_size <= sizeof(f.build_id) && f.framed <= f.functions);
	}
	assert_true(refused > 50 && taken > 50);
	close(fd);
	free(good);
	free(bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_tells_what_it_is),
		cmocka_unit_test(what_is_no_program_is_refused),
		cmocka_unit_test(libraries_of_a_program_are_found),
		cmocka_unit_test(damage_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
