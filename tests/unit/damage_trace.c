/*
 * Bit flips and cuts. A process records and crashes; of its crash file (CHUNK blocks, no
 * index) and of the trace that is made from its box (EVENTS, zstd, index), 1,000 copies with
 * one bit flipped and 1,000 that end early are read. Whatever was not hit must come out
 * exactly as it was, and the reader must name the place of the damage.
 *
 * TACHO_TEST_SEED chooses the damage; a soak takes another seed each time, and more of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "read/reader.h"
#include "damage_record.h"

#define BLOCKS_MAX 256
#define IDS_MAX 256

/* One block of the undamaged file, and what must come out while it is whole. */
struct block {
	uint64_t offset, size;
	uint16_t type;
	uint32_t thread, sequence;
	uint16_t stream;
	struct tacho__records records; /* of CHUNK and EVENTS */
	uint32_t ids[IDS_MAX];	       /* of DEFINITIONS */
	uint32_t id_count;
	int whole; /* in the copy at hand */
};

struct file {
	const char *name;
	uint8_t *data, *copy;
	uint64_t size;
	struct block blocks[BLOCKS_MAX]; /* in the order of the file */
	uint32_t block_count;
	uint64_t end;			   /* offset of the end mark */
	struct block *streams[BLOCKS_MAX]; /* those with records, by thread, stream, sequence */
	uint32_t stream_count;
	struct tacho_reader *reader; /* of the undamaged file */
};

static struct file crash_file = {.name = "crash file"}, dumped = {.name = "dumped file"};
static uint64_t seed;

static void read_file(struct file *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 1000);
	f->size = (uint64_t)st.st_size;
	f->data = malloc(f->size);
	f->copy = malloc(f->size);
	assert_true(f->data && f->copy);
	assert_int_equal(read(fd, f->data, f->size), st.st_size);
	close(fd);
}

/* ------------------------------------------------------ the undamaged file */

static void find_blocks(struct file *f)
{
	struct tacho_trace_block head;
	uint64_t at = sizeof(struct tacho_trace_file);

	while (at + sizeof(struct tacho_trace_end) < f->size) {
		struct block *b = &f->blocks[f->block_count++];

		assert_true(f->block_count < BLOCKS_MAX);
		memcpy(&head, f->data + at, sizeof(head));
		assert_int_equal(head.magic, TACHO_BLOCK_MAGIC);
		b->offset = at;
		b->size = 32 + (((uint64_t)head.stored_size + 7) & ~7ull);
		b->type = head.type;
		at += b->size;
	}
	f->end = at;
	assert_int_equal(at + sizeof(struct tacho_trace_end), f->size);
}

static struct block *block_at(struct file *f, uint64_t offset)
{
	for (uint32_t i = 0; i < f->block_count; i++)
		if (f->blocks[i].offset <= offset &&
		    offset < f->blocks[i].offset + f->blocks[i].size)
			return &f->blocks[i];
	return NULL;
}

static int by_stream(const void *va, const void *vb)
{
	const struct block *a = *(struct block *const *)va, *b = *(struct block *const *)vb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static void learn_records(struct file *f)
{
	uint64_t records = 0;

	for (uint32_t i = 0; i < tacho__stretch_count(f->reader); i++) {
		struct block *b = block_at(f, f->reader->stretches[i].offset);

		assert_true(b && (b->type == TACHO_BLOCK_EVENTS || b->type == TACHO_BLOCK_CHUNK));
		assert_int_equal(tacho__stretch_load(f->reader, i, &b->records), 0);
		b->thread = b->records.head.thread;
		b->stream = b->records.head.stream;
		b->sequence = b->records.head.sequence;
		records += b->records.head.count;
		f->streams[f->stream_count++] = b;
	}
	assert_true(f->stream_count >= 10 && records == RECORDED);
	qsort(f->streams, f->stream_count, sizeof(f->streams[0]), by_stream);
}

static void learn_ids(struct file *f)
{
	for (uint32_t i = 0; i < f->block_count; i++) {
		struct block *b = &f->blocks[i];
		const uint8_t *data;
		uint32_t size;

		if (b->type != TACHO_BLOCK_DEFINITIONS)
			continue;
		assert_int_equal(
			tacho__block_load(f->reader, 0, b->offset, b->size, b->type, &data, &size),
			0);
		for (uint32_t at = 0; at < size;) {
			struct tacho_trace_def def;

			memcpy(&def, data + at, sizeof(def));
			assert_true(b->id_count < IDS_MAX);
			b->ids[b->id_count++] = def.id;
			at += 8 + ((def.size + 7u) & ~7u);
		}
		assert_true(b->id_count > 5);
	}
}

static void learn(struct file *f)
{
	char message[300] = "";

	find_blocks(f);
	if (tacho_read_open_memory(&f->reader, f->data, f->size, NULL, message, sizeof(message)))
		fail_msg("%s", message);
	assert_int_equal(tacho_read_problem_count(f->reader), 0);
	learn_records(f);
	learn_ids(f);
}

/* ------------------------------------------------------------ the damaged */

/* What is being tried, for messages. */
static char trying[160];

#define MUST(condition)                                                                  \
	do {                                                                             \
		if (!(condition))                                                        \
			fail_msg("%s (seed %" PRIu64 "): %s", trying, seed, #condition); \
	} while (0)

static int has_whole(const struct file *f, uint16_t type)
{
	for (uint32_t i = 0; i < f->block_count; i++)
		if (f->blocks[i].type == type && f->blocks[i].whole)
			return 1;
	return 0;
}

/* Where the comparison of a stream stands. */
struct place {
	uint32_t next, end; /* in streams */
	uint32_t record;
};

static struct place *place_of(const struct file *f, struct place *places, uint32_t count,
			      const struct tacho_event *e)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct block *b = f->streams[places[i].end - 1];

		if (b->thread == e->thread && b->stream == e->stream)
			return &places[i];
	}
	return NULL;
}

/* To the next record that must come. */
static void skip_lost(const struct file *f, struct place *p)
{
	while (p->next < p->end && (!f->streams[p->next]->whole ||
				    p->record == f->streams[p->next]->records.head.count)) {
		p->next++;
		p->record = 0;
	}
}

static void check_event(const struct file *f, struct place *p, const struct tacho_event *e)
{
	const struct tacho__records *r;
	uint32_t i, at;

	skip_lost(f, p);
	MUST(p->next < p->end);
	r = &f->streams[p->next]->records;
	i = p->record++;
	at = r->word_at[i];
	MUST(e->ns == r->ns[i]);
	MUST((e->type | e->arg << 8) == r->type_arg[i]);
	MUST(e->words == r->word_at[i + 1] - at);
	MUST(!e->words || !memcmp(e->word, r->words + at, e->words * sizeof(e->word[0])));
}

/* The events are those of the whole blocks, all of them and no other. */
static void check_events(const struct file *f, struct tacho_reader *reader)
{
	struct place places[BLOCKS_MAX];
	const struct tacho_event *e;
	uint32_t count = 0;
	uint64_t last = 0;
	int result;

	for (uint32_t i = 0; i < f->stream_count; i++) {
		if (!i || f->streams[i - 1]->thread != f->streams[i]->thread ||
		    f->streams[i - 1]->stream != f->streams[i]->stream)
			places[count++] = (struct place){.next = i};
		places[count - 1].end = i + 1;
	}
	while ((result = tacho_read_next(reader, &e)) > 0) {
		struct place *p = place_of(f, places, count, e);

		MUST(p != NULL);
		MUST(e->ns >= last);
		last = e->ns;
		if (e->type != TACHO_EV_RESUME)
			check_event(f, p, e);
	}
	MUST(result == 0);
	for (uint32_t i = 0; i < count; i++) {
		skip_lost(f, &places[i]);
		MUST(places[i].next == places[i].end);
	}
}

static void check_definitions(const struct file *f, struct tacho_reader *reader)
{
	for (uint32_t i = 0; i < f->block_count; i++) {
		const struct block *b = &f->blocks[i];

		for (uint32_t k = 0; b->whole && k < b->id_count; k++) {
			const struct tacho_definition *was =
				tacho_read_definition(f->reader, 0, b->ids[k]);
			const struct tacho_definition *is =
				tacho_read_definition(reader, 0, b->ids[k]);

			MUST(is && is->def_class == was->def_class && !strcmp(is->name, was->name));
			MUST(is->value == was->value && is->start == was->start &&
			     is->count == was->count);
		}
	}
}

/* Whether all blocks of the thread are whole: the newest one may be all that has its name. */
static int is_whole(const struct file *f, uint32_t thread)
{
	for (uint32_t i = 0; i < f->stream_count; i++)
		if (f->streams[i]->thread == thread && !f->streams[i]->whole)
			return 0;
	return 1;
}

static void check_threads(const struct file *f, struct tacho_reader *reader)
{
	for (uint32_t i = 0; i < tacho_read_thread_count(f->reader); i++) {
		const struct tacho_thread *was = tacho_read_thread(f->reader, i);
		const struct tacho_thread *is = tacho_read_thread_by_number(reader, 0, was->number);

		MUST(is && is->tid == was->tid && is->start_ns == was->start_ns);
		MUST(!strcmp(is->name, was->name) || !is_whole(f, was->number));
	}
}

static void check_facts(const struct file *f, struct tacho_reader *reader)
{
	struct tacho_source_info source = {.size = sizeof(source)};

	if (has_whole(f, TACHO_BLOCK_THREADS))
		check_threads(f, reader);
	if (has_whole(f, TACHO_BLOCK_META)) {
		const struct tacho_process *was = tacho_read_process(f->reader, 0);
		const struct tacho_process *is = tacho_read_process(reader, 0);

		MUST(is->pid == was->pid && is->created_mono_ns == was->created_mono_ns);
		MUST(!strcmp(is->exe, was->exe) && is->taken_by == was->taken_by);
	}
	if (has_whole(f, TACHO_BLOCK_TRIGGERS)) {
		MUST(tacho_read_trigger_count(reader) == 1);
		MUST(tacho_read_trigger(reader, 0)->ns == tacho_read_trigger(f->reader, 0)->ns);
		MUST(!strcmp(tacho_read_trigger(reader, 0)->reason, "a reason"));
	}
	if (has_whole(f, TACHO_BLOCK_CRASHES)) {
		MUST(tacho_read_crash_count(reader) == 1);
		MUST(tacho_read_crash(reader, 0)->signal == SIGABRT);
	}
	if (has_whole(f, TACHO_BLOCK_SOURCES))
		MUST(!tacho_read_source(reader, 0, 0, &source) && source.state == TACHO_SOURCE_ON);
}

/* Some problem with a sentence that lies at `at`. */
static int is_named(struct tacho_reader *reader, uint64_t at)
{
	for (uint32_t i = 0; i < tacho_read_problem_count(reader); i++) {
		const struct tacho_problem *p = tacho_read_problem(reader, i);

		MUST(p->name[0] && strlen(p->text) > 10);
		if (p->offset <= at && at < p->offset + p->size)
			return 1;
	}
	return 0;
}

static void check_whole_parts(const struct file *f, struct tacho_reader *reader)
{
	check_events(f, reader);
	check_definitions(f, reader);
	check_facts(f, reader);
}

static void try_flip(struct file *f, uint64_t bit)
{
	char message[300] = "";
	struct tacho_reader *reader;
	struct block *hit = block_at(f, bit / 8);

	snprintf(trying, sizeof(trying), "%s, bit %" PRIu64 " of byte %" PRIu64 " flipped", f->name,
		 bit % 8, bit / 8);
	for (uint32_t i = 0; i < f->block_count; i++)
		f->blocks[i].whole = &f->blocks[i] != hit;
	f->copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
	MUST(tacho_read_open_memory(&reader, f->copy, f->size, NULL, message, sizeof(message)) ==
	     0);
	check_whole_parts(f, reader);
	MUST(is_named(reader, bit / 8));
	tacho_read_close(reader);
	f->copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* The cut, if it is there: it reaches from the first byte that is of no use to the last. */
static int names_cut(struct tacho_reader *reader, uint64_t from, uint64_t size)
{
	for (uint32_t i = 0; i < tacho_read_problem_count(reader); i++) {
		const struct tacho_problem *p = tacho_read_problem(reader, i);

		if (!strcmp(p->name, "cut") && p->offset == from && p->offset + p->size == size)
			return 1;
	}
	return 0;
}

static void try_cut(struct file *f, uint64_t size)
{
	uint64_t useful = sizeof(struct tacho_trace_file);
	char message[300] = "";
	struct tacho_reader *reader;
	uint8_t *exact = malloc(size + !size); /* so that one byte beyond is seen */
	uint32_t whole = 0;
	int err;

	assert_non_null(exact);
	memcpy(exact, f->data, size);
	snprintf(trying, sizeof(trying), "%s, cut after %" PRIu64 " bytes", f->name, size);
	for (uint32_t i = 0; i < f->block_count; i++) {
		f->blocks[i].whole = f->blocks[i].offset + f->blocks[i].size <= size;
		whole += (uint32_t)f->blocks[i].whole;
		if (f->blocks[i].whole)
			useful = f->blocks[i].offset + f->blocks[i].size;
	}
	err = tacho_read_open_memory(&reader, exact, size, NULL, message, sizeof(message));
	if (!whole) {
		MUST(err == -EBADMSG && !reader && strlen(message) > 10);
	} else {
		MUST(err == 0);
		check_whole_parts(f, reader);
		MUST(names_cut(reader, useful, size));
		tacho_read_close(reader);
	}
	free(exact);
}

/* ----------------------------------------------------------------- chance */

static uint64_t chance(uint64_t below)
{
	static uint64_t state;

	if (!state)
		state = seed;
	state += 0x9e3779b97f4a7c15ull; /* splitmix64 */
	uint64_t z = state;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (z ^ z >> 31) % below;
}

/* Half of all bytes are of a few large blocks: every second place is chosen by block. */
static uint64_t some_byte(const struct file *f)
{
	const struct block *b = &f->blocks[chance(f->block_count)];

	switch (chance(8)) {
	case 0:
		return b->offset + chance(sizeof(struct tacho_trace_block));
	case 1:
	case 2:
		return b->offset + chance(b->size);
	case 3:
		return chance(2) ? chance(sizeof(struct tacho_trace_file))
				 : f->end + chance(sizeof(struct tacho_trace_end));
	default:
		return chance(f->size);
	}
}

static unsigned tries(void)
{
	const char *under = getenv("TACHO_TEST_UNDER"), *soak = getenv("TACHO_SOAK");

	if (under && !strcmp(under, "arm64"))
		return 100; /* an emulator: the code is the same */
	return soak && !strcmp(soak, "1") ? 10000 : 1000;
}

static void flips_of(struct file *f)
{
	memcpy(f->copy, f->data, f->size);
	for (unsigned i = 0; i < tries(); i++)
		try_flip(f, some_byte(f) * 8 + chance(8));
}

static void cuts_of(struct file *f)
{
	for (unsigned i = 0; i < tries(); i++)
		try_cut(f, some_byte(f));
	/* Between two blocks nothing looks damaged. */
	for (uint32_t i = 0; i < f->block_count; i++)
		try_cut(f, f->blocks[i].offset);
	try_cut(f, f->end);
}

static void a_flipped_bit_costs_the_block_it_hits_in_a_crash_file(void **state)
{
	(void)state;
	flips_of(&crash_file);
}

static void a_flipped_bit_costs_the_block_it_hits_in_a_dumped_file(void **state)
{
	(void)state;
	flips_of(&dumped);
}

static void a_cut_costs_what_is_behind_it_in_a_crash_file(void **state)
{
	(void)state;
	cuts_of(&crash_file);
}

static void a_cut_costs_what_is_behind_it_in_a_dumped_file(void **state)
{
	(void)state;
	cuts_of(&dumped);
}

/* ------------------------------------------------------------------ setup */

static int has_type(const struct file *f, uint16_t type)
{
	for (uint32_t i = 0; i < f->block_count; i++)
		if (f->blocks[i].type == type)
			return 1;
	return 0;
}

static int setup(void **state)
{
	/* In the folder that tests/run.py deletes, whatever happens here. */
	const char *boxes = getenv("TACHO_BOX_DIR");
	char folder[200], crash_path[256], dump_path[256];
	int status = 0;
	pid_t pid;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/tacho-test-XXXXXX", boxes ? boxes : "/dev/shm");
	assert_non_null(mkdtemp(folder));
	snprintf(crash_path, sizeof(crash_path), "%s/crash.tacho", folder);
	snprintf(dump_path, sizeof(dump_path), "%s/dump.tacho", folder);
	pid = fork();
	if (pid == 0)
		record_and_crash(folder, crash_path);
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	dump_box(folder, dump_path);
	read_file(&crash_file, crash_path);
	read_file(&dumped, dump_path);
	unlink(crash_path);
	unlink(dump_path);
	rmdir(folder);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	learn(&crash_file);
	learn(&dumped);
	assert_true(has_type(&crash_file, TACHO_BLOCK_CHUNK));
	assert_false(has_type(&crash_file, TACHO_BLOCK_INDEX));
	assert_true(has_type(&dumped, TACHO_BLOCK_EVENTS) && has_type(&dumped, TACHO_BLOCK_INDEX));
	return 0;
}

static void forget(struct file *f)
{
	for (uint32_t i = 0; i < f->block_count; i++)
		tacho__records_free(&f->blocks[i].records);
	tacho_read_close(f->reader);
	free(f->data);
	free(f->copy);
}

static int teardown(void **state)
{
	(void)state;
	forget(&crash_file);
	forget(&dumped);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flipped_bit_costs_the_block_it_hits_in_a_crash_file),
		cmocka_unit_test(a_flipped_bit_costs_the_block_it_hits_in_a_dumped_file),
		cmocka_unit_test(a_cut_costs_what_is_behind_it_in_a_crash_file),
		cmocka_unit_test(a_cut_costs_what_is_behind_it_in_a_dumped_file),
	};
	const char *text = getenv("TACHO_TEST_SEED"), *soak = getenv("TACHO_SOAK");

	seed = text			    ? strtoull(text, NULL, 0)
	       : soak && !strcmp(soak, "1") ? (uint64_t)time(NULL)
					    : 1;
	if (!seed)
		seed = 1;
	printf("# seed %" PRIu64 "\n", seed);
	fflush(stdout);
	return cmocka_run_group_tests(tests, setup, teardown);
}
