#include "serve/alone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/asset.h"

#define MARK "<!-- trace -->\n" /* as in page/alone.py */
#define PIECE (3u << 20)	/* of a trace, in one script; a multiple of 3 */

/* `out` has room for 4 characters for each 3 bytes begun. */
static size_t to_base64(char *out, const uint8_t *in, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = 0;

	for (size_t i = 0; i < size; i += 3) {
		uint32_t word = (uint32_t)in[i] << 16 |
				(i + 1 < size ? (uint32_t)in[i + 1] << 8 : 0) |
				(i + 2 < size ? in[i + 2] : 0);

		out[n++] = digits[word >> 18];
		out[n++] = digits[word >> 12 & 63];
		out[n++] = i + 1 < size ? digits[word >> 6 & 63] : '=';
		out[n++] = i + 2 < size ? digits[word & 63] : '=';
	}
	return n;
}

static int read_piece(int fd, uint64_t at, uint8_t *to, size_t size)
{
	for (size_t got = 0; got < size;) {
		ssize_t n = pread(fd, to + got, size - got, (off_t)(at + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		got += (size_t)n;
	}
	return 0;
}

static int put_trace(FILE *out, int fd, uint64_t size)
{
	uint8_t *bytes = malloc(PIECE);
	char *text = malloc(PIECE / 3 * 4);
	int error = bytes && text ? 0 : -ENOMEM;

	for (uint64_t at = 0; !error && at < size; at += PIECE) {
		size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;

		error = read_piece(fd, at, bytes, n);
		if (error)
			break;
		fputs("<script type=\"text/plain\" class=\"trace\">", out);
		fwrite(text, 1, to_base64(text, bytes, n), out);
		fputs("</script>\n", out);
	}
	free(bytes);
	free(text);
	return error;
}

int tacho__alone_write(FILE *out, int fd, uint64_t size)
{
	size_t page_size = 0;
	char *page = tacho__asset_unpack(&tacho__alone_page, &page_size);
	const char *mark = page ? memmem(page, page_size, MARK, strlen(MARK)) : NULL;
	int error = mark ? 0 : -ENOMEM;

	if (mark) {
		size_t before = (size_t)(mark - page);

		fwrite(page, 1, before, out);
		if (fd >= 0)
			error = put_trace(out, fd, size);
		fwrite(mark, 1, page_size - before, out);
	}
	free(page);
	if (!error && (fflush(out) || ferror(out)))
		error = errno ? -errno : -EIO;
	return error;
}
