/* Writing a trace to a place that does not take it, or takes it slowly. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "trace_build.h"

static void *data;
static size_t size;

static int make_trace(void **state)
{
	struct build b;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	build_begin(&b);
	build_process(&b);
	build_random_events(&b, 4, 2, 6, 900);
	data = build_end(&b, &size);
	return 0;
}

static int drop_trace(void **state)
{
	(void)state;
	free(data);
	return 0;
}

static int write_to(int fd, struct tacho__trace_result *result, char *message, size_t message_size)
{
	const struct tacho__trace_options options = {.taken_by = TACHO_TAKEN_DUMP};
	struct tacho_reader *reader = open_bytes(data, size);
	int err = tacho__trace_write(reader, fd, &options, result, message, message_size);

	tacho_read_close(reader);
	return err;
}

static void a_full_disk_is_said_to_be_full(void **state)
{
	char message[300];
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(write_to(fd, NULL, message, sizeof(message)), -ENOSPC);
	assert_non_null(strstr(message, "no space left"));
	close(fd);
}

static void a_reader_that_goes_away_is_told_of(void **state)
{
	char message[300];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(write_to(ends[1], NULL, message, sizeof(message)), -EPIPE);
	assert_non_null(strstr(message, "went away"));
	close(ends[1]);
}

static void a_bad_descriptor_is_an_error(void **state)
{
	char message[300];

	(void)state;
	assert_int_equal(write_to(-1, NULL, message, sizeof(message)), -EBADF);
	assert_true(strlen(message) > 20);
	assert_int_equal(write_to(-1, NULL, NULL, 0), -EBADF);
}

static void a_process_that_is_not_there_is_refused(void **state)
{
	const struct tacho__trace_options options = {.process = 5};
	struct tacho_reader *reader = open_bytes(data, size);
	char message[300];

	(void)state;
	assert_int_equal(tacho__trace_write(reader, 1, &options, NULL, message, sizeof(message)),
			 -EINVAL);
	assert_non_null(strstr(message, "process number 5"));
	tacho_read_close(reader);
}

struct drain {
	int fd;
	uint8_t *bytes;
	size_t got;
};

/* Takes a little at a time, so that the writer often finds no room. */
static void *drain_slowly(void *arg)
{
	struct drain *d = arg;
	ssize_t n;

	while ((n = read(d->fd, d->bytes + d->got, 777)) > 0) {
		d->got += (size_t)n;
		usleep(20);
	}
	return NULL;
}

static void a_slow_pipe_gets_everything(void **state)
{
	struct tacho__trace_result result;
	struct drain d = {.bytes = malloc(2 * size + 65536)};
	struct tacho_reader *reader;
	const struct tacho_event *event;
	char message[300];
	uint64_t events = 0;
	pthread_t thread;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fcntl(ends[1], F_SETPIPE_SZ, 4096);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	d.fd = ends[0];
	assert_int_equal(pthread_create(&thread, NULL, drain_slowly, &d), 0);
	assert_int_equal(write_to(ends[1], &result, message, sizeof(message)), 0);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
	assert_int_equal(d.got, result.bytes);
	reader = open_bytes(d.bytes, d.got);
	while (tacho_read_next(reader, &event) == 1)
		events += event->type != TACHO_EV_RESUME;
	assert_int_equal(events, 2 * 6 * 900);
	assert_int_equal(tacho_read_problem_count(reader), 0);
	tacho_read_close(reader);
	free(d.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_is_said_to_be_full),
		cmocka_unit_test(a_reader_that_goes_away_is_told_of),
		cmocka_unit_test(a_bad_descriptor_is_an_error),
		cmocka_unit_test(a_process_that_is_not_there_is_refused),
		cmocka_unit_test(a_slow_pipe_gets_everything),
	};

	return cmocka_run_group_tests(tests, make_trace, drop_trace);
}
