/* A healthy server of Asio whose threads share one io_context: servers-asio PORT THREADS */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#define ASIO_STANDALONE
#include <asio.hpp>

using asio::ip::tcp;

static const uint32_t ROUNDS = 50000; /* of work for a request: some fifty microseconds */

class session : public std::enable_shared_from_this<session>
{
      public:
	explicit session(tcp::socket socket) : socket_(std::move(socket))
	{
	}

	void read()
	{
		auto self = shared_from_this();

		socket_.async_read_some(asio::buffer(request_),
					[self](std::error_code error, std::size_t) {
						if (!error)
							self->answer();
					});
	}

      private:
	void answer()
	{
		auto self = shared_from_this();
		uint32_t seed = (uint32_t)request_[0];

		for (uint32_t i = 0; i < ROUNDS; i++)
			seed = seed * 1664525u + 1013904223u;
		snprintf(answer_, sizeof(answer_), "%010u\n", seed);
		asio::async_write(socket_, asio::buffer(answer_, 11),
				  [self](std::error_code error, std::size_t) {
					  if (!error)
						  self->read();
				  });
	}

	tcp::socket socket_;
	char request_[64];
	char answer_[16];
};

static void accept(tcp::acceptor &acceptor)
{
	acceptor.async_accept([&acceptor](std::error_code error, tcp::socket socket) {
		if (!error)
			std::make_shared<session>(std::move(socket))->read();
		accept(acceptor);
	});
}

int main(int argc, char **argv)
{
	asio::io_context context;
	auto port = (unsigned short)atoi(argc > 1 ? argv[1] : "0");
	tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), port});
	asio::signal_set signals(context, SIGTERM);
	std::vector<std::thread> threads;

	signals.async_wait([&context](std::error_code, int) { context.stop(); });
	accept(acceptor);
	for (int i = 0; i < atoi(argc > 2 ? argv[2] : "2"); i++)
		threads.emplace_back([&context] { context.run(); });
	for (auto &thread : threads)
		thread.join();
	return 0;
}
