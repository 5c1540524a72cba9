/*
 * What tacho tells programs that analyse traces by themselves: docs/agents, made a part of the
 * program when it is built (docs/agents/embed.py).
 */
#ifndef TACHO_CLI_SKILLS_H
#define TACHO_CLI_SKILLS_H

#include <stddef.h>

struct cli_skill {
	const char *name;
	const char *description;
	const char *text; /* all of it, front matter included */
	size_t body;	  /* where the text behind the front matter begins */
};

extern const struct cli_skill cli_skills[]; /* the first is where to begin */
extern const size_t cli_skill_count;

#endif
