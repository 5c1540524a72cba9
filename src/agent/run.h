/*
 * `tacho run`: starts a command with the hooks in it, follows its boxes, and saves what was
 * recorded when it has ended, however that was.
 */
#ifndef TACHO_AGENT_RUN_H
#define TACHO_AGENT_RUN_H

#include <stdbool.h>
#include <stddef.h>

struct tacho__engine_options;
struct tacho__program;

/* How a window is saved that `tacho run` does not save: the end of a sentence. */
#define TACHO__RUN_SAVE                                                                       \
	"'tacho dump PID -o FILE' saves its window while it runs, 'tacho recover -o FOLDER' " \
	"after its end."

/* Beside those of the command itself; as of shells, env(1) and timeout(1). */
enum tacho__run_status {
	TACHO__RUN_CANNOT = 126,    /* the command cannot be executed */
	TACHO__RUN_NOT_FOUND = 127, /* there is no such command */
};

struct tacho__run_options {
	const struct tacho__engine_options *engine; /* all_users and recording are set by the run */
	const struct tacho__program *program;
	char *const *argv;
	bool no_wait;	      /* for processes that the command leaves behind */
	bool no_crash;	      /* crashes are not noted */
	bool off;	      /* the command is started and not recorded */
	bool wait;	      /* for all of them that record, however old they are */
	int trigger;	      /* this signal saves a snapshot; 0: none */
	bool sigpipe_ignored; /* when this process was started */
	/* As they go into the environment; NULL: not given. */
	const char *memory, *min_age, *poll_threshold, *call_threshold, *exclude;
};

/*
 * Takes over the signals of this process. Returns the exit status of the command, as a shell tells
 * it, or enum tacho__run_status after saying why. *key: SIGINT or SIGQUIT, when the terminal sent it
 * and the command died of it; else 0.
 */
int tacho__run(const struct tacho__run_options *options, int *key);

/* run_environment.c: the environment of the command, for free(3). 0; or a negative errno with a
   sentence about what is missing in it in `message`: NULL for all of it. */
int tacho__run_environment(char ***out, const struct tacho__run_options *o, const char *recording,
			   char *message, size_t message_size);

#endif
