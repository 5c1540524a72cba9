/* What a report looked at and did not make a finding, for people and for programs. */
#ifndef TACHO_CLI_REPORT_CONSIDERED_H
#define TACHO_CLI_REPORT_CONSIDERED_H

#include "explain/explain.h"
#include "text/json.h"

void report_considered(const struct tacho_reader *reader, const struct tacho__explanation *e);
/* The member "considered" of the object that is open. */
void report_considered_json(struct json *j, const struct tacho_reader *reader,
			    const struct tacho__explanation *e);

#endif
