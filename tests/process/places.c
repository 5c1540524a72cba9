/* Where boxes may be made, and what happens where they cannot: folders and limits. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

#ifndef TMPFS_MAGIC
#define TMPFS_MAGIC 0x01021994
#endif

static char path[300];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", box_dir(), name);
	return path;
}

static void marks(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		mark(0, i);
}

/* --------------------------------------------------- refused folders */

struct refusal {
	const char *dir;
	int error; /* 0: any */
	const char *word;
};

/* Recording stays off, for a reason, and the program goes on. */
static void check_off(const char *what, int error, const char *word)
{
	struct tacho_status_info st = {.size = sizeof(st)};
	int err = tacho_start(NULL);

	CHECK(err < 0 && (!error || err == -error), "%s: tacho_start gave %d, not %d", what, err,
	      -error);
	tacho_status(&st);
	CHECK(st.state == TACHO_STATE_OFF && st.error == -err, "%s: state %u, error %d", what,
	      st.state, st.error);
	CHECK(strstr(st.reason, word), "%s: '%s' does not say '%s'", what, st.reason, word);
	CHECK(strlen(st.reason) > 20 && st.reason[strlen(st.reason) - 1] == '.',
	      "%s: '%s' is no sentence", what, st.reason);
	marks(0, 100);
	CHECK(tacho_trigger("x") == 0, "%s: a trigger was counted", what);
}

static void refused_body(void *arg)
{
	const struct refusal *r = arg;

	setenv("TACHO_BOX_DIR", r->dir, 1);
	check_off(r->dir, r->error, r->word);
}

static void refused(const char *dir, int error, const char *word)
{
	struct refusal r = {dir, error, word};

	subject(refused_body, &r);
}

static void test_symlink(void)
{
	char real[300];

	snprintf(real, sizeof(real), "%s", in_dir("real"));
	mkdir(real, 0700);
	CHECK(!symlink(real, in_dir("link")), "symlink");
	refused(in_dir("link"), 0, "link");
	CHECK(boxes_open(real)->count == 0, "a link was followed");
}

static void test_writable(void)
{
	mkdir(in_dir("open"), 0700);
	chmod(path, 0777);
	refused(path, EPERM, "others can write");
	CHECK(boxes_open(path)->count == 0, "something was left in a folder of everybody's");
}

static void test_not_folder(void)
{
	int fd = open(in_dir("file"), O_CREAT | O_WRONLY, 0600);

	close(fd);
	refused(path, ENOTDIR, "not a directory");
	refused(in_dir("no/such"), ENOENT, "no such");
}

static void other_owner_body(void *arg)
{
	/* From the user whom nothing belongs to; root's folders would be fine. */
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(2);
	setenv("TACHO_BOX_DIR", arg, 1);
	check_off("folder of another user", EPERM, "another user");
}

/* A folder that other users can reach; the one for boxes may be in a private one. */
static int reachable(char *dir, uid_t owner)
{
	strcpy(dir, "/dev/shm/tacho-test-XXXXXX");
	if (!CHECK(mkdtemp(dir), "mkdtemp: %s", strerror(errno)))
		return 0;
	return CHECK(!chown(dir, owner, owner), "chown: %s", strerror(errno));
}

static void test_other_owner(void)
{
	char dir[64];

	if (geteuid())
		return skip("only root can make a folder of another user");
	if (!reachable(dir, 12345))
		return;
	chmod(dir, 0755);
	subject(other_owner_body, dir);
	CHECK(boxes_open(dir)->count == 0, "something was left in a folder of another user");
	rmdir(dir);
}

static void readonly_body(void *arg)
{
	if (!geteuid() && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		_exit(2);
	setenv("TACHO_BOX_DIR", arg, 1);
	check_off("folder without permission to write", EACCES, "permission denied");
}

static void test_unwritable(void)
{
	char dir[64];

	if (!reachable(dir, geteuid() ? geteuid() : 65534))
		return;
	chmod(dir, 0555);
	subject(readonly_body, dir);
	rmdir(dir);
}

static void test_disk(void)
{
	const char *tmp = getenv("TMPDIR");
	struct statfs fs;
	char dir[256];

	snprintf(dir, sizeof(dir), "%s/tacho-boxes-XXXXXX", tmp ? tmp : "/tmp");
	if (!CHECK(mkdtemp(dir), "mkdtemp %s", dir))
		return;
	if (!statfs(dir, &fs) && (unsigned long)fs.f_type == TMPFS_MAGIC) {
		rmdir(dir);
		return skip("the folder for temporary files is on tmpfs");
	}
	refused(dir, EOPNOTSUPP, "not on tmpfs");
	boxes_open(dir);
	/* The reason may be left there, a box may not. */
	for (int i = 0; i < BOXES_MAX; i++) {
		struct boxes *b = boxes_open(dir);

		if (!b->count)
			break;
		CHECK(b->box[0].error == -ENODATA, "a box was made on a disk");
		unlink(b->box[0].path);
	}
	rmdir(dir);
}

/* The default folder cannot be used: a private /dev/shm that is read-only. */
static int private_mounts(void)
{
	return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ? -errno
											 : 0;
}

static void runtime_body(void *arg)
{
	struct tacho_status_info st = {.size = sizeof(st)};
	char dir[300];

	if (private_mounts() || mount("none", "/dev/shm", "tmpfs", MS_RDONLY, "size=64k") ||
	    mount("none", "/run", "tmpfs", MS_RDONLY, "size=64k") ||
	    mount("none", arg, "tmpfs", 0, "size=64m,mode=700"))
		_exit(77);
	unsetenv("TACHO_BOX_DIR");
	setenv("XDG_RUNTIME_DIR", arg, 1);
	start();
	tacho_status(&st);
	snprintf(dir, sizeof(dir), "%s/tacho/", (char *)arg);
	CHECK(!strncmp(st.box, dir, strlen(dir)), "the box is at '%s'", st.box);
	marks(0, 100);
	tacho_stop();
	unsetenv("XDG_RUNTIME_DIR");
	check_off("no folder at all", EROFS, "read-only");
	_exit(0);
}

static void test_runtime_dir(void)
{
	int status = subject_wait(subject_start(runtime_body, (void *)mount_point()));

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return skip("mount namespaces are not permitted");
	check_exit(status, 0);
}

/* -------------------------------------------------------- full tmpfs */

/* A tmpfs of this process's own. */
static void small_tmpfs(const char *options)
{
	char boxes[300];

	if (private_mounts() || mount("none", mount_point(), "tmpfs", 0, options))
		_exit(77);
	snprintf(boxes, sizeof(boxes), "%s/boxes", mount_point());
	setenv("TACHO_BOX_DIR", boxes, 1);
}

/* A subject that mounts; the folder must be there before, to be removed afterwards. */
static int subject_on_mount(void (*body)(void *))
{
	mount_point();
	return subject_wait(subject_start(body, NULL));
}

static void copy_out(const char *from)
{
	char buf[65536];
	char to[300];
	const char *name = strrchr(from, '/') + 1;
	int in = open(from, O_RDONLY), out;
	ssize_t n;

	snprintf(to, sizeof(to), "%s/%s", box_dir(), name);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		CHECK(write(out, buf, (size_t)n) == n, "copy: %s", strerror(errno));
	close(in);
	close(out);
}

#define MIB (1ull << 20)

static void full_body(void *arg)
{
	struct tacho_status_info st = {.size = sizeof(st)};

	(void)arg;
	small_tmpfs("size=16m,mode=700");
	start();
	/* 16 MB of records. */
	marks(0, 1000000);
	tacho_status(&st);
	CHECK(st.state == TACHO_STATE_RECORDING, "state %u", st.state);
	CHECK(!st.error && strstr(st.reason, "takes at most 1.5 MiB") &&
		      strstr(st.reason, "has 16 MiB"),
	      "error %d, reason '%s'", st.error, st.reason);
	CHECK(st.used_bytes <= 8 * MIB / 5, "used %llu", (unsigned long long)st.used_bytes);
	CHECK(st.dropped_records == 0, "%llu dropped", (unsigned long long)st.dropped_records);
	copy_out(st.box);
	_exit(0);
}

static void check_short_window(void)
{
	const struct tally *t;
	struct box *b = the_box();

	if (!b)
		return;
	t = tally(b);
	CHECK(t->count[0] > 20000, "only %u marks kept", t->count[0]);
	CHECK(t->last[0] == 999999, "the last mark is %u", t->last[0]);
	CHECK(!t->disorder && !t->foreign && !t->dropped, "holes among the marks");
	CHECK(strstr(process_of(b)->reason, "takes at most"), "the box does not say so: '%s'",
	      process_of(b)->reason);
}

static void test_full(void)
{
	int status = subject_on_mount(full_body);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return skip("mount namespaces are not permitted");
	check_exit(status, 0);
	check_short_window();
}

static void filled_body(void *arg)
{
	static char zeros[65536];
	struct tacho_status_info st = {.size = sizeof(st)};
	char filler[300];
	uint32_t i = 0;
	int fd;

	(void)arg;
	small_tmpfs("size=8m,mode=700");
	start();
	marks(0, 100000);
	i = 100000;
	/* Somebody else takes all the rest, down to the last page. */
	snprintf(filler, sizeof(filler), "%s/filler", mount_point());
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	while (write(fd, zeros, sizeof(zeros)) == sizeof(zeros))
		mark(0, i++);
	while (write(fd, zeros, 4096) == 4096)
		mark(0, i++);
	for (; i < 1000000; i++)
		mark(0, i);
	/* Names, threads and histograms cannot grow either, and must not kill. */
	for (int k = 0; k < 20000; k++) {
		static char text[64];
		struct tacho_name name = TACHO_KIND(text);

		snprintf(text, sizeof(text), "name number %d", k);
		tacho_poll_begin(&name, 1);
		tacho_poll_end(TACHO_DONE);
	}
	for (i = 1000000; i < 1100000; i++)
		mark(1, i);
	tacho_status(&st);
	CHECK(st.state == TACHO_STATE_RECORDING, "state %u", st.state);
	CHECK(st.error && strstr(st.reason, "could not grow"), "error %d, reason '%s'", st.error,
	      st.reason);
	unlink(filler);
	copy_out(st.box);
	_exit(0);
}

static void test_filled(void)
{
	int status = subject_on_mount(filled_body);
	const struct tally *t;
	struct box *b;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return skip("mount namespaces are not permitted");
	check_exit(status, 0);
	b = the_box();
	if (!b)
		return;
	t = tally(b);
	CHECK(t->last[1] == 1099999 && t->count[1] > 20000, "last mark %u of %u", t->last[1],
	      t->count[1]);
	CHECK(!t->disorder && !t->foreign, "holes among the marks");
	CHECK(loss(b, "defs_full") > 0, "names that found no room are not counted");
}

/* As on Linux before 5.14. */
static int refuse_populate(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23 /* MADV_POPULATE_WRITE */, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void at_once_body(void *arg)
{
	struct tacho_status_info st = {.size = sizeof(st)};
	struct stat file;

	(void)arg;
	small_tmpfs("size=64m,mode=700");
	if (refuse_populate())
		_exit(77);
	start();
	marks(0, 1000000);
	tacho_status(&st);
	CHECK(!stat(st.box, &file), "no box: %s", strerror(errno));
	CHECK(st.max_bytes >= MIB && st.max_bytes <= 32 * MIB / 5 &&
		      (uint64_t)file.st_blocks * 512 <= st.max_bytes + 4096,
	      "%llu bytes, %llu taken", (unsigned long long)st.max_bytes,
	      (unsigned long long)file.st_blocks * 512);
	CHECK(strstr(st.reason, "takes at most 6.3 MiB"), "reason '%s'", st.reason);
	copy_out(st.box);
	_exit(0);
}

static void test_at_once(void)
{
	int status = subject_on_mount(at_once_body);
	struct box *b;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return skip("mount namespaces or seccomp filters are not permitted");
	check_exit(status, 0);
	b = the_box();
	if (b)
		CHECK(tally(b)->last[0] == 999999 && !tally(b)->disorder, "marks are missing");
}

static void no_room_body(void *arg)
{
	(void)arg;
	small_tmpfs("size=64k,mode=700");
	check_off("tmpfs of 64 KiB", 0, "there is no room for a box: the file system of");
	_exit(0);
}

static void test_no_room(void)
{
	int status = subject_on_mount(no_room_body);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return skip("mount namespaces are not permitted");
	check_exit(status, 0);
}

static void readonly_fs_body(void *arg)
{
	(void)arg;
	small_tmpfs("size=2m,mode=700");
	mkdir(getenv("TACHO_BOX_DIR"), 0700);
	if (mount(NULL, mount_point(), NULL, MS_REMOUNT | MS_RDONLY, NULL))
		_exit(77);
	check_off("read-only file system", EROFS, "read-only");
	_exit(0);
}

static void test_readonly_fs(void)
{
	int status = subject_on_mount(readonly_fs_body);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return skip("mount namespaces are not permitted");
	check_exit(status, 0);
}

/* ------------------------------------------------------------- limits */

static void limit(int resource, rlim_t value)
{
	struct rlimit l = {value, RLIM_INFINITY};

	getrlimit(resource, &l);
	l.rlim_cur = value;
	CHECK(!setrlimit(resource, &l), "setrlimit: %s", strerror(errno));
}

static void fsize_body(void *arg)
{
	(void)arg;
	/* The default action of SIGXFSZ would end this process. */
	limit(RLIMIT_FSIZE, 100000);
	check_off("RLIMIT_FSIZE", EFBIG, "file size limit");
	limit(RLIMIT_FSIZE, 1000);
	check_off("RLIMIT_FSIZE too small for a note", EFBIG, "file size limit");
	limit(RLIMIT_FSIZE, 0);
	check_off("RLIMIT_FSIZE 0", EFBIG, "file size limit");
	limit(RLIMIT_FSIZE, 32 << 20);
	start();
	marks(0, 100);
	/* Lowered while recording: the box has its size already. */
	limit(RLIMIT_FSIZE, 0);
	marks(100, 100000);
	die();
}

static void test_fsize(void)
{
	unsigned notes = 0, good = 0;
	const char *listed;
	struct boxes *b;

	subject(fsize_body, NULL);
	b = boxes_open(box_dir());
	for (size_t i = 0; i < b->count; i++) {
		notes +=
			b->box[i].error == -ENODATA && strstr(b->box[i].message, "file size limit");
		if (b->box[i].reader) {
			check_writer(tally_whole(&b->box[i], 100000), 0, 100000);
			good++;
		}
	}
	CHECK(good == 1 && notes == 1, "%u boxes and %u notes among %zu", good, notes, b->count);
	listed = cli("ls");
	CHECK(!listed || strstr(listed, "file size limit"), "tacho ls does not tell: %s", listed);
}

static void as_body(void *arg)
{
	uint64_t used = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	(void)arg;
	if (!f || fscanf(f, "%llu", (unsigned long long *)&used) != 1)
		_exit(1);
	fclose(f);
	used *= 4096;
	limit(RLIMIT_AS, used + (1 << 20));
	check_off("RLIMIT_AS for nothing", ENOMEM, "memory");
	limit(RLIMIT_AS, used + (16 << 20));
	check_off("RLIMIT_AS for the recorder alone", ENOMEM, "memory");
	limit(RLIMIT_AS, used + (128 << 20));
	start();
	limit(RLIMIT_AS, used);
	marks(0, 200000);
	die();
}

static void test_as(void)
{
	struct boxes *b;
	unsigned good = 0;

	if (emulated())
		return skip("qemu-user does not pass RLIMIT_AS on");
	subject(as_body, NULL);
	b = boxes_open(box_dir());
	for (size_t i = 0; i < b->count; i++) {
		if (!b->box[i].reader)
			continue;
		check_writer(tally_whole(&b->box[i], 200000), 0, 200000);
		good++;
	}
	CHECK(good == 1, "%u boxes with records", good);
}

static void nofile_body(void *arg)
{
	(void)arg;
	for (rlim_t n = 0; n <= 3; n++) {
		limit(RLIMIT_NOFILE, n);
		check_off("RLIMIT_NOFILE", EMFILE, "too many open files");
	}
	limit(RLIMIT_NOFILE, 64);
	start();
	limit(RLIMIT_NOFILE, 0);
	marks(0, 200000);
	die();
}

static void test_nofile(void)
{
	struct boxes *b;
	unsigned good = 0;

	if (emulated())
		return skip("qemu-user needs descriptors of its own");
	subject(nofile_body, NULL);
	b = boxes_open(box_dir());
	for (size_t i = 0; i < b->count; i++) {
		if (!b->box[i].reader)
			continue;
		check_writer(tally_whole(&b->box[i], 200000), 0, 200000);
		good++;
	}
	CHECK(good == 1, "%u boxes with records", good);
}

static const struct test tests[] = {
	{"a folder behind a symbolic link is refused", test_symlink},
	{"a folder that others can write to is refused", test_writable},
	{"a file, or nothing, in the place of the folder is refused", test_not_folder},
	{"a folder of another user is refused", test_other_owner},
	{"a folder without permission to write is refused", test_unwritable},
	{"a folder on a disk is refused", test_disk},
	{"XDG_RUNTIME_DIR serves where /dev/shm does not", test_runtime_dir},
	{"a tmpfs that is too small shortens the window and never kills", test_full},
	{"a tmpfs that fills up while recording never kills", test_filled},
	{"where all memory is taken at once, the box is as small as it must be", test_at_once},
	{"a tmpfs without room for the beginning of a box", test_no_room},
	{"a read-only file system", test_readonly_fs},
	{"RLIMIT_FSIZE raises no SIGXFSZ", test_fsize},
	{"RLIMIT_AS", test_as},
	{"RLIMIT_NOFILE", test_nofile},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
