/*
 * Options of a command.
 */
#include <string.h>

#include "cli/cli.h"
#include "cli/parse.h"

#define FIRST_ROW 256 /* above all letters */

static const char *option_argument_name(int argc, char **argv)
{
	return optind > 0 && optind <= argc ? argv[optind - 1] : "";
}

/* Whether `given` is a long option with a value that it does not take: then optopt holds
   what the option returns, else the letter of a short one. */
static bool refuses_value(const struct option *options, const char *given)
{
	size_t size = strcspn(given, "=");

	if (strncmp(given, "--", 2) != 0 || !given[size])
		return false;
	for (; options->name; options++)
		if (options->val == optopt && options->has_arg == no_argument &&
		    strncmp(options->name, given + 2, size - 2) == 0)
			return true;
	return false;
}

int cli_option(int argc, char **argv, const char *short_options, const struct option *options)
{
	struct option all[CLI_OPTIONS_MAX + 2];
	const char *given;
	char shorts[64];
	size_t n = 0;
	int c;

	for (; n < CLI_OPTIONS_MAX && options[n].name; n++)
		all[n] = options[n];
	all[n++] = (struct option){"help", no_argument, NULL, 'h'};
	all[n] = (struct option){NULL, 0, NULL, 0};
	/* The colon tells a missing argument from an unknown option. */
	snprintf(shorts, sizeof(shorts), "%s:h%s", short_options[0] == '+' ? "+" : "",
		 short_options + (short_options[0] == '+'));

	opterr = 0;
	c = getopt_long(argc, argv, shorts, all, NULL);
	if (c == ':') {
		cli_usage("%s needs a value after it.", option_argument_name(argc, argv));
		return '?';
	}
	if (c != '?')
		return c;
	given = option_argument_name(argc, argv);
	if (optopt && refuses_value(all, given))
		cli_usage("%.*s takes no value.", (int)strcspn(given, "="), given);
	else if (optopt)
		cli_usage("there is no option -%c.", optopt);
	else
		cli_usage("there is no option %s, or it can mean several.", given);
	return '?';
}

int cli_show_help(const struct cli_command *command)
{
	fputs(command->help, stdout);
	return CLI_OK;
}

/* -------------------------------------------------------------------- tables */

static bool takes_value(const struct cli_row *row)
{
	return !row->mark && (!row->flag || row->call);
}

static bool take_word(const struct cli_row *row, const char *text)
{
	char all[128] = "";

	for (unsigned i = 0; row->words[i]; i++) {
		size_t used = strlen(all);

		if (strcmp(text, row->words[i]) == 0) {
			*row->word = i;
			return true;
		}
		snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", row->words[i]);
	}
	cli_usage("--%s: '%s' is none of %s.", row->name, text, all);
	return false;
}

/* False after saying what is wrong with the value. */
static bool take(const struct cli_row *row, const char *text)
{
	char name[32];

	snprintf(name, sizeof(name), "--%s", row->name);
	if (row->flag)
		*row->flag = true;
	if (row->text)
		*row->text = text;
	if (row->instant)
		return parse_instant(name, text, row->instant);
	if (row->duration)
		return parse_duration(name, text, row->duration);
	if (row->count)
		return parse_count(name, text, row->count);
	if (row->task)
		return parse_task(name, text, row->task);
	if (row->word)
		return take_word(row, text);
	if (row->mark)
		row->mark(row->arg);
	return !row->call || row->call(row->arg, name, text);
}

int cli_take_options(int argc, char **argv, const struct cli_command *command,
		     const struct cli_row *rows)
{
	struct option options[CLI_OPTIONS_MAX + 1] = {0};
	char shorts[2 * CLI_OPTIONS_MAX + 2] = "+";
	size_t n = 0, used = command->stops ? 1 : 0;
	int option;

	for (; n < CLI_OPTIONS_MAX && rows[n].name; n++) {
		const char *colon = takes_value(&rows[n]) ? ":" : "";

		options[n] =
			(struct option){rows[n].name, colon[0] ? required_argument : no_argument,
					NULL, FIRST_ROW + (int)n};
		if (rows[n].letter)
			used += (size_t)snprintf(shorts + used, sizeof(shorts) - used, "%c%s",
						 rows[n].letter, colon);
	}
	shorts[used] = 0;
	while ((option = cli_option(argc, argv, shorts, options)) != -1) {
		if (option == 'h')
			return cli_show_help(command);
		if (option == '?')
			return CLI_USAGE;
		for (size_t i = 0; i < n; i++)
			if ((option == FIRST_ROW + (int)i || option == rows[i].letter) &&
			    !take(&rows[i], optarg))
				return CLI_USAGE;
	}
	return CLI_TAKEN;
}
