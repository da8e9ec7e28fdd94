// Chains on several threads, whose results are taken on the calling one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "chains.hpp"
#include "workers.hpp"

namespace onefit {

// Calls work(c, settings, scratch, interrupt, hand) for every chain, on `threads` threads, with the
// settings of each and the memory it may use; `hand` gives a result to `take`, which is called on
// the calling thread, as is `interrupt`. Both return whether all work is to stop; an interrupt does
// so as well.
template <class Result, class Work, class Take>
void over_chains(const std::vector<Chain>& chains, const Settings& settings, std::size_t threads,
                 const Work& work, const Take& take, Interrupt& interrupt) {
  std::size_t workers = std::min(std::max<std::size_t>(threads, 1), chains.size());
  for (const Chain& chain : chains) workers = std::min(workers, chain.store->most_users());
  workers = std::max<std::size_t>(workers, 1);
  Settings inner = settings;
  inner.threads = std::max<std::size_t>(1, threads / workers);
  bool stopped = false;
  if (workers == 1) {
    const auto hand = [&](Result&& result) {
      stopped = stopped || take(std::move(result));
      return stopped;
    };
    for (std::size_t c = 0; c < chains.size() && !stopped && !interrupt.requested(); ++c) {
      work(c, inner, chains[c].store->spare_bytes(), interrupt, hand);
    }
    return;
  }

  Workers pool;
  std::mutex mutex;
  std::vector<Result> ready;
  std::atomic<std::size_t> next{0};
  const auto hand = [&](Result&& result) {
    {
      const std::lock_guard lock(mutex);
      ready.push_back(std::move(result));
    }
    pool.notify();
    return false;
  };
  const auto some = [&] {
    for (std::size_t c = next++; c < chains.size() && !pool.stop.requested(); c = next++) {
      work(c, inner, chains[c].store->spare_bytes() / workers, pool.stop, hand);
    }
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
