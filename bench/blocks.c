#include "blocks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Not measured, at the beginning of each block: caches and branch predictors settle. */
#define WARM_PART 20

struct result {
	double wall_ns, cpu_ns;
};

struct crew {
	pthread_barrier_t begin, end;
	pthread_t threads[BENCH_THREADS];
	const struct bench_case *job; /* NULL: go home */
	unsigned threads_wanted;
	unsigned arrived;
	struct result results[BENCH_THREADS];
};

struct member {
	struct crew *crew;
	unsigned number;
};

static double now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The threads of a block begin within less than a microsecond of each other. */
static void rendezvous(struct crew *c)
{
	unsigned tries = 0;

	__atomic_add_fetch(&c->arrived, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&c->arrived, __ATOMIC_ACQUIRE) < c->threads_wanted)
		if (++tries % 4096 == 0)
			sched_yield();
}

static void *work(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;

	for (;;) {
		const struct bench_case *job;
		double wall, cpu;

		pthread_barrier_wait(&c->begin);
		job = c->job;
		if (!job)
			return NULL;
		if (m->number < c->threads_wanted) {
			job->run(job->operations / WARM_PART);
			rendezvous(c);
			wall = now(CLOCK_MONOTONIC);
			cpu = now(CLOCK_THREAD_CPUTIME_ID);
			job->run(job->operations);
			c->results[m->number].cpu_ns = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
			c->results[m->number].wall_ns = now(CLOCK_MONOTONIC) - wall;
		}
		pthread_barrier_wait(&c->end);
	}
}

static void block(struct crew *c, const struct bench_case *job, unsigned threads)
{
	c->job = job;
	c->threads_wanted = threads;
	c->arrived = 0;
	if (job->before)
		job->before();
	pthread_barrier_wait(&c->begin);
	pthread_barrier_wait(&c->end);
	if (job->after)
		job->after();
}

static void print(const struct crew *c, unsigned repeat)
{
	double events = (double)(c->job->operations * c->job->events);

	for (unsigned i = 0; i < c->threads_wanted; i++)
		printf("block %s %u %u %.4f %.4f\n", c->job->name, c->threads_wanted, repeat,
		       c->results[i].wall_ns / events, c->results[i].cpu_ns / events);
}

static void all(struct crew *c, const struct bench_case *cases, unsigned count, unsigned repeats,
		uint64_t *made)
{
	for (unsigned repeat = 0; repeat < repeats; repeat++) {
		for (unsigned k = 0; k < count; k++) {
			/* Each case follows each other one in turn. */
			unsigned at = (k * (1 + repeat % 2) + repeat) % count;
			const struct bench_case *job =
				&cases[count % 2 ? at : (k + repeat) % count];

			for (unsigned threads = 1; threads <= BENCH_THREADS; threads++) {
				block(c, job, threads);
				print(c, repeat);
				made[job - cases] +=
					threads * job->events *
					(job->operations + job->operations / WARM_PART);
			}
		}
	}
}

int bench_blocks(const struct bench_case *cases, unsigned count, unsigned repeats, uint64_t *made)
{
	struct member members[BENCH_THREADS];
	struct crew *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	pthread_barrier_init(&c->begin, NULL, BENCH_THREADS + 1);
	pthread_barrier_init(&c->end, NULL, BENCH_THREADS + 1);
	for (unsigned i = 0; i < BENCH_THREADS; i++) {
		members[i] = (struct member){c, i};
		err = pthread_create(&c->threads[i], NULL, work, &members[i]);
		/* Those that wait at the barrier end with the process. */
		if (err)
			return -err;
	}
	all(c, cases, count, repeats, made);
	c->job = NULL;
	pthread_barrier_wait(&c->begin);
	for (unsigned i = 0; i < BENCH_THREADS; i++)
		pthread_join(c->threads[i], NULL);
	free(c);
	return 0;
}
