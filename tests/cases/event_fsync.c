/*
 * A callback saves all sessions and waits until the disk has them. How much that must be so that
 * it takes long is tried out first: disks differ.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "case.h"

#define RECORD 65536
#define RECORDS_MAX 4096 /* 256 MiB */

static uint64_t end;
static unsigned records = 4;
static int file;
static struct event_base *base;

/* How long the disk took. */
static uint64_t save_sessions(void)
{
	static char record[RECORD];
	uint64_t begin;

	memset(record, (int)(case_now() & 0xff), sizeof(record));
	case_check(lseek(file, 0, SEEK_SET) < 0, "lseek");
	for (unsigned i = 0; i < records; i++)
		case_check(write(file, record, sizeof(record)) != RECORD, "write");
	begin = case_now();
	case_check(fsync(file), "fsync"); /* FAULT */
	return case_now() - begin;
}

/* The least of some: what else the machine did once does not count. */
static uint64_t saves_take(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t took = save_sessions();

		least = took < least ? took : least;
	}
	return least;
}

static void on_checkpoint(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	save_sessions();
	if (case_now() > end)
		event_base_loopbreak(base);
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	case_work(100);
}

static void start(event_callback_fn callback, suseconds_t us)
{
	struct timeval interval = {0, us};
	struct event *e = event_new(base, -1, EV_PERSIST, callback, NULL);

	case_check(!e || event_add(e, &interval), "event_add");
}

int main(void)
{
	/* Not /tmp, which may be memory. */
	char path[] = "/var/tmp/tacho-case-XXXXXX";

	case_rounds_per_ms();
	file = mkstemp(path);
	case_check(file < 0 || unlink(path), path);
	while (saves_take() < 25 * CASE_MS && records < RECORDS_MAX)
		records *= 2;
	end = case_end(2);
	base = event_base_new();
	start(on_request, 5000);
	start(on_checkpoint, 250000);
	event_base_dispatch(base);
	event_base_free(base);
	return 0;
}
