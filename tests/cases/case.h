/*
 * What the programs of the casebook share. Each has one fault, on the lines that are marked
 * FAULT; libtable.py says what a report must name first.
 */
#ifndef CASE_H
#define CASE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define CASE_MS UINT64_C(1000000)

/* CLOCK_MONOTONIC in ns. */
uint64_t case_now(void);
/* When the program is to end: so many seconds after its start. */
uint64_t case_end(double seconds);
/* Rounds of `sum = sum * 31 + i` that take a millisecond of CPU time. */
uint64_t case_rounds_per_ms(void);
/* Computes for so long, in CPU time. */
void case_work(uint64_t us);
/* Ends the program when `what` is not 0. */
void case_check(int what, const char *text);
/* This thread runs on that CPU of those it may run on, the last if there are fewer. */
void case_pin(unsigned cpu);
/* A process on the same CPUs that never waits; it ends after that time if nobody ends it. */
pid_t case_neighbour(double seconds);
/* A socket that listens on 127.0.0.1, and its port. */
int case_listen(int backlog, uint16_t *port);
/* A socket that is connected to it. */
int case_connect(uint16_t port);
/* This process is killed after that time, as by somebody from outside. */
void case_killed_after(double seconds);

extern volatile uint64_t case_sink;

#endif
