/* Tables of what the trace itself is: processes, threads, and what is missing. */
#include "query/fill.h"

int tacho__sql_fill_process(struct tacho__sql_filling *f)
{
	for (uint32_t i = 0; i < tacho_read_process_count(f->source->reader); i++) {
		struct tacho__sql_process row = {i, tacho_read_process(f->source->reader, i)};

		if (row.p)
			tacho__sql_put_process(f, &row);
	}
	return f->error;
}

/* NULL: the trace does not say. */
const char *tacho__sql_at_end(struct tacho__sql_filling *f, const struct tacho__sql_thread *x)
{
	const struct tacho__at_ends *list = x->at_ends;
	char text[TACHO__AT_END_TEXT];

	for (uint32_t i = 0; x->t->live && i < list->count; i++)
		if (list->at[i].process == x->t->process && list->at[i].thread == x->t->number)
			return tacho__sql_keep_text(
				f, tacho__at_end_text(text, list->reader, &list->at[i]));
	return NULL;
}

int tacho__sql_fill_thread(struct tacho__sql_filling *f)
{
	bool wanted = f->rows->has >> V_thread_at_end & 1;
	struct tacho__at_ends list = {0};
	int error = wanted ? tacho__at_end_list(f->source->reader, &list) : 0;

	for (uint32_t i = 0; i < tacho_read_thread_count(f->source->reader); i++) {
		struct tacho__sql_thread row = {tacho_read_thread(f->source->reader, i), &list};

		if (row.t)
			tacho__sql_put_thread(f, &row);
	}
	tacho__at_end_free(&list);
	return error < 0 ? error : f->error;
}

int tacho__sql_fill_loss(struct tacho__sql_filling *f)
{
	for (uint32_t p = 0; p < tacho_read_process_count(f->source->reader); p++)
		for (uint32_t i = 0; i < tacho_read_loss_count(f->source->reader); i++) {
			struct tacho__sql_loss row = {p, {.size = sizeof(row.info)}};

			if (tacho_read_loss(f->source->reader, p, i, &row.info) >= 0)
				tacho__sql_put_loss(f, &row);
		}
	return f->error;
}

static void on_hole(void *arg, const struct tacho__hole *h)
{
	struct tacho__sql_gap row = {h->thread,
				     {.process = h->process,
				      .from_ns = h->from_ns,
				      .to_ns = h->to_ns,
				      .records = h->missing + h->dropped,
				      .reason = "hole"}};

	tacho__sql_put_gap(arg, &row);
}

int tacho__sql_fill_gap(struct tacho__sql_filling *f)
{
	const struct tacho__facts facts = {.hole = on_hole};
	int error = tacho__sql_run(f, &facts);

	for (uint32_t i = 0; !error && i < tacho_read_gap_count(f->source->reader); i++) {
		const struct tacho_gap *g = tacho_read_gap(f->source->reader, i);
		struct tacho__sql_gap row = {.g = g ? *g : (struct tacho_gap){0}};

		if (g)
			tacho__sql_put_gap(f, &row);
	}
	return error ? error : f->error;
}

int tacho__sql_fill_absent(struct tacho__sql_filling *f)
{
	for (uint32_t i = 0; i < tacho_read_absent_count(f->source->reader); i++)
		tacho__sql_put_absent(f, tacho_read_absent(f->source->reader, i));
	return f->error;
}

/* Some problems are only found when the events are read. */
int tacho__sql_fill_problem(struct tacho__sql_filling *f)
{
	const struct tacho__facts facts = {0};
	int error = tacho__sql_run(f, &facts);

	for (uint32_t i = 0; !error && i < tacho_read_problem_count(f->source->reader); i++) {
		const struct tacho_problem *p = tacho_read_problem(f->source->reader, i);

		if (p)
			tacho__sql_put_problem(f, p);
	}
	return error ? error : f->error;
}
