/*
 * One event as words.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/describe.h"
#include "cli/event.h"
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

/* " task 5"; nothing for 0, which means that there is none. */
static void put_number(const struct line *l, const char *what, uint64_t number)
{
	char text[TEXT_SMALL];

	if (number)
		fprintf(l->out, "%s%s", what, text_id(text, number));
}

static void put_since(const struct line *l, uint64_t since_ns)
{
	char text[TEXT_SMALL];

	if (since_ns == 0)
		fputs(" since an unknown time", l->out);
	else if (since_ns >= l->zero_ns)
		fprintf(l->out, " since %s", text_seconds(text, since_ns - l->zero_ns));
	else
		fprintf(l->out, " since -%s", text_seconds(text, l->zero_ns - since_ns));
}

static void put_counter(const struct line *l)
{
	const struct tacho_definition *d =
		tacho_read_definition(l->reader, l->event->process, l->event->arg);
	uint64_t bits = event_word(l->event, 0);

	put_id(l, "", l->event->arg);
	if (d && d->value_type == TACHO_VALUE_F64)
		fprintf(l->out, " = %.17g", event_f64(bits));
	else if (d && d->value_type == TACHO_VALUE_I64)
		fprintf(l->out, " = %" PRId64, (int64_t)bits);
	else
		fprintf(l->out, " = 0x%" PRIx64 " (of unknown type)", bits);
	if (d && d->unit[0]) {
		fputc(' ', l->out);
		text_put(l->out, d->unit);
	}
}

static void put_spawn(const struct line *l)
{
	put_id(l, "", l->event->arg);
	put_number(l, " task ", event_word(l->event, 1));
	put_number(l, " parent ", event_word(l->event, 2));
	if (event_data(l->event))
		put_id(l, " at ", event_id(event_data(l->event)));
}

static void put_waits(const struct line *l)
{
	put_number(l, "task ", event_word(l->event, 1));
	if (l->event->arg)
		put_id(l, " for ", l->event->arg);
	put_number(l, " resource ", event_word(l->event, 2));
	if (event_data(l->event))
		put_id(l, " at ", event_id(event_data(l->event)));
}

static void put_trace_id(const struct line *l)
{
	fprintf(l->out, "%016" PRIx64 "%016" PRIx64, event_word(l->event, 2),
		event_word(l->event, 3));
	if (event_word(l->event, 1))
		put_number(l, " of span ", event_word(l->event, 1));
	else
		fputs(" of the innermost span", l->out);
}

static void put_log(const struct line *l)
{
	const char *text;
	size_t size;
	int cut = 0;

	fprintf(l->out, "level %" PRIu32 ": ", l->event->arg);
	if (tacho_read_text(l->event, &text, &size, &cut) < 0) {
		fputs("(damaged)", l->out);
		return;
	}
	text_put_n(l->out, text, size);
	if (cut)
		fputs("...", l->out);
}

static void put_field(const struct line *l, const struct tacho_field_value *v)
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

static void put_event(const struct line *l)
{
	const struct tacho_definition *d =
		tacho_read_definition(l->reader, l->event->process, l->event->arg);

	put_id(l, "", l->event->arg);
	if (!d || d->def_class != TACHO_DEF_SCHEMA)
		return;
	for (uint32_t i = 0; i < d->count; i++) {
		struct tacho_field_value value = {.size = sizeof(value)};
		int present = tacho_read_field(l->reader, l->event, i, &value);

		if (present == 0)
			continue;
		fputc(' ', l->out);
		text_put(l->out, d->fields[i].name);
		fputc('=', l->out);
		if (present > 0)
			put_field(l, &value);
		else
			fputs("(damaged)", l->out);
	}
}

static void put_hist(const struct line *l)
{
	char total[TEXT_SMALL], from[TEXT_SMALL];
	uint64_t count = 0;

	for (uint32_t i = EVENT_HIST_FIRST; i < l->event->words; i++)
		count += event_hist_count(l->event->word[i]);
	put_id(l, "", l->event->arg);
	if (event_data(l->event))
		put_id(l, " on loop ", event_id(event_data(l->event)));
	fprintf(l->out, " %" PRIu64 " short polls, %s in all,", count,
		text_duration(total, event_word(l->event, 3)));
	put_since(l, event_word(l->event, 2));
	for (uint32_t i = EVENT_HIST_FIRST; i < l->event->words; i++)
		fprintf(l->out, "%s%" PRIu64 " from %s", i == EVENT_HIST_FIRST ? ": " : ", ",
			event_hist_count(l->event->word[i]),
			text_duration(from, event_hist_ns(event_hist_bucket(l->event->word[i]))));
}

static void put_open(const struct line *l, const struct tacho_resume_info *r)
{
	fprintf(l->out, "; open: ");
	for (uint32_t i = 0; i < r->open_listed && i < 5; i++) {
		const struct tacho_open_item *o = &r->open[i];

		if (i)
			fputs(" > ", l->out);
		put_id(l, o->what == TACHO_EV_SPAN_BEGIN ? "span " : "poll ", o->id);
		put_number(l, " task ", o->task);
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

static void put_lock(const struct line *l)
{
	const struct tacho_event *e = l->event;

	put_number(l, "lock ", event_word(e, 0));
	if (e->type == TACHO_EV_LOCK_WAITED) {
		fputs(!(e->arg & TACHO_WAITED_GOT)   ? " given up"
		      : e->arg & TACHO_WAITED_SIGNAL ? " signalled"
						     : " taken",
		      l->out);
		return;
	}
	if (e->type == TACHO_EV_LOCK_RELEASE)
		fprintf(l->out, " with %" PRIu64 " waiting", event_word(e, 1));
	if (e->arg)
		put_id(l, " at ", e->arg);
}

static void put_trigger(struct line *l)
{
	uint64_t number = event_word(l->event, 0);
	const struct tacho_trigger_info *t = describe_trigger(l->reader, l->event->process, number);
	char text[TEXT_SMALL];

	fprintf(l->out, "number %" PRIu64 ": ", number);
	put_id(l, "", l->event->arg);
	if (t && t->sentinel[0])
		fprintf(l->out, " (sentinel %s: %s)", t->sentinel,
			describe_sentinel_value(text, t->sentinel, t->value));
}

static void put_steal(const struct line *l)
{
	put_id(l, "", l->event->arg);
	fprintf(l->out, " took %" PRIu64 " tasks", event_word(l->event, 1));
	put_id(l, " from ", event_id(event_word(l->event, 0)));
}

static void put_async(const struct line *l)
{
	put_id(l, "", l->event->arg);
	put_number(l, " span ", event_word(l->event, 0));
	if (l->event->type == TACHO_EV_ASYNC_BEGIN)
		put_number(l, " parent ", event_word(l->event, 1));
}

static void put_work(const struct line *l)
{
	if (l->event->type != TACHO_EV_WORK_END)
		put_id(l, "", l->event->arg);
	put_number(l, l->event->type == TACHO_EV_WORK_END ? "work " : " work ",
		   event_word(l->event, 0));
}

static void put_ready(const struct line *l)
{
	uint64_t word = event_word(l->event, 0);
	uint32_t left = l->event->arg;
	const char *before = " ";

	if (event_ready_is_data(word))
		fprintf(l->out, "data 0x%" PRIx64 ":", word & ~(UINT64_C(1) << 63));
	else
		fprintf(l->out, "descriptor %" PRIu64 ":", word);
	for (unsigned bit = 0; bit < 24; bit++) {
		if (!(left >> bit & 1) || !name_ready(bit))
			continue;
		fprintf(l->out, "%s%s", before, name_ready(bit));
		left &= ~(1u << bit);
		before = ",";
	}
	if (left || before[0] == ' ')
		fprintf(l->out, "%s0x%" PRIx32, before, left);
}

static void put_stack(const struct line *l)
{
	char text[TEXT_SMALL];

	if (l->event->type == TACHO_EV_SAMPLE)
		fprintf(l->out, "%s of CPU", text_duration(text, event_word(l->event, 0)));
	else
		fprintf(l->out, "of %s", text_id(text, event_word(l->event, 0)));
	put_id(l, " at ", l->event->arg);
}

static void put_frames(const struct line *l)
{
	struct describe_stack stack = event_stack(l->event);
	char text[TEXT_SMALL];

	fprintf(l->out, "%s of CPU at ", text_duration(text, event_word(l->event, 1)));
	describe_stack(l->out, l->reader, l->event->process, &stack, l->event->ns);
}

/* "kernel [vfs_read < ksys_read] from [read < main]" */
static void put_kernel_sample(const struct line *l)
{
	struct describe_stack kernel = event_kernel_stack(l->event, true);
	struct describe_stack user = event_kernel_stack(l->event, false);
	char text[TEXT_SMALL];

	fprintf(l->out, "%s of CPU at ", text_duration(text, event_word(l->event, 1)));
	if (kernel.count) {
		fputs("kernel ", l->out);
		describe_stack(l->out, l->reader, l->event->process, &kernel, l->event->ns);
		fputs(" from ", l->out);
	}
	describe_stack(l->out, l->reader, l->event->process, &user, l->event->ns);
}

static void put_sched(const struct line *l)
{
	uint64_t faults = event_word(l->event, 1);
	char text[TEXT_SMALL];

	fprintf(l->out,
		"%s runnable but not running, %" PRIu32 " involuntary switches, %" PRIu32
		" minor and %" PRIu32 " major faults",
		text_duration(text, event_word(l->event, 0)), l->event->arg,
		event_minor_faults(faults), event_major_faults(faults));
}

static void put_call(const struct line *l)
{
	uint64_t fd = event_word(l->event, 2), more = event_word(l->event, 3);
	const char *kind = name_descriptor(event_call_kind(more));
	char text[TEXT_SMALL];

	put_id(l, "", l->event->arg);
	fprintf(l->out, " took %s", text_duration(text, event_word(l->event, 1)));
	if (fd != EVENT_NO_DESCRIPTOR)
		fprintf(l->out, " on %s%" PRIu64, kind ? "descriptor " : "", fd);
	if (kind)
		fprintf(l->out, " (%s)", kind);
	if (event_call_path(more))
		put_id(l, " path ", event_id(event_call_path(more)));
	if (event_call_errno(more))
		fprintf(l->out, " failed: %s", strerror(event_call_errno(more)));
	if (event_data(l->event))
		put_id(l, " at ", event_id(event_data(l->event)));
}

/* What hooks and the kernel's part record. False: not one of theirs. */
static bool put_observed(const struct line *l)
{
	char text[TEXT_SMALL];

	switch (l->event->type) {
	case TACHO_EV_WORK_SUBMIT:
	case TACHO_EV_WORK_BEGIN:
	case TACHO_EV_WORK_END:
		put_work(l);
		return true;
	case TACHO_EV_READY:
		put_ready(l);
		return true;
	case TACHO_EV_LATE:
		fprintf(l->out, "timer by %s", text_duration(text, event_word(l->event, 0)));
		return true;
	case TACHO_EV_STACK:
	case TACHO_EV_SAMPLE:
		put_stack(l);
		return true;
	case TACHO_EV_SAMPLE_FRAMES:
		put_frames(l);
		return true;
	case TACHO_EV_KERNEL_SAMPLE:
		put_kernel_sample(l);
		return true;
	case TACHO_EV_SWITCH_OUT:
		fputs(l->event->arg ? "preempted: it could have gone on" : "it waits", l->out);
		return true;
	case TACHO_EV_SWITCH_IN:
		fprintf(l->out, "on CPU %" PRIu32, l->event->arg);
		return true;
	case TACHO_EV_SCHED:
		put_sched(l);
		return true;
	case TACHO_EV_CALL:
		put_call(l);
		return true;
	default:
		return false;
	}
}

void event_put_text(FILE *out, const struct tacho_reader *reader, const struct tacho_event *event,
		    uint64_t zero_ns)
{
	struct line l = {out, reader, event, zero_ns};

	switch (event->type) {
	case TACHO_EV_PARK:
		put_id(&l, "loop ", event->arg);
		break;
	case TACHO_EV_UNPARK:
		fprintf(out, "%" PRIu32 " ready", event->arg);
		break;
	case TACHO_EV_POLL_END:
		fputs(name_result(event->arg), out);
		break;
	case TACHO_EV_SPAN_BEGIN:
	case TACHO_EV_SPAN_END:
		put_id(&l, "", event->arg);
		break;
	case TACHO_EV_PAUSE:
		fputs(event->arg ? "paused" : "resumed", out);
		break;
	case TACHO_EV_LOOP:
		if (event->arg)
			put_id(&l, "", event->arg);
		else
			fputs("none", out);
		break;
	case TACHO_EV_RESUME:
		put_resume(&l);
		break;
	case TACHO_EV_POLL_BEGIN:
	case TACHO_EV_POLL_SWITCH:
		put_id(&l, "", event->arg);
		put_number(&l, " task ", event_word(event, 0));
		break;
	case TACHO_EV_WAKE:
	case TACHO_EV_TASK_END:
		put_number(&l, "task ", event_word(event, 0));
		break;
	case TACHO_EV_LOCK_WAIT:
	case TACHO_EV_LOCK_WAITED:
	case TACHO_EV_LOCK_RELEASE:
		put_lock(&l);
		break;
	case TACHO_EV_QUEUE_DEPTH:
		put_id(&l, "loop ", event->arg);
		fprintf(out, " %" PRIu64 " queued", event_word(event, 0));
		break;
	case TACHO_EV_COUNTER:
		put_counter(&l);
		break;
	case TACHO_EV_ASYNC_BEGIN:
	case TACHO_EV_ASYNC_END:
		put_async(&l);
		break;
	case TACHO_EV_TRIGGER:
		put_trigger(&l);
		break;
	case TACHO_EV_STEAL:
		put_steal(&l);
		break;
	case TACHO_EV_SPAWN:
		put_spawn(&l);
		break;
	case TACHO_EV_TASK_WAITS:
		put_waits(&l);
		break;
	case TACHO_EV_TRACE_ID:
		put_trace_id(&l);
		break;
	case TACHO_EV_LOG:
		put_log(&l);
		break;
	case TACHO_EV_EVENT:
		put_event(&l);
		break;
	case TACHO_EV_POLL_HIST:
		put_hist(&l);
		break;
	default:
		if (!put_observed(&l))
			put_unknown(&l);
		break;
	}
}
