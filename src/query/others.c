/* Tables of loops, and of what the program says itself: logs and events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/text.h"
#include "query/fill.h"
#include "text/json.h"

void tacho__sql_take_log(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct tacho__sql_said said = {.at = at, .e = e};

	if (e->type == TACHO_EV_LOG && tacho_read_text(e, &said.text, &said.size, &said.cut) >= 0)
		tacho__sql_put_log(arg, &said);
}

static void put_fields(struct json *j, const struct tacho_reader *reader,
		       const struct tacho_event *e)
{
	const struct tacho_definition *d = tacho_read_definition(reader, e->process, e->arg);

	json_object(j);
	for (uint32_t i = 0; d && d->def_class == TACHO_DEF_SCHEMA && i < d->count; i++) {
		struct tacho_field_value value = {.size = sizeof(value)};

		if (tacho_read_field(reader, e, i, &value) <= 0)
			continue;
		json_key(j, d->fields[i].name);
		json_field_value(j, &value);
	}
	json_object_end(j);
}

const char *tacho__sql_fields(struct tacho__sql_filling *f, const struct tacho_event *e)
{
	const char *kept = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	struct json j;

	if (!stream) {
		f->error = -ENOMEM;
		return NULL;
	}
	json_begin(&j, stream, false);
	put_fields(&j, f->source->reader, e);
	if (fclose(stream) == 0)
		kept = tacho__sql_keep(f, text, size);
	else
		f->error = -ENOMEM;
	free(text);
	return kept;
}

void tacho__sql_take_event(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct tacho__sql_said said = {.at = at, .e = e};

	if (e->type == TACHO_EV_EVENT)
		tacho__sql_put_event(arg, &said);
}

const char *tacho__sql_loop_name(struct tacho__sql_filling *f, const struct tacho__loop_sum *l)
{
	char name[TACHO__CLEAN_MAX];

	tacho__loop_name(name, sizeof(name), f->source->reader, l);
	return tacho__sql_keep_text(f, name);
}

int tacho__sql_fill_loop(struct tacho__sql_filling *f)
{
	struct tacho__summary *sum;
	int error = tacho_read_seek(f->source->reader, 0);

	if (error < 0)
		return error;
	sum = tacho__summary_make(f->source->reader, NULL, 0, NULL, NULL, &error);
	for (const struct tacho__loop_sum *l = NULL;
	     sum && (l = tacho__table_next(&sum->loops, l));)
		tacho__sql_put_loop(f, l);
	tacho__summary_free(sum);
	return error < 0 ? error : f->error;
}
