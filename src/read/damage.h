/*
 * How much of the input cannot be read. Ask once all events were read: that is when damaged blocks
 * are found.
 */
#ifndef TACHO_READ_DAMAGE_H
#define TACHO_READ_DAMAGE_H

#include <stdint.h>

struct tacho_reader;

struct tacho__damage {
	uint32_t places; /* of the input that cannot be read; 0: it is whole */
	uint8_t is_cut;	 /* the end of the file is not there */
	uint8_t is_box;
	uint8_t is_uncounted; /* nobody knows how many records one of these places held */
	uint8_t lacks_facts;  /* one of them held, or may have held, something else than records */
	/* Records before the first that can be read of a stream, or after the last. Of those between
	   TACHO_EV_RESUME tells. */
	uint64_t lost;
	uint64_t dropped; /* records that found no room after the last that did, of a thread */
	uint64_t bytes, lost_bytes; /* of the files */
};

/* Of the process; UINT32_MAX: of all, and of what cannot be told whose it was. That is nobody's where there
   are several processes: each has parts of its own in a file. */
void tacho__read_damage(const struct tacho_reader *reader, uint32_t process,
			struct tacho__damage *out);

#endif
