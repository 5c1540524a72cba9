/* What `tacho view` and `tacho serve` do: a page, served or written to a file. */
#ifndef TACHO_CLI_VIEWING_H
#define TACHO_CLI_VIEWING_H

#include <stdbool.h>
#include <stdint.h>

struct viewing {
	uint64_t port;
	bool no_browser;
	const char *html; /* the file that the page goes to */
	bool force;
};

/* All return an exit status. Without the page (meson's option `page`) there is none. */
#ifdef TACHO_PAGE
/* A trace file, a folder of them, or a box: until Ctrl-C. */
int viewing_serve(const struct viewing *v, const char *path);
int viewing_serve_folder(const struct viewing *v, const char *path);
/* `path`: a trace file or a box; NULL: none. */
int viewing_write(const struct viewing *v, const char *path);
#else
#include "cli/cli.h"
static inline int viewing_write(const struct viewing *v, const char *path)
{
	(void)v;
	(void)path;
	cli_error("this tacho was built without its page; build it with -Dpage=enabled, or use "
		  "'tacho report'.");
	return CLI_FAILED;
}
static inline int viewing_serve(const struct viewing *v, const char *path)
{
	return viewing_write(v, path);
}
static inline int viewing_serve_folder(const struct viewing *v, const char *path)
{
	return viewing_write(v, path);
}
#endif

#endif
