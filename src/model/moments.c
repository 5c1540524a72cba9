/* What has a time and no length: samples, values of counters, what a wait said to be ready, logs. */
#include "model/tracker.h"

/* word[0] of SAMPLE is ns; the variable ones have them in word[1], and frames from word[2]. */
void tacho__sampled(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	struct tacho__sample sample = {.ns = e->ns, .perf = e->type == TACHO_EV_KERNEL_SAMPLE};
	struct tacho__spent *spent = tacho__spent_of(s);

	tacho__at_of(s, &sample.at);
	if (e->type == TACHO_EV_SAMPLE) {
		sample.stack = e->arg;
		sample.cpu_ns = e->word[0];
	} else {
		sample.cpu_ns = e->word[1];
		sample.frames = e->word + 2;
		sample.count = e->words - 2;
		if (sample.perf)
			sample.kernel = e->arg < sample.count ? e->arg : sample.count;
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
