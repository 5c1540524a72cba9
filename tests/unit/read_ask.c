/*
 * Questions to processes and files that may never be answered. The file system that does not answer is the
 * test's own, in a mount namespace of its own: only root can have that.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "folder_help.h"
#include "read/ask.h"

#define ROOT_NODE 1u
#define SECOND UINT64_C(1000000000)

/* ------------------------------------------------------------ a file system */

static int device = -1;
static pid_t
	server; /* a process of its own: whoever still waits for it when it is killed gets an error */
static const char *why_none; /* there is none, because */

static void attributes(struct fuse_attr *a, uint64_t node)
{
	*a = (struct fuse_attr){.ino = node, .size = 10, .nlink = 1};
	a->mode = node == ROOT_NODE ? S_IFDIR | 0755 : S_IFREG | 0644;
}

/* Without a body: it knows nothing of that. */
static void reply(const struct fuse_in_header *to, const void *body, size_t size)
{
	struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + size),
				       .error = body ? 0 : -ENOSYS,
				       .unique = to->unique};
	char out[sizeof(head) + 256];

	memcpy(out, &head, sizeof(head));
	if (body)
		memcpy(out + sizeof(head), body, size);
	(void)!write(device, out, head.len);
}

/* "file" can be opened, "silent" cannot. */
static void serve(void)
{
	static union {
		struct fuse_in_header head;
		char bytes[1 << 17];
	} in;

	while (read(device, &in, sizeof(in)) > 0) {
		const char *name = in.bytes + sizeof(in.head);
		struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = 4096};
		struct fuse_entry_out entry = {.nodeid = *name == 'f' ? 2 : 3};
		struct fuse_attr_out attr = {0};
		struct fuse_open_out opened = {0};
		struct fuse_statfs_out fs = {0};

		switch (in.head.opcode) {
		case FUSE_INIT:
			reply(&in.head, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			attributes(&entry.attr, entry.nodeid);
			reply(&in.head, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			attributes(&attr.attr, in.head.nodeid);
			reply(&in.head, &attr, sizeof(attr));
			break;
		case FUSE_OPEN:
			if (in.head.nodeid == 2)
				reply(&in.head, &opened, sizeof(opened));
			break;
		case FUSE_STATFS:
			reply(&in.head, &fs, sizeof(fs));
			break;
		case FUSE_FORGET:
			break;
		default:
			reply(&in.head, NULL, 0);
			break;
		}
	}
	_exit(0);
}

static int mount_it(const char *path)
{
	char options[100];

	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (device < 0 || unshare(CLONE_NEWNS) ||
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
	    mount("test", path, "fuse", 0, options))
		return -errno;
	server = fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve();
	}
	close(device);
	return server < 0 ? -errno : 0;
}

static int enter(void **state)
{
	int err = folder_enter("read-ask");

	(void)state;
	if (err || mkdir("mounted", 0700))
		return 1;
	tacho__ask_limit_ns = 60 * SECOND; /* what is answered is, however busy this machine is */
	err = mount_it("mounted");
	why_none = err ? strerror(-err) : NULL;
	return 0;
}

static int leave(void **state)
{
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	umount2("mounted", MNT_DETACH);
	return folder_leave(state);
}

static int skips(void)
{
	if (why_none)
		print_message("reason: no file system of one's own: %s\n", why_none);
	return why_none != NULL;
}

/* -------------------------------------------------------------------- tests */

static long count(void *arg, char *text, size_t size)
{
	assert_int_equal(text[size], 0);
	*(char *)arg = text[0];
	return (long)size;
}

static void what_is_answered_is_given(void **state)
{
	char text[64], small[5], first = 0;

	(void)state;
	assert_true(tacho__ask_process((uint32_t)getpid(), "maps", 1 << 20, count, &first) > 100);
	assert_true(first);
	/* No more than is wanted, and a zero behind it. */
	assert_int_equal(tacho__ask_process((uint32_t)getpid(), "maps", 7, count, &first), 7);
	assert_int_equal(tacho__ask_process_small((uint32_t)getpid(), "status", small, 5), 4);
	assert_string_equal(small, "Name");
	assert_true(tacho__ask_process_small((uint32_t)getpid(), "comm", text, sizeof(text)) > 0);
	assert_non_null(strchr(text, '\n'));
	assert_int_equal(tacho__ask_process_small((uint32_t)getpid(), "none", text, sizeof(text)),
			 -ENOENT);
	assert_string_equal(text, "");
}

static void files_are_opened_and_nothing_else(void **state)
{
	int fd = tacho__ask_open((uint32_t)getpid(), "/proc/self/exe");
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	assert_int_equal(tacho__ask_open((uint32_t)getpid(), "/dev/null"), -EINVAL);
	assert_int_equal(tacho__ask_open((uint32_t)getpid(), "/proc/self/nothing"), -ENOENT);
}

/* It says of its files that they are root's. */
static void no_file_of_a_program_is_opened(void **state)
{
	struct stat st;

	(void)state;
	if (skips())
		skip();
	assert_int_equal(stat("mounted/file", &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(tacho__ask_open((uint32_t)getpid(), "mounted/file"), -EINVAL);
}

static void who_does_not_answer_is_left(void **state)
{
	char text[64];

	(void)state;
	if (skips())
		skip();
	tacho__ask_limit_ns = SECOND / 10;
	assert_int_equal(tacho__ask_open((uint32_t)getpid(), "mounted/silent"), -ETIMEDOUT);
	/* Nor is that user asked for anything else. */
	assert_int_equal(tacho__ask_open((uint32_t)getpid(), "/proc/self/exe"), -EBUSY);
	assert_int_equal(tacho__ask_process_small((uint32_t)getpid(), "comm", text, sizeof(text)),
			 -EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_answered_is_given),
		cmocka_unit_test(files_are_opened_and_nothing_else),
		cmocka_unit_test(no_file_of_a_program_is_opened),
		cmocka_unit_test(who_does_not_answer_is_left),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
