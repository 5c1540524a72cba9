#include "agent/voice.h"

#include <stdarg.h>
#include <stdio.h>

#include "text/text.h"

__attribute__((format(printf, 3, 0))) static void
say(const struct tacho__voice *v, enum tacho__said kind, const char *format, va_list args)
{
	char sentence[TEXT_SENTENCE];

	vsnprintf(sentence, sizeof(sentence), format, args);
	v->say(v->arg, kind, sentence);
}

void tacho__note(const struct tacho__voice *v, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(v, TACHO__NOTE, format, args);
	va_end(args);
}

void tacho__warn(const struct tacho__voice *v, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(v, TACHO__WARNING, format, args);
	va_end(args);
}

void tacho__error(const struct tacho__voice *v, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(v, TACHO__ERROR, format, args);
	va_end(args);
}
