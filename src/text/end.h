/*
 * How a process ended, in one sentence: the same in every command.
 */
#ifndef TACHO_TEXT_END_H
#define TACHO_TEXT_END_H

#include <stdbool.h>
#include <stdio.h>

#include "text/json.h"
#include "text/text.h"

struct tacho_process;
struct tacho_reader;

#define TEXT_END (4 * TEXT_SMALL)

/* "killed by SIGSEGV after 1.997 s", which is counted from when recording began; "" where the
   trace does not say. Returns out. */
const char *text_end(char out[TEXT_END], const struct tacho_process *process);
/* A line "NAME (PID): END"; false: nothing, as the trace does not say. */
bool text_put_end(FILE *out, const struct tacho_process *process);
/* The same for each process of the reader; of many, the first. */
void text_put_ends(FILE *out, const struct tacho_reader *reader);
/* Member "end": an object, or nothing where the trace does not say. */
void text_end_json(struct json *j, const struct tacho_process *process);

#endif
