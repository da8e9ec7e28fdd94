// Chains on several threads, whose results are taken on the calling one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "chains.hpp"
#include "workers.hpp"

namespace onefit {

// Where and how a chain is solved.
struct ChainPlace {
  const Settings& settings;
  std::size_t scratch;
  Interrupt& interrupt;
  SmoMemory& memory;
};

// A chain that has begun (nullptr: nothing is left to do), and what to do at its end.
struct ChainTask {
  std::unique_ptr<ChainRun> run;
  std::function<void()> ended;

  bool has_ended() const { return run == nullptr || run->has_ended(); }
  void end() {
    if (ended) ended();
    *this = {};
  }
};

// Two chains of up to so many variables are solved side by side by each thread. Where more are
// active, an iteration waits for memory more than for itself.
inline constexpr std::size_t kSideBySide = 1200;

// Works on chains as long as `next` gives numbers of any, two at a time where they are small and
// `plenty` says that no other thread is left without one; `begin` begins one.
template <class Next, class Plenty, class Begin, class Stopped>
void work_on_chains(const std::vector<Chain>& chains, const Next& next, const Plenty& plenty,
                    const Begin& begin, const Stopped& stopped) {
  struct Lane {
    SmoMemory memory;
    ChainTask task;
  };
  Lane lanes[2];
  bool left = true;
  for (;;) {
    for (Lane& lane : lanes) {
      const Lane& beside = lanes[&lane == &lanes[0] ? 1 : 0];
      while (lane.task.has_ended() && left && (beside.task.has_ended() || plenty())) {
        const std::size_t c = next();
        left = c < chains.size() && !stopped();
        if (!left) break;
        lane.task = begin(c, lane.memory);
        const bool small =
            chains[c].all->size() <= kSideBySide && chains[c].store->is_in_one_piece();
        while (!small && !lane.task.has_ended()) lane.task.run->step();
        if (lane.task.has_ended()) lane.task.end();
      }
    }
    Lane& first = lanes[lanes[0].task.has_ended() ? 1 : 0];
    Lane& other = lanes[&first == &lanes[0] ? 1 : 0];
    if (first.task.has_ended() || stopped()) return;
    if (other.task.has_ended()) {
      first.task.run->step();
    } else {
      ChainRun::step(*first.task.run, *other.task.run);
    }
    for (Lane& lane : lanes) {
      if (lane.task.run != nullptr && lane.task.has_ended()) lane.task.end();
    }
  }
}

// Calls work(c, place, hand) for every chain, on `threads` threads, which begins it and returns a
// ChainTask; `hand` gives a result to `take`, which is called on the calling thread, as is
// `interrupt`. Both return whether all work is to stop; an interrupt does so as well.
template <class Result, class Work, class Take>
void over_chains(const std::vector<Chain>& chains, const Settings& settings, std::size_t threads,
                 const Work& work, const Take& take, Interrupt& interrupt) {
  std::size_t workers = std::min(std::max<std::size_t>(threads, 1), chains.size());
  for (const Chain& chain : chains) workers = std::min(workers, chain.store->most_users());
  workers = std::max<std::size_t>(workers, 1);
  Settings inner = settings;
  inner.threads = std::max<std::size_t>(1, threads / workers);
  std::atomic<std::size_t> count{0};
  const auto next = [&] { return count++; };
  const auto plenty = [&] { return workers == 1 || count + workers <= chains.size(); };
  bool stopped = false;
  if (workers == 1) {
    const auto hand = [&](Result&& result) {
      stopped = stopped || take(std::move(result));
      return stopped;
    };
    const auto begin = [&](std::size_t c, SmoMemory& memory) {
      return work(c, ChainPlace{inner, chains[c].store->spare_bytes(), interrupt, memory}, hand);
    };
    work_on_chains(chains, next, plenty, begin, [&] { return stopped || interrupt.requested(); });
    return;
  }

  Workers pool;
  std::mutex mutex;
  std::vector<Result> ready;
  const auto hand = [&](Result&& result) {
    {
      const std::lock_guard lock(mutex);
      ready.push_back(std::move(result));
    }
    pool.notify();
    return false;
  };
  const auto begin = [&](std::size_t c, SmoMemory& memory) {
    const std::size_t scratch = chains[c].store->spare_bytes() / workers;
    return work(c, ChainPlace{inner, scratch, pool.stop, memory}, hand);
  };
  const auto some = [&] {
    work_on_chains(chains, next, plenty, begin, [&] { return pool.stop.requested(); });
  };
  pool.run(workers, some, [&] {
    std::vector<Result> results;
    {
      const std::lock_guard lock(mutex);
      results.swap(ready);
    }
    for (Result& result : results) stopped = stopped || take(std::move(result));
    if (stopped || interrupt.requested()) pool.stop.raise();
  });
}

}  // namespace onefit
