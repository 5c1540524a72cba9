#include "explain/rule.h"

#include "model/language.h"

#define IN(NAME) (UINT32_C(1) << TACHO__INPUT_##NAME)
#define L(NAME) (UINT64_C(1) << TACHO__LIMIT_##NAME)

/* Each threshold and each input is some rule's. */
#define RULE(NAME, id, title, category, order, rests, needs, helps, limits, ...) | (limits)
_Static_assert((UINT64_C(0)
#include "explain/rules.def"
			) == ~UINT64_C(0) >> (64 - TACHO__LIMIT_COUNT),
	       "a threshold that no rule compares with");
#define RULE(NAME, id, title, category, order, rests, needs, helps, ...) | (needs) | (helps)
_Static_assert((UINT32_C(0)
#include "explain/rules.def"
			) == ~UINT32_C(0) >> (32 - TACHO__INPUT_COUNT),
	       "an input that no rule looks at");

#define ORDER(first, explains, explained)  \
	{                                  \
		first, explains, explained \
	}
#define RULE(NAME, id, title, category, order, rests, needs, helps, limits, finds, advice) \
	[TACHO__RULE_##NAME] = {id,                                                        \
				title,                                                     \
				TACHO__CATEGORY_##category,                                \
				order,                                                     \
				TACHO__RESTS_ON_##rests,                                   \
				needs,                                                     \
				helps,                                                     \
				limits,                                                    \
				finds,                                                     \
				advice},
const struct tacho__rule tacho__rules[TACHO__RULE_COUNT] = {
#include "explain/rules.def"
};

#define CATEGORY(NAME, name, what) [TACHO__CATEGORY_##NAME] = name,
const char *const tacho__category_names[TACHO__CATEGORY_COUNT] = {
#include "explain/rules.def"
};

#define INPUT(NAME, what, by, absent) [TACHO__INPUT_##NAME] = what,
const char *const tacho__input_names[TACHO__INPUT_COUNT] = {
#include "explain/rules.def"
};
#define INPUT(NAME, what, by, absent) [TACHO__INPUT_##NAME] = absent,
const char *const tacho__input_absent[TACHO__INPUT_COUNT] = {
#include "explain/rules.def"
};

#define THRESHOLD(NAME, name, unit, value, what) \
	[TACHO__LIMIT_##NAME] = {name, TACHO__UNIT_##unit, what, value},
const struct tacho__threshold tacho__thresholds[TACHO__LIMIT_COUNT] = {
#include "model/judgement.def"
};

const char *tacho__unit_text(enum tacho__unit unit)
{
	return unit == TACHO__UNIT_PERCENT ? " %" : unit == TACHO__UNIT_PER_SECOND ? "/s" : "";
}
