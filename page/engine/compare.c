/* The trace that is shown beside another, which is only read for that. */
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "engine.h"

static void *other;
static size_t other_size;

/* Room for another trace of `size` bytes, which the caller fills. NULL: there is not that much memory. */
EXPORT(page_other_room) void *page_other_room(size_t size)
{
	free(other);
	other = malloc(size);
	other_size = size;
	return other;
}

/* As `tacho diff --json`, byte for byte but for the spaces; the other is the first of the two, or the
   second. Else a text that says why they can not be compared. */
EXPORT(page_diff) const char *page_diff(uint32_t other_is_first)
{
	struct tacho_reader *reader = NULL;
	struct tacho__diff_options options = {0};
	struct tacho__diff *d = NULL;
	char message[512] = "";
	int error =
		tacho_read_open_memory(&reader, other, other_size, NULL, message, sizeof(message));
	struct json j;

	if (!error)
		error = tacho_read_seek(page.reader, 0);
	if (error >= 0) {
		d = other_is_first ? tacho__diff_make(reader, page.reader, &options, &error)
				   : tacho__diff_make(page.reader, reader, &options, &error);
		if (!d)
			snprintf(message, sizeof(message), "cannot compare: %s.", strerror(-error));
	}
	answer_begin(&j);
	if (d)
		answer_diff(&j, d);
	else
		json_string(&j, message);
	tacho__diff_free(d);
	tacho_read_close(reader);
	free(other);
	other = NULL;
	return answer_end(&j);
}
