/* The ledger of a report, for people and for programs. */
#ifndef TACHO_CLI_REPORT_LEDGER_H
#define TACHO_CLI_REPORT_LEDGER_H

#include "explain/ledger.h"
#include "text/json.h"

void report_ledger(const struct tacho_reader *reader, const struct tacho__ledger *l);
/* The member "ledger" of the object that is open. */
void report_ledger_json(struct json *j, const struct tacho_reader *reader,
			const struct tacho__ledger *l);

#endif
