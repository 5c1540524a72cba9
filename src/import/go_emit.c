/*
 * What happened in a Go program, as events of tacho.
 *
 *   P                     a loop, and the thread that it runs on; idle: parked
 *   goroutine             a task; its kind is its start function
 *   runs, stops, blocks   polls, with what it waits for and its stack
 *   unblock               a wake by the goroutine that runs on that P, with its stack
 *   system call           a call; one that loses its P is waited for without
 *   GC, STW, assist, sweep, user tasks and regions    asynchronous spans
 *   heap, GOMAXPROCS      gauges
 *
 * What an M does without a P, such as waking what sleeps, is on a thread of its own.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "import/go.h"

#define SAMPLE_NS 10000000u	  /* the profiler of Go takes 100 per second of CPU time */
#define REGION_SPANS (1ull << 62) /* ids of spans that Go has no id for */
#define LEVEL_INFO 2u

/* ------------------------------------------------------------------- stacks */

/* Packages of Go's own library: the part of their path before the first slash. */
static int is_library(const char *function)
{
	static const char *const roots[] = {
		"archive",  "bufio",	"bytes",   "cmp",     "compress", "container", "context",
		"crypto",   "database", "debug",   "embed",   "encoding", "errors",    "expvar",
		"flag",	    "fmt",	"go",	   "hash",    "html",	  "image",     "index",
		"internal", "io",	"iter",	   "log",     "maps",	  "math",      "mime",
		"net",	    "os",	"path",	   "plugin",  "reflect",  "regexp",    "runtime",
		"slices",   "sort",	"strconv", "strings", "structs",  "sync",      "syscall",
		"testing",  "text",	"time",	   "unicode", "unique",	  "vendor",    "weak",
	};
	size_t size = strcspn(function, "/."), slash = strcspn(function, "/");

	/* A dot before the first slash is that of a host: example.com/x. */
	if (function[size] == '.' && function[slash] == '/' && size < slash &&
	    !memchr(function + size, '(', slash - size))
		return 0;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (strlen(roots[i]) == size && !memcmp(roots[i], function, size))
			return 1;
	return 0;
}

uint32_t go_stack_defined(struct go *go, uint64_t stack)
{
	uint32_t i = stack ? go_map_find(&go->now.stack_map, stack) : GO_MAP_NO, n;
	struct go_frame frames[GO_FRAMES];
	uint64_t addresses[GO_FRAMES];

	if (i == GO_MAP_NO)
		return 0;
	if (go->now.stacks[i].defined)
		return go->now.stacks[i].defined;
	n = go_frames(&go->now, stack, frames);
	for (uint32_t k = 0; k < n; k++)
		addresses[k] = (is_library(frames[k].function) ? tacho__made_library_frame
							       : tacho__made_frame)(
			go->made, frames[k].function, frames[k].file, frames[k].line);
	return go->now.stacks[i].defined = tacho__made_stack(go->made, addresses, n, 0);
}

/* The place in the program that created something. */
static uint32_t place_defined(struct go *go, uint64_t stack)
{
	struct go_frame frames[GO_FRAMES];
	uint32_t n = go_frames(&go->now, stack, frames), i = 0;

	while (i + 1 < n && is_library(frames[i].function))
		i++;
	return n ? tacho__made_place(go->made, TACHO_DEF_PLACE, frames[i].function, frames[i].file,
				     frames[i].line)
		 : 0;
}

/* The goroutine began in the outermost function of any of its stacks. */
static void learn_kind(struct go *go, struct go_g *g, uint64_t stack)
{
	struct go_frame frames[GO_FRAMES];
	uint32_t n;

	if (g->kind || !stack)
		return;
	n = go_frames(&go->now, stack, frames);
	if (n > 1 && !strcmp(frames[n - 1].function, "runtime.goexit"))
		n--;
	if (!n || n == GO_FRAMES || !frames[n - 1].function[0])
		return;
	/* The line is where it was just then: only of the start it would be that of the function. */
	g->kind = tacho__made_name(go->made, TACHO_DEF_KIND, frames[n - 1].function);
	for (uint32_t i = 0; i < g->marks; i++)
		tacho__made_learn(go->made, g->mark[i].thread, g->mark[i].index, g->kind);
	g->marks = 0;
}

/* What a poll of the goroutine, which is about to be put on the thread, is of. */
static uint32_t kind_of(struct go *go, struct go_g *g, uint32_t thread, uint32_t index)
{
	if (g->kind)
		return g->kind;
	if (g->marks < GO_MARKS) {
		g->mark[g->marks].thread = thread;
		g->mark[g->marks++].index = index;
	}
	return tacho__made_name(go->made, TACHO_DEF_KIND, "goroutine");
}

/* -------------------------------------------------------------------- loops */

static void put(struct go *go, uint32_t thread, uint64_t ns, unsigned type, uint32_t arg,
		const uint64_t *words, uint32_t count)
{
	tacho__made_put(go->made, thread, ns, type, arg, words, count);
}

static void begin_p(struct go *go, struct go_p *p, int parked)
{
	char name[16];

	if (p->thread)
		return;
	snprintf(name, sizeof(name), "P%u", (unsigned)(p->id & 0xffffff));
	/* Which Ms it ran on does not matter; a thread has a number that no other has, and not 0. */
	p->thread = tacho__made_thread(go->made, (uint32_t)(p->id & 0xffffff) + 1, name);
	p->loop =
		tacho__made_define(go->made, &(struct tacho_definition){.def_class = TACHO_DEF_LOOP,
									.name = name,
									.value = p->id + 1,
									.level = TACHO_LEVEL_API});
	p->parked = parked != 0;
	tacho__made_ran(go->made, p->thread, p->loop, parked);
}

/* The thread to tell it on. A P that was parked has something to do. */
static uint32_t thread_of(struct go *go, struct go_p *p)
{
	if (!p) {
		if (!go->apart)
			go->apart = tacho__made_thread(go->made, 0, "without a P");
		return go->apart;
	}
	begin_p(go, p, 0);
	if (p->unparked_ns) {
		put(go, p->thread, p->unparked_ns, TACHO_REC_UNPARK, 1, NULL, 0);
		p->unparked_ns = 0;
		p->parked = 0;
	}
	return p->thread;
}

void go_tell_proc(struct go *go, struct go_p *p, uint64_t ns)
{
	(void)ns;
	begin_p(go, p, p->status == GO_P_IDLE || p->status == GO_P_ABANDONED);
}

/* It may only look for something to do, as idle Ps now and then do. */
void go_tell_unpark(struct go *go, struct go_p *p, uint64_t ns)
{
	begin_p(go, p, 1);
	if (p->parked)
		p->unparked_ns = ns;
}

static void end_poll(struct go *go, struct go_p *p, uint64_t ns, uint32_t result)
{
	if (!p || p->polled == GO_NONE)
		return;
	put(go, thread_of(go, p), ns, TACHO_REC_POLL_END, result, NULL, 0);
	p->polled = GO_NONE;
}

static void waits_for(struct go *go, uint32_t thread, const struct go_g *g, uint64_t ns,
		      uint32_t what, uint32_t stack)
{
	const uint64_t words[] = {(uint64_t)stack << 16, g->id, 0};

	put(go, thread, ns, TACHO_REC_TASK_WAITS, what, words, 3);
}

/* A goroutine that is in a system call goes on without the P. */
void go_tell_park(struct go *go, struct go_p *p, uint64_t ns)
{
	struct go_g *g = go_g_find(go, p->polled);

	if (p->unparked_ns) {
		p->unparked_ns = 0;
		return;
	}
	begin_p(go, p, 0);
	if (g && g->status == GO_G_SYSCALL)
		waits_for(go, thread_of(go, p), g, ns,
			  g->syscall_name ? g->syscall_name
					  : tacho__made_name(go->made, TACHO_DEF_TEXT, "syscall"),
			  g->syscall_stack);
	end_poll(go, p, ns, g ? TACHO_PENDING : TACHO_UNKNOWN);
	if (!p->parked)
		put(go, p->thread, ns, TACHO_REC_PARK, p->loop, NULL, 0);
	p->parked = 1;
}

/* --------------------------------------------------------------- goroutines */

/* It ran before what is known of it. */
void go_tell_running(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns)
{
	if (!p)
		return;
	begin_p(go, p, 0);
	if (tacho__made_index(go->made, p->thread) || p->polled != GO_NONE) {
		go_tell_start(go, p, g, ns);
		return;
	}
	p->polled = g->id;
	tacho__made_polled(go->made, p->thread, kind_of(go, g, p->thread, TACHO__MADE_POLLED),
			   g->id);
}

void go_tell_create(struct go *go, struct go_p *p, const struct go_event *e, struct go_g *made,
		    uint64_t parent)
{
	uint32_t thread = thread_of(go, p), n;
	uint64_t words[3] = {(uint64_t)place_defined(go, e->args[2]) << 16, made->id,
			     parent == GO_NONE ? 0 : parent};
	struct go_frame frames[GO_FRAMES];

	n = go_frames(&go->now, e->args[1], frames);
	if (n && frames[n - 1].function[0])
		made->kind = tacho__made_place(go->made, TACHO_DEF_KIND, frames[n - 1].function,
					       frames[n - 1].file, frames[n - 1].line);
	put(go, thread, e->ns, TACHO_REC_SPAWN,
	    made->kind ? made->kind : tacho__made_name(go->made, TACHO_DEF_KIND, "goroutine"),
	    words, 3);
	if (e->type == GO_CREATE)
		put(go, thread, e->ns, TACHO_REC_WAKE, 0, &made->id, 1);
}

void go_tell_start(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns)
{
	uint32_t thread;

	if (!p)
		return;
	end_poll(go, p, ns, TACHO_UNKNOWN);
	thread = thread_of(go, p);
	p->polled = g->id;
	put(go, thread, ns, TACHO_REC_POLL_BEGIN,
	    kind_of(go, g, thread, tacho__made_index(go->made, thread)), &g->id, 1);
}

void go_tell_destroy(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns)
{
	if (p && p->polled == g->id)
		end_poll(go, p, ns, TACHO_DONE);
	else
		put(go, thread_of(go, p), ns, TACHO_REC_TASK_END, 0, &g->id, 1);
}

/* It could go on: it waits for its P as what was woken does. */
void go_tell_stop(struct go *go, struct go_p *p, struct go_g *g, const struct go_event *e)
{
	learn_kind(go, g, e->args[1]);
	end_poll(go, p, e->ns, TACHO_PENDING);
	put(go, thread_of(go, p), e->ns, TACHO_REC_WAKE, 0, &g->id, 1);
}

/* "sync" is the reason of all of that package: its type says for what. */
static uint32_t reason_defined(struct go *go, const char *reason, uint64_t stack)
{
	struct go_frame frames[GO_FRAMES];
	uint32_t n = strcmp(reason, "sync") == 0 ? go_frames(&go->now, stack, frames) : 0;
	char name[64];

	for (uint32_t i = 0; i < n; i++) {
		const char *type = strstr(frames[i].function, "sync.(*");
		size_t size = type ? strcspn(type + 7, ")") : 0;

		/* A lock for reading is of the lock for both. */
		if (!type || !size || size > sizeof(name) - 8 ||
		    (i + 1 < n && strstr(frames[i + 1].function, "sync.(*")))
			continue;
		snprintf(name, sizeof(name), "sync.%.*s", (int)size, type + 7);
		return tacho__made_name(go->made, TACHO_DEF_TEXT, name);
	}
	return reason[0] ? tacho__made_name(go->made, TACHO_DEF_TEXT, reason) : 0;
}

void go_tell_block(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns, const char *reason,
		   uint64_t stack)
{
	uint32_t at, why;

	learn_kind(go, g, stack);
	at = go_stack_defined(go, stack); /* what is defined first has the lower number */
	why = reason_defined(go, reason, stack);
	waits_for(go, thread_of(go, p), g, ns, why, at);
	end_poll(go, p, ns, TACHO_PENDING);
}

/* What a goroutine that was there before waits for is not in the trace, only where. */
void go_tell_waiting(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns, uint64_t stack)
{
	learn_kind(go, g, stack);
	if (g->status == GO_G_WAITING && g->generation == go->first_generation)
		waits_for(go, thread_of(go, p), g, ns, 0, go_stack_defined(go, stack));
}

void go_tell_wake(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns, uint64_t stack)
{
	uint32_t thread = thread_of(go, p), defined = go_stack_defined(go, stack);

	put(go, thread, ns, TACHO_REC_WAKE, 0, &g->id, 1);
	if (defined)
		put(go, thread, ns, TACHO_REC_STACK, defined, &g->id, 1);
}

/* ------------------------------------------------------------- system calls */

/* What the program called: the innermost function of package syscall that is not for any call. */
static uint32_t call_name(struct go *go, uint64_t stack)
{
	struct go_frame frames[GO_FRAMES];
	uint32_t n = go_frames(&go->now, stack, frames);
	char name[64] = "syscall";

	for (uint32_t i = 0; i < n; i++) {
		const char *function = frames[i].function;

		if (strncmp(function, "syscall.", 8) || strcasestr(function + 8, "syscall"))
			continue;
		snprintf(name, sizeof(name), "%s", function + 8);
		name[0] = (char)tolower((unsigned char)name[0]);
		break;
	}
	return tacho__made_name(go->made, TACHO_DEF_TEXT, name);
}

void go_tell_syscall(struct go *go, struct go_p *p, struct go_g *g, const struct go_event *e)
{
	(void)thread_of(go, p);
	learn_kind(go, g, e->args[1]);
	g->syscall_ns = e->ns;
	g->syscall_stack = go_stack_defined(go, e->args[1]);
	g->syscall_name = call_name(go, e->args[1]);
}

void go_tell_syscall_end(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns)
{
	const uint64_t words[] = {(uint64_t)g->syscall_stack << 16, ns - g->syscall_ns, UINT64_MAX,
				  0};

	if (g->syscall_ns)
		put(go, thread_of(go, p), ns, TACHO_REC_CALL, g->syscall_name, words, 4);
	g->syscall_ns = 0;
}

/* -------------------------------------------------------------------- spans */

static void begin_span(struct go *go, struct go_p *p, uint64_t ns, uint32_t name, uint64_t span,
		       uint64_t parent)
{
	const uint64_t words[] = {span, parent};

	put(go, thread_of(go, p), ns, TACHO_REC_ASYNC_BEGIN, name, words, 2);
}

static uint64_t begin_named(struct go *go, struct go_p *p, uint64_t ns, const char *name,
			    uint64_t parent)
{
	uint64_t span = REGION_SPANS | ++go->spans;

	begin_span(go, p, ns, tacho__made_name(go->made, TACHO_DEF_SPAN, name), span, parent);
	return span;
}

static void end_named(struct go *go, struct go_p *p, uint64_t ns, const char *name, uint64_t *span)
{
	if (*span)
		put(go, thread_of(go, p), ns, TACHO_REC_ASYNC_END,
		    tacho__made_name(go->made, TACHO_DEF_SPAN, name), span, 1);
	*span = 0;
}

/* What the program asks for is told by its line; the collector begins wherever memory is asked for. */
static uint32_t stop_defined(struct go *go, const char *name, const char *kind, uint64_t stack)
{
	struct go_frame frames[GO_FRAMES];
	uint32_t n = strncmp(kind, "GC ", 3) ? go_frames(&go->now, stack, frames) : 0, i = 0;

	while (i < n && is_library(frames[i].function))
		i++;
	return tacho__made_place(go->made, TACHO_DEF_SPAN, name, i < n ? frames[i].file : NULL,
				 i < n ? frames[i].line : 0);
}

/* The world is stopped once at a time. */
static void stop_world(struct go *go, struct go_p *p, const struct go_event *e)
{
	const char *kind = go_string(&go->now, e->args[0]);
	char name[128];

	if (e->type == GO_STW_END) {
		if (go->stw_span)
			put(go, thread_of(go, p), e->ns, TACHO_REC_ASYNC_END, go->stw_name,
			    &go->stw_span, 1);
		go->stw_span = 0;
		return;
	}
	snprintf(name, sizeof(name), "stop the world: %s", kind);
	go->stw_name = stop_defined(go, name, kind, e->args[1]);
	go->stw_span = REGION_SPANS | ++go->spans;
	begin_span(go, p, e->ns, go->stw_name, go->stw_span, 0);
}

static void begin_region(struct go *go, struct go_p *p, struct go_g *g, const struct go_event *e)
{
	uint32_t name = tacho__made_name(go->made, TACHO_DEF_SPAN, go_string(&go->now, e->args[1]));
	uint64_t parent = g->regions && g->regions <= GO_REGIONS ? g->region[g->regions - 1].span
			  : e->args[0] == GO_NONE		 ? 0
								 : e->args[0];

	if (g->regions < GO_REGIONS) {
		g->region[g->regions].span = REGION_SPANS | ++go->spans;
		g->region[g->regions].name = name;
		begin_span(go, p, e->ns, name, g->region[g->regions].span, parent);
	} else {
		go->left_out++;
	}
	if (g->regions < UINT8_MAX)
		g->regions++;
}

/* One that began before the trace has no beginning here. */
static void end_region(struct go *go, struct go_p *p, struct go_g *g, const struct go_event *e)
{
	if (!g->regions)
		return;
	g->regions--;
	if (g->regions < GO_REGIONS)
		put(go, thread_of(go, p), e->ns, TACHO_REC_ASYNC_END, g->region[g->regions].name,
		    &g->region[g->regions].span, 1);
}

static void user_task(struct go *go, struct go_p *p, const struct go_event *e)
{
	uint64_t task = e->args[0];
	uint32_t name;

	if (e->type == GO_TASK_BEGIN) {
		name = tacho__made_name(go->made, TACHO_DEF_SPAN, go_string(&go->now, e->args[2]));
		if (go_map_find(&go->task_map, task) != GO_MAP_NO)
			return;
		if (go_map_put(&go->task_map, task, name))
			tacho__made_no_memory(go->made);
		else
			begin_span(go, p, e->ns, name, task, e->args[1]);
		return;
	}
	name = go_map_find(&go->task_map, task);
	if (name == GO_MAP_NO)
		return;
	go_map_remove(&go->task_map, task);
	put(go, thread_of(go, p), e->ns, TACHO_REC_ASYNC_END, name, &task, 1);
}

static void log_event(struct go *go, struct go_p *p, const struct go_event *e)
{
	const char *key = go_string(&go->now, e->args[1]), *value = go_string(&go->now, e->args[2]);
	char text[TACHO_TEXT_MAX + 64], task[40] = "";

	if (e->args[0] && e->args[0] != GO_NONE)
		snprintf(task, sizeof(task), "[task %llu] ", (unsigned long long)e->args[0]);
	snprintf(text, sizeof(text), "%s%s%s%s", task, key, key[0] ? ": " : "", value);
	tacho__made_log(go->made, thread_of(go, p), e->ns, LEVEL_INFO, text);
}

static void gauge(struct go *go, struct go_p *p, const struct go_event *e, const char *name,
		  const char *unit)
{
	uint32_t id = tacho__made_define(go->made,
					 &(struct tacho_definition){.def_class = TACHO_DEF_GAUGE,
								    .value_type = TACHO_VALUE_I64,
								    .name = name,
								    .unit = unit});

	put(go, thread_of(go, p), e->ns, TACHO_REC_COUNTER, id, &e->args[0], 1);
}

static void tell_goroutine(struct go *go, struct go_p *p, struct go_g *g, const struct go_event *e)
{
	if (!g) {
		go->forced++;
		return;
	}
	switch (e->type) {
	case GO_ASSIST_BEGIN:
		g->assist = begin_named(go, p, e->ns, "GC assist", 0);
		break;
	case GO_ASSIST_END:
		end_named(go, p, e->ns, "GC assist", &g->assist);
		break;
	case GO_REGION_BEGIN:
		begin_region(go, p, g, e);
		break;
	default:
		end_region(go, p, g, e);
		break;
	}
}

static void tell_sweep(struct go *go, struct go_p *p, const struct go_event *e)
{
	if (e->type == GO_SWEEP_BEGIN && p)
		p->sweep = begin_named(go, p, e->ns, "GC sweep", 0);
	else if (e->type == GO_SWEEP_END && p)
		end_named(go, p, e->ns, "GC sweep", &p->sweep);
}

void go_tell_other(struct go *go, struct go_p *p, struct go_g *g, const struct go_event *e)
{
	switch (e->type) {
	case GO_PROCS_CHANGE:
		gauge(go, p, e, "GOMAXPROCS", "Ps");
		break;
	case GO_STW_BEGIN:
	case GO_STW_END:
		stop_world(go, p, e);
		break;
	case GO_GC_BEGIN:
		go->gc_span = begin_named(go, p, e->ns, "GC", 0);
		break;
	case GO_GC_END:
		end_named(go, p, e->ns, "GC", &go->gc_span);
		break;
	case GO_SWEEP_BEGIN:
	case GO_SWEEP_END:
		tell_sweep(go, p, e);
		break;
	case GO_ASSIST_BEGIN:
	case GO_ASSIST_END:
	case GO_REGION_BEGIN:
	case GO_REGION_END:
		tell_goroutine(go, p, g, e);
		break;
	case GO_HEAP_ALLOC:
		gauge(go, p, e, "allocated objects", "bytes");
		break;
	case GO_HEAP_GOAL:
		gauge(go, p, e, "heap goal", "bytes");
		break;
	case GO_TASK_BEGIN:
	case GO_TASK_END:
		user_task(go, p, e);
		break;
	case GO_LOG:
		log_event(go, p, e);
		break;
	default:
		break;
	}
}

void go_tell_sample(struct go *go, const struct go_sample *s, uint64_t ns)
{
	struct go_p *p = s->p == GO_NONE ? NULL : go_p(go, s->p);
	const uint64_t cpu = SAMPLE_NS;
	uint32_t stack = go_stack_defined(go, s->stack);

	if (stack)
		put(go, p && p->thread ? p->thread : thread_of(go, NULL), ns, TACHO_REC_SAMPLE,
		    stack, &cpu, 1);
}
