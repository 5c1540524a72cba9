#include "things.h"

#include "model/place.h"
#include "text/text.h"

bool thing_of(struct thing *out, uint32_t process, uint32_t thread, enum tacho__track_type type,
	      uint64_t begin_ns)
{
	const struct tacho__lane *l =
		tacho__table_find(&page.view.lanes, (uint64_t)process << 32 | thread, 0);

	for (uint32_t r = 0; l && r < l->row_count; r++) {
		const struct tacho__track *track = &l->rows[r].track;
		uint32_t i =
			l->rows[r].type == type ? tacho__track_from(track, begin_ns) : track->count;
		struct tacho__thing t;

		if (i == track->count)
			continue;
		t = tacho__track_at(track, i);
		if (t.begin_ns != begin_ns)
			continue;
		*out = (struct thing){l->entry.index, r, i, t.begin_ns, t.ns};
		return true;
	}
	return false;
}

void put_thing(struct json *j, const struct thing *t)
{
	if (!t) {
		json_null(j);
		return;
	}
	json_object(j);
	json_put_u64(j, "lane", t->lane);
	json_put_u64(j, "row", t->row);
	json_put_u64(j, "index", t->index);
	json_put_f64(j, "begin", since(t->begin_ns));
	json_put_u64(j, "ns", t->ns);
	json_object_end(j);
}

const char *name_of(char *out, uint32_t process, uint32_t id)
{
	tacho__name_of(out, NAME_BYTES, page.reader, process, id, page.last_ns);
	return out;
}

const char *place_of(char *out, uint32_t process, uint32_t id)
{
	struct tacho__place places[TACHO__PLACES_MAX], best;
	uint32_t count = id ? tacho__places_of_id(page.reader, process, id, page.last_ns, places,
						  TACHO__PLACES_MAX)
			    : 0;
	char name[TACHO__TEXT];

	out[0] = 0;
	if (!count)
		return out;
	best = tacho__places_best(places, count);
	tacho__place_name(name, sizeof(name), &best);
	if (best.file[0])
		snprintf(out, NAME_BYTES, "%s (%s:%u)", name, tacho__place_file(&best), best.line);
	else
		snprintf(out, NAME_BYTES, "%s", name);
	return out;
}

const char *called(char *out, uint32_t process, uint32_t id)
{
	const struct tacho_definition *d = tacho_read_definition(page.reader, process, id);

	if (d && !d->name[0] && place_of(out, process, id)[0])
		return out;
	return name_of(out, process, id);
}

void put_task_line(struct json *j, const struct tacho__view_task *t)
{
	uint32_t process = (uint32_t)t->entry.key[1];
	char text[NAME_BYTES];

	json_object(j);
	json_put_u64(j, "process", process);
	json_put_string(j, "id", text_id(text, t->entry.key[0]));
	json_put_known(j, "kind", name_of(text, process, t->kind));
	json_put_known(j, "spawned_in", place_of(text, process, t->place));
	json_put_f64_if(j, "spawn", t->spawn_ns != 0, since(t->spawn_ns));
	json_put_f64_if(j, "end", t->end_ns != 0, since(t->end_ns));
	json_put_u64(j, "polls", t->polls);
	json_put_u64(j, "busy", t->busy_ns);
	json_put_u64(j, "waited", t->waited_ns);
	json_put_u64(j, "wakes", t->wakes);
	json_object_end(j);
}
