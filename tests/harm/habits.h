/* Programs with habits that a library inside them can break. Each prints what it saw, the same every
   time, and returns its exit status. */
#ifndef TACHO_TESTS_HARM_HABITS_H
#define TACHO_TESTS_HARM_HABITS_H

#include <stdio.h>
#include <stdlib.h>

typedef int habit(int argc, char **argv);

/* habits_stack.c */
habit small_thread, small_handler, thread_of_ulimit;
/* habits_signals.c */
habit own_profiler, real_time_handlers, all_signals_by_signalfd, all_signals_by_sigwait,
	timers_at_limit;
/* habits_memory.c */
habit unmaps_strangers, protects_strangers, checks_maps, all_keys, own_allocator,
	faults_in_user_space;
/* habits_process.c */
habit vforks, clones_memory, forks_in_threads, forks_in_handler, spawns_with_closed,
	empty_arguments, reexecutes, many_children, checks_environment, probes_functions;

/* Waits `times` times in epoll, a millisecond each: a program that tacho records. */
void wait_in_epoll(int times);
/* Uses the CPU for so long. */
void burn(double seconds);

#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition)) {                                            \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(99);                                              \
		}                                                              \
	} while (0)

#endif
