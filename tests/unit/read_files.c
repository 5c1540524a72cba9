/* Boxes by their paths: whose they are, whether their process runs, changes while reading. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "box_builder.h"
#include "read_help.h"

static char folder[64];

static const char *in_folder(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, 128, "%s/%s", folder, name);
	return p;
}

static const char *save(const char *name, const void *data, size_t size)
{
	const char *path = in_folder(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
	return path;
}

static int try_path(struct tacho_reader **r, const char *path)
{
	char message[256];
	int err = tacho_read_open(r, path, NULL, message, sizeof(message));

	if (err) {
		assert_null(*r);
		assert_in_range(strlen(message), 10, 255);
		assert_non_null(strstr(message, path));
	}
	return err;
}

static void make_box(struct bb *b)
{
	bb_init(b);
	b->super->uid = geteuid();
	bb_record(bb_chunk(b, 1, 0, 30000000), 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
}

static void paths_that_are_no_boxes(void **state)
{
	struct tacho_reader *r;
	struct bb b;

	(void)state;
	make_box(&b);
	save("box", b.data, b.size);
	assert_int_equal(try_path(&r, in_folder("absent")), -ENOENT);
	assert_int_equal(symlink("box", in_folder("link")), 0);
	assert_int_equal(try_path(&r, in_folder("link")), -ELOOP);
	assert_int_equal(symlink("circle", in_folder("circle")), 0);
	assert_int_equal(try_path(&r, in_folder("circle")), -ELOOP);
	assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
	assert_int_equal(try_path(&r, in_folder("fifo")), -EINVAL);
	assert_int_equal(try_path(&r, "/dev/null"), -EINVAL);
	assert_int_equal(try_path(&r, save("empty", "", 0)), -EBADMSG);
	assert_int_equal(mkdir(in_folder("folder"), 0700), 0);
	assert_int_equal(try_path(&r, in_folder("folder")), -EBADMSG);
	assert_int_equal(try_path(&r, in_folder("box")), 0);
	assert_int_equal(tacho_read_process(r, 0)->alive, TACHO_ALIVE_NO);
	assert_true(tacho_read_process(r, 0)->used_bytes > 0);
	assert_int_equal(count_events(r), 1);
	tacho_read_close(r);
	/* No room for the sentence is no reason to fail differently. */
	assert_int_equal(tacho_read_open(&r, in_folder("absent"), NULL, NULL, 0), -ENOENT);
	bb_free(&b);
}

static void boxes_of_others_are_refused(void **state)
{
	struct tacho_reader *r;
	const char *path;
	struct bb b;

	(void)state;
	if (geteuid() != 0)
		skip();
	make_box(&b);
	path = save("foreign", b.data, b.size);
	assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
	/* It says that root recorded it. */
	assert_int_equal(try_path(&r, path), -EPERM);
	b.super->uid = 12345;
	path = save("foreign", b.data, b.size);
	assert_int_equal(try_path(&r, path), 0);
	tacho_read_close(r);
	/* Another user, who may open the file. */
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(seteuid(54321), 0);
	assert_int_equal(try_path(&r, path), -EPERM);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(seteuid(12345), 0);
	assert_int_equal(try_path(&r, path), 0);
	assert_int_equal(seteuid(0), 0);
	tacho_read_close(r);
	bb_free(&b);
}

/* Field 22 of /proc/self/stat. */
static uint64_t own_start_time(void)
{
	char text[1024] = "", *p;
	FILE *f = fopen("/proc/self/stat", "r");
	unsigned long long start;

	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	p = strrchr(text, ')');
	assert_int_equal(sscanf(p,
				") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
				"%*s %*s %*s %*s %llu",
				&start),
			 1);
	return start;
}

static void own_boot_id(uint8_t id[16])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

	assert_non_null(f);
	for (int i = 0; i < 16; i++) {
		unsigned byte;

		if (i == 4 || i == 6 || i == 8 || i == 10)
			fgetc(f);
		assert_int_equal(fscanf(f, "%2x", &byte), 1);
		id[i] = (uint8_t)byte;
	}
	fclose(f);
}

static int alive(const char *path)
{
	struct tacho_reader *r;
	int result;

	assert_int_equal(try_path(&r, path), 0);
	result = tacho_read_process(r, 0)->alive;
	tacho_read_close(r);
	return result;
}

static void a_process_lives_while_it_maps_its_box(void **state)
{
	const char *path;
	struct bb b;
	void *map;
	int fd;

	(void)state;
	make_box(&b);
	b.super->pid = (uint32_t)getpid();
	b.super->start_time = own_start_time();
	own_boot_id(b.super->boot_id);
	b.super->clock = TACHO_CLOCK_MONOTONIC;
	path = save("mine", b.data, b.size);
	/* As after exec: the pid and the start time are right, the mapping is gone. */
	assert_int_equal(alive(path), 0);
	fd = open(path, O_RDONLY);
	map = mmap(NULL, b.size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(alive(path), 1);
	b.super->start_time++;
	save("mine", b.data, b.size);
	assert_int_equal(alive(path), 0);
	b.super->start_time--;
	b.super->boot_id[3] ^= 1;
	save("mine", b.data, b.size);
	assert_int_equal(alive(path), 0);
	munmap(map, b.size);
	close(fd);
	bb_free(&b);
}

static void a_box_cut_to_any_size_is_read_as_far_as_it_goes(void **state)
{
	struct tacho_reader *r;
	char message[256];
	const char *path;
	struct bb b;

	(void)state;
	make_box(&b);
	path = save("cut", b.data, b.size);
	for (off_t size = (off_t)b.size; size >= 0; size -= 4096) {
		int err;

		assert_int_equal(truncate(path, size), 0);
		err = tacho_read_open(&r, path, NULL, message, sizeof(message));
		if (!err)
			count_events(r);
		else
			assert_int_equal(err, -EBADMSG);
		tacho_read_close(r);
	}
	bb_free(&b);
}

/* ------------------------------------------------- rewritten while it is read */

struct writer {
	struct bb *b;
	int stop;
};

/* Stores as a recorder does: one stream, in eight slots over and over. Each record holds
   its own number in the stream. */
static void *write_on(void *arg)
{
	struct writer *w = arg;
	uint64_t records = 0, ticks = 40000000;
	uint32_t slot = 0;

	for (uint32_t sequence = 0; !__atomic_load_n(&w->stop, __ATOMIC_RELAXED); sequence++) {
		uint8_t *at = (uint8_t *)bb_region(w->b, TACHO_REGION_POOL) +
			      (uint64_t)slot * TACHO_SLOT_SIZE;
		struct tacho_chunk *c = (struct tacho_chunk *)at;
		struct tacho_box_slot *slots = bb_region(w->b, TACHO_REGION_SLOTS);
		uint64_t commit = TACHO_CHUNK_HEAD;

		__atomic_store_n(&c->generation, 0, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		__atomic_store_n(&slots[slot].state, TACHO_SLOT_WHOLE | 1ull << 8 | 1ull << 40,
				 __ATOMIC_RELEASE);
		c->magic = TACHO_CHUNK_MAGIC;
		c->size = TACHO_SLOT_SIZE;
		c->flags = 0;
		c->thread = 1;
		c->sequence = sequence;
		c->prior_records = records;
		c->anchor = (struct tacho_anchor){ticks, bb_ns(ticks), 0};
		__atomic_store_n(&c->commit, commit, __ATOMIC_RELAXED);
		__atomic_store_n(&c->generation,
				 __atomic_add_fetch(&w->b->super->generation, 1, __ATOMIC_RELAXED),
				 __ATOMIC_RELEASE);
		while (commit + 16 <= TACHO_SLOT_SIZE) {
			uint64_t *p = (uint64_t *)(at + commit);

			p[0] = tacho_record_head(TACHO_REC_WAKE, 0) | 3ull << 32;
			p[1] = records++;
			ticks += 3;
			commit += 16;
			__atomic_store_n(&c->commit, commit, __ATOMIC_RELEASE);
		}
		c->flags = TACHO_CHUNK_SEALED;
		slot = (slot + 1) % BB_SLOTS;
	}
	return NULL;
}

static void a_box_that_is_rewritten_gives_no_false_record(void **state)
{
	struct writer w = {0};
	const struct tacho_event *e;
	struct tacho_reader *r;
	uint64_t events = 0;
	struct bb b, on_file;
	pthread_t thread;
	int fd;

	(void)state;
	make_box(&b);
	b.super->slots_used = BB_SLOTS;
	memset(bb_region(&b, TACHO_REGION_SLOTS), 0, BB_SLOTS * sizeof(struct tacho_box_slot));
	fd = open(save("busy", b.data, b.size), O_RDWR);
	on_file.size = b.size;
	on_file.data = mmap(NULL, b.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(on_file.data != MAP_FAILED);
	on_file.super = (struct tacho_box_super *)on_file.data;
	w.b = &on_file;
	assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
	/* On a busy machine the writer may come late. */
	for (int round = 0; round < 300 || (!events && round < 1000000); round++) {
		uint64_t next = 0;

		assert_int_equal(try_path(&r, in_folder("busy")), 0);
		while (tacho_read_next(r, &e) > 0) {
			if (e->type == TACHO_EV_RESUME) {
				next = e->resume->first ? UINT64_MAX : next + e->resume->missing;
				continue;
			}
			assert_int_equal(e->type, TACHO_EV_WAKE);
			if (next != UINT64_MAX)
				assert_int_equal(e->word[0], next);
			next = e->word[0] + 1;
			events++;
		}
		assert_int_equal(problems_named(r, "bad-record"), 0);
		assert_int_equal(problems_named(r, "bad-chunk"), 0);
		tacho_read_close(r);
	}
	__atomic_store_n(&w.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(events > 0);
	munmap(on_file.data, on_file.size);
	close(fd);
	bb_free(&b);
}

static int make_folder(void **state)
{
	(void)state;
	/* Where boxes lie, if there is such a place here. */
	snprintf(folder, sizeof(folder), "%s/tacho-test-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"box",     "link", "circle", "fifo", "empty",
					    "foreign", "mine", "cut",	 "busy"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_folder(names[i]));
	rmdir(in_folder("folder"));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_that_are_no_boxes),
		cmocka_unit_test(boxes_of_others_are_refused),
		cmocka_unit_test(a_process_lives_while_it_maps_its_box),
		cmocka_unit_test(a_box_cut_to_any_size_is_read_as_far_as_it_goes),
		cmocka_unit_test(a_box_that_is_rewritten_gives_no_false_record),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
