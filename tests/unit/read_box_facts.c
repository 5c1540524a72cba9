/* Boxes: what stands in them beside chunks: names, facts, incidents, and what threads are in. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "box_builder.h"
#include "read_help.h"

static void define_all(struct bb *b)
{
	uint8_t p[TACHO_DEF_PAYLOAD_MAX];
	uint64_t frames[3] = {0x1000, 0x2000, 0x3000};
	uint64_t module[4] = {0x400000, 0x500000, 0x1000, 30000000};
	static const uint8_t schema[] = {3,   0,    3, 0,   'r', 'e', 'q', 1, 1,
					 'n', 0x85, 3, 'u', 'r', 'l', 3,   1, 'f'};

	assert_int_equal(bb_define_name(b, TACHO_DEF_TEXT, TACHO_ID_FULL_TEXT, "", 0), 1);
	assert_int_equal(bb_define_name(b, TACHO_DEF_KIND, "on_read", "server.c", 42), 2);
	assert_int_equal(bb_define(b, TACHO_DEF_SCHEMA, 0, schema, sizeof(schema)), 3);
	assert_int_equal(bb_define(b, TACHO_DEF_STACK, TACHO_DEF_CUT, frames, 24), 4);
	memset(p, 0, sizeof(p));
	memcpy(p, module, 32);
	p[32] = 4;
	p[34] = 9;
	memcpy(p + 36, "\1\2\3\4/lib/c.so", 13);
	assert_int_equal(bb_define(b, TACHO_DEF_MODULE, 0, p, 49), 5);
	/* Mapped in its place later. */
	module[3] = 60000000;
	memcpy(p, module, 32);
	p[39 + 1] = 'L';
	assert_int_equal(bb_define(b, TACHO_DEF_MODULE, 0, p, 49), 6);
	assert_int_equal(
		bb_define(b, TACHO_DEF_GAUGE, 0, p, bb_name(p, "queue", "", 0, 0, 2, "jobs")), 7);
	/* Not well-formed: a name longer than the payload, a stack of odd size, fields that
	   do not fit, and one from the future. */
	p[12] = 200;
	bb_define(b, TACHO_DEF_SPAN, 0, p, 30);
	bb_define(b, TACHO_DEF_STACK, 0, frames, 13);
	bb_define(b, TACHO_DEF_SCHEMA, 0, schema, sizeof(schema) - 1);
	bb_define(b, 77, 0, frames, 24);
}

static void definitions_are_found_by_id(void **state)
{
	const struct tacho_definition *d;
	struct tacho_reader *r;
	struct bb b;

	(void)state;
	bb_init(&b);
	define_all(&b);
	bb_chunk(&b, 1, 0, 90000000);
	r = open_bytes(b.data, b.size, NULL);
	assert_int_equal(tacho_read_definition_limit(r, 0), 8);
	d = tacho_read_definition(r, 0, 1);
	assert_string_equal(d->name, TACHO_ID_FULL_TEXT);
	d = tacho_read_definition(r, 0, 2);
	assert_string_equal(d->name, "on_read");
	assert_string_equal(d->file, "server.c");
	assert_int_equal(d->line, 42);
	assert_int_equal(d->value, 0x1234);
	assert_int_equal(d->def_class, TACHO_DEF_KIND);
	d = tacho_read_definition(r, 0, 3);
	assert_string_equal(d->name, "req");
	assert_int_equal(d->count, 3);
	assert_string_equal(d->fields[1].name, "url");
	assert_int_equal(d->fields[1].optional, 1);
	assert_int_equal(d->fields[1].type, TACHO_FIELD_STRING);
	d = tacho_read_definition(r, 0, 4);
	assert_int_equal(d->count, 3);
	assert_int_equal(d->frames[2], 0x3000);
	assert_int_equal(d->cut, 1);
	d = tacho_read_definition(r, 0, 5);
	assert_string_equal(d->name, "/lib/c.so");
	assert_int_equal(d->build_id_size, 4);
	assert_int_equal(d->since_ns, bb_ns(30000000));
	d = tacho_read_definition(r, 0, 7);
	assert_string_equal(d->unit, "jobs");
	assert_int_equal(d->value_type, TACHO_VALUE_F64);
	assert_null(tacho_read_definition(r, 0, 0));
	assert_null(tacho_read_definition(r, 0, 8));
	assert_null(tacho_read_definition(r, 0, 0xffffffff));
	assert_null(tacho_read_definition(r, 1, 1));
	assert_int_equal(problems_named(r, "bad-definition"), 1);
	assert_int_equal(tacho_read_module_at(r, 0, 0x400000, bb_ns(40000000))->id, 5);
	assert_int_equal(tacho_read_module_at(r, 0, 0x4fffff, bb_ns(60000000))->id, 6);
	assert_null(tacho_read_module_at(r, 0, 0x500000, bb_ns(60000000)));
	assert_null(tacho_read_module_at(r, 0, 0x400000, 5));
	tacho_read_close(r);
	bb_free(&b);
}

static void fields_and_texts_are_taken_from_payloads(void **state)
{
	struct bb b;
	struct tacho_reader *r;
	const struct tacho_event *e;
	struct tacho_field_value v = {.size = sizeof(v)};
	uint64_t w[5] = {4 | 7ull << 16, 17, 5 | 1 << 15, 0, 0};
	uint64_t log[2] = {2 | 3ull << 16, 0};
	double half = 0.5;
	const char *text;
	size_t size;
	int cut;

	(void)state;
	bb_init(&b);
	define_all(&b);
	struct tacho_chunk *c = bb_chunk(&b, 1, 0, 30000000);

	memcpy(&w[3], "/path", 5);
	memcpy(&w[4], &half, 8);
	w[0] = 5 | 7ull << 16;
	bb_record(c, 30000003, TACHO_REC_EVENT, 3, w, 5);
	/* The string is absent. */
	w[0] = 3 | 5ull << 16;
	memcpy(&w[2], &half, 8);
	bb_record(c, 30000006, TACHO_REC_EVENT, 3, w, 3);
	/* A string that says it is longer than the record. */
	w[0] = 3 | 2ull << 16;
	w[1] = 1000;
	bb_record(c, 30000009, TACHO_REC_EVENT, 3, w, 3);
	/* A schema that is not there. */
	bb_record(c, 30000012, TACHO_REC_EVENT, 60, w, 3);
	memcpy(&log[1], "hey", 3);
	bb_record(c, 30000015, TACHO_REC_LOG, 2, log, 2);
	log[0] = 2 | 9ull << 16;
	bb_record(c, 30000018, TACHO_REC_LOG, 2, log, 2);
	r = open_bytes(b.data, b.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000003));
	assert_int_equal(tacho_read_field(r, e, 0, &v), -EINVAL);
	expect(r, &e, TACHO_EV_EVENT, 1, bb_ns(30000003));
	assert_int_equal(tacho_read_field(r, e, 0, &v), 1);
	assert_int_equal(v.number.u64, 17);
	assert_int_equal(tacho_read_field(r, e, 1, &v), 1);
	assert_int_equal(v.text_size, 5);
	assert_int_equal(v.cut, 1);
	assert_memory_equal(v.text, "/path", 5);
	assert_int_equal(tacho_read_field(r, e, 2, &v), 1);
	assert_true(v.number.f64 == 0.5);
	assert_int_equal(tacho_read_field(r, e, 3, &v), -EINVAL);
	assert_int_equal(tacho_read_text(e, &text, &size, &cut), -EINVAL);
	expect(r, &e, TACHO_EV_EVENT, 1, bb_ns(30000006));
	assert_int_equal(tacho_read_field(r, e, 1, &v), 0);
	assert_int_equal(tacho_read_field(r, e, 2, &v), 1);
	assert_true(v.number.f64 == 0.5);
	expect(r, &e, TACHO_EV_EVENT, 1, bb_ns(30000009));
	assert_int_equal(tacho_read_field(r, e, 1, &v), -EBADMSG);
	expect(r, &e, TACHO_EV_EVENT, 1, bb_ns(30000012));
	assert_int_equal(tacho_read_field(r, e, 0, &v), -ENOENT);
	expect(r, &e, TACHO_EV_LOG, 1, bb_ns(30000015));
	assert_int_equal(tacho_read_text(e, &text, &size, &cut), 0);
	assert_int_equal(size, 3);
	assert_memory_equal(text, "hey", 3);
	assert_int_equal(cut, 0);
	expect(r, &e, TACHO_EV_LOG, 1, bb_ns(30000018));
	assert_int_equal(tacho_read_text(e, &text, &size, &cut), -EBADMSG);
	tacho_read_close(r);
	bb_free(&b);
}

static void facts_of_the_process_are_there(void **state)
{
	const struct tacho_process *p;
	const struct tacho_thread *t;
	struct tacho_source_info source = {.size = sizeof(source)};
	struct tacho_loss_info loss = {.size = sizeof(loss)};
	struct tacho_reader *r;
	struct bb b;

	(void)state;
	bb_init(&b);
	((uint64_t *)bb_region(&b, TACHO_REGION_LOSSES))[TACHO_LOSS_TEXT_CUT] = 12;
	b.super->sources[TACHO_SOURCE_LOCKS].state = TACHO_SOURCE_REFUSED;
	b.super->sources[TACHO_SOURCE_LOCKS].error = EACCES;
	b.super->poll_threshold_ns = 333;
	bb_thread(&b, 4)->state = TACHO_THREAD_ENDED;
	/* Its entry in the table belongs to another by now. */
	bb_record(bb_chunk(&b, 2, 0, 30000000), 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
	r = open_bytes(b.data, b.size, NULL);
	assert_int_equal(tacho_read_process_count(r), 1);
	p = tacho_read_process(r, 0);
	assert_int_equal(p->pid, 4194305);
	assert_string_equal(p->comm, "builder");
	assert_string_equal(p->exe, "/usr/bin/builder");
	assert_string_equal(p->host, "");
	assert_int_equal(p->alive, TACHO_ALIVE_UNKNOWN);
	assert_int_equal(p->poll_threshold_ns, 333);
	assert_int_equal(p->max_bytes, b.size);
	assert_null(tacho_read_process(r, 1));
	assert_int_equal(tacho_read_real_ns(r, 0, 1000000005), 1700000000000000005ull);
	assert_int_equal(tacho_read_real_ns(r, 1, 5), 0);
	assert_int_equal(tacho_read_thread_count(r), 2);
	t = tacho_read_thread_by_number(r, 0, 2);
	assert_int_equal(t->tid, 1002);
	assert_string_equal(t->name, "worker");
	assert_int_equal(t->live, 0);
	assert_ptr_equal(tacho_read_thread(r, 0), t);
	assert_int_equal(tacho_read_thread_by_number(r, 0, 4)->start_ns, bb_ns(3000));
	assert_null(tacho_read_thread_by_number(r, 0, 3));
	assert_null(tacho_read_thread(r, 2));
	assert_int_equal(tacho_read_source_count(r), TACHO_SOURCE_COUNT);
	assert_int_equal(tacho_read_source(r, 0, TACHO_SOURCE_LOCKS, &source), 0);
	assert_int_equal(source.state, TACHO_SOURCE_REFUSED);
	assert_int_equal(source.error, EACCES);
	assert_string_equal(source.name, "locks");
	assert_int_equal(tacho_read_source(r, 0, 99, &source), -EINVAL);
	assert_int_equal(tacho_read_loss_count(r), TACHO_LOSS_COUNT);
	for (uint32_t i = 0; i < TACHO_LOSS_COUNT; i++) {
		assert_int_equal(tacho_read_loss(r, 0, i, &loss), 0);
		assert_non_null(loss.name);
		assert_non_null(loss.text);
		assert_int_equal(loss.count, i == TACHO_LOSS_TEXT_CUT ? 12 : 0);
	}
	assert_int_equal(tacho_read_loss(r, 2, 0, &loss), -EINVAL);
	tacho_read_close(r);
	bb_free(&b);
}

static void triggers_and_crashes_are_listed(void **state)
{
	struct tacho_box_trigger *t;
	struct tacho_box_crash *c;
	struct tacho_reader *r;
	struct bb b;

	(void)state;
	bb_init(&b);
	t = bb_region(&b, TACHO_REGION_TRIGGERS);
	t[1] = (struct tacho_box_trigger){.number = 66, .tid = 7, .ticks = 6000, .size = 9999};
	memset(t[1].reason, 'x', sizeof(t[1].reason));
	t[0] = (struct tacho_box_trigger){.number = 65, .ticks = 3000, .size = 4};
	memcpy(t[0].reason, "slow", 4);
	c = bb_region(&b, TACHO_REGION_CRASHES);
	c[0] = (struct tacho_box_crash){.state = TACHO_CRASH_STACK_DONE,
					.signal = 11,
					.tid = 5,
					.address = 0xdead,
					.ticks = 9000,
					.regs = 9999,
					.frames = 2,
					.frame = {1, 2},
					.thread_name = "boom"};
	c[1] = (struct tacho_box_crash){.state = TACHO_CRASH_BEGUN,
					.signal = 6,
					.tid = 6,
					.ticks = 9001,
					.regs = 3,
					.frames = 3};
	c[2] = (struct tacho_box_crash){.state = TACHO_CRASH_STACK_DONE,
					.signal = 8,
					.tid = 5,
					.ticks = 8000,
					.flags = TACHO_CRASH_SURVIVED};
	strcpy(b.super->aborted, "Assertion failed.");
	bb_record(bb_chunk(&b, 2, 0, 30000000), 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
	r = open_bytes(b.data, b.size, NULL);
	assert_int_equal(tacho_read_trigger_count(r), 2);
	assert_int_equal(tacho_read_trigger(r, 0)->number, 65);
	assert_string_equal(tacho_read_trigger(r, 0)->reason, "slow");
	assert_int_equal(strlen(tacho_read_trigger(r, 1)->reason), TACHO_REASON_MAX);
	assert_int_equal(tacho_read_trigger(r, 1)->ns, bb_ns(6000));
	assert_null(tacho_read_trigger(r, 2));
	assert_int_equal(tacho_read_crash_count(r), 3);
	assert_int_equal(tacho_read_crash(r, 0)->signal, 11);
	assert_string_equal(tacho_read_crash(r, 0)->said, "");
	assert_int_equal(tacho_read_crash(r, 0)->survived, 0);
	assert_int_equal(tacho_read_crash(r, 0)->reg_count, TACHO_CRASH_REGS);
	assert_int_equal(tacho_read_crash(r, 0)->frame_count, 2);
	assert_int_equal(tacho_read_crash(r, 0)->frames[1], 2);
	assert_string_equal(tacho_read_crash(r, 0)->thread_name, "boom");
	assert_int_equal(tacho_read_crash(r, 0)->unwind_failed, 0);
	assert_int_equal(tacho_read_crash(r, 1)->reg_count, 0);
	assert_int_equal(tacho_read_crash(r, 1)->unwind_failed, 1);
	assert_string_equal(tacho_read_crash(r, 1)->said, "Assertion failed.");
	/* What was survived comes behind what was not. */
	assert_int_equal(tacho_read_crash(r, 2)->signal, 8);
	assert_int_equal(tacho_read_crash(r, 2)->survived, 1);
	assert_null(tacho_read_crash(r, 3));
	tacho_read_close(r);
	bb_free(&b);
}

/* To the ns as the record of what it begins with. */
static void the_begin_of_an_interval_becomes_ns(void **state)
{
	struct bb b;
	struct tacho_reader *r;
	const struct tacho_event *e;
	uint64_t w[4] = {4 | (uint64_t)TACHO_SCHED_POLL << 16, 50, 30000130, 0};

	(void)state;
	bb_init(&b);
	struct tacho_chunk *c = bb_chunk(&b, 1, 0, 30000000);

	bb_record(c, 30000300, TACHO_REC_SCHED_INTERVAL, 4, w, 4);
	w[2] = 0;
	bb_record(c, 30000400, TACHO_REC_SCHED_INTERVAL, 4, w, 4);
	bb_thread(&b, 1);
	r = open_bytes(b.data, b.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000300));
	expect(r, &e, TACHO_EV_SCHED_INTERVAL, 1, bb_ns(30000300));
	assert_int_equal(TACHO_GET(e, SCHED_INTERVAL, begin_ns), bb_ns(30000130));
	assert_int_equal(TACHO_GET(e, SCHED_INTERVAL, runnable_ns), 50);
	expect(r, &e, TACHO_EV_SCHED_INTERVAL, 1, bb_ns(30000400));
	assert_int_equal(TACHO_GET(e, SCHED_INTERVAL, begin_ns), 0);
	tacho_read_close(r);
	bb_free(&b);
}

static void open_counts_and_pending_polls_become_events(void **state)
{
	struct bb b;
	struct tacho_reader *r;
	const struct tacho_event *e;
	struct tacho_box_hist *h;
	struct tacho_box_thread *t;
	uint64_t w[5] = {5 | 8ull << 16, 1, 30000100, 300, 2ull << 48 | 7};

	(void)state;
	bb_init(&b);
	struct tacho_chunk *c = bb_chunk(&b, 1, 0, 30000000);

	bb_record(c, 30000300, TACHO_REC_POLL_HIST, 4, w, 5);
	h = bb_region(&b, TACHO_REGION_HISTOGRAMS);
	/* Slot 0 is open, slot 1 stands in the record above, slot 2 is another thread's. */
	h[0] = (struct tacho_box_hist){.kind = 4,
				       .loop = 8,
				       .thread = 1,
				       .since = 30000060,
				       .total = 900,
				       .count = {[3] = 5, [9] = 1}};
	h[1] = (struct tacho_box_hist){.kind = 4,
				       .loop = 8,
				       .thread = 1,
				       .since = 30000100,
				       .total = 300,
				       .count = {[2] = 7}};
	h[2] = (struct tacho_box_hist){
		.kind = 5, .thread = 2, .since = 30000900, .total = 3, .count = {1}};
	b.super->hists_used = 3;
	t = bb_thread(&b, 1);
	t->pending_kind = 6;
	t->pending_task = 0x77;
	t->pending_ticks = 30000600;
	bb_thread(&b, 2);
	r = open_bytes(b.data, b.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000300));
	expect(r, &e, TACHO_EV_POLL_HIST, 1, bb_ns(30000300));
	assert_int_equal(e->word[2], bb_ns(30000100));
	assert_int_equal(e->word[3], 100);
	expect(r, &e, TACHO_EV_POLL_HIST, 1, bb_ns(30000600));
	assert_int_equal(e->arg, 4);
	assert_int_equal(e->words, 6);
	assert_int_equal(e->word[0], 6 | 8ull << 16);
	assert_int_equal(e->word[2], bb_ns(30000060));
	assert_int_equal(e->word[3], 300);
	assert_int_equal(e->word[4], 3ull << 48 | 5);
	expect(r, &e, TACHO_EV_POLL_BEGIN, 1, bb_ns(30000600));
	assert_int_equal(e->arg, 6);
	assert_int_equal(e->word[0], 0x77);
	/* A thread that has no chunk at all. */
	expect(r, &e, TACHO_EV_RESUME, 2, bb_ns(30000900));
	expect(r, &e, TACHO_EV_POLL_HIST, 2, bb_ns(30000900));
	assert_int_equal(tacho_read_next(r, &e), 0);
	tacho_read_close(r);

	/* The begin was recorded already, and the process died before it said so. */
	bb_record1(c, 30000600, TACHO_REC_POLL_BEGIN, 6, 0x77);
	r = open_bytes(b.data, b.size, NULL);
	assert_int_equal(count_type(r, TACHO_EV_POLL_BEGIN), 1);
	tacho_read_close(r);
	bb_free(&b);
}

static void what_is_under_way_is_told_last(void **state)
{
	struct tacho_box_underway *u;
	const struct tacho_event *e;
	struct tacho_reader *r;
	struct tacho_chunk *c;
	struct tacho_box_thread *t;
	struct bb b;

	(void)state;
	bb_init(&b);
	c = bb_chunk(&b, 1, 0, 30000000);
	bb_record1(c, 30000300, TACHO_REC_LOCK_WAIT, 5, 0xabc0);
	t = bb_thread(&b, 1);
	t->pending_kind = 6;
	t->pending_ticks = 30000330;
	bb_thread(&b, 2);
	u = bb_region(&b, TACHO_REGION_UNDERWAY);
	u[0] = (struct tacho_box_underway){.call_since = 30000360,
					   .call_at = 0x4711,
					   .call_on = 9,
					   .call = 3,
					   .wait_owner = 4712,
					   .wait_since = 30000300,
					   .wait_lock = 0xabc0};
	/* Nothing is: the call has returned, and nobody knows who has the lock. */
	u[1] = (struct tacho_box_underway){.call = 3, .wait_since = 30000300, .wait_lock = 0xabc0};
	r = open_bytes(b.data, b.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000300));
	expect(r, &e, TACHO_EV_LOCK_WAIT, 1, bb_ns(30000300));
	expect(r, &e, TACHO_EV_POLL_BEGIN, 1, bb_ns(30000360));
	expect(r, &e, TACHO_EV_LOCK_OWNER, 1, bb_ns(30000360));
	assert_int_equal(TACHO_GET(e, LOCK_OWNER, owner), 4712);
	assert_int_equal(TACHO_GET(e, LOCK_OWNER, lock), 0xabc0);
	expect(r, &e, TACHO_EV_CALL_OPEN, 1, bb_ns(30000360));
	assert_int_equal(TACHO_GET(e, CALL_OPEN, call), 3);
	assert_int_equal(TACHO_GET(e, CALL_OPEN, since_ns), bb_ns(30000360));
	assert_int_equal(TACHO_GET(e, CALL_OPEN, on), 9);
	assert_int_equal(e->words, 4);
	assert_int_equal(e->word[3], 0x4711);
	assert_int_equal(tacho_read_next(r, &e), 0);
	tacho_read_close(r);

	/* A call of which nobody knows since when, and a wait for what nobody has. */
	u[0].call_since = TACHO_UNDERWAY_UNTIMED;
	u[0].wait_owner = TACHO_UNDERWAY_SIGNAL;
	t->pending_kind = 0;
	r = open_bytes(b.data, b.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000300));
	expect(r, &e, TACHO_EV_LOCK_WAIT, 1, bb_ns(30000300));
	expect(r, &e, TACHO_EV_CALL_OPEN, 1, bb_ns(30000300));
	assert_int_equal(TACHO_GET(e, CALL_OPEN, since_ns), 0);
	assert_int_equal(e->word[3], 0x4711);
	expect(r, &e, TACHO_EV_LOCK_OWNER, 1, bb_ns(30000300));
	assert_int_equal(TACHO_GET(e, LOCK_OWNER, owner), 0);
	assert_int_equal(TACHO_GET(e, LOCK_OWNER, signal), 1);
	assert_int_equal(tacho_read_next(r, &e), 0);
	tacho_read_close(r);

	/* A box of before has no such region, and a thread that ended is in nothing. */
	b.super->region_count = TACHO_REGION_UNDERWAY;
	r = open_bytes(b.data, b.size, NULL);
	assert_int_equal(count_type(r, TACHO_EV_CALL_OPEN), 0);
	tacho_read_close(r);
	b.super->region_count = TACHO_REGION_COUNT;
	t->state = TACHO_THREAD_ENDED;
	r = open_bytes(b.data, b.size, NULL);
	assert_int_equal(count_type(r, TACHO_EV_LOCK_OWNER), 0);
	tacho_read_close(r);
	bb_free(&b);
}

static void what_is_no_box_is_refused_with_a_sentence(void **state)
{
	char message[256];
	struct tacho_reader *r;
	struct bb b;

	(void)state;
	bb_init(&b);
	bb_record(bb_chunk(&b, 2, 0, 30000000), 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
	b.super->version = TACHO_BOX_VERSION + 1;
	assert_int_equal(try_bytes(&r, b.data, b.size, message), -ENOTSUP);
	assert_non_null(strstr(message, "newer"));
	b.super->version = 1;
	b.super->state = TACHO_STATE_OFF;
	strcpy(b.super->reason, "no room on /dev/shm");
	assert_int_equal(try_bytes(&r, b.data, b.size, message), -ENODATA);
	assert_non_null(strstr(message, "no room on /dev/shm"));
	assert_int_equal(try_bytes(&r, b.data, TACHO_BOX_SUPER_SIZE, message), -ENODATA);
	b.super->state = TACHO_STATE_NEVER;
	assert_int_equal(try_bytes(&r, b.data, b.size, message), -EBADMSG);
	b.super->state = TACHO_STATE_RECORDING;
	b.super->super_size = 77;
	assert_int_equal(try_bytes(&r, b.data, b.size, message), -EBADMSG);
	assert_int_equal(try_bytes(&r, b.data, 8, message), -EBADMSG);
	assert_int_equal(try_bytes(&r, b.data, 100, message), -EBADMSG);
	assert_int_equal(try_bytes(&r, b.data, 0, message), -EBADMSG);
	assert_int_equal(try_bytes(&r, "garbage garbage garbage garbage garbage", 39, message),
			 -EBADMSG);
	assert_non_null(strstr(message, "neither"));
	bb_free(&b);
}

static void lying_regions_are_problems(void **state)
{
	struct tacho_reader *r;
	struct bb b;

	(void)state;
	for (int which = 0; which < TACHO_REGION_COUNT; which++) {
		for (int lie = 0; lie < 5; lie++) {
			struct tacho_box_region *g;
			int told;

			bb_init(&b);
			define_all(&b);
			bb_thread(&b, 1);
			b.super->hists_used = 2;
			bb_record(bb_chunk(&b, 2, 0, 30000000), 30000003, TACHO_REC_PAUSE, 1, NULL,
				  0);
			g = &b.super->regions[which];
			if (lie == 0)
				g->offset = UINT64_MAX - 7;
			else if (lie == 1)
				g->offset = b.size - 8;
			else if (lie == 2)
				g->entry_size = 0;
			else if (lie == 3)
				g->entry_size = UINT32_MAX;
			else
				g->count = UINT32_MAX, g->size = UINT64_MAX;
			b.super->slots_used = b.super->threads_used = b.super->hists_used =
				b.super->next_def = lie == 4 ? UINT32_MAX : 4;
			r = open_bytes(b.data, b.size, NULL);
			count_events(r);
			/* Who reads has no use for buckets; what is controlled may grow. */
			told = lie == 0 || lie == 2 || (lie == 3 && which != TACHO_REGION_CONTROL);
			assert_int_equal(problems_named(r, "bad-region"),
					 told && which != TACHO_REGION_DEF_BUCKETS);
			tacho_read_close(r);
			bb_free(&b);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(definitions_are_found_by_id),
		cmocka_unit_test(fields_and_texts_are_taken_from_payloads),
		cmocka_unit_test(facts_of_the_process_are_there),
		cmocka_unit_test(triggers_and_crashes_are_listed),
		cmocka_unit_test(the_begin_of_an_interval_becomes_ns),
		cmocka_unit_test(open_counts_and_pending_polls_become_events),
		cmocka_unit_test(what_is_under_way_is_told_last),
		cmocka_unit_test(what_is_no_box_is_refused_with_a_sentence),
		cmocka_unit_test(lying_regions_are_problems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
