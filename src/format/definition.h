/*
 * Definitions: what the ids in records mean.
 *
 * A definition has an id (1..TACHO_ARG_MAX, unique in its box), a class, and a
 * payload that depends on the class. The same payload bytes stand in the box
 * (box.h, definition directory and data) and in the trace file (trace.h, block
 * DEFINITIONS). All integers little-endian, nothing aligned: use the offsets.
 *
 * NAME-shaped classes (TEXT, KIND, LOOP, SPAN, COUNTER, GAUGE, PLACE, DESCRIPTOR):
 *
 *   0  u64  value   LOOP: number that tells two loops of one name apart, 0 with
 *                   the name "connections": of threads that serve a client each;
 *                   TEXT: the loop that listens at the address that it is, or 0;
 *                   KIND: address of its function or 0; PLACE: return address
 *                   of a call that was made there or 0; COUNTER, GAUGE:
 *                   definition of the place or stack that begins what it
 *                   counts, or 0; DESCRIPTOR: what READY has for it, its
 *                   name says what it is; else 0
 *   8  u32  line    0: not given
 *   12 u16  name bytes
 *   14 u16  file bytes
 *   16 u8   detail  LOOP: enum tacho_level; COUNTER, GAUGE: enum
 *                   tacho_value_type; else 0
 *   17 u8   unit bytes (COUNTER, GAUGE; else 0)
 *   18      name, file, unit: UTF-8 by intention, any bytes in fact
 *
 * SCHEMA:
 *
 *   0  u16  name bytes
 *   2  u16  fields (at most TACHO_SCHEMA_FIELDS)
 *   4       name; then per field: u8 type | optional << 7, u8 name bytes, name
 *
 *   Field values in a TACHO_REC_EVENT record, in order, absent ones left out:
 *   U64, I64, F64 one word; BOOL one word, 0 or 1; STRING one word (bytes |
 *   cut << 15), then the bytes, padded with zeros to whole words.
 *
 * STACK:   u64 program counters, innermost first; flag CUT when there were more. All are
 * return addresses, but with flag EXACT the first is where the thread was interrupted.
 *
 * MODULE:
 *
 *   0  u64  start, 8 u64 end, 16 u64 file offset, 24 u64 ticks at which it was
 *   seen, 32 u8 build-id bytes (at most 20), 33 u8 zero, 34 u16 path bytes,
 *   36 build-id, path. A later module replaces an earlier one where they overlap.
 */
#ifndef TACHO_FORMAT_DEFINITION_H
#define TACHO_FORMAT_DEFINITION_H

#include "tacho_values.h"

#define TACHO_NAME_MAX 255u /* bytes of a name or file kept; longer ones are cut */
#define TACHO_UNIT_MAX 31u
#define TACHO_STACK_MAX 64u /* frames */
#define TACHO_SCHEMA_FIELDS 16u
#define TACHO_BUILD_ID_MAX 20u
#define TACHO_MODULE_PATH_MAX 511u
#define TACHO_DEF_PAYLOAD_MAX 1024u /* all of the above fit */
#define TACHO_TEXT_MAX 512u	    /* bytes of a string field or a log text kept */

#define TACHO_NAME_HEAD 18u
#define TACHO_SCHEMA_HEAD 4u
#define TACHO_MODULE_HEAD 36u

/* The one definition that every box has: what is used when no more fit. */
#define TACHO_ID_FULL 1u
#define TACHO_ID_FULL_TEXT "(names full)"

/* The gauge of the hooks that says on how many CPUs a thread may run. */
#define TACHO_GAUGE_CPUS "CPUs allowed"

/* The loop of all threads that serve one client each, with number 0 and TACHO_LEVEL_WAITS. */
#define TACHO_CLIENTS "connections"

#define TACHO_DEF_CUT 1u   /* flag: a string or stack was longer */
#define TACHO_DEF_EXACT 2u /* flag: the first frame was interrupted, and is no return address */

#endif
