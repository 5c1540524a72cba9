/* A server with a large heap forks to save it, as redis does: copying its page tables stalls it. */
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#define HEAP (UINT64_C(1200) << 20)

static pid_t save_snapshot(void)
{
	pid_t child = fork(); /* FAULT */

	case_check(child < 0, "fork");
	if (!child)
		_exit(0);
	return child;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	char *heap = mmap(NULL, HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct epoll_event e;
	pid_t child = 0;
	uint64_t end;

	case_check(heap == MAP_FAILED || madvise(heap, HEAP, MADV_NOHUGEPAGE), "mmap");
	for (uint64_t i = 0; i < HEAP; i += 4096)
		heap[i] = 1;
	end = case_end(2);
	for (int i = 0; case_now() < end; i++) {
		epoll_wait(epoll, &e, 1, 10);
		case_work(50);
		if (i % 20 == 10)
			child = save_snapshot();
		if (child && waitpid(child, NULL, WNOHANG) > 0)
			child = 0;
	}
	return 0;
}
