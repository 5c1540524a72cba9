/* Uses variables of libc directly: linked without -fPIE they are copied into the program (copy
   relocations), and libraries have to use those copies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	struct epoll_event event;
	int set = epoll_create1(0), same = environ && getenv("PATH");

	(void)argv;
	for (int i = 0; i < 3; i++)
		epoll_wait(set, &event, 1, 1);
	setenv("MADE", "here", 1);
	for (char **e = environ; *e; e++)
		same += !strcmp(*e, "MADE=here");
	fprintf(stdout, "%d %d %d\n", same, stdout == stdin, optind);
	return argc > 1 ? 3 : 0;
}
