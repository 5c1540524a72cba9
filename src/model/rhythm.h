/*
 * When something came that comes again and again: how often, how evenly, and when last.
 *
 * What comes within a millisecond of the first is one beat: who wakes many tasks at once wakes them once.
 */
#ifndef TACHO_MODEL_RHYTHM_H
#define TACHO_MODEL_RHYTHM_H

#include <stdint.h>

struct tacho__rhythm {
	uint64_t beats;
	uint64_t first_ns, beat_ns;   /* the first; begin of the last beat */
	uint64_t gap_ns;	      /* from the beat before to the last */
	uint64_t before_ns, last_ns;  /* the last two that came */
	uint64_t longest_ns, next_ns; /* the longest two times between one and the next */
	double squares;		      /* of the times from beat to beat */
};

/* It came. Times that go back are not counted. */
void tacho__beat(struct tacho__rhythm *r, uint64_t ns);
/*
 * Without the last one, if that came after far longer than any before: what is silent for long and then comes
 * once more is most often ended then, as a connection that is closed.
 */
struct tacho__rhythm tacho__rhythm_without_end(const struct tacho__rhythm *r);
/* From one beat to the next, in the mean; 0: there are not two. */
double tacho__rhythm_pace(const struct tacho__rhythm *r);
/* Whether the times from beat to beat differ less than those of what comes by chance. */
int tacho__rhythm_is_steady(const struct tacho__rhythm *r);

#endif
