#include "engine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct page page;

/* ---------------------------------------------------------------------- load */

static void load_stop(void)
{
	if (page.loading)
		page.explanation = tacho__explain_end(page.loading);
	page.loading = NULL;
}

/* Room for a trace of `size` bytes, which the caller fills. NULL: there is not that much memory. */
EXPORT(page_room) void *page_room(size_t size)
{
	load_stop();
	tacho__explanation_free(page.explanation);
	tacho_read_close(page.reader);
	tacho_read_close(page.again);
	if (page.data)
		tacho__view_free(&page.view);
	free(page.data);
	free(page.answer);
	free(page.weights);
	memset(&page, 0, sizeof(page));
	page.data = malloc(size);
	page.size = size;
	return page.data;
}

static int say(int error)
{
	snprintf(page.message, sizeof(page.message),
		 error == -ENOMEM ? "This trace needs more memory than the browser gives a page."
				  : "This trace can not be read to its end.");
	return error;
}

/* How much there is to read of each process. */
static int weigh(void)
{
	uint32_t processes = tacho_read_process_count(page.reader);

	page.weights = calloc(processes + 1u, sizeof(*page.weights));
	if (!page.weights)
		return say(-ENOMEM);
	for (uint32_t i = 0; i < tacho__stretch_count(page.reader); i++) {
		uint32_t process = tacho__stretch_at(page.reader, i)->process;

		page.weights[process < processes ? process : processes]++;
		page.weight++;
	}
	return 0;
}

/* Opens it. 0 or a negative errno; page_message says why. */
EXPORT(page_load_begin) int page_load_begin(void)
{
	struct tacho__explain_options options = {0};
	int error = tacho_read_open_memory(&page.reader, page.data, page.size, NULL, page.message,
					   sizeof(page.message));

	if (error < 0)
		return error;
	tacho__view_init(&page.view, page.reader);
	page.first_ns = page.view.first_ns;
	page.last_ns = page.view.last_ns;
	page.watcher = tacho__view_facts(&page.view);
	page.waits = tacho__view_waits(&page.view);
	options.watcher = &page.watcher;
	options.waits = &page.waits;
	page.loading = tacho__explain_begin(page.reader, &options);
	return page.loading ? weigh() : say(-ENOMEM);
}

/* Reads so many events more. 1: there are more; 0: it is loaded; or a negative errno. */
EXPORT(page_load_some) int page_load_some(uint32_t events)
{
	int result = tacho__explain_some(page.loading, events, &page.at_process, &page.at_ns);

	page.events += events;
	if (result > 0)
		return result;
	load_stop();
	tacho__view_end(&page.view);
	return result < 0 ? say(result) : 0;
}

/* What part of the trace has been read. */
EXPORT(page_share) double page_share(void)
{
	double before = 0, first, last;
	uint64_t from = 0, to = 0;

	if (!page.loading)
		return 1;
	for (uint32_t i = 0; i < page.at_process; i++)
		before += page.weights[i];
	/* While it is loaded, the window is that of the process. */
	if (tacho_read_window(page.reader, &from, &to) < 0 || page.at_ns < from || to <= from)
		return before / (page.weight + 1);
	first = (double)(page.at_ns - from);
	last = (double)(to - from);
	return (before + page.weights[page.at_process] * (first / last)) / (page.weight + 1);
}

/* What was read so far is all there is. Half a trace is not judged: nothing is found in it, as in
   one without events. */
EXPORT(page_load_stop) int page_load_stop(void)
{
	int error;

	if (!page.loading)
		return 0;
	page.stopped = page_share();
	load_stop();
	error = tacho__read_limit(page.reader, 1, 1);
	if (!error)
		page.explanation = tacho__explain(page.reader, NULL, &error);
	if (!error)
		error = tacho__read_limit(page.reader, 0, 0);
	return error ? say(error) : 0;
}

EXPORT(page_load) int page_load(void)
{
	int result = page_load_begin();

	while (result >= 0 && page.loading)
		result = page_load_some(1u << 20);
	return result;
}

EXPORT(page_events) double page_events(void)
{
	return (double)page.events;
}

EXPORT(page_message) const char *page_message(void)
{
	return page.message;
}

/* ------------------------------------------------------------------- answers */

#define TEXTS 8u

/* Room for a text of `size` bytes that is an argument of the next call; it is ended here. */
EXPORT(page_text) char *page_text(uint32_t slot, size_t size)
{
	static char *texts[TEXTS];

	if (slot >= TEXTS)
		return NULL;
	free(texts[slot]);
	texts[slot] = calloc(1, size + 1);
	return texts[slot];
}

void answer_begin(struct json *j)
{
	free(page.answer);
	page.answer = NULL;
	page.out = open_memstream(&page.answer, &page.answer_size);
	if (!page.out)
		abort();
	json_begin(j, page.out, false);
}

const char *answer_end(struct json *j)
{
	json_end_line(j);
	fclose(page.out);
	return page.answer;
}

/* ------------------------------------------------------------------ pictures */

static struct tacho__box *boxes;
static uint32_t box_capacity;

/* How many boxes there are at page_boxes. */
EXPORT(page_draw)
uint32_t page_draw(uint32_t lane, uint32_t row, double from, double to, uint32_t columns)
{
	const struct tacho__row *r = tacho__view_row(&page.view, lane, row);
	uint32_t most = 2 * columns;

	if (!r || !(from < to))
		return 0;
	if (most > box_capacity) {
		free(boxes);
		boxes = malloc(most * sizeof(*boxes));
		box_capacity = boxes ? most : 0;
	}
	from = from < 0 ? 0 : from;
	return tacho__track_draw(&r->track, page.first_ns, page.first_ns + (uint64_t)from,
				 page.first_ns + (uint64_t)to, columns, boxes, box_capacity);
}

EXPORT(page_boxes) const struct tacho__box *page_boxes(void)
{
	return boxes;
}

/* ------------------------------------------------------------------- curves */

static float *values;
static uint32_t value_capacity;

static float *room_for(uint32_t count)
{
	if (count > value_capacity) {
		free(values);
		values = malloc(count * sizeof(*values));
		value_capacity = values ? count : 0;
	}
	return values;
}

/* What part of each column the thread was in turns, and not parked. */
static void draw_busy(const struct tacho__lane *l, uint64_t from, double width, uint32_t columns,
		      float *out)
{
	const struct tacho__track *t = NULL;
	uint64_t last = 0; /* that it was seen to do anything */

	for (uint32_t i = 0; i < l->row_count; i++) {
		enum tacho__track_type type = l->rows[i].type;

		if (type == TACHO__TRACK_PARKS)
			t = &l->rows[i].track;
		if ((type == TACHO__TRACK_PARKS || type == TACHO__TRACK_POLLS) &&
		    l->rows[i].track.last_ns > last)
			last = l->rows[i].track.last_ns;
	}
	for (uint32_t i = 0; i < columns; i++) {
		uint64_t begin = from + (uint64_t)(width * i);
		uint64_t end = from + (uint64_t)(width * (i + 1));

		out[i] = NAN;
		if (t && t->count && end > begin && begin < last &&
		    end > tacho__track_at(t, 0).begin_ns)
			out[i] = 1 - (float)((double)tacho__track_busy(t, begin, end) /
					     (double)(end - begin));
	}
}

/* The most of a curve in each of the columns; NaN: nothing is known. NULL: it is no curve. */
EXPORT(page_curve)
const float *page_curve(uint32_t lane, uint32_t row, double from, double to, uint32_t columns)
{
	const struct tacho__row *r = tacho__view_row(&page.view, lane, row);
	float *out = room_for(columns);
	uint64_t begin = page.first_ns + (uint64_t)(from > 0 ? from : 0);
	uint64_t end = page.first_ns + (uint64_t)(to > 0 ? to : 0);

	if (!r || !out || end <= begin)
		return NULL;
	if (r->curve)
		tacho__curve_draw(r->curve, begin, end, columns, out);
	else
		draw_busy(tacho__table_at(&page.view.lanes, lane), begin,
			  (double)(end - begin) / columns, columns, out);
	return out;
}

/* ---------------------------------------------------------------------- map */

static void raise_to(float *at, float value)
{
	if (value > *at)
		*at = value;
}

static void map_things(const struct tacho__lane *l, uint32_t row, double width, uint32_t columns,
		       float *out)
{
	uint32_t count = page_draw(l->entry.index, row, 0, width, columns);

	for (uint32_t i = 0; i < count; i++) {
		float ns = (float)tacho__track_at(&l->rows[row].track, boxes[i].index).ns;
		uint32_t at = (uint32_t)(boxes[i].begin / width * columns);
		uint32_t end = (uint32_t)((boxes[i].begin + boxes[i].ns) / width * columns);

		for (; at <= end && at < columns; at++)
			raise_to(&out[at], ns);
	}
}

/* For each column of the whole window how long the longest thing in it is, of what keeps threads; then
   how long the longest lag is, and how many things wait at most. */
EXPORT(page_map) const float *page_map(uint32_t columns)
{
	static float *map;
	double width = since(page.last_ns) + 1;

	free(map);
	map = calloc(3u * columns, sizeof(*map));
	for (const struct tacho__lane *l = NULL;
	     map && (l = tacho__table_next(&page.view.lanes, l));)
		for (uint32_t r = 0; r < l->row_count; r++) {
			enum tacho__track_type type = l->rows[r].type;
			float *out = map + (type == TACHO__TRACK_WAITING ? 2 * columns : columns);
			const float *curve;

			if (type <= TACHO__TRACK_LOCKS || type == TACHO__TRACK_RUNNABLE ||
			    type == TACHO__TRACK_LATE)
				map_things(l, r, width, columns, map);
			if (type != TACHO__TRACK_WAITING && type != TACHO__TRACK_LAG)
				continue;
			curve = page_curve(l->entry.index, r, 0, width, columns);
			for (uint32_t i = 0; curve && i < columns; i++)
				raise_to(&out[i], curve[i]);
		}
	return map;
}
