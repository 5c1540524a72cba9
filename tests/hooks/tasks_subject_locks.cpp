/*
 * A std::mutex that one task holds and another wants. Compiled twice: optimized, where the one that
 * holds it ends with a jump to pthread_mutex_unlock, and without, where wrappers call that.
 */
#include <chrono>
#include <mutex>
#include <thread>

#include "tasks_subject.h"

static std::mutex shared;

extern "C" __attribute__((noinline)) void HOLDS(void)
{
	std::lock_guard<std::mutex> guard(shared);

	std::this_thread::sleep_for(std::chrono::milliseconds(60));
}

extern "C" __attribute__((noinline)) void WANTS(void)
{
	std::lock_guard<std::mutex> guard(shared);

	__asm__ volatile("");
}
