#include "victim.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"
#include "tacho.h"
#include "verify.h"

/* ----------------------------------------------------------------- folders */

void victim_folder_make(struct victim_folder *folder)
{
	static char root[100];

	if (!root[0])
		snprintf(root, sizeof(root), "%s",
			 getenv("TACHO_BOX_DIR") ? getenv("TACHO_BOX_DIR") : "/dev/shm");
	snprintf(folder->boxes, sizeof(folder->boxes), "%s/tacho-crash-XXXXXX", root);
	if (!mkdtemp(folder->boxes)) {
		fprintf(stderr, "cannot make %s: %s\n", folder->boxes, strerror(errno));
		exit(2);
	}
	snprintf(folder->file, sizeof(folder->file), "%s/file.tacho", folder->boxes);
	setenv("TACHO_BOX_DIR", folder->boxes, 1);
}

void victim_folder_remove(const struct victim_folder *folder)
{
	DIR *dir = opendir(folder->boxes);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(folder->boxes);
}

/* --------------------------------------------------------------- processes */

pid_t victim_start(victim_main *run, struct truth *truth, void *arg)
{
	pid_t pid;

	/* Children of a victim that was killed become ours. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	alarm(VICTIM_SECONDS);
	_exit(run(truth, arg));
}

/* Kills a victim that does not end; one that hangs in a crash handler gets no SIGALRM. */
static int hangs(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	int hung = fd >= 0 && poll(&end, 1, (int)(VICTIM_SECONDS + 5) * 1000) == 0;

	if (hung)
		kill(pid, SIGKILL);
	if (fd >= 0)
		close(fd);
	return hung;
}

int victim_wait(pid_t pid)
{
	int hung = hangs(pid);
	int status = 0, other;
	pid_t got;

	while ((got = waitpid(-1, &other, 0)) > 0 || errno == EINTR)
		if (got == pid)
			status = other;
	return hung ? SIGALRM : status;
}

/* ------------------------------------------------------------- in a victim */

void victim_record(struct truth *truth, uint64_t max_bytes, uint64_t threshold_ns)
{
	struct tacho_options options = TACHO_OPTIONS_INIT;

	options.max_bytes = max_bytes;
	options.poll_threshold_ns = threshold_ns;
	options.keep_box = 1;
	truth_box_begin(truth);
	tacho_start(&options);
	truth_box_made(truth);
}

static void *record(void *arg)
{
	struct victim_thread *t = arg;
	uint32_t sequence = truth_take(t->truth, gettid());

	for (uint64_t i = 0; i < t->count && sequence < TRUTH_SEQUENCES; i++) {
		truth_wait(t->truth, sequence);
		truth_put(t->truth, sequence);
	}
	if (sequence < TRUTH_SEQUENCES)
		t->truth->sequence[sequence].ended = TRUTH_ENDED;
	return NULL;
}

void victim_thread_start(struct victim_thread *thread, struct truth *truth, uint64_t count)
{
	pthread_t handle;

	thread->truth = truth;
	thread->count = count;
	if (pthread_create(&handle, NULL, record, thread)) {
		fprintf(stderr, "cannot start a thread\n");
		_exit(3);
	}
	thread->handle = (void *)handle;
}

void victim_thread_join(struct victim_thread *thread)
{
	pthread_join((pthread_t)thread->handle, NULL);
}

/* ------------------------------------------------------------- what is left */

static int is_named(const struct truth *truth, const char *path)
{
	for (uint32_t i = 0; i < truth->boxes; i++)
		if (!strcmp(truth->box[i].path, path))
			return 1;
	return 0;
}

/* A box in the folder that no victim named; 1 if there is one, 2 if there are more. */
static int find_unnamed(const struct victim_folder *folder, const struct truth *truth, char *path,
			size_t size)
{
	DIR *dir = opendir(folder->boxes);
	struct dirent *e;
	int found = 0;

	while (dir && (e = readdir(dir))) {
		char full[400];

		snprintf(full, sizeof(full), "%s/%s", folder->boxes, e->d_name);
		if (!strstr(e->d_name, ".box") || is_named(truth, full))
			continue;
		snprintf(path, size, "%s", full);
		found++;
	}
	if (dir)
		closedir(dir);
	return found;
}

static int any_done(const struct truth *truth, const struct truth_box *box)
{
	for (uint32_t i = box->first; i < box->end && i < truth->used; i++)
		if (truth->sequence[i].done)
			return 1;
	return 0;
}

/* A box whose making had not returned: it may be missing or half made, and then the reader
   says so; but what was recorded is there. */
static const char *verify_unnamed(const struct victim_folder *folder, const struct truth *truth,
				  const struct truth_box *box, struct verify *v)
{
	char path[400];
	int result;

	switch (find_unnamed(folder, truth, path, sizeof(path))) {
	case 0:
		return any_done(truth, box) ? "the box is not there" : NULL;
	case 1:
		break;
	default:
		return "there are more boxes than were made";
	}
	result = verify_file(v, path);
	if (result > 0)
		return v->why;
	if (result < 0 && (result != -EBADMSG || any_done(truth, box)))
		return v->why;
	return NULL;
}

const char *victim_verify(const struct victim_folder *folder, const struct truth *truth,
			  unsigned flags, uint64_t *events)
{
	static struct verify v;
	char path[400];

	for (uint32_t i = 0; i < truth->boxes; i++) {
		const struct truth_box *box = &truth->box[i];
		const char *why = NULL;

		v = (struct verify){.truth = truth, .first = box->first, .end = box->end};
		v.flags = flags;
		if (!box->path[0])
			why = verify_unnamed(folder, truth, box, &v);
		else if (verify_file(&v, box->path))
			why = v.why;
		if (why)
			return why;
		if (events)
			*events += v.events;
	}
	if (!truth->boxes && find_unnamed(folder, truth, path, sizeof(path)))
		return "there is a box that nobody made";
	return NULL;
}

/* ----------------------------------------------------------------- results */

static int failures;

void report(const char *name, const char *why)
{
	if (why) {
		failures++;
		printf("not ok %s: %s\n", name, why);
	} else {
		printf("ok %s\n", name);
	}
	fflush(stdout);
}

int report_status(void)
{
	return failures != 0;
}
