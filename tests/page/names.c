/*
 * A program that names things as nobody should: with markup, scripts, control characters, other
 * directions of writing, and bytes that are no text. What shows its trace must show them, and do
 * nothing that they say.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tacho.h"

#define SCRIPT "<img src=x onerror=\"document.title='executed'\">"

static struct tacho_name loop = TACHO_LOOP("<b>loop</b>" SCRIPT);
static struct tacho_name kinds[] = {
	TACHO_KIND("<script>document.title='executed'</script>"),
	TACHO_KIND(SCRIPT),
	TACHO_KIND("\x1b[31mred\x1b[0m\x07\x01 tab\there\nnext line"),
	TACHO_KIND("\"quoted\" & 'quoted' \\ </td></table>"),
	TACHO_KIND("\xe2\x80\xae"
		   "backwards \xff\xfe no text"),
	TACHO_KIND("${document.title='executed'} {{constructor}} javascript:alert(1)"),
};
static struct tacho_name waits = TACHO_TEXT(SCRIPT);
static struct tacho_name span = TACHO_SPAN_NAME(SCRIPT);
static struct tacho_name counter = TACHO_COUNTER(SCRIPT, "<i>things</i>");

int main(int argc, char **argv)
{
	const char *file = getenv("TACHO_CASE_FILE");
	struct tacho_options options = {.size = sizeof(options), .service = SCRIPT};
	const size_t n = sizeof(kinds) / sizeof(kinds[0]);
	/* "nothing": it records nothing. */
	const uint64_t turns = argc > 1 && strcmp(argv[1], "nothing") == 0 ? 0 : 200;
	int fd;

	if (tacho_start(&options) < 0)
		return 1;
	if (turns)
		tacho_loop(&loop);
	for (uint64_t i = 0; i < turns; i++) {
		struct tacho_name *kind = &kinds[i % n];

		tacho_task_spawn(i + 1, kind, 0, TACHO_HERE);
		tacho_unpark(&loop, 1);
		tacho_poll_begin(kind, i + 1);
		tacho_span_begin(&span);
		tacho_span_trace_id(0, 0x0123456789abcdef, 0xfedcba9876543210);
		usleep(i % 40 ? 200 : 30000);
		tacho_counter(&counter, (int64_t)i);
		tacho_span_end(&span);
		tacho_task_waits(i + 1, &waits, i, 0);
		tacho_poll_end(TACHO_PENDING);
		tacho_park(&loop);
		tacho_log(1, SCRIPT);
	}
	fd = file ? open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	return fd < 0 || tacho_snapshot(fd) < 0;
}
