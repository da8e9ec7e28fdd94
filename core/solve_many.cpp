#include "solve_many.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "smo.hpp"
#include "workers.hpp"

namespace onefit {
namespace {

// Counts, for each pair of blocks of a store, the problems still to solve that need it.
class Needs {
 public:
  Needs(KernelStore& store, const std::vector<const Problem*>& problems, bool forget)
      : store_(store), active_(forget && store.n_blocks() > 1) {
    if (!active_) return;
    count_.assign(store.n_blocks() * store.n_blocks(), 0);
    for (const Problem* problem : problems) {
      for_each_pair(*problem, [&](std::size_t a, std::size_t b) { ++count(a, b); });
    }
  }

  void done(const Problem& problem) {
    if (!active_) return;
    const std::lock_guard lock(mutex_);
    for_each_pair(problem, [&](std::size_t a, std::size_t b) {
      if (--count(a, b) == 0) store_.forget(a, b);
    });
  }

 private:
  std::size_t& count(std::size_t a, std::size_t b) { return count_[a * store_.n_blocks() + b]; }

  template <class Body>
  void for_each_pair(const Problem& problem, const Body& body) const {
    std::vector<bool> in(store_.n_blocks(), false);
    std::size_t first = 0;  // of the block found last: neighbours are mostly in the same one
    std::size_t last = 0;
    for (const std::int32_t row : problem.rows) {
      const auto r = static_cast<std::size_t>(row);
      if (first <= r && r < last) continue;
      const Run run = store_.run(r, store_.size());
      in[run.block] = true;
      first = r - run.offset;
      last = r + run.length;
    }
    for (std::size_t a = 0; a < in.size(); ++a) {
      for (std::size_t b = a; in[a] && b < in.size(); ++b) {
        if (in[b]) body(a, b);
      }
    }
  }

  KernelStore& store_;
  bool active_;
  std::mutex mutex_;
  std::vector<std::size_t> count_;
};

// What one of many solves asks and tells: its share of the work is part of a total.
class Part final : public Interrupt {
 public:
  Part(Interrupt& outer, std::atomic<double>& total, std::size_t parts)
      : outer_(outer), total_(total), parts_(static_cast<double>(parts)) {}

  bool requested() override {
    outer_.reached(total_.load(std::memory_order_relaxed));
    return outer_.requested();
  }
  void reached(double share) override {
    if (share <= share_) return;
    total_.fetch_add((share - share_) / parts_, std::memory_order_relaxed);
    share_ = share;
  }

 private:
  Interrupt& outer_;
  std::atomic<double>& total_;
  double parts_;
  double share_ = 0.0;
};

}  // namespace

std::vector<Solution> solve_many(KernelStore& store, const std::vector<const Problem*>& problems,
                                 const Settings& settings, std::size_t threads, bool forget,
                                 Interrupt& interrupt) {
  Needs needs(store, problems, forget);
  const auto one = [&](std::size_t k, const Settings& inner, std::size_t scratch, Interrupt& part,
                       SmoMemory& memory) {
    Solution solution = solve(store, *problems[k], inner, scratch, part, memory);
    needs.done(*problems[k]);
    return solution;
  };
  std::vector<Solution> solutions =
      in_parallel(store, problems.size(), one, settings, threads, interrupt);
  for (std::size_t k = 0; k < problems.size(); ++k) {
    if (!solutions[k].beta.empty()) continue;
    solutions[k].beta = problems[k]->start;
    solutions[k].beta.resize(problems[k]->size(), 0.0);
  }
  return solutions;
}

std::vector<Solution> in_parallel(KernelStore& store, std::size_t count, const SolveOne& one,
                                  const Settings& settings, std::size_t threads,
                                  Interrupt& interrupt) {
  std::vector<Solution> solutions(count);
  for (Solution& solution : solutions) solution.status = Status::Interrupted;
  // Pairs of blocks that are worked on at once all have to fit.
  const std::size_t pairs = 1 + store.spare_bytes() / (2 * store.pair_bytes());
  const std::size_t workers =
      std::min({std::max<std::size_t>(threads, 1), count, store.most_users(),
                store.n_blocks() > 1 ? pairs : threads});
  Settings inner = settings;
  if (workers > 0) inner.threads = std::max<std::size_t>(1, threads / workers);
  std::atomic<double> total{0.0};  // share of the work that is done
  if (workers <= 1) {
    SmoMemory memory;
    for (std::size_t k = 0; k < count && !interrupt.requested(); ++k) {
      Part part(interrupt, total, count);
      solutions[k] = one(k, inner, store.spare_bytes(), part, memory);
      part.reached(1.0);
    }
    return solutions;
  }

  Workers pool;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    SmoMemory memory;
    for (std::size_t k = next++; k < count && !pool.stop.requested(); k = next++) {
      Part part(pool.stop, total, count);
      solutions[k] = one(k, inner, store.spare_bytes() / workers, part, memory);
      part.reached(1.0);
    }
  };
  pool.run(workers, work, [&] {
    interrupt.reached(total.load(std::memory_order_relaxed));
    if (interrupt.requested()) pool.stop.raise();
  });
  return solutions;
}

}  // namespace onefit
