#include "model/place.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/language.h"

const char *tacho__base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

int tacho__is_tachos(const char *module, const char *file)
{
	static const char *const libraries[] = {"libtacho.so", "libtacho-preload.so",
						"libtacho-preload-musl.so",
						"libtacho-testpoints.so"};
	const char *name = tacho__base_name(module);

	for (uint32_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (strncmp(name, libraries[i], strlen(libraries[i])) == 0)
			return 1;
	return strcmp(tacho__base_name(file), "tacho.h") == 0;
}

static uint32_t put_address(const struct tacho_reader *reader, uint32_t process, uint64_t address,
			    int is_return, uint64_t ns, struct tacho__place *out, uint32_t most)
{
	uint64_t at = is_return ? address - 1 : address;
	const struct tacho_definition *m = tacho_read_module_at(reader, process, at, ns);
	uint64_t offset = m ? address - m->start + m->offset : 0;
	const struct tacho_symbol *symbol;
	uint32_t n = 0, i = 0;

	if (tacho__is_tachos(m ? m->name : "", ""))
		return 0;
	for (; n < most && (symbol = tacho_read_symbol(reader, process, at, ns, i)); i++) {
		if (tacho__is_tachos("", symbol->file))
			continue;
		out[n++] = (struct tacho__place){
			.function = symbol->function,
			.file = symbol->file,
			.module = m ? m->name : "",
			.line = symbol->line,
			.inlined = 1,
			.address = address,
			.offset = offset,
		};
	}
	if (n)
		out[n - 1].inlined = 0;
	if (!i && most)
		out[n++] = (struct tacho__place){.function = "",
						 .file = "",
						 .module = m ? m->name : "",
						 .address = address,
						 .offset = offset};
	return n;
}

uint32_t tacho__places_of_frames(const struct tacho_reader *reader, uint32_t process,
				 const uint64_t *frames, uint32_t count, int exact, uint64_t ns,
				 struct tacho__place *out, uint32_t most)
{
	uint32_t n = 0, scripts = 0;

	for (uint32_t i = 0; i < count && n < most; i++)
		n += put_address(reader, process, frames[i], i > 0 || !exact, ns, out + n,
				 most - n);
	for (uint32_t i = 0; i < n; i++)
		scripts += tacho__place_is_script(&out[i]) ? 1 : 0;
	for (uint32_t i = 0; scripts && i < n; i++)
		out[i].runs_script = tacho__language_of(out[i].module, out[i].function) != NULL;
	return n;
}

uint32_t tacho__places_of_id(const struct tacho_reader *reader, uint32_t process, uint32_t id,
			     uint64_t ns, struct tacho__place *out, uint32_t most)
{
	const struct tacho_definition *d = id ? tacho_read_definition(reader, process, id) : NULL;

	if (!d || !most)
		return 0;
	if (d->def_class == TACHO_DEF_STACK)
		return tacho__places_of_frames(reader, process, d->frames, d->count, d->exact != 0,
					       ns, out, most);
	if (d->value && (d->def_class == TACHO_DEF_KIND || d->def_class == TACHO_DEF_PLACE) &&
	    !d->file[0])
		return put_address(reader, process, d->value, d->def_class == TACHO_DEF_PLACE, ns,
				   out, most);
	if (!d->name[0] && !d->file[0])
		return 0;
	*out = (struct tacho__place){
		.function = d->name, .file = d->file, .module = "", .line = d->line};
	return 1;
}

int tacho__place_of_kind(const struct tacho_reader *reader, uint32_t process, uint32_t id,
			 uint64_t ns, struct tacho__place *place)
{
	const struct tacho_definition *d = id ? tacho_read_definition(reader, process, id) : NULL;

	return d && d->def_class == TACHO_DEF_KIND && d->value && !d->file[0] &&
	       tacho__places_of_id(reader, process, id, ns, place, 1);
}

void tacho__name_of(char *out, size_t size, const struct tacho_reader *reader, uint32_t process,
		    uint32_t id, uint64_t ns)
{
	const struct tacho_definition *d = id ? tacho_read_definition(reader, process, id) : NULL;
	struct tacho__place place;
	char function[256];

	if (!id)
		out[0] = 0;
	else if (!d)
		snprintf(out, size, "#%" PRIu32, id);
	else if (tacho__place_of_kind(reader, process, id, ns, &place) &&
		 (place.function[0] || place.module[0]))
		snprintf(out, size, "%s: %s", d->name,
			 tacho__place_name(function, sizeof(function), &place));
	else
		snprintf(out, size, "%s", d->name[0] ? d->name : "(no name)");
}

#define NAME_LONG 80u /* characters of a name from which on templates are shown without arguments */

/* Names of files that begin so hold code that the program only calls. */
static const char *const others[] = {
	"libc.so",	"libc-",	"libpthread",  "ld-linux",     "ld-musl",
	"libuv.so",	"libevent",	"libtacho",    "linux-vdso",   "[vdso]",
	"libm.so",	"librt.so",	"libdl.so",    "libresolv.so", "libnss_",
	"libstdc++.so", "libgcc_s.so.", "liburing.so", "[library]", /* of an imported trace */
};

/*
 * Rust's standard library, Tokio, and what these wait with are in most programs. Without debug
 * information the name tells: "<alloc::boxed::Box<F> as core::ops::FnOnce<A>>::call_once" is alloc's,
 * "<T as tokio::task::Poll>::poll", which says nothing of T, tokio's, "<u64>::pow" core's.
 */
static int is_rusts(const char *function, const char *file)
{
	static const char *const crates[] = {
		"std::",
		"core::",
		"alloc::",
		"tokio::",
		"mio::",
		"parking_lot::",
		"parking_lot_core::",
		"lock_api::",
		"futures_core::",
		"futures_util::",
		"tokio_util::",
		"tacho::",
		"tacho_tokio::",
	};
	const char *at = function + strspn(function, "<&*[("), *as = strstr(at, " as ");
	const char *end = as ? as : strchr(at, '>');
	size_t n = strlen(file);

	if (n && (n < 3 || strcmp(file + n - 3, ".rs") != 0))
		return 0;
	if (strstr(file, "library/core/src/") || strstr(file, "library/std/src/") ||
	    strstr(file, "library/alloc/src/"))
		return 1;
	if (at > function && end && !memchr(at, ':', (size_t)(end - at))) {
		if (!as)
			return 1;
		at = as + strlen(" as ");
	}
	at += strncmp(at, "mut ", 4) == 0 || strncmp(at, "dyn ", 4) == 0 ? 4 : 0;
	for (uint32_t i = 0; i < sizeof(crates) / sizeof(crates[0]); i++)
		if (strncmp(at, crates[i], strlen(crates[i])) == 0)
			return 1;
	return 0;
}

int tacho__place_is_own(const struct tacho__place *place)
{
	const char *name = tacho__base_name(place->module);

	if (place->runs_script)
		return 0;
	/* Some programs have libuv in them. */
	if (strncmp(place->function, "uv__", 4) == 0 || strstr(place->file, "/uv/src/"))
		return 0;
	/* Templates of the C++ library, such as a guard of a lock, are in the program. */
	if (strstr(place->file, "/include/") && strstr(place->file, "/c++/"))
		return 0;
	if (is_rusts(place->function, place->file))
		return 0;
	for (uint32_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strncmp(name, others[i], strlen(others[i])) == 0)
			return 0;
	/* A name without a module was given by the program itself. */
	return name[0] || place->function[0];
}

uint32_t tacho__places_own(const struct tacho__place *places, uint32_t count)
{
	uint32_t i = 0;

	while (i < count && !tacho__place_is_own(&places[i]))
		i++;
	return i;
}

/* Whether `part`, which is in lower case, is in the text. */
static int has(const char *text, const char *part)
{
	size_t n = strlen(part);

	for (; *text; text++) {
		size_t i = 0;

		while (i < n && tolower((unsigned char)text[i]) == part[i])
			i++;
		if (i == n)
			return 1;
	}
	return 0;
}

int tacho__places_of_lock(const struct tacho__place *places, uint32_t count)
{
	int lock = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (has(places[i].function, "condvar"))
			return 0;
		lock |= has(places[i].function, "mutex") || has(places[i].function, "rwlock");
	}
	return lock;
}

struct tacho__place tacho__places_best(const struct tacho__place *places, uint32_t count)
{
	static const struct tacho__place nowhere = {.function = "", .file = "", .module = ""};
	uint32_t own = tacho__places_own(places, count);

	return count ? places[own < count ? own : 0] : nowhere;
}

const char *tacho__place_file(const struct tacho__place *place)
{
	return tacho__base_name(place->file);
}

/* How many characters the name of an operator has here, which may be of brackets; 0: there is none. */
static size_t operator_at(const char *name)
{
	static const char word[] = "operator";
	size_t n = sizeof(word) - 1;

	return strncmp(name, word, n) == 0 ? n + strspn(name + n, "<>=-") : 0;
}

/* The arguments of a template follow its name; types of Rust in brackets follow none. */
static int has_arguments(char before)
{
	return isalnum((unsigned char)before) || before == '_' || before == ')';
}

const char *tacho__short_name(char *out, size_t size, const char *name)
{
	size_t n = 0, depth = 0, step = 0;
	char before = 0;

	if (strlen(name) <= NAME_LONG) {
		snprintf(out, size, "%s", name);
		return out;
	}
	for (; *name && n + sizeof("...>") < size; name += step) {
		size_t is_operator = operator_at(name);
		int opens = !is_operator && *name == '<' && (depth || has_arguments(before));

		step = is_operator ? is_operator : 1;
		if (depth && !is_operator && *name == '>' && before != '-')
			depth--;
		for (size_t i = 0; !depth && i < step && n + 1 < size; i++)
			out[n++] = name[i];
		if (opens && !depth++) {
			memcpy(out + n, "...", 3);
			n += 3;
		}
		before = name[step - 1];
	}
	out[n] = 0;
	return out;
}

const char *tacho__place_name(char *out, size_t size, const struct tacho__place *p)
{
	if (p->function[0])
		tacho__short_name(out, size, p->function);
	else if (p->module[0])
		snprintf(out, size, "%s+0x%" PRIx64, tacho__base_name(p->module), p->offset);
	else
		snprintf(out, size, "0x%" PRIx64, p->address);
	return out;
}
