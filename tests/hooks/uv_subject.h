/*
 * A libuv program that uses every function that takes a callback, and counts its callbacks
 * itself: one line per kind, "count NAME N", then what else happened. It knows nothing of
 * tacho; uv.py runs it with and without, and compares.
 */
#ifndef TESTS_HOOKS_UV_SUBJECT_H
#define TESTS_HOOKS_UV_SUBJECT_H

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#define MUST(call)                                                                                 \
	do {                                                                                       \
		int must_ = (int)(call);                                                           \
		if (must_ < 0) {                                                                   \
			printf("failed: %s: %s (line %d)\n", #call, uv_strerror(must_), __LINE__); \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* One more callback of this kind. `name` stays. */
void count(const char *name);

extern uv_loop_t *loop;
extern char folder[200];
const char *in_folder(const char *name);

/* `data` of every handle and request points here. */
extern char mark;
void check_data(const void *data);

/* Every handle lies in memory of its own, which is freed in its close callback. */
void *new_handle(uv_handle_type type);
void shut(void *handle);
void on_close(uv_handle_t *h);

/* A callback that must not run. As one of any type: it does not return. */
void on_never(uv_timer_t *t);
#define NEVER(type) ((type)(void (*)(void))on_never)

/* uv_subject_handles.c */
void timers(void);
void watchers(void);
void asyncs(void);
void signal_handles(void);
void polls(void);
void watch_files(void);
void children(void);

/* uv_subject_requests.c */
void tcp(void);
void pipes(void);
void resets(void);
void udp(void);
void files(void);
void pool(void);

#endif
