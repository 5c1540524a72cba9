/*
 * The page over HTTP, for the person who started it: on 127.0.0.1, under an address that holds a
 * secret, and to no other page. What is answered beyond the files of the page is `answer`'s.
 */
#ifndef TACHO_SERVE_SITE_H
#define TACHO_SERVE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file of the page, compressed by gzip. */
struct tacho__asset {
	const char *name; /* "page.js" */
	const char *type; /* "text/javascript" */
	const uint8_t *data;
	size_t size;
};
extern const struct tacho__asset tacho__assets[];
extern const size_t tacho__asset_count;
extern const struct tacho__asset tacho__alone_page; /* all of it in one file; see alone.h */

/* What is answered to a request. */
struct tacho__answer {
	unsigned status; /* 404 to begin with */
	const char *type;
	char *data; /* by malloc(3), which the site frees; NULL: `fd` */
	uint64_t size;
	int fd;	      /* a regular file, which the site closes; -1: `data` */
	uint64_t tag; /* of a file: another one when its bytes have changed */
};

/* A file that is sent, as a whole or in ranges; -errno when it is no regular file. Takes `fd` over. */
int tacho__answer_file(struct tacho__answer *a, int fd);
/* A sentence. */
void tacho__answer_text(struct tacho__answer *a, unsigned status, const char *text);
/* What was written to the memory stream of `data` and `size`, in JSON. */
void tacho__answer_json(struct tacho__answer *a, char *data, size_t size);
/* What a page is told first: that this shows a "trace" or a "folder", and its name. */
void tacho__answer_what(struct tacho__answer *a, const char *shows, const char *name);

struct tacho__site_options {
	uint16_t port; /* 0: any */
	/* What follows the secret, decoded, "" or without a slash in front, and no file of the page;
	   `post`: something is to be done. Called in a thread of the site's own, one at a time: it
	   must not take long. */
	void (*answer)(void *arg, const char *path, bool post, struct tacho__answer *answer);
	void *arg;
};

struct tacho__site;

/* NULL with a sentence in `message`. */
struct tacho__site *tacho__site_start(const struct tacho__site_options *options, char *message,
				      size_t message_size);
/* "http://127.0.0.1:4711/SECRET/" */
const char *tacho__site_address(const struct tacho__site *site);
void tacho__site_stop(struct tacho__site *site);

#endif
