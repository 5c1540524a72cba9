#include "uv_subject.h"

#include <string.h>
#include <unistd.h>

#define COUNTS_MAX 128
static struct {
	const char *name;
	unsigned n;
} counts[COUNTS_MAX];
static uv_mutex_t counts_lock;

void count(const char *name)
{
	uv_mutex_lock(&counts_lock);
	for (int i = 0; i < COUNTS_MAX; i++) {
		if (counts[i].name && strcmp(counts[i].name, name))
			continue;
		counts[i].name = name;
		counts[i].n++;
		break;
	}
	uv_mutex_unlock(&counts_lock);
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static void say_counts(void)
{
	size_t n = 0;

	while (n < COUNTS_MAX && counts[n].name)
		n++;
	qsort(counts, n, sizeof(counts[0]), by_name);
	for (size_t i = 0; i < n; i++)
		printf("count %s %u\n", counts[i].name, counts[i].n);
}

uv_loop_t *loop;
char folder[200];
char mark;

void check_data(const void *data)
{
	if (data != &mark) {
		printf("failed: data was changed\n");
		exit(1);
	}
}

const char *in_folder(const char *name)
{
	static char path[8][300];
	static int next;
	char *p = path[next++ % 8];

	snprintf(p, 300, "%s/%s", folder, name);
	return p;
}

void on_never(uv_timer_t *t)
{
	(void)t;
	printf("failed: a callback that was replaced ran\n");
	exit(1);
}

/* ------------------------------------------------------- closing */

void on_close(uv_handle_t *h)
{
	char name[40];
	static const char *names[UV_HANDLE_TYPE_MAX];

	check_data(h->data);
	if (!names[h->type]) {
		snprintf(name, sizeof(name), "uv_%s close", uv_handle_type_name(h->type));
		names[h->type] = strdup(name);
	}
	count(names[h->type]);
	memset(h, 0xdd, uv_handle_size(h->type));
	free(h);
}

void *new_handle(uv_handle_type type)
{
	uv_handle_t *h = calloc(1, uv_handle_size(type));

	h->data = &mark;
	return h;
}

void shut(void *handle)
{
	uv_close(handle, on_close);
}

/* --------------------------------------- loops in loops, walks, many */

static void on_walk(uv_handle_t *h, void *arg)
{
	count("uv_timer walk");
	++*(unsigned *)arg;
	if (!uv_is_closing(h))
		shut(h);
}

static void on_inner(uv_timer_t *t)
{
	count("uv_timer");
	shut(t);
}

static void on_outer(uv_timer_t *t)
{
	uv_loop_t inner;
	uv_timer_t *in = new_handle(UV_TIMER);

	count("uv_timer");
	MUST(uv_loop_init(&inner));
	MUST(uv_timer_init(&inner, in));
	MUST(uv_timer_start(in, on_inner, 5, 0));
	uv_run(&inner, UV_RUN_DEFAULT);
	MUST(uv_loop_close(&inner));
	shut(t);
}

static void loops(void)
{
	uv_timer_t *outer = new_handle(UV_TIMER), *one = new_handle(UV_TIMER);
	uv_timer_t *two = new_handle(UV_TIMER);
	unsigned walked = 0;

	MUST(uv_timer_init(loop, outer));
	MUST(uv_timer_start(outer, on_outer, 1, 0));
	uv_run(loop, UV_RUN_DEFAULT);
	MUST(uv_timer_init(loop, one));
	MUST(uv_timer_init(loop, two));
	MUST(uv_timer_start(one, NEVER(uv_timer_cb), 100000, 0));
	uv_walk(loop, on_walk, &walked);
	uv_run(loop, UV_RUN_DEFAULT);
	printf("walked %u\n", walked);
}

#define MANY 20000u
#define THREADS 3

struct many {
	uv_loop_t loop;
	uv_timer_t *timers;
	unsigned fired, closed;
};

static void on_many_close(uv_handle_t *h)
{
	struct many *m = h->loop->data;

	m->closed++;
}

static void on_many(uv_timer_t *t)
{
	struct many *m = t->loop->data;

	if (t->data != (void *)(t - m->timers))
		exit(3);
	m->fired++;
	uv_close((uv_handle_t *)t, on_many_close);
}

static void many_thread(void *arg)
{
	struct many *m = arg;

	m->timers = calloc(MANY, sizeof(*m->timers));
	MUST(uv_loop_init(&m->loop));
	m->loop.data = m;
	for (unsigned i = 0; i < MANY; i++) {
		m->timers[i].data = (void *)(uintptr_t)i;
		MUST(uv_timer_init(&m->loop, &m->timers[i]));
		MUST(uv_timer_start(&m->timers[i], on_many, i % 7, 0));
	}
	uv_run(&m->loop, UV_RUN_DEFAULT);
	MUST(uv_loop_close(&m->loop));
	free(m->timers);
}

/* More handles at once than the first part of any table holds, from several threads. */
static void many(void)
{
	static struct many m[THREADS];
	uv_thread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		MUST(uv_thread_create(&t[i], many_thread, &m[i]));
	for (int i = 0; i < THREADS; i++)
		uv_thread_join(&t[i]);
	for (int i = 0; i < THREADS; i++)
		printf("many %u %u\n", m[i].fired, m[i].closed);
}

/* More functions than there are thunks. */
static unsigned functions_called;
#define FUNCTION(n)                        \
	static void on_##n(uv_timer_t *t)  \
	{                                  \
		functions_called++;        \
		t->data = (void *)(0x##n); \
	}
#define ADDRESS(n) on_##n,
#define OF_6(each, n) each(n##0) each(n##1) each(n##2) each(n##3) each(n##4) each(n##5)
#define OF_36(each, n)   \
	OF_6(each, n##0) \
	OF_6(each, n##1) \
	OF_6(each, n##2) OF_6(each, n##3) OF_6(each, n##4) OF_6(each, n##5)
#define OF_216(each, n)   \
	OF_36(each, n##0) \
	OF_36(each, n##1) \
	OF_36(each, n##2) OF_36(each, n##3) OF_36(each, n##4) OF_36(each, n##5)
#define OF_1296(each)   \
	OF_216(each, 0) \
	OF_216(each, 1) OF_216(each, 2) OF_216(each, 3) OF_216(each, 4) OF_216(each, 5)
OF_1296(FUNCTION)

static void functions(void)
{
	static const uv_timer_cb all[] = {OF_1296(ADDRESS)};
	uv_timer_t timer;

	loop = uv_default_loop();
	MUST(uv_timer_init(loop, &timer));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		MUST(uv_timer_start(&timer, all[i], 0, 0));
		uv_run(loop, UV_RUN_DEFAULT);
	}
	printf("functions %u\n", functions_called);
}

static void remove_files(void)
{
	static const char *const names[] = {"watched", "file",	  "file2",   "copy",
					    "link",    "symlink", "renamed", "pipe"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_folder(names[i]));
	rmdir(folder);
}

int main(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR");

	setvbuf(stdout, NULL, _IOLBF, 0);
	uv_mutex_init(&counts_lock);
	if (argc > 1 && !strcmp(argv[1], "many")) {
		many();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "functions")) {
		functions();
		return 0;
	}
	snprintf(folder, sizeof(folder), "%s/uv-subject-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return 1;
	loop = uv_default_loop();
	timers();
	watchers();
	asyncs();
	signal_handles();
	polls();
	watch_files();
	children();
	tcp();
	pipes();
	resets();
	udp();
	files();
	pool();
	loops();
	say_counts();
	printf("loop %p\n", (void *)loop);
	printf("closed %d\n", uv_loop_close(loop));
	remove_files();
	return 0;
}
