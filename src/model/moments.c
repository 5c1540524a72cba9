/* What has a time and no length: samples, values of counters, what a wait said to be ready, logs. */
#include "model/tracker.h"

void tacho__sampled(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	struct tacho__sample sample = {.ns = e->ns, .perf = e->type == TACHO_EV_KERNEL_SAMPLE};
	struct tacho_frames carried = {.size = sizeof(carried)};
	struct tacho__spent *spent = tacho__spent_of(s);

	tacho__at_of(s, &sample.at);
	if (e->type == TACHO_EV_SAMPLE) {
		sample.stack = (uint32_t)TACHO_GET(e, SAMPLE, at);
		sample.cpu_ns = TACHO_GET(e, SAMPLE, cpu_ns);
	} else if (tacho_read_frames(e, &carried) > 0) {
		sample.cpu_ns = TACHO_GET(e, SAMPLE_FRAMES, cpu_ns);
		sample.frames = carried.frames;
		sample.count = carried.count;
		sample.kernel = carried.kernel;
	}
	if (sample.perf)
		s->perf = 1;
	/* Two samplers of one thread tell the same time. */
	if (spent && sample.perf == s->perf) {
		spent->sample_ns += sample.cpu_ns;
		spent->samples++;
	}
	TACHO__GIVE(t, sample, &sample);
}

void tacho__counter_set(struct tacho__tracker *t, struct tacho__thread *s,
			const struct tacho_event *e)
{
	struct tacho__counter c = {
		.ns = e->ns,
		.name = e->arg,
		.value = e->word[0],
		.depth = e->type == TACHO_EV_QUEUE_DEPTH,
	};

	tacho__at_of(s, &c.at);
	TACHO__GIVE(t, counter, &c);
}

void tacho__got_ready(struct tacho__tracker *t, struct tacho__thread *s,
		      const struct tacho_event *e)
{
	struct tacho__ready r = {.ns = e->ns, .events = e->arg, .what = e->word[0]};

	tacho__at_of(s, &r.at);
	TACHO__GIVE(t, ready, &r);
}

void tacho__other(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	struct tacho__at at;

	tacho__at_of(s, &at);
	TACHO__GIVE(t, other, &at, e);
}
