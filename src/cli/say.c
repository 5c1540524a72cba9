/*
 * Messages, options and the end of a command.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"
#include "text/text.h"

static const char *command_name;

void cli_set_command(const char *name)
{
	command_name = name;
}

__attribute__((format(printf, 2, 0))) static void say(const char *prefix, const char *format,
						      va_list args)
{
	char message[TEXT_SENTENCE];
	char last;

	vsnprintf(message, sizeof(message), format, args);
	fflush(stdout);
	fprintf(stderr, "tacho%s%s: %s", command_name ? " " : "", command_name ? command_name : "",
		prefix);
	text_put(stderr, message);
	/* What the libraries say is a sentence without its full stop. */
	last = message[0] ? message[strlen(message) - 1] : 0;
	fputs(strchr(".?!", last) ? "\n" : ".\n", stderr);
}

void cli_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", format, args);
	va_end(args);
}

void cli_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", format, args);
	va_end(args);
}

void cli_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("warning: ", format, args);
	va_end(args);
}

int cli_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", format, args);
	va_end(args);
	if (command_name)
		fprintf(stderr, "Try 'tacho %s --help'.\n", command_name);
	else
		fprintf(stderr, "Try 'tacho help'.\n");
	return CLI_USAGE;
}

int cli_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	/* A reader that has seen enough and left is no failure worth a word. */
	if (errno != EPIPE)
		cli_error("cannot write to standard output: %s. The output is not complete.",
			  strerror(errno));
	return CLI_FAILED;
}

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
