#include "serve/folder_row.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain/explain.h"
#include "import/import.h"
#include "read/news.h"
#include "text/end.h"
#include "text/json.h"
#include "text/names.h"

#define ENDING ".tacho"

bool tacho__listed_name(const char *name)
{
	return name[0] && name[0] != '.' && strlen(name) <= NAME_MAX && !strchr(name, '/');
}

static bool is_own(const char *name)
{
	size_t size = strlen(name), ending = strlen(ENDING);

	return size > ending && strcmp(name + size - ending, ENDING) == 0;
}

static int open_regular(int folder, const char *name)
{
	struct stat st;
	int fd;

	if (!tacho__listed_name(name))
		return -ENOENT;
	/* A pipe of that name must not be waited for, and a link may lead out of the folder. */
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

/* What it was opened as cannot become another file meanwhile. */
static int find_import(struct tacho__found *found, int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return tacho__import_find(found, path);
}

bool tacho__listed_is_trace(int folder, const char *name)
{
	struct tacho__found found;
	int fd;
	bool is;

	if (is_own(name))
		return true;
	fd = open_regular(folder, name);
	if (fd < 0)
		return false;
	is = find_import(&found, fd) > 0;
	tacho__found_free(&found);
	close(fd);
	return is;
}

static void end_if_stopped(const atomic_bool *stop)
{
	if (stop && atomic_load(stop))
		pthread_exit(NULL);
}

static void on_import_progress(void *arg, uint64_t done, uint64_t total)
{
	(void)done;
	(void)total;
	end_if_stopped(arg);
}

static int import_file(int from, const atomic_bool *stop, char *message, size_t message_size)
{
	struct tacho__found found;
	int is = find_import(&found, from);
	int fd = is < 0 ? is : -EINVAL;

	if (is > 0)
		fd = tacho__import_memory(&found, on_import_progress, (void *)(uintptr_t)stop,
					  message, message_size);
	tacho__found_free(&found);
	return fd;
}

int tacho__listed_open(int folder, const char *name, const atomic_bool *stop, char *message,
		       size_t message_size)
{
	int file = open_regular(folder, name), trace;

	message[0] = 0;
	if (file < 0 || is_own(name))
		return file;
	trace = import_file(file, stop, message, message_size);
	close(file);
	return trace;
}

/* Names may be any bytes: this is the one that an address can hold. */
static void put_href(struct json *j, const char *name)
{
	char text[3 * NAME_MAX + 1];
	size_t n = 0;

	for (; *name && n + 3 < sizeof(text); name++) {
		unsigned char c = (unsigned char)*name;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr("-_.~", c);

		n += (size_t)snprintf(text + n, sizeof(text) - n, plain ? "%c" : "%%%02X", c);
	}
	json_put_string(j, "href", text);
}

static void put_process(struct json *j, const struct tacho_reader *reader, uint32_t index)
{
	const struct tacho_process *p = tacho_read_process(reader, index);
	char end[TEXT_END];

	json_put_u64(j, "processes", tacho_read_process_count(reader));
	if (!p)
		return;
	json_put_u64(j, "pid", p->pid);
	json_put_known(j, "program", p->comm);
	json_put_known(j, "service", p->service);
	json_put_known(j, "host", p->host);
	json_put_not_zero(j, "taken_ms", p->taken_real_ns / 1000000);
	json_put_known(j, "why", p->why ? p->why : "");
	json_put_string(j, "taken_by", name_taken_by(p->taken_by));
	json_put_known(j, "end", text_end(end, p));
}

static void on_progress(void *arg, uint64_t ns)
{
	(void)ns;
	end_if_stopped(arg);
}

/* 0, or a negative errno. */
static int put_verdict(struct json *j, struct tacho_reader *reader, const atomic_bool *stop)
{
	struct tacho__explain_options options = {.progress = on_progress,
						 .progress_arg = (void *)(uintptr_t)stop};
	int error = 0;
	struct tacho__explanation *e = tacho__explain(reader, &options, &error);
	uint64_t last, first;

	if (!e)
		return error;
	first = tacho__explained_window(e, &last);
	put_process(j, reader, e->process);
	json_put_u64(j, "window_ns", last - first);
	json_put_object(j, "verdict");
	json_put_string(j, "category", e->verdict.category);
	json_put_string(j, "summary", e->verdict.summary);
	json_put_string(j, "severity",
			e->count ? tacho__severity_name(e->findings[0].severity) : "info");
	json_object_end(j);
	json_put_u64(j, "problems", tacho_read_problem_count(reader));
	tacho__explanation_free(e);
	return 0;
}

/* "cannot read NAME: " stands beside it already. */
static const char *without_name(const char *message, const char *name)
{
	static const char begin[] = "cannot read ";
	const char *at = message + strlen(begin) + strlen(name);

	if (strncmp(message, begin, strlen(begin)) == 0 &&
	    strlen(message) > (size_t)(at - message) && strncmp(at, ": ", 2) == 0)
		return at + 2;
	return message;
}

static void put_contents(struct json *j, const struct tacho__listed_source *s, bool judge)
{
	struct tacho_reader *reader = NULL;
	const struct tacho_process *p;
	char message[1024] = "";
	int fd = tacho__listed_open(s->folder, s->name, s->stop, message, sizeof(message));
	int error = fd;

	if (fd >= 0) {
		error = tacho__read_fd(&reader, fd, s->name, NULL, message, sizeof(message));
		close(fd);
	}
	p = error < 0 ? NULL : tacho_read_process(reader, 0);
	if (p && p->taken_by == TACHO_TAKEN_BOX) {
		error = -EBADMSG;
		snprintf(message, sizeof(message),
			 "it is a box and not a trace file; 'tacho dump' makes one of it");
	}
	if (error >= 0 && judge)
		error = put_verdict(j, reader, s->stop);
	else if (error >= 0)
		put_process(j, reader, 0);
	if (error < 0 && !message[0])
		snprintf(message, sizeof(message), "%s", strerror(-error));
	json_put_known(j, "error", error < 0 ? without_name(message, s->name) : "");
	tacho_read_close(reader);
}

char *tacho__listed_json(const struct tacho__listed_source *s, enum tacho__listed_stage stage)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json j;

	if (!out)
		return NULL;
	json_begin(&j, out, false);
	json_object(&j);
	json_put_string(&j, "name", s->name);
	put_href(&j, s->name);
	json_put_u64(&j, "bytes", (uint64_t)s->st.st_size);
	json_put_u64(&j, "changed_ms",
		     (uint64_t)s->st.st_mtim.tv_sec * 1000 +
			     (uint64_t)s->st.st_mtim.tv_nsec / 1000000);
	if (stage != TACHO__LISTED_NAMED)
		put_contents(&j, s, stage == TACHO__LISTED_JUDGED);
	json_put_bool(&j, "judged", stage == TACHO__LISTED_JUDGED);
	json_object_end(&j);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
