#include "serve/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/folder_row.h"
#include "text/json.h"

#define ROWS_MAX 10000u
#define SCAN_EVERY_NS 500000000u
#define LOW_PRIORITY 10 /* verdicts must not take the CPU from what is watched */

struct row {
	char *name;
	struct stat st;
	enum tacho__listed_stage stage;
	char *json; /* NULL: it is no trace, and not listed */
	bool seen;  /* by the scan under way */
};

struct tacho__folder {
	char *path;
	int fd;
	pthread_t thread;
	bool started;
	atomic_bool stop;
	pthread_mutex_t mutex; /* of what follows */
	pthread_cond_t work;
	struct row *rows; /* by name */
	size_t count, capacity;
	uint64_t more; /* files beyond ROWS_MAX */
	uint64_t version;
	uint64_t scanned_ns;
	char message[256]; /* why the folder can not be read; "": it can */
};

/* --------------------------------------------------------------------- rows */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

static struct row *find_row(const struct tacho__folder *f, const char *name, size_t count)
{
	struct row key = {.name = (char *)(uintptr_t)name};

	return count ? bsearch(&key, f->rows, count, sizeof(key), by_name) : NULL;
}

static void free_row(struct row *r)
{
	free(r->name);
	free(r->json);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What is known of it so far; false: no memory, and what was known stays. */
static bool describe(struct tacho__folder *f, struct row *r, enum tacho__listed_stage stage,
		     char *json)
{
	if (!json)
		return false;
	free(r->json);
	r->json = json;
	r->stage = stage;
	f->version++;
	return true;
}

static void add_row(struct tacho__folder *f, const char *name, const struct stat *st)
{
	struct tacho__listed_source source = {.folder = f->fd, .name = name, .st = *st};
	struct row r = {.name = strdup(name), .st = *st, .seen = true};

	if (f->count == f->capacity) {
		size_t capacity = f->capacity ? 2 * f->capacity : 64;
		struct row *rows = reallocarray(f->rows, capacity, sizeof(*rows));

		if (rows) {
			f->rows = rows;
			f->capacity = capacity;
		}
	}
	if (r.name && f->count < f->capacity &&
	    (!tacho__listed_is_trace(f->fd, name) ||
	     describe(f, &r, TACHO__LISTED_NAMED,
		      tacho__listed_json(&source, TACHO__LISTED_NAMED))))
		f->rows[f->count++] = r;
	else
		free_row(&r);
}

/* --------------------------------------------------------------------- scan */

static void scan_entry(struct tacho__folder *f, const char *name, size_t known)
{
	struct row *r;
	struct stat st;

	if (!tacho__listed_name(name) || fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return;
	r = find_row(f, name, known);
	if (r && is_same(&r->st, &st)) {
		r->seen = true;
		return;
	}
	/* One that has changed is a new one; the old one is not seen. */
	if (f->count < ROWS_MAX)
		add_row(f, name, &st);
	else
		f->more++;
}

static void forget_unseen(struct tacho__folder *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++)
		if (f->rows[i].seen) {
			f->rows[i].seen = false;
			f->rows[kept++] = f->rows[i];
		} else {
			f->version += f->rows[i].json != NULL;
			free_row(&f->rows[i]);
		}
	f->count = kept;
	if (f->count)
		qsort(f->rows, f->count, sizeof(*f->rows), by_name);
}

/* With the mutex held. */
static void scan(struct tacho__folder *f)
{
	uint64_t now = tacho__clock_ns(CLOCK_MONOTONIC);
	size_t known = f->count;
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (f->scanned_ns && now - f->scanned_ns < SCAN_EVERY_NS)
		return;
	f->scanned_ns = now;
	fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		snprintf(f->message, sizeof(f->message), "cannot read the folder any more: %s",
			 strerror(errno));
		f->version++;
		if (fd >= 0)
			close(fd);
		return;
	}
	f->more = 0;
	f->message[0] = 0;
	while ((entry = readdir(dir)))
		scan_entry(f, entry->d_name, known);
	closedir(dir);
	forget_unseen(f);
	pthread_cond_signal(&f->work);
}

/* ----------------------------------------------------------------- verdicts */

/* Whose it is comes first for all, then the verdicts; the newest first. */
static struct row *next_work(const struct tacho__folder *f)
{
	struct row *best = NULL;

	for (size_t i = 0; i < f->count; i++) {
		struct row *r = &f->rows[i];

		if (r->json && r->stage != TACHO__LISTED_JUDGED &&
		    (!best || r->stage < best->stage ||
		     (r->stage == best->stage && r->st.st_mtim.tv_sec > best->st.st_mtim.tv_sec)))
			best = r;
	}
	return best;
}

/* With the mutex held, which is given up meanwhile. */
static void work_on(struct tacho__folder *f, const struct row *r)
{
	enum tacho__listed_stage stage = r->stage + 1;
	struct tacho__listed_source source = {
		.folder = f->fd, .name = strdup(r->name), .st = r->st, .stop = &f->stop};
	struct row *now;
	char *json;

	pthread_mutex_unlock(&f->mutex);
	json = source.name ? tacho__listed_json(&source, stage) : NULL;
	pthread_mutex_lock(&f->mutex);
	now = source.name ? find_row(f, source.name, f->count) : NULL;
	/* It may have been replaced or deleted since. */
	if (!now || !is_same(&now->st, &source.st))
		free(json);
	else if (!describe(f, now, stage, json))
		now->stage = stage;
	free((char *)(uintptr_t)source.name);
}

static void *work(void *arg)
{
	struct tacho__folder *f = arg;
	const struct row *r;

	setpriority(PRIO_PROCESS, (id_t)gettid(), LOW_PRIORITY);
	pthread_mutex_lock(&f->mutex);
	while (!atomic_load(&f->stop)) {
		r = next_work(f);
		if (r)
			work_on(f, r);
		else
			pthread_cond_wait(&f->work, &f->mutex);
	}
	pthread_mutex_unlock(&f->mutex);
	return NULL;
}

/* ------------------------------------------------------------------ answers */

static void answer_list(struct tacho__folder *f, const char *known, struct tacho__answer *a)
{
	char *data = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);
	const char *comma = "";
	struct json j;

	if (!out)
		return;
	pthread_mutex_lock(&f->mutex);
	scan(f);
	if (strtoull(known, NULL, 10) == f->version) {
		fprintf(out, "{\"version\":%" PRIu64 "}\n", f->version);
	} else {
		fprintf(out, "{\"version\":%" PRIu64 ",\"more\":%" PRIu64 ",\"error\":", f->version,
			f->more);
		json_begin(&j, out, false);
		json_string(&j, f->message);
		fputs(",\"traces\":[", out);
		for (size_t i = 0; i < f->count; i++) {
			if (!f->rows[i].json)
				continue;
			fprintf(out, "%s%s", comma, f->rows[i].json);
			comma = ",";
		}
		fputs("]}\n", out);
	}
	pthread_mutex_unlock(&f->mutex);
	fclose(out);
	tacho__answer_json(a, data, size);
}

static void answer_file(const struct tacho__folder *f, const char *name, struct tacho__answer *a)
{
	char text[512], message[256];
	int fd = tacho__listed_open(f->fd, name, NULL, message, sizeof(message));

	if (fd < 0) {
		snprintf(text, sizeof(text),
			 "This folder has no such trace, or none that can be read: %s.\n",
			 message[0] ? message : strerror(-fd));
		tacho__answer_text(a, fd == -EACCES ? 403 : 404, text);
		return;
	}
	tacho__answer_file(a, fd);
}

void tacho__folder_answer(void *arg, const char *path, bool post, struct tacho__answer *a)
{
	struct tacho__folder *f = arg;

	if (post)
		tacho__answer_text(a, 405, "Nothing here can be changed.\n");
	else if (strcmp(path, "what") == 0)
		tacho__answer_what(a, "folder", f->path);
	else if (strcmp(path, "list") == 0)
		answer_list(f, "0", a);
	else if (strncmp(path, "list/", 5) == 0)
		answer_list(f, path + 5, a);
	else if (strncmp(path, "traces/", 7) == 0)
		answer_file(f, path + 7, a);
}

/* --------------------------------------------------------------------- life */

struct tacho__folder *tacho__folder_open(const char *path, char *message, size_t message_size)
{
	struct tacho__folder *f = calloc(1, sizeof(*f));
	int error = f ? 0 : ENOMEM;

	if (f) {
		pthread_mutex_init(&f->mutex, NULL);
		pthread_cond_init(&f->work, NULL);
		f->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = f->fd < 0 ? errno : 0;
	}
	if (!error) {
		f->path = realpath(path, NULL);
		f->version = 1;
		error = f->path ? pthread_create(&f->thread, NULL, work, f) : errno;
		f->started = !error;
	}
	if (!error)
		return f;
	tacho__folder_close(f);
	snprintf(message, message_size,
		 "cannot list the traces of %s: %s. Give a folder that you can read.", path,
		 strerror(error));
	return NULL;
}

void tacho__folder_close(struct tacho__folder *f)
{
	if (!f)
		return;
	if (f->started) {
		pthread_mutex_lock(&f->mutex);
		atomic_store(&f->stop, true);
		pthread_cond_signal(&f->work);
		pthread_mutex_unlock(&f->mutex);
		pthread_join(f->thread, NULL);
	}
	for (size_t i = 0; i < f->count; i++)
		free_row(&f->rows[i]);
	free(f->rows);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	pthread_cond_destroy(&f->work);
	pthread_mutex_destroy(&f->mutex);
	free(f);
}
