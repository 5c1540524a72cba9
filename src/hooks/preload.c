/* libtacho-preload.so comes to life. */
#include "hooks/hooks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/sys.h"
#include "core/control.h"
#include "core/recorder.h"
#include "hooks/crashes.h"
#include "hooks/foreign.h"
#include "hooks/unwind.h"

__thread struct tacho__hook_thread tacho__hook __attribute__((tls_model("initial-exec")));
TACHO__HOT uint32_t tacho__unseen;

void *tacho__real(const char *name)
{
	int saved = errno;
	void *found = dlsym(RTLD_NEXT, name);

	errno = saved;
	return found;
}

/* Those of pthreads return their error. */
static int absent_of_threads(void)
{
	return ENOSYS;
}

static long absent(void)
{
	errno = ENOSYS;
	return -1;
}

void *tacho__absent_function(const char *name)
{
	return !strncmp(name, "pthread_", 8) ? (void *)absent_of_threads : (void *)absent;
}

void *tacho__look_up(struct tacho__next *next)
{
	void *found = tacho__real(next->name);

	/* Not kept if it is missing: dlopen may load it later. */
	__atomic_store_n(&next->found, found, __ATOMIC_RELAXED);
	return found ? found : tacho__absent_function(next->name);
}

/* A variable that musl has for its own getopt. Layers that make musl look like glibc leave it. */
extern int __optreset __attribute__((weak));

int tacho__is_foreign(void)
{
#if defined(__GLIBC__)
	return &__optreset != NULL;
#else
	return &__optreset == NULL;
#endif
}

extern struct tacho__next __start_tacho_next[] __attribute__((visibility("hidden")));
extern struct tacho__next __stop_tacho_next[] __attribute__((visibility("hidden")));

void tacho__look_up_all(void)
{
	static uint32_t done;
	uintptr_t size = (uintptr_t)__stop_tacho_next - (uintptr_t)__start_tacho_next;

	if (__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
		return;
	for (size_t i = 0; i < size / sizeof(struct tacho__next); i++)
		if (!__atomic_load_n(&__start_tacho_next[i].found, __ATOMIC_RELAXED))
			(void)tacho__look_up(&__start_tacho_next[i]);
}

/* 1 when `name` is one of those that `list` names, separated by commas. */
static int is_listed(const char *list, const char *name)
{
	size_t size = strlen(name);

	while (list && *list) {
		const char *end = strchrnul(list, ',');

		if ((size_t)(end - list) == size && !memcmp(list, name, size))
			return 1;
		list = *end ? end + 1 : end;
	}
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	char comm[16];
	int record, error;

	if (TACHO__SYS(SYS_prctl, 16 /* PR_GET_NAME */, comm, 0, 0, 0, 0))
		comm[0] = 0;
	/* A program with more rights than its caller keeps to itself. */
	record = !getauxval(AT_SECURE) && !is_listed(getenv("TACHO_EXCLUDE"), comm);
	if (tacho__is_foreign()) {
		tacho__refuse("The process runs on another C library than the recording library "
			      "was built for: nothing is recorded.");
	} else if (record) {
		tacho__unwind_begin();
		tacho__said_begin();
		tacho__signals_begin();
		tacho__samples_begin();
		error = tacho__arm();
		if (!error) {
			tacho__sched_begin();
			tacho__crashes_begin();
		}
		record = error != -ECANCELED; /* TACHO=off */
	}
	tacho__exec_begin(record);
}
