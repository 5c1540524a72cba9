#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct tacho_name loop = TACHO_LOOP("tasks");
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct task *first, **last = &first, *sleepers;
static uint64_t queued, alive;
static int epoll, event, parked;
int (*tasks_turn)(void);

void tasks_start(const char *name)
{
	struct epoll_event e = {.events = EPOLLIN};
	int err = tacho_start(NULL);

	if (err && err != -EALREADY)
		fprintf(stderr, "not recording: %d\n", err);
	loop.text = name;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	case_check(epoll < 0 || event < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e), "epoll");
}

struct task *task_spawn(struct tacho_name *kind, task_poll poll, struct tacho_name *place)
{
	struct task *t = calloc(1, sizeof(*t));

	case_check(!t, "calloc");
	t->id = tacho_task_new();
	t->kind = kind;
	t->poll = poll;
	alive++;
	tacho_task_spawn(t->id, kind, 0, place);
	task_wake(t);
	return t;
}

void task_wake(struct task *t)
{
	uint64_t one = 1;
	int wake = 0;

	tacho_wake(t->id);
	pthread_mutex_lock(&lock);
	if (!t->queued) {
		t->queued = 1;
		t->next = NULL;
		*last = t;
		last = &t->next;
		queued++;
		wake = parked;
	}
	pthread_mutex_unlock(&lock);
	if (wake && write(event, &one, sizeof(one)) < 0)
		perror("eventfd");
}

void task_sleep(struct task *t, uint64_t ms)
{
	t->due = case_now() + ms * CASE_MS;
	t->next_sleeper = sleepers;
	sleepers = t;
}

uint64_t tasks_queued(void)
{
	return __atomic_load_n(&queued, __ATOMIC_RELAXED);
}

/* Wakes those whose time has come; milliseconds until the next. */
static int wake_sleepers(void)
{
	uint64_t now = case_now(), next = now + 50 * CASE_MS;

	for (struct task **at = &sleepers; *at;) {
		struct task *t = *at;

		if (t->due <= now) {
			*at = t->next_sleeper;
			t->due = 0;
			task_wake(t);
			continue;
		}
		if (t->due < next)
			next = t->due;
		at = &t->next_sleeper;
	}
	return (int)((next - now + CASE_MS - 1) / CASE_MS);
}

static struct task *take(void)
{
	struct task *t;

	pthread_mutex_lock(&lock);
	t = first;
	if (t) {
		first = t->next;
		if (!first)
			last = &first;
		t->queued = 0;
		queued--;
	}
	pthread_mutex_unlock(&lock);
	return t;
}

static void run(struct task *t)
{
	uint32_t result;

	tacho_poll_begin(t->kind, t->id);
	result = t->poll(t);
	tacho_poll_end(result);
	if (result == TACHO_DONE) {
		free(t);
		alive--;
	}
}

static void wait(int timeout)
{
	struct epoll_event e;
	uint64_t count;
	int n;

	pthread_mutex_lock(&lock);
	parked = 1;
	if (first && !tasks_turn)
		timeout = 0;
	pthread_mutex_unlock(&lock);
	tacho_park(&loop);
	n = epoll_wait(epoll, &e, 1, timeout);
	tacho_unpark(&loop, n > 0 ? 1 : 0);
	pthread_mutex_lock(&lock);
	parked = 0;
	pthread_mutex_unlock(&lock);
	if (n > 0 && read(event, &count, sizeof(count)) < 0 && errno != EAGAIN)
		perror("eventfd");
}

void tasks_run(uint64_t end, uint64_t most)
{
	while (alive && case_now() < end) {
		uint64_t left = most;
		struct task *t;

		wait(wake_sleepers());
		wake_sleepers();
		tacho_queue_depth(&loop, tasks_queued());
		if (tasks_turn && !tasks_turn())
			continue;
		while (left-- && (t = take()))
			run(t);
	}
}

void tasks_save(void)
{
	const char *path = getenv("TACHO_CASE_FILE");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd >= 0)
		case_check(tacho_snapshot(fd) != 0, "tacho_snapshot");
}
