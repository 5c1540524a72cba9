/* The engine of `tacho run` and `tacho agent`: what it saves, and how it speaks. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../process/lib.h"
#include "agent/engine.h"
#include "recording.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RECORDS 3000u

struct told {
	unsigned count[TACHO__ERROR + 1];
	char last[TACHO__ERROR + 1][4096];
};

static void listen(void *arg, enum tacho__said kind, const char *sentence)
{
	struct told *t = arg;

	t->count[kind]++;
	snprintf(t->last[kind], sizeof(t->last[kind]), "%s", sentence);
}

/* An engine that follows a subject, with standard output and standard error in a file. */
struct followed {
	struct recording *r;
	struct told told;
	struct tacho__voice voice;
	struct tacho__engine engine;
	char printed[1024]; /* the file */
	int out, err;	    /* what they were */
};

static struct recording *late; /* begins when the next folder is about to be watched */

static void begin_recording(struct recording *r)
{
	recording_start(r);
	recording_allow(r, RECORDS);
	recording_wait(r, RECORDS);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	struct recording *r = late;

	late = NULL;
	if (r)
		begin_recording(r);
	return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

static void begin(struct followed *f, const char *folder, bool is_late)
{
	struct tacho__engine_options options = {.voice = &f->voice, .folder = folder};
	char message[TACHO__MESSAGE];
	int file;

	f->voice = (struct tacho__voice){.say = listen, .arg = &f->told};
	f->r = recording_new(1, 2 << 20);
	f->r->how = 1;
	if (is_late)
		late = f->r;
	else
		begin_recording(f->r);
	snprintf(f->printed, sizeof(f->printed), "%s/printed", segments_dir());
	fflush(NULL);
	f->out = dup(STDOUT_FILENO);
	f->err = dup(STDERR_FILENO);
	file = open(f->printed, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(file, STDOUT_FILENO);
	dup2(file, STDERR_FILENO);
	close(file);
	CHECK(!tacho__engine_open(&f->engine, &options, message), "not opened");
	CHECK(!tacho__engine_begin(&f->engine, message), "not begun");
	CHECK(tacho__engine_alive(&f->engine) == 1, "the subject is not followed");
}

static bool nobody_waits(void *arg)
{
	(void)arg;
	return true;
}

/* Crashes the subject and lets the engine do the rest. */
static void end(struct followed *f)
{
	struct stat st = {0};

	recording_stop(f->r);
	tacho__engine_work(&f->engine, true);
	tacho__engine_end(&f->engine);
	tacho__engine_finish(&f->engine, -1, nobody_waits, NULL);
	fflush(NULL);
	dup2(f->out, STDOUT_FILENO);
	dup2(f->err, STDERR_FILENO);
	close(f->out);
	close(f->err);
	CHECK(!stat(f->printed, &st), "the file is gone");
	CHECK(st.st_size == 0, "%lld bytes were printed", (long long)st.st_size);
}

static void crash(void)
{
	struct followed f = {.out = -1};

	begin(&f, segments_dir(), false);
	end(&f);
	CHECK(f.engine.saved == 1 && count_files(".tacho") == 1, "%u files, %u saved",
	      count_files(".tacho"), f.engine.saved);
	CHECK(f.told.count[TACHO__NOTE] == 2, "%u notes", f.told.count[TACHO__NOTE]);
	CHECK(!f.told.count[TACHO__WARNING] && !f.told.count[TACHO__ERROR], "said: %s%s",
	      f.told.last[TACHO__WARNING], f.told.last[TACHO__ERROR]);
	CHECK(access(f.r->box, F_OK) < 0, "the box is still there");
	segments_dir_remove();
}

static void no_folder(void)
{
	struct followed f = {.out = -1};
	char folder[1024];

	snprintf(folder, sizeof(folder), "%s/later", segments_dir());
	begin(&f, folder, false);
	for (int i = 0; i < 3; i++) {
		tacho__engine_snapshot(&f.engine, "a test");
		/* Why, and what becomes of the window. */
		CHECK(f.told.count[TACHO__ERROR] == 2, "said %u times: %s",
		      f.told.count[TACHO__ERROR], f.told.last[TACHO__ERROR]);
	}
	CHECK(!mkdir(folder, 0700), "no folder");
	tacho__engine_snapshot(&f.engine, "a test");
	CHECK(f.told.count[TACHO__NOTE] == 2 && strstr(f.told.last[TACHO__NOTE], "again"),
	      "%u notes: %s", f.told.count[TACHO__NOTE], f.told.last[TACHO__NOTE]);
	end(&f);
	CHECK(f.told.count[TACHO__ERROR] == 2, "said %u times: %s", f.told.count[TACHO__ERROR],
	      f.told.last[TACHO__ERROR]);
	CHECK(f.engine.saved == 2, "%u windows are saved, not a snapshot and the last one",
	      f.engine.saved);
	segments_dir_remove();
}

static void made_meanwhile(void)
{
	struct followed f = {.out = -1};

	begin(&f, segments_dir(), true);
	end(&f);
	CHECK(f.engine.saved == 1, "%u saved", f.engine.saved);
	segments_dir_remove();
}

static const struct test tests[] = {
	{"a box that is made when its folder begins to be watched is followed", made_meanwhile},
	{"the window of a crashed process is saved, and spoken of in one note", crash},
	{"windows that cannot be saved are spoken of once, and when they can again", no_folder},
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, COUNT(tests));
}
