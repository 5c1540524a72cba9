/* A finding of a report, for people. */
#ifndef TACHO_CLI_REPORT_FINDING_H
#define TACHO_CLI_REPORT_FINDING_H

#include "explain/explain.h"

/* Of the findings that are shown, in their order; those that it explains stand under it. */
void report_finding(const struct tacho_reader *reader, const struct tacho__explanation *e,
		    uint32_t index);

#endif
