/*
 * Parts of a description of a process that `status` and `info` share.
 */
#ifndef TACHO_CLI_REPORT_H
#define TACHO_CLI_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/json.h"
#include "tacho_read.h"

/* "label      ", in bold and of one width, to begin a line; "" for a line that goes on. */
void report_label(const char *label);

/* Whether the process runs, as text: "running", "gone", "not known whether it runs". */
const char *report_alive(const struct tacho_process *process);

void report_sources(const struct tacho_reader *reader, uint32_t process);
void report_losses(const struct tacho_reader *reader, uint32_t process);
void report_sources_json(struct json *j, const struct tacho_reader *reader, uint32_t process);
void report_losses_json(struct json *j, const struct tacho_reader *reader, uint32_t process);
void report_process_json(struct json *j, const struct tacho_process *process);
void report_crashes(const struct tacho_reader *reader, uint32_t process, uint64_t zero_ns);
void report_crashes_json(struct json *j, const struct tacho_reader *reader, uint32_t process);

/* The rest of the line: how long it is, and how much of that is without holes. */
struct cli_counts;
void report_window(uint64_t first_ns, uint64_t last_ns, const struct cli_counts *counts);

/* Threads of one process. */
uint32_t report_thread_count(const struct tacho_reader *reader, uint32_t process, uint32_t *live);

/* An agent says that it looks after the box, and runs. */
bool report_agent_runs(const struct tacho_process *process);
/* What it asked the recorder to watch for: "poll>50.000 ms, queue>1000". */
bool report_has_sentinels(const struct tacho_reader *reader, uint32_t process);
void report_sentinels(FILE *out, const struct tacho_reader *reader, uint32_t process);
void report_agent_json(struct json *j, const struct tacho_reader *reader, uint32_t process);

#endif
