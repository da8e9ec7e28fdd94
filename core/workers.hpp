// Threads that work while the calling thread watches.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "interrupt.hpp"

namespace onefit {

class Workers {
 public:
  // Raised to make all of them end; each looks at it.
  StopFlag stop;

  // Calls `work` on up to `count` threads, and `watch` on this one now and then, after every
  // `notify` and once when all have ended. What either throws ends all of them and is thrown again.
  // Where the system gives no threads, this one does the work.
  template <class Work, class Watch>
  void run(std::size_t count, const Work& work, const Watch& watch) {
    const auto whole = [&] {
      try {
        work();
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        stop.raise();
      }
      const std::lock_guard lock(mutex_);
      --running_;
      changed_.notify_one();
    };
    running_ = count;
    std::vector<std::thread> pool;
    pool.reserve(count);
    try {
      for (std::size_t w = 0; w < count; ++w) pool.emplace_back(whole);
    } catch (const std::system_error&) {
      const std::lock_guard lock(mutex_);
      running_ -= count - pool.size();  // those that started do all the work
    }
    if (pool.empty()) {
      running_ = 1;
      whole();
    }
    try {
      while (wait()) watch();
      watch();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop.raise();
    }
    for (std::thread& thread : pool) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

  // Has `watch` called soon.
  void notify() {
    const std::lock_guard lock(mutex_);
    notified_ = true;
    changed_.notify_one();
  }

 private:
  static constexpr std::chrono::milliseconds kPause{50};

  // Waits for something to look at; whether any thread is still working.
  bool wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPause, [&] { return notified_ || running_ == 0; });
    notified_ = false;
    return running_ > 0;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_ = 0;
  bool notified_ = false;
  std::exception_ptr failure_;
};

}  // namespace onefit
