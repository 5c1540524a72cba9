/*
 * A collector of reports that takes its time: it answers a POST after 400 ms.
 */
#include <unistd.h>

#include "net.h"

int main(void)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	int server = listen_somewhere("collector");
	char text[4096];

	for (;;) {
		int fd = accept(server, NULL, NULL);

		must(fd >= 0, "accept");
		if (read(fd, text, sizeof(text)) > 0) {
			usleep(400000);
			if (send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
				perror("collector");
		}
		close(fd);
	}
}
