/* One thing of a track, and the fact behind it, which is looked up in the trace again. */
#ifndef TACHO_PAGE_KNOWN_H
#define TACHO_PAGE_KNOWN_H

#include "engine.h"
#include "explain/blame.h"

#define KNOWN_FRAMES 512u
#define KNOWN_BEFORE_NS UINT64_C(200000000) /* what led to it is seldom longer ago */
#define KNOWN_READ 1e6 /* things: where so many are in that time, less of it is read */
#define KNOWN_LONG 4e6 /* what is so long that it has more things beside it is not looked up */

struct known {
	enum tacho__track_type type;
	uint32_t process, thread, what;
	uint64_t task, from_ns, to_ns;
	uint32_t holder; /* thread, of a lock that was held */
	uint32_t name;	 /* of its row */
	int found;	 /* the fact */
	union {
		struct tacho__poll poll;
		struct tacho__lock lock;
		struct tacho__call call;
		struct tacho__work work;
		struct tacho__span span;
		struct tacho__sample sample;
		struct tacho__switch off;
		struct tacho__hole hole;
		struct tacho__task task;
		struct tacho__turn turn;
	} fact;
	uint64_t frames[KNOWN_FRAMES]; /* of a sample */
};

/* 0: there is none. */
int known_at(struct known *t, uint32_t lane, uint32_t row, uint32_t index);
/* 0 or a negative errno; whether the fact was found is in the thing. */
int known_look(struct known *t);
/* Whether it is so short that what happened meanwhile can be read again. */
int known_is_short(const struct known *t);
/* So long before a thing is read with it: at most `most_ns`. */
uint64_t known_before_ns(uint64_t most_ns);

/* An array of places, the first `kernel` of them the kernel's. */
struct tacho__place;
void put_places(struct json *j, const char *key, const struct tacho__place *places, uint32_t count,
		uint32_t kernel);

#endif
