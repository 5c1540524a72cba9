/*
 * What uses a server, from outside: a process of its own that sends requests at a rate whatever the
 * answers take, and writes when each was due, sent and answered. A request that finds no free
 * connection is sent later than it was due. DEPTH: how many a connection may have under way. EXTRA: a
 * connection beside them that sends as fast as it can (flood), or all the time in a rhythm (feed) that
 * stops after so many ms (feed:1000).
 *
 *	truth-client load PORT OUT SECONDS RATE CONNECTIONS SEED DEPTH EXTRA
 *	truth-client stop PID OUT SECONDS SIZE-MS PERIOD-MS
 *	truth-client burn CPU SECONDS
 */
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_REQUESTS 1000000
#define MAX_CONNECTIONS 64

static struct request {
	uint64_t due, sent, answered;
} * requests;
static uint64_t count, begun, end, seed;
static uint64_t latest; /* that a wait of this process ended later than it should: the machine */
static int fds[MAX_CONNECTIONS];
static unsigned busy[MAX_CONNECTIONS], depth; /* requests under way, and how many may be */
static uint64_t feed_ns;		      /* until the feed stops */

static void must(int good, const char *text)
{
	if (good)
		return;
	perror(text);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
			     .tv_nsec = (long)(ns % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static double uniform(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return ((double)(seed >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

static int connected(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	must(fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)), "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	return fd;
}

static void send_due(int connections, uint64_t now)
{
	for (int i = 0; i < connections && begun < count && requests[begun].due <= now;) {
		if (busy[i] >= depth) {
			i++;
			continue;
		}
		requests[begun].sent = now_ns();
		if (send(fds[i], &begun, sizeof(begun), MSG_NOSIGNAL) < 0)
			return;
		busy[i]++;
		begun++;
	}
}

/* When what was just received had come, by the kernel: this process may have lacked a CPU since. */
static uint64_t arrived_ns(struct msghdr *m)
{
	struct timespec real, stamp;
	uint64_t now;
	int64_t ago;

	clock_gettime(CLOCK_REALTIME, &real);
	now = now_ns();
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
		ago = (int64_t)(real.tv_sec - stamp.tv_sec) * 1000000000 +
		      (real.tv_nsec - stamp.tv_nsec);
		return ago > 0 && (uint64_t)ago < now ? now - (uint64_t)ago : now;
	}
	return now;
}

static void take_answer(int i)
{
	uint64_t number, control[16];
	struct iovec part = {&number, sizeof(number)};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fds[i], &m, MSG_DONTWAIT);

	if (n == sizeof(number) && number < count) {
		uint64_t ns = arrived_ns(&m);

		requests[number].answered =
			ns > requests[number].sent ? ns : requests[number].sent + 1;
	}
	if (n == sizeof(number))
		busy[i]--;
}

/* Sends as fast as the server reads. */
static void *flood(void *arg)
{
	uint64_t many[32];
	int fd = *(int *)arg;

	memset(many, 0xff, sizeof(many));
	while (now_ns() < end && send(fd, many, sizeof(many), MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

/* A message every 20 ms. */
static void *feed(void *arg)
{
	uint64_t message = UINT64_C(1) << 62, at = now_ns(), stop = at + feed_ns;
	int fd = *(int *)arg;

	for (; at < end && at < stop; at += 20000000) {
		sleep_until(at);
		if (send(fd, &message, sizeof(message), MSG_NOSIGNAL) < 0)
			break;
	}
	return NULL;
}

static void start_extra(uint16_t port, const char *what)
{
	static int extra;
	pthread_t thread;

	if (!strcmp(what, "none"))
		return;
	extra = connected(port);
	if (!strncmp(what, "feed:", 5))
		feed_ns = (uint64_t)(atof(what + 5) * 1e6);
	must(!pthread_create(&thread, NULL, feed_ns ? feed : flood, &extra), "pthread_create");
}

static void plan(double seconds, double rate)
{
	uint64_t begin = now_ns() + 20000000;
	double at = 0;

	end = begin + (uint64_t)(seconds * 1e9);
	requests = calloc(MAX_REQUESTS, sizeof(*requests));
	must(requests != NULL, "calloc");
	while (count < MAX_REQUESTS && (at -= log(uniform()) / rate) < seconds)
		requests[count++].due = begin + (uint64_t)(at * 1e9);
}

static void run(int connections)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	/* Those that are under way when sending ends are waited for. */
	uint64_t last = end + 200000000;

	for (int i = 0; i < connections; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

		must(!epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &e), "epoll_ctl");
	}
	for (uint64_t now; (now = now_ns()) < last;) {
		struct epoll_event e[MAX_CONNECTIONS];
		struct timespec t = {.tv_nsec = 20000000};
		int n;

		send_due(connections, now);
		if (begun < count && requests[begun].due > now &&
		    requests[begun].due - now < 20000000)
			t.tv_nsec = (long)(requests[begun].due - now);
		now = now_ns() + (uint64_t)t.tv_nsec;
		n = epoll_pwait2(set, e, MAX_CONNECTIONS, &t, NULL);
		if (now_ns() > now + latest)
			latest = now_ns() - now;
		for (int i = 0; i < n; i++)
			take_answer((int)e[i].data.u32);
	}
}

static int load(char **argv)
{
	uint16_t port = (uint16_t)atoi(argv[0]);
	int connections = atoi(argv[4]);
	char late[4096];
	FILE *f;

	seed = strtoull(argv[5], NULL, 10);
	depth = (unsigned)atoi(argv[6]);
	must(connections > 0 && connections <= MAX_CONNECTIONS, "connections");
	for (int i = 0; i < connections; i++)
		fds[i] = connected(port);
	plan(atof(argv[2]), atof(argv[3]));
	start_extra(port, argv[7]);
	run(connections);
	f = fopen(argv[1], "we");
	must(f != NULL, argv[1]);
	fwrite(requests, sizeof(*requests), count, f);
	must(!fclose(f), argv[1]);
	snprintf(late, sizeof(late), "%s.late", argv[1]);
	f = fopen(late, "we");
	must(f != NULL, late);
	fprintf(f, "%llu\n", (unsigned long long)latest);
	return fclose(f);
}

static int stop(char **argv)
{
	pid_t pid = (pid_t)atoi(argv[0]);
	uint64_t size = (uint64_t)(atof(argv[3]) * 1e6), period = (uint64_t)(atof(argv[4]) * 1e6);
	uint64_t last = now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	FILE *f = fopen(argv[1], "we");

	must(f != NULL, argv[1]);
	for (uint64_t at = now_ns() + period / 2; at + size < last; at += period) {
		uint64_t times[2];

		sleep_until(at);
		times[0] = now_ns();
		if (kill(pid, SIGSTOP))
			break;
		sleep_until(times[0] + size);
		kill(pid, SIGCONT);
		times[1] = now_ns();
		fwrite(times, sizeof(times), 1, f);
	}
	return fclose(f);
}

/* Ends with whoever started it. */
static int burn(char **argv)
{
	uint64_t last = now_ns() + (uint64_t)(atof(argv[1]) * 1e9);
	int cpu = atoi(argv[0]);
	volatile uint64_t sum = 0;
	cpu_set_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu >= 0)
		must(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
	while (now_ns() < last)
		for (int i = 0; i < 100000; i++)
			sum = sum * 31 + (uint64_t)i;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 10 && !strcmp(argv[1], "load"))
		return load(argv + 2);
	if (argc == 7 && !strcmp(argv[1], "stop"))
		return stop(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "burn"))
		return burn(argv + 2);
	fprintf(stderr, "see the first lines of client.c\n");
	return 2;
}
