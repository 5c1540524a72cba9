/* A std::mutex that one task holds and another wants. */
#include <chrono>
#include <mutex>
#include <thread>

#include "tasks_subject.h"

static std::mutex shared;

extern "C" __attribute__((noinline)) void fault_holds_cpp(void)
{
	std::lock_guard<std::mutex> guard(shared);

	std::this_thread::sleep_for(std::chrono::milliseconds(60));
}

extern "C" __attribute__((noinline)) void fault_wants_cpp(void)
{
	std::lock_guard<std::mutex> guard(shared);

	__asm__ volatile("");
}
