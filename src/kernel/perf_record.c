#include "kernel/perf_record.h"

#include <errno.h>
#include <string.h>

/* What is left of a record, in words of eight bytes. */
struct rest {
	const uint64_t *at;
	size_t words;
};

static int take(struct rest *r, uint64_t *out)
{
	if (!r->words)
		return -EBADMSG;
	*out = *r->at++;
	r->words--;
	return 0;
}

static int take_array(struct rest *r, uint64_t count, const uint64_t **out)
{
	if (count > r->words)
		return -EBADMSG;
	*out = r->at;
	r->at += count;
	r->words -= (size_t)count;
	return 0;
}

static int take_ids(struct rest *r, struct tacho__perf_record *out)
{
	uint64_t both;

	if (take(r, &both))
		return -EBADMSG;
	out->pid = (uint32_t)both;
	out->tid = (uint32_t)(both >> 32);
	return 0;
}

/* Frames of a callchain; numbers from PERF_CONTEXT_MAX on say whose frames follow. */
static void take_chain(struct tacho__perf_record *out, const uint64_t *ips, size_t count)
{
	size_t begin = 0;

	for (size_t i = 0; i <= count; i++) {
		uint64_t whose;

		if (i < count && ips[i] < (uint64_t)PERF_CONTEXT_MAX)
			continue;
		whose = begin ? ips[begin - 1] : 0;
		if (whose == (uint64_t)PERF_CONTEXT_KERNEL && !out->kernel) {
			out->kernel = ips + begin;
			out->kernel_count = (uint32_t)(i - begin);
		} else if (whose == (uint64_t)PERF_CONTEXT_USER && !out->user) {
			out->user = ips + begin;
			out->user_count = (uint32_t)(i - begin);
		}
		begin = i + 1;
	}
}

static int take_stack(struct rest *r, struct tacho__perf_record *out)
{
	const uint64_t *bytes;
	uint64_t size, there;

	if (take(r, &size))
		return -EBADMSG;
	if (!size)
		return 0;
	if (size % 8 || take_array(r, size / 8, &bytes) || take(r, &there) || there > size)
		return -EBADMSG;
	out->stack = (const uint8_t *)bytes;
	out->stack_size = (uint32_t)there;
	return 0;
}

static int take_sample(struct rest *r, struct tacho__perf_record *out)
{
	const uint64_t *ips;
	uint64_t count, abi;

	out->type = TACHO__PERF_SAMPLE;
	if (take_ids(r, out) || take(r, &out->ns) || take(r, &count) ||
	    take_array(r, count, &ips) || take(r, &abi))
		return -EBADMSG;
	take_chain(out, ips, (size_t)count);
	if (abi != PERF_SAMPLE_REGS_ABI_NONE && take_array(r, TACHO__PERF_REG_COUNT, &out->regs))
		return -EBADMSG;
	if (abi != PERF_SAMPLE_REGS_ABI_64)
		out->regs = NULL;
	return take_stack(r, out);
}

static int take_switch(struct rest *r, uint16_t misc, struct tacho__perf_record *out)
{
	bool left = misc & PERF_RECORD_MISC_SWITCH_OUT;

	out->type = left ? TACHO__PERF_SWITCH_OUT : TACHO__PERF_SWITCH_IN;
	out->preempted = left && misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	return take_ids(r, out) || take(r, &out->ns) ? -EBADMSG : 0;
}

/* { u32 pid, ppid; u32 tid, ptid; u64 time; } */
static int take_fork(struct rest *r, struct tacho__perf_record *out)
{
	uint64_t pids, tids;

	out->type = TACHO__PERF_FORK;
	if (take(r, &pids) || take(r, &tids) || take(r, &out->ns))
		return -EBADMSG;
	out->pid = (uint32_t)pids;
	out->tid = (uint32_t)tids;
	return 0;
}

static int take_lost(struct rest *r, struct tacho__perf_record *out)
{
	uint64_t id;

	out->type = TACHO__PERF_LOST;
	return take(r, &id) || take(r, &out->lost) ? -EBADMSG : 0;
}

int tacho__perf_parse(const void *data, size_t size, struct tacho__perf_record *out)
{
	struct perf_event_header head;
	struct rest r;

	*out = (struct tacho__perf_record){.type = TACHO__PERF_OTHER};
	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	if (head.size != size || size % 8)
		return -EBADMSG;
	r = (struct rest){(const uint64_t *)data + 1, size / 8 - 1};
	switch (head.type) {
	case PERF_RECORD_SAMPLE:
		return take_sample(&r, out);
	case PERF_RECORD_SWITCH:
		return take_switch(&r, head.misc, out);
	case PERF_RECORD_FORK:
		return take_fork(&r, out);
	case PERF_RECORD_LOST:
		return take_lost(&r, out);
	default:
		return 0;
	}
}
