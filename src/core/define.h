/* Definitions: putting names, schemas, stacks and modules into the box, once each. */
#ifndef TACHO_CORE_DEFINE_H
#define TACHO_CORE_DEFINE_H

#include <stdint.h>

#include "core/recorder.h"

/*
 * The id of the definition with this class and payload; makes it if it is new.
 * TACHO_ID_FULL when no more fit. Lock-free, async-signal-safe.
 */
uint32_t tacho__define_payload(enum tacho_definition_class class, unsigned flags,
			       const void *payload, uint32_t size);

/*
 * The same for a stack. Programs have more stacks than names, and definitions are never
 * forgotten: 0 when it is new and those there are take half of the room.
 */
uint32_t tacho__define_stack(unsigned flags, const void *payload, uint32_t size);

/* A NAME-shaped definition; texts may be NULL. */
uint32_t tacho__define_name(enum tacho_definition_class class, const char *text, const char *file,
			    uint32_t line, uint64_t value, uint8_t detail, const char *unit);

/* Begins the definitions of a new box with those of the box at `before`, if not NULL. */
void tacho__define_init(const uint8_t *before);

#endif
