#include "serve/asset.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define ROOM_MAX (64u << 20) /* for a file */
#define GZIP 16		     /* zlib's, added to the size of the window */
#define BLANKS " \t"

char *tacho__asset_unpack(const struct tacho__asset *a, size_t *size)
{
	char *page = NULL;
	int result = Z_BUF_ERROR;

	for (size_t room = 8 * a->size; result == Z_BUF_ERROR && room <= ROOM_MAX; room *= 2) {
		z_stream stream = {.next_in = (Bytef *)(uintptr_t)a->data,
				   .avail_in = (uInt)a->size};

		free(page);
		page = malloc(room);
		if (!page || inflateInit2(&stream, MAX_WBITS + GZIP) != Z_OK)
			break;
		stream.next_out = (Bytef *)page;
		stream.avail_out = (uInt)room;
		result = inflate(&stream, Z_FINISH);
		*size = stream.total_out;
		inflateEnd(&stream);
	}
	if (result == Z_STREAM_END)
		return page;
	free(page);
	return NULL;
}

/* Whether the parameters of a coding, from its first semicolon on, are a weight of zero: ";q=0.0". */
static bool is_refused(const char *text, size_t size)
{
	size_t at = strspn(text, BLANKS ";");

	if (at >= size || strncasecmp(text + at, "q=", 2) != 0)
		return false;
	return at + 2 + strspn(text + at + 2, "0.") >= size;
}

void tacho__encodings_take(struct tacho__encodings *e, const char *value)
{
	while (*value) {
		size_t size, name;
		int taken;

		value += strspn(value, BLANKS);
		size = strcspn(value, ",");
		while (size && strchr(BLANKS, value[size - 1]))
			size--;
		name = strcspn(value, BLANKS ";,");
		taken = is_refused(value + name, size - name) ? -1 : 1;
		if ((name == 4 && strncasecmp(value, "gzip", 4) == 0) ||
		    (name == 6 && strncasecmp(value, "x-gzip", 6) == 0))
			e->gzip = taken;
		else if (name == 1 && value[0] == '*')
			e->other = taken;
		value += strcspn(value, ",");
		value += *value == ',';
	}
}

bool tacho__encodings_gzip(const struct tacho__encodings *e)
{
	return e->gzip > 0 || (!e->gzip && e->other > 0);
}
