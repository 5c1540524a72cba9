/* A folder of their own, in which tests are run. Include after cmocka.h. */
#ifndef TESTS_FOLDER_HELP_H
#define TESTS_FOLDER_HELP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[300];

/* 0, or another number where it cannot be made. */
static inline int folder_enter(const char *name)
{
	snprintf(folder, sizeof(folder), "%s/tacho-%s-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", name);
	return !mkdtemp(folder) || chdir(folder);
}

static int folder_leave(void **state)
{
	char command[310];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return chdir("/") || system(command);
}

#endif
