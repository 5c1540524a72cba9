/*
 * Servers with one planted fault and a ground truth, made by tests/truth/truth.py. What is
 * asked for is in the options; what really happened is kept in memory and written at the end, so
 * that writing disturbs nothing.
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdint.h>
#include <sys/types.h>
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
	const char *queue;	   /* how items reach who consumes them: tcp, pipe, event, ... */
	const char *front;	   /* who receives requests for workers: loop or threads */
	const char *supervisor; /* what a thread or process beside the servers waits in, or none */
	double seconds;
	uint64_t size_ns, period_ns; /* of the fault, and from one to the next */
	uint64_t stop_ns;	     /* from the begin of serving until a rhythm stops */
	uint64_t work_us;	     /* that a healthy request takes */
	int threads, cpu;	     /* cpu: that all threads run on; negative: any */
	int many;		     /* tasks that have a rhythm; connections of a worker process */
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
/* A listening socket; tells its port and this process to whoever waits for them. */
int listen_and_tell(void);
/* When serving ends: so many seconds after the first call. */
uint64_t end_ns(void);
int over(void);
/* When a rhythm stops. */
int rhythm_stopped(void);
/* The fault comes at the end, in a request, and none comes back from it. */
int ends_badly(void);

/* notes.c */
/* A thread that serves requests: the kernel's count of its waits for a CPU goes to the truth. */
void serving_thread(void);
/* The same for a thread that requests wait for now and then, such as the holder of a lock. */
void helper_thread(void);
/* It serves no longer. */
void served(void);
/* This thread now: wall clock, CPU time, and how long it waited for a CPU so far. Reading the CPU time invites
   the kernel to run others, so a begin has its wall clock last, and an end first. */
struct moment {
	uint64_t at, ran, delayed;
};
struct moment begin_moment(void);
struct moment end_moment(void);
/* One occurrence of the fault. Any thread. */
void note(const char *function, uint64_t begin, uint64_t end);
void note_between(const char *function, struct moment begin, struct moment end);
/* How long a healthy request took that met no fault. */
void note_healthy(uint64_t ns);
/* This process was forked from the one that was started: it has a truth of its own. */
void forked(void);
void start_notes(void);
void write_truth(void);

/* faults.c */
struct fault {
	const char *option;
	const char *function; /* NULL: it notes by itself what it meets */
	void (*call)(void), (*tail)(void);
	int each; /* request */
};
/* A jump, where the compiler makes one of it. */
#define TAIL(name)                                                 \
	static __attribute__((noinline)) void tail_to_##name(void) \
	{                                                          \
		STAY;                                              \
		name();                                            \
	}                                                          \
	static __attribute__((noinline)) void call_##name(void)    \
	{                                                          \
		name();                                            \
		STAY;                                              \
	}

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
void feed_job(void);
/* Reads one message of the flood; what read returns. */
ssize_t flood_read_job(int fd);
/* A descriptor that is ready for good, and what is called for it. */
int unread_fd(void);
void unread_job(void);
/* The periodic job of a loop; 0: it does not ask for its next turn. */
int rhythm_job(void);
/* Requests are marked by the client: those of a flood, and of a feed that must not stop. */
#define FLOOD_BIT (UINT64_C(1) << 63)
#define FEED_BIT (UINT64_C(1) << 62)

/* locks.c */
extern const struct fault lock_faults[]; /* the last has no option */
void start_lock_helpers(void);
/* Waits for good for a lock: of two threads for each other, or of one that reads. */
void end_in_deadlock(void);
void end_behind_reader(void);

/* supervise.c */
/* Threads that wait for nothing in particular, as options.supervisor says. */
void start_supervisors(void);
/* What a parent does until its children have ended. */
void supervise_children(int count);

#endif
