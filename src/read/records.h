/*
 * Decoded records of one stretch of one stream: what a chunk of a box, a CHUNK
 * block and an EVENTS block all become. The unit of loading, of merging and of
 * writing trace files.
 */
#ifndef TACHO_READ_RECORDS_H
#define TACHO_READ_RECORDS_H

#include <stdint.h>

#include "base/rights.h"
#include "format/trace.h"

/*
 * How many events a file can hold. Columns in which all values are the same take no bytes, and zstd and
 * gzip pack the rest: a few hundred bytes can claim a million events. A recording has about one event for
 * each byte that is stored, because times differ. So there are at most TACHO__EVENTS_PER_BYTE of them for
 * each byte, and TACHO__EVENTS_FREE more, since traces of tests are as regular as that.
 */
#define TACHO__EVENTS_PER_BYTE 64u
#define TACHO__EVENTS_FREE (4u << 20)

struct tacho_reader;

struct tacho__records {
	struct tacho_trace_events head; /* count, first_ns and last_ns say what is below */
	struct tacho_open
		open[TACHO_OPEN_MAX]; /* head.open_listed of them; since in ns, 0 unknown */
	uint64_t *ns;		      /* of each record, never decreasing */
	uint32_t *type_arg;	      /* type | arg << 8 */
	uint32_t *word_at; /* index into words of the record's payload; count + 1 entries */
	uint64_t *words;
	uint32_t capacity; /* of ns, type_arg; word_at has one more */
	uint32_t words_capacity;
};

/* Makes room for `count` records with `words` payload words in all; -ENOMEM. */
int tacho__records_reserve(struct tacho__records *r, uint32_t count, uint32_t words);
void tacho__records_free(struct tacho__records *r);

/*
 * Appends one record. Room must have been reserved.
 */
static inline void tacho__records_put(struct tacho__records *r, uint64_t ns, uint32_t type_arg,
				      const uint64_t *words, uint32_t n)
{
	uint32_t i = r->head.count;
	uint32_t at = r->word_at[i];

	r->ns[i] = ns;
	r->type_arg[i] = type_arg;
	for (uint32_t k = 0; k < n; k++)
		r->words[at + k] = words[k];
	r->word_at[i + 1] = at + n;
	r->head.count = i + 1;
}

/* Appends those of `more`, which go on where `r` ends. Room must have been reserved. */
void tacho__records_append(struct tacho__records *r, const struct tacho__records *more);

/* The stretches that an open reader knows, sorted by process, thread, stream and
   sequence. Loading one may find it damaged (-EBADMSG, and a problem is noted). */
struct tacho__stretch {
	uint32_t process, thread;
	uint16_t stream;
	uint32_t sequence;
	uint64_t first_ns, last_ns; /* bounds; exact once loaded */
};
uint32_t tacho__stretch_count(const struct tacho_reader *reader);
const struct tacho__stretch *tacho__stretch_at(const struct tacho_reader *reader, uint32_t index);
int tacho__stretch_load(struct tacho_reader *reader, uint32_t index, struct tacho__records *out);

/*
 * Other limits than those that the reader was opened with, which are forgotten; both in ns, 0: none.
 * Reading begins anew. What is opened once is a live box of one moment, however many parts of it
 * are looked at. 0 or a negative errno, after which the reader can only be closed.
 */
int tacho__read_limit(struct tacho_reader *reader, uint64_t from_ns, uint64_t to_ns);

/* With whose rights files are read that the process names: of whoever owns what tells of it, and not
   more than is known that the process had. `path`: of a box, or NULL. */
struct tacho__rights tacho__read_rights(const struct tacho_reader *reader, uint32_t process,
					const char **path);
/* It is known that its processes had not more. */
void tacho__read_lower(struct tacho_reader *reader, const struct tacho__rights *rights);

/* Whether the thread, 0: any of the process, has records after what the reader is limited to. */
int tacho__read_goes_on(const struct tacho_reader *reader, uint32_t process, uint32_t thread);
/* When the last record is; the window may go on after it. 0: there is none. */
uint64_t tacho__read_last_ns(const struct tacho_reader *reader);
/* From now on only events of that process are read, and the window is theirs; UINT32_MAX: of all
   again. Reading begins anew. */
void tacho__read_only(struct tacho_reader *reader, uint32_t process);

/* What a name that the reader gave stands for: enum tacho_gap_reason, enum tacho_sentinel + 1.
   0: nothing; of "unknown": a number that stays unknown. */
uint32_t tacho__gap_reason(const char *name);
uint32_t tacho__absent_reason(const char *name);
uint32_t tacho__sentinel_number(const char *name);

/* An entry of ABSENT as the reader tells it; its texts must be ended, and outlive `out`. */
struct tacho_absent;
struct tacho_trace_absent;
void tacho__absent_tell(struct tacho_absent *out, const struct tacho_trace_absent *a);

#endif
