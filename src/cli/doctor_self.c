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

#include "agent/run_child.h"
#include "agent/run_program.h"
#include "cli/boxes.h"
#include "cli/doctor.h"

#define PATIENCE_MS 60000

__attribute__((format(printf, 2, 3))) static void fail(struct doctor_self *s, const char *format,
						       ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->reason, sizeof(s->reason), format, args);
	va_end(args);
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
	};

	snprintf(list, sizeof(list), "%s%s%s", before ? before : "", before && before[0] ? ":" : "",
		 preload);
	return tacho__environment(environ, v, sizeof(v) / sizeof(v[0]));
}

static pid_t start(const char *preload, int out)
{
	char *argv[] = {(char *)"tacho", (char *)"doctor", (char *)"--known-work", NULL};
	char **environment = subject_environment(preload);
	posix_spawn_file_actions_t files;
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	pid_t pid = -1;

	/* By its name, so that it has one; that file may be gone. */
	self[n > 0 ? n : 0] = 0;
	if (access(self, X_OK) < 0)
		strcpy(self, "/proc/self/exe");
	if (!environment || posix_spawn_file_actions_init(&files)) {
		free(environment);
		return -1;
	}
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	if (posix_spawn(&pid, self, &files, NULL, argv, environment))
		pid = -1;
	posix_spawn_file_actions_destroy(&files);
	free(environment);
	return pid;
}

static bool read_did(int fd, struct doctor_counts *did)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char text[128];
	size_t got = 0;

	while (got < sizeof(text) - 1 && poll(&p, 1, PATIENCE_MS) > 0) {
		ssize_t n = read(fd, text + got, sizeof(text) - 1 - got);

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	text[got] = 0;
	return sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &did->waits,
		      &did->locks, &did->calls, &did->cpu_ns) == 4;
}

static void count(struct tacho_reader *reader, struct doctor_self *s)
{
	struct tacho_event e;

	while (tacho_read_next(reader, &e) > 0) {
		switch (e.type) {
		case TACHO_EV_PARK:
			s->recorded.waits++;
			break;
		case TACHO_EV_LOCK_WAITED:
			s->recorded.locks++;
			break;
		case TACHO_EV_CALL: {
			const struct tacho_definition *d =
				tacho_read_definition(reader, e.process, e.arg);

			/* On a busy machine others take a millisecond as well. */
			s->recorded.calls += d && strstr(d->name, "sleep");
			break;
		}
		case TACHO_EV_SAMPLE:
			s->recorded.samples++;
			s->recorded.cpu_ns += TACHO_GET(&e, SAMPLE, cpu_ns);
			break;
		case TACHO_EV_SCHED:
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
static void read_file(struct doctor_self *s, const struct box_file *file,
		      const struct timespec *begin)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho_reader *reader = NULL;
	char message[CLI_MESSAGE] = "";
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
		s->ran = true;
		count(reader, s);
		tacho_read_close(reader);
	}
	box_remove(file->path, &st);
}

static void read_box(struct doctor_self *s, uint32_t pid, const struct timespec *begin)
{
	struct box_list list;

	if (box_list_read_quietly(&list, false) < 0) {
		fail(s, "out of memory");
		return;
	}
	read_file(s, box_list_find(&list, pid), begin);
	box_list_free(&list);
}

void doctor_self_check(struct doctor_self *s)
{
	char preload[PATH_MAX];
	uint64_t begin = cli_now_ns();
	struct timespec begin_real;
	int ends[2], status = 0;
	bool did;
	pid_t pid;

	*s = (struct doctor_self){0};
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
	s->took_ns = cli_now_ns() - begin;
	read_box(s, (uint32_t)pid, &begin_real);
	if (!did && s->ran) {
		fail(s, "the process that was to do known work did not come to its end");
		s->ran = false;
	}
}
