#include "read/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Facts of an input (names, threads, ...) take a few times the bytes that tell them. */
#define ARENA_BASE (64ull << 20)
#define ARENA_TIMES 64u
#define PROGRESS_STEP (1u << 20)

/* A caller may have been built with an older or newer struct. */
static int take_options(struct tacho_reader *r, const struct tacho_read_options *options,
			char *message, size_t message_size)
{
	size_t size = options->size;

	if (size < offsetof(struct tacho_read_options, to_ns)) {
		tacho__say(message, message_size,
			   "cannot read: tacho_read_options.size is not set");
		return -EINVAL;
	}
	for (; size > sizeof(r->options); size--) {
		if (((const uint8_t *)options)[size - 1]) {
			tacho__say(message, message_size,
				   "cannot read: the options ask for what only a newer tacho can");
			return -EINVAL;
		}
	}
	memcpy(&r->options, options, size);
	return 0;
}

int tacho__reader_new(struct tacho_reader **out, const struct tacho_read_options *options,
		      char *message, size_t message_size)
{
	struct tacho_reader *r = calloc(1, sizeof(*r));

	*out = r;
	if (message && message_size)
		message[0] = 0;
	if (!r)
		return -ENOMEM;
	r->to_ns = UINT64_MAX;
	r->only = UINT32_MAX;
	r->arena.limit = ARENA_BASE;
	return options ? take_options(r, options, message, message_size) : 0;
}

int tacho__answer(size_t *out, const void *answer, size_t size, size_t least)
{
	if (*out < least)
		return -EINVAL;
	if (size > *out)
		size = *out;
	memcpy(out, answer, size);
	*out = size;
	return 0;
}

void tacho__progress(struct tacho_reader *r, uint64_t done, uint64_t total)
{
	if (r->options.progress && (done >= r->progress_at || done < r->progress_done)) {
		r->progress_done = done;
		r->progress_at = done + PROGRESS_STEP;
		r->options.progress(r->options.progress_arg, done, total);
	}
}

/* --------------------------------------------------------- what is wanted */

static int has_name(const struct tacho_process *p, const char *name)
{
	const char *slash = p->exe ? strrchr(p->exe, '/') : NULL;

	return (p->comm && !strcmp(p->comm, name)) || (slash && !strcmp(slash + 1, name));
}

int tacho__reader_wants(struct tacho_reader *r, const struct tacho_process *p)
{
	size_t used = strlen(r->unwanted_names), room = sizeof(r->unwanted_names) - used;

	if ((!r->options.pid || p->pid == r->options.pid) &&
	    (!r->options.process || has_name(p, r->options.process)))
		return 1;
	r->unwanted++;
	/* Several windows of one process are one. */
	if (room > sizeof(", 4294967295 ()") + 16 &&
	    (r->unwanted_pid != p->pid || r->unwanted == 1))
		snprintf(r->unwanted_names + used, room, "%s%s (%" PRIu32 ")", used ? ", " : "",
			 p->comm && p->comm[0] ? p->comm : "?", p->pid);
	r->unwanted_pid = p->pid;
	return 0;
}

/* Nothing is left of what was opened. */
static int say_unwanted(const struct tacho_reader *r, char *message, size_t message_size)
{
	char asked[128] = "";

	if (r->options.pid)
		snprintf(asked, sizeof(asked), " %" PRIu32, r->options.pid);
	if (r->options.process)
		snprintf(asked + strlen(asked), sizeof(asked) - strlen(asked), " named %.80s",
			 r->options.process);
	tacho__say(message, message_size, "there is no process%s in %s; there is %s%s", asked,
		   r->source_count ? r->sources[0].input->path : "it", r->unwanted_names,
		   strlen(r->unwanted_names) + 40 > sizeof(r->unwanted_names) ? " and others" : "");
	return -ESRCH;
}

/* ------------------------------------------------------------------- adding */

static int add_one(struct tacho_reader *r, struct tacho__input *in, const struct tacho__host *host,
		   char *message, size_t message_size)
{
	uint32_t source = r->source_count;

	if (message && message_size)
		message[0] = 0;
	if (TACHO__GROW(r->sources, r->source_capacity, r->source_count + 1)) {
		in->close(in);
		return -ENOMEM;
	}
	r->sources[source] = (struct tacho__source){.input = in, .process = UINT32_MAX};
	r->source_count++;
	r->input_bytes += in->backed;
	r->arena.limit += ARENA_TIMES * in->backed;
	if (tacho__is_box(in))
		return tacho__box_add(r, source, host, message, message_size);
	return tacho__trace_add(r, source, message, message_size);
}

/* One that cannot be read is a problem of its own. 1: it can. */
static int add_part(struct tacho_reader *r, struct tacho__input *whole, uint64_t from,
		    uint64_t size, char *message, size_t message_size)
{
	struct tacho__input *part = tacho__input_part(whole, from, size);
	int err = part ? add_one(r, part, NULL, message, message_size) : -ENOMEM;

	if (!err || err == -ENOMEM)
		return err ? err : 1;
	tacho__problem(r, r->source_count - 1, "unreadable-part", 0, size,
		       "a part of the file cannot be read%s",
		       err == -ENOTSUP ? ": a newer tacho wrote it" : "");
	return 0;
}

/* Each part of a trace file as a source of its own. */
static int add_parts(struct tacho_reader *r, struct tacho__input *in, const struct tacho__split *s,
		     char *message, size_t message_size)
{
	char first[512] = "", *text = message;
	uint32_t good = 0;
	int got = 0;

	tacho__input_hold(in);
	for (uint32_t i = 0; got >= 0 && i < s->count; i++) {
		uint64_t end = i + 1 < s->count ? s->from[i + 1] : in->size;

		got = add_part(r, in, s->from[i], end - s->from[i], text,
			       text == first ? sizeof(first) : message_size);
		good += got > 0;
		/* If nothing can be read, the sentence is about the first. */
		text = first;
	}
	if (s->cut && got >= 0)
		tacho__problem(r, r->source_count - 1, "too-many-parts", 0, 0,
			       "the file has more than %u parts; only the last ones were read",
			       TACHO_TRACE_PARTS_MAX);
	tacho__input_release(in);
	if (got < 0)
		return got;
	if (good && message && message_size)
		message[0] = 0;
	return good ? 0 : -EBADMSG;
}

int tacho__reader_add(struct tacho_reader *r, struct tacho__input *in,
		      const struct tacho__host *host, char *message, size_t message_size)
{
	struct tacho__split s;
	int err;

	if (tacho__is_box(in)) {
		err = add_one(r, in, host, message, message_size);
		if (!err && !tacho__reader_wants(
				    r, &r->processes[r->sources[r->source_count - 1].process]->pub))
			err = say_unwanted(r, message, message_size);
		return err;
	}
	err = tacho__split(&s, in);
	if (err)
		in->close(in);
	else if (s.count == 1 && !s.cut)
		err = add_one(r, in, host, message, message_size);
	else
		err = add_parts(r, in, &s, message, message_size);
	free(s.from);
	return err;
}

int tacho__reader_settle(struct tacho_reader *r, char *message, size_t message_size)
{
	int err;

	if (r->unwanted && !r->process_count)
		return say_unwanted(r, message, message_size);
	err = tacho__stretches_settle(r);
	if (err)
		tacho__say(message, message_size,
			   "cannot bring the events into order: there is not enough memory");
	return err;
}

int tacho_read_open_memory(struct tacho_reader **out, const void *data, size_t size,
			   const struct tacho_read_options *options, char *message,
			   size_t message_size)
{
	struct tacho_reader *r;
	struct tacho__input *in;
	int err = tacho__reader_new(&r, options, message, message_size);

	*out = NULL;
	if (!err) {
		in = tacho__input_memory(data, size);
		err = in ? tacho__reader_add(r, in, NULL, message, message_size) : -ENOMEM;
	}
	if (!err)
		err = tacho__reader_settle(r, message, message_size);
	if (err == -ENOMEM && message && message_size && !message[0])
		tacho__say(message, message_size,
			   "cannot read the input: it needs more memory than there is, or than its "
			   "size can justify");
	if (err) {
		tacho_read_close(r);
		return err;
	}
	*out = r;
	return 0;
}

void tacho_read_close(struct tacho_reader *reader)
{
	if (!reader)
		return;
	tacho__merge_free(reader);
	for (uint32_t i = 0; i < reader->stretch_count + reader->stretch_hidden; i++)
		free(reader->stretches[i].copy);
	for (uint32_t i = 0; i < reader->source_count; i++) {
		struct tacho__source *s = &reader->sources[i];

		s->input->close(s->input);
		tacho__timebase_free(&s->timebase);
		free(s->tails);
	}
	for (uint32_t i = 0; i < reader->process_count; i++) {
		tacho__definitions_free(&reader->processes[i]->definitions);
		free(reader->processes[i]->walls);
		free(reader->processes[i]->symbols);
		free(reader->processes[i]);
	}
	free(reader->stretches);
	free(reader->sources);
	free(reader->processes);
	free(reader->threads);
	free(reader->triggers);
	free(reader->crashes);
	free(reader->gaps);
	free(reader->absent);
	free(reader->problems);
	tacho__block_room_free(&reader->room);
	tacho__arena_free(&reader->arena);
	free(reader);
}
