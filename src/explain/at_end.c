#include "explain/at_end.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/rules.h"
#include "read/memory.h"
#include "read/records.h"

static const struct tacho__place nowhere = {.function = "", .file = "", .module = ""};

static int is_somewhere(const struct tacho__place *p)
{
	return p->function[0] || p->address;
}

static uint64_t since(uint64_t end_ns, uint64_t ns)
{
	return end_ns > ns ? end_ns - ns : 0;
}

/* -------------------------------------------------------------------- a thread */

static struct tacho__place place_of_code(const struct tacho__at_ends *to, uint32_t process,
					 uint64_t code, uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];

	return tacho__places_best(places,
				  tacho__places_of_frames(to->reader, process, &code, code != 0, 1,
							  ns, places, TACHO__PLACES_MAX));
}

static struct tacho__place place_of_id(const struct tacho__at_ends *to, uint32_t process,
				       uint32_t id, uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];

	if (!id)
		return nowhere;
	return tacho__places_best(places, tacho__places_of_id(to->reader, process, id, ns, places,
							      TACHO__PLACES_MAX));
}

static void know_inside(struct tacho__at_end *e, const struct tacho__at_ends *to,
			const struct tacho__left *l)
{
	if (l->at.poll_ns) {
		e->kind = l->at.kind;
		e->in_turn = !l->at.kind;
		e->kind_ns = since(l->end_ns, l->at.poll_ns);
	} else if (l->work) {
		e->kind = l->work;
		e->works = 1;
		e->kind_ns = since(l->end_ns, l->work_ns);
	}
	if (!e->kind ||
	    !tacho__place_of_kind(to->reader, e->process, e->kind, l->end_ns, &e->place))
		e->place = nowhere;
}

/* A call of its own, then what the hooks of locks and loops know: one inside the other. */
static void know_wait(struct tacho__at_end *e, const struct tacho__at_ends *to,
		      const struct tacho__left *l)
{
	uint64_t begin = 0;

	if (l->lock) {
		e->in = l->lock->for_signal ? TACHO__IN_SIGNAL : TACHO__IN_LOCK;
		e->lock = l->lock->lock;
		e->owner = l->lock->owner;
		e->at = place_of_id(to, e->process,
				    l->lock->stack ? l->lock->stack : l->lock->place, l->end_ns);
		begin = l->lock->begin_ns;
	} else if (l->call) {
		e->in = TACHO__IN_CALL;
		e->call = l->call->name;
		e->on = l->call->fd;
		e->at = place_of_code(to, e->process, l->call->code, l->end_ns);
		e->at_most = l->call->untimed;
		begin = l->call->begin_ns;
	} else if (l->parked) {
		e->in = TACHO__IN_PARK;
		begin = l->park_ns;
	}
	e->known = begin != 0;
	e->ns = begin ? since(l->end_ns, begin) : 0;
}

static uint32_t crash_of(const struct tacho_reader *reader, uint32_t process, uint32_t tid)
{
	for (uint32_t i = 0; i < tacho_read_crash_count(reader); i++) {
		const struct tacho_crash_info *c = tacho_read_crash(reader, i);

		if (c->process == process && c->tid == tid && !c->survived)
			return (uint32_t)c->signal;
	}
	return 0;
}

static struct tacho__at_end *add(struct tacho__at_ends *to, const struct tacho_thread *t)
{
	struct tacho__at_end *e;

	if (TACHO__GROW(to->at, to->capacity, to->count + 1)) {
		to->error = -ENOMEM;
		return NULL;
	}
	e = &to->at[to->count++];
	*e = (struct tacho__at_end){.process = t->process,
				    .thread = t->number,
				    .tid = t->tid,
				    .name = t->name,
				    .crashed = crash_of(to->reader, t->process, t->tid),
				    .owner_name = "",
				    .on = -1,
				    .place = nowhere,
				    .at = nowhere};
	return e;
}

/* Whether the trace tells until when the process ran, which files of before do not, and the window
   lasts until then. */
static int is_told(const struct tacho__at_ends *to, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(to->reader, process);

	return p && p->end_how != TACHO_END_UNTOLD && p->until_ns <= to->last_ns;
}

void tacho__at_end_init(struct tacho__at_ends *to, struct tacho_reader *reader)
{
	uint64_t first_ns;

	*to = (struct tacho__at_ends){.reader = reader};
	/* Without events it stays 0. */
	tacho_read_window(reader, &first_ns, &to->last_ns);
}

void tacho__at_end_left(void *arg, const struct tacho__left *l)
{
	struct tacho__at_ends *to = arg;
	const struct tacho_thread *t =
		tacho_read_thread_by_number(to->reader, l->at.process, l->at.thread);
	struct tacho__at_end *e = t && t->live && is_told(to, l->at.process) ? add(to, t) : NULL;

	if (!e)
		return;
	e->loop = l->at.loop;
	e->end_ns = l->end_ns;
	know_inside(e, to, l);
	know_wait(e, to, l);
}

/* ---------------------------------------------------------------------- the list */

int tacho__at_end_idles(const struct tacho__at_end *e)
{
	return !e->crashed && !e->kind && !e->in_turn &&
	       (e->in == TACHO__IN_PARK || e->in == TACHO__IN_SIGNAL);
}

static int rank_of(const struct tacho__at_end *e)
{
	if (e->crashed)
		return 0;
	if (e->kind || e->in_turn)
		return 1;
	if (tacho__at_end_idles(e))
		return 5;
	return e->in == TACHO__IN_LOCK ? 2 : e->in != TACHO__IN_NOTHING ? 3 : 4;
}

static uint64_t length_of(const struct tacho__at_end *e)
{
	return e->kind_ns > e->ns ? e->kind_ns : e->ns;
}

static int compare(const void *va, const void *vb)
{
	const struct tacho__at_end *a = va, *b = vb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (rank_of(a) != rank_of(b))
		return rank_of(a) - rank_of(b);
	if (length_of(a) != length_of(b))
		return length_of(a) > length_of(b) ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static int compare_numbers(const void *va, const void *vb)
{
	const struct tacho__at_end *a = va, *b = vb;

	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static void add_silent(struct tacho__at_ends *to, uint32_t process, uint32_t from)
{
	uint32_t known = to->count - from;

	if (known)
		TACHO__SORT(to->at + from, known, compare_numbers);
	for (uint32_t i = 0; i < tacho_read_thread_count(to->reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(to->reader, i);
		struct tacho__at_end key = {.thread = t->number};

		if (t->process == process && t->live &&
		    (!known || !bsearch(&key, to->at + from, known, sizeof(key), compare_numbers)))
			add(to, t);
	}
}

/* Of threads by the kernel's number: the one that ran last. */
static void name_owner(const struct tacho__at_ends *to, struct tacho__at_end *e)
{
	uint32_t newest = 0;

	for (uint32_t i = 0; e->owner && i < tacho_read_thread_count(to->reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(to->reader, i);

		if (t->process != e->process || t->tid != e->owner || t->number < newest)
			continue;
		newest = t->number;
		e->owner_name = t->name;
	}
}

void tacho__at_end_finish(struct tacho__at_ends *to, uint32_t process)
{
	uint32_t from = to->count;

	if (!is_told(to, process))
		return;
	while (from && to->at[from - 1].process == process)
		from--;
	add_silent(to, process, from);
	for (uint32_t i = from; i < to->count; i++)
		name_owner(to, &to->at[i]);
	if (to->count > from)
		TACHO__SORT(to->at + from, to->count - from, compare);
}

int tacho__at_end_list(struct tacho_reader *reader, struct tacho__at_ends *to)
{
	struct tacho__facts facts = {.arg = to, .error = &to->error, .left = tacho__at_end_left};
	uint32_t processes = tacho_read_process_count(reader);
	int error = 0;

	tacho__at_end_init(to, reader);
	for (uint32_t p = 0; !error && p < processes; p++) {
		if (!is_told(to, p))
			continue;
		tacho__read_only(reader, p);
		error = tacho__model_run(reader, &facts, NULL, NULL, NULL);
		tacho__at_end_finish(to, p);
	}
	tacho__read_only(reader, UINT32_MAX);
	return error ? error : to->error;
}

void tacho__at_end_free(struct tacho__at_ends *list)
{
	free(list->at);
	list->at = NULL;
	list->count = list->capacity = 0;
}

/* -------------------------------------------------------------------------- words */

struct text {
	char *out;
	size_t used;
};

static void say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(t->out + t->used, TACHO__AT_END_TEXT - t->used, format, list);
	va_end(list);
	t->used += strlen(t->out + t->used);
}

const char *tacho__at_end_inside(const struct tacho__at_end *e)
{
	return e->works ? "work" : e->kind ? "callback" : e->in_turn ? "turn" : "";
}

const char *tacho__at_end_waits(const struct tacho__at_end *e)
{
	static const char *const names[] = {[TACHO__IN_NOTHING] = "",
					    [TACHO__IN_CALL] = "call",
					    [TACHO__IN_LOCK] = "lock",
					    [TACHO__IN_SIGNAL] = "condition",
					    [TACHO__IN_PARK] = "loop"};

	return names[e->in];
}

int tacho__ended_unseen(const struct tacho_process *p)
{
	return p && p->end_how == TACHO_END_GONE && !p->end_ns && p->state != TACHO_STATE_STOPPED;
}

static void say_inside(struct text *t, const struct tacho_reader *reader,
		       const struct tacho__at_end *e)
{
	char name[2 * TACHO__TEXT], ns[TACHO__TEXT];

	if (is_somewhere(&e->place))
		tacho__place_text(name, &e->place);
	else if (e->kind)
		tacho__name_of(name, sizeof(name), reader, e->process, e->kind, e->end_ns);
	else
		snprintf(name, sizeof(name), "a turn of its loop");
	say(t, "in %s%s for %s%s", e->works ? "work " : "", name,
	    tacho__ended_unseen(tacho_read_process(reader, e->process)) ? "at least " : "",
	    tacho__ns_text(ns, (double)e->kind_ns));
}

static void say_length(struct text *t, const struct tacho__at_end *e)
{
	char ns[TACHO__TEXT];

	if (e->known)
		say(t, " for %s%s", e->at_most ? "at most " : "",
		    tacho__ns_text(ns, (double)e->ns));
}

static const char *thing_of(const char *call)
{
	return strstr(call, "join")	       ? "thread"
	       : strncmp(call, "wait", 4) == 0 ? "process"
					       : "descriptor";
}

static void say_wait(struct text *t, const struct tacho_reader *reader,
		     const struct tacho__at_end *e)
{
	char name[TACHO__TEXT];

	switch (e->in) {
	case TACHO__IN_CALL:
		tacho__name_of(name, sizeof(name), reader, e->process, e->call, e->end_ns);
		say(t, "blocked in %s", name);
		if (e->on >= 0)
			say(t, " on %s %" PRId64, thing_of(name), e->on);
		break;
	case TACHO__IN_LOCK:
		say(t, "waits for lock 0x%" PRIx64, e->lock);
		break;
	case TACHO__IN_SIGNAL:
		say(t, "waits for condition or semaphore 0x%" PRIx64, e->lock);
		break;
	case TACHO__IN_PARK:
		tacho__name_of(name, sizeof(name), reader, e->process, e->loop, e->end_ns);
		say(t, "waits for events of loop %s", name);
		break;
	default:
		break;
	}
}

static void say_owner(struct text *t, const struct tacho__at_end *e)
{
	if (e->owner == e->tid)
		say(t, ", which it holds itself");
	else if (e->owner)
		say(t, ", held by thread %s%s%" PRIu32 "%s", e->owner_name,
		    e->owner_name[0] ? " (" : "", e->owner, e->owner_name[0] ? ")" : "");
}

const char *tacho__at_end_text(char out[TACHO__AT_END_TEXT], const struct tacho_reader *reader,
			       const struct tacho__at_end *e)
{
	int inside = e->kind || e->in_turn, waits = e->in != TACHO__IN_NOTHING;
	char place[2 * TACHO__TEXT], name[TACHO__TEXT];
	struct text t = {out, 0};

	out[0] = 0;
	if (e->crashed)
		say(&t, "got %s%s", tacho__signal_text(name, e->crashed),
		    inside || waits ? ", " : "");
	if (inside)
		say_inside(&t, reader, e);
	if (inside && waits)
		say(&t, ", ");
	if (waits) {
		say_wait(&t, reader, e);
		say_length(&t, e);
	}
	if (waits && is_somewhere(&e->at))
		say(&t, "%s in %s", e->in == TACHO__IN_CALL ? ", called" : ",",
		    tacho__place_text(place, &e->at));
	if (e->in == TACHO__IN_LOCK)
		say_owner(&t, e);
	if (!inside && !waits && !e->crashed)
		say(&t, "runs (no wait is known)");
	return out;
}

const char *tacho__at_end_does(char out[TACHO__AT_END_TEXT], const struct tacho_reader *reader,
			       const struct tacho__at_end *e)
{
	struct text t = {out, 0};

	out[0] = 0;
	if (e->in == TACHO__IN_NOTHING)
		say(&t, "running");
	else
		say_wait(&t, reader, e);
	return out;
}

const struct tacho__at_end *tacho__at_end_of(const struct tacho__at_ends *list, uint32_t process,
					     uint32_t tid)
{
	const struct tacho__at_end *newest = NULL;

	for (uint32_t i = list->count; tid && i && list->at[i - 1].process == process; i--)
		if (list->at[i - 1].tid == tid &&
		    (!newest || list->at[i - 1].thread > newest->thread))
			newest = &list->at[i - 1];
	return newest;
}

struct tacho__at_end_part tacho__at_end_part(const struct tacho__at_ends *list, uint32_t process)
{
	struct tacho__at_end_part p = {list->at, 0};
	uint32_t i = 0;

	while (i < list->count && list->at[i].process != process)
		i++;
	/* An empty list has no place to count from. */
	if (i)
		p.at += i;
	while (i + p.count < list->count && p.at[p.count].process == process)
		p.count++;
	return p;
}
