/*
 * How what is in this folder speaks: in whole sentences, to whoever started it. It prints nothing
 * itself.
 */
#ifndef TACHO_AGENT_VOICE_H
#define TACHO_AGENT_VOICE_H

enum tacho__said {
	TACHO__NOTE, /* what happened: files, ends */
	TACHO__WARNING,
	TACHO__ERROR,
};

struct tacho__voice {
	void (*say)(void *arg, enum tacho__said kind, const char *sentence);
	void *arg;
};

__attribute__((format(printf, 2, 3))) void tacho__note(const struct tacho__voice *v,
						       const char *format, ...);
__attribute__((format(printf, 2, 3))) void tacho__warn(const struct tacho__voice *v,
						       const char *format, ...);
__attribute__((format(printf, 2, 3))) void tacho__error(const struct tacho__voice *v,
							const char *format, ...);

#endif
