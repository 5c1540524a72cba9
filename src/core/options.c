#include "core/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/sentinel.h"

#define DEFAULT_MAX_BYTES (32ull << 20)
#define DEFAULT_CALL_THRESHOLD_NS 1000000u
#define DEFAULT_SLOW_POLL_NS 10000000u
#define DEFAULT_DEAD_BOXES 8u
#define DEAD_BOXES_MAX 1024u
#define DEFAULT_MEMORY_SHARE 5u
#define MEMORY_SHARE_MAX 50u

static int refuse(char *reason, size_t size, const char *name, const char *value, const char *want)
{
	struct tacho__text t;

	tacho__text_init(&t, reason, size);
	tacho__text_put(&t, name);
	tacho__text_put(&t, "=");
	tacho__text_put(&t, value);
	tacho__text_put(&t, " is not understood: ");
	tacho__text_put(&t, want);
	return -EINVAL;
}

static int refuse_option(char *reason, size_t size, const char *sentence)
{
	struct tacho__text t;

	tacho__text_init(&t, reason, size);
	tacho__text_put(&t, sentence);
	return -EINVAL;
}

/* The variable, or NULL when it is not set or empty, or when the program has more rights than
   its caller. */
static const char *env(const char *name)
{
	const char *v = secure_getenv(name);

	return v && *v ? v : NULL;
}

static int copy_text(char *to, size_t size, const char *from)
{
	size_t n = strlen(from);

	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(to, from, n + 1);
	return 0;
}

static int env_numbers(struct tacho__options *o, char *reason, size_t size)
{
	const char *v;
	uint64_t n;

	v = env("TACHO_MAX_BYTES");
	if (v && tacho__parse_bytes(v, &o->max_bytes))
		return refuse(reason, size, "TACHO_MAX_BYTES", v, "give bytes, such as 64M.");
	o->size_given |= v != NULL;
	v = env("TACHO_MIN_AGE");
	if (v && tacho__parse_duration(v, &o->min_age_ns))
		return refuse(reason, size, "TACHO_MIN_AGE", v, "give a duration, such as 10s.");
	v = env("TACHO_POLL_THRESHOLD");
	if (v && tacho__parse_duration(v, &o->poll_threshold_ns))
		return refuse(reason, size, "TACHO_POLL_THRESHOLD", v,
			      "give a duration, such as 50us.");
	v = env("TACHO_CALL_THRESHOLD");
	if (v && tacho__parse_duration(v, &o->call_threshold_ns))
		return refuse(reason, size, "TACHO_CALL_THRESHOLD", v,
			      "give a duration, such as 1ms.");
	v = env("TACHO_SLOW_POLL");
	if (v && tacho__parse_duration(v, &o->slow_poll_ns))
		return refuse(reason, size, "TACHO_SLOW_POLL", v,
			      "give a duration, such as 10ms, or 0 for never.");
	v = env("TACHO_KEEP_BOX");
	if (v) {
		if (tacho__parse_u64(v, &n) || n > 1)
			return refuse(reason, size, "TACHO_KEEP_BOX", v, "give 0 or 1.");
		o->keep_box = (uint32_t)n;
	}
	v = env("TACHO_DEAD_BOXES");
	if (v) {
		if (tacho__parse_u64(v, &n) || !n || n > DEAD_BOXES_MAX)
			return refuse(reason, size, "TACHO_DEAD_BOXES", v,
				      "give a number from 1 to 1024.");
		o->dead_boxes = (uint32_t)n;
	}
	v = env("TACHO_MEMORY_SHARE");
	if (v) {
		if (tacho__parse_u64(v, &n) || !n || n > MEMORY_SHARE_MAX)
			return refuse(reason, size, "TACHO_MEMORY_SHARE", v,
				      "give a percentage from 1 to 50.");
		o->memory_share = (uint32_t)n;
	}
	return 0;
}

static int env_texts(struct tacho__options *o, char *reason, size_t size)
{
	const char *v;

	/* First, because it says where the reason of a refusal can be left. */
	v = env("TACHO_BOX_DIR");
	if (v && (v[0] != '/' || copy_text(o->box_dir, sizeof(o->box_dir), v)))
		return refuse(reason, size, "TACHO_BOX_DIR", v,
			      "give an absolute path of less than 200 bytes.");
	/* So early because it says who wants to know of a refusal. */
	v = env("TACHO_RECORDING");
	if (v && tacho__parse_u64(v, &o->recording))
		return refuse(reason, size, "TACHO_RECORDING", v, "give a number.");
	v = env("TACHO_ON");
	if (v && tacho__sentinels_parse(v, o->limit))
		return refuse(reason, size, "TACHO_ON", v,
			      "'tacho run --on' sets it, for example to poll>50ms,queue>1000.");
	v = env("TACHO_CLOCK");
	if (v) {
		if (!strcmp(v, "auto"))
			o->clock = TACHO_CLOCK_OPTION_AUTO;
		else if (!strcmp(v, "monotonic"))
			o->clock = TACHO_CLOCK_OPTION_MONOTONIC;
		else
			return refuse(reason, size, "TACHO_CLOCK", v, "give auto or monotonic.");
	}
	v = env("TACHO_SERVICE");
	if (v && copy_text(o->service, sizeof(o->service), v))
		return refuse(reason, size, "TACHO_SERVICE", v, "give at most 63 bytes.");
	v = env("TACHO_CRASH_FILE");
	if (v && copy_text(o->crash_file, sizeof(o->crash_file), v))
		return refuse(reason, size, "TACHO_CRASH_FILE", v,
			      "give a path of less than 200 bytes.");
	v = env("TACHO_CRASH");
	if (v && strcmp(v, "on") && strcmp(v, "off"))
		return refuse(reason, size, "TACHO_CRASH", v, "give on or off.");
	o->no_crash = v && !strcmp(v, "off");
	v = env("TACHO_REDACT");
	if (v && strcmp(v, "on") && strcmp(v, "off"))
		return refuse(reason, size, "TACHO_REDACT", v, "give on or off.");
	o->no_redact = v && !strcmp(v, "off");
	v = env("XDG_RUNTIME_DIR");
	if (v && v[0] == '/' && strlen(v) + sizeof("/tacho") <= sizeof(o->runtime_dir)) {
		struct tacho__text t;

		tacho__text_init(&t, o->runtime_dir, sizeof(o->runtime_dir));
		tacho__text_put(&t, v);
	}
	return 0;
}

static int refuse_unknown(char *reason, size_t size)
{
	return refuse_option(
		reason, size,
		"tacho_options holds options that this libtacho does not know: update libtacho.");
}

static int take_given(const struct tacho_options *g, struct tacho__options *o, char *reason,
		      size_t size)
{
	static const struct tacho_options none;
	struct tacho_options full = none;

	/* A program built against an older header has a shorter struct; one built against a
	   newer header must leave what this library does not know at zero. */
	if (g->size < offsetof(struct tacho_options, min_age_ns))
		return refuse_option(reason, size,
				     "tacho_options.size is not set: use TACHO_OPTIONS_INIT.");
	if (g->size > sizeof(full)) {
		const uint8_t *extra = (const uint8_t *)g + sizeof(full);

		for (size_t i = 0; i < g->size - sizeof(full); i++)
			if (extra[i])
				return refuse_unknown(reason, size);
	}
	memcpy(&full, g, g->size < sizeof(full) ? g->size : sizeof(full));
	o->size_given = full.max_bytes != 0;
	if (full.max_bytes)
		o->max_bytes = full.max_bytes;
	o->min_age_ns = full.min_age_ns;
	o->poll_threshold_ns = full.poll_threshold_ns;
	o->clock = full.clock;
	o->keep_box = full.keep_box;
	if (full.dead_boxes)
		o->dead_boxes = full.dead_boxes;
	if (full.clock > TACHO_CLOCK_OPTION_MONOTONIC)
		return refuse_option(reason, size, "tacho_options.clock is not a known clock.");
	if (full.keep_box > 1)
		return refuse_option(reason, size, "tacho_options.keep_box is neither 0 nor 1.");
	if (full.dead_boxes > DEAD_BOXES_MAX)
		return refuse_option(reason, size, "tacho_options.dead_boxes is above 1024.");
	if (full.reserved)
		return refuse_unknown(reason, size);
	if (full.box_dir &&
	    (full.box_dir[0] != '/' || copy_text(o->box_dir, sizeof(o->box_dir), full.box_dir)))
		return refuse_option(reason, size,
				     "tacho_options.box_dir is not an absolute path of less than "
				     "200 bytes.");
	if (full.service && copy_text(o->service, sizeof(o->service), full.service))
		return refuse_option(reason, size,
				     "tacho_options.service is longer than 63 bytes.");
	if (full.crash_file && copy_text(o->crash_file, sizeof(o->crash_file), full.crash_file))
		return refuse_option(reason, size,
				     "tacho_options.crash_file is longer than 199 bytes.");
	return 0;
}

int tacho__options_read(const struct tacho_options *given, struct tacho__options *o, char *reason,
			size_t reason_size)
{
	const char *v = env("TACHO");
	int err;

	memset(o, 0, sizeof(*o));
	o->max_bytes = DEFAULT_MAX_BYTES;
	o->call_threshold_ns = DEFAULT_CALL_THRESHOLD_NS;
	o->slow_poll_ns = DEFAULT_SLOW_POLL_NS;
	o->dead_boxes = DEFAULT_DEAD_BOXES;
	o->memory_share = DEFAULT_MEMORY_SHARE;
	if (given && (err = take_given(given, o, reason, reason_size))) {
		char ignored[8];

		env_texts(o, ignored, sizeof(ignored)); /* for the folder */
		return err;
	}
	err = env_texts(o, reason, reason_size);
	if (!err)
		err = env_numbers(o, reason, reason_size);
	if (err)
		return err;
	if (v && !strcmp(v, "off")) {
		refuse_option(reason, reason_size, "TACHO=off in the environment.");
		return -ECANCELED;
	}
	if (v && strcmp(v, "on"))
		return refuse(reason, reason_size, "TACHO", v, "give on or off.");
	if (o->max_bytes < TACHO_BOX_MIN_BYTES || o->max_bytes > TACHO_BOX_MAX_BYTES)
		return refuse_option(
			reason, reason_size,
			"max_bytes (TACHO_MAX_BYTES) is not between 1 MiB and 64 GiB.");
	return 0;
}
