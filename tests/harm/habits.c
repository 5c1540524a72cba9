#include "habits.h"

#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

void wait_in_epoll(int times)
{
	struct epoll_event event;
	int set = epoll_create1(EPOLL_CLOEXEC);

	MUST(set >= 0);
	for (int i = 0; i < times; i++)
		MUST(epoll_wait(set, &event, 1, 1) == 0);
	close(set);
}

void burn(double seconds)
{
	struct timespec from, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9 <
	       seconds);
}

static int plain_wait(int argc, char **argv)
{
	(void)argc, (void)argv;
	wait_in_epoll(3);
	puts("waited");
	return 0;
}

static const struct {
	const char *name;
	habit *run;
} habits[] = {
	{"wait", plain_wait},
	{"small-thread", small_thread},
	{"small-handler", small_handler},
	{"thread-of-ulimit", thread_of_ulimit},
	{"own-profiler", own_profiler},
	{"real-time-handlers", real_time_handlers},
	{"signalfd", all_signals_by_signalfd},
	{"sigwait", all_signals_by_sigwait},
	{"timers-at-limit", timers_at_limit},
	{"unmaps", unmaps_strangers},
	{"protects", protects_strangers},
	{"checks-maps", checks_maps},
	{"all-keys", all_keys},
	{"own-allocator", own_allocator},
	{"userfaultfd", faults_in_user_space},
	{"vforks", vforks},
	{"clones-memory", clones_memory},
	{"forks-in-threads", forks_in_threads},
	{"forks-in-handler", forks_in_handler},
	{"spawns-with-closed", spawns_with_closed},
	{"empty-arguments", empty_arguments},
	{"reexecutes", reexecutes},
	{"many-children", many_children},
	{"checks-environment", checks_environment},
	{"probes-functions", probes_functions},
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0); /* children inherit no text */
	for (size_t i = 0; argc > 1 && i < sizeof(habits) / sizeof(habits[0]); i++)
		if (!strcmp(argv[1], habits[i].name))
			return habits[i].run(argc, argv);
	fprintf(stderr, "usage: habits NAME [ARGUMENT...]\n");
	return 2;
}
