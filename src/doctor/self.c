#define _GNU_SOURCE 1 /* environ */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "agent/run_child.h"
#include "agent/run_program.h"
#include "base/clock.h"
#include "doctor/doctor.h"
#include "doctor/self.h"
#include "tacho_read.h"

#define PATIENCE_MS 60000

__attribute__((format(printf, 2, 3))) static void fail(struct tacho__self *s, const char *format,
						       ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->reason, sizeof(s->reason), format, args);
	va_end(args);
}

/* All that comes from `fd` until its end, a pause of `patience_ms` or too much of it. */
static size_t read_all(int fd, char *to, size_t room, int patience_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t got = 0;

	while (got < room && poll(&p, 1, patience_ms) > 0) {
		ssize_t n = read(fd, to + got, room - got);

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

/* Starts `path` without input; frees `environment`. -1: it could not be started. */
static pid_t spawn(const char *path, char **argv, char **environment, int out)
{
	posix_spawn_file_actions_t files;
	pid_t pid = -1;

	if (!environment || posix_spawn_file_actions_init(&files)) {
		free(environment);
		return -1;
	}
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	if (posix_spawn(&pid, path, &files, NULL, argv, environment))
		pid = -1;
	posix_spawn_file_actions_destroy(&files);
	free(environment);
	return pid;
}

/* As `tacho run` would start it, with the settings by which its counts are known. */
static char **subject_environment(const char *preload)
{
	static char list[2 * PATH_MAX];
	const char *before = getenv("LD_PRELOAD");
	const struct tacho__variable v[] = {
		{"LD_PRELOAD", list},
		{"TACHO_CALL_THRESHOLD", "1ms"},
		{"TACHO_SERVICE", "tacho-doctor"},
		{"TACHO_DEAD_BOXES", "1024"}, /* the most: its box makes no other go */
		{"TACHO_SAMPLE_HZ", NULL},
		{"TACHO_SLOW_POLL", NULL},
		{"TACHO_EXCLUDE", NULL},
		{"TACHO_POLL_THRESHOLD", NULL},
		{"TACHO_RECORDING", NULL},
		{"TACHO_CRASH_FILE", NULL},
		{"TACHO_CRASH", NULL},
	};

	snprintf(list, sizeof(list), "%s%s%s", before ? before : "", before && before[0] ? ":" : "",
		 preload);
	return tacho__environment(environ, v, sizeof(v) / sizeof(v[0]));
}

static pid_t start(const char *preload, int out)
{
	char *argv[] = {(char *)"tacho", (char *)"doctor", (char *)"--known-work", NULL};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	/* By its name, so that it has one; that file may be gone. */
	self[n > 0 ? n : 0] = 0;
	if (access(self, X_OK) < 0)
		strcpy(self, "/proc/self/exe");
	return spawn(self, argv, subject_environment(preload), out);
}

static bool read_did(int fd, struct tacho__self_counts *did)
{
	char text[128] = "";

	read_all(fd, text, sizeof(text) - 1, PATIENCE_MS);
	return sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &did->waits,
		      &did->locks, &did->calls, &did->cpu_ns) == 4;
}

static void count(struct tacho_reader *reader, struct tacho__self *s)
{
	const struct tacho_event *e;

	while (tacho_read_next(reader, &e) > 0) {
		switch (e->type) {
		case TACHO_EV_PARK:
			s->recorded.waits++;
			break;
		case TACHO_EV_LOCK_WAITED:
			s->recorded.locks++;
			break;
		case TACHO_EV_CALL: {
			const struct tacho_definition *d =
				tacho_read_definition(reader, e->process, e->arg);

			/* On a busy machine others take a millisecond as well. */
			s->recorded.calls += d && strstr(d->name, "sleep");
			break;
		}
		case TACHO_EV_SAMPLE:
			s->recorded.samples++;
			s->recorded.cpu_ns += TACHO_GET(e, SAMPLE, cpu_ns);
			break;
		case TACHO_EV_SCHED_INTERVAL:
			s->sched = true;
			break;
		default:
			break;
		}
	}
}

/* A box of an earlier process that had the same id is not ours to read, nor to delete. */
static bool is_new(const struct stat *st, const struct timespec *begin)
{
	return st->st_mtim.tv_sec >= begin->tv_sec - 1;
}

/* Reads what the process left, and deletes it. */
static void read_file(struct tacho__self *s, const struct tacho__box_file *file,
		      const struct timespec *begin)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho_reader *reader = NULL;
	char message[1024] = "";
	struct stat st;
	int err = file && lstat(file->path, &st) == 0 && is_new(&st, begin) ? 0 : -ENOENT;

	if (err) {
		fail(s, "a process ran under the hooks and left no box");
		return;
	}
	snprintf(s->box, sizeof(s->box), "%s", file->path);
	err = tacho_read_open(&reader, file->path, &options, message, sizeof(message));
	if (err) {
		fail(s, "%s", message[0] ? message : strerror(-err));
	} else {
		const struct tacho_process *p = tacho_read_process(reader, 0);

		s->ran = true;
		s->box_bytes = p ? p->max_bytes : 0;
		snprintf(s->box_reason, sizeof(s->box_reason), "%s", p ? p->reason : "");
		count(reader, s);
		tacho_read_close(reader);
	}
	tacho__box_remove(file->path, &st, s->warning, sizeof(s->warning));
}

static void read_box(struct tacho__self *s, uint32_t pid, const struct timespec *begin)
{
	struct tacho__box_list list;

	if (tacho__box_list_read(&list, false) < 0) {
		fail(s, "out of memory");
		return;
	}
	read_file(s, tacho__box_list_find(&list, pid), begin);
	tacho__box_list_free(&list);
}

static void record(struct tacho__self *s)
{
	char preload[PATH_MAX];
	uint64_t begin = tacho__clock_ns(CLOCK_MONOTONIC);
	struct timespec begin_real;
	int ends[2], status = 0;
	bool did;
	pid_t pid;

	*s = (struct tacho__self){0};
	clock_gettime(CLOCK_REALTIME, &begin_real);
	if (tacho__preload_find(preload, sizeof(preload), s->reason, sizeof(s->reason)))
		return;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		fail(s, "no pipe could be made: %s", strerror(errno));
		return;
	}
	pid = start(preload, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		fail(s, "no process could be started: %s", strerror(errno));
		return;
	}
	did = read_did(ends[0], &s->did);
	close(ends[0]);
	if (!did)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	s->took_ns = tacho__clock_ns(CLOCK_MONOTONIC) - begin;
	read_box(s, (uint32_t)pid, &begin_real);
	if (!did && s->ran) {
		fail(s, "the process that should do known work did not finish it");
		s->ran = false;
	}
}

/* ----------------------------------------------------------------- judging */

/* A thing that was done and must have been recorded. `exact`: more is wrong as well. */
static void compare(struct tacho__checks *checks, const char *name, const char *what, uint64_t did,
		    uint64_t recorded, bool exact)
{
	bool good = exact ? recorded == did : recorded >= did;
	struct tacho__check *c =
		tacho__check_add(checks, name, good ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);

	tacho__check_number(c, recorded);
	tacho__check_means(c, "%" PRIu64 " of %" PRIu64 " %s were recorded",
			   recorded < did || exact ? recorded : did, did, what);
	if (!good)
		tacho__check_todo(c, "this should not happen: report it, with the output of tacho "
				     "doctor --json");
}

static void compare_samples(struct tacho__checks *checks, const struct tacho__self *s)
{
	char did[TEXT_SMALL], recorded[TEXT_SMALL];
	bool good = s->recorded.cpu_ns >= s->did.cpu_ns / 2;
	struct tacho__check *c = tacho__check_add(checks, "self-samples",
						  good ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);

	tacho__check_number(c, s->recorded.samples);
	tacho__check_means(c, "%" PRIu64 " CPU samples stand for %s of %s", s->recorded.samples,
			   text_duration(recorded, s->recorded.cpu_ns),
			   text_duration(did, s->did.cpu_ns));
	if (!good)
		tacho__check_todo(c,
				  "see limit-sigpending; a filter that refuses timer_create, or a "
				  "program that blocks all real-time signals, has this effect too");
}

static void put_size(struct tacho__checks *checks, const struct tacho__self *s)
{
	bool small = s->box_reason[0] != 0;
	struct tacho__check *c = tacho__check_add(checks, "box-size",
						  small ? TACHO__CHECK_WARNING : TACHO__CHECK_OK);

	if (!small) {
		tacho__check_bytes(c, s->box_bytes);
		tacho__check_means(c, "a recorded process takes up to this much memory");
		return;
	}
	/* Without its full stop, as the other lines. */
	tacho__check_means(c, "%.*s", (int)strlen(s->box_reason) - 1, s->box_reason);
	tacho__check_todo(c, "for a longer window, give the container more memory or a larger "
			     "/dev/shm (docker run --memory, --shm-size)");
}

void tacho__doctor_self(struct tacho__checks *checks, struct tacho__self *s)
{
	struct tacho__check *c;
	char took[TEXT_SMALL];
	bool works;

	record(s);
	works = s->ran && s->recorded.waits > 0;
	c = tacho__check_add(checks, "self-check", works ? TACHO__CHECK_OK : TACHO__CHECK_CANNOT);
	if (!works) {
		tacho__check_means(c, "a process that should record did not: %s",
				   s->reason[0] ? s->reason : "its box holds no wait of a loop");
		tacho__check_todo(c, "fix what this line and the lines above name");
		return;
	}
	tacho__check_means(c, "a process recorded for %s and was killed; its box was read (%s)",
			   text_duration(took, s->took_ns), s->box);
	put_size(checks, s);
	compare(checks, "self-waits", "waits of a loop", s->did.waits, s->recorded.waits, true);
	compare(checks, "self-locks", "waits for a lock", s->did.locks, s->recorded.locks, false);
	compare(checks, "self-calls", "blocking calls", s->did.calls, s->recorded.calls, true);
	compare_samples(checks, s);
	c = tacho__check_add(checks, "self-sched",
			     s->sched ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);
	tacho__check_means(c, "what the scheduler did to slow turns %s recorded",
			   s->sched ? "was" : "was not");
	if (!s->sched)
		tacho__check_todo(c, "see schedstat");
}
