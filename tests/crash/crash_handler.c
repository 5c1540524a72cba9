/*
 * Programs that crash in all the ways of crash_cases.c, each without tacho and with its
 * crash handler. They must end in the same way, their own handlers must see the
 * same, and box and crash file must tell what happened.
 *
 *	crash-handler [TEXT]		all cases, or those with TEXT in their names
 *	crash-handler CASE FILE		one case, in this process, with FILE as crash file
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "crash_cases.h"
#include "pattern.h"
#include "tacho.h"
#include "tacho_read.h"
#include "verify.h"
#include "victim.h"

#define RECORDS 700u

static struct victim_folder folder;

struct setting {
	const struct crash_case *what;
	int with; /* tacho */
};

/* Sequence 0 is the main thread's; it may go on after a crash that the program survives. */
static int victim(struct truth *truth, void *arg)
{
	const struct setting *s = arg;
	const char *path = s->what->path ? s->what->path : folder.file;
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (quiet >= 0)
		dup2(quiet, 2);
	if (chdir(folder.boxes))
		return 3;
	setrlimit(RLIMIT_CORE, &all);
	if (s->what->before)
		s->what->before(truth);
	if (s->with) {
		victim_record(truth, 1 << 20, 0);
		if (tacho_crash_handler(path))
			return 3;
	}
	truth_take(truth, gettid());
	for (unsigned i = 0; i < RECORDS; i++)
		truth_put(truth, 0);
	s->what->run(truth);
	return 4;
}

/* ------------------------------------------------------------------ checks */

static char text[900];

__attribute__((format(printf, 1, 2))) static const char *tell(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

static int has_frame(const struct tacho_crash_info *c, uint64_t pc)
{
	for (uint32_t i = 0; i < c->frame_count; i++)
		if (c->frames[i] == pc)
			return 1;
	return 0;
}

static uint64_t pc_of(const struct tacho_crash_info *c)
{
#if defined(__x86_64__)
	return c->reg_count > REG_RIP ? c->regs[REG_RIP] : 0;
#else
	return c->reg_count > 32 ? c->regs[32] : 0;
#endif
}

static const char *check_stack(const struct crash_case *what, const struct truth *truth,
			       struct tacho_reader *reader, const struct tacho_crash_info *c)
{
	uint64_t from = (uint64_t)(uintptr_t)what->run;
	const struct tacho_definition *module;

	if (!c->frame_count || c->frames[0] != pc_of(c))
		return "the first frame is not where the registers say it crashed";
	if (what->flags & CASE_IN_FUNCTION && (c->frames[0] < from || c->frames[0] > from + 400))
		return "the first frame is not in the function that crashed";
	if (what->flags & CASE_HAS_CALLER &&
	    (c->frame_count < 2 || c->frames[1] != truth->value[CASE_CALLER]))
		return "the second frame is not the caller";
	if (what->flags & CASE_FIND_CALLER && !has_frame(c, truth->value[CASE_CALLER]))
		return "the caller is not among the frames";
	if (what->flags & (CASE_HAS_CALLER | CASE_FIND_CALLER | CASE_DEEP) && c->unwind_failed)
		return "it says that the stack could not be unwound";
	if (what->flags & CASE_DEEP && c->frame_count < 50)
		return "a deep stack has few frames";
	if (!(what->flags & CASE_IN_FUNCTION))
		return NULL;
	module = tacho_read_module_at(reader, 0, c->frames[0], c->ns);
	return module && strstr(module->name, "crash-handler") ? NULL
							       : "no module is known for the frame";
}

static const char *check_crash(const struct crash_case *what, const struct truth *truth,
			       struct tacho_reader *reader, const struct tacho_crash_info *c)
{
	uint64_t first, last;

	if (what->signal && c->signal != what->signal)
		return tell("the crash has signal %d", c->signal);
	if (what->code && c->code != what->code)
		return tell("the crash has si_code %d", c->code);
	if (what->flags & CASE_HAS_ADDRESS && c->address != truth->value[CASE_ADDRESS])
		return tell("the crash has address %#llx", (unsigned long long)c->address);
	if (tacho_read_window(reader, &first, &last) || c->ns < first)
		return "the crash is not in the window";
#if defined(__x86_64__)
	if (what->flags & CASE_MARK &&
	    (c->reg_count <= REG_R12 || c->regs[REG_R12] != CASE_MARK_VALUE))
		return "the registers are not those of the crash";
#endif
	return check_stack(what, truth, reader, c);
}

/* The crashes that a box or file tells of. */
static const char *check_crashes(const struct crash_case *what, const struct truth *truth,
				 const char *path, uint32_t taken_by)
{
	struct tacho_reader *reader;
	const char *why = NULL;
	uint32_t count, whole = 0;

	if (tacho_read_open(&reader, path, NULL, text, sizeof(text)))
		return text;
	count = tacho_read_crash_count(reader);
	if (what->flags & CASE_NO_CRASH)
		why = count ? "there is a crash where none was" : NULL;
	else if (!count)
		why = "the crash is not there";
	if (tacho_read_process(reader, 0)->taken_by != taken_by)
		why = "it is not said to come from where it does";
	for (uint32_t i = 0; i < count && !why; i++) {
		const struct tacho_crash_info *c = tacho_read_crash(reader, i);

		/* Of several threads some may not have got further; one has. */
		if (what->flags & CASE_OTHERS_RUN && !c->frame_count)
			continue;
		why = check_crash(what, truth, reader, c);
		whole++;
	}
	if (!why && count && !whole)
		why = "no crash is complete";
	tacho_read_close(reader);
	return why;
}

static const char *check_file(const struct crash_case *what, const struct truth *truth)
{
	static struct verify v;
	const char *why;

	if (what->flags & CASE_NO_FILE)
		return NULL;
	if (access(folder.file, F_OK))
		return "there is no crash file";
	v = (struct verify){.truth = truth, .end = TRUTH_SEQUENCES};
	v.flags = what->flags & CASE_OTHERS_RUN ? VERIFY_LIVE : 0;
	if (verify_file(&v, folder.file))
		return tell("the crash file: %s", v.why);
	if (v.events < RECORDS)
		return "the crash file lacks records from before the crash";
	if (what->flags & CASE_AGAIN && v.events < truth->sequence[0].done - 100)
		return "the crash file is not of the last crash";
	why = check_crashes(what, truth, folder.file, TACHO_TAKEN_CRASH);
	return why ? tell("the crash file: %s", strdup(why)) : NULL;
}

static const char *check_same(const struct truth *with, const struct truth *without, int status,
			      int plain)
{
	if (status != plain)
		return tell("the program ends with status %#x, without tacho with %#x",
			    (unsigned)status, (unsigned)plain);
	for (int i = CASE_SEEN_SIGNAL; i <= CASE_TIMES; i++)
		if (with->value[i] != without->value[i])
			return tell(
				"the program's handler sees value %d as %#llx, without tacho %#llx",
				i, (unsigned long long)with->value[i],
				(unsigned long long)without->value[i]);
	return NULL;
}

static const char *one(const struct crash_case *what, struct truth *with, struct truth *without)
{
	struct setting setting = {what, 0};
	const char *why;
	int plain, status;

	truth_clear(with);
	truth_clear(without);
	victim_folder_make(&folder);
	plain = victim_wait(victim_start(victim, without, &setting));
	victim_folder_remove(&folder);
	victim_folder_make(&folder);
	setting.with = 1;
	status = victim_wait(victim_start(victim, with, &setting));
	why = check_same(with, without, status, plain);
	if (!why)
		why = victim_verify(&folder, with, 0, NULL);
	if (!why) {
		why = check_crashes(what, with, with->box[what->flags & CASE_CHILD ? 1 : 0].path,
				    TACHO_TAKEN_BOX);
		why = why ? tell("the box: %s", strdup(why)) : NULL;
	}
	if (!why)
		why = check_file(what, with);
	victim_folder_remove(&folder);
	return why;
}

/* For strace: the case happens in this process. */
static int crash_here(const char *number, const char *file)
{
	struct setting setting = {&crash_cases[atoi(number) % (int)crash_case_count], 1};
	struct victim_folder root;

	victim_folder_make(&root);
	folder = root;
	snprintf(folder.file, sizeof(folder.file), "%s", file);
	return victim(truth_map(), &setting);
}

int main(int argc, char **argv)
{
	struct truth *with = truth_map(), *without = truth_map();

	pattern_init(100);
	if (argc == 3)
		return crash_here(argv[1], argv[2]);
	for (unsigned i = 0; i < crash_case_count; i++) {
		const struct crash_case *what = &crash_cases[i];
		const char *why = NULL;

		if (argc == 2 && !strstr(what->name, argv[1]))
			continue;
		for (unsigned k = 0; !why && k < (what->times ? what->times : 1); k++)
			why = one(what, with, without);
		report(what->name, why);
	}
	return report_status();
}
