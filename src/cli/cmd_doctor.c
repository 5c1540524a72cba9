/*
 * tacho doctor: what can be recorded here, and of a program.
 */
#include <inttypes.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "cli/cli.h"
#include "text/json.h"
#include "text/text.h"

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

static void print_text(const struct tacho__doctor *d)
{
	static const enum cli_colour colours[] = {CLI_GREEN, CLI_YELLOW, CLI_RED};

	fputs(cli_colour(stdout, colours[d->verdict]), stdout);
	text_put(stdout, d->summary);
	printf("%s\n", cli_colour(stdout, CLI_PLAIN));
	if (d->command)
		print_section("The program ", d->command, &d->program);
	print_section("This machine", "", &d->machine);
	print_section("A recording, really made", "", &d->self);
}

static void json_checks(struct json *j, const char *key, const struct tacho__checks *c)
{
	json_put_array(j, key);
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

static void json_counts(struct json *j, const char *key, const struct tacho__self_counts *c,
			bool samples)
{
	json_put_object(j, key);
	json_put_u64(j, "waits", c->waits);
	json_put_u64(j, "locks", c->locks);
	json_put_u64(j, "calls", c->calls);
	json_put_u64(j, "cpu_ns", c->cpu_ns);
	if (samples)
		json_put_u64(j, "samples", c->samples);
	json_object_end(j);
}

static void print_json(const struct tacho__doctor *d)
{
	static const char *const words[] = {"ok", "degraded", "cannot"};
	struct json j;

	json_begin(&j, stdout, true);
	json_object(&j);
	json_put_string(&j, "verdict", words[d->verdict]);
	json_put_string(&j, "summary", d->summary);
	json_put_u64(&j, "warnings", d->warnings);
	json_put_known(&j, "command", d->command ? d->command : "");
	if (d->command) {
		json_checks(&j, "program", &d->program);
	} else {
		json_key(&j, "program");
		json_null(&j);
	}
	json_checks(&j, "machine", &d->machine);
	json_checks(&j, "self", &d->self);
	json_put_object(&j, "self_check");
	json_put_bool(&j, "ran", d->ran.ran);
	json_put_known(&j, "reason", d->ran.reason);
	json_put_u64(&j, "took_ns", d->ran.took_ns);
	json_put_known(&j, "box", d->ran.box);
	json_counts(&j, "did", &d->ran.did, false);
	json_counts(&j, "recorded", &d->ran.recorded, true);
	json_object_end(&j);
	json_object_end(&j);
	json_end_line(&j);
}

static int run(int argc, char **argv)
{
	static struct tacho__doctor d;
	bool json = false, known_work = false, failed;
	const struct cli_row options[] = {
		{"json", .flag = &json},
		{"known-work", .flag = &known_work}, /* what the self-check starts */
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_doctor, options);

	if (status != CLI_TAKEN)
		return status;
	if (known_work)
		return tacho__doctor_subject(STDOUT_FILENO) < 0 ? CLI_FAILED : CLI_OK;
	failed = tacho__doctor(&d, optind < argc ? argv[optind] : NULL) < 0;
	if (d.ran.warning[0])
		cli_warn("%s", d.ran.warning);
	if (json)
		print_json(&d);
	else
		print_text(&d);
	if (failed)
		cli_error("out of memory.");
	tacho__doctor_free(&d);
	return failed || d.verdict == TACHO__VERDICT_CANNOT ? CLI_FAILED : CLI_OK;
}

const struct cli_command cli_doctor = {
	.name = "doctor",
	.summary = "what can be recorded here, and what to do about the rest",
	.help = "Usage: tacho doctor [--json] [-- COMMAND]\n\n"
		"Tries what recording needs on this machine, and records a process for a second "
		"to\n"
		"compare what it did with what arrived. With COMMAND also says how it is linked,\n"
		"what can be seen of it, and which names its functions have; COMMAND is not "
		"run.\n\n"
		"  --json    for programs\n\n"
		"The exit status is 1 when nothing can be recorded, here or of COMMAND.\n\n"
		"Example:\n"
		"  tacho doctor -- memcached\n",
	.run = run,
	.stops = true,
};
