/* A folder of trace files as one. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "events_builder.h"
#include "read_help.h"

static char folder[64];
static unsigned files;

static void path_of(char *path, unsigned number)
{
	snprintf(path, 128, "%s/%04u.tacho", folder, number);
}

/* Ends the trace and puts it into the folder. */
static void save(struct tb *t, int with_index)
{
	char path[128];
	int fd;

	if (with_index >= 0)
		tb_end(t, with_index);
	path_of(path, files++);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, t->data, t->size), t->size);
	close(fd);
	tb_free(t);
}

static void begin(struct tb *t, uint32_t pid, uint64_t taken)
{
	tb_init(t);
	tb_meta(t, pid, taken);
}

/* Records [from, to) of the stream of thread 1, in the chunk `sequence`. */
static void put(struct tb *t, uint32_t sequence, uint64_t prior, uint64_t ns, uint32_t count)
{
	struct eb e;

	eb_init(&e, 1, sequence, prior);
	eb_fill(&e, ns, count);
	eb_done(&e, t);
}

static struct tacho_reader *open_folder(void)
{
	struct tacho_reader *r;
	char message[256] = "";
	int err = tacho_read_open(&r, folder, NULL, message, sizeof(message));

	if (err)
		print_message("%s\n", message);
	assert_int_equal(err, 0);
	return r;
}

static void files_of_one_process_are_one(void **state)
{
	uint8_t payload[TACHO_DEF_PAYLOAD_MAX];
	struct tb t, definitions = {0};
	struct tacho_reader *r;
	const struct tacho_event *e;
	uint64_t missing = 0, n = 0;

	(void)state;
	begin(&t, 42, 5000);
	put(&t, 0, 0, 1000, 100);
	/* Half of a chunk: the next file has all of it, by a clock that is off a little. */
	put(&t, 1, 100, 2000, 50);
	save(&t, 1);
	begin(&t, 42, 9000);
	tb_definition(&definitions, 3, TACHO_DEF_KIND, payload,
		      bb_name(payload, "later", "", 0, 0, 0, ""));
	tb_plain(&t, TACHO_BLOCK_DEFINITIONS, definitions.data, definitions.size);
	free(definitions.data);
	put(&t, 1, 100, 2003, 100);
	put(&t, 2, 200, 4000, 100);
	/* One chunk of 100 records was overwritten before the last. */
	put(&t, 4, 400, 8000, 100);
	save(&t, 1);
	/* The same once more, found without an index. */
	begin(&t, 42, 7000);
	put(&t, 2, 200, 4001, 80);
	save(&t, 0);
	begin(&t, 43, 9000);
	put(&t, 0, 0, 1500, 100);
	save(&t, 1);
	tb_init(&t);
	t.size = 0;
	tb_put(&t, "no trace at all, whatever its name says", 39);
	save(&t, -1);
	r = open_folder();
	assert_int_equal(tacho_read_process_count(r), 2);
	assert_int_equal(tacho_read_process(r, 0)->taken_mono_ns, 9000);
	assert_int_equal(tacho_read_thread_count(r), 2);
	assert_string_equal(tacho_read_definition(r, 0, 3)->name, "later");
	assert_null(tacho_read_definition(r, 1, 3));
	assert_int_equal(problems_named(r, "unreadable-file"), 1);
	assert_int_equal(tacho_read_problem_count(r), 1);
	while (tacho_read_next(r, &e) > 0) {
		if (e->type == TACHO_EV_RESUME)
			missing += e->resume->missing;
		else
			n++;
	}
	assert_int_equal(n, 500);
	assert_int_equal(missing, 100);
	tacho_read_close(r);
}

/* Segments of one process, each of which tells of the gap before it and of the one that is not
   over yet; one of them was wanted for a reason. */
static void segments_tell_of_each_gap_once(void **state)
{
	struct tacho_reader *r;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		const struct tacho_trace_gap gaps[] = {
			{1000, 2000, 10, TACHO_GAP_NO_SPACE, 28},
			{5000, 6000 + i, i, TACHO_GAP_TOO_FAST, 0},
		};
		struct tb t, meta = {0};

		begin(&t, 42, 9000 + i);
		tb_meta_u64(&meta, TACHO_META_SEGMENT, i + 1);
		if (i == 1)
			tb_meta_put(&meta, TACHO_META_WHY, "asked", 5);
		tb_plain(&t, TACHO_BLOCK_META, meta.data, meta.size);
		free(meta.data);
		tb_array(&t, TACHO_BLOCK_GAPS, gaps, sizeof(gaps[0]), 2);
		put(&t, i, 100 * i, 10000 * (i + 1), 100);
		save(&t, 1);
	}
	r = open_folder();
	assert_int_equal(tacho_read_gap_count(r), 2);
	assert_int_equal(tacho_read_gap(r, 0)->records, 10);
	assert_int_equal(tacho_read_gap(r, 0)->error, 28);
	assert_int_equal(tacho_read_gap(r, 1)->to_ns, 6003);
	assert_int_equal(tacho_read_gap(r, 1)->records, 3);
	assert_int_equal(tacho_read_process(r, 0)->segment, 4);
	assert_string_equal(tacho_read_process(r, 0)->why, "asked");
	tacho_read_close(r);
}

/* A snapshot that is newer than what an agent saved knows less of the end, and the other way
   round. */
static void of_several_ends_the_one_is_told_of_which_most_is_known(void **state)
{
	static const struct {
		uint64_t how, ns;
	} ends[] = {{TACHO_END_RUNNING, 7000},
		    {TACHO_END_KILLED, 8000},
		    {TACHO_END_GONE, 9500},
		    {TACHO_END_UNTOLD, 0}};
	struct tacho_reader *r;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct tb t, meta = {0};

		begin(&t, 42, 9000 + i);
		if (ends[i].how)
			tb_meta_u64(&meta, TACHO_META_END_HOW, ends[i].how);
		if (ends[i].how == TACHO_END_KILLED) {
			tb_meta_u64(&meta, TACHO_META_END_STATUS, 9);
			tb_meta_u64(&meta, TACHO_META_END_FLAGS, TACHO_END_NO_MEMORY);
		}
		tb_meta_u64(&meta, TACHO_META_END_MONO, ends[i].ns);
		tb_plain(&t, TACHO_BLOCK_META, meta.data, meta.size);
		free(meta.data);
		put(&t, i, 100 * i, 1000 * (i + 1), 100);
		save(&t, 1);
	}
	r = open_folder();
	assert_int_equal(tacho_read_process(r, 0)->taken_mono_ns, 9003);
	assert_int_equal(tacho_read_process(r, 0)->end_how, TACHO_END_KILLED);
	assert_int_equal(tacho_read_process(r, 0)->end_status, 9);
	assert_int_equal(tacho_read_process(r, 0)->end_flags, TACHO_END_NO_MEMORY);
	assert_int_equal(tacho_read_process(r, 0)->end_ns, 8000);
	tacho_read_close(r);
}

static void put_state(struct tb *t, uint32_t sequence, uint64_t prior, uint64_t ns)
{
	struct eb e;

	eb_init(&e, 1, sequence, prior);
	e.r.head.first_ns = e.r.head.last_ns = ns;
	eb_done(&e, t);
}

/* Records that were stored late, so that the states with which two segments begin are newer than
   the first that follow. */
static void states_come_before_records(void **state)
{
	const uint64_t second = 1000000000;
	struct tacho_reader *r;
	const struct tacho_event *e;
	uint64_t n = 0, late = 0, last = 0;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct tb t, meta = {0};

		begin(&t, 42, 20 * second + i);
		tb_meta_u64(&meta, TACHO_META_SEGMENT, i + 1);
		tb_plain(&t, TACHO_BLOCK_META, meta.data, meta.size);
		free(meta.data);
		if (i)
			put_state(&t, 1, 100, (8 + i) * second);
		if (i != 1)
			put(&t, i / 2, 50 * i, (1 + 2 * i) * second, 100);
		if (i == 2)
			put(&t, 2, 200, 15 * second, 100);
		save(&t, i != 2);
	}
	r = open_folder();
	while (tacho_read_next(r, &e) > 0) {
		if (e->type == TACHO_EV_RESUME) {
			assert_int_equal(e->resume->missing, 0);
			continue;
		}
		assert_true(e->ns >= last);
		last = e->ns;
		late += e->ns >= 5 * second && e->ns < 6 * second;
		n++;
	}
	assert_int_equal(n, 300);
	assert_int_equal(late, 100);
	assert_int_equal(tacho_read_problem_count(r), 0);
	tacho_read_close(r);
}

/* Two dumps and a segment of one process. Blocks of several chunks have the sequence of the first
   of them, which may be another in each file. */
static void blocks_of_several_chunks_may_overlap(void **state)
{
	struct tacho_reader *r;
	const struct tacho_event *e;
	uint64_t n = 0, resumes = 0;
	struct tb t;

	(void)state;
	begin(&t, 42, 20000);
	put(&t, 0, 0, 1000, 400);
	/* The last record stood in no chunk yet: it was told of a poll that was pending. */
	put(&t, 0, 400, 5000, 201);
	save(&t, 1);
	begin(&t, 42, 30000);
	put(&t, 3, 300, 4000, 300);
	put(&t, 3, 600, 7000, 400);
	save(&t, 1);
	begin(&t, 42, 25000);
	put_state(&t, 2, 200, 3000);
	put(&t, 2, 200, 3000, 50);
	put(&t, 2, 250, 3500, 50);
	put(&t, 8, 900, 10000, 200);
	save(&t, 0);
	r = open_folder();
	while (tacho_read_next(r, &e) > 0) {
		if (e->type == TACHO_EV_RESUME) {
			assert_int_equal(e->resume->missing, 0);
			resumes++;
			continue;
		}
		assert_int_equal(e->ns, 1000 + 10 * n);
		n++;
	}
	assert_int_equal(n, 1100);
	assert_int_equal(resumes, 1);
	assert_int_equal(tacho_read_problem_count(r), 0);
	tacho_read_close(r);
}

static void more_files_than_may_be_open(void **state)
{
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		begin(&t, 42, 5000 + i);
		put(&t, i, 100 * i, 10000 * (i + 1), 100);
		save(&t, 1);
	}
	r = open_folder();
	assert_int_equal(tacho_read_process_count(r), 1);
	assert_int_equal(count_events(r), 10000);
	assert_int_equal(tacho_read_problem_count(r), 0);
	assert_int_equal(tacho_read_seek(r, 500000), 0);
	assert_int_equal(count_events(r), 5100);
	tacho_read_close(r);
}

static void a_file_that_is_replaced_is_a_problem(void **state)
{
	struct tacho_reader *r;
	char path[128];
	struct tb t;

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		begin(&t, 42, 5000 + i);
		put(&t, i, 100 * i, 10000 * (i + 1), 100);
		save(&t, 1);
	}
	r = open_folder();
	/* The first is closed by now; another file takes its name. */
	path_of(path, 0);
	assert_int_equal(unlink(path), 0);
	assert_true(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600) >= 0);
	assert_int_equal(count_events(r), 3900);
	assert_int_equal(problems_named(r, "damaged-block"), 1);
	tacho_read_close(r);
}

/* Two files tell of one crash: whichever comes first, what is kept is what knows most of it. */
static void of_one_crash_the_longest_stack_is_kept(void **state)
{
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct tacho_box_crash crash = {.state = TACHO_CRASH_STACK_DONE,
						.tid = 42,
						.signal = 11,
						.ticks = 3000,
						.frames = i == 1 ? 5 : 2,
						.frame = {0x10, 0x20, 0x30, 0x40, 0x50}};

		begin(&t, 42, 5000 + i);
		tb_array(&t, TACHO_BLOCK_CRASHES, &crash, sizeof(crash), 1);
		put(&t, i, 100 * i, 1000 * (i + 1), 100);
		save(&t, 1);
	}
	r = open_folder();
	assert_int_equal(tacho_read_crash_count(r), 1);
	assert_int_equal(tacho_read_crash(r, 0)->frame_count, 5);
	tacho_read_close(r);
}

static void of_several_paths_the_first_that_cannot_be_read_is_told(void **state)
{
	char good[128], message[256] = "";
	const char *paths[] = {good, "/nowhere/first", good, "/nowhere/last"};
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	begin(&t, 42, 5000);
	put(&t, 0, 0, 1000, 100);
	save(&t, 1);
	path_of(good, 0);
	for (uint32_t count = 2; count <= 4; count++) {
		assert_int_equal(
			tacho_read_open_all(&r, paths, count, NULL, message, sizeof(message)),
			-ENOENT);
		assert_non_null(strstr(message, "/nowhere/first"));
	}
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/tacho-test-XXXXXX");
	files = 0;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char path[128];

	(void)state;
	for (unsigned i = 0; i < files; i++) {
		path_of(path, i);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_of_one_process_are_one, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(of_one_crash_the_longest_stack_is_kept, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(
			of_several_paths_the_first_that_cannot_be_read_is_told, make_folder,
			remove_folder),
		cmocka_unit_test_setup_teardown(segments_tell_of_each_gap_once, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(
			of_several_ends_the_one_is_told_of_which_most_is_known, make_folder,
			remove_folder),
		cmocka_unit_test_setup_teardown(states_come_before_records, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(blocks_of_several_chunks_may_overlap, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(more_files_than_may_be_open, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_file_that_is_replaced_is_a_problem, make_folder,
						remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
