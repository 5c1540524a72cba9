/* ledger_epoll SECONDS THREADS: a server of so many threads on one epoll set (ledger.py). */
#include <sys/epoll.h>

#include "ledger_servers.h"

static int set, most = CONNECTIONS; /* events that a thread takes at once */

static void *serve(void *arg)
{
	struct epoll_event events[CONNECTIONS];

	(void)arg;
	while (!atomic_load(&done)) {
		int n = epoll_wait(set, events, most, 100);

		for (int i = 0; i < n; i++)
			while (answer(events[i].data.fd))
				;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[1]) : 2;
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t asker, more;

	set = epoll_create1(EPOLL_CLOEXEC);
	asker = begin_asking(&seconds);
	for (int i = 0; i < CONNECTIONS; i++) {
		struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.fd = server_ends[i]};

		if (epoll_ctl(set, EPOLL_CTL_ADD, server_ends[i], &e))
			return 2;
	}
	most = threads > 1 ? 1 : CONNECTIONS;
	if (threads > 1 && pthread_create(&more, NULL, serve, NULL))
		return 2;
	serve(NULL);
	if (threads > 1)
		pthread_join(more, NULL);
	end_asking(asker);
	return 0;
}
