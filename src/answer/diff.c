#include "answer/answer.h"

static void put_side(struct json *j, const char *key, const struct tacho__diff_side *s)
{
	json_put_object(j, key);
	json_put_u64(j, "count", s->ns.count);
	json_put_f64(j, "per_second", s->per_second);
	json_put_u64(j, "total_ns", s->ns.sum);
	if (!s->ns.count) {
		json_object_end(j);
		return;
	}
	json_put_f64_if(j, "median_ns", s->median > 0, s->median);
	json_put_u64(j, "p50_ns", tacho__hist_at(&s->ns, 0.5));
	json_put_u64(j, "p90_ns", tacho__hist_at(&s->ns, 0.9));
	json_put_u64(j, "p99_ns", tacho__hist_at(&s->ns, 0.99));
	json_put_u64(j, "max_ns", s->ns.most);
	json_object_end(j);
}

static void put_window(struct json *j, const char *key, uint64_t ns, uint64_t polls)
{
	json_put_object(j, key);
	json_put_u64(j, "window_ns", ns);
	json_put_u64(j, "polls", polls);
	json_object_end(j);
}

void answer_diff(struct json *j, const struct tacho__diff *d)
{
	json_object(j);
	json_put_u64(j, "version", 1);
	json_put_u64(j, "changed", d->changed);
	json_put_u64(j, "compared", d->compared);
	json_put_u64(j, "missed", d->missed);
	json_put_f64(j, "common", d->common);
	put_window(j, "a", d->a_ns, d->a_count);
	put_window(j, "b", d->b_ns, d->b_count);
	json_put_array(j, "rows");
	for (uint32_t i = 0; i < d->count; i++) {
		const struct tacho__diff_row *r = &d->rows[i];

		json_object(j);
		json_put_string(j, "name", r->name);
		json_put_string(j, "of", r->is_span ? "span" : "poll");
		json_put_string(j, "change", tacho__change_name(r->change));
		json_put_f64_if(j, "ratio", r->ratio > 0, r->ratio);
		json_put_f64_if(j, "chance", r->change <= TACHO__CHANGE_FASTER, r->chance);
		put_side(j, "a", &r->a);
		put_side(j, "b", &r->b);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}
