/*
 * Servers with one planted fault and a ground truth, made by tests/truth/truth.py. What is
 * asked for is in the options; what really happened is kept in memory and written at the end, so
 * that writing disturbs nothing.
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdint.h>
#include <time.h>

#define MS UINT64_C(1000000)
#define MAX_THREADS 64

#ifdef TRUTH_INLINED
#define FAULT static inline __attribute__((always_inline)) void
#else
#define FAULT static __attribute__((noinline)) void
#endif
/* What comes after the last call of a function, so that it is no tail call. */
#define STAY __asm__ volatile("" ::: "memory")

/* Macros, because the place of a fault is the function that it stands in. COMPUTE is in CPU time. */
#define SLEEP(ns)                                                                 \
	do {                                                                      \
		struct timespec sleep_ = {.tv_sec = (time_t)((ns) / 1000000000u), \
					  .tv_nsec = (long)((ns) % 1000000000u)}; \
                                                                                  \
		nanosleep(&sleep_, NULL);                                         \
	} while (0)
#define COMPUTE(ns)                                                        \
	do {                                                               \
		uint64_t sum_ = sink, rounds_ = rounds_per_ms * (ns) / MS; \
                                                                           \
		for (uint64_t i_ = 0; i_ < rounds_; i_++)                  \
			sum_ = sum_ * 31 + i_;                             \
		sink = sum_;                                               \
	} while (0)

struct options {
	const char *shape, *fault;
	const char *truth, *ready; /* files */
	const char *cpu_stat;	   /* of the cgroup that has a quota */
	double seconds;
	uint64_t size_ns, period_ns; /* of the fault, and from one to the next */
	uint64_t work_us;	     /* that a healthy request takes */
	int threads, cpu;	     /* cpu: that all threads run on; negative: any */
	int tail;		     /* the fault is reached by a tail call */
	uint64_t seed;
};

extern struct options options;

/* base.c */
uint64_t clock_ns(clockid_t clock);
uint64_t now_ns(void);
extern uint64_t rounds_per_ms;
extern volatile uint64_t sink;
void must(int good, const char *text);
void parse(int argc, char **argv);
/* A thread that serves requests: what the kernel let it wait for a CPU is in the truth. */
void serving_thread(void);
/* It serves no longer. */
void served(void);
/* A listening socket; tells its port and this process to whoever waits for them. */
int listen_and_tell(void);
/* One occurrence of the fault. Any thread. */
void note(const char *function, uint64_t begin, uint64_t end);
void note_ran(const char *function, uint64_t begin, uint64_t end, uint64_t ran_ns);
/* How long a healthy request took that met no fault. */
void note_healthy(uint64_t ns);
/* When serving ends: so many seconds after the first call. */
uint64_t end_ns(void);
int over(void);
/* The fault comes at the end, in a request, and none comes back from it. */
int ends_badly(void);
void write_truth(void);

/* faults.c */
/* What one request needs: healthy work, and the fault when it is due. */
void serve_request(void);
/* The epoll set into which descriptors leak. */
extern int leak_set;
/* Threads that faults need beside the loop. */
void start_helpers(void);
/* Which work is done in another place than in the request. */
int fault_is(const char *name);
void pool_job(void);
void timer_job(void);
void flood_job(void);

#endif
