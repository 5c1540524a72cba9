/* Rules, thresholds and categories as C has them: rules.def and model/judgement.def. */
#ifndef TACHO_EXPLAIN_RULE_H
#define TACHO_EXPLAIN_RULE_H

#include <stdint.h>

enum tacho__category {
#define CATEGORY(NAME, name, what) TACHO__CATEGORY_##NAME,
#include "explain/rules.def"
	TACHO__CATEGORY_COUNT
};

/* What rules look at; bit i of a set is input i. */
enum tacho__input {
#define INPUT(NAME, what, by, absent) TACHO__INPUT_##NAME,
#include "explain/rules.def"
	TACHO__INPUT_COUNT
};

enum tacho__rule_id {
#define RULE(NAME, ...) TACHO__RULE_##NAME,
#include "explain/rules.def"
	TACHO__RULE_COUNT
};

enum tacho__limit_id {
#define THRESHOLD(NAME, ...) TACHO__LIMIT_##NAME,
#include "model/judgement.def"
	TACHO__LIMIT_COUNT
};

enum tacho__unit {
	TACHO__UNIT_NS,
	TACHO__UNIT_PERCENT,
	TACHO__UNIT_COUNT,
	TACHO__UNIT_PER_SECOND,
};

enum tacho__rests {
	TACHO__RESTS_AS_RULE, /* of a finding: as all of its rule */
#define RESTS(NAME, what) TACHO__RESTS_ON_##NAME,
#include "explain/rules.def"
};

/* A number that a rule compares with; `tacho report --threshold NAME=VALUE`. */
struct tacho__threshold {
	const char *name; /* such as "waiting.share" */
	enum tacho__unit unit;
	const char *text; /* what it means */
	double value;	  /* the default */
};

/* Which findings come first, and which explain others. */
struct tacho__order {
	uint8_t first;	   /* when critical, before all others: largest first */
	uint8_t explains;  /* 1: symptoms of the same loop or process */
	uint8_t explained; /* 0: by nothing; else what is ranked before it may */
};

struct tacho__rule {
	const char *id;	   /* stable, such as "long-callback" */
	const char *title; /* for people */
	enum tacho__category category;
	struct tacho__order order;
	enum tacho__rests rests; /* unless a finding says otherwise */
	uint32_t needs, helps;	 /* sets of inputs: without one it does not look, or finds less */
	uint64_t limits;	 /* set of thresholds */
	const char *finds;	 /* one line */
	const char *advice;	 /* of the usual case */
};

extern const struct tacho__threshold tacho__thresholds[TACHO__LIMIT_COUNT];
/* Behind a number: " %", "/s" or nothing. */
const char *tacho__unit_text(enum tacho__unit unit);
extern const struct tacho__rule tacho__rules[TACHO__RULE_COUNT];
extern const char *const tacho__category_names[TACHO__CATEGORY_COUNT];
/* "CPU samples"; and what is said where it is missing: "": its absence is no gap. */
extern const char *const tacho__input_names[TACHO__INPUT_COUNT];
extern const char *const tacho__input_absent[TACHO__INPUT_COUNT];

#endif
