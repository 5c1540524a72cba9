/* The constants of judgement.def, where each stands with its reason. */
#ifndef TACHO_MODEL_JUDGEMENT_H
#define TACHO_MODEL_JUDGEMENT_H

#include <stdint.h>

#define TACHO__TYPE_NS uint64_t
#define TACHO__TYPE_COUNT uint64_t
#define TACHO__TYPE_SHARE double
#define TACHO__TYPE_TIMES double

#define CONSTANT(name, UNIT, value, reason, tests) extern const TACHO__TYPE_##UNIT tacho__##name;
#include "model/judgement.def"

#endif
