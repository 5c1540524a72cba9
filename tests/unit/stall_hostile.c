/* Boxes that are cut, garbage or damaged: looking for stalls in them does no harm. */
#include "stall_subject.h"

/* A process that stores on while its box is read: what happens after so many bytes were read from
   there. */
static struct {
	uint64_t offset;
	size_t size;
	void (*change)(int fd);
} after;

ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
	ssize_t n = syscall(SYS_pread64, fd, to, size, offset);

	if (after.change && (uint64_t)offset == after.offset && size == after.size)
		after.change(fd);
	return n;
}

static uint8_t *copy_box(const struct subject *s, size_t *size)
{
	struct stat st;
	uint8_t *copy;

	assert_int_equal(fstat(s->box, &st), 0);
	*size = (size_t)st.st_size;
	copy = malloc(*size);
	assert_non_null(copy);
	assert_int_equal(pread(s->box, copy, *size, 0), *size);
	return copy;
}

static int scratch_file(const void *data, size_t size)
{
	int fd = memfd_create("box", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	return fd;
}

/* A box of 1 MiB in which a loop is stalled. */
static uint8_t *stalled_box(size_t *size)
{
	struct tacho_options options = {.size = sizeof(options), .max_bytes = 1 << 20};
	struct subject s;
	uint8_t *copy;

	subject_start(&s, &options);
	say(&s, "PUrPUb");
	found_since(&(struct tacho__stalled){.found = true, .since_ns = s.before, .took_ns = 1},
		    s.before, s.after);
	copy = copy_box(&s, size);
	subject_end(&s);
	return copy;
}

static void a_box_that_is_cut_is_an_error_or_less_to_see(void **state)
{
	struct tacho__stalled out;
	size_t size, step;
	uint8_t *copy = stalled_box(&size);
	int fd = scratch_file(copy, size), good = 0, bad = 0;
	/* One that has seen it whole, and is cut under. */
	struct tacho__stall *known = tacho__stall_new(fd, 0);

	(void)state;
	assert_int_equal(tacho__stall_look(known, 0, &out), 0);
	assert_true(out.found);
	for (size_t at = size; at > 0; at -= step) {
		struct tacho__stall *s = tacho__stall_new(fd, 0);
		int err;

		step = at > 8192 ? 1009 : 61;
		step = step < at ? step : at;
		assert_int_equal(ftruncate(fd, (off_t)at), 0);
		err = tacho__stall_look(s, 0, &out);
		assert_true(err == 0 || err == -EBADMSG);
		assert_true(!err || (!out.found && !out.idle));
		good += !err && out.found;
		bad += err != 0;
		err = tacho__stall_look(known, 0, &out);
		assert_true(err == -EBADMSG || (!err && at >= sizeof(struct tacho_box_super)));
		tacho__stall_free(s);
	}
	assert_true(good > 0 && bad > 0);
	tacho__stall_free(known);
	close(fd);
	free(copy);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void what_is_no_box_is_refused(void **state)
{
	static uint8_t garbage[100000];
	struct tacho__stalled out;
	uint64_t x = 88172645463325252u;

	(void)state;
	for (int i = 0; i < 20; i++) {
		int fd;
		struct tacho__stall *s;

		for (size_t k = 0; i && k < sizeof(garbage); k++)
			garbage[k] = (uint8_t)next_random(&x);
		fd = scratch_file(garbage, sizeof(garbage) >> i);
		s = tacho__stall_new(fd, 0);
		assert_int_equal(tacho__stall_look(s, 0, &out), -EBADMSG);
		assert_false(out.found || out.idle);
		tacho__stall_free(s);
		close(fd);
	}
}

static void set32(uint8_t *at, uint64_t value)
{
	uint32_t v = (uint32_t)value;

	memcpy(at, &v, sizeof(v));
}

/* Garbage where it matters: superblock, thread table, the chunk; with memory of before. */
static void damage_is_survived(void **state)
{
	size_t size;
	uint8_t *copy = stalled_box(&size), *broken = malloc(size);
	const struct tacho_box_super *super = (const struct tacho_box_super *)copy;
	uint64_t threads = super->regions[TACHO_REGION_THREADS].offset;
	struct tacho_box_thread entry;
	uint64_t chunk, x = 88172645463325252u, found = 0;

	(void)state;
	memcpy(&entry, copy + threads, sizeof(entry));
	chunk = super->regions[TACHO_REGION_POOL].offset + (uint64_t)entry.chunk * TACHO_SMALL_SIZE;
	for (int round = 0; round < 3000; round++) {
		static const uint64_t values[] = {0, 1, 255, 0x7fffffff, 0x80000000, 0xffffffff};
		struct tacho__stalled out;
		struct tacho__stall *s;
		int fd;

		memcpy(broken, copy, size);
		for (uint64_t n = 1 + next_random(&x) % 4; n; n--) {
			uint64_t value = next_random(&x) & 1
						 ? values[next_random(&x) % 6]
						 : next_random(&x) >> (next_random(&x) % 32);
			uint64_t where = next_random(&x) % 3;
			uint64_t at = where == 0   ? 8 + next_random(&x) % 1200
				      : where == 1 ? threads + next_random(&x) % 60
						   : chunk + next_random(&x) % 4000;

			set32(broken + (at & ~3ull), value);
		}
		fd = scratch_file(round % 2 ? broken : copy, size);
		s = tacho__stall_new(fd, 0);
		if (!tacho__stall_look(s, next_random(&x) >> (next_random(&x) % 64), &out))
			found += out.found;
		/* The same file, changed under the one that knows it. */
		assert_int_equal(pwrite(fd, broken, size, 0), size);
		if (!tacho__stall_look(s, 0, &out))
			found += out.found;
		assert_true(strlen(out.kind_name) < sizeof(out.kind_name));
		tacho__stall_free(s);
		close(fd);
	}
	/* Not all were so broken that nothing was tested. */
	assert_true(found > 100);
	free(broken);
	free(copy);
}

/* Where the first thread's chunk is, and its slot. */
static uint64_t chunk_offset, slot_offset;

static void find_chunk(const uint8_t *box)
{
	const struct tacho_box_super *super = (const struct tacho_box_super *)box;
	struct tacho_box_thread entry;

	memcpy(&entry, box + super->regions[TACHO_REGION_THREADS].offset, sizeof(entry));
	chunk_offset =
		super->regions[TACHO_REGION_POOL].offset + (uint64_t)entry.chunk * TACHO_SMALL_SIZE;
	slot_offset = super->regions[TACHO_REGION_SLOTS].offset +
		      entry.chunk / TACHO_SMALL_PER_SLOT * sizeof(struct tacho_box_slot);
}

static void add64(int fd, uint64_t offset, uint64_t n)
{
	uint64_t word;

	assert_int_equal(syscall(SYS_pread64, fd, &word, sizeof(word), offset), sizeof(word));
	word += n;
	assert_int_equal(pwrite(fd, &word, sizeof(word), (off_t)offset), sizeof(word));
}

static void another_chunk(int fd)
{
	add64(fd, chunk_offset + offsetof(struct tacho_chunk, generation), 1);
}

static void another_shape(int fd)
{
	add64(fd, slot_offset + offsetof(struct tacho_box_slot, state), 1ull << 40);
}

static void no_records_yet(int fd)
{
	uint64_t commit = TACHO_CHUNK_HEAD;

	assert_int_equal(pwrite(fd, &commit, sizeof(commit),
				(off_t)(chunk_offset + offsetof(struct tacho_chunk, commit))),
			 sizeof(commit));
}

/* The stall stands in the records alone: without them there is none. */
static void a_torn_copy_is_thrown_away(void **state)
{
	static void (*const changes[])(int) = {another_chunk, another_shape, no_records_yet};
	struct tacho__stalled out;
	size_t size;
	uint8_t *copy = stalled_box(&size);
	int fd = scratch_file(copy, size);
	struct tacho__stall *s = tacho__stall_new(fd, 0);
	struct tacho_chunk chunk;

	(void)state;
	find_chunk(copy);
	memcpy(&chunk, copy + chunk_offset, sizeof(chunk));
	assert_int_equal(tacho__stall_look(s, 0, &out), 0);
	assert_true(out.found);
	assert_string_equal(out.kind_name, "one");
	tacho__stall_free(s);
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		assert_int_equal(pwrite(fd, copy, size, 0), size);
		s = tacho__stall_new(fd, 0);
		after.offset = chunk_offset + TACHO_CHUNK_HEAD;
		after.size = (size_t)chunk.commit - TACHO_CHUNK_HEAD;
		after.change = changes[i];
		assert_int_equal(tacho__stall_look(s, 0, &out), 0);
		after.change = NULL;
		assert_false(out.found);
		tacho__stall_free(s);
	}
	close(fd);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_box_that_is_cut_is_an_error_or_less_to_see),
		cmocka_unit_test(what_is_no_box_is_refused),
		cmocka_unit_test(damage_is_survived),
		cmocka_unit_test(a_torn_copy_is_thrown_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
