// Runs a loop on several threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace onefit {

// Calls body(begin, end) on consecutive parts of [0, count), one part a thread, the first of them
// on the calling thread. An exception of any part is thrown again here when all have ended.
template <class Body>
void parallel_for(std::size_t count, std::size_t threads, const Body& body) {
  threads = std::max<std::size_t>(1, std::min(threads, count));
  if (threads == 1) {
    body(0, count);
    return;
  }
  std::exception_ptr failure;
  std::mutex mutex;
  const auto part = [&](std::size_t i) {
    try {
      body(count * i / threads, count * (i + 1) / threads);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(threads - 1);
  std::size_t started = 1;
  try {
    for (; started < threads; ++started) workers.emplace_back(part, started);
  } catch (const std::system_error&) {
    // The system gives no more threads: this one does the rest.
  }
  part(0);
  for (std::size_t i = started; i < threads; ++i) part(i);
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace onefit
