/* The table of the ledger: who had the time of each thread, and what waited meanwhile. */
#include "query/fill.h"

int tacho__sql_fill_ledger(struct tacho__sql_filling *f)
{
	int error;
	struct tacho__ledger *l = tacho__ledger_make(f->source->reader, &error);

	for (uint32_t i = 0; l && i < l->line_count; i++) {
		const struct tacho__ledger_line *line = &l->lines[i];
		struct tacho__sql_ledger row = {
			line, &l->threads[line->thread], "", {.function = "", .file = ""}};
		char key[256];

		if (!tacho__is_of_interest(row.t))
			continue;
		row.name = tacho__ledger_key(l, line, key, sizeof(key));
		if (!tacho__ledger_place(l, line, &row.place))
			row.place = (struct tacho__place){.function = "", .file = ""};
		tacho__sql_put_ledger(f, &row);
	}
	tacho__ledger_free(l);
	return error < 0 ? error : f->error;
}
