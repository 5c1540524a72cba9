#include "write/trace_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read/records.h"
#include "tacho.h"
#include "tacho_read.h"
#include "read/memory.h"

/*
 * Times that a reader gives are nanoseconds already, so in the file a tick is a
 * nanosecond: CLOCK says so with anchors whose ticks and mono_ns are the same.
 */
#define CLOCK_BASELINE_NS 1000000000ull

/* -------------------------------------------------------------------- META */

static void meta(struct tacho__bytes *b, uint16_t key, const void *value, size_t size)
{
	struct tacho_trace_meta head = {key, 0, (uint32_t)size};

	tacho__bytes_put(b, &head, sizeof(head));
	tacho__bytes_put(b, value, size);
	tacho__bytes_pad(b);
}

static void meta_text(struct tacho__bytes *b, uint16_t key, const char *text)
{
	if (text && *text)
		meta(b, key, text, strlen(text));
}

/* `known`: a 0 was measured; otherwise 0 means that nothing is known. */
static void meta_number(struct tacho__bytes *b, uint16_t key, uint64_t value, int known)
{
	if (value || known)
		meta(b, key, &value, sizeof(value));
}

static void meta_identity(struct tacho__bytes *b, const struct tacho_process *p,
			  const struct tacho__trace_options *options, int known)
{
	static const uint8_t none[sizeof(p->boot_id)];

	meta_number(b, TACHO_META_PID, p->pid, known);
	meta_number(b, TACHO_META_UID, p->uid, known);
	meta_number(b, TACHO_META_START_TIME, p->start_time, known);
	if (memcmp(p->boot_id, none, sizeof(none)))
		meta(b, TACHO_META_BOOT_ID, p->boot_id, sizeof(p->boot_id));
	/* An import knows of its process nothing else for sure. */
	meta_number(b, TACHO_META_CREATED_MONO, p->created_mono_ns,
		    known || p->taken_by == TACHO_TAKEN_IMPORT);
	meta_number(b, TACHO_META_CREATED_REAL, p->created_real_ns, 0);
	meta_number(b, TACHO_META_PARENT_PID, p->parent_pid ? p->parent_pid : options->parent_pid,
		    0);
	meta_text(b, TACHO_META_COMMAND_LINE,
		  options->command_line && options->command_line[0] ? options->command_line
								    : p->command_line);
	meta_number(b, TACHO_META_ARCH, p->arch, 0);
	if (p->build_id_size)
		meta(b, TACHO_META_BUILD_ID, p->build_id, p->build_id_size);
	meta_text(b, TACHO_META_EXE, p->exe);
	meta_text(b, TACHO_META_COMM, p->comm);
	meta_text(b, TACHO_META_SERVICE, p->service);
}

static void meta_recording(struct tacho__bytes *b, const struct tacho_process *p, int known)
{
	meta_number(b, TACHO_META_CLOCK, p->clock, 0);
	meta_number(b, TACHO_META_MAX_BYTES, p->max_bytes, known);
	meta_number(b, TACHO_META_MIN_AGE, p->min_age_ns, known);
	meta_number(b, TACHO_META_POLL_THRESHOLD, p->poll_threshold_ns, known);
	meta_number(b, TACHO_META_STATE, p->state, known);
	meta_number(b, TACHO_META_THREADS_SEEN, p->threads_seen, known);
	meta_number(b, TACHO_META_RECORDING, p->recording, 0);
	meta_text(b, TACHO_META_REASON, p->reason);
}

/* What the caller says goes before what a trace that is written anew said. */
static void meta_why(struct tacho__bytes *b, const struct tacho_process *p,
		     const struct tacho__trace_options *options)
{
	int own = options->why && options->why[0];
	uint64_t segment = options->segment ? options->segment : p->segment;
	uint64_t cpu = options->agent_cpu_ns ? options->agent_cpu_ns : p->agent_cpu_ns;

	meta_text(b, TACHO_META_WHY, own ? options->why : p->why);
	meta_number(b, TACHO_META_WHY_MONO, own ? options->why_mono_ns : p->why_mono_ns, 0);
	meta_number(b, TACHO_META_SEGMENT, segment, 0);
	meta_number(b, TACHO_META_AGENT_CPU, cpu, 0);
}

static void meta_end(struct tacho__bytes *b, const struct tacho_process *p,
		     const struct tacho__trace_options *options)
{
	struct tacho__trace_end end = {p->end_how, p->end_status, p->end_flags, p->end_ns};

	if (options->end)
		end = *options->end;
	if (end.how == TACHO_END_UNTOLD)
		return;
	meta_number(b, TACHO_META_END_HOW, end.how, 1);
	/* Of a segment these take the place of what was said when it was begun. */
	meta_number(b, TACHO_META_END_STATUS, end.status, 1);
	meta_number(b, TACHO_META_END_FLAGS, end.flags, 1);
	meta_number(b, TACHO_META_END_MONO, end.ns, 0);
}

static void meta_taking(struct tacho__bytes *b, const struct tacho_process *p,
			const struct tacho__trace_options *options, int from_box)
{
	uint32_t taken_by = options->taken_by ? options->taken_by : p->taken_by;
	char host[256] = "";

	meta_number(b, TACHO_META_TAKEN_MONO, p->taken_mono_ns, 0);
	meta_number(b, TACHO_META_TAKEN_REAL, p->taken_real_ns, 0);
	meta_number(b, TACHO_META_TAKEN_BY, taken_by, 0);
	if (p->alive != TACHO_ALIVE_UNKNOWN)
		meta_number(b, TACHO_META_ALIVE, p->alive == TACHO_ALIVE_YES, 1);
	meta_text(b, TACHO_META_BOX_NAME, options->box_name);
	/* A box lies on the host that is being asked; a trace file may come from afar. */
	if (from_box && gethostname(host, sizeof(host) - 1))
		host[0] = 0;
	meta_text(b, TACHO_META_HOST, from_box ? host : p->host);
	meta_text(b, TACHO_META_VERSION, TACHO_VERSION);
	meta_text(b, TACHO_META_IMPORTED, p->imported);
}

int tacho__put_meta(struct tacho__output *o, const struct tacho_process *p,
		    const struct tacho__trace_options *options)
{
	struct tacho__bytes b = {0};
	int from_box = p->taken_by == TACHO_TAKEN_BOX;

	meta_identity(&b, p, options, from_box);
	meta_recording(&b, p, from_box);
	meta_taking(&b, p, options, from_box);
	meta_why(&b, p, options);
	meta_end(&b, p, options);
	return tacho__output_bytes(o, TACHO_BLOCK_META, &b);
}

int tacho__put_meta_after(struct tacho__output *o, uint64_t unread, uint64_t cut_before_ns)
{
	struct tacho__bytes b = {0};

	meta_number(&b, TACHO_META_UNREAD_CHUNKS, unread, 0);
	meta_number(&b, TACHO_META_CUT_BEFORE, cut_before_ns, 0);
	if (!b.size && !b.error)
		return o->error;
	return tacho__output_bytes(o, TACHO_BLOCK_META, &b);
}

int tacho__put_meta_names(struct tacho__output *o, const char *why)
{
	struct tacho__bytes b = {0};

	meta_text(&b, TACHO_META_NAMES, why);
	return tacho__output_bytes(o, TACHO_BLOCK_META, &b);
}

/* ------------------------------------------------------------------ arrays */

/* Begins an array block; its count is set once it is known. */
static void array_begin(struct tacho__bytes *b, size_t entry_size)
{
	struct tacho_trace_array array = {(uint32_t)entry_size, 0};

	tacho__bytes_put(b, &array, sizeof(array));
}

static void array_put(struct tacho__bytes *b, const void *entry, size_t size)
{
	struct tacho_trace_array array;

	/* What a block has no room for is left out, not the block. */
	if (b->size + size > TACHO_BLOCK_MAX || tacho__bytes_put(b, entry, size))
		return;
	memcpy(&array, b->data, sizeof(array));
	array.count++;
	memcpy(b->data, &array, sizeof(array));
}

int tacho__put_clock(struct tacho__output *o, struct tacho_reader *reader, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(reader, process);
	uint64_t first = 0, last = 0;
	struct tacho__bytes b = {0};

	array_begin(&b, sizeof(struct tacho_anchor));
	if (tacho_read_window(reader, &first, &last) < 0)
		first = last = p->taken_mono_ns;
	/* Two anchors too close to each other would leave the slope open. */
	if (last - first < CLOCK_BASELINE_NS && first <= UINT64_MAX - CLOCK_BASELINE_NS)
		last = first + CLOCK_BASELINE_NS;
	for (int i = 0; i < 2; i++) {
		uint64_t ns = i ? last : first;
		struct tacho_anchor anchor = {ns, ns, tacho_read_real_ns(reader, process, ns)};

		if (i == 0 || last > first)
			array_put(&b, &anchor, sizeof(anchor));
	}
	return tacho__output_bytes(o, TACHO_BLOCK_CLOCK, &b);
}

int tacho__put_sources(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process)
{
	uint32_t count = tacho_read_source_count(reader);
	struct tacho__bytes b = {0};

	array_begin(&b, sizeof(struct tacho_box_source));
	for (uint32_t i = 0; i < count && i < TACHO_SOURCE_MAX; i++) {
		struct tacho_source_info info = {.size = sizeof(info)};
		struct tacho_box_source entry = {0};

		if (tacho_read_source(reader, process, i, &info) >= 0) {
			entry.state = (uint16_t)info.state;
			entry.error = info.error;
		}
		array_put(&b, &entry, sizeof(entry));
	}
	return tacho__output_bytes(o, TACHO_BLOCK_SOURCES, &b);
}

int tacho__put_losses(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process)
{
	uint32_t count = tacho_read_loss_count(reader);
	struct tacho__bytes b = {0};

	array_begin(&b, sizeof(uint64_t));
	for (uint32_t i = 0; i < count && i < TACHO_LOSS_MAX; i++) {
		struct tacho_loss_info info = {.size = sizeof(info)};

		if (tacho_read_loss(reader, process, i, &info) < 0)
			info.count = 0;
		array_put(&b, &info.count, sizeof(info.count));
	}
	return tacho__output_bytes(o, TACHO_BLOCK_LOSSES, &b);
}

int tacho__put_threads(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process)
{
	uint32_t count = tacho_read_thread_count(reader);
	struct tacho__bytes b = {0};

	array_begin(&b, sizeof(struct tacho_box_thread));
	for (uint32_t i = 0; i < count; i++) {
		const struct tacho_thread *t = tacho_read_thread(reader, i);
		struct tacho_box_thread entry = {.chunk = TACHO_NO_CHUNK};

		if (!t || t->process != process)
			continue;
		entry.state = t->live ? TACHO_THREAD_LIVE : TACHO_THREAD_ENDED;
		entry.number = t->number;
		entry.tid = t->tid;
		entry.start_ticks = t->start_ns;
		strncpy(entry.name, t->name, sizeof(entry.name) - 1);
		array_put(&b, &entry, sizeof(entry));
	}
	return tacho__output_bytes(o, TACHO_BLOCK_THREADS, &b);
}

int tacho__put_triggers(struct tacho__output *o, const struct tacho_reader *reader,
			uint32_t process)
{
	uint32_t count = tacho_read_trigger_count(reader);
	struct tacho__bytes b = {0};

	array_begin(&b, sizeof(struct tacho_box_trigger));
	for (uint32_t i = 0; i < count; i++) {
		const struct tacho_trigger_info *t = tacho_read_trigger(reader, i);
		struct tacho_box_trigger entry = {0};

		if (!t || t->process != process)
			continue;
		entry.number = t->number;
		entry.tid = t->tid;
		entry.ticks = t->ns;
		entry.size = (uint32_t)strnlen(t->reason, TACHO_REASON_MAX);
		memcpy(entry.reason, t->reason, entry.size);
		entry.flags = tacho__sentinel_number(t->sentinel) << 8;
		entry.value = t->value;
		array_put(&b, &entry, sizeof(entry));
	}
	return tacho__output_bytes(o, TACHO_BLOCK_TRIGGERS, &b);
}

/* How far the crash handler came, from what there is. */
static uint32_t crash_state(const struct tacho_crash_info *c)
{
	if (c->frame_count || c->unwind_failed)
		return TACHO_CRASH_STACK_DONE;
	return c->reg_count ? TACHO_CRASH_REGS_DONE : TACHO_CRASH_BEGUN;
}

static void crash_entry(struct tacho_trace_crash *entry, const struct tacho_crash_info *c)
{
	struct tacho_box_crash *e = &entry->crash;

	memset(entry, 0, sizeof(*entry));
	strncpy(entry->said, c->said, sizeof(entry->said) - 1);
	*e = (struct tacho_box_crash){
		.state = crash_state(c),
		.tid = c->tid,
		.signal = c->signal,
		.code = c->code,
		.address = c->address,
		.ticks = c->ns,
		.regs = c->reg_count < TACHO_CRASH_REGS ? c->reg_count : TACHO_CRASH_REGS,
		.frames = c->frame_count < TACHO_CRASH_FRAMES ? c->frame_count : TACHO_CRASH_FRAMES,
		.arch = c->arch,
		.flags = (c->unwind_failed ? TACHO_CRASH_UNWIND_FAILED : 0) |
			 (c->survived ? TACHO_CRASH_SURVIVED : 0) | c->interrupted << 8,
	};
	strncpy(e->thread_name, c->thread_name, sizeof(e->thread_name) - 1);
	if (e->regs)
		memcpy(e->reg, c->regs, e->regs * sizeof(e->reg[0]));
	if (e->frames)
		memcpy(e->frame, c->frames, e->frames * sizeof(e->frame[0]));
}

int tacho__put_crashes(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process)
{
	uint32_t count = tacho_read_crash_count(reader);
	struct tacho__bytes b = {0};

	array_begin(&b, sizeof(struct tacho_trace_crash));
	for (uint32_t i = 0; i < count; i++) {
		const struct tacho_crash_info *c = tacho_read_crash(reader, i);
		struct tacho_trace_crash entry;

		if (!c || c->process != process)
			continue;
		crash_entry(&entry, c);
		array_put(&b, &entry, sizeof(entry));
	}
	return tacho__output_bytes(o, TACHO_BLOCK_CRASHES, &b);
}

/* -------------------------------------------------------------------- GAPS */

int tacho__put_array(struct tacho__output *o, enum tacho_block_type type, const void *entries,
		     size_t entry_size, uint32_t count)
{
	struct tacho__bytes b = {0};

	array_begin(&b, entry_size);
	for (uint32_t i = 0; i < count; i++)
		array_put(&b, (const char *)entries + i * entry_size, entry_size);
	return tacho__output_bytes(o, type, &b);
}

int tacho__put_gaps(struct tacho__output *o, const struct tacho_trace_gap *gaps, uint32_t count)
{
	if (!count)
		return o->error;
	return tacho__put_array(o, TACHO_BLOCK_GAPS, gaps, sizeof(*gaps), count);
}

static int compare_gaps(const void *va, const void *vb)
{
	const struct tacho_trace_gap *a = va, *b = vb;

	return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

int tacho__put_all_gaps(struct tacho__output *o, const struct tacho_reader *reader,
			const struct tacho__trace_options *options)
{
	uint32_t known = tacho_read_gap_count(reader), count = 0;
	struct tacho_trace_gap *all = calloc((size_t)known + options->gap_count + 1, sizeof(*all));

	if (!all)
		return tacho__output_no_memory(o);
	for (uint32_t i = 0; i < known; i++) {
		const struct tacho_gap *g = tacho_read_gap(reader, i);

		if (g->process == options->process)
			all[count++] =
				(struct tacho_trace_gap){g->from_ns, g->to_ns, g->records,
							 tacho__gap_reason(g->reason), g->error};
	}
	for (uint32_t i = 0; i < options->gap_count; i++)
		all[count++] = options->gaps[i];
	TACHO__SORT(all, count, compare_gaps);
	tacho__put_gaps(o, all, count);
	free(all);
	return o->error;
}

/* ------------------------------------------------------------------ ABSENT */

static void copy_cut(char *to, size_t size, const char *from)
{
	memcpy(to, from, strnlen(from, size - 1));
}

int tacho__put_absent(struct tacho__output *o, const struct tacho_reader *reader,
		      const struct tacho__trace_options *options)
{
	uint32_t known = tacho_read_absent_count(reader);
	struct tacho__bytes b = {0};

	if (!known && !options->absent_count)
		return o->error;
	array_begin(&b, sizeof(struct tacho_trace_absent));
	for (uint32_t i = 0; i < known; i++) {
		const struct tacho_absent *a = tacho_read_absent(reader, i);
		struct tacho_trace_absent entry = {.pid = a->pid,
						   .parent_pid = a->parent_pid,
						   .reason = tacho__absent_reason(a->reason),
						   .error = a->error,
						   .seen_ns = a->seen_ns};

		copy_cut(entry.comm, sizeof(entry.comm), a->comm);
		copy_cut(entry.exe, sizeof(entry.exe), a->exe);
		copy_cut(entry.said, sizeof(entry.said), a->said);
		array_put(&b, &entry, sizeof(entry));
	}
	for (uint32_t i = 0; i < options->absent_count; i++)
		array_put(&b, &options->absent[i], sizeof(options->absent[i]));
	return tacho__output_bytes(o, TACHO_BLOCK_ABSENT, &b);
}
