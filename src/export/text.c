#include "export/text.h"

#include <string.h>

#include "base/utf8.h"

void tacho__clean_n(char *out, size_t size, const char *text, size_t text_size)
{
	static const char digits[] = "0123456789abcdef", more[] = "...";
	const unsigned char *b = (const unsigned char *)text;
	size_t at = 0, used = 0;

	/* There is always room for the dots. */
	while (at < text_size && used + 4 + sizeof(more) <= size) {
		int32_t code;
		size_t length = tacho__character(text + at, text_size - at, &code);

		if (!tacho__is_hostile(code)) {
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
