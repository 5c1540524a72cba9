/* Poll threshold: polls shorter than it are counted instead of recorded. */
#ifndef TACHO_CORE_SHORT_POLLS_H
#define TACHO_CORE_SHORT_POLLS_H

#include <stdint.h>

#include "core/recorder.h"

extern uint64_t tacho__threshold_ticks; /* 0: every poll is recorded */

/* The ticks at which it was, or 0. */
uint64_t tacho__short_poll_begin(uint32_t kind, uint64_t task, uintptr_t frame);
uint64_t tacho__short_poll_switch(uint32_t kind, uint64_t task, uintptr_t frame);
uint64_t tacho__short_poll_end(uint32_t result, uintptr_t frame);

/* Records what the thread has counted so far and, with `keep` 0, gives its histograms back. */
void tacho__short_polls_flush(struct tacho__writer *w, int keep);

/* Sets the threshold in ticks; takes some milliseconds the first time, to know their rate. */
void tacho__short_polls_start(uint64_t threshold_ns);

#endif
