/* A process that changes its user: whose box it records into. Nothing hooks libc here, so that the recorder
   finds out by itself, with its next chunk. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

#define USER 64901
#define MARKS 10000u /* more than a chunk has room for */
#define THREADS 4

static struct tacho_name kind = TACHO_KIND("before and after");
static uint32_t next;
static volatile int end;

static struct tacho_status_info status_now(void)
{
	struct tacho_status_info st = {.size = sizeof(st)};

	tacho_status(&st);
	return st;
}

static void marks(void)
{
	for (uint32_t i = 0; i < MARKS; i++)
		mark(0, next++);
}

static void poll_once(void)
{
	tacho_poll_begin(&kind, 1);
	tacho_poll_end(TACHO_DONE);
}

/* A /dev/shm of its own, which ends with the process. */
static void alone(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev/shm", "tmpfs", 0, "size=256m,mode=1777"))
		_exit(77);
	unsetenv("TACHO_BOX_DIR");
	unsetenv("XDG_RUNTIME_DIR");
}

/* Boxes of `folder` that are mapped so that they can be written to. */
static unsigned mapped(const char *folder)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned count = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		count += strstr(line, folder) && strstr(line, "rw-s");
	if (maps)
		fclose(maps);
	return count;
}

static void become(uid_t user)
{
	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user))
		_exit(2);
}

static void run(void (*body)(void *))
{
	int status;

	if (geteuid())
		return skip("only root can become another user");
	status = subject_wait(subject_start(body, NULL));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return skip("mount namespaces are not permitted");
	check_exit(status, 0);
}

/* ------------------------------------------------------------------- for good */

static void dropped_body(void *arg)
{
	struct tacho_status_info st;
	uint32_t id;
	uint64_t kept;
	struct boxes *b;
	char dir[64];

	(void)arg;
	alone();
	start();
	poll_once();
	id = kind.id;
	marks();
	CHECK(mapped("/dev/shm/tacho-0/") > 0, "it is not recorded as root");
	become(USER);
	marks();
	st = status_now();
	snprintf(dir, sizeof(dir), "/dev/shm/tacho-%d", USER);
	CHECK(!strncmp(st.box, dir, strlen(dir)) && strstr(st.box, "-1.box"), "the box is %s",
	      st.box);
	CHECK(st.state == TACHO_STATE_RECORDING, "state %u", st.state);
	CHECK(!mapped("/dev/shm/tacho-0/"), "root's box is still mapped");
	poll_once();
	CHECK(kind.id == id, "a name has another number");
	b = boxes_open(dir);
	if (CHECK(b->count == 1 && b->box[0].reader, "%zu boxes", b->count)) {
		CHECK(!strcmp(name_of(&b->box[0], id), "before and after"), "number %u is '%s'", id,
		      name_of(&b->box[0], id));
		kept = tally(&b->box[0])->marks;
		CHECK(kept > MARKS / 4, "%llu marks", (unsigned long long)kept);
	}
	boxes_close();
}

static void test_dropped(void)
{
	run(dropped_body);
}

static void stopped_body(void *arg)
{
	(void)arg;
	alone();
	start();
	marks();
	tacho_stop();
	CHECK(mapped("/dev/shm/tacho-0/") > 0, "a box that was stopped has no names any more");
	become(USER);
	start();
	poll_once();
	CHECK(!mapped("/dev/shm/tacho-0/"), "root's box is still mapped");
}

static void test_stopped(void)
{
	run(stopped_body);
}

/* ----------------------------------------------------------------- for a while */

static void while_body(void *arg)
{
	char box[sizeof(status_now().box)];

	(void)arg;
	alone();
	start();
	marks();
	strcpy(box, status_now().box);
	for (int i = 0; i < 5; i++) {
		if (seteuid(USER))
			_exit(2);
		marks();
		if (seteuid(0))
			_exit(2);
		marks();
	}
	CHECK(!strcmp(box, status_now().box), "%s became %s", box, status_now().box);
	CHECK(status_now().dropped_records == 0, "records were dropped");
}

static void test_while(void)
{
	run(while_body);
}

/* Capabilities outlive the first change, and allow all others. */
static int keep_setuid(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0}};

	data[0].permitted = data[0].effective = 1u << CAP_SETUID;
	return (int)syscall(SYS_capset, &head, data);
}

static void often_body(void *arg)
{
	struct tacho_status_info st;

	(void)arg;
	alone();
	start();
	marks();
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setresuid(USER, USER, USER) || keep_setuid())
		_exit(2);
	for (uid_t u = USER; u < USER + 20; u++) {
		if (setresuid(u, u, u))
			_exit(2);
		marks();
	}
	st = status_now();
	CHECK(st.state == TACHO_STATE_OFF && strstr(st.reason, "again and again"), "state %u, '%s'",
	      st.state, st.reason);
	CHECK(!mapped("/dev/shm/tacho-"), "a box is still mapped");
}

static void test_often(void)
{
	run(often_body);
}

/* --------------------------------------------------------------- where it cannot */

static void refused_body(void *arg)
{
	struct tacho_status_info st;
	struct boxes *b;
	char dir[64];

	(void)arg;
	alone();
	if (mkdir("/dev/shm/roots", 0700))
		_exit(2);
	setenv("TACHO_BOX_DIR", "/dev/shm/roots", 1);
	start();
	marks();
	CHECK(mapped("/dev/shm/roots/") > 0, "it is not recorded as root");
	become(USER);
	marks();
	st = status_now();
	CHECK(st.state == TACHO_STATE_OFF && strstr(st.reason, "permission denied"),
	      "state %u, '%s'", st.state, st.reason);
	CHECK(!mapped("/dev/shm/roots/"), "root's box is still mapped");
	snprintf(dir, sizeof(dir), "/dev/shm/tacho-%d", USER);
	b = boxes_open(dir);
	CHECK(b->count == 1 && b->box[0].error == -ENODATA, "there is no note");
	boxes_close();
}

static void test_refused(void)
{
	run(refused_body);
}

/* -------------------------------------------------------------------- threads */

static void *storing(void *arg)
{
	uint32_t writer = *(uint32_t *)arg;

	for (uint32_t i = 0; !__atomic_load_n(&end, __ATOMIC_RELAXED); i++)
		mark(writer, i);
	return NULL;
}

static void threads_body(void *arg)
{
	uint32_t numbers[THREADS];
	pthread_t threads[THREADS];

	(void)arg;
	alone();
	start();
	for (uint32_t i = 0; i < THREADS; i++) {
		numbers[i] = i + 1;
		if (pthread_create(&threads[i], NULL, storing, &numbers[i]))
			_exit(2);
	}
	marks();
	become(USER);
	/* Whichever thread finds out makes the new box. */
	for (int i = 0; i < 6000 && !strstr(status_now().box, "-1.box"); i++) {
		marks();
		sleep_ms(10);
	}
	CHECK(status_now().state == TACHO_STATE_RECORDING, "state %u", status_now().state);
	CHECK(!mapped("/dev/shm/tacho-0/"), "root's box is still mapped");
	/* So do those that have not recorded since. */
	for (int i = 0; i < 6000 && status_now().threads < THREADS; i++)
		sleep_ms(10);
	__atomic_store_n(&end, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(status_now().threads >= THREADS, "%u threads in the new box", status_now().threads);
}

static void test_threads(void)
{
	run(threads_body);
}

static const struct test tests[] = {
	{"rights given up for good: another box, of the new user", test_dropped},
	{"rights given up when recording was stopped", test_stopped},
	{"rights given up for a while: the same box", test_while},
	{"another user again and again: recording ends", test_often},
	{"rights given up where no other box can be made: none is kept", test_refused},
	{"rights given up while other threads store", test_threads},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
