#include "solve_many.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

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

// Two problems of up to so many variables are solved side by side by each thread.
constexpr std::size_t kSmall = 700;

// One of the problems that a thread works on.
class Lane {
 public:
  bool is_busy() const { return solve_.has_value(); }

  // Begins a problem; true when it has ended already.
  bool begin(KernelStore& store, std::size_t number, Task task, const Settings& settings,
             std::size_t scratch) {
    number_ = number;
    if (task.known) {
      solution_ = std::move(*task.known);
      return true;
    }
    solve_.emplace(store, *task.problem, settings, scratch, *part, memory);
    while (!solve_->has_ended() && task.problem->size() > kSmall) solve_->step();
    return ends();
  }

  // Goes on, together with another one if it is busy, too.
  void step(Lane& other) {
    if (other.is_busy()) {
      StepwiseSolve::step(*solve_, *other.solve_);
    } else {
      solve_->step();
    }
  }

  bool ends() {
    if (!solve_->has_ended()) return false;
    solution_ = solve_->take();
    solve_.reset();
    return true;
  }

  std::size_t number() const { return number_; }
  Solution take() { return std::move(solution_); }

  SmoMemory memory;
  std::optional<Part> part;  // whom to ask

 private:
  std::size_t number_ = 0;
  std::optional<StepwiseSolve> solve_;
  Solution solution_;
};

// What the threads share.
struct Work {
  KernelStore& store;
  const Prepare& prepare;
  const std::function<void(std::size_t, Solution&)>& done;
  const Settings& settings;
  std::size_t scratch;  // of each thread
  std::size_t n_lanes;
  std::vector<Solution> solutions;
  std::atomic<std::size_t> next{0};
  std::atomic<double> total{0.0};  // share of the work that is done

  // Solves problems as long as there are any.
  void run(Interrupt& interrupt) {
    Lane lanes[2];
    for (;;) {
      for (std::size_t l = 0; l < n_lanes; ++l) {
        while (!lanes[l].is_busy() && begin_next(lanes[l], interrupt)) {
        }
      }
      Lane& first = lanes[lanes[0].is_busy() ? 0 : 1];
      if (!first.is_busy()) return;
      first.step(lanes[&first == &lanes[0] ? 1 : 0]);
      for (Lane& lane : lanes) {
        if (lane.is_busy() && lane.ends()) finish(lane);
      }
    }
  }

 private:
  // False when there is no other problem.
  bool begin_next(Lane& lane, Interrupt& interrupt) {
    const std::size_t k = next < solutions.size() ? next++ : solutions.size();
    if (k >= solutions.size() || interrupt.requested()) return false;
    lane.part.emplace(interrupt, total, solutions.size());
    Task task = prepare(k, settings, scratch, *lane.part, lane.memory);
    if (lane.begin(store, k, std::move(task), settings, scratch)) finish(lane);
    return true;
  }

  void finish(Lane& lane) {
    Solution& solution = solutions[lane.number()];
    solution = lane.take();
    done(lane.number(), solution);
    lane.part->reached(1.0);
  }
};

}  // namespace

std::vector<Solution> solve_many(KernelStore& store, const std::vector<const Problem*>& problems,
                                 const Settings& settings, std::size_t threads, bool forget,
                                 Interrupt& interrupt) {
  Needs needs(store, problems, forget);
  const auto prepare = [&](std::size_t k, const Settings&, std::size_t, Interrupt&, SmoMemory&) {
    return Task{problems[k]};
  };
  std::vector<Solution> solutions = in_parallel(
      store, problems.size(), prepare, [&](std::size_t k, Solution&) { needs.done(*problems[k]); },
      settings, threads, interrupt);
  for (std::size_t k = 0; k < problems.size(); ++k) {
    if (!solutions[k].beta.empty()) continue;
    solutions[k].beta = problems[k]->start;
    solutions[k].beta.resize(problems[k]->size(), 0.0);
  }
  return solutions;
}

std::vector<Solution> in_parallel(KernelStore& store, std::size_t count, const Prepare& prepare,
                                  const std::function<void(std::size_t, Solution&)>& done,
                                  const Settings& settings, std::size_t threads,
                                  Interrupt& interrupt) {
  // Pairs of blocks that are worked on at once all have to fit.
  const std::size_t pairs = 1 + store.spare_bytes() / (2 * store.pair_bytes());
  const std::size_t workers = std::max<std::size_t>(
      1, std::min({threads, count, store.most_users(), store.n_blocks() > 1 ? pairs : threads}));
  Settings inner = settings;
  inner.threads = std::max<std::size_t>(1, threads / workers);
  // Two at a time where both can read the store's rows in place, and no thread is left without.
  const std::size_t n_lanes = store.is_in_one_piece() && count >= 4 * workers ? 2 : 1;
  Work work{store,
            prepare,
            done,
            inner,
            store.spare_bytes() / workers,
            n_lanes,
            std::vector<Solution>(count)};
  for (Solution& solution : work.solutions) solution.status = Status::Interrupted;
  if (workers == 1) {
    work.run(interrupt);
    return std::move(work.solutions);
  }
  Workers pool;
  pool.run(
      workers, [&] { work.run(pool.stop); },
      [&] {
        interrupt.reached(work.total.load(std::memory_order_relaxed));
        if (interrupt.requested()) pool.stop.raise();
      });
  return std::move(work.solutions);
}

}  // namespace onefit
