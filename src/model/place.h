/*
 * Where in the code something is: from addresses, stacks and definitions of a trace to functions,
 * files and lines.
 */
#ifndef TACHO_MODEL_PLACE_H
#define TACHO_MODEL_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "tacho_read.h"

struct tacho__place {
	const char *function; /* "": not known */
	const char *file;     /* "": not known */
	const char *module;   /* path; "": not known */
	uint32_t line;	      /* 0: not known */
	uint32_t inlined;     /* 1: its code is part of the function that follows */
	uint32_t runs_script; /* 1: an interpreter's, where the stack has functions of a script */
	uint64_t address;     /* 0: only a name is known */
	uint64_t offset;      /* of the address in the module's file, if the module is known */
};

/* What follows the last slash of a path. */
const char *tacho__base_name(const char *path);

/*
 * Whether code is tacho's: of the recorder's libraries, by the module, or of what tacho.h puts into
 * the program, by the file. What calls through hooks and thunks has them in its stack; who reads
 * stacks wants the program's. `tacho cat` shows what was recorded, these included.
 */
int tacho__is_tachos(const char *module, const char *file);

/* Most frames that a stack becomes, functions that were inlined included. */
#define TACHO__PLACES_MAX 256u

/*
 * All functions of a stack but tacho's, innermost first. `exact`: the first address is that of an
 * instruction, not a return address. Returns how many.
 */
uint32_t tacho__places_of_frames(const struct tacho_reader *reader, uint32_t process,
				 const uint64_t *frames, uint32_t count, int exact, uint64_t ns,
				 struct tacho__place *out, uint32_t most);
/* The same for a definition: a stack, or a place or kind with an address or a file. */
uint32_t tacho__places_of_id(const struct tacho_reader *reader, uint32_t process, uint32_t id,
			     uint64_t ns, struct tacho__place *out, uint32_t most);

/* The function of a callback: kinds of the hooks are called by what they are of ("uv_timer") and
   have its address. 0: it is no such kind, or nothing is known of the address. */
int tacho__place_of_kind(const struct tacho_reader *reader, uint32_t process, uint32_t id,
			 uint64_t ns, struct tacho__place *place);
/* What a definition is called: "uv_timer: on_tick" when it is such a kind, "uv_timer: server+0x1f30"
   when its function has no name. "#7": the trace does not say; "" for 0. */
void tacho__name_of(char *out, size_t size, const struct tacho_reader *reader, uint32_t process,
		    uint32_t id, uint64_t ns);

/*
 * Whether it is code of the program: not of libc and its kin, the dynamic linker, the vdso,
 * libuv, libevent, or what runs a script. Without symbols the module says it.
 */
int tacho__place_is_own(const struct tacho__place *place);
/* Index of the innermost place that is the program's own; `count` when none is. */
uint32_t tacho__places_own(const struct tacho__place *places, uint32_t count);
/* Whether functions of a library, those inside of the program's own, wait for a lock: of Rust, of
   parking_lot, of tasks; by their names. */
int tacho__places_of_lock(const struct tacho__place *places, uint32_t count);
/* That one, else the innermost; without any, one of which nothing is known. */
struct tacho__place tacho__places_best(const struct tacho__place *places, uint32_t count);

/* The file without its folders; "" when not known. */
const char *tacho__place_file(const struct tacho__place *place);
/* The name of a function for people: of a long one, without the arguments of its templates. */
const char *tacho__short_name(char *out, size_t size, const char *name);
/* What stands for its function: the short name, else "server+0x1f30", which is the same in the next run,
   else the address. */
const char *tacho__place_name(char *out, size_t size, const struct tacho__place *place);

#endif
