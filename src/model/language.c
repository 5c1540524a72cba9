#include "model/language.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 4u

struct tacho__language {
	const char *name;
	const char *modules[NAMES];   /* beginnings of names of files */
	const char *functions[NAMES]; /* beginnings of names of functions */
	const char *how;	      /* what a person can do */
	int names;		      /* 1: `tacho run --names` does it */
};

#define WITH_NAMES "record with 'tacho run --names', or start it with "

static const struct tacho__language languages[] = {
	{"Python",
	 {"python3", "python2", "libpython3", "libpython2"},
	 {"_PyEval_", "PyEval_EvalFrame"},
	 WITH_NAMES "python3 -X perf, to see the functions of the script",
	 1},
	{"node",
	 {"node", "nodejs", "libnode"},
	 {"Builtins_"},
	 WITH_NAMES
	 "node --perf-basic-prof-only-functions --interpreted-frames-native-stack, to see the "
	 "functions of the script",
	 1},
	{"Java",
	 {"libjvm"},
	 {"JavaCalls::call"},
	 "start it with java -XX:+UnlockDiagnosticVMOptions -XX:+PreserveFramePointer "
	 "-XX:+DumpPerfMapAtExit (17 or later) to see those of its methods that are compiled",
	 0},
	{"Ruby",
	 {"ruby", "libruby"},
	 {"rb_vm_exec", "vm_exec_core"},
	 "start it with ruby --yjit --yjit-perf (3.3 or later) to see those of its methods that "
	 "are compiled",
	 0},
	{"Perl",
	 {"perl", "libperl"},
	 {"Perl_runops_"},
	 "a profiler of its own, such as Devel::NYTProf, shows the functions of the script",
	 0},
	{"PHP",
	 {"php", "libphp"},
	 {"zend_execute", "execute_ex"},
	 "a profiler of its own, such as Excimer, shows the functions of the script",
	 0},
	{"Lua",
	 {"lua", "luajit", "liblua", "libluajit"},
	 {"luaV_execute", "lj_BC_"},
	 "a profiler of its own, such as LuaJIT's -jp, shows the functions of the script",
	 0},
};

/* What follows is a version or the end: node_exporter is not node. */
static int is_module(const char *name, const char *beginning)
{
	size_t n = strlen(beginning);

	return strncmp(name, beginning, n) == 0 && !isalpha((unsigned char)name[n]) &&
	       name[n] != '_';
}

static int is_of(const struct tacho__language *l, const char *module, const char *function)
{
	for (unsigned i = 0; i < NAMES; i++)
		if ((l->modules[i] && is_module(module, l->modules[i])) ||
		    (l->functions[i] &&
		     strncmp(function, l->functions[i], strlen(l->functions[i])) == 0))
			return 1;
	return 0;
}

const struct tacho__language *tacho__language_of(const char *module, const char *function)
{
	const char *name = tacho__base_name(module);

	/* Modules of Python's own library. */
	if (strstr(module, "/lib-dynload/"))
		return &languages[0];
	for (unsigned i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
		if (is_of(&languages[i], name, function))
			return &languages[i];
	return NULL;
}

static int begins(const char *name, const char *beginning)
{
	return strncmp(name, beginning, strlen(beginning)) == 0;
}

/* Whether a frame may be between the interpreter and its wait for its lock: libc's, the recorder's, or one of its
   own that nothing but its file is known of. */
static int is_inside(const struct tacho__place *p, const struct tacho__place *interpreter)
{
	const char *file = tacho__base_name(p->module);

	if (begins(file, "libc.") || begins(file, "libpthread") || begins(file, "ld-") ||
	    tacho__is_tachos(p->module, ""))
		return 1;
	return strcmp(p->module, interpreter->module) == 0 &&
	       (!p->function[0] || begins(p->function, "PyCOND_") ||
		begins(p->function, "take_gil"));
}

/* The functions that take Python's lock have no names in a stripped program; those that call them are
   exported. Waits for other things come through others of its functions, or through modules. */
int tacho__places_of_interpreter_lock(const struct tacho__place *places, uint32_t count)
{
	static const char *const takes[] = {
		"take_gil",	     "PyEval_RestoreThread", "PyEval_AcquireThread",
		"PyGILState_Ensure", "_PyEval_EvalFrame",    "_PyThreadState_Attach"};
	uint32_t at = 0;
	int is_taken = 0;

	while (at < count && !begins(places[at].function, "_Py") &&
	       !begins(places[at].function, "take_gil") &&
	       (!begins(places[at].function, "Py") || begins(places[at].function, "PyCOND_")))
		at++;
	for (unsigned k = 0; at < count && k < sizeof(takes) / sizeof(takes[0]); k++)
		is_taken |= begins(places[at].function, takes[k]);
	for (uint32_t i = 0; is_taken && i < at; i++)
		is_taken = is_inside(&places[i], &places[at]);
	return is_taken;
}

const char *tacho__language_name(const struct tacho__language *l)
{
	return l->name;
}

/* Of /usr/bin/python3.11, libpython3.11.so.1.0 and /usr/lib/python3.11/lib-dynload/x.so: 11; -1: the
   path does not say. */
static int python_minor(const char *module)
{
	const char *at = strstr(module, "python3.");

	return at && isdigit((unsigned char)at[8]) ? atoi(at + 8) : -1;
}

int tacho__language_has_names(const struct tacho__language *l, const char *module)
{
	int minor = l == &languages[0] ? python_minor(module) : -1;

	return l->names && (minor < 0 || minor >= 12);
}

const char *tacho__language_how(const struct tacho__language *l, const char *module)
{
	if (!l->names || tacho__language_has_names(l, module))
		return l->how;
	return "functions of a script have names from Python 3.12 on: run it with that, and record "
	       "with 'tacho run --names'";
}

int tacho__place_is_script(const struct tacho__place *p)
{
	int is_kernel = (int)(p->address >> 63);

	return p->address && !is_kernel && !p->module[0] && p->function[0];
}

const char *tacho__script_function(const char *function)
{
	if (strncmp(function, "JS:", 3) != 0)
		return function;
	return function + 3 + (function[3] && strchr("~^+*", function[3]));
}

int tacho__is_tokio(const char *thread_name)
{
	/* Newer versions, and older ones, of which the kernel keeps 15 bytes. */
	return strncmp(thread_name, "tokio-rt-worker", 15) == 0 ||
	       strncmp(thread_name, "tokio-runtime-w", 15) == 0;
}

const char *tacho__language_advice(char out[TACHO__LANGUAGE_TEXT],
				   const struct tacho__place *places, uint32_t count)
{
	const struct tacho__language *l = NULL;
	const char *module = "";

	out[0] = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (tacho__place_is_script(&places[i]))
			return out;
		if (!l) {
			module = places[i].module;
			l = tacho__language_of(module, places[i].function);
		}
	}
	if (l)
		snprintf(out, TACHO__LANGUAGE_TEXT, "These frames are those of %s: %s.", l->name,
			 tacho__language_how(l, module));
	return out;
}
