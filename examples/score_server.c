/*
 * Keeps the scores of a game in an SQLite database, from a loop: GET /score?points=N adds one.
 * It knows nothing of tacho.
 *
 *	score_server DATABASE
 *
 * What is wrong with it: while others have locked the database, SQLite waits for them, in the
 * middle of a turn of the loop. That is what the time-out below asks for.
 */
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net.h"

static sqlite3 *db;
static sqlite3_stmt *insert;
static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static void check(int result)
{
	if (result != SQLITE_OK) {
		fprintf(stderr, "score_server: %s\n", sqlite3_errmsg(db));
		exit(1);
	}
}

static void open_database(const char *path)
{
	check(sqlite3_open(path, &db));
	check(sqlite3_busy_timeout(db, 5000));
	check(sqlite3_exec(db,
			   "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;"
			   "CREATE TABLE IF NOT EXISTS scores (points INTEGER)",
			   NULL, NULL, NULL));
	check(sqlite3_prepare_v2(db, "INSERT INTO scores VALUES (?)", -1, &insert, NULL));
}

static int save_score(int points)
{
	int result;

	sqlite3_bind_int(insert, 1, points);
	result = sqlite3_step(insert);
	sqlite3_reset(insert);
	return result == SQLITE_DONE;
}

static void on_readable(int fd)
{
	static const char good[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			  bad[] = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
	char request[1024];
	ssize_t n = read(fd, request, sizeof(request) - 1);
	const char *points;
	int saved;

	if (n <= 0) {
		close(fd);
		return;
	}
	request[n] = 0;
	points = strstr(request, "points=");
	saved = points && save_score(atoi(points + 7));
	/* A client that has gone is seen by the next read. */
	if (send(fd, saved ? good : bad, strlen(saved ? good : bad), MSG_NOSIGNAL) < 0)
		return;
}

static void watch(int epoll, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	must(fd >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e), "epoll_ctl");
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	int epoll = epoll_create1(EPOLL_CLOEXEC), server;
	struct epoll_event events[16];

	if (argc != 2) {
		fprintf(stderr, "Usage: score_server DATABASE\n");
		return 2;
	}
	open_database(argv[1]);
	sigaction(SIGTERM, &action, NULL);
	server = listen_somewhere("score_server");
	watch(epoll, server);
	while (!ended) {
		int n = epoll_wait(epoll, events, 16, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == server)
				watch(epoll, accept4(server, NULL, NULL, SOCK_CLOEXEC));
			else
				on_readable(events[i].data.fd);
		}
	}
	sqlite3_finalize(insert);
	sqlite3_close(db);
	return 0;
}
