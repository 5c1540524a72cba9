/*
 * The facts of the model, one JSON object to the line (man/tacho-export.1 lists them).
 */
#ifndef TACHO_CLI_FACTS_JSON_H
#define TACHO_CLI_FACTS_JSON_H

#include <stdio.h>

#include "model/model.h"

/* 0 or a negative errno; whether `out` took it all is for the caller to ask. */
int facts_put_json(FILE *out, struct tacho_reader *reader, struct tacho__tracker_limits *missed);

#endif
