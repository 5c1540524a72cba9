/*
 * Loops that do not come back: what is found in the boxes of processes that record.
 *
 * Most tests steer a subject, one command at a time, and ask with a limit of 0: then every
 * loop that is not parked is "stalled", and since when must lie between the moments before and
 * after the command that unparked it. No test depends on how fast anything is.
 */
#include "stall_subject.h"

/* ------------------------------------------------------------- tests */

static void a_parked_loop_is_idle(void **state)
{
	struct subject s;
	struct tacho__stalled out;

	(void)state;
	subject_start(&s, NULL);
	out = none_found(&s);
	assert_true(out.idle);
	assert_int_equal(out.loops, 0);
	say(&s, "P");
	out = none_found(&s);
	assert_true(out.idle);
	assert_int_equal(out.loops, 1);
	say(&s, "UP");
	assert_true(none_found(&s).idle);
	subject_end(&s);
}

static void a_loop_that_unparked_is_stalled_since_then(void **state)
{
	struct subject s;
	struct tacho__stalled out, again;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "PU");
	/* Not yet: it is due when the limit has passed. */
	out = look(&s, 1000 * SECOND);
	assert_false(out.found);
	assert_false(out.idle);
	assert_true(out.due_ns + SLACK >= s.before + 1000 * SECOND);
	assert_true(out.due_ns <= s.after + 1000 * SECOND + SLACK);
	out = found_now(&s);
	assert_true(out.fresh);
	assert_int_equal(out.tid, s.pid);
	assert_int_equal(out.kind, 0);
	assert_string_equal(out.kind_name, "");
	assert_string_equal(out.loop_name, "waits");
	/* It was told: nothing new until it unparks. */
	assert_true(out.idle);
	again = found_now(&s);
	assert_false(again.fresh);
	assert_true(again.took_ns > out.took_ns);
	say(&s, "P");
	none_found(&s);
	say(&s, "U");
	assert_true(found_now(&s).fresh);
	subject_end(&s);
}

/* A lock is nothing that a loop may wait for. */
static void a_wait_for_a_lock_is_part_of_the_turn(void **state)
{
	struct subject s;
	struct tacho__stalled out;
	uint64_t from, to;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "PU");
	from = s.before, to = s.after;
	say(&s, "m");
	out = look(&s, 10000000);
	found_since(&out, from, to);
	say(&s, "M");
	out = look(&s, 10000000);
	found_since(&out, from, to);
	subject_end(&s);
}

/* A lookup of a name waits a few times, and what comes after it may take as long as it likes. */
static void a_thread_that_waits_now_and_then_is_no_loop(void **state)
{
	struct tacho__stall *late;
	struct subject s;

	(void)state;
	subject_start(&s, NULL);
	for (unsigned i = 1; i < TACHO__LOOP_WAITS; i++) {
		say(&s, "w");
		assert_true(none_found(&s).idle);
	}
	say(&s, "w");
	assert_true(found_now(&s).fresh);
	subject_end(&s);
	/* Who comes late does not see all waits, but that there was something before. */
	subject_start(&s, NULL);
	say(&s, "wr");
	assert_true(none_found(&s).idle);
	late = tacho__stall_new(s.box, s.pid);
	assert_non_null(late);
	tacho__stall_free(s.stall);
	s.stall = late;
	assert_true(none_found(&s).idle);
	say(&s, "w");
	assert_true(found_now(&s).fresh);
	subject_end(&s);
}

static void the_open_callback_is_named(void **state)
{
	struct subject s;
	struct tacho__stalled out;
	uint64_t from, to;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "PU");
	from = s.before, to = s.after;
	/* The turn, not the callback, is what does not come back. */
	say(&s, "b[c");
	out = look(&s, 0);
	found_since(&out, from, to);
	assert_string_equal(out.kind_name, "one");
	/* Of one stall is told once. */
	assert_int_equal(out.stalled, 1);
	assert_true(out.idle);
	say(&s, "ee");
	out = look(&s, 0);
	found_since(&out, from, to);
	assert_int_equal(out.kind, 0);
	say(&s, "c");
	assert_string_equal(look(&s, 0).kind_name, "two");
	/* Nor is a callback told that began at the very moment of its turn. */
	say(&s, "ePa");
	out = found_now(&s);
	assert_string_equal(out.kind_name, "one");
	assert_int_equal(out.stalled, 1);
	subject_end(&s);
}

static void a_loop_of_the_api_comes_back_with_each_poll(void **state)
{
	struct subject s;
	struct tacho__stalled out;
	uint64_t from, to;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "pub");
	out = found_now(&s);
	assert_int_equal(out.stalled, 1);
	assert_string_equal(out.kind_name, "one");
	assert_string_equal(out.loop_name, "api");
	/* Of the end of a poll nobody is woken. */
	assert_false(out.idle);
	say(&s, "s");
	assert_string_equal(found_now(&s).kind_name, "two");
	say(&s, "e");
	assert_true(found_now(&s).fresh);
	say(&s, "b");
	from = s.before, to = s.after;
	say(&s, "[c]ec");
	out = look(&s, 0);
	found_since(&out, from, to);
	say(&s, "eep");
	assert_true(none_found(&s).idle);
	subject_end(&s);
}

static void a_worker_that_never_parks_is_stalled_in_polls_alone(void **state)
{
	struct subject s;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "l");
	assert_int_equal(none_found(&s).loops, 1);
	say(&s, "b");
	assert_string_equal(found_now(&s).kind_name, "one");
	say(&s, "e");
	none_found(&s);
	/* No loop, no stall. */
	say(&s, "Lb");
	assert_int_equal(none_found(&s).loops, 0);
	subject_end(&s);
}

static void a_loop_around_another_is_stalled_while_that_waits(void **state)
{
	struct subject s;
	struct tacho__stalled out;
	uint64_t from, to;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "PUb");
	from = s.before, to = s.after;
	say(&s, "I");
	out = look(&s, 0);
	found_since(&out, from, to);
	assert_true(out.fresh && out.idle);
	/* And the loop inside of it can be on top of that. */
	say(&s, "J");
	out = found_now(&s);
	assert_true(out.fresh);
	assert_int_equal(out.stalled, 2);
	say(&s, "I");
	assert_false(look(&s, 0).fresh);
	say(&s, "JeP");
	none_found(&s);
	subject_end(&s);
}

static void a_poll_that_is_only_counted_so_far_is_seen(void **state)
{
	struct tacho_options options = {.size = sizeof(options),
					.poll_threshold_ns = 3600 * SECOND};
	struct subject s;

	(void)state;
	subject_start(&s, &options);
	say(&s, "lb");
	assert_string_equal(found_now(&s).kind_name, "one");
	say(&s, "e");
	none_found(&s);
	say(&s, "pub");
	assert_string_equal(found_now(&s).kind_name, "one");
	say(&s, "s");
	assert_string_equal(found_now(&s).kind_name, "two");
	/* Between polls that are only counted, nothing tells when the last one was. */
	say(&s, "e");
	none_found(&s);
	subject_end(&s);
}

static void a_turn_that_fills_chunks_is_as_long(void **state)
{
	struct subject s;
	struct tacho__stall *other;
	struct tacho__stalled out;
	uint64_t from, to;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "PU");
	from = s.before, to = s.after;
	out = look(&s, 0);
	found_since(&out, from, to);
	say(&s, "r");
	out = look(&s, 0);
	found_since(&out, from, to);
	assert_false(out.fresh);
	/* Who never saw it begin knows of one wait, which may be that of any thread. */
	other = tacho__stall_new(s.box, s.pid);
	assert_int_equal(tacho__stall_look(other, 0, &out), 0);
	assert_false(out.found);
	tacho__stall_free(other);
	say(&s, "Pr");
	none_found(&s);
	say(&s, "U");
	from = s.before, to = s.after;
	say(&s, "r");
	out = look(&s, 0);
	found_since(&out, from, to);
	assert_true(out.fresh);
	/* A loop that is known as one is stalled also for whoever comes late. */
	say(&s, "QR");
	from = s.before, to = s.after;
	say(&s, "r");
	other = tacho__stall_new(s.box, s.pid);
	assert_int_equal(tacho__stall_look(other, 0, &out), 0);
	found_since(&out, from, to);
	tacho__stall_free(other);
	subject_end(&s);
}

static void a_poll_that_fills_chunks_is_as_long(void **state)
{
	struct subject s;
	struct tacho__stalled out;
	uint64_t from, to;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "pu[b");
	from = s.before, to = s.after;
	say(&s, "[r");
	out = look(&s, 0);
	found_since(&out, from, to);
	assert_string_equal(out.kind_name, "one");
	/* Between polls: not since longer than the chunk knows. */
	say(&s, "er");
	out = look(&s, 0);
	assert_true(out.found && out.since_ns > to);
	subject_end(&s);
}

static void what_happened_in_a_pause_is_not_guessed(void **state)
{
	struct subject s;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "PU");
	found_now(&s);
	say(&s, "z");
	assert_true(none_found(&s).idle);
	/* It may have parked meanwhile. */
	say(&s, "Z");
	none_found(&s);
	say(&s, "PU");
	found_now(&s);
	/* Also when the pause was over before anyone looked. */
	say(&s, "zPZ");
	none_found(&s);
	subject_end(&s);
}

static void stop(struct subject *s)
{
	int status;

	assert_int_equal(write(s->command, "S", 1), 1);
	assert_int_equal(waitpid(s->pid, &status, WUNTRACED), s->pid);
	assert_true(WIFSTOPPED(status));
}

static void go_on(struct subject *s)
{
	assert_int_equal(kill(s->pid, SIGCONT), 0);
	answered(s, 'S');
}

static void a_stopped_process_is_stalled_unless_it_was_parked(void **state)
{
	struct subject s;
	struct tacho__stalled out;
	uint64_t from, to;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "P");
	stop(&s);
	sleep_ms(20);
	assert_true(none_found(&s).idle);
	go_on(&s);
	say(&s, "U");
	from = s.before, to = s.after;
	stop(&s);
	sleep_ms(20);
	out = look(&s, 10000000);
	found_since(&out, from, to);
	go_on(&s);
	say(&s, "P");
	none_found(&s);
	subject_end(&s);
}

static void a_deadlocked_callback_is_found(void **state)
{
	struct subject s;
	struct tacho__stalled out;
	uint64_t deadline = now_ns() + 60 * SECOND;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "PUb");
	assert_int_equal(write(s.command, "D", 1), 1);
	do {
		out = look(&s, 300000000);
		if (!out.found)
			assert_false(out.idle);
		sleep_ms(10);
	} while (!out.found && now_ns() < deadline);
	assert_true(out.found && out.fresh && out.took_ns > 300000000);
	assert_string_equal(out.kind_name, "one");
	subject_end(&s);
}

static void one_that_spins_is_found_among_a_hundred(void **state)
{
	struct subject s;
	struct tacho__stalled out;
	char commands[52];
	uint64_t deadline = now_ns() + 60 * SECOND;
	char path[64];

	(void)state;
	subject_start(&s, NULL);
	memset(commands, 'T', sizeof(commands));
	commands[50] = 0;
	say(&s, commands);
	say(&s, "X");
	say(&s, commands);
	do {
		out = look(&s, 100000000);
		sleep_ms(10);
	} while ((!out.found || out.loops < 101) && now_ns() < deadline);
	assert_true(out.found);
	assert_int_equal(out.loops, 101);
	assert_int_equal(out.stalled, 1);
	assert_true(out.idle);
	snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)s.pid, out.tid);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_not_equal(out.tid, s.pid);
	subject_end(&s);
}

static void nobody_is_stalled_while_one_waits_for_the_same(void **state)
{
	struct subject s;
	struct tacho__stalled out;
	uint64_t deadline = now_ns() + 60 * SECOND;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "iiiG");
	/* None of them waits, and what one of them waited for last before it ended is not served. */
	do {
		out = look(&s, 0);
		sleep_ms(5);
	} while ((!out.found || out.loops < 4) && now_ns() < deadline);
	assert_true(out.found);
	assert_int_equal(out.stalled, 1);
	say(&s, "h");
	assert_true(none_found(&s).idle);
	assert_true(none_found(&s).loops >= 4);
	/* When the one has something to do, nobody waits: since then. */
	say(&s, "k");
	out = look(&s, 1000 * SECOND);
	assert_false(out.found);
	assert_true(out.due_ns + SLACK >= s.before + 1000 * SECOND);
	out = found_now(&s);
	assert_true(out.fresh);
	assert_int_equal(out.tid, s.pid);
	assert_int_equal(out.stalled, 1);
	assert_true(out.idle);
	say(&s, "h");
	assert_true(none_found(&s).idle);
	subject_end(&s);
}

static void each_stall_is_told_once_the_worst_first(void **state)
{
	struct subject s;
	struct tacho__stalled out[3];
	uint64_t deadline = now_ns() + 60 * SECOND;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "XX");
	do {
		struct tacho__stall *other = tacho__stall_new(s.box, s.pid);

		assert_int_equal(tacho__stall_look(other, 0, &out[0]), 0);
		tacho__stall_free(other);
	} while (out[0].stalled < 2 && now_ns() < deadline);
	for (int i = 0; i < 3; i++) {
		out[i] = look(&s, 0);
		assert_int_equal(out[i].stalled, 2);
		assert_int_equal(out[i].fresh, i < 2);
		/* While one is untold, the next look is due at once. */
		assert_int_equal(out[i].idle, i > 0);
		if (!i)
			assert_true(out[i].due_ns <= now_ns());
	}
	assert_true(out[0].since_ns < out[1].since_ns);
	assert_int_equal(out[0].tid, out[2].tid);
	subject_end(&s);
}

static void a_thread_that_vanished_is_not_stalled(void **state)
{
	struct subject s;
	struct tacho__stall *other;
	struct tacho__stalled out;
	uint64_t deadline = now_ns() + 60 * SECOND;

	(void)state;
	subject_start(&s, NULL);
	say(&s, "V");
	other = tacho__stall_new(s.box, 0);
	do {
		assert_int_equal(tacho__stall_look(other, 0, &out), 0);
	} while (!out.found && now_ns() < deadline);
	/* Who does not know the process has to believe its box. */
	assert_true(out.found);
	tacho__stall_free(other);
	do {
		out = look(&s, 0);
		sleep_ms(5);
	} while (out.found && now_ns() < deadline);
	assert_false(out.found);
	assert_true(out.idle);
	subject_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_parked_loop_is_idle),
		cmocka_unit_test(a_loop_that_unparked_is_stalled_since_then),
		cmocka_unit_test(a_wait_for_a_lock_is_part_of_the_turn),
		cmocka_unit_test(a_thread_that_waits_now_and_then_is_no_loop),
		cmocka_unit_test(the_open_callback_is_named),
		cmocka_unit_test(a_loop_of_the_api_comes_back_with_each_poll),
		cmocka_unit_test(a_worker_that_never_parks_is_stalled_in_polls_alone),
		cmocka_unit_test(a_loop_around_another_is_stalled_while_that_waits),
		cmocka_unit_test(a_poll_that_is_only_counted_so_far_is_seen),
		cmocka_unit_test(a_turn_that_fills_chunks_is_as_long),
		cmocka_unit_test(a_poll_that_fills_chunks_is_as_long),
		cmocka_unit_test(what_happened_in_a_pause_is_not_guessed),
		cmocka_unit_test(a_stopped_process_is_stalled_unless_it_was_parked),
		cmocka_unit_test(a_deadlocked_callback_is_found),
		cmocka_unit_test(one_that_spins_is_found_among_a_hundred),
		cmocka_unit_test(nobody_is_stalled_while_one_waits_for_the_same),
		cmocka_unit_test(each_stall_is_told_once_the_worst_first),
		cmocka_unit_test(a_thread_that_vanished_is_not_stalled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
