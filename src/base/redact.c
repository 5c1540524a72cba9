#include "base/redact.h"

#include <string.h>

#include "base/redact_names.h"
#include "base/text.h"

#define TOKEN_LEAST 20u /* bytes of a user before @ that is rather a token */

struct scan {
	const char *s;
	size_t n;
	int cut;
	size_t at;	      /* all before it is dealt with */
	size_t argument, end; /* the one that `at` is in */
	int shell;	      /* its words are arguments themselves: of sh -c, or of a title */
	int only;	      /* there is no other */
	const struct tool *tool;
	char *to;
	size_t room, used;
};

/* Programs whose options for credentials have no name that says so. */
static const struct tool {
	const char *name, *option;
	int begins; /* names that begin so as well: mysqldump */
	enum { GLUED = 1, NEXT = 2, AFTER_COLON = 4 } how;
} tools[] = {
	{"mysql", "-p", 1, GLUED},
	{"mariadb", "-p", 1, GLUED},
	{"sshpass", "-p", 0, GLUED | NEXT},
	{"redis-cli", "-a", 0, GLUED | NEXT},
	{"curl", "-u", 0, GLUED | NEXT | AFTER_COLON},
	{"curl", "--user", 0, NEXT | AFTER_COLON},
	{"curl", "-U", 0, GLUED | NEXT | AFTER_COLON},
	{"curl", "--proxy-user", 0, NEXT | AFTER_COLON},
	{"http", "-a", 0, NEXT},
	{"https", "-a", 0, NEXT},
};
#define TOOLS (sizeof(tools) / sizeof(tools[0]))

static int is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.';
}

static int is_blank(char c)
{
	return c == 0 || c == ' ' || (c >= '\t' && c <= '\r');
}

static int is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

static int is_any(char c, const char *these)
{
	return c && strchr(these, c) != NULL;
}

static char before(const struct scan *z, size_t at)
{
	return at > 0 ? z->s[at - 1] : 0;
}

static int begins_word(const struct scan *z, size_t at)
{
	char c = before(z, at);

	return is_blank(c) || is_quote(c) || is_any(c, ";|&(");
}

static int starts(const struct scan *z, size_t at, size_t end, const char *with)
{
	size_t n = strlen(with);

	return end - at >= n && !memcmp(z->s + at, with, n);
}

/* ------------------------------------------------------------------- output */

static void put(struct scan *z, const char *from, size_t size)
{
	size_t left = z->room - z->used;

	size = size < left ? size : left;
	memcpy(z->to + z->used, from, size);
	z->used += size;
}

/* Copies up to `end`. */
static void copy(struct scan *z, size_t end)
{
	put(z, z->s + z->at, end - z->at);
	z->at = end;
}

/* Copies up to `begin` and replaces what stands from there to `end`. */
static void replace(struct scan *z, size_t begin, size_t end)
{
	copy(z, begin);
	if (end > begin)
		put(z, TACHO__REDACTED, strlen(TACHO__REDACTED));
	z->at = end;
}

/* ------------------------------------------------------------- ends of values */

/* Where the first of these stands from `at` on, or the end of the argument. */
static size_t find_any(const struct scan *z, size_t at, const char *these)
{
	while (at < z->end && !is_any(z->s[at], these))
		at++;
	return at;
}

/* Where the quoted text that begins at `at` ends. `nested`: it stands in a text that is quoted itself, so
   that its quotes are written as \". */
static size_t find_quote(const struct scan *z, size_t at, char quote, int nested)
{
	for (; at < z->end && z->s[at] != quote; at++)
		if (z->s[at] == '\\' && nested && at + 1 < z->end && z->s[at + 1] == quote)
			return at;
		else if (z->s[at] == '\\' && at + 1 < z->end)
			at++;
	return at < z->end ? at : z->end;
}

/* Where the bracket that stands at `at` is closed. */
static size_t find_bracket(const struct scan *z, size_t at)
{
	int depth = 0;

	for (; at < z->end; at++) {
		depth += is_any(z->s[at], "[{") - is_any(z->s[at], "]}");
		if (depth <= 0)
			return at + 1;
	}
	return at;
}

/* A name of what follows it. */
struct name {
	size_t begin, end;
	int kind;
	char before;
	int quoted; /* in quotes of its own: "name": value */
};

/* What stands before a name says what ends its value, which begins at `at`. */
static size_t find_end(const struct scan *z, const struct name *name, size_t at)
{
	char c = name->before;

	if (is_any(c, "?&"))
		return find_any(z, at, "&#\"' \t\n");
	if (name->quoted)
		return find_any(z, at, ",}] \t\n");
	if (name->begin == z->argument && !z->shell)
		return z->end;
	if (is_quote(c))
		return find_quote(z, at, c, 0);
	if (name->kind & TACHO__HEADER)
		return find_any(z, at, "\"'");
	if (c == ';')
		return find_any(z, at, ";\"'");
	if (is_any(c, ",{(["))
		return find_any(z, at, ",})]\"' \t\n");
	if (is_blank(c) || z->shell)
		return find_any(z, at, " \t\n");
	return z->end;
}

/* -------------------------------------------------------------------- values */

static int is_number(const char *s, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!is_any(s[i], "0123456789.,"))
			return 0;
	return 1;
}

static int is_word(const char *s, size_t size, const char *word)
{
	return size == strlen(word) && !memcmp(s, word, size);
}

/* Values that are none of what their name says. One that is cut short may have become that. */
static int is_harmless(const struct scan *z, size_t at, size_t end, int kind)
{
	const char *s = z->s + at;
	size_t size = end - at;

	if (z->cut && end == z->n)
		return 0;
	if (is_word(s, size, "true") || is_word(s, size, "false"))
		return 1;
	if (kind & TACHO__MANY && is_number(s, size))
		return 1;
	if (kind & TACHO__KEY)
		return (size < 6 && is_number(s, size)) || tacho__redact_is_path(s, size);
	return 0;
}

/* Replaces the value that begins at `at`. Returns 0 if there is no value to replace. */
static int take_value(struct scan *z, const struct name *name, size_t at)
{
	size_t end;

	if (at >= z->end)
		return 0;
	if (z->s[at] == '\\' && at + 1 < z->end && is_quote(z->s[at + 1]))
		end = find_quote(z, at + 2, z->s[at + 1], 1), at += 2;
	else if (is_quote(z->s[at]))
		end = find_quote(z, at + 1, z->s[at], 0), at++;
	else if (name->quoted && is_any(z->s[at], "[{"))
		end = find_bracket(z, at);
	else
		end = find_end(z, name, at);
	if (end <= at || is_harmless(z, at, end, name->kind))
		return 0;
	replace(z, at, end);
	return 1;
}

static size_t skip_blanks(const struct scan *z, size_t at)
{
	while (at < z->end && is_any(z->s[at], " \t\n"))
		at++;
	return at;
}

/* Where the value behind a name and = or : begins, or the end of the argument. */
static size_t find_separated(const struct scan *z, struct name *name)
{
	size_t at = name->end;

	if (is_quote(name->before)) { /* "name": "value", also with \" */
		size_t p = at + (at + 1 < z->end && z->s[at] == '\\');

		name->quoted = p < z->end && z->s[p] == name->before;
		at = name->quoted ? skip_blanks(z, p + 1) : at;
	}
	if (at + 2 < z->end && z->s[at] == '%' && z->s[at + 1] == '3' &&
	    is_any(z->s[at + 2], "AaDd"))
		return at + 3;
	if (at >= z->end || !is_any(z->s[at], "=:") || starts(z, at, z->end, "://"))
		return z->end;
	/* registry/secret:latest; /password:x is an option */
	if (z->s[at] == ':' && is_any(name->before, "/@") && name->begin > z->argument + 1)
		return z->end;
	if (starts(z, at, z->end, "=>"))
		return skip_blanks(z, at + 2);
	return name->quoted || z->s[at] == ':' ? skip_blanks(z, at + 1) : at + 1;
}

/* -o, --option and - alone; something longer after one dash may be a password. */
static int is_option(const struct scan *z, size_t at, size_t end)
{
	if (at >= end || z->s[at] != '-')
		return 0;
	if (end - at <= 2)
		return 1;
	return z->s[at + 1] == '-' && is_name(z->s[at + 2]);
}

static size_t argument_end(const struct scan *z, size_t at)
{
	const char *zero = at < z->n ? memchr(z->s + at, 0, z->n - at) : NULL;

	return zero ? (size_t)(zero - z->s) : z->n;
}

/* Finds the next argument after `at`, or the next word where words are arguments. Returns 0 if `at` is in
   the last one. */
static int find_next(const struct scan *z, size_t at, size_t *begin, size_t *end)
{
	if (at < z->end) {
		while (at < z->end && is_blank(z->s[at]))
			at++;
		*begin = at;
		*end = find_any(z, at, " \t\n");
		if (at < z->end && is_quote(z->s[at])) {
			*begin = at + 1;
			*end = find_quote(z, at + 1, z->s[at], 0);
		}
	} else {
		*begin = at + 1;
		*end = argument_end(z, at + 1);
	}
	return *begin < *end && *end <= z->n;
}

/* --password VALUE */
static int take_next(struct scan *z, size_t at, int kind)
{
	size_t begin, end;

	if (at < z->end && !is_blank(z->s[at]))
		return 0;
	if (!find_next(z, at, &begin, &end) || is_option(z, begin, end) ||
	    is_harmless(z, begin, end, kind))
		return 0;
	replace(z, begin, end);
	return 1;
}

/* ---------------------------------------------------------------------- tools */

static void note_tool(struct scan *z, size_t at)
{
	size_t end = find_any(z, at, " \t\n\"'`;|&()"), base = end;

	while (base > at && z->s[base - 1] != '/')
		base--;
	for (size_t i = 0; i < TOOLS; i++) {
		size_t n = strlen(tools[i].name);

		if (!starts(z, base, end, tools[i].name) || (end - base > n && !tools[i].begins))
			continue;
		z->tool = &tools[i];
		return;
	}
}

/* Replaces the value of an option of the last tool. Returns 0 if no such option stands here. */
static int take_tool(struct scan *z, size_t at)
{
	size_t word = find_any(z, at, " \t\n"), begin = 0, end = 0, n;
	const struct tool *t = z->tool;

	for (; t && t < tools + TOOLS && !strcmp(t->name, z->tool->name); t++) {
		n = strlen(t->option);
		if (!starts(z, at, word, t->option))
			continue;
		if (word - at > n && t->how & GLUED) {
			begin = at + n;
			end = word;
		} else if (word - at != n || !(t->how & NEXT) ||
			   !find_next(z, word, &begin, &end)) {
			continue;
		}
		while (t->how & AFTER_COLON && begin < end && z->s[begin++] != ':')
			;
		if (begin >= end)
			continue;
		replace(z, begin, end);
		return 1;
	}
	return 0;
}

/* ------------------------------------------------------------------ addresses */

static size_t last_of(const struct scan *z, size_t at, size_t end, char c)
{
	while (end > at && z->s[end - 1] != c)
		end--;
	return end > at ? end - 1 : (size_t)-1;
}

static size_t first_of(const struct scan *z, size_t at, size_t end, char c)
{
	const char *found = end > at ? memchr(z->s + at, c, end - at) : NULL;

	return found ? (size_t)(found - z->s) : (size_t)-1;
}

/* user:password@ or token@ from `at` on, behind "://". */
static void take_user(struct scan *z, size_t at)
{
	size_t none = (size_t)-1, all = find_any(z, at, " \t\n\"'`<>");
	size_t host = find_any(z, at, "/?# \t\n\"'`<>");
	size_t sign = last_of(z, at, host, '@');
	size_t colon = first_of(z, at, sign == none ? host : sign, ':');
	int ends = z->cut && host == z->n;

	/* A password with a slash in it; not the port of a host. */
	if (sign == none && colon != none && z->s[at] != '[' &&
	    !is_number(z->s + colon + 1, host - colon - 1))
		sign = last_of(z, host, all, '@');
	if (ends) /* @ may be in what was cut off */
		sign = host;
	if (sign == none)
		return;
	if (colon != none && z->s[at] != '[')
		replace(z, colon + 1, sign);
	else if (sign - at >= TOKEN_LEAST && (!ends || first_of(z, at, sign, '.') == none))
		replace(z, at, sign);
}

/* user:password@host without a scheme, from a name that ends at `end`. */
static int take_pair(struct scan *z, size_t name, size_t end)
{
	size_t stop, sign;

	if (end >= z->end || z->s[end] != ':' || z->s[name] == '-')
		return 0;
	if (!z->cut && first_of(z, end + 1, z->end, '@') == (size_t)-1)
		return 0;
	stop = find_any(z, end + 1, "/?#,; \t\n\"'`<>");
	sign = z->cut && stop == z->n ? stop : last_of(z, end + 1, stop, '@');
	if (sign == (size_t)-1 || sign <= end + 1)
		return 0;
	/* image:tag@sha256:... */
	if (sign < stop && (sign + 1 == stop || starts(z, sign + 1, stop, "sha256:") ||
			    starts(z, sign + 1, stop, "sha512:")))
		return 0;
	replace(z, end + 1, sign);
	return 1;
}

/* ------------------------------------------------------------------- all of it */

/* Deals with a name, or what looks like one, that begins at z->at. */
static void take_name(struct scan *z)
{
	struct name name = {.begin = z->at, .end = z->at, .before = before(z, z->at)};
	int option = begins_word(z, z->at) && z->s[z->at] == '-';
	size_t value;

	while (name.end < z->end && is_name(z->s[name.end]))
		name.end++;
	if (starts(z, name.end, z->end, "://")) {
		copy(z, name.end + 3);
		take_user(z, z->at);
		return;
	}
	if (option && take_tool(z, name.begin))
		return;
	/* Most words are no names: nothing follows them. */
	if (option || (name.end < z->end && is_any(z->s[name.end], "=:\"'`\\% \t\n")))
		name.kind = tacho__redact_name(z->s + name.begin, name.end - name.begin,
					       is_any(name.before, "?&"));
	if (name.kind) {
		value = find_separated(z, &name);
		if (value < z->end && take_value(z, &name, value))
			return;
		option = option && !(name.kind & TACHO__SWITCH);
		/* Bearer TOKEN */
		option |= name.kind & TACHO__HEADER && name.end < z->end &&
			  name.end - name.begin == 6 && (z->s[name.begin] | 0x20) == 'b';
		if (value >= z->end && option && take_next(z, name.end, name.kind))
			return;
	}
	if (tacho__redact_is_token(z->s + name.begin, name.end - name.begin))
		replace(z, name.begin, name.end);
	else if (!take_pair(z, name.begin, name.end))
		copy(z, name.end);
}

/* Whether the argument before the one at `at` is -c, -lc or the like. */
static int is_command(const struct scan *z, size_t at)
{
	size_t dash;

	if (at < 3 || z->s[at - 2] != 'c')
		return 0;
	dash = z->s[at - 3] == '-' ? at - 3 : at - 4;
	return at >= 4 && z->s[dash] == '-' && before(z, dash) == 0;
}

static void begin_argument(struct scan *z)
{
	z->argument = z->at;
	z->end = argument_end(z, z->at);
	z->shell = z->only || is_command(z, z->at);
}

size_t tacho__redact(char *to, size_t room, const char *from, size_t size, int cut)
{
	struct scan z = {.s = from, .n = size, .cut = cut, .to = to, .room = room};
	size_t first;

	first = argument_end(&z, 0);
	while (first < size && !from[first])
		first++;
	z.only = first == size;
	begin_argument(&z);
	while (z.at < size) {
		if (z.at < z.end && begins_word(&z, z.at))
			note_tool(&z, z.at);
		if (z.at >= z.end) {
			copy(&z, z.at + 1);
			begin_argument(&z);
		} else if (is_name(from[z.at])) {
			take_name(&z);
		} else {
			copy(&z, z.at + 1);
		}
	}
	return z.used;
}

void tacho__command_line(char *line, size_t room, const char *arguments, size_t size, int cut,
			 int keep)
{
	size_t used = size < room - 1 ? size : room - 1;

	if (keep)
		memcpy(line, arguments, used);
	else
		used = tacho__redact(line, room - 1, arguments, size, cut);
	tacho__join_arguments(line, used);
}
