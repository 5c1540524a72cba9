/* Threads that come, go, are cancelled, and are very many. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib.h"

static void marks(uint32_t writer, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		mark(writer, i);
}

static pthread_t thread(void *(*body)(void *), void *arg, size_t stack)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack);
	if (!CHECK(!pthread_create(&t, &attr, body, arg), "pthread_create"))
		_exit(1);
	pthread_attr_destroy(&attr);
	return t;
}

#define SMALL_STACK (64u << 10)

/* ------------------------------------------------- ends while recording */

static void *some_marks(void *arg)
{
	marks((uint32_t)(uintptr_t)arg, 0, 200); /* fits a small chunk */
	return NULL;
}

static void exits_body(void *arg)
{
	(void)arg;
	start();
	for (uintptr_t round = 0; round < 100; round++) {
		pthread_t t[8];

		for (uintptr_t i = 0; i < 8; i++)
			t[i] = thread(some_marks, (void *)(round * 8 + i), SMALL_STACK);
		for (int i = 0; i < 8; i++)
			pthread_join(t[i], NULL);
	}
	die();
}

static void test_exits(void)
{
	const struct tally *t;
	struct box *b;

	subject(exits_body, NULL);
	b = the_box();
	t = tally_whole(b, 800 * 200);
	for (uint32_t i = 0; i < 800; i++)
		check_writer(t, i, 200);
	if (b)
		CHECK(process_of(b)->threads_seen == 800, "%u threads seen",
		      process_of(b)->threads_seen);
}

static void *detached(void *arg)
{
	some_marks(arg);
	__atomic_fetch_add(&shared()[0], 1, __ATOMIC_RELEASE);
	return NULL;
}

static void detached_body(void *arg)
{
	(void)arg;
	start();
	for (uintptr_t i = 0; i < 64; i++)
		pthread_detach(thread(detached, (void *)i, SMALL_STACK));
	for (int i = 0; i < 60000 && __atomic_load_n(&shared()[0], __ATOMIC_ACQUIRE) < 64; i++)
		sleep_ms(1);
	die();
}

static void test_detached(void)
{
	const struct tally *t;

	subject(detached_body, NULL);
	t = tally_whole(the_box(), 64 * 200);
	for (uint32_t i = 0; i < 64; i++)
		check_writer(t, i, 200);
}

/* ---------------------------------------------------------- destructors */

static pthread_key_t early_key, late_key;

/* Records in every round of destructors that there is. */
static void on_key(void *arg)
{
	uintptr_t n = (uintptr_t)arg;
	uint32_t writer = (uint32_t)(n >> 8), number = (uint32_t)(n & 0xff);

	mark(writer, number);
	if (number < 3)
		pthread_setspecific(writer & 1 ? late_key : early_key, (void *)(n + 1));
}

static void *with_keys(void *arg)
{
	uint32_t n = (uint32_t)(uintptr_t)arg;

	pthread_setspecific(early_key, (void *)(uintptr_t)(n << 9));
	pthread_setspecific(late_key, (void *)(uintptr_t)(n << 9 | 1u << 8));
	if (n & 1)
		mark(1000 + n, 0);
	return NULL;
}

static void keys_body(void *arg)
{
	(void)arg;
	pthread_key_create(&early_key, on_key); /* before the recorder's own, and after */
	start();
	pthread_key_create(&late_key, on_key);
	for (uintptr_t i = 1; i <= 200; i++)
		pthread_join(thread(with_keys, (void *)i, SMALL_STACK), NULL);
	/* The writers of these threads are used again: the table did not grow with them. */
	marks(3000, 0, 10);
	die();
}

static void test_key_destructors(void)
{
	const struct tally *t;

	subject(keys_body, NULL);
	t = tally_whole(the_box(), 200 * 8 + 100 + 10);
	for (uint32_t i = 2; i < 402; i++)
		check_writer(t, i, 4);
	check_writer(t, 3000, 10);
}

/* ---------------------------------------------------------- cancellation */

static void on_cancel(void *arg)
{
	uint32_t *at = arg;

	mark(at[0], at[1]++);
	mark(at[0], at[1]++);
}

/* at[0] writer, at[1] the number that comes next: after an asynchronous cancellation the mark
   of that number may be stored or not. */
static void *cancelled(void *arg)
{
	uint32_t *at = arg;
	int old;

	pthread_setcanceltype(at[2] ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, &old);
	pthread_cleanup_push(on_cancel, at);
	for (;;) {
		mark(at[0], at[1]);
		at[1]++;
		if (!at[2] && !(at[1] % 64))
			pthread_testcancel();
	}
	pthread_cleanup_pop(0);
	return NULL;
}

#define CANCELLED 200u

static void cancel_body(void *arg)
{
	static uint32_t at[CANCELLED][3];
	uint32_t async = arg != NULL;

	start();
	for (uint32_t i = 0; i < CANCELLED; i++) {
		pthread_t t;
		void *result;

		at[i][0] = i;
		at[i][2] = async;
		t = thread(cancelled, at[i], SMALL_STACK);
		while (!__atomic_load_n(&at[i][1], __ATOMIC_RELAXED))
			sleep_ms(0);
		if (i % 3 == 0)
			sleep_ms(1);
		pthread_cancel(t);
		pthread_join(t, &result);
		CHECK(result == PTHREAD_CANCELED, "thread %u was not cancelled", i);
		shared()[i] = at[i][1];
	}
	/* Nobody holds a chunk any more but this thread: all of the box can be used. */
	marks(CANCELLED, 0, 3000000);
	die();
}

static void check_cancelled(void *async)
{
	const struct tally *t;
	struct box *b;

	setenv("TACHO_MAX_BYTES", "64M", 1);
	subject(cancel_body, async);
	unsetenv("TACHO_MAX_BYTES");
	b = the_box();
	t = tally(b);
	CHECK(!t->foreign && !t->dropped, "%llu dropped", (unsigned long long)t->dropped);
	CHECK(t->last[CANCELLED] == 2999999 && t->count[CANCELLED] > 2000000,
	      "the cancelled threads hold on to the box: %u marks kept after them",
	      t->count[CANCELLED]);
	if (b)
		check_no_problem(b);
}

static void keep_body(void *arg)
{
	static uint32_t at[CANCELLED][3];
	uint32_t async = arg != NULL;

	start();
	for (uint32_t i = 0; i < CANCELLED; i++) {
		pthread_t t;

		at[i][0] = i;
		at[i][2] = async;
		t = thread(cancelled, at[i], SMALL_STACK);
		while (__atomic_load_n(&at[i][1], __ATOMIC_RELAXED) < 200 + i * 7)
			sleep_ms(0);
		pthread_cancel(t);
		pthread_join(t, NULL);
		shared()[i] = at[i][1];
	}
	die();
}

static void check_kept(void *async)
{
	const struct tally *t;

	setenv("TACHO_MAX_BYTES", "1G", 1);
	subject(keep_body, async);
	unsetenv("TACHO_MAX_BYTES");
	t = tally(the_box());
	CHECK(!t->foreign && !t->dropped, "%llu dropped", (unsigned long long)t->dropped);
	for (uint32_t i = 0; i < CANCELLED && !failed(); i++) {
		/* The mark that was interrupted may be missing, or be there twice: once stored
		   before the count went up, and again by the clean-up. */
		uint32_t want = (uint32_t)shared()[i];

		CHECK(t->last[i] == want - 1, "thread %u: last mark %u, not %u", i, t->last[i],
		      want - 1);
		CHECK(t->first[i] == 0, "thread %u: first mark %u", i, t->first[i]);
		CHECK(t->count[i] >= want - (async ? 1 : 0) &&
			      t->count[i] <= want + (async ? 1 : 0),
		      "thread %u: %u marks, not %u", i, t->count[i], want);
	}
	CHECK(t->disorder <= (async ? CANCELLED : 0), "%llu holes",
	      (unsigned long long)t->disorder);
}

static void test_cancel_deferred(void)
{
	check_kept(NULL);
}

static void test_cancel_async(void)
{
	check_kept("async");
}

static void test_cancel_no_leak(void)
{
	check_cancelled("async");
}

/* ------------------------------------------------------------ very many */

#define AT_ONCE 4096u
static pthread_barrier_t all_recorded;

static void *one_of_many(void *arg)
{
	uint32_t n = (uint32_t)(uintptr_t)arg;

	marks(n, 0, 20);
	pthread_barrier_wait(&all_recorded);
	marks(n, 20, 40);
	pthread_barrier_wait(&all_recorded);
	return NULL;
}

static void many_body(void *arg)
{
	static pthread_t t[AT_ONCE];
	struct tacho_status_info st = {.size = sizeof(st)};

	(void)arg;
	start();
	pthread_barrier_init(&all_recorded, NULL, AT_ONCE + 1);
	for (uintptr_t i = 0; i < AT_ONCE; i++)
		t[i] = thread(one_of_many, (void *)i, 16384 + 4096);
	pthread_barrier_wait(&all_recorded);
	pthread_barrier_wait(&all_recorded);
	for (uint32_t i = 0; i < AT_ONCE; i++)
		pthread_join(t[i], NULL);
	tacho_status(&st);
	CHECK(st.max_bytes == 32 << 20, "max_bytes %llu", (unsigned long long)st.max_bytes);
	CHECK(st.used_bytes <= st.max_bytes, "more memory than the box may have");
	CHECK(!st.dropped_records, "%llu dropped", (unsigned long long)st.dropped_records);
	die();
}

static void test_at_once(void)
{
	const struct tally *t;

	subject(many_body, NULL);
	t = tally_whole(the_box(), AT_ONCE * 40);
	for (uint32_t i = 0; i < AT_ONCE && !failed(); i++)
		check_writer(t, i, 40);
}

static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, rss = 0;

	if (f && fscanf(f, "%ld %ld", &size, &rss) != 2)
		rss = 0;
	if (f)
		fclose(f);
	return rss * sysconf(_SC_PAGESIZE);
}

static void *brief(void *arg)
{
	marks((uint32_t)(uintptr_t)arg % MARK_WRITERS, 0, 3);
	return NULL;
}

#define OVER_TIME 100000u

static void over_time_body(void *arg)
{
	struct tacho_status_info st = {.size = sizeof(st)};
	long early = 0;

	(void)arg;
	start();
	for (uint32_t i = 0; i < OVER_TIME; i += 4) {
		pthread_t t[4];

		for (uint32_t k = 0; k < 4; k++)
			t[k] = thread(brief, (void *)(uintptr_t)(i + k), SMALL_STACK);
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
		/* By now the box is full. */
		if (i == OVER_TIME / 2)
			early = resident();
	}
	CHECK(resident() < early + (2 << 20), "the process grew from %ld to %ld bytes", early,
	      resident());
	tacho_status(&st);
	CHECK(st.used_bytes <= st.max_bytes, "more memory than the box may have");
	CHECK(st.threads == OVER_TIME, "%u threads", st.threads);
	CHECK(!st.dropped_records, "%llu dropped", (unsigned long long)st.dropped_records);
	die();
}

static void test_over_time(void)
{
	const struct tally *t;
	struct stat st;
	struct box *b;

	if (emulated())
		return skip("too slow under qemu");
	subject(over_time_body, NULL);
	b = the_box();
	t = tally(b);
	if (!b)
		return;
	CHECK(!stat(b->path, &st) && st.st_size == 32 << 20 && st.st_blocks * 512 <= 32 << 20,
	      "the box has %lld bytes, %lld of memory", (long long)st.st_size,
	      (long long)st.st_blocks * 512);
	/* The newest are there, whole. */
	for (uint32_t n = OVER_TIME - 1000; n < OVER_TIME && !failed(); n++)
		CHECK(t->count[n % MARK_WRITERS] >= 1, "thread %u left nothing", n);
	CHECK(t->marks + loss(b, "overwritten_records") == 3 * OVER_TIME,
	      "%llu marks kept and %llu overwritten are not %u", (unsigned long long)t->marks,
	      (unsigned long long)loss(b, "overwritten_records"), 3 * OVER_TIME);
	check_no_problem(b);
}

/* ---------------------------------------------------------------- names */

static void *named(void *arg)
{
	uint32_t n = (uint32_t)(uintptr_t)arg;

	if (n == 0)
		pthread_setname_np(pthread_self(), "named before");
	mark(n, 0);
	if (n == 1)
		pthread_setname_np(pthread_self(), "named after");
	/* In the next chunk, or at the thread's end, the new one is seen. */
	if (n == 2)
		marks(n, 1, 20000);
	if (n == 2)
		pthread_setname_np(pthread_self(), "named later");
	return NULL;
}

static void names_body(void *arg)
{
	(void)arg;
	start();
	/* One after the other: each takes the place of the one before in the table. */
	for (uintptr_t i = 0; i < 4; i++)
		pthread_join(thread(named, (void *)i, SMALL_STACK), NULL);
	die();
}

static void test_names(void)
{
	int before = 0, after = 0, later = 0;
	struct box *b;

	subject(names_body, NULL);
	b = the_box();
	if (!b)
		return;
	for (uint32_t i = 0; i < tacho_read_thread_count(b->reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(b->reader, i);

		before += !strcmp(t->name, "named before");
		after += !strcmp(t->name, "named after");
		later += !strcmp(t->name, "named later");
	}
	CHECK(before == 1, "%d threads have the name of before", before);
	CHECK(after == 1, "%d threads have the name of after", after);
	CHECK(later == 1, "%d threads have the name of their end", later);
}

static const struct test tests[] = {
	{"what threads recorded before their end is kept", test_exits},
	{"detached threads", test_detached},
	{"records in destructors of thread-specific data, in every round", test_key_destructors},
	{"threads cancelled between records", test_cancel_deferred},
	{"threads cancelled in the middle of records", test_cancel_async},
	{"cancelled threads leave nothing behind that is never used again", test_cancel_no_leak},
	{"4,096 threads at once in 32 MiB, and nothing of them lost", test_at_once},
	{"100,000 threads over time in constant memory", test_over_time},
	{"names of threads", test_names},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
