/*
 * tacho doctor: what can be recorded here, and of a program.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "text/json.h"
#include "text/text.h"

enum verdict { VERDICT_OK, VERDICT_DEGRADED, VERDICT_CANNOT };

struct report {
	struct tacho__checks machine, program, self;
	struct doctor_self ran;
	const char *command; /* NULL: none was given */
	enum verdict verdict;
	unsigned warnings;
	char summary[CLI_MESSAGE];
};

/* -------------------------------------------------------- the self-check */

/* A thing that was done and must have been recorded. `exact`: more is wrong as well. */
static void compare(struct tacho__checks *checks, const char *name, const char *what, uint64_t did,
		    uint64_t recorded, bool exact)
{
	bool good = exact ? recorded == did : recorded >= did;
	struct tacho__check *c =
		tacho__check_add(checks, name, good ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);

	tacho__check_number(c, recorded);
	tacho__check_means(c, "%" PRIu64 " of %" PRIu64 " %s were recorded",
			   recorded < did || exact ? recorded : did, did, what);
	if (!good)
		tacho__check_todo(c,
				  "this should not be: report it, with the output of tacho doctor "
				  "--json");
}

static void compare_samples(struct tacho__checks *checks, const struct doctor_self *s)
{
	char did[TEXT_SMALL], recorded[TEXT_SMALL];
	bool good = s->recorded.cpu_ns >= s->did.cpu_ns / 2;
	struct tacho__check *c = tacho__check_add(checks, "self-samples",
						  good ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);

	tacho__check_number(c, s->recorded.samples);
	tacho__check_means(c, "%" PRIu64 " CPU samples stand for %s of %s", s->recorded.samples,
			   text_duration(recorded, s->recorded.cpu_ns),
			   text_duration(did, s->did.cpu_ns));
	if (!good)
		tacho__check_todo(c,
				  "see limit-sigpending; a filter that refuses timer_create, or a "
				  "program that blocks all real-time signals, has this effect too");
}

static void judge_self(struct report *r)
{
	const struct doctor_self *s = &r->ran;
	bool works = s->ran && s->recorded.waits > 0;
	struct tacho__check *c = tacho__check_add(&r->self, "self-check",
						  works ? TACHO__CHECK_OK : TACHO__CHECK_CANNOT);
	char took[TEXT_SMALL];

	if (!works) {
		tacho__check_means(c, "a process that was to record did not: %s",
				   s->reason[0] ? s->reason : "its box holds no wait of a loop");
		tacho__check_todo(c, "put right what this line and those above name");
		return;
	}
	tacho__check_means(c, "a process recorded for %s and was killed; its box was read (%s)",
			   text_duration(took, s->took_ns), s->box);
	compare(&r->self, "self-waits", "waits of a loop", s->did.waits, s->recorded.waits, true);
	compare(&r->self, "self-locks", "waits for a lock", s->did.locks, s->recorded.locks, false);
	compare(&r->self, "self-calls", "blocking calls", s->did.calls, s->recorded.calls, true);
	compare_samples(&r->self, s);
	c = tacho__check_add(&r->self, "self-sched",
			     s->sched ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);
	tacho__check_means(c, "slow turns %s how the scheduler treated them",
			   s->sched ? "told" : "did not tell");
	if (!s->sched)
		tacho__check_todo(c, "see schedstat");
}

/* ------------------------------------------------------------- verdict */

static bool has(const struct tacho__checks *c, enum tacho__check_state state)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->items[i].state == state)
			return true;
	return false;
}

static unsigned count(const struct tacho__checks *c, enum tacho__check_state state)
{
	unsigned n = 0;

	for (size_t i = 0; i < c->count; i++)
		n += c->items[i].state == state;
	return n;
}

static void judge(struct report *r)
{
	const char *what = r->command ? r->command : "";

	judge_self(r);
	r->warnings = count(&r->machine, TACHO__CHECK_WARNING) +
		      count(&r->program, TACHO__CHECK_WARNING) +
		      count(&r->self, TACHO__CHECK_WARNING);
	if (has(&r->self, TACHO__CHECK_CANNOT) || has(&r->machine, TACHO__CHECK_CANNOT)) {
		r->verdict = VERDICT_CANNOT;
		snprintf(r->summary, sizeof(r->summary), "Recording does not work here.");
	} else if (has(&r->program, TACHO__CHECK_CANNOT)) {
		r->verdict = VERDICT_CANNOT;
		snprintf(r->summary, sizeof(r->summary), "Recording works here, but not of %s.",
			 what);
	} else {
		r->verdict = r->warnings ? VERDICT_DEGRADED : VERDICT_OK;
		snprintf(r->summary, sizeof(r->summary), "Recording works here%s%s%s.",
			 r->command ? ", also of " : "", what,
			 !r->warnings	    ? ", with all that tacho knows"
			 : r->warnings == 1 ? "; one thing is less than it could be"
					    : "; some things are less than they could be");
	}
}

/* -------------------------------------------------------------- output */

static const struct {
	const char *word;
	enum cli_colour colour;
} states[] = {
	[TACHO__CHECK_OK] = {"ok", CLI_GREEN},
	[TACHO__CHECK_WARNING] = {"warning", CLI_YELLOW},
	[TACHO__CHECK_CANNOT] = {"cannot", CLI_RED},
	[TACHO__CHECK_UNKNOWN] = {"unknown", CLI_DIM},
};

static const char *value_text(const struct tacho__check *c, char *out, size_t size)
{
	char bytes[TEXT_SMALL];

	if (c->is_number && c->is_bytes)
		snprintf(out, size, "%s", text_bytes(bytes, c->number));
	else if (c->is_number)
		snprintf(out, size, "%" PRIu64, c->number);
	else
		snprintf(out, size, "%s", c->value);
	return out;
}

static void print_check(const struct tacho__check *c)
{
	char value[sizeof(c->value)];

	printf("  %s%-7s%s  %-16s  ", cli_colour(stdout, states[c->state].colour),
	       states[c->state].word, cli_colour(stdout, CLI_PLAIN), c->name);
	value_text(c, value, sizeof(value));
	if (value[0]) {
		text_put(stdout, value);
		fputs(": ", stdout);
	}
	text_put(stdout, c->means);
	putchar('\n');
	if (c->todo[0]) {
		printf("  %-7s  %-16s  -> ", "", "");
		text_put(stdout, c->todo);
		putchar('\n');
	}
}

/* What needs attention comes first. */
static void print_section(const char *title, const char *name, const struct tacho__checks *c)
{
	static const enum tacho__check_state order[] = {TACHO__CHECK_CANNOT, TACHO__CHECK_WARNING,
							TACHO__CHECK_UNKNOWN, TACHO__CHECK_OK};

	printf("\n%s%s", cli_colour(stdout, CLI_BOLD), title);
	text_put(stdout, name);
	printf("%s\n", cli_colour(stdout, CLI_PLAIN));
	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		for (size_t i = 0; i < c->count; i++)
			if (c->items[i].state == order[k])
				print_check(&c->items[i]);
}

static void print_text(const struct report *r)
{
	static const enum cli_colour colours[] = {CLI_GREEN, CLI_YELLOW, CLI_RED};

	fputs(cli_colour(stdout, colours[r->verdict]), stdout);
	text_put(stdout, r->summary);
	printf("%s\n", cli_colour(stdout, CLI_PLAIN));
	if (r->command)
		print_section("The program ", r->command, &r->program);
	print_section("This machine", "", &r->machine);
	print_section("A recording, really made", "", &r->self);
}

static void json_checks(struct json *j, const char *key, const struct tacho__checks *c)
{
	json_key(j, key);
	json_array(j);
	for (size_t i = 0; i < c->count; i++) {
		const struct tacho__check *check = &c->items[i];

		json_object(j);
		json_put_string(j, "name", check->name);
		json_put_string(j, "state", states[check->state].word);
		if (check->is_number)
			json_put_u64(j, "value", check->number);
		else
			json_put_known(j, "value", check->value);
		json_put_string(j, "means", check->means);
		json_put_known(j, "todo", check->todo);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_counts(struct json *j, const char *key, const struct doctor_counts *c,
			bool samples)
{
	json_key(j, key);
	json_object(j);
	json_put_u64(j, "waits", c->waits);
	json_put_u64(j, "locks", c->locks);
	json_put_u64(j, "calls", c->calls);
	json_put_u64(j, "cpu_ns", c->cpu_ns);
	if (samples)
		json_put_u64(j, "samples", c->samples);
	json_object_end(j);
}

static void print_json(const struct report *r)
{
	static const char *const words[] = {"ok", "degraded", "cannot"};
	struct json j;

	json_begin(&j, stdout, true);
	json_object(&j);
	json_put_string(&j, "verdict", words[r->verdict]);
	json_put_string(&j, "summary", r->summary);
	json_put_u64(&j, "warnings", r->warnings);
	json_put_known(&j, "command", r->command ? r->command : "");
	if (r->command) {
		json_checks(&j, "program", &r->program);
	} else {
		json_key(&j, "program");
		json_null(&j);
	}
	json_checks(&j, "machine", &r->machine);
	json_checks(&j, "self", &r->self);
	json_key(&j, "self_check");
	json_object(&j);
	json_put_bool(&j, "ran", r->ran.ran);
	json_put_known(&j, "reason", r->ran.reason);
	json_put_u64(&j, "took_ns", r->ran.took_ns);
	json_put_known(&j, "box", r->ran.box);
	json_counts(&j, "did", &r->ran.did, false);
	json_counts(&j, "recorded", &r->ran.recorded, true);
	json_object_end(&j);
	json_object_end(&j);
	json_end_line(&j);
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"known-work", no_argument, NULL, 'k'}, /* what the self-check starts */
		{NULL, 0, NULL, 0},
	};
	static struct report r;
	bool json = false;
	int c;

	while ((c = cli_option(argc, argv, "+", options)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'k':
			return doctor_subject();
		case 'h':
			return cli_show_help(&cli_doctor);
		default:
			return CLI_USAGE;
		}
	}
	r.command = optind < argc ? argv[optind] : NULL;
	tacho__doctor_machine(&r.machine);
	if (r.command)
		tacho__doctor_program(&r.program, r.command);
	doctor_self_check(&r.ran);
	judge(&r);
	if (json)
		print_json(&r);
	else
		print_text(&r);
	c = r.machine.failed || r.program.failed || r.self.failed;
	if (c)
		cli_error("out of memory.");
	tacho__checks_free(&r.machine);
	tacho__checks_free(&r.program);
	tacho__checks_free(&r.self);
	return c || r.verdict == VERDICT_CANNOT ? CLI_FAILED : CLI_OK;
}

const struct cli_command cli_doctor = {
	.name = "doctor",
	.summary = "what can be recorded here, and what to do about the rest",
	.help = "Usage: tacho doctor [--json] [-- COMMAND]\n\n"
		"Tries what recording needs of this machine, and records a process for a second "
		"to\n"
		"compare what it did with what arrived. With COMMAND also says how it is linked,\n"
		"what can be seen of it, and which names its functions have; COMMAND is not "
		"run.\n\n"
		"  --json    for programs\n\n"
		"The exit status is 1 when nothing can be recorded, here or of COMMAND.\n\n"
		"Example:\n"
		"  tacho doctor -- memcached\n",
	.run = run,
};
