/*
 * Messages, and the end of a command.
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
