/* Blocking calls of loop threads, in a program that knows nothing of tacho. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <time.h>

#include "calls_subject.h"
#include "preloaded.h"

#define SUBJECT "hooks-calls-subject"
#define LONG_NS 28000000u /* what the program makes last takes 30 ms or more */
#define CALLS_MAX 4096

struct call {
	char name[40], path[256];
	uint64_t ns, number, kind, caller;
	int error;
};

static struct {
	struct call call[CALLS_MAX];
	unsigned count;
	uint64_t io_uring_ns;	 /* the longest wait of a loop of that name ... */
	uint32_t io_uring_ready; /* ... and what was ready then */
} seen;

static struct preloaded program;

static void take_call(const struct box *box, const struct tacho_event *e)
{
	struct call *c = &seen.call[seen.count];
	const struct tacho_definition *stack;

	if (!CHECK(seen.count < CALLS_MAX && e->words == 4, "a call of %u words", e->words))
		return;
	seen.count++;
	stack = tacho_read_definition(box->reader, e->process, (uint32_t)(e->word[0] >> 16));
	snprintf(c->name, sizeof(c->name), "%s", name_of(box, e->arg));
	snprintf(c->path, sizeof(c->path), "%s", name_of(box, (uint32_t)e->word[3]));
	c->ns = e->word[1];
	c->number = e->word[2];
	c->error = (int)(e->word[3] >> 32 & 0xffff);
	c->kind = e->word[3] >> 48;
	if (CHECK(stack && stack->def_class == TACHO_DEF_STACK && stack->count, "%s has no stack",
		  c->name))
		c->caller = stack->frames[0];
}

/* All calls in the only box. */
static struct box *take_calls(void)
{
	struct box *box;
	const struct tacho_event *e;
	uint64_t parked = 0;
	uint32_t loop = 0;

	memset(&seen, 0, sizeof(seen));
	boxes_open(box_dir());
	box = the_box();
	if (!box || !CHECK(box->reader != NULL, "the box: %s", box->message))
		return NULL;
	while (tacho_read_next(box->reader, &e) > 0) {
		if (e->type == TACHO_EV_CALL)
			take_call(box, e);
		if (e->type == TACHO_EV_PARK) {
			parked = e->ns;
			loop = e->arg;
		}
		if (e->type == TACHO_EV_UNPARK && strstr(name_of(box, loop), "io_uring") &&
		    e->ns - parked > seen.io_uring_ns) {
			seen.io_uring_ns = e->ns - parked;
			seen.io_uring_ready = e->arg;
		}
	}
	return box;
}

static const struct call *find(const char *name, uint64_t least_ns)
{
	for (unsigned i = 0; i < seen.count; i++)
		if (!strcmp(seen.call[i].name, name) && seen.call[i].ns >= least_ns)
			return &seen.call[i];
	return NULL;
}

/* The first long call of `name` on `number`. On a busy machine others of that name are long, too. */
static const struct call *find_on(const char *name, uint64_t number)
{
	for (unsigned i = 0; i < seen.count; i++)
		if (!strcmp(seen.call[i].name, name) && seen.call[i].number == number &&
		    seen.call[i].ns >= LONG_NS)
			return &seen.call[i];
	return NULL;
}

static unsigned count(const char *name)
{
	unsigned n = 0;

	for (unsigned i = 0; i < seen.count; i++)
		n += !strcmp(seen.call[i].name, name);
	return n;
}

static void run(const char *mode, const char *hooks, const char *threshold)
{
	setenv("TACHO_KEEP_BOX", "1", 1);
	setenv("TACHO_CALL_THRESHOLD", threshold, 1);
	preloaded_run(&program, SUBJECT, mode, hooks);
}

/* ------------------------------------------------------------- slow calls */

static uint64_t kind_of(const char *name)
{
	static const struct {
		const char *name;
		uint64_t kind;
	} kinds[] = {
		{"read", 3},   {"readv", 3},   {"__read_chk", 3}, {"write", 3},	     {"open", 3},
		{"recv", 5},   {"accept", 5},  {"recvfrom", 6},	  {"flock", 1},	     {"lockf", 1},
		{"fcntl", 1},  {"connect", 7}, {"recvmsg", 7},	  {"__recv_chk", 7}, {"open64", 3},
		{"openat", 3}, {"creat", 3},   {"__open_2", 3},	  {"fgets", 3},	     {"fprintf", 3},
		{"fwrite", 3},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return kinds[i].kind;
	return 0;
}

/* A line that the program printed against what was recorded. */
static void compare(const char *line)
{
	char name[40], path[256];
	unsigned long long ns, at;
	long number;
	const struct call *c;

	if (!CHECK(sscanf(line, "call %39s ns %llu number %ld path %255s at %llx", name, &ns,
			  &number, path, &at) == 5,
		   "the program printed %s", line))
		return;
	c = find_on(name, (uint64_t)number);
	if (!CHECK(c != NULL, "%s on %ld was not recorded", name, number))
		return;
	CHECK(c->ns <= ns + ns / 1000, "%s took %llu ns, %llu were recorded", name, ns,
	      (unsigned long long)c->ns);
	CHECK(!strncmp(c->path, path, strlen(path)) || !strcmp(path, "-"),
	      "%s was of %s, recorded is %s", name, path, c->path);
	CHECK(c->kind == kind_of(name), "%s was on a descriptor of kind %llu", name,
	      (unsigned long long)c->kind);
	CHECK(!c->error, "%s failed with %d", name, c->error);
	CHECK(lies_in(c->caller, at), "%s was called from %#llx, in %#llx", name,
	      (unsigned long long)c->caller, at);
}

static unsigned compare_all(void)
{
	unsigned n = 0;
	char *at = program.out;

	for (char *line = strsep(&at, "\n"); line; line = strsep(&at, "\n")) {
		if (strncmp(line, "call ", 5))
			continue;
		compare(line);
		n++;
	}
	return n;
}

static void test_slow(void)
{
	uint64_t plugin;
	struct box *box;
	unsigned n;

	run("slow", "on", "1ms");
	plugin = printed(&program, "plugin");
	box = take_calls();
	if (!box)
		return;
	n = compare_all();
	CHECK(n == 33, "the program made %u calls", n);
	/* What the library did while it was loaded is in the time of dlopen. */
	CHECK(count("nanosleep") == 1, "%u nanosleeps", count("nanosleep"));
	CHECK(tacho_read_module_at(box->reader, 0, plugin, UINT64_MAX) != NULL,
	      "the library that was loaded is not known");
}

/* ---------------------------------------------------------------- answers */

/* Lines that are no name of a hooked call. fcntl is hooked where it waits: in fcntl64. */
static int is_other(const char *name)
{
	static const char *const others[] = {"lseek", "mode", "fcntl", "syscall", "seven"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(others[i], name))
			return 1;
	return 0;
}

static void test_answers(void)
{
	static struct preloaded plain;
	char *line, *at, name[60];
	unsigned n = 0;
	long answer;
	int error;

	run("answers", NULL, "0");
	plain = program;
	run("answers", "on", "0");
	CHECK(!strcmp(plain.out, program.out), "the answers are not the same");
	if (!take_calls())
		return;
	at = plain.out;
	for (line = strsep(&at, "\n"); line; line = strsep(&at, "\n")) {
		if (sscanf(line, "%59s %ld %d", name, &answer, &error) != 3 || is_other(name))
			continue;
		n++;
		CHECK(find(name, 0) != NULL, "%s was not recorded", name);
	}
	CHECK(n > 230, "the program made %u calls", n);
	CHECK(find("io_uring_enter", 0) != NULL, "io_uring_enter was not recorded");
}

static void test_errors(void)
{
	run("answers", "on", "0");
	if (!take_calls())
		return;
	for (unsigned i = 0; i < seen.count; i++) {
		const struct call *c = &seen.call[i];

		if (!strcmp(c->name, "connect"))
			CHECK(c->error == ECONNREFUSED && c->kind == TACHO_DESCRIPTOR_TCP,
			      "connect: %d", c->error);
		if (!strcmp(c->name, "fsync"))
			CHECK(c->error ? c->error == EBADF && c->number == UINT64_MAX
				       : strstr(c->path, "/file") != NULL,
			      "fsync: %d %s", c->error, c->path);
		if (!strcmp(c->name, "stat") && c->error)
			CHECK(c->error == EFAULT && !c->path[0], "stat: %d %s", c->error, c->path);
		if (!strcmp(c->name, "rename"))
			CHECK(strstr(c->path, "/name") != NULL, "rename of %s", c->path);
	}
}

/* -------------------------------------------------------------- no record */

static void test_fast(void)
{
	run("fast", "on", "1s");
	take_calls();
	CHECK(!seen.count, "%u calls were recorded, %s", seen.count, seen.call[0].name);
}

static void test_no_loop(void)
{
	run("no_loop", "on", "1ms");
	take_calls();
	CHECK(!count("read"), "a read of a thread without a loop was recorded");
}

static void test_bad_threshold(void)
{
	const struct boxes *boxes;

	run("fast", "on", "soon");
	boxes = boxes_open(box_dir());
	CHECK(boxes->count == 1 &&
		      strstr(boxes->box[0].message, "TACHO_CALL_THRESHOLD=soon is not understood"),
	      "%zu boxes, %s", boxes->count, boxes->count ? boxes->box[0].message : "");
}

/* Where nothing can block nothing is recorded, and only there. */
static void test_transfers(void)
{
	static const char *const timed[] = {"readv", "recvfrom", "recvmsg", "__read_chk",
					    "read",  "recvmmsg", "write"};

	run("transfers", "on", "1ns");
	take_calls();
	for (size_t i = 0; i < sizeof(timed) / sizeof(timed[0]); i++)
		CHECK(count(timed[i]) == TRANSFERS_USES, "%s: %u of %d calls were timed", timed[i],
		      count(timed[i]), TRANSFERS_USES);
	CHECK(!count("recv") && !count("accept4"),
	      "%u calls of five descriptors that never block were recorded, %u of a listening one",
	      count("recv"), count("accept4"));
}

static void test_all_transfers(void)
{
	run("transfers", "on", "0");
	take_calls();
	CHECK(count("recv") == 5 * TRANSFERS_USES,
	      "%u calls of five descriptors were recorded though all should be", count("recv"));
	CHECK(count("accept4") == 1, "accept4 was recorded %u times", count("accept4"));
}

/* ------------------------------------------------------------ ways to leave */

static void test_cancel(void)
{
	run("cancel", "on", "1ms");
	CHECK(strstr(program.out, "cancelled 1 cleanups 1") != NULL, "%s", program.out);
	take_calls();
	CHECK(find("nanosleep", LONG_NS) != NULL, "no call was recorded afterwards");
}

static void test_search(void)
{
	for (int hooks = 0; hooks < 2; hooks++) {
		run("search", hooks ? "on" : NULL, "0");
		CHECK(!strcmp(program.out, "found 1\nnumber 17\nclosed 0\n"), "%s", program.out);
	}
}

/* --------------------------------------------------------------- io_uring */

static void wait_on_ring(const char *mode, const char *answer, uint32_t ready)
{
	run(mode, "on", "1ms");
	if (!strncmp(program.out, "skip ", 5)) {
		skip("%.*s", (int)strcspn(program.out + 5, "\n"), program.out + 5);
		return;
	}
	CHECK(!strncmp(program.out, answer, strlen(answer)), "%s", program.out);
	take_calls();
	CHECK(seen.io_uring_ns >= LONG_NS, "the longest wait took %llu ns",
	      (unsigned long long)seen.io_uring_ns);
	CHECK(seen.io_uring_ready == ready, "%u were ready", seen.io_uring_ready);
}

static void test_uring(void)
{
	wait_on_ring("uring", "submitted 1\n", 1);
}

static void test_liburing(void)
{
	wait_on_ring("liburing", "waited -62\n", 0); /* ETIME */
}

/* --------------------------------------------------------------- resolver */

/* Answers to one question: 10.1.2.3, that there is no such name, or nothing. */
static void answer(int fd, uint8_t *m, size_t size, const struct sockaddr_in *from)
{
	static const uint8_t record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 1, 2, 3};
	struct timespec t = {0, 30000000};
	const char *name = (const char *)m + 13;
	size_t end = 12;

	if (size < 17 || !strncmp(name, "never", 5))
		return;
	while (end < size && m[end])
		end += m[end] + 1u;
	end += 5; /* the terminator, type and class */
	if (end > size)
		return;
	m[2] = 0x81;
	m[3] = 0x80;
	memset(m + 6, 0, 6);
	if (!strncmp(name, "slow", 4)) {
		m[7] = 1;
		memcpy(m + end, record, sizeof(record));
		end += sizeof(record);
	} else {
		m[3] |= 3; /* no such name */
	}
	nanosleep(&t, NULL);
	sendto(fd, m, end, 0, (const void *)from, sizeof(*from));
}

static pid_t start_resolver(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(53)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	pid_t pid;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!bind(fd, (void *)&a, sizeof(a)), "port 53: %s", strerror(errno));
	pid = fork();
	while (!pid) {
		static uint8_t m[1024];
		struct sockaddr_in from;
		socklen_t from_size = sizeof(from);
		ssize_t n = recvfrom(fd, m, 512, 0, (void *)&from, &from_size);

		if (n > 0)
			answer(fd, m, (size_t)n, &from);
	}
	close(fd);
	return pid;
}

static int put_over(const char *path, const char *text)
{
	char own[300];
	FILE *f;

	snprintf(own, sizeof(own), "%s/resolver-%s", box_dir(), strrchr(path, '/') + 1);
	f = fopen(own, "w");
	if (!f)
		return -1;
	fputs(text, f);
	fclose(f);
	return mount(own, path, NULL, MS_BIND, NULL);
}

/* A network and a configuration of its own, in which the only resolver is ours. */
static int separate(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWNS | CLONE_NEWNET) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (ioctl(fd, SIOCSIFFLAGS, &lo))
		return -1;
	close(fd);
	return put_over("/etc/resolv.conf",
			"nameserver 127.0.0.1\noptions timeout:20 attempts:1\n") ||
	       put_over("/etc/nsswitch.conf", "hosts: dns\n");
}

static void in_separate_network(void *arg)
{
	const struct call *c;
	pid_t pid;

	(void)arg;
	if (separate()) {
		skip("no network of its own: %s", strerror(errno));
		return;
	}
	pid = start_resolver();
	run("resolve", "on", "1ms");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(strstr(program.out, "answer 0 10.1.2.3\n") && strstr(program.out, "answer -2 -\n") &&
		      !strstr(program.out, "never.test has"),
	      "%s", program.out);
	take_calls();
	c = find("getaddrinfo", LONG_NS);
	CHECK(c && !strcmp(c->path, "slow.test") && !c->error, "slow.test was not recorded");
	CHECK(c && !strcmp(c[1].path, "missing.test") && c[1].error == ENOENT,
	      "missing.test was not recorded");
	CHECK(count("getaddrinfo") == 2, "%u lookups were recorded", count("getaddrinfo"));
	CHECK(!count("connect") && !count("recvfrom"), "what a lookup calls was recorded");
	CHECK(find("nanosleep", LONG_NS) != NULL, "no call was recorded afterwards");
}

static void test_resolver(void)
{
	subject(in_separate_network, NULL);
}

static const struct test tests[] = {
	{"slow_calls_are_recorded", test_slow},
	{"every_call_answers_as_before", test_answers},
	{"failed_calls_say_why", test_errors},
	{"fast_calls_leave_no_record", test_fast},
	{"what_never_blocks_is_not_timed", test_transfers},
	{"every_call_is_recorded_when_asked_for", test_all_transfers},
	{"calls_of_other_threads_leave_no_record", test_no_loop},
	{"bad_threshold_is_refused", test_bad_threshold},
	{"cancelled_read_leaves_cleanly", test_cancel},
	{"library_is_found_where_the_caller_looks", test_search},
	{"io_uring_wait_is_a_park", test_uring},
	{"liburing_wait_is_a_park", test_liburing},
	{"lookups_are_recorded_as_a_whole", test_resolver},
};

int main(int argc, char **argv)
{
	char plugin[600];
	const char *folder = getenv("TACHO_HOOKS_TESTS");

	snprintf(plugin, sizeof(plugin), "%s/libcalls-plugin.so", folder ? folder : ".");
	setenv("CALLS_PLUGIN", plugin, 1);
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
