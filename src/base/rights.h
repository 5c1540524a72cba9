/* With whose rights files are read that somebody else has named. */
#ifndef TACHO_BASE_RIGHTS_H
#define TACHO_BASE_RIGHTS_H

#include <stdint.h>

#define TACHO__NOBODY 65534u /* user and group */

struct tacho__rights {
	uint32_t uid, gid;
	uint64_t capabilities; /* that root may keep; others have none */
};

/* Takes from `r` what `other` has not. Of two users neither of whom is root, the first one stays. */
static inline void tacho__rights_lower(struct tacho__rights *r, const struct tacho__rights *other)
{
	if (r->uid == 0 && other->uid != 0) {
		r->uid = other->uid;
		r->gid = other->gid;
	}
	r->capabilities &= other->capabilities;
}

#endif
