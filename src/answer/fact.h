/*
 * Facts of the model as JSON objects, with the members that src/model/facts.def lists.
 */
#ifndef TACHO_ANSWER_FACT_H
#define TACHO_ANSWER_FACT_H

#include "model/model.h"
#include "text/json.h"

#define FACT(fact, name, type, ...) \
	void fact_put_##fact(struct json *j, const struct tacho_reader *r, const struct type *x);
#define MEMBERS FACT
#include "model/facts.def"

/* Logs, events of the program and what else is left: as `tacho cat --json` has them. */
void fact_put_other(struct json *j, const struct tacho_reader *r, const struct tacho__at *at,
		    const struct tacho_event *e);

#endif
