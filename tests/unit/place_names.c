/* Which functions are the program's own, and what functions of Rust are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/place.h"
#include "symbols/resolve_elf.h"

static int is_own(const char *function, const char *file)
{
	const struct tacho__place place = {
		.function = function, .file = file, .module = "/srv/server"};

	return tacho__place_is_own(&place);
}

static void what_rust_and_tokio_have_in_every_program_is_not_its_own(void **state)
{
	static const char *const theirs[][2] = {
		{"std::thread::functions::sleep", "library/std/src/sys/thread/unix.rs"},
		{"<u64>::wrapping_mul", "/rustc/0a1b/library/core/src/num/uint_macros.rs"},
		{"tokio::runtime::task::harness::Harness<T,S>::poll",
		 "src/runtime/task/harness.rs"},
		{"<mio::poll::Poll>::poll", "/cargo/registry/src/index/mio-1.2.4/src/poll.rs"},
		{"<std::sys::fs::unix::File>::read", ""},
		{"<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once", ""},
		{"<T as tokio::util::Any>::get", ""},
		{"<&mut tokio::net::TcpStream as tokio::io::AsyncRead>::poll_read", ""},
		{"<u64>::wrapping_mul", ""},
	};
	static const char *const own[][2] = {
		{"server::serve", "src/main.rs"},
		{"<server::Session as core::future::future::Future>::poll", "src/main.rs"},
		{"<server::Session>::close", ""},
		{"<T as server::Handler>::handle", ""},
		{"tokio_server::serve", ""},
		/* A namespace of C++ may be called so. */
		{"core::Loop::run", "src/core/loop.cc"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
		if (is_own(theirs[i][0], theirs[i][1]))
			fail_msg("%s (%s) is not the program's", theirs[i][0], theirs[i][1]);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!is_own(own[i][0], own[i][1]))
			fail_msg("%s (%s) is the program's", own[i][0], own[i][1]);
}

static void who_runs_a_script_is_not_the_script(void **state)
{
	struct tacho__place place = {.function = "_PyEval_EvalFrameDefault",
				     .file = "",
				     .module = "/usr/bin/python3.11"};

	(void)state;
	assert_true(tacho__place_is_own(&place));
	place.runs_script = 1;
	assert_false(tacho__place_is_own(&place));
}

static void long_names_have_no_arguments_of_templates(void **state)
{
	static const char *const names[][2] = {
		{"std::vector<int>::push_back", "std::vector<int>::push_back"},
		{"asio::detail::read_op<asio::basic_socket<asio::ip::tcp, asio::any_executor<int> "
		 ">, "
		 "long>::operator()<int>",
		 "asio::detail::read_op<...>::operator()<...>"},
		{"stream_of_the_whole_library::operator<< "
		 "<a_type_with_a_very_long_name_that_goes_on, "
		 "another_type>",
		 "stream_of_the_whole_library::operator<< "
		 "<a_type_with_a_very_long_name_that_goes_on, "
		 "another_type>"},
		{"<server::sessions::Session as "
		 "core::future::future::Future>::poll_for_a_very_long_time"
		 "_in::Next<T, U>",
		 "<server::sessions::Session as "
		 "core::future::future::Future>::poll_for_a_very_long_time"
		 "_in::Next<...>"},
		{"Connection::go()::{lambda(auto:1, unsigned "
		 "long)#1}::operator()<boost::system::error_"
		 "code_of_a_kind>",
		 "Connection::go()::{lambda(auto:1, unsigned long)#1}::operator()<...>"},
	};
	char out[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(tacho__short_name(out, sizeof(out), names[i][0]), names[i][1]);
	/* Whatever the room. */
	for (size_t size = 1; size < sizeof(out); size++)
		assert_true(strlen(tacho__short_name(out, size, names[1][0])) < size);
}

static void a_closure_is_called_after_what_it_stands_in(void **state)
{
	static const char *const names[][2] = {
		{"_ZN6server5serve28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
		 "server::serve"},
		{"_ZN6server5serve28_$u7b$$u7b$closure$u7d$$u7d$28_$u7b$$u7b$closure$u7d$$u7d$"
		 "17h0123456789abcdefE",
		 "server::serve"},
		{"_ZN6server5serve17h0123456789abcdefE", "server::serve"},
		{"_RNCNvCs1234_6server5serve0", "server::serve"},
		{"_RNCNCNvCs1234_6server5serve0s_0", "server::serve"},
		{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
	};

	(void)state;
#ifdef TACHO_HAVE_LIBDW
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *name = tacho__demangle(names[i][0]);

		assert_non_null(name);
		assert_string_equal(name, names[i][1]);
		free(name);
	}
#else
	(void)names;
	print_message("reason: this was built without libdw\n");
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_rust_and_tokio_have_in_every_program_is_not_its_own),
		cmocka_unit_test(who_runs_a_script_is_not_the_script),
		cmocka_unit_test(long_names_have_no_arguments_of_templates),
		cmocka_unit_test(a_closure_is_called_after_what_it_stands_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
