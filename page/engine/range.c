/* Numbers: of all, of a range, and all the times of a piece of the ledger. */
#include <errno.h>

#include "answer/answer.h"
#include "answer/stats.h"
#include "engine.h"
#include "explain/line_times.h"
#include "read/records.h"

#define TIMES 10000u

/* As `tacho stats --json --top N`, byte for byte but for the spaces. */
EXPORT(page_stats) const char *page_stats(uint32_t top)
{
	struct tacho_reader *reader = page_again(0, 0);
	struct stats s = {0};
	int error = reader ? stats_read(&s, reader, NULL, NULL) : -ENOMEM;
	struct json j;

	if (!error) {
		answer_begin(&j);
		answer_stats(&j, &s, top);
	}
	stats_free(&s);
	return error ? answer_failed(error) : answer_end(&j);
}

static uint64_t not_after(uint64_t ns, uint64_t last)
{
	return ns < last ? ns : last;
}

/*
 * The same of what lies between two times, as `--from` and `--to` of the command do; with the ledger
 * of the range, and how many samples are in it.
 */
EXPORT(page_range) const char *page_range(double from, double to, uint32_t top)
{
	uint64_t last = tacho__read_last_ns(page.reader);
	struct tacho_reader *reader =
		page_again(not_after(at_time(from), last), not_after(at_time(to), last));
	struct stats s = {0};
	int error = reader ? stats_read(&s, reader, NULL, NULL) : -ENOMEM;
	uint64_t samples = 0;
	struct json j;

	if (!error) {
		for (uint32_t i = 0; i < s.sum->processes; i++)
			samples += s.sum->process[i].samples;
		answer_begin(&j);
		json_object(&j);
		json_key(&j, "stats");
		answer_stats(&j, &s, top);
		json_put_u64(&j, "samples", samples);
		answer_ledger(&j, reader, s.ledger);
		json_object_end(&j);
	}
	stats_free(&s);
	return error ? answer_failed(error) : answer_end(&j);
}

/* A line of the ledger as the report lists it: the n-th thread there, and the n-th of its owners. */
static const struct tacho__ledger_line *line_of(const struct tacho__ledger *l, uint32_t thread,
						uint32_t owner)
{
	uint32_t index = 0;

	for (; index < l->thread_count; index++)
		if (tacho__is_of_interest(&l->threads[index]) && !thread--)
			break;
	for (uint32_t i = 0; i < l->line_count; i++)
		if (l->lines[i].thread == index && !owner--)
			return &l->lines[i];
	return NULL;
}

/* When it had the thread: [begin, length] of each, in the order of time. */
EXPORT(page_times) const char *page_times(uint32_t thread, uint32_t owner)
{
	const struct tacho__ledger *l = page.explanation ? page.explanation->ledger : NULL;
	const struct tacho__ledger_line *line = l ? line_of(l, thread, owner) : NULL;
	struct tacho_reader *reader = page_again(0, 0);
	struct tacho__line_times times = {0};
	struct json j;
	int error = line ? -ENOMEM : -ENOENT;

	if (line && reader)
		error = tacho__line_times_make(&times, reader, l, line, TIMES);
	if (!error) {
		answer_begin(&j);
		json_object(&j);
		json_put_u64(&j, "count", times.all);
		json_put_u64(&j, "sum", times.all_ns);
		json_put_array(&j, "times");
		for (uint32_t i = 0; i < times.count; i++) {
			json_array(&j);
			json_f64(&j, since(times.at[i].from_ns));
			json_u64(&j, times.at[i].to_ns - times.at[i].from_ns);
			json_array_end(&j);
		}
		json_array_end(&j);
		json_object_end(&j);
	}
	tacho__line_times_free(&times);
	return error ? answer_failed(error) : answer_end(&j);
}
