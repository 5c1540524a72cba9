/* What stands in the payload of an event. */
#include <errno.h>
#include <string.h>

#include "format/record.h"
#include "read/reader.h"

/* The table of tacho_events.h as data: an array of fields for each event, and how many these are. */
/* clang-format off */
#define EVENT(name, ...) }; static const struct tacho_event_field fields_##name[] = {
#define FIELD(name, field, at, role, what) \
	{#field, TACHO_EV_##name, TACHO_ROLE_##role, TACHO__AT_##at},
static const struct tacho_event_field no_fields[] __attribute__((unused)) = {{0}
	TACHO_EVENTS(EVENT, FIELD)
};
#undef EVENT
#undef FIELD

#define EVENT(name, number, text_name, words, state, text, what) \
	[number] = {text_name, text, fields_##name, sizeof(fields_##name) / sizeof(fields_##name[0]), words},
static const struct tacho_event_info infos[256] = {
	[TACHO_EV_RESUME] = {.name = "resume", .text = ""},
	TACHO_EVENTS(EVENT, TACHO__SKIP_FIELD)
};
#undef EVENT
/* clang-format on */

const struct tacho_event_info *tacho_read_event_info(unsigned type)
{
	return type < 256 && infos[type].name ? &infos[type] : NULL;
}

int tacho_read_frames(const struct tacho_event *event, struct tacho_frames *out)
{
	const struct tacho_event_info *info = tacho_read_event_info(event->type);
	struct tacho_frames answer = {0};
	int err;

	if (!info || event->words < info->words)
		return 0;
	for (uint32_t i = 0; i < info->field_count; i++) {
		const struct tacho_event_field *f = &info->fields[i];
		uint32_t first = (uint32_t)f->word;

		if (f->role == TACHO_ROLE_FRAMES) {
			answer.frames = event->word + first;
			answer.count = event->words - first;
		} else if (f->role == TACHO_ROLE_KERNEL_FRAMES) {
			answer.kernel = (uint32_t)tacho_read_value(event, f);
		} else if (f->role == TACHO_ROLE_CUT) {
			answer.cut = tacho_read_value(event, f) != 0;
		}
	}
	if (!answer.frames)
		return 0;
	if (answer.kernel > answer.count)
		answer.kernel = answer.count;
	err = TACHO__ANSWER(out, &answer, count);
	return err ? err : 1;
}

#define TEXT_CUT (1u << 15)

int tacho_read_text(const struct tacho_event *event, const char **text, size_t *size, int *cut)
{
	uint64_t data;
	size_t bytes;

	if (event->type != TACHO_EV_LOG || !event->words)
		return -EINVAL;
	data = TACHO_GET(event, LOG, text);
	bytes = data & (TEXT_CUT - 1);
	if (bytes > (event->words - 1) * sizeof(uint64_t))
		return -EBADMSG;
	*text = (const char *)(event->word + 1);
	*size = bytes;
	*cut = (data & TEXT_CUT) != 0;
	return 0;
}

/* Words of the field that begins at word `at`, or 0 if it does not fit the event. */
static uint32_t field_words(const struct tacho_event *event, uint32_t at, uint8_t type)
{
	uint32_t words = 1;

	if (at >= event->words)
		return 0;
	if (type == TACHO_FIELD_STRING)
		words += (uint32_t)((event->word[at] & (TEXT_CUT - 1)) + 7) / 8;
	return words <= event->words - at ? words : 0;
}

static struct tacho_field_value value_at(const uint64_t *word, uint8_t type)
{
	struct tacho_field_value value = {.type = type};

	switch (type) {
	case TACHO_FIELD_F64:
		memcpy(&value.number.f64, word, sizeof(value.number.f64));
		break;
	case TACHO_FIELD_BOOL:
		value.number.u64 = *word != 0;
		break;
	case TACHO_FIELD_STRING:
		value.text = (const char *)(word + 1);
		value.text_size = *word & (TEXT_CUT - 1);
		value.cut = (*word & TEXT_CUT) != 0;
		break;
	default:
		value.number.u64 = *word;
		break;
	}
	return value;
}

int tacho_read_field(const struct tacho_reader *reader, const struct tacho_event *event,
		     uint32_t index, struct tacho_field_value *value)
{
	const struct tacho_definition *schema;
	struct tacho_field_value answer;
	uint64_t present;
	uint32_t at = 1;
	int err;

	if (event->type != TACHO_EV_EVENT || !event->words)
		return -EINVAL;
	schema = tacho_read_definition(reader, event->process, event->arg);
	if (!schema || schema->def_class != TACHO_DEF_SCHEMA)
		return -ENOENT;
	if (index >= schema->count)
		return -EINVAL;
	present = TACHO_GET(event, EVENT, fields);
	if (!(present >> index & 1))
		return 0;
	for (uint32_t i = 0; i <= index; i++) {
		uint32_t words;

		if (!(present >> i & 1))
			continue;
		words = field_words(event, at, schema->fields[i].type);
		if (!words)
			return -EBADMSG;
		if (i < index)
			at += words;
	}
	answer = value_at(event->word + at, schema->fields[index].type);
	err = TACHO__ANSWER(value, &answer, number);
	return err ? err : 1;
}
