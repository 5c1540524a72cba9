/* How much of a trace is held at once: what its size can justify, and no more. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_build.h"

#include "folder_help.h"

/* A block of the most records that one may have: 16 MiB when it is loaded. 16 of them are what is
   held beyond 64 times the size of the trace. */
#define MOST TACHO_BLOCK_EVENTS_MAX
#define FREE_BLOCKS 16u
/* Records of a block that differ, so that it takes the bytes that MOST records must have (records.h).
   17 such blocks justify one block more. */
#define NOISE 6000u
#define PADDING (1u << 20) /* bytes of a trace: room for four blocks more */

/* Blocks of threads [from, to): all begin at one moment, so that none is over before all are loaded. */
static void put_threads(struct build *b, uint32_t from, uint32_t to)
{
	struct random rnd = {.state = 4711};
	struct tacho__records r = {0};

	assert_int_equal(tacho__records_reserve(&r, MOST, 0), 0);
	for (uint32_t t = from; t < to; t++) {
		r.head = (struct tacho_trace_events){.size = sizeof(r.head), .thread = t};
		r.word_at[0] = 0;
		for (uint32_t i = 0; i < MOST; i++)
			tacho__records_put(
				&r, BUILD_BEGIN_NS + (i > 0),
				tacho_record_head(TACHO_REC_PAUSE,
						  i < NOISE ? (uint32_t)random_next(&rnd) & 0xffffff
							    : 0),
				NULL, 0);
		build_events(b, &r);
	}
	tacho__records_free(&r);
}

/* Bytes that nothing can make smaller, in a block that readers pass over. */
static void put_padding(struct build *b)
{
	struct random rnd = {.state = 4711};

	for (uint32_t i = 0; i < PADDING / 8; i++) {
		uint64_t word = random_next(&rnd);

		build_bytes(b, &word, sizeof(word));
	}
	build_block(b, (enum tacho_block_type)999);
}

static void save(const char *name, uint32_t from, uint32_t to, int padded)
{
	struct build b;
	size_t size;
	void *data;
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	build_begin(&b);
	build_process(&b);
	put_threads(&b, from, to);
	if (padded)
		put_padding(&b);
	data = build_end(&b, &size);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	close(fd);
	free(data);
}

/* All blocks that are there were read, but `left_out`, of which it is told. */
static void read_all(const char *path, uint32_t blocks, uint32_t left_out)
{
	struct tacho_reader *r;
	const struct tacho_event *e;
	char message[300] = "";
	uint64_t events = 0;
	uint32_t told = 0;

	if (tacho_read_open(&r, path, NULL, message, sizeof(message)))
		fail_msg("%s", message);
	while (tacho_read_next(r, &e) > 0)
		events += e->type == TACHO_EV_PAUSE;
	for (uint32_t i = 0; i < tacho_read_problem_count(r); i++)
		told += !strcmp(tacho_read_problem(r, i)->name, "too-much-at-once");
	tacho_read_close(r);
	assert_int_equal(told, left_out);
	assert_int_equal(events, (uint64_t)(blocks - left_out) * MOST);
}

static void what_is_beyond_is_left_out_and_told(void **state)
{
	(void)state;
	save("most", 1, FREE_BLOCKS + 1, 0);
	read_all("most", FREE_BLOCKS, 0);
	save("more", 1, FREE_BLOCKS + 4, 0);
	read_all("more", FREE_BLOCKS + 3, 2);
}

static void a_large_trace_may_have_more(void **state)
{
	(void)state;
	save("large", 1, FREE_BLOCKS + 3, 1);
	read_all("large", FREE_BLOCKS + 2, 0);
}

static void files_of_a_folder_count_together(void **state)
{
	(void)state;
	assert_int_equal(mkdir("both", 0700), 0);
	save("both/1.tacho", 1, 9, 1);
	save("both/2.tacho", 9, FREE_BLOCKS + 3, 0);
	read_all("both", FREE_BLOCKS + 2, 0);
}

static int enter(void **state)
{
	(void)state;
	return folder_enter("read-held");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_beyond_is_left_out_and_told),
		cmocka_unit_test(a_large_trace_may_have_more),
		cmocka_unit_test(files_of_a_folder_count_together),
	};

	return cmocka_run_group_tests(tests, enter, folder_leave);
}
