/* Foreign text: its characters, and which of them nobody may be shown as they are. */
#ifndef TACHO_BASE_UTF8_H
#define TACHO_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * The character at `text` (at most `size` bytes, size > 0): returns its bytes and its code
 * point, or 1 and -1 for a byte that begins no well-formed UTF-8.
 */
static inline size_t tacho__character(const char *text, size_t size, int32_t *code)
{
	static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *b = (const unsigned char *)text;
	size_t length = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	int32_t value = length < 2 ? b[0] : b[0] & (0x7f >> length);

	*code = -1;
	if (!length || length > size || b[0] > 0xf4)
		return 1;
	for (size_t i = 1; i < length; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 1;
		value = value << 6 | (b[i] & 0x3f);
	}
	if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 1;
	*code = value;
	return length;
}

/*
 * Whether it must not reach a terminal or a file for others as it is: no character (-1),
 * controls, and what changes the direction or the line of the text around it, or is no
 * character to XML.
 */
static inline int tacho__is_hostile(int32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code <= 0x9f))
		return 1;
	/* Direction marks, embeddings, overrides and isolates; line and paragraph separator. */
	return code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
	       code == 0xfeff || code == 0xfffe || code == 0xffff;
}

#endif
