#include "model/rhythm.h"

#include "model/judgement.h"

void tacho__beat(struct tacho__rhythm *r, uint64_t ns)
{
	uint64_t silent;

	if (!r->beats) {
		r->beats = 1;
		r->first_ns = r->beat_ns = r->before_ns = r->last_ns = ns;
		return;
	}
	if (ns <= r->last_ns)
		return;
	silent = ns - r->last_ns;
	if (silent > r->longest_ns) {
		r->next_ns = r->longest_ns;
		r->longest_ns = silent;
	} else if (silent > r->next_ns) {
		r->next_ns = silent;
	}
	r->before_ns = r->last_ns;
	r->last_ns = ns;
	if (ns - r->beat_ns < tacho__kept_waiting_ns)
		return;
	r->beats++;
	r->gap_ns = ns - r->beat_ns;
	r->beat_ns = ns;
	r->squares += (double)r->gap_ns * (double)r->gap_ns;
}

struct tacho__rhythm tacho__rhythm_without_end(const struct tacho__rhythm *r)
{
	struct tacho__rhythm w = *r;

	if (r->beats < 2 || r->beat_ns != r->last_ns ||
	    r->last_ns - r->before_ns != r->longest_ns ||
	    (double)r->longest_ns < tacho__silent_times * (double)r->next_ns)
		return w;
	w.beats--;
	w.beat_ns -= r->gap_ns;
	w.squares -= (double)r->gap_ns * (double)r->gap_ns;
	w.last_ns = r->before_ns;
	w.longest_ns = r->next_ns;
	return w;
}

double tacho__rhythm_pace(const struct tacho__rhythm *r)
{
	return r->beats > 1 ? (double)(r->beat_ns - r->first_ns) / (double)(r->beats - 1) : 0;
}

int tacho__rhythm_is_steady(const struct tacho__rhythm *r)
{
	double pace = tacho__rhythm_pace(r), most = tacho__steady_spread * pace;

	return pace > 0 && r->squares / (double)(r->beats - 1) - pace * pace <= most * most;
}
