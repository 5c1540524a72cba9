#include "import/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "read/input.h"

#define BUFFER_BYTES 65536u

struct tacho__stream {
	int fd;
	int packed;
	z_stream z; /* its input is the buffer, also of a file that is not packed */
	uint64_t read, size, given;
	const char *problem;
	uint8_t buffer[BUFFER_BYTES];
};

/* More input; 0: there is none. */
static int fill(struct tacho__stream *s)
{
	ssize_t n;

	do
		n = read(s->fd, s->buffer, sizeof(s->buffer));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		s->problem = "it cannot be read any further";
	s->z.next_in = s->buffer;
	s->z.avail_in = n > 0 ? (unsigned)n : 0;
	s->read += s->z.avail_in;
	return n > 0;
}

static int open_regular(const char *path, uint64_t *size)
{
	struct stat st;
	int fd = tacho__open_any(path, &st);

	if (fd < 0)
		return fd;
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

struct tacho__stream *tacho__stream_open(const char *path, int *error)
{
	struct tacho__stream *s = calloc(1, sizeof(*s));

	*error = -ENOMEM;
	if (!s)
		return NULL;
	s->fd = open_regular(path, &s->size);
	if (s->fd < 0) {
		*error = s->fd;
		free(s);
		return NULL;
	}
	fill(s);
	s->packed = s->z.avail_in >= 2 && s->buffer[0] == 0x1f && s->buffer[1] == 0x8b;
	if (s->packed && inflateInit2(&s->z, 15 + 16) != Z_OK) {
		close(s->fd);
		free(s);
		return NULL;
	}
	*error = 0;
	return s;
}

void tacho__stream_close(struct tacho__stream *s)
{
	if (!s)
		return;
	if (s->packed)
		inflateEnd(&s->z);
	close(s->fd);
	free(s);
}

static size_t copy(struct tacho__stream *s, uint8_t *to, size_t size)
{
	size_t n = s->z.avail_in < size ? s->z.avail_in : size;

	memcpy(to, s->z.next_in, n);
	s->z.next_in += n;
	s->z.avail_in -= (unsigned)n;
	return n;
}

static size_t unpack(struct tacho__stream *s, uint8_t *to, size_t size)
{
	int result;

	s->z.next_out = to;
	s->z.avail_out = size < 1u << 30 ? (unsigned)size : 1u << 30;
	size = s->z.avail_out;
	result = inflate(&s->z, Z_NO_FLUSH);
	if (result == Z_STREAM_END) {
		/* Zeros behind the last member are padding. */
		if ((s->z.avail_in || fill(s)) && *s->z.next_in == 0x1f)
			inflateReset(&s->z);
		else
			s->size = s->read = s->given = TACHO__STREAM_MAX;
	} else if (result != Z_OK && result != Z_BUF_ERROR) {
		s->problem = "its gzip is damaged";
	}
	return size - s->z.avail_out;
}

size_t tacho__stream_read(struct tacho__stream *s, void *to, size_t size)
{
	size_t done = 0;

	while (done < size && !s->problem && s->given < TACHO__STREAM_MAX) {
		size_t n;

		if (!s->z.avail_in && !fill(s)) {
			if (s->packed && !s->problem)
				s->problem = "its gzip ends early";
			break;
		}
		n = s->packed ? unpack(s, (uint8_t *)to + done, size - done)
			      : copy(s, (uint8_t *)to + done, size - done);
		done += n;
		if (s->given < TACHO__STREAM_MAX)
			s->given += n;
	}
	return done;
}

const char *tacho__stream_problem(const struct tacho__stream *s)
{
	return s->problem;
}

uint64_t tacho__stream_size(const struct tacho__stream *s)
{
	return s->size;
}

void tacho__stream_progress(const struct tacho__stream *s, uint64_t *done, uint64_t *total)
{
	*done = s->read;
	*total = s->size;
}
