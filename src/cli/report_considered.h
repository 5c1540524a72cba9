/* What a report looked at and did not make a finding, for people. */
#ifndef TACHO_CLI_REPORT_CONSIDERED_H
#define TACHO_CLI_REPORT_CONSIDERED_H

#include "explain/explain.h"

void report_considered(const struct tacho_reader *reader, const struct tacho__explanation *e);

#endif
