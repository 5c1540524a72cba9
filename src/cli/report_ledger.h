/* The ledger of a report, for people. */
#ifndef TACHO_CLI_REPORT_LEDGER_H
#define TACHO_CLI_REPORT_LEDGER_H

#include "explain/ledger.h"

void report_ledger(const struct tacho_reader *reader, const struct tacho__ledger *l);

#endif
