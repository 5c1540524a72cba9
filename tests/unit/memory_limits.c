/* The memory limits of a process, read from made cgroup trees of both versions. */
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

#include "core/memory_limits.h"

#define MIB (UINT64_C(1) << 20)

static char root[] = "/tmp/tacho-cgroup-XXXXXX";

static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(full, 0700);
		*p = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static uint64_t inode(const char *path)
{
	char full[512];
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_int_equal(stat(full, &st), 0);
	return st.st_ino;
}

static struct tacho__memory_limits limits(const char *list)
{
	struct tacho__memory_limits out = {0};
	struct tacho__memory_work work;

	snprintf(work.list, sizeof(work.list), "%s", list);
	tacho__memory_limits_of(&work, root, &out);
	return out;
}

static int make_tree(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	put("/pod/memory.max", "104857600\n");
	put("/pod/memory.current", "20971520\n");
	put("/pod/app/memory.max", "max\n");
	put("/pod/app/worker/memory.max", "52428800\n");
	put("/pod/app/worker/memory.high", "41943040\n");
	put("/pod/app/worker/memory.current", "39845888\n");
	put("/pod/app/worker/memory.stat",
	    "anon 1\nfile 3145728\nactive_file 7\ninactive_file 2097152\nshmem 5\n");
	put("/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/memory/docker/memory.limit_in_bytes", "268435456\n");
	put("/memory/docker/memory.usage_in_bytes", "260046848\n");
	put("/memory/docker/memory.stat",
	    "cache 1\ninactive_file 1\ntotal_cache 1\ntotal_inactive_file 4194304\n");
	put("/memory/docker/sub/memory.limit_in_bytes", "9223372036854771712\n");
	return 0;
}

static int remove_tree(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void test_version_2_nested(void **state)
{
	struct tacho__memory_limits m = limits("0::/pod/app/worker\n");

	(void)state;
	assert_int_equal(m.count, 2);
	assert_int_equal(m.limit[0].size, 40 * MIB); /* memory.high is below memory.max */
	assert_int_equal(m.limit[0].left, 4 * MIB);  /* 2 MiB, and 2 MiB of files that can go */
	assert_int_equal(m.limit[0].id, inode("/pod/app/worker"));
	assert_int_equal(m.limit[1].size, 100 * MIB);
	assert_int_equal(m.limit[1].left, 80 * MIB);
	assert_int_equal(m.limit[1].id, inode("/pod"));
}

static void test_version_1_nested(void **state)
{
	struct tacho__memory_limits m =
		limits("9:name=systemd:/x\n5:cpu,cpuacct:/docker\n4:memory:/docker/sub\n0::/\n");

	(void)state;
	assert_int_equal(m.count, 1);
	assert_int_equal(m.limit[0].size, 256 * MIB);
	assert_int_equal(m.limit[0].left, 12 * MIB);
	assert_int_equal(m.limit[0].id, inode("/memory/docker"));
}

/* In a container the path of the host does not exist, and the mount is the cgroup itself. */
static void test_path_of_the_host(void **state)
{
	struct tacho__memory_limits m;

	(void)state;
	put("/memory.max", "67108864\n");
	m = limits("0::/kubepods/burstable/pod1/container\n");
	assert_int_equal(m.count, 1);
	assert_int_equal(m.limit[0].size, 64 * MIB);
	m = limits("0::/../../other\n");
	assert_int_equal(m.count, 1);
	assert_int_equal(m.limit[0].size, 64 * MIB);
	put("/memory.max", "max\n");
	assert_int_equal(limits("0::/nowhere\n").count, 0);
}

static void test_odd_lists(void **state)
{
	static const char *const lists[] = {
		"",
		"\n",
		"nonsense",
		"4:memory",
		"4:memory:",
		":::\n",
		"7:memoryx,xmemory:/pod\n",
		"0::",
		"4:cpu:/pod\n3:x",
	};
	char deep[2048] = "0::";

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_int_equal(limits(lists[i]).count, 0);
	for (int i = 0; i < 400; i++)
		strcat(deep, "/pod");
	assert_int_equal(limits(deep).count, 0);
}

static void test_own(void **state)
{
	struct tacho__memory_limits m;
	struct tacho__memory_work work;

	(void)state;
	tacho__memory_limits(&work, &m);
	assert_true(m.count >= 1);
	assert_true(m.limit[m.count - 1].id == TACHO__MEMORY_OF_MACHINE);
	assert_true(m.limit[m.count - 1].size > 16 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_2_nested),
		cmocka_unit_test(test_version_1_nested),
		cmocka_unit_test(test_path_of_the_host),
		cmocka_unit_test(test_odd_lists),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
