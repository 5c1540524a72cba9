/*
 * Threads that serve one epoll set, for three seconds.
 *
 *	shared_subject MODE [stalls]
 *
 * leaders: one waits in the set, the others on a condition until it gives way, after a second or when
 * it has much to do. cond, futex, sleep, accept: one serves the set, and the others do now and then
 * and idle in that for a second in between. alone: there is but one. With "stalls", all that serve the
 * set block for 1.5 s, once.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define TURNS_BEFORE_IDLE 20
#define TURNS_OF_A_LEADER 200
#define RUN_MS 3000
#define STALL_AT_MS 700
#define STALL_MS 1500

static int set, events;
static const char *mode;
static unsigned to_stall;
static int leader; /* 1: there is one */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t free_to_lead = PTHREAD_COND_INITIALIZER;

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static int is(const char *name)
{
	return !strcmp(mode, name);
}

static void handle(void)
{
	unsigned left = __atomic_load_n(&to_stall, __ATOMIC_RELAXED);

	while (left && !__atomic_compare_exchange_n(&to_stall, &left, left - 1, 0, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
		;
	if (left)
		pause_ms(STALL_MS);
	else
		for (volatile int i = 0; i < 10000; i++)
			;
}

static int wait_in_set(int timeout)
{
	struct epoll_event e;
	uint64_t n;

	return epoll_wait(set, &e, 1, timeout) == 1 && read(events, &n, sizeof(n)) > 0;
}

static void *lead_or_follow(void *arg)
{
	for (;;) {
		int got, left = TURNS_OF_A_LEADER;

		pthread_mutex_lock(&lock);
		while (leader)
			pthread_cond_wait(&free_to_lead, &lock);
		leader = 1;
		pthread_mutex_unlock(&lock);
		while ((got = wait_in_set(-1)) && left-- &&
		       !__atomic_load_n(&to_stall, __ATOMIC_RELAXED))
			handle();
		pthread_mutex_lock(&lock);
		leader = 0;
		pthread_cond_signal(&free_to_lead);
		pthread_mutex_unlock(&lock);
		if (got)
			handle();
	}
	return arg;
}

static void idle(int listener)
{
	static int never;
	struct timespec second = {1, 0}, until;

	if (is("cond")) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_mutex_lock(&lock);
		pthread_cond_timedwait(&free_to_lead, &lock, &until);
		pthread_mutex_unlock(&lock);
	} else if (is("futex")) {
		syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, &second, NULL, 0);
	} else if (is("sleep")) {
		pause_ms(1000);
	} else {
		accept(listener, NULL, NULL);
	}
}

static void *serve(void *arg)
{
	for (;;)
		if (wait_in_set(-1))
			handle();
	return arg;
}

static void *serve_and_idle(void *arg)
{
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr nameless = {.sa_family = AF_UNIX};
	struct timeval second = {1, 0};

	if (bind(listener, &nameless, sizeof(nameless.sa_family)) || listen(listener, 1) ||
	    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)))
		abort();
	for (;;) {
		for (int i = 0; i < TURNS_BEFORE_IDLE; i++)
			if (wait_in_set(1))
				handle();
		idle(listener);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct epoll_event e = {.events = EPOLLIN};
	int many, stalls = argc > 2;
	pthread_t thread;

	alarm(60);
	mode = argc > 1 ? argv[1] : "alone";
	many = is("alone") ? 1 : THREADS;
	set = epoll_create1(EPOLL_CLOEXEC);
	events = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (epoll_ctl(set, EPOLL_CTL_ADD, events, &e))
		return 2;
	for (int i = 0; i < many; i++)
		if (pthread_create(&thread, NULL,
				   is("leaders") ? lead_or_follow
				   : i		 ? serve_and_idle
						 : serve,
				   NULL))
			return 2;
	for (int ms = 0; ms < RUN_MS; ms += 5) {
		uint64_t one = 1;

		if (stalls && ms == STALL_AT_MS)
			__atomic_store_n(&to_stall, many, __ATOMIC_RELAXED);
		if (write(events, &one, sizeof(one)) < 0)
			return 2;
		pause_ms(5);
	}
	return 0;
}
