/*
 * One event as words: the text that tacho_events.h has for its type, with its fields put in.
 */
#include <inttypes.h>
#include <string.h>

#include "answer/describe.h"
#include "answer/event.h"
#include "text/names.h"
#include "text/text.h"

/* What the functions below need. */
struct line {
	FILE *out;
	const struct tacho_reader *reader;
	const struct tacho_event *event;
	uint64_t zero_ns;
};

static void put_id(const struct line *l, const char *before, uint32_t id)
{
	fputs(before, l->out);
	describe_id(l->out, l->reader, l->event->process, id, l->event->ns);
}

static void put_time(const struct line *l, uint64_t ns)
{
	char text[TEXT_SMALL];

	if (ns == 0)
		fputs("an unknown time", l->out);
	else if (ns >= l->zero_ns)
		fputs(text_seconds(text, ns - l->zero_ns), l->out);
	else
		fprintf(l->out, "-%s", text_seconds(text, l->zero_ns - ns));
}

static const struct tacho_definition *of_argument(const struct line *l)
{
	return tacho_read_definition(l->reader, l->event->process, l->event->arg);
}

static void put_value(const struct line *l, const struct tacho_field_value *v)
{
	switch (v->type) {
	case TACHO_FIELD_U64:
		fprintf(l->out, "%" PRIu64, v->number.u64);
		break;
	case TACHO_FIELD_I64:
		fprintf(l->out, "%" PRId64, v->number.i64);
		break;
	case TACHO_FIELD_F64:
		fprintf(l->out, "%.17g", v->number.f64);
		break;
	case TACHO_FIELD_BOOL:
		fputs(v->number.u64 ? "true" : "false", l->out);
		break;
	case TACHO_FIELD_STRING:
		fputc('"', l->out);
		text_put_n(l->out, v->text, v->text_size);
		fputs(v->cut ? "\"..." : "\"", l->out);
		break;
	default:
		fputs("(of unknown type)", l->out);
		break;
	}
}

static void put_counter_value(const struct line *l, uint64_t bits)
{
	const struct tacho_definition *d = of_argument(l);
	const struct tacho_field_value v = event_value(d, bits);

	if (!v.type)
		fprintf(l->out, "0x%" PRIx64 " ", bits);
	put_value(l, &v);
	if (d && d->unit[0]) {
		fputc(' ', l->out);
		text_put(l->out, d->unit);
	}
}

static void put_text(const struct line *l)
{
	const char *text;
	size_t size;
	int cut = 0;

	if (tacho_read_text(l->event, &text, &size, &cut) < 0) {
		fputs("(damaged)", l->out);
		return;
	}
	text_put_n(l->out, text, size);
	if (cut)
		fputs("...", l->out);
}

static void put_fields(const struct line *l)
{
	const struct tacho_definition *d = of_argument(l);

	for (uint32_t i = 0; d && d->def_class == TACHO_DEF_SCHEMA && i < d->count; i++) {
		struct tacho_field_value value = {.size = sizeof(value)};
		int present = tacho_read_field(l->reader, l->event, i, &value);

		if (present == 0)
			continue;
		fputc(' ', l->out);
		text_put(l->out, d->fields[i].name);
		fputc('=', l->out);
		if (present > 0)
			put_value(l, &value);
		else
			fputs("(damaged)", l->out);
	}
}

static void put_buckets(const struct line *l, uint32_t first)
{
	char from[TEXT_SMALL];

	for (uint32_t i = first; i < l->event->words; i++)
		fprintf(l->out, "%s%" PRIu64 " from %s", i == first ? "" : ", ",
			tacho_bucket_count(l->event->word[i]),
			text_duration(from, event_bucket_ns(l->event->word[i])));
}

static void put_trigger(const struct line *l, const struct tacho_trigger_info *t)
{
	char text[TEXT_SMALL];

	fprintf(l->out, "%s: %s", t->sentinel,
		describe_sentinel_value(text, t->sentinel, t->value));
}

static void put_ready_events(const struct line *l, uint64_t left)
{
	const char *before = "";

	for (unsigned bit = 0; bit < 24; bit++) {
		if (!(left >> bit & 1) || !name_ready(bit))
			continue;
		fprintf(l->out, "%s%s", before, name_ready(bit));
		left &= ~(UINT64_C(1) << bit);
		before = ",";
	}
	if (left || !before[0])
		fprintf(l->out, "%s0x%" PRIx64, before, left);
}

/* "[read < main]", or "kernel [vfs_read < ksys_read] from [read < main]" */
static void put_frames(const struct line *l)
{
	struct describe_stack kernel = {.exact = true}, program = {.exact = true};
	struct tacho_frames stack = {.size = sizeof(stack)};

	if (tacho_read_frames(l->event, &stack) <= 0)
		return;
	kernel.frames = stack.frames;
	kernel.count = stack.kernel;
	program.frames = stack.frames + stack.kernel;
	program.count = stack.count - stack.kernel;
	program.cut = stack.cut;
	if (kernel.count) {
		fputs("kernel ", l->out);
		describe_stack(l->out, l->reader, l->event->process, &kernel, l->event->ns);
		fputs(" from ", l->out);
	}
	describe_stack(l->out, l->reader, l->event->process, &program, l->event->ns);
}

/* Roles that hold more than a number. */
static void put_other(const struct line *l, const struct tacho_event_field *f, uint64_t value)
{
	switch (f->role) {
	case TACHO_ROLE_VALUE:
		put_counter_value(l, value);
		break;
	case TACHO_ROLE_TRIGGER:
		put_trigger(l, describe_trigger(l->reader, l->event->process, value));
		break;
	case TACHO_ROLE_TRACE_ID:
		fprintf(l->out, "%016" PRIx64 "%016" PRIx64, value, l->event->word[f->word + 1]);
		break;
	case TACHO_ROLE_READY_EVENTS:
		put_ready_events(l, value);
		break;
	case TACHO_ROLE_TEXT:
		put_text(l);
		break;
	case TACHO_ROLE_FIELDS:
		put_fields(l);
		break;
	case TACHO_ROLE_BUCKETS:
		put_buckets(l, (uint32_t)f->word);
		break;
	case TACHO_ROLE_BUCKETS_SUM:
		fprintf(l->out, "%" PRIu64, event_bucket_sum(l->event, (uint32_t)f->word));
		break;
	case TACHO_ROLE_FRAMES:
		put_frames(l);
		break;
	default:
		fprintf(l->out, "%" PRIu64, value);
		break;
	}
}

static void put_field(const struct line *l, const struct tacho_event_field *f)
{
	uint64_t value = tacho_read_value(l->event, f);
	char text[TEXT_SMALL];

	switch (f->role) {
	case TACHO_ROLE_NS:
		fputs(text_duration(text, value), l->out);
		break;
	case TACHO_ROLE_TIME:
		put_time(l, value);
		break;
	case TACHO_ROLE_ID:
	case TACHO_ROLE_KIND:
		put_id(l, "", event_id(value));
		break;
	case TACHO_ROLE_TASK:
	case TACHO_ROLE_RESOURCE:
	case TACHO_ROLE_WORK:
	case TACHO_ROLE_OBJECT:
	case TACHO_ROLE_LOCK:
	case TACHO_ROLE_SPAN:
	case TACHO_ROLE_SPAN_OR_NONE:
		fputs(text_id(text, value), l->out);
		break;
	case TACHO_ROLE_RESULT:
		fputs(name_result((unsigned)value), l->out);
		break;
	case TACHO_ROLE_SUBJECT:
		fputs(name_subject((unsigned)value), l->out);
		break;
	case TACHO_ROLE_READY_DATA:
		fprintf(l->out, "0x%" PRIx64, value & ~EVENT_READY_IS_DATA);
		break;
	case TACHO_ROLE_FD_KIND:
		fputs(name_descriptor((unsigned)value), l->out);
		break;
	case TACHO_ROLE_ERROR:
		fputs(strerror((int)value), l->out);
		break;
	default:
		put_other(l, f, value);
		break;
	}
}

static bool is_given(const struct line *l, const struct tacho_event_field *f)
{
	uint64_t value = tacho_read_value(l->event, f);
	const struct tacho_trigger_info *t;

	switch (f->role) {
	case TACHO_ROLE_READY_FD:
		return !(value & EVENT_READY_IS_DATA);
	case TACHO_ROLE_ON:
		return value != EVENT_ON_NOTHING;
	case TACHO_ROLE_FRAMES:
		return l->event->words > (uint32_t)f->word;
	case TACHO_ROLE_FD_KIND:
		return name_descriptor((unsigned)value) != NULL;
	case TACHO_ROLE_SUBJECT:
		return name_subject((unsigned)value) != NULL;
	case TACHO_ROLE_TRIGGER:
		t = describe_trigger(l->reader, l->event->process, value);
		return t && t->sentinel[0];
	case TACHO_ROLE_BUCKETS:
		return l->event->words > (uint32_t)f->word;
	default:
		return value != 0;
	}
}

/* The field whose name begins at `name`; NULL: the event has none such. */
static const struct tacho_event_field *find_field(const struct tacho_event_info *info,
						  const char *name, size_t size)
{
	for (uint32_t i = 0; i < info->field_count; i++) {
		const struct tacho_event_field *f = &info->fields[i];

		if (strncmp(f->name, name, size) == 0 && !f->name[size])
			return f;
	}
	return NULL;
}

/*
 * The text from `at` to where the brace, choice or section that it stands in ends; returns what is
 * behind that. `show`: false to step over it. *whole becomes false if it shows a field that is not
 * given.
 */
static const char *put_part(const struct line *l, const struct tacho_event_info *info,
			    const char *at, bool show, bool *whole)
{
	while (*at && !strchr("|}]", *at)) {
		size_t plain = strcspn(at, "{[|}]");
		bool given = true;

		if (plain) {
			if (show)
				fwrite(at, 1, plain, l->out);
			at += plain;
		} else if (*at++ == '[') {
			put_part(l, info, at, false, &given);
			at = put_part(l, info, at, show && given, &given);
		} else {
			size_t size = strcspn(at, "?}");
			const struct tacho_event_field *f = find_field(info, at, size);

			given = f && is_given(l, f);
			at += size;
			if (*at++ == '?') {
				bool any = true;

				at = put_part(l, info, at, show && given, &any);
				at = put_part(l, info, at, show && !given, &any);
			} else {
				*whole &= given;
				if (show && f)
					put_field(l, f);
			}
		}
	}
	return *at ? at + 1 : at;
}

static void put_since(const struct line *l, uint64_t ns)
{
	fputs(" since ", l->out);
	put_time(l, ns);
}

static void put_open(const struct line *l, const struct tacho_resume_info *r)
{
	char text[TEXT_SMALL];

	fprintf(l->out, "; open: ");
	for (uint32_t i = 0; i < r->open_listed && i < TACHO_OPEN_MAX; i++) {
		const struct tacho_open_item *o = &r->open[i];

		if (i)
			fputs(" > ", l->out);
		put_id(l, o->what == TACHO_EV_SPAN_BEGIN ? "span " : "poll ", o->id);
		if (o->task)
			fprintf(l->out, " task %s", text_id(text, o->task));
		put_since(l, o->since_ns);
	}
	if (r->open_count > r->open_listed)
		fprintf(l->out, "%s%" PRIu32 " more", r->open_listed ? " > " : "",
			r->open_count - r->open_listed);
}

static void put_resume(const struct line *l)
{
	const struct tacho_resume_info *r = l->event->resume;

	if (r->first && l->event->stream == TACHO_STREAM_KERNEL)
		fputs("what the kernel tells of this thread begins here", l->out);
	else if (r->first)
		fputs("what is known of this thread begins here", l->out);
	else if (r->missing || r->dropped)
		fputs("a hole ends here", l->out);
	else
		fputs("goes on here", l->out);
	if (r->missing)
		fprintf(l->out, "; %" PRIu64 " records before are overwritten or damaged",
			r->missing);
	if (r->dropped)
		fprintf(l->out, "; %" PRIu32 " records found no room", r->dropped);
	if (r->loop)
		put_id(l, "; loop ", r->loop);
	if (r->parked) {
		fputs("; parked", l->out);
		put_since(l, r->parked_ns);
	}
	if (r->open_count)
		put_open(l, r);
}

static void put_unknown(const struct line *l)
{
	fprintf(l->out, "arg %" PRIu32, l->event->arg);
	for (uint32_t i = 0; i < l->event->words; i++)
		fprintf(l->out, " 0x%" PRIx64, l->event->word[i]);
}

void event_put_text(FILE *out, const struct tacho_reader *reader, const struct tacho_event *event,
		    uint64_t zero_ns)
{
	const struct tacho_event_info *info = tacho_read_event_info(event->type);
	const struct line l = {out, reader, event, zero_ns};
	bool whole = true;

	if (event->type == TACHO_EV_RESUME)
		put_resume(&l);
	else if (info)
		put_part(&l, info, info->text, true, &whole);
	else
		put_unknown(&l);
}
