/*
 * What `status`, `info` and `ls` say about a process.
 */
#ifndef TACHO_CLI_ABOUT_H
#define TACHO_CLI_ABOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "explain/at_end.h"
#include "text/json.h"
#include "tacho_read.h"

/* "label      ", in bold and of one width, to begin a line; "" for a line that goes on. */
void about_label(const char *label);

/* Whether the process runs, as text: "running", "gone", "not known whether it runs". */
const char *about_alive(const struct tacho_process *process);

void about_sources(const struct tacho_reader *reader, uint32_t process);
void about_losses(const struct tacho_reader *reader, uint32_t process);
/* Processes that were not recorded: one of them without the end of the line; all, nothing when there
   are none. */
void about_absentee(const struct tacho_absent *a);
void about_absent(const struct tacho_reader *reader);
void about_sources_json(struct json *j, const struct tacho_reader *reader, uint32_t process);
void about_losses_json(struct json *j, const struct tacho_reader *reader, uint32_t process);
void about_process_json(struct json *j, const struct tacho_process *process);
void about_crashes(const struct tacho_reader *reader, uint32_t process, uint64_t zero_ns);
void about_crashes_json(struct json *j, const struct tacho_reader *reader, uint32_t process);

/* about_threads.c: what the threads of a process were in at its end; nothing where that is not known. */
void about_at_end(const struct tacho__at_ends *list, uint32_t process);
/* The same in a few lines: what tells most, and how many others there are. */
void about_at_end_short(const struct tacho__at_ends *list, uint32_t process);

/* The rest of the line: how long it is, and how much of that is without holes. */
struct cli_counts;
void about_window(uint64_t first_ns, uint64_t last_ns, const struct cli_counts *counts);

/* Threads of one process. */
uint32_t about_thread_count(const struct tacho_reader *reader, uint32_t process, uint32_t *live);

/* An agent says that it looks after the box, and runs. */
bool about_agent_runs(const struct tacho_process *process);
/* What it asked the recorder to watch for: "poll>50.000 ms, queue>1000". */
bool about_has_sentinels(const struct tacho_reader *reader, uint32_t process);
void about_sentinels(FILE *out, const struct tacho_reader *reader, uint32_t process);
void about_agent_json(struct json *j, const struct tacho_reader *reader, uint32_t process);

#endif
