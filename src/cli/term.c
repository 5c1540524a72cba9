/*
 * What only a terminal sees: colours and the progress line.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "text/text.h"

#define NAMES_LEAST 20u
#define PROGRESS_FIRST_NS 300000000ull /* shorter work shows nothing */
#define PROGRESS_EVERY_NS 100000000ull

const char *cli_colour(FILE *stream, enum cli_colour colour)
{
	static const char *const sequences[] = {"\033[0m",  "\033[1m",	"\033[2m",
						"\033[31m", "\033[32m", "\033[33m"};
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no_color && no_color[0])
		return "";
	if (!term || !term[0] || strcmp(term, "dumb") == 0)
		return "";
	return isatty(fileno(stream)) ? sequences[colour] : "";
}

size_t cli_columns(FILE *stream)
{
	struct winsize size;

	if (!isatty(fileno(stream)) || ioctl(fileno(stream), TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}

size_t cli_table_names(size_t most, size_t numbers)
{
	size_t columns = cli_columns(stdout);

	if (!columns || columns >= most + numbers)
		return most;
	return columns > NAMES_LEAST + numbers ? columns - numbers : NAMES_LEAST;
}

void cli_table_name(const char *name, size_t width)
{
	text_put_wide(stdout, name, width);
	if (text_width(name) > width)
		printf("\n%*s", (int)width, "");
}

void cli_table_remark(const char *remark, size_t used)
{
	size_t columns = cli_columns(stdout);

	if (remark[0]) {
		fputs(columns && used + 2 + text_width(remark) > columns ? "\n    " : "  ", stdout);
		text_put(stdout, remark);
	}
	printf("%s\n", cli_colour(stdout, CLI_PLAIN));
}

void cli_progress_begin(struct cli_progress *p, const char *what)
{
	p->what = what;
	p->visible = false;
	p->shown_ns = tacho__clock_ns(CLOCK_MONOTONIC) + PROGRESS_FIRST_NS - PROGRESS_EVERY_NS;
}

void cli_progress(void *arg, uint64_t done, uint64_t total)
{
	struct cli_progress *p = arg;
	uint64_t now;

	if (!isatty(STDERR_FILENO))
		return;
	now = tacho__clock_ns(CLOCK_MONOTONIC);
	if (now < p->shown_ns + PROGRESS_EVERY_NS)
		return;
	p->shown_ns = now;
	p->visible = true;
	fputs("\r", stderr);
	text_put(stderr, p->what);
	if (total > 0)
		fprintf(stderr, " %3.0f %%",
			100.0 * (double)(done < total ? done : total) / (double)total);
	fputs("\033[K", stderr);
	fflush(stderr);
}

void cli_progress_at(void *arg, uint64_t ns)
{
	(void)ns;
	cli_progress(arg, 0, 0);
}

void cli_progress_end(struct cli_progress *p)
{
	if (p->visible)
		fputs("\r\033[K", stderr);
	p->visible = false;
}
