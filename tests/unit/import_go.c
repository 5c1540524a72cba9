/* Execution traces of Go that no Go wrote: what is wrong in them is said, and what is right is kept. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "import/go.h"

struct wire {
	uint8_t data[1 << 17];
	size_t size;
	size_t body; /* where the bytes of the batch begin */
	uint8_t batch[70000];
	size_t batch_size;
};

static void put_number(uint8_t *to, size_t *size, uint64_t value)
{
	do {
		to[(*size)++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
}

static void begin(struct wire *w, const char *head)
{
	memset(w, 0, sizeof(*w));
	memcpy(w->data, head, strlen(head));
	w->size = 16;
}

static void event(struct wire *w, unsigned type, unsigned count, ...)
{
	va_list args;

	w->batch[w->batch_size++] = (uint8_t)type;
	va_start(args, count);
	for (unsigned i = 0; i < count; i++)
		put_number(w->batch, &w->batch_size, va_arg(args, uint64_t));
	va_end(args);
}

static void batch(struct wire *w, uint64_t generation, uint64_t m, uint64_t time)
{
	w->data[w->size++] = GO_EVENT_BATCH;
	put_number(w->data, &w->size, generation);
	put_number(w->data, &w->size, m);
	put_number(w->data, &w->size, time);
	put_number(w->data, &w->size, w->batch_size);
	memcpy(w->data + w->size, w->batch, w->batch_size);
	w->size += w->batch_size;
	w->batch_size = 0;
}

static void string(struct wire *w, uint64_t id, const char *text)
{
	event(w, GO_STRING, 2, id, (uint64_t)strlen(text));
	memcpy(w->batch + w->batch_size, text, strlen(text));
	w->batch_size += strlen(text);
}

/* The clock, and one name: enough for a generation. */
static void tables(struct wire *w, uint64_t generation)
{
	event(w, GO_FREQUENCY, 1, (uint64_t)1000000000);
	batch(w, generation, GO_NONE, 1);
	w->batch[w->batch_size++] = GO_STRINGS;
	string(w, 1, "chan receive");
	batch(w, generation, GO_NONE, 1);
}

struct imported {
	struct tacho_reader *reader;
	int fd, err;
	char message[512];
	uint64_t counts[256];
};

static void import(struct imported *i, const struct wire *w, size_t size)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	char in[64], out[64];
	char *paths[] = {in};
	const struct tacho__found found = {&tacho__import_go, paths, 1};
	const struct tacho__import_options none = {0};
	const struct tacho_event *e;
	int fd = memfd_create("in", MFD_CLOEXEC);

	memset(i, 0, sizeof(*i));
	i->fd = memfd_create("out", MFD_CLOEXEC);
	assert_true(fd >= 0 && i->fd >= 0);
	assert_int_equal(write(fd, w->data, size), (ssize_t)size);
	snprintf(in, sizeof(in), "/proc/self/fd/%d", fd);
	snprintf(out, sizeof(out), "/proc/self/fd/%d", i->fd);
	i->err = tacho__import(&found, i->fd, &none, NULL, i->message, sizeof(i->message));
	close(fd);
	if (i->err)
		return;
	assert_int_equal(tacho_read_open(&i->reader, out, &options, NULL, 0), 0);
	while (tacho_read_next(i->reader, &e) == 1)
		i->counts[e->type]++;
	assert_int_equal(tacho_read_problem_count(i->reader), 0);
}

static const char *reason(const struct imported *i)
{
	return tacho_read_process(i->reader, 0)->reason;
}

static void end(struct imported *i)
{
	tacho_read_close(i->reader);
	close(i->fd);
}

/* A P and a goroutine that runs, then waits and is woken by another M, whose clock is behind. */
static void life(struct wire *w, uint64_t generation)
{
	event(w, GO_PROC_STATUS, 3, (uint64_t)1, (uint64_t)0, (uint64_t)GO_P_RUNNING);
	event(w, GO_STATUS, 4, (uint64_t)1, (uint64_t)7, (uint64_t)100, (uint64_t)GO_G_RUNNING);
	event(w, GO_BLOCK, 3, (uint64_t)1000, (uint64_t)1, (uint64_t)0);
	event(w, GO_START, 3, (uint64_t)5000, (uint64_t)7, (uint64_t)2);
	event(w, GO_DESTROY, 1, (uint64_t)10);
	batch(w, generation, 100, 1000);
	event(w, GO_UNBLOCK, 4, (uint64_t)1, (uint64_t)7, (uint64_t)1, (uint64_t)0);
	batch(w, generation, 101, 500);
}

static struct wire w;

static void what_clocks_contradict_is_put_in_order(void **state)
{
	struct imported i;

	(void)state;
	begin(&w, "go 1.22 trace");
	tables(&w, 1);
	life(&w, 1);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	assert_string_equal(reason(&i), "");
	assert_int_equal(i.counts[TACHO_EV_TASK_WAITS], 1);
	assert_int_equal(i.counts[TACHO_EV_WAKE], 1);
	assert_int_equal(i.counts[TACHO_EV_POLL_BEGIN], 1);
	assert_int_equal(i.counts[TACHO_EV_POLL_END], 2);
	end(&i);
}

static void what_nothing_leads_to_is_believed_and_counted(void **state)
{
	struct imported i;

	(void)state;
	begin(&w, "go 1.22 trace");
	tables(&w, 1);
	event(&w, GO_PROC_STATUS, 3, (uint64_t)1, (uint64_t)0, (uint64_t)GO_P_RUNNING);
	event(&w, GO_START, 3, (uint64_t)1, (uint64_t)7, (uint64_t)9);
	event(&w, GO_DESTROY, 1, (uint64_t)10);
	batch(&w, 1, 100, 1000);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	assert_non_null(strstr(reason(&i), "1 events contradict"));
	assert_int_equal(i.counts[TACHO_EV_POLL_BEGIN], 1);
	end(&i);
}

static void an_unknown_event_ends_its_batch_alone(void **state)
{
	struct imported i;

	(void)state;
	begin(&w, "go 1.22 trace");
	tables(&w, 1);
	life(&w, 1);
	event(&w, 99, 1, (uint64_t)1);
	event(&w, GO_PROC_STOP, 1, (uint64_t)1);
	batch(&w, 1, 102, 9000);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	assert_string_equal(reason(&i), "1 batches could not be read to their end");
	assert_int_equal(i.counts[TACHO_EV_POLL_END], 2);
	end(&i);
}

/* Whether a batch that is one event with so many numbers is read to its end. */
static int is_whole(unsigned type, unsigned count)
{
	struct imported i;
	int whole;

	begin(&w, "go 1.23 trace");
	tables(&w, 1);
	life(&w, 1);
	w.batch[w.batch_size++] = (uint8_t)type;
	memset(w.batch + w.batch_size, 0, count);
	w.batch_size += count;
	batch(&w, 1, 102, 9000);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	whole = !strstr(reason(&i), "could not be read to their end");
	end(&i);
	return whole;
}

/* As golang.org/x/exp/trace has them, from ProcsChange on; then those of the experiment. */
static void every_event_has_as_many_numbers_as_go_writes(void **state)
{
	static const unsigned char counts[] = {3, 3, 1, 4, 3, 4, 2, 3, 1, 1, 3, 3, 4, 3,
					       1, 1, 4, 3, 1, 2, 3, 2, 2, 2, 3, 2, 2, 1,
					       2, 2, 2, 5, 3, 4, 4, 5, 3, 3, 4, 5};
	static const unsigned char memory[] = {4, 4, 2, 3, 3, 2, 3, 3, 2};

	(void)state;
	for (unsigned i = 0; i < sizeof(counts) + sizeof(memory); i++) {
		unsigned type = i < sizeof(counts) ? GO_PROCS_CHANGE + i : 128 + i - sizeof(counts);
		unsigned count = i < sizeof(counts) ? counts[i] : memory[i - sizeof(counts)];

		if (!is_whole(type, count) || is_whole(type, count - 1) ||
		    is_whole(type, count + 1))
			fail_msg("event %u has %u numbers", type, count);
	}
}

static void a_p_that_idles_all_the_time_is_there(void **state)
{
	struct imported i;
	const struct tacho_thread *t = NULL;

	(void)state;
	begin(&w, "go 1.22 trace");
	tables(&w, 1);
	life(&w, 1);
	event(&w, GO_PROC_STATUS, 3, (uint64_t)1, (uint64_t)3, (uint64_t)GO_P_IDLE);
	batch(&w, 1, 102, 900);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	for (uint32_t n = 0; n < tacho_read_thread_count(i.reader); n++)
		if (strcmp(tacho_read_thread(i.reader, n)->name, "P3") == 0)
			t = tacho_read_thread(i.reader, n);
	assert_non_null(t);
	end(&i);
}

static void lengths_beyond_what_there_is_are_refused(void **state)
{
	struct imported i;

	(void)state;
	begin(&w, "go 1.22 trace");
	tables(&w, 1);
	life(&w, 1);
	/* A text that is longer than its batch, a stack of more frames than there may be. */
	w.batch[w.batch_size++] = GO_STRINGS;
	event(&w, GO_STRING, 2, (uint64_t)2, (uint64_t)1000);
	batch(&w, 1, GO_NONE, 1);
	w.batch[w.batch_size++] = GO_STACKS;
	event(&w, GO_STACK, 2, (uint64_t)1, (uint64_t)100000);
	batch(&w, 1, GO_NONE, 1);
	/* A batch that reaches beyond the file. */
	w.data[w.size++] = GO_EVENT_BATCH;
	put_number(w.data, &w.size, 1);
	put_number(w.data, &w.size, 100);
	put_number(w.data, &w.size, 1);
	put_number(w.data, &w.size, 60000);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	assert_non_null(strstr(reason(&i), "is cut or damaged after generation 1"));
	assert_non_null(strstr(reason(&i), "2 batches could not be read"));
	assert_int_equal(i.counts[TACHO_EV_POLL_END], 2);
	end(&i);
}

static void times_that_no_clock_has_do_no_harm(void **state)
{
	struct imported i;

	(void)state;
	begin(&w, "go 1.22 trace");
	tables(&w, 1);
	life(&w, 1);
	event(&w, GO_PROC_STATUS, 3, UINT64_MAX, (uint64_t)1, (uint64_t)GO_P_RUNNING);
	event(&w, GO_STATUS, 4, UINT64_MAX, (uint64_t)8, (uint64_t)103, (uint64_t)GO_G_RUNNING);
	event(&w, GO_STATUS, 4, (uint64_t)1, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	batch(&w, 1, 103, UINT64_MAX);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	assert_int_equal(i.counts[TACHO_EV_POLL_BEGIN], 1);
	end(&i);
}

static void regions_that_nest_too_deeply_are_counted(void **state)
{
	struct imported i;

	(void)state;
	begin(&w, "go 1.22 trace");
	tables(&w, 1);
	event(&w, GO_PROC_STATUS, 3, (uint64_t)1, (uint64_t)0, (uint64_t)GO_P_RUNNING);
	event(&w, GO_STATUS, 4, (uint64_t)1, (uint64_t)7, (uint64_t)100, (uint64_t)GO_G_RUNNING);
	for (int n = 0; n < 300; n++)
		event(&w, GO_REGION_BEGIN, 4, (uint64_t)1, (uint64_t)0, (uint64_t)1, (uint64_t)0);
	for (int n = 0; n < 300; n++)
		event(&w, GO_REGION_END, 4, (uint64_t)1, (uint64_t)0, (uint64_t)1, (uint64_t)0);
	batch(&w, 1, 100, 1000);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	assert_int_equal(i.counts[TACHO_EV_ASYNC_BEGIN], GO_REGIONS);
	assert_int_equal(i.counts[TACHO_EV_ASYNC_END], GO_REGIONS);
	assert_non_null(strstr(reason(&i), "292 events are left out"));
	end(&i);
}

static void a_generation_without_its_clock_is_left_out(void **state)
{
	struct imported i;

	(void)state;
	begin(&w, "go 1.22 trace");
	tables(&w, 1);
	life(&w, 1);
	event(&w, GO_PROC_STATUS, 3, (uint64_t)1, (uint64_t)0, (uint64_t)GO_P_RUNNING);
	batch(&w, 2, 100, 20000);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	assert_non_null(strstr(reason(&i), "generation 2 is left out: it lacks its clock"));
	assert_int_equal(tacho_read_gap_count(i.reader), 1);
	assert_int_equal(i.counts[TACHO_EV_POLL_END], 2);
	end(&i);
}

static void other_versions_are_refused_by_name(void **state)
{
	static const char *const heads[] = {"go 1.11 trace", "go 1.21 trace", "go 1.27 trace",
					    "go 1.99 trace"};
	struct imported i;

	(void)state;
	for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++) {
		char version[16];

		begin(&w, heads[k]);
		tables(&w, 1);
		import(&i, &w, w.size);
		assert_int_equal(i.err, -ENOTSUP);
		snprintf(version, sizeof(version), "Go %.4s", heads[k] + 3);
		assert_non_null(strstr(i.message, version));
		close(i.fd);
	}
}

static void a_file_cut_anywhere_ends_in_an_answer(void **state)
{
	struct imported i;
	size_t size;

	(void)state;
	begin(&w, "go 1.22 trace");
	tables(&w, 1);
	life(&w, 1);
	tables(&w, 2);
	size = w.size;
	for (size_t cut = 16; cut <= size; cut++) {
		import(&i, &w, cut);
		assert_true(i.err == 0 || i.err == -EBADMSG);
		assert_true(!i.err == !i.message[0]);
		if (!i.err)
			tacho_read_close(i.reader);
		close(i.fd);
	}
}

/* ------------------------------------------------------------ names and places */

enum { S_SYNC = 1, S_MUTEX, S_RWMUTEX, S_MAIN, S_SERVE, S_GO, S_FILE };

/* Strings, and stacks whose numbers say what is in them, the innermost first. */
static void named_tables(void)
{
	static const char *const strings[] = {
		"sync",	       "sync.(*Mutex).Lock",	   "sync.(*RWMutex).Lock",
		"main.work",   "net/http.(*Server).Serve", "runtime.newproc",
		"/src/main.go"};
	static const unsigned stacks[] = {24, 234, 654, 6, 4, 34};

	begin(&w, "go 1.22 trace");
	event(&w, GO_FREQUENCY, 1, (uint64_t)1000000000);
	batch(&w, 1, GO_NONE, 1);
	w.batch[w.batch_size++] = GO_STRINGS;
	for (uint64_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		string(&w, i + 1, strings[i]);
	batch(&w, 1, GO_NONE, 1);
	w.batch[w.batch_size++] = GO_STACKS;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		unsigned left = stacks[i], n = left > 99 ? 3 : left > 9 ? 2 : 1;

		event(&w, GO_STACK, 2, (uint64_t)stacks[i], (uint64_t)n);
		for (unsigned k = n, ten = n > 2 ? 100 : n > 1 ? 10 : 1; k--; ten /= 10) {
			put_number(w.batch, &w.batch_size, 0x1000 + left / ten % 10);
			put_number(w.batch, &w.batch_size, left / ten % 10);
			put_number(w.batch, &w.batch_size, S_FILE);
			put_number(w.batch, &w.batch_size, 40 + left / ten % 10);
		}
	}
	batch(&w, 1, GO_NONE, 1);
	event(&w, GO_PROC_STATUS, 3, (uint64_t)1, (uint64_t)0, (uint64_t)GO_P_RUNNING);
	event(&w, GO_STATUS, 4, (uint64_t)1, (uint64_t)7, (uint64_t)100, (uint64_t)GO_G_RUNNING);
}

/* The n-th event of a type, from 0. */
static const struct tacho_event *nth(const struct imported *i, unsigned type, unsigned n)
{
	const struct tacho_event *e;

	assert_int_equal(tacho_read_seek(i->reader, 0), 0);
	while (tacho_read_next(i->reader, &e) == 1)
		if (e->type == type && !n--)
			return e;
	fail();
	return NULL;
}

static const char *name_of(const struct imported *i, uint64_t id)
{
	const struct tacho_definition *d = tacho_read_definition(i->reader, 0, (uint32_t)id);

	assert_non_null(d);
	return d->name;
}

/* What a goroutine with that stack waits for. */
static void waits_for(uint64_t stack, const char *what)
{
	const struct tacho_event *e;
	struct imported i;

	named_tables();
	event(&w, GO_BLOCK, 3, (uint64_t)1000, (uint64_t)S_SYNC, stack);
	batch(&w, 1, 100, 1000);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	e = nth(&i, TACHO_EV_TASK_WAITS, 0);
	assert_string_equal(name_of(&i, TACHO_GET(e, TASK_WAITS, for)), what);
	end(&i);
}

static void a_lock_inside_of_a_lock_is_the_outer_one(void **state)
{
	(void)state;
	waits_for(24, "sync.Mutex");
	waits_for(234, "sync.RWMutex");
	waits_for(34, "sync.RWMutex");
	waits_for(4, "sync");
}

static void made_at(uint64_t stack, const char *where)
{
	const struct tacho_event *e;
	struct imported i;

	named_tables();
	event(&w, GO_CREATE, 4, (uint64_t)1000, (uint64_t)8, (uint64_t)4, stack);
	batch(&w, 1, 100, 1000);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	e = nth(&i, TACHO_EV_SPAWN, 0);
	assert_string_equal(name_of(&i, TACHO_GET(e, SPAWN, at)), where);
	end(&i);
}

static void goroutines_are_made_where_the_program_does_it(void **state)
{
	(void)state;
	made_at(654, "main.work");
	made_at(4, "main.work");
	/* Where all is of the library, the outermost. */
	made_at(6, "runtime.newproc");
}

static void samples_are_told_in_the_order_of_their_times(void **state)
{
	static const uint64_t stacks[] = {4, 24, 6}; /* at 2000, 3000, 4000 */
	static const char *const innermost[] = {"main.work", "sync.(*Mutex).Lock",
						"runtime.newproc"};
	struct imported i;

	(void)state;
	named_tables();
	event(&w, GO_BLOCK, 3, (uint64_t)9000, (uint64_t)S_SYNC, (uint64_t)24);
	batch(&w, 1, 100, 1000);
	w.batch[w.batch_size++] = GO_CPU_SAMPLES;
	for (unsigned k = 0; k < 3; k++) {
		unsigned n = (k + 1) % 3; /* the last one first */

		event(&w, GO_CPU_SAMPLE, 5, (uint64_t)2000 + 1000 * n, (uint64_t)100, (uint64_t)0,
		      (uint64_t)7, stacks[n]);
	}
	batch(&w, 1, GO_NONE, 1);
	import(&i, &w, w.size);
	assert_int_equal(i.err, 0);
	for (unsigned n = 0; n < 3; n++) {
		const struct tacho_event *e = nth(&i, TACHO_EV_SAMPLE, n);
		const struct tacho_definition *d =
			tacho_read_definition(i.reader, 0, (uint32_t)TACHO_GET(e, SAMPLE, at));

		const struct tacho_symbol *symbol;

		assert_non_null(d);
		symbol = tacho_read_symbol(i.reader, 0, d->frames[0] - !d->exact, e->ns, 0);
		assert_non_null(symbol);
		assert_string_equal(symbol->function, innermost[n]);
	}
	assert_int_equal(nth(&i, TACHO_EV_SAMPLE, 2)->ns - nth(&i, TACHO_EV_SAMPLE, 0)->ns, 2000);
	end(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_clocks_contradict_is_put_in_order),
		cmocka_unit_test(what_nothing_leads_to_is_believed_and_counted),
		cmocka_unit_test(an_unknown_event_ends_its_batch_alone),
		cmocka_unit_test(every_event_has_as_many_numbers_as_go_writes),
		cmocka_unit_test(a_p_that_idles_all_the_time_is_there),
		cmocka_unit_test(lengths_beyond_what_there_is_are_refused),
		cmocka_unit_test(times_that_no_clock_has_do_no_harm),
		cmocka_unit_test(regions_that_nest_too_deeply_are_counted),
		cmocka_unit_test(a_generation_without_its_clock_is_left_out),
		cmocka_unit_test(a_lock_inside_of_a_lock_is_the_outer_one),
		cmocka_unit_test(goroutines_are_made_where_the_program_does_it),
		cmocka_unit_test(samples_are_told_in_the_order_of_their_times),
		cmocka_unit_test(other_versions_are_refused_by_name),
		cmocka_unit_test(a_file_cut_anywhere_ends_in_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
