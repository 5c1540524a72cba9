#include "cli/output.h"

#include <unistd.h>

#include "cli/cli.h"

/* For the signal handler: what to remove. */
static struct tacho__new_file *volatile unfinished;

static void remove_and_die(int number)
{
	if (unfinished && unfinished->pending)
		unlinkat(unfinished->folder, unfinished->temporary, 0);
	/* SA_RESETHAND: the default action follows when the handler returns. */
	raise(number);
}

static void catch_interrupts(struct tacho__new_file *f)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXFSZ, SIGXCPU};
	struct sigaction action = {.sa_handler = remove_and_die, .sa_flags = (int)SA_RESETHAND};

	f->pending = 0;
	unfinished = f;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction old;

		/* nohup and shells set signals to be ignored on purpose. */
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
	}
}

static int end_with(struct tacho__new_file *f, int result)
{
	unfinished = NULL;
	if (result < 0)
		cli_error("%s", f->message);
	return result;
}

int output_begin(struct tacho__new_file *f, const char *path, bool replace)
{
	int result;

	catch_interrupts(f);
	result = tacho__new_file_begin(f, path, replace);
	return result < 0 ? end_with(f, result) : 0;
}

int output_begin_in(struct tacho__new_file *f, const char *folder,
		    const struct tacho_process *process)
{
	int result;

	catch_interrupts(f);
	result = tacho__new_file_begin_in(f, folder, process);
	return result < 0 ? end_with(f, result) : 0;
}

int output_commit(struct tacho__new_file *f)
{
	int result = tacho__new_file_commit(f);

	if (f->kept_old)
		cli_note("%s from before is kept as %s.old.", f->path, f->path);
	return end_with(f, result);
}

void output_abandon(struct tacho__new_file *f)
{
	tacho__new_file_abandon(f);
	end_with(f, 0);
}
