/* What damage_trace.c damages: a process records and crashes, its box becomes a trace. Include
   after cmocka.h. */
#ifndef TESTS_DAMAGE_RECORD_H
#define TESTS_DAMAGE_RECORD_H

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "write/trace_write.h"
#include "tacho.h"
#include "tacho_read.h"

#define WORKERS 5u
#define ROUNDS 220u
#define RECORDED (WORKERS * ROUNDS * 11 + 1)

static struct tacho_name loop = TACHO_LOOP("loop");
static struct tacho_name kinds[] = {TACHO_KIND("one"), TACHO_KIND("two"), TACHO_KIND("three")};
static struct tacho_name span = TACHO_SPAN_NAME("span");
static struct tacho_name counter = TACHO_COUNTER("counter", "things");
TACHO_EVENT(an_event, (u64, number), (string, text), (opt_f64, ratio))

static void *worker(void *arg)
{
	unsigned which = (unsigned)(uintptr_t)arg;
	double ratio = 0.5;
	char name[16];

	snprintf(name, sizeof(name), "worker%u", which);
	pthread_setname_np(pthread_self(), name);
	for (unsigned i = 0; i < ROUNDS; i++) {
		/* The next chunk has another name, and so a block of its own. */
		if (i == ROUNDS / 2)
			pthread_setname_np(pthread_self(), "renamed");
		tacho_park(&loop);
		tacho_unpark(&loop, i % 3);
		tacho_task_spawn(i, &kinds[i % 3], 0, NULL);
		tacho_poll_begin(&kinds[i % 3], i % 17);
		tacho_wake((i + 1) % 17);
		tacho_span_begin(&span);
		tacho_counter(&counter, (int64_t)i * which);
		tacho_span_end(&span);
		tacho_poll_end(TACHO_PENDING);
		tacho_event_an_event(i, name, i % 2 ? &ratio : NULL);
		tacho_log(3, "a line of text that is somewhat longer than the rest");
	}
	return NULL;
}

static inline void record_and_crash(const char *folder, const char *path)
{
	struct tacho_options options = TACHO_OPTIONS_INIT;
	struct rlimit none = {0, 0};
	pthread_t threads[WORKERS];

	setrlimit(RLIMIT_CORE, &none);
	options.max_bytes = 4 << 20;
	setenv("TACHO_BOX_DIR", folder, 1); /* the environment wins over options */
	options.crash_file = path;
	/* Ticks are nanoseconds, whichever blocks are lost: times can be compared exactly. */
	options.clock = TACHO_CLOCK_OPTION_MONOTONIC;
	if (tacho_start(&options))
		_exit(1);
	for (uintptr_t i = 0; i < WORKERS; i++)
		if (pthread_create(&threads[i], NULL, worker, (void *)(i + 1)))
			_exit(2);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	tacho_trigger("a reason");
	abort();
}

static inline void dump_box(const char *folder, const char *path)
{
	struct tacho__trace_options options = {.taken_by = TACHO_TAKEN_RECOVER};
	struct tacho_reader *reader;
	char box[600] = "", message[300] = "";
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int fd;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (strstr(entry->d_name, ".box"))
			snprintf(box, sizeof(box), "%s/%s", folder, entry->d_name);
	closedir(dir);
	if (tacho_read_open(&reader, box, NULL, message, sizeof(message)))
		fail_msg("%s", message);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	if (tacho__trace_write(reader, fd, &options, NULL, message, sizeof(message)))
		fail_msg("%s", message);
	close(fd);
	tacho_read_close(reader);
	unlink(box);
}

#endif
