/*
 * Frames of interpreters and of what compiles while the program runs: they stand for functions of
 * a script, whose names only the language knows. Some languages tell them in a perf map, which
 * makes frames without a module (src/symbols/resolve.c).
 */
#ifndef TACHO_MODEL_LANGUAGE_H
#define TACHO_MODEL_LANGUAGE_H

#include <stddef.h>

#include "model/place.h"

struct tacho__language;

/* The language whose interpreter or runtime the code is part of: by its file, and where it is linked
   into a program, by its function. NULL: none that is known. */
const struct tacho__language *tacho__language_of(const char *module, const char *function);
const char *tacho__language_name(const struct tacho__language *l);
/* 1: `tacho run --names` shows its functions; 0: nothing that is set from outside does, or not in
   this version, which `module` says. */
int tacho__language_has_names(const struct tacho__language *l, const char *module);
/* What a person can do to see its functions, as the end of a sentence. */
const char *tacho__language_how(const struct tacho__language *l, const char *module);

/* Whether a wait with this stack, innermost first, is one for the lock of an interpreter (Python's GIL). */
int tacho__places_of_interpreter_lock(const struct tacho__place *places, uint32_t count);

/* Whether a place is a function that a perf map named. */
int tacho__place_is_script(const struct tacho__place *place);

/* The name without the mark by which V8 says how it has compiled a function: "JS:~f" and "JS:*f" are one. */
const char *tacho__script_function(const char *function);

/* A thread of Tokio, by the name that it has unless the program chose one. */
int tacho__is_tokio(const char *thread_name);
/* What its crate would add to what is seen from outside, as the end of a sentence. */
#define TACHO__TOKIO_HOW                                                                           \
	("with the crate tacho-tokio in the program its tasks are recorded: polls, wakes and who " \
	 "woke them, and where they were spawned")

/* "These frames are those of Python: ...": what to do to see the functions of the script
   instead. `out` is "" when no place is an interpreter's, or one is a script's. */
#define TACHO__LANGUAGE_TEXT 320u
const char *tacho__language_advice(char out[TACHO__LANGUAGE_TEXT],
				   const struct tacho__place *places, uint32_t count);

#endif
