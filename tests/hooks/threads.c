/* Hooked threads: when each began, with which function, made by whom and where; their names. */
#include "preloaded.h"

static struct preloaded program;

static struct box *record(const char *mode)
{
	preloaded_run(&program, "hooks-threads_subject", mode, "on");
	boxes_open(box_dir());
	return box_of(program.pid, 0);
}

static uint64_t address_of(const struct box *box, uint32_t id, uint8_t def_class)
{
	const struct tacho_definition *d = tacho_read_definition(box->reader, 0, id);

	return d && d->def_class == def_class ? d->value : 0;
}

/* The function with which the thread began, as the program saw it, or "". */
static const char *function_of(uint32_t tid)
{
	static char name[16];
	unsigned of;

	for (const char *at = program.out; (at = strstr(at, "begun ")); at++)
		if (sscanf(at, "begun %15s %u", name, &of) == 2 && of == tid)
			return name;
	return "";
}

static void check_spawn(const struct box *box, const struct tacho_event *e, uint32_t maker)
{
	const struct tacho_thread *t = tacho_read_thread_by_number(box->reader, 0, e->thread);
	const char *function = function_of((uint32_t)e->word[1]);
	uint64_t start = address_of(box, e->arg, TACHO_DEF_KIND);
	uint64_t place = address_of(box, (uint32_t)(e->word[0] >> 16), TACHO_DEF_PLACE);

	CHECK(t && t->tid == e->word[1], "another thread says that %u began", (uint32_t)e->word[1]);
	CHECK(!strcmp(name_of(box, e->arg), "thread"), "the kind is called %s",
	      name_of(box, e->arg));
	CHECK(function[0] && start == printed(&program, function), "%s began at %#llx", function,
	      (unsigned long long)start);
	CHECK(lies_in(place, printed(&program, "make")), "made at %#llx",
	      (unsigned long long)place);
	CHECK(e->word[2] == maker || e->word[2] == printed(&program, "main"), "made by %u",
	      (uint32_t)e->word[2]);
}

static void lives(void)
{
	struct box *box = record("lives");
	uint64_t by_maker = 0, seen = 0;
	uint32_t maker = 0;
	const struct tacho_event *e;

	while (box && !failed() && tacho_read_next(box->reader, &e) > 0) {
		if (e->type != TACHO_EV_SPAWN)
			continue;
		seen++;
		if (!strcmp(function_of((uint32_t)e->word[1]), "maker"))
			maker = (uint32_t)e->word[1];
		check_spawn(box, e, maker);
		by_maker += maker && e->word[2] == maker;
	}
	CHECK(seen == 303, "%llu threads began, not 303", (unsigned long long)seen);
	CHECK(by_maker == 1, "the thread that made a thread made %llu",
	      (unsigned long long)by_maker);
	if (box)
		check_no_problem(box);
}

static void names(void)
{
	static const char *const wanted[] = {"by-itself", "by-prctl", "by-another"};
	static struct preloaded plain;
	struct box *box = record("names");

	for (int i = 0; box && i < 3; i++) {
		int there = 0;

		for (uint32_t k = 0; k < tacho_read_thread_count(box->reader); k++)
			there |= !strcmp(tacho_read_thread(box->reader, k)->name, wanted[i]);
		CHECK(there, "there is no thread called %s", wanted[i]);
	}
	preloaded_run(&plain, "hooks-threads_subject", "names", NULL);
	CHECK(!strcmp(plain.out, program.out), "hooks: %s without: %s", program.out, plain.out);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"each thread says how it began", lives},
		{"threads are shown under the names that they got later", names},
	};

	return tests_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
