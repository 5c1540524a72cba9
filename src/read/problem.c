#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "read/reader.h"

void tacho__say(char *message, size_t size, const char *format, ...)
{
	va_list args;

	if (!message || !size)
		return;
	va_start(args, format);
	vsnprintf(message, size, format, args);
	va_end(args);
}

/* A problem that finds no memory is the least of the reader's problems: the call that
   ran into it fails as well. */
static void note(struct tacho_reader *r, const char *path, uint32_t process, const char *name,
		 uint64_t offset, uint64_t size, const char *text)
{
	struct tacho_problem *p;

	if (r->problem_count > TACHO__PROBLEMS_MAX)
		return;
	if (r->problem_count == TACHO__PROBLEMS_MAX) {
		name = "more-problems";
		text = "there are more problems of which none is listed";
		path = "";
		process = UINT32_MAX;
		offset = size = 0;
	}
	p = tacho__arena_get(&r->arena, sizeof(*p));
	if (!p || TACHO__GROW(r->problems, r->problem_capacity, r->problem_count + 1))
		return;
	p->name = name;
	p->path = path;
	p->process = process;
	p->offset = offset;
	p->size = size;
	p->text = tacho__arena_text(&r->arena, text, strlen(text));
	if (p->text)
		r->problems[r->problem_count++] = p;
}

void tacho__problem(struct tacho_reader *r, uint32_t source, const char *name, uint64_t offset,
		    uint64_t size, const char *format, ...)
{
	const struct tacho__source *s = &r->sources[source];
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* Some are about no place. */
	if (offset || size)
		offset += s->input->begin;
	note(r, s->input->path, s->process, name, offset, size, text);
}

void tacho__problem_path(struct tacho_reader *r, const char *path, const char *name,
			 const char *text)
{
	const char *copy = tacho__arena_text(&r->arena, path, strlen(path));

	if (copy)
		note(r, copy, UINT32_MAX, name, 0, 0, text);
}

uint32_t tacho_read_problem_count(const struct tacho_reader *reader)
{
	return reader->problem_count;
}

const struct tacho_problem *tacho_read_problem(const struct tacho_reader *reader, uint32_t index)
{
	return index < reader->problem_count ? reader->problems[index] : NULL;
}
