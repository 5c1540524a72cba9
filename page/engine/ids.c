/* Search for what the view does not keep: trace ids of spans, and addresses of locks. */
#include <inttypes.h>
#include <string.h>

#include "things.h"

#define SHOWN 50u

struct ids {
	const char *text; /* lower-case hexadecimal digits */
	size_t size;
	struct json *j;
	uint64_t spans, locks;
};

static bool begins_so(const struct ids *s, const char *digits)
{
	return strncasecmp(digits, s->text, s->size) == 0;
}

static void put_found(struct ids *s, const char *what, const char *id, uint32_t process,
		      uint32_t name, const struct thing *t)
{
	char text[NAME_BYTES];

	json_object(s->j);
	json_put_string(s->j, "what", what);
	json_put_string(s->j, "id", id);
	json_put_known(s->j, "name", called(text, process, name));
	json_key(s->j, "thing");
	put_thing(s->j, t);
	json_object_end(s->j);
}

static void on_span(void *arg, const struct tacho__span *p)
{
	struct ids *s = arg;
	struct thing t;
	char id[33];

	snprintf(id, sizeof(id), "%016" PRIx64 "%016" PRIx64, p->trace_high, p->trace_low);
	if ((!p->trace_high && !p->trace_low) || !begins_so(s, id) || s->spans++ >= SHOWN)
		return;
	put_found(s, "span", id, p->at.process, p->name,
		  thing_of(&t, p->at.process, p->async ? 0 : p->at.thread, TACHO__TRACK_SPANS,
			   p->begin_ns)
			  ? &t
			  : NULL);
}

static void on_lock(void *arg, const struct tacho__lock *k)
{
	enum tacho__track_type type = k->is_signal ? TACHO__TRACK_SIGNALS : TACHO__TRACK_LOCKS;
	struct ids *s = arg;
	struct thing t;
	char id[24];

	snprintf(id, sizeof(id), "%" PRIx64, k->lock);
	if (!begins_so(s, id) || s->locks++ >= SHOWN)
		return;
	snprintf(id, sizeof(id), "0x%" PRIx64, k->lock);
	put_found(s, k->is_signal ? "condition" : "lock", id, k->at.process, k->place,
		  thing_of(&t, k->at.process, k->at.thread, type, k->begin_ns) ? &t : NULL);
}

/* Spans and waits whose trace id or lock begins with these digits. Reads the trace again. */
EXPORT(page_search_ids) const char *page_search_ids(const char *text)
{
	struct json j;
	struct ids s = {.text = strncmp(text, "0x", 2) == 0 ? text + 2 : text, .j = &j};
	struct tacho__facts facts = {.arg = &s, .span = on_span, .lock = on_lock};

	s.size = strlen(s.text);
	answer_begin(&j);
	json_object(&j);
	json_put_array(&j, "found");
	if (s.size && tacho_read_seek(page.reader, 0) >= 0)
		tacho__model_run(page.reader, &facts, NULL, NULL, NULL);
	json_array_end(&j);
	json_put_u64(&j, "spans", s.spans);
	json_put_u64(&j, "locks", s.locks);
	json_object_end(&j);
	return answer_end(&j);
}
