/* Values of dial9 as text. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "import/dial9_wire.h"

/* Texts that end at their first zero byte: none is in them. */
static void put_bytes(struct tacho__text *t, const uint8_t *bytes, size_t size)
{
	while (size) {
		const uint8_t *zero = memchr(bytes, 0, size);
		size_t n = zero ? (size_t)(zero - bytes) : size;

		tacho__text_put_n(t, (const char *)bytes, n);
		if (!zero || t->cut)
			return;
		bytes += n + 1;
		size -= n + 1;
	}
}

static void put_hex(struct tacho__text *t, const uint8_t *bytes, uint32_t count, unsigned unit)
{
	char one[24];

	for (uint32_t i = 0; i < count && !t->cut; i++) {
		uint64_t n = 0;

		memcpy(&n, bytes + (size_t)i * unit, unit);
		if (unit == 1)
			snprintf(one, sizeof(one), "%02" PRIx64, n);
		else
			snprintf(one, sizeof(one), "%s0x%" PRIx64, i ? " " : "", n);
		tacho__text_put(t, one);
	}
}

static void put_value(const struct tacho__dial9_wire *w, const struct tacho__dial9_value *v,
		      unsigned depth, struct tacho__text *t);

static void put_container(const struct tacho__dial9_wire *w, const struct tacho__dial9_value *v,
			  unsigned depth, struct tacho__text *t)
{
	struct tacho__dial9_wire inside = {
		.data = v->bytes, .size = v->size, .strings = w->strings, .stacks = w->stacks};
	int map = v->type != TACHO__DIAL9_LIST;
	struct tacho__dial9_value one;
	uint32_t count = 0;

	memcpy(&count, inside.data, sizeof(count));
	inside.at = sizeof(count);
	tacho__text_put(t, map ? "{" : "[");
	for (uint64_t i = 0; i < (uint64_t)count * (map ? 2 : 1) && !t->cut; i++) {
		uint8_t type = v->type == TACHO__DIAL9_STRING_MAP ? TACHO__DIAL9_STRING
								  : inside.data[inside.at++];

		if (tacho__dial9_take(&inside, type, depth + 1, &one))
			return;
		if (i)
			tacho__text_put(t, map && i % 2 ? ": " : ", ");
		put_value(w, &one, depth + 1, t);
	}
	tacho__text_put(t, map ? "}" : "]");
}

static void put_number(const struct tacho__dial9_value *v, struct tacho__text *t)
{
	char number[40];
	double f;

	switch (v->type) {
	case TACHO__DIAL9_I64:
		snprintf(number, sizeof(number), "%" PRId64, (int64_t)v->number);
		break;
	case TACHO__DIAL9_F64:
		memcpy(&f, &v->number, sizeof(f));
		snprintf(number, sizeof(number), "%.17g", f);
		break;
	case TACHO__DIAL9_BOOL:
		snprintf(number, sizeof(number), "%s", v->number ? "true" : "false");
		break;
	default:
		snprintf(number, sizeof(number), "%" PRIu64, v->number);
	}
	tacho__text_put(t, number);
}

static void put_value(const struct tacho__dial9_wire *w, const struct tacho__dial9_value *v,
		      unsigned depth, struct tacho__text *t)
{
	if (!v->there) {
		tacho__text_put(t, v->type == TACHO__DIAL9_POOLED_STRING ? "(text not in the file)"
									 : "null");
		return;
	}
	switch (v->type) {
	case TACHO__DIAL9_STRING:
	case TACHO__DIAL9_POOLED_STRING:
		put_bytes(t, v->bytes, v->size);
		break;
	case TACHO__DIAL9_BYTES:
		put_hex(t, v->bytes, v->size, 1);
		break;
	case TACHO__DIAL9_STACK:
	case TACHO__DIAL9_POOLED_STACK:
		put_hex(t, v->bytes, v->size, 8);
		break;
	case TACHO__DIAL9_STRING_MAP:
	case TACHO__DIAL9_LIST:
	case TACHO__DIAL9_MAP:
		put_container(w, v, depth, t);
		break;
	default:
		put_number(v, t);
	}
}

void tacho__dial9_text(const struct tacho__dial9_wire *w, const struct tacho__dial9_value *v,
		       char *text, size_t size)
{
	struct tacho__text t;

	tacho__text_init(&t, text, size);
	put_value(w, v, 0, &t);
}

static int next_text(const struct tacho__dial9_value *v, size_t *at, char *text, size_t room)
{
	struct tacho__text t;
	uint32_t size;

	if (v->size - *at < sizeof(size))
		return 0;
	memcpy(&size, v->bytes + *at, sizeof(size));
	*at += sizeof(size);
	if (v->size - *at < size)
		return 0;
	tacho__text_init(&t, text, room);
	put_bytes(&t, v->bytes + *at, size);
	*at += size;
	return 1;
}

int tacho__dial9_entry(const struct tacho__dial9_value *v, size_t *at, char *key, size_t key_size,
		       char *value, size_t value_size)
{
	if (!v->there || v->type != TACHO__DIAL9_STRING_MAP)
		return 0;
	if (!*at)
		*at = sizeof(uint32_t);
	return *at <= v->size && next_text(v, at, key, key_size) &&
	       next_text(v, at, value, value_size);
}
