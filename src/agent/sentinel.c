#include "agent/sentinel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define STATUS_MAX 255u
_Static_assert(TACHO__CONDITIONS_MAX == 16 && sizeof(((struct tacho__sentinels *)0)->text) == 512,
	       "as the sentences below say");

static const struct measure {
	const char *name;
	enum tacho__watched watched;
	const char *what; /* that took, or was, so much */
} measures[] = {
	{"poll", TACHO__WATCH_POLL, "a poll took"},
	{"wake", TACHO__WATCH_WAKE, "a task waited after its wake for"},
	{"lag", TACHO__WATCH_LAG, "a loop or a timer was late by"},
	{"sched", TACHO__WATCH_SCHED, "a poll was runnable and did not run for"},
	{"stall", TACHO__WATCH_STALL, "a loop has not come back for"},
	{"queue", TACHO__WATCH_QUEUE, "the depth of a queue was"},
	{"exit", TACHO__WATCH_EXIT, "the program ended with status"},
};
#define MEASURES (sizeof(measures) / sizeof(measures[0]))

static const struct measure *measure_of(unsigned watched)
{
	for (size_t i = 0; i < MEASURES; i++)
		if (measures[i].watched == watched)
			return &measures[i];
	return NULL;
}

/* ------------------------------------------------------------- parsing */

struct parser {
	const char *text;
	size_t at; /* of what comes next */
	size_t *error_at;
	char *message;
	size_t message_size;
};

/* `at` is the character that the sentence is about. */
static int fail(struct parser *p, size_t at, const char *sentence)
{
	*p->error_at = at;
	if (p->message_size)
		snprintf(p->message, p->message_size, "%s", sentence);
	return -EINVAL;
}

static int is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void skip_space(struct parser *p)
{
	while (is_space(p->text[p->at]))
		p->at++;
}

static size_t word_size(const char *s)
{
	size_t n = 0;

	while (is_letter(s[n]) || is_digit(s[n]))
		n++;
	return n;
}

static int take_word(struct parser *p, const char *word)
{
	size_t n = word_size(p->text + p->at);

	if (n != strlen(word) || strncmp(p->text + p->at, word, n))
		return 0;
	p->at += n;
	return 1;
}

static int take_sign(struct parser *p, const char *sign)
{
	size_t n = strlen(sign);

	if (strncmp(p->text + p->at, sign, n))
		return 0;
	p->at += n;
	return 1;
}

static int parse_measure(struct parser *p, const struct measure **out)
{
	size_t n;

	skip_space(p);
	n = word_size(p->text + p->at);
	for (size_t i = 0; n && i < MEASURES; i++) {
		if (take_word(p, measures[i].name)) {
			*out = &measures[i];
			return 0;
		}
	}
	return fail(p, p->at,
		    n ? "there is no such sentinel: expected poll, wake, lag, sched, stall, queue "
			"or exit"
		      : "a condition is missing: expected poll, wake, lag, sched, stall, queue or "
			"exit");
}

/* The sign between the measure and its limit. */
static int parse_sign(struct parser *p, const struct measure *m, struct tacho__condition *c)
{
	int is_exit = m->watched == TACHO__WATCH_EXIT;

	skip_space(p);
	if (is_exit) {
		if (take_sign(p, "!="))
			return 0;
		c->equal = true;
		if (take_sign(p, "=="))
			return 0;
		if (take_sign(p, "="))
			return 0;
		return fail(p, p->at, "expected \"!=\" or \"=\" and a status after \"exit\"");
	}
	if (!take_sign(p, ">"))
		return fail(p, p->at, "expected \">\": there is no other comparison here");
	if (p->text[p->at] == '=')
		return fail(p, p->at, "expected the limit after \">\": there is no \">=\"");
	return 0;
}

/* A number with what is written to it, such as 1.5ms: up to a space or a sign. Moves on. */
static size_t take_value(struct parser *p, char *to, size_t room)
{
	size_t n = 0;

	while (is_letter(p->text[p->at + n]) || is_digit(p->text[p->at + n]) ||
	       p->text[p->at + n] == '.')
		n++;
	if (n < room) {
		memcpy(to, p->text + p->at, n);
		to[n] = 0;
	} else {
		to[0] = 0;
	}
	p->at += n;
	return n;
}

/* Offset in a value of the first character that is not part of a number. */
static size_t number_size(const char *s)
{
	size_t n = 0;

	while (is_digit(s[n]) || s[n] == '.')
		n++;
	return n;
}

static int parse_time(struct parser *p, uint64_t *out)
{
	char value[32];
	size_t from, n, number;

	skip_space(p);
	from = p->at;
	n = take_value(p, value, sizeof(value));
	number = number_size(p->text + from);
	if (!n || !number)
		return fail(p, from, "expected a time, such as 50ms or 1.5s");
	/* "50 ms" is one time as well. */
	if (number == n && n < sizeof(value)) {
		size_t unit, left = sizeof(value) - n;

		skip_space(p);
		unit = word_size(p->text + p->at);
		if (unit && unit < left) {
			memcpy(value + n, p->text + p->at, unit);
			value[n + unit] = 0;
			if (tacho__duration_unit(value + n))
				p->at += unit;
			else
				value[n] = 0;
		}
	}
	if (n < sizeof(value) && !tacho__parse_duration(value, out)) {
		if (*out)
			return 0;
		return fail(p, from, "expected a time above 0, such as 50ms");
	}
	if (number == n)
		return fail(p, from + n, "expected a unit after the number: ns, us, ms, s, m or h");
	if (n < sizeof(value) && !tacho__duration_unit(value + number))
		return fail(p, from + number,
			    "that is no unit of time: expected ns, us, ms, s, m or h");
	return fail(p, from,
		    "expected a time, such as 50ms or 1.5s: this number is not one, or is "
		    "too large");
}

static int parse_count(struct parser *p, uint64_t *out)
{
	char value[32];
	size_t from, n;

	skip_space(p);
	from = p->at;
	n = take_value(p, value, sizeof(value));
	if (!n)
		return fail(p, from, "expected a number after \"queue>\", such as 1000");
	for (size_t i = 0; i < n; i++)
		if (!is_digit(p->text[from + i]))
			return fail(p, from + i,
				    "expected a whole number of waiting tasks, such as 1000");
	if (n >= sizeof(value) || tacho__parse_u64(value, out))
		return fail(p, from, "expected a number that fits 64 bits");
	/* The box says 0 for "off" (format/box.h). */
	if (!*out)
		return fail(p, from, "expected a number above 0");
	return 0;
}

static int parse_status(struct parser *p, uint64_t *out)
{
	char value[32];
	size_t from, n;

	skip_space(p);
	from = p->at;
	n = take_value(p, value, sizeof(value));
	if (!n || n >= sizeof(value) || tacho__parse_u64(value, out) || *out > STATUS_MAX)
		return fail(p, from, "expected an exit status, 0 to 255");
	return 0;
}

static int parse_condition(struct parser *p, struct tacho__condition *c)
{
	const struct measure *m = NULL;
	int err = parse_measure(p, &m);

	if (!err)
		err = parse_sign(p, m, c);
	if (err)
		return err;
	c->watched = (uint8_t)m->watched;
	switch (m->watched) {
	case TACHO__WATCH_QUEUE:
		return parse_count(p, &c->limit);
	case TACHO__WATCH_EXIT:
		return parse_status(p, &c->limit);
	default:
		return parse_time(p, &c->limit);
	}
}

enum joint { JOINT_END, JOINT_AND, JOINT_OR };

static int parse_joint(struct parser *p, enum joint *out)
{
	skip_space(p);
	if (!p->text[p->at])
		*out = JOINT_END;
	else if (take_word(p, "and") || take_sign(p, "&&"))
		*out = JOINT_AND;
	else if (take_word(p, "or") || take_sign(p, "||") || take_sign(p, ","))
		*out = JOINT_OR;
	else
		return fail(p, p->at, "expected \"and\", \"or\", or the end after a condition");
	return 0;
}

/* Into `s`, whose text is already there from `base` on. */
static int parse_all(struct parser *p, struct tacho__sentinels *s, size_t base)
{
	unsigned group = s->count ? s->conditions[s->count - 1].group + 1u : 0;
	enum joint joint = JOINT_OR;

	while (joint != JOINT_END) {
		struct tacho__condition c = {.group = (uint8_t)group};
		size_t from;
		int err;

		skip_space(p);
		from = p->at;
		if (s->count == TACHO__CONDITIONS_MAX)
			return fail(p, from, "too many conditions: expected at most 16 in all");
		err = parse_condition(p, &c);
		if (err)
			return err;
		c.from = (uint16_t)(base + from);
		c.to = (uint16_t)(base + p->at);
		s->conditions[s->count++] = c;
		err = parse_joint(p, &joint);
		if (err)
			return err;
		if (joint == JOINT_OR)
			group++;
	}
	return 0;
}

int tacho__sentinels_add(struct tacho__sentinels *s, const char *text, size_t *at, char *message,
			 size_t message_size)
{
	static const char joint[] = " or ";
	struct parser p = {
		.text = text, .error_at = at, .message = message, .message_size = message_size};
	struct tacho__sentinels before = *s;
	size_t have = strlen(s->text), base = have ? have + sizeof(joint) - 1 : 0;
	size_t n = strnlen(text, sizeof(s->text));
	int err;

	*at = 0;
	if (message_size)
		message[0] = 0;
	if (base + n >= sizeof(s->text))
		return fail(&p, base < sizeof(s->text) ? sizeof(s->text) - 1 - base : 0,
			    "the conditions are too long: expected at most 511 characters in all");
	if (have)
		memcpy(s->text + have, joint, sizeof(joint));
	memcpy(s->text + base, text, n + 1);
	err = parse_all(&p, s, base);
	if (err)
		*s = before;
	return err;
}

uint64_t tacho__sentinels_limit(const struct tacho__sentinels *s, enum tacho__watched watched)
{
	uint64_t least = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct tacho__condition *c = &s->conditions[i];

		if (c->watched == watched && (!least || c->limit < least))
			least = c->limit;
	}
	return least;
}

bool tacho__sentinels_watch(const struct tacho__sentinels *s, enum tacho__watched watched)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->conditions[i].watched == watched)
			return true;
	return false;
}

/* ---------------------------------------------------------- evaluation */

static bool holds(const struct tacho__condition *c, uint64_t value)
{
	if (c->watched == TACHO__WATCH_EXIT)
		return c->equal == (value == c->limit);
	return value > c->limit;
}

static void put_duration(struct tacho__text *t, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
	char number[40];

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ns < units[i].ns)
			continue;
		/* Cut, not rounded: 73.25 ms is not above a limit of 73.3. */
		snprintf(number, sizeof(number), "%" PRIu64 ".%" PRIu64 " %s", ns / units[i].ns,
			 ns / (units[i].ns / 10) % 10, units[i].unit);
		tacho__text_put(t, number);
		return;
	}
	tacho__text_put_u64(t, ns);
	tacho__text_put(t, " ns");
}

static void put_reason(struct tacho__text *t, const struct tacho__sentinels *s, uint32_t i,
		       uint64_t value)
{
	const struct tacho__condition *c = &s->conditions[i];
	const struct measure *m = measure_of(c->watched);

	tacho__text_put_n(t, s->text + c->from, (size_t)(c->to - c->from));
	tacho__text_put(t, ": ");
	tacho__text_put(t, m->what);
	tacho__text_put(t, " ");
	if (c->watched == TACHO__WATCH_QUEUE || c->watched == TACHO__WATCH_EXIT)
		tacho__text_put_u64(t, value);
	else
		put_duration(t, value);
}

/* Whether all of a group held within the last second before `ns`. An exit stays true: there
   is nothing after it. */
static bool group_holds(const struct tacho__sentinels *s, const struct tacho__watch *w,
			unsigned group, uint64_t ns)
{
	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t at = w->held_ns[i];

		if (s->conditions[i].group != group)
			continue;
		if (!at || (at < ns && ns - at > TACHO__TOGETHER_NS) ||
		    (at > ns && at - ns > TACHO__TOGETHER_NS))
			return false;
	}
	return true;
}

static void put_group(const struct tacho__sentinels *s, const struct tacho__watch *w,
		      unsigned group, char *why, size_t why_size)
{
	struct tacho__text t;
	const char *between = "";

	tacho__text_init(&t, why, why_size);
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->conditions[i].group != group)
			continue;
		tacho__text_put(&t, between);
		put_reason(&t, s, i, w->value[i]);
		between = "; ";
	}
}

unsigned tacho__watch_value(const struct tacho__sentinels *s, struct tacho__watch *w,
			    enum tacho__watched watched, uint64_t ns, uint64_t value, char *why,
			    size_t why_size)
{
	if (why_size)
		why[0] = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->conditions[i].watched != watched || !holds(&s->conditions[i], value))
			continue;
		w->held_ns[i] = ns ? ns : 1; /* 0 says never */
		w->value[i] = value;
	}
	for (uint32_t i = 0; i < s->count; i++) {
		unsigned group = s->conditions[i].group;

		if (s->conditions[i].watched != watched || !holds(&s->conditions[i], value) ||
		    !group_holds(s, w, group, ns ? ns : 1))
			continue;
		put_group(s, w, group, why, why_size);
		return group + 1;
	}
	return 0;
}
