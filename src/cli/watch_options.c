/*
 * Options that `tacho run` and `tacho agent` share.
 */
#include "cli/watch_options.h"

#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/parse.h"

#define NS_PER_S UINT64_C(1000000000)
#define COOLDOWN_NS (60 * NS_PER_S)
#define AFTER_NS (1 * NS_PER_S)
#define SEGMENT_BYTES (UINT64_C(64) << 20)
#define SEGMENT_NS (60 * NS_PER_S)
#define FILES_BYTES (UINT64_C(1) << 30)
#define BYTES_LEAST (UINT64_C(4) << 10)
#define KEEP_MAX 100000u

/* Nought has a meaning of its own, also without a unit. */
bool watch_time(void *arg, const char *option, const char *text)
{
	struct parse_instant time = {.ns = 0};

	if (strcmp(text, "0") != 0 && !parse_instant(option, text, &time))
		return false;
	if (time.from_end)
		return parse_complain(option, text, 0, "is negative");
	*(uint64_t *)arg = time.ns;
	return true;
}

bool watch_bytes(void *arg, const char *option, const char *text)
{
	uint64_t *out = arg;

	if (tacho__parse_bytes(text, out) == 0 && *out >= BYTES_LEAST)
		return true;
	cli_usage("%s: '%s' is no size of 4K or more; give one such as 64M.", option, text);
	return false;
}

bool watch_condition(void *arg, const char *option, const char *text)
{
	struct watch_options *o = arg;
	char message[CLI_MESSAGE] = "";
	size_t at = 0, n;

	if (tacho__sentinels_add(&o->engine.rules.sentinels, text, &at, message, sizeof(message)) ==
	    0)
		return true;
	n = strlen(message);
	if (n > 0 && message[n - 1] == '.')
		message[n - 1] = 0;
	cli_error("%s: %s.", option, message[0] ? message : "this is not a condition");
	parse_point_at(text, at);
	return false;
}

bool watch_keep(void *arg, const char *option, const char *text)
{
	struct watch_options *o = arg;
	uint64_t count;

	if (!parse_count(option, text, &count))
		return false;
	o->engine.keep = (uint32_t)count;
	if (count > 0 && count <= KEEP_MAX)
		return true;
	cli_usage("%s: give a number of windows from 1 to %u.", option, KEEP_MAX);
	return false;
}

bool watch_exec(void *arg, const char *option, const char *text)
{
	struct watch_options *o = arg;

	o->engine.exec = text;
	if (text[strspn(text, " \t\n")])
		return true;
	cli_usage("%s: the command is empty.", option);
	return false;
}

bool watch_service(void *arg, const char *option, const char *text)
{
	struct watch_options *o = arg;

	o->engine.service = text;
	if (text[0] && strlen(text) <= WATCH_SERVICE_BYTES)
		return true;
	cli_usage("%s: give a name of 1 to %u bytes.", option, WATCH_SERVICE_BYTES);
	return false;
}

static int check_flight(const struct watch_options *o)
{
	const struct tacho__engine_options *e = &o->engine;

	if (e->segment_bytes || e->segment_ns)
		return cli_usage("--segment-%s needs --continuous: without it there are no "
				 "segments.",
				 e->segment_bytes ? "bytes" : "time");
	if (e->max_bytes && e->rules.sentinels.count == 0 && !o->ends)
		return cli_usage("--max-bytes limits the files that --on or --continuous keeps, "
				 "and neither is given; --memory limits the memory of a process.");
	return 0;
}

static int check_continuous(const struct tacho__engine_options *e)
{
	if (tacho__sentinels_watch(&e->rules.sentinels, TACHO__WATCH_EXIT))
		return cli_usage("--on exit decides whether a window is kept, but --continuous "
				 "keeps everything; give one of them.");
	if (e->max_bytes < e->segment_bytes)
		return cli_usage("--max-bytes is less than one segment; give more, or a smaller "
				 "--segment-bytes.");
	return 0;
}

/* Whether there is room for a sentence. Who waits until somebody reads saves no windows meanwhile. */
static bool is_read(void)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&p, 1, 0) != 0;
}

static void say(void *arg, enum tacho__said kind, const char *sentence)
{
	struct watch_options *o = arg;

	if (!is_read()) {
		o->unread++;
		return;
	}
	if (o->unread)
		cli_warn("%" PRIu64 " messages before this one are lost: nobody read them.",
			 o->unread);
	o->unread = 0;
	if (kind == TACHO__ERROR)
		cli_error("%s", sentence);
	else if (kind == TACHO__WARNING)
		cli_warn("%s", sentence);
	else if (!o->quiet)
		cli_note("%s", sentence);
}

int watch_options_check(struct watch_options *o)
{
	struct tacho__engine_options *e = &o->engine;
	int status = e->continuous ? 0 : check_flight(o);

	if (status)
		return status;
	if (e->keep && e->rules.sentinels.count == 0 && !o->ends)
		return cli_usage("--keep needs --on: it limits the windows that conditions keep.");
	if ((e->sched || e->kernel) && o->no_kernel)
		return cli_usage("--%s and --no-kernel contradict each other.",
				 e->sched ? "sched" : "kernel");
	if (o->debuginfod && e->no_symbols)
		return cli_usage("--debuginfod and --no-symbols contradict each other.");
	o->voice = (struct tacho__voice){.say = say, .arg = o};
	e->voice = &o->voice;
	if (!o->cooldown_given)
		e->rules.cooldown_ns = COOLDOWN_NS;
	if (!o->after_given)
		e->rules.after_ns = AFTER_NS;
	if (!e->max_bytes && (e->continuous || o->ends))
		e->max_bytes = FILES_BYTES;
	if (!e->continuous)
		return 0;
	if (!e->segment_bytes)
		e->segment_bytes = SEGMENT_BYTES;
	if (!e->segment_ns)
		e->segment_ns = SEGMENT_NS;
	return check_continuous(e);
}
