#include "text/end.h"

#include <inttypes.h>
#include <string.h>

#include "tacho_read.h"
#include "text/names.h"

#define ENDS_SHOWN 8u

/* " after 4 s", or nothing. */
static const char *after(char out[2 * TEXT_SMALL], const struct tacho_process *p)
{
	char text[TEXT_SMALL];

	out[0] = 0;
	if (p->end_ns > p->created_mono_ns)
		snprintf(out, 2 * TEXT_SMALL, " after %s",
			 text_duration(text, p->end_ns - p->created_mono_ns));
	return out;
}

const char *text_end(char out[TEXT_END], const struct tacho_process *p)
{
	char when[2 * TEXT_SMALL], signal[TEXT_SMALL];

	after(when, p);
	out[0] = 0;
	switch (p->end_how) {
	case TACHO_END_EXITED:
		if (p->end_status)
			snprintf(out, TEXT_END, "exited with status %" PRIu32 "%s", p->end_status,
				 when);
		else
			snprintf(out, TEXT_END, "ended by itself%s", when);
		break;
	case TACHO_END_KILLED:
		snprintf(out, TEXT_END, "killed by %s%s%s%s",
			 name_signal(signal, (int)p->end_status),
			 p->end_flags & TACHO_END_NO_MEMORY ? ", out of memory," : "", when,
			 p->end_flags & TACHO_END_CORE ? ", core dumped" : "");
		break;
	case TACHO_END_GONE:
		if (p->end_flags & TACHO_END_EARLIER_BOOT)
			snprintf(
				out, TEXT_END,
				"the machine went down or was restarted before anybody saved this");
		else
			snprintf(out, TEXT_END, "ended%s, how is not known", when);
		break;
	case TACHO_END_RUNNING:
		snprintf(out, TEXT_END, "was running%s", when);
		break;
	case TACHO_END_EXEC:
		snprintf(out, TEXT_END, "became another program (exec)%s", when);
		break;
	default:
		break;
	}
	return out;
}

bool text_put_end(FILE *out, const struct tacho_process *process)
{
	char text[TEXT_END];

	if (!process || !text_end(text, process)[0])
		return false;
	text_put(out, process->comm[0] ? process->comm : "?");
	fprintf(out, " (%" PRIu32 "): %s\n", process->pid, text);
	return true;
}

void text_put_ends(FILE *out, const struct tacho_reader *reader)
{
	uint32_t count = tacho_read_process_count(reader), told = 0, at = 0;

	for (; at < count && told < ENDS_SHOWN; at++)
		told += text_put_end(out, tacho_read_process(reader, at));
	if (at < count)
		fprintf(out, "and %" PRIu32 " more processes: 'tacho info' has all\n", count - at);
}

void text_end_json(struct json *j, const struct tacho_process *p)
{
	char text[TEXT_END], signal[TEXT_SMALL];

	if (!text_end(text, p)[0])
		return;
	json_put_object(j, "end");
	json_put_string(j, "text", text);
	json_put_string(j, "how", name_end(p->end_how));
	json_put_u64_if(j, "status", p->end_how == TACHO_END_EXITED, p->end_status);
	json_put_known(j, "signal",
		       p->end_how == TACHO_END_KILLED ? name_signal(signal, (int)p->end_status)
						      : "");
	json_put_not_zero(j, "ns", p->end_ns);
	json_put_bool(j, "core_dumped", p->end_flags & TACHO_END_CORE);
	json_put_bool(j, "out_of_memory", p->end_flags & TACHO_END_NO_MEMORY);
	json_put_bool(j, "earlier_boot", p->end_flags & TACHO_END_EARLIER_BOOT);
	json_object_end(j);
}
