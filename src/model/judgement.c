#include "model/judgement.h"

#define CONSTANT(name, UNIT, value, reason, tests) \
	const TACHO__TYPE_##UNIT tacho__##name = (TACHO__TYPE_##UNIT)(value);
#include "model/judgement.def"
