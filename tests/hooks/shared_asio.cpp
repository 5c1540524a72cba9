/*
 * A server and its clients in one io_context of Asio that four threads run, for three seconds.
 * With "stalls", handlers block all of them for 1.5 s, once.
 */
#include <asio.hpp>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>
#include <vector>

using asio::ip::tcp;
using std::chrono::milliseconds;

static const int threads = 4;

struct session : std::enable_shared_from_this<session> {
	tcp::socket socket;
	char bytes[256];

	explicit session(tcp::socket s) : socket(std::move(s))
	{
	}
	void serve()
	{
		auto me = shared_from_this();

		socket.async_read_some(asio::buffer(bytes), [me](std::error_code e, size_t n) {
			if (!e)
				asio::async_write(me->socket, asio::buffer(me->bytes, n),
						  [me](std::error_code f, size_t) {
							  if (!f)
								  me->serve();
						  });
		});
	}
};

struct client : std::enable_shared_from_this<client> {
	tcp::socket socket;
	asio::steady_timer timer;
	char bytes[64];

	explicit client(asio::io_context &context) : socket(context), timer(context)
	{
	}
	void ask()
	{
		auto me = shared_from_this();

		timer.expires_after(milliseconds(150));
		timer.async_wait([me](std::error_code) {
			asio::write(me->socket, asio::buffer("hello", 5));
			me->socket.async_read_some(asio::buffer(me->bytes),
						   [me](std::error_code e, size_t) {
							   if (!e)
								   me->ask();
						   });
		});
	}
};

static void accept_next(tcp::acceptor &from)
{
	from.async_accept([&from](std::error_code e, tcp::socket s) {
		if (e)
			return;
		std::make_shared<session>(std::move(s))->serve();
		accept_next(from);
	});
}

int main(int argc, char **)
{
	asio::io_context context;
	tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
	asio::steady_timer end(context, milliseconds(3000));
	std::vector<asio::steady_timer> faults;
	std::vector<std::thread> all;
	std::promise<void> begin;
	std::shared_future<void> together = begin.get_future().share();

	accept_next(acceptor);
	for (int i = 0; i < 1; i++) {
		auto c = std::make_shared<client>(context);

		c->socket.connect(acceptor.local_endpoint());
		c->ask();
	}
	for (int i = 0; argc > 1 && i < threads; i++) {
		faults.emplace_back(context, milliseconds(700));
		faults.back().async_wait(
			[](std::error_code) { std::this_thread::sleep_for(milliseconds(1500)); });
	}
	end.async_wait([](std::error_code) { std::exit(0); });
	/* Each is alone with the set for a while before all of them are: who comes first after the stall
	   has then served it before, and can tell how long nobody did. */
	for (int i = 0; i < threads; i++) {
		std::promise<void> was_there;

		all.emplace_back([&context, &was_there, together] {
			context.run_for(milliseconds(50));
			was_there.set_value();
			together.wait();
			context.run();
		});
		was_there.get_future().wait();
	}
	begin.set_value();
	for (auto &t : all)
		t.join();
	return 0;
}
