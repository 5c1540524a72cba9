/*
 * What is known of a trace, as JSON: the same for `--json` and for the page.
 *
 * No OS calls, as src/model.
 */
#ifndef TACHO_ANSWER_ANSWER_H
#define TACHO_ANSWER_ANSWER_H

#include <stdbool.h>

#include "explain/blame.h"
#include "explain/diff.h"
#include "explain/explain.h"
#include "text/json.h"

/* An object: the verdict, the findings, and what they rest on; with the ledger, or without. */
void answer_report(struct json *j, const struct tacho_reader *reader,
		   const struct tacho__explanation *e, bool ledger);

/* An object: a subject and the pieces of its time. */
void answer_blame(struct json *j, const struct tacho_reader *reader, const struct tacho__blame *b);
const char *answer_subject_type(enum tacho__subject_type type);
/* "on_request", "a turn of the loop" */
void answer_subject_name(const struct tacho_reader *reader, const struct tacho__subject *s,
			 char *out, size_t size);

/* An object: two traces compared. */
void answer_diff(struct json *j, const struct tacho__diff *d);

/* Members of the object that is open. "ledger"; "threads_at_end" and "absent", where there are any. */
void answer_ledger(struct json *j, const struct tacho_reader *reader,
		   const struct tacho__ledger *l);
void answer_at_end(struct json *j, const struct tacho__at_ends *list, uint32_t process);
void answer_absent(struct json *j, const struct tacho_reader *reader);

#endif
