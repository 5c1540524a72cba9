#include "export/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/place.h"

/* Bytes of the well-formed character at `b`, 0 if there is none; *code is its number. */
static size_t character(const unsigned char *b, size_t size, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	uint32_t value = length < 2 ? b[0] : b[0] & (0x7fu >> length);

	if (length > size || b[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (b[i] & 0x3f);
	}
	if (length > 1 &&
	    (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)))
		return 0;
	*code = value;
	return length;
}

static int is_hostile(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff || (code & 0xfffe) == 0xfffe;
}

void tacho__clean_n(char *out, size_t size, const char *text, size_t text_size)
{
	static const char digits[] = "0123456789abcdef", more[] = "...";
	const unsigned char *b = (const unsigned char *)text;
	size_t at = 0, used = 0;

	/* There is always room for the dots. */
	while (at < text_size && used + 4 + sizeof(more) <= size) {
		uint32_t code = 0;
		size_t length = character(b + at, text_size - at, &code);

		if (length && !is_hostile(code)) {
			memcpy(out + used, text + at, length);
			used += length;
			at += length;
			continue;
		}
		out[used++] = '\\';
		out[used++] = 'x';
		out[used++] = digits[b[at] >> 4];
		out[used++] = digits[b[at] & 15];
		at++;
	}
	if (at < text_size) {
		memcpy(out + used, more, sizeof(more) - 1);
		used += sizeof(more) - 1;
	}
	out[used] = 0;
}

void tacho__clean(char *out, size_t size, const char *text)
{
	tacho__clean_n(out, size, text, strlen(text));
}

const char *tacho__thread_name(const struct tacho_reader *reader, uint32_t process, uint32_t thread)
{
	const struct tacho_thread *t = tacho_read_thread_by_number(reader, process, thread);
	const struct tacho_process *p = tacho_read_process(reader, process);

	if (t && t->name[0])
		return t->name;
	return p && p->comm[0] ? p->comm : "(not known)";
}

const char *tacho__base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}
