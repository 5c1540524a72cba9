/*
 * Switchback: while the load goes on, recording in the server is paused and resumed, and each
 * interval between is measured. daemons_client.c says what is printed.
 */
#ifndef BENCH_DAEMONS_SWITCH_H
#define BENCH_DAEMONS_SWITCH_H

#include <stdint.h>
#include <sys/types.h>

struct switchback;

/* Has the box filled first. Ends the program when the probe does not answer. */
struct switchback *switchback_begin(unsigned pairs, pid_t pid, const char *file, uint64_t seed);

/* One more answer. 1: all pairs are measured. */
int switchback_answer(struct switchback *s, uint64_t now_ns, uint64_t sent_ns);

void switchback_report(struct switchback *s);

#endif
