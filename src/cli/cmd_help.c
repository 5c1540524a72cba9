/*
 * tacho help
 */
#include "cli/cli.h"

static int run(int argc, char **argv)
{
	static const struct option options[] = {{NULL, 0, NULL, 0}};
	const struct cli_command *command;
	int c;

	while ((c = cli_option(argc, argv, "", options)) != -1)
		if (c != 'h')
			return CLI_USAGE;
	if (argc - optind > 1)
		return cli_usage("one command at a time.");
	if (argc - optind == 1) {
		command = cli_command_find(argv[optind]);
		return command ? cli_show_help(command) : cli_unknown_command(argv[optind]);
	}
	puts("tacho: the flight recorder for asynchronous programs.\n\n"
	     "Usage: tacho COMMAND [OPTIONS]\n");
	for (size_t i = 0; (command = cli_command_at(i)); i++)
		printf("  %-9s %s\n", command->name, command->summary);
	puts("\n'tacho COMMAND --help' or 'man tacho-COMMAND' says more; 'tacho --version' the "
	     "version.");
	return CLI_OK;
}

const struct cli_command cli_help = {
	.name = "help",
	.summary = "this list, or the help of one command",
	.help = "Usage: tacho help [COMMAND]\n\n"
		"Lists the commands, or shows the help of one.\n\n"
		"Example:\n"
		"  tacho help dump\n",
	.run = run,
};
