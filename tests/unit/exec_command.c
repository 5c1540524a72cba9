/* --exec: a command for each file, one after the other. */
#include <errno.h>
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/exec.h"
#include "agent/run_child.h"

static char folder[200], out_path[220];
static char out_variable[240];
static char *environment[] = {(char *)"PATH=/usr/bin:/bin", (char *)"TACHO_FILE=old", out_variable,
			      NULL};

static int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/exec-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return 1;
	snprintf(out_path, sizeof(out_path), "%s/out", folder);
	snprintf(out_variable, sizeof(out_variable), "OUT=%s", out_path);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(out_path);
	return rmdir(folder);
}

/* Reaps until nothing is pending; the last sentence. */
static const char *finish(struct tacho__exec *x)
{
	static char message[300];
	char each[300];

	message[0] = 0;
	while (tacho__exec_pending(x)) {
		int status;
		pid_t pid = waitpid(tacho__exec_pid(x), &status, 0);

		assert_true(pid > 0);
		assert_int_equal(tacho__exec_ended(x, pid, status, each, sizeof(each)), 1);
		if (each[0])
			strcpy(message, each);
	}
	return message;
}

static const char *output(void)
{
	static char text[8192];
	FILE *f = fopen(out_path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = 0;
	if (f)
		fclose(f);
	unlink(out_path);
	return text;
}

static void the_path_is_an_argument_and_never_part_of_the_command(void **state)
{
	static const char evil[] = "/tmp/a b'\"; echo evil >>$OUT; $(echo evil >>$OUT) `x`\n*";
	struct tacho__exec *x =
		tacho__exec_new("printf '%s|%s|%s|%s|%s' \"$1\" \"$TACHO_FILE\" $TACHO_PID "
				"\"$TACHO_WHY\" $# >>$OUT",
				environment);
	char expected[500];

	(void)state;
	assert_int_equal(tacho__exec_file(x, evil, 4711, "poll>5ms: $(x)"), 0);
	assert_string_equal(finish(x), "");
	snprintf(expected, sizeof(expected), "%s|%s|4711|poll>5ms: $(x)|1", evil, evil);
	assert_string_equal(output(), expected);
	tacho__exec_free(x);
}

static void commands_run_one_at_a_time_in_order(void **state)
{
	struct tacho__exec *x = tacho__exec_new(
		"echo begin $1 >>$OUT; sleep 0.05; echo end $1 >>$OUT", environment);
	char expected[400] = "", name[8], message[100];

	(void)state;
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(tacho__exec_file(x, name, 1, NULL), 0);
		sprintf(expected + strlen(expected), "begin %d\nend %d\n", i, i);
	}
	assert_int_equal(tacho__exec_pending(x), 5);
	/* Another child of the process is none of its business. */
	assert_int_equal(tacho__exec_ended(x, tacho__exec_pid(x) + 1, 0, message, 100), 0);
	assert_int_equal(tacho__exec_pending(x), 5);
	assert_string_equal(finish(x), "");
	assert_string_equal(output(), expected);
	tacho__exec_free(x);
}

static void a_command_that_fails_is_told_and_the_next_one_runs(void **state)
{
	struct tacho__exec *x = tacho__exec_new(
		"case $1 in a) exit 3;; b) kill -9 $$;; *) echo $1 >>$OUT;; esac", environment);
	char message[200];
	int status;

	(void)state;
	assert_int_equal(tacho__exec_file(x, "a", 1, NULL), 0);
	assert_int_equal(tacho__exec_file(x, "b", 1, NULL), 0);
	assert_int_equal(tacho__exec_file(x, "c", 1, NULL), 0);
	assert_true(waitpid(tacho__exec_pid(x), &status, 0) > 0);
	assert_int_equal(tacho__exec_ended(x, tacho__exec_pid(x), status, message, 200), 1);
	assert_string_equal(message, "the --exec command for a ended with status 3");
	assert_true(waitpid(tacho__exec_pid(x), &status, 0) > 0);
	assert_int_equal(tacho__exec_ended(x, tacho__exec_pid(x), status, message, 200), 1);
	assert_string_equal(message, "the --exec command for b was killed by signal 9");
	assert_string_equal(finish(x), "");
	assert_string_equal(output(), "c\n");
	tacho__exec_free(x);
}

static void signals_and_input_are_as_from_a_shell(void **state)
{
	struct tacho__exec *x = tacho__exec_new(
		"grep -E '^Sig(Blk|Ign)' /proc/self/status >>$OUT; readlink /proc/self/fd/0 >>$OUT;"
		"wc -c >>$OUT",
		environment);
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	unsigned long long blocked, ignored;
	sigset_t block, mask;
	char input[100];
	int bytes;

	(void)state;
	sigfillset(&block);
	sigprocmask(SIG_BLOCK, &block, &mask);
	sigaction(SIGPIPE, &ignore, &before);
	assert_int_equal(tacho__exec_file(x, "f", 1, NULL), 0);
	sigaction(SIGPIPE, &before, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	assert_string_equal(finish(x), "");
	/* From 32 on, some are libc's own, or qemu's: nobody can give them back. */
	assert_int_equal(sscanf(output(), "SigBlk: %llx SigIgn: %llx %99s %d", &blocked, &ignored,
				input, &bytes),
			 4);
	assert_int_equal(blocked & 0x7fffffffull, 0);
	assert_int_equal(ignored & 0x7fffffffull, 0);
	assert_string_equal(input, "/dev/null");
	assert_int_equal(bytes, 0);
	tacho__exec_free(x);
}

static void what_waits_is_bounded(void **state)
{
	struct tacho__exec *x = tacho__exec_new("read -r line <$OUT; exit 0", environment);
	unsigned accepted = 0;
	int err = 0, fd;

	(void)state;
	assert_int_equal(mkfifo(out_path, 0600), 0);
	while (accepted < 5000) {
		err = tacho__exec_file(x, "f", 1, "why");
		if (err)
			break;
		accepted++;
	}
	assert_int_equal(err, -ENOBUFS);
	assert_int_equal(accepted, TACHO__EXEC_WAITING + 1);
	assert_int_equal(tacho__exec_pending(x), accepted);
	/* Lets the one that runs come to its end; the others are never begun. */
	fd = open(out_path, O_WRONLY);
	assert_int_equal(write(fd, "\n", 1), 1);
	assert_true(waitpid(tacho__exec_pid(x), NULL, 0) > 0);
	close(fd);
	tacho__exec_free(x);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* What commands of `tacho run` get: what is set is there once, what is unset is gone, and what only begins
   alike stays. */
static void variables_are_set_once(void **state)
{
	char *const given[] = {(char *)"A=1",	 (char *)"TACHO=old",	(char *)"TACHO_X=kept",
			       (char *)"GONE=1", (char *)"TACHO=older", NULL};
	const struct tacho__variable variables[] = {
		{"TACHO", "new"}, {"GONE", NULL}, {"ABSENT", NULL}, {"B", ""}};
	const char *const expected[] = {"A=1", "TACHO_X=kept", "TACHO=new", "B="};
	char **made = tacho__environment(given, variables, 4);

	(void)state;
	assert_non_null(made);
	for (size_t i = 0; i < 4; i++) {
		assert_non_null(made[i]);
		assert_string_equal(made[i], expected[i]);
	}
	assert_null(made[4]);
	free(made);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_path_is_an_argument_and_never_part_of_the_command),
		TEST(commands_run_one_at_a_time_in_order),
		TEST(a_command_that_fails_is_told_and_the_next_one_runs),
		TEST(signals_and_input_are_as_from_a_shell),
		TEST(what_waits_is_bounded),
		cmocka_unit_test(variables_are_set_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
