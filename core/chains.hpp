// Chains: the same problem with ever larger bounds, each started from the one before.
//
// Along C the solution b of one problem, times a factor s, is feasible for the next as long as s is
// no more than the ratio of the bounds, and its gradient follows without a kernel entry:
// p - K (s b) = p - s (p - g). Of all such starts the objective is least at
//
//   s = (p'b - kink |b|_1) / b'Kb.
//
// Where that is (almost) the ratio or more, as with a small C that holds all variables at their
// bounds, the solution is scaled; elsewhere it is taken as it is. Sums that are not 0 (those of nu)
// grow with the bounds: there s is the ratio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "interrupt.hpp"
#include "problem.hpp"
#include "smo.hpp"
#include "smo_memory.hpp"
#include "solution.hpp"
#include "store.hpp"

namespace onefit {

// A problem on all rows, a bound for each row of its store, and what these bounds are multiplied by
// from one step to the next, not falling.
struct Chain {
  KernelStore* store;
  const Problem* all;
  std::span<const double> bounds;
  std::vector<double> factors;
  // Where the first step starts: from the solution for another factor, on all rows. Cold without.
  const Solution* before = nullptr;
  double before_factor = 0.0;
};

// The variables of a problem whose rows have a bound. Those of held-out rows are no part of what is
// solved: neither their labels, targets and weights nor their places among the others can leave a
// trace in a solution, not even in its last bit.
class TrainedPart {
 public:
  TrainedPart(const KernelStore& store, const Problem& all, std::span<const double> bounds);

  std::span<const std::int32_t> rows() const { return rows_; }
  // Whether rows of the store are missing: kernel rows are then gathered, wherever these are.
  bool holds_out() const { return holds_out_; }

  // With the bounds times a factor, to be started cold.
  void with_factor(double factor, Problem& problem) const;

  // A solution as one of the problem on all rows: coefficients of held-out rows are 0, gradients
  // are not known. And the other way.
  Solution on_all_rows(const Solution& solution) const;
  Solution of_part(const Solution& solution) const;

 private:
  const Problem& all_;
  bool holds_out_ = false;
  std::vector<std::int32_t> variables_;  // of the problem on all rows
  std::vector<std::int32_t> rows_;
  std::vector<double> bounds_;
  std::size_t split_ = 0;
};

// Where the problem `next` starts after `solved`, which had its bounds times 1 / ratio; the
// gradient of the start included.
void start_scaled(const Solution& solved, double ratio, Problem& next);

// Goes on from a solution of a part, to another tolerance.
Solution solve_on(KernelStore& store, const TrainedPart& part, double factor,
                  const Solution& solution, const Settings& settings, std::size_t scratch,
                  Interrupt& interrupt);

// A chain on its way. Two of them, whose iterations alternate, take less time than one after the
// other (smo.hpp).
class ChainRun {
 public:
  // Takes each step; true ends the chain. Solutions are those of the part.
  using Done = std::function<bool(std::size_t step, Solution&& solution)>;

  // With `cold` no step starts from another. `memory` is for this chain alone until its end.
  ChainRun(Chain chain, std::shared_ptr<const TrainedPart> part, bool cold,
           const Settings& settings, std::size_t scratch, Interrupt& interrupt, SmoMemory& memory,
           Done done);

  bool has_ended() const { return !solve_.has_value(); }
  // Only while they have not ended.
  void step();
  static void step(ChainRun& a, ChainRun& b);

 private:
  void begin();
  void go_on();
  void collect();

  const Chain chain_;
  const std::shared_ptr<const TrainedPart> part_;
  const bool cold_;
  Settings settings_;
  const std::size_t scratch_;
  Interrupt& interrupt_;
  SmoMemory& memory_;
  const Done done_;
  std::optional<Solution> before_;
  double before_factor_ = 0.0;
  std::size_t step_ = 0;
  bool started_ = false;    // from a solution
  std::int64_t spent_ = 0;  // on a solution of this step that is not wanted
  std::optional<StepwiseSolve> solve_;
};

// Takes a solution of a step of a chain; true stops the work.
using Finished = std::function<bool(std::size_t chain, std::size_t step, Solution&& solution)>;

// Solves all steps of all chains, on `threads` threads. `finished` and `interrupt` are called on
// the calling thread only, the former as soon as a step is solved, in any order but that of a
// chain. Solutions are on all rows. With `cold` no step starts from another. After an interrupt the
// rest is left out.
void solve_chains(const std::vector<Chain>& chains, bool cold, const Settings& settings,
                  std::size_t threads, const Finished& finished, Interrupt& interrupt);

}  // namespace onefit
