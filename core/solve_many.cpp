#include "solve_many.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "smo.hpp"

namespace onefit {

std::vector<Solution> solve_many(KernelStore& store, const std::vector<Problem>& problems,
                                 const Settings& settings, std::size_t threads,
                                 Interrupt& interrupt) {
  std::vector<Solution> solutions(problems.size());
  for (Solution& solution : solutions) solution.status = Status::Interrupted;
  const std::size_t workers =
      std::min({std::max<std::size_t>(threads, 1), problems.size(), store.most_users()});
  Settings inner = settings;
  if (workers > 0) inner.threads = std::max<std::size_t>(1, threads / workers);
  if (workers <= 1) {
    for (std::size_t k = 0; k < problems.size() && !interrupt.requested(); ++k) {
      solutions[k] = solve(store, problems[k], inner, store.spare_bytes(), interrupt);
    }
    return solutions;
  }

  StopFlag stop;
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = workers;
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t k = next++; k < problems.size() && !stop.requested(); k = next++) {
        solutions[k] = solve(store, problems[k], inner, store.spare_bytes() / workers, stop);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      stop.raise();
    }
    const std::lock_guard lock(mutex);
    --running;
    ended.notify_one();
  };
  std::vector<std::thread> pool;
  pool.reserve(workers);
  for (std::size_t w = 0; w < workers; ++w) pool.emplace_back(work);
  {
    std::unique_lock lock(mutex);
    while (running > 0) {
      ended.wait_for(lock, std::chrono::milliseconds(50));
      lock.unlock();
      if (interrupt.requested()) stop.raise();
      lock.lock();
    }
  }
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
  return solutions;
}

}  // namespace onefit
