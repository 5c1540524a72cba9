/* What the kernel told goes into a trace beside what the reader holds, and comes out again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace_build.h"

#define KERNEL_ADDRESS 0xffffffff81234567ull

static uint8_t boot_id[16];

static void read_boot_id(void)
{
	char text[64] = "", *c = text;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	unsigned byte;

	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	for (unsigned i = 0; i < sizeof(boot_id); i++, c += 2) {
		c += *c == '-';
		assert_int_equal(sscanf(c, "%2x", &byte), 1);
		boot_id[i] = (uint8_t)byte;
	}
}

static struct tacho_reader *open_trace(void **data)
{
	struct build b;
	size_t size;

	build_begin(&b);
	build_meta_u64(&b, TACHO_META_PID, 77);
	build_meta(&b, TACHO_META_BOOT_ID, boot_id, sizeof(boot_id));
	build_block(&b, TACHO_BLOCK_META);
	build_random_events(&b, 3, 2, 1, 50);
	*data = build_end(&b, &size);
	return open_bytes(*data, size);
}

/* Records [first, first + count) of thread 2: out, in and a sample by turns, 1000 ns apart. */
static void make(struct tacho__records *r, uint32_t first, uint32_t count)
{
	*r = (struct tacho__records){0};
	assert_int_equal(tacho__records_reserve(r, count, 5 * count), 0);
	r->head = (struct tacho_trace_events){
		.size = sizeof(r->head),
		.thread = 2,
		.tid = 1002,
		.stream = TACHO_STREAM_KERNEL,
		.sequence = 1,
		.prior_records = first,
	};
	for (uint32_t i = first; i < first + count; i++) {
		const uint64_t words[5] = {5, 10101010, KERNEL_ADDRESS, 0x401000, 0x402000};
		uint64_t ns = BUILD_BEGIN_NS + 1000ull * i;

		if (i % 3 == 2)
			tacho__records_put(r, ns, tacho_record_head(TACHO_REC_KERNEL_SAMPLE, 1),
					   words, 5);
		else
			tacho__records_put(r, ns,
					   tacho_record_head(i % 3 ? TACHO_REC_SWITCH_IN
								   : TACHO_REC_SWITCH_OUT,
							     1),
					   NULL, 0);
	}
	r->head.first_ns = r->ns[0];
	r->head.last_ns = r->ns[count - 1];
}

static int write_kernel(struct tacho_reader *reader, const struct tacho__records *kernel,
			uint32_t count, int no_symbols)
{
	struct tacho__trace_options options = {
		.taken_by = TACHO_TAKEN_DUMP,
		.no_symbols = no_symbols,
		.kernel = kernel,
		.kernel_count = count,
	};
	struct tacho__trace_result result;
	char message[300] = "";
	int fd = memfd_create("written", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(
		tacho__trace_write(reader, fd, &options, &result, message, sizeof(message)), 0);
	return fd;
}

static void *bytes_of(int fd, size_t *size)
{
	struct stat st;
	void *data;

	assert_int_equal(fstat(fd, &st), 0);
	*size = (size_t)st.st_size;
	data = malloc(*size);
	assert_int_equal(pread(fd, data, *size, 0), (ssize_t)*size);
	return data;
}

/* Events of the kernel's stream, each checked; how many, and the records missing between them. */
static uint32_t count_kernel(struct tacho_reader *reader, uint32_t first, uint64_t *missing)
{
	const struct tacho_event *e;
	uint32_t count = 0;

	*missing = 0;
	while (tacho_read_next(reader, &e) > 0) {
		uint64_t i;

		if (e->stream != TACHO_STREAM_KERNEL)
			continue;
		assert_int_equal(e->thread, 2);
		if (e->type == TACHO_EV_RESUME) {
			*missing += e->resume->missing;
			assert_int_equal(e->resume->open_count, 0);
			assert_int_equal(e->resume->parked, 0);
			continue;
		}
		i = (e->ns - BUILD_BEGIN_NS) / 1000;
		if (!count)
			assert_int_equal(i, first);
		assert_int_equal(e->type, i % 3 == 0   ? TACHO_EV_SWITCH_OUT
					  : i % 3 == 1 ? TACHO_EV_SWITCH_IN
						       : TACHO_EV_KERNEL_SAMPLE);
		assert_int_equal(e->arg, 1);
		if (e->type == TACHO_EV_KERNEL_SAMPLE) {
			assert_int_equal(e->words, 5);
			assert_true(e->word[2] == KERNEL_ADDRESS && e->word[4] == 0x402000);
		}
		count++;
	}
	assert_int_equal(tacho_read_problem_count(reader), 0);
	return count;
}

static void it_comes_out_as_it_went_in(void **state)
{
	struct tacho__records kernel[2];
	struct tacho_reader *reader, *again;
	uint64_t missing;
	void *data, *written;
	size_t size;
	int fd;

	(void)state;
	reader = open_trace(&data);
	make(&kernel[0], 0, 30);
	make(&kernel[1], 30, 60);
	fd = write_kernel(reader, kernel, 2, 1);
	written = bytes_of(fd, &size);
	again = open_bytes(written, size);
	assert_int_equal(count_kernel(again, 0, &missing), 90);
	assert_int_equal(missing, 0);
	tacho_read_close(again);
	tacho_read_close(reader);
	tacho__records_free(&kernel[0]);
	tacho__records_free(&kernel[1]);
	free(data);
	free(written);
	close(fd);
}

static void the_limits_of_the_reader_hold_for_it(void **state)
{
	struct tacho_read_options limits = {
		.size = sizeof(limits),
		.from_ns = BUILD_BEGIN_NS + 10000,
		.to_ns = BUILD_BEGIN_NS + 20000,
	};
	struct tacho_reader *reader, *again;
	struct tacho__records kernel[3];
	char message[300] = "";
	uint64_t missing;
	void *data, *written;
	struct build b;
	size_t size;
	int fd;

	(void)state;
	build_begin(&b);
	build_meta_u64(&b, TACHO_META_PID, 77);
	build_block(&b, TACHO_BLOCK_META);
	build_random_events(&b, 3, 2, 1, 50);
	data = build_end(&b, &size);
	assert_int_equal(
		tacho_read_open_memory(&reader, data, size, &limits, message, sizeof(message)), 0);
	make(&kernel[0], 0, 5);
	make(&kernel[1], 5, 10);
	make(&kernel[2], 15, 60);
	fd = write_kernel(reader, kernel, 3, 1);
	written = bytes_of(fd, &size);
	again = open_bytes(written, size);
	assert_int_equal(count_kernel(again, 10, &missing), 11);
	tacho_read_close(again);
	tacho_read_close(reader);
	for (int i = 0; i < 3; i++)
		tacho__records_free(&kernel[i]);
	free(data);
	free(written);
	close(fd);
}

/* Two traces of one process, the second of which lacks the oldest and has newer ones. */
static void what_two_traces_share_comes_once(void **state)
{
	const uint32_t parts[2][2][2] = {{{0, 32}, {32, 20}}, {{8, 24}, {32, 32}}};
	const char *tmp = getenv("TMPDIR");
	char folder[200], path[256], message[300] = "";
	struct tacho_reader *reader;
	uint64_t missing;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/tacho-unit-kernel-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(folder));
	for (unsigned t = 0; t < 2; t++) {
		struct tacho__records kernel[2];
		void *data, *written;
		size_t size;
		int fd, out;

		reader = open_trace(&data);
		for (unsigned i = 0; i < 2; i++) {
			make(&kernel[i], parts[t][i][0], parts[t][i][1]);
			kernel[i].head.sequence = i + 1;
		}
		fd = write_kernel(reader, kernel, 2, 1);
		written = bytes_of(fd, &size);
		snprintf(path, sizeof(path), "%s/%u.tacho", folder, t);
		out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(write(out, written, size), (ssize_t)size);
		close(out);
		close(fd);
		tacho_read_close(reader);
		for (unsigned i = 0; i < 2; i++)
			tacho__records_free(&kernel[i]);
		free(data);
		free(written);
	}
	assert_int_equal(tacho_read_open(&reader, folder, NULL, message, sizeof(message)), 0);
	assert_int_equal(count_kernel(reader, 0, &missing), 64);
	assert_int_equal(missing, 0);
	tacho_read_close(reader);
	for (unsigned t = 0; t < 2; t++) {
		snprintf(path, sizeof(path), "%s/%u.tacho", folder, t);
		unlink(path);
	}
	rmdir(folder);
}

/* Whoever may see them gets names, and only for the kernel that ran. */
static void names_are_those_of_this_boot(void **state)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long first = 0;
	const struct tacho_symbol *s;

	(void)state;
	if (f && fscanf(f, "%lx", &first) != 1)
		first = 0;
	if (f)
		fclose(f);
	for (int same = 0; same < 2; same++) {
		struct tacho_reader *reader, *again;
		struct tacho__records kernel;
		void *data, *written;
		size_t size;
		int fd;

		boot_id[0] ^= 1; /* wrong, then right again */
		reader = open_trace(&data);
		make(&kernel, 0, 3);
		kernel.words[2] = first + 1;
		fd = write_kernel(reader, &kernel, 1, 0);
		written = bytes_of(fd, &size);
		again = open_bytes(written, size);
		s = tacho_read_symbol(again, 0, first + 1, BUILD_BEGIN_NS + 2000, 0);
		assert_int_equal(s != NULL, same && first);
		if (s)
			assert_true(s->function[0] != 0);
		tacho_read_close(again);
		tacho_read_close(reader);
		tacho__records_free(&kernel);
		free(data);
		free(written);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_comes_out_as_it_went_in),
		cmocka_unit_test(the_limits_of_the_reader_hold_for_it),
		cmocka_unit_test(what_two_traces_share_comes_once),
		cmocka_unit_test(names_are_those_of_this_boot),
	};

	read_boot_id();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
