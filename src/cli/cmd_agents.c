/*
 * tacho agents: how to analyse a trace, for programs that do it by themselves.
 *
 * A skill that is written to a folder ends with a line that holds the checksum of all before it. So
 * a later version may replace it, and what somebody has changed, or wrote himself, is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/skills.h"
#include "read/input.h"
#include "tacho.h"

#define FILE_NAME "SKILL.md"
#define FILE_MAX (256u << 10) /* what is larger was not written here */
#define MARK "<!-- Written by tacho agents skills, version "
#define MARK_CRC ", checksum "
#define MARK_END "; it is replaced by later versions unless it was changed. -->\n"

/* ------------------------------------------------------------------- printing */

static int print_guide(void)
{
	fputs(cli_skills[0].text + cli_skills[0].body, stdout);
	puts("\n## More\n\n"
	     "`tacho agents skill NAME` prints one of these, `tacho agents skills DIR` writes all "
	     "of them as\nfiles DIR/NAME/" FILE_NAME ".\n");
	for (size_t i = 0; i < cli_skill_count; i++)
		printf("- %s: %s\n", cli_skills[i].name, cli_skills[i].description);
	return CLI_OK;
}

static int print_skill(const char *name)
{
	char names[CLI_MESSAGE] = "";

	for (size_t i = 0; i < cli_skill_count; i++) {
		size_t used = strlen(names);

		if (strcmp(cli_skills[i].name, name) == 0) {
			fputs(cli_skills[i].text, stdout);
			return CLI_OK;
		}
		snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
			 cli_skills[i].name);
	}
	return cli_usage("there is no skill '%s'; there are %s.", name, names);
}

/* -------------------------------------------------------------------- writing */

/* Whether a file of these bytes is as tacho wrote it, in any version. */
static bool is_unchanged(const char *text, size_t size)
{
	size_t last = size;
	uint32_t crc;
	const char *at;
	char *end;

	while (last > 0 && (last == size || text[last - 1] != '\n'))
		last--;
	if (strncmp(text + last, MARK, strlen(MARK)) != 0)
		return false;
	at = strstr(text + last, MARK_CRC);
	if (!at)
		return false;
	crc = (uint32_t)strtoul(at + strlen(MARK_CRC), &end, 16);
	return strcmp(end, MARK_END) == 0 && crc == tacho__crc32c(0, text, last);
}

/* 1: it may be written; 0 after saying why not. */
static int may_write(const char *path)
{
	/* A pipe would keep us waiting. */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text = fd >= 0 ? calloc(1, FILE_MAX + 1) : NULL;
	ssize_t size = text ? read(fd, text, FILE_MAX) : -1;
	int may = size >= 0 && is_unchanged(text, (size_t)size);

	/* Making the folders says why that cannot be. */
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		may = 1;
	else if (fd < 0 && errno != ELOOP)
		cli_error("cannot read %s, which is there: %s.", path, strerror(errno));
	else if (!may)
		cli_error("%s is there and is not as tacho wrote it; move it away, or name another "
			  "folder.",
			  path);
	if (fd >= 0)
		close(fd);
	free(text);
	return may;
}

static int make_folder(const char *path)
{
	struct stat st;
	int fd;

	if (mkdir(path, 0777) < 0 && errno != EEXIST) {
		cli_error("cannot make the folder %s: %s.", path, strerror(errno));
		return -1;
	}
	fd = tacho__open_any(path, &st);
	if (fd == -ELOOP) {
		cli_error("%s is a symbolic link that another user made; give the folder itself if "
			  "you trust it.",
			  path);
		return -1;
	}
	/* Writing into it says why that cannot be. */
	if (fd >= 0)
		close(fd);
	return 0;
}

/* With those above it. */
static int make_folders(const char *path)
{
	char part[PATH_MAX];

	for (size_t i = 1; path[i]; i++) {
		if (path[i] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		if (make_folder(part) < 0)
			return -1;
	}
	return make_folder(path);
}

static int write_skill(const struct cli_skill *skill, const char *path)
{
	struct tacho__new_file file;
	uint32_t crc = tacho__crc32c(0, skill->text, strlen(skill->text));

	if (output_begin(&file, path, true) < 0)
		return -1;
	if (dprintf(file.fd, "%s" MARK "%s" MARK_CRC "%08" PRIx32 MARK_END, skill->text,
		    TACHO_VERSION, crc) < 0 ||
	    fchmod(file.fd, 0644) < 0) {
		cli_error("cannot write %s: %s.", path, strerror(errno));
		output_abandon(&file);
		return -1;
	}
	if (output_commit(&file) < 0)
		return -1;
	puts(path);
	return 0;
}

static int write_skills(const char *folder)
{
	char path[PATH_MAX];
	int status = CLI_OK;

	if (!folder[0] || strlen(folder) + 64 > sizeof(path))
		return cli_usage("'%s' is no name of a folder.", folder);
	/* All or nothing. */
	for (size_t i = 0; i < cli_skill_count; i++) {
		snprintf(path, sizeof(path), "%s/%s/" FILE_NAME, folder, cli_skills[i].name);
		if (!may_write(path))
			status = CLI_FAILED;
	}
	if (status != CLI_OK || make_folders(folder) < 0)
		return CLI_FAILED;
	for (size_t i = 0; i < cli_skill_count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, cli_skills[i].name);
		if (make_folder(path) < 0)
			return CLI_FAILED;
		snprintf(path, sizeof(path), "%s/%s/" FILE_NAME, folder, cli_skills[i].name);
		if (write_skill(&cli_skills[i], path) < 0)
			return CLI_FAILED;
	}
	return CLI_OK;
}

/* ------------------------------------------------------------------------ run */

static int run(int argc, char **argv)
{
	static const struct cli_row options[] = {{0}};
	int status = cli_take_options(argc, argv, &cli_agents, options);
	const char *what;

	if (status != CLI_TAKEN)
		return status;
	if (optind == argc)
		return print_guide();
	what = argv[optind];
	if (strcmp(what, "skill") != 0 && strcmp(what, "skills") != 0)
		return cli_usage("'%s' is neither 'skill' nor 'skills'.", what);
	if (argc - optind != 2)
		return cli_usage(what[5] ? "give one folder after 'skills'."
					 : "give one name after 'skill'.");
	return what[5] ? write_skills(argv[optind + 1]) : print_skill(argv[optind + 1]);
}

const struct cli_command cli_agents = {
	.name = "agents",
	.summary = "how to analyse a trace, for AI agents",
	.help = "Usage: tacho agents\n"
		"       tacho agents skill NAME\n"
		"       tacho agents skills DIR\n\n"
		"Prints how to analyse a trace step by step: which question, which command, what "
		"of\n"
		"its output decides, what comes next, and how to say that one does not know. It "
		"is\n"
		"written for AI agents, and people may read it too.\n\n"
		"  skill NAME   prints the text on one subject; they are listed at the end\n"
		"  skills DIR   writes all of them as skill files, DIR/NAME/SKILL.md. Files of an\n"
		"               earlier version are replaced; when one was changed, or is not\n"
		"               tacho's, nothing is written\n\n"
		"Example:\n"
		"  tacho agents skills ./skills\n",
	.run = run,
};
