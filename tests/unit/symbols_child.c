/* Names are looked up by a child: whatever that meets in a file costs the names of that file, and
   nothing else. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbols/child.h"

enum { FINE = 0x1000, CUT = 0x2000, HANGS = 0x3000, EATS = 0x4000, LIES = 0x5000, LONG = 0x6000 };
enum { READS = 0x7000, MANY = 0x8000, SLOW = 0x9000 };

static const struct tacho_definition good = {.name = "/good"}, bad = {.name = "/bad"};
static struct tacho_process process;
static const struct tacho__rights another = {64101, 64101, UINT64_MAX}, root = {0, 0, UINT64_MAX};
static struct tacho__rights ours = {0, 0, UINT64_MAX};
static char secret[64] = "/tmp/tacho-secret-XXXXXX";

/* Four times what it may have, of which it uses nothing: the limit must hold, and not the host. */
static void eat(void)
{
	for (unsigned n = 0; n < 256; n++) {
		char *volatile p = malloc(16 << 20); /* else a compiler leaves it out */

		if (!p)
			_exit(3);
	}
}

static void lie(void)
{
	static const char nonsense[256] = "\xff\xff\xff\xff";

	if (write(1, nonsense, sizeof(nonsense)) < 0)
		_exit(4);
}

uint32_t __wrap_tacho__resolve(struct tacho__resolver *r, const struct tacho_definition *module,
			       uint64_t address, struct tacho__resolved *out, uint32_t most)
{
	static char text[3 * TACHO__SYMBOL_TEXT_MAX];

	(void)r;
	(void)module;
	out[0] = (struct tacho__resolved){"outer", "a.c", (uint32_t)address};
	switch (address & ~0xfffull) {
	case CUT:
		raise(SIGBUS);
		break;
	case HANGS:
		for (;;)
			pause();
	case EATS:
		eat();
		break;
	case LIES:
		lie();
		break;
	case SLOW:
		sleep(1);
		break;
	case LONG:
		memset(text, 'x', sizeof(text) - 1);
		out[0].function = text;
		break;
	case READS:
		out[0].function = open(secret, O_RDONLY) < 0 ? "refused" : "read";
		break;
	case MANY:
		for (uint32_t i = 0; i < most; i++)
			out[i] = (struct tacho__resolved){"inlined", NULL, i};
		return most;
	default:
		break;
	}
	return 1;
}

/* Asks for a good one, `worst` of another module, one more of that, and a good one again. */
static void meets(uint64_t worst, const char *why)
{
	const struct tacho__asked asked[] = {
		{&good, FINE}, {&bad, worst}, {&bad, FINE + 1}, {&good, FINE + 2}};
	struct tacho__child *c = tacho__child_new(&process, &ours, asked, 4);
	struct tacho__resolved found[TACHO__INLINED_MAX];

	assert_non_null(c);
	assert_int_equal(tacho__child_next(c, found), 1);
	assert_string_equal(found[0].function, "outer");
	assert_string_equal(found[0].file, "a.c");
	assert_int_equal(found[0].line, FINE);
	assert_int_equal(tacho__child_next(c, found), 0);
	assert_int_equal(tacho__child_next(c, found), 0);
	/* What is left to do is done as if nothing had been. */
	assert_int_equal(tacho__child_next(c, found), 1);
	assert_non_null(strstr(tacho__child_why(c), why));
	assert_non_null(strstr(tacho__child_why(c), "/bad"));
	assert_int_equal(tacho__child_next(c, found), 0);
	tacho__child_free(c);
}

static void cut_short(void **state)
{
	(void)state;
	meets(CUT, "cut short");
}

/* Whether a child that hangs has said before what it could, in that time. */
static int hangs_after(uint64_t ns)
{
	const struct tacho__asked asked[] = {{&good, FINE}, {&bad, HANGS}};
	struct tacho__resolved found[TACHO__INLINED_MAX];
	struct tacho__child *c;
	int in_time;

	tacho__child_time_ns = ns;
	c = tacho__child_new(&process, &ours, asked, 2);
	assert_non_null(c);
	in_time = tacho__child_next(c, found) == 1;
	if (in_time) {
		assert_int_equal(tacho__child_next(c, found), 0);
		assert_non_null(strstr(tacho__child_why(c), "/bad took too long"));
	}
	tacho__child_free(c);
	return in_time;
}

/* On a machine that is busy with others, it needs more time. */
static void hangs(void **state)
{
	uint64_t ns = 100000000;

	(void)state;
	while (!hangs_after(ns))
		ns *= 4;
	tacho__child_time_ns = 60000000000ull;
}

static void eats(void **state)
{
	(void)state;
	/* Sanitizers map more than the limit for themselves. */
	if (strcmp(getenv("TACHO_TEST_UNDER") ? getenv("TACHO_TEST_UNDER") : "", "unit") != 0) {
		print_message("reason: the limit is that of an ordinary build\n");
		skip();
	}
	meets(EATS, "ended before it had answered");
}

static void lies(void **state)
{
	(void)state;
	meets(LIES, "makes no sense");
}

static void long_names_are_cut(void **state)
{
	const struct tacho__asked asked[] = {{&good, LONG}, {&good, MANY}};
	struct tacho__child *c = tacho__child_new(&process, &ours, asked, 2);
	struct tacho__resolved found[TACHO__INLINED_MAX];

	(void)state;
	assert_non_null(c);
	assert_int_equal(tacho__child_next(c, found), 1);
	assert_int_equal(strlen(found[0].function), TACHO__SYMBOL_TEXT_MAX);
	assert_int_equal(tacho__child_next(c, found), TACHO__INLINED_MAX);
	assert_string_equal(found[15].function, "inlined");
	assert_string_equal(found[15].file, "");
	assert_string_equal(tacho__child_why(c), "");
	tacho__child_free(c);
}

/* With the rights of whoever owns the box. */
static void rights(void **state)
{
	const struct tacho__asked asked = {&good, READS};
	struct tacho__resolved found[TACHO__INLINED_MAX];

	(void)state;
	if (geteuid() != 0) {
		print_message("reason: only root can give rights up\n");
		skip();
	}
	for (int other = 0; other <= 1; other++) {
		struct tacho__child *c =
			tacho__child_new(&process, other ? &another : &root, &asked, 1);

		assert_non_null(c);
		assert_int_equal(tacho__child_next(c, found), 1);
		assert_string_equal(found[0].function, other ? "refused" : "read");
		tacho__child_free(c);
	}
}

static int is_served(uint32_t uid, uint64_t address)
{
	const struct tacho__asked asked = {&good, address};
	struct tacho__resolved found[TACHO__INLINED_MAX];
	struct tacho__rights rights = {uid, uid, UINT64_MAX};
	struct tacho__child *c = tacho__child_new(&process, &rights, &asked, 1);
	int served;

	assert_non_null(c);
	served = tacho__child_next(c, found) == 1;
	if (!served)
		assert_non_null(strstr(tacho__child_why(c), "more than their share"));
	tacho__child_free(c);
	return served;
}

/* Who takes long, although all goes well, has had its share; others have theirs. */
static void shares(void **state)
{
	uint64_t allowed_ns = tacho__child_allowed_ns;

	(void)state;
	if (geteuid() != 0) {
		print_message("reason: only root serves others\n");
		skip();
	}
	tacho__child_allowed_ns = 0;
	assert_true(is_served(64103, SLOW)); /* it counts only where many are served */
	tacho__child_divides = 1;
	assert_true(is_served(64103, SLOW));
	assert_false(is_served(64103, FINE));
	assert_true(is_served(64104, FINE));
	assert_true(is_served(0, SLOW));
	assert_true(is_served(0, FINE));
	tacho__child_divides = 0;
	tacho__child_allowed_ns = allowed_ns;
}

/* Each module that fails costs a child, and there is an end to that. */
static void an_end_to_it(void **state)
{
	struct tacho_definition modules[9];
	struct tacho__asked asked[9];
	struct tacho__resolved found[TACHO__INLINED_MAX];
	struct tacho__child *c;
	uint32_t sum = 0;

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		modules[i] = (struct tacho_definition){.name = "/bad"};
		asked[i] = (struct tacho__asked){&modules[i], i == 8 ? FINE : CUT};
	}
	c = tacho__child_new(&process, &ours, asked, 9);
	assert_non_null(c);
	for (unsigned i = 0; i < 9; i++)
		sum += tacho__child_next(c, found);
	assert_int_equal(sum, 0);
	tacho__child_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_short),	cmocka_unit_test(hangs),
		cmocka_unit_test(eats),		cmocka_unit_test(lies),
		cmocka_unit_test(rights),	cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(an_end_to_it), cmocka_unit_test(shares),
	};
	int fd = mkstemp(secret), failed;

	/* An unprivileged user must get as far as the file itself. */
	if (fd < 0 || fchmod(fd, 0600) < 0)
		return 1;
	tacho__child_time_ns = 60000000000ull;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	close(fd);
	unlink(secret);
	return failed;
}
