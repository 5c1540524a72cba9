/* Expressions of --on: what is refused names a character of them, what is taken is in bounds. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sentinel.h"

#define FUZZ_CHECK(x)            \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

static void check(const struct tacho__sentinels *s)
{
	unsigned group = 0;

	FUZZ_CHECK(s->count <= TACHO__CONDITIONS_MAX);
	for (uint32_t i = 0; i < s->count; i++) {
		const struct tacho__condition *c = &s->conditions[i];

		FUZZ_CHECK(c->watched <= TACHO__WATCH_EXIT);
		FUZZ_CHECK(c->group == group || c->group == group + 1);
		FUZZ_CHECK(c->from < c->to && c->to <= strlen(s->text));
		FUZZ_CHECK(c->watched == TACHO__WATCH_EXIT ? c->limit <= 255 : c->limit > 0);
		group = c->group;
	}
}

/* The last eight bytes are a value, what is before them is a text, twice. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tacho__sentinels s = {0}, before;
	struct tacho__watch w = {0};
	char message[200], why[400];
	uint64_t value = 0;
	size_t at;
	char *text;

	if (size > 8) {
		size -= 8;
		memcpy(&value, data + size, 8);
	}
	text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = 0;
	for (int i = 0; i < 2; i++) {
		before = s;
		if (tacho__sentinels_add(&s, text, &at, message, sizeof(message))) {
			FUZZ_CHECK(message[0] && at <= strlen(text));
			FUZZ_CHECK(!memcmp(&s, &before, sizeof(s)));
		} else {
			FUZZ_CHECK(s.count > before.count);
		}
		check(&s);
	}
	for (unsigned i = 0; i <= TACHO__WATCH_EXIT; i++) {
		unsigned group = tacho__watch_value(&s, &w, (enum tacho__watched)i, value * i,
						    value, why, sizeof(why));

		FUZZ_CHECK(group <= s.count && !group == !why[0]);
		(void)tacho__sentinels_limit(&s, (enum tacho__watched)i);
	}
	free(text);
	return 0;
}
