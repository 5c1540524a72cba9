#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARK, UNPARK, WAKE, BEGIN, COUNT, EVENT, RELEASE, SPAN, LOG, SPAN_END, END, DEFINE };

#define NAMES_MAX 1024u
#define COUNT_MARK (1ull << 62)
#define TEXT_ROOM 200u

TACHO_EVENT(victim_event, (u64, code), (u64, check), (string, text), (opt_i64, odd))

static struct tacho_name loops[] = {TACHO_LOOP("loop-0"), TACHO_LOOP("loop-1"),
				    TACHO_LOOP("loop-2"), TACHO_LOOP("loop-3")};
static struct tacho_name kinds[] = {TACHO_KIND("kind-0"), TACHO_KIND("kind-1"),
				    TACHO_KIND("kind-2"), TACHO_KIND("kind-3")};
static struct tacho_name spans[] = {TACHO_SPAN_NAME("span-0"), TACHO_SPAN_NAME("span-1"),
				    TACHO_SPAN_NAME("span-2"), TACHO_SPAN_NAME("span-3")};
static struct tacho_name counter = TACHO_COUNTER("counter", "things");
static struct tacho_name place = TACHO_PLACE("place");

static struct tacho_name made[NAMES_MAX];
static char made_text[NAMES_MAX][24];
static uint32_t made_count = 1;

void pattern_init(uint32_t names)
{
	static const struct tacho_name empty = TACHO_COUNTER(NULL, "steps");

	made_count = names && names <= NAMES_MAX ? names : 1;
	for (uint32_t i = 0; i < made_count; i++) {
		snprintf(made_text[i], sizeof(made_text[i]), "made-%u", i);
		made[i] = empty;
		made[i].text = made_text[i];
	}
}

static uint64_t code_of(uint32_t sequence, uint64_t n)
{
	return (uint64_t)sequence << 40 | n;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint32_t made_at(uint32_t sequence, uint64_t n)
{
	return (uint32_t)((sequence * 37u + n / PATTERN_LENGTH) % made_count);
}

static size_t text_of(uint64_t n, char *text)
{
	size_t size = (size_t)(n * 7 % 181);

	for (size_t i = 0; i < size; i++)
		text[i] = (char)('a' + (i + n) % 26);
	text[size] = 0;
	return size;
}

static void put_event(uint64_t code, uint64_t n)
{
	char text[TEXT_ROOM];
	int64_t odd = (int64_t)~code;

	text_of(n, text);
	tacho_event_victim_event(code, mix(code), text, n / PATTERN_LENGTH & 1 ? &odd : NULL);
}

static void put_log(uint64_t code)
{
	char text[48];

	snprintf(text, sizeof(text), "log %llu", (unsigned long long)code);
	tacho_log(3, text);
}

void pattern_put(uint32_t sequence, uint64_t n)
{
	uint64_t code = code_of(sequence, n);
	uint64_t round = n / PATTERN_LENGTH;

	if (!PATTERN_IS_MAIN(sequence)) {
		tacho_wake(code);
		return;
	}
	switch (n % PATTERN_LENGTH) {
	case PARK:
		tacho_park(&loops[sequence / 3 % 4]);
		break;
	case UNPARK:
		tacho_unpark(&loops[sequence / 3 % 4], (uint32_t)(round & 0xfffff));
		break;
	case WAKE:
		tacho_wake(code);
		break;
	case BEGIN:
		tacho_poll_begin(&kinds[round % 4], code);
		break;
	case COUNT:
		tacho_counter(&counter, (int64_t)(code | COUNT_MARK));
		break;
	case EVENT:
		put_event(code, n);
		break;
	case RELEASE:
		tacho_lock_release((const void *)(uintptr_t)code, mix(code), &place);
		break;
	case SPAN:
		tacho_span_begin(&spans[round % 4]);
		break;
	case LOG:
		put_log(code);
		break;
	case SPAN_END:
		tacho_span_end(&spans[round % 4]);
		break;
	case END:
		tacho_poll_end(round % 3);
		break;
	default:
		tacho_counter(&made[made_at(sequence, n)], (int64_t)code);
		break;
	}
}

/* ---------------------------------------------------------------- checking */

static int log_code(const struct tacho_event *event, uint64_t *code)
{
	const char *text;
	char copy[48] = "";
	size_t size;
	char *end;
	int cut;

	if (tacho_read_text(event, &text, &size, &cut) || cut || size < 5 || size >= sizeof(copy))
		return 0;
	memcpy(copy, text, size);
	if (memcmp(copy, "log ", 4))
		return 0;
	*code = strtoull(copy + 4, &end, 10);
	return !*end;
}

static int event_code(const struct tacho_reader *reader, const struct tacho_event *event,
		      uint64_t *code)
{
	switch (event->type) {
	case TACHO_EV_WAKE:
	case TACHO_EV_POLL_BEGIN:
	case TACHO_EV_COUNTER:
	case TACHO_EV_LOCK_RELEASE:
		*code = event->word[0];
		return 1;
	case TACHO_EV_EVENT:
		/* The first field; by its place, as the schema may be missing in a cut file. */
		(void)reader;
		*code = event->words > 1 ? event->word[1] : 0;
		return event->words > 1;
	case TACHO_EV_LOG:
		return log_code(event, code);
	default:
		return 0;
	}
}

int pattern_tells(const struct tacho_reader *reader, const struct tacho_event *event,
		  uint32_t *sequence, uint64_t *n)
{
	uint64_t code;

	if (!event_code(reader, event, &code))
		return 0;
	code &= ~COUNT_MARK;
	*sequence = (uint32_t)(code >> 40);
	*n = code & ((1ull << 40) - 1);
	return 1;
}

/* Whether the definition behind the event's argument has this class and name. */
static int named(const struct tacho_reader *reader, const struct tacho_event *event, unsigned class,
		 const char *name)
{
	const struct tacho_definition *d =
		tacho_read_definition(reader, event->process, event->arg);

	return d && d->def_class == class && !strcmp(d->name, name);
}

static const char *event_differs(const struct tacho_reader *reader, const struct tacho_event *event,
				 uint64_t code, uint64_t n)
{
	struct tacho_field_value v[4];
	char text[TEXT_ROOM];
	size_t size = text_of(n, text);
	int odd = n / PATTERN_LENGTH & 1;

	for (uint32_t i = 0; i < 4; i++) {
		v[i].size = sizeof(v[i]);
		if (tacho_read_field(reader, event, i, &v[i]) != (i < 3 || odd))
			return "an event with other fields";
	}
	if (v[0].number.u64 != code || v[1].number.u64 != mix(code) || v[2].text_size != size ||
	    memcmp(v[2].text, text, size) || (odd && v[3].number.u64 != ~code))
		return "an event with other values";
	return NULL;
}

struct expected {
	uint8_t type;
	unsigned class; /* of the definition in arg; 0: arg itself */
	const char *name;
	uint32_t arg;
	uint32_t words;
};

static struct expected expect(uint32_t sequence, uint64_t n)
{
	uint64_t round = n / PATTERN_LENGTH;
	uint32_t four = (uint32_t)(round % 4);

	switch (n % PATTERN_LENGTH) {
	case PARK:
		return (struct expected){TACHO_EV_PARK, TACHO_DEF_LOOP,
					 loops[sequence / 3 % 4].text, 0, 0};
	case UNPARK:
		return (struct expected){TACHO_EV_UNPARK, .arg = (uint32_t)(round & 0xfffff)};
	case WAKE:
		return (struct expected){TACHO_EV_WAKE, .words = 1};
	case BEGIN:
		return (struct expected){TACHO_EV_POLL_BEGIN, TACHO_DEF_KIND, kinds[four].text, 0,
					 1};
	case COUNT:
		return (struct expected){TACHO_EV_COUNTER, TACHO_DEF_COUNTER, "counter", 0, 1};
	case EVENT:
		return (struct expected){TACHO_EV_EVENT, TACHO_DEF_SCHEMA, "victim_event", 0, 0};
	case RELEASE:
		return (struct expected){TACHO_EV_LOCK_RELEASE, TACHO_DEF_PLACE, "place", 0, 2};
	case SPAN:
		return (struct expected){TACHO_EV_SPAN_BEGIN, TACHO_DEF_SPAN, spans[four].text, 0,
					 0};
	case LOG:
		return (struct expected){TACHO_EV_LOG, .arg = 3};
	case SPAN_END:
		return (struct expected){TACHO_EV_SPAN_END, TACHO_DEF_SPAN, spans[four].text, 0, 0};
	case END:
		return (struct expected){TACHO_EV_POLL_END, .arg = (uint32_t)(round % 3)};
	default:
		return (struct expected){TACHO_EV_COUNTER, TACHO_DEF_COUNTER,
					 made_text[made_at(sequence, n)], 0, 1};
	}
}

const char *pattern_differs(const struct tacho_reader *reader, const struct tacho_event *event,
			    uint32_t sequence, uint64_t n, int names)
{
	struct expected e = {TACHO_EV_WAKE, .words = 1};
	uint64_t code = code_of(sequence, n), told;

	if (PATTERN_IS_MAIN(sequence))
		e = expect(sequence, n);
	if (event->type != e.type)
		return "a record of another type";
	if (e.words && event->words != e.words)
		return "a record of another size";
	if (!e.class && event->arg != e.arg)
		return "a record with another argument";
	if (PATTERN_IS_MAIN(sequence) && n % PATTERN_LENGTH == COUNT)
		code |= COUNT_MARK;
	if (event_code(reader, event, &told) && told != code)
		return "a record with another number";
	if (event->type == TACHO_EV_LOCK_RELEASE && event->word[1] != mix(code))
		return "a record with another second word";
	if (!names)
		return NULL;
	if (e.class && !named(reader, event, e.class, e.name))
		return "a record whose name does not resolve to what it was";
	return event->type == TACHO_EV_EVENT ? event_differs(reader, event, code, n) : NULL;
}
