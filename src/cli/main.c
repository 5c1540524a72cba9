/*
 * tacho: the command. A new command is a file cmd_NAME.c and a row in the table.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "cli/cli.h"
#include "tacho.h"

bool cli_started_without_sigpipe;

/* In the order in which `tacho help` shows them. */
static const struct cli_command *const commands[] = {
	&cli_run,   &cli_agent,	 &cli_ls,     &cli_status, &cli_dump,	&cli_recover, &cli_info,
	&cli_cat,   &cli_report, &cli_stats,  &cli_blame,  &cli_diff,	&cli_sql,     &cli_view,
	&cli_serve, &cli_flame,	 &cli_export, &cli_import, &cli_doctor, &cli_agents,  &cli_help,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct cli_command *cli_command_at(size_t index)
{
	return index < COMMANDS ? commands[index] : NULL;
}

const struct cli_command *cli_command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

#define WORD_MAX 24u

/* Letters to insert, delete or replace to make one word of the other. */
static unsigned distance(const char *a, const char *b)
{
	size_t m = strlen(a), n = strlen(b);
	unsigned row[WORD_MAX + 1];

	if (m > WORD_MAX || n > WORD_MAX)
		return WORD_MAX;
	for (size_t k = 0; k <= n; k++)
		row[k] = (unsigned)k;
	for (size_t i = 1; i <= m; i++) {
		unsigned corner = row[0];

		row[0] = (unsigned)i;
		for (size_t k = 1; k <= n; k++) {
			unsigned best = corner + (a[i - 1] != b[k - 1]);

			corner = row[k];
			if (row[k] + 1 < best)
				best = row[k] + 1;
			if (row[k - 1] + 1 < best)
				best = row[k - 1] + 1;
			row[k] = best;
		}
	}
	return row[n];
}

int cli_unknown_command(const char *name)
{
	const struct cli_command *nearest = NULL;
	unsigned least = 3; /* further off is another word */

	for (size_t i = 0; i < COMMANDS; i++) {
		unsigned d = distance(name, commands[i]->name);

		if (strlen(name) >= 2 && strncmp(name, commands[i]->name, strlen(name)) == 0)
			d = 0;
		if (d < least && d < strlen(commands[i]->name)) {
			least = d;
			nearest = commands[i];
		}
	}
	cli_set_command(NULL);
	if (nearest)
		return cli_usage("there is no command '%s'. Did you mean 'tacho %s'?", name,
				 nearest->name);
	return cli_usage("there is no command '%s'.", name);
}

/* A file that gets the number of a closed standard stream would receive its text. */
static void fill_standard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		int filled = fcntl(fd, F_GETFD);

		/* Closed again for the command of `tacho run`, as it was for us. What has no
		   /dev/null has something else that can be neither read nor written. */
		if (filled < 0)
			filled = open("/dev/null", O_CLOEXEC | (fd ? O_WRONLY : O_RDONLY));
		if (filled < 0)
			filled = epoll_create1(EPOLL_CLOEXEC);
		if (filled < 0)
			_exit(CLI_FAILED);
	}
}

static int run_command(int argc, char **argv)
{
	const struct cli_command *command;
	const char *name = argc > 1 ? argv[1] : NULL;

	fill_standard_streams();
	/* Who pipes into `head` wants a quiet end, also when started with SIGPIPE ignored. */
	cli_started_without_sigpipe = signal(SIGPIPE, SIG_DFL) == SIG_IGN;

	if (!name)
		return cli_usage("a command is missing, such as 'tacho ls'.");
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("tacho %s\n", TACHO_VERSION);
		return cli_finish(CLI_OK);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	else if (name[0] == '-')
		return cli_usage("there is no option %s; options follow the command.", name);

	command = cli_command_find(name);
	if (!command)
		return cli_unknown_command(name);
	cli_set_command(command->name);
	return cli_finish(command->run(argc - 1, argv + 1));
}

/*
 * The stack. Where its limit is low (ulimit -s), the command runs on memory of its own: a program that
 * `tacho run` starts needs less than tacho, and must not end because tacho does.
 */
#define STACK_ENOUGH (1u << 20)
#define STACK_OWN (8u << 20)
static struct {
	int argc, status;
	char **argv;
} given;

static void run_given(void)
{
	given.status = run_command(given.argc, given.argv);
}

/* 0: it has run. */
static int run_on_own_stack(void)
{
	static ucontext_t here, there;
	void *stack = mmap(NULL, STACK_OWN, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED || getcontext(&there))
		return -1;
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_OWN;
	there.uc_link = &here;
	makecontext(&there, run_given, 0);
	return swapcontext(&here, &there);
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	given.argc = argc;
	given.argv = argv;
	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_ENOUGH || run_on_own_stack())
		run_given();
	return given.status;
}
