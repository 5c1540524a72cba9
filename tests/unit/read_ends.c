/* How a process ended, and until when its records tell all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/end.h"
#include "events_builder.h"
#include "read_help.h"
#include "text/end.h"

#define SECOND 1000000000ull
#define FIRST_NS (5 * SECOND)
#define LAST_NS (FIRST_NS + 10000)
#define END_NS (9 * SECOND)

struct ending {
	uint64_t state, how, status, flags, ns;
	uint64_t taken_by;
	uint64_t crash_ns; /* 0: no crash record */
	uint64_t again_ns; /* the same thread, by SIGABRT; 0: not */
	uint32_t crash_flags;
};

/* A trace with records from FIRST_NS to about LAST_NS. */
static struct tacho_reader *open_ending(struct tb *t, const struct ending *x)
{
	const struct tacho_anchor anchors[] = {{SECOND, SECOND, 0}, {8 * SECOND, 8 * SECOND, 0}};
	struct tacho_box_crash crash[] = {
		{.state = TACHO_CRASH_STACK_DONE,
		 .tid = 42,
		 .signal = 11,
		 .flags = x->crash_flags,
		 .ticks = x->crash_ns},
		{.state = TACHO_CRASH_STACK_DONE, .tid = 42, .signal = 6, .ticks = x->again_ns},
	};
	struct tb meta = {0};
	struct eb e;

	tb_init(t);
	tb_meta(t, 42, 10 * SECOND);
	tb_meta_u64(&meta, TACHO_META_STATE, x->state);
	if (x->how)
		tb_meta_u64(&meta, TACHO_META_END_HOW, x->how);
	tb_meta_u64(&meta, TACHO_META_END_STATUS, x->status);
	tb_meta_u64(&meta, TACHO_META_END_FLAGS, x->flags);
	if (x->ns)
		tb_meta_u64(&meta, TACHO_META_END_MONO, x->ns);
	if (x->taken_by)
		tb_meta_u64(&meta, TACHO_META_TAKEN_BY, x->taken_by);
	tb_plain(t, TACHO_BLOCK_META, meta.data, meta.size);
	free(meta.data);
	tb_array(t, TACHO_BLOCK_CLOCK, anchors, sizeof(anchors[0]), 2);
	if (x->crash_ns)
		tb_array(t, TACHO_BLOCK_CRASHES, crash, sizeof(crash[0]), x->again_ns ? 2 : 1);
	eb_init(&e, 1, 0, 0);
	eb_fill(&e, FIRST_NS, 10);
	eb_done(&e, t);
	tb_end(t, 1);
	return open_bytes(t->data, t->size, NULL);
}

static uint64_t window_end(struct tacho_reader *r)
{
	uint64_t first, last;

	assert_int_equal(tacho_read_window(r, &first, &last), 0);
	assert_int_equal(first, FIRST_NS);
	return last;
}

static void what_is_told_of_an_end_is_read(void **state)
{
	const struct ending killed = {.state = TACHO_STATE_RECORDING,
				      .how = TACHO_END_KILLED,
				      .status = 9,
				      .flags = TACHO_END_NO_MEMORY,
				      .ns = END_NS};
	struct tacho_reader *r;
	const struct tacho_process *p;
	struct tb t;

	(void)state;
	r = open_ending(&t, &killed);
	p = tacho_read_process(r, 0);
	assert_int_equal(p->end_how, TACHO_END_KILLED);
	assert_int_equal(p->end_status, 9);
	assert_int_equal(p->end_flags, TACHO_END_NO_MEMORY);
	assert_int_equal(p->end_ns, END_NS);
	tacho_read_close(r);
	tb_free(&t);
}

static void a_window_lasts_until_the_end_of_a_process_that_recorded(void **state)
{
	static const struct {
		struct ending x;
		int lasts;
	} cases[] = {
		{{TACHO_STATE_RECORDING, TACHO_END_KILLED, 9, 0, END_NS, 0, 0, 0, 0}, 1},
		{{TACHO_STATE_RECORDING, TACHO_END_EXITED, 0, 0, END_NS, 0, 0, 0, 0}, 1},
		{{TACHO_STATE_RECORDING, TACHO_END_RUNNING, 0, 0, END_NS, 0, 0, 0, 0}, 1},
		{{TACHO_STATE_RECORDING, TACHO_END_GONE, 0, 0, END_NS, 0, 0, 0, 0}, 1},
		{{TACHO_STATE_RECORDING, TACHO_END_GONE, 0, 0, 0, 0, 0, 0, 0}, 0},
		{{TACHO_STATE_RECORDING, TACHO_END_EXEC, 0, 0, END_NS, 0, 0, 0, 0}, 0},
		{{TACHO_STATE_RECORDING, TACHO_END_UNTOLD, 0, 0, END_NS, 0, 0, 0, 0}, 0},
		{{TACHO_STATE_RECORDING, 99, 0, 0, END_NS, 0, 0, 0, 0}, 0},
		{{TACHO_STATE_STOPPED, TACHO_END_EXITED, 0, 0, END_NS, 0, 0, 0, 0}, 0},
		{{TACHO_STATE_PAUSED, TACHO_END_RUNNING, 0, 0, END_NS, 0, 0, 0, 0}, 0},
		/* Before its last record: hostile, or another clock. */
		{{TACHO_STATE_RECORDING, TACHO_END_KILLED, 9, 0, 3 * SECOND, 0, 0, 0, 0}, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tb t;
		struct tacho_reader *r = open_ending(&t, &cases[i].x);
		uint64_t end = window_end(r);

		if (cases[i].lasts)
			assert_int_equal(end, END_NS);
		else
			assert_true(end > FIRST_NS && end <= LAST_NS);
		tacho_read_close(r);
		tb_free(&t);
	}
}

static void a_crash_record_tells_the_end_where_nothing_else_does(void **state)
{
	const uint32_t recording = TACHO_STATE_RECORDING, crash = TACHO_TAKEN_CRASH;
	const struct {
		struct ending x;
		uint32_t signal; /* 0: as it was told */
		uint64_t ns;
	} cases[] = {
		{{recording, TACHO_END_GONE, 0, 0, 0, 0, 6 * SECOND, 0, 0}, 11, 6 * SECOND},
		{{recording, TACHO_END_RUNNING, 0, 0, END_NS, crash, 6 * SECOND, 0, 0},
		 11,
		 6 * SECOND},
		/* It went on after the crash. */
		{{recording, TACHO_END_GONE, 0, 0, 0, 0, 3 * SECOND, 0, 0}, 0, 0},
		{{recording, TACHO_END_GONE, 0, 0, 0, 0, 6 * SECOND, 0, TACHO_CRASH_SURVIVED},
		 0,
		 0},
		{{recording, TACHO_END_RUNNING, 0, 0, END_NS, 0, 6 * SECOND, 0, 0}, 0, 0},
		{{recording, TACHO_END_UNTOLD, 0, 0, 0, 0, 6 * SECOND, 0, 0}, 0, 0},
		/* Its own handler of the signal aborted it. */
		{{recording, TACHO_END_GONE, 0, 0, 0, 0, 6 * SECOND, 7 * SECOND, 0}, 6, 7 * SECOND},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tb t;
		struct tacho_reader *r = open_ending(&t, &cases[i].x);
		const struct tacho_process *p = tacho_read_process(r, 0);

		assert_int_equal(p->end_how, cases[i].signal ? TACHO_END_KILLED : cases[i].x.how);
		if (cases[i].signal) {
			assert_int_equal(p->end_status, cases[i].signal);
			assert_int_equal(window_end(r), cases[i].ns);
		}
		tacho_read_close(r);
		tb_free(&t);
	}
}

static void what_a_box_knows_of_an_end_goes_before_when_it_was_heard_of(void **state)
{
	const struct tacho_process crashed = {.end_how = TACHO_END_KILLED,
					      .end_status = 11,
					      .end_ns = 6 * SECOND},
				   earlier = {.end_how = TACHO_END_GONE,
					      .end_flags = TACHO_END_EARLIER_BOOT};
	struct tacho__trace_end end = {TACHO_END_KILLED, 11, TACHO_END_CORE, END_NS};

	(void)state;
	tacho__end_settle(&end, &crashed);
	assert_int_equal(end.ns, 6 * SECOND);
	assert_int_equal(end.flags, TACHO_END_CORE);
	end = (struct tacho__trace_end){TACHO_END_KILLED, 9, 0, END_NS};
	tacho__end_settle(&end, &crashed);
	assert_int_equal(end.ns, END_NS);
	end = (struct tacho__trace_end){TACHO_END_GONE, 0, 0, 0};
	tacho__end_settle(&end, &earlier);
	assert_int_equal(end.flags, TACHO_END_EARLIER_BOOT);
	end = (struct tacho__trace_end){TACHO_END_EXITED, 3, 0, END_NS};
	tacho__end_settle(&end, &earlier);
	assert_int_equal(end.flags, 0);
}

static void an_end_is_one_sentence(void **state)
{
	static const struct {
		struct tacho_process p;
		const char *text;
	} cases[] = {
		{{.end_how = TACHO_END_UNTOLD, .end_ns = END_NS}, ""},
		{{.end_how = TACHO_END_EXITED, .end_ns = END_NS}, "ended by itself after 4.000 s"},
		{{.end_how = TACHO_END_EXITED, .end_status = 3, .end_ns = END_NS},
		 "exited with status 3 after 4.000 s"},
		{{.end_how = TACHO_END_KILLED, .end_status = 11, .end_ns = END_NS, .end_flags = 1},
		 "killed by SIGSEGV after 4.000 s, core dumped"},
		{{.end_how = TACHO_END_KILLED, .end_status = 9, .end_ns = END_NS, .end_flags = 2},
		 "killed by SIGKILL, out of memory, after 4.000 s"},
		{{.end_how = TACHO_END_GONE}, "ended, how is not known"},
		{{.end_how = TACHO_END_GONE, .end_ns = END_NS},
		 "ended after 4.000 s, how is not known"},
		{{.end_how = TACHO_END_GONE, .end_flags = TACHO_END_EARLIER_BOOT},
		 "the machine went down or was restarted before anybody saved this"},
		{{.end_how = TACHO_END_RUNNING, .end_ns = END_NS}, "was running after 4.000 s"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tacho_process p = cases[i].p;
		char text[TEXT_END];

		p.created_mono_ns = FIRST_NS;
		assert_string_equal(text_end(text, &p), cases[i].text);
	}
}

static void a_wait_status_is_an_end(void **state)
{
	const struct tacho__kills none = {0};
	struct tacho__trace_end end = tacho__end_of(3 << 8, END_NS, &none);

	(void)state;
	assert_int_equal(end.how, TACHO_END_EXITED);
	assert_int_equal(end.status, 3);
	assert_int_equal(end.ns, END_NS);
	end = tacho__end_of(11 | 0x80, END_NS, &none);
	assert_int_equal(end.how, TACHO_END_KILLED);
	assert_int_equal(end.status, 11);
	assert_int_equal(end.flags, TACHO_END_CORE);
	end = tacho__end_of(9, END_NS, &none);
	assert_int_equal(end.flags, 0);
}

static uint64_t start_time_of(pid_t pid)
{
	char path[32], text[1024] = "";
	unsigned long long start = 0;
	const char *at;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	at = strrchr(text, ')');
	assert_non_null(at);
	assert_int_equal(sscanf(at,
				") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
				"%*s %*s %*s %*s %llu",
				&start),
			 1);
	return start;
}

/* As an agent has it of somebody else's child, before its parent has asked for it and after. */
static void the_status_of_a_process_is_known_without_being_its_parent(void **state)
{
	int pidfd, status = -1, waited;
	siginfo_t info;
	uint64_t start;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(3);
	assert_true(pid > 0);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	start = start_time_of(pid);
	assert_true(tacho__end_status((uint32_t)pid, start, pidfd, &status));
	/* Not 3: valgrind has a status of its own for what it found. */
	assert_int_equal(status, info.si_status << 8);
	/* Another one that has its number. */
	assert_false(tacho__end_status((uint32_t)pid, start + 1, -1, &status));
	assert_int_equal(waitpid(pid, &waited, 0), pid);
	status = -1;
	if (!tacho__end_status((uint32_t)pid, start, pidfd, &status)) {
		struct utsname kernel;
		unsigned major = 0, minor = 0;

		close(pidfd);
		uname(&kernel);
		sscanf(kernel.release, "%u.%u", &major, &minor);
		/* Others than the kernel itself may not know the question. */
		if (major > 6 || (major == 6 && minor >= 15))
			assert_string_not_equal(getenv("TACHO_TEST_UNDER") ?: "unit", "unit");
		print_message(
			"reason: this kernel does not tell how a process ended that is gone\n");
		skip();
	}
	assert_int_equal(status, waited);
	close(pidfd);
}

static void kills_are_counted_in_the_cgroup_before_the_host(void **state)
{
	char path[] = "/tmp/tacho-kills-XXXXXX";
	struct tacho__kills k = {.cgroup = path, .looked_at_ns = 1};
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd, "oom 9\noom_kill 4\noom_group_kill 7\n"), 34);
	k.in_cgroup = 3;
	assert_true(tacho__kills_rose(&k));
	assert_int_equal(tacho__end_of(9, END_NS, &k).flags, TACHO_END_NO_MEMORY);
	assert_int_equal(tacho__end_of(15, END_NS, &k).flags, 0);
	/* What others on the host suffered is not this one's. */
	k.in_cgroup = 4;
	assert_false(tacho__kills_rose(&k));
	close(fd);
	unlink(path);
	/* It is gone: the host's count is all there is, and that cannot be so high. */
	k.on_host = UINT64_MAX - 1;
	assert_false(tacho__kills_rose(&k));
}

/* A part of a recording, whose process exited. */
static void put_process(struct tb *to, uint32_t part)
{
	struct tb t, meta = {0};
	struct tacho_trace_file *file;

	tb_init(&t);
	t.tag = TB_TAG + part;
	file = (struct tacho_trace_file *)t.data;
	file->tag = t.tag;
	file->crc = tacho__crc32c(0, file, 60);
	tb_meta(&t, 100 + part, 9000 + part);
	tb_meta_u64(&meta, TACHO_META_END_HOW, TACHO_END_EXITED);
	tb_plain(&t, TACHO_BLOCK_META, meta.data, meta.size);
	tb_end(&t, 1);
	tb_put(to, t.data, t.size);
	free(meta.data);
	tb_free(&t);
}

static void of_many_ends_some_are_told_and_the_others_counted(void **state)
{
	(void)state;
	for (uint32_t count = 8; count <= 10; count++) {
		struct tacho_reader *r;
		struct tb t = {0};
		char *text, more[100];
		size_t size, lines = 0;
		FILE *out = open_memstream(&text, &size);

		for (uint32_t i = 0; i < count; i++)
			put_process(&t, i);
		r = open_bytes(t.data, t.size, NULL);
		assert_int_equal(tacho_read_process_count(r), count);
		text_put_ends(out, r);
		fclose(out);
		for (const char *at = text; (at = strchr(at, '\n')); at++)
			lines++;
		snprintf(more, sizeof(more), "and %u more processes", count - 8);
		assert_int_equal(lines, count > 8 ? 9 : 8);
		assert_int_equal(strstr(text, more) != NULL, count > 8);
		free(text);
		tacho_read_close(r);
		tb_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told_of_an_end_is_read),
		cmocka_unit_test(a_window_lasts_until_the_end_of_a_process_that_recorded),
		cmocka_unit_test(a_crash_record_tells_the_end_where_nothing_else_does),
		cmocka_unit_test(what_a_box_knows_of_an_end_goes_before_when_it_was_heard_of),
		cmocka_unit_test(an_end_is_one_sentence),
		cmocka_unit_test(a_wait_status_is_an_end),
		cmocka_unit_test(the_status_of_a_process_is_known_without_being_its_parent),
		cmocka_unit_test(kills_are_counted_in_the_cgroup_before_the_host),
		cmocka_unit_test(of_many_ends_some_are_told_and_the_others_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
