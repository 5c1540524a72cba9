/* Runs an importer over bytes, and reads the trace that comes out: whatever went in, that is whole. */
#ifndef TACHO_TESTS_FUZZ_IMPORT_H
#define TACHO_TESTS_FUZZ_IMPORT_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_read.h"
#include "import/import.h"

/* The bytes as a file, under a name that can be opened; kept from one input to the next. */
static inline int fuzz_file(int *fd, const char *name, const void *data, size_t size)
{
	if (*fd < 0)
		*fd = memfd_create(name, MFD_CLOEXEC);
	FUZZ_CHECK(*fd >= 0 && !ftruncate(*fd, 0) && !lseek(*fd, 0, SEEK_SET));
	return write(*fd, data, size) == (ssize_t)size;
}

static inline void fuzz_imported(int fd)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho_reader *r = NULL;
	const struct tacho_event *e;
	uint64_t last = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FUZZ_CHECK(tacho_read_open(&r, path, &options, NULL, 0) >= 0);
	while (tacho_read_next(r, &e) == 1) {
		FUZZ_CHECK(e->ns >= last);
		last = e->ns;
	}
	FUZZ_CHECK(tacho_read_problem_count(r) == 0);
	tacho_read_close(r);
}

/* Writing takes far longer than importing: it is done for what is small. */
#define FUZZ_WRITTEN 2000u

static inline void fuzz_import(const struct tacho__importer *importer, const uint8_t *data,
			       size_t size)
{
	static int in = -1, out = -1;
	char path[64], message[512] = "";
	const char *const paths[] = {path};
	struct tacho__importing i = {.made = tacho__made_new(),
				     .paths = paths,
				     .path_count = 1,
				     .message = message,
				     .message_size = sizeof(message)};
	int err;

	FUZZ_CHECK(i.made && fuzz_file(&in, "in", data, size));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", in);
	err = importer->import(&i);
	FUZZ_CHECK(!err == !message[0]);
	if (!err && tacho__made_events(i.made) <= FUZZ_WRITTEN) {
		FUZZ_CHECK(fuzz_file(&out, "out", NULL, 0));
		FUZZ_CHECK(!tacho__made_write(i.made, out, NULL, message, sizeof(message)));
		fuzz_imported(out);
	}
	tacho__made_free(i.made);
}

#endif
