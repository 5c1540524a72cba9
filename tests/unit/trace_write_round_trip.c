/* A trace that is opened and written again says the same. */
#include <stdio.h>

#include "trace_build.h"

static void put_name(uint8_t *p, uint64_t value, uint32_t line, const char *name, const char *file,
		     uint8_t detail, const char *unit, uint16_t *size)
{
	uint16_t n = (uint16_t)strlen(name), f = (uint16_t)strlen(file);
	uint8_t u = (uint8_t)strlen(unit);

	memcpy(p, &value, 8);
	memcpy(p + 8, &line, 4);
	memcpy(p + 12, &n, 2);
	memcpy(p + 14, &f, 2);
	p[16] = detail;
	p[17] = u;
	memcpy(p + 18, name, n);
	memcpy(p + 18 + n, file, f);
	memcpy(p + 18 + n + f, unit, u);
	*size = (uint16_t)(18 + n + f + u);
}

static void add_definitions(struct build *b)
{
	uint8_t p[TACHO_DEF_PAYLOAD_MAX];
	const uint64_t stack[3] = {0x401000, 0x402000, UINT64_MAX};
	const uint64_t module[4] = {0x400000, 0x500000, 0x1000, BUILD_BEGIN_NS + 5};
	uint16_t size;

	put_name(p, 0x401234, 77, "handle_request", "server.c", 0, "", &size);
	build_definition(b, 2, TACHO_DEF_KIND, 0, p, size);
	put_name(p, 3, 0, "main loop", "", TACHO_LEVEL_API, "", &size);
	build_definition(b, 5, TACHO_DEF_LOOP, TACHO_DEF_CUT, p, size);
	put_name(p, 0, 0, "queue", "", TACHO_VALUE_F64, "ms", &size);
	build_definition(b, 6, TACHO_DEF_GAUGE, 0, p, size);
	build_definition(b, 9, TACHO_DEF_STACK, 0, stack, sizeof(stack));
	memcpy(p, "\x05\x00\x02\x00order\x01\x02id\x85\x04note", 4 + 5 + 4 + 6);
	build_definition(b, 11, TACHO_DEF_SCHEMA, 0, p, 19);
	memcpy(p, module, sizeof(module));
	memcpy(p + 32, "\x04\x00\x09\x00\xde\xad\xbe\xef/lib/x.so", 17);
	build_definition(b, 200000, TACHO_DEF_MODULE, 0, p, 49);
	build_block(b, TACHO_BLOCK_DEFINITIONS);
}

static void add_incidents(struct build *b)
{
	struct tacho_box_trigger trigger = {.number = 3,
					    .tid = 1001,
					    .size = 9,
					    .flags = (TACHO_SENTINEL_LAG + 1) << 8,
					    .value = 120,
					    .ticks = BUILD_BEGIN_NS + 70,
					    .reason = "slow poll"};
	struct tacho_trace_crash crash = {
		{.state = TACHO_CRASH_STACK_DONE,
		 .tid = 1002,
		 .signal = 11,
		 .code = 1,
		 .address = 0xdead,
		 .thread_name = "loop-2",
		 .ticks = BUILD_BEGIN_NS + 80,
		 .regs = 23,
		 .frames = 2,
		 .arch = 62,
		 .flags = TACHO_CRASH_UNWIND_FAILED | TACHO_CRASH_SURVIVED | 1u << 8,
		 .reg = {1, 2, 3},
		 .frame = {0x401111, 0x402222}},
		.said = "Assertion failed."};
	struct tacho_box_thread threads[2] = {
		{.state = TACHO_THREAD_LIVE,
		 .number = 1,
		 .tid = 1001,
		 .name = "loop-1",
		 .chunk = TACHO_NO_CHUNK,
		 .start_ticks = BUILD_BEGIN_NS + 1},
		{.state = TACHO_THREAD_ENDED,
		 .number = 2,
		 .tid = 1002,
		 .name = "loop-2",
		 .chunk = TACHO_NO_CHUNK,
		 .start_ticks = BUILD_BEGIN_NS + 2},
	};
	uint64_t losses[TACHO_LOSS_COUNT + 2] = {
		[TACHO_LOSS_NO_CHUNK] = 12, [TACHO_LOSS_TEXT_CUT] = 1, [TACHO_LOSS_COUNT + 1] = 5};
	struct tacho_trace_absent absent = {.pid = 77,
					    .parent_pid = 76,
					    .reason = TACHO_ABSENT_REFUSED,
					    .error = 13,
					    .seen_ns = BUILD_BEGIN_NS + 9,
					    .comm = "worker",
					    .exe = "/bin/worker",
					    .said = "no room."};
	struct tacho_trace_gap gaps[2] = {
		{BUILD_BEGIN_NS + 90, BUILD_BEGIN_NS + 95, 4, TACHO_GAP_UNWRITABLE, 30},
		{BUILD_BEGIN_NS + 96, BUILD_BEGIN_NS + 97, 0, 1234, 0}};
	struct tacho_box_source sources[3] = {{.state = TACHO_SOURCE_ON},
					      {.state = TACHO_SOURCE_REFUSED, .error = 13}};

	build_array(b, TACHO_BLOCK_TRIGGERS, &trigger, sizeof(trigger), 1);
	build_array(b, TACHO_BLOCK_CRASHES, &crash, sizeof(crash), 1);
	build_array(b, TACHO_BLOCK_THREADS, threads, sizeof(threads[0]), 2);
	build_array(b, TACHO_BLOCK_LOSSES, losses, sizeof(losses[0]), TACHO_LOSS_COUNT + 2);
	build_array(b, TACHO_BLOCK_GAPS, gaps, sizeof(gaps[0]), 2);
	build_array(b, TACHO_BLOCK_ABSENT, &absent, sizeof(absent), 1);
	build_array(b, TACHO_BLOCK_SOURCES, sources, sizeof(sources[0]), 3);
}

struct pair {
	void *data[2];
	size_t size[2];
	struct tacho_reader *reader[2]; /* the original, and what was written of it */
	struct tacho__trace_result result;
};

/* Opens data[0], writes it and opens that. */
static void write_again(struct pair *p)
{
	const struct tacho__trace_options options = {.taken_by = TACHO_TAKEN_DUMP};
	char message[300];
	int fd = memfd_create("again", MFD_CLOEXEC);

	p->reader[0] = open_bytes(p->data[0], p->size[0]);
	if (tacho__trace_write(p->reader[0], fd, &options, &p->result, message, sizeof(message)))
		fail_msg("%s", message);
	p->size[1] = p->result.bytes;
	p->data[1] = malloc(p->size[1]);
	assert_int_equal(pread(fd, p->data[1], p->size[1], 0), (ssize_t)p->size[1]);
	close(fd);
	p->reader[1] = open_bytes(p->data[1], p->size[1]);
	assert_int_equal(tacho_read_problem_count(p->reader[0]), 0);
	assert_int_equal(tacho_read_problem_count(p->reader[1]), 0);
}

static void close_pair(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		tacho_read_close(p->reader[i]);
		free(p->data[i]);
	}
}

static uint64_t assert_same_events(struct pair *p)
{
	const struct tacho_event *a, *b;
	uint64_t count = 0;
	int more;

	do {
		more = tacho_read_next(p->reader[0], &a);
		assert_int_equal(tacho_read_next(p->reader[1], &b), more);
		assert_true(more >= 0);
		if (more == 0)
			break;
		assert_int_equal(a->ns, b->ns);
		assert_int_equal(a->thread, b->thread);
		assert_int_equal(a->stream, b->stream);
		assert_int_equal(a->type, b->type);
		assert_int_equal(a->arg, b->arg);
		assert_int_equal(a->words, b->words);
		if (a->words)
			assert_memory_equal(a->word, b->word, a->words * sizeof(a->word[0]));
		if (a->type == TACHO_EV_RESUME)
			assert_memory_equal(a->resume, b->resume,
					    offsetof(struct tacho_resume_info, open));
		else
			count++;
	} while (more);
	assert_int_equal(tacho_read_problem_count(p->reader[1]), 0);
	return count;
}

static void events_of_a_written_trace_are_the_same(void **state)
{
	struct pair p = {0};
	uint64_t first, last;
	struct build b;

	(void)state;
	build_begin(&b);
	build_process(&b);
	build_random_events(&b, 1234, 3, 4, 700);
	p.data[0] = build_end(&b, &p.size[0]);
	write_again(&p);
	assert_int_equal(assert_same_events(&p), 3 * 4 * 700);
	assert_int_equal(p.result.events, 3 * 4 * 700);
	assert_int_equal(tacho_read_window(p.reader[0], &first, &last), 0);
	assert_true(p.result.first_ns == first && p.result.last_ns == last);
	close_pair(&p);
}

/* A stretch of one thread, and the block that it comes into when the trace is written again. */
static const struct {
	uint32_t count, words; /* records, and of each */
	uint32_t missing, drops;
	const char *name;
	uint32_t block, sequence;
} shared[] = {
	{20000, 1, 0, 0, "loop", 0, 7},
	{10000, 1, 0, 0, "loop", 0, 7},
	/* More than a block is to hold. */
	{5000, 1, 0, 0, "loop", 1, 7},
	{300, 120, 0, 0, "loop", 2, 7},
	/* What its head says would be lost. */
	{100, 1, 0, 5, "loop", 3, 11},
	{100, 1, 9, 0, "loop", 4, 12},
	{100, 1, 0, 0, "pool", 5, 13},
	{100, 1, 0, 0, "pool", 5, 13},
};
#define SHARED (sizeof(shared) / sizeof(shared[0]))

static void build_shared(struct build *b)
{
	uint64_t words[TACHO_RECORD_MAX_WORDS] = {0}, ns = BUILD_BEGIN_NS, prior = 1000;
	struct tacho__records r = {0};

	for (uint32_t i = 0; i < SHARED; i++) {
		unsigned type = shared[i].words > 1 ? TACHO_REC_LOG : TACHO_REC_WAKE;

		prior += shared[i].missing;
		words[0] = shared[i].words;
		assert_int_equal(tacho__records_reserve(&r, shared[i].count,
							shared[i].count * shared[i].words),
				 0);
		r.head = (struct tacho_trace_events){.size = sizeof(r.head),
						     .thread = 1,
						     .sequence = 7 + i,
						     .drops = shared[i].drops,
						     .prior_records = prior};
		strcpy(r.head.name, shared[i].name);
		for (uint32_t k = 0; k < shared[i].count; k++)
			tacho__records_put(&r, ns += 10, tacho_record_head(type, 0), words,
					   shared[i].words);
		prior += shared[i].count;
		build_events(b, &r);
	}
	tacho__records_free(&r);
}

static void stretches_that_follow_share_a_block(void **state)
{
	struct tacho__records r = {0};
	uint32_t block = UINT32_MAX, count = 0;
	struct pair p = {0};
	struct build b;

	(void)state;
	build_begin(&b);
	build_process(&b);
	build_shared(&b);
	p.data[0] = build_end(&b, &p.size[0]);
	write_again(&p);
	assert_int_equal(tacho__stretch_count(p.reader[0]), SHARED);
	assert_int_equal(assert_same_events(&p), 20000 + 10000 + 5000 + 300 + 4 * 100);
	for (uint32_t i = 0; i < SHARED; i++) {
		if (shared[i].block != block) {
			block = shared[i].block;
			count = 0;
			assert_int_equal(tacho__stretch_load(p.reader[1], block, &r), 0);
			assert_int_equal(r.head.sequence, shared[i].sequence);
			assert_int_equal(r.head.drops, shared[i].drops);
		}
		count += shared[i].count;
		if (i + 1 == SHARED || shared[i + 1].block != block)
			assert_int_equal(r.head.count, count);
	}
	assert_int_equal(tacho__stretch_count(p.reader[1]), block + 1);
	tacho__records_free(&r);
	close_pair(&p);
}

static void assert_same_definition(const struct tacho_definition *a,
				   const struct tacho_definition *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->def_class, b->def_class);
	assert_int_equal(a->cut, b->cut);
	assert_int_equal(a->level, b->level);
	assert_int_equal(a->value_type, b->value_type);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->file, b->file);
	assert_string_equal(a->unit, b->unit);
	assert_int_equal(a->line, b->line);
	assert_int_equal(a->value, b->value);
	assert_int_equal(a->count, b->count);
	for (uint32_t i = 0; a->def_class == TACHO_DEF_SCHEMA && i < a->count; i++) {
		assert_string_equal(a->fields[i].name, b->fields[i].name);
		assert_int_equal(a->fields[i].type, b->fields[i].type);
		assert_int_equal(a->fields[i].optional, b->fields[i].optional);
	}
	if (a->def_class == TACHO_DEF_STACK)
		assert_memory_equal(a->frames, b->frames, a->count * 8);
	assert_int_equal(a->start, b->start);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->offset, b->offset);
	assert_int_equal(a->since_ns, b->since_ns);
	assert_int_equal(a->build_id_size, b->build_id_size);
	if (a->build_id_size)
		assert_memory_equal(a->build_id, b->build_id, a->build_id_size);
}

static void definitions_of_a_written_trace_are_the_same(void **state)
{
	static const uint32_t ids[] = {2, 5, 6, 9, 11, 200000};
	struct pair p = {0};
	struct build b;

	(void)state;
	build_begin(&b);
	build_process(&b);
	add_definitions(&b);
	p.data[0] = build_end(&b, &p.size[0]);
	write_again(&p);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		const struct tacho_definition *d[2];

		for (int k = 0; k < 2; k++) {
			d[k] = tacho_read_definition(p.reader[k], 0, ids[i]);
			assert_non_null(d[k]);
		}
		assert_same_definition(d[0], d[1]);
	}
	assert_null(tacho_read_definition(p.reader[1], 0, 3));
	assert_string_equal(tacho_read_definition(p.reader[1], 0, 11)->fields[1].name, "note");
	close_pair(&p);
}

static void a_written_trace_tells_of_its_process(void **state)
{
	struct pair p = {0};
	const struct tacho_process *a, *b;
	struct build build;

	(void)state;
	build_begin(&build);
	build_process(&build);
	add_incidents(&build);
	build_random_events(&build, 99, 2, 1, 50);
	p.data[0] = build_end(&build, &p.size[0]);
	write_again(&p);
	a = tacho_read_process(p.reader[0], 0);
	b = tacho_read_process(p.reader[1], 0);
	assert_int_equal(b->pid, 4242);
	assert_int_equal(b->uid, 1000);
	assert_int_equal(b->start_time, a->start_time);
	assert_memory_equal(b->boot_id, a->boot_id, 16);
	assert_string_equal(b->exe, "/usr/bin/serve");
	assert_string_equal(b->host, "db-7");
	assert_string_equal(b->service, "orders");
	assert_int_equal(b->clock, TACHO_CLOCK_TSC);
	assert_int_equal(b->max_bytes, 32 << 20);
	assert_int_equal(b->poll_threshold_ns, 20000);
	assert_int_equal(b->state, TACHO_STATE_RECORDING);
	assert_int_equal(b->alive, TACHO_ALIVE_NO);
	assert_int_equal(b->taken_by, TACHO_TAKEN_DUMP);
	assert_int_equal(b->taken_mono_ns, a->taken_mono_ns);
	assert_int_equal(b->created_mono_ns, a->created_mono_ns);
	assert_int_equal(tacho_read_real_ns(p.reader[1], 0, BUILD_BEGIN_NS + 500),
			 1700000000000000500u);
	close_pair(&p);
}

static void incidents_of_a_written_trace_are_the_same(void **state)
{
	struct pair p = {0};
	struct build b;
	struct tacho_loss_info loss = {.size = sizeof(loss)};
	struct tacho_source_info source = {.size = sizeof(source)};

	(void)state;
	build_begin(&b);
	build_process(&b);
	add_incidents(&b);
	build_random_events(&b, 7, 2, 1, 50);
	p.data[0] = build_end(&b, &p.size[0]);
	write_again(&p);
	assert_int_equal(tacho_read_trigger_count(p.reader[1]), 1);
	assert_string_equal(tacho_read_trigger(p.reader[1], 0)->reason, "slow poll");
	assert_int_equal(tacho_read_trigger(p.reader[1], 0)->ns, BUILD_BEGIN_NS + 70);
	assert_string_equal(tacho_read_trigger(p.reader[1], 0)->sentinel, "lag");
	assert_int_equal(tacho_read_trigger(p.reader[1], 0)->value, 120);
	assert_int_equal(tacho_read_gap_count(p.reader[1]), 2);
	assert_string_equal(tacho_read_gap(p.reader[1], 0)->reason, "unwritable");
	assert_int_equal(tacho_read_gap(p.reader[1], 0)->from_ns, BUILD_BEGIN_NS + 90);
	assert_int_equal(tacho_read_gap(p.reader[1], 0)->records, 4);
	assert_int_equal(tacho_read_gap(p.reader[1], 0)->error, 30);
	assert_string_equal(tacho_read_gap(p.reader[1], 1)->reason, "unknown");
	assert_int_equal(tacho_read_absent_count(p.reader[1]), 1);
	assert_int_equal(tacho_read_absent(p.reader[1], 0)->pid, 77);
	assert_int_equal(tacho_read_absent(p.reader[1], 0)->parent_pid, 76);
	assert_int_equal(tacho_read_absent(p.reader[1], 0)->error, 13);
	assert_int_equal(tacho_read_absent(p.reader[1], 0)->seen_ns, BUILD_BEGIN_NS + 9);
	assert_string_equal(tacho_read_absent(p.reader[1], 0)->reason, "refused");
	assert_string_equal(tacho_read_absent(p.reader[1], 0)->comm, "worker");
	assert_string_equal(tacho_read_absent(p.reader[1], 0)->exe, "/bin/worker");
	assert_string_equal(tacho_read_absent(p.reader[1], 0)->said, "no room.");
	assert_int_equal(tacho_read_crash_count(p.reader[1]), 1);
	assert_int_equal(tacho_read_crash(p.reader[1], 0)->address, 0xdead);
	assert_int_equal(tacho_read_crash(p.reader[1], 0)->ns, BUILD_BEGIN_NS + 80);
	assert_int_equal(tacho_read_crash(p.reader[1], 0)->regs[2], 3);
	assert_int_equal(tacho_read_crash(p.reader[1], 0)->frames[1], 0x402222);
	assert_int_equal(tacho_read_crash(p.reader[1], 0)->unwind_failed, 1);
	assert_int_equal(tacho_read_crash(p.reader[1], 0)->survived, 1);
	assert_int_equal(tacho_read_crash(p.reader[1], 0)->interrupted, 1);
	assert_string_equal(tacho_read_crash(p.reader[1], 0)->said, "Assertion failed.");
	assert_int_equal(tacho_read_thread_count(p.reader[1]), 2);
	assert_string_equal(tacho_read_thread_by_number(p.reader[1], 0, 2)->name, "loop-2");
	assert_int_equal(tacho_read_thread_by_number(p.reader[1], 0, 1)->live, 1);
	assert_int_equal(tacho_read_thread_by_number(p.reader[1], 0, 2)->live, 0);
	assert_int_equal(tacho_read_thread_by_number(p.reader[1], 0, 1)->start_ns,
			 BUILD_BEGIN_NS + 1);
	assert_true(tacho_read_loss(p.reader[1], 0, TACHO_LOSS_NO_CHUNK, &loss) >= 0);
	assert_int_equal(loss.count, 12);
	assert_true(tacho_read_loss(p.reader[1], 0, TACHO_LOSS_COUNT + 1, &loss) >= 0);
	assert_int_equal(loss.count, 5);
	assert_true(tacho_read_source(p.reader[1], 0, 1, &source) >= 0);
	assert_int_equal(source.state, TACHO_SOURCE_REFUSED);
	assert_int_equal(source.error, 13);
	close_pair(&p);
}

/* Writes what `reader` holds with these options and opens that. */
static struct tacho_reader *written(struct tacho_reader *reader,
				    const struct tacho__trace_options *options, void **data)
{
	struct tacho__trace_result result;
	char message[300];
	int fd = memfd_create("written", MFD_CLOEXEC);

	if (tacho__trace_write(reader, fd, options, &result, message, sizeof(message)))
		fail_msg("%s", message);
	*data = malloc(result.bytes);
	assert_int_equal(pread(fd, *data, result.bytes, 0), (ssize_t)result.bytes);
	close(fd);
	return open_bytes(*data, result.bytes);
}

static void a_trace_says_why_it_was_written(void **state)
{
	const struct tacho_trace_absent absent = {
		.pid = 9, .reason = TACHO_ABSENT_STATIC, .seen_ns = BUILD_BEGIN_NS + 10};
	const struct tacho_trace_gap gaps[] = {
		{BUILD_BEGIN_NS + 99, BUILD_BEGIN_NS + 100, 8, TACHO_GAP_KERNEL, 0},
		{BUILD_BEGIN_NS + 1, BUILD_BEGIN_NS + 50, 2, TACHO_GAP_NO_AGENT, 0}};
	struct tacho__trace_options options = {.taken_by = TACHO_TAKEN_SEGMENT,
					       .why = "stall>2s: it did not come back",
					       .why_mono_ns = 77,
					       .segment = 12,
					       .agent_cpu_ns = 345,
					       .gaps = gaps,
					       .gap_count = 2,
					       .absent = &absent,
					       .absent_count = 1};
	struct tacho_reader *from, *first, *again;
	void *data, *first_data, *again_data;
	const struct tacho_process *p;
	struct build b;
	size_t size;

	(void)state;
	build_begin(&b);
	build_process(&b);
	build_meta_u64(&b, TACHO_META_RECORDING, 99);
	build_block(&b, TACHO_BLOCK_META);
	add_incidents(&b);
	data = build_end(&b, &size);
	from = open_bytes(data, size);
	first = written(from, &options, &first_data);
	/* Written once more, by somebody who has nothing to add. */
	options = (struct tacho__trace_options){0};
	again = written(first, &options, &again_data);
	p = tacho_read_process(again, 0);
	assert_string_equal(p->why, "stall>2s: it did not come back");
	assert_int_equal(p->why_mono_ns, 77);
	assert_int_equal(p->segment, 12);
	assert_int_equal(p->agent_cpu_ns, 345);
	assert_int_equal(p->recording, 99);
	assert_int_equal(p->taken_by, TACHO_TAKEN_SEGMENT);
	assert_int_equal(tacho_read_gap_count(again), 4);
	assert_int_equal(tacho_read_absent_count(again), 2);
	assert_string_equal(tacho_read_absent(again, 1)->reason, "static");
	assert_string_equal(tacho_read_gap(again, 0)->reason, "no-agent");
	assert_string_equal(tacho_read_gap(again, 3)->reason, "kernel");
	tacho_read_close(from);
	tacho_read_close(first);
	tacho_read_close(again);
	free(data);
	free(first_data);
	free(again_data);
}

/* Damages the payload of the EVENTS block number `which`. */
static void damage_events(uint8_t *data, size_t size, uint32_t which)
{
	uint64_t at = sizeof(struct tacho_trace_file);

	while (at + sizeof(struct tacho_trace_block) < size) {
		struct tacho_trace_block block;

		memcpy(&block, data + at, sizeof(block));
		if (block.type == TACHO_BLOCK_EVENTS && which-- == 0) {
			data[at + sizeof(block) + block.stored_size / 2] ^= 1;
			return;
		}
		at += sizeof(block) + ((block.stored_size + 7u) & ~7u);
	}
	fail_msg("there is no such block");
}

/* What could not be read while a trace was written is known only behind the records: the file
   says so in its closing META block. */
static void stretches_that_could_not_be_read_are_counted_at_the_end(void **state)
{
	const struct tacho__trace_options options = {.taken_by = TACHO_TAKEN_DUMP};

	(void)state;
	for (uint32_t damaged = 0; damaged < 3; damaged++) {
		struct tacho_reader *from, *to;
		void *data, *written_data;
		struct build b;
		size_t size;
		uint32_t problems = 0;

		build_begin(&b);
		build_process(&b);
		build_random_events(&b, 5, 1, 4, 100);
		data = build_end(&b, &size);
		for (uint32_t i = 0; i < damaged; i++)
			damage_events(data, size, 2 * i + 1);
		from = open_bytes(data, size);
		to = written(from, &options, &written_data);
		for (uint32_t i = 0; i < tacho_read_problem_count(to); i++) {
			const struct tacho_problem *p = tacho_read_problem(to, i);
			char count[32];

			snprintf(count, sizeof(count), "%u chunks", damaged);
			problems += !strcmp(p->name, "overwritten-while-read") &&
				    strstr(p->text, count) == p->text;
		}
		assert_int_equal(problems, damaged != 0);
		assert_int_equal(tacho_read_problem_count(to), damaged != 0);
		tacho_read_close(from);
		tacho_read_close(to);
		free(data);
		free(written_data);
	}
}

/* Blocks are listed in the index as they stand in the file, and the end finds it. */
static void the_index_lists_every_block(void **state)
{
	struct pair p = {0};
	struct build b;
	struct tacho_trace_end end;
	struct tacho_trace_block block;
	uint64_t at = sizeof(struct tacho_trace_file);
	uint32_t blocks = 0;

	(void)state;
	build_begin(&b);
	build_process(&b);
	build_random_events(&b, 5, 2, 3, 100);
	p.data[0] = build_end(&b, &p.size[0]);
	write_again(&p);
	memcpy(&end, (char *)p.data[1] + p.size[1] - sizeof(end), sizeof(end));
	while (at + sizeof(end) < p.size[1]) {
		memcpy(&block, (char *)p.data[1] + at, sizeof(block));
		assert_int_equal(block.magic, TACHO_BLOCK_MAGIC);
		assert_int_equal(block.number, blocks);
		if (block.type == TACHO_BLOCK_INDEX)
			assert_int_equal(end.index_offset, at);
		at += sizeof(block) + ((block.stored_size + 7u) & ~7u);
		blocks++;
	}
	assert_int_equal(at + sizeof(end), p.size[1]);
	assert_int_equal(end.blocks, blocks);
	assert_int_equal(p.result.blocks, blocks);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_a_written_trace_are_the_same),
		cmocka_unit_test(stretches_that_follow_share_a_block),
		cmocka_unit_test(definitions_of_a_written_trace_are_the_same),
		cmocka_unit_test(a_written_trace_tells_of_its_process),
		cmocka_unit_test(incidents_of_a_written_trace_are_the_same),
		cmocka_unit_test(a_trace_says_why_it_was_written),
		cmocka_unit_test(stretches_that_could_not_be_read_are_counted_at_the_end),
		cmocka_unit_test(the_index_lists_every_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
