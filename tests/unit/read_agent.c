/* What an agent adds: why a trace was taken, segments, gaps, sentinels, who was not recorded. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "events_builder.h"
#include "read_help.h"

static struct tacho_trace_gap gap(uint64_t from, uint64_t to, uint64_t records, uint32_t reason)
{
	return (struct tacho_trace_gap){from, to, records, reason, 0};
}

/* A file of one process with these gaps; the caller ends it. */
static void begin_with_gaps(struct tb *t, const struct tacho_trace_gap *gaps, uint32_t count)
{
	tb_init(t);
	tb_meta(t, 42, 5000);
	tb_array(t, TACHO_BLOCK_GAPS, gaps, sizeof(*gaps), count);
}

static struct tacho_reader *open_trace(struct tb *t)
{
	tb_end(t, 1);
	return open_bytes(t->data, t->size, NULL);
}

static void what_an_agent_says_of_a_trace_is_read(void **state)
{
	const struct tacho_process *p;
	struct tacho_reader *r;
	struct tb t, meta = {0};

	(void)state;
	tb_init(&t);
	tb_meta(&t, 42, 5000);
	tb_meta_put(&meta, TACHO_META_WHY, "poll>50ms: a poll took 73.2 ms", 30);
	tb_meta_u64(&meta, TACHO_META_WHY_MONO, 4711);
	tb_meta_u64(&meta, TACHO_META_SEGMENT, 7);
	tb_meta_u64(&meta, TACHO_META_RECORDING, UINT64_MAX);
	tb_meta_u64(&meta, TACHO_META_AGENT_CPU, 99);
	tb_meta_u64(&meta, TACHO_META_TAKEN_BY, TACHO_TAKEN_SEGMENT);
	tb_plain(&t, TACHO_BLOCK_META, meta.data, meta.size);
	r = open_trace(&t);
	p = tacho_read_process(r, 0);
	assert_string_equal(p->why, "poll>50ms: a poll took 73.2 ms");
	assert_int_equal(p->why_mono_ns, 4711);
	assert_int_equal(p->segment, 7);
	assert_true(p->recording == UINT64_MAX);
	assert_int_equal(p->agent_cpu_ns, 99);
	assert_int_equal(p->taken_by, TACHO_TAKEN_SEGMENT);
	assert_int_equal(p->agent_pid, 0);
	tacho_read_close(r);
	free(meta.data);
	tb_free(&t);
}

static void a_trace_without_an_agent_says_nothing_of_one(void **state)
{
	struct tacho_sentinel_info s = {.size = sizeof(s)};
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	tb_init(&t);
	tb_meta(&t, 42, 5000);
	r = open_trace(&t);
	assert_string_equal(tacho_read_process(r, 0)->why, "");
	assert_int_equal(tacho_read_process(r, 0)->segment, 0);
	assert_int_equal(tacho_read_gap_count(r), 0);
	assert_null(tacho_read_gap(r, 0));
	for (uint32_t i = 0; i < tacho_read_sentinel_count(r); i++) {
		assert_int_equal(tacho_read_sentinel(r, 0, i, &s), 0);
		assert_int_equal(s.limit, 0);
	}
	assert_int_equal(tacho_read_sentinel(r, 0, tacho_read_sentinel_count(r), &s), -EINVAL);
	assert_int_equal(tacho_read_sentinel(r, 1, 0, &s), -EINVAL);
	tacho_read_close(r);
	tb_free(&t);
}

static void gaps_are_sorted_and_each_is_there_once(void **state)
{
	const struct tacho_trace_gap first[] = {gap(3000, 4000, 0, TACHO_GAP_NO_SPACE),
						gap(1000, 2000, 5, TACHO_GAP_NO_AGENT),
						gap(1000, 1500, 9, TACHO_GAP_KERNEL)};
	/* What the next file says of a gap that still went on, and of another at its time. */
	const struct tacho_trace_gap second[] = {gap(1000, 2500, 3, TACHO_GAP_NO_AGENT),
						 gap(1000, 2000, 5, TACHO_GAP_NO_AGENT),
						 gap(9000, 9000, 1, 77)};
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	begin_with_gaps(&t, first, 3);
	tb_array(&t, TACHO_BLOCK_GAPS, second, sizeof(second[0]), 3);
	r = open_trace(&t);
	assert_int_equal(tacho_read_gap_count(r), 4);
	assert_string_equal(tacho_read_gap(r, 0)->reason, "kernel");
	assert_string_equal(tacho_read_gap(r, 1)->reason, "no-agent");
	assert_int_equal(tacho_read_gap(r, 1)->from_ns, 1000);
	assert_int_equal(tacho_read_gap(r, 1)->to_ns, 2500);
	assert_int_equal(tacho_read_gap(r, 1)->records, 5);
	assert_string_equal(tacho_read_gap(r, 2)->reason, "no-space");
	assert_string_equal(tacho_read_gap(r, 3)->reason, "unknown");
	assert_int_equal(tacho_read_problem_count(r), 0);
	tacho_read_close(r);
	tb_free(&t);
}

static void gaps_that_cannot_be_are_reported(void **state)
{
	const struct tacho_trace_gap bad[] = {gap(2000, 1000, 0, TACHO_GAP_NO_SPACE),
					      gap(0, UINT64_MAX, UINT64_MAX, TACHO_GAP_TOO_FAST)};
	/* More than are there, of no size, of no count, and no array at all. */
	const struct tacho_trace_array arrays[] = {{32, 2}, {0, 9}, {1, 0}, {32, UINT32_MAX}};
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	begin_with_gaps(&t, bad, 2);
	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		tb_plain(&t, TACHO_BLOCK_GAPS, &arrays[i], sizeof(arrays[i]));
	tb_plain(&t, TACHO_BLOCK_GAPS, "", 0);
	r = open_trace(&t);
	assert_int_equal(tacho_read_gap_count(r), 1);
	assert_true(tacho_read_gap(r, 0)->to_ns == UINT64_MAX);
	assert_int_equal(problems_named(r, "bad-gap"), 1);
	assert_int_equal(problems_named(r, "damaged-block"), 5);
	tacho_read_close(r);
	tb_free(&t);
}

static void who_was_not_recorded_is_there_once(void **state)
{
	struct tacho_trace_absent first[2] = {
		{.pid = 7, .reason = TACHO_ABSENT_STATIC, .seen_ns = 2000, .comm = "late"},
		{.pid = 6,
		 .parent_pid = 5,
		 .reason = TACHO_ABSENT_REFUSED,
		 .seen_ns = 1000,
		 .error = EACCES,
		 .comm = "worker",
		 .exe = "/bin/worker",
		 .said = "no room."}};
	/* Of a newer tacho; and the same again, in the next file. */
	struct tacho_trace_absent second[2] = {{.pid = 8, .reason = 77, .seen_ns = 2000}, first[0]};
	const struct tacho_trace_array cut = {512, 2};
	const struct tacho_absent *a;
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	/* Texts need not be ended. */
	memset(second[0].comm, 'x', sizeof(second[0].comm));
	tb_init(&t);
	tb_meta(&t, 42, 5000);
	tb_array(&t, TACHO_BLOCK_ABSENT, first, sizeof(first[0]), 2);
	tb_array(&t, TACHO_BLOCK_ABSENT, second, sizeof(second[0]), 2);
	tb_plain(&t, TACHO_BLOCK_ABSENT, &cut, sizeof(cut));
	r = open_trace(&t);
	assert_int_equal(tacho_read_absent_count(r), 3);
	a = tacho_read_absent(r, 0);
	assert_int_equal(a->pid, 6);
	assert_int_equal(a->parent_pid, 5);
	assert_int_equal(a->error, EACCES);
	assert_string_equal(a->comm, "worker");
	assert_string_equal(a->exe, "/bin/worker");
	assert_string_equal(a->reason, "refused");
	assert_string_equal(a->said, "no room.");
	assert_string_equal(tacho_read_absent(r, 1)->reason, "static");
	assert_string_equal(tacho_read_absent(r, 2)->reason, "unknown");
	assert_string_equal(tacho_read_absent(r, 2)->comm, "xxxxxxxxxxxxxxxx");
	assert_null(tacho_read_absent(r, 3));
	assert_int_equal(problems_named(r, "damaged-block"), 1);
	tacho_read_close(r);
	tb_free(&t);
}

static void triggers_name_their_sentinel(void **state)
{
	const struct tacho_box_trigger triggers[] = {
		{.number = 1, .value = 5}, /* of no sentinel: its value is nothing */
		{.number = 2, .flags = (TACHO_SENTINEL_POLL + 1) << 8, .value = 73},
		{.number = 3, .flags = (TACHO_SENTINEL_QUEUE + 1) << 8 | 1, .value = 1234},
		{.number = 4, .flags = 0xffffffff, .value = 6},
	};
	static const char *const names[] = {"", "poll", "queue", "unknown"};
	static const uint64_t values[] = {0, 73, 1234, 6};
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	tb_init(&t);
	tb_meta(&t, 42, 5000);
	tb_array(&t, TACHO_BLOCK_TRIGGERS, triggers, sizeof(triggers[0]), 4);
	r = open_trace(&t);
	assert_int_equal(tacho_read_trigger_count(r), 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_string_equal(tacho_read_trigger(r, i)->sentinel, names[i]);
		assert_int_equal(tacho_read_trigger(r, i)->value, values[i]);
	}
	tacho_read_close(r);
	tb_free(&t);
}

static void losses_of_a_newer_recorder_are_named_as_unknown(void **state)
{
	uint64_t losses[TACHO_LOSS_MAX + 5] = {[0] = 3, [40] = 7, [TACHO_LOSS_MAX + 1] = 9};
	struct tacho_loss_info l = {.size = sizeof(l)};
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	tb_init(&t);
	tb_meta(&t, 42, 5000);
	tb_array(&t, TACHO_BLOCK_LOSSES, losses, 8, TACHO_LOSS_MAX + 5);
	r = open_trace(&t);
	assert_int_equal(tacho_read_loss_count(r), 41);
	assert_int_equal(tacho_read_loss(r, 0, 40, &l), 0);
	assert_string_equal(l.name, "unknown_40");
	assert_int_equal(l.count, 7);
	assert_int_equal(l.lossy, 1);
	assert_int_equal(tacho_read_loss(r, 0, 0, &l), 0);
	assert_string_equal(l.name, "no_chunk");
	assert_int_equal(tacho_read_loss(r, 0, 41, &l), -EINVAL);
	tacho_read_close(r);
	tb_free(&t);
}

static void the_agent_of_a_box_and_its_sentinels_are_read(void **state)
{
	/* As it is, as tacho 0.1 made it, shorter still, longer; none, and beyond the file. */
	static const struct {
		uint32_t entry, count;
		uint64_t offset;
		int pid, limits;
	} cases[] = {
		{sizeof(struct tacho_box_control), 1, 0, 1, 1},
		{128, 1, 0, 1, 0},
		{8, 1, 0, 1, 0},
		{4096, 1, 0, 1, 1},
		{sizeof(struct tacho_box_control), 0, 0, 0, 0},
		{0, 1, 0, 0, 0},
		{sizeof(struct tacho_box_control), 1, 1ull << 40, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tacho_box_control *control;
		struct tacho_sentinel_info s = {.size = sizeof(s)};
		struct tacho_reader *r;
		struct bb b;

		bb_init(&b);
		b.super->recording = 4711;
		control = bb_region(&b, TACHO_REGION_CONTROL);
		control->agent_pid = 99;
		if (cases[i].entry > 128)
			control->limit[TACHO_SENTINEL_QUEUE] = 1000;
		b.super->regions[TACHO_REGION_CONTROL].entry_size = cases[i].entry;
		b.super->regions[TACHO_REGION_CONTROL].count = cases[i].count;
		if (cases[i].offset)
			b.super->regions[TACHO_REGION_CONTROL].offset = cases[i].offset;
		r = open_bytes(b.data, b.size, NULL);
		assert_int_equal(tacho_read_process(r, 0)->recording, 4711);
		assert_int_equal(tacho_read_process(r, 0)->agent_pid, cases[i].pid ? 99 : 0);
		assert_int_equal(tacho_read_sentinel(r, 0, TACHO_SENTINEL_QUEUE, &s), 0);
		assert_string_equal(s.name, "queue");
		assert_int_equal(s.limit, cases[i].limits ? 1000 : 0);
		tacho_read_close(r);
		bb_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_agent_says_of_a_trace_is_read),
		cmocka_unit_test(a_trace_without_an_agent_says_nothing_of_one),
		cmocka_unit_test(gaps_are_sorted_and_each_is_there_once),
		cmocka_unit_test(gaps_that_cannot_be_are_reported),
		cmocka_unit_test(who_was_not_recorded_is_there_once),
		cmocka_unit_test(triggers_name_their_sentinel),
		cmocka_unit_test(losses_of_a_newer_recorder_are_named_as_unknown),
		cmocka_unit_test(the_agent_of_a_box_and_its_sentinels_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
