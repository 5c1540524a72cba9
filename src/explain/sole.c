#include "explain/sole.h"

#include <string.h>

#define LOOPS 256u

static uint64_t loop_key(uint32_t process, uint32_t loop)
{
	return (uint64_t)process << 32 | loop;
}

void tacho__soles_init(struct tacho__table *soles)
{
	tacho__table_init(soles, sizeof(struct tacho__sole), LOOPS);
}

void tacho__soles_ready(struct tacho__table *soles, const struct tacho__ready *r, int *error)
{
	struct tacho__sole *s =
		tacho__table_get(soles, loop_key(r->at.process, r->at.loop), r->at.thread, error);

	if (!s)
		return;
	s->ready = s->now_ns == r->ns ? s->ready + 1 : 1;
	s->now_ns = r->ns;
	s->now = r->what;
}

void tacho__soles_sample(struct tacho__table *soles, const struct tacho__at *at,
			 const struct tacho__sampled *what)
{
	struct tacho__sole *s =
		tacho__table_find(soles, loop_key(at->process, at->loop), at->thread);

	if (!s || s->ready != 1 || !s->votes_ns || s->now != s->what || s->sampled_ns == s->now_ns)
		return;
	s->sampled_ns = s->now_ns;
	tacho__samples_pick(&s->samples, what);
}

/* Who has more than half of the time is left in the end, whoever else there is (Boyer and Moore). */
static void vote(struct tacho__sole *s, uint64_t ns)
{
	if (s->now == s->what) {
		s->votes_ns += ns;
	} else if (s->votes_ns >= ns) {
		s->votes_ns -= ns;
	} else {
		s->what = s->now;
		s->votes_ns = ns - s->votes_ns;
		memset(&s->samples, 0, sizeof(s->samples));
	}
}

void tacho__soles_turn(struct tacho__table *soles, const struct tacho__turn *u)
{
	struct tacho__sole *s = tacho__table_find(soles, loop_key(u->process, u->loop), u->thread);

	if (!s)
		return;
	if (s->ready == 1 && s->now_ns >= u->begin_ns)
		vote(s, u->end_ns - u->begin_ns);
	s->ready = 0;
}

const struct tacho__samples *tacho__soles_of(const struct tacho__table *soles, uint32_t process,
					     uint32_t loop, uint32_t thread, uint64_t what)
{
	const struct tacho__sole *s = tacho__table_find(soles, loop_key(process, loop), thread);

	return s && s->votes_ns && s->what == what ? &s->samples : NULL;
}
