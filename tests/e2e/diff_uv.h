/* What the two files of diff_uv share. */
#ifndef DIFF_UV_H
#define DIFF_UV_H

#include <uv.h>

/* Rounds of a callback: `rounds`, and more if it is the one that was made slower. */
unsigned slowed(const char *callback, unsigned rounds);
void compute(unsigned rounds);
void other_start(uv_loop_t *loop);

#endif
