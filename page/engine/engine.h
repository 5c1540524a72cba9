/*
 * The page's engine: a trace in memory, all that is known of it, and pictures of it. Compiled to
 * WASM; the page calls what is exported from a worker. Times are ns since the beginning of the
 * window, as doubles, which hold a hundred days of them exactly. Answers are JSON.
 */
#ifndef TACHO_PAGE_ENGINE_H
#define TACHO_PAGE_ENGINE_H

#include <stdint.h>
#include <stdio.h>

#include "explain/explain.h"
#include "read/records.h"
#include "text/json.h"
#include "view/view.h"

#define EXPORT(name) __attribute__((export_name(#name)))

struct page {
	void *data;
	size_t size;
	struct tacho_reader *reader;
	struct tacho_reader *again; /* see page_again */
	struct tacho__explaining *loading;	/* NULL: it is loaded */
	struct tacho__explanation *explanation; /* NULL until then, and where that was stopped */
	struct tacho__facts watcher;
	struct tacho__waits waits;
	struct tacho__view view;
	uint64_t first_ns, last_ns;
	/* How far loading is: where, and how much there is to read of each process and in all. */
	uint32_t at_process;
	uint64_t at_ns, events;
	uint32_t *weights, weight;
	double stopped; /* where: part of the trace; 0: it was not */
	char message[512]; /* why a trace can not be shown */
	/* The last answer. */
	char *answer;
	size_t answer_size;
	FILE *out;
};
extern struct page page;

/* An answer is between these. */
void answer_begin(struct json *j);
const char *answer_end(struct json *j);

/* Another answer: an object that says why there is none, which the page shows. */
const char *answer_failed(int error);

/* Another reader of the trace, for questions: the one that loads it goes on undisturbed. Of what is
   between two times; 0, 0: of all. NULL: there is no memory. */
struct tacho_reader *page_again(uint64_t from_ns, uint64_t to_ns);

/* Behind the origin, as the page counts. */
static inline uint64_t at_time(double ns)
{
	return page.first_ns + (ns > 0 ? (uint64_t)ns : 0);
}

static inline double since(uint64_t ns)
{
	return (double)(int64_t)(ns - page.first_ns);
}

#endif
