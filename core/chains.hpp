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
#include <functional>
#include <span>
#include <vector>

#include "interrupt.hpp"
#include "problem.hpp"
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
  // Solutions of the first steps with more rows that take part: where they start from, if given.
  std::span<const Solution> nearby = {};
};

// Where the problem `next` starts after `solved`, which had its bounds times 1 / ratio; the
// gradient of the start included.
void start_scaled(const Solution& solved, double ratio, Problem& next);

// Where `next` starts after `solved`, in which more rows take part.
void start_near(KernelStore& store, const Solution& solved, Interrupt& interrupt, Problem& next);

// Solves the steps of a chain one after another; with `cold` none starts from another. `done` takes
// each, and may end the chain.
void solve_chain(const Chain& chain, bool cold, const Settings& settings, std::size_t scratch,
                 Interrupt& interrupt,
                 const std::function<bool(std::size_t step, Solution&& solution)>& done);

// Takes a solution of a step of a chain; true stops the work.
using Finished = std::function<bool(std::size_t chain, std::size_t step, Solution&& solution)>;

// Solves all steps of all chains, on `threads` threads. `finished` and `interrupt` are called on
// the calling thread only, the former as soon as a step is solved, in any order. With `cold` no
// step starts from another. After an interrupt the rest is left out.
void solve_chains(const std::vector<Chain>& chains, bool cold, const Settings& settings,
                  std::size_t threads, const Finished& finished, Interrupt& interrupt);

}  // namespace onefit
