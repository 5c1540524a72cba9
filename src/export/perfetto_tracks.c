#include <string.h>

#include "base/hash.h"
#include "export/perfetto.h"
#include "model/place.h"

enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, COUNTER_UNIT_NAME = 6, UNIT_COUNT = 2 };

#define LANES_MAX 256u /* of a process; more spans at one time get a track each */

static uint64_t uuid_of(enum tacho__pf_track track, uint32_t process, uint64_t id)
{
	uint64_t uuid = tacho__hash_words((uint64_t)track << 32 | process, id, 0x7261636b);

	return uuid ? uuid : 1;
}

/* Whether its descriptor has to be written. Where there is no room to remember it is written
   again, which changes nothing. */
static int is_new(struct tacho__perfetto *p, uint64_t uuid)
{
	if (tacho__table_find(&p->tracks, uuid, 0))
		return 0;
	tacho__table_get(&p->tracks, uuid, 0, &p->error);
	return 1;
}

static uint64_t pid_of(const struct tacho__perfetto *p, uint32_t process)
{
	const struct tacho_process *k = tacho_read_process(p->reader, process);

	return k ? k->pid : 0;
}

static uint64_t process_track(struct tacho__perfetto *p, uint32_t process)
{
	const struct tacho_process *k = tacho_read_process(p->reader, process);
	uint64_t uuid = uuid_of(PF_TRACK_PROCESS, process, 0);
	struct tacho__proto body = {0};
	size_t begin;

	if (!is_new(p, uuid))
		return uuid;
	tacho__proto_u64(&body, TRACK_UUID, uuid);
	begin = tacho__proto_begin(&body, TRACK_PROCESS);
	tacho__proto_u64(&body, PROCESS_PID, pid_of(p, process));
	if (k)
		tacho__proto_text(&body, PROCESS_NAME, k->service[0] ? k->service : k->comm);
	tacho__proto_end(&body, begin);
	tacho__pf_put(p, PF_TRACK_DESCRIPTOR, 0, &body);
	tacho__proto_free(&body);
	return uuid;
}

uint64_t tacho__pf_thread_track(struct tacho__perfetto *p, uint32_t process, uint32_t thread)
{
	const struct tacho_thread *t = tacho_read_thread_by_number(p->reader, process, thread);
	uint64_t uuid = uuid_of(PF_TRACK_THREAD, process, thread);
	struct tacho__proto body = {0};
	size_t begin;

	if (!is_new(p, uuid))
		return uuid;
	tacho__proto_u64(&body, TRACK_UUID, uuid);
	tacho__proto_u64(&body, TRACK_PARENT, process_track(p, process));
	begin = tacho__proto_begin(&body, TRACK_THREAD);
	tacho__proto_u64(&body, THREAD_PID, pid_of(p, process));
	tacho__proto_u64(&body, THREAD_TID, tacho__pf_tid(p, process, thread));
	tacho__proto_text(&body, THREAD_NAME,
			  t && t->name[0] ? t->name
					  : tacho__thread_name(p->reader, process, thread));
	tacho__proto_end(&body, begin);
	tacho__pf_put(p, PF_TRACK_DESCRIPTOR, 0, &body);
	tacho__proto_free(&body);
	return uuid;
}

uint64_t tacho__pf_tid(const struct tacho__perfetto *p, uint32_t process, uint32_t thread)
{
	const struct tacho_thread *t = tacho_read_thread_by_number(p->reader, process, thread);

	/* Above what the kernel hands out: a thread that the trace does not describe. */
	return t && t->tid ? t->tid : 0x10000000u + thread;
}

static uint64_t child_track(struct tacho__perfetto *p, uint64_t uuid, uint64_t parent,
			    const char *name, const char *unit, int counter)
{
	struct tacho__proto body = {0};
	size_t begin;

	tacho__proto_u64(&body, TRACK_UUID, uuid);
	tacho__proto_u64(&body, TRACK_PARENT, parent);
	tacho__proto_text(&body, TRACK_NAME, name);
	if (counter) {
		begin = tacho__proto_begin(&body, TRACK_COUNTER);
		if (unit[0])
			tacho__proto_text(&body, COUNTER_UNIT_NAME, unit);
		else
			tacho__proto_u64(&body, COUNTER_UNIT, UNIT_COUNT);
		tacho__proto_end(&body, begin);
	}
	tacho__pf_put(p, PF_TRACK_DESCRIPTOR, 0, &body);
	tacho__proto_free(&body);
	return uuid;
}

uint64_t tacho__pf_loop_track(struct tacho__perfetto *p, uint32_t process, uint32_t thread,
			      uint32_t loop)
{
	uint64_t uuid = uuid_of(PF_TRACK_LOOP, process, (uint64_t)thread << 32 | loop);
	uint64_t parent = tacho__pf_thread_track(p, process, thread);
	char name[TACHO__CLEAN_MAX] = "loop ";

	if (!is_new(p, uuid))
		return uuid;
	tacho__name_of(name + 5, sizeof(name) - 5, p->reader, process, loop, p->last_ns);
	return child_track(p, uuid, parent, name, "", 0);
}

uint64_t tacho__pf_side_track(struct tacho__perfetto *p, enum tacho__pf_track track,
			      uint32_t process, uint32_t thread)
{
	uint64_t uuid = uuid_of(track, process, thread);
	uint64_t parent = tacho__pf_thread_track(p, process, thread);

	if (!is_new(p, uuid))
		return uuid;
	return child_track(p, uuid, parent,
			   track == PF_TRACK_OFF_CPU ? "off the CPU" : "records missing", "", 0);
}

uint64_t tacho__pf_counter_track(struct tacho__perfetto *p, const struct tacho__counter *c)
{
	uint64_t uuid =
		uuid_of(c->depth ? PF_TRACK_DEPTH : PF_TRACK_COUNTER, c->at.process, c->name);
	const struct tacho_definition *d = tacho_read_definition(p->reader, c->at.process, c->name);
	uint64_t parent = process_track(p, c->at.process);
	char name[TACHO__CLEAN_MAX] = "queue of ";
	size_t at = c->depth ? strlen(name) : 0;

	if (!is_new(p, uuid))
		return uuid;
	tacho__name_of(name + at, sizeof(name) - at, p->reader, c->at.process, c->name, c->ns);
	return child_track(p, uuid, parent, name, d && !c->depth ? d->unit : "", 1);
}

/*
 * Spans of one lane do not overlap. They come in the order of their ends, so a lane is free for
 * a span if what was put there last ended before it began.
 */
uint64_t tacho__pf_lane(struct tacho__perfetto *p, const struct tacho__span *span)
{
	uint32_t process = span->at.process, lane = 0;
	uint64_t parent = process_track(p, process), uuid;
	struct tacho__pf_lane_entry *e = NULL;

	for (; lane < LANES_MAX; lane++) {
		e = tacho__table_get(&p->lanes, process, lane, &p->error);
		if (!e || e->end_ns <= span->begin_ns)
			break;
	}
	if (e && lane < LANES_MAX) {
		e->end_ns = span->end_ns;
		uuid = uuid_of(PF_TRACK_LANE, process, lane);
	} else {
		uuid = uuid_of(PF_TRACK_SPAN, process,
			       tacho__hash_words(span->id, span->begin_ns, span->end_ns));
	}
	if (!is_new(p, uuid))
		return uuid;
	return child_track(p, uuid, parent, "spans", "", 0);
}
