#include <string.h>

#include "answer/answer.h"

void answer_absent(struct json *j, const struct tacho_reader *reader)
{
	/* Files of before know nothing of it, and say nothing. */
	if (!tacho_read_absent_count(reader))
		return;
	json_key(j, "absent");
	json_array(j);
	for (uint32_t i = 0; i < tacho_read_absent_count(reader); i++) {
		const struct tacho_absent *a = tacho_read_absent(reader, i);

		json_object(j);
		json_put_u64(j, "pid", a->pid);
		if (a->parent_pid)
			json_put_u64(j, "parent_pid", a->parent_pid);
		json_put_known(j, "comm", a->comm);
		json_put_known(j, "exe", a->exe);
		json_put_u64(j, "seen_ns", a->seen_ns);
		json_put_string(j, "reason", a->reason);
		json_put_string(j, "text", a->text);
		json_put_known(j, "said", a->said);
		json_put_known(j, "error", a->error ? strerror(a->error) : "");
		json_put_bool(j, "hindered", a->hindered);
		json_object_end(j);
	}
	json_array_end(j);
}
