#include "model/tracker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/judgement.h"
#include "read/records.h"

#define KERNEL_STREAM 15u

/* ------------------------------------------------------------------- threads */

/* Polls of signal handlers nest among themselves; the rest of what they record is their
   thread's. */
static uint64_t stream_of(const struct tacho_event *e)
{
	if (!e->stream)
		return 0;
	switch (e->type) {
	case TACHO_EV_POLL_BEGIN:
	case TACHO_EV_POLL_SWITCH:
	case TACHO_EV_POLL_END:
	case TACHO_EV_SPAN_BEGIN:
	case TACHO_EV_SPAN_END:
	case TACHO_EV_SCHED:
	case TACHO_EV_SCHED_INTERVAL:
	case TACHO_EV_RESUME:
		return e->stream;
	default:
		return 0;
	}
}

static struct tacho__thread *thread_of(struct tacho__tracker *t, const struct tacho_event *e)
{
	uint64_t key = (uint64_t)e->process << 32 | e->thread, stream = stream_of(e);
	struct tacho__thread **recent = &t->recent[e->thread % TACHO__RECENT], *s = *recent;

	if (s && s->entry.key[0] == key && s->entry.key[1] == stream)
		return s;
	s = tacho__table_get(&t->threads, key, stream, &t->error);
	if (s && !s->known) {
		memset(t->recent, 0, sizeof(t->recent));
		s->known = 1;
		s->process = e->process;
		s->number = e->thread;
		s->of = tacho__process_of(t, e->process);
		s->pauses = s->of->pauses;
	}
	*recent = s;
	return s;
}

/* -------------------------------------------------------------------- turns */

static void know_loop(struct tacho__tracker *t, struct tacho__thread *s, uint32_t loop)
{
	const struct tacho_definition *d;

	if (s->loop == loop)
		return;
	s->loop = loop;
	d = loop ? tacho_read_definition(t->reader, s->process, loop) : NULL;
	s->level = d ? d->level : TACHO_LEVEL_UNKNOWN;
}

/* A turn of which nothing but its length is known stands as a poll. */
static void turn_as_poll(struct tacho__tracker *t, struct tacho__thread *s)
{
	tacho__give_ended(t, s);
	memset(&s->ended, 0, sizeof(s->ended));
	s->ended.at.process = s->process;
	s->ended.at.thread = s->number;
	s->ended.at.loop = s->turn.loop;
	s->ended.begin_ns = s->turn.begin_ns;
	s->ended.end_ns = s->turn.end_ns;
	s->ended.turn_ns = s->turn.begin_ns;
	s->ended.cut = s->turn.cut;
	s->ended.spent = s->turn_spent;
	s->ended.late_ns = s->late_ns;
	s->late_ns = 0;
	s->has_ended = 1;
}

static void turn_ends(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns, uint8_t cut)
{
	if (!s->in_turn)
		return;
	s->in_turn = 0;
	s->turn.end_ns = tacho__later(ns, s->turn.begin_ns);
	s->turn.cut |= cut;
	TACHO__GIVE(t, turn, &s->turn);
	if (s->level == TACHO_LEVEL_WAITS && !s->turn.polls)
		turn_as_poll(t, s);
}

static void parks(struct tacho__tracker *t, struct tacho__thread *s, uint32_t loop, uint64_t ns)
{
	unsigned whole;

	/* A wait of the kernel that a runtime makes while it is parked is part of that. */
	if (s->parked && s->loop && s->loop != loop)
		return;
	whole = s->in_turn && s->level == TACHO_LEVEL_WAITS && !s->turn.polls;
	turn_ends(t, s, ns, 0);
	know_loop(t, s, loop);
	s->parked = 1;
	s->park_ns = ns;
	TACHO__STEP(t, s, .type = TACHO__STEP_PARKS, .ns = ns, .value = whole);
}

static void unparks(struct tacho__tracker *t, struct tacho__thread *s, uint32_t ready, uint64_t ns)
{
	TACHO__STEP(t, s, .type = TACHO__STEP_UNPARKS, .ns = ns, .value = ready);
	/* The runtime says again what the wait inside of it said. */
	if (s->in_turn && !s->parked) {
		s->turn.ready = ready;
		return;
	}
	s->turn_before_ns = s->turn.begin_ns;
	memset(&s->turn, 0, sizeof(s->turn));
	memset(&s->turn_spent, 0, sizeof(s->turn_spent));
	s->turn.process = s->process;
	s->turn.thread = s->number;
	s->turn.loop = s->loop;
	s->turn.ready = ready;
	s->turn.begin_ns = ns;
	s->turn.parked_ns = s->parked && s->park_ns && ns > s->park_ns ? ns - s->park_ns : 0;
	s->parked = 0;
	s->in_turn = 1;
}

/* -------------------------------------------------------------------- holes */

/* What is open ends at the last time that was seen of it. */
static void cut_all(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns)
{
	tacho__give_ended(t, s);
	tacho__waits_cut(t, s, ns);
	tacho__open_cut(t, s, ns);
	turn_ends(t, s, ns, TACHO__CUT_END);
	tacho__give_ended(t, s);
	s->parked = 0;
	TACHO__STEP(t, s, .type = TACHO__STEP_CUT, .ns = ns);
}

/* While the recorder is paused nobody records what ends. */
static void know_pauses(struct tacho__tracker *t, struct tacho__thread *s)
{
	if (s->pauses == s->of->pauses)
		return;
	s->pauses = s->of->pauses;
	cut_all(t, s, s->last_ns);
}

static void paused(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	s->of->pauses++;
	s->of->hole_ns = e->ns;
	know_pauses(t, s);
}

/* What the kernel told of the thread: whether it runs is not known any more. */
static void kernel_resumes(struct tacho__tracker *t, const struct tacho_event *e)
{
	struct tacho__thread *s =
		tacho__table_find(&t->threads, (uint64_t)e->process << 32 | e->thread, 0);
	struct tacho__hole hole = {e->process, e->thread,	   s ? s->kernel_ns : 0,
				   e->ns,      e->resume->missing, e->resume->dropped};

	if (e->resume->first)
		return;
	if (s)
		tacho__off_cpu_cut(t, s, s->kernel_ns);
	if (hole.missing || hole.dropped)
		TACHO__GIVE(t, hole, &hole);
}

/* Records may be missing before the first one of a thread that has long been there. Of threads
   that have ended nobody may know when they began. */
static int begins_late(const struct tacho__tracker *t, const struct tacho_event *e)
{
	const struct tacho_thread *d =
		tacho_read_thread_by_number(t->reader, e->process, e->thread);

	return d && d->start_ns && d->start_ns < e->ns &&
	       e->ns - d->start_ns > tacho__first_record_ns;
}

static void resumes(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	const struct tacho_resume_info *r = e->resume;
	int lost = r->missing || r->dropped;

	/* Polls of signal handlers are nobody's wake. */
	if (!e->stream && (r->first ? begins_late(t, e) : lost))
		s->of->hole_ns = e->ns;
	if (!r->first && lost) {
		struct tacho__hole hole = {s->process, s->number,  s->last_ns,
					   e->ns,      r->missing, r->dropped};

		TACHO__GIVE(t, hole, &hole);
	}
	if (tacho__open_still(s, r)) {
		tacho__waits_cut(t, s, s->last_ns);
		tacho__give_ended(t, s);
		return;
	}
	cut_all(t, s, s->last_ns);
	know_loop(t, s, r->loop);
	s->parked = r->parked != 0;
	s->park_ns = r->parked_ns;
	if (s->parked)
		TACHO__STEP(t, s, .type = TACHO__STEP_PARKS,
			    .ns = s->park_ns && s->park_ns < e->ns ? s->park_ns : e->ns);
	tacho__open_again(t, s, r, e->ns);
	TACHO__STEP(t, s, .type = TACHO__STEP_RESUMES, .ns = e->ns);
}

/* ------------------------------------------------------------------- events */

/*
 * A SCHED of old does not say what it is about. That is what was recorded right before: a call; a
 * poll, or the PARK that ends an iteration, which is `ended`; a PARK after polls; an UNPARK. When the
 * totals were read before is not known either: the interval is the subject's.
 */
static void know_by_position(const struct tacho__thread *s, struct tacho__sched *f)
{
	if (s->called) {
		f->subject = TACHO_SCHED_CALL;
		f->begin_ns = s->called_ns;
	} else if (s->has_ended) {
		f->subject = s->ended.kind ? TACHO_SCHED_POLL : TACHO_SCHED_ITERATION;
		f->begin_ns = s->ended.begin_ns;
	} else if (s->parked) {
		f->subject = TACHO_SCHED_ITERATION;
		f->begin_ns = s->turn.begin_ns;
	} else if (s->in_turn) {
		f->subject = TACHO_SCHED_WAIT;
		f->begin_ns = s->turn.begin_ns - s->turn.parked_ns;
	}
}

/* A newer recorder may know more of them. */
static uint8_t known_subject(uint64_t subject)
{
	return subject <= TACHO_SCHED_ITERATION ? (uint8_t)subject : TACHO_SCHED_UNKNOWN;
}

static void read_sched(const struct tacho__thread *s, const struct tacho_event *e,
		       struct tacho__sched *f)
{
	memset(f, 0, sizeof(*f));
	tacho__at_of(s, &f->at);
	f->end_ns = e->ns;
	if (e->type == TACHO_EV_SCHED) {
		f->runnable_ns = TACHO_GET(e, SCHED, runnable_ns);
		f->involuntary = (uint32_t)TACHO_GET(e, SCHED, involuntary_switches);
		f->minor_faults = (uint32_t)TACHO_GET(e, SCHED, minor_faults);
		f->major_faults = (uint32_t)TACHO_GET(e, SCHED, major_faults);
		know_by_position(s, f);
	} else {
		f->runnable_ns = TACHO_GET(e, SCHED_INTERVAL, runnable_ns);
		f->involuntary = (uint32_t)TACHO_GET(e, SCHED_INTERVAL, involuntary_switches);
		f->minor_faults = (uint32_t)TACHO_GET(e, SCHED_INTERVAL, minor_faults);
		f->major_faults = (uint32_t)TACHO_GET(e, SCHED_INTERVAL, major_faults);
		f->subject = known_subject(TACHO_GET(e, SCHED_INTERVAL, subject));
		f->begin_ns = TACHO_GET(e, SCHED_INTERVAL, begin_ns);
	}
	if (!f->begin_ns || f->begin_ns > e->ns)
		f->begin_ns = e->ns;
}

/* It is of the poll that ended last, or of the iteration that stands as one. */
static int is_of_ended(const struct tacho__thread *s, const struct tacho__sched *f)
{
	if (!s->has_ended)
		return 0;
	return f->subject == TACHO_SCHED_POLL ||
	       (f->subject == TACHO_SCHED_ITERATION && (s->parked || !s->ended.kind));
}

static void sched(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	enum tacho__step_type type = TACHO__STEP_TURN_DELAYED;
	struct tacho__spent *p = &s->ended.spent;
	struct tacho__sched f;

	read_sched(s, e, &f);
	if (is_of_ended(s, &f)) {
		type = TACHO__STEP_DELAYED;
		p->sched = 1;
		p->involuntary = f.involuntary;
		p->delay_ns = f.runnable_ns;
		p->minor_faults = f.minor_faults;
		p->major_faults = f.major_faults;
	} else if (f.subject == TACHO_SCHED_CALL) {
		type = TACHO__STEP_CALL_DELAYED;
	} else if (f.subject == TACHO_SCHED_WAIT) {
		type = TACHO__STEP_WAIT_DELAYED;
		if (s->in_turn && s->turn.begin_ns == s->last_ns)
			s->turn.delay_ns = f.runnable_ns < s->turn.parked_ns ? f.runnable_ns
									     : s->turn.parked_ns;
	}
	TACHO__STEP(t, s, .type = type, .ns = e->ns, .value = f.runnable_ns,
		    .faults = type == TACHO__STEP_DELAYED ? f.major_faults : 0);
	TACHO__GIVE(t, sched, &f);
}

/*
 * The last poll of a runtime's turn: the wait inside of its park may say what the kernel did to the
 * whole turn, which is the poll's if it took most of it.
 */
static int may_get_sched(const struct tacho__thread *s, const struct tacho_event *e)
{
	uint64_t since = s->in_turn ? s->turn.begin_ns : s->ended.begin_ns;

	return e->type == TACHO_EV_PARK && s->level == TACHO_LEVEL_API && !s->ended.depth &&
	       s->ended.end_ns - s->ended.begin_ns >= (e->ns - since) / 2;
}

static tacho__handler *const handlers[256] = {
	[TACHO_EV_LOCK_WAIT] = tacho__lock_waits,
	[TACHO_EV_LOCK_WAITED] = tacho__lock_waited,
	[TACHO_EV_LOCK_RELEASE] = tacho__lock_released,
	[TACHO_EV_LOCK_QUEUE] = tacho__lock_queued,
	[TACHO_EV_STACK] = tacho__lock_stack,
	[TACHO_EV_LOCK_OWNER] = tacho__lock_owned,
	[TACHO_EV_CALL] = tacho__called,
	[TACHO_EV_CALL_OPEN] = tacho__calls,
	[TACHO_EV_WORK_SUBMIT] = tacho__work_event,
	[TACHO_EV_WORK_BEGIN] = tacho__work_event,
	[TACHO_EV_WORK_END] = tacho__work_event,
	[TACHO_EV_ASYNC_BEGIN] = tacho__async_begins,
	[TACHO_EV_ASYNC_END] = tacho__async_ends,
	[TACHO_EV_TRACE_ID] = tacho__trace_id,
	[TACHO_EV_SAMPLE] = tacho__sampled,
	[TACHO_EV_SAMPLE_FRAMES] = tacho__sampled,
	[TACHO_EV_KERNEL_SAMPLE] = tacho__sampled,
	[TACHO_EV_SWITCH_OUT] = tacho__switched,
	[TACHO_EV_SWITCH_IN] = tacho__switched,
	[TACHO_EV_COUNTER] = tacho__counter_set,
	[TACHO_EV_QUEUE_DEPTH] = tacho__counter_set,
	[TACHO_EV_READY] = tacho__got_ready,
};

static void hand_on(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	tacho__handler *handler = handlers[e->type] ? handlers[e->type] : tacho__other;

	handler(t, s, e);
}

static void thread_event(struct tacho__tracker *t, struct tacho__thread *s,
			 const struct tacho_event *e)
{
	switch (e->type) {
	case TACHO_EV_POLL_BEGIN:
		tacho__poll_begins(t, s, e->arg, TACHO_GET(e, POLL_BEGIN, task), e->ns, 0);
		break;
	case TACHO_EV_POLL_END:
		tacho__poll_ends(t, s, e->ns, (uint8_t)e->arg);
		break;
	case TACHO_EV_POLL_SWITCH:
		tacho__poll_ends(t, s, e->ns, 0);
		tacho__poll_begins(t, s, e->arg, TACHO_GET(e, POLL_SWITCH, task), e->ns, 0);
		break;
	case TACHO_EV_PARK:
		parks(t, s, e->arg, e->ns);
		break;
	case TACHO_EV_UNPARK:
		unparks(t, s, e->arg, e->ns);
		break;
	case TACHO_EV_LOOP:
		if (e->arg != s->loop)
			turn_ends(t, s, e->ns, TACHO__CUT_END);
		know_loop(t, s, e->arg);
		TACHO__STEP(t, s, .type = TACHO__STEP_LOOP, .ns = e->ns);
		break;
	case TACHO_EV_SPAN_BEGIN:
		tacho__span_begins(t, s, e->arg, e->ns, 0);
		break;
	case TACHO_EV_SPAN_END:
		tacho__span_ends(t, s, e->ns);
		break;
	case TACHO_EV_LATE:
		s->late_ns = TACHO_GET(e, LATE, late_ns);
		TACHO__STEP(t, s, .type = TACHO__STEP_LATE, .ns = e->ns, .value = s->late_ns);
		break;
	case TACHO_EV_WAKE:
	case TACHO_EV_SPAWN:
	case TACHO_EV_TASK_END:
	case TACHO_EV_TASK_WAITS:
	case TACHO_EV_NO_WAKER:
		tacho__task_event(t, s, e);
		break;
	case TACHO_EV_PAUSE:
		paused(t, s, e);
		hand_on(t, s, e);
		break;
	default:
		hand_on(t, s, e);
		break;
	}
}

static int is_kernels(uint8_t type)
{
	static const uint8_t those[256] = {
		[TACHO_EV_SWITCH_OUT] = 1,
		[TACHO_EV_SWITCH_IN] = 1,
		[TACHO_EV_KERNEL_SAMPLE] = 1,
		[TACHO_EV_STOPPED] = 1,
	};

	return those[type];
}

static int is_sampled(uint8_t type)
{
	return type == TACHO_EV_SAMPLE || type == TACHO_EV_SAMPLE_FRAMES || is_kernels(type);
}

/* Neither the sample of a timer nor what the kernel says comes from the code that would have
   recorded SCHED or STACK next; nor do other streams. */
static void flush(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	if (e->stream != s->entry.key[1] || is_sampled(e->type))
		return;
	if (s->has_ended && !may_get_sched(s, e))
		tacho__give_ended(t, s);
	if (s->lock_done && e->type != TACHO_EV_STACK)
		tacho__lock_flush(t, s);
}

static void track(struct tacho__tracker *t, const struct tacho_event *e)
{
	struct tacho__thread *s = thread_of(t, e);

	if (!s) {
		/* That a stream goes on is nothing that was recorded. */
		if (e->type == TACHO_EV_RESUME && !t->error)
			t->threads.missed--;
		return;
	}
	know_pauses(t, s);
	if (e->type == TACHO_EV_RESUME) {
		if (e->resume && e->stream == KERNEL_STREAM)
			kernel_resumes(t, e);
		else if (e->resume)
			resumes(t, s, e);
	} else if (e->type == TACHO_EV_SCHED || e->type == TACHO_EV_SCHED_INTERVAL) {
		sched(t, s, e);
	} else {
		if (s->has_ended | s->lock_done)
			flush(t, s, e);
		thread_event(t, s, e);
		if ((s->called | (e->type == TACHO_EV_CALL)) && !is_sampled(e->type))
			s->called = e->type == TACHO_EV_CALL;
	}
	if (is_kernels(e->type))
		s->kernel_ns = tacho__later(s->kernel_ns, e->ns);
	else
		s->last_ns = tacho__later(s->last_ns, e->ns);
}

/* ---------------------------------------------------------------------- life */

struct tacho__tracker *tacho__tracker_new(struct tacho_reader *reader,
					  const struct tacho__facts *subscribers, uint32_t count)
{
	struct tacho__tracker *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->reader = reader;
	t->subscribers = subscribers;
	t->end_subscriber = subscribers + count;
	for (uint32_t i = count; i--;)
		t->steppers = subscribers[i].step ? &subscribers[i] : t->steppers;
	t->process_count = tacho_read_process_count(reader);
	t->processes = calloc(t->process_count + 1, sizeof(*t->processes));
	if (!t->processes) {
		free(t);
		return NULL;
	}
	tacho__table_init(&t->threads, sizeof(struct tacho__thread), TACHO__THREADS_MODELLED);
	tacho__table_init(&t->tasks, sizeof(struct tacho__tracked_task), TACHO__TASKS_MODELLED);
	tacho__table_init(&t->locks, sizeof(struct tacho__tracked_lock), TACHO__LOCKS_MODELLED);
	tacho__table_init(&t->works, sizeof(struct tacho__tracked_work), TACHO__WORKS_MODELLED);
	tacho__table_init(&t->spans, sizeof(struct tacho__tracked_span), TACHO__SPANS_MODELLED);
	return t;
}

/* Whether it is known of the process which threads ran at the end. */
static void know_living(struct tacho__tracker *t)
{
	for (uint32_t i = 0; i < tacho_read_thread_count(t->reader); i++) {
		const struct tacho_thread *d = tacho_read_thread(t->reader, i);

		if (d->live)
			tacho__process_of(t, d->process)->living = 1;
	}
}

/* What a thread that has ended left open did not go on. */
static int has_ended(struct tacho__tracker *t, const struct tacho__thread *s)
{
	const struct tacho_thread *d =
		tacho_read_thread_by_number(t->reader, s->process, s->number);

	return d && !d->live && tacho__process_of(t, s->process)->living &&
	       !tacho__read_goes_on(t->reader, s->process, s->number);
}

/* Until when the records of each process tell all: what it left open lasted until then. */
static void know_ends(struct tacho__tracker *t, uint64_t last_ns)
{
	for (uint32_t i = 0; i <= t->process_count; i++) {
		const struct tacho_process *p = tacho_read_process(t->reader, i);
		struct tacho__tracked_process *k = &t->processes[i];

		if (!p || p->end_how == TACHO_END_UNTOLD || tacho__read_goes_on(t->reader, i, 0))
			k->last_ns = last_ns;
		else if (p->until_ns > k->last_ns)
			k->last_ns = p->until_ns < last_ns ? p->until_ns : last_ns;
	}
}

static void give_left(struct tacho__tracker *t, const struct tacho__thread *s, uint64_t ns)
{
	const struct tacho__work *work = tacho__work_of(t, s);
	struct tacho__left left = {.end_ns = ns,
				   .parked = s->parked,
				   .park_ns = s->park_ns,
				   .work = work ? work->kind : 0,
				   .work_ns = work ? work->begin_ns : 0,
				   .call = s->calling ? &s->call : NULL,
				   .lock = s->waiting ? &s->lock : NULL};

	tacho__at_of(s, &left.at);
	TACHO__GIVE(t, left, &left);
}

/* Hands out what is open, as cut where its process ends. */
static void end(struct tacho__tracker *t, uint64_t last_ns)
{
	know_living(t);
	know_ends(t, last_ns);
	for (struct tacho__thread *s = NULL; (s = tacho__table_next(&t->threads, s));) {
		uint64_t ns = tacho__process_of(t, s->process)->last_ns;

		know_pauses(t, s);
		if (has_ended(t, s))
			ns = s->last_ns;
		else if (!s->entry.key[1])
			give_left(t, s, ns);
		cut_all(t, s, ns);
	}
	for (struct tacho__thread *s = NULL; (s = tacho__table_next(&t->threads, s));)
		tacho__off_cpu_cut(t, s, tacho__process_of(t, s->process)->last_ns);
	tacho__works_end(t);
	tacho__async_cut(t);
	tacho__tasks_end(t);
}

/* Of the tracker or of a subscriber. */
static int error_of(const struct tacho__tracker *t)
{
	int error = t->error;

	for (const struct tacho__facts *to = t->subscribers; !error && to < t->end_subscriber; to++)
		error = to->error ? *to->error : 0;
	return error;
}

/* Cut where the window ends, or what was read of it. Without events that is 0. */
static void finish(struct tacho__tracker *t)
{
	uint64_t first_ns, last_ns = 0;

	tacho_read_window(t->reader, &first_ns, &last_ns);
	for (uint32_t i = 0; i <= t->process_count; i++)
		last_ns = tacho__later(last_ns, t->processes[i].last_ns);
	end(t, last_ns);
}

int tacho__tracker_some(struct tacho__tracker *t, uint32_t most, uint64_t *ns)
{
	struct tacho__tracked_process *p;
	const struct tacho_event *event;
	int result = 1;

	while (most-- && (result = tacho_read_next(t->reader, &event)) > 0) {
		p = tacho__process_of(t, event->process);
		p->last_ns = tacho__later(p->last_ns, event->ns);
		p->events += event->type != TACHO_EV_RESUME;
		*ns = event->ns;
		track(t, event);
	}
	if (result < 0)
		return result;
	if (!result)
		finish(t);
	return error_of(t) ? error_of(t) : result;
}

int tacho__tracker_run(struct tacho__tracker *t, int (*stop)(void *arg, uint64_t ns),
		       void *stop_arg)
{
	uint64_t ns = 0;
	int result;

	while ((result = tacho__tracker_some(t, 4096, &ns)) > 0)
		if (stop && stop(stop_arg, ns)) {
			finish(t);
			return error_of(t);
		}
	return result;
}

uint64_t tacho__tracker_events(const struct tacho__tracker *t, uint32_t process)
{
	return process < t->process_count ? t->processes[process].events : 0;
}

uint64_t tacho__tracker_end(const struct tacho__tracker *t, uint32_t process)
{
	return process < t->process_count ? t->processes[process].last_ns : 0;
}

struct tacho__tracker_limits tacho__tracker_missed(const struct tacho__tracker *t)
{
	struct tacho__tracker_limits l = {t->tasks.missed, t->locks.missed,   t->works.missed,
					  t->spans.missed, t->threads.missed, t->depth_missed};

	return l;
}

void tacho__tracker_free(struct tacho__tracker *t)
{
	if (!t)
		return;
	tacho__table_free(&t->threads);
	tacho__table_free(&t->tasks);
	tacho__table_free(&t->locks);
	tacho__table_free(&t->works);
	tacho__table_free(&t->spans);
	free(t->processes);
	free(t);
}

int tacho__model_run(struct tacho_reader *reader, const struct tacho__facts *facts,
		     int (*stop)(void *arg, uint64_t ns), void *stop_arg,
		     struct tacho__tracker_limits *missed)
{
	struct tacho__tracker *t = tacho__tracker_new(reader, facts, 1);
	int error;

	if (!t)
		return -ENOMEM;
	error = tacho__tracker_run(t, stop, stop_arg);
	if (missed)
		*missed = tacho__tracker_missed(t);
	tacho__tracker_free(t);
	return error;
}
