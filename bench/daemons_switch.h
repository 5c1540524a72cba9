/*
 * Switchback: the load goes from server to server, recording in each is paused and resumed, and
 * each interval between is measured. daemons_client.c says what is printed.
 */
#ifndef BENCH_DAEMONS_SWITCH_H
#define BENCH_DAEMONS_SWITCH_H

#include <stdint.h>
#include <sys/types.h>

struct switchback;

struct switchback *switchback_new(unsigned blocks, uint64_t seed);

/* Before the load begins: one more server. Has its box filled. */
void switchback_add(struct switchback *s, pid_t pid, const char *file);

/* Which server shall be asked, by its number; -1: none, all is measured. */
int switchback_begin(struct switchback *s, uint64_t now_ns);

/* The same after one more answer of a server, which may be one that was asked before. */
int switchback_answer(struct switchback *s, int server, uint64_t now_ns, uint64_t sent_ns);

void switchback_report(struct switchback *s);

#endif
